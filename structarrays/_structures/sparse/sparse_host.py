"""The patterns of sparse arrays on the host, with NumPy, if the number of entries of a result must be known.

As in `sparse.numerics`, the arrays have no batch dimensions, and *sorted* is the lexicographic order of the coordinates
as given. These are the symbolic passes of the algorithms of scipy.sparse (Gustavson, 1978, *Two fast algorithms for
sparse matrices*), with sorting instead of linked lists.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from . import compressed_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax


def take(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the values at indices, in 64-byte-aligned memory, which XLA uses without a copy."""
    result = compressed_rows.empty(places.size, values.dtype).reshape(places.shape)
    return np.take(values, places, out=result, mode="clip")  # any other mode uses a second array


def keys(coordinates: Sequence[np.ndarray], sizes: Sequence[int]) -> np.ndarray | None:
    """Return an integer for each entry, in the order of the coordinates; None if 64 bits do not suffice."""
    if math.prod(n + 1 for n in sizes) >= 2**63:
        return None
    result = np.asarray(coordinates[0], np.int64)
    for c, n in zip(coordinates[1:], sizes[1:], strict=True):
        result = result * (n + 1) + c
    return result


def sort(coordinates: Sequence[np.ndarray], sizes: Sequence[int]) -> np.ndarray:
    """Return the indices that sort the entries."""
    by = compressed_rows.sort(coordinates, sizes)
    if by is not None:
        return by
    key = keys(coordinates, sizes)
    return np.lexsort(coordinates[::-1]) if key is None else np.argsort(key)


def order(coordinates: Sequence[np.ndarray], sizes: Sequence[int]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the indices that sort the entries (None if sorted), and starts of new coordinates (None if distinct)."""
    count = len(coordinates[0])
    key = keys(coordinates, sizes)
    if key is None:
        sorting = np.lexsort(coordinates[::-1])
        new = np.ones(count, bool)
        new[1:] = np.any([np.diff(c[sorting]) != 0 for c in coordinates], axis=0)
    else:
        step = np.diff(key)
        if (step > 0).all():
            return None, None
        sorting = None
        if (step < 0).any():
            sorting = sort(coordinates, sizes)
            step = np.diff(key[sorting])
        new = np.concatenate([np.ones(min(1, count), bool), step != 0])
    return sorting, None if new.all() else np.flatnonzero(new)


def find(
    coordinates: Sequence[np.ndarray], wanted: Sequence[np.ndarray], sizes: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each wanted coordinate the number of preceding entries, and whether the next entry has it."""
    if len(wanted[0]) <= 8:  # without a pass over all entries
        places = [_place(coordinates, one) for one in zip(*wanted, strict=True)]
        return np.array([p for p, _ in places], np.int64), np.array([f for _, f in places], bool)
    key, value = keys(coordinates, sizes), keys(wanted, sizes)
    if key is None or value is None:
        count = len(wanted[0])
        both = [np.concatenate([w, c]) for w, c in zip(wanted, coordinates, strict=True)]
        sorting = np.lexsort(both[::-1])  # stable: wanted coordinates come before equal entries
        before = np.empty(count, np.int64)
        is_wanted = sorting < count
        before[sorting[is_wanted]] = np.cumsum(~is_wanted)[is_wanted]
    else:
        before = np.searchsorted(key, value)
    if not len(coordinates[0]):
        return before, np.zeros(len(wanted[0]), bool)
    at = np.minimum(before, len(coordinates[0]) - 1)
    same = [c[at] == w for c, w in zip(coordinates, wanted, strict=True)]
    return before, (before < len(coordinates[0])) & np.logical_and.reduce(same)


def _place(coordinates: Sequence[np.ndarray], wanted: Sequence[Any]) -> tuple[int, bool]:
    """Look up one entry: a bisection in each dimension, among the entries that agree in the previous dimensions."""
    low, high = 0, len(coordinates[0])
    for c, w in zip(coordinates, wanted, strict=True):
        part = c[low:high]
        low, high = low + int(np.searchsorted(part, w, "left")), low + int(np.searchsorted(part, w, "right"))
    return low, low < high


def union(
    x: Sequence[np.ndarray], y: Sequence[np.ndarray], sizes: Sequence[int]
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return the union of two sorted sets of coordinates, and for each its index in `x` and in `y`, or -1."""
    before, found = find(x, y, sizes)
    new = np.flatnonzero(~found)
    total = len(x[0]) + len(new)
    slot_new = before[new] + np.arange(len(new))
    is_new = np.zeros(total, bool)
    is_new[slot_new] = True
    slot_x = np.flatnonzero(~is_new)
    source_x, source_y = np.full(total, -1, np.int32), np.full(total, -1, np.int32)
    source_x[slot_x] = np.arange(len(x[0]), dtype=np.int32)
    source_y[slot_new] = new
    source_y[slot_x[before[found]]] = np.flatnonzero(found)
    merged = []
    for a, b in zip(x, y, strict=True):
        c = np.empty(total, a.dtype)
        c[slot_x], c[slot_new] = a, b[new]
        merged.append(c)
    return merged, source_x, source_y


def intersection(
    x: Sequence[np.ndarray], y: Sequence[np.ndarray], sizes: Sequence[int]
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return the coordinates that both sorted sets have, and for each its index in `x` and in `y`."""
    before, found = find(x, y, sizes)
    place_x = before[found]
    return [c[place_x] for c in x], place_x.astype(np.int32), np.flatnonzero(found).astype(np.int32)


def lines(sorted_coordinate: np.ndarray, wanted: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the start and the number of entries of each wanted row or column, of `size` in all."""
    if size > 4 * (len(sorted_coordinate) + len(wanted)):
        first = np.searchsorted(sorted_coordinate, wanted)  # without an array of all rows or columns
        return first, np.searchsorted(sorted_coordinate, wanted, "right") - first
    first, counts = _all_lines(sorted_coordinate, size)
    return first[wanted], counts[wanted]


def _all_lines(sorted_coordinate: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    is_first = np.ones(len(sorted_coordinate), bool)
    np.not_equal(sorted_coordinate[1:], sorted_coordinate[:-1], out=is_first[1:])
    begins = np.flatnonzero(is_first)
    found = np.diff(begins, append=len(sorted_coordinate))
    if len(begins) == size:
        return begins, found
    present = sorted_coordinate[begins]  # some rows or columns are empty
    first, counts = np.zeros(size, np.int64), np.zeros(size, np.int64)
    first[present], counts[present] = begins, found
    return first, counts


_LINES: dict[tuple[int, int], tuple[tuple[np.ndarray | None, np.ndarray, np.ndarray], weakref.ref[jax.Array]]] = {}


def kept_lines(coordinate: jax.Array, size: int, is_sorted: bool) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Return the indices that sort the entries by rows (or columns; None if sorted), and the start and length of each.

    The result is cached for the lifetime of the JAX array of the coordinates, since parts of one matrix are often
    requested repeatedly, as in cross-validation. It takes 16 bytes for each row, and 8 for each entry of an unsorted
    array.
    """
    key = (id(coordinate), size)
    if key not in _LINES:
        values = np.asarray(coordinate)
        by = None if is_sorted else np.argsort(values, kind="stable")
        known = (by, *_all_lines(values if by is None else values[by], size))
        _LINES[key] = known, weakref.ref(coordinate, lambda _: _LINES.pop(key))
    return _LINES[key][0]


def product(
    x: Sequence[np.ndarray], y: Sequence[np.ndarray], shape: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return the pattern of a product of matrices.

    Parameters
    ----------
    x : tuple of numpy.ndarray
        Rows and columns of the left factor.
    y : tuple of numpy.ndarray
        Rows and columns of the right factor, sorted by rows.
    shape : tuple of int
        The number of rows of the left factor, the inner dimension, and the number of columns of the right factor.

    Returns
    -------
    tuple
        For each elementary product the indices of the entries of `x` and `y`, in the order of the result; the starts of
        the entries of the result among them; the rows and columns of the result, sorted.
    """
    m, inner, n = shape
    rows, between = x
    first, counts = lines(y[0], between, inner)
    left = np.repeat(np.arange(len(rows), dtype=np.int64), counts)
    start = np.cumsum(counts) - counts
    right = np.arange(len(left)) + np.repeat(first - start, counts)
    found = [rows[left], y[1][right]]
    sorting, begins = order(found, (m, n))
    if sorting is not None:
        left, right = left[sorting], right[sorting]
        found = [c[sorting] for c in found]
    if begins is None:
        begins = np.arange(len(left))
    return left, right, begins, [c[begins] for c in found]
