"""Products with `Fill`, a matrix of rank one with equal rows, and other linear algebra."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.flattening import parameters
from ..._core.array.operands import to_dense
from ..._functions.elementwise import divide, multiply
from ..._functions.linalg import (
    cholesky,
    det,
    diagonal,
    inv,
    matmul,
    matrix_transpose,
    outer,
    slogdet,
    solve,
    tensordot,
)
from ..._numerics.bands import diagonal_length
from ..._numerics.symbolic import as_number, is_symbolic
from ..._numerics.undefined import log_of_zero, nowhere
from ..low_rank.array import line_of_rank_one
from .array import Fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax

    from ..._core.dispatch.function import Function
    from ..._core.typing import Result, Shape


def _filled(value: jax.Array, core: Sequence[int]) -> Dense | Fill:
    return Fill.make((value,), tuple(core)) if core else Dense.make((value,))


def _is_constant(x: Fill, *args: Array, **static: Any) -> bool:
    """Return whether each matrix (or the vector) has one value; a `Fill` may have fewer than two core dimensions."""
    return len(x.meta) >= min(2, x.ndim)


# ---- elementwise products with a row --------------------------------------------------------------------------------


def _has_equal_rows(x1: Fill | Dense, x2: Fill | Dense) -> bool:
    """Return whether the result has equal rows, more than one; the general rule keeps a constant column a `Fill`."""
    fill, row = (x1, x2) if type(x2) is Dense else (x2, x1)
    core = jnp.broadcast_shapes(x1.shape, x2.shape)[-2:]
    return fill.core_ndim == 2 and min(core) > 1 and (1, *row.shape)[-2:] == (1, core[1])


@multiply.kernel(Fill, Dense, when=_has_equal_rows)
@multiply.kernel(Dense, Fill, when=_has_equal_rows)
def _multiply_fill_dense(x1: Fill | Dense, x2: Dense | Fill) -> Array:
    return _equal_rows(multiply, x1, x2)


@divide.kernel(Fill, Dense, when=_has_equal_rows)
@divide.kernel(Dense, Fill, when=_has_equal_rows)
def _divide_fill_dense(x1: Fill | Dense, x2: Dense | Fill) -> Array:
    return _equal_rows(divide, x1, x2)


def _equal_rows(function: Function[..., Any], x1: Fill | Dense, x2: Fill | Dense) -> Array:
    """Compute one row, and return a matrix of rank one."""
    row = function.dispatch(*(x if type(x) is Dense else Dense.make((x.constant_over(2),)) for x in (x1, x2)))
    return line_of_rank_one(row.data, jnp.broadcast_shapes(x1.shape, x2.shape)[-2:])


# ---- products -----------------------------------------------------------------------------------------------------


@matmul.kernel(Fill, Fill, when=lambda x1, x2: _is_constant(x1) and _is_constant(x2))
def _matmul_fill_fill(x1: Fill, x2: Fill) -> Array:
    """Multiply: each entry is a sum of equal products. Batch and remaining core dimensions broadcast."""
    count = x1.shape[-1]
    rows = x1.meta[-2:-1] if x1.ndim > 1 else ()
    columns = x2.meta[-1:] if x2.ndim > 1 else ()
    core1, core2 = x1.meta[: -min(2, x1.ndim)], x2.meta[: -min(2, x2.ndim)]
    product = multiply(_filled(x1.value, core1 + rows + columns), _filled(x2.value, core2 + rows + columns))
    if count == 0:
        return product.map_parameters(jnp.zeros_like)
    return product.map_parameters(lambda value: value * jnp.asarray(count, value.real.dtype))


@matmul.kernel(Fill, Dense, when=_is_constant)
def _matmul_fill_dense(x1: Fill, x2: Dense) -> Dense:
    if x1.ndim == 1:
        return Dense.make((jnp.sum(x1.value * x2.data, axis=-min(2, x2.ndim), dtype=x2.dtype),))
    values = x1._constant_data()  # (..., 1, 1)
    if x2.ndim == 1:
        row = jnp.sum(values[..., 0] * x2.data, axis=-1, keepdims=True, dtype=x2.dtype)
        return Dense.make((jnp.broadcast_to(row, (*_batch(x1, x2), x1.shape[-2])),))
    row = jnp.sum(values * x2.data, axis=-2, keepdims=True, dtype=x2.dtype)
    return Dense.make((jnp.broadcast_to(row, (*_batch(x1, x2), x1.shape[-2], x2.shape[-1])),))


@matmul.kernel(Dense, Fill, when=lambda x1, x2: _is_constant(x2))
def _matmul_dense_fill(x1: Dense, x2: Fill) -> Dense:
    if x2.ndim == 1:
        return Dense.make((jnp.sum(x1.data * x2.value, axis=-1, dtype=x1.dtype),))
    values = x2._constant_data()
    if x1.ndim == 1:
        total = jnp.sum(x1.data * values[..., 0], axis=-1, keepdims=True, dtype=x1.dtype)
        return Dense.make((jnp.broadcast_to(total, (*_batch(x1, x2), x2.shape[-1])),))
    column = jnp.sum(x1.data * values, axis=-1, keepdims=True, dtype=x1.dtype)
    return Dense.make((jnp.broadcast_to(column, (*_batch(x1, x2), x1.shape[-2], x2.shape[-1])),))


def is_narrow(x: Fill, axis: int) -> bool:
    """Return whether a constant factor has a single column (axis -1) or row, so that its dense form is cheap."""
    return x.ndim == 1 or x.shape[axis] == 1


@matmul.kernel(Array, Fill, when=lambda x1, x2: x1.ndim > 1 < x2.ndim and is_narrow(x2, -1))
def _matmul_array_fill(x1: Array, x2: Fill) -> Result:
    return matmul.dispatch(x1, to_dense(x2))


@matmul.kernel(Fill, Array, when=lambda x1, x2: x1.ndim > 1 < x2.ndim and is_narrow(x1, -2))
def _matmul_fill(x1: Fill, x2: Array) -> Result:
    return matmul.dispatch(to_dense(x1), x2)


def _batch(x1: Array, x2: Array) -> Shape:
    return jnp.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])


def _without_batch(x1: Fill, x2: Fill, **static: Any) -> bool:
    return len(x1.meta) == x1.ndim and len(x2.meta) == x2.ndim


@tensordot.kernel(Fill, Fill, when=_without_batch)
def _tensordot_fill_fill(x1: Fill, x2: Fill, *, axes: tuple[tuple[int, ...], tuple[int, ...]]) -> Dense | Fill:
    axes1, axes2 = axes
    count = math.prod(x1.shape[axis] for axis in axes1)
    core = [n for i, n in enumerate(x1.shape) if i not in axes1] + [n for i, n in enumerate(x2.shape) if i not in axes2]
    product = x1.value * x2.value
    factor = as_number(count, x1.dtype) if is_symbolic(count) and x1.dtype.kind in "fc" else count
    value = product * factor if count else jnp.zeros_like(product)
    return _filled(value.astype(x1.dtype), core)


@outer.kernel(Fill, Fill, when=_without_batch)
def _outer_fill_fill(x1: Fill, x2: Fill) -> Dense | Fill:
    return _filled(x1.value * x2.value, x1.shape + x2.shape)


# ---- parts --------------------------------------------------------------------------------------------------------


@matrix_transpose.kernel(Fill, when=_is_constant)
def _matrix_transpose_fill(x: Fill) -> Dense | Fill:
    return _filled(x.value, (*x.meta[:-2], x.meta[-1], x.meta[-2]))


@diagonal.kernel(Fill, when=_is_constant)
def _diagonal_fill(x: Fill, *, offset: int) -> Dense | Fill:
    return _filled(x.value, (*x.meta[:-2], diagonal_length(x.shape[-2:], offset)))


# ---- what has no inverse ------------------------------------------------------------------------------------------


def _is_singular(x: Fill, *args: Any, **static: Any) -> bool:
    return x.shape[-1] > 1 and _is_constant(x)


def _nothing(x: Fill, shape: Shape, *others: Array, core: int = 2) -> tuple[Dense | Fill, jax.Array]:
    """Return the result for singular matrices, if there are any; NaN is not a bad pivot, as in all solvers.

    Derivatives by the parameters of the other arguments are NaN, too.
    """
    batch = shape[: len(shape) - core]
    ok = jnp.all(jnp.isnan(x.value)) | (math.prod(batch) == 0)
    result = _filled(nowhere(jnp.broadcast_to(x.value, batch), *parameters(others)), shape[len(batch) :])
    return (to_dense(result) if core == 1 else result), ok


@solve.kernel(Fill, Array, when=_is_singular)
def _solve_fill(x1: Fill, x2: Array) -> tuple[Dense | Fill, jax.Array]:
    if x2.ndim == 1:
        return _nothing(x1, x1.shape[:-1], x2, core=1)
    return _nothing(x1, (*_batch(x1, x2), *x2.shape[-2:]), x2)


@inv.kernel(Fill, when=_is_singular)
def _inv_fill(x: Fill) -> tuple[Dense | Fill, jax.Array]:
    return _nothing(x, x.shape)


@cholesky.kernel(Fill, when=_is_singular)
def _cholesky_fill(x: Fill, *, upper: bool) -> tuple[Dense | Fill, jax.Array]:
    return _nothing(x, x.shape)


def _zero(x: Fill) -> jax.Array:
    """Return the determinants: zeros, or NaN if the value is not finite."""
    return jnp.abs(0 * x.value).astype(x.dtype)


@det.kernel(Fill, when=_is_singular)
def _det_fill(x: Fill) -> Dense | Fill:
    return _filled(_zero(x), x.meta[:-2])


@slogdet.kernel(Fill, when=_is_singular)
def _slogdet_fill(x: Fill) -> tuple[Dense | Fill, Dense | Fill]:
    zero = _zero(x)
    return _filled(zero, x.meta[:-2]), _filled(log_of_zero(zero), x.meta[:-2])
