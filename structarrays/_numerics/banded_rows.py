"""Row storage of banded matrices, and substitution.

Algorithms that process a matrix from top to bottom store it by rows: ``rows[i, c] = A[i, i - kl + c]``, zero if the
column is outside of the matrix, for the ``kl`` subdiagonals, the diagonal and the ``ku`` superdiagonals.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jax import lax

from . import bands
from .flags import custom_jvp
from .symbolic import is_symbolic

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax

    from .._core.typing import DTypeLike, Shape

# XLA compiles a loop to native code if an iteration (of an inner loop) touches about 1 KB. So rows are split into
# pieces. These are the sizes in bytes that were native for all bandwidths and dtypes: a row from the diagonal on that
# is copied and subtracted as a whole; the part that is subtracted at a time, plus two entries, if it is a whole row;
# its pieces otherwise; and the pieces of a copy.
NATIVE_BYTES = 104
WHOLE_BYTES = 168
PIECE_BYTES = 64
COPY_BYTES = 24

# Diagonals are stored in place, this many at a time: fewer passes are faster. XLA of JAX 0.12 does not fuse a
# concatenation of eight or more parts, and would store every diagonal twice. It merges two parts that fill the storage.
# So more diagonals than this are stored in at least three parts.
_TOGETHER = 7


# More diagonals than this are stored by a loop: one expression per diagonal increases the compilation time.
FEW = 32


def is_narrow(w: int, dtype: DTypeLike) -> bool:
    """Return whether a matrix with w diagonals on that side is eliminated by pairs of rows; otherwise column by column."""
    return (w + 1) * jnp.dtype(dtype).itemsize <= NATIVE_BYTES


def bandwidths(offsets: Sequence[int]) -> tuple[int, int]:
    """Numbers of sub- and superdiagonals."""
    return max(0, -min(offsets, default=0)), max(0, max(offsets, default=0))


def nonempty(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int
) -> tuple[tuple[jax.Array, ...], tuple[int, ...]]:
    """Drop diagonals that lie outside of the matrix."""
    pairs = [(d, k) for d, k in zip(diagonals, offsets, strict=True) if -n < k < n]
    return tuple(d for d, _ in pairs), tuple(k for _, k in pairs)


def from_diagonals(
    diagonals: Sequence[jax.Array],
    offsets: Sequence[int],
    n: int,
    dtype: DTypeLike,
    first: int = 0,
    count: int | None = None,
    extra_columns: int = 0,
) -> jax.Array:
    """Row storage ``(..., count, kl + ku + 1 + extra_columns)`` of a square matrix with diagonals ``(..., n - |offset|)``.

    It begins with row `first`, and has n rows by default. Rows below the matrix, and the `extra_columns` additional columns,
    are zero.
    """
    return _from_diagonals(tuple(offsets), first, n if count is None else count, extra_columns, dtype, tuple(diagonals))


@functools.partial(custom_jvp, nondiff_argnums=(0, 1, 2, 3, 4))
def _from_diagonals(
    offsets: tuple[int, ...],
    first: int,
    count: int,
    extra_columns: int,
    dtype: DTypeLike,
    diagonals: tuple[jax.Array, ...],
) -> jax.Array:
    if len(offsets) > FEW:
        return _by_loop(offsets, first, count, extra_columns, dtype, diagonals)
    shape, columns = _columns(offsets, first, count, extra_columns, dtype, diagonals)
    rows = jnp.zeros(shape, dtype)
    most = _TOGETHER if len(columns) <= _TOGETHER else min(_TOGETHER, -(-len(columns) // 3))
    while columns:
        start = columns[0][0]
        together = [c for i, (at, c) in enumerate(columns[:most]) if at == start + i]
        rows = lax.dynamic_update_slice(rows, jnp.concatenate(together, -1), (*(0,) * (rows.ndim - 1), start))
        columns = columns[len(together) :]
    return rows


@_from_diagonals.defjvp
def _from_diagonals_jvp(
    offsets: tuple[int, ...],
    first: int,
    count: int,
    extra_columns: int,
    dtype: DTypeLike,
    primals: tuple[tuple[jax.Array, ...]],
    tangents: tuple[tuple[jax.Array, ...]],
) -> tuple[jax.Array, jax.Array]:
    """Differentiate all diagonals at once: the transpose consists of slices. The transpose of updates in place would
    copy everything each time.
    """
    at_once = _by_columns if len(offsets) <= FEW else _by_lines
    change = at_once(offsets, first, count, extra_columns, dtype, *tangents)
    return _from_diagonals(offsets, first, count, extra_columns, dtype, *primals), change


def _by_loop(
    offsets: Sequence[int], first: int, count: int, extra_columns: int, dtype: DTypeLike, diagonals: Sequence[jax.Array]
) -> jax.Array:
    """Transpose of an array whose rows are slices of one vector of all diagonals."""
    kl, ku = bandwidths(offsets)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    before = jnp.zeros((*batch, kl), dtype)
    whole = [jnp.broadcast_to(d, (*batch, *d.shape[-1:])).astype(dtype) for d in diagonals]
    entries = jnp.concatenate([before, *whole, jnp.zeros((*batch, first + count), dtype)], -1)
    # The start of each row among the entries, and its first and last nonzero position.
    lines = np.zeros((3, kl + ku + 1 + extra_columns), np.int32)
    end = kl
    for d, k in zip(diagonals, offsets, strict=True):
        start = max(0, -k) - first
        lines[:, kl + k] = end - start, start, start + d.shape[-1]
        end += d.shape[-1]
    place = lax.iota(jnp.int32, count)

    def line(_: None, numbers: tuple[jax.Array, ...]) -> tuple[None, jax.Array]:
        begin, start, stop = numbers
        part = lax.dynamic_slice_in_dim(entries, begin, count, -1, allow_negative_indices=False)
        return None, jnp.where((place >= start) & (place < stop), part, 0)

    return jnp.moveaxis(lax.scan(line, None, tuple(jnp.asarray(lines)))[1], 0, -1)


def _by_columns(
    offsets: Sequence[int], first: int, count: int, extra_columns: int, dtype: DTypeLike, diagonals: Sequence[jax.Array]
) -> jax.Array:
    """Concatenate the columns, with zeros between them."""
    shape, columns = _columns(offsets, first, count, extra_columns, dtype, diagonals)
    blocks, end = [], 0
    for at, column in columns:
        blocks += [jnp.zeros((*shape[:-1], at - end), dtype), column]
        end = at + 1
    blocks.append(jnp.zeros((*shape[:-1], shape[-1] - end), dtype))
    return jnp.concatenate([block for block in blocks if block.shape[-1]], -1)


def _by_lines(
    offsets: Sequence[int], first: int, count: int, extra_columns: int, dtype: DTypeLike, diagonals: Sequence[jax.Array]
) -> jax.Array:
    """Transpose of the concatenated diagonals, with zeros between them."""
    (*batch, _, width), pieces = _pieces(offsets, first, count, extra_columns, diagonals)
    parts, end = [], 0
    for at, start, d in pieces:
        position = at * count + start
        parts += [
            jnp.zeros((*batch, position - end), dtype),
            jnp.broadcast_to(d, (*batch, *d.shape[-1:])).astype(dtype),
        ]
        end = position + d.shape[-1]
    parts.append(jnp.zeros((*batch, width * count - end), dtype))
    flat = jnp.concatenate([part for part in parts if part.shape[-1]], -1) if width * count else parts[-1]
    return flat.reshape(*batch, width, count).mT


def _columns(
    offsets: Sequence[int], first: int, count: int, extra_columns: int, dtype: DTypeLike, diagonals: Sequence[jax.Array]
) -> tuple[Shape, list[tuple[int, jax.Array]]]:
    """The shape of the storage, and in order the position of each diagonal in it and its column (..., count, 1)."""
    shape, pieces = _pieces(offsets, first, count, extra_columns, diagonals)
    columns = []
    for at, start, d in pieces:
        d = jnp.broadcast_to(d, (*shape[:-2], *d.shape[-1:])).astype(dtype)
        columns.append((at, bands.pad_axis(d, start, count - start - d.shape[-1], -1)[..., None]))
    return shape, columns


def _pieces(
    offsets: Sequence[int], first: int, count: int, extra_columns: int, diagonals: Sequence[jax.Array]
) -> tuple[Shape, list[tuple[int, int, jax.Array]]]:
    """The shape of the storage, and in order the column of each diagonal in it, its first row there, and its entries in
    the storage.
    """
    kl, ku = bandwidths(offsets)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    pieces = []
    for d, k in sorted(zip(diagonals, offsets, strict=True), key=lambda pair: pair[1]):
        start = max(0, -k) - first
        d = d[..., max(0, -start) : max(0, count - start)]
        pieces.append((kl + k, min(count, max(0, start)), d))
    return (*batch, count, kl + ku + 1 + extra_columns), pieces


def aligned(diagonal: jax.Array, offset: int, n: int) -> jax.Array:
    """The diagonal at `offset`, padded with zeros, with entry ``A[i, i + offset]`` at position i of n."""
    before = max(0, -offset)
    return bands.pad_axis(diagonal, before, n - before - diagonal.shape[-1], -1)


def substitute(
    coefficients: jax.Array,
    offsets: Sequence[int],
    b: jax.Array,
    diagonal: jax.Array | None = None,
    first: int = 0,
    count: int | jax.Array | None = None,
) -> jax.Array:
    """Solve a triangular banded linear system by the rows of its matrix.

    ``x[i] = (b[i] - sum_m coefficients[i, first + m] x[i + offsets[m]]) / diagonal[i]``

    The recursion needs the previous rows of the solution. The last one or two are carried separately, so that no single row next to
    them is read from what is updated.

    Parameters
    ----------
    coefficients : jax.Array, (n or more, first + number of offsets or more)
    offsets : tuple of int
        Strictly increasing; all negative (from the first row down) or all positive (from the last row up).
    b : jax.Array, (n, k)
    diagonal : jax.Array, (n,), optional
        Default: ones.
    first : int
    count : int or jax.Array, optional
        The number of rows of the solution to compute. Default: all.
    """
    n, k = b.shape
    if not offsets:
        return b if diagonal is None else b / diagonal[:, None]
    down = offsets[0] < 0
    steps = n if count is None else count
    margin = -offsets[0] if down else 0  # rows of zeros before the rows of the solution
    sign = -1 if down else 1
    carried = [sign, 2 * sign] if 2 * sign in offsets and 3 * sign not in offsets else [sign]
    runs = _runs([d for d in offsets if d not in carried])
    if (is_symbolic(k) or k > 1) and any(size == 1 for _, size in runs):
        # XLA computes the product with a single row in the expression that updates `x`, and so copies all of `x` in every step. It does
        # not for one column.
        each = functools.partial(substitute, coefficients, offsets, diagonal=diagonal, first=first, count=count)
        found: jax.Array = lax.map(lambda column: each(column[:, None])[:, 0], b.T).T
        return found

    def step(t: jax.Array, state: tuple[jax.Array, tuple[jax.Array, ...]]) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        x, known = state
        i = t if down else n - 1 - t
        a = _rows(coefficients, i, 1)[0, first : first + len(offsets)]
        new = _rows(b, i, 1)[0]
        for offset, size in runs:
            m = offsets.index(offset)
            new = new - jnp.sum(a[m : m + size, None] * _rows(x, margin + i + offset, size), 0)
        for offset, row in list(zip(carried, known))[::-1]:
            if offset in offsets:
                new = new - a[offsets.index(offset)] * row
        if diagonal is not None:
            new = new / _rows(diagonal, i, 1)[0]
        x = lax.dynamic_update_slice_in_dim(x, new[None], margin + i, 0, allow_negative_indices=False)
        return x, (new, *known[:-1])

    x = jnp.zeros((n + max(map(abs, offsets)), k), b.dtype)
    result: jax.Array = lax.fori_loop(0, steps, step, (x, (x[0],) * len(carried)))[0][margin : margin + n]
    return result


def substitute_by_columns(
    coefficients: jax.Array, offsets: Sequence[int], b: jax.Array, diagonal: jax.Array | None = None, first: int = 0
) -> jax.Array:
    """Solve a triangular banded linear system by the columns of its matrix.

    ``x[i] = (b[i] - sum_m coefficients[i - offsets[m], first + m] x[i - offsets[m]]) / diagonal[i]``

    for consecutive offsets from 1 on (from the first row down) or to -1 (from the last row up). The contributions of
    the known rows to the next rows are carried.
    """
    n, k = b.shape
    if not offsets:
        return b if diagonal is None else b / diagonal[:, None]
    down = offsets[0] > 0
    zero = jnp.zeros((1, k), b.dtype)

    def step(known: jax.Array, row: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        i, y = row
        a = _rows(coefficients, i, 1)[0, first : first + len(offsets), None]
        x = y - known[0 if down else -1]
        if diagonal is not None:
            x = x / _rows(diagonal, i, 1)[0]
        known = jnp.concatenate([known[1:], zero] if down else [zero, known[:-1]])
        return known + a * x, x

    known = jnp.zeros((len(offsets), k), b.dtype)
    return lax.scan(step, known, (jnp.arange(n), b), reverse=not down)[1]


def pieces(length: int, dtype: DTypeLike) -> tuple[int, int]:
    """Number and size of the pieces of a row of `length` entries for a native loop."""
    size = jnp.dtype(dtype).itemsize
    count = 1 if (length + 2) * size <= WHOLE_BYTES else -(-length * size // PIECE_BYTES)
    return count, -(-length // count)


def copied(flat: jax.Array, row: jax.Array, start: int | jax.Array, length: int) -> jax.Array:
    """`row`, whose first entries are the entries of `flat` from `start` on.

    An elimination reads each row from this small array while it updates the others in `flat`. The barrier keeps the two
    apart. Otherwise XLA of JAX 0.12 reads `flat` itself, possibly after the update, and so copies all of `flat` in
    every step.
    """
    narrow = length * row.dtype.itemsize <= NATIVE_BYTES
    size = length if narrow else COPY_BYTES // row.dtype.itemsize

    def piece(c: jax.Array, row: jax.Array) -> jax.Array:
        # The last piece overlaps the previous one.
        first = jnp.minimum(c * size, length - size)
        return put(row, take(flat, start + first, size), first)

    result: jax.Array = lax.optimization_barrier(lax.fori_loop(0, -(-length // size), piece, row))
    return result


def take(a: jax.Array, start: int | jax.Array, size: int) -> jax.Array:
    """Slice a vector from a nonnegative `start` on."""
    return lax.dynamic_slice_in_dim(a, start, size, 0, allow_negative_indices=False)


def put(a: jax.Array, entries: jax.Array, start: int | jax.Array) -> jax.Array:
    """Replace the entries of a vector from a nonnegative `start` on."""
    return lax.dynamic_update_slice_in_dim(a, entries, start, 0, allow_negative_indices=False)


def shifted(a: jax.Array, d: int) -> jax.Array:
    """Move the rows down by d (up if d is negative), and fill with zeros."""
    n = a.shape[0]
    zeros = jnp.zeros((min(abs(d), n), *a.shape[1:]), a.dtype)
    return jnp.concatenate([zeros, a[: n - d]] if d >= 0 else [a[-d:], zeros])[:n]


def skewed(a: jax.Array, left: bool) -> jax.Array:
    """Move row i of the m rows by ``m - i`` to the left or right, and fill with zeros, in one expression for all rows."""
    m, width = a.shape
    if left:
        # row i begins at m - i, which is position m + i * (length - 1) of the flat array
        padded = jnp.pad(a, ((0, 0), (0, m + 1)))
        return padded.reshape(-1)[m : m + m * (width + m)].reshape(m, width + m)[:, :width]
    # row i begins at i, which is position i * (length + 1) of the flat array
    padded = jnp.pad(a, ((0, 0), (m, 0))).reshape(-1)
    return jnp.pad(padded, (0, m)).reshape(m, width + m + 1)[:, :width]


def _runs(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of the first and the number of consecutive offsets."""
    firsts = [d for d in offsets if d - 1 not in offsets]
    return [(d, next(i for i in range(1, len(offsets) + 1) if d + i not in offsets)) for d in firsts]


def _rows(a: jax.Array, start: int | jax.Array, count: int) -> jax.Array:
    return lax.dynamic_slice_in_dim(a, start, count, 0, allow_negative_indices=False)
