"""Parts of sparse arrays: slices, rows and triangles; and concatenation along an axis."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.flattening import as_indices
from ..._core.families.batch import concat_pair
from ..._core.families.conditions import has_structural_zeros
from ..._functions.creation import tril, triu
from ..._functions.dense_form import to_dense
from ..._functions.indexing import index
from ..._functions.manipulation import flip, roll
from ..._functions.searching import nonzero_kernels
from ..._numerics.symbolic import smaller
from ..fill.array import Fill
from . import compressed_rows, numerics
from . import sparse_host as host
from .array import Sparse, is_plain_matrix
from .sorted_entries import index_dtype
from .sparse_joins import full_sparse, has_sparse_form, to_sparse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..._core.typing import DTypeLike, Meta, Result, Shape

# ---- the dense form ---------------------------------------------------------------------------------------------------


@to_dense.eager_kernel(Sparse)
def _to_dense_sparse_eagerly(x: Sparse) -> Result:
    data = compressed_rows.dense_form(x)
    return NotImplemented if data is None else Dense.make((data,))


# ---- boxes ------------------------------------------------------------------------------------------------------------


def _is_box(x: Sparse, *, operands: Sequence[jax.Array], key: tuple[tuple[Any, ...], ...]) -> bool:
    kinds = [k[0] for k in key]
    return set(kinds) <= {"int", "slice"} and "slice" in kinds


@index.kernel(Sparse, when=_is_box)
def _index_box_of_sparse(x: Sparse, *, operands: Sequence[jax.Array], key: tuple[tuple[Any, ...], ...]) -> Array:
    """Take integers and slices: the entries inside, with new coordinates. A single remaining dimension is dense."""
    sizes = [k[2] for k in key if k[0] == "slice"]
    kept = [axis for axis, k in enumerate(key) if k[0] == "slice"]
    order = [axis for axis in x.order if axis in kept]
    shape = tuple(sizes)
    whole = all(k[0] == "slice" and abs(k[3]) == 1 and k[2] == n for k, n in zip(key, x.core_shape, strict=True))
    bound = x.nnz if whole else min(x.nnz, math.prod(shape))
    reversed_axes = any(k[0] == "slice" and k[3] < 0 for k in key)

    def part(data: jax.Array, fill: jax.Array, *coordinates: jax.Array) -> Any:
        inside, places, remaining = coordinates[0] < x.core_shape[0], {}, iter(operands)
        for axis, (k, c) in enumerate(zip(key, coordinates, strict=True)):
            if k[0] == "int":
                inside &= c == next(remaining)
                continue
            _, start, size, step = k
            distance = (c - start) * (1 if step > 0 else -1)
            places[axis] = distance // abs(step)
            inside &= (distance >= 0) & (distance % abs(step) == 0) & (places[axis] < size)
        if len(kept) == 1:
            place = jnp.where(inside, places[kept[0]], sizes[0])
            return numerics.put(jnp.full(sizes[0], fill, data.dtype), (place,), data)
        keys = tuple(places[axis].astype(coordinates[0].dtype) for axis in order)
        data, keys = numerics.keep(inside, data, keys, [shape[kept.index(axis)] for axis in order], bound)
        if reversed_axes:
            keys, data = numerics.sort(keys, data)
        return data, *(keys[order.index(axis)] for axis in kept)

    leaves = x._over_batch(part, x.data, x._fill(), *x.coords)
    if len(kept) == 1:
        return Dense.make((leaves,))
    meta = (shape, tuple(kept.index(axis) for axis in order), x.padded if whole else bound > 0)
    return Sparse.make((*leaves, x.background), meta)


def is_run_of_lines(x: Sparse, key: tuple[tuple[Any, ...], ...]) -> bool:
    """Return whether a key takes a contiguous run along the first axis in sort order, and all of the other axes."""
    whole = [("slice", 0, n, 1) for n in x.core_shape]
    axis = x.order[0]
    return (
        not x.batch_shape
        and len(key) == x.core_ndim
        and all(k == w or (i == axis and k[0] == "slice" and k[3] == 1) for i, (k, w) in enumerate(zip(key, whole)))
    )


def run_of_lines(x: Sparse, key: tuple[tuple[Any, ...], ...]) -> Sparse:
    """Take a contiguous run of rows (or columns); exact, on the host, since the entries are contiguous."""
    axis = x.order[0]
    _, start, size, _ = key[axis]
    data, *coordinates = (np.asarray(leaf) for leaf in (x.data, *x.coords))
    sorted_by = coordinates[axis]
    first, last = np.searchsorted(sorted_by, np.asarray([start, start + size], sorted_by.dtype))
    shape = tuple(size if i == axis else n for i, n in enumerate(x.core_shape))
    entries = compressed_rows.copied(data[first:last])
    places = [compressed_rows.copied(c[first:last], index_dtype(shape)) for c in coordinates]
    # The given coordinates may be too large for the data type of the result.
    np.subtract(sorted_by[first:last], start, out=places[axis], casting="unsafe")
    return Sparse.make((*jax.device_put((entries, *places)), x.background), (shape, x.order, False))


def box(x: Sparse, key: tuple[tuple[Any, ...], ...]) -> Sparse | None:
    """Take slices of a matrix; exact, on the host. The result is None if the routines of SciPy do not apply."""
    if x.batch_shape or x.core_ndim != 2 or any(k[0] != "slice" for k in key):
        return None
    return compressed_rows.selected(x, [_as_slice(*k[1:]) for k in key])


def _as_slice(start: int, size: int, step: int) -> slice:
    stop = start + size * step
    return slice(start, stop if stop >= 0 else None, step) if size else slice(0, 0)


def selected(x: Sparse, axis: int, places: np.ndarray) -> Sparse:
    """Take rows (or indices of another core axis), in order and possibly repeated; exact, on the host."""
    places = _from_the_start(places, x.core_shape[axis])
    if x.core_ndim == 2 and len(places) < 2**31 - 1:
        by_scipy = compressed_rows.selected(x, [places if i == axis else slice(None) for i in range(2)])
        if by_scipy is not None:
            return by_scipy
    leaves, meta = _selected_leaves(x, np.asarray(x.data), axis, places)
    return Sparse.make((*jax.device_put(leaves), x.background), meta)


def selected_of_traced(x: Sparse, axis: int, places: np.ndarray) -> Sparse | None:
    """Take rows, or indices of another core axis, of one array with traced entries; None if the number of results is not known.

    It is known for constant coordinates. For traced coordinates it is bounded if no index is repeated.
    """
    n = x.core_shape[axis]
    places = _from_the_start(places, n)
    if not any(isinstance(c, jax.core.Tracer) for c in x.coords):
        (chosen, *constants), meta = _selected_leaves(x, np.arange(x.nnz), axis, places)
        return Sparse.make((x.data[chosen], *map(as_indices, constants), x.background), meta)
    if len(np.unique(places)) < len(places):
        return None
    shape = tuple(len(places) if i == axis else m for i, m in enumerate(x.core_shape))
    new_places = np.full(n + 1, len(places), x.coords[axis].dtype)  # the last one is the place of padding
    new_places[places] = np.arange(len(places))
    coordinates = [jnp.asarray(new_places)[c] if i == axis else c for i, c in enumerate(x.coords)]
    keys = tuple(coordinates[i] for i in x.order)
    inside = coordinates[axis] < len(places)
    data, keys = numerics.keep(inside, x.data, keys, [shape[i] for i in x.order], x.nnz)
    if np.any(np.diff(places) < 0):
        keys, data = numerics.sort(keys, data)
    return Sparse.make(
        (data, *(keys[x.order.index(i)] for i in range(x.core_ndim)), x.background), (shape, x.order, x.nnz > 0)
    )


def _from_the_start(places: np.ndarray, n: int) -> np.ndarray:
    return np.where(places < 0, places + n, places)


def _selected_leaves(x: Sparse, data: np.ndarray, axis: int, places: np.ndarray) -> tuple[list[np.ndarray], Meta]:
    """The data and coordinates of a selection, and its metadata, where `data` replaces the entries of `x`."""
    n = x.core_shape[axis]
    shape = tuple(len(places) if i == axis else m for i, m in enumerate(x.core_shape))
    leaves = [data, *(np.asarray(c) for c in x.coords)]
    parts, is_sorted = [], x.order[0] == axis
    keeps = not x.batch_shape and not x.padded and n <= 4 * (x.nnz + len(places))
    for b in np.ndindex(*x.batch_shape):
        part = [leaf[b] for leaf in leaves]
        if x.padded:
            inside = part[1] < x.core_shape[0]
            part = [leaf[inside] for leaf in part]
        if keeps:
            by, first, counts = host.kept_lines(x.coords[axis], n, is_sorted)
            first, counts = first[places], counts[places]
        else:
            by = None if is_sorted else np.argsort(part[1 + axis], kind="stable")
            first, counts = host.lines(part[1 + axis] if by is None else part[1 + axis][by], places, n)
        parts.append(_selected(part, axis, by, first, counts, shape, x.order))
    total = max((len(part[0]) for part in parts), default=0)
    padded = any(len(part[0]) < total for part in parts)
    kinds: tuple[DTypeLike, ...]
    kinds, fills = (data.dtype, *[index_dtype(shape)] * len(shape)), (0, *shape)
    result = []
    for leaf, dtype, fill in zip(zip(*parts) if parts else [()] * len(kinds), kinds, fills, strict=True):
        if not x.batch_shape:
            result.append(leaf[0].astype(dtype, copy=False))
            continue
        rows = np.full((len(leaf), total), fill, dtype)
        for row, values in zip(rows, leaf, strict=True):
            row[: len(values)] = values
        result.append(rows.reshape((*x.batch_shape, total)))
    return result, (shape, x.order, padded)


def _selected(
    leaves: Sequence[np.ndarray],
    axis: int,
    by: np.ndarray | None,
    first: np.ndarray,
    counts: np.ndarray,
    shape: Shape,
    order: tuple[int, ...],
) -> list[np.ndarray]:
    """Return data and coordinates of the selection from one array without padding.

    `first` and `counts` locate the entries of each row or column among the entries sorted by `by`.
    """
    data, *coordinates = leaves
    new = np.repeat(np.arange(len(counts), dtype=index_dtype(shape)), counts)
    chosen = np.repeat(first - (np.cumsum(counts) - counts), counts)
    chosen += np.arange(len(new))
    chosen = chosen if by is None else by[chosen]
    leaves = [host.take(data, chosen), *(new if i == axis else host.take(c, chosen) for i, c in enumerate(coordinates))]
    if by is None:
        return leaves  # one row or column after the other, each in order
    sorting, _ = host.order([leaves[1 + i] for i in order], [shape[i] for i in order])
    return leaves if sorting is None else [leaf[sorting] for leaf in leaves]


# ---- triangles, reversals -----------------------------------------------------------------------------------------------


@tril.kernel(Sparse, when=is_plain_matrix)
def _tril_sparse(x: Sparse, *, k: int) -> Sparse:
    return _where(x, lambda rows, columns: columns - rows <= k)


@triu.kernel(Sparse, when=is_plain_matrix)
def _triu_sparse(x: Sparse, *, k: int) -> Sparse:
    return _where(x, lambda rows, columns: columns - rows >= k)


def _where(x: Sparse, condition: Callable[..., jax.Array]) -> Sparse:
    """Return the entries whose coordinates satisfy a condition."""

    def keep(data: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, ...]:
        mask = condition(*coordinates) & (coordinates[0] < x.core_shape[0])
        return numerics.keep_by(x.order, mask, data, coordinates, x.core_shape, x.nnz)

    leaves = x._over_batch(keep, x.data, *x.coords)
    return Sparse.make((*leaves, x.background), (x.core_shape, x.order, x.nnz > 0))


def in_core(x: Sparse, axes: Sequence[int] | None) -> bool:
    """Return whether one of the axes is a core axis."""
    return axes is not None and any(a >= len(x.batch_shape) for a in axes)


@flip.kernel(Sparse, when=lambda x, *, axis: in_core(x, axis))
def _flip_sparse(x: Sparse, *, axis: tuple[int, ...]) -> Sparse:
    batch = len(x.batch_shape)
    x = x.map_parameters(lambda leaf: jnp.flip(leaf, tuple(a for a in axis if a < batch)))
    if not x.padded and set(range(batch, x.ndim)) <= set(axis):  # the entries in the opposite order are sorted again
        coordinates = (n - 1 - jnp.flip(c, -1) for c, n in zip(x.coords, x.core_shape, strict=True))
        return Sparse.make((jnp.flip(x.data, -1), *coordinates, x.background), x.meta)
    return _moved(x, {a - batch: lambda c, n: n - 1 - c for a in axis if a >= batch})


@roll.kernel(Sparse, when=lambda x, *, shift, axis: in_core(x, axis))
def _roll_sparse(x: Sparse, *, shift: tuple[int, ...], axis: tuple[int, ...]) -> Sparse:
    batch = len(x.batch_shape)
    for s, a in zip(shift, axis, strict=True):
        if a < batch:
            x = x.map_parameters(functools.partial(jnp.roll, shift=s, axis=a))
        elif a - batch == x.order[0] and not x.padded:
            x = _lines_rolled(x, s)
        else:
            x = _moved(x, {a - batch: lambda c, n, s=s: numerics.rolled(c, s, n)})
    return x


def _lines_rolled(x: Sparse, shift: Any) -> Sparse:
    """Roll the lines along the first axis in sort order. The entries keep their order, from another first one."""
    axis, n = x.order[0], x.core_shape[x.order[0]]

    def rolled(data: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, ...]:
        moved = numerics.rolled(coordinates[axis], shift, n)
        wrapped = jnp.sum(moved < coordinates[axis])
        return tuple(jnp.roll(leaf, wrapped) for leaf in (data, *coordinates[:axis], moved, *coordinates[axis + 1 :]))

    leaves = x._over_batch(rolled, x.data, *x.coords)
    return Sparse.make((*leaves, x.background), x.meta)


def _moved(x: Sparse, moves: dict[int, Callable[..., jax.Array]]) -> Sparse:
    """Map coordinates one to one, by a function of coordinate and size for each axis."""

    def move(data: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, ...]:
        inside, moved = coordinates[0] < x.core_shape[0], list(coordinates)
        for axis, f in moves.items():
            n = x.core_shape[axis]
            moved[axis] = (
                jnp.where(inside, f(coordinates[axis], n).astype(coordinates[axis].dtype), n) if n else moved[axis]
            )
        return numerics.sort_by(x.order, data, *moved)

    leaves = x._over_batch(move, x.data, *x.coords)
    return Sparse.make((*leaves, x.background), x.meta)


# ---- joining ------------------------------------------------------------------------------------------------------------


def joinable(x: Array, y: Array, *, axis: int) -> bool:
    """Return whether two arrays with sparse forms can be concatenated as sparse arrays.

    A background is possible only along a batch axis, where each array keeps its own.
    """
    if x.core_ndim != y.core_ndim or not (has_sparse_form(x) and has_sparse_form(y)):
        return False
    return axis < -x.core_ndim or x.background is None and y.background is None


@concat_pair.kernel(Sparse, Array, when=joinable)
@concat_pair.kernel(Array, Sparse, when=joinable)
def _concat_pair_sparse(x: Array, y: Array, *, axis: int) -> Sparse:
    x, y = to_sparse(x), to_sparse(y)
    y = y._in_order(x.order)
    if axis < -x.core_ndim:
        x, y = x._padded_to(y.nnz), y._padded_to(x.nnz)
        axis += x.core_ndim
        leaves: Iterable[jax.Array] = (
            jnp.concatenate(pair, axis - 1) for pair in zip(x._value[0][:-1], y._value[0][:-1], strict=True)
        )
        plain = x.background is None and y.background is None
        background = None if plain else jnp.concatenate([x._fill(), y._fill()], axis)
        return Sparse.make((*leaves, background), (x.core_shape, x.order, x.padded or y.padded))
    axis += x.core_ndim
    before = x.core_shape[axis]
    shape = tuple(n + y.core_shape[i] if i == axis else n for i, n in enumerate(x.core_shape))
    parts = []
    for a, shift in ((x, 0), (y, before)):
        inside = a.coords[0] < a.core_shape[0]
        moved = (c + shift if i == axis else c for i, c in enumerate(a.coords))
        parts.append((a.data, *(jnp.where(inside, c, n) for c, n in zip(moved, shape, strict=True))))
    data, *coordinates = (jnp.concatenate(pair, -1) for pair in zip(*parts, strict=True))
    result = Sparse.make((data, *coordinates, None), (shape, x.order, x.padded or y.padded))
    if x.order[0] == axis and not x.padded:
        return result
    leaves = result._over_batch(functools.partial(numerics.sort_by, x.order), result.data, *result.coords)
    return Sparse.make((*leaves, None), result.meta)


def _has_few_entries(x: Array, y: Array, *, axis: int) -> bool:
    """Return whether a sparse and a dense matrix, next to each other, store at most a third of their elements."""
    if axis < -2 or not all(z.ndim == 2 and z.dtype.kind != "b" for z in (x, y)):
        return False
    sparse, full = (x, y) if type(x) is Sparse else (y, x)
    fits = not smaller(x.size + y.size, 3 * (sparse._value[0][0].size + full.size))
    return fits and sparse.background is None and sparse.core_ndim == 2


@concat_pair.kernel(Sparse, Dense, when=_has_few_entries)
@concat_pair.kernel(Sparse, Fill, when=_has_few_entries)
@concat_pair.kernel(Dense, Sparse, when=_has_few_entries)
@concat_pair.kernel(Fill, Sparse, when=_has_few_entries)
def _concat_pair_sparse_dense(x: Array, y: Array, *, axis: int) -> Sparse:
    x, y = (z if type(z) is Sparse else full_sparse(z) for z in (x, y))
    return _concat_pair_sparse(x, y, axis=axis)


@nonzero_kernels.kernel(Sparse, when=has_structural_zeros)
def _nonzero_kernels_sparse(x: Sparse) -> tuple[jax.Array, ...]:
    data, *coordinates = (np.asarray(leaf) for leaf in (x.data, *x.coords))
    *batch, place = np.nonzero((data != 0) & (coordinates[0] < x.core_shape[0]))
    coordinates = [*batch, *(c[(*batch, place)] for c in coordinates)]
    sorting, _ = host.order(coordinates, x.shape)
    return tuple(jnp.asarray(c if sorting is None else c[sorting], jnp.result_type(int)) for c in coordinates)
