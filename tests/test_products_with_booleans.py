"""Products of booleans with NaN and infinity: False counts as the number zero, as in NumPy.

XLA turns a product with a converted boolean into a choice between the other factor and zero (docs/design/jax_bugs.md).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import dense

import structarrays as sa

N = 4
FULL = np.ones((N, N), bool)
VALUES = np.array([np.nan, np.inf, -np.inf, 2.0])


def structures():
    """A boolean array, the same structure of numbers, and where they store an element."""
    booleans = np.array([False, True, False, False])
    yield sa.asarray(np.tile(booleans, (N, 1))), sa.asarray(np.tile(VALUES, (N, 1))), FULL
    yield sa.full((N, N), False), sa.full((N, N), np.inf), FULL
    for make in (sa.Diagonal, lambda v: sa.Banded([v[:3], v, v[1:]], (-1, 0, 1), (N, N))):
        yield make(booleans), make(VALUES), dense(make(np.ones(N))) != 0
    for make in (sa.Circulant, sa.Toeplitz, lambda v: sa.Hankel(v, v[::-1])):
        yield make(booleans & (np.arange(N) > 0)), make(np.array([np.inf, np.nan, -np.inf, np.inf])), FULL
    square = np.tile(booleans, (N, 1)), np.tile(VALUES, (N, 1))
    for make, mask in ((sa.Symmetric, FULL), (sa.Triangular, np.tri(N, dtype=bool))):
        yield *map(make, square), mask
    mask = np.eye(N, k=1, dtype=bool)
    rows, columns = mask.nonzero()
    yield *(sa.Sparse(v[:3], (rows, columns), (N, N)) for v in (booleans, VALUES)), mask


CASES = {type(x).__name__: case for case in structures() for x in case[1:2]}
DTYPES = ["float32", "float64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("structure", CASES)
def test_elementwise_products(structure, dtype):
    x, y, mask = CASES[structure]
    y = sa.astype(y, getattr(sa, dtype))
    a, b = dense(x), dense(y)
    with np.errstate(all="ignore"):
        expected = np.where(mask, a.astype(dtype) * b, 0)
    assert np.isnan(expected).any()
    for f in (lambda x, y: x * y, lambda x, y: y * x, lambda x, y: sa.astype(x, y.dtype) * y):
        for run in (f, jax.jit(f)):
            np.testing.assert_array_equal(np.isnan(dense(run(x, y))), np.isnan(expected))
            if dtype != "complex128":  # JAX and NumPy differ in infinite parts of products
                np.testing.assert_array_equal(dense(run(x, y)), expected)


@pytest.mark.parametrize("structure", CASES)
def test_sums_of_products(structure):
    x, _, mask = CASES[structure]
    v = np.array([np.nan, 1.0, np.inf, 2.0])
    a = dense(x)
    with np.errstate(all="ignore"):
        terms = np.where(mask, a * v, 0)
        expected = terms.sum(-1)
    for f in (
        lambda x, v: sa.astype(x, v.dtype) @ v,
        lambda x, v: sa.sum(x * v, axis=-1),
    ):
        for run in (f, jax.jit(f)):
            np.testing.assert_array_equal(dense(run(x, sa.asarray(v))), expected)


@pytest.mark.parametrize("function", ["outer", "vecdot", "tensordot"])
def test_products_of_vectors(function):
    a = np.array([False, True, False, False])
    oracle, options = (
        (np.outer, {}) if function == "outer" else (np.dot, {"axes": 1} if function == "tensordot" else {})
    )
    with np.errstate(all="ignore"):
        expected = oracle(a, VALUES)

    def product(x, y):
        return getattr(sa.linalg, function)(sa.astype(x, y.dtype), y, **options)

    for run in (product, jax.jit(product)):
        np.testing.assert_array_equal(dense(run(sa.asarray(a), sa.asarray(VALUES))), expected)


def test_plain_jax_differs():
    """If this fails, XLA is mended: the conversion of booleans can be JAX's, and the page of JAX's bugs says so."""
    assert jnp.all(jnp.full(3, jnp.inf) * jnp.zeros(3, bool) == 0)
