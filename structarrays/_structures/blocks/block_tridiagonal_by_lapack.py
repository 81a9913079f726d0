"""Linear systems with block-tridiagonal matrices by LAPACK, in programs for CPUs (see `_numerics.host_calls`).

Small blocks are copied to band storage, for LAPACK's banded solvers: Gaussian elimination with partial pivoting (`gbtrf`), or Cholesky
factorization (`pbtrf`). General matrices of larger blocks are first eliminated block by block, with pivots from the diagonal blocks
only (`block_elimination`). This takes half of the time, but is not always stable. So the residual decides whether the solution is taken.

A *way* to solve writes its factors into given arrays. So a program either keeps them for its other linear systems with the same matrix,
as derivatives need, or uses memory of NumPy. XLA would have to get memory for factors from the system, which takes longer.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..._numerics.host_calls import are_allowed, on_cpu
from ..._numerics.lapack_bands import lapack_functions
from . import block_elimination

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.typing import DTypeLike

# The block sizes for which LAPACK's banded solvers are faster than the loops of `block_tridiagonal`, for general and for positive
# definite matrices. Matrices of fewer elements take less time than a call of the host.
_LARGEST = 64
_LARGEST_DEFINITE = 24
_SMALLEST_MATRIX = 10_000

# From this block size on, elimination block by block is faster than LAPACK's banded solver.
_BY_BLOCKS = 20

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
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b`` without keeping factors.

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
    ways = _ways(diagonal.shape[-1], b.dtype, positive_definite)

    def fill(x: np.ndarray, ok: np.ndarray, *arrays: np.ndarray) -> None:
        for i in np.ndindex(ok.shape):
            *blocks, right = (a[i] for a in arrays)
            x[i], ok[i] = _result(_solve_once(ways, blocks, right, False), blocks)

    x, ok = on_cpu(fill, portable, _results(b), lower, diagonal, upper, b)
    return x, ok


def factor(positive_definite: bool, lower: jax.Array, diagonal: jax.Array, upper: jax.Array) -> tuple[jax.Array, ...]:
    """Factors for `solve_by_factors`: the factors of the first way to solve, and whether they can be used, (...)."""
    *batch, count, m, _ = diagonal.shape
    way = _ways(m, diagonal.dtype, positive_definite)[0]
    results = *way.factors(count, m), jax.ShapeDtypeStruct((), bool)
    results = tuple(jax.ShapeDtypeStruct((*batch, *r.shape), r.dtype) for r in results)

    def fill(*arrays: np.ndarray) -> None:
        *factors, usable = arrays[: len(results)]
        blocks = arrays[len(results) :]
        for i in np.ndindex(usable.shape):
            targets = [a[i] for a in factors]
            with np.errstate(all="ignore"):
                usable[i] = way.factor(*targets, *(a[i] for a in blocks))
            if not usable[i]:
                for target in targets:
                    target[...] = 0

    def without_factors(*_: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(jnp.zeros(r.shape, r.dtype) for r in results)

    return on_cpu(fill, without_factors, results, lower, diagonal, upper)


def solve_by_factors(
    portable: Callable[..., Sequence[jax.Array]],
    positive_definite: bool,
    lower: jax.Array,
    diagonal: jax.Array,
    upper: jax.Array,
    factors: Sequence[jax.Array],
    b: jax.Array,
    *,
    transposed: bool,
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b`` or ``A^T x = b`` by the results of `factor`; see `solve`. Factors that cannot be used are computed again."""
    ways = _ways(diagonal.shape[-1], b.dtype, positive_definite)
    blocks = lower, diagonal, upper

    def fill(x: np.ndarray, ok: np.ndarray, *arrays: np.ndarray) -> None:
        for i in np.ndindex(ok.shape):
            *given, right = (a[i] for a in arrays)
            blocks, (*factors, usable) = given[:3], given[3:]
            found = None
            with np.errstate(all="ignore"):
                if usable:
                    found = ways[0].substitute(*factors, *blocks, right, transposed)
            if found is None:
                found = _solve_once(ways[-1:], blocks, right, transposed)
            x[i], ok[i] = _result(found, blocks)

    def in_xla(*arrays: jax.Array) -> Sequence[jax.Array]:
        return portable(*arrays[:3], arrays[-1])

    x, ok = on_cpu(fill, in_xla, _results(b), *blocks, *factors, b)
    return x, ok


def _results(b: jax.Array) -> tuple[jax.ShapeDtypeStruct, jax.ShapeDtypeStruct]:
    return jax.ShapeDtypeStruct(b.shape, b.dtype), jax.ShapeDtypeStruct(b.shape[:-2], bool)


def _result(x: np.ndarray | None, blocks: Sequence[np.ndarray]) -> tuple[np.ndarray | float, bool]:
    """The solution and whether there is one. A matrix with NaN is not singular."""
    return (x, True) if x is not None else (np.nan, not all(np.isfinite(a).all() for a in blocks))


def _solve_once(
    ways: Sequence[_Way], blocks: Sequence[np.ndarray], b: np.ndarray, transposed: bool
) -> np.ndarray | None:
    """Try the ways in order; None if all fail."""
    for way in ways:
        with np.errstate(all="ignore"):
            if way.once is not None:
                x = way.once(*blocks, b, transposed)
            else:
                factors = [np.empty(f.shape, f.dtype) for f in way.factors(*blocks[1].shape[:2])]
                x = way.substitute(*factors, *blocks, b, transposed) if way.factor(*factors, *blocks) else None
        if x is not None:
            return x
    return None


class _Way(NamedTuple):
    """A factorization and its substitution, for single matrices: the blocks ``lower, diagonal, upper`` have no batch."""

    factors: Callable[[int, int], tuple[jax.ShapeDtypeStruct, ...]]
    """The shapes and data types of the factors, for N block rows of m rows."""
    factor: Callable[..., bool]
    """``factor(*factors, *blocks)`` fills the factors, and returns whether they can be used."""
    substitute: Callable[..., np.ndarray | None]
    """``substitute(*factors, *blocks, b, transposed)`` returns the solution, or None if its residual is large."""
    once: Callable[..., np.ndarray | None] | None = None
    """``once(*blocks, b, transposed)`` returns the same or None in less time, without factors."""


def _ways(m: int, dtype: DTypeLike, positive_definite: bool) -> tuple[_Way, ...]:
    """The ways to solve in order: if one fails, the next is taken. The last one fails only for a singular (not definite) matrix."""
    if positive_definite:
        pbtrf, pbtrs = lapack_functions("pbtrf", "pbtrs", dtype=dtype)
        by_cholesky = _Way(
            lambda count, m: (jax.ShapeDtypeStruct((count * m, 2 * m), dtype),),
            functools.partial(_factor_definite, pbtrf),
            functools.partial(_substitute_definite, pbtrs),
        )
        return (by_cholesky,)
    gbtrf, gbtrs, *for_blocks = lapack_functions("gbtrf", "gbtrs", "getrf", "getrs", dtype=dtype)
    by_bands = _Way(
        lambda count, m: (
            jax.ShapeDtypeStruct((count * m, 6 * m - 2), dtype),
            jax.ShapeDtypeStruct((count * m,), np.int32),
        ),
        functools.partial(_factor_general, gbtrf),
        functools.partial(_substitute_general, gbtrs),
    )
    if m < _BY_BLOCKS:
        return (by_bands,)
    by_blocks = _Way(
        lambda count, m: (
            jax.ShapeDtypeStruct((count, m, m), dtype),
            jax.ShapeDtypeStruct((count, m, m), dtype),
            jax.ShapeDtypeStruct((count, m), np.int32),
        ),
        functools.partial(block_elimination.factor, for_blocks),
        functools.partial(block_elimination.solve_by_factors, for_blocks),
        functools.partial(block_elimination.solve, for_blocks),
    )
    return by_blocks, by_bands


def _factor_definite(
    pbtrf: Callable[..., Any], columns: np.ndarray, lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray
) -> bool:
    m = diagonal.shape[1]
    _write_band_storage(columns, None, diagonal, lower, 0)
    # Other entries above the diagonal were written behind the column before.
    for c in range(1, m):
        columns[c::m, 2 * m - c :] = 0
    factor, info = pbtrf(columns.T, lower=1, overwrite_ab=1)
    _keep(columns, factor)
    return bool(info == 0)


def _substitute_definite(
    pbtrs: Callable[..., Any],
    columns: np.ndarray,
    lower: np.ndarray,
    diagonal: np.ndarray,
    upper: np.ndarray,
    b: np.ndarray,
    transposed: bool,
) -> np.ndarray:
    conjugated = transposed and np.iscomplexobj(b)  # the transpose is the conjugate
    right = np.array(np.conj(b) if conjugated else b, order="F")
    x: np.ndarray = pbtrs(columns.T, right, lower=1, overwrite_b=1)[0]
    return np.conj(x) if conjugated else x


def _factor_general(
    gbtrf: Callable[..., Any],
    columns: np.ndarray,
    pivots: np.ndarray,
    lower: np.ndarray,
    diagonal: np.ndarray,
    upper: np.ndarray,
) -> bool:
    m = diagonal.shape[1]
    w = 2 * m - 1
    _write_band_storage(columns, upper, diagonal, lower, 2 * w - m)
    factors, pivots[...], info = gbtrf(columns.T, w, w, overwrite_ab=1)
    _keep(columns, factors)
    return bool(info == 0)


def _substitute_general(
    gbtrs: Callable[..., Any],
    columns: np.ndarray,
    pivots: np.ndarray,
    lower: np.ndarray,
    diagonal: np.ndarray,
    upper: np.ndarray,
    b: np.ndarray,
    transposed: bool,
) -> np.ndarray:
    w = 2 * diagonal.shape[1] - 1
    # SciPy changes the pivots for a moment, so it gets a copy.
    x: np.ndarray = gbtrs(columns.T, w, w, np.array(b, order="F"), pivots.copy(), trans=int(transposed), overwrite_b=1)[
        0
    ]
    return x


def _keep(columns: np.ndarray, factors: np.ndarray) -> None:
    """Copy the factors, unless LAPACK wrote them in place."""
    if not np.shares_memory(factors, columns):
        columns[...] = factors.T


def _write_band_storage(
    columns: np.ndarray, upper: np.ndarray | None, diagonal: np.ndarray, lower: np.ndarray, first: int
) -> None:
    """Fill band storage (N m, width) with the entries of column j of the blocks in row j, and with zeros.

    The columns of a block have the same rows at one position less each, since band storage aligns the diagonal. `first` is the position
    of these rows in the first column.
    """
    count, m, _ = diagonal.shape
    columns[...] = 0
    width = columns.shape[1]
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
