"""Block matrices whose blocks store few entries, such as optimality conditions, compared with NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from support import as_jax

import structarrays as sa

N, M = 600, 200


def tridiagonal(n):
    return sa.tridiagonal(-np.ones(n - 1), 4 * np.ones(n), -np.ones(n - 1))


def dense_tridiagonal(n, off=-1.0, diagonal=4.0):
    return np.diag(np.full(n, diagonal)) + np.diag(np.full(n - 1, off), 1) + np.diag(np.full(n - 1, off), -1)


def hessians(rng):
    """Each with its dense form by NumPy or SciPy."""
    blocks = rng.standard_normal((N // 6, 6, 6))
    blocks = blocks @ blocks.swapaxes(-1, -2) + np.eye(6)
    on_grid, weights = rng.uniform(1, 2, N), rng.uniform(1, 2, N)
    laplacian = np.kron(dense_tridiagonal(20), np.eye(30)) + np.kron(np.eye(20), dense_tridiagonal(30))
    return {
        "banded": (tridiagonal(N), dense_tridiagonal(N)),
        "block diagonal": (sa.BlockDiagonal(blocks), scipy.linalg.block_diag(*blocks)),
        "kronecker": (sa.Kronecker(sa.eye(N // 6), blocks[0]), np.kron(np.eye(N // 6), blocks[0])),
        "grid": (
            sa.KroneckerSum(tridiagonal(20), tridiagonal(30)) + sa.Diagonal(on_grid),
            laplacian + np.diag(on_grid),
        ),
        "narrow Toeplitz": (sa.Toeplitz([4.0, -1.0], [4.0, -1.0], shape=(N, N)), dense_tridiagonal(N)),
        "diagonal": (sa.Diagonal(weights), np.diag(weights)),
    }


def constraints(rng):
    """Each with its dense form by NumPy or SciPy."""
    dense = np.where(rng.random((M, N)) < 0.005, rng.standard_normal((M, N)), 0) + np.eye(M, N)
    on, below, factor = rng.standard_normal((100, 2, 6)), rng.standard_normal((99, 2, 6)), rng.standard_normal((2, 6))
    blocks = scipy.linalg.block_diag(*on)
    for i, block in enumerate(below):
        blocks[2 * i + 2 : 2 * i + 4, 6 * i : 6 * i + 6] += block
    return {
        "banded": (sa.Banded([np.ones(M), -np.ones(M)], (0, 1), (M, N)), np.eye(M, N) - np.eye(M, N, 1)),
        "distant bands": (sa.Banded([np.ones(M), -np.ones(M)], (0, 300), (M, N)), np.eye(M, N) - np.eye(M, N, 300)),
        "blocks": (sa.BlockBanded([on, below], (0, -1)), blocks),
        "kronecker": (sa.Kronecker(sa.eye(100), factor), np.kron(np.eye(100), factor)),
        "sparse": (sa.interop.scipy.from_sparse(scipy.sparse.csr_array(dense)), dense),
    }


def systems(rng, hessian, constraint):
    (h, dense_h), (g, dense_g) = hessians(rng)[hessian], constraints(rng)[constraint]
    return sa.Block([[h, g.mT], [g, None]]), np.block([[dense_h, dense_g.T], [dense_g, np.zeros((M, M))]])


FUNCTIONS = {
    "solve": (lambda a: sa.linalg.solve(a, jnp.ones(N + M)), lambda a: np.linalg.solve(a, np.ones(N + M))),
    "slogdet": (lambda a: sa.linalg.slogdet(a)[1], lambda a: np.linalg.slogdet(a)[1]),
    "sign": (lambda a: sa.linalg.slogdet(a)[0], lambda a: np.linalg.slogdet(a)[0]),
    "inv": (lambda a: sa.linalg.inv(a) @ jnp.ones(N + M), lambda a: np.linalg.inv(a) @ np.ones(N + M)),
}


@pytest.mark.parametrize("hessian", list(hessians(np.random.default_rng(0))))
@pytest.mark.parametrize("constraint", list(constraints(np.random.default_rng(0))))
def test_optimality_conditions(rng, hessian, constraint):
    x, dense = systems(rng, hessian, constraint)
    with sa.densify("error"):
        for name, (run, by_numpy) in FUNCTIONS.items():
            expected = by_numpy(dense)
            for f in (run, jax.jit(run)):
                tolerance = 1e-10 * np.abs(expected).max()
                np.testing.assert_allclose(as_jax(f(x)), expected, rtol=1e-9, atol=tolerance, err_msg=name)


def test_a_sparse_schur_complement_is_eliminated(rng):
    """A diagonal pivot leaves a banded block, which needs no sparse solver."""
    x, _ = systems(rng, "diagonal", "banded")
    assert "Schur" in str(sa.explain(sa.linalg.solve, x, jnp.ones(N + M)))
    g = sa.Banded([np.ones(300), -np.ones(300)], (0, 1), (300, 900))
    x = sa.Block([[tridiagonal(900), g.mT], [g, None]])
    assert "sparse" in str(sa.explain(sa.linalg.solve, x, jnp.ones(1200)))


def test_few_constraints_are_eliminated(rng):
    """The dense Schur complement of few constraints has fewer elements than the matrix has entries."""
    g = sa.Banded([np.ones(5)], (0,), (5, N))
    x = sa.Block([[tridiagonal(N), g.mT], [g, None]])
    assert "Schur" in str(sa.explain(sa.linalg.solve, x, jnp.ones(N + 5)))
    expected = np.linalg.solve(np.asarray(x.to_jax()), np.ones(N + 5))
    np.testing.assert_allclose(as_jax(sa.linalg.solve(x, jnp.ones(N + 5))), expected, rtol=1e-11, atol=1e-12)


def test_many_rows_take_no_dense_form():
    n, m = 60_000, 20_000
    g = sa.Banded([np.ones(m), -np.ones(m)], (0, 1), (m, n))
    x = sa.Block([[tridiagonal(n), g.mT], [g, None]])
    b = jnp.ones(n + m)
    with sa.densify("error"):
        for solve in (sa.linalg.solve, jax.jit(sa.linalg.solve)):
            solution = as_jax(solve(x, b))
            np.testing.assert_allclose(as_jax(x @ solution), b, rtol=0, atol=1e-9 * np.abs(solution).max())


def test_derivatives(rng):
    g, dense_g = constraints(rng)["banded"]
    weights = jnp.asarray(rng.standard_normal(N + M))

    def objective(diagonal):
        h = sa.tridiagonal(-jnp.ones(N - 1), diagonal, -jnp.ones(N - 1))
        x = sa.Block([[h, g.mT], [g, None]])
        return as_jax(sa.linalg.solve(x, weights)) @ weights + as_jax(sa.linalg.slogdet(x)[1])

    def by_jax(diagonal):
        h = jnp.diag(diagonal) - jnp.eye(N, k=1) - jnp.eye(N, k=-1)
        x = jnp.block([[h, dense_g.T], [dense_g, jnp.zeros((M, M))]])
        return jnp.linalg.solve(x, weights) @ weights + jnp.linalg.slogdet(x)[1]

    diagonal = jnp.asarray(rng.uniform(3, 4, N))
    with sa.densify("error"):
        gradient = jax.jit(jax.grad(objective))(diagonal)
    np.testing.assert_allclose(gradient, jax.grad(by_jax)(diagonal), rtol=1e-8, atol=1e-10)


HARD = {
    "tiny": (1e-12, 4.0),
    "huge": (1e12, 4.0),
    "extreme": (1e150, 4.0),
    "Neumann": (1.0, 2.0),  # singular without the constraints
    "nearly singular": (1.0, 2.0 + 1e-9),
    "graded": (np.logspace(-8, 8, N), 4.0),
}


@pytest.mark.each_parameter
@pytest.mark.parametrize("kind", HARD)
def test_hard_inputs(kind):
    """The backward error stays at rounding, eager and compiled."""
    scale, middle = HARD[kind]
    scale = np.sqrt(np.broadcast_to(scale, N))
    diagonal = np.full(N, middle)
    if kind in ("Neumann", "nearly singular"):
        diagonal[[0, -1]] -= 1
    h = dense_tridiagonal(N, diagonal=0.0) + np.diag(diagonal)
    h = scale[:, None] * h * scale
    g = np.eye(M, N) - np.eye(M, N, 1)
    g[-1] = np.where(np.arange(N) == N - 1, 1.0, 0.0)  # fixes the constant
    dense = np.block([[h, g.T], [g, np.zeros((M, M))]])
    bands = sa.tridiagonal(np.diag(h, -1), np.diag(h), np.diag(h, 1))
    constraint = sa.interop.scipy.from_sparse(scipy.sparse.csr_array(g))
    x = sa.Block([[bands, constraint.mT], [constraint, None]])
    wavy = (-1.0) ** np.arange(N + M)
    for b in (np.ones(N + M), wavy, np.linspace(0, 1, N + M), np.eye(N + M)[0]):
        for solve in (sa.linalg.solve, jax.jit(sa.linalg.solve)):
            with sa.densify("error"):
                solution = as_jax(solve(x, jnp.asarray(b)))
            rest = np.abs(dense @ solution - b)
            assert np.all(rest <= 1e-12 * (np.abs(dense) @ np.abs(solution)).max())
    with sa.densify("error"):
        sign, logabsdet = map(as_jax, sa.linalg.slogdet(x))
    expected = np.linalg.slogdet(dense)
    assert float(sign) == expected[0]
    assert float(logabsdet) == pytest.approx(expected[1], rel=1e-9)


def test_nested_blocks(rng):
    x, dense = systems(rng, "banded", "kronecker")
    nested = sa.Block([[x, None], [None, tridiagonal(100)]])
    rows = N + M
    both = np.zeros((rows + 100, rows + 100))
    both[:rows, :rows], both[rows:, rows:] = dense, dense_tridiagonal(100)
    with sa.densify("error"):
        solution = as_jax(sa.linalg.solve(nested, jnp.ones(rows + 100)))
    np.testing.assert_allclose(solution, np.linalg.solve(both, np.ones(rows + 100)), rtol=1e-9, atol=1e-10)


def test_more_constraints_than_unknowns_are_singular():
    g = sa.Banded([np.ones(400), np.ones(400)], (0, -100), (500, 400))
    x = sa.Block([[tridiagonal(400), g.mT], [g, None]])
    with sa.densify("error"), pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(x, jnp.ones(900))
    with sa.densify("error"):
        assert np.isnan(as_jax(jax.jit(sa.linalg.solve)(x, jnp.ones(900)))).any()
        assert as_jax(sa.linalg.slogdet(x)[1]) == -np.inf


def test_programs_without_host_calls(rng):
    """Elimination serves programs that may not call the host, such as exported ones."""
    x, dense = systems(rng, "banded", "banded")

    def solution(x):
        return as_jax(sa.linalg.solve(x, jnp.ones(N + M)))

    with sa.host_calls(False):
        assert "callback" not in str(jax.make_jaxpr(solution)(x))
        exported = jax.export.export(jax.jit(lambda d: solution(_with_diagonal(d))))(jnp.full(N, 4.0))
        found = jax.export.deserialize(exported.serialize()).call(jnp.full(N, 4.0))
    expected = np.linalg.solve(np.asarray(_with_diagonal(jnp.full(N, 4.0)).to_jax()), np.ones(N + M))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def _with_diagonal(diagonal):
    h = sa.tridiagonal(-jnp.ones(N - 1), diagonal, -jnp.ones(N - 1))
    g = sa.Banded([np.ones(M), -np.ones(M)], (0, 1), (M, N))
    return sa.Block([[h, g.mT], [g, None]])


def test_small_blocks_are_eliminated():
    """A dense block of few rows costs less than a sparse solver."""
    t, one = tridiagonal(150), sa.eye(150)
    assert "Schur" in str(sa.explain(sa.linalg.solve, sa.Block([[t, one], [one, t]]), jnp.ones(300)))


def test_symbolic_sizes_are_eliminated():
    def solution(d, b):
        x = sa.Block([[sa.Diagonal(d + 3), sa.Diagonal(d)], [sa.Diagonal(d), sa.Diagonal(5 * d)]])
        return as_jax(sa.linalg.solve(x, b))

    (n,) = jax.export.symbolic_shape("n", constraints=["n >= 2"])
    shapes = [jax.ShapeDtypeStruct((n,), float), jax.ShapeDtypeStruct((2 * n,), float)]
    exported = jax.export.export(jax.jit(solution))(*shapes)
    d, b = np.linspace(1, 2, 9), np.linspace(-1, 1, 18)
    dense = np.block([[np.diag(d + 3), np.diag(d)], [np.diag(d), np.diag(5 * d)]])
    np.testing.assert_allclose(exported.call(d, b), np.linalg.solve(dense, b), rtol=1e-12)


def test_sparse_blocks_without_strong_zeros(rng):
    """The policy of zeros that are factors does not change which solver runs."""
    x, dense = systems(rng, "banded", "sparse")
    with sa.strong_zeros(False), sa.densify("error"):
        assert "SuperLU" in str(sa.explain(sa.linalg.solve, x, jnp.ones(N + M)))
        solution = as_jax(sa.linalg.solve(x, jnp.ones(N + M)))
    np.testing.assert_allclose(solution, np.linalg.solve(dense, np.ones(N + M)), rtol=1e-9, atol=1e-10)
