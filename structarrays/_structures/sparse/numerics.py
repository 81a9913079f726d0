"""Sparse arrays by the coordinates of their entries: products, look-ups, merges.

Every function is about one array without batch dimensions (`over_batch` maps it). An array with d dimensions has
entries `data` ``(nnz,)`` and d integer arrays ``(nnz,)``, the coordinates. *Sorted* means lexicographic order of the
arrays as given. *Padding* stands at the end if sizes must be static but the number of entries is not. Its coordinates
are the sizes of the dimensions, which are out of range, so that every scatter drops it. Its data is zero.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._numerics.flags import custom_jvp
from ..._numerics.symbolic import is_symbolic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from ..._core.typing import Shape

    T = TypeVar("T")

# A temporary array with the size of all entries costs more than the product itself, since the operating system maps its
# memory anew in every call. Long products therefore process the entries in pieces whose temporary arrays stay in the
# cache (12 ms instead of 30 to 80 ms on CPU with 5·10⁶ entries).
_PIECE = 1 << 17


def over_batch(function: Callable[..., T], ndim: int) -> Callable[..., T]:
    """Map the function over `ndim` leading dimensions of all its arguments."""
    for _ in range(ndim):
        function = jax.vmap(function)
    return function


# ---- products -------------------------------------------------------------------------------------------------------


@functools.partial(custom_jvp, nondiff_argnums=(5, 6, 7, 8))
def multiply(
    data: jax.Array,
    rows: jax.Array,
    columns: jax.Array,
    x: jax.Array,
    stored: jax.Array | None,
    m: int,
    in_bounds: bool,
    in_order: bool,
    divided: bool = False,
) -> jax.Array:
    """Multiply a matrix with `m` rows by a vector ``(n,)`` or a matrix ``(n, p)``.

    Parameters
    ----------
    data, rows, columns : jax.Array
        The entries.
    x : jax.Array
        The right factor.
    stored : jax.Array or None
        The mask of the stored elements of the right factor; None if all are stored. Others absorb NaN and infinity.
    m : int
        The number of rows.
    in_bounds, in_order : bool
        Whether there is no padding, and whether the rows are sorted.
    divided : bool
        Whether the entries are divided among devices, each of which adds its own entries.
    """
    start = jnp.zeros((m, *x.shape[1:]), data.dtype)
    at_once = divided or is_symbolic(x.size)
    piece = max(1 << 10, _PIECE // math.prod(x.shape[1:]) if not at_once and x.size else 1)
    count, rest = divmod(data.shape[0], piece)
    if at_once or count < 2:
        return _add_products(start, data, rows, columns, x, stored, in_bounds, in_order)

    def add_piece(i: jax.Array, result: jax.Array) -> jax.Array:
        d, r, c = (lax.dynamic_slice_in_dim(a, i * piece, piece) for a in (data, rows, columns))
        return _add_products(result, d, r, c, x, stored, in_bounds, in_order)

    result: jax.Array = lax.fori_loop(0, count, add_piece, start)
    if not rest:
        return result
    d, r, c = (a[count * piece :] for a in (data, rows, columns))
    return _add_products(result, d, r, c, x, stored, in_bounds, in_order)


def _add_products(
    result: jax.Array,
    data: jax.Array,
    rows: jax.Array,
    columns: jax.Array,
    x: jax.Array,
    stored: jax.Array | None,
    in_bounds: bool,
    in_order: bool,
) -> jax.Array:
    """Return the result with ``data * x[columns]`` added to its rows."""
    if not data.size or not result.size or not x.shape[0]:
        return result
    mode = "promise_in_bounds" if in_bounds else "clip"
    factors = x.at[columns].get(mode=mode, wrap_negative_indices=False)
    products = data.reshape(data.shape + (1,) * (x.ndim - 1)) * factors
    if stored is not None:
        products = jnp.where(stored.at[columns].get(mode=mode, wrap_negative_indices=False), products, 0)
    mode = "promise_in_bounds" if in_bounds else "drop"
    wide = accumulator(result)
    total = wide.at[rows].add(
        products.astype(wide.dtype), mode=mode, indices_are_sorted=in_order, wrap_negative_indices=False
    )
    return total.astype(result.dtype)


def accumulator(x: jax.Array) -> jax.Array:
    """The array to which many numbers are added, in the dtype `dtype_of_sums`."""
    return x.astype(dtype_of_sums(x.dtype))


def dtype_of_sums(dtype: np.dtype) -> np.dtype:
    """32 bits instead of 16, since a sum in bfloat16 stops at 256 ones."""
    return np.dtype(np.float32) if dtype.itemsize == 2 and jnp.issubdtype(dtype, jnp.floating) else dtype


@multiply.defjvp
def _multiply_jvp(
    m: int, in_bounds: bool, in_order: bool, divided: bool, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[jax.Array, jax.Array]:
    # The product is linear in each factor. It is one piece here: the transpose of the loop would sum whole arrays.
    data, rows, columns, x, stored = primals
    data_dot, _, _, x_dot, _ = tangents
    tangent = jnp.zeros((m, *x.shape[1:]), data.dtype)
    for d, v in ((data_dot, x), (data, x_dot)):
        tangent = _add_products(tangent, d, rows, columns, v, stored, in_bounds, in_order)
    return multiply(data, rows, columns, x, stored, m, in_bounds, in_order, divided), tangent


# ---- look-ups -------------------------------------------------------------------------------------------------------


def _is_less(left: Sequence[jax.Array], right: Sequence[jax.Array]) -> jax.Array:
    """Compare tuples of arrays lexicographically."""
    result = left[-1] < right[-1]
    for a, b in zip(left[-2::-1], right[-2::-1], strict=True):
        result = (a < b) | ((a == b) & result)
    return result


def search(coordinates: Sequence[jax.Array], wanted: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Find coordinates among sorted ones.

    Parameters
    ----------
    coordinates : tuple of jax.Array
        Sorted, each ``(nnz,)``.
    wanted : tuple of jax.Array
        The coordinates to find; they broadcast together.

    Returns
    -------
    tuple of jax.Array
        The number of entries before each, and whether the next entry has these coordinates.
    """
    count = coordinates[0].shape[0]
    shape = jnp.broadcast_shapes(*(w.shape for w in wanted))
    before = jnp.zeros(shape, jnp.int32)
    if count == 0:
        return before, jnp.zeros(shape, bool)
    bits = count.bit_length()

    def step(i: jax.Array, before: jax.Array) -> jax.Array:
        # The largest number of entries known to come before, one binary digit after the other.
        candidate = before + (1 << (bits - 1 - i)).astype(before.dtype)
        known = tuple(c.at[candidate - 1].get(mode="clip", wrap_negative_indices=False) for c in coordinates)
        return jnp.where((candidate <= count) & _is_less(known, wanted), candidate, before)

    before = lax.fori_loop(0, bits, lambda i, b: step(jnp.asarray(i, jnp.int32), b), before)
    next_one = tuple(c.at[before].get(mode="clip", wrap_negative_indices=False) for c in coordinates)
    found = before < count
    for a, b in zip(next_one, wanted, strict=True):
        found = found & (a == b)
    return before, found


def look_up(
    data: jax.Array, coordinates: Sequence[jax.Array], wanted: Sequence[jax.Array], otherwise: jax.Array
) -> jax.Array:
    """Return the elements at coordinates; `otherwise` if no entry is stored."""
    before, found = search(coordinates, wanted)
    if data.shape[0] == 0:
        return jnp.broadcast_to(otherwise, found.shape)
    return jnp.where(found, data.at[before].get(mode="clip", wrap_negative_indices=False), otherwise)


# ---- order, duplicates, merges ----------------------------------------------------------------------------------------


def sort(coordinates: Sequence[jax.Array], *others: jax.Array) -> tuple[Any, ...]:
    """Sort coordinates lexicographically, and other arrays in the same order."""
    places = lax.iota(jnp.int32, coordinates[0].shape[0])
    *ordered, order = lax.sort((*coordinates, places), num_keys=len(coordinates))
    return tuple(ordered), *(o[order] for o in others)


def rolled(coordinates: jax.Array, shift: Any, size: int) -> jax.Array:
    """Return coordinates along an axis after a roll. No intermediate result exceeds the size, which 32 bits may just contain."""
    places = (shift % max(1, size)).astype(coordinates.dtype)
    return jnp.where(coordinates >= size - places, coordinates - (size - places), coordinates + places)


def by_dimension(keys: Sequence[jax.Array], order: tuple[int, ...]) -> tuple[jax.Array, ...]:
    """Return coordinates in the order of the dimensions, from coordinates in sort order."""
    return tuple(keys[order.index(i)] for i in range(len(order)))


def sort_by(order: tuple[int, ...], data: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, ...]:
    """Sort data and coordinates lexicographically, with the dimensions in the given order."""
    keys, data = sort(tuple(coordinates[i] for i in order), data)
    return data, *by_dimension(keys, order)


def keep_by(
    order: tuple[int, ...], mask: jax.Array, data: jax.Array, coordinates: Sequence[jax.Array], shape: Shape, bound: int
) -> tuple[jax.Array, ...]:
    """Apply `keep` to an array of this shape that is sorted with the dimensions in the given order."""
    data, keys = keep(mask, data, [coordinates[i] for i in order], [shape[i] for i in order], bound)
    return data, *by_dimension(keys, order)


def slots(coordinates: Sequence[jax.Array]) -> jax.Array:
    """Return the number of distinct coordinates before each of the sorted entries (at least one entry)."""
    count = coordinates[0].shape[0]
    differs = functools.reduce(jnp.logical_or, (c[1:] != c[:-1] for c in coordinates), jnp.zeros(count - 1, bool))
    return jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(differs, dtype=jnp.int32)])


def sum_duplicates(
    data: jax.Array, coordinates: tuple[jax.Array, ...], sizes: Sequence[int]
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Add sorted entries with equal coordinates (booleans: or); the freed entries become padding."""
    count = data.shape[0]
    if count == 0:
        return data, coordinates
    slot = slots(coordinates)
    options: dict[str, Any] = {"indices_are_sorted": True, "mode": "promise_in_bounds"}
    start = jnp.zeros_like(data)
    if data.dtype == bool:
        data = start.at[slot].max(data, **options)
    else:
        wide = accumulator(start)
        data = wide.at[slot].add(data.astype(wide.dtype), **options).astype(start.dtype)
    return data, tuple(jnp.full_like(c, n).at[slot].set(c, **options) for c, n in zip(coordinates, sizes, strict=True))


def keep(
    mask: jax.Array, data: jax.Array, coordinates: Sequence[jax.Array], sizes: Sequence[int], bound: int
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Return the entries where a mask is true, at most `bound`, followed by padding."""
    slot = jnp.where(mask, jnp.cumsum(mask, dtype=jnp.int32) - 1, bound)
    return put(jnp.zeros(bound, data.dtype), (slot,), data), tuple(
        put(jnp.full(bound, n, c.dtype), (slot,), c) for c, n in zip(coordinates, sizes, strict=True)
    )


def scatter(
    start: jax.Array, places: jax.Array | tuple[jax.Array, ...], data: jax.Array, method: str = "set", **options: Any
) -> jax.Array:
    """Scatter elements by a method such as add; out-of-range indices are dropped, and arrays may be empty."""
    if not start.size or not data.size:
        return start
    dtype = start.dtype
    if method in ("add", "multiply"):
        start = accumulator(start)
        data = data.astype(start.dtype)
    result: jax.Array = getattr(start.at[places], method)(data, mode="drop", wrap_negative_indices=False, **options)
    return result.astype(dtype)


def put(start: jax.Array, places: Sequence[jax.Array], data: jax.Array) -> jax.Array:
    """Set elements of an array at distinct indices; indices out of range are dropped and may repeat.

    The function is linear in the elements. JAX can transpose it, since the indices are distinct.
    """
    first, *others = places
    first = jnp.where(first < start.shape[0], first, first + lax.iota(first.dtype, first.shape[0]))
    return scatter(start, (first, *others), data, unique_indices=True)


def merge(
    x: tuple[jax.Array, ...], y: tuple[jax.Array, ...], sizes: Sequence[int]
) -> tuple[tuple[jax.Array, ...], jax.Array, jax.Array]:
    """Return the union of two sorted sets of coordinates.

    Returns
    -------
    tuple
        The coordinates, with the sum of both sizes and padding at the end; the positions of the entries of `x`; the
        positions of the entries of `y`.
    """
    total = x[0].shape[0] + y[0].shape[0]
    before, found = search(x, y)
    new = jnp.where(found, 0, 1).astype(jnp.int32)
    if not total:
        return x, before[:0], before
    # An entry of x moves behind the preceding new entries, a new entry of y behind the preceding entries of both.
    ahead = jnp.zeros(x[0].shape[0] + 1, jnp.int32).at[before].add(new)
    place_x = lax.iota(jnp.int32, x[0].shape[0]) + jnp.cumsum(ahead, dtype=jnp.int32)[:-1]
    place_y = before + jnp.cumsum(new, dtype=jnp.int32) - new
    if x[0].shape[0]:
        place_y = jnp.where(found, place_x.at[before].get(mode="clip"), place_y)
    merged = []
    for a, b, n in zip(x, y, sizes, strict=True):
        result = jnp.full((total,), n, a.dtype).at[place_x].set(a)
        merged.append(result.at[place_y].set(b.astype(a.dtype)))
    return tuple(merged), place_x, place_y


def flat_index(coordinates: Sequence[jax.Array], sizes: Sequence[int]) -> jax.Array:
    """Return the row-major index of each entry in an array of these sizes; out-of-range entries stay out of range.

    Raises
    ------
    OverflowError
        If the default integer dtype cannot represent all indices.
    """
    total = math.prod(sizes)
    dtype = jnp.int32 if total < 2**31 - 1 else jnp.result_type(int)
    if total > np.iinfo(dtype).max:
        raise OverflowError(f"the size of an array of shape {tuple(sizes)} must fit {np.dtype(dtype)}")
    result = jnp.zeros(coordinates[0].shape, dtype)
    for c, n in zip(coordinates, sizes, strict=True):
        result = result * n + c.astype(dtype)
    outside = functools.reduce(jnp.logical_or, (c >= n for c, n in zip(coordinates, sizes, strict=True)))
    return jnp.where(outside, total, result)


def divided(a: jax.Array, b: int, c: jax.Array, d: int | np.uint32) -> tuple[jax.Array, jax.Array]:
    """Return quotient and remainder of ``a * b + c`` by `d`, in 32 bits, binary digit by digit of `b`.

    All arguments and the quotient must be below ``2**31``.
    """
    a, c = (x.astype(jnp.uint32) for x in (a, c))
    d = np.uint32(d)
    each, left = a // d, a % d

    def carried(quotient: jax.Array, rest: jax.Array) -> tuple[jax.Array, jax.Array]:
        over = rest >= d
        return quotient + over.astype(jnp.uint32), jnp.where(over, rest - d, rest)

    quotient, rest = jnp.zeros_like(a), jnp.zeros_like(a)
    for digit in bin(b)[2:]:
        quotient, rest = carried(2 * quotient, 2 * rest)
        if digit == "1":
            quotient, rest = carried(quotient + each, rest + left)
    return carried(quotient + c // d, rest + c % d)


# ---- reductions -----------------------------------------------------------------------------------------------------


def reduce_segments(
    data: jax.Array,
    segments: jax.Array,
    count: int,
    combine: Callable[[jax.Array, jax.Array], jax.Array],
    identity: Any,
) -> jax.Array:
    """Reduce the data of each of `count` segments by any associative operation; out-of-range segments are dropped.

    The algorithm is a running reduction that restarts at each segment. It has derivatives if the operation has.
    """
    if not data.shape[0]:
        return jnp.full((count,), identity, data.dtype)
    (segments,), data = sort((segments,), data)
    first = jnp.concatenate([jnp.ones(1, bool), segments[1:] != segments[:-1]])

    def both(left: tuple[jax.Array, jax.Array], right: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return jnp.where(right[1], right[0], combine(left[0], right[0])), left[1] | right[1]

    running, _ = lax.associative_scan(both, (data, first))
    wanted = lax.iota(segments.dtype, count)
    behind = search((segments,), (wanted + 1,))[0]
    _, found = search((segments,), (wanted,))
    return jnp.where(found, running.at[jnp.maximum(behind - 1, 0)].get(mode="clip"), identity)
