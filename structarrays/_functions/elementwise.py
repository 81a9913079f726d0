"""The elementwise functions of the standard: arithmetic. The others of this chapter are in `exponential`,
`trigonometric`, `rounding_and_parts`, `comparisons_and_logic`, `bitwise` and `pow_and_clip`.

What holds for all: a Python scalar takes the dtype of the array beside it, unless its kind is higher, and raises
`OverflowError` if it is an integer that does not fit. The stored entries and the background of a structured array are
mapped, two structures are joined, and "structural zero" in the notes is what the array does not store (docs/design/semantics.md).
"""

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


@elementwise_function(kinds="numeric", zero=True)
def abs(x: ArrayLike, /) -> Array:
    """The magnitude of each element.

    Parameters
    ----------
    x : array
        Of a numeric dtype.

    Returns
    -------
    array
        The magnitudes; of a complex dtype, in the real dtype of its parts.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros stay. It does not overflow where only a part squared would.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.abs(sa.asarray([-1.5, 2.0]))
    Dense([1.5, 2. ], dtype=float64)
    """
    return dense_elementwise.abs(x)


@elementwise_function(kinds="numeric", zero=True)
def add(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The sum of each pair of elements.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a numeric dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        The sums, in the promoted dtype.

    Raises
    ------
    TypeError
        If a dtype is boolean.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result. A number or a `Fill` beside a structure adds to its
    background.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.add(sa.asarray([1.0, 2.0]), 1)
    Dense([2., 3.], dtype=float64)
    """
    return dense_elementwise.add(x1, x2)


@elementwise_function(kinds="floating", absorbs=(0,))
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The quotient of each pair of elements.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a floating dtype; integers become the default floating dtype. The shapes broadcast, the dtypes are
        promoted.

    Returns
    -------
    array
        The quotients, in the promoted floating dtype.

    Raises
    ------
    TypeError
        If a dtype is boolean.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    A structural zero of the numerator stays one, whatever the divisor is (a strong zero, unless `strong_zeros` is
    switched off). A structural zero of the divisor alone is divided by.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.divide(sa.asarray([1, 2]), 4)
    Dense([0.25, 0.5 ], dtype=float64)
    """
    return dense_elementwise.divide(x1, x2)


@elementwise_function(kinds="real numeric")
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The quotient of each pair of elements, rounded towards negative infinity.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a real numeric dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        The rounded quotients, in the promoted dtype.

    Raises
    ------
    TypeError
        If a dtype is boolean or complex.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, the result has a background of 0 // 0 (NaN for a floating dtype). As
    the standard prefers, infinity divided by a number is infinite, where Python has NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.floor_divide(sa.asarray([7, -7]), 2)
    Dense([ 3, -4], dtype=int64)
    """
    return dense_elementwise.floor_divide(x1, x2)


@elementwise_function(kinds="real floating", zero=True)
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The length of the hypotenuse over each pair of legs, ``sqrt(x1**2 + x2**2)``.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a real floating dtype; integers become the default floating dtype. The shapes broadcast, the dtypes are
        promoted.

    Returns
    -------
    array
        The lengths, in the promoted floating dtype.

    Raises
    ------
    TypeError
        If a dtype is boolean or complex.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result. It does not overflow where only a square would.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.hypot(sa.asarray([3.0, 1e200]), sa.asarray([4.0, 1e200]))
    Dense([5.00000000e+000, 1.41421356e+200], dtype=float64)
    """
    return dense_elementwise.hypot(x1, x2)


@elementwise_function(kinds="real", zero=True)
def maximum(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The larger of each pair of elements.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a boolean or real numeric dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        The larger ones, in the promoted dtype; NaN where either is NaN.

    Raises
    ------
    TypeError
        If a dtype is complex.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result. ``maximum(x, 0.0)`` has a background of 0, as a
    number is no structural zero.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.maximum(sa.asarray([1.0, -2.0]), 0.0)
    Dense([1., 0.], dtype=float64)
    """
    return dense_elementwise.maximum(x1, x2)


@elementwise_function(kinds="real", zero=True)
def minimum(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The smaller of each pair of elements.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a boolean or real numeric dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        The smaller ones, in the promoted dtype; NaN where either is NaN.

    Raises
    ------
    TypeError
        If a dtype is complex.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.minimum(sa.asarray([1.0, -2.0]), 0.0)
    Dense([ 0., -2.], dtype=float64)
    """
    return dense_elementwise.minimum(x1, x2)


@elementwise_function(kinds="numeric", zero=True, absorbs=(0, 1))
def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The product of each pair of elements.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a numeric dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        The products, in the promoted dtype.

    Raises
    ------
    TypeError
        If a dtype is boolean.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    A structural zero of either operand stays one, whatever the other is (a strong zero, unless `strong_zeros` is
    switched off): the result stores what both operands store, and a vector beside a matrix scales its rows or
    columns.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.multiply(sa.asarray([1.0, 2.0]), 3.0)
    Dense([3., 6.], dtype=float64)
    """
    return dense_elementwise.multiply(x1, x2)


@elementwise_function(kinds="numeric", zero=True)
def negative(x: ArrayLike, /) -> Array:
    """Each element with its sign changed.

    Parameters
    ----------
    x : array
        Of a numeric dtype.

    Returns
    -------
    array
        The negated elements, in the same dtype; unsigned integers wrap around.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros stay. They have no sign.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.negative(sa.asarray([1.0, -2.0]))
    Dense([-1.,  2.], dtype=float64)
    """
    return dense_elementwise.negative(x)


@elementwise_function(kinds="numeric", zero=True)
def positive(x: ArrayLike, /) -> Array:
    """Each element as it is.

    Parameters
    ----------
    x : array
        Of a numeric dtype.

    Returns
    -------
    array
        The same values, in the same dtype.

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
    >>> sa.positive(sa.asarray([1.0, -2.0]))
    Dense([ 1., -2.], dtype=float64)
    """
    return dense_elementwise.positive(x)


@elementwise_function(kinds="floating")
def reciprocal(x: ArrayLike, /) -> Array:
    """One over each element.

    Parameters
    ----------
    x : array
        Of a floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        The reciprocals, in the same floating dtype.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros become a background of 1 / 0. The inverse of a matrix is `linalg.inv`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.reciprocal(sa.asarray([2.0, 4.0]))
    Dense([0.5 , 0.25], dtype=float64)
    """
    return dense_elementwise.reciprocal(x)


@elementwise_function(kinds="real numeric")
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of each division, with the sign of the divisor, as Python's ``%``.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a real numeric dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        The remainders, in the promoted dtype.

    Raises
    ------
    TypeError
        If a dtype is boolean or complex.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, the result has a background of 0 % 0 (NaN for a floating dtype).

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.remainder(sa.asarray([7, -7]), 3)
    Dense([1, 2], dtype=int64)
    """
    return dense_elementwise.remainder(x1, x2)


@elementwise_function(kinds="numeric", zero=True)
def sign(x: ArrayLike, /) -> Array:
    """The sign of each element: -1, 0 or 1, and ``x / abs(x)`` of a complex one.

    Parameters
    ----------
    x : array
        Of a numeric dtype.

    Returns
    -------
    array
        The signs, in the same dtype; 0 for either zero and NaN for NaN.

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
    >>> sa.sign(sa.asarray([-3.0, 0.0, 2.0]))
    Dense([-1.,  0.,  1.], dtype=float64)
    """
    return dense_elementwise.sign(x)


@elementwise_function(kinds="numeric", zero=True)
def square(x: ArrayLike, /) -> Array:
    """Each element times itself.

    Parameters
    ----------
    x : array
        Of a numeric dtype.

    Returns
    -------
    array
        The squares, in the same dtype.

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
    >>> sa.square(sa.asarray([-3.0, 2.0]))
    Dense([9., 4.], dtype=float64)
    """
    return dense_elementwise.square(x)


@elementwise_function(kinds="numeric", zero=True)
def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The difference of each pair of elements.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a numeric dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        The differences, in the promoted dtype.

    Raises
    ------
    TypeError
        If a dtype is boolean.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.subtract(sa.asarray([1.0, 2.0]), 1)
    Dense([0., 1.], dtype=float64)
    """
    return dense_elementwise.subtract(x1, x2)
