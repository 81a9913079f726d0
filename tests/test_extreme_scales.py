"""Matrices of tiny and of huge entries: linear algebra of ``2**k * A`` gives the results for A, times a power of two.

Only numbers that stay in the range of the dtype are compared, and those far from subnormal numbers, which XLA takes for zero.
"""

import jax
import numpy as np
import pytest

import structarrays as sa
from structarrays.testing import STRUCTURES, sample

EXPONENTS = {"float64": (-900, 900), "float32": (-100, 100)}
SIZES = {"Toeplitz": 300, "Hankel": 300, "BlockBanded": 300}  # up to 256 rows these are solved by their dense forms
# Singular whatever the entries are, or complex.
OTHERS = ("Fill", "Banded off the diagonal", "Banded without offsets", "Fourier")
NAMES = [s for s in STRUCTURES if not s.startswith(OTHERS)]


def scaled(x, exponent, requires):
    y = x * sa.asarray(np.asarray(2.0**exponent, x.dtype))
    assert np.all(np.isfinite(np.asarray(y.to_dense())))
    return sa.assume(y, "positive_definite") if requires == "positive definite" else y


def matrices(structure, dtype, size, *requirements):
    """Each requirement that matrices of this structure can meet, with such a matrix."""
    made = {r: sample(structure, (size, size), dtype=dtype, requires=r, seed=3) for r in requirements}
    assert made["invertible"] is not None
    return {r: x for r, x in made.items() if x is not None}


def close(found, wanted, tolerance):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.max(np.abs(wanted)))


def backward_error(a, x, b):
    size = np.max(np.sum(np.abs(a), axis=1))
    return np.max(np.abs(b - a @ x)) / (size * np.max(np.abs(x)) + np.max(np.abs(b)))


@pytest.mark.costly
@pytest.mark.parametrize("dtype", EXPONENTS)
@pytest.mark.parametrize("structure", NAMES)
def test_solutions_and_determinants(structure, dtype):
    """Backward errors of solutions, and logarithms of determinants, in roundings."""
    size = SIZES.get(structure.partition(",")[0].partition(" +")[0], 40)
    eps = np.finfo(dtype).eps
    for requires, x in matrices(structure, dtype, size, "invertible", "positive definite").items():
        dense = np.asarray(x.to_dense(), np.float64)
        right = np.ones(len(dense))
        values = np.linalg.svd(dense, compute_uv=False)
        tolerance = 100 * eps * values[0] * np.sum(1 / values)
        assert tolerance < 0.5  # an entry that is lost changes the determinant more
        for exponent in EXPONENTS[dtype]:
            y = scaled(x, exponent, requires)
            b = sa.asarray(np.asarray(right * 2.0**exponent, dtype))
            found = np.asarray(sa.linalg.solve(y, b), np.float64)
            assert backward_error(dense, found, right) <= 100 * eps
            sign, logarithm = sa.linalg.slogdet(y)
            wanted = np.linalg.slogdet(dense)
            assert float(sign) == wanted.sign
            shift = len(dense) * exponent * np.log(2)
            assert abs(float(logarithm) - wanted.logabsdet - shift) <= tolerance + 10 * eps * abs(shift)


@pytest.mark.costly
@pytest.mark.parametrize("dtype", EXPONENTS)
@pytest.mark.parametrize("structure", NAMES)
def test_derivatives_of_solutions_and_determinants(structure, dtype):
    """For ``t A``, the logarithm of the determinant has the derivative n / t. A solution has -1 / t times the solution."""
    size = SIZES.get(structure.partition(",")[0].partition(" +")[0], 40)
    x = matrices(structure, dtype, size, "invertible")["invertible"]
    dense = np.asarray(x.to_dense(), np.float64)
    values = np.linalg.svd(dense, compute_uv=False)
    tolerance = 200 * np.finfo(dtype).eps * values[0] * np.sum(1 / values)
    solution = np.linalg.solve(dense, np.ones(len(dense))).sum()
    for exponent in EXPONENTS[dtype]:
        t = np.asarray(2.0**exponent, dtype)
        b = sa.asarray(np.full(len(dense), t))
        for function, wanted in (
            (lambda t: sa.linalg.slogdet(x * t).logabsdet, len(dense)),
            (lambda t, b=b: sa.sum(sa.linalg.solve(x * t, b)), -solution),
        ):

            def value(t, function=function):
                return sa.asarray(function(t)).to_jax().real

            for derivative in (jax.jacfwd(value), jax.jacrev(value)):
                found = float(jax.jit(derivative)(t)) * float(t)
                assert abs(found - wanted) <= tolerance * max(1, abs(wanted)), (exponent, found, wanted)


SPECTRA = {
    "eigvals": ("invertible", lambda x: np.sort(np.abs(np.asarray(sa.linalg.eigvals(x))))),
    "eig": ("invertible", lambda x: np.sort(np.abs(np.asarray(sa.linalg.eig(x).eigenvalues)))),
    "eigvalsh": ("hermitian", lambda x: np.asarray(sa.linalg.eigvalsh(x))),
    "svdvals": ("invertible", lambda x: np.asarray(sa.linalg.svdvals(x))),
    "norm 2": ("invertible", lambda x: np.asarray(sa.linalg.matrix_norm(x, ord=2))),
}


ORACLES = {
    "eigvals": lambda a: np.sort(np.abs(np.linalg.eigvals(a))),
    "eig": lambda a: np.sort(np.abs(np.linalg.eigvals(a))),
    "eigvalsh": np.linalg.eigvalsh,
    "svdvals": lambda a: np.linalg.svd(a, compute_uv=False),
    "norm 2": lambda a: np.linalg.norm(a, 2),
}


@pytest.mark.costly
@pytest.mark.parametrize("dtype", EXPONENTS)
@pytest.mark.parametrize("structure", NAMES)
def test_spectra(structure, dtype):
    made = matrices(structure, dtype, 9, "invertible", "hermitian")
    for name, (requires, function) in SPECTRA.items():
        if requires not in made:
            continue
        wanted = ORACLES[name](np.asarray(made[requires].to_dense(), np.float64))
        for exponent in EXPONENTS[dtype]:
            found = function(scaled(made[requires], exponent, requires)).astype(np.float64) * 2.0**-exponent
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
