"""Products of all elements of matrices with structural zeros are zero, although the product of the stored entries overflows."""

import jax
import numpy as np
import pytest
from support import dense

import structarrays as sa

N = 50
LARGE = np.full(N, 90.0, np.float32)
TRIANGLE = np.full((N, N), 90.0, np.float32)
PLACES = np.arange(N)

MATRICES = {
    "diagonal": lambda: sa.Diagonal(LARGE),
    "banded": lambda: sa.Banded([LARGE, LARGE[1:]], (0, 1)),
    "periodic": lambda: sa.PeriodicBanded([LARGE, LARGE], (0, 1)),
    "sparse": lambda: sa.Sparse(LARGE, (PLACES, PLACES), (N, N)),
    "padded": lambda: sa.Sparse.from_dense(np.diag(LARGE), nnz=N + 3),
    "blocks": lambda: sa.BlockDiagonal(np.full((N // 5, 5, 5), 90.0, np.float32)),
    "lower": lambda: sa.Triangular(TRIANGLE),
    "upper": lambda: sa.Triangular(TRIANGLE, lower=False),
}


@pytest.mark.parametrize("name", MATRICES)
def test_products_do_not_overflow_before_a_zero(name):
    x = MATRICES[name]()
    assert dense(sa.prod(x)) == 0
    assert dense(jax.jit(sa.prod)(x)) == 0
    assert dense(sa.prod(-x)) == 0
    slopes = jax.grad(lambda x: sa.prod(x).to_jax())(x)
    assert all(np.all(np.asarray(leaf) == 0) for leaf in jax.tree.leaves(slopes) if leaf.dtype.kind == "f")


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (1, 4), (4, 1)], ids=str)
def test_rows_and_columns_of_triangles(lower, shape):
    large, ones = np.full(shape, 1e200), np.ones(shape)
    keep = np.tril if lower else np.triu
    zeros, counts = keep(ones) == 0, keep(ones)
    for axis in (0, 1):
        found = dense(sa.prod(sa.Triangular(large, lower=lower), axis=axis))
        entries = counts.sum(axis)
        expected = np.where(zeros.any(axis), 0, np.where(entries == 1, 1e200, np.inf))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("name", MATRICES)
def test_zero_times_infinity_is_undefined(name, value):
    x = MATRICES[name]()
    x[0, 0] = value
    assert np.isnan(dense(sa.prod(x)))
