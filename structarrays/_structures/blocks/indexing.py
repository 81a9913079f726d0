"""Slices of block-diagonal and block-banded matrices that keep their blocks, and updates within the blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.array import keys as indexing
from ..._functions.index_writes import write_entries, written
from ..._functions.indexing import index
from ..._numerics import bands as band_kernel
from ..banded.indexing import single_entries
from .array import Blocks
from .block_banded import BlockBanded, at_offsets, block_banded, from_uniform
from .block_diagonal import BlockDiagonal, block_diagonal, is_uniform, narrowest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core.array.base import Array
    from ..._core.array.keys import Item
    from .array import Run

    Key: TypeAlias = tuple[tuple[Any, ...], tuple[Any, ...]]


# ---- slices ---------------------------------------------------------------------------------------------------------


def _are_contiguous(x: Blocks, *, operands: tuple[jax.Array, ...], key: Key) -> bool:
    """Return whether a key is two slices without steps."""
    return tuple(k[0] for k in key) == ("slice", "slice") and key[0][3] == key[1][3] == 1


@index.kernel(BlockDiagonal, when=_are_contiguous)
def _index_block_diagonal(x: BlockDiagonal, *, operands: tuple[jax.Array, ...], key: Key) -> Array:
    """Each block is sliced. The result may contain blocks without rows or columns."""
    (_, row, m, _), (_, column, n, _) = key
    parts = []
    for run, blocks in zip(x.runs, x.blocks, strict=True):
        if not run.count:
            parts.append(blocks)
            continue
        t = np.arange(run.count)
        # The range of each block that is kept; at most a few blocks at either end differ from the others.
        bounds = np.stack(
            [np.clip(edge - run.row - t * run.height, 0, run.height) for edge in (row, row + m)]
            + [np.clip(edge - run.column - t * run.width, 0, run.width) for edge in (column, column + n)],
            axis=-1,
        )
        starts = np.flatnonzero(np.any(np.diff(bounds, axis=0, prepend=-1), axis=-1))
        for first, stop in zip(starts, [*starts[1:], run.count], strict=True):
            top, bottom, left, right = bounds[first]
            parts.append(blocks[..., first:stop, top:bottom, left:right])
    return narrowest(block_diagonal(parts, x.background))


def _are_whole_blocks(x: BlockBanded, *, operands: tuple[jax.Array, ...], key: Key) -> bool:
    """Return whether a key is two slices of whole blocks."""
    if not _are_contiguous(x, operands=operands, key=key):
        return False
    return all(k[1] % size == 0 == k[2] % size and k[2] for k, size in zip(key, x.block_shape, strict=True))


@index.kernel(BlockBanded, when=_are_whole_blocks)
def _index_block_banded(x: BlockBanded, *, operands: tuple[jax.Array, ...], key: Key) -> Array:
    (height, width), (_, row, m, _), (_, column, n, _) = x.block_shape, *key
    row, column, grid = row // height, column // width, (m // height, n // width)
    kept = {}
    for k, blocks in zip(x.offsets, x.blocks, strict=True):
        offset = k + row - column
        length = band_kernel.diagonal_length(grid, offset)
        if length:
            first = (
                row + max(0, -offset) - max(0, -k)
            )  # the block row of the first block, as a position on the old block diagonal
            kept[offset] = blocks[..., first : first + length, :, :]
    return block_banded(kept, grid, x.block_shape, x.background, dtype=x.dtype, batch=x.batch_shape)


# ---- writes ---------------------------------------------------------------------------------------------------------


@write_entries.kernel(Blocks)
def _write_entries_blocks(x: Blocks, items: Sequence[Item], value: Array, owned: bool) -> Array | None:
    """Write entries, or a rectangle of entries, within one block; or single entries of several blocks. Other entries
    may need further block diagonals.
    """
    batch, (rows, columns) = items[:-2], items[-2:]
    if not indexing.is_basic(batch):
        return None
    if indexing.is_basic([rows, columns]):
        return _write_box_of(x, batch, rows, columns, value.to_jax(), owned)
    where = single_entries(x.core_shape, rows, columns)
    if where is None or any(item.kind != "slice" or item.step != 1 for item in batch):
        return None
    i, j = where
    wide, owned = _with_places(x, i, j, owned)
    return None if wide is None else _write_single(wide, batch, i, j, value.to_jax(), owned)


def _write_box_of(
    x: Blocks, batch: Sequence[Item], rows: Item, columns: Item, value: jax.Array, owned: bool
) -> Blocks | None:
    """Write rows and columns, integers or slices, that lie within one block."""
    spans = [_span(item) for item in (rows, columns)]
    if None in spans:
        return None
    corners = np.array(spans)
    wide, owned = _with_places(x, corners[0], corners[1], owned)
    if wide is None:
        return None
    places = [_place(run, corners[0], corners[1]) for run in wide.runs]
    for at, (t, row, column) in enumerate(places):
        if t[0] == t[1] >= 0:
            inner = [
                item._replace(start=item.start + int(p[0] - s[0]))
                for item, p, s in zip((rows, columns), (row, column), corners)
            ]
            entries = list(wide.entries)
            entries[at] = written(entries[at], [*batch, indexing.Item("int", int(t[0])), *inner], value, owned)
            return _owned(wide, entries, {at}, owned)
    return None


def _span(item: Item) -> tuple[int, int] | None:
    """The first and the last index of an item, or None if it is empty."""
    if item.kind == "int":
        return item.start, item.start
    ends = item.start, item.start + (item.size - 1) * item.step
    return (min(ends), max(ends)) if item.size else None


def _write_single(
    x: Blocks, batch: Sequence[Item], i: np.ndarray, j: np.ndarray, value: jax.Array, owned: bool
) -> Blocks:
    """Write the entries (i, j), all of which are stored."""
    entries, changed = list(x.entries), set()
    for at, run in enumerate(x.runs):
        t, row, column = _place(run, i, j)
        chosen = np.flatnonzero(t >= 0)
        if chosen.size:
            part = value if value.ndim == 0 or value.shape[-1] == 1 else value[..., chosen]
            key = (*indexing.as_key(batch), t[chosen], row[chosen], column[chosen])
            entries[at] = entries[at].at[key].set(part)
            changed.add(at)
    return _owned(x, entries, changed, owned)


def _place(run: Run, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the block of a run that contains each entry (i, j), -1 if there is none, and the position in the block."""
    if not run.size:
        return np.full(i.shape, -1), i, j
    t, row = np.divmod(i - run.row, run.height)
    column = j - run.column - t * run.width
    inside = (t >= 0) & (t < run.count) & (column >= 0) & (column < run.width)
    return np.where(inside, t, -1), row, column


def _with_places(x: Blocks, i: np.ndarray, j: np.ndarray, owned: bool) -> tuple[Blocks | None, bool]:
    """Return an array that stores the entries (i, j), and whether its buffers may be overwritten; (None, False) if
    there is none.
    """
    if np.all(np.any([_place(run, i, j)[0] >= 0 for run in x.runs], axis=0)):
        return x, owned
    if type(x) is BlockDiagonal and is_uniform(x):
        x = from_uniform(x)
    if not isinstance(x, BlockBanded):
        return None, False
    height, width = x.block_shape
    offsets = {*x.offsets, *np.unique(j // width - i // height).tolist()}
    stored = sum(band_kernel.diagonal_length(x.grid, k) for k in offsets)
    if 4 * stored > 3 * x.grid[0] * x.grid[1]:
        return None, False  # that many block diagonals are more expensive than the dense form
    return cast("BlockBanded", at_offsets(x, offsets)), False


def _owned(x: Blocks, entries: Sequence[jax.Array], changed: set[int], owned: bool) -> Blocks:
    """Array with these entries. Entries that were not rewritten are copied unless the array owns them."""
    if owned:
        return x.rebuild(tuple(entries), x.background)
    entries = [e if at in changed else jnp.copy(e) for at, e in enumerate(entries)]
    return x.rebuild(tuple(entries), None if x.background is None else jnp.copy(x.background))
