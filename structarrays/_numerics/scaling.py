"""Powers of two by which numbers are divided, which changes no digit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

if TYPE_CHECKING:
    from .._core.typing import DTypeLike


def exponent(size: Array) -> Array:
    """The exponent of a power of two near to a magnitude; zero for zero, infinity and NaN.

    The power and its reciprocal are normal numbers: XLA replaces smaller ones by zero, and twice the larger one of both is infinity.
    """
    largest = -jnp.finfo(size.dtype).minexp
    _, power = jnp.frexp(jnp.where(jnp.isfinite(size), size, 0))
    return jnp.clip(power, -largest, largest)


def power_of_two(exponent: Array, dtype: DTypeLike) -> Array:
    """``2**exponent``."""
    return jnp.ldexp(jnp.ones((), dtype), exponent)
