"""LDL^H and Cholesky factorization of one Hermitian positive definite matrix with one or two diagonals on each side.

A loop over the rows carries what it needs of the previous rows as scalars, and reads and writes diagonals. So no storage by rows is
necessary, and XLA compiles the loop to native code (see `tridiagonal`). Wider bands would exceed the limit for that, in JAX 0.10
already from four diagonals on.

Factors are the pivots D (n,) and for each diagonal the multipliers: ``multipliers[k - 1][i] = L[i, i - k]``, zero for i < k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

if TYPE_CHECKING:
    from collections.abc import Sequence

Vectors: TypeAlias = tuple[jax.Array, ...]

MOST = 2
"""The largest bandwidth."""


def _aligned(lower: Sequence[jax.Array]) -> Vectors:
    """Return the diagonals from the main diagonal down as real pivots, and entries of the rows: (n,) each."""
    main, *below = lower
    return main.real, *(jnp.pad(d, (k, 0)) for k, d in enumerate(below, 1))


def _start(lower: Sequence[jax.Array]) -> tuple[Vectors, jax.Array, jax.Array]:
    """Return the previous pivots, the multiplier of the last row next to its diagonal, and whether a pivot was not positive."""
    one = jnp.ones((), lower[0].real.dtype)
    return (one,) * (len(lower) - 1), jnp.zeros((), lower[0].dtype), jnp.array(False)


def _row(
    state: tuple[Vectors, jax.Array, jax.Array], row: Vectors
) -> tuple[tuple[Vectors, jax.Array, jax.Array], tuple[jax.Array, Vectors]]:
    """Factor one row, and return its pivot and multipliers."""
    (pivots, last, bad), (pivot, nearest, *others) = state, row
    multipliers = []
    for second in others:
        # L[i, i - 2] D[i - 2] is the entry of the matrix; `last` is L[i - 1, i - 2].
        multipliers = [second / pivots[1]]
        nearest = nearest - second * last.conj()
        pivot = pivot - (second * multipliers[0].conj()).real
    multiplier = nearest / pivots[0]
    pivot = pivot - (nearest * multiplier.conj()).real
    state = (pivot, *pivots[:-1]), multiplier, bad | (pivot <= 0)
    return state, (pivot, (multiplier, *multipliers))


def ldl(lower: Sequence[jax.Array]) -> tuple[jax.Array, Vectors, jax.Array]:
    """Factor ``A = L D L^H`` with unit lower triangular L.

    Parameters
    ----------
    lower : sequence of jax.Array
        The diagonals from the main diagonal down: (n - k,). The imaginary part of the main diagonal is not read.

    Returns
    -------
    pivots : jax.Array, (n,)
        D, real.
    multipliers : tuple of jax.Array, (n,)
    ok : jax.Array, bool scalar
        Whether no pivot is negative or zero.
    """
    (_, _, bad), (pivots, multipliers) = lax.scan(_row, _start(lower), _aligned(lower))
    return pivots, multipliers, ~bad


def cholesky(lower: Sequence[jax.Array]) -> tuple[Vectors, jax.Array]:
    """Return the diagonals of the lower Cholesky factor from the main diagonal down, and whether all pivots are positive; NaN if not."""
    pivots, multipliers, ok = ldl(lower)
    roots = jnp.where(ok, jnp.sqrt(pivots), jnp.nan)
    below = (m[k:] * roots[: roots.size - k] for k, m in enumerate(multipliers, 1))
    return (roots.astype(lower[0].dtype), *below), ok


def substitute(pivots: jax.Array, multipliers: Sequence[jax.Array], b: jax.Array) -> jax.Array:
    """Solve ``A x = b``, b (n, k), with the factors of `ldl`."""

    def step(known: Vectors, row: tuple[jax.Array, jax.Array, Vectors]) -> tuple[Vectors, jax.Array]:
        y, pivot, multipliers = row
        y = _next(y, multipliers, known)
        return (y, *known[:-1]), y / pivot

    zeros = (jnp.zeros(b.shape[1], b.dtype),) * len(multipliers)
    y = lax.scan(step, zeros, (b, pivots, tuple(multipliers)))[1]
    return _up(multipliers, y)


def _next(y: jax.Array, multipliers: Vectors, known: Vectors) -> jax.Array:
    """Return one row of ``inv(L) b``, with the farthest row first: the nearest one is known last."""
    for multiplier, earlier in zip(multipliers[::-1], known[::-1], strict=True):
        y = y - multiplier * earlier
    return y


def _up(multipliers: Sequence[jax.Array], y: jax.Array) -> jax.Array:
    """Solve ``L^H x = y``, y (n, …)."""

    def step(above: Vectors, row: tuple[jax.Array, Vectors]) -> tuple[Vectors, jax.Array]:
        y, multipliers = row
        x = y - above[0]
        # What this row contributes to the rows above it.
        found = [m.conj() * x for m in multipliers]
        return tuple(f + a for f, a in zip(found, above[1:])) + (found[-1],), x

    zeros = (jnp.zeros(y.shape[1:], y.dtype),) * len(multipliers)
    return lax.scan(step, zeros, (y, tuple(multipliers)), reverse=True)[1]
