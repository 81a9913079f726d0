"""The elementwise functions of the standard: arithmetic. The others of this chapter are in `exponential`,
`trigonometric`, `rounding_and_parts`, `comparisons_and_logic`, `bitwise` and `pow_and_clip`.

A Python scalar takes the dtype of the array next to it, unless the kind of the scalar is higher. A function maps the
stored entries and the background value of a structured array. It joins the patterns of two structured arrays. The notes
call the elements that an array does not store structural zeros (docs/design/semantics.md).
"""

from __future__ import annotations

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.families.elementwise_rule import dense_elementwise, elementwise_function
from .._core.families.neutral_zero import Additive


@elementwise_function(kinds="numeric", zero=True, result="real")
def abs(x: ArrayLike, /) -> Array:
    """Absolute value, element-wise.

    The absolute value of a complex number does not overflow where only the square of a part would.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.abs(sa.asarray([-1.5, 2.0]))
    Dense([1.5, 2. ], dtype=float64)
    """
    return dense_elementwise.abs(x)


@elementwise_function(kinds="numeric", zero=True, made=Additive)
def add(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Add arrays, element-wise.

    Notes
    -----
    A number or a `Fill` next to a structured array is added to its background value. The Python numbers 0 and 0.0 leave the structure as it
    is, so that ``sum([x, y])`` has the structure of ``x + y``.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.add(sa.asarray([1.0, 2.0]), 1)
    Dense([2., 3.], dtype=float64)
    """
    return dense_elementwise.add(x1, x2)


@elementwise_function(kinds="floating", absorbs=(0,))
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divide arrays, element-wise.

    Notes
    -----
    A structural zero of `x2` counts as the number 0.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.divide(sa.asarray([1, 2]), 4)
    Dense([0.25, 0.5 ], dtype=float64)
    """
    return dense_elementwise.divide(x1, x2)


@elementwise_function(kinds="real numeric")
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Quotient rounded towards negative infinity, element-wise.

    Infinity divided by a number is infinite, as the standard prefers; Python's ``//`` gives NaN.

    Notes
    -----
    ``floor_divide(0, 0)`` is NaN in a floating dtype.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.floor_divide(sa.asarray([7, -7]), 2)
    Dense([ 3, -4], dtype=int64)
    """
    return dense_elementwise.floor_divide(x1, x2)


@elementwise_function(kinds="real floating", zero=True)
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Length of the hypotenuse of a right triangle, element-wise.

    Equivalent to ``sqrt(x1**2 + x2**2)``, without overflow of the squares.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.hypot(sa.asarray([3.0, 1e200]), sa.asarray([4.0, 1e200]))
    Dense([5.00000000e+000, 1.41421356e+200], dtype=float64)
    """
    return dense_elementwise.hypot(x1, x2)


@elementwise_function(kinds="real", zero=True)
def maximum(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Maximum of two arrays, element-wise.

    The result is NaN where either element is NaN.

    Notes
    -----
    A number is no structural zero: ``maximum(x, 0.0)`` has a background value of 0.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.maximum(sa.asarray([1.0, -2.0]), 0.0)
    Dense([1., 0.], dtype=float64)
    """
    return dense_elementwise.maximum(x1, x2)


@elementwise_function(kinds="real", zero=True)
def minimum(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Minimum of two arrays, element-wise.

    The result is NaN where either element is NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.minimum(sa.asarray([1.0, -2.0]), 0.0)
    Dense([ 0., -2.], dtype=float64)
    """
    return dense_elementwise.minimum(x1, x2)


@elementwise_function(kinds="numeric", zero=True, absorbs=(0, 1))
def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply arrays, element-wise.

    Notes
    -----
    The result stores the entries that both operands store.
    A vector next to a matrix scales its rows or columns.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.multiply(sa.asarray([1.0, 2.0]), 3.0)
    Dense([3., 6.], dtype=float64)
    """
    return dense_elementwise.multiply(x1, x2)


@elementwise_function(kinds="numeric", zero=True)
def negative(x: ArrayLike, /) -> Array:
    """Numerical negative, element-wise.

    Unsigned integers wrap around.

    Notes
    -----
    Structural zeros have no sign.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.negative(sa.asarray([1.0, -2.0]))
    Dense([-1.,  2.], dtype=float64)
    """
    return dense_elementwise.negative(x)


@elementwise_function(kinds="numeric", zero=True)
def positive(x: ArrayLike, /) -> Array:
    """Numerical positive, element-wise.

    The elements are returned unchanged.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.positive(sa.asarray([1.0, -2.0]))
    Dense([ 1., -2.], dtype=float64)
    """
    return dense_elementwise.positive(x)


@elementwise_function(kinds="floating")
def reciprocal(x: ArrayLike, /) -> Array:
    """Reciprocal, element-wise.

    The inverse of a matrix is `linalg.inv`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.reciprocal(sa.asarray([2.0, 4.0]))
    Dense([0.5 , 0.25], dtype=float64)
    """
    return dense_elementwise.reciprocal(x)


@elementwise_function(kinds="real numeric")
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Remainder of the division, element-wise.

    The remainder has the sign of `x2`, as with Python's ``%``.

    Notes
    -----
    ``remainder(0, 0)`` is NaN in a floating dtype.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.remainder(sa.asarray([7, -7]), 3)
    Dense([1, 2], dtype=int64)
    """
    return dense_elementwise.remainder(x1, x2)


@elementwise_function(kinds="numeric", zero=True)
def sign(x: ArrayLike, /) -> Array:
    """Sign, element-wise.

    The sign of a real number is -1, 0 or 1; it is 0 for both zeros. The sign of a complex number is ``x / abs(x)``. The
    sign of NaN is NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.sign(sa.asarray([-3.0, 0.0, 2.0]))
    Dense([-1.,  0.,  1.], dtype=float64)
    """
    return dense_elementwise.sign(x)


@elementwise_function(kinds="numeric", zero=True)
def square(x: ArrayLike, /) -> Array:
    """Square, element-wise.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.square(sa.asarray([-3.0, 2.0]))
    Dense([9., 4.], dtype=float64)
    """
    return dense_elementwise.square(x)


@elementwise_function(kinds="numeric", zero=True, made=Additive)
def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Subtract arrays, element-wise.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.subtract(sa.asarray([1.0, 2.0]), 1)
    Dense([0., 1.], dtype=float64)
    """
    return dense_elementwise.subtract(x1, x2)
