"""`structured` through loops, conditions and functions with rules of their own, inside and outside of JAX's transformations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec
from support import as_jax

import structarrays as sa
from structarrays.transform import control_flow

n = 6
D = sa.Diagonal(jnp.arange(1.0, n + 1) / 4)
T = sa.tridiagonal(jnp.full(n - 1, 0.3), jnp.ones(n), jnp.full(n - 1, -0.2))
L = sa.LowRank(jnp.linspace(0, 1, 2 * n).reshape(n, 2), jnp.linspace(1, 2, 2 * n).reshape(n, 2))
x = jnp.linspace(1.0, 2.0, n)


def same(found, expected, tolerance=1e-10):
    found, expected = (jax.tree.leaves(jax.tree.map(np.asarray, v, is_leaf=is_array)) for v in (found, expected))
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def is_array(value):
    return isinstance(value, sa.Array) if hasattr(sa, "Array") else hasattr(value, "to_jax")


def agrees(program, A, *args, gradient=True):
    """The results of a program, and the derivatives by the parameters, are those of the dense array."""
    found = sa.structured(program)(A, *args)
    same(found, program(A.to_jax(), *args))
    same(jax.jit(sa.structured(program))(A, *args), program(A.to_jax(), *args))

    def loss(run, expand):
        def number(A, *args):
            results = jax.tree.leaves(run(expand(A), *args), is_leaf=is_array)
            return sum(jnp.sum(jnp.sin(as_jax(r) if is_array(r) else r)) for r in results)

        return number

    structured, dense = loss(sa.structured(program), lambda A: A), loss(program, lambda A: A.to_jax())
    tangents = jax.tree.map(jnp.ones_like, (A, *args))
    same(jax.jvp(structured, (A, *args), tangents), jax.jvp(dense, (A, *args), tangents))
    if gradient:
        same(jax.tree.leaves(jax.grad(structured)(A, *args)), jax.tree.leaves(jax.grad(dense)(A, *args)))
        same(
            jax.tree.leaves(jax.linearize(structured, A, *args)[1](*tangents)),
            jax.tree.leaves(jax.jvp(dense, (A, *args), tangents)[1]),
        )
    return found


# ---- conditions ------------------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("A", [D, T, L], ids=["Diagonal", "Banded", "LowRank"])
def test_branches_of_different_structure(A):
    def program(A, v):
        return lax.cond(v[0] > 0, lambda a: a * 2, lambda a: jnp.exp(a) + v, A)

    agrees(program, A, x)


def test_the_branches_are_joined():
    found = agrees(lambda A, v: lax.cond(v[0] > 0, lambda a: a, lambda a: a @ jnp.eye(n, k=1), A), D, x)
    assert type(found) is sa.Banded and found.offsets == (0, 1)
    found = agrees(lambda A, v: lax.switch(1, [jnp.sin, jnp.cos, lambda a: a + 1], A), D, x)
    assert type(found) is sa.Diagonal


def test_a_structured_predicate():
    agrees(lambda A, v: lax.cond(A[0, 0] > 0, lambda a: a @ v, lambda a: v, A), T, x)


def test_platforms():
    found = agrees(lambda A: lax.platform_dependent(A, cpu=lambda a: 2 * a, default=lambda a: a), D)
    assert type(found) is sa.Diagonal


# ---- loops -----------------------------------------------------------------------------------------------------------


def test_scan_keeps_a_structure():
    def program(A, v):
        return lax.scan(lambda c, s: (jnp.sin(A) @ c + s, c.sum()), v, jnp.arange(3.0))

    agrees(program, T, x)


def test_scan_widens_what_it_carries():
    def program(A, v):
        return lax.scan(lambda c, _: (c @ T0 + A, c @ v), A, None, length=3)

    T0 = T.to_jax()
    agrees(program, D, x)
    found = sa.structured(lambda A, B: lax.fori_loop(0, 3, lambda i, c: c + B, A))(D, T)
    assert type(found) is sa.Banded
    same(found, D.to_jax() + 3 * T.to_jax())


@pytest.mark.slow
def test_constants_beside_structured_arrays_in_loops_and_branches():
    for program in (
        lambda A: lax.fori_loop(0, 3, lambda i, total: total + A, jnp.zeros_like(A)),
        lambda A: lax.fori_loop(1, 5, lambda i, s: (s[0] + s[1], s[1] @ A / i), (jnp.zeros((n, n)), jnp.eye(n)))[0],
        lambda A: lax.cond(A[0, 0] > 0, lambda a: a, jnp.zeros_like, A),
        lambda A: lax.cond(A[0, 0] > 0, lambda a: jnp.eye(n), lambda a: a, A),
        lambda A: lax.switch(2, [jnp.sin, lambda a: a * 0, lambda a: 2 * jnp.eye(n)], A),
        lambda A: lax.scan(lambda c, s: (c * s + A, None), jnp.eye(n), jnp.arange(3.0))[0],
        lambda A: lax.select(A[0, 0] > 0, A, jnp.eye(n)),
    ):
        with sa.densify("error"):
            assert type(sa.structured(program)(D)) is sa.Diagonal
        agrees(program, D)
    assert type(agrees(lambda A: lax.fori_loop(0, 3, lambda i, c: c + A, jnp.zeros((n, n))), T)) is sa.Banded


@pytest.mark.parametrize(
    "A",
    [sa.Toeplitz([1.0, 2.0, 3.0]), sa.Triangular(jnp.arange(1.0, 10).reshape(3, 3), lower=True)],
    ids=["Toeplitz", "Triangular"],
)
def test_zeros_to_which_any_structure_is_added(A):
    found = agrees(lambda A: lax.fori_loop(0, 3, lambda i, total: total + A, jnp.zeros_like(A)), A)
    assert type(found) is type(A)
    assert type(sa.structured(lambda A: lax.cond(A[0, 0] > 0, lambda a: a, jnp.zeros_like, A))(A)) is type(A)


def test_constants_that_become_dense_in_a_loop():
    """Nothing is expanded for them, whatever they were at first."""
    for program in (
        lambda A, v: lax.fori_loop(0, n, lambda i, c: c.at[i].set(A @ v), jnp.zeros((n, n))),
        lambda A, v: lax.cond(v[0] > 0, lambda a: jnp.outer(a @ v, v), lambda a: jnp.eye(n), A),
        lambda A, v: lax.scan(lambda c, s: (c + jnp.outer(A @ v, v) * s, c @ v), jnp.eye(n), v),
    ):
        with sa.densify("error"):
            agrees(program, D, x, gradient=False)


def test_scan_gives_up_a_structure_that_never_settles():
    agrees(lambda A: lax.fori_loop(0, 4, lambda i, c: c @ A, A), T)
    agrees(lambda A: lax.fori_loop(0, 4, lambda i, c: c + A @ A, A), L)


def test_scan_over_a_stack_and_stacked_results():
    stack = sa.Diagonal(jnp.linspace(0, 1, 4 * n).reshape(4, n))
    found = agrees(lambda S, v: lax.scan(lambda c, a: (a @ c, jnp.tanh(a)), v, S)[1], stack, x)
    assert type(found) is sa.Diagonal and found.shape == (4, n, n)
    found = agrees(lambda S: lax.map(lambda a: a @ a, S), stack)
    assert type(found) is sa.Diagonal


def test_scan_over_rows_and_backwards():
    agrees(lambda A: lax.scan(lambda c, row: (c + row.sum(), row * c), 0.5, A, reverse=True, unroll=2), T)


@pytest.mark.costly
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_over_a_stack_in_both_directions(reverse):
    """The order counts: no two of the rounds commute."""
    stack = sa.tridiagonal(jnp.ones((3, n - 1)), jnp.arange(3.0 * n).reshape(3, n) / n, jnp.ones((3, n - 1)))
    agrees(lambda S, v: lax.scan(lambda c, a: (a @ c + 1, a @ c), v, S, reverse=reverse), stack, x)
    agrees(lambda S: lax.scan(lambda c, a: (2 * c + a, c), jnp.zeros((n, n)), S, reverse=reverse), stack)


def test_scan_of_no_rounds():
    agrees(lambda A, v: lax.scan(lambda c, _: (A @ c, c), v, None, length=0), T, x)


def test_while_loops():
    def program(A, v):
        return lax.while_loop(lambda s: s[2] < 3, lambda s: (s[0] + T.to_jax() @ s[0], A @ s[1], s[2] + 1), (A, v, 0))

    agrees(program, D, x, gradient=False)


def test_a_while_loop_whose_condition_asks_the_matrix():
    agrees(lambda A: lax.while_loop(lambda a: jnp.sum(a) < 40, lambda a: a * 2 + A, A), T, gradient=False)


def nested(depth):
    def program(A, v):
        def body(level, a):
            if level == 0:
                return jnp.sin(a) + T.to_jax()
            return lax.fori_loop(0, 2, lambda i, b: body(level - 1, b), a)

        return body(depth, A) @ v

    return program


def test_nested_loops_are_not_traced_again_and_again(monkeypatch):
    """The number of equations looked at grows with the depth as the program does."""
    counts = []
    for depth in (2, 4, 8):
        calls = 0
        original = control_flow.structures_of

        def counting(*args, original=original, **kwargs):
            nonlocal calls
            calls += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(control_flow, "structures_of", counting)
        same(sa.structured(nested(depth))(D, x), nested(depth)(D.to_jax(), x))
        monkeypatch.setattr(control_flow, "structures_of", original)
        counts.append(calls)
    assert counts[2] - counts[1] <= 2 * (counts[1] - counts[0]) + 4, counts


# ---- functions with rules of their own --------------------------------------------------------------------------------


@jax.custom_jvp
def bent(a):
    return jnp.tanh(a)


@bent.defjvp
def _(primals, tangents):
    return bent(primals[0]), 3 * tangents[0] * primals[0]


@jax.custom_vjp
def halved(a, v):
    return a * 2, v.sum()


halved.defvjp(lambda a, v: (halved(a, v), (a, v)), lambda saved, g: (0.5 * g[0] + saved[0], g[1] * saved[1]))


@pytest.mark.parametrize("A", [D, T, L], ids=["Diagonal", "Banded", "LowRank"])
def test_custom_jvp_is_kept(A):
    found = agrees(lambda A, v: bent(A) @ v, A, x)
    assert isinstance(found, jax.Array)


def test_custom_jvp_keeps_structure():
    assert type(sa.structured(bent)(D)) is sa.Diagonal
    assert type(sa.structured(lambda A: jax.jvp(bent, (A,), (A,))[1])(D)) is sa.Diagonal


@pytest.mark.parametrize("A", [D, T, L], ids=["Diagonal", "Banded", "LowRank"])
def test_custom_vjp_is_kept(A):
    def program(A, v):
        a, s = halved(A, v)
        return a @ v * s

    found = sa.structured(program)(A, x)
    same(found, program(A.to_jax(), x))
    structured, dense = (
        jax.grad(lambda A, v, run=run, of=of: jnp.sum(jnp.sin(run(of(A), v))), argnums=(0, 1))
        for run, of in ((sa.structured(program), lambda A: A), (program, lambda A: A.to_jax()))
    )
    same(jax.tree.leaves(structured(A, x)), jax.tree.leaves(dense(A, x)))


def test_a_rule_that_uses_its_own_function():
    agrees(lambda A: jax.nn.relu(A), D)
    agrees(lambda A: jax.nn.relu(A), T)


def test_custom_jvp_in_a_loop_and_a_branch():
    agrees(lambda A, v: lax.fori_loop(0, 2, lambda i, a: bent(a) + a, A) @ v, T, x)
    agrees(lambda A, v: lax.cond(v[0] > 0, bent, lambda a: a, A) @ v, D, x)


def test_custom_jvp_of_integers():
    @jax.custom_jvp
    def scaled(a, k):
        return a * k

    scaled.defjvp(lambda p, t: (scaled(*p), t[0] * p[1]))
    agrees(lambda A: scaled(A, jnp.asarray(3)), D)


def frexp(A):
    return jnp.frexp(A)[0]


@pytest.mark.parametrize("A", [D, T, T + sa.Fill(2.0, (n, n))], ids=["Diagonal", "Banded", "Banded + background"])
def test_custom_jvp_with_a_result_of_integers(A):
    """It has no tangent, and stays structured, so that the tangent of the other result does."""
    found = sa.structured(lambda A: jax.jvp(frexp, (A,), (A,)))(A)
    assert all(type(value) is type(A) for value in found)
    same([value.to_jax() for value in found], jax.jvp(frexp, (A.to_jax(),), (A.to_jax(),)))
    leaves, tree = jax.tree.flatten(A)
    found = jax.grad(lambda values: as_jax(sa.sum(sa.structured(frexp)(tree.unflatten(values)) ** 2)))(leaves)
    expected = jax.grad(lambda values: jnp.sum(frexp(as_jax(tree.unflatten(values))) ** 2))(leaves)
    same(found, expected)


@jax.custom_jvp
def spread(a):
    return jnp.sin(a)


@spread.defjvp
def _(primals, tangents):
    (a,), (da,) = primals, tangents
    return spread(a), da + jnp.arange(a.size, dtype=a.dtype).reshape(a.shape)


@jax.custom_jvp
def around(a):
    return jnp.sin(a)


around.defjvp(lambda primals, tangents: (around(primals[0]), tangents[0] * spread(primals[0])))


def test_custom_jvp_whose_rule_calls_one_with_less_structure():
    for A in (D, T, T + sa.Fill(2.0, (n, n)), sa.Toeplitz(x), sa.Fill(2.0, (n, n))):
        found = jax.jvp(sa.structured(around), (A,), (A,))
        same([value.to_jax() for value in found], jax.jvp(around, (A.to_jax(),), (A.to_jax(),)))
        assert type(found[0]) is type(A)


@jax.custom_jvp
def twice(a):
    return 2 * a


@jax.custom_jvp
def doubled(a):
    return 2 * a


twice.defjvp(lambda primals, tangents: (twice(primals[0]), 2 * tangents[0] + jnp.sin(primals[0])))
doubled.defjvp(lambda primals, tangents: (doubled(primals[0]), twice(tangents[0])))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_custom_jvp_with_a_dense_tangent_of_a_sum_of_kronecker_products(dtype):
    numbers = np.random.default_rng(0).normal(size=(2, 3, 3)).astype(dtype) * (1 if dtype == "float64" else 1 + 2j)
    A = sa.KroneckerSum(*map(sa.asarray, numbers))
    found = jax.jvp(sa.structured(doubled), (A,), (A,))
    same([value.to_jax() for value in found], [2 * A.to_jax()] * 2)
    leaves, tree = jax.tree.flatten(A)

    def loss(run, expand):
        return lambda leaves: jnp.sum(jnp.abs(expand(run(tree.unflatten(leaves)))) ** 4)

    found = jax.grad(loss(sa.structured(doubled), lambda v: as_jax(v)))(leaves)
    same(found, jax.grad(loss(lambda v: 2 * as_jax(v), lambda v: v))(leaves))


@jax.custom_jvp
def factors(a):
    return jax.scipy.linalg.lu_factor(a)


@factors.defjvp
def _(primals, tangents):
    (lu, pivots), (moved, _) = jax.jvp(jax.scipy.linalg.lu_factor, primals, tangents)
    return (lu, pivots), (moved, np.zeros(pivots.shape, jax.dtypes.float0))


@pytest.mark.slow
def test_custom_jvp_that_returns_factors():
    def solve(A):
        return jax.scipy.linalg.lu_solve(factors(A), x)

    A = T + 3 * sa.eye(n)
    agrees(solve, A)
    leaves, tree = jax.tree.flatten(A)
    found = jax.grad(lambda leaves: jnp.sum(sa.structured(solve)(tree.unflatten(leaves)) ** 2))(leaves)
    expected = jax.grad(lambda leaves: jnp.sum(jnp.linalg.solve(as_jax(tree.unflatten(leaves)), x) ** 2))(leaves)
    same(found, expected, 1e-9)
    same(jax.jvp(sa.structured(solve), (A,), (A,)), jax.jvp(solve, (A.to_jax(),), (A.to_jax(),)), 1e-9)


@jax.custom_jvp
def squared(a):
    return a @ a


@squared.defjvp
def _(primals, tangents):
    (a,), (da,) = primals, tangents
    return squared(a), da @ a + a @ da


def test_custom_jvp_whose_rule_multiplies_tangents():
    """Next to a background the product asks whether all is finite, of which JAX knows no transpose."""
    A = sa.BlockDiagonal([jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), jnp.asarray([[5.0]])]) + sa.Fill(0.5, (3, 3))
    assert A.background is not None
    leaves, tree = jax.tree.flatten(A)
    found = jax.grad(lambda values: sa.sum(sa.structured(squared)(tree.unflatten(values)) ** 2))(leaves)
    expected = jax.grad(lambda values: jnp.sum((as_jax(tree.unflatten(values)) @ as_jax(tree.unflatten(values))) ** 2))
    same(found, expected(leaves))


@jax.custom_vjp
def both(a, v):
    return jnp.sin(a), jnp.sin(v)


def both_forward(a, v):
    return (jnp.sin(a.value), jnp.sin(v.value)), (a.value, v.value)


def both_backward(kept, cotangents):
    zero = [isinstance(c, jax.custom_derivatives.SymbolicZero) for c in cotangents]
    return tuple(None if z else c * jnp.cos(v) for v, c, z in zip(kept, cotangents, zero, strict=True))


both.defvjp(both_forward, both_backward, symbolic_zeros=True)

OF_MANY = {
    "Toeplitz": sa.Toeplitz(x, jnp.flip(x).at[0].set(x[0])),
    "Symmetric": sa.Symmetric(jnp.outer(x, x) + jnp.arange(n * n).reshape(n, n)),
    "Hermitian": sa.Hermitian(jnp.outer(x, x) * (1 + 2j)),
    "Fill": sa.Fill(2.0, (n, n)),
    "Banded + background": T + sa.Fill(2.0, (n, n)),
    "Sparse + background": sa.cos(sa.Sparse([1.0, 2.0], [[0, 1], [1, 2]], (n, n))),
}


@pytest.mark.parametrize("A", OF_MANY.values(), ids=OF_MANY)
def test_custom_vjp_that_is_told_of_zeros_with_a_result_of_few_parameters(A):
    """It keeps its structure, in which many elements have one parameter; the cotangent is any that has the same products."""
    leaves, tree = jax.tree.flatten(A)
    moving = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.inexact)]

    def loss(run, expand, values):
        own = list(leaves)
        for i, value in zip(moving, values, strict=True):
            own[i] = value
        return jnp.sum(jnp.abs(run(expand(tree.unflatten(own)), x)[0]) ** 3)

    assert type(sa.structured(both)(A, x)[0]) is type(A)
    given = [leaves[i] for i in moving]
    found = jax.grad(lambda v: loss(lambda a, x: [as_jax(sa.structured(both)(a, x)[0])], lambda a: a, v))(given)
    expected = jax.grad(lambda v: loss(both, lambda a: a.to_jax(), v))(given)
    same(found, expected)
    with sa.densify("error"):
        found = jax.grad(lambda v: jnp.sum(sa.structured(both)(A, v)[1]))(x)
    same(found, jnp.cos(x))


@jax.custom_vjp
def scaled(a, s):
    return s * a


scaled.defvjp(lambda a, s: (s * a, (a, s)), lambda kept, c: (c * kept[1], jnp.sum(c * kept[0])))


@jax.custom_vjp
def product(a, v):
    return a @ v


product.defvjp(lambda a, v: (a @ v, (a, v)), lambda kept, c: (jnp.outer(c, kept[1]), c @ kept[0]))


@jax.custom_vjp
def same_twice(a):
    return 2 * a


same_twice.defvjp(lambda a: (2 * a.value, None), lambda _, c: (2 * c,), symbolic_zeros=True)


@pytest.mark.parametrize(
    "A", [L, sa.KroneckerSum(sa.asarray([[1.0, 2], [3, 4]]), sa.Diagonal([1.0, 2]))], ids=["LowRank", "KroneckerSum"]
)
def test_custom_vjp_that_is_told_of_zeros_with_a_result_that_stores_no_elements(A):
    assert type(sa.structured(same_twice)(A)) is type(A)
    leaves, tree = jax.tree.flatten(A)
    found = jax.grad(lambda v: jnp.sum(jnp.sin(as_jax(sa.structured(same_twice)(tree.unflatten(v))))))(leaves)
    same(found, jax.grad(lambda v: jnp.sum(jnp.sin(2 * as_jax(tree.unflatten(v)))))(leaves))


@pytest.mark.parametrize(("function", "other"), [(scaled, jnp.asarray(2.0)), (product, x)], ids=["scaled", "product"])
def test_custom_vjp_counts_an_element_that_stands_at_two_places_twice(function, other):
    S = OF_MANY["Symmetric"]

    def structured(A, v):
        return jnp.sum(jnp.sin(sa.asarray(sa.structured(function)(A, v)).to_jax()))

    def dense(A, v):
        return jnp.sum(jnp.sin(function(A.to_jax(), v)))

    same(jax.grad(structured, argnums=(0, 1))(S, other), jax.grad(dense, argnums=(0, 1))(S, other))


def test_checkpoint():
    agrees(lambda A, v: jax.checkpoint(lambda a: jnp.sin(a) @ v)(A), T, x)
    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    agrees(lambda A, v: jax.checkpoint(lambda a: jnp.sin(a) @ v, policy=policy)(A), T, x)


@pytest.mark.slow
def test_custom_linear_solve():
    def program(A, v):
        return lax.custom_linear_solve(
            lambda w: A @ w, v, lambda _, b: jnp.linalg.solve(A, b), lambda _, b: jnp.linalg.solve(A.T, b)
        )

    agrees(program, T, x)
    agrees(lambda A, v: jax.scipy.sparse.linalg.cg(lambda w: A.T @ (A @ w) + w, v, tol=1e-14)[0], T, x)


def test_custom_linear_solve_without_a_transposed_solver():
    """Forwards it has derivatives; backwards JAX refuses, as the matrix is not said to be symmetric."""

    def program(A, v):
        return lax.custom_linear_solve(lambda w: A @ w, v, lambda _, b: jnp.linalg.solve(A, b))

    run = sa.structured(program)
    same(run(T, x), program(T.to_jax(), x))
    same(jax.jvp(lambda v: run(T, v), (x,), (x,)), jax.jvp(lambda v: program(T.to_jax(), v), (x,), (x,)))
    with pytest.raises(TypeError, match="transpose_solve required"):
        jax.grad(lambda v: jnp.sum(run(T, v)))(x)


def test_custom_linear_solve_with_more_than_the_solution():
    def program(A, v):
        return lax.custom_linear_solve(
            lambda w: A @ w,
            v,
            lambda _, b: (jnp.linalg.solve(A, b), {"norm": jnp.linalg.norm(b), "steps": 3}),
            lambda _, b: (jnp.linalg.solve(A.T, b), {"norm": jnp.linalg.norm(b), "steps": 3}),
            has_aux=True,
        )

    agrees(program, T, x)
    agrees(lambda A, v: jax.grad(lambda w: jnp.sum(program(A, w)[0] ** 2))(v), T, x)


# ---- transformations inside and outside ------------------------------------------------------------------------------


def quadratic(A, v):
    return v @ jnp.sin(A) @ v


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("A", [D, T, L], ids=["Diagonal", "Banded", "LowRank"])
def test_transformations_inside(A):
    agrees(lambda A, v: jax.grad(quadratic, argnums=1)(A, v), A, x)
    agrees(lambda A, v: jax.value_and_grad(quadratic, argnums=1)(A, v), A, x)
    agrees(lambda A, v: jax.hessian(quadratic, argnums=1)(A, v), A, x)
    agrees(lambda A, v: jax.vmap(lambda w: A @ w)(jnp.stack([v, -v])), A, x)
    agrees(lambda A, v: jax.linearize(lambda w: jnp.sin(A @ w), v)[1](v), A, x)
    agrees(lambda A, v: jax.vjp(lambda w: A @ w, v)[1](v)[0], A, x)
    agrees(lambda A, v: jax.jit(lambda a: a @ v)(A), A, x)


@pytest.mark.costly
@pytest.mark.parametrize("A", [D, T, L], ids=["Diagonal", "Banded", "LowRank"])
def test_transformations_outside(A):
    run = sa.structured(quadratic)

    def dense(A, v):
        return quadratic(A.to_jax(), v)

    same(jax.hessian(run, argnums=1)(A, x), jax.hessian(dense, argnums=1)(A, x))
    same(jax.tree.leaves(jax.hessian(run)(A, x)), jax.tree.leaves(jax.hessian(dense)(A, x)))
    stack = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), A)
    same(jax.vmap(run, in_axes=(0, None))(stack, x), jax.vmap(dense, in_axes=(0, None))(stack, x))
    same(
        jax.vmap(jax.grad(run, argnums=1), in_axes=(None, 0))(A, jnp.eye(n)),
        jax.vmap(jax.grad(dense, 1), (None, 0))(A, jnp.eye(n)),
    )
    same(
        lax.scan(lambda c, _: (c + run(A, x), c), 0.0, None, length=2),
        lax.scan(lambda c, _: (c + dense(A, x), c), 0.0, None, length=2),
    )
    same(jax.checkpoint(run)(A, x), dense(A, x))


def test_callbacks_and_effects(capfd):
    def program(A, v):
        jax.debug.print("sum {}", jnp.sum(A))
        return jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct((n, n), A.dtype), A) @ v

    same(sa.structured(program)(D, x), 2 * D.to_jax() @ x)
    jax.effects_barrier()
    assert f"sum {float(D.to_jax().sum())}" in capfd.readouterr().out


def test_shard_map():
    mesh = jax.make_mesh((1,), ("rows",))
    everywhere = PartitionSpec()
    inside = jax.shard_map(lambda a, v: a @ v, mesh=mesh, in_specs=(everywhere, everywhere), out_specs=everywhere)
    same(sa.structured(lambda A, v: inside(A, v) + A @ v)(T, x), 2 * T.to_jax() @ x)
    outside = jax.shard_map(
        sa.structured(lambda A, v: A @ v), mesh=mesh, in_specs=(everywhere, everywhere), out_specs=everywhere
    )
    same(outside(T, x), T.to_jax() @ x)
