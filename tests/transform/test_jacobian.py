"""`jacobian`, `hessian` and `linearize`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jacobian_programs import PROGRAMS, with_custom_vjp_rule
from jax import lax
from support import as_jax

import structarrays as sa


def point(shape, dtype=float):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), dtype)


def matrix(full, rows, columns):
    return np.asarray(full).reshape(rows, columns)


def assert_equals(found, expected, dtype=float):
    tolerance = 1e-12 if np.finfo(dtype).bits == 64 else 2e-5
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(np.asarray(found.to_dense()), expected, rtol=tolerance, atol=tolerance * scale)


def assert_structure(found, name):
    assert type(found).__name__ == ("Dense" if name == "dense" else name)


def sum_of_squares(function):
    return lambda x: jnp.sum(function(x) ** 2)


# ---- programs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_jacobians_of_programs(name, mode):
    function, shape, structure, _ = PROGRAMS[name]
    if mode == "reverse" and name in REVERSE_FAILS_IN_JAX:
        with pytest.raises(ValueError, match="Reverse-mode"):
            jax.jacrev(function)(point(shape))
        with pytest.raises(ValueError, match="Reverse-mode"):
            sa.jacobian(function, mode=mode)(point(shape))
        return
    x = point(shape)
    expected = jax.jit(jax.jacfwd(function))(x)
    found = jax.jit(sa.jacobian(function, mode=mode))(x)
    assert_equals(found, expected.reshape(-1, x.size))
    assert_structure(found, structure)


REVERSE_FAILS_IN_JAX = {"while_loop_with_tolerance"}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in REVERSE_FAILS_IN_JAX])
def test_hessians_of_programs(name):
    function, shape, _, structure = PROGRAMS[name]
    x, scalar = point(shape), sum_of_squares(function)
    found = jax.jit(sa.hessian(scalar))(x)
    assert_equals(found, jax.jit(jax.hessian(scalar))(x).reshape(x.size, x.size))
    assert_structure(found, structure)


def test_most_programs_keep_structure():
    assert sum(p.structure != "dense" for p in PROGRAMS.values()) >= 36


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["elementwise", "laplace_2d", "convolution", "three_steps_of_scan", "finite_elements"])
def test_other_dtypes(name, dtype):
    function, shape, structure, _ = PROGRAMS[name]
    x = point(shape, dtype)
    is_complex = np.dtype(dtype).kind == "c"
    for mode in "forward", "reverse":
        found = jax.jit(sa.jacobian(function, mode=mode, holomorphic=is_complex))(x)
        expected = jax.jacfwd(function, holomorphic=is_complex)(x).reshape(-1, x.size)
        assert_equals(found, expected, dtype)
        assert_structure(found, structure)


def test_real_argument_and_complex_value():
    def function(x):
        return lax.complex(x, x[::-1]) * (1 + 2j)

    x = point(5)
    assert_equals(sa.jacobian(function)(x), jax.jacfwd(function)(x), complex)


# ---- transformations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["muscl_minmod", "finite_elements", "normalised"])
def test_eager_and_compiled_calls_agree(name):
    function, shape, structure, _ = PROGRAMS[name]
    found = sa.jacobian(function)(point(shape))
    assert_structure(found, structure)
    assert_equals(found, jax.jacfwd(function)(point(shape)))
    other = sa.jacobian(function)(0 * point(shape) + 1.0)
    assert jax.tree.structure(other) == jax.tree.structure(found)


def test_eager_calls_use_the_present_values_of_variables():
    used = []

    def function(x):
        factor, zero, indices = used[-1]
        return jax.nn.relu(factor * x[indices]) + jnp.arctan2(zero, x[indices] - 4.0)

    jacobian = sa.jacobian(function)
    x = jnp.asarray([1.0, 2.0, 3.0])
    for values in (
        (2.0, 0.0, np.array([0, 1])),
        (2.0, 0.0, np.array([0, 1])),
        (3.0, 0.0, np.array([0, 1])),
        (3.0, 0.5, np.array([0, 1])),
        (3.0, 0.0, np.array([2, 1])),
        (3.0, -0.0, np.array([2, 1])),
    ):
        used.append(values)
        value, J = sa.linearize(function, x)
        np.testing.assert_array_equal(value, function(x))
        for found in J, jacobian(x):
            assert_equals(found, np.asarray(jax.jacfwd(function)(x)))


def test_equal_programs_are_compiled_once(monkeypatch):
    from structarrays.transform import linear_programs

    runs = []
    original = linear_programs.LinearInterpreter.run
    monkeypatch.setattr(
        linear_programs.LinearInterpreter, "run", lambda *args, **kwargs: (runs.append(1), original(*args, **kwargs))[1]
    )
    for name in "muscl_minmod", "convolutional_network", "checkpointed", "finite_elements":
        function, shape, *_ = PROGRAMS[name]
        first = sa.jacobian(lambda u, function=function: function(u) * 1.25)(point(shape))
        count = len(runs)
        other = sa.jacobian(lambda u, function=function: function(u) * 1.25)(2 * point(shape))
        assert len(runs) == count, name
        assert jax.tree.structure(first) == jax.tree.structure(other)


@pytest.mark.parametrize("name", ["nonlinear_diffusion_2d", "gathered", "elementwise"])
def test_vmap(name):
    function, shape, structure, _ = PROGRAMS[name]
    x = point((3, *shape))
    found = jax.jit(jax.vmap(sa.jacobian(function)))(x)
    assert found.shape[0] == 3 and type(found).__name__ == structure
    for each, one in zip(np.asarray(found.to_dense()), x, strict=True):
        expected = jax.jacfwd(function)(one)
        np.testing.assert_allclose(each, matrix(expected, -1, one.size), atol=1e-12)


def test_scan():
    def step(u, _):
        J = sa.jacobian(PROGRAMS["diffusion_dirichlet"].function)(u)
        return u + 0.1 * (J @ u), J

    u, matrices = lax.scan(step, point(8), None, length=3)
    assert type(matrices) is sa.Banded and matrices.shape == (3, 8, 8)


def test_derivative_of_a_jacobian():
    function = PROGRAMS["nonlinear_diffusion_2d"].function

    def trace(x):
        return as_jax(sa.linalg.trace(sa.jacobian(function)(x)))

    def dense(x):
        return jnp.trace(jax.jacfwd(function)(x).reshape(x.size, x.size))

    x = point((4, 4))
    np.testing.assert_allclose(jax.jit(jax.grad(trace))(x), jax.grad(dense)(x), atol=1e-12)


def test_newton_step():
    def residual(u):
        p = jnp.pad(u, 1)
        return p[2:] - 2 * u + p[:-2] - u**3 + 1

    @jax.jit
    def step(u):
        return u - sa.linalg.solve(sa.jacobian(residual)(u), residual(u))

    u = jnp.zeros(50)
    for _ in range(20):
        u = step(u)
    assert float(jnp.max(jnp.abs(residual(u)))) < 1e-12


# ---- arguments and values ----------------------------------------------------------------------------------------------


def test_arrays_of_the_namespace():
    A = sa.tridiagonal(np.ones(4), np.full(5, -2.0), np.ones(4))

    def function(x):
        return sa.sin(A @ x) * x

    x = sa.asarray(point(5))
    expected = jax.jacfwd(lambda x: jnp.sin(A.to_jax() @ x) * x)(x.to_jax())
    for mode in "forward", "reverse":
        found = sa.jacobian(function, mode=mode)(x)
        assert_structure(found, "Banded")
        assert_equals(found, expected)
    value, J = sa.linearize(function, x)
    assert type(value) is sa.Dense and type(J) is sa.Banded


def test_products_with_a_sparse_array():
    A = sa.Sparse([1.0, 2.0, 3.0], ([0, 2, 3], [1, 0, 3]), (4, 4))
    found = jax.jit(sa.jacobian(lambda x: (A @ x) ** 2))(point(4))
    expected = jax.jacfwd(lambda x: (A.to_jax() @ x) ** 2)(point(4))
    assert_equals(found, expected)
    assert type(found) is not sa.Dense


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_several_arguments_and_values(mode):
    def function(x, scale, pair):
        return {"a": scale * x[1:] * pair[0], "b": jnp.sum(x) * pair[1] ** 2}

    arguments = point(4), 3.0, (point(3), point(()))
    found = sa.jacobian(function, argnums=(0, 2), mode=mode)(*arguments)
    expected = jax.jacfwd(function, argnums=(0, 2))(*arguments)
    for own, other in zip(
        jax.tree.leaves(found, is_leaf=lambda x: isinstance(x, sa.Array)), jax.tree.leaves(expected), strict=True
    ):
        assert own.shape == other.shape
        assert_equals(own, other)
    assert type(found["a"][0]) is sa.Banded and type(found["a"][1][0]) is sa.Diagonal


def test_hessian_of_several_arguments():
    def function(x, y):
        return jnp.sum(x[1:] * x[:-1] * y) + jnp.sum(y**3), x

    arguments = point(4), point(3)
    found, aux = sa.hessian(function, argnums=(0, 1), has_aux=True)(*arguments)
    expected = jax.hessian(lambda *a: function(*a)[0], argnums=(0, 1))(*arguments)
    for row, other in zip(found, expected, strict=True):
        for own, each in zip(row, other, strict=True):
            assert_equals(own, each)
    np.testing.assert_array_equal(aux, arguments[0])
    assert type(found[1][1]) is sa.Diagonal and type(found[0][0]) is sa.Banded


def test_auxiliary_results_and_keywords():
    def function(x, *, power):
        return x**power, {"norm": jnp.sum(x)}

    for mode in "forward", "reverse":
        found, aux = sa.jacobian(function, has_aux=True, mode=mode)(point(3), power=2)
        assert_equals(found, np.diag(2 * point(3)))
        np.testing.assert_allclose(aux["norm"], np.sum(point(3)))


def test_linearize():
    x, y = point(4), point(3)
    value, (by_x, by_y) = sa.linearize(lambda x, y: x[1:] * y, x, y)
    np.testing.assert_allclose(value, x[1:] * y)
    assert_equals(by_x, np.eye(3, 4, 1) * np.asarray(y)[:, None])
    assert_equals(by_y, np.diag(x[1:]))
    value, J, aux = sa.linearize(lambda x: (x**2, jnp.sum(x)), x, has_aux=True)
    assert type(J) is sa.Diagonal and aux == jnp.sum(x)


def test_arrays_without_dimensions_and_empty_arrays():
    gradient = sa.jacobian(lambda x: jnp.sum(x**2))(point(3))
    assert type(gradient) is sa.Dense and gradient.shape == (3,)
    assert sa.jacobian(lambda t: t * jnp.arange(3.0))(2.0).shape == (3,)
    derivative = sa.jacobian(jnp.sin)(0.0)
    assert derivative.shape == () and float(derivative) == 1.0
    for mode in "forward", "reverse":
        assert sa.jacobian(lambda x: x**2, mode=mode)(jnp.zeros(0)).shape == (0, 0)
        assert sa.jacobian(lambda x: x[:0], mode=mode)(jnp.zeros(3)).shape == (0, 3)
        constant = sa.jacobian(lambda x: jnp.ones(2), mode=mode)(jnp.zeros(3))
        assert_equals(constant, np.zeros((2, 3)))


def test_custom_vjp():
    x = point(5)
    expected = np.asarray(jax.jacrev(with_custom_vjp_rule)(x))
    for mode in "auto", "reverse":
        found = sa.jacobian(with_custom_vjp_rule, mode=mode)(x)
        assert_structure(found, "Banded")
        assert_equals(found, expected)
    with pytest.raises(
        TypeError, match="jacobian: mode must be 'reverse' or 'auto' for a function with a jax.custom_vjp"
    ):
        sa.jacobian(with_custom_vjp_rule, mode="forward")(x)


@pytest.mark.parametrize("wrapper", [lambda f: f, jax.jit, jax.checkpoint])
@pytest.mark.parametrize("length", [5, 100])
def test_custom_vjp_in_a_loop_whose_first_tangent_is_zero(wrapper, length):
    def loop(u):
        def step(carry, value):
            return wrapper(with_custom_vjp_rule)(carry).sum() * jnp.ones(2) + value, carry[0]

        return jax.lax.scan(step, jnp.zeros(2), 0.1 * jnp.tile(u, length // 5))[1]

    x = point(5)
    assert_equals(sa.jacobian(loop)(x), np.asarray(jax.jacrev(loop)(x)))


def test_custom_jvp_is_respected():
    @jax.custom_jvp
    def function(x):
        return x**2

    function.defjvp(lambda primals, tangents: (function(*primals), 5.0 * tangents[0]))
    assert_equals(sa.jacobian(function)(point(3)), 5 * np.eye(3))


def test_infinite_coefficients_do_not_leave_the_pattern():
    def function(u):
        p = jnp.pad(u, 1)
        return (jnp.sqrt(p) + jnp.log(p))[2:] + u

    found = np.asarray(sa.jacobian(function)(jnp.ones(4)).to_dense())
    np.testing.assert_allclose(found, np.eye(4) + 1.5 * np.eye(4, k=1))


# ---- errors and policies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sa.jacobian(3), TypeError, "jacobian: fun must be a function, got int"),
        (lambda: sa.hessian(None), TypeError, "hessian: fun must be a function, got NoneType"),
        (lambda: sa.linearize(1.0, 2.0), TypeError, "linearize: fun must be a function, got float"),
        (lambda: sa.linearize(jnp.sin), TypeError, "linearize: primals must contain at least one argument"),
        (lambda: sa.jacobian(jnp.sin, mode="fwd"), ValueError, "jacobian: mode must be one of 'auto', .*, got 'fwd'"),
        (lambda: sa.jacobian(jnp.sin, 1)(1.0), TypeError, "jacobian: argnums must name positional arguments, got 1 for a call with 1"),
        (lambda: sa.jacobian(jnp.sin, "x"), TypeError, "jacobian: argnums must be an integer or a tuple of integers, got 'x'"),
        (lambda: sa.jacobian(jnp.sin, ()), TypeError, "jacobian: argnums must name at least one argument"),
        (lambda: sa.jacobian(jnp.add, (0, -2))(1.0, 2.0), TypeError, "jacobian: argnums must be distinct"),
        (lambda: sa.jacobian(jnp.sin)(jnp.arange(3)), TypeError, "jacobian: the differentiated argument must be floating-point, got int"),
        (lambda: sa.jacobian(jnp.sin)("x"), TypeError, "jacobian: the differentiated arguments must be arrays .*, got str"),
        (lambda: sa.jacobian(jnp.sin)(()), TypeError, "jacobian: the differentiated arguments must contain arrays"),
        (lambda: sa.jacobian(jnp.sin)(1j), TypeError, "jacobian: the differentiated arguments must be real unless holomorphic=True"),
        (lambda: sa.jacobian(sa.sin)(sa.eye(3)), TypeError, "jacobian: the differentiated arguments must be dense arrays, got a Identity"),
        (lambda: sa.jacobian(lambda x: "y")(1.0), TypeError, "jacobian: fun must return arrays or pytrees of arrays, got str"),
        (lambda: sa.jacobian(jnp.argmax)(jnp.ones(3)), TypeError, "jacobian: the value of fun must be floating-point, got int"),
        (lambda: sa.jacobian(jnp.sin, has_aux=True)(1.0), TypeError, "jacobian: fun must return a pair"),
        (lambda: sa.hessian(jnp.sin)(jnp.ones(3)), TypeError, r"hessian: fun must return an array without dimensions, got shape \(3,\)"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_policy_and_explanation():
    function = PROGRAMS["transformed"].function
    log = sa.explain(sa.jacobian(function), point(6))
    assert [e.how for e in log.densifications] == ["the primitive fft"]
    log = sa.explain(sa.jacobian(lambda u: jnp.sort(u) + u**2), point(6))
    assert [e.how for e in log.densifications] == ["the primitive gather"]
    assert not sa.explain(sa.jacobian(PROGRAMS["laplace_2d"].function), point((4, 4))).densifications
    with sa.densify("error"), pytest.raises(sa.DensifyError, match="jacobian: the derivative of the primitive 'fft'"):
        sa.jacobian(function)(point(6))
    with pytest.raises(sa.DensifyError, match="above the limit"):
        jax.eval_shape(sa.jacobian(lambda u: jnp.sort(u)), jnp.zeros(10**6))
    with pytest.raises(sa.DensifyError, match="above the limit"):
        jax.eval_shape(sa.jacobian(lambda u: u / jnp.sum(u)), jnp.zeros(10**6))


# ---- a million unknowns --------------------------------------------------------------------------------------------------


def diffusion(u, side):
    p = jnp.pad(u.reshape(side, side), 1)
    k = 1 + p**2
    fx = (k[1:, 1:-1] + k[:-1, 1:-1]) / 2 * (p[1:, 1:-1] - p[:-1, 1:-1])
    fy = (k[1:-1, 1:] + k[1:-1, :-1]) / 2 * (p[1:-1, 1:] - p[1:-1, :-1])
    return (fx[1:] - fx[:-1] + fy[:, 1:] - fy[:, :-1]).ravel()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_memory_of_a_million_unknowns(mode):
    side, n = 1000, 10**6
    function = functools.partial(diffusion, side=side)
    compiled = jax.jit(sa.jacobian(function, mode=mode)).lower(jnp.zeros(n)).compile()
    memory = compiled.memory_analysis()
    total = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    assert total < 40 * 8 * n
    u = jnp.linspace(0.0, 1.0, n)
    J, v = compiled(u), jnp.cos(jnp.arange(n))
    assert type(J) is sa.Banded and J.offsets == (-side, -1, 0, 1, side)
    expected = jax.jvp(function, (u,), (v,))[1]
    np.testing.assert_allclose(np.asarray(J @ v), expected, atol=1e-9)


@pytest.mark.slow
def test_memory_of_gradients_and_sparse_patterns():
    n = 10**6
    left = np.random.default_rng(0).permutation(n)

    def energy(u):
        return jnp.sum((u[left] - jnp.roll(u, 1)) ** 4)

    compiled = jax.jit(sa.hessian(energy)).lower(jnp.zeros(n)).compile()
    memory = compiled.memory_analysis()
    assert memory.output_size_in_bytes + memory.temp_size_in_bytes < 100 * 8 * n
    u, v = jnp.linspace(0.0, 1.0, n), jnp.cos(jnp.arange(n))
    H = compiled(u)
    assert type(H) is sa.Sparse and H.nnz <= 4 * n
    np.testing.assert_allclose(np.asarray(H @ v), jax.jvp(jax.grad(energy), (u,), (v,))[1], atol=1e-9)


@pytest.mark.parametrize("where", ["product", "loop"])
def test_a_constant_of_numpy_that_changes_between_eager_calls(where):
    """A call must not use the code that was compiled for the former values."""
    weights = np.ones(5)

    def function(u):
        if where == "product":
            return jnp.sin(u) * weights
        return jax.lax.scan(lambda c, _: (c * weights + 1, None), u, None, length=3)[0]

    u = jnp.arange(5.0)
    for value in (1.0, 2.0):
        weights[:] = value
        np.testing.assert_allclose(sa.jacobian(function)(u).to_dense(), jax.jacfwd(function)(u), rtol=1e-12)


@pytest.mark.slow
def test_solvers_in_the_function():
    """A linear system has results, its flags, that do not depend on the argument."""
    A = sa.tridiagonal(-np.ones(4), 4 * np.ones(5), -np.ones(4))
    inverse = np.linalg.inv(np.asarray(A.to_jax()))
    wide = sa.Banded([np.full(60 - abs(k), 9.0 if k == 0 else 0.5) for k in range(-9, 10)], range(-9, 10), (60, 60))
    for matrix, u in ((A, jnp.ones(5)), (wide, jnp.ones(60))):
        inverse = np.linalg.inv(np.asarray(matrix.to_jax()))
        for mode in ("forward", "reverse"):
            found = sa.jacobian(lambda u, A=matrix: sa.linalg.solve(A, u), mode=mode)(u)
            np.testing.assert_allclose(found.to_dense(), inverse, rtol=1e-10, atol=1e-14)


def _stacking_jvp():
    @jax.custom_jvp
    def square(x):
        return x * x

    @square.defjvp
    def rule(primals, tangents):
        both = jnp.stack([primals[0], tangents[0]])
        return square(primals[0]), 2 * both[0] * both[1]

    return square


def _concatenating_vjp():
    @jax.custom_vjp
    def square(x):
        return x * x

    def backward(x, cotangent):
        both = jnp.concatenate([cotangent, x])
        return (2 * both[: x.size] * both[x.size :],)

    square.defvjp(lambda x: (x * x, x), backward)
    return square


@pytest.mark.parametrize("function", [_stacking_jvp(), _concatenating_vjp()])
def test_custom_derivatives_that_join_tangents_with_other_values(function):
    """A derivative need not be linear in each of its equations: what is joined with a tangent is not always zero."""
    x = jnp.asarray([1.0, 2.0, 3.0])
    np.testing.assert_allclose(sa.jacobian(function)(x).to_dense(), np.diag([2.0, 4.0, 6.0]))


@pytest.mark.costly
@pytest.mark.parametrize("mode", ["auto", "reverse"])
def test_differential_equations(mode):
    from jax.experimental.ode import odeint

    def solution(u):
        return odeint(lambda y, t: -(y**2) + jnp.roll(y, 1), u, jnp.asarray([0.0, 0.5, 1.0]))

    u = jnp.asarray([1.0, 0.5, 2.0])
    expected = jax.jacrev(solution)(u).reshape(9, 3)
    np.testing.assert_allclose(sa.jacobian(solution, mode=mode)(u).to_dense(), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("steps", [64, 65, 66, 99, 101])
def test_long_loops_whose_patterns_grow_until_the_end(mode, steps):
    def moved(u):
        return jax.lax.scan(lambda c, _: (0.99 * jnp.roll(c, 1), c[0]), u, None, length=steps)

    def mixed(u):
        def step(carry, _):
            a, b = carry
            return (jnp.roll(b, 1), jnp.sin(a) + b), None

        return jax.lax.scan(step, (u, jnp.zeros_like(u)), None, length=steps)[0]

    u = jnp.asarray(np.random.default_rng(0).normal(size=150))
    for function in (moved, mixed):
        found = sa.jacobian(function, mode=mode)(u)
        for a, b in zip(found, jax.jacfwd(function)(u), strict=True):
            np.testing.assert_allclose(a.to_dense(), b, rtol=1e-10, atol=1e-12)


def test_complex_values_of_real_arguments():
    u = jnp.arange(3.0)
    np.testing.assert_allclose(sa.jacobian(lambda u: u * (1 + 2j))(u).to_dense(), (1 + 2j) * np.eye(3))
    with pytest.raises(TypeError, match="jacobian: mode must be 'forward' for a complex value of real arguments"):
        sa.jacobian(lambda u: u * (1 + 2j), mode="reverse")(u)


def test_a_read_only_view_whose_base_changes():
    base = np.ones(2)
    view = np.broadcast_to(base, (2, 2))
    u = jnp.arange(2.0)

    def function(u):
        return jax.lax.scan(lambda c, _: (c * view[0] + 1, None), u, None, length=1)[0]

    for value in (1.0, 7.0):
        base[:] = value
        np.testing.assert_allclose(sa.jacobian(function)(u).to_dense(), value * np.eye(2))


def test_loops_over_random_keys():
    keys = jax.random.split(jax.random.key(0), 3)

    def noisy(u):
        return jax.lax.scan(lambda c, key: (c * jax.random.normal(key), None), u, keys)[0]

    u = jnp.arange(4.0)
    np.testing.assert_allclose(sa.jacobian(noisy)(u).to_dense(), jax.jacfwd(noisy)(u), rtol=1e-12)
