"""`apply_updates`: steps of optimizers, for every structure."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import structarrays as sa
from structarrays._core.array.flattening import opened, parameters
from structarrays.testing import STRUCTURES, sample

LOW_RANK = sa.LowRank([[1.0], [2.0]], [[3.0], [4.0]])
TRIDIAGONAL = sa.tridiagonal(np.ones(3), np.full(4, 4.0), np.ones(3))
SPARSE = sa.Sparse([1.0, 2.0, 3.0], ([0, 1, 2], [1, 0, 2]), (3, 3))


def plain(x):
    """An array of JAX."""
    return x.to_jax() if isinstance(x, sa.Array) else x


def is_float(x):
    return jnp.issubdtype(x.dtype, jnp.inexact)


def shifted(x, step):
    """Return updates: `step` for each floating-point parameter, and something wrong for each integer."""
    return jax.tree.map(lambda p: jnp.full(p.shape, step if is_float(p) else 7, p.dtype), x)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("compiled", [False, True])
def test_every_structure(structure, compiled):
    x = sample(structure, (6, 6))
    if x is None:
        return
    apply = jax.jit(sa.apply_updates) if compiled else sa.apply_updates
    with sa.densify("error"):
        new = apply(x, shifted(x, 0.5))
    assert jax.tree.structure(new) == jax.tree.structure(sa.forget(x)) and type(new) is type(x)
    for p, q in zip(parameters(x), parameters(new), strict=True):
        assert p.dtype == q.dtype
        np.testing.assert_allclose(q, p + 0.5 if is_float(p) else p)


def test_a_step_of_a_gradient_is_the_step_of_its_parameters():
    gradient = sa.grad(lambda A: sa.sum(A**2))(LOW_RANK)
    with pytest.raises(TypeError, match=r"sa\.apply_updates"):
        LOW_RANK - 0.1 * gradient
    new = sa.apply_updates(LOW_RANK, jax.tree.map(lambda g: -0.1 * g, gradient))
    u, v = (np.asarray(x) for x in (LOW_RANK.u, LOW_RANK.v))
    du, dv = jax.grad(lambda u, v: jnp.sum((u @ v.T) ** 2), (0, 1))(jnp.asarray(u), jnp.asarray(v))
    np.testing.assert_allclose(np.asarray(new), (u - 0.1 * du) @ (v - 0.1 * dv).T, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(new + new), 2 * np.asarray(new))  # the result is an ordinary array


def test_trees_of_arrays_numbers_and_constants():
    key = jax.random.key(0)
    params = {
        "A": TRIDIAGONAL,
        "b": jnp.ones(3, "float32"),
        "c": [sa.ones(2), np.ones(2), 1.0, None],
        "count": jnp.arange(3),
        "flag": True,
        "key": key,
        "f": jnp.sin,
        "fixed": {"D": sa.Diagonal([1.0]), "e": jnp.ones(2)},
    }
    updates = {
        "A": shifted(TRIDIAGONAL, 1.0),
        "b": np.full(3, 0.25, "float64"),
        "c": [jnp.ones(2), sa.ones(2), np.float64(2.0), None],
        "count": np.zeros(3, jax.dtypes.float0),
        "flag": 1,
        "key": None,
        "f": None,
        "fixed": None,
    }
    new = sa.apply_updates(params, updates)
    np.testing.assert_array_equal(np.asarray(new["A"]), np.asarray(TRIDIAGONAL) + (np.asarray(TRIDIAGONAL) != 0))
    assert new["b"].dtype == "float32" and np.all(new["b"] == 1.25)
    assert type(new["c"][0]) is sa.Dense and isinstance(new["c"][1], jax.Array) and new["c"][3] is None
    assert [float(np.sum(x)) for x in new["c"][:3]] == [4.0, 4.0, 3.0]
    assert new["count"] is params["count"] and new["flag"] is True and new["key"] is key and new["f"] is jnp.sin
    assert new["fixed"]["D"] is not params["fixed"]["D"] and new["fixed"]["e"] is params["fixed"]["e"]
    new["fixed"]["D"][0, 0] = 5.0
    assert float(params["fixed"]["D"][0, 0]) == 1.0


def test_data_types_stay():
    params = {"half": jnp.ones(2, "bfloat16"), "A": sa.Diagonal(jnp.ones(2, "float32")), "z": jnp.ones(2, "complex64")}
    new = sa.apply_updates(params, {"half": jnp.full(2, 0.5, "float32"), "A": sa.Diagonal(np.ones(2)), "z": np.ones(2)})
    assert [new["half"].dtype, new["A"].dtype, new["z"].dtype] == ["bfloat16", "float32", "complex64"]
    with jax.numpy_dtype_promotion("strict"):
        new = sa.apply_updates(params["half"], jnp.full(2, 0.5, "float32"))
    assert np.all(new == 1.5)


def test_an_array_that_changes_loses_its_assumptions():
    """The step is not symmetric, so that the solver of the assumption would read half of the matrix."""
    A = sa.assume(TRIDIAGONAL, "positive_definite")
    first = sa.Diagonal([1.0, 0.0, 0.0, 0.0])

    def loss(A):
        return sa.sum(first @ sa.linalg.solve(A, np.ones(4)))

    for gradient in (sa.grad(loss)(A), jax.grad(lambda A: plain(loss(A)))(A)):
        new = sa.apply_updates(A, jax.tree.map(lambda g: -0.1 * g, gradient))
        assert not new.assumptions
        x = np.linalg.solve(np.asarray(new), np.ones(4))
        np.testing.assert_allclose(np.asarray(sa.linalg.solve(new, np.ones(4))), x, rtol=1e-12)
    assert not sa.grad(loss)(A).assumptions
    assert sa.apply_updates(A, None).assumptions == A.assumptions


def test_gradients_of_assumed_parts_have_no_assumptions():
    A = sa.Kronecker(sa.assume(sa.asarray(np.eye(2)), "symmetric"), sa.asarray(np.ones((2, 2))))
    gradient = sa.grad(lambda A: sa.sum(A))(A)
    assert A.factors[0].assumptions and not any(p.assumptions for p in gradient.factors)
    new = sa.apply_updates(A, jax.tree.map(lambda g: 0.5 * g, gradient))
    assert not any(p.assumptions for p in new.factors)
    np.testing.assert_allclose(np.asarray(new), np.kron(np.eye(2) * 3.0 + (1 - np.eye(2)) * 2.0, np.full((2, 2), 2.0)))


def test_leaves_without_updates_keep_their_values():
    """Equinox and optax put None at the leaves that they do not train."""
    half = jax.tree.map(lambda x: x, LOW_RANK)
    leaves, tree = jax.tree.flatten(half)
    updates = jax.tree.unflatten(tree, [None, leaves[1]])
    new = sa.apply_updates(LOW_RANK, updates)
    np.testing.assert_array_equal(np.asarray(new), np.array([[1.0], [2.0]]) @ np.array([[6.0, 8.0]]))
    partitioned = jax.tree.unflatten(tree, [leaves[0], None])
    twice = sa.apply_updates(partitioned, partitioned)
    assert jax.tree.leaves(twice)[0][1, 0] == 4.0 and len(jax.tree.leaves(twice)) == 1
    nothing = jax.tree.map(lambda _: None, sa.ones(2))
    np.testing.assert_array_equal(np.asarray(sa.apply_updates(sa.ones(2), nothing)), np.ones(2))
    assert not jax.tree.leaves(sa.apply_updates({"x": nothing}, {"x": nothing}))


# ---- coordinates -----------------------------------------------------------------------------------------------------


def test_coordinates_do_not_change():
    P = sa.Permutation([2, 0, 1])
    stack = sa.Sparse(np.ones((2, 2)), (np.array([[0, 1], [1, 2]]), np.array([[1, 2], [0, 0]])), (3, 3))
    params = {"S": SPARSE, "P": P, "stack": stack}

    def loss(params):
        return sa.sum((params["P"] @ params["S"]) ** 2) + sa.sum(params["stack"] ** 2)

    def step(params):
        gradient = sa.grad(loss)(params)
        return sa.apply_updates(params, jax.tree.map(lambda g: -0.25 * g, gradient))

    for run in (step, jax.jit(step)):
        new = run(params)
        np.testing.assert_allclose(new["S"].data, SPARSE.data / 2)
        np.testing.assert_allclose(new["stack"].data, 0.5 * np.ones((2, 2)))
        np.testing.assert_array_equal(np.asarray(new["P"]), np.asarray(P))
        for a, b in ((new["S"], SPARSE), (new["stack"], stack)):
            for i, j in zip(a.coords, b.coords, strict=True):
                np.testing.assert_array_equal(i, j)
                assert i.dtype == j.dtype
        assert jax.tree.structure(new) == jax.tree.structure(params)


def test_traced_coordinates_do_not_change():
    @jax.jit
    def step(S):
        gradient = sa.grad(lambda S: sa.sum(S**2))(S)
        return sa.apply_updates(S, jax.tree.map(lambda g: -0.25 * g, gradient))

    (S,) = (opened(SPARSE).x,)
    new = jax.jit(lambda data, i, j: step(sa.Sparse(data, (i, j), (3, 3))))(S.data, *S.coords)
    np.testing.assert_allclose(np.asarray(new), np.asarray(SPARSE) / 2)
    again = step(new)  # the indices of a result of `jit` are leaves
    assert jax.tree.structure(again) == jax.tree.structure(new)
    np.testing.assert_allclose(np.asarray(again), np.asarray(SPARSE) / 4)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobians_do_not_touch_coordinates(mode):
    """With respect to the entries, the Jacobian has one column for each entry; indices are never differentiated."""
    P, v = sa.Permutation([2, 0, 1]), jnp.asarray([1.0, 2.0, 3.0])

    def product(data, S, P):
        return plain(P @ plain(S.with_data(data) @ v))

    def dense(data):
        return jnp.zeros((3, 3)).at[SPARSE.coords].set(data)[jnp.asarray([2, 0, 1])] @ v

    J = sa.jacobian(product, mode=mode)(SPARSE.data, SPARSE, P)
    np.testing.assert_allclose(np.asarray(J), jax.jacfwd(dense)(SPARSE.data))
    compiled = jax.jit(lambda S, P: sa.jacobian(product, mode=mode)(S.data, S, P))(SPARSE, P)
    np.testing.assert_allclose(np.asarray(compiled), np.asarray(J))

    def energy(data, S, P):
        return jnp.sum(product(data, S, P) ** 4)

    H = sa.hessian(energy)(SPARSE.data, SPARSE, P)
    assert type(H) is sa.Diagonal
    np.testing.assert_allclose(np.asarray(H), jax.hessian(lambda d: jnp.sum(dense(d) ** 4))(SPARSE.data))


@pytest.mark.parametrize("x", [SPARSE, sa.Permutation([1, 0, 2]), LOW_RANK])
@pytest.mark.parametrize("transform", [sa.jacobian, sa.hessian])
def test_jacobians_refuse_structured_arguments(transform, x):
    def total(x, y=None):
        return sa.sum(x)

    for argument in (x, {"x": x, "b": jnp.ones(2)}):
        with pytest.raises(TypeError, match=f"must be dense arrays, got a {type(x).__name__}"):
            transform(lambda a: jnp.ones(()))(argument)
    with pytest.raises(TypeError, match="must be floating-point, got int32"):
        transform(lambda i: jnp.ones(()))(jnp.arange(3, dtype="int32"))


# ---- optax -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["adam", "lbfgs"])
def test_a_fit_of_optax(name, rng):
    optax = pytest.importorskip("optax")
    target = rng.normal(size=(5, 1)) @ rng.normal(size=(1, 4))

    def loss(params):
        return plain(sa.sum((params["A"] + params["D"] - target) ** 2))

    start = sa.LowRank(rng.normal(size=(5, 1)), rng.normal(size=(4, 1)))
    params = {"A": start, "D": sa.Diagonal(np.ones(4), shape=(5, 4))}
    optimizer = {"adam": optax.adam(0.1), "lbfgs": optax.lbfgs()}[name]

    @jax.jit
    def step(params, state):
        value, gradient = sa.value_and_grad(loss)(params)
        known = {"value": value, "grad": gradient, "value_fn": loss} if name == "lbfgs" else {}
        updates, state = optimizer.update(gradient, state, params, **known)
        new = sa.apply_updates(params, updates)
        return new, state, value, optax.apply_updates(params, updates)

    state = optimizer.init(params)
    for _ in range(200):
        params, state, value, by_optax = step(params, state)
    assert jax.tree.structure(params) == jax.tree.structure(by_optax)
    for p, q in zip(jax.tree.leaves(params), jax.tree.leaves(by_optax), strict=True):
        np.testing.assert_array_equal(p, q)
    assert value < 1e-4 and type(params["A"]) is sa.LowRank


def test_scan():
    def step(A, _):
        gradient = sa.grad(lambda A: sa.sum(A**2))(A)
        return sa.apply_updates(A, jax.tree.map(lambda g: -0.25 * g, gradient)), None

    end, _ = jax.lax.scan(step, TRIDIAGONAL, length=3)
    np.testing.assert_allclose(np.asarray(end), np.asarray(TRIDIAGONAL) / 8)


# ---- errors ----------------------------------------------------------------------------------------------------------

OTHER = sa.Sparse([1.0, 2.0, 3.0], ([0, 1, 2], [1, 0, 1]), (3, 3))
WRONG = [
    (
        {"A": TRIDIAGONAL},
        {"A": sa.Diagonal(np.ones(4))},
        ValueError,
        r"updates\['A'\] must have the structure .* Banded\(.*, got Diagonal",
    ),
    (TRIDIAGONAL, sa.eye(4), ValueError, "structure"),
    (TRIDIAGONAL, TRIDIAGONAL @ TRIDIAGONAL, ValueError, r"offsets=\(-1, 0, 1\)\), got Banded\(.*offsets=\(-2"),
    (TRIDIAGONAL, jnp.ones((4, 4)), ValueError, "structure"),
    (TRIDIAGONAL, sa.ones((4, 4)), ValueError, r"got Dense\(shape=\(4, 4\)\)"),
    (jnp.ones((4, 4)), TRIDIAGONAL, ValueError, "structure"),
    ([SPARSE], [OTHER], ValueError, r"updates\[0\] must have the structure .* with other coords\[1\]"),
    (SPARSE, sa.Sparse([1.0], ([0], [1]), (3, 3)), ValueError, r"updates\.data must have the shape \(3,\)"),
    (sa.Permutation([1, 0]), sa.Permutation([0, 1]), ValueError, "with other p"),
    (LOW_RANK, sa.LowRank(np.ones((2, 2)), np.ones((2, 2))), ValueError, r"updates\.u.* must have the shape \(2, 1\)"),
    (
        {"b": jnp.ones(3)},
        {"b": 1.0},
        ValueError,
        r"updates\['b'\] must have the shape \(3,\) of its parameter, got \(\)",
    ),
    (jnp.ones(3), 1j * jnp.ones(3), TypeError, "must be real"),
    (sa.ones(3), "x", TypeError, "must be an array, got str"),
    ({"a": None}, {"a": 1.0}, ValueError, r"updates\['a'\] must be None, since its parameter is a NoneType"),
    ({"a": jnp.sin}, {"a": 1.0}, ValueError, "parameter is a"),
    ({"a": {"b": 1.0}}, {"a": 1.0}, ValueError, "parameter is a dict"),
    ({"a": 1.0}, {"a": 1.0, "c": 2.0}, ValueError, r"got updates\['c'\] without a parameter"),
    ({"a": 1.0, "c": 2.0}, {"a": 1.0}, ValueError, r"got none for params\['c'\]"),
    ({"a": [1.0, 2.0]}, {"a": (1.0, 2.0)}, ValueError, "use the same containers"),
]


@pytest.mark.parametrize("params, updates, error, message", WRONG)
def test_other_updates_are_refused(params, updates, error, message):
    before = copy.copy(params)
    with pytest.raises(error, match=message):
        sa.apply_updates(params, updates)
    with pytest.raises(error, match="apply_updates: "):
        sa.apply_updates(params, updates)
    assert jax.tree.structure(before) == jax.tree.structure(params)
