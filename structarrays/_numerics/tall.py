"""Products of the transpose of a tall matrix and another matrix, on plain JAX arrays.

XLA's CPU backend takes several times as long as BLAS for ``v.mT @ x`` if both have far more rows than columns, and
twenty times for a single column, since it iterates down the columns. Here a single column is a sum over rows. For
several columns, the rows are processed in pieces that fit the cache, with explicit transposes. XLA parallelizes the
product of two large pieces, and products of small pieces only in batches.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
from jax import lax

from .flags import custom_jvp
from .symbolic import is_symbolic

_MANY, _FEW_COLUMNS = 4000, 100
_NUMBERS = 240_000
"""Number of entries of a factor that are multiplied together: 2 MB, which the caches hold."""


def transposed_product(v: jax.Array, x: jax.Array, weights: jax.Array) -> jax.Array:
    """``v.mT @ (weights * x)``.

    Parameters
    ----------
    v, x : jax.Array, (..., n, k) and (..., n, p)
    weights : jax.Array, (..., n)
        One number for each row. The batch shapes broadcast.

    Returns
    -------
    jax.Array, (..., k, p)
    """
    return transposed_products(v, (x,), weights)[0]


@custom_jvp
def transposed_products(v: jax.Array, xs: tuple[jax.Array, ...], weights: jax.Array) -> tuple[jax.Array, ...]:
    """``v.mT @ (weights * x)`` for each of several `xs`, in one pass over `v` if they have few columns; see
    `transposed_product`.
    """
    columns = sum(x.shape[-1] for x in xs)
    if len(xs) > 1 and (columns > _FEW_COLUMNS or len({x.dtype for x in xs}) > 1):
        return tuple(transposed_product(v, x, weights) for x in xs)
    n, flat = v.shape[-2], v.ndim == 2 and weights.ndim == 1 and all(x.ndim == 2 for x in xs)
    tall = not is_symbolic(n) and n >= _MANY and n >= 8 * max(v.shape[-1], columns)
    if columns > 1 and flat and tall and jax.default_backend() == "cpu":
        cuts = list(itertools.accumulate(x.shape[-1] for x in xs))[:-1]
        return tuple(jnp.split(_in_pieces(v, xs, weights), cuts, axis=-1))
    return tuple(_at_once(v, x, weights) for x in xs)


def _at_once(v: jax.Array, x: jax.Array, weights: jax.Array) -> jax.Array:
    if x.shape[-1] != 1:
        return v.mT @ (weights[..., None] * x)
    product = v * (weights[..., None] * x)
    return jnp.sum(product, axis=-2, dtype=product.dtype)[..., None]


def _in_pieces(v: jax.Array, xs: tuple[jax.Array, ...], weights: jax.Array) -> jax.Array:
    n, widest = v.shape[0], max(v.shape[1], sum(x.shape[1] for x in xs))
    piece, together = _pieces(widest)
    together = min(together, n // piece)

    def product(start: int | jax.Array, count: int) -> jax.Array:
        # Without the barriers XLA would fuse the explicit transpose with the product, which is slower than both.
        right: list[jax.Array] | jax.Array
        left, w, *right = (lax.dynamic_slice_in_dim(a, start, count * piece) for a in (v, weights, *xs))
        right = w[:, None] * jnp.concatenate(right, axis=-1)
        left, right = (a.reshape(count, piece, a.shape[-1]) for a in (left, right))
        return jnp.sum(lax.optimization_barrier(left.mT) @ lax.optimization_barrier(right), axis=0)

    step = together * piece
    rest = n // step * step
    last = n // piece * piece
    left, w, *right = (a[last:] for a in (v, weights, *xs))
    total = left.T @ (w[:, None] * jnp.concatenate(right, axis=-1)) + product(rest, (last - rest) // piece)
    result: jax.Array = lax.fori_loop(0, n // step, lambda i, total: total + product(i * step, together), total)
    return result


def _pieces(columns: int) -> tuple[int, int]:
    """The number of rows of a piece, and the number of pieces that are multiplied together: the fastest measured
    values.
    """
    if columns > _FEW_COLUMNS:
        return 400, 1
    piece = 400 if columns <= 32 else 200
    return piece, max(1, min(25, _NUMBERS // (max(1, columns) * piece)))


@custom_jvp
def transposed_quotients(v: jax.Array, xs: tuple[jax.Array, ...], divisors: jax.Array) -> tuple[jax.Array, ...]:
    """``v.mT @ (x / divisors)`` for each of several `xs`, as `transposed_products`."""
    return transposed_products(v, xs, 1 / divisors)


@transposed_quotients.defjvp
def _transposed_quotients_jvp(
    primals: tuple[jax.Array, tuple[jax.Array, ...], jax.Array],
    tangents: tuple[jax.Array, tuple[jax.Array, ...], jax.Array],
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    (v, xs, divisors), (dv, dxs, change) = primals, tangents
    d, dd = divisors[..., None], change[..., None]
    # Without a square of the divisors, which overflows or underflows before the derivative does.
    quotients = tuple(x / d for x in xs)
    moved = tuple(dv.mT @ q + v.mT @ ((dx - dd * q) / d) for q, dx in zip(quotients, dxs, strict=True))
    return transposed_quotients(v, xs, divisors), moved


@transposed_products.defjvp
def _transposed_products_jvp(
    primals: tuple[jax.Array, tuple[jax.Array, ...], jax.Array],
    tangents: tuple[jax.Array, tuple[jax.Array, ...], jax.Array],
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    (v, xs, weights), (dv, dxs, dw) = primals, tangents
    w = weights[..., None]
    moved = tuple(dv.mT @ (w * x) + v.mT @ (w * dx + dw[..., None] * x) for x, dx in zip(xs, dxs, strict=True))
    return transposed_products(v, xs, weights), moved
