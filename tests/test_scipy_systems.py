"""Least squares, logarithms of determinants and SciPy's banded forms, with SciPy as the oracle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from oracles import check_everywhere, close, dense, each, random
from support import as_jax

import structarrays as sa
from structarrays._functions.linalg.least_squares import LstsqResult
from structarrays.testing import Case

PAIR = ("x1", "x2")

# ---- least squares ------------------------------------------------------------------------------------------------------


def _lstsq(a, b):
    x, _, rank, s = scipy.linalg.lstsq(a, b, cond=1e-6)
    many = a.shape[0] > a.shape[1]
    residues = np.sum(np.abs(b - a @ x) ** 2, axis=0) if many else np.zeros(0, s.dtype)
    return LstsqResult(x, residues, np.asarray(rank), s)


@pytest.mark.costly
@pytest.mark.parametrize("cores", [("mn", "mk"), ("nn", "nk"), ("mn", "m")])
def test_lstsq(cores):
    vector = len(cores[1]) == 1
    case = Case(
        "lstsq", "xp.linalg.lstsq(x1, x2, 1e-6)", PAIR, cores, kinds="floating", batches="first" if vector else "equal",
        oracle=each(_lstsq, (2, 1 if vector else 2)), given=lambda a, b: a.size == 0 or np.linalg.cond(a).max(initial=0) < 1e3,
    )  # fmt: skip
    structures = ("Dense", "Diagonal", "BlockDiagonal")
    check_everywhere(case, structures, ("Kronecker", "Toeplitz", "Triangular"), unlike=("Identity",))


@pytest.mark.parametrize("cores", [("mn", "mk"), ("nn", "nk"), ("mn", "m")])
def test_lstsq_of_banded_matrices(cores):
    """Those with more rows than columns have no singular values."""
    vector = len(cores[1]) == 1

    def without_values(a, b):
        solution = _lstsq(a, b)
        return solution[:3]

    case = Case(
        "lstsq", "xp.linalg.lstsq(x1, x2, 1e-6)[:3]", PAIR, cores, kinds="floating", batches="first" if vector else "equal",
        oracle=each(without_values, (2, 1 if vector else 2)), given=lambda a, b: a.size == 0 or np.linalg.cond(a).max(initial=0) < 1e3,
    )  # fmt: skip
    check_everywhere(case, ("Banded",))


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [float, complex])
def test_least_squares_of_low_rank(dtype):
    """The solution of least norm; of a `LowRank`, a `Product` and a `Sum`, from their factors."""
    u, v, b = random(30, 2, dtype=dtype), random(20, 2, seed=1, dtype=dtype), random(30, 3, seed=2, dtype=dtype)
    for a in (
        sa.LowRank(u, v),
        sa.LowRank(u[:, :1], v[:, :1]) + sa.LowRank(u[:, 1:], v[:, 1:]),
        sa.Product(sa.LowRank(u, v), sa.eye(20) * 2.0),
    ):
        with sa.densify("error"):
            x, residues, rank, s = sa.linalg.lstsq(a, b, 1e-10)
        expected = scipy.linalg.lstsq(dense(a), b, cond=1e-10)
        close(x, expected[0])
        close(s, expected[3])
        assert int(rank) == expected[2] == 2
        close(residues, np.sum(np.abs(b - dense(a) @ expected[0]) ** 2, axis=0))

    def norm(t):
        return as_jax(sa.sum(sa.abs(sa.linalg.lstsq(sa.LowRank(u * t, v), b[:, 0], 1e-10).x) ** 2))

    h = 1e-4
    close(jax.grad(norm)(1.0), (norm(1 + h) - norm(1 - h)) / (2 * h), 1e-6)


def test_least_squares_under_numpys_name_of_the_tolerance():
    """Which code for several namespaces writes: NumPy, JAX and PyTorch call it rcond."""
    a, b = random(6, 4), random(6, seed=1)
    a[:, 3] = a[:, 0] + 1e-6 * a[:, 1]
    for rcond in (1e-3, 1e-12):
        expected = np.linalg.lstsq(a, b, rcond=rcond)
        for f in (sa.linalg.lstsq, jax.jit(sa.linalg.lstsq)):
            x, _, rank, s = f(sa.asarray(a), sa.asarray(b), rcond=rcond)
            close(x, expected[0], 1e-6)
            close(s, expected[3])
            assert int(rank) == expected[2]


# ---- logarithms of determinants -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("requires", ["invertible", "positive definite"])
def test_logdet(requires):
    def oracle(x):
        sign, logabsdet = np.linalg.slogdet(x)
        if np.iscomplexobj(x):
            return logabsdet + 1j * np.angle(sign)
        return np.where(sign < 0, np.nan, logabsdet)

    options = {"kinds": "floating", "condition": True} | {"requires": (requires,), "oracle": oracle}
    # Next to the cut of the logarithm a rounding error changes the argument by 2 pi.
    tame = lambda x: not np.iscomplexobj(x) or np.all(np.abs(np.angle(np.linalg.slogdet(x)[0])) < 3)  # noqa: E731
    case = Case("logdet", "xp.linalg.logdet(x)", cores=("nn",), given=tame, **options)
    check_everywhere(case, ("Dense", "Diagonal", "Banded", "Kronecker", "BlockDiagonal"), ("Toeplitz", "Sparse", "Sum"))


def test_logdet_of_singular_matrices():
    assert float(sa.linalg.logdet(sa.zeros((2, 2)))) == -np.inf
    assert float(sa.linalg.logdet(sa.Diagonal([1.0, 0.0]))) == -np.inf
    assert np.isnan(float(sa.linalg.logdet(-sa.eye(3))))
    values = sa.linalg.logdet(sa.Diagonal([[1.0, 2.0], [1.0, -2.0], [0.0, 1.0]]))
    np.testing.assert_array_equal(dense(values), [np.log(2), np.nan, -np.inf])


# ---- SciPy's banded forms ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("dtype", [float, complex])
def test_banded_forms(dtype):
    n = 6
    ab, b = random(4, n, dtype=dtype), random(n, 2, dtype=dtype)
    ab[2] += 5
    for right in (b, b[:, 0]):
        close(sa.linalg.solve_banded((1, 2), ab, right), scipy.linalg.solve_banded((1, 2), ab, right))
    for lower in (False, True):
        half = random(3, n, seed=1, dtype=dtype)
        half[0 if lower else 2] = 9 + np.abs(half[0])
        close(sa.linalg.solveh_banded(half, b, lower), scipy.linalg.solveh_banded(half, b, lower=lower))
        factor, expected = sa.linalg.cholesky_banded(half, lower), scipy.linalg.cholesky_banded(half, lower=lower)
        for i in range(3):
            k = i if lower else i - 2
            inside = slice(0, n - k) if lower else slice(-k, None)
            close(factor[i, inside], expected[i, inside])
        for given in (factor, expected):
            close(sa.linalg.cho_solve_banded((given, lower), b), scipy.linalg.cho_solve_banded((expected, lower), b))
    stacked = np.stack([ab, 2 * ab])
    close(sa.linalg.solve_banded((1, 2), stacked, b)[1, ...], scipy.linalg.solve_banded((1, 2), ab, b) / 2)
    close(
        jax.vmap(lambda a: as_jax(sa.linalg.solve_banded((1, 2), a, b)))(stacked)[0],
        scipy.linalg.solve_banded((1, 2), ab, b),
    )


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("lower", [False, True])
def test_derivatives_of_banded_forms(lower):
    n, b = 5, random(5)
    half = random(3, n, seed=1)
    half[0 if lower else 2] = 9

    def to_dense(h):
        rows = [jnp.diag(h[i, : n - i], -i) if lower else jnp.diag(h[i, 2 - i :], 2 - i) for i in range(3)]
        triangle = sum(rows)
        return triangle + triangle.T - jnp.diag(jnp.diag(triangle))

    def factored(h):
        return jnp.sum(as_jax(sa.linalg.cho_solve_banded((sa.linalg.cholesky_banded(h, lower), lower), b)) ** 2)

    def solved(h):
        return jnp.sum(as_jax(sa.linalg.solveh_banded(h, b, lower)) ** 2)

    plain = jax.grad(lambda h: jnp.sum(jnp.linalg.solve(to_dense(h), b) ** 2))(jnp.asarray(half))
    for function in (factored, solved):
        close(jax.grad(function)(jnp.asarray(half)), plain)
