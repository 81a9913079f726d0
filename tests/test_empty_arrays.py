"""Matrices without rows or columns, and stacks without matrices. The oracle is NumPy."""

import math

import jax
import numpy as np
import pytest
from support import dense

import structarrays as sa

EMPTY = {
    "Dense": lambda m, n: sa.zeros((m, n)),
    "Fill": lambda m, n: sa.Fill(1.0, (m, n)),
    "Diagonal": lambda m, n: sa.Diagonal(np.zeros(min(m, n)), shape=(m, n)),
    "LowRank": lambda m, n: sa.LowRank(np.ones((m, 1)), np.ones((n, 1))),
    "complex": lambda m, n: sa.zeros((m, n), dtype=sa.complex64),
    "stack": lambda m, n: sa.zeros((2, m, n), dtype=sa.float32),
}


@pytest.mark.each_parameter
@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0)])
@pytest.mark.parametrize("name", EMPTY)
def test_matrix_norms(name, shape):
    """The largest of no numbers is zero; the smallest is not defined."""
    x = EMPTY[name](*shape)
    for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        for keepdims in (False, True):
            try:
                expected = np.linalg.matrix_norm(np.asarray(x.to_jax()), ord=order, keepdims=keepdims)
            except ValueError:
                with pytest.raises(ValueError, match=rf"linalg.matrix_norm: x must have elements for ord={order}"):
                    sa.linalg.matrix_norm(x, ord=order, keepdims=keepdims)
                continue
            found = sa.linalg.matrix_norm(x, ord=order, keepdims=keepdims)
            np.testing.assert_array_equal(dense(found), expected)
            assert found.dtype == expected.dtype
            assert found.shape == expected.shape


def stacks():
    """Stacks of no matrices with six rows."""
    factors = np.ones((0, 2, 2)), np.ones((0, 3, 3))
    blocks = [np.ones((0, 3 - abs(k), 2, 2)) for k in (-1, 0, 1)]
    return {
        "Kronecker": sa.Kronecker(*factors),
        "KroneckerSum": sa.KroneckerSum(*factors),
        "circulant factors": sa.Kronecker(sa.Circulant(np.ones((0, 2))), sa.Circulant(np.ones((0, 3)))),
        "BlockBanded": sa.BlockBanded(blocks, (-1, 0, 1)),
        "Banded": sa.tridiagonal(np.ones((0, 5)), np.ones((0, 6)), np.ones((0, 5))),
        "Sparse": sa.Sparse(np.ones((0, 2)), (np.array([0, 1]), np.array([1, 0])), (6, 6)),
        "Dense": sa.ones((0, 6, 6)),
    }


@pytest.mark.each_parameter
@pytest.mark.parametrize("name", stacks())
def test_stacks_without_matrices(name):
    """Shapes of results, eager and compiled."""
    x, b = stacks()[name], sa.ones((0, 6, 2))
    shapes = {
        "lu": [(0, 6, 6)] * 3,
        "lu_factor": [(0, 6, 6), (0, 6)],
        "qr": [(0, 6, 6)] * 2,
        "slogdet": [(0,)] * 2,
        "solve": [(0, 6, 2)],
        "inv": [(0, 6, 6)],
        "fft": [(0, 6, 6)],
        "sum": [(6, 6)],
        "vmap": [(0, 6, 2)],
    }
    functions = {
        "solve": lambda x: sa.linalg.solve(x, b),
        "fft": sa.fft.fft,
        "sum": lambda x: sa.sum(x, axis=0),
        "vmap": jax.vmap(lambda x: x @ sa.ones((6, 2))),
    }
    for function, expected in shapes.items():
        run = functions.get(function) or getattr(sa.linalg, function)
        for call in (run, jax.jit(run)):
            result = call(x)
            parts = result if isinstance(result, tuple) else (result,)
            assert [part.shape for part in parts] == expected, function
