"""Norms of matrices, computed from the structure.

These norms replace tests with one vector. A vector of signs may be nearly orthogonal to the vectors that matter, such
as constant and smooth vectors. Its product with a matrix of smooth rows is then far smaller than the norm.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, cast

import jax.numpy as jnp
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.dispatch.registry import Registry
from ..._core.families.factored import Factored
from ..._functions.elementwise import abs as absolute
from ..._functions.linalg import matmul, matrix_transpose
from ..kronecker.array import Kronecker
from ..kronecker.kronecker_sum import KroneckerSum
from ..low_rank.array import LowRank
from ..orthonormal.array import Orthonormal
from .block import Block, is_zero
from .product import Product
from .sum import Sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax
    import numpy as np

    from ..._core.typing import DTypeLike


absolute_product: Registry[jax.Array | None] = Registry("absolute_product")
"""``absolute_product.kernel(A)``: compute ``abs(A) @ v`` for data ``v >= 0``, (..., n, k), or an upper bound if `A` is
a sum or a product. None if the structure does not provide it.
"""


finite_product: Registry[jax.Array] = Registry("finite_product")
"""``finite_product.kernel(A)``: compute ``A @ x`` for data x (..., n, k), to check a solution or to estimate a norm. If
an element of A or x is NaN or infinite, other elements of the result may be NaN, too. Compiled code is smaller without
branches for them.
"""


@finite_product.kernel(Array)
def _finite_product_array(a: Array, x: jax.Array) -> jax.Array:
    return _product(a, x)


@finite_product.kernel(Sum)
def _finite_product_sum(a: Sum, x: jax.Array) -> jax.Array:
    return functools.reduce(jnp.add, (times_finite(term, x) for term in a.terms))


def times_finite(a: Array, x: jax.Array) -> jax.Array:
    """Multiply by `finite_product`."""
    return finite_product.required((a,)).run(a, x)


def norm(a: Array) -> jax.Array:
    """Return the infinity norm, (..., 1, 1), or an upper bound that ignores cancellation among terms and factors.

    Structures without a kernel of `absolute_product` get an estimate from products, which is at most the norm.
    """
    rows = _times_absolute(a, jnp.ones((a.shape[-1], 1), _real(a)))
    if rows is None:
        return _estimated_norm(a)
    return jnp.broadcast_to(jnp.max(rows, axis=(-2, -1), keepdims=True), (*a.shape[:-2], 1, 1))


def signs(n: int, dtype: DTypeLike) -> jax.Array:
    """A column of irregular signs, (n, 1): the high bits of multiples of the golden ratio."""
    i = lax.iota(jnp.uint32, n) * jnp.uint32(2654435769)
    return jnp.where(i >> 31, 1, -1).astype(dtype)[:, None]


def probes(n: int, dtype: DTypeLike) -> jax.Array:
    """Constant, alternating and irregular columns of signs, (n, 3).

    The solutions for them indicate the norm of the inverse: null vectors that occur in practice are not orthogonal to
    all three.
    """
    alternating = jnp.where(lax.iota(jnp.int32, n) % 2 == 0, 1, -1).astype(dtype)[:, None]
    return jnp.concatenate([jnp.ones_like(alternating), alternating, signs(n, dtype)], axis=-1)


def row_sums(a: Array, v: jax.Array | None = None) -> jax.Array:
    """Return the sum of magnitudes of each row, (..., m, 1), each column multiplied by an element of `v`, or an upper bound.

    Parameters
    ----------
    a : Array, (..., m, n)
    v : jax.Array, (..., n, 1), optional
        Real, and not negative. By default ones.
    """
    v = jnp.ones((a.shape[-1], 1), _real(a)) if v is None else v
    rows = _times_absolute(a, v)
    if rows is None:
        rows = norm(a) * jnp.max(v, axis=-2, keepdims=True)
    return jnp.broadcast_to(rows, (*jnp.broadcast_shapes(a.shape[:-2], v.shape[:-2]), a.shape[-2], 1))


def _real(a: Array) -> np.dtype:
    return jnp.finfo(a.dtype).dtype


def _times_absolute(a: Array, v: jax.Array | None) -> jax.Array | None:
    kernel = absolute_product.choose((a,), {})
    return None if kernel is None or v is None else kernel.run(a, v)


def _product(a: Array, v: jax.Array) -> jax.Array:
    product: jax.Array = matmul.dispatch(a, Dense.make((v,))).dense_data()
    return product


@absolute_product.kernel(Array, when=lambda a: not isinstance(a, Factored))
def _absolute_product_array(a: Array, v: jax.Array) -> jax.Array:
    return times_finite(absolute(a), v)


@absolute_product.kernel(Sum)
def _absolute_product_sum(a: Sum, v: jax.Array) -> jax.Array | None:
    return _added([_times_absolute(t, v) for t in a.terms])


def _added(parts: Sequence[jax.Array | None]) -> jax.Array | None:
    return None if any(p is None for p in parts) else functools.reduce(jnp.add, cast("Sequence[jax.Array]", parts))


@absolute_product.kernel(Product)
def _absolute_product_product(a: Product, v: jax.Array | None) -> jax.Array | None:
    for factor in a.factors[::-1]:
        v = _times_absolute(factor, v)
    return v


@absolute_product.kernel(LowRank)
def _absolute_product_low_rank(a: LowRank, v: jax.Array) -> jax.Array | None:
    left, right = a.parts
    return _times_absolute(left, _times_absolute(matrix_transpose.dispatch(right), v))


@absolute_product.kernel(Kronecker, when=lambda a: not any(isinstance(f, Factored) for f in a.factors))
def _absolute_product_kronecker(a: Kronecker, v: jax.Array) -> jax.Array:
    return _product(Kronecker.make(tuple(map(absolute, a.factors)), a.meta), v)


@absolute_product.kernel(KroneckerSum, when=lambda a: not any(isinstance(f, Factored) for f in a.factors))
def _absolute_product_kronecker_sum(a: KroneckerSum, v: jax.Array) -> jax.Array:
    return _product(KroneckerSum.make(tuple(map(absolute, a.factors)), a.meta), v)


@absolute_product.kernel(Block)
def _absolute_product_block(a: Block, v: jax.Array) -> jax.Array | None:
    edges = [0]
    for width in a.widths:
        edges.append(edges[-1] + width)
    rows = []
    for row in a.blocks:
        parts = [
            _times_absolute(b, v[..., start:end, :])
            for b, start, end in zip(row, edges[:-1], edges[1:], strict=True)
            if not is_zero(b)
        ]
        total = _added(parts) if parts else jnp.zeros((row[0].shape[-2], v.shape[-1]), v.dtype)
        if total is None:
            return None
        rows.append(total)
    batch = jnp.broadcast_shapes(*(r.shape[:-2] for r in rows))
    return jnp.concatenate([jnp.broadcast_to(r, (*batch, *r.shape[-2:])) for r in rows], axis=-2)


@absolute_product.kernel(Orthonormal)
def _absolute_product_orthonormal(a: Orthonormal, v: jax.Array) -> jax.Array:
    """No row has a norm above 1 (Cauchy–Schwarz)."""
    bound = jnp.linalg.norm(v, axis=-2, keepdims=True)
    return jnp.broadcast_to(bound, (*jnp.broadcast_shapes(a.shape[:-2], v.shape[:-2]), a.shape[-2], v.shape[-1]))


def _estimated_norm(a: Array) -> jax.Array:
    """Estimate the infinity norm by the method of Hager and Higham (*Accuracy and Stability of Numerical Algorithms*,
    15.3).
    """
    adjoint = matrix_transpose.dispatch(a)
    n = a.shape[-2]
    i = lax.iota(_real(a), n)[:, None]
    start = jnp.concatenate([jnp.ones_like(i), jnp.where(i % 2 == 0, 1, -1) * (1 + i / max(1, n - 1))], axis=-1)
    x = (start / jnp.sum(jnp.abs(start), axis=-2, keepdims=True)).astype(a.dtype)
    x = jnp.broadcast_to(x, (*a.shape[:-2], *x.shape[-2:]))

    def step(_: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        x, found = state
        y = _product(adjoint, x)
        sizes = jnp.sum(jnp.abs(y), axis=-2, keepdims=True)
        signs = jnp.where(y == 0, 1, y / jnp.where(y == 0, 1, jnp.abs(y)))
        z = jnp.abs(_product(a, signs.conj()))
        chosen = jnp.argmax(z, axis=-2, keepdims=True)
        unit = (lax.broadcasted_iota(jnp.int32, z.shape, z.ndim - 2) == chosen).astype(x.dtype)
        return unit, jnp.maximum(found, jnp.max(sizes, axis=(-2, -1), keepdims=True))

    found = jnp.zeros((*a.shape[:-2], 1, 1), _real(a))
    largest: jax.Array = lax.fori_loop(0, 4, step, (x, found))[1]
    return largest
