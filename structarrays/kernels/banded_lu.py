"""Gaussian elimination of one banded matrix in row storage (see `banded_rows`).

Without pivoting the elimination is one flat loop over (column, row) pairs, which XLA compiles to native code (5-10 ns
an iteration) and does in place. `is_stable` tells afterwards whether it may be trusted. If not, a loop over the
columns pivots partially as LAPACK's ``gbtrf`` does; it carries a window of the next rows.
"""

import jax.numpy as jnp
from jax import lax

# Bytes of a row right of the diagonal up to which the flat loop is native.
_NATIVE_BYTES = 104

# Elimination without pivoting is trusted if no entry of |L||U| exceeds this times the largest entry of the matrix: then
# its backward error is below the precision times this. Partial pivoting promises no less.
_GROWTH = 16


def is_native(kl, ku, dtype):
    """Whether `eliminate` runs as a native loop."""
    return (ku + 1) * jnp.dtype(dtype).itemsize <= _NATIVE_BYTES


def eliminate(rows, kl, ku):
    """Factor ``A = L U`` without pivoting, (n, kl + ku + 1).

    Returns the same storage, with the multipliers of the unit triangular L left of the diagonal and U from it on.
    """
    n, width = rows.shape
    flat = jnp.concatenate([rows.reshape(-1), jnp.zeros(kl * width, rows.dtype)])
    first = jnp.arange(ku + 1) == 0

    def step(t, flat):
        j, k = t // kl, t % kl + 1
        # Row j from the diagonal on, and row j + k from the same column on.
        pivot_row = _slice(flat, j * width + kl, ku + 1)
        at = (j + k) * width + kl - k
        row = _slice(flat, at, ku + 1)
        multiplier = row[0] / pivot_row[0]
        row = jnp.where(first, multiplier, row - multiplier * pivot_row)
        return lax.dynamic_update_slice_in_dim(flat, row, at, 0, allow_negative_indices=False)

    flat = lax.fori_loop(0, n * kl, step, flat)
    return flat[: n * width].reshape(n, width)


def is_stable(factors, rows, kl, ku):
    """Whether the elimination without pivoting has no zero pivot and a small ``|L||U|``."""
    n = rows.shape[0]
    upper = jnp.max(jnp.abs(factors[:, kl:]), 1)
    total = upper
    for d in range(1, min(kl, n - 1) + 1):
        shifted = jnp.concatenate([jnp.zeros(d, upper.dtype), upper[: n - d]])
        total = total + jnp.abs(factors[:, kl - d]) * shifted
    # The comparison is false for NaN.
    return (jnp.max(total) <= _GROWTH * jnp.max(jnp.abs(rows))) & jnp.all(factors[:, kl] != 0)


def eliminate_pivoted(rows, b, kl, ku):
    """Eliminate with partial pivoting, right-hand sides (n, k) included.

    Returns
    -------
    upper : jax.Array, (n, kl + ku + 1)
        Row j of U from its diagonal on.
    y : jax.Array, (n, k)
        The right-hand sides; ``U x = y``.
    multipliers : jax.Array, (n, kl)
    pivots : jax.Array of int, (n,)
        Which row of the window became row j: 0 for no interchange.
    """
    n, width = rows.shape
    k = b.shape[1]
    # The window holds rows j ... j + kl - 1 from column j on, and their right-hand sides.
    window = [jnp.concatenate([rows[i, kl - i :], jnp.zeros(kl - i, rows.dtype), b[i]]) for i in range(kl)]
    window = jnp.stack(window) if kl else jnp.zeros((0, width + k), rows.dtype)
    incoming = jnp.concatenate([rows, b], 1)[kl:]
    incoming = jnp.concatenate([incoming, jnp.zeros((kl, width + k), rows.dtype)])
    index = jnp.arange(kl + 1)[:, None]

    def step(window, row):
        window = jnp.concatenate([window, row[None]])
        p = jnp.argmax(jnp.abs(window[:, 0]))
        pivot_row = lax.dynamic_index_in_dim(window, p, 0, keepdims=False)
        others = jnp.where(index == p, window[0], window)[1:]
        # A zero pivot means that the whole column is zero: nothing to eliminate.
        pivot = jnp.where(pivot_row[0] == 0, 1, pivot_row[0])
        multipliers = others[:, 0] / pivot
        others = others - multipliers[:, None] * pivot_row
        zero = jnp.zeros((kl, 1), rows.dtype)
        window = jnp.concatenate([others[:, 1:width], zero, others[:, width:]], 1)
        return window, (pivot_row, multipliers, p)

    _, (reduced, multipliers, pivots) = lax.scan(step, window, incoming)
    return reduced[:, :width], reduced[:, width:], multipliers, pivots


def logdet_gradient(factors, kl, ku):
    """Derivative of log det A by the entries of A, in row storage: its entry (i, j) is ``inv(A)[j, i]``. From what `eliminate` returns.

    With Z the inverse, ``Z = D^{-1} L^{-1} + (I - U) Z`` and ``Z = U^{-1} D^{-1} + Z (I - L)``, of ``A = L D U`` with unit triangular factors,
    give row and column j of Z, next to the diagonal, from those of its elements next to the diagonal that come after j (K. Takahashi, J.
    Fagan and M.-S. Chin, "Formation of a sparse bus impedance matrix and its application to short circuit study", 8th PICA
    Conference, 1973). O(n kl ku) operations.
    """
    n = factors.shape[0]
    reciprocals = 1 / factors[:, kl]
    lower = jnp.stack([jnp.pad(factors[k:, kl - k], (0, min(k, n))) for k in range(1, kl + 1)], 1)
    upper = factors[:, kl + 1 :] * reciprocals[:, None]

    # One array of results and three of inputs: so the loop is native up to three diagonals on either side, and quick beyond.
    def step(window, row):
        # window[a, b] = Z[j + 1 + a, j + 1 + b]
        l, u, reciprocal = row
        below = -jnp.sum(window * l, 1)
        right = -jnp.sum(window * u[:, None], 0)
        middle = reciprocal - jnp.sum(u * below)
        top = jnp.concatenate([middle[None], right[:-1]])
        rest = jnp.concatenate([below[:-1, None], window[:-1, :-1]], 1)
        return jnp.concatenate([top[None], rest]), jnp.concatenate([right[::-1], middle[None], below])

    zero = jnp.zeros((ku, kl), factors.dtype)
    around = lax.scan(step, zero, (lower, upper, reciprocals), reverse=True)[1]
    # Entry (j + d, j) is Z[j, j + d], which stands in row j.
    left = [jnp.pad(around[: max(0, n - d), kl - d], (min(d, n), 0)) for d in range(kl, 0, -1)]
    return jnp.concatenate([jnp.stack(left, 1), around[:, kl:]], 1)


def logdet_gradient_pivoted(upper, multipliers, pivots, kl):
    """The same from what `eliminate_pivoted` returns.

    The eliminations run backwards: with ``new = others - multipliers * pivot_row`` undone row by row, this takes O(n kl (kl + ku))
    operations and the memory of the factors.
    """
    n, width = upper.shape
    index = jnp.arange(kl + 1)[:, None]

    def step(new, factors):
        # `new` is the derivative by the window that the elimination of column j left behind.
        pivot_row, multipliers, p = factors
        others = jnp.concatenate([jnp.zeros((kl, 1), upper.dtype), new[:, : width - 1]], 1)
        by_multiplier = -(others @ pivot_row)
        others = others.at[:, 0].set(by_multiplier / pivot_row[0])
        by_pivot_row = -(multipliers @ new[:, : width - 1])
        by_pivot = (1 - by_multiplier @ multipliers) / pivot_row[0]
        by_pivot_row = jnp.concatenate([by_pivot[None], by_pivot_row])
        # Undo the interchange of rows 0 and p.
        window = jnp.concatenate([by_pivot_row[None], others])
        top = lax.dynamic_index_in_dim(window, p, 0, keepdims=False)
        window = jnp.where(index == p, by_pivot_row, window)
        window = jnp.concatenate([top[None], window[1:]])
        return window[:-1], window[-1]

    zero = jnp.zeros((kl, width), upper.dtype)
    window, incoming = lax.scan(step, zero, (upper, multipliers, pivots), reverse=True)
    # Row i of the initial window is shifted: it begins with column 0.
    first = [jnp.concatenate([jnp.zeros(kl - i, upper.dtype), window[i, : width - (kl - i)]])[None] for i in range(kl)]
    return jnp.concatenate([*first, incoming])[:n]


def _slice(a, start, size):
    return lax.dynamic_slice_in_dim(a, start, size, 0, allow_negative_indices=False)
