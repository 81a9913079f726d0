"""The standard's searching functions, on plain JAX arrays. Indices have the default integer dtype."""

import jax
import jax.numpy as jnp
import numpy
from jax import Array

from .devices import device_of

argmax = jnp.argmax
argmin = jnp.argmin
count_nonzero = jnp.count_nonzero
where = jnp.where


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Indices of the nonzero elements, one array per dimension. Eager only: the shapes depend on the data."""
    # On the host, since every new count would compile again.
    integer = jnp.result_type(int)
    return tuple(jax.device_put(index.astype(integer), device_of(x)) for index in numpy.nonzero(numpy.asarray(x)))


def searchsorted(x1: Array, x2: Array, /, *, side: str = "left", sorter: Array | None = None) -> Array:
    """Indices at which to insert ``x2`` into the sorted ``x1``; NaN is sorted last, as by `sort`."""
    # jnp returns int32, also with x64 enabled.
    return jnp.searchsorted(x1, x2, side=side, sorter=sorter).astype(int)
