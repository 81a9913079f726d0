"""The entries of runs of equal blocks in the order of rows and columns, without a sort of all entries.

Between two rows where a run begins or ends, the rows of the active runs alternate. Only short intervals are sorted, by the host.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._numerics.symbolic import is_symbolic

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax

    from ..._core.typing import DTypeLike
    from ..blocks.array import Run

_LONG = 4096
"""From this number of entries, an interval of rows is a piece of its own. In others the host sorts."""

_MOST_SLICES = 512
_MOST_SORTED = 2**16
"""Up to these numbers of slices and of entries that the host sorts, a program is small."""


class Alternating(NamedTuple):
    """An interval of rows with equally many blocks of equal shape of some runs, whose rows alternate.

    Attributes
    ----------
    parts : tuple
        For each run, in the order of columns: its index, the first of the blocks, and their end.
    """

    parts: tuple[tuple[int, int, int], ...]


class Sorted(NamedTuple):
    """Any interval of rows, with its entries in order.

    Attributes
    ----------
    places, rows, columns : array
        The places of the entries in the entries of all runs, one after the other, and their coordinates.
    """

    places: np.ndarray
    rows: np.ndarray
    columns: np.ndarray


def pieces(runs: Sequence[Run]) -> list[Alternating | Sorted] | None:
    """Divide the rows of runs that do not overlap. The result is None if the program would be large."""
    if any(is_symbolic(value) for run in runs for value in run):
        return None
    stored = [i for i, run in enumerate(runs) if run.size]
    if len(stored) > _MOST_SLICES:
        return None
    ends = sorted({row for i in stored for row in (runs[i].rows.start, runs[i].rows.stop)})
    found: list[Alternating | tuple[int, int]] = []
    slices = entries = 0
    for first, last in zip(ends, ends[1:], strict=False):
        active = [i for i in stored if runs[i].rows.start < last and runs[i].rows.stop > first]
        if (piece := _alternating(runs, active, first, last)) is not None:
            slices += len(active)
            found.append(piece)
        else:
            entries += (last - first) * sum(runs[i].width for i in active)
            begin = cast("tuple[int, int]", found.pop())[0] if found and type(found[-1]) is tuple else first
            found.append((begin, last))
        if slices > _MOST_SLICES or entries > _MOST_SORTED:
            return None
    return [piece if isinstance(piece, Alternating) else _sorted(runs, *piece) for piece in found]


def _alternating(runs: Sequence[Run], active: Sequence[int], first: int, last: int) -> Alternating | None:
    """Return the piece of a long interval of rows. The result is None for another interval."""
    shapes = {runs[i][3:] for i in active}
    if len(shapes) != 1:
        return None
    height, width = shapes.pop()
    whole = (last - first) % height == 0 and all((first - runs[i].row) % height == 0 for i in active)
    if not whole or (last - first) * width * len(active) < _LONG:
        return None
    starts = {i: (first - runs[i].row) // height for i in active}
    by_column = sorted(active, key=lambda i: runs[i].column + starts[i] * width)
    return Alternating(tuple((i, starts[i], starts[i] + (last - first) // height) for i in by_column))


def _sorted(runs: Sequence[Run], first: int, last: int) -> Sorted:
    """Sort the entries of an interval of rows on the host."""
    places, rows, columns, before = [], [], [], 0
    for run in runs:
        if not run.size:
            continue
        begin = min(max(0, (first - run.row) // run.height), run.count)
        end = max(begin, min(run.count, -((run.row - last) // run.height)))
        part = run._replace(row=run.row + begin * run.height, column=run.column + begin * run.width, count=end - begin)
        i, j = (np.broadcast_to(c, part[2:]).ravel() for c in part.positions(np))
        places.append(before + begin * run.height * run.width + np.arange(part.size))
        rows.append(i)
        columns.append(j)
        before += run.size
    every = np.stack([np.concatenate(c) for c in (places, rows, columns)])
    every = every[:, (every[1] >= first) & (every[1] < last)]
    return Sorted(*every[:, np.lexsort((every[2], every[1]))])


def in_order(runs: Sequence[Run], found: Sequence[Alternating | Sorted], data: Sequence[jax.Array]) -> jax.Array:
    """Return the entries ``(..., nnz)`` of blocks ``(..., count, height, width)``."""
    batch = data[0].shape[:-3]
    result = [jnp.zeros((*batch, 0), data[0].dtype)]
    every = jnp.concatenate([b.reshape(*batch, run.size) for b, run in zip(data, runs, strict=True)], axis=-1)
    for piece in found:
        if isinstance(piece, Sorted):
            result.append(lax.optimization_barrier(every)[..., piece.places])
            continue
        # The barriers keep XLA from merging these operations to one loop with a branch for each run.
        blocks = lax.optimization_barrier(jnp.stack([data[i][..., b:e, :, :] for i, b, e in piece.parts], axis=-4))
        result.append(jnp.moveaxis(blocks, -4, -2).reshape(*batch, math.prod(blocks.shape[-4:])))
    return jnp.concatenate(result, axis=-1)


def coordinates(
    runs: Sequence[Run], found: Sequence[Alternating | Sorted], dtype: DTypeLike, xp: Any
) -> tuple[Any, Any]:
    """Return the rows and columns of the entries in order: values for NumPy as `xp`, expressions for `jax.numpy`."""
    rows, columns = [xp.zeros(0, dtype)], [xp.zeros(0, dtype)]
    for piece in found:
        if isinstance(piece, Sorted):
            rows.append(piece.rows.astype(dtype))
            columns.append(piece.columns.astype(dtype))
            continue
        place, begin, end = piece.parts[0]
        _, _, _, height, width = runs[place]
        first = np.asarray([runs[i].column + b * width for i, b, _ in piece.parts])
        within = (first[:, None] + np.arange(width)).ravel().astype(dtype)
        shape = (end - begin, height, within.size)
        i = runs[place].row + begin * height + xp.arange(shape[0] * height, dtype=dtype)
        j = within + width * xp.arange(shape[0], dtype=dtype)[:, None, None]
        rows.append(xp.broadcast_to(i.reshape(*shape[:2], 1), shape).ravel())
        columns.append(xp.broadcast_to(j, shape).ravel())
    return xp.concatenate(rows), xp.concatenate(columns)
