"""Elementwise functions of the standard: rounding, neighbours and signs, and the parts of complex numbers."""

from __future__ import annotations

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.families.elementwise_rule import dense_elementwise, elementwise_function


@elementwise_function(kinds="real numeric", zero=True)
def ceil(x: ArrayLike, /) -> Array:
    """Ceiling, element-wise.

    The elements are rounded towards positive infinity. Integers stay unchanged.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.ceil(sa.asarray([-1.5, 1.5]))
    Dense([-1.,  2.], dtype=float64)
    """
    return dense_elementwise.ceil(x)


@elementwise_function(kinds="real numeric", zero=True)
def floor(x: ArrayLike, /) -> Array:
    """Floor, element-wise.

    The elements are rounded towards negative infinity. Integers stay unchanged.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.floor(sa.asarray([-1.5, 1.5]))
    Dense([-2.,  1.], dtype=float64)
    """
    return dense_elementwise.floor(x)


@elementwise_function(kinds="numeric", zero=True)
def round(x: ArrayLike, /) -> Array:
    """Round to the nearest integer, element-wise.

    Halves are rounded to the even integer. The parts of a complex number are rounded separately. Integers stay unchanged.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.round(sa.asarray([0.5, 1.5, 2.5]))
    Dense([0., 2., 2.], dtype=float64)
    """
    return dense_elementwise.round(x)


@elementwise_function(kinds="real numeric", zero=True)
def trunc(x: ArrayLike, /) -> Array:
    """Truncate, element-wise.

    The elements are rounded towards zero. Integers stay unchanged.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.trunc(sa.asarray([-1.5, 1.5]))
    Dense([-1.,  1.], dtype=float64)
    """
    return dense_elementwise.trunc(x)


@elementwise_function(kinds="real floating", zero=True)
def nextafter(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Next floating-point number after `x1` in the direction of `x2`, element-wise.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.nextafter(sa.asarray(1.0), sa.asarray(2.0)) - 1.0
    Dense(2.22044605e-16, dtype=float64)
    """
    return dense_elementwise.nextafter(x1, x2)


@elementwise_function(kinds="real floating", zero=True)
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Magnitude of `x1` with the sign of `x2`, element-wise.

    Notes
    -----
    A structural zero of `x2` is positive.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.copysign(sa.asarray([1.0, 2.0]), sa.asarray([-0.0, 3.0]))
    Dense([-1.,  2.], dtype=float64)
    """
    return dense_elementwise.copysign(x1, x2)


@elementwise_function(kinds="numeric", zero=True)
def conj(x: ArrayLike, /) -> Array:
    """Complex conjugate, element-wise.

    A real array is returned unchanged.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.conj(sa.asarray([1 + 2j]))
    Dense([1.-2.j], dtype=complex128)
    """
    return dense_elementwise.conj(x)


@elementwise_function(kinds="numeric", zero=True, result="real")
def imag(x: ArrayLike, /) -> Array:
    """Imaginary part, element-wise.

    The imaginary part of a real number is 0.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.imag(sa.asarray([1 + 2j]))
    Dense([2.], dtype=float64)
    """
    return dense_elementwise.imag(x)


@elementwise_function(kinds="numeric", zero=True, result="real")
def real(x: ArrayLike, /) -> Array:
    """Real part, element-wise.

    A real array is returned unchanged.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.real(sa.asarray([1 + 2j]))
    Dense([1.], dtype=float64)
    """
    return dense_elementwise.real(x)
