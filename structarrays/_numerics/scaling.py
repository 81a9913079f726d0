"""Scaling by powers of two, which is exact.

Both functions read and write the exponent bits of floating-point numbers: `jax.numpy.frexp` and `jax.numpy.ldexp` also
handle subnormal numbers, which takes several times longer to compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

if TYPE_CHECKING:
    from .._core.typing import DTypeLike


def exponent(size: Array) -> Array:
    """Exponent of the smallest power of two above a magnitude; zero for zero, infinity and NaN.

    The power and its reciprocal are normal numbers: XLA replaces subnormal numbers by zero, and the reciprocal must not
    overflow.
    """
    largest, digits, integers = _format(size.dtype)
    field = lax.convert_element_type(lax.bitcast_convert_type(size, integers) >> digits, jnp.int32)
    return jnp.where(jnp.isfinite(size) & (size > 0), jnp.clip(field - largest, -largest, largest), 0)


def power_of_two(exponent: Array, dtype: DTypeLike) -> Array:
    """``2**exponent``, for exponents in the range of `exponent`."""
    largest, digits, integers = _format(dtype)
    field = lax.convert_element_type(exponent + (largest + 1), integers)
    return lax.bitcast_convert_type(field << digits, dtype)


def _format(dtype: DTypeLike) -> tuple[int, int, np.dtype]:
    """Return the largest exponent of a power of two whose reciprocal is normal, the number of bits after the exponent's
    bits, and the integer dtype of the same size.
    """
    info = jnp.finfo(dtype)
    return -int(info.minexp), int(info.nmant), np.dtype(f"int{info.bits}")
