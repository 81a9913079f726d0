"""Elements of a structured array at given coordinates, for indexing and for operations of one structure with another.

A structure registers one kernel here, in its own file::

    @elements.kernel(Diagonal)
    def elements_diagonal(x, i, j):
        return jnp.where(i == j, x.diag[..., jnp.minimum(i, j)], 0)

With this kernel, the time to read elements, rows, columns, blocks and index arrays is proportional to their number of
elements. The entries of one structure at the pattern of another are computed without a dense form.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..dispatch.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..array.base import Array

elements: Registry[jax.Array] = Registry("elements")
"""``elements.kernel(S)`` registers ``(x, *coordinates)``, which returns the elements at these coordinates as a
`jax.Array`, with the batch shape in front. There is one integer array for each core dimension, in range and
nonnegative; they broadcast together."""


def has_elements(x: Array, *args: Any, **static: Any) -> bool:
    """Return whether the structure has a kernel of `elements`."""
    return elements.choose((x,), {}) is not None


def elements_at(x: Array, coordinates: Sequence[jax.Array], batch_ndim: int = 0) -> jax.Array:
    """Return the elements of `x` at coordinates that may differ for each matrix of a batch.

    Parameters
    ----------
    x : Array
        An array of a structure that has a kernel of `elements`.
    coordinates : tuple of jax.Array
        Integer arrays, one for each core dimension.
    batch_ndim : int, default 0
        Number of leading batch dimensions of the coordinates, aligned with the batch dimensions of `x` from the right.
    """
    kernel = elements.required((x,)).run
    if batch_ndim == 0:
        return kernel(x, *coordinates)
    batch = jnp.broadcast_shapes(x.batch_shape, coordinates[0].shape[:batch_ndim])
    own = len(x.batch_shape)
    x = x.map_parameters(lambda leaf: jnp.broadcast_to(leaf, batch + leaf.shape[own:]))
    coordinates = [jnp.broadcast_to(c, batch + c.shape[batch_ndim:]) for c in coordinates]
    for _ in batch:
        kernel = jax.vmap(kernel)
    return kernel(x, *coordinates)


_NUMBERS = 1 << 21
"""Approximate number of elements of whole rows or columns that are computed at a time."""


def in_blocks(read: Callable[..., jax.Array], x: Array, i: jax.Array, j: jax.Array) -> jax.Array:
    """Return elements of a stack of matrices, computed from whole rows or columns, in blocks if these are many.

    Parameters
    ----------
    read : callable
        ``read(x, i, j)`` returns the elements at rows `i` and columns `j`. It computes whole rows or whole columns, whichever are fewer.
    x : Array, (..., m, n)
    i, j : jax.Array of integers
        Indices of rows and columns, which broadcast together.
    """
    shape = jnp.broadcast_shapes(i.shape, j.shape)
    fewer = i if i.size < j.size else j
    numbers = fewer.size * max(x.shape[-2:]) * math.prod(x.shape[:-2])
    if numbers <= _NUMBERS:
        return read(x, i, j)
    i, j, fewer = (c.reshape((1,) * (len(shape) - c.ndim) + c.shape) for c in (i, j, fewer))
    axis = int(np.argmax(fewer.shape))
    count = min(-(-numbers // _NUMBERS), shape[axis])
    width = -(-shape[axis] // count)
    count = -(-shape[axis] // width)

    def cut(c: jax.Array) -> jax.Array:
        """Return the coordinates of each block.

        Copies of the last coordinate pad the last block. Coordinates of length one serve all blocks.
        """
        if c.shape[axis] == 1:
            return jnp.broadcast_to(c, (count, *c.shape))
        padding = [(0, count * width - c.shape[axis]) if a == axis else (0, 0) for a in range(c.ndim)]
        padded = jnp.pad(c, padding, mode="edge")
        return jnp.moveaxis(padded.reshape(*c.shape[:axis], count, width, *c.shape[axis + 1 :]), axis, 0)

    # Without checkpoints the reverse-mode derivative would store all blocks, and so the whole matrix.
    block = jax.checkpoint(lambda coordinates: read(x, *coordinates))
    found = jax.lax.map(block, (cut(i), cut(j)))
    axis += found.ndim - 1 - len(shape)
    found = jnp.moveaxis(found, 0, axis)
    found = found.reshape(*found.shape[:axis], count * width, *found.shape[axis + 2 :])
    return jax.lax.slice_in_dim(found, 0, shape[axis - found.ndim + len(shape)], axis=axis)


def element(x: Array, i: jax.Array, j: jax.Array) -> jax.Array:
    """Return elements of a stack of matrices, from its dense form if it has no kernel of `elements`."""
    return elements_at(x, (i, j)) if has_elements(x) else x.dense_data()[..., i, j]


def gather(data: jax.Array, coordinates: Sequence[jax.Array], batch_ndim: int = 0) -> jax.Array:
    """Return dense data at coordinates; missing dimensions of `data` and dimensions of size 1 broadcast.

    See `elements_at`.
    """
    core = len(coordinates)
    data = data.reshape((1,) * (core - data.ndim) + data.shape)
    shape = data.shape[data.ndim - core :]
    if 0 in shape:  # all coordinates are padding, and JAX refuses them
        batch = jnp.broadcast_shapes(data.shape[:-core], coordinates[0].shape[:batch_ndim])
        return jnp.zeros(batch + jnp.broadcast_shapes(*(c.shape[batch_ndim:] for c in coordinates)), data.dtype)

    def at(matrix: jax.Array, *where: jax.Array) -> jax.Array:
        index = (jnp.zeros_like(c) if n == 1 else c for c, n in zip(where, shape, strict=True))
        return matrix[(..., *index)]

    if batch_ndim == 0:
        return at(data, *coordinates)
    batch = jnp.broadcast_shapes(data.shape[:-core], coordinates[0].shape[:batch_ndim])
    data = jnp.broadcast_to(data, batch + shape)
    coordinates = [jnp.broadcast_to(c, batch + c.shape[batch_ndim:]) for c in coordinates]
    for _ in batch:
        at = jax.vmap(at)
    return at(data, *coordinates)
