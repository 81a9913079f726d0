"""Row storage of banded matrices, and substitution.

Algorithms that go down a matrix keep it by rows: ``rows[i, c] = A[i, i - kl + c]``, zero where the column is outside
of the matrix, for the ``kl`` subdiagonals, the diagonal and the ``ku`` superdiagonals.
"""

import jax.numpy as jnp
from jax import lax

# Carried entries in double precision up to which a substitution is compiled to a native loop (see `tridiagonal`).
_NATIVE_WINDOW = 16

# Columns from which one loop over the rows with all columns in its body beats a native loop for each.
_MANY_COLUMNS = 64


def bandwidths(offsets):
    """Numbers of sub- and superdiagonals."""
    return max(0, -min(offsets, default=0)), max(0, max(offsets, default=0))


def from_diagonals(diagonals, offsets, n, dtype):
    """Row storage (..., n, kl + ku + 1) of a square matrix given by its diagonals (..., n - |offset|)."""
    kl, ku = bandwidths(offsets)
    stored = dict(zip(offsets, diagonals, strict=True))
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    zero = jnp.zeros((*batch, n), dtype)
    columns = [aligned(stored[k], k, n) if k in stored else zero for k in range(-kl, ku + 1)]
    return jnp.stack([jnp.broadcast_to(c, (*batch, n)) for c in columns], -1)


def aligned(diagonal, offset, n):
    """The diagonal at `offset` with entry ``A[i, i + offset]`` at position i of n, padded by zeros."""
    before = max(0, -offset)
    widths = [(0, 0, 0)] * (diagonal.ndim - 1) + [(before, n - before - diagonal.shape[-1], 0)]
    return lax.pad(diagonal, jnp.zeros((), diagonal.dtype), widths)


def substitute(coefficients, distances, b, reverse=False):
    """Solve a unit triangular banded system.

    ``x[i] = b[i] - sum_m coefficients[i, m] x[i - distances[m]]``, or ``i + distances[m]`` if `reverse`.

    Parameters
    ----------
    coefficients : jax.Array, (n, number of distances)
    distances : tuple of int
        Strictly increasing, positive.
    b : jax.Array, (n, k)
    reverse : bool
        From the last row up (upper triangular) instead of down (lower triangular).
    """
    if not distances:
        return b
    width = distances[-1]
    k = b.shape[1]
    if 1 < k < _MANY_COLUMNS and width * k * b.dtype.itemsize / 8 > _NATIVE_WINDOW:
        columns = lax.map(lambda c: substitute(coefficients, distances, c[:, None], reverse)[:, 0], b.T)
        return columns.T
    contiguous = len(distances) == width

    def step(window, row):
        # window[d - 1] is the solution at distance d
        a, y = row
        reached = window if contiguous else jnp.concatenate([window[d - 1 : d] for d in distances])
        x = y - jnp.sum(a[:, None] * reached, 0)
        return jnp.concatenate([x[None], window[:-1]]), x

    return lax.scan(step, jnp.zeros((width, k), b.dtype), (coefficients, b), reverse=reverse)[1]
