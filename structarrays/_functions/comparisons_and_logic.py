"""Elementwise functions of the standard: comparisons, logic, and tests of a floating-point number's kind."""

from __future__ import annotations

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.families.elementwise_rule import dense_elementwise, elementwise_function


@elementwise_function(kinds="all", compares=True, result="bool")
def equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``x1 == x2``, element-wise.

    The result is False where either element is NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.equal(sa.asarray([1.0, 2.0]), 2.0)
    Dense([False,  True], dtype=bool)
    """
    return dense_elementwise.equal(x1, x2)


@elementwise_function(kinds="all", zero=True, compares=True, result="bool")
def not_equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``x1 != x2``, element-wise.

    The result is True where either element is NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.not_equal(sa.asarray([1.0, 2.0]), 2.0)
    Dense([ True, False], dtype=bool)
    """
    return dense_elementwise.not_equal(x1, x2)


@elementwise_function(kinds="real", zero=True, compares=True, result="bool")
def less(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``x1 < x2``, element-wise.

    The result is False where either element is NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.less(sa.asarray([1.0, 2.0]), 2.0)
    Dense([ True, False], dtype=bool)
    """
    return dense_elementwise.less(x1, x2)


@elementwise_function(kinds="real", compares=True, result="bool")
def less_equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``x1 <= x2``, element-wise.

    The result is False where either element is NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.less_equal(sa.asarray([1.0, 3.0]), 2.0)
    Dense([ True, False], dtype=bool)
    """
    return dense_elementwise.less_equal(x1, x2)


@elementwise_function(kinds="real", zero=True, compares=True, result="bool")
def greater(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``x1 > x2``, element-wise.

    The result is False where either element is NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.greater(sa.asarray([1.0, 3.0]), 2.0)
    Dense([False,  True], dtype=bool)
    """
    return dense_elementwise.greater(x1, x2)


@elementwise_function(kinds="real", compares=True, result="bool")
def greater_equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``x1 >= x2``, element-wise.

    The result is False where either element is NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.greater_equal(sa.asarray([1.0, 2.0]), 2.0)
    Dense([False,  True], dtype=bool)
    """
    return dense_elementwise.greater_equal(x1, x2)


@elementwise_function(kinds="bool", zero=True, absorbs=(0, 1), exact=True, result="bool")
def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Logical AND, element-wise.

    Notes
    -----
    The result stores the entries that both operands store.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.logical_and(sa.asarray([True, False]), True)
    Dense([ True, False], dtype=bool)
    """
    return dense_elementwise.logical_and(x1, x2)


@elementwise_function(kinds="bool", result="bool")
def logical_not(x: ArrayLike, /) -> Array:
    """Logical NOT, element-wise.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.logical_not(sa.asarray([True, False]))
    Dense([False,  True], dtype=bool)
    """
    return dense_elementwise.logical_not(x)


@elementwise_function(kinds="bool", zero=True, result="bool")
def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Logical OR, element-wise.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.logical_or(sa.asarray([True, False]), False)
    Dense([ True, False], dtype=bool)
    """
    return dense_elementwise.logical_or(x1, x2)


@elementwise_function(kinds="bool", zero=True, result="bool")
def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Logical XOR, element-wise.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.logical_xor(sa.asarray([True, False]), True)
    Dense([False,  True], dtype=bool)
    """
    return dense_elementwise.logical_xor(x1, x2)


@elementwise_function(kinds="numeric", result="bool")
def isfinite(x: ArrayLike, /) -> Array:
    """Test for finite numbers, element-wise.

    Infinities and NaN are not finite. A complex number is finite if both parts are finite.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.isfinite(sa.asarray([1.0, float("inf"), float("nan")]))
    Dense([ True, False, False], dtype=bool)
    """
    return dense_elementwise.isfinite(x)


@elementwise_function(kinds="numeric", zero=True, result="bool")
def isinf(x: ArrayLike, /) -> Array:
    """Test for infinity, element-wise.

    A complex number is infinite if at least one part is infinite.

    Notes
    -----
    For a factored array (`LowRank`, `Kronecker`, `Sum`, `Product`) the result of an eager call is `Sparse`.
    It has no entries if the parameters are finite and so small that no product of them overflows.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.isinf(sa.asarray([1.0, float("inf"), float("nan")]))
    Dense([False,  True, False], dtype=bool)
    """
    return dense_elementwise.isinf(x)


@elementwise_function(kinds="numeric", zero=True, result="bool")
def isnan(x: ArrayLike, /) -> Array:
    """Test for NaN, element-wise.

    A complex number is NaN if at least one part is NaN.

    Notes
    -----
    For a factored array (`LowRank`, `Kronecker`, `Sum`, `Product`) the result of an eager call is `Sparse`.
    It has no entries if the parameters are finite and so small that no product of them overflows.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.isnan(sa.asarray([1.0, float("inf"), float("nan")]))
    Dense([False, False,  True], dtype=bool)
    """
    return dense_elementwise.isnan(x)


@elementwise_function(kinds="real floating", zero=True, result="bool")
def signbit(x: ArrayLike, /) -> Array:
    """Test whether the sign bit is set, element-wise.

    The sign bit of -0 is set. NaN has a sign bit, too.

    Notes
    -----
    Structural zeros have no sign.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.signbit(sa.asarray([1.0, -0.0, -2.0]))
    Dense([False,  True,  True], dtype=bool)
    """
    return dense_elementwise.signbit(x)
