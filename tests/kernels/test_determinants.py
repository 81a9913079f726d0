"""Determinants that are products of numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structarrays.kernels import determinants

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("axes", [-1, (-2, -1)])
def test_sign_and_logarithm(dtype, axes):
    numbers = RNG.normal(size=(3, 4, 5)).astype(dtype)
    if dtype == "complex128":
        numbers += 1j * RNG.normal(size=(3, 4, 5))
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
