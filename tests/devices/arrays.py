"""Arrays of many structures, and the mesh that they are divided on."""

import contextlib
from contextvars import ContextVar

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import structarrays as sa

N = 64


KINDS = {"auto": (AxisType.Auto, False), "explicit": (AxisType.Explicit, False), "set": (AxisType.Explicit, True)}
"""Of a mesh: the type of its axes, and whether it is the mesh of `jax.set_mesh`."""

_kind = ContextVar("kind", default="auto")


@contextlib.contextmanager
def meshes(kind: str):
    """Within it the meshes are of this kind."""
    token = _kind.set(kind)
    try:
        with jax.set_mesh(mesh()) if KINDS[kind][1] else contextlib.nullcontext():
            yield
    finally:
        _kind.reset(token)


def explicit() -> bool:
    """Whether the axes of the meshes are explicit."""
    return KINDS[_kind.get()][0] == AxisType.Explicit


def mesh(shape=None, names=("rows",)):
    """All devices in one row, or in a grid."""
    shape = (jax.device_count(),) if shape is None else shape
    return jax.make_mesh(shape, names) if explicit() else jax.make_mesh(shape, names, (AxisType.Auto,) * len(names))


def sharding(*spec):
    """That of an array whose dimensions are divided along these axes of the mesh."""
    return NamedSharding(mesh(), PartitionSpec(*spec))


def structures(n: int = N, seed: int = 0) -> dict:
    """Well-conditioned square matrices of `n` rows, a multiple of 64."""
    rng = np.random.default_rng(seed)
    k = 8
    small = rng.normal(size=(k, k)) / k + 2 * np.eye(k)
    row = np.where(np.arange(n) < 5, rng.normal(size=n), 0)

    def banded(n, width):
        diagonals = [rng.normal(size=n - abs(j)) / (2 * width + 1) + 2 * (j == 0) for j in range(-width, width + 1)]
        return sa.Banded(diagonals, range(-width, width + 1), (n, n))

    def blocks(count, b):
        return rng.normal(size=(count, b, b)) / (4 * b) + 2 * np.eye(b)

    low_rank = sa.LowRank(rng.normal(size=(n, 3)) / n, rng.normal(size=(n, 3)))
    entries = np.where(rng.random((n, n)) < 4 / n, rng.normal(size=(n, n)) / 4, 0) + 2 * np.eye(n)
    off, main, b = blocks(n // 4 - 1, 4) / 8, blocks(n // 4, 4), banded(n, 2)
    return {
        "Dense": sa.asarray(rng.normal(size=(n, n)) / n + 2 * np.eye(n)),
        "Identity": 3.0 * sa.eye(n),
        "Diagonal": sa.Diagonal(rng.uniform(1, 2, n)),
        "Banded": b,
        "Banded + background": sa.exp(b),
        "Symmetric": sa.Symmetric(rng.normal(size=(n, n)) / n + 2 * np.eye(n)),
        "Triangular": sa.Triangular(rng.normal(size=(n, n)) / n + 2 * np.eye(n), lower=True),
        "Toeplitz": sa.Toeplitz(row + 4 * (np.arange(n) == 0), row[::-1] / 8 + 4 * (np.arange(n) == 0)),
        "Circulant": sa.Circulant(row + 4 * (np.arange(n) == 0)),
        "Permutation": sa.Permutation(rng.permutation(n)),
        "BlockDiagonal": sa.BlockDiagonal(main),
        "BlockBanded": sa.BlockBanded([off, main, off], (-1, 0, 1)),
        "Sparse": sa.Sparse.from_dense(entries),
        "LowRank": low_rank,
        "Kronecker": sa.Kronecker(small, banded(n // k, 1)),
        "KroneckerSum": sa.KroneckerSum(small, banded(n // k, 1)),
        "Sum": b + low_rank,
        "Product": sa.Kronecker(small, blocks(1, n // k)[0]) @ b,
        "Inverse": sa.Inverse(b),
        "Block": sa.Block([[banded(n // 2, 1), sa.eye(n // 2)], [sa.zeros((n // 2, n // 2)), banded(n // 2, 2)]]),
    }
