"""All elementwise functions of the standard, on plain JAX arrays.

Arguments are arrays of one dtype, already promoted; two arguments may broadcast. Names and special cases follow the
standard. If ``jax.numpy`` deviates from a special case, the function is defined here.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from . import complex_functions, quotients
from .flags import custom_jvp
from .integer_powers import repeated_squaring

# ---- of jax.numpy ----------------------------------------------------------------------------------------------------

add = jnp.add
atan2 = jnp.atan2
bitwise_and = jnp.bitwise_and
bitwise_invert = jnp.invert
bitwise_left_shift = jnp.left_shift
bitwise_or = jnp.bitwise_or
bitwise_right_shift = jnp.right_shift
bitwise_xor = jnp.bitwise_xor
ceil = jnp.ceil
conj = jnp.conj
copysign = jnp.copysign
divide = quotients.quotient
equal = jnp.equal
floor = jnp.floor
greater = jnp.greater
greater_equal = jnp.greater_equal
hypot = jnp.hypot
imag = jnp.imag
isfinite = jnp.isfinite
isinf = jnp.isinf
isnan = jnp.isnan
less = jnp.less
less_equal = jnp.less_equal
logaddexp = jnp.logaddexp
logical_and = jnp.logical_and
logical_not = jnp.logical_not
logical_or = jnp.logical_or
logical_xor = jnp.logical_xor
maximum = jnp.maximum
minimum = jnp.minimum
multiply = jnp.multiply
negative = jnp.negative
nextafter = jnp.nextafter
not_equal = jnp.not_equal
real = jnp.real
reciprocal = quotients.reciprocal
round = jnp.round
signbit = jnp.signbit
square = jnp.square
subtract = jnp.subtract
trunc = jnp.trunc


# ---- of jax.numpy for real numbers -----------------------------------------------------------------------------------


def _is_complex(x: Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.complexfloating)


def _real_log1p(x: Array) -> Array:
    # XLA's log1p of float64 is off by 127 units in the last place near -0.414; below -1/4 nothing cancels in the plain formula.
    return jnp.where(x < -0.25, jnp.log(1 + jnp.where(x < -0.25, x, 0)), jnp.log1p(jnp.where(x < -0.25, 0, x)))


@custom_jvp
def _real_atanh(x: Array) -> Array:
    # Not jnp.atanh, which has the error of XLA's log1p.
    magnitude = jnp.abs(x)
    return jnp.copysign(_real_log1p(2 * magnitude / (1 - magnitude)) / 2, x)


_real_atanh.defjvps(lambda tangent, _, x: tangent / (1 - x * x))


def _by_dtype(of_complex: Callable[[Array], Array], of_real: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return the function of arrays of either kind."""

    def function(x: Array, /) -> Array:
        return of_complex(x) if _is_complex(x) else of_real(x)

    function.__name__ = function.__qualname__ = of_complex.__name__
    return function


abs = _by_dtype(complex_functions.absolute, jnp.abs)
acos = _by_dtype(complex_functions.acos, jnp.acos)
acosh = _by_dtype(complex_functions.acosh, jnp.acosh)
asin = _by_dtype(complex_functions.asin, jnp.asin)
asinh = _by_dtype(complex_functions.asinh, jnp.asinh)
atan = _by_dtype(complex_functions.atan, jnp.atan)
atanh = _by_dtype(complex_functions.atanh, _real_atanh)
cos = _by_dtype(complex_functions.cos, jnp.cos)
cosh = _by_dtype(complex_functions.cosh, jnp.cosh)
exp = _by_dtype(complex_functions.exp, jnp.exp)
expm1 = _by_dtype(complex_functions.expm1, jnp.expm1)
log = _by_dtype(complex_functions.log, jnp.log)
log10 = _by_dtype(complex_functions.log10, jnp.log10)
log1p = _by_dtype(complex_functions.log1p, _real_log1p)
log2 = _by_dtype(complex_functions.log2, jnp.log2)
sin = _by_dtype(complex_functions.sin, jnp.sin)
sinh = _by_dtype(complex_functions.sinh, jnp.sinh)
sqrt = _by_dtype(complex_functions.sqrt, jnp.sqrt)
tan = _by_dtype(complex_functions.tan, jnp.tan)
tanh = _by_dtype(complex_functions.tanh, jnp.tanh)


# ---- with special cases of the standard ------------------------------------------------------------------------------


def clip(x: Array, /, min: Array | None = None, max: Array | None = None) -> Array:
    """Clamp to ``[min, max]``; NaN if any argument is NaN. ``max`` takes precedence if the bounds cross, as in NumPy."""
    if min is not None:
        x = jnp.maximum(x, min)
    if max is not None:
        x = jnp.minimum(x, max)
    return x


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


def positive(x: Array, /) -> Array:
    """``+x``: the array itself, since arrays are immutable."""
    return x


def pow(x1: Array, x2: Array, /) -> Array:
    """``x1 ** x2``; a complex zero to a power with a positive real part is zero."""
    if jnp.issubdtype(x1.dtype, jnp.integer) and jnp.issubdtype(x2.dtype, jnp.integer):
        # JAX uses the exponent modulo 64. A negative exponent is undefined; zero is JAX's result.
        return jnp.where(x2 < 0, 0, repeated_squaring(x1, x2)).astype(x1.dtype)
    if not _is_complex(x1):
        return jnp.power(x1, x2)
    zero = x1 == 0
    power = jnp.power(jnp.where(zero, 1, x1), x2)
    of_zero = jnp.where(x2 == 0, 1, jnp.where(jnp.real(x2) > 0, 0, jnp.nan)).astype(x1.dtype)
    return jnp.where(zero, of_zero, power)


def remainder(x1: Array, x2: Array, /) -> Array:
    """Python's ``x1 % x2``: the remainder with the sign of ``x2``."""
    if jnp.issubdtype(x1.dtype, jnp.floating):
        return _float_remainder(x1, x2)
    return jnp.remainder(x1, x2)


@custom_jvp
def _float_remainder(x1: Array, x2: Array) -> Array:
    # A zero must have the sign of x2; jnp gives it the sign of x1 (jax-ml/jax#40028).
    result = jnp.remainder(x1, x2)
    return jnp.where(result == 0, jnp.copysign(0, x2), result)


@_float_remainder.defjvp
def _float_remainder_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    # Without this rule the constant zero above would have derivative 0 instead of 1.
    _, tangent = jax.jvp(jnp.remainder, primals, tangents)
    return _float_remainder(*primals), tangent


def sign(x: Array, /) -> Array:
    """-1, 0 or +1; ``x / abs(x)`` for a complex number, and 0 at 0."""
    if _is_complex(x):
        return complex_functions.sign(x)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.sign(x)
    return jnp.where(x == 0, 0, jnp.sign(x))  # the standard: 0 for both zeros; jnp.sign(-0.0) is -0.0
