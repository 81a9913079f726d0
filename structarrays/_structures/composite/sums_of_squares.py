"""Sums of squared magnitudes over the core axes of factored arrays, for norms and variances."""

from __future__ import annotations

import itertools
import math
from typing import cast

import jax
import jax.numpy as jnp
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import densify
from ..._core.families.factored import Factored, chain, hadamard, inner_pair, squared_norms
from ..._core.families.reduction_rule import squared_magnitude
from ..._functions.elementwise import abs as magnitude
from ..._functions.elementwise import multiply, square
from ..._functions.linear_algebra import matmul, matrix_transpose
from ..._functions.rounding_and_parts import conj
from ..._functions.statistical import sum as sum_of
from ..._numerics.determinants import any_of_all
from ..._numerics.low_rank_factors import not_negative
from ..._numerics.symbolic import as_number, smaller
from ..fill.array import Fill
from .sum import Sum

_ELEMENTS = 2**22
"""Up to this number of elements, sums of squares whose terms cancel are computed from the elements."""

_AT_ONCE = 2**16
"""The number of elements that are computed together."""

_MANY = 4
"""Up to this number of terms, the inner products of all pairs are computed in matrices of any size."""


@squared_norms.kernel(Sum)
def _squared_norms_sum(x: Sum, *, axes: tuple[int, ...]) -> jax.Array:
    """Add the squares of the terms, and twice the inner product of each pair.

    If they cancel, as in the difference of two similar matrices, the relative error is the square of the error of the elements.
    Many terms of small matrices are added up first, which makes a smaller program.
    """
    squares = [squared_norms.required((t,)).run(t, axes=axes) for t in x.terms]
    result = size = chain(jnp.add, squares)
    if len(x.terms) > _MANY and smaller(x.size, _AT_ONCE + 1):
        return jnp.sum(squared_magnitude(x.dense_data()), axis=axes)
    for s, t in itertools.combinations(x.terms, 2):
        result = result + 2 * inner(s, t, axes).real
    result = not_negative(result)
    if not smaller(x.size, _ELEMENTS + 1):
        return result
    lost = result < float(jnp.finfo(result.dtype).eps) ** 0.25 * lax.stop_gradient(size)
    total: jax.Array = lax.cond(any_of_all(lost), lambda: _squares_of_elements(x, axes), lambda: result)
    return total


def _squares_of_elements(x: Sum, axes: tuple[int, ...]) -> jax.Array:
    """Add the squares of the elements of a few columns at a time, which derivatives compute again."""
    if axes == (-1,):
        return _squares_of_elements(cast("Sum", matrix_transpose.dispatch(x)), (-2,))
    *batch, m, n = x.shape
    width = max(1, min(n, _AT_ONCE // max(1, m * math.prod(batch))))

    @jax.checkpoint
    def of_columns(first: jax.Array) -> jax.Array:
        units = jnp.arange(n)[:, None] == first + jnp.arange(width)
        columns = matmul.dispatch(x, Dense.make((units.astype(x.dtype),))).dense_data()
        return jnp.sum(squared_magnitude(columns), axis=-2)

    groups = -(-n // max(1, width))
    result = jnp.moveaxis(lax.map(of_columns, jnp.arange(groups) * width), 0, -2)
    result = result.reshape(*result.shape[:-2], groups * width)[..., :n]
    return jnp.sum(result, axis=-1) if len(axes) == 2 else result


@squared_norms.kernel(Dense)
def _squares_of_dense(x: Dense, *, axes: tuple[int, ...]) -> jax.Array:
    return jnp.sum(squared_magnitude(x.data), axis=axes)


@squared_norms.kernel(Factored)
def _squared_norms_factored(x: Factored, *, axes: tuple[int, ...]) -> jax.Array:
    squares = hadamard(conj(x) if x.dtype.kind == "c" else x, x)
    if squares is None:
        return _squares_of_dense(densify(x, "a sum of squares"), axes=axes)
    return not_negative(sum_of(squares, axis=axes).dense_data().real)


@squared_norms.kernel(Array)
def _squared_norms_array(x: Array, *, axes: tuple[int, ...]) -> jax.Array:
    return sum_of(square(magnitude(x)), axis=axes).dense_data()


@squared_norms.kernel(Fill)
def _squared_norms_fill(x: Fill, *, axes: tuple[int, ...]) -> jax.Array:
    count = math.prod(x.shape[a] for a in axes)
    kept = [x.shape[a] for a in (-2, -1) if a not in axes]
    total = squared_magnitude(x.value) * as_number(count, x.dtype)
    return jnp.broadcast_to(total.reshape((*total.shape, *(1,) * len(kept))), (*total.shape, *kept))


def inner(x: Array, y: Array, axes: tuple[int, ...]) -> jax.Array:
    """The sums of ``conj(x) * y`` over core axes."""
    kernel = inner_pair.choose((x, y), {"axes": axes})
    if kernel is not None:
        return kernel.run(x, y, axes=axes)
    return sum_of(multiply.dispatch(conj(x) if x.dtype.kind == "c" else x, y), axis=axes).dense_data()
