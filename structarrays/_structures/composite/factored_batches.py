"""Reductions of factored arrays over batch axes, one matrix at a time, so that at most one matrix is dense."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import lax

from ..._core.array.dense import Dense
from ..._core.families.conditions import has_core
from ..._core.families.factored import Factored, pays
from ..._core.families.reduction_rule import reduce_batch, reduced_count, squared_magnitude
from ..._functions.elementwise import divide
from ..._functions.linear_algebra import matmul, matrix_transpose
from ..._functions.statistical import mean
from ..._functions.statistical import sum as sum_of
from ..._numerics.symbolic import as_number, degrees_of_freedom
from ..kronecker.kronecker_sum import KroneckerSum
from ..low_rank.array import LowRank
from .factored_functions import spreads

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

    from ..._core.array.base import Array
    from ..._core.families.reduction_rule import Monoid
    from ..._core.typing import DTypeLike


def _only_batch(x: Array, *, axis: tuple[int, ...], **static: Any) -> bool:
    return bool(axis) and not has_core(x, axis=axis)


def _accumulated(
    x: Factored, axis: tuple[int, ...], start: jax.Array, step: Callable[[jax.Array, jax.Array], jax.Array]
) -> jax.Array:
    """Fold ``step(start, matrix)`` over the dense forms of the matrices along batch axes."""
    kept = [a for a in range(x.ndim - 2) if a not in axis]
    count = reduced_count(x, axis)

    def in_front(leaf: jax.Array) -> jax.Array:
        moved = jnp.transpose(leaf, (*axis, *kept, *range(x.ndim - 2, leaf.ndim)))
        return moved.reshape((count, *moved.shape[len(axis) :]))

    def next_step(carry: jax.Array, each: Array) -> tuple[jax.Array, None]:
        return step(carry, each.dense_data()), None

    return lax.scan(next_step, start, x.map_parameters(in_front))[0]


def _start(x: Factored, axis: tuple[int, ...], value: Any, dtype: DTypeLike) -> jax.Array:
    """A constant array of the result's shape, without the reduced axes."""
    return jnp.full([n for a, n in enumerate(x.shape) if a not in axis], value, dtype)


@reduce_batch.kernel(Factored)
def _reduce_batch_factored(x: Factored, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Dense:
    data = _accumulated(x, axes, _start(x, axes, monoid.identity(x.dtype), x.dtype), monoid.combine)
    return Dense.make((jnp.expand_dims(data, axes) if keepdims else data,))


# ---- sums that are no larger than their terms ------------------------------------------------------------------------


@sum_of.kernel(LowRank, when=_only_batch)
def _sum_of_low_rank(x: LowRank, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Join the factors of all matrices; return the dense product if the joined factors are larger than the sum."""
    u, v = (_side_by_side(p, axis, keepdims) for p in x.parts)
    total = LowRank.make((u, v))
    return total if pays(total) else matmul(u, matrix_transpose(v))


def _side_by_side(part: Array, axis: tuple[int, ...], keepdims: bool) -> Dense:
    """Join the columns of a factor ``(..., m, r)`` of all matrices along batch axes."""
    data, batch = part.dense_data(), part.ndim - 2
    kept = [a for a in range(batch) if a not in axis]
    m, r = data.shape[-2:]
    data = jnp.transpose(data, (*kept, batch, *axis, batch + 1))
    data = data.reshape((*data.shape[: len(kept)], m, r * math.prod(part.shape[a] for a in axis)))
    return Dense.make((jnp.expand_dims(data, axis) if keepdims else data,))


@sum_of.kernel(KroneckerSum, when=_only_batch)
def _sum_of_kronecker_sum(x: KroneckerSum, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return x.with_parts(lambda f: sum_of.dispatch(f, axis=axis, keepdims=keepdims))


# ---- means and variances ---------------------------------------------------------------------------------------------


@mean.kernel(Factored, when=_only_batch, before="mean_factored")
def _mean_batch_of_factored(x: Factored, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    total, count = sum_of.dispatch(x, axis=axis, keepdims=keepdims), reduced_count(x, axis)
    if count == 0:
        return Dense.make((jnp.full(total.shape, jnp.nan, x.dtype),))
    return divide(total, Dense.make((jnp.asarray(count, x.dtype),)))


@spreads(Factored, when=_only_batch)
def variance_of_batch(x: Factored, axis: tuple[int, ...], correction: int | float, keepdims: bool) -> jax.Array:
    """Use two passes, since the mean of the squares minus the square of the mean cancels."""
    count = reduced_count(x, axis)
    centre = _accumulated(x, axis, _start(x, axis, 0, x.dtype), jnp.add) / as_number(count, x.dtype)
    squares = _start(x, axis, 0, centre.real.dtype)
    squares = _accumulated(x, axis, squares, lambda s, data: s + squared_magnitude(data - centre))
    divisor, positive = degrees_of_freedom(count, correction, x.dtype)
    data = squares / divisor if positive else jnp.full_like(squares, jnp.nan)
    return jnp.expand_dims(data, axis) if keepdims else data
