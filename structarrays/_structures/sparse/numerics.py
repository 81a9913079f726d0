"""Sparse arrays by the coordinates of their entries: products, look-ups, merges.

Everything here is about one array without batch dimensions (`over_batch` maps it). An array of d dimensions has entries
`data` ``(nnz,)`` and d integer arrays ``(nnz,)``, the coordinates. *Sorted* means in the lexicographic order of the arrays
as they are given. *Padding* stands at the end, where sizes have to be static but the number of entries is not: its
coordinates are the sizes of the dimensions, which are out of range, so that every scatter drops it, and its data is zero.
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

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from ..._core.typing import Shape

    T = TypeVar("T")

# A temporary array of the size of all entries costs more than the product itself: the system maps its memory anew in
# every call. So long products go through the entries in pieces whose temporary arrays stay in the cache (measured on
# CPU with 5·10⁶ entries: 12 ms instead of 30 to 80).
_PIECE = 1 << 17


def over_batch(function: Callable[..., T], ndim: int) -> Callable[..., T]:
    """The function mapped over `ndim` leading dimensions of all of its arguments."""
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
    """The product of a matrix of `m` rows with a vector ``(n,)`` or a matrix ``(n, p)``.

    Parameters
    ----------
    data, rows, columns : jax.Array
        The entries.
    x : jax.Array
        The right factor.
    stored : jax.Array or None
        Where the right factor stores elements, if it does not everywhere: others absorb NaN and infinity.
    m : int
        The number of rows.
    in_bounds, in_order : bool
        Whether there is no padding; whether the rows are sorted.
    divided : bool
        Whether the entries are divided among devices, each of which then adds up its own.
    """
    piece = max(1 << 10, _PIECE // math.prod(x.shape[1:]) if x.size else 1)
    start = jnp.zeros((m, *x.shape[1:]), data.dtype)
    count, rest = divmod(data.shape[0], piece)
    if divided or count < 2:
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
    """The result with ``data * x[columns]`` added to its rows."""
    if not data.size or not result.size or not x.shape[0]:
        return result
    mode = "promise_in_bounds" if in_bounds else "clip"
    factors = x.at[columns].get(mode=mode, wrap_negative_indices=False)
    products = data.reshape(data.shape + (1,) * (x.ndim - 1)) * factors
    if stored is not None:
        products = jnp.where(stored.at[columns].get(mode=mode, wrap_negative_indices=False), products, 0)
    mode = "promise_in_bounds" if in_bounds else "drop"
    return result.at[rows].add(products, mode=mode, indices_are_sorted=in_order, wrap_negative_indices=False)


@multiply.defjvp
def _multiply_jvp(
    m: int, in_bounds: bool, in_order: bool, divided: bool, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[jax.Array, jax.Array]:
    # The product is linear in either factor; in one piece, since the transpose of the loop would sum whole arrays.
    data, rows, columns, x, stored = primals
    data_dot, _, _, x_dot, _ = tangents
    tangent = jnp.zeros((m, *x.shape[1:]), data.dtype)
    for d, v in ((data_dot, x), (data, x_dot)):
        tangent = _add_products(tangent, d, rows, columns, v, stored, in_bounds, in_order)
    return multiply(data, rows, columns, x, stored, m, in_bounds, in_order, divided), tangent


# ---- look-ups -------------------------------------------------------------------------------------------------------


def _is_less(left: Sequence[jax.Array], right: Sequence[jax.Array]) -> jax.Array:
    """Lexicographic comparison of tuples of arrays."""
    result = left[-1] < right[-1]
    for a, b in zip(left[-2::-1], right[-2::-1], strict=True):
        result = (a < b) | ((a == b) & result)
    return result


def search(coordinates: Sequence[jax.Array], wanted: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Where coordinates stand among sorted ones.

    Parameters
    ----------
    coordinates : tuple of jax.Array
        Sorted, each ``(nnz,)``.
    wanted : tuple of jax.Array
        Those that are looked for; they broadcast together.

    Returns
    -------
    tuple of jax.Array
        The number of entries before each, and whether the next entry is the one looked for.
    """
    count = coordinates[0].shape[0]
    shape = jnp.broadcast_shapes(*(w.shape for w in wanted))
    before = jnp.zeros(shape, jnp.int32)
    if count == 0:
        return before, jnp.zeros(shape, bool)
    bits = count.bit_length()

    def step(i: jax.Array, before: jax.Array) -> jax.Array:
        # The largest number of entries that are known to stand before, one binary digit after the other.
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
    """The elements at coordinates; `otherwise` where nothing is stored."""
    before, found = search(coordinates, wanted)
    if data.shape[0] == 0:
        return jnp.broadcast_to(otherwise, found.shape)
    return jnp.where(found, data.at[before].get(mode="clip", wrap_negative_indices=False), otherwise)


# ---- order, duplicates, merges ----------------------------------------------------------------------------------------


def sort(coordinates: Sequence[jax.Array], *others: jax.Array) -> tuple[Any, ...]:
    """Coordinates in lexicographic order, and other arrays in the order of these."""
    places = lax.iota(jnp.int32, coordinates[0].shape[0])
    *ordered, order = lax.sort((*coordinates, places), num_keys=len(coordinates))
    return tuple(ordered), *(o[order] for o in others)


def by_dimension(keys: Sequence[jax.Array], order: tuple[int, ...]) -> tuple[jax.Array, ...]:
    """Coordinates that stand in an order of the dimensions, by dimension again."""
    return tuple(keys[order.index(i)] for i in range(len(order)))


def sort_by(order: tuple[int, ...], data: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, ...]:
    """Data and coordinates in lexicographic order, by the dimensions in an order."""
    keys, data = sort(tuple(coordinates[i] for i in order), data)
    return data, *by_dimension(keys, order)


def keep_by(
    order: tuple[int, ...], mask: jax.Array, data: jax.Array, coordinates: Sequence[jax.Array], shape: Shape, bound: int
) -> tuple[jax.Array, ...]:
    """Data and coordinates where a mask is true, as `keep`, of an array of this shape that is sorted by the dimensions in an order."""
    data, keys = keep(mask, data, [coordinates[i] for i in order], [shape[i] for i in order], bound)
    return data, *by_dimension(keys, order)


def slots(coordinates: Sequence[jax.Array]) -> jax.Array:
    """For each of (at least one) sorted entries, how many different coordinates stand before its own."""
    count = coordinates[0].shape[0]
    differs = functools.reduce(jnp.logical_or, (c[1:] != c[:-1] for c in coordinates), jnp.zeros(count - 1, bool))
    return jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(differs, dtype=jnp.int32)])


def sum_duplicates(
    data: jax.Array, coordinates: tuple[jax.Array, ...], sizes: Sequence[int]
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Sorted entries with those of equal coordinates added (booleans: or); what gets free is padding."""
    count = data.shape[0]
    if count == 0:
        return data, coordinates
    slot = slots(coordinates)
    options: dict[str, Any] = {"indices_are_sorted": True, "mode": "promise_in_bounds"}
    start = jnp.zeros_like(data)
    if data.dtype == bool:
        data = start.at[slot].max(data, **options)
    else:
        data = start.at[slot].add(data, **options)
    return data, tuple(jnp.full_like(c, n).at[slot].set(c, **options) for c, n in zip(coordinates, sizes, strict=True))


def keep(
    mask: jax.Array, data: jax.Array, coordinates: Sequence[jax.Array], sizes: Sequence[int], bound: int
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """The entries where a mask is true, of which there are at most `bound`, with padding behind them."""
    slot = jnp.where(mask, jnp.cumsum(mask, dtype=jnp.int32) - 1, bound)
    return put(jnp.zeros(bound, data.dtype), (slot,), data), tuple(
        put(jnp.full(bound, n, c.dtype), (slot,), c) for c, n in zip(coordinates, sizes, strict=True)
    )


def scatter(
    start: jax.Array, places: jax.Array | tuple[jax.Array, ...], data: jax.Array, method: str = "set", **options: Any
) -> jax.Array:
    """An array with elements put (or added, …) at places, those out of range left out; it takes empty arrays, too."""
    if not start.size or not data.size:
        return start
    result: jax.Array = getattr(start.at[places], method)(data, mode="drop", wrap_negative_indices=False, **options)
    return result


def put(start: jax.Array, places: Sequence[jax.Array], data: jax.Array) -> jax.Array:
    """An array with elements put at places that are all different, those out of range, which need not be, left out.

    It is linear in the elements, and JAX transposes it, which it does where no two places are the same.
    """
    first, *others = places
    first = jnp.where(first < start.shape[0], first, first + lax.iota(first.dtype, first.shape[0]))
    return scatter(start, (first, *others), data, unique_indices=True)


def merge(
    x: tuple[jax.Array, ...], y: tuple[jax.Array, ...], sizes: Sequence[int]
) -> tuple[tuple[jax.Array, ...], jax.Array, jax.Array]:
    """The union of two sorted sets of coordinates.

    Returns
    -------
    tuple
        The coordinates, as many as both have together, with padding behind; the places of those of `x`; of those of `y`.
    """
    total = x[0].shape[0] + y[0].shape[0]
    before, found = search(x, y)
    new = jnp.where(found, 0, 1).astype(jnp.int32)
    if not total:
        return x, before[:0], before
    # An entry of x moves behind the new ones that come before it, a new one of y behind those of both.
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
    """The place of each entry in an array of these sizes in row-major order; what is out of range stays so.

    Raises
    ------
    OverflowError
        If there are more places than the default integers can count.
    """
    total = math.prod(sizes)
    dtype = jnp.int32 if total < 2**31 - 1 else jnp.result_type(int)
    if total > np.iinfo(dtype).max:
        raise OverflowError(f"an array of shape {tuple(sizes)} has more places than {np.dtype(dtype)} can count")
    result = jnp.zeros(coordinates[0].shape, dtype)
    for c, n in zip(coordinates, sizes, strict=True):
        result = result * n + c.astype(dtype)
    outside = functools.reduce(jnp.logical_or, (c >= n for c, n in zip(coordinates, sizes, strict=True)))
    return jnp.where(outside, total, result)


def divided(a: jax.Array, b: int, c: jax.Array, d: int | np.uint32) -> tuple[jax.Array, jax.Array]:
    """Quotient and remainder of ``a * b + c`` by `d`, all of them and the quotient below ``2**31``: in 32 bits, binary digit by digit of `b`."""
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
    """The reduction of the data of each of `count` segments by any associative operation; segments out of range are left
    out.

    A running reduction that starts anew with each segment, as differentiable as the operation is.
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
