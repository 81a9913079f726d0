"""The oracles of the equivalence tests for functions beyond the standard, which NumPy does not have: they are those of SciPy."""

import numpy as np
import pytest
import scipy.linalg

import structarrays as sa
from structarrays.testing import CASES, cases_factorizations
from structarrays.testing.cases_factorizations import _expm, _logdet, _lstsq, _lu, _sqrtm


def _random(rng, *shape, dtype):
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape) if dtype == "complex128" else values).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (1, 1)])
def test_lu(shape, dtype, rng):
    x = _random(rng, 2, *shape, dtype=dtype)
    for i in range(2):
        for ours, scipys in zip(_lu(x), scipy.linalg.lu(x[i]), strict=True):
            np.testing.assert_allclose(ours[i], scipys, atol=1e-13)
    assert [f.shape for f in _lu(x[:0])] == [(0, *f.shape) for f in scipy.linalg.lu(x[0])]


def test_lu_of_a_singular_matrix():
    x = np.array([[[0.0, 1.0], [0.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]]])
    p, lower, upper = _lu(x)
    np.testing.assert_array_equal(p @ (lower @ upper), x)
    np.testing.assert_array_equal(np.diagonal(lower, axis1=-2, axis2=-1), 1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_functions_of_matrices(dtype, rng):
    x = _random(rng, 5, 5, dtype="complex128" if dtype[0] == "c" else "float64").astype(dtype)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(_expm(x), scipy.linalg.expm(x), rtol=500 * eps, atol=500 * eps)
    definite = x @ x.conj().T + np.eye(5, dtype=dtype)
    np.testing.assert_allclose(_sqrtm(definite), scipy.linalg.sqrtm(definite), rtol=1000 * eps, atol=1000 * eps)
    assert _expm(x).dtype == _sqrtm(definite).dtype == _logdet(x).dtype == dtype


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_least_squares(shape, rng):
    a, b = rng.normal(size=shape), rng.normal(size=(shape[0], 2))
    x, residues, rank, s = scipy.linalg.lstsq(a, b)
    ours = _lstsq(a, b)
    np.testing.assert_allclose(ours.x, x, atol=1e-12)
    np.testing.assert_allclose(ours.s, s, rtol=1e-12)
    np.testing.assert_allclose(ours.residues, residues, atol=1e-12)
    assert ours.rank == rank


def test_every_function_is_used():
    """All functions of `linalg` that are about structured matrices have a case of the equivalence tests; the others take lines of numbers."""
    lines = {"solve_toeplitz", "matmul_toeplitz", "solve_circulant"}
    lines |= {"solve_banded", "solveh_banded", "cholesky_banded", "cho_solve_banded"}
    lines |= {"register_sparse_solver", "use_sparse_solver"}  # no functions of matrices
    functions = {name for name in dir(sa.linalg) if not name.startswith("_")}
    assert functions - {c.name.removeprefix("linalg.") for c in CASES} - lines == {"compress"}  # it chooses a rank
    assert set(cases_factorizations.CASES) <= set(CASES)


def test_lu_factor_of_an_identity_is_one():
    lu, piv = sa.linalg.lu_factor(2.0 * sa.eye(3))
    assert type(lu) is sa.Identity
    x = sa.linalg.lu_solve((lu, piv), sa.eye(3))
    assert type(x) is sa.Identity
    np.testing.assert_array_equal(np.asarray(x), 0.5 * np.eye(3))
    np.testing.assert_array_equal(np.asarray(piv), np.arange(3))
