"""Products with triangles of matrices, in which structural zeros absorb NaN and infinity.

The triangles are cut into strips of rows, or of columns if the triangle is to the right of more than a few rows. A strip is multiplied
without its part outside the triangle, except for the structural zeros next to the diagonal, which are written out. ``0 * NaN`` is
corrected in a branch that runs only if the other factor has an element that is not finite.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from ..._numerics import packed_triangles as triangles
from ..._numerics.absorbing import absorbing_product
from ..._numerics.determinants import any_of_all
from ..._numerics.flags import custom_jvp
from ..._numerics.symbolic import is_symbolic
from ..._numerics.transposable import transposable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from jax import Array

    Interval: TypeAlias = tuple[int, int]

# The largest number of strips, for fewer than `_FEW` vectors and for matrices, and the smallest strip. More strips take longer to compile.
_STRIPS_FOR_VECTORS = 4
_FEW = 8
_STRIPS = 8
_SMALLEST = 256

# The rows and columns of a block in the loop for factors that are not finite.
_BLOCK = 128


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
    if not jnp.issubdtype(a.dtype, jnp.inexact):
        return _strips(a, b, side_a, side_b)
    if side_a is not None and side_b is not None:
        return _absorbing(a, b, side_a, side_b)
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if side_b is None:
        return _times_matrix(side_a, a, jnp.broadcast_to(b, (*batch, *b.shape[-2:])))
    return _matrix_times(side_b, jnp.broadcast_to(a, (*batch, *a.shape[-2:])), b)


# JAX can transpose these two products as functions of the matrix that is no triangle. Their derivatives are the derivatives of the branches.


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _times_matrix(side: bool | None, a: Array, b: Array) -> Array:
    def product(lines: Array) -> Array:
        return _absorbing(a, lines.mT, side, None).mT

    return transposable(product, lambda lines: _strips(lines, a, None, side), b.mT, a.shape[-2]).mT


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _matrix_times(side: bool | None, a: Array, b: Array) -> Array:
    def product(a: Array) -> Array:
        return _absorbing(a, b, None, side)

    return transposable(product, lambda y: _strips(b, y.mT, side, None).mT, a, b.shape[-1])


def _times_matrix_jvp(
    side: bool | None, primals: tuple[Array, Array], tangents: tuple[Any, Any]
) -> tuple[Array, Array]:
    return _tangent(lambda a, b: _absorbing(a, b, side, None), primals, tangents)


def _matrix_times_jvp(
    side: bool | None, primals: tuple[Array, Array], tangents: tuple[Any, Any]
) -> tuple[Array, Array]:
    return _tangent(lambda a, b: _absorbing(a, b, None, side), primals, tangents)


_times_matrix.defjvp(_times_matrix_jvp, symbolic_zeros=True)
_matrix_times.defjvp(_matrix_times_jvp, symbolic_zeros=True)


def _tangent(
    product: Callable[[Array, Array], Array], primals: tuple[Array, Array], tangents: tuple[Any, Any]
) -> tuple[Array, Array]:
    """The product and its tangent, where a factor that does not change has no tangent."""
    changing = [i for i, t in enumerate(tangents) if type(t) is not SymbolicZero]
    if not changing:
        value = product(*primals)
        return value, jnp.zeros_like(value)

    def of_changing(*values: Array) -> Array:
        factors = list(primals)
        for i, value in zip(changing, values, strict=True):
            factors[i] = value
        return product(*factors)

    result: tuple[Array, Array] = jax.jvp(of_changing, [primals[i] for i in changing], [tangents[i] for i in changing])
    return result


def _absorbing(a: Array, b: Array, side_a: bool | None, side_b: bool | None) -> Array:
    """Multiply floating-point matrices, where structural zeros absorb NaN and infinity."""
    finite = jnp.array(True)
    for x, side, other in ((a, side_a, side_b), (b, side_b, side_a)):
        if other is not None:  # structural zeros meet the entries of x
            finite &= jnp.all(jnp.isfinite(x if side is None else triangles.triangle(x, side)))

    def finite_part(x: Array, other: bool | None) -> Array:
        return x if other is None else jnp.where(finite, x, 0)

    # The product is outside of the branches, where XLA uses all threads. Zeros instead of NaN keep its derivatives finite.
    plain = _strips(finite_part(a, side_b), finite_part(b, side_a), side_a, side_b)
    # Reverse mode must not keep intermediate results of the branch that seldom runs.
    absorbing = jax.checkpoint(functools.partial(_absorbing_product, side_a=side_a, side_b=side_b))
    product: Array = lax.cond(
        any_of_all(~finite), lambda a, b, _: absorbing(a, b), lambda _, __, plain: plain, a, b, plain
    )
    return product


def _strips(a: Array, b: Array, side_a: bool | None, side_b: bool | None) -> Array:
    """Multiply strips of rows and strips of columns, each without the part outside the triangle."""
    m, n = a.shape[-2], b.shape[-1]
    size = strip_size(m, a.shape[-1], n)
    if side_a is None and side_b is not None and not is_symbolic(m) and m < _FEW:
        return _sum_of_strips(a, b, side_b, size)
    columns = cuts(n, n if side_b is None else size)
    right = [_strip(b, side_b, c, of_rows=False) for c in columns]
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    lines = []
    for r in cuts(m, m if side_a is None else size):
        x, at_x = _strip(a, side_a, r, of_rows=True)
        line = []
        for c, (y, at_y) in zip(columns, right, strict=True):
            start, stop = max(at_x, at_y), min(at_x + x.shape[-1], at_y + y.shape[-2])
            if start < stop:
                block = x[..., start - at_x : stop - at_x] @ y[..., start - at_y : stop - at_y, :]
            else:
                block = jnp.zeros((), a.dtype)
            line.append(jnp.broadcast_to(block, (*batch, r[1] - r[0], c[1] - c[0])))
        lines.append(jnp.concatenate(line, axis=-1))
    return jnp.concatenate(lines, axis=-2)


def _sum_of_strips(a: Array, b: Array, side: bool, size: int) -> Array:
    """Add the products of a few rows with strips of rows of a triangle: memory is read in order, unlike in strips of columns."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total = jnp.zeros((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    for first, last in cuts(b.shape[-2], size):
        part, at = _strip(b, side, (first, last), of_rows=True)
        total = total.at[..., at : at + part.shape[-1]].add(a[..., first:last] @ part)
    return total


def _strip(x: Array, side: bool | None, strip: Interval, of_rows: bool) -> tuple[Array, int]:
    """Return what is read of some rows (or columns) of a matrix, with zeros next to the diagonal, and its first column (or row)."""
    if side is None:
        return x, 0
    first, last = strip
    k = x.shape[-1 if of_rows else -2]
    start, stop = (0, min(last, k)) if side == of_rows else (min(first, k), k)
    part = x[..., first:last, start:stop] if of_rows else x[..., start:stop, first:last]
    return triangles.triangle(part, side, 0, first - start if of_rows else start - first), start


def _absorbing_product(a: Array, b: Array, side_a: bool | None, side_b: bool | None) -> Array:
    """Do the same if structural zeros meet NaN or infinity: block after block, in a loop that compiles one of them."""
    m, n = a.shape[-2], b.shape[-1]
    if is_symbolic(m * n):
        return _absorbing_block(a, _mask(a, side_a), b, _mask(b, side_b))
    (rows, size_m), (columns, size_n) = _starts(m), _starts(n)

    def block(start: tuple[Array, Array]) -> Array:
        i, j = start
        x, y = lax.dynamic_slice_in_dim(a, i, size_m, -2), lax.dynamic_slice_in_dim(b, j, size_n, -1)
        return _absorbing_block(x, _mask(x, side_a, i), y, _mask(y, side_b, -j))

    lines = lax.map(lambda i: _joined(lax.map(lambda j: block((i, j)), columns), n, -1), rows)
    return _joined(lines, m, -2)


def _starts(n: int) -> tuple[Array, int]:
    """Return where the blocks of ``0, …, n`` start, and their size. The last one overlaps the block before it."""
    size = min(n, _BLOCK)
    return jnp.minimum(jnp.arange(max(1, -(-n // max(1, size)))) * size, n - size), size


def _joined(blocks: Array, n: int, axis: int) -> Array:
    """Join the blocks of `_starts` along one of the last two axes."""
    size, axis = blocks.shape[axis], blocks.ndim - 1 + axis
    length = (blocks.shape[0] - 1) * size
    whole = jnp.moveaxis(blocks[:-1], 0, axis)
    whole = whole.reshape(*whole.shape[:axis], length, *whole.shape[axis + 2 :])
    last = lax.slice_in_dim(blocks[-1], length + size - n, None, axis=axis)
    return jnp.concatenate([whole, last], axis=axis)


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


def strip_size(m: int, k: int, n: int) -> int:
    """Return the number of rows or columns of a strip for the product of (m, k) and (k, n)."""
    if any(map(is_symbolic, (m, k, n))):
        return functools.reduce(jax.core.max_dim, (k, n), m)  # one strip
    return max(_SMALLEST, -(-max(m, k, n) // (_STRIPS_FOR_VECTORS if min(m, n) < _FEW else _STRIPS)))


def cuts(n: int, size: int) -> list[Interval]:
    """Divide ``0, …, n`` into intervals of at most `size`; at least one, which may be empty, and one if sizes are symbolic."""
    if is_symbolic(n) or is_symbolic(size):
        return [(0, n)]
    return [(s, min(s + size, n)) for s in range(0, n, max(1, size))] or [(0, 0)]


def _mask(x: Array, side: bool | None, offset: int | Array = 0) -> Array | None:
    """Return the mask of a triangle; None if the whole matrix is read."""
    return None if side is None else triangles.mask(x.shape, side, offset)


def _absorbing_block(a: Array, mask_a: Array | None, b: Array, mask_b: Array | None) -> Array:
    """Multiply matrices with structural zeros outside masks (None: no zeros); these zeros absorb NaN and infinity."""
    factors = (a, mask_a), (b, mask_b)
    a, b = (x if mask is None else jnp.where(mask, x, 0) for x, mask in factors)
    if mask_b is None and mask_a is not None and not is_symbolic(b.shape[-1]) and b.shape[-1] == 1:
        return _absorbing_rows(a, mask_a, b[..., None, :, 0])
    stored = (jnp.broadcast_to(True if mask is None else mask, x.shape) for x, mask in factors)
    return absorbing_product(jnp.matmul, a, next(stored), b, next(stored))


def _absorbing_rows(a: Array, mask: Array, row: Array) -> Array:
    """Return ``sum(a * row)`` over the mask in each row of a, a product with one vector: a smaller program than products of matrices."""

    def total(a: Array, row: Array) -> Array:
        return jnp.sum(jnp.where(mask, a * row, 0), axis=-1, keepdims=True)

    plain = total(*(jnp.where(jnp.isfinite(x), x, 0) for x in (a, row)))
    whole = lax.stop_gradient(total(a, row))  # as in `absorbing_product`
    return plain + jnp.where(jnp.isfinite(whole), 0, whole)
