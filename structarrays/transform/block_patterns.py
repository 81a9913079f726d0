"""Block matrices for linear maps whose pattern consists of square blocks, such as several variables at each grid point.

A block matrix stores fewer entries than the diagonals that its blocks reach. It is used where linear systems are also
solved faster (benchmarks/jacobians.py). The static pattern decides.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.flattening import as_indices, barred
from .._structures.banded.bandwidths import are_spread
from .._structures.blocks.block_banded import block_banded
from .._structures.blocks.block_diagonal import block_diagonal
from .._structures.sparse.solvers import FEW, SOLVED_AS_DENSE
from .linear_maps import Entries, LinearMap, canonical, take

if TYPE_CHECKING:
    from collections.abc import Collection

    from .._core.array.base import Array
    from .._core.typing import Shape

SMALLEST_ON_DIAGONAL = 8
"""The smallest blocks on the diagonal that are solved faster one by one than as a band."""

SMALLEST_TRIDIAGONAL = 32
SMALLEST_BIDIAGONAL = 48
"""The smallest blocks of a block-tridiagonal and of a block-bidiagonal matrix that are solved faster by blocks."""


def block_matrix(x: LinearMap, offsets: Collection[int], stored: int, count: int, shape: Shape) -> Array | None:
    """Return a map as a block matrix, or None if a banded matrix is cheaper.

    Parameters
    ----------
    x : LinearMap
        The map.
    offsets : collection of int
        The diagonals of its matrix that are not zero.
    stored : int
        The number of entries on these diagonals.
    count : int
        The number of entries of the pattern.
    shape : tuple of int
        The shape of the matrix.
    """
    n = shape[0]
    if n != shape[1] or 10 * stored <= 11 * count:
        return None
    # A full block b × b reaches 2 b - 1 adjacent diagonals.
    largest = (_shortest_run(sorted(offsets)) + 1) // 2
    sizes = [b for b in range(2, min(largest, n // 2) + 1) if n % b == 0]
    if not sizes:
        return None
    entries = canonical(x)
    best = min((_Blocks(entries, b) for b in sizes), key=lambda blocks: (blocks.stored, -blocks.size))
    if best.stored >= stored or 3 * best.stored > 4 * len(entries.rows) or not _is_faster(best, offsets):
        return None
    data = best.data(entries)
    if best.offsets == (0,):
        return block_diagonal([data[0]])
    return block_banded(data, (n // best.size,) * 2, (best.size,) * 2)


def _shortest_run(offsets: list[int]) -> int:
    """Return the length of the shortest run of adjacent integers."""
    # Adjacent integers have the same difference from their index.
    runs = itertools.groupby(enumerate(offsets), lambda pair: pair[1] - pair[0])
    return min(sum(1 for _ in run) for _, run in runs)


def _is_faster(blocks: _Blocks, offsets: Collection[int]) -> bool:
    """Return whether linear systems are solved faster by blocks than by diagonals."""
    if blocks.offsets == (0,):
        return blocks.size >= SMALLEST_ON_DIAGONAL
    n = blocks.count * blocks.size
    if n <= SOLVED_AS_DENSE:
        return False
    if max(map(abs, blocks.offsets)) == 1:
        both = {-1, 1} <= set(blocks.offsets)
        return blocks.size >= (SMALLEST_TRIDIAGONAL if both else SMALLEST_BIDIAGONAL)
    # Both are solved as sparse matrices, in which the zeros on the diagonals cause fill.
    is_sparse = are_spread(-min(offsets), max(offsets), len(offsets))
    return is_sparse and FEW * blocks.stored <= n * n


class _Blocks:
    """The blocks of one size that contain all entries of a square pattern.

    Attributes
    ----------
    size, count : int
        The number of rows of a block, and the number of block rows.
    offsets : tuple of int
        The block diagonals that are not zero.
    stored : int
        The number of entries on these.
    """

    def __init__(self, x: Entries, size: int) -> None:
        self.size, self.count = size, x.inputs // size
        self.distances = x.columns // size - x.rows // size
        self.offsets = tuple((np.flatnonzero(np.bincount(self.distances + self.count)) - self.count).tolist())
        self.stored = size * size * sum(self.count - abs(k) for k in self.offsets)

    def data(self, x: Entries) -> dict[int, jax.Array]:
        """Return the blocks ``(k, size, size)`` of each block diagonal."""
        size = self.size
        within = x.rows % size * size + x.columns % size
        data = {}
        for k in self.offsets:
            places = np.flatnonzero(self.distances == k)
            block, values = x.rows[places] // size - max(0, -k), take(x.data, places)
            shape = (self.count - abs(k), size, size)
            if len(places) < shape[0] * size * size:
                at = barred(as_indices(block * size * size + within[places]))
                zeros = jnp.zeros(shape[0] * size * size, x.dtype)
                values = zeros.at[at].set(values, unique_indices=True, indices_are_sorted=True)
            data[k] = values.reshape(shape)
        return data
