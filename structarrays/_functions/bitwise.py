"""Elementwise functions of the standard: bits."""

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


@elementwise_function(kinds="integer or bool", zero=True, absorbs=(0, 1), exact=True)
def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits that are set in both elements of each pair.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of an integer or boolean dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        The bits, in the promoted dtype.

    Raises
    ------
    TypeError
        If a dtype is neither an integer dtype nor boolean.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    A structural zero of either operand stays one: the result stores what both operands store.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bitwise_and(sa.asarray([5, 6]), 3)
    Dense([1, 2], dtype=int64)
    """
    return dense_elementwise.bitwise_and(x1, x2)


@elementwise_function(kinds="integer or bool")
def bitwise_invert(x: ArrayLike, /) -> Array:
    """Each element with all its bits flipped; the logical not of a boolean.

    Parameters
    ----------
    x : array
        Of an integer or boolean dtype.

    Returns
    -------
    array
        The flipped elements, in the same dtype.

    Raises
    ------
    TypeError
        If the dtype is neither an integer dtype nor boolean.

    Notes
    -----
    Structural zeros become a background of all bits set (-1 in a signed dtype, True in the boolean one).

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bitwise_invert(sa.asarray([0, 5]))
    Dense([-1, -6], dtype=int64)
    """
    return dense_elementwise.bitwise_invert(x)


@elementwise_function(kinds="integer", zero=True)
def bitwise_left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Each element of `x1`, shifted to the left by as many bits as `x2` says.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of an integer dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        The shifted elements, in the promoted dtype; 0 where the shift is as wide as the dtype or wider.

    Raises
    ------
    TypeError
        If a dtype is not an integer dtype.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result. Negative shifts are undefined.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bitwise_left_shift(sa.asarray([1, 3]), 2)
    Dense([ 4, 12], dtype=int64)
    """
    return dense_elementwise.bitwise_left_shift(x1, x2)


@elementwise_function(kinds="integer or bool", zero=True)
def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits that are set in at least one element of each pair.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of an integer or boolean dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        The bits, in the promoted dtype.

    Raises
    ------
    TypeError
        If a dtype is neither an integer dtype nor boolean.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bitwise_or(sa.asarray([5, 6]), 1)
    Dense([5, 7], dtype=int64)
    """
    return dense_elementwise.bitwise_or(x1, x2)


@elementwise_function(kinds="integer", zero=True)
def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Each element of `x1`, shifted to the right by as many bits as `x2` says; the sign is kept.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of an integer dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        The shifted elements, in the promoted dtype: the floor of a division by a power of two.

    Raises
    ------
    TypeError
        If a dtype is not an integer dtype.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result. Negative shifts are undefined.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bitwise_right_shift(sa.asarray([8, -8]), 2)
    Dense([ 2, -2], dtype=int64)
    """
    return dense_elementwise.bitwise_right_shift(x1, x2)


@elementwise_function(kinds="integer or bool", zero=True)
def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits that are set in exactly one element of each pair.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of an integer or boolean dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        The bits, in the promoted dtype.

    Raises
    ------
    TypeError
        If a dtype is neither an integer dtype nor boolean.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bitwise_xor(sa.asarray([5, 6]), 1)
    Dense([4, 7], dtype=int64)
    """
    return dense_elementwise.bitwise_xor(x1, x2)
