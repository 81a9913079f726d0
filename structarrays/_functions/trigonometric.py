"""Elementwise functions of the standard: trigonometric and hyperbolic functions and their inverses."""

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


@elementwise_function(kinds="floating", zero=True)
def sin(x: ArrayLike, /) -> Array:
    """The sine of each element, an angle in radians.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The sines, in the same floating dtype.

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
    >>> sa.sin(sa.asarray([0.0, 0.5]))
    Dense([0.        , 0.47942554], dtype=float64)
    """
    return dense_elementwise.sin(x)


@elementwise_function(kinds="floating")
def cos(x: ArrayLike, /) -> Array:
    """The cosine of each element, an angle in radians.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The cosines, in the same floating dtype.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros become a background of 1.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.cos(sa.asarray([0.0, 0.5]))
    Dense([1.        , 0.87758256], dtype=float64)
    """
    return dense_elementwise.cos(x)


@elementwise_function(kinds="floating", zero=True)
def tan(x: ArrayLike, /) -> Array:
    """The tangent of each element, an angle in radians.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The tangents, in the same floating dtype.

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
    >>> sa.tan(sa.asarray([0.0, 0.5]))
    Dense([0.        , 0.54630249], dtype=float64)
    """
    return dense_elementwise.tan(x)


@elementwise_function(kinds="floating", zero=True)
def asin(x: ArrayLike, /) -> Array:
    """The angle in radians whose sine each element is.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The angles between -π/2 and π/2, in the same floating dtype; NaN for a real number outside of [-1, 1].

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
    >>> sa.asin(sa.asarray([0.0, 1.0]))
    Dense([0.        , 1.57079633], dtype=float64)
    """
    return dense_elementwise.asin(x)


@elementwise_function(kinds="floating")
def acos(x: ArrayLike, /) -> Array:
    """The angle in radians whose cosine each element is.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The angles between 0 and π, in the same floating dtype; NaN for a real number outside of [-1, 1].

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros become a background of π/2. Branch cuts and special values of complex numbers are those of C99.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.acos(sa.asarray([0.0, 1.0]))
    Dense([1.57079633, 0.        ], dtype=float64)
    """
    return dense_elementwise.acos(x)


@elementwise_function(kinds="floating", zero=True)
def atan(x: ArrayLike, /) -> Array:
    """The angle in radians whose tangent each element is.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The angles between -π/2 and π/2, in the same floating dtype.

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
    >>> sa.atan(sa.asarray([0.0, 1.0]))
    Dense([0.        , 0.78539816], dtype=float64)
    """
    return dense_elementwise.atan(x)


@elementwise_function(kinds="real floating", zero=True)
def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle in radians of each point ``(x2, x1)`` of the plane: the quadrant is respected.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a real floating dtype; integers become the default floating dtype. The shapes broadcast, the dtypes are
        promoted.

    Returns
    -------
    array
        The angles between -π and π, in the promoted floating dtype.

    Raises
    ------
    TypeError
        If a dtype is boolean or complex.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.atan2(sa.asarray([1.0, -1.0]), sa.asarray([-1.0, -1.0]))
    Dense([ 2.35619449, -2.35619449], dtype=float64)
    """
    return dense_elementwise.atan2(x1, x2)


@elementwise_function(kinds="floating", zero=True)
def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine of each element.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The hyperbolic sines, in the same floating dtype.

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
    >>> sa.sinh(sa.asarray([0.0, 1.0]))
    Dense([0.        , 1.17520119], dtype=float64)
    """
    return dense_elementwise.sinh(x)


@elementwise_function(kinds="floating")
def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine of each element.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The hyperbolic cosines, in the same floating dtype.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros become a background of 1.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.cosh(sa.asarray([0.0, 1.0]))
    Dense([1.        , 1.54308063], dtype=float64)
    """
    return dense_elementwise.cosh(x)


@elementwise_function(kinds="floating", zero=True)
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent of each element.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The hyperbolic tangents, in the same floating dtype.

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
    >>> sa.tanh(sa.asarray([0.0, 1.0]))
    Dense([0.        , 0.76159416], dtype=float64)
    """
    return dense_elementwise.tanh(x)


@elementwise_function(kinds="floating", zero=True)
def asinh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic sine each element is.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The numbers, in the same floating dtype.

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
    >>> sa.asinh(sa.asarray([0.0, 1.0]))
    Dense([0.        , 0.88137359], dtype=float64)
    """
    return dense_elementwise.asinh(x)


@elementwise_function(kinds="floating")
def acosh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic cosine each element is.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The non-negative numbers, in the same floating dtype; NaN for a real number below 1.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros become a background of NaN for a real dtype, iπ/2 for a complex one. Branch cuts and special
    values of complex numbers are those of C99.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.acosh(sa.asarray([1.0, 2.0]))
    Dense([0.       , 1.3169579], dtype=float64)
    """
    return dense_elementwise.acosh(x)


@elementwise_function(kinds="floating", zero=True)
def atanh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic tangent each element is.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The numbers, in the same floating dtype; NaN for a real number outside of [-1, 1].

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
    >>> sa.atanh(sa.asarray([0.0, 0.5]))
    Dense([0.        , 0.54930614], dtype=float64)
    """
    return dense_elementwise.atanh(x)
