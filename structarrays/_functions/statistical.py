"""Statistical functions of the standard: reductions and cumulative reductions."""

from __future__ import annotations

import builtins
import functools
import typing
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .._core import dtypes
from .._core.array.arguments import ArrayLike, DTypeLike
from .._core.array.base import Array
from .._core.array.operands import cast
from .._core.dispatch.decorator import function
from .._core.families.reduction_rule import (
    along_batch,
    averaging,
    one_axis,
    reduced_axes,
    reduced_count,
    reduction,
    spreading,
)
from .._numerics import dense_statistical
from .monoids import MAX, MIN, PROD, SUM

if TYPE_CHECKING:
    from .._core.dispatch.function import Function
    from .._core.typing import Axes, LeafFunction


def _in_its_dtype(leaf: LeafFunction) -> LeafFunction:
    """Return a reduction in the data type of its data, which the definition of the function has cast."""

    @functools.wraps(leaf)
    def reduce(data: jax.Array, **static: Any) -> jax.Array:
        result: jax.Array = leaf(data, dtype=data.dtype, **static)
        return result

    return reduce


# ---- arguments ---------------------------------------------------------------------------------------------------


def _accumulating(x: Array, dtype: DTypeLike | None, name: str) -> Array:
    """Cast the array to the data type of its sums and products in the standard."""
    if dtype is None:
        return cast(x, dense_statistical.accumulation_dtype(x.dtype))
    dtype = dtypes.as_dtype(dtype, f"{name}: dtype")
    if dtype.kind == "b" or (x.dtype.kind == "c" and dtype.kind != "c"):
        raise TypeError(f"{name}: dtype must be a numeric dtype to which {x.dtype} can be cast, got {dtype}")
    return cast(x, dtype)


def _floating(x: Array) -> Array:
    """Convert integers and booleans to the default floating-point data type, as in NumPy and JAX."""
    return cast(x, dtypes.default_dtype("f")) if x.dtype.kind in "biu" else x


def _averaged(function: Function[..., Any], x: Array, **static: Any) -> Array:
    """Compute `mean`, `var` or `std`. Data of 16 bits is reduced in 32, because sums and counts could overflow."""
    x = _floating(x)
    if dtypes.is_half(x.dtype):
        return cast(function.dispatch(cast(x, np.dtype("float32")), **static), x.dtype)
    result: Array = function.dispatch(x, **static)
    return result


def _ordered(x: Array, axis: Axes, name: str) -> tuple[int, ...]:
    """Check and return the axes of a reduction without an identity element."""
    if x.dtype.kind == "c":
        raise TypeError(f"{name}: x must have a real dtype, because complex numbers have no order, got {x.dtype}")
    axes = reduced_axes(x, axis, name)
    if reduced_count(x, axes) == 0:
        raise ValueError(f"{name}: x must have elements along the reduced axes, got shape {x.shape} and axis {axis}")
    return axes


def _correction(correction: Any, name: str) -> float:
    if not isinstance(correction, (builtins.int, builtins.float, np.integer, np.floating)):
        raise TypeError(f"{name}: correction must be an integer or a float, got {type(correction).__name__}")
    return float(correction)


# ---- sums and products -------------------------------------------------------------------------------------------


@function("x", rule=reduction(SUM), dense=_in_its_dtype(dense_statistical.sum))
def sum(
    x: ArrayLike,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Array:
    """Compute the sum of the elements over axes.

    Parameters
    ----------
    x : array, (...)
        Array of any data type. Booleans are converted to integers.
    axis : int or tuple of int, optional
        Axis or axes to reduce. The default is all axes.
    dtype : dtype, optional
        Data type of the result and of the intermediate results. The default is the data type of `x`; integers are at
        least of the default integer data type.
    keepdims : bool, default False
        Whether to keep the reduced axes with length 1.

    Returns
    -------
    array
        Reduced array. A reduction over batch axes has the structure of `x`. A reduction over core axes is `Dense`, or
        `Fill` for a `Fill`. Time and memory are proportional to the number of stored entries.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If an axis is repeated.
    TypeError
        If `x` cannot be cast to `dtype`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.sum(sa.tridiagonal([1.0, 1.0], [2.0, 2.0, 2.0], [1.0, 1.0]), axis=-1)
    Dense([3., 4., 3.], dtype=float64)
    """
    x = typing.cast("Array", x)
    axes = reduced_axes(x, axis, "sum")
    result: Array = sum.dispatch(_accumulating(x, dtype, "sum"), axis=axes, keepdims=keepdims)
    return result


@function("x", rule=reduction(PROD), dense=_in_its_dtype(dense_statistical.prod))
def prod(
    x: ArrayLike,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Array:
    """Compute the product of the elements over axes.

    Parameters
    ----------
    x : array, (...)
        Array of any data type. Booleans are converted to integers.
    axis : int or tuple of int, optional
        Axis or axes to reduce. The default is all axes.
    dtype : dtype, optional
        Data type of the result and of the intermediate results. The default is the data type of `x`; integers are at
        least of the default integer data type.
    keepdims : bool, default False
        Whether to keep the reduced axes with length 1.

    Returns
    -------
    array
        Reduced array. A reduction over batch axes has the structure of `x`. A reduction over core axes is `Dense`, or
        `Fill` for a `Fill`. Time and memory are proportional to the number of stored entries.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If an axis is repeated.
    TypeError
        If `x` cannot be cast to `dtype`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.prod(1.0 + sa.Diagonal([1.0, 2.0]), axis=-1)
    Dense([2., 3.], dtype=float64)
    """
    x = typing.cast("Array", x)
    axes = reduced_axes(x, axis, "prod")
    result: Array = prod.dispatch(_accumulating(x, dtype, "prod"), axis=axes, keepdims=keepdims)
    return result


# ---- extrema -----------------------------------------------------------------------------------------------------


@function("x", rule=reduction(MAX), dense=dense_statistical.max)
def max(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Return the maximum over axes. If an element is NaN, the result is NaN.

    Parameters
    ----------
    x : array, (...)
        Array of a real data type.
    axis : int or tuple of int, optional
        Axis or axes to reduce. The default is all axes.
    keepdims : bool, default False
        Whether to keep the reduced axes with length 1.

    Returns
    -------
    array
        Reduced array. A reduction over batch axes has the structure of `x`. A reduction over core axes is `Dense`, or
        `Fill` for a `Fill`. Time and memory are proportional to the number of stored entries.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If an axis is repeated, or the reduced axes have no elements.
    TypeError
        If `x` is complex.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.max(sa.Diagonal([-1.0, 2.0, -3.0]), axis=0)
    Dense([0., 2., 0.], dtype=float64)
    """
    x = typing.cast("Array", x)
    axes = _ordered(x, axis, "max")
    result: Array = max.dispatch(x, axis=axes, keepdims=keepdims)
    return result


@function("x", rule=reduction(MIN), dense=dense_statistical.min)
def min(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Return the minimum over axes. If an element is NaN, the result is NaN.

    Parameters
    ----------
    x : array, (...)
        Array of a real data type.
    axis : int or tuple of int, optional
        Axis or axes to reduce. The default is all axes.
    keepdims : bool, default False
        Whether to keep the reduced axes with length 1.

    Returns
    -------
    array
        Reduced array. A reduction over batch axes has the structure of `x`. A reduction over core axes is `Dense`, or
        `Fill` for a `Fill`. Time and memory are proportional to the number of stored entries.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If an axis is repeated, or the reduced axes have no elements.
    TypeError
        If `x` is complex.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.min(sa.Diagonal([-1.0, 2.0, -3.0]), axis=0)
    Dense([-1.,  0., -3.], dtype=float64)
    """
    x = typing.cast("Array", x)
    axes = _ordered(x, axis, "min")
    result: Array = min.dispatch(x, axis=axes, keepdims=keepdims)
    return result


# ---- means and variances -----------------------------------------------------------------------------------------


@function("x", rule=averaging(SUM), dense=dense_statistical.mean)
def mean(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Compute the arithmetic mean over axes. The mean of no elements is NaN.

    Parameters
    ----------
    x : array, (...)
        Array of any data type. Integers and booleans are converted to the default floating-point data type.
    axis : int or tuple of int, optional
        Axis or axes to reduce. The default is all axes.
    keepdims : bool, default False
        Whether to keep the reduced axes with length 1.

    Returns
    -------
    array
        Reduced array. A reduction over batch axes has the structure of `x`. A reduction over core axes is `Dense`, or
        `Fill` for a `Fill`. Time and memory are proportional to the number of stored entries.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If an axis is repeated.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.mean(sa.Diagonal([1.0, 2.0, 3.0]), axis=-1)
    Dense([0.33333333, 0.66666667, 1.        ], dtype=float64)
    """
    x = typing.cast("Array", x)
    axes = reduced_axes(x, axis, "mean")
    return _averaged(mean, x, axis=axes, keepdims=keepdims)


@function("x", rule=spreading(SUM, dense_statistical.var, lambda variance: variance), dense=dense_statistical.var)
def var(
    x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, correction: int | float = 0.0, keepdims: bool = False
) -> Array:
    """Compute the variance over axes: ``sum(abs(x - mean(x))**2) / (count - correction)``, which is real.

    Parameters
    ----------
    x : array, (...)
        Array of any data type. Integers and booleans are converted to the default floating-point data type.
    axis : int or tuple of int, optional
        Axis or axes to reduce. The default is all axes.
    correction : int or float, default 0.0
        Number that is subtracted from the number of elements: 1 for the unbiased estimate.
    keepdims : bool, default False
        Whether to keep the reduced axes with length 1.

    Returns
    -------
    array
        Reduced array. A reduction over batch axes has the structure of `x`. A reduction over core axes is `Dense`, or
        `Fill` for a `Fill`. Time and memory are proportional to the number of stored entries. The result is NaN where
        ``count - correction`` is not positive.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If an axis is repeated.
    TypeError
        If `correction` is not a number.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.var(sa.Diagonal([2.0, 4.0]), axis=-1)
    Dense([1., 4.], dtype=float64)
    """
    x = typing.cast("Array", x)
    axes = reduced_axes(x, axis, "var")
    return _averaged(var, x, axis=axes, correction=_correction(correction, "var"), keepdims=keepdims)


@function("x", rule=spreading(SUM, dense_statistical.std, dense_statistical.root), dense=dense_statistical.std)
def std(
    x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, correction: int | float = 0.0, keepdims: bool = False
) -> Array:
    """Compute the standard deviation over axes: the square root of `var`.

    Parameters
    ----------
    x : array, (...)
        Array of any data type. Integers and booleans are converted to the default floating-point data type.
    axis : int or tuple of int, optional
        Axis or axes to reduce. The default is all axes.
    correction : int or float, default 0.0
        Number that is subtracted from the number of elements: 1 for the square root of the unbiased variance.
    keepdims : bool, default False
        Whether to keep the reduced axes with length 1.

    Returns
    -------
    array
        Reduced array. A reduction over batch axes has the structure of `x`. A reduction over core axes is `Dense`, or
        `Fill` for a `Fill`. Time and memory are proportional to the number of stored entries. The result is NaN where
        ``count - correction`` is not positive.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If an axis is repeated.
    TypeError
        If `correction` is not a number.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.std(sa.Diagonal([2.0, 4.0]), axis=-1)
    Dense([1., 2.], dtype=float64)
    """
    x = typing.cast("Array", x)
    axes = reduced_axes(x, axis, "std")
    return _averaged(std, x, axis=axes, correction=_correction(correction, "std"), keepdims=keepdims)


# ---- cumulative reductions ---------------------------------------------------------------------------------------


def _cumulative_axis(x: Array, axis: int | None, name: str) -> int:
    if x.ndim == 0:
        raise ValueError(f"{name}: x must have at least one dimension, got a 0-d array")
    if axis is None and x.ndim > 1:
        raise ValueError(f"{name}: axis must be given for an array of {x.ndim} dimensions, got None")
    return 0 if axis is None else one_axis(x, axis, name)


_cumulative_sum = _in_its_dtype(dense_statistical.cumulative_sum)


@function("x", rule=along_batch(_cumulative_sum, lambda axis, include_initial: True), dense=_cumulative_sum)
def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Compute the cumulative sum along an axis.

    Parameters
    ----------
    x : array, (..., n, ...)
        Array of any data type with at least one dimension. Booleans are converted to integers.
    axis : int, optional
        Axis along which to compute the sums. It may be omitted if `x` is one-dimensional.
    dtype : dtype, optional
        Data type of the result and of the intermediate results. The default is the data type of `x`; integers are at
        least of the default integer data type.
    include_initial : bool, default False
        Whether the result starts with the initial value 0. Then the axis has length n + 1.

    Returns
    -------
    array, (..., n, ...)
        Cumulative sums. Along a batch axis they have the structure of `x`. Along a core axis they are `Dense`, or
        `LowRank` for a `LowRank`.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If `axis` is missing, or `x` has no dimensions.
    TypeError
        If `x` cannot be cast to `dtype`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.cumulative_sum(sa.asarray([1, 2, 3]), include_initial=True)
    Dense([0, 1, 3, 6], dtype=int64)
    """
    x = typing.cast("Array", x)
    axis = _cumulative_axis(x, axis, "cumulative_sum")
    x = _accumulating(x, dtype, "cumulative_sum")
    result: Array = cumulative_sum.dispatch(x, axis=axis, include_initial=include_initial)
    return result


_cumulative_prod = _in_its_dtype(dense_statistical.cumulative_prod)


@function(
    "x", rule=along_batch(_cumulative_prod, lambda axis, include_initial: not include_initial), dense=_cumulative_prod
)
def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Compute the cumulative product along an axis.

    Parameters
    ----------
    x : array, (..., n, ...)
        Array of any data type with at least one dimension. Booleans are converted to integers.
    axis : int, optional
        Axis along which to compute the products. It may be omitted if `x` is one-dimensional.
    dtype : dtype, optional
        Data type of the result and of the intermediate results. The default is the data type of `x`; integers are at
        least of the default integer data type.
    include_initial : bool, default False
        Whether the result starts with the initial value 1. Then the axis has length n + 1.

    Returns
    -------
    array, (..., n, ...)
        Cumulative products. Along a batch axis they have the structure of `x`. Along a core axis they are `Dense`.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If `axis` is missing, or `x` has no dimensions.
    TypeError
        If `x` cannot be cast to `dtype`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.cumulative_prod(sa.asarray([1, 2, 3]))
    Dense([1, 2, 6], dtype=int64)
    """
    x = typing.cast("Array", x)
    axis = _cumulative_axis(x, axis, "cumulative_prod")
    x = _accumulating(x, dtype, "cumulative_prod")
    result: Array = cumulative_prod.dispatch(x, axis=axis, include_initial=include_initial)
    return result
