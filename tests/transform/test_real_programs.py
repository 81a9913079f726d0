"""`structured` on libraries of other authors: Equinox, Lineax, Optimistix, Diffrax, Optax, and JAX's Krylov solvers; and on what
their programs are made of, each by itself.
"""

import jax
import jax.numpy as jnp
import jax.scipy.sparse.linalg as krylov
import numpy as np
import pytest
from jax import lax
from jax.custom_derivatives import SymbolicZero
from support import as_jax
from test_programs import compiled_without_squares

import structarrays as sa

N = 311


def tridiagonal(n=N):
    return sa.tridiagonal(np.ones(n - 1), 4 + np.arange(n) / n, -np.ones(n - 1))


def low_rank(n=N):
    numbers = np.random.default_rng(0).normal(size=(2, n, 2))
    return sa.LowRank(numbers[0], numbers[1] / n)


def kronecker_sum():
    side = np.diag(np.arange(1.0, 21.0)) + np.eye(20, k=1)
    return sa.KroneckerSum(side, side)


def vector(n=N):
    return jnp.asarray(np.random.default_rng(1).uniform(-1, 1, n))


def elements(gradient):
    """The derivatives by the elements of a banded matrix, in one row."""
    return np.concatenate(gradient.diagonals)


def agree(function, reference, A, x):
    """Check the value and the gradients of a function of a tridiagonal array next to those of another one of the dense array; no
    array may be made dense.
    """
    weights = jnp.cos(jnp.arange(x.size))

    def loss(function, A, x):
        y = function(A, x)
        return weights @ y, y

    with sa.densify("error"):
        found, y = jax.grad(lambda A, x: loss(sa.structured(function), A, x), argnums=(0, 1), has_aux=True)(A, x)
    expected, z = jax.grad(lambda A, x: loss(reference, A, x), argnums=(0, 1), has_aux=True)(A.to_jax(), x)
    np.testing.assert_allclose(y, z, rtol=1e-9, atol=1e-9)
    assert isinstance(found[0], sa.Banded)
    rows = [jnp.diagonal(expected[0], k) for k in found[0].offsets]
    np.testing.assert_allclose(elements(found[0]), np.concatenate(rows), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6, atol=1e-9)


def solution(A, x):
    return jnp.linalg.solve(A, x)


def normal_solution(A, x):
    return jnp.linalg.solve(A.T @ A, x)


# ---- what they are made of ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [tridiagonal, low_rank, kronecker_sum, lambda: sa.Sum(np.eye(N), low_rank())])
@pytest.mark.parametrize("same", [lax.stop_gradient, lax.optimization_barrier, jnp.copy])
def test_what_changes_no_element_keeps_every_structure(make, same):
    A = make()
    with sa.densify("error"):
        assert type(sa.structured(same)(A)) is type(A)
        gradient = jax.grad(lambda A: jnp.sum(sa.structured(lambda A: same(A) @ jnp.ones(A.shape[-1]))(A)))(A)
    moved = any(bool(jnp.any(leaf != 0)) for leaf in jax.tree.leaves(gradient))
    assert moved == (same is not lax.stop_gradient)


def test_a_number_chooses_between_structures():
    A, B = tridiagonal(), sa.Diagonal(np.arange(1.0, N + 1))
    choose = sa.structured(lambda which, A, B: jnp.where(which, A, 2 * B))
    with sa.densify("error"):
        for which in (True, False):
            found = choose(jnp.asarray(which), A, B)
            assert isinstance(found, sa.Banded)
            np.testing.assert_array_equal(as_jax(found), as_jax(A if which else 2 * B))


def test_a_jacobian_is_not_dense():
    def newton(A, x):
        def residual(y):
            return A @ y + y**3 - x

        jacobian = jax.vmap(lambda v: jax.jvp(residual, (x,), (v,))[1], out_axes=-1)(jnp.eye(x.size))
        return x - jnp.linalg.solve(jacobian, residual(x))

    A, x = tridiagonal(), vector()
    np.testing.assert_allclose(
        compiled_without_squares(sa.structured(newton), A, x), newton(A.to_jax(), x), rtol=1e-12, atol=1e-12
    )


def test_factors_travel_through_loops_and_conditions():
    def refined(A, x):
        def step(state, _):
            y, factors = state
            factors = lax.cond(y[0] > 1e9, lambda: jax.scipy.linalg.lu_factor(2 * A), lambda: factors)
            y = y + jax.scipy.linalg.lu_solve(factors, x - A @ y) + jax.scipy.linalg.lu_solve(factors, 0 * x, trans=1)
            return (lax.stop_gradient(y), factors), None

        start = (jnp.zeros_like(x), jax.scipy.linalg.lu_factor(A))
        return lax.scan(step, start, None, length=3)[0][0]

    A, x = tridiagonal(), vector()
    np.testing.assert_allclose(
        compiled_without_squares(sa.structured(refined), A, x), jnp.linalg.solve(A.to_jax(), x), rtol=1e-12
    )


def test_a_derivative_that_is_refused_is_not_asked_for():
    @jax.custom_jvp
    def fixed(A):
        return A

    @fixed.defjvp
    def _(primals, tangents):
        raise RuntimeError("not to be differentiated")

    run = sa.structured(lambda A, x: fixed(A) @ x)
    for A in (tridiagonal(), low_rank()):
        with sa.densify("error"):
            found = run(A, vector())
            jax.grad(lambda x: jnp.sum(run(A, x)))(vector())  # noqa: B023
        np.testing.assert_allclose(found, A.to_jax() @ vector(), rtol=1e-12, atol=1e-12)
        with pytest.raises(RuntimeError, match="not to be differentiated"):
            jax.grad(lambda A: jnp.sum(run(A, vector())))(A)


def test_a_rule_for_tangents_is_told_which_are_zero():
    seen = []

    @jax.custom_jvp
    def product(A, x):
        return A @ x

    def rule(primals, tangents):
        (A, x), zeros = primals, [isinstance(t, SymbolicZero) for t in tangents]
        seen.append(zeros)
        terms = ([] if zeros[0] else [tangents[0] @ x]) + ([] if zeros[1] else [A @ tangents[1]])
        return A @ x, sum(terms[1:], terms[0])

    product.defjvp(rule, symbolic_zeros=True)
    A, x = tridiagonal(), vector()
    run = sa.structured(product)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(run(A, x)))(x), A.to_jax().sum(axis=0), rtol=1e-12)
    assert [True, False] in seen and [False, False] not in seen
    gradient = jax.grad(lambda A: jnp.sum(run(A, x)))(A)
    np.testing.assert_allclose(gradient.diagonal(0), x, rtol=1e-12)
    assert [False, True] in seen


def test_a_rule_for_cotangents_is_told_which_are_zero():
    seen = []

    @jax.custom_vjp
    def parts(A, x, y):
        return A @ x, A @ y

    def forward(A, x, y):
        perturbed = (A.perturbed, x.perturbed, y.perturbed)
        A, x, y = A.value, x.value, y.value
        return (A @ x, A @ y), (A, perturbed[1])

    def backward(kept, cotangents):
        (A, by_x), zeros = kept, [isinstance(c, SymbolicZero) for c in cotangents]
        seen.append((by_x, zeros))
        return None, (cotangents[0] @ A if by_x and not zeros[0] else None), (None if zeros[1] else cotangents[1] @ A)

    parts.defvjp(forward, backward, symbolic_zeros=True)
    A, x = tridiagonal(), vector()
    run = sa.structured(parts)
    with sa.densify("error"):
        first = jax.grad(lambda x: jnp.sum(run(A, x, x)[0]))(x)
        second = jax.grad(lambda y: jnp.sum(run(A, x, y)[1]))(x)
    np.testing.assert_allclose(first, A.to_jax().sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(second, A.to_jax().sum(axis=0), rtol=1e-12)
    assert seen == [(True, [False, True]), (False, [True, False])]


def test_a_function_that_is_a_pytree_may_hold_structured_arrays():
    A, x = tridiagonal(), vector()
    bound = jax.tree_util.Partial(lambda A, x: jnp.tanh(A) @ x, A)
    with sa.densify("error"):
        found = sa.structured(bound)(x)
    np.testing.assert_allclose(found, jnp.tanh(A.to_jax()) @ x, rtol=1e-12, atol=1e-12)
    with pytest.raises(TypeError, match="that is not among its arguments"):
        sa.structured(lambda x: jnp.tanh(A) @ x)(x)


def test_a_weight_beside_a_low_rank_stays_a_sum():
    weight, change = np.random.default_rng(0).normal(size=(20, 30)), np.ones((20, 2))
    W = sa.Sum(weight, sa.LowRank(change, np.ones((30, 2))))
    for same in (W.mT, W.mT.mT, sa.conj(W), 2 * W):
        assert type(same) is sa.Sum
    x = jnp.ones((5, 30))
    for product in (lambda W, x: x @ W.T, lambda W, x: jnp.einsum("oi,bi->bo", W, x), lambda W, x: jax.vmap(W.dot)(x)):
        with sa.record() as log:
            found = sa.structured(product)(W, x)
        np.testing.assert_allclose(found, x @ (weight + 2).T, rtol=1e-12)
        assert not {e.result for e in log.events if e.function == "matmul"} & {"Dense (20, 30)", "Dense (30, 20)"}


# ---- JAX's Krylov solvers -----------------------------------------------------------------------------------------------

SOLVERS = {
    "cg": lambda A, x: krylov.cg(A.T @ A, x, M=lambda r: r / jnp.diagonal(A) ** 2, tol=1e-13)[0],
    "cg of a function": lambda A, x: krylov.cg(lambda v: A @ v @ A, x, tol=1e-13)[0],
    "gmres": lambda A, x: krylov.gmres(A, x, M=lambda r: r / jnp.diagonal(A), tol=1e-13)[0],
    "bicgstab": lambda A, x: krylov.bicgstab(A, x, tol=1e-13)[0],
}


@pytest.mark.parametrize("name", SOLVERS)
def test_krylov_solvers(name):
    agree(SOLVERS[name], normal_solution if "cg" in name.split() else solution, tridiagonal(), vector())


@pytest.mark.parametrize("solver", [krylov.cg, krylov.gmres, krylov.bicgstab])
def test_krylov_solvers_multiply_by_any_structure(solver):
    numbers = np.random.default_rng(0).normal(size=(N, 2))
    A = {
        krylov.cg: sa.Toeplitz(0.5 ** np.arange(N)),
        krylov.gmres: sa.Circulant(0.5 ** np.arange(N)),
        krylov.bicgstab: tridiagonal() + sa.LowRank(numbers, numbers / N),
    }[solver]
    found = compiled_without_squares(sa.structured(lambda A, x: solver(A, x, tol=1e-13)[0]), A, vector())
    np.testing.assert_allclose(found, solution(A.to_jax(), vector()), rtol=1e-8, atol=1e-9)


# ---- Lineax and Optimistix ----------------------------------------------------------------------------------------------


def lineax_solvers():
    """Each with what it computes."""
    lx = pytest.importorskip("lineax")
    tag, small = lx.positive_semidefinite_tag, dict(rtol=1e-13, atol=1e-13)

    def product(A, x):
        return lx.FunctionLinearOperator(lambda v: A @ v, jax.ShapeDtypeStruct(x.shape, x.dtype))

    return {
        "LU": (lambda A, x: lx.linear_solve(product(A, x), x).value, solution),
        "tridiagonal": (
            lambda A, x: lx.linear_solve(lx.MatrixLinearOperator(A, lx.tridiagonal_tag), x).value,
            solution,
        ),
        "Cholesky": (lambda A, x: lx.linear_solve(lx.MatrixLinearOperator(A.T @ A, tag), x).value, normal_solution),
        "CG": (
            lambda A, x: lx.linear_solve(lx.MatrixLinearOperator(A.T @ A, tag), x, lx.CG(**small)).value,
            normal_solution,
        ),
    }


@pytest.mark.parametrize("name", ["LU", "tridiagonal", "Cholesky", "CG"])
def test_solvers_of_lineax(name):
    agree(*lineax_solvers()[name], tridiagonal(), vector())


def test_a_solver_of_lineax_makes_no_square_array():
    solve, _ = lineax_solvers()["LU"]
    both = jax.value_and_grad(lambda A, x: jnp.sum(sa.structured(solve)(A, x)), argnums=(0, 1))
    compiled_without_squares(both, tridiagonal(), vector())


def test_a_solver_of_lineax_maps_over_batches():
    solve, _ = lineax_solvers()["LU"]
    A, x = tridiagonal(), jnp.stack([vector(), 2 * vector()])
    found = jax.vmap(lambda x: sa.structured(solve)(A, x))(x)
    np.testing.assert_allclose(found, jnp.linalg.solve(A.to_jax(), x.T).T, rtol=1e-12)


def test_least_squares_of_lineax_are_dense_under_the_policy():
    lx = pytest.importorskip("lineax")
    A = sa.Banded((np.ones(20), np.arange(1.0, 21.0)), (0, -1), (21, 20))

    def fit(A, x):
        return lx.linear_solve(lx.MatrixLinearOperator(A), x, lx.QR()).value

    with pytest.raises(sa.DensifyError), sa.densify("error"):
        sa.structured(fit)(A, vector(21))
    np.testing.assert_allclose(sa.structured(fit)(A, vector(21)), fit(A.to_jax(), vector(21)), rtol=1e-10)


@pytest.mark.costly
@pytest.mark.parametrize("name", ["Newton", "Chord"])
def test_roots_by_optimistix(name):
    optx = pytest.importorskip("optimistix")
    solver = getattr(optx, name)(rtol=1e-12, atol=1e-12)

    def root(A, x):
        def residual(y, args):
            A, x = args
            return A @ y + jnp.tanh(y) - x

        # What it does if it fails is a callback on the dense arrays of its state.
        return optx.root_find(residual, solver, jnp.zeros_like(x), args=(A, x), throw=False).value

    def by_hand(A, x):
        y = jnp.zeros_like(x)
        for _ in range(8):
            y = y - solution(A + jnp.diag(1 - jnp.tanh(y) ** 2), A @ y + jnp.tanh(y) - x)
        return y

    agree(root, by_hand, tridiagonal(), vector())


# ---- Diffrax ------------------------------------------------------------------------------------------------------------


def diffrax_solve(name, adjoint="RecursiveCheckpointAdjoint"):
    diffrax = pytest.importorskip("diffrax")
    optx = pytest.importorskip("optimistix")
    options = {
        "Tsit5": {},
        "ImplicitEuler": {"root_finder": optx.Newton(rtol=1e-9, atol=1e-9)},
        "Kvaerno5": {"root_finder": diffrax.VeryChord(rtol=1e-6, atol=1e-8)},
    }
    solver = getattr(diffrax, name)(**options[name])

    def solve(A, y0):
        def field(time, y, A):
            return -(A @ y) - 0.1 * y**3

        term, adjust = diffrax.ODETerm(field), getattr(diffrax, adjoint)()
        return diffrax.diffeqsolve(term, solver, 0.0, 0.2, 0.05, y0, A, max_steps=8, adjoint=adjust).ys[-1]

    return solve


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Tsit5", "Kvaerno5"])
def test_solvers_of_diffrax(name):
    solve = diffrax_solve(name)
    A, x = tridiagonal(), vector()
    found = compiled_without_squares(sa.structured(solve), A, x)
    np.testing.assert_allclose(found, solve(A.to_jax(), x), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize(
    ("name", "adjoint"), [("Tsit5", "RecursiveCheckpointAdjoint"), ("ImplicitEuler", "DirectAdjoint")]
)
def test_gradients_through_diffrax(name, adjoint):
    solve = diffrax_solve(name, adjoint)
    agree(solve, solve, tridiagonal(40), vector(40))


@pytest.mark.slow
def test_a_batch_of_initial_states_for_diffrax():
    solve = diffrax_solve("ImplicitEuler")
    A, x = tridiagonal(40), jnp.stack([vector(40), jnp.ones(40)])
    found = jax.vmap(lambda x: sa.structured(solve)(A, x))(x)
    np.testing.assert_allclose(found, jax.vmap(lambda x: solve(A.to_jax(), x))(x), rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_a_loop_of_diffrax_carries_what_has_no_entries():
    diffrax = pytest.importorskip("diffrax")
    solver = diffrax.Kvaerno3(root_finder=diffrax.VeryChord(rtol=1e-10, atol=1e-12))

    def linear(A, y0):
        term = diffrax.ODETerm(lambda time, y, A: -(A @ y))
        return diffrax.diffeqsolve(term, solver, 0.0, 0.1, 0.05, y0, A, max_steps=8).ys[-1]

    A = kronecker_sum()
    with sa.densify("error"):
        found = sa.structured(linear)(A, vector(400))
    np.testing.assert_allclose(found, linear(A.to_jax(), vector(400)), rtol=1e-8, atol=1e-12)


# ---- Equinox and Optax --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("scan", [False, True])
def test_a_network_of_equinox_with_weights_of_low_rank(scan):
    eqx, optax = pytest.importorskip("equinox"), pytest.importorskip("optax")
    plain = eqx.nn.MLP(7, 3, 20, depth=2, key=jax.random.key(0), scan=scan)

    def weights(model):
        return [layer.weight for layer in model.layers]

    def adapted(w, key):
        u, v = (0.1 * jax.random.normal(k, (*w.shape[:-2], n, 2)) for k, n in zip(jax.random.split(key), w.shape[-2:]))
        return sa.Sum(w, sa.LowRank(u, v))

    keys = jax.random.split(jax.random.key(1), len(plain.layers))
    model = eqx.tree_at(weights, plain, [adapted(w, k) for w, k in zip(weights(plain), keys, strict=True)])
    assert all(type(w) is sa.Sum for w in weights(model))
    dense = eqx.tree_at(weights, plain, [as_jax(w) for w in weights(model)])
    x = jax.random.normal(jax.random.key(2), (5, 7))

    def forward(model, x):
        return jax.vmap(model)(x)

    np.testing.assert_allclose(sa.structured(model)(x[0]), dense(x[0]), rtol=1e-12)
    np.testing.assert_allclose(sa.structured(forward)(model, x), forward(dense, x), rtol=1e-12)

    which = jax.tree.map(
        lambda w: jax.tree.map(lambda _: isinstance(w, sa.LowRank), w),
        model,
        is_leaf=lambda w: isinstance(w, sa.LowRank),
    )
    trained, fixed = eqx.partition(model, which)

    def loss(trained, x):
        return jnp.sum(sa.structured(forward)(eqx.combine(trained, fixed), x) ** 2)

    gradient = eqx.filter_grad(loss)(trained, x)
    by_weight = weights(eqx.filter_grad(lambda m: jnp.sum(forward(m, x) ** 2))(dense))
    for term, own, full in zip(weights(trained), weights(gradient), by_weight, strict=True):
        (factors, slope) = (next(t for t in s.terms if type(t) is sa.LowRank) for s in (term, own))
        np.testing.assert_allclose(slope.u.to_jax(), full @ factors.v.to_jax(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(slope.v.to_jax(), full.mT @ factors.u.to_jax(), rtol=1e-9, atol=1e-12)
    again = sa.grad(loss)(trained, x)  # the same, as what it is no array to calculate with
    assert all(bool(jnp.all(a == b)) for a, b in zip(*map(jax.tree.leaves, (gradient, again)), strict=True))

    optimizer = optax.adam(1e-3)
    updates, _ = optimizer.update(gradient, optimizer.init(trained), trained)
    assert loss(eqx.apply_updates(trained, updates), x) < loss(trained, x)
