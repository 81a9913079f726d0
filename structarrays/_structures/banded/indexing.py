"""Indexing of banded arrays: elements, rows and columns in linear time, slices that keep the band, and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.array import keys as indexing
from ..._functions.index_writes import write_entries, written
from ..._functions.indexing import index
from ..._functions.manipulation import flip
from ..._numerics import bands as band_numerics
from ..fallback.via_sparse import pays, selected_axis
from ..sparse.array import Sparse
from ..sparse.sorted_entries import index_dtype
from .array import Banded, bands

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeGuard

    from ..._core.array.base import Array
    from ..._core.array.keys import Item
    from ..._core.typing import Shape
    from .diagonal import Identity


def _equal_steps(x: Banded, *, operands: tuple[Any, ...], key: tuple[tuple[Any, ...], ...]) -> bool:
    """Return whether a key is two slices with one step."""
    return tuple(k[0] for k in key) == ("slice", "slice") and key[0][3] == key[1][3]


@index.kernel(Banded, when=_equal_steps)
def _index_banded(x: Banded, *, operands: tuple[Any, ...], key: tuple[tuple[Any, ...], ...]) -> Banded:
    """Take the rows ``a + s i`` and columns ``b + s j``: the diagonal k gets the offset ``(k + a - b) / s``."""
    (_, a, m, step), (_, b, n, _) = key
    if step < 0:
        # The same rows and columns in the opposite order.
        forwards = tuple(("slice", first + step * max(0, size - 1), size, -step) for _, first, size, _ in key)
        return _reversed(_index_banded(x, operands=operands, key=forwards))
    diagonals, offsets = [], []
    for k, d in zip(x.offsets, x.diagonals, strict=True):
        offset, remainder = divmod(k + a - b, step)
        length = band_numerics.diagonal_length((m, n), offset)
        if remainder or not length:
            continue
        first = a + step * max(0, -offset) - max(0, -k)  # the index of the first entry on the old diagonal
        diagonals.append(d[..., first : first + step * (length - 1) + 1 : step])
        offsets.append(offset)
    if _scale_survives(x, a, b, m, n, step):
        return type(x).make((x.scale, x.background), (m, n))
    return bands(diagonals, offsets, (m, n), x.background, dtype=x.dtype, batch=x.batch_shape)


def _reversed(x: Banded) -> Banded:
    """Reverse rows and columns: the diagonal k gets the offset ``n - m - k``."""
    m, n = x.core_shape
    if hasattr(x, "scale") and m == n:
        return x
    diagonals, offsets = [d[..., ::-1] for d in x.diagonals], [n - m - k for k in x.offsets]
    return bands(diagonals, offsets, (m, n), x.background, dtype=x.dtype, batch=x.batch_shape)


@flip.kernel(Banded, when=lambda x, *, axis: {x.ndim - 2, x.ndim - 1} <= set(axis))
def _flip_banded(x: Banded, *, axis: tuple[int, ...]) -> Banded:
    batch = tuple(a for a in axis if a < x.ndim - 2)
    return _reversed(cast("Banded", x.map_parameters(lambda leaf: jnp.flip(leaf, batch))))


def _selects_rows(x: Banded, operands: tuple[Any, ...], *, key: tuple[tuple[Any, ...], ...]) -> bool:
    """Return whether a key takes rows at an index array, and all columns."""
    rows = not x.batch_shape and selected_axis(x, operands, key) == 0 and np.ndim(operands[0]) == 1
    return rows and key[1] == ("slice", 0, x.shape[1], 1) and pays(x)


@index.eager_kernel(Banded, tuple, when=_selects_rows)
def _index_banded_eagerly(x: Banded, operands: tuple[Any, ...], *, key: tuple[tuple[Any, ...], ...]) -> Sparse:
    """Take rows in any order: from each diagonal the entries in these rows, at ``column = row + k``."""
    (m, n), places, x = x.core_shape, np.asarray(operands[0]), x.freed()
    increasing = bool(np.all(places[1:] >= places[:-1])) and not np.any(places[:1] < 0)
    if not increasing:
        places = np.where(places < 0, places + m, places)
    shape = (len(places), n)
    dtype = index_dtype(shape)
    numbers = np.arange(len(places), dtype=dtype)
    parts = [(np.zeros(0, x.dtype), np.zeros(0, dtype), np.zeros(0, dtype))]
    for k, d in zip(x.offsets, x.diagonals, strict=True):
        above = max(0, -k)
        if increasing:  # as for a mask
            rows: slice | np.ndarray = slice(*np.searchsorted(places, (above, above + d.shape[-1])))
        else:
            rows = np.flatnonzero((places >= above) & (places < above + d.shape[-1]))
        on_diagonal = places[rows] - above
        parts.append((np.asarray(d)[on_diagonal], numbers[rows], (on_diagonal + max(0, k)).astype(dtype)))
    leaves = [np.concatenate(part) for part in zip(*parts, strict=True)]
    order = np.argsort(leaves[1], kind="stable")  # the diagonals are already sorted within a row
    leaves = [leaf[order] for leaf in leaves]
    return Sparse.make((*map(jnp.asarray, leaves), x.background), (shape, (0, 1), False))


def _scale_survives(x: Banded, a: int, b: int, m: int, n: int, step: int) -> TypeGuard[Identity]:
    """Return whether a key takes a principal part of a scaled identity, which is a scaled identity again."""
    return hasattr(x, "scale") and a == b and m == n


def single_entries(shape: Shape, rows: Item, columns: Item) -> tuple[np.ndarray, ...] | None:
    """Return the non-negative rows and columns of the single entries that a key selects.

    The result is None for slices, and for traced and higher-dimensional indices.
    """
    if rows.kind == "slice" or columns.kind == "slice":
        return None
    i, j = (np.asarray(item.start) if item.kind == "int" else item.array for item in (rows, columns))
    if isinstance(i, jax.core.Tracer) or isinstance(j, jax.core.Tracer) or max(i.ndim, j.ndim) > 1:
        return None
    return np.broadcast_arrays(*(np.where(k < 0, k + n, k) for k, n in zip((i, j), shape, strict=True)))


@write_entries.kernel(Banded)
def _write_entries_banded(x: Banded, items: Sequence[Item], value: Array, owned: bool) -> Array | None:
    """Write single entries: replace stored ones, and add the diagonals of the others to the pattern."""
    batch, (rows, columns) = items[:-2], items[-2:]
    where = single_entries(x.core_shape, rows, columns)
    if where is None or not indexing.is_basic(batch) or x.background is not None:
        return None
    single = rows.kind == columns.kind == "int"
    if not single and any(item.kind != "slice" or item.step != 1 for item in batch):
        return None
    (i, j), (m, n) = where, x.core_shape
    needed = {int(k) for k in np.unique(j - i)}
    offsets = tuple(sorted(needed | set(x.offsets)))
    stored = sum(band_numerics.diagonal_length((m, n), k) for k in offsets)
    if offsets != x.offsets and stored > max(3 * m * n // 4, m + n):
        return None  # that many diagonals cost more than the dense form
    if offsets != x.offsets or x.freed() is not x:
        x, owned = bands([x.diagonal(k) for k in offsets], offsets, (m, n), dtype=x.dtype, batch=x.batch_shape), False
    data = value.to_jax()
    diagonals = list(x.diagonals)
    for k in needed:
        at = offsets.index(k)
        place = np.minimum(i, j)
        if single:
            diagonals[at] = written(diagonals[at], [*batch, indexing.Item("int", int(place))], data, owned)
        else:
            chosen = np.flatnonzero(j - i == k)
            part = data if data.ndim == 0 or data.shape[-1] == 1 else data[..., chosen]
            key = (*indexing.as_key(batch), place[chosen])
            diagonals[at] = diagonals[at].at[key].set(part)
    if not owned:
        # The handle now owns all its parameters: none may be shared with another array.
        diagonals = [d if offsets[a] in needed else jnp.copy(d) for a, d in enumerate(diagonals)]
    return x.rebuild(diagonals, None)
