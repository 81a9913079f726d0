"""Elementwise functions of the standard: comparisons, logic, and tests of a floating-point number's kind."""

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


@elementwise_function(kinds="all", compares=True)
def equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Whether the elements of each pair are equal.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of any dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        Booleans; False where either is NaN.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, the result has a background of True.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.equal(sa.asarray([1.0, 2.0]), 2.0)
    Dense([False,  True], dtype=bool)
    """
    return dense_elementwise.equal(x1, x2)


@elementwise_function(kinds="all", zero=True, compares=True)
def not_equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Whether the elements of each pair differ.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of any dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        Booleans; True where either is NaN.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.not_equal(sa.asarray([1.0, 2.0]), 2.0)
    Dense([ True, False], dtype=bool)
    """
    return dense_elementwise.not_equal(x1, x2)


@elementwise_function(kinds="real", zero=True, compares=True)
def less(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Whether each element of `x1` is less than that of `x2`.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a boolean or real numeric dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        Booleans; False where either is NaN.

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
    >>> sa.less(sa.asarray([1.0, 2.0]), 2.0)
    Dense([ True, False], dtype=bool)
    """
    return dense_elementwise.less(x1, x2)


@elementwise_function(kinds="real", compares=True)
def less_equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Whether each element of `x1` is less than that of `x2`, or equal.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a boolean or real numeric dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        Booleans; False where either is NaN.

    Raises
    ------
    TypeError
        If a dtype is complex.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, the result has a background of True.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.less_equal(sa.asarray([1.0, 3.0]), 2.0)
    Dense([ True, False], dtype=bool)
    """
    return dense_elementwise.less_equal(x1, x2)


@elementwise_function(kinds="real", zero=True, compares=True)
def greater(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Whether each element of `x1` is greater than that of `x2`.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a boolean or real numeric dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        Booleans; False where either is NaN.

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
    >>> sa.greater(sa.asarray([1.0, 3.0]), 2.0)
    Dense([False,  True], dtype=bool)
    """
    return dense_elementwise.greater(x1, x2)


@elementwise_function(kinds="real", compares=True)
def greater_equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Whether each element of `x1` is greater than that of `x2`, or equal.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a boolean or real numeric dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        Booleans; False where either is NaN.

    Raises
    ------
    TypeError
        If a dtype is complex.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, the result has a background of True.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.greater_equal(sa.asarray([1.0, 2.0]), 2.0)
    Dense([False,  True], dtype=bool)
    """
    return dense_elementwise.greater_equal(x1, x2)


@elementwise_function(kinds="bool", zero=True, absorbs=(0, 1), exact=True)
def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Whether both elements of each pair are True.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of boolean dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        Booleans.

    Raises
    ------
    TypeError
        If a dtype is not boolean.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    A structural zero (False) of either operand stays one: the result stores what both operands store.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.logical_and(sa.asarray([True, False]), True)
    Dense([ True, False], dtype=bool)
    """
    return dense_elementwise.logical_and(x1, x2)


@elementwise_function(kinds="bool")
def logical_not(x: ArrayLike, /) -> Array:
    """Whether each element is False.

    Parameters
    ----------
    x : array
        Of boolean dtype.

    Returns
    -------
    array
        Booleans.

    Raises
    ------
    TypeError
        If the dtype is not boolean.

    Notes
    -----
    Structural zeros become a background of True.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.logical_not(sa.asarray([True, False]))
    Dense([False,  True], dtype=bool)
    """
    return dense_elementwise.logical_not(x)


@elementwise_function(kinds="bool", zero=True)
def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Whether at least one element of each pair is True.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of boolean dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        Booleans.

    Raises
    ------
    TypeError
        If a dtype is not boolean.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.logical_or(sa.asarray([True, False]), False)
    Dense([ True, False], dtype=bool)
    """
    return dense_elementwise.logical_or(x1, x2)


@elementwise_function(kinds="bool", zero=True)
def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Whether exactly one element of each pair is True.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of boolean dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        Booleans.

    Raises
    ------
    TypeError
        If a dtype is not boolean.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where both operands have structural zeros, so has the result.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.logical_xor(sa.asarray([True, False]), True)
    Dense([False,  True], dtype=bool)
    """
    return dense_elementwise.logical_xor(x1, x2)


@elementwise_function(kinds="numeric")
def isfinite(x: ArrayLike, /) -> Array:
    """Whether each element is neither infinite nor NaN, in both parts of a complex one.

    Parameters
    ----------
    x : array
        Of a numeric dtype.

    Returns
    -------
    array
        Booleans; True for all integers.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros become a background of True.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.isfinite(sa.asarray([1.0, float("inf"), float("nan")]))
    Dense([ True, False, False], dtype=bool)
    """
    return dense_elementwise.isfinite(x)


@elementwise_function(kinds="numeric", zero=True)
def isinf(x: ArrayLike, /) -> Array:
    """Whether each element is infinite, in at least one part of a complex one.

    Parameters
    ----------
    x : array
        Of a numeric dtype.

    Returns
    -------
    array
        Booleans; False for all integers.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros stay. Of factored arrays (`LowRank`, `Kronecker`, `Sum`, `Product`) the result is `Sparse` in an eager call, and has
    no entries if their parameters are finite, and so small that no product of them overflows.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.isinf(sa.asarray([1.0, float("inf"), float("nan")]))
    Dense([False,  True, False], dtype=bool)
    """
    return dense_elementwise.isinf(x)


@elementwise_function(kinds="numeric", zero=True)
def isnan(x: ArrayLike, /) -> Array:
    """Whether each element is NaN, in at least one part of a complex one.

    Parameters
    ----------
    x : array
        Of a numeric dtype.

    Returns
    -------
    array
        Booleans; False for all integers.

    Raises
    ------
    TypeError
        If the dtype is boolean.

    Notes
    -----
    Structural zeros stay. Of factored arrays (`LowRank`, `Kronecker`, `Sum`, `Product`) the result is `Sparse` in an eager call, and has
    no entries if their parameters are finite, and so small that no product of them overflows.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.isnan(sa.asarray([1.0, float("inf"), float("nan")]))
    Dense([False, False,  True], dtype=bool)
    """
    return dense_elementwise.isnan(x)


@elementwise_function(kinds="real floating", zero=True)
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit of each element is set, also of -0 and of NaN.

    Parameters
    ----------
    x : array
        Of a real floating dtype; integers become the default floating dtype.

    Returns
    -------
    array
        Booleans.

    Raises
    ------
    TypeError
        If the dtype is boolean or complex.

    Notes
    -----
    Structural zeros stay. They have no sign.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.signbit(sa.asarray([1.0, -0.0, -2.0]))
    Dense([False,  True,  True], dtype=bool)
    """
    return dense_elementwise.signbit(x)
