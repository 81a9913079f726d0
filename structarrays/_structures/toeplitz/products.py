"""Products of Toeplitz and Hankel matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.array.operands import allow_dense, densify, lets_dense
from ..._core.families.elementwise_rule import held_unexpanded
from ..._core.families.factored import stored
from ..._functions.linalg import matmul
from ..._numerics import toeplitz_entries
from ..._numerics.symbolic import smaller
from ..._numerics.vectors import by_columns
from ..banded.array import Banded, bands
from ..composite.estimates import finite_product
from . import numerics as toeplitz_products
from .array import MANY_DIAGONALS, Toeplitz, at_diagonals, is_narrow, toeplitz
from .hankel import Hankel

if TYPE_CHECKING:
    import jax

    from ..._core.array.base import Array
    from ..._core.typing import Result


@matmul.kernel(Toeplitz, Dense)
def _matmul_toeplitz_dense(x1: Toeplitz, x2: Dense) -> Dense:
    def multiply(data: jax.Array) -> jax.Array:
        return toeplitz_entries.matmul(x1.values, x1.first, x1.core_shape, data)

    return Dense.make((by_columns(multiply, x2.data),))


@finite_product.kernel(Toeplitz)
def _finite_product_toeplitz(x: Toeplitz, data: jax.Array) -> jax.Array:
    return toeplitz_entries.matmul(x.values, x.first, x.core_shape, data, is_finite=True)


@matmul.kernel(Hankel, Dense)
def _matmul_hankel_dense(x1: Hankel, x2: Dense) -> Dense:
    """``H = T J``, where J reverses the rows of `x2`."""
    first, _ = toeplitz_entries.full_range(x1.core_shape)

    def multiply(data: jax.Array) -> jax.Array:
        return toeplitz_entries.matmul(x1.values[..., ::-1], first, x1.core_shape, data[..., ::-1, :])

    return Dense.make((by_columns(multiply, x2.data),))


# ---- of two Toeplitz matrices -------------------------------------------------------------------------------------


def _product_size(x1: Toeplitz, x2: Toeplitz) -> int:
    return math.prod((*jnp.broadcast_shapes(x1.batch_shape, x2.batch_shape), x1.core_shape[0], x2.core_shape[1]))


def _held(x1: Toeplitz, x2: Toeplitz) -> Array | None:
    """The product as two factors if the policy forbids the dense product, else None."""
    shape = (x1.core_shape[0], x2.core_shape[1])
    return None if lets_dense(x1, _product_size(x1, x2)) else held_unexpanded(matmul, (x1, x2), shape)


@matmul.kernel(Toeplitz, Toeplitz)
def _matmul_toeplitz_toeplitz(x1: Toeplitz, x2: Toeplitz) -> Array:
    """A dense product, unless both operands are narrow or triangular; two factors if the policy forbids the dense product."""
    held = _held(x1, x2)
    if held is not None:
        return held
    stored = None
    if not x2.covers:
        inside = toeplitz_entries.to_dense(jnp.ones(x2.values.shape[-1:], bool), x2.first, x2.core_shape)
        stored = jnp.broadcast_to(inside, x2.core_shape)
    data = densify(x2, "matmul").data
    return Dense.make((toeplitz_entries.matmul(x1.values, x1.first, x1.core_shape, data, stored),))


def _are_large(x1: Toeplitz, x2: Toeplitz) -> bool:
    """Return whether the dense form of `x2` would take longer than the recursion along the diagonals."""
    inexact = x1.dtype.kind in "fc" and x1.dtype.itemsize >= 4 and x1.dtype == x2.dtype
    nonempty = x1.values.shape[-1] and x2.values.shape[-1]
    return bool(inexact and nonempty) and smaller(toeplitz_entries.SMALL**2, x2.core_shape[0] * x2.core_shape[1])


@matmul.kernel(Toeplitz, Toeplitz, when=_are_large)
def _matmul_toeplitz_toeplitz_if_are_large(x1: Toeplitz, x2: Toeplitz) -> Array:
    """Compute a dense product from its first row and column; two factors if the policy forbids the dense product."""
    held = _held(x1, x2)
    if held is not None:
        return held
    batch = jnp.broadcast_shapes(x1.batch_shape, x2.batch_shape)
    # A Gram matrix that is no larger than its factors does not count.
    if x1.core_shape[0] * x2.core_shape[1] > stored(x1) + stored(x2):
        allow_dense(x1, "matmul", _product_size(x1, x2))
    values = (jnp.broadcast_to(x.values, (*batch, x.values.shape[-1])) for x in (x1, x2))
    return Dense.make((toeplitz_products.product(x1.first, x1.core_shape, x2.first, x2.core_shape, *values),))


def _is_product_banded(x1: Toeplitz, x2: Toeplitz) -> bool:
    """Return whether the product has few diagonals, or far fewer than rows and columns."""
    if x1.covers or x2.covers:
        return False
    count = x1.values.shape[-1] + x2.values.shape[-1] - 1
    (m, inner), n = x1.core_shape, x2.core_shape[1]
    narrow = all(smaller(4 * count, size) for size in (m, inner, n))
    return count <= MANY_DIAGONALS or (narrow and not _are_triangular(x1, x2))


@matmul.kernel(Toeplitz, Toeplitz, when=_is_product_banded)
def _matmul_toeplitz_toeplitz_if_banded(x1: Toeplitz, x2: Toeplitz) -> Result:
    """Multiply the banded forms, or compute the constant and the rows near the ends of each diagonal."""
    if x1.values.shape[-1] + x2.values.shape[-1] - 1 <= MANY_DIAGONALS:
        return matmul.dispatch(*(at_diagonals(x, x.offsets) for x in (x1, x2)))
    batch = jnp.broadcast_shapes(x1.batch_shape, x2.batch_shape)
    shapes = (*x1.core_shape, x2.core_shape[1])
    offsets = tuple(range(x1.first + x2.first, x1.last + x2.last + 1))
    diagonals = toeplitz_products.banded_product(x1.values, x1.first, x2.values, x2.first, shapes)
    return bands(diagonals, offsets, (shapes[0], shapes[2]), dtype=x1.dtype, batch=batch)


@matmul.kernel(Toeplitz, Banded, when=is_narrow)
def _matmul_toeplitz_banded(x1: Toeplitz, x2: Banded) -> Result:
    return matmul.dispatch(at_diagonals(x1, x1.offsets), x2)


@matmul.kernel(Banded, Toeplitz, when=lambda x1, x2: is_narrow(x2))
def _matmul_banded_toeplitz(x1: Banded, x2: Toeplitz) -> Result:
    return matmul.dispatch(x1, at_diagonals(x2, x2.offsets))


def _are_triangular(x1: Toeplitz, x2: Toeplitz) -> bool:
    """Return whether both are square and triangular on the same side, so that the product is a Toeplitz matrix."""
    square = x1.shape[-2] == x1.shape[-1] == x2.shape[-1]
    return square and (max(x1.last, x2.last) <= 0 or min(x1.first, x2.first) >= 0)


@matmul.kernel(Toeplitz, Toeplitz, when=_are_triangular)
def _matmul_toeplitz_toeplitz_if_are_triangular(x1: Toeplitz, x2: Toeplitz) -> Toeplitz:
    """Compute the first column (or row) of the product: a truncated convolution, since the factors commute."""
    upper = max(x1.last, x2.last) > 0
    low, high = x1.first + x2.first, x1.last + x2.last
    n = x1.shape[-1]
    if upper:
        # The flipped values are the values of the transposes.
        column = _convolution(x1.values, x2.values, n - low)
        return toeplitz(column, low, x1.core_shape)
    column = _convolution(x1.values[..., ::-1], x2.values[..., ::-1], n + high)
    return toeplitz(column[..., ::-1], high - column.shape[-1] + 1, x1.core_shape)


def _convolution(a: jax.Array, b: jax.Array, count: int) -> jax.Array:
    """Return the first `count` elements of the convolution of two sequences, or all of them."""
    count = max(0, min(count, a.shape[-1] + b.shape[-1] - 1)) if a.shape[-1] and b.shape[-1] else 0
    a, b = a[..., :count], b[..., :count]
    # The product of the lower triangular Toeplitz matrix, count × len(b), with the column b.
    return toeplitz_entries.matmul(a[..., ::-1], 1 - a.shape[-1], (count, b.shape[-1]), b[..., None])[..., 0]
