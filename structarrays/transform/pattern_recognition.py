"""The narrowest array for a linear map with a static pattern."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.dense import Dense
from .._core.array.flattening import as_indices, barred
from .._numerics.bands import diagonal_length
from .._structures.banded.array import bands
from .._structures.sparse.array import Sparse
from .._structures.triangular.array import Triangular
from .block_patterns import block_matrix
from .linear_maps import Columns, Entries, LinearMap, Term, Terms, canonical, entries_of, take

if TYPE_CHECKING:
    from .._core.array.base import Array
    from .._core.typing import Shape

MOST_OFFSETS = 256
"""The largest number of diagonals that a matrix in terms may have to be banded."""


def array_of(x: LinearMap, start: int, columns: Shape, transposed: bool) -> Array:
    """Return the matrix of a map, with respect to some of its inputs.

    Parameters
    ----------
    x : LinearMap
        The map.
    start : int
        The first input.
    columns : tuple of int
        The shape of these inputs.
    transposed : bool
        Whether to return the transpose.

    Returns
    -------
    Array
        The array, of shape ``(rows, columns)``; the rows and columns of arrays without dimensions are left out.
    """
    m, n = x.size, math.prod(columns)
    scalars = not x.shape or not columns
    if isinstance(x, Columns):
        matrix: Array = Dense.make((x.data[start : start + n].reshape(n, m).mT,))
    else:
        x = _restricted(x, start, n)
        matrix = _dense(x, (m, n)) if scalars else _structured(x, (m, n))
    if transposed:
        matrix = matrix.mT
    if not scalars:
        return matrix
    row, column = (columns, x.shape) if transposed else (x.shape, columns)
    shape = ((math.prod(row),) if row else ()) + ((math.prod(column),) if column else ())
    return Dense.make((matrix.dense_data().reshape(shape),))


def _restricted(x: LinearMap, start: int, n: int) -> LinearMap:
    """Return the map of the n inputs from `start` on."""
    if start == 0 and n == x.inputs:
        return x
    if isinstance(x, Terms):
        terms = []
        for term in x.terms:
            columns = np.where((term.columns >= start) & (term.columns < start + n), term.columns - start, -1)
            if np.any(columns >= 0):
                clean = term.clean and np.array_equal(columns >= 0, term.columns >= 0)
                terms.append(Term(columns, term.coefficients, clean))
        return Terms(x.shape, n, terms, x.dtype)
    x = entries_of(x)
    kept = np.flatnonzero((x.columns >= start) & (x.columns < start + n))
    return Entries(x.shape, n, x.rows[kept], x.columns[kept] - start, take(x.data, kept))


def _dense(x: LinearMap, shape: tuple[int, int]) -> Dense:
    x = canonical(x)
    return Dense.make((_scattered(x, shape),))


def _scattered(x: Entries, shape: tuple[int, int]) -> jax.Array:
    if len(x.rows) == math.prod(shape):
        return x.data.reshape(shape)
    key = barred(as_indices(x.rows)), barred(as_indices(x.columns))
    return jnp.zeros(shape, x.dtype).at[key].set(x.data, unique_indices=True, indices_are_sorted=True)


def _structured(x: LinearMap, shape: tuple[int, int]) -> Array:
    """Return the matrix in the narrowest structure."""
    m, n = shape
    if isinstance(x, Terms):
        pieces = _pieces(x)
        if pieces is not None:
            offsets = {offset for _, offset, _ in pieces}
            counts: Any = sum(len(rows) if rows is not None else m for _, _, rows in pieces)
            # Terms may overlap, so this is an upper bound; the exact number decides then.
            if _is_banded(offsets, counts, shape):
                count = counts if len(pieces) == len(offsets) else len(canonical_pattern(x))
                if count == counts or _is_banded(offsets, count, shape):
                    blocks = block_matrix(x, offsets, _stored(offsets, shape), count, shape)
                    return blocks if blocks is not None else _banded(pieces, offsets, shape, x.dtype)
    x = canonical(x)
    differences = x.columns - x.rows
    offsets = set((np.flatnonzero(np.bincount(differences + m)) - m).tolist())
    if _is_banded(offsets, len(x.rows), shape):
        blocks = block_matrix(x, offsets, _stored(offsets, shape), len(x.rows), shape)
        if blocks is not None:
            return blocks
        diagonals = []
        for k in sorted(offsets):
            places = np.flatnonzero(differences == k)
            length = min(m, n - k) if k >= 0 else min(m + k, n)
            data = take(x.data, places)
            if len(places) < length:
                at = x.rows[places] - max(0, -k)
                data = jnp.zeros(length, x.dtype).at[barred(as_indices(at))].set(data, unique_indices=True)
            diagonals.append(data)
        return bands(diagonals, sorted(offsets), shape, dtype=x.dtype)
    count = len(x.rows)
    if 4 * count >= m * n and m * n:
        if np.all(differences <= 0) or np.all(differences >= 0):
            return Triangular.make((_scattered(x, shape), None), (bool(np.all(differences <= 0)), False))
        if 2 * count >= m * n:
            return Dense.make((_scattered(x, shape),))
    coordinates = (as_indices(x.rows.astype(_kind(shape))), as_indices(x.columns.astype(_kind(shape))))
    return Sparse.make((x.data, *coordinates, None), (shape, (0, 1), False))


def canonical_pattern(x: Terms) -> np.ndarray:
    """Return the distinct entries of a pattern as integers."""
    width = max(x.inputs, 1)
    return np.unique(np.concatenate([t.rows * width + t.columns.reshape(-1)[t.rows].astype(np.int64) for t in x.terms]))


def _kind(shape: Shape) -> type:
    return np.int32 if max(shape) < 2**31 - 1 else np.int64


def _is_banded(offsets: set[int], count: int, shape: tuple[int, int]) -> bool:
    """Return whether `count` entries on these diagonals are cheaper in a `Banded` than in a `Sparse` array."""
    m, n = shape
    if offsets <= {0}:
        return True
    if 2 * len(offsets) > m + n:
        return False
    if len(offsets) > 3 and (len(offsets) == m == 1 - min(offsets) or len(offsets) == n == 1 + max(offsets)):
        return False  # a whole triangle
    return _stored(offsets, shape) <= 2 * count and count < m * n


def _stored(offsets: set[int], shape: Shape) -> int:
    """Return the number of entries on diagonals."""
    return sum(diagonal_length(shape, k) for k in offsets)


def _pieces(x: Terms) -> list[tuple[Term, int, np.ndarray | None]] | None:
    """Return triples of a term, an offset, and the rows on the diagonal with this offset (None for all rows); None if
    there are too many offsets.
    """
    pieces: list[tuple[Term, int, np.ndarray | None]] = []
    for term in x.terms:
        if term.offset is not None:
            pieces.append((term, term.offset, None if term.is_full else term.rows))
            continue
        rows, offsets = term.rows, term.offsets
        rest = np.ones(len(rows), bool)
        while rest.any():
            k = offsets[np.argmax(rest)]
            own = offsets == k
            pieces.append((term, int(k), rows[own]))
            rest &= ~own
            if len(pieces) > MOST_OFFSETS:
                return None
    return pieces


def _banded(
    pieces: list[tuple[Term, int, np.ndarray | None]], offsets: set[int], shape: tuple[int, int], dtype: np.dtype
) -> Array:
    m, n = shape
    diagonals = []
    for k in sorted(offsets):
        begin = max(0, -k)
        length = min(m, n - k) if k >= 0 else min(m + k, n)
        total: Any = None
        for term, offset, rows in pieces:
            if offset != k:
                continue
            if rows is not None and 4 * len(rows) < length:  # a few entries, such as at a boundary
                few = term.at(rows)
                data = jnp.zeros(length, dtype)
                first = int(rows[0]) - begin
                if np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
                    data = data.at[first : first + len(rows)].set(few)
                else:
                    data = data.at[barred(as_indices(rows - begin))].set(few, unique_indices=True)
            else:
                data = term.at(slice(begin, begin + length))
                if rows is not None and len(rows) < length and not (term.clean and term.offset is not None):
                    mask = np.zeros(length, bool)
                    mask[rows - begin] = True
                    data = jnp.where(barred(as_indices(mask)), data, jnp.zeros((), dtype))
            total = data if total is None else total + data
        diagonals.append(total)
    return bands(diagonals, sorted(offsets), shape, dtype=dtype)
