"""Reductions of sparse arrays: what is stored by segments, and the background as often as entries are missing."""

import math

import jax.numpy as jnp

from ..core.dense import Dense
from ..core.dispatch import allow_dense
from ..core.reductions import reduce_core, squared_deviations, squared_magnitude
from ..kernels import sparse as kernel
from .sparse import Sparse


@reduce_core.kernel(Sparse)
def _(x, *, monoid, axes, keepdims):
    background = x.background
    if background is None and not monoid.zero_is_identity(x.dtype):
        background = jnp.zeros(x.batch_shape, x.dtype)
    if background is not None:
        kept = [n for i, n in enumerate(x.core_shape) if i - x.core_ndim not in axes]
        background = jnp.broadcast_to(background.reshape(x.batch_shape + (1,) * len(kept)), (*x.batch_shape, *kept))
    return _reduce(x, x.data, background, monoid, axes, keepdims)


@squared_deviations.kernel(Sparse)
def _(x, *, mean, monoid, axes, keepdims):
    mean = jnp.broadcast_to(mean.data, x.batch_shape + mean.shape[len(x.batch_shape) :])

    def at_entries(mean, *coordinates):
        where = (jnp.zeros_like(c) if n == 1 else c for c, n in zip(coordinates, mean.shape, strict=True))
        return mean.at[tuple(where)].get(mode="clip")

    entries = squared_magnitude(x.data - x._over_batch(at_entries, mean, *x.coords)) if x.nnz else x.data.real
    background = x._fill().reshape(x.batch_shape + (1,) * x.core_ndim)
    background = jnp.squeeze(squared_magnitude(background - mean), axes)
    return _reduce(x, entries, background, monoid, axes, keepdims)


def _reduce(x, data, background, monoid, axes, keepdims):
    """The data over some core axes, with the background (None changes nothing) for what is not stored."""
    kept = [i for i in range(x.core_ndim) if i - x.core_ndim not in axes]
    shape = tuple(x.core_shape[i] for i in kept)
    places = math.prod(shape)
    if len(kept) > 1:
        allow_dense(x, "a reduction", places * math.prod(x.batch_shape))
    size = math.prod(n for i, n in enumerate(x.core_shape) if i not in kept)
    identity = monoid.identity(data.dtype)

    def reduce(data, *coordinates):
        inside = coordinates[0] < x.core_shape[0]
        if not kept:
            data = jnp.where(inside, data, identity) if x.padded else data
            result = monoid.reduce(data, axis=(0,), keepdims=False)
            return result, jnp.sum(inside, dtype=jnp.int32)
        segments = kernel.flat_index([coordinates[i] for i in kept], shape)
        in_order = x.order[: len(kept)] == tuple(kept)
        ones = jnp.ones(segments.shape, jnp.int32)
        count = kernel.scatter(jnp.zeros(places, jnp.int32), segments, ones, "add", indices_are_sorted=in_order)
        if monoid.scatter:
            start = jnp.full(places, identity, data.dtype)
            return kernel.scatter(start, segments, data, monoid.scatter, indices_are_sorted=in_order), count
        return kernel.reduce_segments(data, segments, places, monoid.combine, identity), count

    result, count = x._over_batch(reduce, data, *x.coords)
    result = result.reshape((*x.batch_shape, *shape)).astype(data.dtype)
    if background is not None and size:
        result = _with_missing(result, count, background, x, size, monoid, shape, bool(kept))
    return Dense._make((jnp.expand_dims(result, axes) if keepdims else result,))


def _with_missing(result, count, background, x, size, monoid, shape, in_segments):
    """The reduction of the entries, and of the background for those that are missing."""
    if not in_segments and not x.padded:
        missing = size - x.nnz  # static
        return monoid.combine(result, monoid.repeat(background, missing)) if missing else result
    dtype = jnp.int32 if size < 2**31 else jnp.result_type(int)
    missing = size - count.astype(dtype).reshape((*x.batch_shape, *shape))
    repeated = monoid.repeat(background, missing)
    return jnp.where(missing > 0, monoid.combine(result, repeated), result)
