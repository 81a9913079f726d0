"""Reductions of sparse arrays: the stored entries by segments, and the background once for each missing entry."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.array.operands import allow_dense, densify
from ..._core.families.conditions import has_structural_zeros
from ..._core.families.reduction_rule import reduce_batch, reduce_core, squared_deviations, squared_magnitude
from ..._functions.monoids import PROD, with_zero
from . import numerics
from .array import Sparse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..._core.array.base import Array
    from ..._core.families.reduction_rule import Monoid
    from ..._core.typing import Shape


@reduce_core.kernel(Sparse)
def _reduce_core_sparse(x: Sparse, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Array:
    if x.core_ndim - len(axes) > 1:
        return _merged(x, monoid, axes, keepdims)
    background, data = x.background, x.data
    if background is None and not monoid.zero_is_identity(x.dtype):
        background = jnp.zeros(x.batch_shape, x.dtype)
        if monoid is PROD and len(axes) == x.core_ndim and math.prod(x.core_shape) > x.nnz:
            # One zero suffices here. The product must not overflow before it.
            data = with_zero(monoid, data)
    if background is not None:
        kept = [n for i, n in enumerate(x.core_shape) if i - x.core_ndim not in axes]
        background = jnp.broadcast_to(background.reshape(x.batch_shape + (1,) * len(kept)), (*x.batch_shape, *kept))
    return _reduce(x, data, background, monoid, axes, keepdims)


@squared_deviations.kernel(Sparse)
def _squared_deviations_sparse(
    x: Sparse, *, mean: Array, monoid: Monoid, axes: tuple[int, ...], keepdims: bool
) -> Dense:
    dense = densify(mean, "a reduction").data
    dense = jnp.broadcast_to(dense, x.batch_shape + dense.shape[len(x.batch_shape) :])

    def at_entries(mean: jax.Array, *coordinates: jax.Array) -> jax.Array:
        where = (jnp.zeros_like(c) if n == 1 else c for c, n in zip(coordinates, mean.shape, strict=True))
        return mean.at[tuple(where)].get(mode="clip")

    entries = squared_magnitude(x.data - x._over_batch(at_entries, dense, *x.coords)) if x.nnz else x.data.real
    background = x._fill().reshape(x.batch_shape + (1,) * x.core_ndim)
    background = jnp.squeeze(squared_magnitude(background - dense), axes)
    return _reduce(x, entries, background, monoid, axes, keepdims)


def _reduce(
    x: Sparse, data: jax.Array, background: jax.Array | None, monoid: Monoid, axes: tuple[int, ...], keepdims: bool
) -> Dense:
    """Reduce the data over some core axes, with the background for entries that are not stored (None: ignored)."""
    kept = [i for i in range(x.core_ndim) if i - x.core_ndim not in axes]
    shape = tuple(x.core_shape[i] for i in kept)
    places = math.prod(shape)
    if len(kept) > 1:
        allow_dense(x, "a reduction", places * math.prod(x.batch_shape))
    size = math.prod(n for i, n in enumerate(x.core_shape) if i not in kept)
    identity = monoid.identity(data.dtype)

    def reduce(data: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, jax.Array]:
        inside = coordinates[0] < x.core_shape[0]
        if not kept and size and not data.shape[0]:
            return jnp.asarray(identity, data.dtype), jnp.zeros(
                (), jnp.int32
            )  # no entries are stored, and the background follows
        if not kept:
            data = jnp.where(inside, data, identity) if x.padded else data
            result = monoid.reduce(data, axis=(0,), keepdims=False)
            return result, jnp.sum(inside, dtype=jnp.int32)
        segments = numerics.flat_index([coordinates[i] for i in kept], shape)
        in_order = x.order[: len(kept)] == tuple(kept)
        ones = jnp.ones(segments.shape, jnp.int32)
        count = numerics.scatter(jnp.zeros(places, jnp.int32), segments, ones, "add", indices_are_sorted=in_order)
        if monoid.scatter:
            start = jnp.full(places, identity, data.dtype)
            return numerics.scatter(start, segments, data, monoid.scatter, indices_are_sorted=in_order), count
        return numerics.reduce_segments(data, segments, places, monoid.combine, identity), count

    result, count = x._over_batch(reduce, data, *x.coords)
    result = result.reshape((*x.batch_shape, *shape)).astype(data.dtype)
    if background is not None and size:
        result = _with_missing(result, count, background, x, size, monoid, shape, bool(kept))
    return Dense.make((jnp.expand_dims(result, axes) if keepdims else result,))


def _with_missing(
    result: jax.Array,
    count: jax.Array,
    background: jax.Array,
    x: Sparse,
    size: int,
    monoid: Monoid,
    shape: Shape,
    in_segments: bool,
) -> jax.Array:
    """Combine the reduction of the entries with the background for the missing entries."""
    if not in_segments and not x.padded:
        missing = size - x.nnz  # static
        return monoid.combine(result, monoid.repeat(background, missing)) if missing else result
    return _completed(result, background, monoid, size, x.nnz, count.reshape((*x.batch_shape, *shape)))


def _completed(
    result: jax.Array, background: jax.Array, monoid: Monoid, size: int, most: int, count: jax.Array
) -> jax.Array:
    """Combine the reduction of `count` entries (at most `most`) with the background for the other ``size - count``.

    At least ``size - most`` entries are missing. This number is static and may be large. The rest is counted in 32
    bits.
    """
    sure = max(0, size - most)
    if sure:
        result = monoid.combine(result, monoid.repeat(background, sure))
    missing = size - sure - count
    return jnp.where(missing > 0, monoid.combine(result, monoid.repeat(background, missing)), result)


# ---- what keeps two dimensions or more is sparse --------------------------------------------------------------------------


def _merged(x: Sparse, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Sparse:
    """Reduce over some core axes: the entries that agree in the other coordinates are combined."""
    kept = [i for i in range(x.core_ndim) if i - x.core_ndim not in axes]
    shape = tuple(x.core_shape[i] for i in kept)
    size = math.prod(n for i, n in enumerate(x.core_shape) if i not in kept)
    bound = min(x.nnz, math.prod(shape))
    neutral = monoid.zero_is_identity(x.dtype) and x.background is None

    def merge(data: jax.Array, fill: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, ...]:
        keys, data = numerics.sort(tuple(coordinates[i] for i in kept), data)
        slot = numerics.slots(keys)
        data = numerics.reduce_segments(data, slot, x.nnz, monoid.combine, monoid.identity(data.dtype))
        if not neutral:
            count = numerics.scatter(jnp.zeros(x.nnz, slot.dtype), slot, jnp.ones_like(slot), "add")
            data = _completed(data, fill, monoid, size, x.nnz, count)
        keys = (jnp.full_like(c, n).at[slot].set(c) for c, n in zip(keys, shape, strict=True))
        return data[:bound], *(c[:bound] for c in keys)

    background = x.background
    if background is not None or not (size or neutral):
        background = monoid.repeated(x._fill(), size)
    leaves = x._over_batch(merge, x.data, x._fill(), *x.coords) if x.nnz else (x.data, *(x.coords[i] for i in kept))
    pattern = Sparse.make((*leaves, background), (shape, tuple(range(len(shape))), bound > 0))
    result = pattern.rebuild((leaves[0],), background)
    return with_new_axes(result, [i + x.core_ndim for i in axes]) if keepdims else result


def with_new_axes(x: Sparse, axes: Sequence[int]) -> Sparse:
    """Return a sparse array with additional core dimensions of size 1 at these positions of the result's core."""
    old = [i for i in range(x.core_ndim + len(axes)) if i not in axes]
    coordinates = dict(zip(old, x.coords, strict=True))
    outside = jnp.where(x.coords[0] < x.core_shape[0], 0, 1).astype(x.coords[0].dtype)
    shape = tuple(x.core_shape[old.index(i)] if i in coordinates else 1 for i in range(len(old) + len(axes)))
    leaves = (x.data, *(coordinates.get(i, outside) for i in range(len(shape))), x.background)
    return Sparse.make(leaves, (shape, (*(old[i] for i in x.order), *axes), x.padded))


@reduce_batch.kernel(Sparse, when=has_structural_zeros)
def _reduce_batch_sparse(x: Sparse, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Array:
    count = len(axes)
    result = reduce_core.required((x,)).run(
        _as_core(x, axes), monoid=monoid, axes=tuple(range(-count - x.core_ndim, -x.core_ndim)), keepdims=False
    )
    return result.map_parameters(lambda leaf: jnp.expand_dims(leaf, axes)) if keepdims else result


def _as_core(x: Sparse, axes: tuple[int, ...]) -> Sparse:
    """Return the array with some of its batch axes as the first core axes."""
    sizes = tuple(x.shape[a] for a in axes)
    behind = tuple(range(-1 - len(axes), -1))
    data, *coordinates = (jnp.moveaxis(leaf, axes, behind) for leaf in (x.data, *x.coords))
    inside = coordinates[0] < x.core_shape[0]
    first = len(x.batch_shape) - len(axes)
    places: Iterable[jax.Array] = (
        jax.lax.broadcasted_iota(coordinates[0].dtype, data.shape, first + i) for i in range(len(axes))
    )
    places = [jnp.where(inside, place, n) for place, n in zip(places, sizes, strict=True)]
    leaves = [
        leaf.reshape((*leaf.shape[:first], math.prod(leaf.shape[first:]))) for leaf in (data, *places, *coordinates)
    ]
    # Sorted except for the padding of each array, which the subsequent merge sorts.
    order = (*range(len(axes)), *(i + len(axes) for i in x.order))
    return Sparse.make((*leaves, None), ((*sizes, *x.core_shape), order, x.padded))
