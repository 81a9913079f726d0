"""LDL^H and Cholesky factorization of one Hermitian positive definite banded matrix.

Columns from the diagonal down are the storage, ``columns[j, k] = A[j + k, j]`` for k from 0 to w, with a column of zeros behind the
last one: (n + 1, w + 1). `narrow_definite` is faster for one or two diagonals on each side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import lax

from . import banded_rows, bands, cyclic_reduction

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import jax

    from .._core.typing import DTypeLike

# Up to this bandwidth, XLA compiles a loop over two columns at a time to a native loop (see `banded_rows`). It is a
# fifth faster, since each updated column is read and written once.
_TWO_COLUMNS_BYTES = 56


def from_diagonals(diagonals: Iterable[jax.Array], offsets: Collection[int], n: int, dtype: DTypeLike) -> jax.Array:
    """Convert diagonals of the lower triangle (offsets <= 0) to column storage; the imaginary part of the diagonal is
    dropped.
    """
    diagonals = [d if k else d.real.astype(dtype) for d, k in zip(diagonals, offsets, strict=True)]
    # The columns of a matrix are the rows of its transpose.
    matrix = bands.transpose(diagonals, tuple(offsets))
    return banded_rows.from_diagonals(*matrix, n, dtype, count=n + 1)


def ldl(columns: jax.Array, w: int) -> jax.Array:
    """Factor ``A = L D L^H`` with unit lower triangular L.

    Returns ``columns`` of ``L D``, in the same storage: the pivots, D, are its first entries.
    """
    if w == 0:
        return columns
    if not cyclic_reduction.has_accelerator():
        return _ldl_in_place(columns)
    result: jax.Array = lax.platform_dependent(columns, cpu=_ldl_in_place, default=_ldl_by_columns)
    return result


def _ldl_in_place(columns: jax.Array) -> jax.Array:
    """Each column subtracts its multiples from the next columns, one after the other, in nested loops that become one
    native loop; see `banded_rows`.
    """
    rows, width = columns.shape
    if width * columns.dtype.itemsize <= _TWO_COLUMNS_BYTES:
        return _ldl_by_two_columns(columns)
    count, size = banded_rows.pieces(width - 1, columns.dtype)

    def eliminate(j: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        flat, column = state
        column = banded_rows.copied(flat, column, j * width, width)
        # The reciprocals of the largest numbers are subnormal, which XLA replaces by zero. A factor of four avoids
        # this.
        reciprocal = 4 / column[0].real

        def piece(c: jax.Array, flat: jax.Array) -> jax.Array:
            first = c * size

            # A[j + k + m, j + k] -= A[j + k + m, j] conj(A[j + k, j]) / A[j, j] for `size` of m from `first` on
            def subtract(k: jax.Array, flat: jax.Array) -> jax.Array:
                at = (j + k) * width + first
                factor = banded_rows.take(column, k, 1).conj() * 0.25 * reciprocal
                new = banded_rows.take(flat, at, size) - factor * banded_rows.take(column, k + first, size)
                return banded_rows.put(flat, new, at)

            # Limited by the band and the matrix.
            result: jax.Array = lax.fori_loop(1, jnp.minimum(width - first, rows - 1 - j), subtract, flat)
            return result

        return lax.fori_loop(0, count, piece, flat), column

    column = jnp.zeros(width + count * size, columns.dtype)
    result: jax.Array = lax.fori_loop(0, rows - 2, eliminate, (columns.reshape(-1), column))[0].reshape(columns.shape)
    return result


def _ldl_by_two_columns(columns: jax.Array) -> jax.Array:
    """`_ldl_in_place` for column j and the next one together."""
    rows, width = columns.shape
    size = width - 1
    take = banded_rows.take

    def eliminate(
        t: jax.Array, state: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        flat, one, two = state
        j = 2 * t
        one = banded_rows.copied(flat, one, j * width, width)
        at = (j + 1) * width
        flat = banded_rows.put(flat, take(flat, at, size) - one[1].conj() / one[0].real * take(one, 1, size), at)
        two = banded_rows.copied(flat, two, at, width)

        def subtract(k: jax.Array, flat: jax.Array) -> jax.Array:
            at = (j + k) * width
            new = take(flat, at, size) - take(one, k, 1).conj() / one[0].real * take(one, k, size)
            new = new - take(two, k - 1, 1).conj() / two[0].real * take(two, k - 1, size)
            return banded_rows.put(flat, new, at)

        return lax.fori_loop(2, jnp.minimum(width + 1, rows - 1 - j), subtract, flat), one, two

    column = jnp.zeros(width + 1 + size, columns.dtype)
    state = columns.reshape(-1), column, column
    result: jax.Array = lax.fori_loop(0, (rows - 1) // 2, eliminate, state)[0].reshape(columns.shape)
    return result


def _ldl_by_columns(columns: jax.Array) -> jax.Array:
    """LDL^H in fewer steps, for other devices: a loop over the columns with a dense window of the next columns."""
    w = columns.shape[1] - 1

    def step(correction: jax.Array, column: jax.Array) -> tuple[jax.Array, jax.Array]:
        # correction[b, a] is what earlier columns added to entry (j + a, j + b)
        column = correction[0] + column
        below = column[1:]
        update = (below.conj() / column[0])[:, None] * below
        return jnp.pad(correction[1:, 1:] - update, ((0, 1), (0, 1))), column

    return lax.scan(step, jnp.zeros((w + 1, w + 1), columns.dtype), columns)[1]


def substitute(factors: jax.Array, b: jax.Array, w: int) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b``, b (n, k), with the factors of `ldl`. Also return whether all pivots are positive; x is NaN if
    not.
    """
    pivots, below = factors[: b.shape[0], 0], tuple(range(1, w + 1))
    ok = ~jnp.any(pivots.real <= 0)
    # A = (L D) D^-1 (L D)^H: the first solution is inv(D) inv(L) b.
    y = banded_rows.substitute_by_columns(factors, below, b, pivots, first=1)
    x = banded_rows.substitute((factors[: b.shape[0], 1 : w + 1] / pivots[:, None]).conj(), below, y)
    return jnp.where(ok, x, jnp.nan), ok


def cholesky(columns: jax.Array, n: int, w: int) -> tuple[jax.Array, jax.Array]:
    """Return the columns (n, w + 1) of the lower Cholesky factor, and whether all pivots are positive; NaN if not."""
    factors = ldl(columns, w)[:n, : w + 1]
    pivots = factors[:, :1].real
    ok = ~jnp.any(pivots <= 0)
    return jnp.where(ok, factors / jnp.sqrt(pivots), jnp.nan), ok


def change_of_factor(factor: Sequence[jax.Array], change: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
    """Diagonals of dL for ``A = L L^H``, given the diagonals of L and dA from the main diagonal down, (..., n - k)."""
    n = factor[0].shape[-1]
    columns = (
        jnp.stack([jnp.pad(d, [(0, 0)] * (d.ndim - 1) + [(0, k)]) for k, d in enumerate(part)], -1)
        for part in (factor, change)
    )
    changed = jnp.vectorize(cholesky_tangent, signature="(n,w),(n,w)->(n,w)")(*columns)
    return tuple(changed[..., : n - k, k] for k in range(len(factor)))


def cholesky_tangent(factor: jax.Array, tangent: jax.Array) -> jax.Array:
    """Columns of dL for ``A = L L^H``, given the columns of L and dA.

    Computed column by column from ``dA = dL L^H + L dL^H``. The loop is linear in dA and keeps only L for its
    transpose.
    """
    w = factor.shape[1] - 1

    def step(correction: jax.Array, columns: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        # correction[a, b]: the contribution of the earlier columns of L and dL to dA[j + a, j + b]
        l, d = columns
        d = d - jnp.append(correction[:, 0], jnp.zeros(1, d.dtype)) if w else d
        d0 = d[:1].real / (2 * l[:1].real)
        below = (d[1:] - l[1:] * d0) / l[0]
        update = below[:, None] * l[1:].conj() + l[1:, None] * below.conj()
        correction = jnp.pad(correction[1:, 1:], ((0, 1), (0, 1))) + update if w else correction
        return correction, jnp.concatenate([d0.astype(d.dtype), below])

    return lax.scan(step, jnp.zeros((w, w), factor.dtype), (factor, tangent))[1]
