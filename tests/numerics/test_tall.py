"""Products of the transposes of tall matrices, in pieces, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from structarrays._numerics.tall import transposed_product, transposed_products, transposed_quotients


def values(rng, shape, dtype):
    data = rng.normal(size=shape)
    return (data + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else data).astype(dtype)


# Few rows and many, a number of them that no pieces divide, columns up to the number at which several pieces are multiplied together
# and beyond it, one column, none.
@pytest.mark.parametrize("n", [0, 3, 3999, 4000, 10_000, 10_007, 23_456])
@pytest.mark.parametrize(("k", "p"), [(5, 5), (3, 1), (32, 2), (64, 3), (100, 2), (101, 3), (0, 2), (2, 0)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_transposed_product(n, k, p, dtype, rng):
    v, x, weights = values(rng, (n, k), dtype), values(rng, (n, p), dtype), values(rng, (n,), dtype)
    got = jax.jit(transposed_product)(v, x, weights)
    assert got.dtype == dtype
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(got, v.T @ (weights[:, None] * x), rtol=tolerance, atol=tolerance * max(1, n) ** 0.5)


@pytest.mark.parametrize("n", [30, 4000, 10_007])
@pytest.mark.parametrize("p", [1, 99])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_several_products_at_once(n, p, dtype, rng):
    v, x, y, weights = (values(rng, shape, "float64") for shape in ((n, 5), (n, 3), (n, p), (n,)))
    y = y.astype(dtype)
    got = jax.jit(transposed_products)(v, (x, y), weights)
    for one, right in zip(got, (x, y), strict=True):
        assert one.dtype == right.dtype
        np.testing.assert_allclose(one, v.T @ (weights[:, None] * right), rtol=1e-10, atol=1e-10 * n**0.5)


def test_derivatives_of_several_products(rng):
    parts = (
        values(rng, (4100, 3), "float64") / 64,
        values(rng, (4100, 2), "float64") / 64,
        values(rng, (4100, 1), "float64"),
    )
    check_grads(jax.jit(lambda v, x, y: transposed_products(v, (x, y), x[:, 0])), parts, order=2, atol=1e-3, rtol=1e-3)


def test_batches_and_derivatives(rng):
    v, x, weights = (
        values(rng, (2, 1, 4100, 3), "float64"),
        values(rng, (3, 4100, 2), "float64"),
        values(rng, (4100,), "float64"),
    )
    got = transposed_product(jnp.asarray(v), jnp.asarray(x), jnp.asarray(weights))
    np.testing.assert_allclose(got, v.mT @ (weights[:, None] * x), rtol=1e-9, atol=1e-9)
    check_grads(jax.jit(transposed_product), (v[0, 0] / 64, x[0] / 64, weights), order=2, atol=1e-3, rtol=1e-3)


def test_quotients(rng):
    v, x, y = (values(rng, (4100, k), "float64") for k in (3, 2, 1))
    divisors = 2 + abs(values(rng, (4100,), "float64"))
    got = jax.jit(transposed_quotients)(v, (x, y), divisors)
    for one, right in zip(got, (x, y), strict=True):
        np.testing.assert_allclose(one, v.T @ (right / divisors[:, None]), rtol=1e-10, atol=1e-10)
    check_grads(transposed_quotients, (v / 64, (x / 64, y), divisors), order=2, atol=1e-3, rtol=1e-3)
