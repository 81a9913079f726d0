"""`host_function`: functions of NumPy under `jit`, `grad` and `vmap`, with structured arguments."""

import functools
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import cKDTree

import structarrays as sa
from structarrays._numerics import host_calls

LANDMARKS = np.random.default_rng(0).normal(size=(40, 2))
POINTS = np.random.default_rng(1).normal(size=(6, 2))
TREE = cKDTree(LANDMARKS)


def shapes(points):
    return jax.ShapeDtypeStruct(points.shape[:-1], points.dtype), jax.ShapeDtypeStruct(points.shape[:-1], sa.int32)


def direction(arguments, result, cotangents):
    (points,), (distance, index) = arguments, result
    assert cotangents[1] is None
    return (cotangents[0][..., None] * (points - jnp.asarray(LANDMARKS)[index]) / distance[..., None],)


nearest = sa.host_function(TREE.query, shapes, vjp=direction, vmap_method="broadcast_all")


def second(arguments, result, tangents):
    return -sine(arguments[0]) * tangents[0]


@sa.host_function(result=lambda x: x, jvp=second)
def cosine(x):
    return np.cos(x)


@sa.host_function(result=lambda x: x, vjp=lambda arguments, result, cotangent: (cotangent * cosine(arguments[0]),))
def sine(x):
    """The sine."""
    return np.sin(x)


@pytest.fixture(params=["by buffers", "by copies"])
def way(request, monkeypatch):
    """Also the way of platforms other than the CPU, taken on the CPU; programs that go the other way are forgotten."""
    if request.param == "by copies":
        jax.clear_caches()
        monkeypatch.setattr(host_calls.lax, "platform_dependent", lambda *arrays, cpu, default: default(*arrays))
    yield
    if request.param == "by copies":
        jax.clear_caches()


# ---- calls ------------------------------------------------------------------------------------------------------------


class TestCalls:
    def test_eager_and_compiled(self, way):
        distance, index = TREE.query(POINTS)
        for call in (nearest, jax.jit(lambda points: nearest(points))):
            got = call(jnp.asarray(POINTS))
            assert all(isinstance(x, jax.Array) for x in got) and got[1].dtype == np.int32
            np.testing.assert_array_equal(got[0], distance)
            np.testing.assert_array_equal(got[1], index)

    def test_results_are_ours_if_an_argument_is(self):
        for points in (sa.asarray(POINTS), POINTS, POINTS.tolist()[0]):
            distance, _ = nearest(np.asarray(points) if isinstance(points, list) else points)
            assert isinstance(distance, sa.Dense if isinstance(points, sa.Array) else jax.Array)
        assert isinstance(jax.jit(nearest)(sa.asarray(POINTS))[0], sa.Dense)

    def test_pytrees_numbers_and_keywords(self, way):
        @sa.host_function(result=lambda parts, scale: {"sum": parts["x"], "count": jax.ShapeDtypeStruct((), int)})
        def total(parts, scale):
            return {"sum": scale * (parts["x"] + parts["y"][0]), "count": np.array(2)}

        parts = {"x": np.arange(3.0), "y": (sa.ones(3), None)}
        for call in (total, jax.jit(total)):
            for got in (call(parts, 2.0), call(parts, scale=2), call(scale=2, parts=parts)):
                np.testing.assert_array_equal(np.asarray(got["sum"]), [2.0, 4.0, 6.0])
                assert int(got["count"]) == 2

    def test_fixed_results_and_no_arguments(self, way):
        @sa.host_function(result=jax.ShapeDtypeStruct((3,), sa.float64))
        def constant():
            return np.arange(3.0)

        for call in (constant, jax.jit(lambda: constant())):
            np.testing.assert_array_equal(call(), [0.0, 1.0, 2.0])
        batch = jax.jit(jax.vmap(lambda x: x + constant()))(jnp.ones(2))
        np.testing.assert_array_equal(batch, [[1.0, 2.0, 3.0]] * 2)
        assert sa.host_function(lambda x: (), ())(1.0) == ()

    def test_decorated_functions_keep_their_names(self):
        assert (sine.__name__, sine.__doc__) == ("sine", "The sine.")
        bound = sa.host_function(functools.partial(np.add, 2.0), lambda x: x)
        assert float(bound(1.0)) == 3.0

    def test_arguments_are_copies(self, way):
        kept = []

        @sa.host_function(result=lambda x: x)
        def greedy(x):
            kept.append(x)
            x += 1.0
            return x

        x = jnp.zeros(1000)
        for call in (greedy, jax.jit(lambda x: greedy(x))):
            for _ in range(3):
                np.testing.assert_array_equal(call(x), np.ones(1000))
        assert all((k == 1.0).all() and k.flags.owndata for k in kept)
        np.testing.assert_array_equal(x, np.zeros(1000))

    def test_results_are_cast_within_their_kind(self):
        single = sa.host_function(lambda x: np.sin(np.float64(x)), lambda x: jax.ShapeDtypeStruct((), sa.float32))
        assert single(1.0).dtype == jax.jit(single)(1.0).dtype == np.float32

    def test_it_runs_when_and_as_often_as_it_is_needed(self):
        calls = []
        counted = sa.host_function(lambda x: calls.append(1) or x + 1, lambda x: x)
        f = jax.jit(lambda x: counted(x))
        for _ in range(3):
            f(1.0).block_until_ready()
        assert len(calls) == 3
        jax.eval_shape(counted, 1.0)
        assert len(calls) == 3

    def test_inside_of_loops(self):
        def step(carry, x):
            return cosine(carry) + x, carry

        x = np.linspace(0.0, 1.0, 4)
        last, _ = jax.lax.scan(step, 0.0, x)
        expected = 0.0
        for each in x:
            expected = np.cos(expected) + each
        np.testing.assert_allclose(last, expected)

    def test_inside_of_structured(self):
        f = sa.structured(lambda A, x: A @ sine(x))
        D = sa.Diagonal([1.0, 2.0, 3.0])
        np.testing.assert_allclose(f(D, jnp.arange(3.0)), [1, 2, 3] * np.sin(np.arange(3.0)))

    def test_large_arguments_do_not_wait_for_each_other(self):
        """In a process with one core, where a callback that needs another thread waits for ever (jax-ml/jax#24255)."""
        code = """
import os
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
import jax, jax.numpy as jnp, numpy as np
import structarrays as sa

@sa.host_function(result=lambda x: x, vjp=lambda a, r, c: (c * twice(r),))
def twice(x):
    return 2 * x

x = jnp.ones(1 << 20)
print(float(jax.jit(jax.grad(lambda x: jnp.sum(twice(twice(x)))))(x)[0]))
"""
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert result.stdout.strip() == "32.0", result.stderr


# ---- structured arguments -----------------------------------------------------------------------------------------------


class TestStructuredArguments:
    def test_they_arrive_dense_under_the_policy(self):
        seen = []

        @sa.host_function(result=lambda a: jax.ShapeDtypeStruct((), a.dtype))
        def trace(a):
            seen.append(a)
            return np.trace(a)

        D = sa.Diagonal([1.0, 2.0])
        assert float(trace(D)) == float(jax.jit(trace)(D)) == 3.0
        assert all(type(a) is np.ndarray and a.shape == (2, 2) for a in seen)
        with sa.record() as log:
            trace(D)
        assert [e.function for e in log.densifications] == ["trace"]
        with sa.densify("error"):
            with pytest.raises(sa.DensifyError, match="trace would expand Diagonal"):
                trace(D)
            assert float(sine(D.diag)[0]) == np.sin(1.0)  # parameters are arrays like any other

    @pytest.mark.parametrize(
        "x",
        [
            sa.Diagonal([0.5, 1.5, 0.25]),
            sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [0.5, 0.25]),
            sa.Toeplitz([1.0, 2.0, 3.0]),
            sa.LowRank([[1.0], [2.0]], [[0.5], [0.25]]),
            sa.Sparse([1.0, 2.0], ([0, 1], [1, 0]), (2, 2)),
        ],
        ids=lambda x: type(x).__name__,
    )
    def test_gradients_have_the_structure_of_the_argument(self, x):
        weights = jnp.arange(1.0, 1.0 + x.size).reshape(x.shape)
        for transform in (lambda f: f, jax.jit):
            gradient = transform(sa.grad(lambda x: sa.sum(weights * sine(x))))(x)
            expected = sa.grad(lambda x: sa.sum(weights * sa.sin(x.to_dense())))(x)
            assert sa.same_structure(gradient, expected)
            for g, e in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(g, e, rtol=1e-12)

    def test_batches(self):
        batch = sa.Diagonal(np.arange(6.0).reshape(3, 2))
        for vmap in (jax.vmap, sa.vmap):
            result = vmap(sine)(batch)
            np.testing.assert_allclose(np.asarray(result), np.sin(np.asarray(batch)))


# ---- derivatives ----------------------------------------------------------------------------------------------------------


class TestDerivatives:
    def test_by_the_query(self, way):
        def closeness(points):
            distance, index = nearest(points)
            return jnp.sum(distance**2)

        expected = 2 * (POINTS - LANDMARKS[TREE.query(POINTS)[1]])
        for transform in (lambda f: f, jax.jit, jax.vmap):
            np.testing.assert_allclose(transform(jax.grad(closeness))(jnp.asarray(POINTS)), expected)
        gradient = sa.grad(lambda points: sa.sum(nearest(points)[0] ** 2))(sa.asarray(POINTS))
        np.testing.assert_allclose(np.asarray(gradient), expected)

    def test_of_every_order_by_rules_that_call_the_host(self, way):
        f, x = sine, 0.7
        expected = [np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin]
        for derivative in expected:
            np.testing.assert_allclose(f(x), derivative(x))
            np.testing.assert_allclose(jax.jit(f)(x), derivative(x))
            np.testing.assert_allclose(jax.jit(jax.vmap(f))(jnp.full(3, x)), np.full(3, derivative(x)))
            f = jax.grad(f)

    def test_forward(self):
        value, change = jax.jvp(cosine, (0.5,), (2.0,))
        np.testing.assert_allclose([value, change], [np.cos(0.5), -2 * np.sin(0.5)])
        np.testing.assert_allclose(jax.jacfwd(cosine)(jnp.arange(2.0)), np.diag(-np.sin([0.0, 1.0])))
        with pytest.raises(TypeError, match="custom_vjp"):
            jax.jvp(sine, (0.5,), (1.0,))

    def test_a_forward_rule_on_the_host(self):
        host = sa.host_function(lambda x, dx: 3 * x**2 * dx, lambda x, dx: x)
        cube = sa.host_function(lambda x: x**3, lambda x: x, jvp=lambda arguments, result, t: host(arguments[0], t[0]))
        assert float(jax.jvp(cube, (2.0,), (1.0,))[1]) == 12.0

    def test_integers_none_and_pytrees(self):
        def rule(arguments, result, cotangents):
            parts, power, unused = arguments
            assert cotangents["power"] is None
            by_x = cotangents["y"] * power * parts["x"] ** (power - 1)
            return {"x": by_x, "n": None}, None, None

        @sa.host_function(result=lambda parts, power, unused: {"y": parts["x"], "power": power}, vjp=rule)
        def powers(parts, power, unused):
            return {"y": parts["x"] ** power, "power": power}

        def f(parts, unused):
            return jnp.sum(powers(parts, 3, unused)["y"])

        parts = {"x": jnp.arange(1.0, 4.0), "n": jnp.arange(3)}
        by_parts, by_unused = jax.grad(f, (0, 1), allow_int=True)(parts, jnp.ones(2))
        np.testing.assert_allclose(by_parts["x"], 3 * np.arange(1.0, 4.0) ** 2)
        assert by_parts["n"].dtype == jax.dtypes.float0
        np.testing.assert_array_equal(by_unused, np.zeros(2))

        def forward(arguments, result, tangents):
            assert tangents[1] is None
            return {"y": arguments[1] * arguments[0] * tangents[0], "power": None}

        @sa.host_function(result=lambda x, n: {"y": x, "power": n}, jvp=forward)
        def both(x, n):
            return {"y": n * x**2 / 2, "power": n}

        assert float(jax.grad(lambda x: both(x, 3)["y"])(2.0)) == 6.0

    def test_rules_may_use_arrays_of_ours(self):
        rule_with_ours = sa.host_function(
            lambda x: x**2,
            lambda x: x,
            vjp=lambda arguments, result, c: (sa.asarray(2.0 * c) * sa.asarray(arguments[0]),),
        )
        assert float(jax.grad(rule_with_ours)(3.0)) == 6.0

    def test_without_a_rule(self):
        cube_root = sa.host_function(np.cbrt, lambda x: x)
        for transform in (lambda f: f, jax.jit):
            with pytest.raises(TypeError, match=r"cbrt has no derivative.*vjp= or jvp=.*stop_gradient"):
                transform(jax.grad(lambda x: cube_root(x)))(8.0)
            gradient = transform(jax.grad(lambda x: x * cube_root(jax.lax.stop_gradient(x))))
            assert float(gradient(8.0)) == 2.0
            assert float(transform(jax.grad(lambda x: x * cube_root(8.0)))(3.0)) == 2.0


# ---- vmap -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("sequential", {((2,), ())}),
        ("expand_dims", {((3, 2), (1,)), ((4, 3, 2), (4, 1))}),
        ("broadcast_all", {((3, 2), (3,)), ((4, 3, 2), (4, 3))}),
    ],
)
def test_vmap_methods(method, expected, way):
    seen = set()

    @sa.host_function(result=lambda x, c: x, vmap_method=method)
    def scaled(x, c):
        seen.add((x.shape, c.shape))
        return x * c[..., None]

    x, c = np.arange(24.0).reshape(4, 3, 2), np.arange(1.0, 5.0)
    np.testing.assert_array_equal(jax.vmap(scaled, (0, None))(x[0], 2.0), 2 * x[0])
    twice = jax.vmap(jax.vmap(scaled, (0, None)))
    for call in (twice, jax.jit(twice)):
        np.testing.assert_array_equal(call(x, c), x * c[:, None, None])
    assert {shapes for shapes in seen if shapes[0] in {(2,), (3, 2), (4, 3, 2)}} == seen
    assert expected <= seen


# ---- errors -----------------------------------------------------------------------------------------------------------------


def same(x):
    return x


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sa.host_function(3, same), TypeError, "fun must be a function, got int"),
        (lambda: sa.host_function(same, same, vjp=3), TypeError, "vjp must be a function"),
        (lambda: sa.host_function(same, same, jvp=3), TypeError, "jvp must be a function"),
        (lambda: sa.host_function(same, same, vjp=same, jvp=same), TypeError, "only one of vjp and jvp"),
        (lambda: sa.host_function(same), TypeError, "result must give"),
        (
            lambda: sa.host_function(same, same, vmap_method="fast"),
            ValueError,
            "sequential, expand_dims, broadcast_all",
        ),
        (lambda: sa.host_function(same, 3)(1.0), TypeError, "same: the leaves of result must have a shape"),
        (lambda: sa.host_function(same, same)("text"), TypeError, "same: arguments must be arrays.*got str"),
        (lambda: sa.host_function(lambda x, *, n: x, same)(1.0, n=2), TypeError, "got the keyword-only n"),
        (lambda: sa.host_function(same, same)(1.0, y=1), TypeError, "unexpected keyword"),
        (
            lambda: sa.host_function(same, lambda x: (x, x))(1.0),
            ValueError,
            "must return the pytree that result specifies",
        ),
        (
            lambda: sa.host_function(np.ravel, same)(np.ones((2, 2))),
            ValueError,
            r"shape that result specifies, \(2, 2\), got \(4,\)",
        ),
        (
            lambda: sa.host_function(lambda x: x * 1j, same)(1.0),
            ValueError,
            "dtype that result specifies, float64, got complex128",
        ),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        (lambda arguments, result, c: c, TypeError, "vjp must return a tuple with one entry for each of 1"),
        (lambda arguments, result, c: (c, c), TypeError, "got a tuple of 2"),
        (lambda arguments, result, c: ({"x": c},), TypeError, "must return an array for each array, got dict"),
        (lambda arguments, result, c: (jnp.ones(3),), ValueError, r"of shape \(\), got \(3,\)"),
    ],
)
def test_errors_of_rules(rule, error, message):
    with pytest.raises(error, match=message):
        jax.grad(sa.host_function(same, same, vjp=rule))(1.0)


def test_a_rule_with_another_pytree():
    f = sa.host_function(lambda parts: parts[0], lambda parts: parts[0], vjp=lambda arguments, result, c: ({"x": c},))
    with pytest.raises(ValueError, match="vjp returned another pytree"):
        jax.grad(f)((1.0, 2.0))


def test_errors_of_the_function_itself(way):
    @sa.host_function(result=same)
    def picky(x):
        raise KeyError("the sun is out")

    with pytest.raises(KeyError, match="the sun"):
        picky(1.0)
    with pytest.raises(jax.errors.JaxRuntimeError, match="the sun is out"):
        jax.jit(picky)(1.0).block_until_ready()
    wrong = sa.host_function(np.ravel, same)
    with pytest.raises(jax.errors.JaxRuntimeError, match="must return an array of the shape that result specifies"):
        jax.jit(wrong)(np.ones((2, 2))).block_until_ready()


def test_a_result_without_memory_raises():
    """JAX's own conversion ends the process: see docs/design/jax_bugs.md. No machine has these 2**51 bytes."""
    program = (
        "import jax, numpy as np, pytest, structarrays as sa\n"
        "x = jax.jit(lambda a: sa.linalg.outer(a, a).to_dense())(sa.ones(2**24, dtype=sa.float64))\n"
        "with pytest.raises(jax.errors.JaxRuntimeError, match='RESOURCE_EXHAUSTED'), sa.densify('allow', limit=2**60):\n"
        "    np.asarray(x)\n"
    )
    environment = os.environ | {"JAX_ENABLE_X64": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
