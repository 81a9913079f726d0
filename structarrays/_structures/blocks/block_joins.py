"""Common structures of a block-diagonal or block-banded matrix and another matrix: the union and the intersection of
their patterns.

Two block-diagonal matrices have a union with the finest blocks that contain both: it is cut where both are cut. A
banded matrix can be cut between two positions if it has no entry that crosses the cut. A diagonal matrix can be cut
everywhere.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from ..._core.array.dense import Dense
from ..._core.dispatch.registry import Registry
from ..._core.families.join import is_zero_outside, join, join_pair, meet_pair, restrict, restrict_to
from ..banded.array import Banded, bands, join_constant
from ..fill.array import Fill, fills_matrices
from .array import Blocks, diagonal_of
from .block_banded import BlockBanded, at_offsets, from_uniform, needed_offsets, without_values
from .block_diagonal import BlockDiagonal, cuts, is_uniform, regroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..._core.array.base import Array
    from ..._core.typing import Meta, Shape

on_grid: Registry[BlockBanded | None] = Registry("on_grid")
"""``on_grid.kernel(S)``: function ``(x, block)`` that converts an S to a `BlockBanded` with blocks of this shape, or
returns None if that does not save memory.
"""


def grid_form(x: Array, block: Sequence[int | None]) -> BlockBanded | None:
    """Convert an array to a `BlockBanded` with blocks of this shape. None if impossible, or if it would store most of
    the matrix.

    None for the height or the width of a block means the array's own blocks, otherwise square blocks.
    """
    return on_grid.required((x,)).run(x, tuple(block))


@on_grid.kernel(BlockBanded)
def _on_grid_block_banded(x: BlockBanded, block: Sequence[int | None]) -> BlockBanded | None:
    return x if _fits(x.block_shape, block) else None


@on_grid.kernel(BlockDiagonal)
def _on_grid_block_diagonal(x: BlockDiagonal, block: Sequence[int | None]) -> BlockBanded | None:
    if is_uniform(x) and _fits(x.meta[0][1:], block):
        return from_uniform(x)
    square = _square(block)
    if square is None or not _divides(square, x.core_shape):
        return None
    (m, n), (height, width) = x.core_shape, square
    if m // height != n // width:  # the last blocks have no rows, or no columns
        return None
    rows, columns = cuts(x)
    # The corners (t height, t width) of the blocks must be cuts, for all t.
    kept = np.flatnonzero((rows % height == 0) & (columns % width == 0) & (rows // height == columns // width))
    return from_uniform(regroup(x, kept)) if len(kept) == m // height + 1 else None


@on_grid.kernel(Banded)
def _on_grid_banded(x: Banded, block: Sequence[int | None]) -> BlockBanded | None:
    square = _square(block)
    if square is None or not _divides(square, x.core_shape):
        return None
    offsets = needed_offsets(x, square) or {0}
    if _mostly_full(offsets, x.core_shape, square):
        return None
    like = without_values(offsets, x.core_shape, square, x.dtype)
    return like.rebuild(restrict(x, like).entries, x.background)


def _fits(own: Sequence[int], block: Sequence[int | None]) -> bool:
    return all(b is None or b == o for o, b in zip(own, block, strict=True))


def _square(block: Sequence[int | None]) -> Shape | None:
    """Replace a missing size by the other one; None if both are missing."""
    known = [b for b in block if b is not None]
    return tuple(known * (3 - len(known)))[:2] if known else None


def _divides(block: Shape, shape: Shape) -> bool:
    return 0 not in (*block, *shape) and shape[0] % block[0] == 0 == shape[1] % block[1]


def _mostly_full(offsets: Iterable[int], shape: Shape, block: Shape) -> bool:
    """Return whether these block diagonals contain most of a matrix."""
    rows, columns = shape[0] // block[0], shape[1] // block[1]
    stored = sum(max(0, min(rows, columns - k) - max(0, -k)) for k in offsets)
    return 4 * stored > 3 * rows * columns


# ---- unions ----------------------------------------------------------------------------------------------------------


join_pair.kernel(Fill, Blocks, when=fills_matrices)(join_constant)


@join_pair.kernel(BlockDiagonal, BlockDiagonal)
def _join_pair_block_diagonal_block_diagonal(x: BlockDiagonal, y: BlockDiagonal) -> tuple[Array, Array]:
    (rows, columns), n = cuts(x), x.shape[-1] + 1
    other_rows, other_columns = cuts(y)
    _, kept, other_kept = np.intersect1d(
        rows * n + columns, other_rows * n + other_columns, assume_unique=True, return_indices=True
    )
    return (regroup(x, kept), regroup(y, other_kept)) if len(kept) > 2 else _both_dense(x, y)


@join_pair.kernel(BlockDiagonal, Banded)
def _join_pair_block_diagonal_banded(x: BlockDiagonal, y: Banded) -> tuple[Array, Array]:
    kept = _cuts_between(x.meta, y.offsets, y.core_shape)
    blocks = len(cuts(x)[0]) - 1
    if len(kept) <= blocks and is_uniform(x) and grid_form(y, x.meta[0][1:]) is not None:
        return join(from_uniform(x), y)
    if len(kept) == 2 < blocks + 1:
        return _both_dense(x, y)
    x = regroup(x, kept)
    return x, _at_pattern(y, x)


@functools.lru_cache(maxsize=256)
def _cuts_between(meta: Meta, offsets: tuple[int, ...], shape: tuple[int, int]) -> np.ndarray:
    """Return the cuts of a block-diagonal matrix that no diagonal with one of these offsets crosses."""
    rows, columns = cuts(BlockDiagonal.make((), meta))
    whole = np.ones(len(rows), bool)
    for k in offsets:
        # Entry i of the rows first, …, stop - 1 is (i, i + k). It crosses the cut if it lies above and to the right, or
        # below and to the left.
        first, stop = max(0, -k), min(shape[0], shape[1] - k)
        behind = np.maximum(first, columns - k) < np.minimum(stop, rows)
        before = np.maximum(first, rows) < np.minimum(stop, columns - k)
        whole &= ~(behind | before)
    return np.flatnonzero(whole)


@join_pair.kernel(BlockBanded, Banded)
@join_pair.kernel(BlockBanded, BlockBanded)
@join_pair.kernel(BlockBanded, BlockDiagonal)
def _join_pair_block_banded_banded(x: BlockBanded, y: Banded | BlockBanded | BlockDiagonal) -> tuple[Array, Array]:
    other = grid_form(y, x.block_shape)
    offsets = x.offsets if other is None else tuple(sorted({*x.offsets, *other.offsets}))
    if other is None or (len(offsets) > len(x.offsets) and _mostly_full(offsets, x.core_shape, x.block_shape)):
        return _both_dense(x, y)
    return at_offsets(x, offsets), at_offsets(other, offsets)


def _at_pattern(x: Banded, like: BlockDiagonal) -> BlockDiagonal:
    """Convert `x` to the structure of `like`, whose pattern contains the pattern of `x`."""
    return like.rebuild(restrict(x, like).entries, x.background)


def _both_dense(x: Array, y: Array) -> tuple[Dense, Dense]:
    return Dense.make((x.dense_data(),)), Dense.make((y.dense_data(),))


# ---- intersections and restrictions ----------------------------------------------------------------------------------


@meet_pair.kernel(Blocks, Banded)
@meet_pair.kernel(Blocks, Blocks)
def _meet_pair_blocks_banded(x: Blocks, y: Banded | Blocks) -> Array:
    """The intersection of both patterns, if both matrices are zero outside of their patterns."""
    return restrict(x, y) if is_zero_outside(y) and _stored(y) < _stored(x) else x


@meet_pair.kernel(BlockBanded, BlockBanded, when=lambda x, y: x.meta[1:3] == y.meta[1:3] and is_zero_outside(y))
def _meet_pair_block_banded_block_banded(x: BlockBanded, y: BlockBanded) -> Array:
    return at_offsets(x, tuple(k for k in x.offsets if k in y.offsets))


def _stored(x: Array) -> int:
    """The number of stored entries of one matrix."""
    return sum(int(np.prod(e.shape[len(x.batch_shape) :])) for e in x.freed().entries)


@restrict_to.kernel(Blocks, Banded)
def _restrict_to_blocks_banded(x: Blocks, y: Banded) -> Banded:
    diagonals = [diagonal_of(x, k) for k in y.offsets]
    return bands(diagonals, y.offsets, x.core_shape, x.background, dtype=x.dtype, batch=x.batch_shape)


@restrict_to.kernel(Banded, Blocks)
def _restrict_to_banded_blocks(x: Banded, y: Blocks) -> Blocks:
    """Read each diagonal once, aligned with the rows. XLA fuses this expression, whereas an index array is a gather."""
    m = x.core_shape[0]
    fill = jnp.zeros((), x.dtype) if x.background is None else x.background[..., None, None, None]
    entries = []
    for run in y.runs:
        i, j = run.positions()
        blocks = jnp.broadcast_to(fill, (*x.batch_shape, *run[2:]))
        for k, d in zip(x.offsets, x.diagonals, strict=True):
            before = max(0, -k)
            rows = jnp.pad(d, [(0, 0)] * (d.ndim - 1) + [(before, m - before - d.shape[-1])])[..., run.rows]
            blocks = jnp.where(j - i == k, rows.reshape(*d.shape[:-1], run.count, run.height, 1), blocks)
        entries.append(blocks)
    return y.rebuild(tuple(entries), x.background)
