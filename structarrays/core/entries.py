"""Elements of a structured array by their coordinates: what indexing, and one structure beside another, lean on.

A structure registers one kernel here, in its own file::

    @elements.kernel(Diagonal)
    def _(x, i, j):
        return jnp.where(i == j, x.diag[..., jnp.minimum(i, j)], 0)

With that, single elements, rows, columns, blocks and index arrays cost what they have elements, and the entries of the
structure at the pattern of another are found without a dense form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from .registry import Registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .array import Array

elements: Registry[jax.Array] = Registry("elements")
"""``elements.kernel(S)``: ``(x, *coordinates)`` to the elements at these coordinates as a `jax.Array`: one integer array
for each core dimension, in range and not negative, which broadcast together; the result has the batch shape in front."""


def has_elements(x: Array, *args: Any, **static: Any) -> bool:
    """Whether the structure can be asked for elements by their coordinates."""
    return elements.choose((x,), {}) is not None


def elements_at(x: Array, coordinates: Sequence[jax.Array], batch_ndim: int = 0) -> jax.Array:
    """The elements of `x` at coordinates that may differ for each matrix of a batch.

    Parameters
    ----------
    x : Array
        Of a structure that has a kernel of `elements`.
    coordinates : tuple of jax.Array
        One for each core dimension.
    batch_ndim : int
        How many of the coordinates' leading dimensions are batch dimensions, aligned with those of `x` from the right.
    """
    kernel = elements.required((x,)).run
    if batch_ndim == 0:
        return kernel(x, *coordinates)
    batch = jnp.broadcast_shapes(x.batch_shape, coordinates[0].shape[:batch_ndim])
    own = len(x.batch_shape)
    x = x._map_leaves(lambda leaf: jnp.broadcast_to(leaf, batch + leaf.shape[own:]))
    coordinates = [jnp.broadcast_to(c, batch + c.shape[batch_ndim:]) for c in coordinates]
    for _ in batch:
        kernel = jax.vmap(kernel)
    return kernel(x, *coordinates)


def element(x: Array, i: jax.Array, j: jax.Array) -> jax.Array:
    """Elements of a stack of matrices of any structure, by its dense form if it cannot be asked."""
    return elements_at(x, (i, j)) if has_elements(x) else x._dense()[..., i, j]


def gather(data: jax.Array, coordinates: Sequence[jax.Array], batch_ndim: int = 0) -> jax.Array:
    """Dense data at coordinates; dimensions of `data` that are missing or 1 broadcast. See `elements_at`."""
    core = len(coordinates)
    data = data.reshape((1,) * (core - data.ndim) + data.shape)
    shape = data.shape[data.ndim - core :]

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
