"""Elementwise functions of the standard: exponentials, logarithms and the square root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.families.elementwise_rule import elementwise_function

if TYPE_CHECKING:
    from .._core.array.arguments import Formulas

    dense_elementwise: Formulas
else:
    from .._numerics import dense_elementwise


@elementwise_function(kinds="floating")
def exp(x: ArrayLike, /) -> Array:
    """The exponential of each element.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The exponentials, in the same floating dtype.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros become a background of 1. The exponential of a matrix is another function.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.exp(sa.asarray([0.0, 1.0]))
    Dense([1.        , 2.71828183], dtype=float64)
    """
    return dense_elementwise.exp(x)


@elementwise_function(kinds="floating", zero=True)
def expm1(x: ArrayLike, /) -> Array:
    """The exponential of each element, minus one; accurate near zero.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        ``exp(x) - 1``, in the same floating dtype.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros stay.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.expm1(sa.asarray([0.0, 1e-10]))
    Dense([0.e+00, 1.e-10], dtype=float64)
    """
    return dense_elementwise.expm1(x)


@elementwise_function(kinds="floating")
def log(x: ArrayLike, /) -> Array:
    """The natural logarithm of each element.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The logarithms, in the same floating dtype; NaN for a negative real number.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros become a background of -inf. Branch cuts and special values of complex numbers are those of C99.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.log(sa.asarray([1.0, 10.0]))
    Dense([0.        , 2.30258509], dtype=float64)
    """
    return dense_elementwise.log(x)


@elementwise_function(kinds="floating")
def log10(x: ArrayLike, /) -> Array:
    """The logarithm of each element to base 10.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The logarithms, in the same floating dtype; NaN for a negative real number.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros become a background of -inf.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.log10(sa.asarray([1.0, 1000.0]))
    Dense([0., 3.], dtype=float64)
    """
    return dense_elementwise.log10(x)


@elementwise_function(kinds="floating", zero=True)
def log1p(x: ArrayLike, /) -> Array:
    """The natural logarithm of one plus each element; accurate near zero.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        ``log(1 + x)``, in the same floating dtype.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros stay.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.log1p(sa.asarray([0.0, 1e-10]))
    Dense([0.e+00, 1.e-10], dtype=float64)
    """
    return dense_elementwise.log1p(x)


@elementwise_function(kinds="floating")
def log2(x: ArrayLike, /) -> Array:
    """The logarithm of each element to base 2.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The logarithms, in the same floating dtype; NaN for a negative real number.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros become a background of -inf.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.log2(sa.asarray([1.0, 8.0]))
    Dense([0., 3.], dtype=float64)
    """
    return dense_elementwise.log2(x)


@elementwise_function(kinds="real floating")
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The logarithm of the sum of the exponentials of each pair of elements.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a real floating dtype; integers become the default floating dtype. The shapes broadcast, the dtypes are
        promoted.

    Returns
    -------
    array
        ``log(exp(x1) + exp(x2))`` in the promoted floating dtype, without overflow on the way.

    Raises
    ------
    TypeError
        If a dtype is boolean or complex.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, the result has a background of log 2.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.logaddexp(sa.asarray([0.0, 1000.0]), sa.asarray([0.0, 1000.0]))
    Dense([6.93147181e-01, 1.00069315e+03], dtype=float64)
    """
    return dense_elementwise.logaddexp(x1, x2)


@elementwise_function(kinds="floating", zero=True)
def sqrt(x: ArrayLike, /) -> Array:
    """The principal square root of each element.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The roots, in the same floating dtype; NaN for a negative real number.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros stay. Branch cuts and special values of complex numbers are those of C99.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.sqrt(sa.asarray([4.0, 9.0]))
    Dense([2., 3.], dtype=float64)
    """
    return dense_elementwise.sqrt(x)
