"""Elementary functions of complex arrays, with the special values and signed zeros of C99's Annex G.

The standard takes its special cases from C99. XLA's functions are accurate at ordinary points, but return NaN for many
infinite arguments and forget the sign of zero, so that they take the wrong side of a branch cut: ``sqrt(-1-0j)`` is
``+1j`` in ``jax.numpy`` and ``-1j`` in C99.

Two techniques correct this without affecting derivatives:

* *reflection*: the functions satisfy ``f(conj(z)) = conj(f(z))``, and the odd ones ``f(-z) = -f(z)``. They are
  evaluated where the components are positive and the results multiplied by ``±1``, which restores the signs of zeros;
* *selection* by ``where``, always on a condition that no ordinary argument meets, so that there the branch that is not
  taken cannot leak NaN into a derivative, and a constant that is taken never hides one.

Each function takes and returns a complex array. Comments quote ``a + bj`` for the argument as the standard does.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array, lax

_HALF_PI = math.pi / 2


def _signs(x: Array) -> Array:
    """-1 where the sign bit of ``x`` is set (so for -0 too), else +1."""
    return jnp.where(jnp.signbit(x), -1, 1).astype(x.dtype)


def _swap(z: Array) -> Array:
    """``b + aj``: turns a hyperbolic function into its circular counterpart, ``sin(z) = swap(sinh(swap(z)))``.

    For odd functions with conjugate symmetry this is the standard's ``-1j * sinh(1j * z)``, free of the products with
    zero that would make NaN of infinities.
    """
    return lax.complex(jnp.imag(z), jnp.real(z))


def exp(z: Array) -> Array:
    """Exponential, ``e**a * (cos(b) + j sin(b))``."""
    a, b = jnp.real(z), jnp.imag(z)
    half = jnp.exp(a / 2)  # twice half the exponent: exp(710 + 1.57j) is finite although e**710 is not
    re = (half * jnp.cos(b)) * half
    im = (half * jnp.sin(b)) * half
    # a = ±inf with b infinite or NaN: inf + NaN j, and 0 + 0j.
    unknown_angle = jnp.isinf(a) & ~jnp.isfinite(b)
    re = jnp.where(unknown_angle, jnp.maximum(a, 0), re)
    im = jnp.where(unknown_angle & (a < 0), jnp.copysign(0, b), im)
    # b = ±0: the imaginary part is b, even where a is infinite or NaN.
    im = jnp.where((b == 0) & ~jnp.isfinite(half), b, im)
    return lax.complex(re, im)


def expm1(z: Array) -> Array:
    """``exp(z) - 1`` without cancellation near zero."""
    a, b = jnp.real(z), jnp.imag(z)
    sign = _signs(b)
    w = jnp.expm1(lax.complex(a, b * sign))
    re, im = jnp.real(w), jnp.imag(w)
    # a = ±inf with b infinite or NaN: inf + NaN j, and -1 + 0j.
    unknown_angle = jnp.isinf(a) & ~jnp.isfinite(b)
    re = jnp.where(a == -jnp.inf, -1, jnp.where(unknown_angle, a, re))
    im = jnp.where(unknown_angle & (a < 0), 0, im)
    return lax.complex(re, im * sign)


def log(z: Array) -> Array:
    """Natural logarithm."""
    w = jnp.log(z)
    # One component infinite, the other NaN: +inf + NaN j.
    infinite = jnp.isinf(jnp.real(z)) | jnp.isinf(jnp.imag(z))
    return lax.complex(jnp.where(infinite, jnp.inf, jnp.real(w)), jnp.imag(w))


def _log_to_base(z: Array, base: float) -> Array:
    """``log(z) / log(base)``, componentwise: complex division makes NaN of infinities."""
    w = log(z)
    scale = math.log(base)
    return lax.complex(jnp.real(w) / scale, jnp.imag(w) / scale)


def log2(z: Array) -> Array:
    """Logarithm to base 2."""
    return _log_to_base(z, 2.0)


def log10(z: Array) -> Array:
    """Logarithm to base 10."""
    return _log_to_base(z, 10.0)


def log1p(z: Array) -> Array:
    """``log(1 + z)`` without cancellation near zero."""
    w = jnp.log1p(z)
    infinite = jnp.isinf(jnp.real(z)) | jnp.isinf(jnp.imag(z))
    return lax.complex(jnp.where(infinite, jnp.inf, jnp.real(w)), jnp.imag(w))


def sqrt(z: Array) -> Array:
    """Square root with nonnegative real part; on the branch cut, the negative real axis, the sign of ``b`` decides."""
    a, b = jnp.real(z), jnp.imag(z)
    sign = _signs(b)
    w = jnp.sqrt(lax.complex(a, b * sign))
    # b = ±inf: inf ± inf j whatever a is; a = +inf: inf + ..., a = -inf: ... ± inf j.
    re = jnp.where(jnp.isinf(b) | (a == jnp.inf), jnp.inf, jnp.real(w))
    im = jnp.where(jnp.isinf(b) | (a == -jnp.inf), jnp.inf, jnp.imag(w))
    return lax.complex(re, im * sign)


def sinh(z: Array) -> Array:
    """Hyperbolic sine, ``sinh(a) cos(b) + j cosh(a) sin(b)``.

    From half arguments, so that nothing overflows before the result does; unlike XLA's difference of exponentials it is
    accurate in both components where ``a`` is small (pearu/functional_algorithms#51).
    """
    a, b = jnp.real(z), jnp.imag(z)
    s, c = jnp.sinh(a / 2), jnp.cosh(a / 2)
    re = 2 * ((s * jnp.cos(b)) * c)
    im = (c * jnp.sin(b)) * c + (s * jnp.sin(b)) * s
    # b infinite or NaN: ±0 + NaN j for a = ±0, ±inf + NaN j for a = ±inf.
    re = jnp.where(~jnp.isfinite(b) & ((a == 0) | jnp.isinf(a)), a, re)
    # b = ±0: the imaginary part is b, even where a is infinite or NaN.
    im = jnp.where((b == 0) & ~jnp.isfinite(c), b, im)
    return lax.complex(re, im)


def cosh(z: Array) -> Array:
    """Hyperbolic cosine, ``cosh(a) cos(b) + j sinh(a) sin(b)``, from half arguments as in `sinh`."""
    a, b = jnp.real(z), jnp.imag(z)
    s, c = jnp.sinh(a / 2), jnp.cosh(a / 2)
    re = (c * jnp.cos(b)) * c + (s * jnp.cos(b)) * s
    im = 2 * ((s * jnp.sin(b)) * c)
    # b infinite or NaN: NaN ± 0j for a = ±0, inf + NaN j for a = ±inf.
    re = jnp.where(~jnp.isfinite(b) & jnp.isinf(a), jnp.inf, re)
    zero = jnp.copysign(jnp.zeros_like(a), a) * _signs(b)
    im = jnp.where(((a == 0) & ~jnp.isfinite(b)) | ((b == 0) & ~jnp.isfinite(c)), zero, im)
    return lax.complex(re, im)


def tanh(z: Array) -> Array:
    """Hyperbolic tangent."""
    a, b = jnp.real(z), jnp.imag(z)
    sign = _signs(b)
    w = jnp.tanh(lax.complex(a, b * sign))
    # a = ±0 with b infinite or NaN: ±0 + NaN j (C11's correction of C99).
    re = jnp.where((a == 0) & ~jnp.isfinite(b), a, jnp.real(w))
    # a = ±inf: ±1 + 0j. The standard wants +0j for every positive b; C99 has the sign of sin(2b).
    re = jnp.where(jnp.isinf(a), jnp.sign(a), re)
    im = jnp.where(jnp.isinf(a), 0, jnp.imag(w))
    return lax.complex(re, im * sign)


def sin(z: Array) -> Array:
    """Sine, ``-1j * sinh(1j * z)``."""
    return _swap(sinh(_swap(z)))


def cos(z: Array) -> Array:
    """Cosine, ``cosh(1j * z)``."""
    return cosh(lax.complex(-jnp.imag(z), jnp.real(z)))


def tan(z: Array) -> Array:
    """Tangent, ``-1j * tanh(1j * z)``."""
    return _swap(tanh(_swap(z)))


def _nan_without_infinity(a: Array, b: Array) -> Array:
    """Return whether one component is NaN and the other is finite: XLA's branch for huge arguments drops such NaNs."""
    return (jnp.isnan(a) | jnp.isnan(b)) & ~(jnp.isinf(a) | jnp.isinf(b))


def asinh(z: Array) -> Array:
    """Inverse hyperbolic sine; branch cuts on the imaginary axis outside ``[-1j, 1j]``."""
    a, b = jnp.real(z), jnp.imag(z)
    sign_a, sign_b = _signs(a), _signs(b)
    w = jnp.asinh(lax.complex(a * sign_a, b * sign_b))
    lost = _nan_without_infinity(a, b)
    re = jnp.where(lost, jnp.nan, jnp.real(w))
    im = jnp.where(lost, jnp.where(b == 0, 0, jnp.nan), jnp.imag(w))  # NaN + 0j for b = 0
    return lax.complex(re * sign_a, im * sign_b)


def acos(z: Array) -> Array:
    """Inverse cosine; branch cuts on the real axis outside ``[-1, 1]``."""
    a, b = jnp.real(z), jnp.imag(z)
    sign = _signs(b)
    w = jnp.acos(lax.complex(a, b * sign))
    lost = _nan_without_infinity(a, b)
    re = jnp.where(lost, jnp.where(a == 0, _HALF_PI, jnp.nan), jnp.real(w))  # π/2 + NaN j for a = 0
    im = jnp.where(lost, jnp.nan, jnp.imag(w))
    return lax.complex(re, im * sign)


def acosh(z: Array) -> Array:
    """Inverse hyperbolic cosine, ``±1j * acos(z)``; branch cut on the real axis below 1."""
    sign = _signs(jnp.imag(z))
    w = acos(z)
    return lax.complex(-jnp.imag(w) * sign, jnp.real(w) * sign)


def atanh(z: Array) -> Array:
    """Inverse hyperbolic tangent; branch cuts on the real axis outside ``[-1, 1]``."""
    a, b = jnp.real(z), jnp.imag(z)
    sign_a, sign_b = _signs(a), _signs(b)
    w = jnp.atanh(lax.complex(a * sign_a, b * sign_b))
    lost = jnp.isnan(a) | jnp.isnan(b)
    # ±0 + NaN j for a = ±0 or ±inf; ±0 ± π/2 j for b = ±inf.
    vanishing = (a == 0) | jnp.isinf(a) | jnp.isinf(b)
    re = jnp.where(lost, jnp.where(vanishing, 0, jnp.nan), jnp.real(w))
    im = jnp.where(lost, jnp.where(jnp.isinf(b), _HALF_PI, jnp.nan), jnp.imag(w))
    return lax.complex(re * sign_a, im * sign_b)


def asin(z: Array) -> Array:
    """Inverse sine, ``-1j * asinh(1j * z)``."""
    return _swap(asinh(_swap(z)))


def atan(z: Array) -> Array:
    """Inverse tangent, ``-1j * atanh(1j * z)``."""
    return _swap(atanh(_swap(z)))


def absolute(z: Array) -> Array:
    """Magnitude; infinite if a component is infinite, even if the other is NaN, as in C's ``hypot`` (jax-ml/jax#37990:
    NaN in JAX).
    """
    infinite = jnp.isinf(jnp.real(z)) | jnp.isinf(jnp.imag(z))
    return jnp.where(infinite, jnp.inf, jnp.abs(z))


def sign(z: Array) -> Array:
    """``z / abs(z)``, and ``0 + 0j`` at zero.

    ``jnp.sign`` keeps the signs of zeros, returns NaN for every infinity (jax-ml/jax#25679), and has the derivative
    zero, although the phase of a complex number varies. Here a single infinite component gives the direction of its
    axis.
    """
    a, b = jnp.real(z), jnp.imag(z)
    # Replace the divisor before the division, so that no 0/0 arises, not even in the derivative.
    zero = (a == 0) & (b == 0)
    magnitude = jnp.abs(jnp.where(zero, jnp.ones_like(z), z))
    only_a = jnp.isinf(a) & jnp.isfinite(b)
    only_b = jnp.isinf(b) & jnp.isfinite(a)
    re = jnp.where(only_a, jnp.sign(a), a / magnitude)
    im = jnp.where(only_b, jnp.sign(b), b / magnitude)
    return jnp.where(zero, jnp.zeros_like(z), lax.complex(re, im))
