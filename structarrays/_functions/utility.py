"""The standard's utility functions: `all`, `any` and `diff`."""

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
    """The array as booleans: NaN is true."""
    if isinstance(x, Factored):
        x = densify(x, name)
    return x if x.dtype.kind == "b" else map_entries(x, lambda data: data != 0)


@function("x", rule=reduction(ALL), dense=dense_statistical.all)
def all(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Whether all elements are true (not zero) over axes; true of nothing.

    Parameters
    ----------
    x : Array
        Of any dtype.
    axis : int or tuple of int, optional
        The axes to reduce; all by default.
    keepdims : bool
        Whether the axes stay, with size 1.

    Returns
    -------
    Array
        Of booleans; over batch axes of the structure of `x`, over core axes `Dense` (of a `Fill` a `Fill`), in time and
        memory proportional to what is stored.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    ValueError
        If an axis is named twice.

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
    """Whether any element is true (not zero) over axes; false of nothing.

    Parameters
    ----------
    x : Array
        Of any dtype.
    axis : int or tuple of int, optional
        The axes to reduce; all by default.
    keepdims : bool
        Whether the axes stay, with size 1.

    Returns
    -------
    Array
        Of booleans; over batch axes of the structure of `x`, over core axes `Dense` (of a `Fill` a `Fill`), in time and
        memory proportional to what is stored.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    ValueError
        If an axis is named twice.

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
    """Difference of neighbours along an axis, ``x[1:] - x[:-1]``, n times.

    Parameters
    ----------
    x : Array
        Of a numeric dtype.
    axis : int
        The axis; the last by default.
    n : int
        How many times.
    prepend, append : Array, optional
        What stands before and after `x` on that axis; in the other dimensions as large as `x`.

    Returns
    -------
    Array
        Along a batch axis of the structure of `x`; along a core axis of a banded matrix `Banded`, with the offsets
        ``k - n, …, k`` for columns and ``k, …, k + n`` for rows, where `x` has the offset ``k``.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    ValueError
        If `n` is negative, or `prepend` or `append` has another shape than `x` beside the axis.
    TypeError
        If `x` is boolean.

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
            raise ValueError(f"diff: {name} must have the shape of x, {x.shape}, but for axis {axis}, got {part.shape}")
    if len(parts) > 1:
        from .joining import concat

        x = concat(promote(*parts.values()), axis=axis)
    return x if n == 0 else diff.dispatch(x, axis=axis, n=n)


@diff.kernel(Dense)
def _diff_dense(x: Dense, *, axis: int, n: int) -> Dense:
    return Dense.make((dense_statistical.diff(x.data, axis=axis, n=n),))
