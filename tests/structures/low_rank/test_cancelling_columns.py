"""Low-rank matrices whose columns cancel: their singular values are rounding errors of the factors."""

import jax
import numpy as np
import pytest
from support import as_jax

import structarrays as sa

COLUMNS = {
    "constant": lambda n: np.ones((n, 1)),
    "thirds": lambda n: np.full((n, 1), 1 / 3),
    "smooth": lambda n: np.exp(-np.linspace(0, 3, n))[:, None],
    "alternating": lambda n: np.resize([1.0, -1.0], n)[:, None],
    "unit": lambda n: np.eye(n)[:, :1],
    "two": lambda n: np.stack([np.ones(n), np.linspace(0, 1, n)], axis=1),
}


SCALES = {"float32": 1e15, "float64": 1e150, "complex128": 1e150}  # squares overflow


def cancelling(name, n, dtype, scale):
    """A matrix minus itself, and a matrix of rank one, the square of whose norm is representable."""
    u = (COLUMNS[name](n) * scale).astype(dtype)
    v = (np.linspace(1, 2, n)[:, None] * np.ones(u.shape[1]) / scale).astype(dtype)
    return sa.LowRank(np.hstack([u, u]), np.hstack([v, -v])), sa.LowRank(u[:, :1], v[:, :1])


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("n", [7, 300, 20_000])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_difference_of_equal_matrices(name, n, dtype, scaled):
    """Singular values of 1e-17 have reciprocals of 1e17."""
    zero, one = cancelling(name, n, dtype, SCALES[dtype] if scaled else 1)
    b = np.ones(n, dtype)
    for compiled in (False, True):
        evaluated = jax.jit if compiled else lambda function: function
        assert int(evaluated(sa.linalg.matrix_rank)(zero)) == 0
        assert int(evaluated(sa.linalg.matrix_rank)(one)) == 1
        factors = evaluated(sa.linalg.pinv)(zero)
        np.testing.assert_array_equal(as_jax(factors @ b), np.zeros(n))
        x, _, rank, _ = evaluated(sa.linalg.lstsq)(zero, b)
        np.testing.assert_array_equal(as_jax(x), np.zeros(n))
        assert int(rank) == 0


@pytest.mark.parametrize("name", COLUMNS)
def test_what_is_left(name):
    """The rest of a difference of large matrices, against its own pseudo-inverse."""
    n = 50
    zero, _ = cancelling(name, n, "float64", 1e3)
    rest = np.sin(np.arange(n) + 1.0)[:, None]
    x = zero + sa.LowRank(rest, rest)
    assert int(sa.linalg.matrix_rank(x)) == 1
    expected = rest @ rest.T / np.sum(rest**2) ** 2
    np.testing.assert_allclose(as_jax(sa.linalg.pinv(x).to_dense()), expected, atol=1e-9)
    np.testing.assert_allclose(as_jax(sa.linalg.lstsq(x, np.ones(n))[0]), expected @ np.ones(n), atol=1e-8)


def test_columns_of_different_sizes():
    """Orthogonal columns do not cancel: each singular value counts, however small the tolerance."""
    u = np.eye(20)[:, :3] * np.array([1.0, 1e-6, 1e-12])
    x = sa.LowRank(u, np.eye(20)[:, :3])
    assert int(sa.linalg.matrix_rank(x)) == 3
    np.testing.assert_allclose(np.diag(as_jax(sa.linalg.pinv(x).to_dense()))[:3], [1, 1e6, 1e12], rtol=1e-12)
