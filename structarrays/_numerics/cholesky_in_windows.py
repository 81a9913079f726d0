"""Cholesky factorization of a banded matrix from diagonals to diagonals, by LAPACK, in NumPy on the host.

LAPACK reads the columns of a band from consecutive memory. The columns are factored in windows, one after the other: a window stays in
the cache while its diagonals are copied to LAPACK's storage, factored, and copied to the diagonals of the factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .band_storage import write_diagonals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# The number of elements of a window.
_WINDOW = 1 << 18


def factor(
    pbtrf: Callable[..., Any],
    targets: Sequence[np.ndarray],
    below: Sequence[np.ndarray],
    above: Sequence[np.ndarray],
) -> bool:
    """Fill `targets` with the diagonals of the lower Cholesky factor of the Hermitian part of one matrix.

    Parameters
    ----------
    pbtrf : callable
        LAPACK's factorization.
    targets, below : sequence of numpy.ndarray
        All diagonals from the main diagonal down.
    above : sequence of numpy.ndarray
        All diagonals from the first superdiagonal up; none if the matrix is Hermitian, which saves reading them.

    Returns
    -------
    bool
        Whether this succeeded. It does not for matrices that are not positive definite, or have NaN or infinities, and `targets` are
        then undefined.

    Notes
    -----
    The factor of leading rows consists of the leading rows of the factor. So each window has w more columns than it completes, which
    gives the completed columns all of their rows.
    """
    n, w, dtype = below[0].size, len(below) - 1, below[0].dtype
    count = _columns_per_window(w)
    columns = np.zeros((min(n, count + w), w + 1), dtype)
    block = np.zeros((w + 1, columns.shape[0]), dtype)
    flat = columns.reshape(-1)
    for start in range(0, n, count):
        stop = min(n, start + count)
        size = min(n, stop + w) - start
        earlier = np.tril(_square(flat, count * (w + 1) - w * w, w)) if start else None
        _write_hermitian_part(block, below, above, start, size)
        columns[:size] = block[:, :size].T
        if earlier is not None:
            with np.errstate(all="ignore"):
                change = earlier.conj().T @ earlier
            if not np.isfinite(change).all():
                return False
            _square(flat, 0, w)[...] -= np.triu(change)
        factors, info = pbtrf(columns[:size].T, lower=1, overwrite_ab=1)
        if info:
            return False
        if not np.shares_memory(factors, columns):
            columns[:size] = factors.T
        write_diagonals([d[start:stop] for d in targets], columns)
    return True


def hermitian_part(below: Sequence[np.ndarray], above: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The diagonals of the Hermitian part from the main diagonal down."""
    block = np.zeros((len(below), below[0].size), below[0].dtype)
    _write_hermitian_part(block, below, above, 0, below[0].size)
    return [row[: d.size] for row, d in zip(block, below, strict=True)]


def _square(flat: np.ndarray, position: int, w: int) -> np.ndarray:
    """A square matrix in LAPACK's storage, whose row j has entries of one column of A, from the same row of A on in each row.

    At position 0, ``[j, i]`` is entry (i, j) of the window for i >= j. At the end of the completed columns, it is the entry of the
    last w of these in row i of the next window for i <= j. The other triangle has other entries of the storage.
    """
    return flat[position : position + w * w].reshape(w, w)


def _columns_per_window(w: int) -> int:
    # Not a multiple of 64: the rows of a block must not compete for the same lines of the cache.
    return max(_WINDOW // (w + 1) // 64 * 64 + 8, w)


def _write_hermitian_part(
    block: np.ndarray, below: Sequence[np.ndarray], above: Sequence[np.ndarray], start: int, size: int
) -> None:
    """Fill row k with `size` elements of diagonal -k of the Hermitian part, from element `start` on, and with zeros."""
    block[0, :size] = below[0][start : start + size].real
    for k, (row, d) in enumerate(zip(block[1:], below[1:], strict=True)):
        d = d[start : start + size]
        part = row[: d.size]
        if above:
            e = above[k][start : start + size]
            with np.errstate(over="ignore"):
                np.add(d, np.conj(e) if np.iscomplexobj(e) else e, out=part)
            part *= 0.5
        else:
            part[...] = d
        row[d.size : size] = 0
