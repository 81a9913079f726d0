"""Elementwise functions, reductions, rows and columns of Kronecker products and sums, computed from the factors."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.families.conditions import has_core, is_complex, is_inexact
from ..._core.families.factored import (
    chain,
    hadamard_pair,
    has_dynamic_parts,
    inner_pair,
    line_key,
    select_lines,
    squared_norms,
    stored,
)
from ..._functions.elementwise import abs as absolute
from ..._functions.elementwise import multiply, negative, sign
from ..._functions.indexing import index
from ..._functions.linalg.norms import diagonal, trace
from ..._functions.linear_algebra import matmul
from ..._functions.pow_and_clip import pow
from ..._functions.rounding_and_parts import imag, real
from ..._functions.statistical import mean, var
from ..._functions.statistical import sum as sum_of
from ..._numerics import kronecker_factors
from ..._numerics.symbolic import as_number, degrees_of_freedom
from ..banded.diagonal import Diagonal, Identity
from ..composite.factored_functions import split_axes, spreads
from ..composite.product import product
from ..composite.sum import total
from ..composite.sums_of_squares import inner
from ..fallback.selections import selected_lines
from ..low_rank.array import LowRank, lines
from ..toeplitz.array import Toeplitz
from .array import Kronecker, factors_fit, has_square_factors, kronecker, same_factor_shapes, unravel
from .kronecker_sum import KroneckerSum

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax
    import numpy as np

    from ..._core.typing import Result
    from ..._functions.pow_and_clip import Exponent

# ---- products of sparse factors ----------------------------------------------------------------------------------------


@matmul.eager_kernel(Kronecker, Kronecker)
def _matmul_kronecker_kronecker_eagerly(x1: Kronecker, x2: Kronecker) -> Result:
    """Multiply factor by factor outside of the compiled call: the product of two `Sparse` then has the exact number of
    entries.
    """
    if not (factors_fit(x1, x2) and any(map(has_dynamic_parts, (x1, x2)))):
        return NotImplemented
    return kronecker(*map(matmul, x1.factors, x2.factors))


# ---- elementwise functions of products ---------------------------------------------------------------------------------


@hadamard_pair.kernel(Kronecker, Kronecker, when=same_factor_shapes)
def _hadamard_pair_kronecker_kronecker(x: Kronecker, y: Kronecker) -> Array:
    return kronecker(*(multiply(a, b) for a, b in zip(x.factors, y.factors, strict=True)))


@hadamard_pair.kernel(LowRank, Kronecker)
@hadamard_pair.kernel(LowRank, KroneckerSum)
@hadamard_pair.kernel(LowRank, Toeplitz)
def _hadamard_pair_low_rank_kronecker(x: LowRank, y: Array) -> Array | None:
    """``(u vᵀ) * A = diag(u) A diag(v)``, for each pair of columns. Used for the square of centred data."""
    m, n = x.shape[-2:]
    if x.rank * (m + n + stored(y)) >= m * n:
        return None
    if x.rank == 0:
        return None
    ends = []
    for part, size in zip(x.parts, (m, n), strict=True):
        same = part.constant_over(2)  # equal values are one scalar for all rows, or columns
        data = part.dense_data() if same is None or size == 1 else same
        ends.append([_scaling(data[..., k], size) for k in range(x.rank)])
    return total(*(product(r, y, c) for r, c in zip(*ends, strict=True)))


def _scaling(numbers: jax.Array, size: int) -> Diagonal:
    """Square matrix that scales rows or columns: by one value each, or all by the same value."""
    if numbers.shape[-1] == size:
        return Diagonal.make((numbers, None), (size, size))
    return Identity.make((numbers[..., 0], None), (size, size))


def _is_power(x1: Kronecker, x2: Array, *, exponent: Exponent | None) -> bool:
    return exponent is not None and exponent.value is not None and exponent.value >= 1


@pow.kernel(Kronecker, Array, when=_is_power)
def _pow_kronecker(x1: Kronecker, x2: Array, *, exponent: Exponent) -> Array:
    return kronecker(*(pow(f, exponent.value) for f in x1.factors))


@absolute.kernel(Kronecker, when=is_inexact)
def _absolute_kronecker(x: Kronecker) -> Array:
    return kronecker(*map(absolute, x.factors))


@sign.kernel(Kronecker, when=is_inexact)
def _sign_kronecker(x: Kronecker) -> Array:
    return kronecker(*map(sign, x.factors))


def _expanded(x: Kronecker, odd: bool) -> Array:
    """The terms of a product of complex factors with an even, or odd, number of imaginary parts."""
    terms = []
    for choice in itertools.product((False, True), repeat=len(x.factors)):
        count = sum(choice)
        if count % 2 == odd:
            parts = [imag(f) if c else real(f) for f, c in zip(x.factors, choice, strict=True)]
            term = Kronecker.make(tuple(parts))
            terms.append(negative(term) if count // 2 % 2 else term)
    return total(*terms)


@real.kernel(Kronecker, when=is_complex)
def _real_kronecker(x: Kronecker) -> Array:
    return _expanded(x, odd=False)


@imag.kernel(Kronecker, when=is_complex)
def _imag_kronecker(x: Kronecker) -> Array:
    return _expanded(x, odd=True)


# ---- reductions of products --------------------------------------------------------------------------------------------


def _sum(x: Kronecker, axis: tuple[int, ...], keepdims: bool) -> jax.Array:
    """Multiply the sums of the factors, then sum over batch axes."""
    batch, core = split_axes(x, axis)
    data = chain(
        kronecker_factors.kron, [sum_of(f, axis=core, keepdims=True, dtype=x.dtype).dense_data() for f in x.factors]
    )
    if batch:
        data = jnp.sum(data, axis=batch, keepdims=True, dtype=x.dtype)
    return data if keepdims else jnp.squeeze(data, axis)


@sum_of.kernel(Kronecker, when=has_core)
def _sum_of_kronecker(x: Kronecker, *, axis: tuple[int, ...], keepdims: bool) -> Dense:
    return Dense.make((_sum(x, axis, keepdims),))


@mean.kernel(Kronecker, when=has_core)
def _mean_kronecker(x: Kronecker, *, axis: tuple[int, ...], keepdims: bool) -> Dense:
    return Dense.make((_sum(x, axis, keepdims) / as_number(math.prod(x.shape[a] for a in axis), x.dtype),))


def _over_core(x: Kronecker, *, axis: tuple[int, ...], **static: Any) -> bool:
    """Along batch axes, the mean of products is not the product of means."""
    return all(a >= x.ndim - 2 for a in axis) and len(axis) > 0 and x.size > 0


@spreads(Kronecker, when=_over_core)
def variance_of_kronecker(x: Kronecker, axis: tuple[int, ...], correction: float, keepdims: bool) -> jax.Array:
    r"""Sum over the factors i of :math:`|m_1|^2 \cdots |m_{i-1}|^2\, v_i\, s_{i+1} \cdots s_k`, with means m, variances
    v and mean squares s.

    A product minus its mean is a sum of orthogonal products, ``m ⊗ ... ⊗ (A_i - m_i) ⊗ A ⊗ ...``, so that nothing
    cancels.
    """
    core = tuple(a - x.ndim for a in axis)
    options: dict[str, Any] = {"axis": core, "keepdims": True}
    means = [jnp.square(jnp.abs(mean(f, **options).dense_data())) for f in x.factors]
    spreads = [var(f, **options).dense_data() for f in x.factors]
    squares = [m + v for m, v in zip(means, spreads, strict=True)]
    terms = [(*means[:i], v, *squares[i + 1 :]) for i, v in enumerate(spreads)]
    data = chain(jnp.add, [chain(kronecker_factors.kron, term) for term in terms])
    count = math.prod(x.shape[a] for a in axis)
    divisor, positive = degrees_of_freedom(count, correction, x.dtype)
    data = data * (as_number(count, x.dtype) / divisor) if positive else jnp.full_like(data, jnp.nan)
    return data if keepdims else jnp.squeeze(data, axis)


def _by_factors(x: Kronecker, values: Sequence[jax.Array], axes: tuple[int, ...]) -> jax.Array:
    """Combine scalars or vectors of the factors to a scalar or vector of the product."""
    return chain(jnp.multiply, values) if len(axes) == 2 else kronecker_factors.products(values)


@squared_norms.kernel(Kronecker)
def _squared_norms_kronecker(x: Kronecker, *, axes: tuple[int, ...]) -> jax.Array:
    return _by_factors(x, [squared_norms.required((f,)).run(f, axes=axes) for f in x.factors], axes)


@inner_pair.kernel(Kronecker, Kronecker, when=lambda x, y, *, axes=None: same_factor_shapes(x, y))
def _inner_pair_kronecker_kronecker(x: Kronecker, y: Kronecker, *, axes: tuple[int, ...]) -> jax.Array:
    return _by_factors(x, [inner(a, b, axes) for a, b in zip(x.factors, y.factors, strict=True)], axes)


@diagonal.kernel(Kronecker, when=lambda x, *, offset: offset == 0 and has_square_factors(x))
def _diagonal_kronecker(x: Kronecker, *, offset: int) -> Dense:
    return Dense.make((kronecker_factors.products(diagonal(f).dense_data() for f in x.factors),))


def _multiplies_traces(x: Kronecker, *, offset: int, dtype: np.dtype | None) -> bool:
    return offset == 0 and dtype is None and is_inexact(x) and has_square_factors(x)


@trace.kernel(Kronecker, when=_multiplies_traces)
def _trace_kronecker(x: Kronecker, *, offset: int, dtype: np.dtype | None) -> Dense:
    return Dense.make((chain(jnp.multiply, [trace(f).dense_data() for f in x.factors]),))


# ---- rows and columns --------------------------------------------------------------------------------------------------


@select_lines.kernel(Kronecker)
def _select_lines_kronecker(x: Kronecker, key: tuple[tuple[Any, ...], tuple[Any, ...]], axis: int) -> Array:
    """Whole blocks of rows are rows of the first factor. Other rows are a product of a selection matrix and the whole."""
    item, operands = key
    behind = math.prod(f.shape[axis] for f in x.factors[1:])
    if item[0] == "slice" and behind and item[3] == 1 and item[1] % behind == 0 == item[2] % behind:
        first, *others = x.factors
        blocks = ("slice", item[1] // behind, item[2] // behind, 1)
        return kronecker(index(first, (), key=line_key(first, blocks, axis)), *others)
    return selected_lines(x, key, axis, _product_of_lines)


def _product_of_lines(x: Array, where: jax.Array, axis: int) -> jax.Array:
    """Rows (or columns, as rows) of a Kronecker product, as products of rows of the factors."""
    factors = cast("Kronecker", x).factors
    places = unravel(where, [f.shape[axis] for f in factors])
    return kronecker_factors.products(lines(f, i, axis) for f, i in zip(factors, places, strict=True))


@select_lines.kernel(KroneckerSum)
def _select_lines_kronecker_sum(x: KroneckerSum, key: tuple[tuple[Any, ...], tuple[Any, ...]], axis: int) -> Array:
    return selected_lines(x, key, axis, lines)
