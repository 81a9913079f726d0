"""`explain` of a system says what is done, why, and what it costs, for every structure that has a solver."""

import re

import numpy as np
import pytest

import structarrays as sa

N = 400
ONE = np.ones(N - 1)
TRIDIAGONAL = sa.tridiagonal(-ONE, np.full(N, 3.0), -ONE)
PENTADIAGONAL = sa.Banded([np.ones(N - abs(k)) for k in (-2, 0, 2)], (-2, 0, 2), (N, N))
DECAY = 0.5 ** np.arange(N)
LOW_RANK = sa.LowRank(np.ones((N, 2)), np.ones((N, 2)))
SYMMETRIC = sa.Symmetric(np.eye(20))
PARTS = {
    "Identity": (sa.Identity(N), "a division"),
    "Diagonal": (sa.Diagonal(np.ones(N)), "a division"),
    "tridiagonal": (TRIDIAGONAL, "tridiagonal elimination with partial pivoting"),
    "tridiagonal, definite": (sa.assume(TRIDIAGONAL, "positive_definite"), "LDL\\^H"),
    "banded": (PENTADIAGONAL, "without pivots if stable"),
    "banded, triangular": (sa.Banded([np.ones(N), ONE], (0, 1), (N, N)), "substitution"),
    "Triangular": (sa.Triangular(np.eye(N)), "substitution"),
    "Symmetric": (sa.Symmetric(np.eye(N)), "the dense form"),
    "Dense": (sa.asarray(np.eye(N)), "LU"),
    "Dense, definite": (sa.assume(sa.asarray(np.eye(N)), "positive_definite"), "Cholesky"),
    "BlockDiagonal": (sa.BlockDiagonal(np.ones((N // 4, 4, 4))), "each block"),
    "BlockBanded": (sa.block_tridiagonal(*(np.ones((k, 2, 2)) for k in (199, 200, 199))), "the banded form"),
    "BlockBanded, larger blocks": (
        sa.block_tridiagonal(*(np.ones((k, 25, 25)) for k in (79, 80, 79))),
        "block elimination with pivots from the diagonal blocks",
    ),
    "BlockBanded, far from the diagonal": (
        sa.BlockBanded([np.ones((k, 10, 10)) for k in (90, 80)], (0, 10)),
        "the sparse form",
    ),
    "Sparse": (sa.Sparse(np.ones(N), (np.arange(N), np.arange(N)), (N, N)), "SuperLU"),
    "Toeplitz": (sa.Toeplitz(DECAY), "elimination with pivots after Fourier"),
    "Toeplitz, definite": (sa.assume(sa.Toeplitz(DECAY), "positive_definite"), "Levinson"),
    "Toeplitz, large": (sa.Toeplitz(0.5 ** np.arange(2000.0)), "conjugate gradients"),
    "Toeplitz, small": (sa.Toeplitz(np.arange(1.0, 9.0)), "the dense form"),
    "Toeplitz, triangular": (sa.tril(sa.Toeplitz(DECAY)), "substitution in blocks"),
    "Hankel": (sa.Hankel(DECAY), "in reverse"),
    "Circulant": (sa.Circulant(DECAY), "Fourier"),
    "Fourier": (sa.Fourier(N), "Fourier"),
    "Householder": (sa.linalg.qr(TRIDIAGONAL).Q, "the adjoint, reflector by reflector"),
    "Permutation": (sa.Permutation(np.arange(N)[::-1]), "a permutation of the rows"),
    "Kronecker": (sa.Kronecker(np.eye(20), np.eye(20)), "each factor"),
    "Kronecker + number": (sa.Kronecker(SYMMETRIC, SYMMETRIC) + 0.5 * sa.Identity(N), "eigenvectors"),
    "KroneckerSum": (sa.KroneckerSum(np.eye(20), np.eye(20)), "Schur"),
    "Sum": (TRIDIAGONAL + LOW_RANK, "Woodbury's formula with base Banded and an update of rank 2"),
    "Block": (sa.Block([[TRIDIAGONAL, sa.ones((N, 2))], [sa.ones((2, N)), None]]), "Schur complements"),
    "Product": (sa.Product(TRIDIAGONAL, sa.Triangular(np.eye(N))), "each factor"),
    "Inverse": (sa.Inverse(TRIDIAGONAL), "a product"),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_system_is_explained(name):
    x, words = PARTS[name]
    log = sa.explain(sa.linalg.solve, x, sa.ones(x.shape[-1], dtype=x.dtype))
    first = log.events[0]
    assert first.function == "linalg.solve"
    assert re.search(words, first.remark), first.remark
    assert f"linalg.solve({', '.join(first.operands)}): {first.remark}" in str(log).splitlines()
