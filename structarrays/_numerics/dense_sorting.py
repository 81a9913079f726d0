"""The standard's sorting functions, on plain JAX arrays. NaN is the largest value: last ascending, first descending."""

import jax.numpy as jnp
from jax import Array

sort = jnp.sort


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Indices that sort along an axis, in the default integer dtype."""
    return jnp.argsort(x, axis=axis, descending=descending, stable=stable).astype(int)
