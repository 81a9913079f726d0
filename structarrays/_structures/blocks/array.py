"""`Blocks`: the base class of `BlockDiagonal` and `BlockBanded`, with storage by runs of equal blocks."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.families import pattern
from ..._core.families.entries import elements
from ..._core.families.entry_array import EntryArray
from ..banded.array import batch_of
from . import numerics

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._core.typing import Leaves, Shape, Spec


class Run(NamedTuple):
    """Position of a run of equal blocks.

    The run consists of `count` blocks of height × width. Each block begins at the lower right corner of the previous
    block; the first block has its upper left corner at (row, column).
    """

    row: int
    column: int
    count: int  # type: ignore[assignment]  # in place of the method of tuples
    height: int
    width: int

    @property
    def rows(self) -> slice:
        """The rows of the matrix that the run covers."""
        return slice(self.row, self.row + self.count * self.height)

    @property
    def columns(self) -> slice:
        """The columns of the matrix that the run covers."""
        return slice(self.column, self.column + self.count * self.width)

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.count * self.height * self.width

    @property
    def distances(self) -> tuple[int, int]:
        """The smallest and the largest ``j - i`` of the entries (i, j), if there are any."""
        # Along a run the corners of the blocks move monotonically relative to the diagonal, so that both ends suffice.
        corners = [self.column - self.row + t * (self.width - self.height) for t in (0, self.count - 1)]
        return min(corners) - self.height + 1, max(corners) + self.width - 1

    def positions(self, xp: Any = jnp) -> tuple[Any, Any]:
        """The rows ``(count, height, 1)`` and columns ``(count, 1, width)`` of the entries: as expressions, or values of NumPy."""
        t = xp.arange(self.count)[:, None, None]
        i = self.row + t * self.height + xp.arange(self.height)[:, None]
        j = self.column + t * self.width + xp.arange(self.width)
        return i, j

    def meets(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return which rectangles of row and column intervals contain entries of the run, if it has any."""
        first_row, last_row = _blocks_met(rows, self.row, self.height, self.count)
        first_column, last_column = _blocks_met(columns, self.column, self.width, self.count)
        met: np.ndarray = np.maximum(first_row[:, None], first_column) <= np.minimum(last_row[:, None], last_column)
        return met


def _blocks_met(intervals: np.ndarray, start: int, size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last of some pieces of an axis that each interval meets."""
    first, last = (intervals[:, 0] - start) // size, (intervals[:, 1] - 1 - start) // size
    return np.maximum(first, 0), np.minimum(last, count - 1)


class Blocks(EntryArray):
    """A matrix that stores runs of equal blocks: a parameter ``(..., k, h, w)`` for each run, followed by the
    background.

    A subclass derives the position of each run in `runs`, from the static part.
    """

    __slots__ = ()
    parameter_names = ("blocks[]", "background")

    @property
    def runs(self) -> tuple[Run, ...]:
        """The position of each run."""
        raise NotImplementedError

    @property
    def core_shape(self) -> tuple[int, int]:
        """The shape ``(m, n)`` of the matrix."""
        raise NotImplementedError

    @property
    def blocks(self) -> tuple[jax.Array, ...]:
        """The stored blocks, an array ``(..., k, h, w)`` for each run."""
        return self._value[0][:-1]

    @property
    def entries(self) -> tuple[jax.Array, ...]:
        """The parameters that contain entries: the same as `blocks`."""
        return self.blocks

    @property
    def background(self) -> jax.Array | None:
        """The value of all entries that are not stored. None is the structural zero."""
        background: jax.Array | None = self._value[0][-1]
        return background

    @property
    def stored(self) -> int:
        """The number of stored entries of one matrix."""
        return sum(run.size for run in self.runs)

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> Self:
        return type(self).make((*entries, background), self.meta)

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        return (self._entries_spec(spec),) * len(self.runs) + (self._batch_spec(spec),)

    def gather(self, data: jax.Array) -> tuple[jax.Array, ...]:
        m, n = self.core_shape
        data = data.reshape((1,) * (2 - data.ndim) + data.shape) if data.ndim < 2 else data
        parts = []
        for run in self.runs:
            rows = run.rows if data.shape[-2] == m else slice(None)
            columns = run.columns if data.shape[-1] == n else slice(None)
            parts.append(numerics.collect(data[..., rows, columns], *run[2:]))
        return tuple(parts)

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        return tuple(run.positions() for run in self.runs)

    def dense_data(self) -> jax.Array:
        fill = jnp.zeros((), self.dtype) if self.background is None else self.background[..., None, None]
        dense = jnp.broadcast_to(fill, self.shape)
        for run, blocks in zip(self.runs, self.blocks, strict=True):
            region = numerics.spread(blocks, self.background)
            dense = region if region.shape == self.shape else dense.at[..., run.rows, run.columns].set(region)
        return dense

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        hit = np.zeros((len(rows), len(columns)), bool)
        for run in self.runs:
            if run.size:
                hit |= run.meets(rows, columns)
        return np.where(hit, pattern.DENSE, pattern.stored(self, hit)).astype(np.uint8)

    def bandwidths(self) -> tuple[int, int]:
        distances = [(0, 0), *(run.distances for run in self.runs if run.size)]
        return -min(low for low, _ in distances), max(high for _, high in distances)


def batch_of_blocks(leaves: Leaves) -> Shape:
    """The batch shape, from the first run."""
    return batch_of(leaves[0].shape, 3)


def missing(x: Blocks, axis: int) -> list[tuple[int, int, int]]:
    """The number of entries that are not stored in each row (``axis=-1``) or column (``axis=-2``).

    Returns triples ``(start, stop, count)``: each row or column from `start` to `stop` lacks `count` entries.
    """
    length, across = x.core_shape if axis == -1 else x.core_shape[::-1]
    spans = [(r.rows, r.width) if axis == -1 else (r.columns, r.height) for r in x.runs]
    edges = sorted({0, length, *itertools.chain.from_iterable((s.start, s.stop) for s, _ in spans)})
    return [
        (start, stop, across - sum(width for s, width in spans if s.start <= start < s.stop))
        for start, stop in itertools.pairwise(edges)
    ]


def grid_offsets(offset: int, shape: Shape, block: Shape) -> set[int]:
    """Return the block offsets at which a diagonal of a matrix has entries, if the matrix is cut into blocks."""
    i = np.arange(max(0, -offset), min(shape[0], shape[1] - offset))
    return {int(d) for d in np.unique((i + offset) // block[1] - i // block[0])}


# ---- elements -----------------------------------------------------------------------------------------------------


@elements.kernel(Blocks)
def element(x: Blocks, i: jax.Array, j: jax.Array) -> jax.Array:
    """Look the entry up in each run."""
    shape = jnp.broadcast_shapes(i.shape, j.shape)
    fill = jnp.zeros((), x.dtype) if x.background is None else x.background.reshape(x.batch_shape + (1,) * len(shape))
    value = jnp.broadcast_to(fill, x.batch_shape + shape)
    for run, blocks in zip(x.runs, x.blocks, strict=True):
        if run.size == 0:
            continue
        t, row = jnp.divmod(i - run.row, run.height)
        column = j - run.column - t * run.width
        inside = (t >= 0) & (t < run.count) & (column >= 0) & (column < run.width)
        place = jnp.broadcast_arrays(t.clip(0, run.count - 1), row, column.clip(0, run.width - 1))
        value = jnp.where(inside, blocks[(slice(None),) * len(x.batch_shape) + tuple(place)], value)
    return value


def diagonal_of(x: Blocks, offset: int) -> jax.Array:
    """The diagonal at this offset, stored or not."""
    m, n = x.core_shape
    first, stop = max(0, -offset), max(0, -offset, min(m, n - offset))
    aligned = [r.height == r.width and r.row == r.column for r in x.runs]
    if offset == 0 and all(aligned) and sum(r.count * r.height for r in x.runs) == m == n:
        return jnp.concatenate([numerics.diagonals(b) for b in x.blocks], axis=-1)
    i = jnp.arange(first, stop)
    return element(x, i, i + offset)
