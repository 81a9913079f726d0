"""The product of two Toeplitz matrices, on plain JAX arrays, in the layout of `toeplitz_entries`.

The product is not a Toeplitz matrix, but changes along its diagonals only by two terms,

    (A B)[i + 1, j + 1] = (A B)[i, j] + A[i + 1, 0] B[0, j + 1] - A[i, n - 1] B[n - 1, j],

its displacement of rank two (Kailath, Kung, Morf, *Displacement ranks of matrices and linear equations*, 1979). So its
first row and its first column, two products with a vector, determine the whole product.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._numerics.banded_systems import mapped_together
from ..._numerics.bands import diagonal_length
from ..._numerics.flags import custom_jvp
from ..._numerics.toeplitz_entries import convolved, elements, kinds_of, with_outcomes

if TYPE_CHECKING:
    import jax


@functools.partial(custom_jvp, nondiff_argnums=(0, 1, 2, 3))
def product(
    first_a: int, shape_a: tuple[int, int], first_b: int, shape_b: tuple[int, int], a: jax.Array, b: jax.Array
) -> jax.Array:
    """Return ``A @ B`` in ``O(m p + n log(n))``, with storage proportional to the parameters and the result.

    The rounding error is normwise: relative to the largest elements of A and B.

    Parameters
    ----------
    first_a, shape_a, first_b, shape_b
        The offset of the first diagonal and the core shape of each factor, ``(m, n)`` and ``(n, p)``, not
        empty.
    a, b : jax.Array, (..., d) and (..., e)
        The values of the diagonals, with one inexact dtype and one batch shape.

    Returns
    -------
    jax.Array, (..., m, p)
    """
    return mapped_together(functools.partial(_decide, first_a, shape_a, first_b, shape_b), True)(a, b)


@product.defjvp
def _product_jvp(
    first_a: int,
    shape_a: tuple[int, int],
    first_b: int,
    shape_b: tuple[int, int],
    primals: tuple[jax.Array, jax.Array],
    tangents: tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array]:
    finite = functools.partial(_finite, first_a, shape_a, first_b, shape_b)
    (a, b), (a_dot, b_dot) = primals, tangents
    return product(first_a, shape_a, first_b, shape_b, a, b), finite(a_dot, b) + finite(a, b_dot)


def _decide(
    first_a: int, shape_a: tuple[int, int], first_b: int, shape_b: tuple[int, int], a: jax.Array, b: jax.Array
) -> jax.Array:
    """Take a branch that locates NaN and infinities if there are any, since they would spread along the diagonals."""
    settings = first_a, shape_a, first_b, shape_b
    result: jax.Array = lax.cond(
        jnp.isfinite(a).all() & jnp.isfinite(b).all(),
        functools.partial(_finite, *settings),
        functools.partial(_with_special_values, *settings),
        a,
        b,
    )
    return result


def _finite(
    first_a: int, shape_a: tuple[int, int], first_b: int, shape_b: tuple[int, int], a: jax.Array, b: jax.Array
) -> jax.Array:
    (m, n), p = shape_a, shape_b[-1]
    if p < m:  # each step computes a row; the transpose has fewer rows
        turned = _finite(
            *_transposed(first_b, shape_b, b)[:2], *_transposed(first_a, shape_a, a)[:2], b[..., ::-1], a[..., ::-1]
        )
        return turned.mT
    i, j = jnp.arange(m), jnp.arange(p)
    ends_of_a = elements(a, first_a, i, 0), elements(a, first_a, i, n - 1)
    ends_of_b = elements(b, first_b, 0, j), elements(b, first_b, n - 1, j)
    first_column = convolved(first_a, shape_a, a, elements(b, first_b, jnp.arange(n), 0))
    turned_first, turned_shape, turned = _transposed(first_b, shape_b, b)
    first_row = convolved(turned_first, turned_shape, turned, elements(a, first_a, 0, jnp.arange(n)))

    def next_row(row: jax.Array, numbers: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        first, start, end = (number[..., None] for number in numbers)
        change = start * ends_of_b[0][..., 1:] - end * ends_of_b[1][..., :-1]
        row = jnp.concatenate([first, row[..., :-1] + change], axis=-1)
        return row, row

    by_row = (first_column[..., 1:], ends_of_a[0][..., 1:], ends_of_a[1][..., :-1])
    _, rows = lax.scan(next_row, first_row, tuple(jnp.moveaxis(numbers, -1, 0) for numbers in by_row))
    return jnp.concatenate([first_row[..., None, :], jnp.moveaxis(rows, 0, -2)], axis=-2)


def _transposed(first: int, shape: tuple[int, int], values: jax.Array) -> tuple[int, tuple[int, int], jax.Array]:
    return 1 - first - values.shape[-1], shape[::-1], values[..., ::-1]


def _with_special_values(
    first_a: int, shape_a: tuple[int, int], first_b: int, shape_b: tuple[int, int], a: jax.Array, b: jax.Array
) -> jax.Array:
    """Return the finite part, with NaN and infinities at the positions that products of zeros and ones count."""
    settings = first_a, shape_a, first_b, shape_b
    if jnp.iscomplexobj(a):
        part = functools.partial(_with_special_values, *settings)
        (c, d), (e, f) = (a.real, a.imag), (b.real, b.imag)
        return lax.complex(part(c, e) - part(d, f), part(c, f) + part(d, e))
    batch = jnp.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    shape = (*batch, shape_a[0], shape_b[1])
    return with_outcomes(functools.partial(_finite, *settings), a, b, kinds_of(a), kinds_of(b), shape)


def banded_product(
    a: jax.Array, first_a: int, b: jax.Array, first_b: int, shape: tuple[int, int, int]
) -> list[jax.Array]:
    """Return the diagonals of ``A @ B`` for two matrices with few diagonals, from the offset ``first_a + first_b`` on.

    A diagonal of the product is constant except in rows near both ends, where some diagonals of A have left the matrix. It takes
    ``O(d e + d (d + e) d)`` operations for those, for d and e diagonals.

    Parameters
    ----------
    a, b : jax.Array, (..., d) and (..., e)
        The values of the diagonals.
    first_a, first_b : int
        The offset of the first diagonal of each.
    shape : tuple of int
        ``(m, n, p)`` for matrices ``(m, n)`` and ``(n, p)``, larger than the numbers of diagonals.
    """
    m, n, p = shape
    d, e = a.shape[-1], b.shape[-1]
    # The product of diagonal i of A and diagonal k - i of B is a term of diagonal k.
    place = np.arange(d + e - 1)[:, None] - np.arange(d)
    terms = jnp.where((place >= 0) & (place < e), a[..., None, :] * b[..., np.clip(place, 0, e - 1)], 0)
    offsets = first_a + np.arange(d)
    ahead, behind = max(0, -first_a), max(0, m - n + int(offsets[-1]))
    rows = np.concatenate([np.arange(ahead), np.arange(m - behind, m)])
    inside = (rows[:, None] + offsets >= 0) & (rows[:, None] + offsets < n)

    def of_row(inside: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(inside, terms, 0), axis=-1)

    edges = jnp.moveaxis(lax.map(of_row, jnp.asarray(inside)), 0, -1)
    constant = jnp.broadcast_to(jnp.sum(terms, axis=-1)[..., None], (*edges.shape[:-1], m - ahead - behind))
    whole = jnp.concatenate([edges[..., :ahead], constant, edges[..., ahead:]], axis=-1).astype(a.dtype)
    diagonals = []
    for i, k in enumerate(range(first_a + first_b, first_a + first_b + d + e - 1)):
        start = max(0, -k)
        diagonals.append(whole[..., i, start : start + diagonal_length((m, p), k)])
    return diagonals
