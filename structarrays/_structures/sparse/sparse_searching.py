"""`argmax` and `argmin` of sparse matrices: the stored entries of each line, and the first place without an entry."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.dtypes import default_dtype
from ..._functions.searching import argmax, argmin
from .array import Sparse


def is_searched(x: Array, *, axis: int | None, keepdims: bool) -> bool:
    """Return whether the axis is a core axis of a matrix, or the indices of a flattened matrix fit the index data type."""
    if x.core_ndim != 2:
        return False
    if axis is None:
        m, n = x.shape[-2:]
        return x.batch_shape == () and m * n < jnp.iinfo(default_dtype("i")).max
    return axis >= len(x.batch_shape)


@argmax.kernel(Sparse, when=is_searched)
def _argmax_sparse(x: Sparse, *, axis: int | None, keepdims: bool) -> Dense:
    return _first(x, axis, keepdims, largest=True)


@argmin.kernel(Sparse, when=is_searched)
def _argmin_sparse(x: Sparse, *, axis: int | None, keepdims: bool) -> Dense:
    return _first(x, axis, keepdims, largest=False)


def _first(x: Sparse, axis: int | None, keepdims: bool, *, largest: bool) -> Dense:
    """Return the index of the first extreme element of each line, or of the matrix."""
    background = jnp.zeros(x.batch_shape, x.dtype) if x.background is None else x.background
    if axis is None:
        x = x._in_order((0, 1))
        (m, n), dtype = x.core_shape, default_dtype("i")
        rows, columns = (c.astype(dtype) for c in x.coords)
        # The coordinates of padding are m and n, so that no element has its index.
        found = _first_of_lines(x.data, rows // m, rows * n + columns, background, 1, m * n, largest)[0]
        return Dense.make((found.reshape((1, 1) if keepdims else ()).astype(dtype),))
    along = axis - len(x.batch_shape)
    x = x._in_order((1 - along, along))
    lines, length = x.core_shape[1 - along], x.core_shape[along]
    search = functools.partial(_first_of_lines, lines=lines, length=length, largest=largest)
    found = x._over_batch(search, x.data, x.coords[1 - along], x.coords[along], background)
    found = found.astype(default_dtype("i"))
    return Dense.make((jnp.expand_dims(found, axis) if keepdims else found,))


def _first_of_lines(
    data: jax.Array, line: jax.Array, place: jax.Array, background: jax.Array, lines: int, length: int, largest: bool
) -> jax.Array:
    """Search each line, given its entries in order.

    Parameters
    ----------
    data, line, place : jax.Array, (nnz,)
        The entries, the line of each and its place in the line, sorted. Entries of other lines are padding.
    background : jax.Array
        The element at all other places.
    lines, length : int
    largest : bool
    """
    options: dict[str, Any] = {"num_segments": lines, "indices_are_sorted": True}
    extreme = (jax.ops.segment_max if largest else jax.ops.segment_min)(data, line, **options)
    is_nan = jnp.isnan(data)
    # NaN counts as the extreme, and is the extreme that JAX returns.
    extreme_here = extreme[jnp.minimum(line, lines - 1)]
    is_best = is_nan | (data == extreme_here)
    is_best = jnp.where(jnp.isnan(extreme_here), is_nan, is_best)
    stored = jax.ops.segment_min(jnp.where(is_best, place, length), line, **options)
    bounds = jnp.searchsorted(line, jnp.arange(lines + 1, dtype=line.dtype)).astype(place.dtype)
    starts, count = bounds[:-1], jnp.diff(bounds)
    rank = jnp.arange(data.size, dtype=place.dtype) - starts[jnp.minimum(line, lines - 1)]
    missing = jax.ops.segment_min(jnp.where(place != rank, rank, length), line, **options)
    missing = jnp.minimum(jnp.minimum(missing, count), length)
    stored = jnp.where(count == 0, length, stored)
    comes_first = background > extreme if largest else background < extreme
    comes_first |= (count == 0) | (jnp.isnan(background) & ~jnp.isnan(extreme))
    equal = (background == extreme) | (jnp.isnan(background) & jnp.isnan(extreme))
    by_background = jnp.where(comes_first, missing, jnp.where(equal, jnp.minimum(stored, missing), stored))
    return jnp.where(missing < length, by_background, stored)
