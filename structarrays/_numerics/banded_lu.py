"""Gaussian elimination of one banded matrix in row storage (see `banded_rows`).

Without pivoting, narrow bands are eliminated in place, by a loop over the columns and one over the rows below. XLA
compiles them to one native loop (3-6 ns for a pair of rows). Wide bands use a loop over the columns with a dense window
of the next rows. A test afterwards tells whether the result is stable. If not, a loop over the columns with a window of
the next rows does partial pivoting, as LAPACK's ``gbtrf`` does.

The factors without pivoting are one array (n or more, kl + ku + 1). The columns from kl on contain the rows of U from
the diagonal on. The columns before contain the multipliers of the unit triangular L: for narrow bands by rows, farthest
from the diagonal first, for wide bands by columns, nearest first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import lax

from . import banded_rows
from .symbolic import is_symbolic

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

    from .._core.typing import DTypeLike

# Elimination without pivoting is accepted if no entry of |L||U| exceeds this factor times the largest entry of the
# matrix. Then its backward error is below the precision times this factor. Partial pivoting has no better bound.
_GROWTH = 16

# The rows of a long matrix that tell whether an elimination without pivoting is worth trying.
_FIRST_ROWS = 256

# The derivative's loops are native up to this number of entries to the right of the diagonal in a row of U (see
# `banded_rows`).
_GRADIENT_BYTES = 40


def eliminate(rows: jax.Array, kl: int, ku: int, largest: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Factor a matrix without pivoting.

    Parameters
    ----------
    rows : jax.Array, (n + kl, kl + ku + 1)
        The matrix with kl rows of zeros appended. Its memory is reused for the factors, unless it is needed elsewhere.
    largest : jax.Array
        The magnitude of the largest entry.

    Returns
    -------
    factors : jax.Array
        See above.
    stable : jax.Array, bool scalar
        Whether there is no zero pivot, and ``|L||U|`` is small.
    """
    narrow = banded_rows.is_narrow(ku, rows.dtype)
    factors = (_eliminate_by_pairs if narrow else _eliminate_by_columns)(rows, kl, ku)
    return factors, is_stable(factors, rows.shape[0] - kl, kl, ku, largest, by_rows=narrow)


def eliminate_if_promising(
    rows: Callable[[int], jax.Array],
    n: int,
    kl: int,
    ku: int,
    dtype: DTypeLike,
    largest: Callable[[jax.Array], jax.Array],
) -> tuple[jax.Array, jax.Array]:
    """`eliminate` for narrow bands; zeros if the factors of the first rows are unstable already.

    ``rows(count)`` returns the first rows of the matrix in row storage. ``largest(rows)`` returns the magnitude of the largest entry of the
    matrix, all of whose rows are given. A matrix whose first rows need pivots is not read as a whole.
    """

    def whole() -> tuple[jax.Array, jax.Array]:
        stored = rows(n + kl)
        return eliminate(stored, kl, ku, largest(stored))

    if is_symbolic(n) or n < 8 * _FIRST_ROWS or not banded_rows.is_narrow(ku, dtype):
        return whole()
    first = rows(_FIRST_ROWS + kl)
    _, promising = eliminate(first, kl, ku, jnp.max(jnp.abs(first)))
    result: tuple[jax.Array, jax.Array] = lax.cond(
        promising, whole, lambda: (jnp.zeros((n + kl, first.shape[1]), dtype), jnp.array(False))
    )
    return result


def _eliminate_by_pairs(rows: jax.Array, kl: int, ku: int) -> jax.Array:
    total, width = rows.shape
    first = jnp.arange(ku + 1) == 0

    def eliminate(j: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        flat, pivot_row = state
        pivot_row = banded_rows.copied(flat, pivot_row, j * width + kl, ku + 1)

        def subtract(k: jax.Array, flat: jax.Array) -> jax.Array:
            # Row j + k from column j on.
            at = (j + k) * width + kl - k
            row = banded_rows.take(flat, at, ku + 1)
            multiplier = row[0] / pivot_row[0]
            return banded_rows.put(flat, jnp.where(first, multiplier, row - multiplier * pivot_row), at)

        return lax.fori_loop(1, kl + 1, subtract, flat), pivot_row

    pivot_row = jnp.zeros(ku + 1, rows.dtype)
    result: jax.Array = lax.fori_loop(0, total - kl, eliminate, (rows.reshape(-1), pivot_row))[0].reshape(rows.shape)
    return result


def _eliminate_by_columns(rows: jax.Array, kl: int, ku: int) -> jax.Array:
    n = rows.shape[0] - kl
    # The entries below the diagonal in each column, nearest first, and its row from the diagonal on.
    below = banded_rows.skewed(rows[:, :kl].T, left=True)[::-1, :n]
    columns = jnp.concatenate([below.T, rows[:n, kl:]], 1)

    def step(correction: jax.Array, entries: jax.Array) -> tuple[jax.Array, jax.Array]:
        # correction[a, b] is what earlier columns added to entry (j + a, j + b)
        right = correction[0] + entries[kl:]
        below = (correction[1:, 0] + entries[:kl]) / right[0]
        correction = jnp.pad(correction[1:, 1:] - below[:, None] * right[1:], ((0, 1), (0, 1)))
        return correction, jnp.concatenate([below, right])

    return lax.scan(step, jnp.zeros((kl + 1, ku + 1), rows.dtype), columns)[1]


def is_stable(factors: jax.Array, n: int, kl: int, ku: int, largest: jax.Array, by_rows: bool) -> jax.Array:
    """Return whether the pivots and the growth of an elimination are acceptable, for a matrix with this largest entry.

    `by_rows` gives the layout of the multipliers. Comparisons with NaN are false.
    """
    limit = _GROWTH * largest
    # Use all rows, since a slice would be a copy; rows below the matrix are zero.
    sizes = jnp.max(jnp.abs(factors), axis=0)
    bound = (1 + kl * jnp.max(sizes[:kl], initial=0)) * jnp.max(sizes[kl:])

    def precisely() -> jax.Array:
        lower, upper = jnp.abs(factors[:n, :kl]), jnp.abs(factors[:n, kl:])
        size = jnp.max(upper, 1)

        def add(d: jax.Array, total: jax.Array) -> jax.Array:
            multipliers = lax.dynamic_index_in_dim(lower, kl - d if by_rows else d - 1, 1, keepdims=False)
            return total + (multipliers * _moved(size, d, kl) if by_rows else _moved(multipliers * size, d, kl))

        # Without subdiagonals there are no multipliers to trace the loop with.
        return jnp.max(lax.fori_loop(1, kl + 1, add, size) if kl else size) <= limit

    # The bound by the largest multiplier is cheaper, and usually sufficient.
    result: jax.Array = jnp.all(factors[:n, kl] != 0) & lax.cond(bound <= limit, lambda: jnp.array(True), precisely)
    return result


def _moved(a: jax.Array, d: jax.Array, most: int) -> jax.Array:
    """Move a vector down by a dynamic number of rows up to a static one, and fill with zeros."""
    return lax.dynamic_slice_in_dim(jnp.pad(a, (most, 0)), most - d, a.shape[0], allow_negative_indices=False)


def substitute(
    factors: jax.Array,
    kl: int,
    ku: int,
    b: jax.Array,
    transposed: bool,
    by_rows: bool,
    count: int | jax.Array | None = None,
) -> jax.Array:
    """Solve ``L U x = b``, or its transpose, with the factors of `eliminate`, whose multipliers are stored by rows or
    by columns. Loops by rows take `count` steps, by default all: zero if the solution is not needed.
    """
    down, up = tuple(range(-kl, 0)), tuple(range(1, ku + 1))
    diagonal = factors[: b.shape[0], kl]
    if transposed:
        y = banded_rows.substitute_by_columns(factors, up, b, diagonal, first=kl + 1)
        if by_rows:
            return banded_rows.substitute_by_columns(factors, down, y)
        return banded_rows.substitute(factors, tuple(range(1, kl + 1)), y, count=count)
    if by_rows:
        y = banded_rows.substitute(factors, down, b, count=count)
    else:
        y = banded_rows.substitute_by_columns(factors, tuple(range(1, kl + 1)), b)
    return banded_rows.substitute(factors, up, y, diagonal, first=kl + 1, count=count)


def substitute_upper(upper: jax.Array, y: jax.Array) -> jax.Array:
    """Solve ``U x = y``; row j of `upper` begins at the diagonal."""
    return banded_rows.substitute(upper, tuple(range(1, upper.shape[1])), y, upper[:, 0], first=1)


def multipliers_by_columns(factors: jax.Array, kl: int, ku: int) -> jax.Array:
    """The multipliers of `eliminate`, (n, kl), grouped by column, nearest to the diagonal first."""
    if not kl or not banded_rows.is_narrow(ku, factors.dtype):
        return factors[:, :kl]
    return jnp.stack([banded_rows.shifted(factors[:, kl - k], -k) for k in range(1, kl + 1)], 1)


def eliminate_pivoted(
    top: jax.Array, rows: jax.Array, kl: int, ku: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Eliminate with partial pivoting, including the right-hand sides.

    Parameters
    ----------
    top : jax.Array, (kl, kl + ku + 1 + k)
        The first rows, with k right-hand sides appended.
    rows : jax.Array, (n, kl + ku + 1 + k)
        The other rows, followed by kl rows of zeros.

    Returns
    -------
    upper : jax.Array, (n, kl + ku + 1)
        Row j of U from its diagonal on.
    y : jax.Array, (n, k)
        The right-hand sides; ``U x = y``.
    multipliers : jax.Array, (n, kl)
    pivots : jax.Array of int, (n,)
        The row of the window that became row j: 0 if there is no exchange.
    """
    width = kl + ku + 1
    # The window contains rows j ... j + kl - 1 from column j on, and their right-hand sides.
    window = jnp.concatenate([banded_rows.skewed(top[:, :width], left=True), top[:, width:]], 1)
    index = jnp.arange(kl + 1)[:, None]

    def step(window: jax.Array, row: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array, jax.Array]]:
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

    _, (reduced, multipliers, pivots) = lax.scan(step, window, rows)
    return reduced[:, :width], reduced[:, width:], multipliers, pivots


def apart(rows: jax.Array, kl: int) -> tuple[jax.Array, jax.Array]:
    """Split the rows of a matrix into the arguments of `eliminate_pivoted`."""
    return rows[:kl], jnp.pad(rows[kl:], ((0, kl), (0, 0)))


def logdet_gradient(factors: jax.Array, n: int, kl: int, ku: int) -> jax.Array:
    """Derivative of log det A by the entries of A, in row storage: entry (i, j) is ``inv(A)[j, i]``.

    Uses the factors of `eliminate`, with the same number of rows. With the inverse Z and ``A = L D U`` with unit
    triangular factors, ``Z = D^{-1} L^{-1} + (I - U) Z`` and ``Z = U^{-1} D^{-1} + Z (I - L)``. These give row and
    column j of Z near the diagonal from the elements near the diagonal that come after j (K. Takahashi, J. Fagan and
    M.-S. Chin, "Formation of a sparse bus impedance matrix and its application to short circuit study", 8th PICA
    Conference, 1973). O(n kl ku) operations.
    """
    narrow = ku * factors.dtype.itemsize <= _GRADIENT_BYTES
    return _gradient_by_pairs(factors, n, kl, ku) if narrow else _gradient_by_windows(factors, n, kl, ku)


def _gradient_by_pairs(factors: jax.Array, n: int, kl: int, ku: int) -> jax.Array:
    """Loop over the rows and the rows below; G, the transpose of Z, is written once, to its final position."""
    width = factors.shape[1]
    flat_factors = factors.reshape(-1)

    def eliminate(t: jax.Array, flat: jax.Array) -> jax.Array:
        j = n - 1 - t
        row = j * width + kl + 1  # the first entry right of the diagonal in row j

        # G[j, j + m] -= L[j + b, j] G[j + b, j + m] for m from 1 to ku
        def subtract(b: jax.Array, flat: jax.Array) -> jax.Array:
            at = (j + b) * width + kl - b
            own, other = banded_rows.take(flat, row, ku), banded_rows.take(flat, at + 1, ku)
            return banded_rows.put(flat, own - banded_rows.take(flat_factors, at, 1) * other, row)

        # U[j, j] G[j + b, j] = (b == 0) - sum_m U[j, j + m] G[j + b, j + m]
        def multiply(b: jax.Array, flat: jax.Array) -> jax.Array:
            at = (j + b) * width + kl - b
            upper, other = banded_rows.take(flat_factors, row, ku), banded_rows.take(flat, at + 1, ku)
            new = (b == 0) - jnp.sum(upper * other, keepdims=True)
            return banded_rows.put(flat, new / banded_rows.take(flat_factors, row - 1, 1), at)

        result: jax.Array = lax.fori_loop(0, kl + 1, multiply, lax.fori_loop(1, kl + 1, subtract, flat))
        return result

    flat: jax.Array = lax.fori_loop(0, n, eliminate, jnp.zeros_like(flat_factors))
    return flat.reshape(factors.shape)


def _gradient_by_windows(factors: jax.Array, n: int, kl: int, ku: int) -> jax.Array:
    """Loop over the rows, with a window of the elements of Z next to the diagonal."""
    below, factors = factors.shape[0] - n, factors[:n]
    reciprocals = 1 / factors[:, kl]
    lower = multipliers_by_columns(factors, kl, ku)
    upper = factors[:, kl + 1 :] * reciprocals[:, None]

    def step(window: jax.Array, row: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
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
    # Entry (j + d, j) is Z[j, j + d], which belongs to row j.
    left = banded_rows.skewed(around[:, :kl].T, left=False).T
    return jnp.pad(jnp.concatenate([left, around[:, kl:]], 1), ((0, below), (0, 0)))


def logdet_gradient_pivoted(upper: jax.Array, multipliers: jax.Array, pivots: jax.Array, kl: int) -> jax.Array:
    """Derivative of log det A from the results of `eliminate_pivoted`.

    The elimination is reversed: ``new = others - multipliers * pivot_row`` is undone row by row. This takes O(n kl (kl
    + ku)) operations and the memory of the factors.
    """
    n, width = upper.shape
    index = jnp.arange(kl + 1)[:, None]

    def step(new: jax.Array, factors: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        # `new` is the derivative by the window after the elimination of column j.
        pivot_row, multipliers, p = factors
        others = jnp.concatenate([jnp.zeros((kl, 1), upper.dtype), new[:, : width - 1]], 1)
        by_multiplier = -(others @ pivot_row)
        others = others.at[:, 0].set(by_multiplier / pivot_row[0])
        by_pivot_row = -(multipliers @ new[:, : width - 1])
        by_pivot = (1 - by_multiplier @ multipliers) / pivot_row[0]
        by_pivot_row = jnp.concatenate([by_pivot[None], by_pivot_row])
        # Undo the exchange of rows 0 and p.
        window = jnp.concatenate([by_pivot_row[None], others])
        top = lax.dynamic_index_in_dim(window, p, 0, keepdims=False)
        window = jnp.where(index == p, by_pivot_row, window)
        window = jnp.concatenate([top[None], window[1:]])
        return window[:-1], window[-1]

    zero = jnp.zeros((kl, width), upper.dtype)
    window, incoming = lax.scan(step, zero, (upper, multipliers, pivots), reverse=True)
    # Row i of the initial window is shifted: it begins with column 0.
    return jnp.concatenate([banded_rows.skewed(window, left=False), incoming])[:n]


def factor_rows(rows: jax.Array, kl: int, ku: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Factor one matrix: without pivoting, which is several times faster, if that is stable.

    The results ``upper``, ``multipliers`` and ``pivots`` have the layout of `banded_factors`.
    """

    def pivoted() -> tuple[jax.Array, jax.Array, jax.Array]:
        upper, _, multipliers, pivots = eliminate_pivoted(*apart(rows, kl), kl, ku)
        return upper, multipliers, pivots.astype(jnp.int32)

    n = rows.shape[0]
    factors, stable = eliminate(jnp.pad(rows, ((0, kl), (0, 0))), kl, ku, jnp.max(jnp.abs(rows)))
    factors = factors[:n]

    def unpivoted() -> tuple[jax.Array, jax.Array, jax.Array]:
        upper = jnp.pad(factors[:, kl:], ((0, 0), (0, kl)))
        return upper, multipliers_by_columns(factors, kl, ku), jnp.zeros(n, jnp.int32)

    results: tuple[jax.Array, jax.Array, jax.Array] = lax.cond(stable, unpivoted, pivoted)
    return results


def solve_by_factors(
    upper: jax.Array, multipliers: jax.Array, pivots: jax.Array, b: jax.Array, transposed: bool
) -> tuple[jax.Array, jax.Array]:
    """Solve one linear system by the results of `factor_rows`; also return whether no pivot is zero."""
    ok = ~jnp.any(upper[:, 0] == 0)
    if transposed:
        right = tuple(range(1, upper.shape[1]))
        x = banded_rows.substitute_by_columns(upper, right, b, upper[:, 0], first=1)
        x = up(multipliers, pivots, x, transposed)
    else:
        x = substitute_upper(upper, down(multipliers, pivots, b, transposed))
    return jnp.where(ok, x, jnp.nan), ok


def exchanged(window: jax.Array, p: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Exchange rows 0 and p of a window; return the former row p separately."""
    index = jnp.arange(window.shape[0])[:, None]
    return lax.dynamic_index_in_dim(window, p, 0, keepdims=False), jnp.where(index == p, window[0], window)[1:]


def down(multipliers: jax.Array, pivots: jax.Array, b: jax.Array, transposed: bool) -> jax.Array:
    """Apply ``(P_0 L_0 …)^-1`` or (`transposed`) ``(P_0 L_0 …)^T`` to b, from the first column to the last."""
    kl = multipliers.shape[1]
    if kl == 0:
        return b
    zeros = jnp.zeros((kl, b.shape[1]), b.dtype)

    def step(window: jax.Array, factors: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        row, m, p = factors
        row, others = exchanged(jnp.concatenate([window, row[None]]), p)
        return (others, row + m @ others) if transposed else (others - m[:, None] * row, row)

    return lax.scan(step, b[:kl], (jnp.concatenate([b[kl:], zeros]), multipliers, pivots))[1]


def up(multipliers: jax.Array, pivots: jax.Array, y: jax.Array, transposed: bool) -> jax.Array:
    """Apply ``P_0 L_0 …`` or (`transposed`) ``(P_0 L_0 …)^-T`` to y, from the last column to the first."""
    kl = multipliers.shape[1]
    if kl == 0:
        return y
    index = jnp.arange(kl + 1)[:, None]

    def step(others: jax.Array, factors: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        row, m, p = factors
        if transposed:
            row = row - m @ others
        else:
            others = others + m[:, None] * row
        window = jnp.concatenate([row[None], others])
        top = lax.dynamic_index_in_dim(window, p, 0, keepdims=False)
        window = jnp.concatenate([top[None], jnp.where(index == p, row, window)[1:]])
        return window[:-1], window[-1]

    zeros = jnp.zeros((kl, y.shape[1]), y.dtype)
    first, rest = lax.scan(step, zeros, (y, multipliers, pivots), reverse=True)
    return jnp.concatenate([first, rest])[: y.shape[0]]
