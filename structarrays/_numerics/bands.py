"""Products and layout of matrices stored by diagonals.

A banded matrix is ``diagonals``, a sequence of arrays, and ``offsets``, a static sequence of strictly increasing
integers. The diagonal at offset ``k`` contains the entries ``A[i, i + k]``, without padding:
``(*batch, diagonal_length(shape, k))``. The core ``shape`` ``(m, n)`` is static and may be rectangular.

Entries that are not stored are structural zeros. They are never multiplied with the other operand. So a NaN or an
infinity reaches only the results whose rows (columns) store an entry for it.
"""

from __future__ import annotations

import functools
import itertools
import operator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from .flags import custom_jvp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core.typing import DTypeLike, Shape

# The compilation time of one fused expression grows with its terms. So matrices with more diagonals than this are
# multiplied by a loop over them.
_UNROLLED_DIAGONALS = 48


def diagonal_length(shape: Shape, offset: int) -> int:
    """Number of entries on diagonal `offset` of a matrix of the given shape.

    Examples
    --------
    >>> diagonal_length((3, 5), 1), diagonal_length((3, 5), -1), diagonal_length((3, 5), 9)
    (3, 2, 0)
    """
    m, n = shape
    return max(0, min(m, n - offset) if offset >= 0 else min(m + offset, n))


def transpose(diagonals: Sequence[jax.Array], offsets: Sequence[int]) -> tuple[tuple[jax.Array, ...], tuple[int, ...]]:
    """Diagonals and offsets of the transpose: the same vectors at the negated offsets."""
    return tuple(diagonals[::-1]), tuple(-k for k in offsets[::-1])


def at_diagonal(y: jax.Array, offset: int, shape: Shape) -> jax.Array:
    """Entries of `y` on one diagonal of a matrix of the given shape.

    Parameters
    ----------
    y : jax.Array, (..., m or 1, n or 1)
        Broadcasts against the shape, without being materialized.
    offset : int
    shape : (int, int)

    Returns
    -------
    jax.Array, (..., diagonal_length(shape, offset))
    """
    m, n = shape
    length = diagonal_length(shape, offset)
    row, column = max(0, -offset), max(0, offset)
    if length == 0:
        return jnp.zeros((*y.shape[:-2], 0), y.dtype)
    if y.shape[-2:] == (m, n) and m > 1 and n > 1:
        # One strided slice of the flat matrix. It fuses, and its transpose is a pad, whereas the transpose of
        # jnp.diagonal is a scatter.
        start = row * n + column
        flat = y.reshape(*y.shape[:-2], m * n)
        return lax.slice_in_dim(flat, start, start + (length - 1) * (n + 1) + 1, n + 1, axis=-1)
    if y.shape[-2] == m and m > 1:
        return y[..., row : row + length, 0]
    if y.shape[-1] == n and n > 1:
        return y[..., 0, column : column + length]
    return jnp.broadcast_to(y[..., 0, :], (*y.shape[:-2], length))


def to_dense(
    diagonals: Sequence[jax.Array],
    offsets: Sequence[int],
    shape: Shape,
    background: jax.Array | None = None,
    dtype: DTypeLike | None = None,
    batch: Shape = (),
) -> jax.Array:
    """The dense matrix, as an expression that XLA fuses into an elementwise consumer.

    Parameters
    ----------
    diagonals, offsets, shape
        The matrix.
    background : jax.Array of batch shape, optional
        Value of the entries that are not stored; zero if None.
    dtype : dtype, optional
        The dtype of the result. Default: the dtype of the diagonals or the background.
    batch : tuple of int
        Batch shape to broadcast to (for matrices without diagonals or background).

    Returns
    -------
    jax.Array, (*batch, m, n)
    """
    m, n = shape
    parts = [*diagonals] if background is None else [*diagonals, background]
    if dtype is None:
        dtype = jnp.result_type(*parts) if parts else jnp.result_type(float)
    shapes = [d.shape[:-1] for d in diagonals] + ([] if background is None else [background.shape])
    batch = jnp.broadcast_shapes(tuple(batch), *shapes)
    zero = jnp.zeros((), dtype)
    dense = zero if background is None else background.astype(dtype)[..., None, None]
    dense = jnp.broadcast_to(dense, (*batch, m, n))
    if m == 0 or n == 0:
        return dense
    distance = lax.broadcasted_iota(jnp.int32, (m, n), 1) - lax.broadcasted_iota(jnp.int32, (m, n), 0)
    for d, k in zip(diagonals, offsets, strict=True):
        length = diagonal_length(shape, k)
        if length == 0:
            continue
        # Aligned with the rows: entry i of `rows` is A[i, i + k].
        rows = pad_axis(d.astype(dtype), max(0, -k), m - max(0, -k) - length, -1)
        dense = jnp.where(distance == k, rows[..., :, None], dense)
    return dense


def by_columns(diagonals: Sequence[jax.Array], offsets: Sequence[int], shape: Shape) -> jax.Array:
    """Stack the diagonals as rows of one array, aligned by columns and padded with zeros.

    Returns
    -------
    jax.Array, (*batch, len(offsets), n)
        Entry ``[..., i, j]`` is ``A[j - offsets[i], j]``.
    """
    n = shape[1]
    if not offsets:
        return jnp.zeros((0, n))
    rows = [pad_axis(d, max(0, k), n - max(0, k) - d.shape[-1], -1) for d, k in zip(diagonals, offsets, strict=True)]
    return jnp.stack(rows, axis=-2)


def matmul_dense(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], shape: Shape, x: jax.Array, divided: bool = False
) -> jax.Array:
    """``A @ x`` for a matrix ``A`` and a dense `x` of shape (..., n, k); batch shapes broadcast.

    `divided` says whether the rows are divided among devices, which then exchange only the necessary entries.
    """
    return _apply([d[..., None] for d in diagonals], offsets, shape, x, -2, divided)


def matvec(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], shape: Shape, x: jax.Array, divided: bool = False
) -> jax.Array:
    """``A @ x`` for a matrix ``A`` and vectors `x` of shape (..., n); batches broadcast."""
    # XLA parallelizes a column better than a vector (a fifth faster).
    return matmul_dense(diagonals, offsets, shape, x[..., None], divided)[..., 0]


def dense_matmul(
    x: jax.Array, diagonals: Sequence[jax.Array], offsets: Sequence[int], shape: Shape, divided: bool = False
) -> jax.Array:
    """``x @ A`` for a dense `x` of shape (..., p, m); batches broadcast."""
    diagonals, offsets = transpose([d[..., None, :] for d in diagonals], offsets)
    return _apply(diagonals, offsets, shape[::-1], x, -1, divided)


def vecmat(
    x: jax.Array, diagonals: Sequence[jax.Array], offsets: Sequence[int], shape: Shape, divided: bool = False
) -> jax.Array:
    """``x @ A`` for vectors `x` of shape (..., m); batches broadcast."""
    return matvec(*transpose(diagonals, offsets), shape[::-1], x, divided)


def kron(
    diagonals1: Sequence[jax.Array],
    offsets1: Sequence[int],
    shape1: Shape,
    diagonals2: Sequence[jax.Array],
    offsets2: Sequence[int],
    n: int,
) -> tuple[tuple[jax.Array, ...], tuple[int, ...]]:
    """Kronecker product of a banded matrix and a square banded matrix of size `n`.

    ``C[i n + p, j n + q] = A[i, j] B[p, q]``, so that the diagonals at ``k`` and ``l`` meet in one: that at ``k n + l``.

    Returns
    -------
    diagonals, offsets
        Of the product. Two pairs of diagonals may share one of it; their entries lie at different places.
    """
    m1, n1 = shape1
    shape = (m1 * n, n1 * n)
    terms: dict[int, list[jax.Array]] = {}
    for d1, k1 in zip(diagonals1, offsets1, strict=True):
        for d2, k2 in zip(diagonals2, offsets2, strict=True):
            k, row1 = k1 * n + k2, max(0, -k1)
            first, length = max(0, -k), diagonal_length(shape, k)
            # Row by row, with structural zeros (without a multiplication) where B has no entry.
            rows = pad_axis(d1[..., :, None] * d2[..., None, :], max(0, -k2), max(0, k2), -1)
            rows = rows.reshape(*rows.shape[:-2], rows.shape[-2] * n)
            before, after = row1 * n - first, first + length - row1 * n - rows.shape[-1]
            terms.setdefault(k, []).append(pad_axis(rows, before, after, -1))
    offsets = tuple(sorted(terms))
    return tuple(functools.reduce(operator.add, terms[k]) for k in offsets), offsets


def _apply(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], shape: Shape, x: jax.Array, axis: int, divided: bool
) -> jax.Array:
    """Sum over k of ``diagonal_k * x`` shifted by k along `axis`; the diagonals broadcast against `x`.

    Rows in which every diagonal has an entry are one fused expression of static slices. The few rows above and below
    are separate padded expressions, and the three parts are concatenated. (Padding or masking all rows costs up to
    twice the time, gathers and scatters 25 times.) If the rows are `divided` among devices, all rows are one padded
    expression: concatenation would make each device send all of its data.
    """
    pairs = [(d, k) for d, k in zip(diagonals, offsets, strict=True) if d.shape[axis]]
    if not pairs or x.size == 0:
        return jnp.zeros(_broadcast_shapes((x, *diagonals), axis, shape[0]), jnp.result_type(x, *diagonals))
    if len(pairs) > _UNROLLED_DIAGONALS:
        return _apply_by_loop(pairs, shape, x, axis)
    diagonals, offsets = zip(*pairs, strict=True)
    return _sum_of_products(offsets, shape, axis, divided, diagonals, x)


@functools.partial(custom_jvp, nondiff_argnums=(0, 1, 2, 3))
def _sum_of_products(
    offsets: tuple[int, ...], shape: Shape, axis: int, divided: bool, diagonals: tuple[jax.Array, ...], x: jax.Array
) -> jax.Array:
    """The result of `_apply` for diagonals that are not empty."""
    m, n = shape
    result = _broadcast_shapes((x, *diagonals), axis, m)
    along = len(result) + axis
    top = min(m, max(0, -min(offsets)))
    bottom = min(m, max(0, n - max(offsets)))
    bounds = (0, m) if divided or top >= bottom else (0, top, bottom, m)
    parts = []
    for start, stop in itertools.pairwise(bounds):
        if start == stop:
            continue
        terms = []
        for d, k in zip(diagonals, offsets, strict=True):
            row = max(0, -k)
            begin, end = max(start, row), min(stop, n - k)
            if begin < end:
                a = lax.slice_in_dim(d, begin - row, end - row, axis=axis)
                b = lax.slice_in_dim(x, begin + k, end + k, axis=axis)
                whole = begin == start and end == stop
                terms.append(a * b if whole else pad_axis(a * b, begin - start, stop - end, axis))
        part = functools.reduce(operator.add, terms) if terms else jnp.zeros((), jnp.result_type(x, *diagonals))
        parts.append(jnp.broadcast_to(part, (*result[:along], stop - start, *result[along + 1 :])))
    return parts[0] if len(parts) == 1 else lax.concatenate(parts, along)


@functools.partial(_sum_of_products.defjvp, symbolic_zeros=True)
def _sum_of_products_jvp(
    offsets: tuple[int, ...],
    shape: Shape,
    axis: int,
    divided: bool,
    primals: tuple[tuple[jax.Array, ...], jax.Array],
    tangents: tuple[tuple[Any, ...], Any],
) -> tuple[jax.Array, jax.Array]:
    """Use one product for each whole diagonal. Its transpose is also a product: a slice of the cotangent times a slice
    of `x`.

    The transpose of three parts of each diagonal would be three sums over the columns, each padded to the length of the
    diagonal. From jaxlib 0.11 on, XLA compiles the sum of such pads to wrong code on CPUs (docs/design/jax_bugs.md).
    """
    (diagonals, x), (d_diagonals, dx) = primals, tangents
    result = _sum_of_products(offsets, shape, axis, divided, diagonals, x)
    terms = []
    for k, d, dd in zip(offsets, diagonals, d_diagonals, strict=True):
        row, column, length = max(0, -k), max(0, k), d.shape[axis]
        factors = [(a, b) for a, b in ((dd, x), (d, dx)) if not _is_zero(a) and not _is_zero(b)]
        products = [a * lax.slice_in_dim(b, column, column + length, axis=axis) for a, b in factors]
        if products:
            terms.append(pad_axis(functools.reduce(operator.add, products), row, shape[0] - row - length, axis))
    change = functools.reduce(operator.add, terms).astype(result.dtype) if terms else jnp.zeros((), result.dtype)
    return result, jnp.broadcast_to(change, result.shape)


def _is_zero(tangent: jax.Array | SymbolicZero) -> bool:
    """Return whether a tangent is known to be zero, for example for integers or for arrays that are not differentiated."""
    return isinstance(tangent, SymbolicZero) or tangent.dtype == jax.dtypes.float0


def _apply_by_loop(pairs: Sequence[tuple[jax.Array, int]], shape: Shape, x: jax.Array, axis: int) -> jax.Array:
    """Compute the sum of `_apply` by a loop over the diagonals, for matrices with many diagonals."""
    m, n = shape
    offsets = [k for _, k in pairs]
    low, high = max(0, -min(offsets)), max(0, max(offsets))
    # Row i of every diagonal is multiplied with entry i + k of x. So all diagonals are padded to m rows, and x to the
    # range of i + k.
    rows = [pad_axis(d, max(0, -k), m - max(0, -k) - diagonal_length(shape, k), axis) for d, k in pairs]
    stacked = jnp.stack(jnp.broadcast_arrays(*rows))
    padded = pad_axis(x, low, max(0, m + high - n), axis)
    index = lax.broadcasted_iota(jnp.int32, (m, *(1,) * (-axis - 1)), 0)

    @jax.checkpoint  # otherwise the derivative would keep every shifted copy of x
    def step(total: jax.Array, diagonal: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        d, k = diagonal
        term = d * lax.dynamic_slice_in_dim(padded, k + low, m, axis)
        return total + jnp.where((index + k >= 0) & (index + k < n), term, 0), None

    zero = jnp.zeros(_broadcast_shapes((x, stacked[0]), axis, m), jnp.result_type(x, stacked))
    return lax.scan(step, zero, (stacked, jnp.asarray(offsets, jnp.int32)))[0]


def pad_axis(x: jax.Array, before: int, after: int, axis: int, fill: jax.typing.ArrayLike = 0) -> jax.Array:
    """Pad an array by `before` and `after` elements along an axis."""
    if before == 0 and after == 0:
        return x
    widths = [(0, 0, 0)] * x.ndim
    widths[axis] = (before, after, 0)
    return lax.pad(x, jnp.asarray(fill, x.dtype), widths)


def divisible(diagonals: Sequence[jax.Array], count: int, pieces: int, axis: int) -> list[jax.Array]:
    """Pad diagonals of at most `count` entries along an axis to one length that is divisible among the devices."""
    length = count + -count % pieces
    return [pad_axis(d, 0, length - d.shape[axis], axis) for d in diagonals]


def _broadcast_shapes(arrays: Sequence[jax.Array], axis: int, size: int) -> Shape:
    """Common shape of arrays, with the given size of `axis`."""
    shapes = []
    for array in arrays:
        shape = list(array.shape)
        shape[axis] = 1
        shapes.append(tuple(shape))
    common = list(jnp.broadcast_shapes(*shapes))
    common[axis] = size
    return tuple(common)
