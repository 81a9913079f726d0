"""Least squares with matrices that have a null space: the default tolerance finds the solution of least norm.

Rounding errors turn singular values that are zero into values of up to two ``eps``. A smaller tolerance returns solutions of size 1e15.
"""

import jax
import numpy as np
import pytest
from support import dense

import structarrays as sa


def differences(n):
    """First differences, above two rows of zeros."""
    return np.vstack([np.diff(np.eye(n), axis=0), np.zeros((2, n))])


def laplacian(n):
    return np.diag(np.r_[1, np.full(n - 2, 2), 1]) - np.eye(n, k=1) - np.eye(n, k=-1)


def ring(n):
    return 2 * np.eye(n) - np.roll(np.eye(n), 1, 0) - np.roll(np.eye(n), -1, 0)


def groups(n):
    """Indicators of groups, and an intercept, which is their sum."""
    rows = np.arange(2 * n)
    a = np.zeros((2 * n, n + 1))
    a[rows, rows % n] = 1
    a[:, n] = 1
    return a


def repeated(n):
    a = np.random.default_rng(n).normal(size=(n + 5, n))
    a[:, -1] = a[:, 0]
    return a


def smooth(n):
    """Squared-exponential kernels: the rank is far below n, since small singular values are cut off."""
    t, c = np.linspace(0, 1, n + 3)[:, None], np.linspace(0, 1, n)[None]
    u, s, vh = np.linalg.svd(np.exp(-20 * (t - c) ** 2), full_matrices=False)
    return (u[:, s > 1e-3] * s[s > 1e-3]) @ vh[s > 1e-3]


MATRICES = (differences, laplacian, ring, groups, repeated, smooth)


def band(a, *offsets):
    return sa.Banded([np.diagonal(a, k) for k in offsets], offsets, a.shape)


STRUCTURES = {
    **{f"Dense, {f.__name__}": lambda n, f=f: sa.asarray(f(n)) for f in MATRICES},
    "Banded, tall": lambda n: band(differences(n), 0, 1),
    "Banded, wide": lambda n: band(differences(n).T, -1, 0),
    "Banded, square": lambda n: band(laplacian(n), -1, 0, 1),
    "PeriodicBanded": lambda n: sa.PeriodicBanded([np.full(n, -1.0), np.full(n, 2.0), np.full(n, -1.0)], (-1, 0, 1)),
    "Circulant": lambda n: sa.Circulant(ring(n)[:, 0]),
    "Symmetric": lambda n: sa.Symmetric(laplacian(n)),
    "Sparse, groups": lambda n: sa.Sparse.from_dense(groups(n)),
    "Sparse, graph": lambda n: sa.Sparse.from_dense(laplacian(n)),
    "Kronecker": lambda n: sa.Kronecker(laplacian(n // 10), repeated(6)),
    "KroneckerSum": lambda n: sa.KroneckerSum(laplacian(n // 10), ring(6)),
    "BlockDiagonal": lambda n: sa.BlockDiagonal([laplacian(n // 2), differences(n // 2)]),
    "Block": lambda n: sa.Block([[band(laplacian(n), -1, 0, 1)], [sa.Fill(1.0, (3, n)) - sa.Fill(1.0, (3, n))]]),
    "LowRank": lambda n: sa.LowRank(repeated(n)[:, [0, 1, -1]], repeated(n)[:, [0, 1, -1]]),
    "Toeplitz": lambda n: sa.Toeplitz(np.cos(np.arange(n))),
    "Product": lambda n: sa.Product(
        sa.Sparse.from_dense(differences(n)), sa.Sparse.from_dense(laplacian(n) + np.eye(n))
    ),
    "Sum": lambda n: (
        sa.Diagonal(np.r_[np.ones(n - 1), 0.0]) + sa.LowRank(np.r_[np.ones(n - 1), 0.0][:, None], np.ones((n, 1)))
    ),
}
"""Functions of a size."""


@pytest.mark.each_parameter
@pytest.mark.parametrize("kind", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_solutions_of_least_norm(structure, kind, rng):
    n = 60 if kind == "float32" else 200
    x = STRUCTURES[structure](n)
    a = dense(x)
    values = np.linalg.svd(a, compute_uv=False)
    rank = int(np.sum(values > 1e-9 * values[0]))
    assert rank < min(a.shape)
    x = x.astype(kind)
    if kind == "complex128":
        x, a = (2 - 1j) * x, (2 - 1j) * a
    b = rng.normal(size=a.shape[0])
    expected = np.linalg.pinv(a, rcond=1e-9) @ b
    size = np.max(np.abs(expected)) + np.linalg.norm(b) / values[rank - 1]
    tolerance = 100 * np.finfo(kind).eps * values[0] / values[rank - 1]
    assert tolerance < 0.1
    for solve in (sa.linalg.lstsq, jax.jit(sa.linalg.lstsq)):
        found = solve(x, sa.asarray(b).astype(kind))
        assert int(found.rank) == rank
        assert np.max(np.abs(dense(found.x) - expected)) <= tolerance * size
