"""Elementwise functions of the standard: rounding, neighbours and signs, and the parts of complex numbers."""

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


@elementwise_function(kinds="real numeric", zero=True)
def ceil(x: ArrayLike, /) -> Array:
    """Each element rounded towards positive infinity.

    Parameters
    ----------
    x : array
        Of a real numeric dtype.

    Returns
    -------
    array
        The rounded elements, in the same dtype.

    Raises
    ------
    TypeError
        If the dtype is boolean or complex.

    Notes
    -----
    Structural zeros stay. Integers are returned as they are.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.ceil(sa.asarray([-1.5, 1.5]))
    Dense([-1.,  2.], dtype=float64)
    """
    return dense_elementwise.ceil(x)


@elementwise_function(kinds="real numeric", zero=True)
def floor(x: ArrayLike, /) -> Array:
    """Each element rounded towards negative infinity.

    Parameters
    ----------
    x : array
        Of a real numeric dtype.

    Returns
    -------
    array
        The rounded elements, in the same dtype.

    Raises
    ------
    TypeError
        If the dtype is boolean or complex.

    Notes
    -----
    Structural zeros stay. Integers are returned as they are.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.floor(sa.asarray([-1.5, 1.5]))
    Dense([-2.,  1.], dtype=float64)
    """
    return dense_elementwise.floor(x)


@elementwise_function(kinds="numeric", zero=True)
def round(x: ArrayLike, /) -> Array:
    """Each element rounded to the nearest integer, halves to the even one; parts of complex numbers separately.

    Parameters
    ----------
    x : array
        Of a numeric dtype.

    Returns
    -------
    array
        The rounded elements, in the same dtype.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros stay. Integers are returned as they are.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.round(sa.asarray([0.5, 1.5, 2.5]))
    Dense([0., 2., 2.], dtype=float64)
    """
    return dense_elementwise.round(x)


@elementwise_function(kinds="real numeric", zero=True)
def trunc(x: ArrayLike, /) -> Array:
    """Each element rounded towards zero.

    Parameters
    ----------
    x : array
        Of a real numeric dtype.

    Returns
    -------
    array
        The rounded elements, in the same dtype.

    Raises
    ------
    TypeError
        If the dtype is boolean or complex.

    Notes
    -----
    Structural zeros stay. Integers are returned as they are.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.trunc(sa.asarray([-1.5, 1.5]))
    Dense([-1.,  1.], dtype=float64)
    """
    return dense_elementwise.trunc(x)


@elementwise_function(kinds="real floating", zero=True)
def nextafter(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The floating-point number next to each element of `x1`, in the direction of `x2`.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a real floating dtype; integers become the default floating dtype. The shapes broadcast, the dtypes are
        promoted.

    Returns
    -------
    array
        The neighbours, in the promoted floating dtype.

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
    >>> sa.nextafter(sa.asarray(1.0), sa.asarray(2.0)) - 1.0
    Dense(2.22044605e-16, dtype=float64)
    """
    return dense_elementwise.nextafter(x1, x2)


@elementwise_function(kinds="real floating", zero=True)
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The magnitude of each element of `x1`, with the sign of that of `x2`.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a real floating dtype; integers become the default floating dtype. The shapes broadcast, the dtypes are
        promoted.

    Returns
    -------
    array
        `x1` with other signs, in the promoted dtype.

    Raises
    ------
    TypeError
        If a dtype is boolean or complex.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result. A structural zero of `x2` is positive.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.copysign(sa.asarray([1.0, 2.0]), sa.asarray([-0.0, 3.0]))
    Dense([-1.,  2.], dtype=float64)
    """
    return dense_elementwise.copysign(x1, x2)


@elementwise_function(kinds="numeric", zero=True)
def conj(x: ArrayLike, /) -> Array:
    """The complex conjugate of each element.

    Parameters
    ----------
    x : array
        Of a numeric dtype.

    Returns
    -------
    array
        The conjugates, in the same dtype; a real array is returned as it is.

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
    >>> sa.conj(sa.asarray([1 + 2j]))
    Dense([1.-2.j], dtype=complex128)
    """
    return dense_elementwise.conj(x)


@elementwise_function(kinds="numeric", zero=True)
def imag(x: ArrayLike, /) -> Array:
    """The imaginary part of each element.

    Parameters
    ----------
    x : array
        Of a numeric dtype.

    Returns
    -------
    array
        The imaginary parts in the real dtype of the parts; zeros for a real array.

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
    >>> sa.imag(sa.asarray([1 + 2j]))
    Dense([2.], dtype=float64)
    """
    return dense_elementwise.imag(x)


@elementwise_function(kinds="numeric", zero=True)
def real(x: ArrayLike, /) -> Array:
    """The real part of each element.

    Parameters
    ----------
    x : array
        Of a numeric dtype.

    Returns
    -------
    array
        The real parts, in their real dtype; a real array is returned as it is.

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
    >>> sa.real(sa.asarray([1 + 2j]))
    Dense([1.], dtype=float64)
    """
    return dense_elementwise.real(x)
