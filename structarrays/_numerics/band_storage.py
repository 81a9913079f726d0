"""Copies between diagonals and LAPACK's band storage, in NumPy on the host.

Band storage is transposed, as in `lapack_bands`: row j of an array has the stored entries of column j of the matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

# Diagonals are copied to band storage in blocks of about this size in numbers: a block stays in the cache.
_BLOCK = 1 << 18


def columns_per_block(width: int) -> int:
    """A number of columns that is no multiple of 64: rows of a block must not compete for the same lines of the cache."""
    return _BLOCK // width // 64 * 64 + 8


def write_columns(target: np.ndarray, entries: dict[int, tuple[int, np.ndarray]]) -> None:
    """Fill ``target[j, p]`` with ``vector[j - first]``, for ``entries[p] = first, vector``, and with zeros.

    The vectors are copied to the rows of a block, which is then transposed. Storing them in the columns of `target` would write to
    a new line of the cache for each number.
    """
    n = target.shape[0]
    top, end = min(entries), max(entries) + 1
    target[:, :top] = 0
    target[:, end:] = 0
    count = columns_per_block(end - top)
    block = np.zeros((end - top, min(n, count)), target.dtype)
    for start in range(0, n, count):
        stop = min(n, start + count)
        for p, (first, vector) in entries.items():
            low, high = first - start, first + vector.size - start
            row = block[p - top]
            if low <= 0 and high >= stop - start:
                row[: stop - start] = vector[-low : stop - first]
            else:
                low, high = max(low, 0), max(high, 0)
                row[:low] = 0
                row[low:high] = vector[max(0, start - first) : max(0, stop - first)]
                row[high:] = 0
        target[start:stop, top:end] = block[:, : stop - start].T


def write_diagonals(targets: Sequence[np.ndarray], columns: np.ndarray) -> None:
    """Fill ``targets[k][j]`` with ``columns[j, k]``: the inverse of `write_columns` for lower triangles.

    This is fast if the columns are in the cache.
    """
    for k, target in enumerate(targets):
        target[...] = columns[: target.size, k]
