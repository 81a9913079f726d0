"""Matrices of tiny and of huge entries: linear algebra of ``2**k * A`` gives the results for A, times a power of two.

Only numbers that stay in the range of the dtype are compared, and those far from subnormal numbers, which XLA takes for zero.
"""

import numpy as np
import pytest

import structarrays as sa
from structarrays.testing import STRUCTURES, sample

EXPONENTS = {"float64": (-900, 900), "float32": (-100, 100)}
SIZES = {"Toeplitz": 300, "Hankel": 300, "BlockBanded": 300}  # up to 256 rows these are solved by their dense forms
SINGULAR = ("Fill",)  # constant matrices


def scaled(x, exponent, requires):
    y = x * sa.asarray(np.asarray(2.0**exponent, x.dtype))
    assert np.all(np.isfinite(np.asarray(y.to_dense())))
    return sa.assume(y, "positive_definite") if requires == "positive definite" else y


def matrix(structure, dtype, requires):
    n = SIZES.get(structure.partition(",")[0].partition(" +")[0], 40)
    x = sample(structure, (n, n), dtype=dtype, requires=requires, seed=3)
    if x is None:
        pytest.skip(f"there is no {requires} {structure}")
    return x


def close(found, wanted, tolerance):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * max(1, np.max(np.abs(wanted))))


@pytest.mark.parametrize("dtype", EXPONENTS)
@pytest.mark.parametrize("requires", ["invertible", "positive definite"])
@pytest.mark.parametrize("structure", [s for s in STRUCTURES if not s.startswith(SINGULAR)])
def test_solutions_and_determinants(structure, requires, dtype):
    x = matrix(structure, dtype, requires)
    dense = np.asarray(x.to_dense(), np.float64)
    right = np.ones(len(dense))
    tolerance = 1000 * np.finfo(dtype).eps * np.linalg.cond(dense)
    for exponent in EXPONENTS[dtype]:
        y = scaled(x, exponent, requires)
        b = sa.asarray(np.asarray(right * 2.0**exponent, dtype))
        close(np.asarray(sa.linalg.solve(y, b)), np.linalg.solve(dense, right), tolerance)
        sign, logarithm = sa.linalg.slogdet(y)
        wanted = np.linalg.slogdet(dense)
        assert float(sign) == wanted.sign
        close(float(logarithm), wanted.logabsdet + len(dense) * exponent * np.log(2), tolerance)


SPECTRA = {
    "eigvals": ("invertible", lambda x: np.sort(np.abs(np.asarray(sa.linalg.eigvals(x))))),
    "eig": ("invertible", lambda x: np.sort(np.abs(np.asarray(sa.linalg.eig(x).eigenvalues)))),
    "eigvalsh": ("hermitian", lambda x: np.asarray(sa.linalg.eigvalsh(x))),
    "svdvals": ("invertible", lambda x: np.asarray(sa.linalg.svdvals(x))),
    "norm 2": ("invertible", lambda x: np.asarray(sa.linalg.matrix_norm(x, ord=2))),
}


@pytest.mark.parametrize("dtype", EXPONENTS)
@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("structure", [s for s in STRUCTURES if not s.startswith(SINGULAR)])
def test_spectra(structure, name, dtype):
    requires, function = SPECTRA[name]
    x = sample(structure, (9, 9), dtype=dtype, requires=requires, seed=3)
    if x is None:
        pytest.skip(f"there is no {requires} {structure}")
    dense = np.asarray(x.to_dense(), np.float64)
    wanted = {
        "eigvalsh": lambda: np.linalg.eigvalsh(dense),
        "svdvals": lambda: np.linalg.svd(dense, compute_uv=False),
        "norm 2": lambda: np.linalg.norm(dense, 2),
    }.get(name, lambda: np.sort(np.abs(np.linalg.eigvals(dense))))()
    for exponent in EXPONENTS[dtype]:
        found = function(scaled(x, exponent, requires)).astype(np.float64) * 2.0**-exponent
        close(found, wanted, 1e4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", EXPONENTS)
@pytest.mark.parametrize("assumed", [False, True])
def test_tridiagonal_matrices(assumed, dtype):
    """The product of two entries may overflow or underflow although the entries do not."""
    n = 50
    x = sa.tridiagonal(*(np.full(n - abs(k), v, dtype) for k, v in ((-1, -1), (0, 2.5), (1, -1))))
    dense = np.asarray(x.to_dense(), np.float64)
    for exponent in EXPONENTS[dtype]:
        y = scaled(x, exponent, "positive definite" if assumed else "")
        for right in (np.ones(n), np.ones((n, 2)), np.eye(n)):
            b = sa.asarray(np.asarray(right * 2.0**exponent, dtype))
            close(np.asarray(sa.linalg.solve(y, b)), np.linalg.solve(dense, right), 100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
@pytest.mark.parametrize("function", [sa.linalg.eigvals, lambda x: sa.linalg.eig(x).eigenvalues])
def test_eigenvalues_up_to_the_largest_number(function, dtype):
    """The reciprocal of the largest numbers is subnormal."""
    data = np.array([[1.0, 0.25], [0.5, 0.75]])
    limits = np.finfo(dtype)
    for exponent in (limits.minexp + 4, limits.maxexp - 4, limits.maxexp - 2, limits.maxexp - 1):
        found = np.asarray(function(sa.asarray((data * 2.0**exponent).astype(dtype))))
        assert np.isfinite(found).all()
        found = np.ldexp(found.real.astype(np.float64), -exponent)
        np.testing.assert_allclose(np.sort(found), np.sort(np.linalg.eigvals(data)), rtol=8 * limits.eps)
