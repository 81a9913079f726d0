"""Linear systems with block-tridiagonal matrices by LAPACK, in programs for CPUs (see `_numerics.host_calls`).

Small blocks are copied to band storage, for LAPACK's banded solvers: Gaussian elimination with partial pivoting (`gbtrf`), or Cholesky
factorization (`pbtrf`). General matrices of larger blocks are first eliminated block by block, with pivots from the diagonal blocks
only. This takes half of the time, but is not always stable. So the residual decides whether the solution is taken. Each call factors the
matrix: XLA would have to get memory for factors from the system, which takes longer.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..._numerics.host_calls import are_allowed, on_cpu
from ..._numerics.lapack_bands import lapack_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# The block sizes for which LAPACK's banded solvers are faster than the loops of `block_tridiagonal`, for general and for positive
# definite matrices. Matrices of fewer elements take less time than a call of the host.
_LARGEST = 64
_LARGEST_DEFINITE = 24
_SMALLEST_MATRIX = 10_000

# From this block size on, elimination block by block is faster than LAPACK's banded solver.
_BY_BLOCKS = 20

# The largest residual that is accepted, in rounding errors.
_ACCEPTED = 10

# A matrix with larger multipliers than this (root mean square of rows) is unlikely to have an accepted residual.
_LARGEST_MULTIPLIER = 30

# Blocks are copied to band storage in groups of about this number of elements, which stay in the cache.
_GROUP = 1 << 17


def is_faster(count: int, m: int, positive_definite: bool) -> bool:
    """Return whether LAPACK is faster than the loops for `count` block rows of m rows."""
    largest = _LARGEST_DEFINITE if positive_definite else _LARGEST
    return are_allowed() and count > 1 and m <= largest and count * m * m >= _SMALLEST_MATRIX


def explanation(m: int, positive_definite: bool) -> str:
    """Describe what `solve` does for blocks of m rows, and why: a part of a sentence for users."""
    if positive_definite:
        return "Cholesky factorization by LAPACK in band storage, since it is assumed positive definite"
    by_bands = "LU factorization with partial pivoting by LAPACK in band storage (no assumption)"
    if m < _BY_BLOCKS:
        return by_bands
    return f"block elimination with pivots from the diagonal blocks if the residual is small, else {by_bands}"


def solve(
    portable: Callable[..., Sequence[jax.Array]],
    positive_definite: bool,
    lower: jax.Array,
    diagonal: jax.Array,
    upper: jax.Array,
    b: jax.Array,
    *,
    transposed: bool,
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b`` or ``A^T x = b``.

    Parameters
    ----------
    portable : callable
        The same as a JAX function of the blocks and b.
    positive_definite : bool
        Whether ``A`` is known to be Hermitian positive definite.
    diagonal : jax.Array, (..., N, m, m)
        The blocks on the diagonal.
    lower, upper : jax.Array, (..., N - 1, m, m)
        The blocks below and above the diagonal.
    b : jax.Array, (..., N m, k)

    Returns
    -------
    x : jax.Array, (..., N m, k)
        NaN where A is singular (not positive definite).
    ok : jax.Array of bool, (...)
        Whether A is regular (positive definite), or has NaN or infinities.
    """
    dtype = np.dtype(b.dtype)
    one: Callable[..., np.ndarray | None]
    if positive_definite:
        one = functools.partial(_solve_definite, lapack_functions("pbtrf", "pbtrs", dtype=dtype))
    else:
        one = functools.partial(_solve_general, lapack_functions("gbtrf", "gbtrs", "getrf", "getrs", dtype=dtype))

    def fill(x: np.ndarray, ok: np.ndarray, *arrays: np.ndarray) -> None:
        for i in np.ndindex(ok.shape):
            found = one(*(a[i] for a in arrays), transposed=transposed)
            # A matrix with NaN is not singular.
            ok[i] = found is not None or not all(np.isfinite(a[i]).all() for a in arrays[:3])
            x[i] = np.nan if found is None else found

    results = jax.ShapeDtypeStruct(b.shape, dtype), jax.ShapeDtypeStruct(b.shape[:-2], bool)
    x, ok = on_cpu(fill, portable, results, lower, diagonal, upper, b)
    return x, ok


def _solve_definite(
    lapack: Sequence[Callable[..., Any]],
    lower: np.ndarray,
    diagonal: np.ndarray,
    upper: np.ndarray,
    b: np.ndarray,
    transposed: bool,
) -> np.ndarray | None:
    pbtrf, pbtrs = lapack
    _, m, _ = diagonal.shape
    columns = _band_storage(None, diagonal, lower, 2 * m, 0)
    # Other entries above the diagonal were written behind the column before.
    for c in range(1, m):
        columns[c::m, 2 * m - c :] = 0
    if transposed:  # the transpose is the conjugate
        columns = columns.conj()
    factor, info = pbtrf(columns.T, lower=1, overwrite_ab=1)
    return None if info else pbtrs(factor, np.array(b, order="F"), lower=1, overwrite_b=1)[0]


def _solve_general(
    lapack: Sequence[Callable[..., Any]],
    lower: np.ndarray,
    diagonal: np.ndarray,
    upper: np.ndarray,
    b: np.ndarray,
    transposed: bool,
) -> np.ndarray | None:
    gbtrf, gbtrs, getrf, getrs = lapack
    count, m, _ = diagonal.shape
    if m >= _BY_BLOCKS:
        with np.errstate(all="ignore"):
            x = _solve_by_blocks(getrf, getrs, lower, diagonal, upper, b, transposed)
        if x is not None:
            return x
    w = 2 * m - 1
    columns = _band_storage(upper, diagonal, lower, 3 * w + 1, 2 * w - m)
    factors, pivots, info = gbtrf(columns.T, w, w, overwrite_ab=1)
    if info:
        return None
    solution: np.ndarray = gbtrs(factors, w, w, np.array(b, order="F"), pivots, trans=int(transposed), overwrite_b=1)[0]
    return solution


def _band_storage(
    upper: np.ndarray | None, diagonal: np.ndarray, lower: np.ndarray, width: int, first: int
) -> np.ndarray:
    """Return band storage (N m, width), in whose row j are the entries of column j of the blocks.

    The columns of a block have the same rows at one position less each, since band storage aligns the diagonal. `first` is the position
    of these rows in the first column.
    """
    count, m, _ = diagonal.shape
    columns = np.zeros((count * m, width), diagonal.dtype)
    top = 0 if upper is None else m
    rows, size = top + 2 * m, columns.itemsize
    by_block = as_strided(columns.reshape(-1)[first:], (count, m, rows), (m * width * size, (width - 1) * size, size))
    group = max(1, _GROUP // (rows * m))
    block_columns = np.zeros((group, rows, m), diagonal.dtype)
    for start in range(0, count, group):
        stop = min(count, start + group)
        part = block_columns[: stop - start]
        if upper is not None:
            part[int(start == 0) :, :m] = upper[max(0, start - 1) : stop - 1]
        part[:, top : top + m] = diagonal[start:stop]
        below = lower[start:stop]
        part[: len(below), top + m :] = below
        part[len(below) :, top + m :] = 0
        if upper is None:
            # Entries above the diagonal have no place. These are the last entries of the column before.
            part[:, 0, 1:] = part[:, -1, :-1]
        by_block[start:stop] = part.swapaxes(1, 2)
    return columns


def _solve_by_blocks(
    getrf: Callable[..., Any],
    getrs: Callable[..., Any],
    lower: np.ndarray,
    diagonal: np.ndarray,
    upper: np.ndarray,
    b: np.ndarray,
    transposed: bool,
) -> np.ndarray | None:
    """Block elimination with pivots from the diagonal blocks, or None if the residual of the solution is large."""
    count, m, _ = diagonal.shape
    if transposed:
        diagonal = diagonal.swapaxes(1, 2)
        lower, upper = upper.swapaxes(1, 2), lower.swapaxes(1, 2)
    right = b.reshape(count, m, -1)
    # The columns of the equations "x + multipliers @ (x of the next block row) = constant" of each block row, solved in place.
    columns = np.zeros((count, m + right.shape[2], m), b.dtype)
    columns[:-1, :m] = upper.swapaxes(1, 2)
    columns[:, m:] = right.swapaxes(1, 2)
    block = diagonal[0].copy()
    for i in range(count):
        factors, pivots, info = getrf(block.T, overwrite_a=1)
        if info:
            return None
        found = getrs(factors, pivots, columns[i].T, trans=1, overwrite_b=1)[0]
        multipliers = columns[i, :m]
        if not np.vdot(multipliers, multipliers).real <= m * _LARGEST_MULTIPLIER**2:
            return None
        if i + 1 < count:
            change = lower[i] @ found
            block = diagonal[i + 1] - change[:, :m]
            columns[i + 1, m:] -= change[:, m:].T
    x = np.empty((count, m, right.shape[2]), b.dtype)
    x[-1] = columns[-1, m:].T
    for i in range(count - 2, -1, -1):
        x[i] = columns[i, m:].T - columns[i, :m].T @ x[i + 1]
    residual, size, norms = right.copy(), np.abs(right), np.zeros(b.shape[:1], b.real.dtype).reshape(count, m)
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
    limits = np.finfo(b.dtype)
    # The residual of a row with tiny or huge numbers would underflow or overflow. XLA's threads replace subnormal numbers by zero.
    in_range = norms.min() >= limits.tiny**0.45 and norms.max() <= limits.max**0.45
    accepted = in_range and (np.abs(residual) <= _ACCEPTED * limits.eps * size).all()
    return x.reshape(b.shape) if accepted else None


def _norms(a: np.ndarray, subscripts: str) -> np.ndarray:
    """Euclidean norms of the rows or the columns."""
    parts = (a.real, a.imag) if np.iscomplexobj(a) else (a,)
    norms: np.ndarray = np.sqrt(sum(np.einsum(subscripts, p, p) for p in parts))
    return norms
