"""Largest and smallest elements of factored arrays: from the extremes of the factors, or from a few rows or columns at
a time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import to_dense
from ..._core.dispatch.registry import Registry
from ..._core.families.conditions import has_core
from ..._core.families.factored import Factored, chain
from ..._functions.comparisons_and_logic import equal
from ..._functions.linear_algebra import matmul, matrix_transpose
from ..._functions.statistical import max as largest
from ..._functions.statistical import min as smallest
from ..._functions.utility import any as any_of
from ..._numerics import dense_statistical as statistical
from ..._numerics import kronecker_factors
from ..composite.factored_functions import split_axes
from ..composite.product import IN_ONE_GO, Product, _unscaled
from ..composite.sum import Sum
from ..kronecker.array import Kronecker
from ..kronecker.kronecker_functions import _product_of_lines
from ..low_rank.array import LowRank, lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from ..._core.dispatch.function import Function

    Extremes: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, jax.Array]
    """The result of `_extremes`."""


# ---- products of extremes ------------------------------------------------------------------------------------------------


def _extremes(x: Array, axes: tuple[int, ...]) -> Extremes:
    """Largest and smallest elements over core axes, with size 1, and whether any element is zero, or infinite."""
    high, low = (f(x, axis=axes, keepdims=True).dense_data() for f in (largest, smallest))
    zero = any_of(equal(x, Dense.make((jnp.zeros((), x.dtype),))), axis=axes, keepdims=True).dense_data()
    return high, low, zero, jnp.isinf(high) | jnp.isinf(low)


def _of_product(a: Extremes, b: Extremes) -> Extremes:
    """Extremes of a Kronecker product. NaN results where a zero meets an infinity; these need not be the extremes."""
    (high_a, low_a, zero_a, inf_a), (high_b, low_b, zero_b, inf_b) = a, b
    candidates = [kronecker_factors.kron(p, q) for p in (high_a, low_a) for q in (high_b, low_b)]
    nan = kronecker_factors.kron(zero_a, inf_b) | kronecker_factors.kron(inf_a, zero_b)
    high, low = (
        jnp.where(nan, jnp.nan, chain(function, candidates)).astype(candidates[0].dtype)
        for function in (jnp.maximum, jnp.minimum)
    )
    zero = ~kronecker_factors.kron(~zero_a, ~zero_b)
    return high, low, zero, jnp.isinf(high) | jnp.isinf(low)


def _is_real(x: Kronecker, *, axis: tuple[int, ...], keepdims: bool) -> bool:
    """Return whether elements and their products behave as real numbers; integers wrap around."""
    return x.dtype.kind not in "biuc" and has_core(x, axis=axis) and x.size > 0


def _register_products(function: Function[..., Array], which: int) -> None:
    @function.kernel(Kronecker, when=_is_real)
    def _extreme_of_kronecker(x: Kronecker, *, axis: tuple[int, ...], keepdims: bool) -> Dense:
        batch, core = split_axes(x, axis)
        data = chain(_of_product, [_extremes(f, core) for f in x.factors])[which]
        if batch:
            data = getattr(statistical, function.name)(data, axis=batch, keepdims=True)
        return Dense.make((data if keepdims else jnp.squeeze(data, axis),))


_register_products(largest, 0)
_register_products(smallest, 1)


# ---- a few rows or columns at a time ---------------------------------------------------------------------------------

dense_lines: Registry[jax.Array] = Registry("dense_lines")
"""``dense_lines.kernel(A)``: function ``(x, where, axis)`` that returns the rows (axis -2), or the columns as rows, at
some indices. The cost must be proportional to the number of elements.
"""


def _lines(x: Array, where: jax.Array, axis: int) -> jax.Array:
    return dense_lines.required((x,)).run(x, where, axis)


def _has_lines(x: Array) -> bool:
    return dense_lines.choose((x,), {}) is not None


@dense_lines.kernel(Array, when=lambda x: not isinstance(x, Factored) and x.static_pattern and x.covers)
@dense_lines.kernel(Dense)
def _dense_lines_array(x: Array, where: jax.Array, axis: int) -> jax.Array:
    return lines(x, where, axis)


@dense_lines.kernel(LowRank)
def _dense_lines_low_rank(x: LowRank, where: jax.Array, axis: int) -> jax.Array:
    own, other = x.parts if axis == -2 else x.parts[::-1]
    return to_dense(matmul(Dense.make((lines(own, where, -2),)), matrix_transpose(other))).data


@dense_lines.kernel(Kronecker, when=lambda x: all(map(_has_lines, x.factors)))
def _dense_lines_kronecker(x: Kronecker, where: jax.Array, axis: int) -> jax.Array:
    return _product_of_lines(x, where, axis)


@dense_lines.kernel(Sum, when=lambda x: all(map(_has_lines, x.terms)))
def _dense_lines_sum(x: Sum, where: jax.Array, axis: int) -> jax.Array:
    return chain(jnp.add, [_lines(term, where, axis) for term in x.terms])


@dense_lines.kernel(Product, when=lambda x: type(_unscaled(x)[1]) is not Product and _has_lines(_unscaled(x)[1]))
def _dense_lines_product(x: Product, where: jax.Array, axis: int) -> jax.Array:
    """Rows or columns of a scaled matrix: scaled as a whole by one diagonal matrix, and elementwise by the other."""
    left, middle, right = _unscaled(x)
    data = _lines(middle, where, axis)
    across, along = (left, right) if axis == -2 else (right, left)
    for factor in across:
        data = factor.diag[..., where, None] * data
    for factor in along:
        data = data * factor.diag[..., None, :]
    return data


def _in_blocks(x: Factored, reduce: Callable[..., jax.Array], axis: int) -> jax.Array:
    """Reduce each column (axis -2) or row (axis -1) to a scalar, ``(..., n)``.

    Rows or columns are computed in groups, limited by `IN_ONE_GO` and an eighth of all.
    """
    length, count = x.shape[axis], x.shape[-3 - axis]
    at_once = max(1, min(IN_ONE_GO // max(1, length * math.prod(x.shape[:-2])), -(-count // 8)))

    def of_lines(where: jax.Array) -> jax.Array:
        return reduce(_lines(x, where, -3 - axis), axis=(-1,), keepdims=False)

    blocks = -(-count // at_once)
    where = jnp.minimum(jnp.arange(blocks * at_once), count - 1).reshape(blocks, at_once)
    # Derivatives recompute each group: all groups together are as large as the dense form.
    result = jnp.moveaxis(lax.map(jax.checkpoint(of_lines), where), 0, -2)
    return result.reshape(*result.shape[:-2], blocks * at_once)[..., :count]


def _reduces_in_blocks(x: Factored, *, axis: tuple[int, ...], keepdims: bool) -> bool:
    return has_core(x, axis=axis) and x.size > 0 and _has_lines(x)


def _register_blocks(function: Function[..., Array]) -> None:
    reduce = getattr(statistical, function.name)

    @function.kernel(Factored, when=_reduces_in_blocks)
    def _extreme_of_blocks(x: Factored, *, axis: tuple[int, ...], keepdims: bool) -> Dense:
        """Reduce one core axis after the other, the longer one first, so that the remaining reduction is shorter."""
        m, n = x.shape[-2:]
        rows = x.ndim - 2 in axis and (x.ndim - 1 not in axis or m > n)
        first = -2 if rows else -1
        data = jnp.expand_dims(_in_blocks(x, reduce, first), first)
        rest = tuple(a for a in axis if a != x.ndim + first)
        data = reduce(data, axis=rest, keepdims=True) if rest else data
        return Dense.make((data if keepdims else jnp.squeeze(data, axis),))


_register_blocks(largest)
_register_blocks(smallest)
