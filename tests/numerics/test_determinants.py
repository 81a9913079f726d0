"""Determinants that are products of numbers, and those of two rows."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from structarrays._numerics import dense_determinants, determinants


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("axes", [-1, (-2, -1)])
def test_sign_and_logarithm(dtype, axes, rng):
    numbers = rng.normal(size=(3, 4, 5)).astype(dtype)
    if dtype == "complex128":
        numbers += 1j * rng.normal(size=(3, 4, 5))
    numbers[1, 2, 3] = 0
    sign, logabsdet = determinants.sign_and_logarithm(jnp.asarray(numbers), axes)
    rows = numbers.reshape(12, 5) if axes == -1 else numbers.reshape(3, 20)
    expected = [np.linalg.slogdet(np.diag(row)) for row in rows]
    np.testing.assert_allclose(np.ravel(sign), [e.sign for e in expected], rtol=1e-13)
    np.testing.assert_allclose(np.ravel(logabsdet), [e.logabsdet for e in expected], rtol=1e-13)


def test_derivative_of_a_complex_sign():
    z, dz = 3 + 4j, 0.5 - 1j
    _, change = jax.jvp(determinants.phase, (z,), (dz,))
    step = 1e-6
    numeric = ((z + step * dz) / abs(z + step * dz) - (z - step * dz) / abs(z - step * dz)) / (2 * step)
    np.testing.assert_allclose(change, numeric, rtol=1e-8)


ROWS = {
    "exchanged": [[0.0, 3.0], [2.0, 5.0]],
    "large": [[1e200, 3e200], [-2e200, 1e200]],
    "small": [[1e-200, 3e-200], [-2e-200, 1e-200]],
    "graded": [[1e200, 1e-200], [1e200, 0.0]],
    "diagonal": [[1e300, 0.0], [0.0, 1e-300]],
    "singular": [[1.0, 3.0], [3.0, 9.0]],
    "zero": [[0.0, 0.0], [0.0, 0.0]],
    "a column of zeros": [[0.0, 3.0], [0.0, 9.0]],
    "not a number": [[1.0, np.nan], [2.0, 3.0]],
}


@pytest.mark.parametrize("matrix", ROWS.values(), ids=ROWS.keys())
@pytest.mark.parametrize("phase", [1, 1j], ids=["real", "complex"])
def test_two_rows(matrix, phase):
    matrix = np.array(matrix) * phase
    sign, logabsdet = dense_determinants.slogdet(jnp.asarray(matrix))
    expected = np.linalg.slogdet(matrix)
    if np.isfinite(expected.logabsdet):
        np.testing.assert_allclose(sign, expected.sign, atol=1e-14)
        np.testing.assert_allclose(logabsdet, expected.logabsdet, rtol=1e-14, atol=1e-12)
    elif np.isnan(expected.logabsdet):
        assert np.isnan(logabsdet)
    else:
        assert sign == 0 and logabsdet == -np.inf


@pytest.mark.parametrize("name", ["exchanged", "large", "small", "graded", "diagonal"])
@pytest.mark.parametrize("phase", [1, 1j], ids=["real", "complex"])
def test_derivative_of_two_rows(name, phase):
    """``tr(A^-1 dA)``, whose real part is the logarithm's, with relative changes of the elements."""
    matrix = np.array(ROWS[name]) * phase
    change = matrix * np.array([[0.5, -1.0], [2.0, 0.25]])
    (sign, _), (dsign, dlog) = jax.jvp(dense_determinants.slogdet, (jnp.asarray(matrix),), (jnp.asarray(change),))
    with mpmath.workdps(40):
        (a, b), (c, d), (da, db), (dc, dd) = ([mpmath.mpmathify(v) for v in row] for row in (*matrix, *change))
        total = complex((da * d + a * dd - db * c - b * dc) / (a * d - b * c))
    np.testing.assert_allclose(dlog, total.real, rtol=1e-13)
    np.testing.assert_allclose(dsign, sign * 1j * total.imag, atol=1e-13)
