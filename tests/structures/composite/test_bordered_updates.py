"""Low-rank updates of diagonal matrices, singular ones and badly scaled ones too, against mpmath."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from support import as_jax, dense

import structarrays as sa
from structarrays._structures.composite.bordered_updates import smallest

N, R = 40, 3  # the dense form serves up to 32 rows
SMOOTH = np.exp(-(np.linspace(0, 2, N) ** 2))


def tiny_entries(rng):
    d = rng.uniform(1, 2, N)
    d[: R + 1] *= 1e-9
    return d, *rng.normal(size=(2, N, R))


def equal_rows(rng):
    """All tiny entries have equal rows of U and V, so that the update makes only one of them regular."""
    d, u, v = tiny_entries(rng)
    u[: R + 1], v[: R + 1] = u[0], v[0]
    return d, u, v


def badly_scaled(rng):
    """Small entries with equal rows of one factor, whose columns differ in scale."""
    d, u, v = equal_rows(rng)
    return d, u * [1e8, 1.0, 1e-8], rng.normal(size=(N, R)) * [1e-4, 1e6, 1.0]


def one_column(column, other):
    return np.stack([column, np.zeros(N), np.zeros(N)], -1), np.stack([other, np.zeros(N), np.zeros(N)], -1)


CASES = {
    "random": lambda rng: (rng.uniform(1, 2, N), *rng.normal(size=(2, N, R))),
    "both signs": lambda rng: (rng.normal(size=N), *rng.normal(size=(2, N, R))),
    "negative definite": lambda rng: (-rng.uniform(1, 2, N), *(s * rng.normal(size=(N, R)) for s in (-1.0, 1.0))),
    "smooth": lambda rng: (np.ones(N), np.vander(SMOOTH, R), np.vander(1 - SMOOTH, R)),
    "alternating": lambda rng: ((-1.0) ** np.arange(N), np.ones((N, R)), rng.normal(size=(N, R))),
    "zeros": lambda rng: (np.where(np.arange(N) % 15 == 4, 0.0, 1.0), *rng.normal(size=(2, N, R))),
    "tiny entries": tiny_entries,
    "equal rows": equal_rows,
    "badly scaled": badly_scaled,
    "huge entries": lambda rng: (np.where(np.arange(N) < 2, 1e12, 1.0), *rng.normal(size=(2, N, R))),
    "graded": lambda rng: (10.0 ** np.linspace(-12, 12, N), *rng.normal(size=(2, N, R))),
    "tiny": lambda rng: (1e-200 * rng.uniform(1, 2, N), *1e-100 * rng.normal(size=(2, N, R))),
    "huge": lambda rng: (1e200 * rng.uniform(1, 2, N), *1e100 * rng.normal(size=(2, N, R))),
    "cancelling": lambda rng: (np.ones(N), *one_column((1e-9 - 1) * SMOOTH / (SMOOTH @ SMOOTH), SMOOTH)),
    "unit": lambda rng: (np.ones(N), *one_column((1e-13 - 1) * np.eye(N)[5], np.eye(N)[5])),
}


def by_mpmath(d, u, v):
    with mpmath.workdps(120):
        matrix = mpmath.matrix(u.tolist()) * mpmath.matrix(v.T.tolist())
        for i, value in enumerate(d):
            matrix[i, i] += mpmath.mpf(value)
        determinant = mpmath.det(matrix)
        return float(mpmath.sign(determinant)), float(mpmath.log(abs(determinant)))


def functions(d, u, v, b):
    x = sa.Diagonal(d) + sa.LowRank(u, v)
    return *sa.linalg.slogdet(x), sa.linalg.solve(x, b), sa.linalg.solve(x.mT, b)


def check(case, b, sign, logabsdet, *solutions):
    d, u, v = case
    matrix = np.diag(d) + u @ v.T
    eps, condition = np.finfo(float).eps, np.linalg.cond(matrix)
    wanted, logarithm = by_mpmath(*case)
    assert sign == wanted
    assert abs(logabsdet - logarithm) <= eps * (100 * min(condition, 1e10) + 4 * abs(logarithm) + N)
    for x, a in zip(solutions, (matrix, matrix.T), strict=True):
        scale = np.max(np.sum(np.abs(a), axis=1)) * np.max(np.abs(x)) + np.max(np.abs(b))
        assert np.max(np.abs(a @ x - b)) <= 64 * eps * scale


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("mode", ["eager", "jit", "vmap"])
def test_hard_inputs(mode, rng):
    """Determinants have the digits that the condition number leaves, and solutions small backward errors, without the dense form."""
    cases = [make(rng) for make in CASES.values()]
    b = np.stack([np.ones(N), rng.normal(size=N)], axis=-1)
    with sa.densify("error"):
        if mode == "vmap":
            results = jax.vmap(lambda *case: functions(*case, b))(*map(np.stack, zip(*cases, strict=True)))
            rows = zip(*map(np.asarray, results), strict=True)
        else:
            run = jax.jit(functions) if mode == "jit" else functions
            rows = [map(np.asarray, run(*case, b)) for case in cases]
    for case, row in zip(cases, rows, strict=True):
        check(case, b, *row)


@pytest.mark.slow
def test_a_null_space_of_many_dimensions(rng):
    """As many zeros as the rank of the update."""
    rank = 12
    d = np.where(np.arange(N) < rank, 0.0, 1.0)
    case = d, *rng.normal(size=(2, N, rank))
    b = rng.normal(size=(N, 1))
    with sa.densify("error"):
        check(case, b, *map(np.asarray, jax.jit(functions)(*case, b)))


def test_singular_matrices():
    unit = np.eye(N)[:, 5:6]
    smooth = SMOOTH[:, None]
    with sa.densify("error"):
        for u, v in ((-unit, unit), (-smooth / np.sum(smooth**2), smooth)):
            for run in (lambda f: f, jax.jit):
                x = sa.Identity(N) + sa.LowRank(u, v)
                assert abs(float(run(sa.linalg.det)(x))) < 1e-14
                assert float(run(sa.linalg.slogdet)(x).logabsdet) < -32
    more_zeros_than_rank = sa.Diagonal(np.where(np.arange(N) < 2, 0.0, 1.0)) + sa.LowRank(unit, unit)
    assert float(sa.linalg.det(more_zeros_than_rank)) == 0


def test_derivatives_of_a_singular_base(rng):
    d, u, v = map(jnp.asarray, CASES["zeros"](rng))
    directions = [jnp.asarray(rng.normal(size=x.shape)) for x in (d, u, v)]

    def structured(d, u, v):
        return as_jax(sa.linalg.slogdet(sa.Diagonal(d) + sa.LowRank(u, v)).logabsdet)

    def densely(d, u, v):
        return jnp.linalg.slogdet(jnp.diag(d) + u @ v.T)[1]

    found, expected = (
        jax.jit(lambda *x, f=f: jax.jvp(jax.grad(f, (0, 1, 2)), x, tuple(directions)))(d, u, v)
        for f in (structured, densely)
    )
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


def test_gradients_of_solutions(rng):
    """The transposed system is solved at the first attempt, too."""
    d, u, v = map(jnp.asarray, CASES["zeros"](rng))
    b, weights = map(jnp.asarray, rng.normal(size=(2, N, 2)))

    def structured(d, u, v, b):
        return jnp.sum(weights * as_jax(sa.linalg.solve(sa.Diagonal(d) + sa.LowRank(u, v), b)))

    def densely(d, u, v, b):
        return jnp.sum(weights * jnp.linalg.solve(jnp.diag(d) + u @ v.T, b))

    with sa.densify("error"):
        found = jax.jit(jax.grad(structured, (0, 1, 2, 3)))(d, u, v, b)
    for one, other in zip(found, jax.grad(densely, (0, 1, 2, 3))(d, u, v, b), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10 * np.abs(other).max())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_other_types(dtype, rng):
    d, u, v = CASES["zeros"](rng)
    d, u, v = (x + 1j * rng.normal(size=x.shape) * (x != 0) if dtype[0] == "c" else x for x in (d, u, v))
    d, u, v = (x.astype(dtype) for x in (d, u, v))
    b = np.ones((N, 1), dtype)
    matrix = (np.diag(d) + u @ v.T).astype("complex128")
    sign, logabsdet, x, y = map(np.asarray, jax.jit(functions)(d, u, v, b))
    expected = np.linalg.slogdet(matrix)
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-12
    assert sign.dtype == x.dtype == dtype
    np.testing.assert_allclose((sign, logabsdet), expected, rtol=tolerance, atol=tolerance)
    for found, a in ((x, matrix), (y, matrix.T)):
        np.testing.assert_allclose(found, np.linalg.solve(a, b), rtol=0, atol=tolerance * np.abs(found).max())


@pytest.mark.parametrize("n", [7, 5000, 100_000])
@pytest.mark.parametrize("count", [1, 3])
def test_smallest(n, count, rng):
    """The smallest values are in one block or several, at the ends, or occur often."""
    x = rng.uniform(1, 2, (4, n))
    x[0, -count:], x[1, :count] = 0.5, 0.25
    x[2] = np.round(x[2], 2)
    x[3] = np.inf
    found = np.asarray(smallest(jnp.asarray(x), count))
    for row, places in zip(x, found, strict=True):
        assert len(set(places)) == count
        np.testing.assert_array_equal(row[places], np.sort(row)[:count])


def test_a_batch_of_diagonals_with_one_update(rng):
    d = rng.uniform(1, 2, (3, N))
    d[1, 4] = 0
    u, v = rng.normal(size=(2, N, R))
    x = sa.Diagonal(d) + sa.LowRank(u, v)
    b = rng.normal(size=(N, 2))
    full = np.asarray(dense(x))
    np.testing.assert_allclose(np.asarray(sa.linalg.slogdet(x).logabsdet), np.linalg.slogdet(full)[1], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(sa.linalg.solve(x, b)), np.linalg.solve(full, b), atol=1e-11)
    one = sa.Diagonal(d[1]) + sa.LowRank(np.stack([u, v]), v)
    full = np.asarray(dense(one))
    np.testing.assert_allclose(np.asarray(sa.linalg.slogdet(one).logabsdet), np.linalg.slogdet(full)[1], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(sa.linalg.solve(one, b)), np.linalg.solve(full, b), atol=1e-10)
