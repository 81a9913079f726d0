"""Elementwise functions of the standard: trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.families.elementwise_rule import dense_elementwise, elementwise_function


@elementwise_function(kinds="floating", zero=True)
def sin(x: ArrayLike, /) -> Array:
    """Sine, element-wise.

    The elements are angles in radians.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.sin(sa.asarray([0.0, 0.5]))
    Dense([0.        , 0.47942554], dtype=float64)
    """
    return dense_elementwise.sin(x)


@elementwise_function(kinds="floating")
def cos(x: ArrayLike, /) -> Array:
    """Cosine, element-wise.

    The elements are angles in radians.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.cos(sa.asarray([0.0, 0.5]))
    Dense([1.        , 0.87758256], dtype=float64)
    """
    return dense_elementwise.cos(x)


@elementwise_function(kinds="floating", zero=True)
def tan(x: ArrayLike, /) -> Array:
    """Tangent, element-wise.

    The elements are angles in radians.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.tan(sa.asarray([0.0, 0.5]))
    Dense([0.        , 0.54630249], dtype=float64)
    """
    return dense_elementwise.tan(x)


@elementwise_function(kinds="floating", zero=True)
def asin(x: ArrayLike, /) -> Array:
    """Inverse sine, element-wise.

    The result is an angle in [-π/2, π/2], in radians. It is NaN for a real number outside [-1, 1].
    Branch cuts and special values of complex numbers follow C99.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.asin(sa.asarray([0.0, 1.0]))
    Dense([0.        , 1.57079633], dtype=float64)
    """
    return dense_elementwise.asin(x)


@elementwise_function(kinds="floating")
def acos(x: ArrayLike, /) -> Array:
    """Inverse cosine, element-wise.

    The result is an angle in [0, π], in radians. It is NaN for a real number outside [-1, 1].
    Branch cuts and special values of complex numbers follow C99.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.acos(sa.asarray([0.0, 1.0]))
    Dense([1.57079633, 0.        ], dtype=float64)
    """
    return dense_elementwise.acos(x)


@elementwise_function(kinds="floating", zero=True)
def atan(x: ArrayLike, /) -> Array:
    """Inverse tangent, element-wise.

    The result is an angle in [-π/2, π/2], in radians. Branch cuts and special values of complex numbers follow C99.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.atan(sa.asarray([0.0, 1.0]))
    Dense([0.        , 0.78539816], dtype=float64)
    """
    return dense_elementwise.atan(x)


@elementwise_function(kinds="real floating", zero=True)
def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Inverse tangent of ``x1 / x2`` in the correct quadrant, element-wise.

    The result is the angle of the point ``(x2, x1)``: an angle in [-π, π], in radians.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.atan2(sa.asarray([1.0, -1.0]), sa.asarray([-1.0, -1.0]))
    Dense([ 2.35619449, -2.35619449], dtype=float64)
    """
    return dense_elementwise.atan2(x1, x2)


@elementwise_function(kinds="floating", zero=True)
def sinh(x: ArrayLike, /) -> Array:
    """Hyperbolic sine, element-wise.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.sinh(sa.asarray([0.0, 1.0]))
    Dense([0.        , 1.17520119], dtype=float64)
    """
    return dense_elementwise.sinh(x)


@elementwise_function(kinds="floating")
def cosh(x: ArrayLike, /) -> Array:
    """Hyperbolic cosine, element-wise.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.cosh(sa.asarray([0.0, 1.0]))
    Dense([1.        , 1.54308063], dtype=float64)
    """
    return dense_elementwise.cosh(x)


@elementwise_function(kinds="floating", zero=True)
def tanh(x: ArrayLike, /) -> Array:
    """Hyperbolic tangent, element-wise.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.tanh(sa.asarray([0.0, 1.0]))
    Dense([0.        , 0.76159416], dtype=float64)
    """
    return dense_elementwise.tanh(x)


@elementwise_function(kinds="floating", zero=True)
def asinh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic sine, element-wise.

    Branch cuts and special values of complex numbers follow C99.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.asinh(sa.asarray([0.0, 1.0]))
    Dense([0.        , 0.88137359], dtype=float64)
    """
    return dense_elementwise.asinh(x)


@elementwise_function(kinds="floating")
def acosh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic cosine, element-wise.

    The result of a real number is non-negative; it is NaN for a real number below 1.
    Branch cuts and special values of complex numbers follow C99.

    Notes
    -----
    ``acosh(0)`` is NaN in a real dtype and iπ/2 in a complex dtype.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.acosh(sa.asarray([1.0, 2.0]))
    Dense([0.       , 1.3169579], dtype=float64)
    """
    return dense_elementwise.acosh(x)


@elementwise_function(kinds="floating", zero=True)
def atanh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic tangent, element-wise.

    The result is NaN for a real number outside [-1, 1]. Branch cuts and special values of complex numbers follow C99.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.atanh(sa.asarray([0.0, 0.5]))
    Dense([0.        , 0.54930614], dtype=float64)
    """
    return dense_elementwise.atanh(x)
