"""Nonzero patterns of arrays, for pictures: a grid of cells, computed from the structure alone.

The method `pattern` of a structure classifies the rectangles of some intervals of rows and some intervals of columns.
Factored arrays call it on their parts for other rectangles. So a grid of a few thousand cells takes about the same time
for a matrix of a million rows as for one of a hundred, and no element is computed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from ..dispatch import explicit
from ..text import readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..array.base import Array

ZERO, UNKNOWN, BACKGROUND, COMPUTED, STORED, DENSE = range(6)
"""Kinds of rectangles, by their most visible content; a higher number hides a lower one. The kinds are: structural
zeros only; elements with unreadable positions (traced coordinates); the background; elements computed from several
parameters, such as elements of a product; stored entries; elements of a dense block."""

NAMES = (
    "structural zero",
    "unknown (not readable here)",
    "background",
    "computed from factors",
    "stored entry",
    "dense block",
)

COLOURS = ("none", "#f0e442", "#888888", "#009e73", "#0072b2", "#e69f00")
"""Colour of each kind, from the palette of Okabe and Ito for readers with colour-blindness."""

FINE = 256
"""Number of intervals into which an inner dimension of a product is cut; up to this size its pattern is exact."""

MANY = 2**20
"""Largest number of coordinates that are all used; of more, an evenly spaced subset is used."""


class Grid(NamedTuple):
    """A matrix cut into cells: their kinds ``(R, C)``, and the intervals of rows ``(R, 2)`` and columns ``(C, 2)``."""

    kinds: np.ndarray
    rows: np.ndarray
    columns: np.ndarray

    @property
    def present(self) -> list[int]:
        """Kinds that occur, except zeros."""
        return [kind for kind in range(1, len(NAMES)) if (self.kinds == kind).any()]


def grid(x: Array, cells: int) -> Grid:
    """Compute the pattern of an array on a grid of at most `cells` cells along each side.

    The patterns of all matrices of a stack are superimposed; a vector is a row.
    """
    m, n = matrix_shape(x)
    rows, columns = cuts(m, cells), cuts(n, cells)
    return Grid(pattern(x, rows, columns), rows, columns)


def matrix_shape(x: Array) -> tuple[int, int]:
    """Return the shape of an array as a matrix, without its batch shape."""
    *_, m, n = (1, 1, *x.shape)
    return m, n


def cuts(n: int, most: int) -> np.ndarray:
    """Split ``range(n)`` into at most `most` intervals ``[start, stop)`` of about the same length, ``(count, 2)``."""
    count = min(n, most)
    edges = [n * i // max(count, 1) for i in range(count + 1)]
    return intervals(zip(edges[:-1], edges[1:]))


def intervals(pairs: Iterable[tuple[int, int]]) -> np.ndarray:
    """Convert pairs of integers to an array, of Python integers if they are too large for `int64`."""
    pairs = list(pairs)
    large = any(stop >= 2**62 for _, stop in pairs)
    return np.array(pairs, object if large else np.int64).reshape(-1, 2)


def pattern(x: Array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Classify the rectangles of intervals of rows and columns.

    Parameters
    ----------
    x : Array
    rows, columns : numpy.ndarray
        Intervals ``[start, stop)`` of the last two dimensions, ``(R, 2)`` and ``(C, 2)``; they may overlap, or be empty.

    Returns
    -------
    numpy.ndarray
        Kind of each rectangle, ``(R, C)``. It may claim too much (for a product of large matrices), but never too
        little.
    """
    kinds = np.zeros((len(rows), len(columns)), np.uint8)
    r, c = (np.flatnonzero((each[:, 0] < each[:, 1]).astype(bool)) for each in (rows, columns))
    if r.size and c.size:
        kinds[np.ix_(r, c)] = x.pattern(rows[r], columns[c])
    return kinds


# ---- results of structures: intervals of rows and columns are not empty
# -----------------------------------------------


def everywhere(rows: np.ndarray, columns: np.ndarray, kind: int) -> np.ndarray:
    """Return the same kind for all rectangles."""
    return np.full((len(rows), len(columns)), kind, np.uint8)


def stored(x: Array, hit: np.ndarray) -> np.ndarray:
    """Return stored entries for the hit rectangles, and the background of the array for the others."""
    return np.where(hit, STORED, ZERO if x.background is None else BACKGROUND).astype(np.uint8)


def _distances(rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest ``j - i`` in each rectangle; all values between them occur."""
    return columns[:, 0] - rows[:, 1:] + 1, columns[:, 1] - 1 - rows[:, :1]


def meets_band(rows: np.ndarray, columns: np.ndarray, low: int, high: int) -> np.ndarray:
    """Return which rectangles have elements with ``low <= j - i <= high``."""
    least, greatest = _distances(rows, columns)
    return ((least <= high) & (greatest >= low)).astype(bool)


def meets_diagonals(rows: np.ndarray, columns: np.ndarray, offsets: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return which rectangles have elements of diagonals with these offsets, which increase."""
    least, greatest = _distances(rows, columns)
    offsets = np.asarray(offsets, np.int64)
    return np.searchsorted(offsets, greatest, "right") > np.searchsorted(offsets, least, "left")


def meets_points(rows: np.ndarray, columns: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return which rectangles contain one of the elements ``(i, j)``; coordinates out of range are in none.

    It counts elements between all ends of intervals and sums up, in time proportional to their number for any size of
    the matrix.
    """
    row_edges, column_edges = (np.unique(each.astype(np.int64)) for each in (rows, columns))
    shape = (len(row_edges) + 1, len(column_edges) + 1)
    places = np.searchsorted(row_edges, i, "right") * shape[1] + np.searchsorted(column_edges, j, "right")
    counts = np.bincount(places, minlength=math.prod(shape)).reshape(shape)
    before = counts.cumsum(axis=0).cumsum(axis=1)  # numbers of elements before an edge, along both axes
    (top, bottom), (left, right) = (
        np.searchsorted(edges, each).T for edges, each in ((row_edges, rows), (column_edges, columns))
    )
    before_bottom, before_top = before[bottom], before[top]
    inside: np.ndarray = before_bottom[:, right] - before_bottom[:, left] - before_top[:, right] + before_top[:, left]
    return inside > 0


def both(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the kind of the products of two elements."""
    return np.where(np.minimum(a, b) > UNKNOWN, COMPUTED, np.minimum(a, b)).astype(np.uint8)


def composed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the kinds of a matrix product, from kinds ``(R, K)`` and ``(K, C)`` of the factors: ``(R, C)``."""

    def product(least: int) -> np.ndarray:
        # In floating point, whose products NumPy computes much faster.
        return ((a >= least).astype(np.float32) @ (b >= least).astype(np.float32)) > 0

    return np.where(product(UNKNOWN + 1), COMPUTED, np.where(product(UNKNOWN), UNKNOWN, ZERO)).astype(np.uint8)


def of_product(factors: Sequence[Array], rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the pattern of a matrix product, from patterns of the factors on fine grids of the inner dimensions."""
    edges = [rows, *(cuts(f.shape[-1], FINE) for f in factors[:-1]), columns]
    result = pattern(factors[0], edges[0], edges[1])
    for factor, before, behind in zip(factors[1:], edges[1:], edges[2:]):
        result = composed(result, pattern(factor, before, behind))
    return result


def of_inverse(a: Array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the pattern of the inverse of a matrix.

    The inverse is a polynomial in the matrix, so its element (i, j) is zero unless a path of nonzero elements leads
    from i to j.
    """
    fine = cuts(a.shape[-1], FINE)
    reached = np.maximum(pattern(a, fine, fine), COMPUTED * np.eye(len(fine), dtype=np.uint8))
    for _ in range(len(fine).bit_length()):  # each step doubles the length of the paths
        before, reached = reached, np.maximum(reached, composed(reached, reached))
        if np.array_equal(before, reached):
            break
    met = (meets_intervals(each, fine) * np.uint8(STORED) for each in (rows, columns))
    return composed(composed(next(met), reached), next(met).T)


def meets_intervals(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which of some intervals intersect which of others."""
    return ((some[:, :1] < others[:, 1]) & (others[:, 0] < some[:, 1:])).astype(bool)


# ---- the default --------------------------------------------------------------------------------------------------------


def some(leaf: Any) -> np.ndarray:
    """Return the elements of a leaf as a vector on the host; an evenly spaced subset if there are many."""
    leaf = leaf.reshape(-1)
    return np.asarray(leaf[:: -(-leaf.size // MANY)] if leaf.size > MANY else leaf)


def of_coordinates(x: Array, coordinates: Sequence[Any], rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the pattern of an array that stores entries at coordinates: one integer array for each core dimension."""
    if not all(map(readable, coordinates)):
        return everywhere(rows, columns, UNKNOWN)
    *_, j = coordinates = [some(c) for c in coordinates]
    i = coordinates[-2] if len(coordinates) > 1 else np.zeros_like(j)
    return stored(x, meets_points(rows, columns, i, j))


def default(x: Array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return a pattern from the positions of the stored entries, or from the bandwidths."""
    if not x.stores_entries or x.core_ndim > 2 or x.ndim < 2:
        return np.where(_within_bandwidths(x, rows, columns), COMPUTED, ZERO).astype(np.uint8)
    if x.covers:
        return everywhere(rows, columns, STORED)
    if x.static_pattern:
        # `positions` returns one position of an entry that fills several; `freed` has one entry for each position.
        free = explicit.eval_shape(lambda value: value.freed(), x)
        if type(free) is not type(x):
            return pattern(free, rows, columns)
    try:
        with jax.ensure_compile_time_eval():
            positions = [np.broadcast_arrays(*map(np.asarray, where)) for where in x.positions()]
    except (NotImplementedError, TypeError, jax.errors.JAXTypeError):  # no method `positions`, or unreadable
        return stored(x, _within_bandwidths(x, rows, columns))
    hit = np.zeros((len(rows), len(columns)), bool)
    for where in positions:
        *_, i, j = (np.zeros((), int), *(some(c) for c in where))
        hit |= meets_points(rows, columns, i, j)
    return stored(x, hit)


def _within_bandwidths(x: Array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    if x.ndim < 2:
        return everywhere(rows, columns, 1).astype(bool)
    below, above = x.bandwidths()
    return meets_band(rows, columns, -below, above)
