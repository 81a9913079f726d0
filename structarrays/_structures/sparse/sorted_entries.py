"""The parameters of a `Sparse` array from coordinates in any order: checks, sorting, and sums of entries of one position."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.array.base import Array
from ..._core.array.flattening import as_indices, barred
from . import compressed_rows, numerics
from . import sparse_host as host

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core.typing import Leaves, Meta, Shape


def index_dtype(shape: Sequence[int]) -> type[np.signedinteger]:
    """Return the data type of coordinates in an array of this shape."""
    return np.int32 if max(shape, default=0) < 2**31 - 1 else np.int64


def coordinates_of(indices: Any, ndim: int) -> list[np.ndarray | jax.Array]:
    """Return an integer array for each core dimension, on the host unless it is traced."""
    if isinstance(indices, tuple):
        parts = [index_array(c, f"indices[{i}]") for i, c in enumerate(indices)]
        if len(parts) != ndim:
            raise ValueError(f"indices must be {ndim} arrays, one for each dimension of shape, got {len(parts)}")
        for i, c in enumerate(parts):
            if c.ndim < 1:
                raise ValueError(f"indices[{i}] must have at least one dimension, got a scalar")
        return parts
    whole = index_array(indices, "indices")
    if whole.ndim == 1 and whole.size == 0:
        whole = whole.reshape(0, ndim)
    if whole.ndim < 2 or whole.shape[-1] != ndim:
        raise ValueError(
            f"indices must be (..., nnz, {ndim}), or a tuple of {ndim} arrays (..., nnz), got shape {whole.shape}"
        )
    return [whole[..., i] for i in range(ndim)]


def index_array(value: Any, name: str) -> np.ndarray | jax.Array:
    """Convert indices to an array of integers, on the host unless they are traced."""
    if isinstance(value, Array):
        value = value.to_jax()
    if not isinstance(value, jax.core.Tracer):
        try:
            value = np.asarray(value)
        except ValueError as error:
            raise ValueError(f"{name} must be integers: {error}") from None
        if value.size == 0 and value.dtype.kind == "f":
            value = value.astype(np.int32)  # an empty list
    if value.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got dtype {value.dtype}")
    integers: np.ndarray | jax.Array = value
    return integers


def sorted_on_host(data: jax.Array, coordinates: Sequence[np.ndarray], shape: Shape) -> tuple[Leaves, Meta]:
    """Return leaves and meta for known coordinates: check and sort them, and add duplicates."""
    for axis, (c, n) in enumerate(zip(coordinates, shape, strict=True)):
        if c.size:
            low, high = int(c.min()), int(c.max())
            if n == 0:
                raise ValueError(f"indices must be empty, since dimension {axis} of shape {shape} is, got {low}")
            if low < 0 or high >= n:
                raise ValueError(
                    f"indices must be between 0 and {n - 1} in dimension {axis} of shape {shape}, "
                    f"got {low if low < 0 else high}"
                )
    dtype = index_dtype(shape)
    coordinates = [np.asarray(c, dtype) for c in coordinates]
    batch, order = coordinates[0].shape[:-1], tuple(range(len(shape)))
    if len(shape) == 2 and not batch and np.any(coordinates[0][1:] < coordinates[0][:-1]):
        matrix = compressed_rows.assembled(data, coordinates, shape)
        if matrix is not None:
            leaves, (_, meta, _) = matrix._value
            return leaves, meta
    found = [host.order([c[b] for c in coordinates], shape) for b in np.ndindex(*batch)]
    if all(sorting is None and begins is None for sorting, begins in found):
        return (data, *map(as_indices, coordinates), None), (shape, order, False)
    count = coordinates[0].shape[-1]
    lengths = [count if begins is None else len(begins) for _, begins in found]
    total = max(lengths, default=0)
    sorting = np.empty((*batch, count), np.int32)
    slot = np.empty((*batch, count), np.int32)
    merged = [np.full((*batch, total), n, dtype) for n in shape]
    for b, (by, begins), length in zip(np.ndindex(*batch), found, lengths, strict=True):
        by = np.arange(count) if by is None else by
        begins = np.arange(count) if begins is None else begins
        sorting[b] = by
        slot[b] = np.repeat(np.arange(length), np.diff(np.append(begins, count)))
        for new, old in zip(merged, coordinates, strict=True):
            new[b][:length] = old[b][by[begins]]
    data = _added(data, sorting, slot, total)
    return (data, *map(as_indices, merged), None), (shape, order, min(lengths, default=0) < total)


def _added(data: jax.Array, sorting: np.ndarray, slot: np.ndarray, total: int) -> jax.Array:
    """Return the data in sorted order, with the data of equal slots added."""

    def add(data: jax.Array, sorting: jax.Array, slot: jax.Array) -> jax.Array:
        start, data = jnp.zeros(total, data.dtype), data[sorting]
        options: dict[str, Any] = {"indices_are_sorted": True, "mode": "promise_in_bounds"}
        if data.dtype == bool:
            return start.at[slot].max(data, **options)
        wide = numerics.accumulator(start)
        return wide.at[slot].add(data.astype(wide.dtype), **options).astype(start.dtype)

    return numerics.over_batch(add, data.ndim - 1)(data, barred(sorting), barred(slot))


def sorted_on_device(
    data: jax.Array, coordinates: Sequence[np.ndarray | jax.Array], shape: Shape, batch: Shape
) -> tuple[Leaves, Meta]:
    """Do the same for traced coordinates: out-of-range entries are dropped, and duplicates leave padding."""
    dtype = index_dtype(shape)
    coordinates = [jnp.broadcast_to(c, batch) for c in coordinates]
    inside: Any = math.prod(shape) > 0
    for c, n in zip(coordinates, shape, strict=True):
        inside = inside & (c >= 0) & (c < n)
    coordinates = [jnp.where(inside, c, n).astype(dtype) for c, n in zip(coordinates, shape, strict=True)]
    data = jnp.where(inside, data, jnp.zeros((), data.dtype))

    def arrange(data: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, ...]:
        coordinates, data = numerics.sort(coordinates, data)
        data, coordinates = numerics.sum_duplicates(data, coordinates, shape)
        return data, *coordinates

    leaves = numerics.over_batch(arrange, len(batch) - 1)(data, *coordinates)
    return (*leaves, None), (shape, tuple(range(len(shape))), True)
