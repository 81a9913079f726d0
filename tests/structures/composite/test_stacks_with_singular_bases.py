"""Determinants of stacks of updated matrices, where the base of one matrix is singular: the others keep their values."""

import jax
import numpy as np
import pytest
import scipy.linalg

import structarrays as sa

N = 36  # above the limit for the dense form in compiled code


def pairs(good, bad, make, dense):
    """A stack of two matrices, and their dense forms."""
    return make(*(np.stack(part) for part in zip(good, bad, strict=True))), np.stack([dense(*good), dense(*bad)])


def tridiagonal(lower, main, upper):
    return np.diag(lower, -1) + np.diag(main) + np.diag(upper, 1)


def bases(rng):
    def number(*shape):
        return rng.normal(size=shape)

    shift = np.zeros(N - 1), np.zeros(N), number(N - 1)  # a Jordan block
    blocks, singular = number(N // 2, 2, 2), number(N // 2, 2, 2)
    singular[3] = 1
    return {
        "Tridiagonal": pairs((number(N - 1), 3 + number(N), number(N - 1)), shift, sa.tridiagonal, tridiagonal),
        "Diagonal": pairs((number(N),), (np.r_[0.0, 0.0, np.ones(N - 2)],), sa.Diagonal, np.diag),
        "BlockDiagonal": pairs(
            (blocks,), (singular,), sa.BlockDiagonal, lambda blocks: scipy.linalg.block_diag(*blocks)
        ),
        "BlockDiagonal, zero": pairs(
            (blocks,), (0 * blocks,), sa.BlockDiagonal, lambda blocks: scipy.linalg.block_diag(*blocks)
        ),
        "Circulant": pairs((number(N),), (np.ones(N),), sa.Circulant, scipy.linalg.circulant),
        "Toeplitz": pairs((4 * 0.5 ** np.arange(N),), (np.ones(N),), sa.Toeplitz, scipy.linalg.toeplitz),
        "Triangular": pairs(
            (np.tril(number(N, N)) / N + np.eye(N),), (np.tril(number(N, N), -1),), sa.Triangular, np.tril
        ),
        "Kronecker": pairs((number(6, 6), number(6, 6)), (np.ones((6, 6)), np.ones((6, 6))), sa.Kronecker, np.kron),
    }


@pytest.mark.parametrize("name", bases(np.random.default_rng(0)))
@pytest.mark.parametrize("way", [jax.jit, lambda f: jax.jit(jax.vmap(f))], ids=["compiled", "mapped"])
def test_regular_matrices_keep_their_determinants(name, way, rng):
    base, dense = bases(rng)[name]
    u = rng.normal(size=(2, N, 2))
    update = sa.LowRank(u, u)
    sign, logabsdet = np.linalg.slogdet(dense + u @ u.swapaxes(-1, -2))
    found = way(lambda x: tuple(sa.linalg.slogdet(x)))(base + update)
    determinant = way(sa.linalg.det)(base + update)
    condition = np.linalg.cond(dense + u @ u.swapaxes(-1, -2))
    assert condition[0] < 1e6
    for part, expected in ((found[0], sign), (found[1], logabsdet), (np.log(np.abs(determinant)), logabsdet)):
        np.testing.assert_allclose(np.asarray(part)[0], expected[0], rtol=1e-8, atol=1e-8)
        # The second matrix may be singular, or lose its digits: then it is NaN, or near the number of LAPACK.
        other = np.asarray(part)[1]
        if condition[1] < 1e6:
            assert np.isnan(other) or abs(other - expected[1]) < 1e-8 * max(1, abs(expected[1]))
