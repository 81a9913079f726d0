"""Random block-diagonal and block-banded arrays, for the equivalence tests."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from .._structures.blocks.block_banded import BlockBanded
from .._structures.blocks.block_diagonal import BlockDiagonal
from .arrays import SAMPLERS, dominant, sampler, with_background

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core.typing import Shape
    from .arrays import Numbers


def _pieces(size: int, lengths: Sequence[int]) -> list[int]:
    """Divide a size into pieces of these lengths in turn. The last piece may be shorter."""
    pieces: list[int] = []
    for length in itertools.cycle(lengths):
        if size <= 0:
            return pieces
        pieces.append(min(length, size))
        size -= length
    return pieces


@sampler("BlockDiagonal")
def _draw_block_diagonal(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> BlockDiagonal:
    """Draw 2 × 2 blocks; for a rectangular matrix, blocks of several shapes, some without rows or columns."""
    m, n = core
    if requires:
        return BlockDiagonal([dominant(numbers, batch, size, requires) for size in _pieces(n, (2,))])
    heights, widths = _pieces(m, (2,)), _pieces(n, (2,))
    pairs = list(itertools.zip_longest(heights, widths, fillvalue=0)) or [(0, 0)]
    return BlockDiagonal([numbers((*batch, h, w)) for h, w in pairs])


@sampler("BlockDiagonal, ragged")
def _draw_block_diagonal_ragged(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> BlockDiagonal:
    """Draw square blocks of 1, 2 and 3 rows, and a last block for the remainder of a rectangular matrix."""
    m, n = core
    sizes = _pieces(min(m, n), (1, 2, 3)) or [0]
    if requires:
        return BlockDiagonal([dominant(numbers, batch, size, requires) for size in sizes])
    blocks = [numbers((*batch, size, size)) for size in sizes[:-1]]
    return BlockDiagonal([*blocks, numbers((*batch, sizes[-1] + max(0, m - n), sizes[-1] + max(0, n - m)))])


@sampler("BlockBanded")
def _draw_block_banded(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> BlockBanded | None:
    """Draw 1 × 1, 2 × 2, 1 × 2 … blocks with block offsets -1, 0 and 2, or -1, 0 and 1 for Hermitian matrices."""
    m, n = core
    block = (1 if m % 2 else 2, 1 if n % 2 else 2)
    if requires and block[0] != block[1]:
        return None
    grid = (m // block[0], n // block[1])
    offsets = [k for k in ((-1, 0, 1) if requires else (-1, 0, 2)) if -grid[0] < k < grid[1]]
    if not offsets:  # no rows or no columns, where a block diagonal would lie outside
        return None
    blocks = {k: numbers((*batch, min(grid[0], grid[1] - k) - max(0, -k), *block)) for k in offsets}
    if requires:
        for k in offsets:
            blocks[k] = blocks[k] / (2 * n)
        if requires != "invertible":
            blocks[0] = (blocks[0] + blocks[0].conj().swapaxes(-1, -2)) / 2
        if requires != "invertible" and 1 in offsets:
            blocks[-1] = blocks[1].conj().swapaxes(-1, -2)
        if requires != "hermitian":
            blocks[0] = blocks[0] + (numbers.high + 1) * np.eye(block[0])
    values = [np.asarray(blocks[k], numbers.dtype) for k in offsets]
    return BlockBanded([jnp.asarray(v) for v in values], offsets, core)


for _structure in ("BlockDiagonal", "BlockBanded"):
    SAMPLERS[f"{_structure} + background"] = with_background(_structure)
