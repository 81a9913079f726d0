"""Elimination of block-tridiagonal matrices block by block, in NumPy on the host, with pivots from the diagonal blocks only.

The matrix is the product of a block lower bidiagonal and a block upper bidiagonal matrix. The former has the given blocks below its
diagonal, and the latter has identities on its diagonal (Golub and Van Loan, *Matrix Computations*, 4.5.1). Such an elimination is not
always stable. So the residual decides whether a solution is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# The largest residual that is accepted, in rounding errors.
_ACCEPTED = 10

# A matrix with larger multipliers than this (root mean square of rows) is unlikely to have an accepted residual.
_LARGEST_MULTIPLIER = 30


def factor(
    lapack: Sequence[Callable[..., Any]],
    multipliers: np.ndarray,
    pivot_blocks: np.ndarray,
    exchanges: np.ndarray,
    lower: np.ndarray,
    diagonal: np.ndarray,
    upper: np.ndarray,
) -> bool:
    """Fill arrays with the factors of a matrix; return False if a pivot is zero or a multiplier is large.

    Parameters
    ----------
    lapack : sequence of callable
        ``getrf`` and ``getrs``.
    multipliers : np.ndarray, (N, m, m)
        The transposes of the blocks above the diagonal of the upper bidiagonal factor; the last is zero.
    pivot_blocks : np.ndarray, (N, m, m)
        The results of ``getrf`` for the transposes of the diagonal blocks of the lower bidiagonal factor, in rows.
    exchanges : np.ndarray of int32, (N, m)
    lower, upper : np.ndarray, (N - 1, m, m)
    diagonal : np.ndarray, (N, m, m)
    """

    def keep(i: int, factors: np.ndarray, pivots: np.ndarray) -> None:
        pivot_blocks[i], exchanges[i] = factors.T, pivots

    multipliers[:-1] = upper.swapaxes(1, 2)
    multipliers[-1] = 0
    return _eliminate(lapack, lower, diagonal, multipliers, keep)


def solve(
    lapack: Sequence[Callable[..., Any]],
    lower: np.ndarray,
    diagonal: np.ndarray,
    upper: np.ndarray,
    b: np.ndarray,
    transposed: bool,
) -> np.ndarray | None:
    """Solve ``A x = b`` or ``A^T x = b``, b (N m, k), without keeping factors; None if the residual is large."""
    count, m, _ = diagonal.shape
    if transposed:
        lower, diagonal, upper = transpose(lower, diagonal, upper)
    right = b.reshape(count, m, -1)
    # The columns of the equations "x + multipliers @ (x of the next block row) = constant" of each block row, solved in place.
    columns = np.zeros((count, m + right.shape[2], m), b.dtype)
    columns[:-1, :m] = upper.swapaxes(1, 2)
    columns[:, m:] = right.swapaxes(1, 2)
    if not _eliminate(lapack, lower, diagonal, columns):
        return None
    x = columns[:, m:].swapaxes(1, 2).copy()
    _subtract_upwards(columns[:, :m].swapaxes(1, 2), x)
    return x.reshape(b.shape) if _is_accurate(lower, diagonal, upper, x, right) else None


def solve_by_factors(
    lapack: Sequence[Callable[..., Any]],
    multipliers: np.ndarray,
    pivot_blocks: np.ndarray,
    exchanges: np.ndarray,
    lower: np.ndarray,
    diagonal: np.ndarray,
    upper: np.ndarray,
    b: np.ndarray,
    transposed: bool,
) -> np.ndarray | None:
    """Solve ``A x = b`` or ``A^T x = b``, b (N m, k), by the results of `factor`; None if the residual is large."""
    _, getrs = lapack
    count, m, _ = diagonal.shape
    right = b.reshape(count, m, -1)
    x = right.copy()
    exchanges = exchanges.copy()  # SciPy changes them for a moment

    def divide(i: int, trans: int) -> None:
        x[i] = getrs(pivot_blocks[i].T, exchanges[i], x[i], trans=trans)[0]

    if transposed:
        for i in range(1, count):
            x[i] -= multipliers[i - 1] @ x[i - 1]
        divide(count - 1, 0)
        for i in range(count - 2, -1, -1):
            x[i] -= lower[i].T @ x[i + 1]
            divide(i, 0)
        lower, diagonal, upper = transpose(lower, diagonal, upper)
    else:
        divide(0, 1)
        for i in range(1, count):
            x[i] -= lower[i - 1] @ x[i - 1]
            divide(i, 1)
        _subtract_upwards(multipliers.swapaxes(1, 2), x)
    return x.reshape(b.shape) if _is_accurate(lower, diagonal, upper, x, right) else None


def transpose(lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the blocks of the transpose."""
    return upper.swapaxes(1, 2), diagonal.swapaxes(1, 2), lower.swapaxes(1, 2)


def _eliminate(
    lapack: Sequence[Callable[..., Any]],
    lower: np.ndarray,
    diagonal: np.ndarray,
    columns: np.ndarray,
    keep: Callable[[int, np.ndarray, np.ndarray], None] | None = None,
) -> bool:
    """Eliminate the blocks below the diagonal, in place.

    Parameters
    ----------
    columns : np.ndarray, (N, m + k, m)
        The columns of the block above the diagonal and of the right-hand sides, in rows.
    keep : callable, optional
        ``keep(i, factors, pivots)`` is called with the results of ``getrf`` for the transpose of each diagonal block.

    Returns
    -------
    bool
        False if a pivot is zero or a multiplier is large.
    """
    getrf, getrs = lapack
    count, m, _ = diagonal.shape
    block = diagonal[0].copy()
    for i in range(count):
        factors, pivots, info = getrf(block.T, overwrite_a=1)
        if info:
            return False
        found = getrs(factors, pivots, columns[i].T, trans=1, overwrite_b=1)[0]
        multipliers = columns[i, :m]
        if not np.vdot(multipliers, multipliers).real <= m * _LARGEST_MULTIPLIER**2:
            return False
        if keep is not None:
            keep(i, factors, pivots)
        if i + 1 < count:
            change = lower[i] @ found
            block = diagonal[i + 1] - change[:, :m]
            columns[i + 1, m:] -= change[:, m:].T
    return True


def _subtract_upwards(multipliers: np.ndarray, x: np.ndarray) -> None:
    """Solve the upper bidiagonal system in place."""
    for i in range(len(x) - 2, -1, -1):
        x[i] -= multipliers[i] @ x[i + 1]


def _is_accurate(lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray, x: np.ndarray, right: np.ndarray) -> bool:
    """Return whether the residual of each row is small."""
    residual, size, norms = right.copy(), np.abs(right), np.zeros(right.shape[:2], right.real.dtype)
    every, parts = slice(None), _norms(x, "njk,njk->nk")[:, None, :]
    for blocks, at, of in (
        (diagonal, every, every),
        (lower, slice(1, None), slice(-1)),
        (upper, slice(-1), slice(1, None)),
    ):
        residual[at] -= blocks @ x[of]
        lengths = _norms(blocks, "nij,nij->ni")
        norms[at] += lengths
        size[at] += lengths[:, :, None] * parts[of]
    limits = np.finfo(right.dtype)
    # The residual of a row with tiny or huge numbers would underflow or overflow. XLA's threads replace subnormal numbers by zero.
    in_range = norms.min() >= limits.tiny**0.45 and norms.max() <= limits.max**0.45
    return bool(in_range and (np.abs(residual) <= _ACCEPTED * limits.eps * size).all())


def _norms(a: np.ndarray, subscripts: str) -> np.ndarray:
    """Euclidean norms of the rows or the columns."""
    parts = (a.real, a.imag) if np.iscomplexobj(a) else (a,)
    norms: np.ndarray = np.sqrt(sum(np.einsum(subscripts, p, p) for p in parts))
    return norms
