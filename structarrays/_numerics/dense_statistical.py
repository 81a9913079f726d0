"""The standard's reductions and cumulative reductions, on plain JAX arrays.

``axis`` is ``None``, an integer or a tuple of integers, ``dtype`` a dtype or ``None``; keyword arguments are static.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy
from jax import Array, lax

from .flags import custom_jvp
from .symbolic import degrees_of_freedom

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.typing import DTypeLike

mean = jnp.mean
all = jnp.all
any = jnp.any
diff = jnp.diff

Axis = int | tuple[int, ...] | None


def accumulation_dtype(dtype: DTypeLike) -> numpy.dtype:
    """Dtype in which the standard sums and multiplies ``dtype``: no integer narrower than the default one."""
    dtype = numpy.dtype(dtype)
    default = jnp.result_type(int)  # int64, or int32 without x64
    if dtype.kind in "iu" and dtype.itemsize < default.itemsize:
        return numpy.dtype(f"{'int' if dtype.kind == 'i' else 'uint'}{8 * default.itemsize}")
    return default if dtype.kind == "b" else dtype


def _dtype_for_jax(x: Array, dtype: DTypeLike | None) -> numpy.dtype | None:
    """The dtype of a sum or product; None for 16-bit floating-point numbers that keep their dtype.

    JAX then adds them in 32 bits. Given their dtype, it adds in 16 bits, which stops at 256 ones of bfloat16.
    """
    result = accumulation_dtype(x.dtype) if dtype is None else numpy.dtype(dtype)
    is_half = result.itemsize == 2 and jnp.issubdtype(result, jnp.floating)
    return None if is_half and result == x.dtype else result


def _axes(x: Array, axis: Axis) -> tuple[int, ...]:
    """The reduced axes as nonnegative integers."""
    if axis is None:
        return tuple(range(x.ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return tuple(a + x.ndim if a < 0 else a for a in axes)


def max(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Largest value; NaN if there is any NaN, in arrays of any size."""
    return _extremum(jnp.max, x, axis, keepdims)


def min(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Smallest value; NaN if there is any NaN, in arrays of any size."""
    return _extremum(jnp.min, x, axis, keepdims)


def _extremum(reduce: Callable[..., Array], x: Array, axis: Axis, keepdims: bool) -> Array:
    if not jnp.issubdtype(x.dtype, jnp.floating) or x.size == 0:
        return reduce(x, axis=axis, keepdims=keepdims)
    axes = _axes(x, axis)
    result = _extremum_and_nan(reduce is jnp.max, axes, x)
    return jnp.expand_dims(result, axes) if keepdims else result


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _extremum_and_nan(largest: bool, axes: tuple[int, ...], x: Array) -> Array:
    # On CPU XLA's max and min lose NaN in arrays of 10^4 elements and more (jax-ml/jax#39887). One pass reduces pairs
    # of a value and "has a NaN been seen"; a second reduction for the flag costs another pass over memory. Across rows,
    # two reductions of a computed array are five times slower.
    start = numpy.array(-numpy.inf if largest else numpy.inf, x.dtype)
    better = lax.max if largest else lax.min

    def combine(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
        return better(left[0], right[0]), lax.bitwise_or(left[1], right[1])

    result, nan_seen = lax.reduce((x, x != x), (start, numpy.array(False)), combine, axes)
    return jnp.where(nan_seen, jnp.nan, result)


@_extremum_and_nan.defjvp
def _extremum_and_nan_jvp(
    largest: bool, axes: tuple[int, ...], primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    # As in JAX, equal extrema share the derivative equally.
    (x,), (tangent,) = primals, tangents
    result = _extremum_and_nan(largest, axes, x)
    attained = (x == jnp.expand_dims(result, axes)).astype(x.dtype)
    return result, jnp.sum(attained * tangent, axis=axes) / jnp.sum(attained, axis=axes)


def sum(x: Array, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Array:
    """Sum, accumulated in `accumulation_dtype` unless told otherwise."""
    return jnp.sum(x, axis=axis, dtype=_dtype_for_jax(x, dtype), keepdims=keepdims)


def prod(x: Array, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Array:
    """Product, accumulated in `accumulation_dtype` unless told otherwise."""
    return jnp.prod(x, axis=axis, dtype=_dtype_for_jax(x, dtype), keepdims=keepdims)


def var(x: Array, /, *, axis: Axis = None, correction: int | float = 0.0, keepdims: bool = False) -> Array:
    """Variance with divisor ``count - correction``; NaN if the divisor is not positive. Real for complex arrays, too."""
    result = jnp.var(x, axis=axis, correction=correction, keepdims=keepdims)
    count = math.prod(x.shape[a] for a in _axes(x, axis))
    # jnp divides by the negative value.
    _, positive = degrees_of_freedom(count, correction, x.dtype)
    return result if positive else jnp.full_like(result, jnp.nan)


def std(x: Array, /, *, axis: Axis = None, correction: int | float = 0.0, keepdims: bool = False) -> Array:
    """Standard deviation, the square root of `var`."""
    return jnp.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def root(total: Array, degree: float = 2.0) -> Array:
    """Root of sums of magnitudes. If a sum is zero, the derivative is zero, as for a sum of structural zeros."""
    zero = total == 0
    total = jnp.where(zero, 1, total)
    return jnp.where(zero, 0, jnp.sqrt(total) if degree == 2 else total ** (1.0 / degree))


def cumulative_sum(
    x: Array, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Partial sums along an axis, with a leading 0 if ``include_initial``."""
    return _cumulative(jnp.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Array, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Partial products along an axis, with a leading 1 if ``include_initial``."""
    return _cumulative(jnp.cumprod, 1, x, axis, dtype, include_initial)


def _cumulative(
    accumulate: Callable[..., Array],
    initial: int,
    x: Array,
    axis: int | None,
    dtype: DTypeLike | None,
    include_initial: bool,
) -> Array:
    axis = 0 if axis is None else axis
    # jnp.cumulative_prod defaults to the dtype of x; the standard to the accumulation dtype.
    dtype = accumulation_dtype(x.dtype) if dtype is None else dtype
    result = accumulate(x.astype(dtype), axis=axis, dtype=dtype)
    if not include_initial:
        return result
    shape = list(x.shape)
    shape[axis] = 1
    return jnp.concatenate([jnp.full(shape, initial, result.dtype), result], axis=axis)
