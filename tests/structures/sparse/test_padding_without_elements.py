"""Sparse matrices without rows or columns whose stored entries are all padding, as loops with a fixed number of entries have them."""

import jax
import numpy as np
import pytest
from support import dense

import structarrays as sa

OPERATIONS = {
    "row": lambda xp, x: x * xp.ones(x.shape[-1]),
    "column": lambda xp, x: x * xp.ones((x.shape[-2], 1)),
    "array": lambda xp, x: x * xp.ones(x.shape),
    "quotient": lambda xp, x: x / xp.ones(x.shape[-1]),
    "choice": lambda xp, x: xp.where(xp.ones(x.shape[-1]) > 0, x, 0),
    "vector": lambda xp, x: x @ xp.ones(x.shape[-1]),
    "gram": lambda xp, x: xp.matrix_transpose(x) @ x,
    "sum": lambda xp, x: x + 2 * x,
    "rows": lambda xp, x: xp.sum(x, axis=-1),
}


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3), (2, 3, 0), (0, 2, 3)], ids=str)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_entries_that_are_all_padding(shape, operation):
    zeros = np.zeros(shape)
    call = OPERATIONS[operation]
    expected = call(np, zeros)
    x = sa.Sparse.from_dense(zeros, nnz=2)
    assert x.data.shape[-1] == 2
    for found in (call(sa, x), jax.jit(lambda x: call(sa, x))(x)):
        assert found.shape == expected.shape
        np.testing.assert_array_equal(dense(found), expected)
