"""Triangular Toeplitz systems on plain JAX arrays, in ``O(n log(n)**2)`` time and ``O(n)`` storage."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import lax

from ..._numerics import toeplitz_entries as toeplitz
from ..._numerics.convolution import transforms
from ..._numerics.undefined import nan_unless

if TYPE_CHECKING:
    from collections.abc import Sequence

# The number of rows that are solved as a dense triangle, and the number of parts at each level above.
_LEAF, _PARTS = 128, 8


def solve(c: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Solve linear systems with a lower triangular Toeplitz matrix, by forward substitution of blocks.

    A block of s rows is solved after the contributions of the previous blocks are subtracted. These are products with
    Toeplitz matrices of s rows and columns. They are summed as spectra of length 2 s, so each block is transformed
    once. Within a block the algorithm recurses, down to dense triangles (J. van der Hoeven, "Relax, but don't be too
    lazy", Journal of Symbolic Computation 34 (2002), 479-542, and "New algorithms for relaxed multiplication", Journal
    of Symbolic Computation 42 (2007), 792-802, where the solution is the quotient of two power series).

    No inverse is formed, so the rounding errors are errors of products. Relative to ``norm(c) * norm(x)`` the residual
    is as small as for a dense solver, for every condition number. Newton's iteration for the inverse power series takes
    ``O(n log(n))``, but has no such bound.

    Parameters
    ----------
    c : jax.Array, (..., n)
        The first column of the matrix, n > 0.
    b : jax.Array, (..., n, k)
        The right-hand sides, of the same dtype; the batch shapes broadcast.

    Returns
    -------
    x : jax.Array, (..., n, k)
        NaN if ``c[..., 0]`` is zero.
    ok : jax.Array, bool scalar
        Whether no matrix is singular.
    """
    n = c.shape[-1]
    batch = jnp.broadcast_shapes(c.shape[:-1], b.shape[:-2])
    columns = jnp.broadcast_to(b.mT, (*batch, *b.shape[:-3:-1]))
    c = jnp.broadcast_to(c, (*batch, n))[..., None, :]
    levels = 0 if n <= _LEAF else math.ceil(math.log(n / _LEAF, _PARTS))
    leaf = n if levels == 0 else _LEAF
    # At the highest level, only the parts that have rows of the matrix.
    parts = -(-n // (leaf * _PARTS ** (levels - 1))) if levels else 1
    size = leaf * _PARTS ** (levels - 1) * parts if levels else n
    c, x = _padded(c, size), _padded(columns, size)
    triangle = toeplitz.to_dense(c[..., 0, leaf - 1 :: -1], 1 - leaf, (leaf, leaf))
    spectra = [_spectra(c, leaf * _PARTS**i, parts if i == levels - 1 else _PARTS) for i in range(levels)]
    x = _substituted(x, 0, triangle, spectra, leaf)[..., :n]
    singular = c[..., :1] == 0
    return nan_unless(~singular, x).mT, ~jnp.any(singular)


def _padded(x: jax.Array, size: int) -> jax.Array:
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])])


def _spectra(c: jax.Array, s: int, parts: int) -> jax.Array:
    """Return the spectra of the contributions of blocks of s columns to the blocks of s rows that are m blocks below.

    The order is m = parts - 1, …, 2 - parts. The contribution for m is the elements s to 2 s - 1 of a cyclic
    convolution. It is zero for m <= 0.
    """
    forward, _ = transforms(2 * s, jnp.iscomplexobj(c), False)
    below = jnp.stack([forward(c[..., (m - 1) * s : (m + 1) * s]) for m in range(parts - 1, 0, -1)])
    return jnp.concatenate([below, jnp.zeros_like(below)])


def _substituted(
    x: jax.Array, start: int | jax.Array, triangle: jax.Array, spectra: Sequence[jax.Array], leaf: int
) -> jax.Array:
    """Return x (..., k, n) with the right-hand sides of one block, from row `start` on, replaced by its solutions."""
    if not spectra:
        block = _solved_leaf(triangle, lax.dynamic_slice_in_dim(x, start, leaf, axis=-1))
        return lax.dynamic_update_slice_in_dim(x, block, start, axis=-1)
    *inner, outer = spectra
    parts, s = outer.shape[0] // 2 + 1, leaf * _PARTS ** len(inner)
    forward, inverse = transforms(2 * s, jnp.iscomplexobj(x), False)

    def part(j: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        x, done = state
        at = start + j * s
        contributions = jnp.sum(lax.dynamic_slice_in_dim(outer, parts - 1 - j, parts - 1) * done[:-1], axis=0)
        block = lax.dynamic_slice_in_dim(x, at, s, axis=-1) - inverse(contributions)[..., s:]
        x = lax.dynamic_update_slice_in_dim(x, block, at, axis=-1)
        x = _substituted(x, at, triangle, inner, leaf)
        spectrum = forward(lax.dynamic_slice_in_dim(x, at, s, axis=-1))
        return x, lax.dynamic_update_index_in_dim(done, spectrum, j, 0)

    nothing = jnp.zeros((parts, *jax.eval_shape(forward, x[..., :s]).shape), jnp.result_type(x, jnp.complex64))
    solved: jax.Array = lax.fori_loop(0, parts, part, (x, nothing))[0]
    return solved


def _solved_leaf(triangle: jax.Array, b: jax.Array) -> jax.Array:
    """Solve with a dense triangle (..., s, s) for right-hand sides that are rows: b (..., k, s)."""
    return lax.linalg.triangular_solve(triangle, b.mT, left_side=True, lower=True).mT
