"""The standard's statistical functions: reductions and cumulative reductions."""

from __future__ import annotations

import builtins
import typing
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core import dtypes
from .._core.array.arguments import ArrayLike, DTypeLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import cast
from .._core.dispatch.decorator import function
from .._core.families.reduction_rule import (
    Monoid,
    along_batch,
    averaging,
    one_axis,
    reduced_axes,
    reduced_count,
    reduction,
    spreading,
)
from .._numerics import dense_statistical
from .._numerics.flags import custom_jvp

if TYPE_CHECKING:
    from .._core.dispatch.function import Function
    from .._core.typing import Axes, LeafFunction

# ---- what is reduced by ------------------------------------------------------------------------------------------


def _times(value: jax.Array, count: int | np.ndarray | jax.Array) -> jax.Array:
    """``count * value``, with an integer's wrapping and, of a complex value, each part on its own."""
    dtype = np.dtype(value.dtype)
    if dtype.kind == "c":
        return jax.lax.complex(_times(value.real, count), _times(value.imag, count))
    if dtype.kind in "iu" and isinstance(count, builtins.int):
        count = np.array(count % 2**64, np.uint64).astype(dtype)
    if dtypes.is_half(dtype):  # a number of 16 bits may not be as large as the count
        return (value.astype(jnp.float32) * jnp.asarray(count, jnp.float32)).astype(dtype)
    return value * jnp.asarray(count, dtype)


def _lowest(dtype: np.dtype) -> Any:
    dtype = np.dtype(dtype)
    return dtype.type(False if dtype.kind == "b" else np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf)


def _highest(dtype: np.dtype) -> Any:
    dtype = np.dtype(dtype)
    return dtype.type(True if dtype.kind == "b" else np.iinfo(dtype).max if dtype.kind in "iu" else np.inf)


def _itself(value: jax.Array, count: Any) -> jax.Array:
    return value


def _power(value: jax.Array, count: int | jax.Array) -> jax.Array:
    """Return ``value ** count``, for a Python integer or an array of integers. Counts below zero are taken for zero."""
    if isinstance(count, builtins.int):
        return jax.lax.integer_pow(value, count)
    shape = jnp.broadcast_shapes(value.shape, count.shape)
    value, count = jnp.broadcast_to(value, shape), jnp.broadcast_to(jnp.maximum(count, 0), shape)
    inexact = jnp.issubdtype(value.dtype, jnp.inexact)
    return _differentiable_power(value, count) if inexact else _repeated_squaring(value, count)


def _repeated_squaring(value: jax.Array, count: jax.Array) -> jax.Array:
    # A loop: XLA of jaxlib 0.12 never finishes compiling the steps if they are written out (docs/design/jax_bugs.md).
    def step(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        result, value, count = state
        return jnp.where(count & 1 == 1, result * value, result), value * value, count >> 1

    start = jnp.ones_like(value), value, count
    return jax.lax.while_loop(lambda state: jnp.any(state[2] > 0), step, start)[0]


_differentiable_power = custom_jvp(_repeated_squaring)


@_differentiable_power.defjvp
def _tangent_of_power(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, Any]
) -> tuple[jax.Array, jax.Array]:
    value, count = primals
    slope = count.astype(value.dtype) * _differentiable_power(value, jnp.maximum(count - 1, 0))
    return _differentiable_power(value, count), slope * tangents[0]


def _sum(data: jax.Array, *, axis: tuple[int, ...], keepdims: bool) -> jax.Array:
    return dense_statistical.sum(data, axis=axis, dtype=data.dtype, keepdims=keepdims)


def _prod(data: jax.Array, *, axis: tuple[int, ...], keepdims: bool) -> jax.Array:
    return dense_statistical.prod(data, axis=axis, dtype=data.dtype, keepdims=keepdims)


SUM = Monoid(_sum, jax.lax.add, _times, lambda dtype: np.dtype(dtype).type(0), "add")
PROD = Monoid(_prod, jax.lax.mul, _power, lambda dtype: np.dtype(dtype).type(1))
MAX = Monoid(dense_statistical.max, jax.lax.max, _itself, _lowest, "max")
MIN = Monoid(dense_statistical.min, jax.lax.min, _itself, _highest, "min")


# ---- the arguments -----------------------------------------------------------------------------------------------


def _accumulating(x: Array, dtype: DTypeLike | None, name: str) -> Array:
    """The array in the dtype in which the standard adds and multiplies it."""
    if dtype is None:
        return cast(x, dense_statistical.accumulation_dtype(x.dtype))
    dtype = dtypes.as_dtype(dtype, f"{name}: dtype")
    if dtype.kind == "b" or (x.dtype.kind == "c" and dtype.kind != "c"):
        raise TypeError(f"{name}: dtype must be a numeric dtype that can hold {x.dtype}, got {dtype}")
    return cast(x, dtype)


def _floating(x: Array) -> Array:
    """The array in a floating dtype: integers and booleans in the default one, as in NumPy and JAX."""
    return cast(x, dtypes.default_dtype("f")) if x.dtype.kind in "biu" else x


def _averaged(function: Function[..., Any], x: Array, **static: Any) -> Array:
    """`mean`, `var` or `std` of an array, of 16 bits in 32 as in NumPy and JAX: its sums, and the number of its elements, are large."""
    x = _floating(x)
    if dtypes.is_half(x.dtype):
        return cast(function.dispatch(cast(x, np.dtype("float32")), **static), x.dtype)
    result: Array = function.dispatch(x, **static)
    return result


def _ordered(x: Array, axis: Axes, name: str) -> tuple[int, ...]:
    """The axes of a reduction that has no identity."""
    if x.dtype.kind == "c":
        raise TypeError(f"{name}: x must have a real dtype, since complex numbers have no order, got {x.dtype}")
    axes = reduced_axes(x, axis, name)
    if reduced_count(x, axes) == 0:
        raise ValueError(f"{name}: there is no {name} of no elements: shape {x.shape}, axis {axis}")
    return axes


def _correction(correction: Any, name: str) -> float:
    if not isinstance(correction, (builtins.int, builtins.float, np.integer, np.floating)):
        raise TypeError(f"{name}: correction must be an integer or a float, got {type(correction).__name__}")
    return float(correction)


# ---- sums and products -------------------------------------------------------------------------------------------


@function("x", rule=reduction(SUM))
def sum(
    x: ArrayLike,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Array:
    """Sum of the elements over axes.

    Parameters
    ----------
    x : Array
        Of any dtype; booleans count as integers.
    axis : int or tuple of int, optional
        The axes to sum over; all by default.
    dtype : dtype, optional
        Of the result, in which it is added up. By default that of `x`, but for integers no narrower than the default
        integer.
    keepdims : bool
        Whether the axes stay, with size 1.

    Returns
    -------
    Array
        Over batch axes of the structure of `x`, over core axes `Dense` (of a `Fill` a `Fill`), in time and memory
        proportional to what is stored.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    ValueError
        If an axis is named twice.
    TypeError
        If `dtype` cannot hold the dtype of `x`.

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


@sum.kernel(Dense)
def _sum_dense(x: Dense, *, axis: tuple[int, ...], keepdims: bool) -> Dense:
    return Dense.make((dense_statistical.sum(x.data, axis=axis, dtype=x.dtype, keepdims=keepdims),))


@function("x", rule=reduction(PROD))
def prod(
    x: ArrayLike,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Array:
    """Product of the elements over axes.

    Parameters
    ----------
    x : Array
        Of any dtype; booleans count as integers.
    axis : int or tuple of int, optional
        The axes to multiply over; all by default.
    dtype : dtype, optional
        Of the result, in which it is multiplied. By default that of `x`, but for integers no narrower than the default
        integer.
    keepdims : bool
        Whether the axes stay, with size 1.

    Returns
    -------
    Array
        Over batch axes of the structure of `x`, over core axes `Dense` (of a `Fill` a `Fill`), in time and memory
        proportional to what is stored.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    ValueError
        If an axis is named twice.
    TypeError
        If `dtype` cannot hold the dtype of `x`.

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


@prod.kernel(Dense)
def _prod_dense(x: Dense, *, axis: tuple[int, ...], keepdims: bool) -> Dense:
    return Dense.make((dense_statistical.prod(x.data, axis=axis, dtype=x.dtype, keepdims=keepdims),))


# ---- extrema -----------------------------------------------------------------------------------------------------


@function("x", rule=reduction(MAX))
def max(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Largest element over axes; NaN if there is one.

    Parameters
    ----------
    x : Array
        Of a real dtype.
    axis : int or tuple of int, optional
        The axes to reduce; all by default.
    keepdims : bool
        Whether the axes stay, with size 1.

    Returns
    -------
    Array
        Over batch axes of the structure of `x`, over core axes `Dense` (of a `Fill` a `Fill`), in time and memory
        proportional to what is stored.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    ValueError
        If an axis is named twice, or the axes have no elements.
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


@max.kernel(Dense)
def _max_dense(x: Dense, *, axis: tuple[int, ...], keepdims: bool) -> Dense:
    return Dense.make((dense_statistical.max(x.data, axis=axis, keepdims=keepdims),))


@function("x", rule=reduction(MIN))
def min(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Smallest element over axes; NaN if there is one.

    Parameters
    ----------
    x : Array
        Of a real dtype.
    axis : int or tuple of int, optional
        The axes to reduce; all by default.
    keepdims : bool
        Whether the axes stay, with size 1.

    Returns
    -------
    Array
        Over batch axes of the structure of `x`, over core axes `Dense` (of a `Fill` a `Fill`), in time and memory
        proportional to what is stored.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    ValueError
        If an axis is named twice, or the axes have no elements.
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


@min.kernel(Dense)
def _min_dense(x: Dense, *, axis: tuple[int, ...], keepdims: bool) -> Dense:
    return Dense.make((dense_statistical.min(x.data, axis=axis, keepdims=keepdims),))


# ---- means and variances -----------------------------------------------------------------------------------------


@function("x", rule=averaging(SUM))
def mean(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Arithmetic mean over axes; NaN of nothing.

    Parameters
    ----------
    x : Array
        Of any dtype; integers and booleans become the default floating dtype.
    axis : int or tuple of int, optional
        The axes to reduce; all by default.
    keepdims : bool
        Whether the axes stay, with size 1.

    Returns
    -------
    Array
        Over batch axes of the structure of `x`, over core axes `Dense` (of a `Fill` a `Fill`), in time and memory
        proportional to what is stored.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    ValueError
        If an axis is named twice.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.mean(sa.Diagonal([1.0, 2.0, 3.0]), axis=-1)
    Dense([0.33333333, 0.66666667, 1.        ], dtype=float64)
    """
    x = typing.cast("Array", x)
    axes = reduced_axes(x, axis, "mean")
    return _averaged(mean, x, axis=axes, keepdims=keepdims)


@mean.kernel(Dense)
def _mean_dense(x: Dense, *, axis: tuple[int, ...], keepdims: bool) -> Dense:
    return Dense.make((jnp.mean(x.data, axis=axis, keepdims=keepdims),))


@function("x", rule=spreading(SUM, dense_statistical.var, lambda variance: variance))
def var(
    x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, correction: int | float = 0.0, keepdims: bool = False
) -> Array:
    """Variance over axes: the sum of ``abs(x - mean(x))**2`` divided by ``count - correction``.

    Parameters
    ----------
    x : Array
        Of any dtype; integers and booleans become the default floating dtype, and the result is always real.
    axis : int or tuple of int, optional
        The axes to reduce; all by default.
    correction : int or float
        The degrees of freedom that are taken off the number of elements: 1 for the unbiased estimate.
    keepdims : bool
        Whether the axes stay, with size 1.

    Returns
    -------
    Array
        Over batch axes of the structure of `x`, over core axes `Dense` (of a `Fill` a `Fill`), in time and memory
        proportional to what is stored. NaN where ``count - correction`` is not positive.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    ValueError
        If an axis is named twice.
    TypeError
        If `correction` is no number.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.var(sa.Diagonal([2.0, 4.0]), axis=-1)
    Dense([1., 4.], dtype=float64)
    """
    x = typing.cast("Array", x)
    axes = reduced_axes(x, axis, "var")
    return _averaged(var, x, axis=axes, correction=_correction(correction, "var"), keepdims=keepdims)


@var.kernel(Dense)
def _var_dense(x: Dense, *, axis: tuple[int, ...], correction: float, keepdims: bool) -> Dense:
    return Dense.make((dense_statistical.var(x.data, axis=axis, correction=correction, keepdims=keepdims),))


@function("x", rule=spreading(SUM, dense_statistical.std, dense_statistical.root))
def std(
    x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, correction: int | float = 0.0, keepdims: bool = False
) -> Array:
    """Standard deviation over axes, the square root of `var`.

    Parameters
    ----------
    x : Array
        Of any dtype; integers and booleans become the default floating dtype, and the result is always real.
    axis : int or tuple of int, optional
        The axes to reduce; all by default.
    correction : int or float
        The degrees of freedom that are taken off the number of elements.
    keepdims : bool
        Whether the axes stay, with size 1.

    Returns
    -------
    Array
        Over batch axes of the structure of `x`, over core axes `Dense` (of a `Fill` a `Fill`), in time and memory
        proportional to what is stored. NaN where ``count - correction`` is not positive.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    ValueError
        If an axis is named twice.
    TypeError
        If `correction` is no number.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.std(sa.Diagonal([2.0, 4.0]), axis=-1)
    Dense([1., 2.], dtype=float64)
    """
    x = typing.cast("Array", x)
    axes = reduced_axes(x, axis, "std")
    return _averaged(std, x, axis=axes, correction=_correction(correction, "std"), keepdims=keepdims)


@std.kernel(Dense)
def _std_dense(x: Dense, *, axis: tuple[int, ...], correction: float, keepdims: bool) -> Dense:
    return Dense.make((dense_statistical.std(x.data, axis=axis, correction=correction, keepdims=keepdims),))


# ---- cumulative reductions ---------------------------------------------------------------------------------------


def _cumulative_axis(x: Array, axis: int | None, name: str) -> int:
    if x.ndim == 0:
        raise ValueError(f"{name}: x must have at least one dimension, got a scalar")
    if axis is None and x.ndim > 1:
        raise ValueError(f"{name}: axis must be given for an array of {x.ndim} dimensions")
    return 0 if axis is None else one_axis(x, axis, name)


def _in_its_dtype(leaf: LeafFunction) -> LeafFunction:
    """A cumulative reduction that keeps the dtype of its data: `_accumulating` has given it the right one."""
    return lambda data, **static: leaf(data, dtype=data.dtype, **static)


@function("x", rule=along_batch(_in_its_dtype(dense_statistical.cumulative_sum), lambda axis, include_initial: True))
def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Partial sums along an axis.

    Parameters
    ----------
    x : Array
        Of at least one dimension and any dtype; booleans count as integers.
    axis : int, optional
        Must be given for more than one dimension.
    dtype : dtype, optional
        Of the result, in which it is added up. By default that of `x`, but for integers no narrower than the default
        integer.
    include_initial : bool
        Whether the result begins with the sum of nothing, 0, and so is longer by one.

    Returns
    -------
    Array
        Along a batch axis of the structure of `x`, along a core axis `Dense` (of a `LowRank` a `LowRank`).

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    ValueError
        If `axis` is missing, or `x` has no dimensions.
    TypeError
        If `dtype` cannot hold the dtype of `x`.

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


@cumulative_sum.kernel(Dense)
def _cumulative_sum_dense(x: Dense, *, axis: int, include_initial: bool) -> Dense:
    data = dense_statistical.cumulative_sum(x.data, axis=axis, dtype=x.dtype, include_initial=include_initial)
    return Dense.make((data,))


@function(
    "x",
    rule=along_batch(
        _in_its_dtype(dense_statistical.cumulative_prod), lambda axis, include_initial: not include_initial
    ),
)
def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Partial products along an axis.

    Parameters
    ----------
    x : Array
        Of at least one dimension and any dtype; booleans count as integers.
    axis : int, optional
        Must be given for more than one dimension.
    dtype : dtype, optional
        Of the result, in which it is multiplied. By default that of `x`, but for integers no narrower than the default
        integer.
    include_initial : bool
        Whether the result begins with the product of nothing, 1, and so is longer by one.

    Returns
    -------
    Array
        Along a batch axis of the structure of `x`, along a core axis `Dense`.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    ValueError
        If `axis` is missing, or `x` has no dimensions.
    TypeError
        If `dtype` cannot hold the dtype of `x`.

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


@cumulative_prod.kernel(Dense)
def _cumulative_prod_dense(x: Dense, *, axis: int, include_initial: bool) -> Dense:
    data = dense_statistical.cumulative_prod(x.data, axis=axis, dtype=x.dtype, include_initial=include_initial)
    return Dense.make((data,))
