"""Elementwise functions of the standard: exponentials, logarithms and the square root."""

from __future__ import annotations

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.families.elementwise_rule import dense_elementwise, elementwise_function


@elementwise_function(kinds="floating")
def exp(x: ArrayLike, /) -> Array:
    """Exponential, element-wise.

    The exponential of a matrix is `linalg.expm`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.exp(sa.asarray([0.0, 1.0]))
    Dense([1.        , 2.71828183], dtype=float64)
    """
    return dense_elementwise.exp(x)


@elementwise_function(kinds="floating", zero=True)
def expm1(x: ArrayLike, /) -> Array:
    """Exponential minus one, element-wise.

    The result is accurate near zero, where ``exp(x) - 1`` loses digits.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.expm1(sa.asarray([0.0, 1e-10]))
    Dense([0.e+00, 1.e-10], dtype=float64)
    """
    return dense_elementwise.expm1(x)


@elementwise_function(kinds="floating")
def log(x: ArrayLike, /) -> Array:
    """Natural logarithm, element-wise.

    The result is -inf at 0, and NaN for a negative real number.
    Branch cuts and special values of complex numbers follow C99.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.log(sa.asarray([1.0, 10.0]))
    Dense([0.        , 2.30258509], dtype=float64)
    """
    return dense_elementwise.log(x)


@elementwise_function(kinds="floating")
def log10(x: ArrayLike, /) -> Array:
    """Base-10 logarithm, element-wise.

    The result is -inf at 0, and NaN for a negative real number.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.log10(sa.asarray([1.0, 1000.0]))
    Dense([0., 3.], dtype=float64)
    """
    return dense_elementwise.log10(x)


@elementwise_function(kinds="floating", zero=True)
def log1p(x: ArrayLike, /) -> Array:
    """Natural logarithm of one plus the input, element-wise.

    The result is accurate near zero, where ``log(1 + x)`` loses digits.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.log1p(sa.asarray([0.0, 1e-10]))
    Dense([0.e+00, 1.e-10], dtype=float64)
    """
    return dense_elementwise.log1p(x)


@elementwise_function(kinds="floating")
def log2(x: ArrayLike, /) -> Array:
    """Base-2 logarithm, element-wise.

    The result is -inf at 0, and NaN for a negative real number.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.log2(sa.asarray([1.0, 8.0]))
    Dense([0., 3.], dtype=float64)
    """
    return dense_elementwise.log2(x)


@elementwise_function(kinds="real floating")
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Logarithm of the sum of exponentials, element-wise.

    Equivalent to ``log(exp(x1) + exp(x2))``, without overflow of the exponentials.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.logaddexp(sa.asarray([0.0, 1000.0]), sa.asarray([0.0, 1000.0]))
    Dense([6.93147181e-01, 1.00069315e+03], dtype=float64)
    """
    return dense_elementwise.logaddexp(x1, x2)


@elementwise_function(kinds="floating", zero=True)
def sqrt(x: ArrayLike, /) -> Array:
    """Principal square root, element-wise.

    The result is NaN for a negative real number. Branch cuts and special values of complex numbers follow C99.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.sqrt(sa.asarray([4.0, 9.0]))
    Dense([2., 3.], dtype=float64)
    """
    return dense_elementwise.sqrt(x)
