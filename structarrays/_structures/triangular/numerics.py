"""Products with triangles of matrices, in which structural zeros absorb NaN and infinity.

The matrices are cut into blocks of rows and columns. Blocks inside the triangle are multiplied as dense blocks, blocks
outside are skipped: half of the multiplications of the dense product, and no copy of the matrix with zeros. A block on
the diagonal is half structural zeros, which are written out. ``0 * NaN`` is corrected in a branch that runs only if the
other factor has an element that is not finite.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import lax

from ..._numerics import packed_triangles as triangles
from ..._numerics.absorbing import absorbing_product
from ..._numerics.symbolic import is_symbolic

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from jax import Array

    Interval: TypeAlias = tuple[int, int]

_BLOCKS = 8
_SMALLEST = 128


def matmul(a: Array, b: Array, side_a: bool | None, side_b: bool | None = None) -> Array:
    """Multiply two matrices of which triangles are read.

    Parameters
    ----------
    a : Array, (..., m, k)
    b : Array, (..., k, n)
        The batch shapes broadcast.
    side_a, side_b : bool or None
        Which triangle is read: True for the lower one, False for the upper one, None for the whole matrix.

    Returns
    -------
    Array, (..., m, n)
        If both are triangles of the same side, only that triangle is computed; the rest is zero.
    """
    if side_a is not None and side_b is not None:
        return _two_triangles(a, b, side_a, side_b)
    (m, k), n = a.shape[-2:], b.shape[-1]
    size = _block_size(m, k)
    rows = _cuts(m, m if side_a is None else size)
    columns = _cuts(n, n if side_b is None else size)
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    plain: dict[tuple[Interval, Interval], Interval] = {}
    masked: dict[tuple[Interval, Interval], list[Interval]] = {}
    for r in rows:
        full_a, edge_a = _parts(side_a, r[0], size, k)
        for c in columns:
            full_b, edge_b = _parts(None if side_b is None else not side_b, c[0], size, k)
            plain[r, c] = _intersection(full_a, full_b)
            edges = dict.fromkeys(e for e in (edge_a, edge_b) if e[0] < e[1])
            # An edge counts if the other factor is full or has an edge itself.
            masked[r, c] = [e for e in edges if _covers(full_a, edge_a, e) and _covers(full_b, edge_b, e)]
    corrections = iter(_edges(a, b, side_a, side_b, masked))
    lines = []
    for r in rows:
        line = []
        for c in columns:
            start, stop = plain[r, c]
            terms = [next(corrections) for _ in masked[r, c]]
            if start < stop:
                terms.append(a[..., r[0] : r[1], start:stop] @ b[..., start:stop, c[0] : c[1]])
            block = sum(terms[1:], terms[0]) if terms else jnp.zeros((), a.dtype)
            line.append(jnp.broadcast_to(block, (*batch, r[1] - r[0], c[1] - c[0])))
        lines.append(jnp.concatenate(line, axis=-1))
    return jnp.concatenate(lines, axis=-2)


def _two_triangles(a: Array, b: Array, side_a: bool, side_b: bool) -> Array:
    """Multiply two triangles, with few products, since the number of operations determines the compilation time."""
    if not jnp.issubdtype(a.dtype, jnp.inexact):
        return _strips(a, b, side_a, side_b)
    finite = jnp.all(jnp.isfinite(triangles.triangle(a, side_a))) & jnp.all(jnp.isfinite(triangles.triangle(b, side_b)))
    product: Array = lax.cond(
        finite, lambda: _strips(a, b, side_a, side_b), lambda: _absorbing_product(a, b, side_a, side_b)
    )
    return product


def _strips(a: Array, b: Array, side_a: bool, side_b: bool) -> Array:
    """Multiply blocks of rows and blocks of columns, each without the part outside the triangle."""
    m, n = a.shape[-2], b.shape[-1]
    size = _block_size(*a.shape[-2:], n)
    columns = _cuts(n, size)
    right = [_strip(b[..., :, c[0] : c[1]].mT, not side_b, c) for c in columns]
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    lines = []
    for r in _cuts(m, size):
        x, at_x = _strip(a[..., r[0] : r[1], :], side_a, r)
        line = []
        for c, (y, at_y) in zip(columns, right, strict=True):
            start, stop = max(at_x, at_y), min(at_x + x.shape[-1], at_y + y.shape[-1])
            if start < stop:
                block = x[..., start - at_x : stop - at_x] @ y[..., start - at_y : stop - at_y].mT
            else:
                block = jnp.zeros((), a.dtype)
            line.append(jnp.broadcast_to(block, (*batch, r[1] - r[0], c[1] - c[0])))
        lines.append(jnp.concatenate(line, axis=-1))
    return jnp.concatenate(lines, axis=-2)


def _strip(x: Array, side: bool, rows: Interval) -> tuple[Array, int]:
    """Return what is read of some rows of a matrix, with zeros next to the diagonal, and the first column of it."""
    k = x.shape[-1]
    start, stop = (0, min(rows[1], k)) if side else (min(rows[0], k), k)
    return triangles.triangle(x[..., start:stop], side, 0, rows[0] - start), start


def _absorbing_product(a: Array, b: Array, side_a: bool, side_b: bool) -> Array:
    """Do the same if structural zeros meet NaN or infinity: block after block, in a loop that compiles one of them."""
    m, n = a.shape[-2], b.shape[-1]
    if is_symbolic(m * n):
        return absorbing_matmul(a, triangles.mask(a.shape, side_a), b, triangles.mask(b.shape, side_b))
    size = _block_size(m, n)
    rows, columns = max(1, -(-m // size)), max(1, -(-n // size))
    a = jnp.pad(a, [(0, 0)] * (a.ndim - 2) + [(0, rows * size - m), (0, 0)])
    b = jnp.pad(b, [(0, 0)] * (b.ndim - 1) + [(0, columns * size - n)])

    def block(which: Array) -> Array:
        i, j = which // columns * size, which % columns * size
        x, y = lax.dynamic_slice_in_dim(a, i, size, -2), lax.dynamic_slice_in_dim(b, j, size, -1)
        return absorbing_matmul(x, triangles.mask(x.shape, side_a, i), y, triangles.mask(y.shape, side_b, -j))

    blocks = lax.map(block, jnp.arange(rows * columns))
    blocks = jnp.moveaxis(blocks.reshape(rows, columns, *blocks.shape[1:]), (0, 1), (-4, -2))
    return blocks.reshape(*blocks.shape[:-4], rows * size, columns * size)[..., :m, :n]


def matmul_banded(a: Array, lower: bool, diagonals: Sequence[Array], offsets: Sequence[int], columns: int) -> Array:
    """Multiply a triangle and a banded matrix: each diagonal scales and shifts columns.

    Parameters
    ----------
    a : Array, (..., m, k)
        The lower (or upper) triangle is read.
    lower : bool
    diagonals, offsets
        The banded matrix (k, `columns`), as in `bands`.
    columns : int

    Returns
    -------
    Array, (..., m, columns)
    """
    inside = triangles.mask(a.shape, lower)
    total = jnp.zeros((*a.shape[:-1], columns), a.dtype)
    for d, k in zip(diagonals, offsets, strict=True):
        row, column, length = max(0, -k), max(0, k), d.shape[-1]
        read = inside[:, row : row + length]
        scaled = jnp.where(read, a[..., row : row + length], 0) * d[..., None, :]
        scaled = jnp.where(read, scaled, 0)  # again, since d may not be finite
        widths = [(0, 0)] * (scaled.ndim - 1) + [(column, columns - column - length)]
        total = total + jnp.pad(scaled, widths)
    return total


def _block_size(*lengths: int) -> int:
    if any(map(is_symbolic, lengths)):
        return functools.reduce(jax.core.max_dim, lengths)  # one block
    return max(_SMALLEST, -(-max(lengths) // _BLOCKS))


def _cuts(n: int, size: int) -> list[Interval]:
    """Divide ``0, …, n`` into intervals of at most `size`; at least one, which may be empty, and one if sizes are symbolic."""
    if is_symbolic(n) or is_symbolic(size):
        return [(0, n)]
    return [(s, min(s + size, n)) for s in range(0, n, max(1, size))] or [(0, 0)]


def _parts(side: bool | None, first: int, size: int, k: int) -> tuple[Interval, Interval]:
    """Return the intervals of the contracted axis where a block of rows is full, and where the diagonal crosses it.

    The intervals end at block boundaries, so that the intervals of both factors are equal or disjoint.
    """
    start, stop = min(first, k), min(first + size, k)
    if side is None:
        return (0, k), (0, 0)
    return ((0, start) if side else (stop, k)), (start, stop)


def _intersection(one: Interval, other: Interval) -> Interval:
    return max(one[0], other[0]), min(one[1], other[1])


def _covers(full: Interval, edge: Interval, interval: Interval) -> bool:
    return interval == edge or (full[0] <= interval[0] and interval[1] <= full[1])


def _edges(
    a: Array,
    b: Array,
    side_a: bool | None,
    side_b: bool | None,
    masked: dict[tuple[Interval, Interval], list[Interval]],
) -> tuple[Array, ...]:
    """Return the products of blocks that the diagonal crosses."""
    pairs = []
    for (r, c), edges in masked.items():
        for start, stop in edges:
            block_a, block_b = a[..., r[0] : r[1], start:stop], b[..., start:stop, c[0] : c[1]]
            mask_a = _crossed(side_a, r, (start, stop))
            mask_b = _crossed(side_b, (start, stop), c)
            pairs.append((block_a, mask_a, block_b, mask_b))
    if not pairs:
        return ()

    def simple() -> tuple[Array, ...]:
        return tuple(_select(x, p) @ _select(y, q) for x, p, y, q in pairs)

    if not jnp.issubdtype(a.dtype, jnp.inexact):
        return simple()
    finite = jnp.array(True)
    for x, p, y, q in pairs:  # structural zeros of one factor meet entries of the other
        finite &= True if q is None else jnp.all(jnp.isfinite(_select(x, p)))
        finite &= True if p is None else jnp.all(jnp.isfinite(_select(y, q)))
    products: tuple[Array, ...] = lax.cond(finite, simple, lambda: tuple(absorbing_matmul(*pair) for pair in pairs))
    return products


def _crossed(side: bool | None, rows: Interval, columns: Interval) -> Array | None:
    """Return the triangle within a block as a mask; None if the whole block is read."""
    if side is None or rows != columns and (rows[0] >= columns[1] or rows[1] <= columns[0]):
        return None
    shape = (rows[1] - rows[0], columns[1] - columns[0])
    return triangles.mask(shape, side, rows[0] - columns[0])


def _select(x: Array, mask: Array | None) -> Array:
    return x if mask is None else jnp.where(mask, x, 0)


def absorbing_matmul(a: Array, mask_a: Array | None, b: Array, mask_b: Array | None) -> Array:
    """Multiply matrices with structural zeros outside masks (None: no zeros); these zeros absorb NaN and infinity."""
    stored = (jnp.broadcast_to(True if m is None else m, x.shape) for x, m in ((a, mask_a), (b, mask_b)))
    return absorbing_product(jnp.matmul, _select(a, mask_a), next(stored), _select(b, mask_b), next(stored))
