"""Toeplitz matrices as plain JAX arrays: layout, and products with dense matrices.

A Toeplitz matrix is ``values`` (..., d), one value for each of the diagonals with the offsets ``first, first + 1, …``:
``A[i, j] = values[j - i - first]``. The other diagonals are structural zeros. The core ``shape`` ``(m, n)`` is static
and may be rectangular.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp
from jax import lax

from . import bands
from .banded_systems import mapped_together
from .convolution import by_one_transform, cyclic, fast_length, widened
from .dense_fft import by_rows
from .flags import custom_jvp
from .symbolic import smaller
from .transposable import transposable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import jax

    from .._core.typing import Shape

SMALL = 128
"""Up to this size of a square matrix, a product with the dense form is as fast as transforms (with one right-hand
side).
"""
# The maximum number of diagonals that are added as shifted multiples of the operand, in one fused expression.
_SHIFTED_DIAGONALS = 24


def full_range(shape: Shape) -> tuple[int, int]:
    """Offsets of the first and the last diagonal of a matrix; ``(0, -1)`` (none) if it is empty."""
    m, n = shape
    return (1 - m, n - 1) if m and n else (0, -1)


def covers(values: jax.Array, first: int, shape: Shape) -> bool:
    """Return whether every diagonal is stored."""
    low, high = full_range(shape)
    return first == low and values.shape[-1] == high - low + 1


def elements(values: jax.Array, first: int, i: jax.Array | int, j: jax.Array | int) -> jax.Array:
    """Entries at rows `i` and columns `j`, which broadcast together."""
    index: Any  # an array, since one of `i` and `j` is
    d, index = values.shape[-1], j - i - first
    if d == 0:
        return jnp.zeros((*values.shape[:-1], *index.shape), values.dtype)
    inside = (index >= 0) & (index < d)
    entries = values.at[..., jnp.clip(index, 0, d - 1)].get(mode="promise_in_bounds")
    return jnp.where(inside, entries, jnp.zeros((), values.dtype))


def to_dense(values: jax.Array, first: int, shape: Shape) -> jax.Array:
    """The dense matrix, as an expression that XLA fuses into its consumer."""
    i, j = (lax.broadcasted_iota(jnp.int32, shape, axis) for axis in (0, 1))
    if not covers(values, first, shape) or 0 in shape:
        return elements(values, first, i, j)
    return values.at[..., j - i - first].get(mode="promise_in_bounds")


# ---- products -----------------------------------------------------------------------------------------------------


def matmul(
    values: jax.Array,
    first: int,
    shape: Shape,
    x: jax.Array,
    stored: jax.Array | None = None,
    *,
    is_finite: bool = False,
) -> jax.Array:
    """``A @ x``, in ``O((m + n) log(m + n))`` for each column, and storage proportional to the sizes of `values`, `x` and the
    result.

    A few diagonals are added as shifted multiples of `x`, and small matrices use the dense form. Other products of inexact dtypes are
    convolutions by Fourier transforms. Their rounding errors are normwise: relative to the largest elements of a column of `x`, not to
    the terms of an element of the result. Integers are exact, in ``O(d m)`` for each column.

    Parameters
    ----------
    values, first, shape
        The matrix.
    x : jax.Array, (..., n, p)
        Of the same dtype; the batch shapes broadcast.
    stored : jax.Array of bool, (..., n, p), optional
        Where `x` has entries that are not structural zeros, which absorb NaN and infinities of the matrix.
    is_finite : bool
        Whether NaN and infinities may spread over columns of the result.

    Returns
    -------
    jax.Array, (..., m, p)
    """
    m, n = shape
    d = values.shape[-1]
    batch = jnp.broadcast_shapes(values.shape[:-1], x.shape[:-2])
    if d == 0 or x.size == 0 or 0 in batch:
        return jnp.zeros((*batch, m, x.shape[-1]), x.dtype)
    if not smaller(_SHIFTED_DIAGONALS, d) and stored is None:
        offsets = range(first, first + d)
        diagonals = [
            jnp.broadcast_to(values[..., k - first, None], (*values.shape[:-1], bands.diagonal_length(shape, k)))
            for k in offsets
        ]
        return jnp.broadcast_to(bands.matmul_dense(diagonals, offsets, shape, x), (*batch, m, x.shape[-1]))
    small = not smaller(SMALL**2, m * n) or not smaller(16 * (m + n), m * n)
    if small and covers(values, first, shape) and stored is None:
        return jnp.matmul(to_dense(values, first, shape), x)
    if values.dtype.kind in "iu":
        return _by_loop(values, first, shape, x)
    if is_finite:
        values, columns = widened(values), widened(x.mT)
        return convolved(first, shape, values[..., None, :], columns).mT.astype(x.dtype)
    return _by_columns(first, shape, values, x, stored)


def cyclic_matmul(c: jax.Array, x: jax.Array) -> jax.Array:
    """``C @ x`` for the circulant matrix with first column `c` (..., n), by transforms of length n."""
    n = c.shape[-1]
    return _by_columns(None, (n, n), c, x)


def _by_loop(values: jax.Array, first: int, shape: Shape, x: jax.Array) -> jax.Array:
    """A loop over the diagonals, exact for integers."""
    m, n = shape
    d = values.shape[-1]
    before, after = max(0, -first), max(0, m + first + d - 1 - n)
    padded = bands.pad_axis(x, before, after, -2)

    def add(index: jax.Array, total: jax.Array) -> jax.Array:
        value: jax.Array = lax.dynamic_index_in_dim(values, index, -1)[..., None]
        return total + value * lax.dynamic_slice_in_dim(padded, index + first + before, m, -2)

    batch = jnp.broadcast_shapes(values.shape[:-1], x.shape[:-2])
    result: jax.Array = lax.fori_loop(0, d, add, jnp.zeros((*batch, m, x.shape[-1]), x.dtype))
    return result


def _by_columns(
    first: int | None, shape: Shape, values: jax.Array, x: jax.Array, stored: jax.Array | None = None
) -> jax.Array:
    batch = jnp.broadcast_shapes(values.shape[:-1], x.shape[:-2])
    if x.size == 0 or 0 in batch:
        return jnp.zeros((*batch, shape[0], x.shape[-1]), x.dtype)
    columns = jnp.broadcast_to(x.mT, (*batch, *x.shape[:-3:-1]))
    values = jnp.broadcast_to(values, (*batch, values.shape[-1]))[..., None, :]
    stored = jnp.ones((1, 1), bool) if stored is None else stored.mT
    values, columns = widened(values), widened(columns)
    return _by_transforms(first, shape, values, columns, jnp.broadcast_to(stored, columns.shape)).mT.astype(x.dtype)


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _by_transforms(first: int | None, shape: Shape, values: jax.Array, x: jax.Array, stored: jax.Array) -> jax.Array:
    """``A @ x`` with the columns of `x` along the last axis, also with NaN and infinities."""

    def product(x: jax.Array) -> jax.Array:
        return mapped_together(functools.partial(_decide, first, shape), True)(values, x, stored)

    def transposed(y: jax.Array) -> jax.Array:
        backwards = values[..., ::-1]
        if first is None:
            return convolved(None, shape, jnp.roll(backwards, 1, axis=-1), y)
        return convolved(1 - first - values.shape[-1], shape[::-1], backwards, y)

    return transposable(product, transposed, x, shape[0])


@_by_transforms.defjvp
def _by_transforms_jvp(
    first: int | None,
    shape: Shape,
    primals: tuple[jax.Array, jax.Array, jax.Array],
    tangents: tuple[jax.Array, jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array]:
    (values, x, stored), (values_dot, x_dot, _) = primals, tangents
    tangent = convolved(first, shape, by_rows(values_dot), x) + convolved(first, shape, values, by_rows(x_dot))
    return _by_transforms(first, shape, values, x, stored), by_rows(tangent)


def _decide(first: int | None, shape: Shape, values: jax.Array, x: jax.Array, stored: jax.Array) -> jax.Array:
    """Compute by transforms, which spread NaN and infinities over whole columns, then determine their correct
    positions.
    """
    # The branches take only the arrays that they need. The product is computed in one of them, so that nothing is
    # copied.
    result: jax.Array = lax.cond(
        jnp.isfinite(values).all() & jnp.isfinite(x).all(),
        lambda values, x, _: convolved(first, shape, values, x),
        functools.partial(_with_special_values, first, shape),
        values,
        x,
        stored,
    )
    return result


def convolved(
    first: int | None,
    shape: Shape,
    values: jax.Array,
    x: jax.Array,
    cyclic: Callable[[jax.Array, jax.Array, int], jax.Array] = cyclic,
) -> jax.Array:
    """The finite product: a part of the convolution of `x` with the reversed values; cyclic if `first` is None."""
    m, n = shape
    if first is None:
        return cyclic(values, x, n)
    last = first + values.shape[-1] - 1
    if last < 0:  # rows above the first diagonal
        values, last = bands.pad_axis(values, 0, -last, -1), 0
    # Element i of the product is element i + last of the convolution. A cyclic convolution must not add two elements
    # there: the entries at the offset `first` reach the end of x before they wrap around to row 0, and likewise those
    # at `last`.
    length = fast_length(max(m + last, n - first, values.shape[-1], n))
    return lax.slice_in_dim(cyclic(values[..., ::-1], x, length), last, last + m, axis=-1)


def _with_special_values(
    first: int | None, shape: Shape, values: jax.Array, x: jax.Array, stored: jax.Array
) -> jax.Array:
    """The product if some terms are not finite: the finite part, and the positions where terms are NaN or infinite,
    which are counted.
    """
    if jnp.iscomplexobj(x):
        part = functools.partial(_with_special_values, first, shape)
        (a, b), (c, d) = (values.real, values.imag), (x.real, x.imag)
        return lax.complex(part(a, c, stored) - part(b, d, stored), part(a, d, stored) + part(b, c, stored))
    kinds_of_x = jnp.where(stored, kinds_of(x), _ABSENT)

    # XLA reserves the memory of this branch in every call. The allocator maps blocks above 32 MB again each time, which
    # takes as long as a transform. So the transforms need little memory.
    def product(values: jax.Array, x: jax.Array) -> jax.Array:
        return convolved(first, shape, values, x, by_one_transform)

    return with_outcomes(product, values, x, kinds_of(values), kinds_of_x, (*x.shape[:-1], shape[0]))


def with_outcomes(
    product: Callable[[jax.Array, jax.Array], jax.Array],
    a: jax.Array,
    b: jax.Array,
    kinds_a: jax.Array,
    kinds_b: jax.Array,
    shape: Shape,
) -> jax.Array:
    """Return a product with the NaN and infinities of its terms.

    Parameters
    ----------
    product : callable
        Of finite real arrays like `a` and `b`. If they are zeros and ones, it counts the pairs of ones.
    a, b : jax.Array
    kinds_a, kinds_b : jax.Array
        `kinds_of` them.
    shape : tuple of int
        The shape of the product.
    """
    a, b = (jnp.where(jnp.isfinite(x), x, 0) for x in (a, b))

    # A loop, which compiles one product: it counts the pairs, and multiplies the finite parts in its last step.
    def step(index: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        left, right, outcome = (entry_of((*column, 0), index) for column in zip(*SPECIAL_PAIRS, strict=True))
        sides = (left, kinds_a, a), (right, kinds_b, b)
        counted = index < len(SPECIAL_PAIRS)
        result = product(*(jnp.where(counted, ((mask >> kinds) & 1).astype(x.dtype), x) for mask, kinds, x in sides))
        return state[0] | jnp.where(result > 0.5, outcome, jnp.int8(0)), result

    start = jnp.zeros(shape, jnp.int8), jnp.zeros(shape, a.dtype)
    found, result = lax.fori_loop(0, len(SPECIAL_PAIRS) + 1, step, start)
    # Bits for +inf (1), -inf (2) and NaN (4) among the terms. The sum of both infinities is NaN.
    result = jnp.where(found == 1, jnp.inf, jnp.where(found == 2, -jnp.inf, result))
    return jnp.where(found >= 3, jnp.nan, result)


_ZERO, _POSITIVE, _NEGATIVE, _PLUS, _MINUS, _NAN, _ABSENT = range(7)


def kinds_of(x: jax.Array) -> jax.Array:
    """Classify each element by the kinds above."""
    signed = jnp.where(x > 0, _POSITIVE, jnp.where(x < 0, _NEGATIVE, _ZERO))
    infinite = jnp.where(x > 0, _PLUS, _MINUS)
    return jnp.where(jnp.isnan(x), _NAN, jnp.where(jnp.isinf(x), infinite, signed)).astype(jnp.int8)


def entry_of(numbers: Sequence[int], index: jax.Array) -> jax.Array:
    """Entry of a short list of integers below 64, encoded as the digits of a few constants.

    The list is not an array: JAX hoists arrays out of loops and branches, a mapped branch maps them too, and
    `custom_vmap` rejects that.
    """
    words = [sum(number << 6 * i for i, number in enumerate(numbers[k : k + 4])) for k in range(0, len(numbers), 4)]
    index = lax.convert_element_type(index, jnp.int32)
    word = lax.select_n(index >> 2, *map(jnp.int32, words))  # with shifts, since XLA compiles divisions apart
    return ((word >> 6 * (index & 3)) & 63).astype(jnp.int8)


def _bits(*kinds: int) -> int:
    return sum(1 << kind for kind in kinds)


_ANY = _bits(_ZERO, _POSITIVE, _NEGATIVE, _PLUS, _MINUS, _NAN)
_ABOVE, _BELOW, _INFINITE = _bits(_POSITIVE, _PLUS), _bits(_NEGATIVE, _MINUS), _bits(_PLUS, _MINUS)

# The kinds of entries and of elements of x whose product is special, and its bit: 1 for +inf, 2 for -inf, 4 for NaN.
SPECIAL_PAIRS = (
    (_bits(_PLUS), _ABOVE, 1),
    (_bits(_MINUS), _BELOW, 1),
    (_ABOVE, _bits(_PLUS), 1),
    (_BELOW, _bits(_MINUS), 1),
    (_bits(_PLUS), _BELOW, 2),
    (_bits(_MINUS), _ABOVE, 2),
    (_ABOVE, _bits(_MINUS), 2),
    (_BELOW, _bits(_PLUS), 2),
    (_bits(_NAN), _ANY, 4),
    (_INFINITE, _bits(_ZERO), 4),
    (_bits(_ZERO), _INFINITE, 4),
    (_ANY, _bits(_NAN), 4),
)


# ---- rows as windows ----------------------------------------------------------------------------------------------


def windows(
    parts: tuple[jax.Array, ...],
    width: int,
    combine: Callable[[tuple[jax.Array, ...], tuple[jax.Array, ...], int, int], tuple[jax.Array, ...]],
) -> tuple[jax.Array, ...]:
    """Reduce all windows of `width` consecutive elements, by doubling: ``O(N log(width))``, without subtractions.

    Parameters
    ----------
    parts : tuple of jax.Array, (..., N)
        The elements, as the parts that the reduction needs.
    width : int
        At least 1 and at most N.
    combine : callable
        ``combine(left, right, a, b)``: the parts of a window of ``a + b`` elements from the parts of its halves.

    Returns
    -------
    tuple of jax.Array, (..., N - width + 1)
        Element s belongs to the window ``s, …, s + width - 1``.
    """
    width = int(width)  # or JAX's error about symbolic sizes
    count, size, done, result = parts[0].shape[-1] - width + 1, 1, 0, None
    while True:
        if width & size:
            piece = tuple(lax.slice_in_dim(p, done, done + count, axis=-1) for p in parts)
            result = piece if result is None else combine(result, piece, done, size)
            done += size
        if done == width:
            return cast("tuple[jax.Array, ...]", result)
        left = tuple(p[..., :-size] for p in parts)
        parts = combine(left, tuple(p[..., size:] for p in parts), size, size)
        size *= 2


def reduce_rows(
    values: jax.Array,
    first: int,
    shape: Shape,
    combine: Callable[[jax.Array, jax.Array], jax.Array],
    identity: jax.typing.ArrayLike,
) -> jax.Array:
    """Reduce each row by an associative operation; entries that are not stored have no effect: (..., m)."""
    m, n = shape
    d = values.shape[-1]
    width = min(d, n)
    if width == 0 or m == 0:
        return jnp.full((*values.shape[:-1], m), identity, values.dtype)

    # Row i covers the offsets -i, …, n - 1 - i. If the stored offsets extend beyond these, the window of `width`
    # offsets is shifted so that it extends into the padding at the other end. So there are three runs of rows.
    def start(i: int) -> int:
        return max(-i, min(first, n - width - i))

    low, high = start(m - 1), start(0)
    padding = [(0, 0, 0)] * (values.ndim - 1) + [(first - low, high + width - first - d, 0)]
    padded = lax.pad(values, jnp.asarray(identity, values.dtype), padding)
    (sums,) = windows((padded,), width, lambda a, b, *_: (combine(a[0], b[0]),))
    top = min(max(0, -first), m)
    bottom = min(max(n - width - first + 1, top), m)
    rows = []
    if top > 0:
        rows.append(sums[..., start(top - 1) - low : start(0) - low + 1][..., ::-1])
    if bottom > top:
        rows.append(jnp.broadcast_to(sums[..., first - low, None], (*sums.shape[:-1], bottom - top)))
    if m > bottom:
        rows.append(sums[..., : start(bottom) - low + 1][..., ::-1])
    return rows[0] if len(rows) == 1 else jnp.concatenate(rows, axis=-1)


def spread(values: jax.Array, width: int, squared_magnitude: Callable[[jax.Array], jax.Array]) -> tuple[jax.Array, ...]:
    """Mean of all windows of `width` consecutive elements, and the sum of squared deviations from it.

    The halves of a window are combined as in Chan, Golub and LeVeque, "Algorithms for computing the sample variance",
    The American Statistician 37 (1983), 242-247: all terms have one sign, so that nothing cancels.
    """

    def combine(left: tuple[jax.Array, ...], right: tuple[jax.Array, ...], a: int, b: int) -> tuple[jax.Array, ...]:
        (mean, squares), (other, more) = left, right
        difference = other - mean
        share = jnp.asarray(b / (a + b), squares.dtype)
        return mean + difference * share, squares + more + squared_magnitude(difference) * (a * share)

    return windows((values, jnp.zeros_like(squared_magnitude(values))), width, combine)
