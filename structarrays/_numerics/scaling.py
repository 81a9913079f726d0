"""Scaling by powers of two, which is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

if TYPE_CHECKING:
    from .._core.typing import DTypeLike


def exponent(size: Array) -> Array:
    """Exponent of a power of two near a magnitude; zero for zero, infinity and NaN.

    The power and its reciprocal are normal numbers: XLA replaces subnormal numbers by zero, and the reciprocal must not
    overflow.
    """
    largest = -jnp.finfo(size.dtype).minexp
    _, power = jnp.frexp(jnp.where(jnp.isfinite(size), size, 0))
    return jnp.clip(power, -largest, largest)


def power_of_two(exponent: Array, dtype: DTypeLike) -> Array:
    """``2**exponent``."""
    return jnp.ldexp(jnp.ones((), dtype), exponent)
