"""Reading elements from whole columns, and products of factors with special values, in blocks of columns."""

import functools

import jax
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays._core.families import entries
from structarrays._functions import linear_algebra

N = 40


@pytest.fixture
def few_at_a_time(monkeypatch):
    """Three columns in a block."""
    monkeypatch.setattr(entries, "_NUMBERS", 3 * N)
    monkeypatch.setattr(linear_algebra, "_MANY", 3 * N)
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.parametrize("batch", [(), (2,)])
def test_elements_of_an_inverse(few_at_a_time, batch, rng):
    diagonals = [rng.normal(size=(*batch, N - abs(k))) + 5 * (k == 0) for k in (-1, 0, 1)]
    x = sa.Inverse(sa.Banded(diagonals, (-1, 0, 1), (N, N)))
    expected = np.linalg.inv(as_jax(x.a.to_dense()))
    for offset in (-3, 0, 1):
        found = sa.linalg.diagonal(x, offset=offset)
        np.testing.assert_allclose(found, expected.diagonal(offset, -2, -1), rtol=1e-12, atol=1e-15)
    blocks = sa.BlockDiagonal(np.ones((8, 5, 5)))
    pattern = np.kron(np.eye(8), np.ones((5, 5)))
    np.testing.assert_allclose((blocks * x).to_dense(), pattern * expected, rtol=1e-12, atol=1e-15)
    rows, columns = rng.integers(0, N, (7, 1)), rng.integers(0, N, 9)
    np.testing.assert_allclose(x[..., sa.asarray(rows), sa.asarray(columns)], expected[..., rows, columns], rtol=1e-12)


def test_derivative_of_a_trace(few_at_a_time, rng):
    main = rng.normal(size=N) + 6
    off = np.ones(N - 1)

    @jax.grad
    def gradient(main):
        return as_jax(sa.linalg.trace(sa.Inverse(sa.tridiagonal(off, main, off))))

    inverse = np.linalg.inv(np.diag(main) + np.diag(off, 1) + np.diag(off, -1))
    np.testing.assert_allclose(gradient(main), -(inverse @ inverse).diagonal(), rtol=1e-11)


def test_elements_of_reflectors(few_at_a_time, rng):
    q, _ = sa.linalg.qr(sa.tridiagonal(rng.normal(size=N - 1), rng.normal(size=N), rng.normal(size=N - 1)))
    assert type(q) is sa.Householder
    np.testing.assert_allclose(sa.linalg.diagonal(q), np.diagonal(as_jax(q.to_dense())), rtol=1e-12, atol=1e-14)


def absorbing(zeros, first, second):
    """The product without the terms at structural zeros of one factor."""
    terms = np.where(zeros, 0.0, first[:, :, None] * second[None])
    return functools.reduce(np.add, np.moveaxis(terms, 1, 0))


@pytest.mark.parametrize("structure", ["Toeplitz", "Hankel"])
def test_zeros_absorb_in_blocks(few_at_a_time, structure, rng):
    line = rng.normal(size=N)
    line[5], line[9] = np.inf, np.nan
    full = getattr(sa, structure)(line, np.r_[line[0] if structure == "Toeplitz" else line[-1], rng.normal(size=N - 1)])
    blocks = sa.BlockDiagonal(rng.normal(size=(10, 4, 4)))
    stored = np.kron(np.eye(10), np.ones((4, 4))) > 0
    dense, other = np.asarray(full.to_dense()), np.asarray(blocks.to_dense())
    np.testing.assert_allclose((blocks @ full).to_dense(), absorbing(~stored[:, :, None], other, dense), rtol=1e-10)
    np.testing.assert_allclose((full @ blocks).to_dense(), absorbing(~stored[None], dense, other), rtol=1e-10)


def test_repeated_differences_stay_sparse(rng):
    n = 500
    dense = np.where(rng.uniform(size=(n, n)) < 0.004, rng.normal(size=(n, n)), 0)
    x = sa.Sparse.from_dense(dense)
    with sa.densify("error"):
        result = sa.diff(x, n=6, axis=0)
        with pytest.raises(sa.DensifyError, match="diff would expand Sparse"):
            jax.jit(lambda x: sa.diff(x, n=9, axis=0))(x)
    assert type(result) is sa.Sparse and result.nnz <= 7 * x.nnz
    np.testing.assert_allclose(result.to_dense(), np.diff(dense, n=6, axis=0), rtol=1e-12)
