"""Writes into sparse arrays: stored entries are replaced in place, other entries are inserted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.array import keys as indexing
from ..._core.array.dense import Dense
from ..._core.dispatch import explicit
from ..._functions.index_writes import write_entries, written_entries
from ..._functions.indexing import moves_axes
from . import numerics
from . import sparse_host as host
from .array import Sparse
from .sparse_joins import compiled_to_sparse, has_sparse_form

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.array.base import Array
    from ..._core.typing import Shape

_MANY = 4  # a write of more than this many times the stored entries makes the array dense


@write_entries.kernel(Sparse)
def _write_entries_sparse(x: Sparse, items: Sequence[indexing.Item], value: Array, owned: bool) -> Sparse | None:
    """Write to any key that covers the whole batch, if it selects few elements compared with the stored entries."""
    batch = len(x.batch_shape)
    if any(not indexing.is_full(item, n) for item, n in zip(items, x.batch_shape, strict=False)):
        return None
    if (lines := _lines(items[batch:], x.core_shape)) is not None and _is_structural_zero(x, value):
        return _erased(x, lines, owned)
    selected = _selected(items[batch:], x.core_shape)
    if selected is None:
        return None
    shape, where = selected
    count = math.prod(shape)
    if count > _MANY * x.nnz + sum(x.core_shape):
        return None
    elements = value.to_jax()
    elements = jnp.broadcast_to(
        elements.reshape(elements.shape[max(0, elements.ndim - batch - len(shape)) :]), x.batch_shape + shape
    )
    elements = elements.reshape((*x.batch_shape, count))
    where = [np.broadcast_to(w, shape).reshape(count) for w in where]
    if any(isinstance(leaf, jax.core.Tracer) for leaf in (*x._value[0], elements) if leaf is not None):
        return _write_traced(x, where, elements)
    x, owned = _storing(x, where, owned)
    places = np.empty((*x.batch_shape, count), np.int32)
    for b in np.ndindex(*x.batch_shape):
        places[b] = host.find([np.asarray(k[b]) for k in x._keys()], [where[i] for i in x.order], x._sizes())[0]
    data = (_write_donated if owned else _write)(x.data, places, elements)
    if not owned:  # the handle now owns all its parameters: none may be shared with another array
        x = x.map_parameters(jnp.copy)
    return Sparse.make((data, *x.coords, x.background), x.meta)


def _lines(items: Sequence[indexing.Item], sizes: Shape) -> list[np.ndarray] | None:
    """Return a mask along each axis for a key with a slice. The result is None for other keys."""
    arrays = [item.array for item in items if item.kind == "array"]
    plain = len(items) == len(sizes) and all(item.kind in ("int", "slice", "array") for item in items)
    if not plain or all(item.kind != "slice" for item in items) or len(arrays) > 1:
        return None
    if any(isinstance(a, jax.core.Tracer) or a.ndim != 1 for a in arrays):
        return None
    masks = [np.zeros(n, bool) for n in sizes]
    for mask, part in zip(masks, indexing.as_key(items), strict=True):
        mask[part] = True
    return masks


def _is_structural_zero(x: Sparse, value: Array) -> bool:
    """Return whether a value is the number zero, as the elements that are not stored are."""
    if (
        x.background is not None
        or type(value) is not Dense
        or value.shape != ()
        or isinstance(value.data, jax.core.Tracer)
    ):
        return False
    number = np.asarray(value.data)
    return not number.any() and not np.signbit([number.real, number.imag]).any()


def _erased(x: Sparse, lines: Sequence[np.ndarray], owned: bool) -> Sparse:
    """Write zeros to the stored entries of a box. The other elements stay structural zeros, so that the pattern does not change."""
    inside = jnp.ones(x.data.shape, bool)
    for mask, c in zip(lines, x.coords, strict=True):
        inside &= jnp.append(jnp.asarray(mask), False)[c]  # the coordinates of padding follow the last line
    data = jnp.where(inside, jnp.zeros((), x.data.dtype), x.data)
    if not owned:
        x = x.map_parameters(jnp.copy)
    return Sparse.make((data, *x.coords, x.background), x.meta)


def _selected(items: Sequence[indexing.Item], sizes: Shape) -> tuple[Shape, list[np.ndarray]] | None:
    """Return the shape of the selection, and a broadcastable index array for each dimension; None if traced."""
    arrays = [item.array for item in items if item.kind == "array"]
    if any(isinstance(a, jax.core.Tracer) for a in arrays):
        return None
    axes, key = [], indexing.as_key(items)
    # NumPy determines the axes of the result; a broadcast view of the coordinates of each dimension costs nothing.
    for axis, n in enumerate(sizes):
        line = np.arange(n).reshape((n,) + (1,) * (len(sizes) - axis - 1))
        axes.append(np.broadcast_to(line, sizes)[key])
    return axes[0].shape, axes


def _write_data(data: jax.Array, places: jax.Array, value: jax.Array) -> jax.Array:
    write: Callable[..., jax.Array] = numerics.over_batch(
        lambda d, p, v: d.at[p].set(v, mode="promise_in_bounds"), data.ndim - 1
    )
    return write(data, places, value)


_write = explicit.jit(_write_data)
_write_donated = explicit.jit(_write_data, donate_argnums=0)


def _storing(x: Sparse, where: Sequence[np.ndarray], owned: bool) -> tuple[Sparse, bool]:
    """Return the array with entries at all of these coordinates, and whether the handle owns its parameters."""
    wanted = [np.asarray(where[i], c.dtype) for i, c in zip(x.order, x._keys(), strict=True)]
    sizes = x._sizes()
    sorting, begins = host.order(wanted, sizes)
    if sorting is not None:
        wanted = [w[sorting] for w in wanted]
    if begins is not None:
        wanted = [w[begins] for w in wanted]
    keys, data = [np.asarray(k) for k in x._keys()], np.asarray(x.data)
    parts = []
    for b in np.ndindex(*x.batch_shape):
        inside = int(np.count_nonzero(keys[0][b] < sizes[0])) if x.padded else x.nnz
        own = [k[b][:inside] for k in keys]
        before, found = host.find(own, wanted, sizes)
        parts.append((own, data[b][:inside], before[~found], [w[~found] for w in wanted]))
    if not any(len(before) for _, _, before, _ in parts):
        return x, owned
    total = max(len(d) + len(before) for _, d, before, _ in parts)
    padded = any(len(d) + len(before) < total for _, d, before, _ in parts)
    fill = np.broadcast_to(0 if x.background is None else np.asarray(x.background), x.batch_shape)
    new_data = np.zeros((*x.batch_shape, total), data.dtype)
    new_keys = [np.full((*x.batch_shape, total), n, k.dtype) for k, n in zip(keys, sizes, strict=True)]
    for b, (own, stored, before, missing) in zip(np.ndindex(*x.batch_shape), parts, strict=True):
        length = len(stored) + len(before)
        new_data[b][:length] = np.insert(stored, before, fill[b].astype(data.dtype))
        for target, old, added in zip(new_keys, own, missing, strict=True):
            target[b][:length] = np.insert(old, before, added)
    coordinates = (jnp.asarray(new_keys[x.order.index(i)]) for i in range(len(sizes)))
    return Sparse.make((jnp.asarray(new_data), *coordinates, x.background), (x.core_shape, x.order, padded)), False


def _write_traced(x: Sparse, where: Sequence[np.ndarray], value: jax.Array) -> Sparse:
    """Write with static sizes: one new entry for each element written, unused if the element was stored before."""
    wanted = [np.asarray(where[i], c.dtype) for i, c in zip(x.order, x._keys(), strict=True)]
    sorting, begins = host.order(wanted, x._sizes())
    sorting = np.arange(len(wanted[0])) if sorting is None else sorting
    last = np.arange(len(sorting)) if begins is None else np.append(begins[1:], len(sorting)) - 1
    chosen = sorting[last]  # the last element written to each position
    new, value = tuple(jnp.asarray(w[chosen]) for w in wanted), value[..., chosen]
    total = x.nnz + len(chosen)

    def write(data: jax.Array, fill: jax.Array, value: jax.Array, *keys: jax.Array) -> tuple[jax.Array, ...]:
        merged, place, place_new = numerics.merge(keys, new, x._sizes())
        data = jnp.full(total, fill, data.dtype).at[place].set(data).at[place_new].set(value)
        return data, *merged

    data, *keys = x._over_batch(write, x.data, x._fill(), value, *x._keys())
    coordinates = (keys[x.order.index(i)] for i in range(len(keys)))
    pattern = Sparse.make((data, *coordinates, x.background), (x.core_shape, x.order, True))
    return pattern.rebuild((data,), x.background)


# ---- some arrays of a batch -------------------------------------------------------------------------------------------


@write_entries.kernel(Sparse, when=lambda x: x.batch_shape != ())
def _write_entries_batch_of_sparse(
    x: Sparse, items: Sequence[indexing.Item], value: Array, owned: bool
) -> Array | None:
    """Write into each selected array of the batch separately, and put it back."""
    batch, core = items[: len(x.batch_shape)], items[len(x.batch_shape) :]
    whole = all(indexing.is_full(item, n) for item, n in zip(batch, x.batch_shape, strict=True))
    if whole or not indexing.is_basic(batch) or moves_axes(items):
        return None
    key = indexing.as_key(batch)
    part = x.map_parameters(lambda leaf: leaf[key])
    if all(indexing.is_full(item, n) for item, n in zip(core, x.core_shape, strict=True)) and _replaces(value, part):
        own = len(value.batch_shape)
        target = part.batch_shape
        written: Array | None = compiled_to_sparse(value).map_parameters(
            lambda leaf: jnp.broadcast_to(leaf, target + leaf.shape[own:])
        )
    else:
        kept = [indexing.Item("slice", 0, n) for n in part.batch_shape]
        written = written_entries(part, [*kept, *core], value, False)
    if type(written) is not Sparse:
        return None
    total = max(x.nnz, written.nnz)
    x, part = x._padded_to(total), written._in_order(x.order)._padded_to(total)
    leaves = (
        None if old is None else old.at[key].set(new) for old, new in zip(x._value[0], part._value[0], strict=True)
    )
    return Sparse.make(tuple(leaves), (x.core_shape, x.order, x.padded or part.padded)).trimmed()


def _replaces(value: Array, part: Sparse) -> bool:
    """Return whether a value can replace whole arrays."""
    fits = value.core_ndim == part.core_ndim and value.shape[len(value.batch_shape) :] == part.core_shape
    return fits and value.background is None and part.background is None and has_sparse_form(value)
