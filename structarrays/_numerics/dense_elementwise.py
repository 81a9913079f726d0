"""Every elementwise function of the standard, on plain JAX arrays.

Arguments are arrays of one dtype, already promoted; those of a function with two may broadcast. Names and parameters
are the standard's, as are special cases: where ``jax.numpy`` departs from them, the function says so.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from . import complex_functions
from .flags import custom_jvp


def _is_complex(x: Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.complexfloating)


def abs(x: Array, /) -> Array:
    """Magnitude."""
    return complex_functions.absolute(x) if _is_complex(x) else jnp.abs(x)


def acos(x: Array, /) -> Array:
    """Inverse cosine, in radians."""
    return complex_functions.acos(x) if _is_complex(x) else jnp.acos(x)


def acosh(x: Array, /) -> Array:
    """Inverse hyperbolic cosine."""
    return complex_functions.acosh(x) if _is_complex(x) else jnp.acosh(x)


def add(x1: Array, x2: Array, /) -> Array:
    """``x1 + x2``."""
    return jnp.add(x1, x2)


def asin(x: Array, /) -> Array:
    """Inverse sine, in radians."""
    return complex_functions.asin(x) if _is_complex(x) else jnp.asin(x)


def asinh(x: Array, /) -> Array:
    """Inverse hyperbolic sine."""
    return complex_functions.asinh(x) if _is_complex(x) else jnp.asinh(x)


def atan(x: Array, /) -> Array:
    """Inverse tangent, in radians."""
    return complex_functions.atan(x) if _is_complex(x) else jnp.atan(x)


def atan2(x1: Array, x2: Array, /) -> Array:
    """Angle of the point ``(x2, x1)``, in radians."""
    return jnp.atan2(x1, x2)


def atanh(x: Array, /) -> Array:
    """Inverse hyperbolic tangent."""
    return complex_functions.atanh(x) if _is_complex(x) else _real_atanh(x)


@custom_jvp
def _real_atanh(x: Array) -> Array:
    # Not jnp.atanh, whose error is that of XLA's log1p.
    magnitude = jnp.abs(x)
    return jnp.copysign(_real_log1p(2 * magnitude / (1 - magnitude)) / 2, x)


_real_atanh.defjvps(lambda tangent, _, x: tangent / (1 - x * x))


def bitwise_and(x1: Array, x2: Array, /) -> Array:
    """Bitwise and."""
    return jnp.bitwise_and(x1, x2)


def bitwise_invert(x: Array, /) -> Array:
    """Flip every bit; for booleans, logical not."""
    return jnp.invert(x)


def bitwise_left_shift(x1: Array, x2: Array, /) -> Array:
    """Shift bits left; all bits are lost where ``x2`` is the width or more."""
    return jnp.left_shift(x1, x2)


def bitwise_or(x1: Array, x2: Array, /) -> Array:
    """Bitwise or."""
    return jnp.bitwise_or(x1, x2)


def bitwise_right_shift(x1: Array, x2: Array, /) -> Array:
    """Shift bits right, keeping the sign."""
    return jnp.right_shift(x1, x2)


def bitwise_xor(x1: Array, x2: Array, /) -> Array:
    """Bitwise exclusive or."""
    return jnp.bitwise_xor(x1, x2)


def ceil(x: Array, /) -> Array:
    """Round towards +infinity."""
    return jnp.ceil(x)


def clip(x: Array, /, min: Array | None = None, max: Array | None = None) -> Array:
    """Clamp to ``[min, max]``; NaN where any of the three is. ``max`` wins where the bounds cross, as in NumPy."""
    if min is not None:
        x = jnp.maximum(x, min)
    if max is not None:
        x = jnp.minimum(x, max)
    return x


def conj(x: Array, /) -> Array:
    """Complex conjugate; real arrays unchanged."""
    return jnp.conj(x)


def copysign(x1: Array, x2: Array, /) -> Array:
    """Magnitude of ``x1`` with the sign bit of ``x2``."""
    return jnp.copysign(x1, x2)


def cos(x: Array, /) -> Array:
    """Cosine of radians."""
    return complex_functions.cos(x) if _is_complex(x) else jnp.cos(x)


def cosh(x: Array, /) -> Array:
    """Hyperbolic cosine."""
    return complex_functions.cosh(x) if _is_complex(x) else jnp.cosh(x)


def divide(x1: Array, x2: Array, /) -> Array:
    """``x1 / x2``."""
    return jnp.true_divide(x1, x2)


def equal(x1: Array, x2: Array, /) -> Array:
    """``x1 == x2``."""
    return jnp.equal(x1, x2)


def exp(x: Array, /) -> Array:
    """Exponential."""
    return complex_functions.exp(x) if _is_complex(x) else jnp.exp(x)


def expm1(x: Array, /) -> Array:
    """``exp(x) - 1``, accurate near zero."""
    return complex_functions.expm1(x) if _is_complex(x) else jnp.expm1(x)


def floor(x: Array, /) -> Array:
    """Round towards -infinity."""
    return jnp.floor(x)


def floor_divide(x1: Array, x2: Array, /) -> Array:
    """``floor(x1 / x2)``."""
    quotient = jnp.floor_divide(x1, x2)
    if not jnp.issubdtype(quotient.dtype, jnp.floating):
        return quotient
    # The standard prefers floor(x1 / x2) in all special cases (inf // 2 is inf, 1 // -inf is -0), where jnp follows
    # Python's divmod. At ordinary points jnp's result is the better one: it is exact where x1 / x2 rounds up to an
    # integer. Both have derivative zero.
    ordinary = jnp.isfinite(x1) & jnp.isfinite(x2) & (x1 != 0) & (x2 != 0)
    return jnp.where(ordinary, quotient, jnp.floor(x1 / x2))


def greater(x1: Array, x2: Array, /) -> Array:
    """``x1 > x2``."""
    return jnp.greater(x1, x2)


def greater_equal(x1: Array, x2: Array, /) -> Array:
    """``x1 >= x2``."""
    return jnp.greater_equal(x1, x2)


def hypot(x1: Array, x2: Array, /) -> Array:
    """``sqrt(x1**2 + x2**2)`` without undue overflow."""
    return jnp.hypot(x1, x2)


def imag(x: Array, /) -> Array:
    """Imaginary component."""
    return jnp.imag(x)


def isfinite(x: Array, /) -> Array:
    """Is neither infinite nor NaN; of a complex number, in both components."""
    return jnp.isfinite(x)


def isinf(x: Array, /) -> Array:
    """Is infinite; of a complex number, in at least one component."""
    return jnp.isinf(x)


def isnan(x: Array, /) -> Array:
    """Is NaN; of a complex number, in at least one component."""
    return jnp.isnan(x)


def less(x1: Array, x2: Array, /) -> Array:
    """``x1 < x2``."""
    return jnp.less(x1, x2)


def less_equal(x1: Array, x2: Array, /) -> Array:
    """``x1 <= x2``."""
    return jnp.less_equal(x1, x2)


def log(x: Array, /) -> Array:
    """Natural logarithm."""
    return complex_functions.log(x) if _is_complex(x) else jnp.log(x)


def log10(x: Array, /) -> Array:
    """Logarithm to base 10."""
    return complex_functions.log10(x) if _is_complex(x) else jnp.log10(x)


def log1p(x: Array, /) -> Array:
    """``log(1 + x)``, accurate near zero."""
    return complex_functions.log1p(x) if _is_complex(x) else _real_log1p(x)


def _real_log1p(x: Array) -> Array:
    # XLA's log1p of float64 is off by 127 units in the last place near -0.414; below -1/4 nothing cancels in the plain formula.
    return jnp.where(x < -0.25, jnp.log(1 + jnp.where(x < -0.25, x, 0)), jnp.log1p(jnp.where(x < -0.25, 0, x)))


def log2(x: Array, /) -> Array:
    """Logarithm to base 2."""
    return complex_functions.log2(x) if _is_complex(x) else jnp.log2(x)


def logaddexp(x1: Array, x2: Array, /) -> Array:
    """``log(exp(x1) + exp(x2))`` without undue overflow."""
    return jnp.logaddexp(x1, x2)


def logical_and(x1: Array, x2: Array, /) -> Array:
    """Logical and."""
    return jnp.logical_and(x1, x2)


def logical_not(x: Array, /) -> Array:
    """Logical not."""
    return jnp.logical_not(x)


def logical_or(x1: Array, x2: Array, /) -> Array:
    """Logical or."""
    return jnp.logical_or(x1, x2)


def logical_xor(x1: Array, x2: Array, /) -> Array:
    """Logical exclusive or."""
    return jnp.logical_xor(x1, x2)


def maximum(x1: Array, x2: Array, /) -> Array:
    """The larger one; NaN if either is."""
    return jnp.maximum(x1, x2)


def minimum(x1: Array, x2: Array, /) -> Array:
    """The smaller one; NaN if either is."""
    return jnp.minimum(x1, x2)


def multiply(x1: Array, x2: Array, /) -> Array:
    """``x1 * x2``."""
    return jnp.multiply(x1, x2)


def negative(x: Array, /) -> Array:
    """``-x``."""
    return jnp.negative(x)


def nextafter(x1: Array, x2: Array, /) -> Array:
    """The neighbour of ``x1`` in the direction of ``x2``."""
    return jnp.nextafter(x1, x2)


def not_equal(x1: Array, x2: Array, /) -> Array:
    """``x1 != x2``."""
    return jnp.not_equal(x1, x2)


def positive(x: Array, /) -> Array:
    """``+x``: the array itself, which nobody can change."""
    return x


def pow(x1: Array, x2: Array, /) -> Array:
    """``x1 ** x2``; of complex numbers, zero to a power with a positive real part is zero."""
    if not _is_complex(x1):
        return jnp.power(x1, x2)
    zero = x1 == 0
    power = jnp.power(jnp.where(zero, 1, x1), x2)
    of_zero = jnp.where(x2 == 0, 1, jnp.where(jnp.real(x2) > 0, 0, jnp.nan)).astype(x1.dtype)
    return jnp.where(zero, of_zero, power)


def real(x: Array, /) -> Array:
    """Real component."""
    return jnp.real(x)


def reciprocal(x: Array, /) -> Array:
    """``1 / x``."""
    return jnp.reciprocal(x)


def remainder(x1: Array, x2: Array, /) -> Array:
    """Python's ``x1 % x2``: the remainder with the sign of ``x2``."""
    if jnp.issubdtype(x1.dtype, jnp.floating):
        return _float_remainder(x1, x2)
    return jnp.remainder(x1, x2)


@custom_jvp
def _float_remainder(x1: Array, x2: Array) -> Array:
    # A zero must have the sign of x2, jnp gives it that of x1 (jax-ml/jax#40028).
    result = jnp.remainder(x1, x2)
    return jnp.where(result == 0, jnp.copysign(0, x2), result)


@_float_remainder.defjvp
def _float_remainder_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    # Without this rule the constant zero above would have derivative 0 instead of 1.
    _, tangent = jax.jvp(jnp.remainder, primals, tangents)
    return _float_remainder(*primals), tangent


def round(x: Array, /) -> Array:
    """Round to the nearest integer, ties to even; complex components separately."""
    return jnp.round(x)


def sign(x: Array, /) -> Array:
    """-1, 0 or +1; of a complex number ``x / abs(x)``, and 0 at 0."""
    if _is_complex(x):
        return complex_functions.sign(x)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.sign(x)
    return jnp.where(x == 0, 0, jnp.sign(x))  # the standard: 0 for both zeros; jnp.sign(-0.0) is -0.0


def signbit(x: Array, /) -> Array:
    """Is the sign bit set, of -0 and NaN too."""
    return jnp.signbit(x)


def sin(x: Array, /) -> Array:
    """Sine of radians."""
    return complex_functions.sin(x) if _is_complex(x) else jnp.sin(x)


def sinh(x: Array, /) -> Array:
    """Hyperbolic sine."""
    return complex_functions.sinh(x) if _is_complex(x) else jnp.sinh(x)


def sqrt(x: Array, /) -> Array:
    """Principal square root."""
    return complex_functions.sqrt(x) if _is_complex(x) else jnp.sqrt(x)


def square(x: Array, /) -> Array:
    """``x * x``."""
    return jnp.square(x)


def subtract(x1: Array, x2: Array, /) -> Array:
    """``x1 - x2``."""
    return jnp.subtract(x1, x2)


def tan(x: Array, /) -> Array:
    """Tangent of radians."""
    return complex_functions.tan(x) if _is_complex(x) else jnp.tan(x)


def tanh(x: Array, /) -> Array:
    """Hyperbolic tangent."""
    return complex_functions.tanh(x) if _is_complex(x) else jnp.tanh(x)


def trunc(x: Array, /) -> Array:
    """Round towards zero."""
    return jnp.trunc(x)
