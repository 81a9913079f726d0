"""Conversions of data types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

if TYPE_CHECKING:
    from .._core.typing import DTypeLike


def converted(x: Array, dtype: DTypeLike) -> Array:
    """Convert an array to a data type.

    Booleans become numbers by a selection. XLA turns a product with a converted boolean into a choice between the other factor and zero,
    also where that factor is NaN or infinite (docs/design/jax_bugs.md).
    """
    dtype = np.dtype(dtype)
    if x.dtype == np.bool_ and jnp.issubdtype(dtype, jnp.inexact):
        return jnp.where(x, jnp.ones((), dtype), jnp.zeros((), dtype))
    return lax.convert_element_type(x, dtype)
