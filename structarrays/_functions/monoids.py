"""The operations of reductions, such as addition, with what structures need of them: repeated values, and their neutral elements."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core import dtypes
from .._core.families.reduction_rule import Monoid
from .._numerics import dense_statistical
from .._numerics.flags import custom_jvp
from .._numerics.integer_powers import repeated_squaring
from .._numerics.symbolic import as_number, is_dimension, power


def _times(value: jax.Array, count: int | np.ndarray | jax.Array) -> jax.Array:
    """Return ``count * value``: integers wrap, and the parts of complex values are multiplied separately."""
    dtype = np.dtype(value.dtype)
    if dtype.kind == "c":
        return jax.lax.complex(_times(value.real, count), _times(value.imag, count))
    if is_dimension(count) and dtype.kind not in "iu":
        count = jnp.asarray(as_number(count, np.dtype(np.float32) if dtypes.is_half(dtype) else dtype))
    elif dtype.kind in "iu" and isinstance(count, int):
        count = np.array(count % 2**64, np.uint64).astype(dtype)
    if dtypes.is_half(dtype):  # the count may be out of range for 16 bits
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
    """Return ``value ** count`` for a Python integer or an array of integers. Negative counts are treated as zero."""
    if isinstance(count, int):
        return jax.lax.integer_pow(value, count)
    if is_dimension(count):
        return power(value, count)
    shape = jnp.broadcast_shapes(value.shape, count.shape)
    value, count = jnp.broadcast_to(value, shape), jnp.broadcast_to(jnp.maximum(count, 0), shape)
    inexact = jnp.issubdtype(value.dtype, jnp.inexact)
    return _differentiable_power(value, count) if inexact else repeated_squaring(value, count)


_differentiable_power = custom_jvp(repeated_squaring)


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


def with_zero(monoid: Monoid, data: jax.Array) -> jax.Array:
    """Combine each entry with a structural zero, for reductions that meet such a zero: no product of the results overflows.

    A product by zero would not do, since XLA may multiply the entries first.
    """
    if monoid is PROD and jnp.issubdtype(data.dtype, jnp.inexact):
        nan = complex(np.nan, np.nan) if data.dtype.kind == "c" else np.nan
        return jnp.where(jnp.isfinite(data), jnp.zeros((), data.dtype), jnp.asarray(nan, data.dtype))
    return monoid.combine(jnp.zeros_like(data), data)
