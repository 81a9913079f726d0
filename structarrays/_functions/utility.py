"""Utility functions of the standard: `all`, `any` and `diff`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp
import numpy as np

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import densify, promote
from .._core.dispatch.decorator import function
from .._core.families.factored import Factored
from .._core.families.reduction_rule import Monoid, along_batch, map_entries, one_axis, reduced_axes, reduction
from .._numerics import dense_statistical

if TYPE_CHECKING:
    import jax


def _itself(value: jax.Array, count: Any) -> jax.Array:
    return value


ALL = Monoid(dense_statistical.all, jnp.logical_and, _itself, lambda dtype: np.True_, "min")
ANY = Monoid(dense_statistical.any, jnp.logical_or, _itself, lambda dtype: np.False_, "max")


def _truth(x: Array, name: str) -> Array:
    """Convert an array to booleans; NaN is True."""
    if isinstance(x, Factored):
        x = densify(x, name)
    return x if x.dtype.kind == "b" else map_entries(x, lambda data: data != 0)


@function("x", rule=reduction(ALL), dense=dense_statistical.all)
def all(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Return whether all elements over axes are True (nonzero). For no elements the result is True.

    Parameters
    ----------
    x : array, (...)
        Array of any data type.
    axis : int or tuple of int, optional
        Axis or axes to reduce. The default is all axes.
    keepdims : bool, default False
        Whether to keep the reduced axes with length 1.

    Returns
    -------
    array
        Reduced array of booleans. A reduction over batch axes has the structure of `x`. A reduction over core axes is
        `Dense`, or `Fill` for a `Fill`. Time and memory are proportional to the number of stored entries.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If an axis is repeated.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.all(sa.isfinite(sa.Diagonal([1.0, sa.inf])), axis=-1)
    Dense([ True, False], dtype=bool)
    """
    x = cast("Array", x)
    result: Array = all.dispatch(_truth(x, "all"), axis=reduced_axes(x, axis, "all"), keepdims=keepdims)
    return result


@function("x", rule=reduction(ANY), dense=dense_statistical.any)
def any(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Return whether any element over axes is True (nonzero). For no elements the result is False.

    Parameters
    ----------
    x : array, (...)
        Array of any data type.
    axis : int or tuple of int, optional
        Axis or axes to reduce. The default is all axes.
    keepdims : bool, default False
        Whether to keep the reduced axes with length 1.

    Returns
    -------
    array
        Reduced array of booleans. A reduction over batch axes has the structure of `x`. A reduction over core axes is
        `Dense`, or `Fill` for a `Fill`. Time and memory are proportional to the number of stored entries.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If an axis is repeated.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.any(sa.Diagonal([1.0, 0.0]), axis=-1)
    Dense([ True, False], dtype=bool)
    """
    x = cast("Array", x)
    result: Array = any.dispatch(_truth(x, "any"), axis=reduced_axes(x, axis, "any"), keepdims=keepdims)
    return result


@function("x", "prepend", "append", rule=along_batch(dense_statistical.diff, lambda axis, n: True))
def diff(
    x: ArrayLike, /, *, axis: int = -1, n: int = 1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """Compute the n-th difference along an axis: ``x[1:] - x[:-1]``, n times.

    Parameters
    ----------
    x : array, (..., m, ...)
        Array of a numeric data type.
    axis : int, default -1
        Axis along which to compute the differences.
    n : int, default 1
        Order of the difference.
    prepend, append : array, optional
        Values to join before and after `x` along the axis. The other axes must have the lengths of `x`.

    Returns
    -------
    array, (..., m - n, ...)
        Differences. Along a batch axis they have the structure of `x`. Along a core axis of a banded matrix they are
        `Banded`: an offset ``k`` of `x` becomes the offsets ``k - n, …, k`` for differences of columns, and ``k, …, k +
        n`` for differences of rows.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If `n` is negative, or `prepend` or `append` does not have the shape of `x` except along the axis.
    TypeError
        If `x` has a boolean data type.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.diff(sa.eye(4), n=2, axis=0).offsets
    (0, 1, 2)
    >>> sa.diff(sa.asarray([1, 4, 9]), prepend=sa.asarray([0]))
    Dense([1, 3, 5], dtype=int64)
    """
    x = cast("Array", x)
    prepend, append = cast("Array | None", prepend), cast("Array | None", append)
    axis = one_axis(x, axis, "diff")
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"diff: n must be an integer, got {n!r}") from None
    if n < 0:
        raise ValueError(f"diff: n must not be negative, got {n}")
    given = {"prepend": prepend, "x": x, "append": append}
    parts = {name: part for name, part in given.items() if part is not None}
    for name, part in parts.items():
        if part.dtype.kind == "b":
            raise TypeError(f"diff: {name} must have a numeric dtype, got {part.dtype}")
        if part.shape[:axis] != x.shape[:axis] or part.shape[axis + 1 :] != x.shape[axis + 1 :] or part.ndim != x.ndim:
            raise ValueError(
                f"diff: {name} must have the shape of x, {x.shape}, except along axis {axis}, got {part.shape}"
            )
    if len(parts) > 1:
        from .joining import concat

        x = concat(promote(*parts.values()), axis=axis)
    return x if n == 0 else diff.dispatch(x, axis=axis, n=n)


@diff.kernel(Dense)
def _diff_dense(x: Dense, *, axis: int, n: int) -> Dense:
    return Dense.make((dense_statistical.diff(x.data, axis=axis, n=n),))
