"""Elementwise functions of the standard: bits."""

from __future__ import annotations

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.families.elementwise_rule import dense_elementwise, elementwise_function


@elementwise_function(kinds="integer or bool", zero=True, absorbs=(0, 1), exact=True)
def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Bitwise AND, element-wise.

    Notes
    -----
    The result stores the entries that both operands store.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bitwise_and(sa.asarray([5, 6]), 3)
    Dense([1, 2], dtype=int64)
    """
    return dense_elementwise.bitwise_and(x1, x2)


@elementwise_function(kinds="integer or bool")
def bitwise_invert(x: ArrayLike, /) -> Array:
    """Bitwise NOT, element-wise.

    Booleans are negated.

    Notes
    -----
    ``bitwise_invert(0)`` has all bits set: -1 in a signed dtype, True in a boolean dtype.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bitwise_invert(sa.asarray([0, 5]))
    Dense([-1, -6], dtype=int64)
    """
    return dense_elementwise.bitwise_invert(x)


@elementwise_function(kinds="integer", zero=True)
def bitwise_left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Shift the bits of `x1` to the left by `x2`, element-wise.

    The result is 0 where the shift is as wide as the dtype, or wider. Negative shifts are undefined.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bitwise_left_shift(sa.asarray([1, 3]), 2)
    Dense([ 4, 12], dtype=int64)
    """
    return dense_elementwise.bitwise_left_shift(x1, x2)


@elementwise_function(kinds="integer or bool", zero=True)
def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Bitwise OR, element-wise.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bitwise_or(sa.asarray([5, 6]), 1)
    Dense([5, 7], dtype=int64)
    """
    return dense_elementwise.bitwise_or(x1, x2)


@elementwise_function(kinds="integer", zero=True)
def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Shift the bits of `x1` to the right by `x2`, element-wise.

    The sign is kept: the result is the floor of ``x1 / 2**x2``. Negative shifts are undefined.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bitwise_right_shift(sa.asarray([8, -8]), 2)
    Dense([ 2, -2], dtype=int64)
    """
    return dense_elementwise.bitwise_right_shift(x1, x2)


@elementwise_function(kinds="integer or bool", zero=True)
def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Bitwise XOR, element-wise.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bitwise_xor(sa.asarray([5, 6]), 1)
    Dense([4, 7], dtype=int64)
    """
    return dense_elementwise.bitwise_xor(x1, x2)
