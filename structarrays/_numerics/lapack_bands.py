"""Factorizations and linear systems of square banded matrices by LAPACK, in programs for CPUs (see `host_calls`).

Matrices are tuples of diagonals (..., n - |offset|) and their static offsets, as in `bands`. LAPACK reads the columns of a band from
consecutive memory. So factors are stored as the transpose of LAPACK's band storage, one column of the matrix in each row.

Other devices and exported programs use the loops of `banded_cholesky` and `banded_lu`, with the same results.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from . import banded_cholesky, banded_lu, banded_rows, banded_systems, cholesky_in_windows
from .band_storage import write_columns, write_diagonals
from .host_calls import are_allowed, on_cpu
from .symbolic import smaller

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core.typing import DTypeLike

# Smaller matrices take less time than a call of the host, in elements of the band.
_SMALL = 500


def is_faster(kl: int, ku: int, n: int, narrowest: int) -> bool:
    """Return whether LAPACK is faster than the loops, for bandwidths from `narrowest` on."""
    return are_allowed() and max(kl, ku) >= narrowest and not smaller(n * (kl + ku + 1), _SMALL)


# ---- positive definite matrices ------------------------------------------------------------------------------------


def factor_definite(lower: dict[int, jax.Array], n: int) -> tuple[jax.Array, jax.Array]:
    """Cholesky factorization of Hermitian positive definite matrices, for `solve_definite`.

    Parameters
    ----------
    lower : dict
        The diagonals of the lower triangle, by their offsets; the main diagonal must be real, but may have a complex data type.

    Returns
    -------
    columns : jax.Array, (..., n, w + 1)
        Column j of the lower factor in row j; NaN for a matrix that is not positive definite.
    ok : jax.Array of bool, (...)
        Whether the matrix is positive definite, or has NaN or infinities.
    """
    offsets, w, dtype, batch = _described(lower, n)
    (pbtrf,) = lapack_functions("pbtrf", dtype=dtype)

    def fill(columns: np.ndarray, ok: np.ndarray, *diagonals: np.ndarray) -> None:
        for i in np.ndindex(ok.shape):
            ok[i] = _cholesky_in_place(pbtrf, columns[i], offsets, [d[i] for d in diagonals])

    in_xla = functools.partial(_factor_definite_in_xla, offsets=offsets, n=n)
    results = _like(((*batch, n, w + 1), dtype), (batch, bool))
    columns, ok = on_cpu(fill, in_xla, results, *lower.values())
    return columns, ok


def cholesky(below: Sequence[jax.Array], above: Sequence[jax.Array]) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """Cholesky factors of the Hermitian parts of matrices.

    Parameters
    ----------
    below, above : sequence of jax.Array
        All diagonals from the main diagonal down, and from the first superdiagonal up. Matrices without `above` are Hermitian.

    Returns
    -------
    diagonals : tuple of jax.Array
        The diagonals of the lower factor, from the main diagonal down; NaN for a matrix that is not positive definite.
    ok : jax.Array of bool, (...)
        Whether the matrix is positive definite, or has NaN or infinities.
    """
    w, (*batch, n), dtype = len(below) - 1, below[0].shape, np.dtype(jnp.result_type(*below))
    (pbtrf,) = lapack_functions("pbtrf", dtype=dtype)
    offsets = tuple(range(0, -w - 1, -1))

    def fill(*arrays: np.ndarray) -> None:
        factor, ok, diagonals = arrays[: w + 1], arrays[w + 1], arrays[w + 2 :]
        for i in np.ndindex(ok.shape):
            targets, matrix = [d[i] for d in factor], [d[i] for d in diagonals]
            below, above = matrix[: w + 1], matrix[w + 1 :]
            ok[i] = cholesky_in_windows.factor(pbtrf, targets, below, above)
            if not ok[i]:
                columns = np.empty((n, w + 1), dtype)
                ok[i] = _cholesky_in_place(pbtrf, columns, offsets, cholesky_in_windows.hermitian_part(below, above))
                write_diagonals(targets, columns)

    def in_xla(*diagonals: jax.Array) -> tuple[jax.Array, ...]:
        main, *others = diagonals[: w + 1]
        if above:
            others = [(d + e.conj()) / 2 for d, e in zip(others, diagonals[w + 1 :], strict=True)]
        columns, ok = _factor_definite_in_xla(main, *others, offsets=offsets, n=n)
        return *(columns[..., : n - k, k] for k in range(w + 1)), ok

    results = _like(*(((*batch, n - k), dtype) for k in range(w + 1)), (batch, bool))
    *diagonals, ok = on_cpu(fill, in_xla, results, *below, *above)
    return tuple(diagonals), ok


def _described(lower: dict[int, jax.Array], n: int) -> tuple[tuple[int, ...], int, np.dtype, tuple[int, ...]]:
    """Offsets, bandwidth, data type and batch shape."""
    offsets = tuple(lower)
    return offsets, -min(offsets), np.dtype(jnp.result_type(*lower.values())), next(iter(lower.values())).shape[:-1]


def _cholesky_in_place(
    pbtrf: Callable[..., Any], columns: np.ndarray, offsets: Sequence[int], diagonals: Sequence[np.ndarray]
) -> bool:
    write_columns(columns, {-k: (0, d) for k, d in zip(offsets, diagonals, strict=True)})
    factor, info = pbtrf(columns.T, lower=1, overwrite_ab=1)
    if info:
        columns[...] = np.nan
        return not all(np.isfinite(d).all() for d in diagonals)
    if not np.shares_memory(factor, columns):
        columns[...] = factor.T
    return True


def _factor_definite_in_xla(*diagonals: jax.Array, offsets: Sequence[int], n: int) -> tuple[jax.Array, jax.Array]:
    columns = banded_cholesky.from_diagonals(diagonals, offsets, n, jnp.result_type(*diagonals))
    system = functools.partial(banded_cholesky.cholesky, n=n, w=-min(offsets))
    return banded_systems.one_by_one(system, columns.shape[:-2], columns)


def solve_definite(columns: jax.Array, b: jax.Array, *, transposed: bool) -> jax.Array:
    """Solve ``A x = b`` or ``A^T x = b``, b (..., n, k), by the factor of `factor_definite`."""
    (pbtrs,) = lapack_functions("pbtrs", dtype=b.dtype)
    conjugated = transposed and jnp.iscomplexobj(b)  # the transpose is the conjugate

    def fill(x: np.ndarray, columns: np.ndarray, b: np.ndarray) -> None:
        for i in np.ndindex(b.shape[:-2]):
            right = np.array(np.conj(b[i]) if conjugated else b[i], order="F")
            solution = pbtrs(columns[i].T, right, lower=1, overwrite_b=1)[0]
            x[i] = np.conj(solution) if conjugated else solution

    in_xla = functools.partial(_solve_definite_in_xla, conjugated=conjugated)
    return on_cpu(fill, in_xla, _like((b.shape, b.dtype)), columns, b)[0]


def factor_and_solve_definite(lower: dict[int, jax.Array], n: int, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b`` without keeping the factor, whose memory XLA would have to get from the system."""
    offsets, w, dtype, batch = _described(lower, n)
    pbtrf, pbtrs = lapack_functions("pbtrf", "pbtrs", dtype=dtype)

    def fill(x: np.ndarray, ok: np.ndarray, b: np.ndarray, *diagonals: np.ndarray) -> None:
        columns = np.empty((n, w + 1), dtype)
        for i in np.ndindex(ok.shape):
            ok[i] = _cholesky_in_place(pbtrf, columns, offsets, [d[i] for d in diagonals])
            x[i] = pbtrs(columns.T, np.array(b[i], order="F"), lower=1, overwrite_b=1)[0]

    def in_xla(b: jax.Array, *diagonals: jax.Array) -> tuple[jax.Array, jax.Array]:
        columns, ok = _factor_definite_in_xla(*diagonals, offsets=offsets, n=n)
        return *_solve_definite_in_xla(columns, b, conjugated=False), ok

    x, ok = on_cpu(fill, in_xla, _like((b.shape, dtype), (batch, bool)), b, *lower.values())
    return x, ok


def _solve_definite_in_xla(columns: jax.Array, b: jax.Array, conjugated: bool) -> tuple[jax.Array]:
    def system(columns: jax.Array, b: jax.Array) -> jax.Array:
        columns = columns.conj() if conjugated else columns
        below, pivots = tuple(range(1, columns.shape[1])), columns[:, 0]
        y = banded_rows.substitute_by_columns(columns, below, b, pivots, first=1)
        return banded_rows.substitute(columns[:, 1:].conj(), below, y, pivots)

    return (banded_systems.one_by_one(system, b.shape[:-2], columns, b),)


# ---- general matrices ----------------------------------------------------------------------------------------------


def factor(diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """LU factorization with partial pivoting.

    Returns
    -------
    columns : jax.Array, (..., n, 2 kl + ku + 1)
        Row j has column j of U, from kl + ku superdiagonals to the diagonal, and the multipliers of column j.
    pivots : jax.Array of int32, (..., n)
        The row that row j was exchanged with.
    ok : jax.Array of bool, (...)
        Whether no pivot is zero.
    """
    kl, ku, dtype, batch, gbtrf = _general(diagonals, offsets)

    def fill(columns: np.ndarray, pivots: np.ndarray, ok: np.ndarray, *diagonals: np.ndarray) -> None:
        for i in np.ndindex(ok.shape):
            pivots[i], ok[i] = _factor_in_place(gbtrf, columns[i], offsets, [d[i] for d in diagonals])

    in_xla = functools.partial(_factor_in_xla, offsets=offsets, n=n)
    results = _like(((*batch, n, 2 * kl + ku + 1), dtype), ((*batch, n), np.int32), (batch, bool))
    columns, pivots, ok = on_cpu(fill, in_xla, results, *diagonals)
    return columns, pivots, ok


def determinant_factors(diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int) -> tuple[jax.Array, jax.Array]:
    """The diagonal of U (..., n), and whether the number of exchanges of rows is odd (...); see `factor`."""
    kl, ku, dtype, batch, gbtrf = _general(diagonals, offsets)

    def fill(diagonal: np.ndarray, odd: np.ndarray, *diagonals: np.ndarray) -> None:
        columns, rows = np.empty((n, 2 * kl + ku + 1), dtype), np.arange(n)
        for i in np.ndindex(odd.shape):
            pivots, _ = _factor_in_place(gbtrf, columns, offsets, [d[i] for d in diagonals])
            diagonal[i] = columns[:, kl + ku]
            odd[i] = np.count_nonzero(pivots != rows) % 2

    def in_xla(*diagonals: jax.Array) -> tuple[jax.Array, jax.Array]:
        columns, pivots, _ = _factor_in_xla(*diagonals, offsets=offsets, n=n)
        return columns[..., kl + ku], jnp.sum(pivots != jnp.arange(n), -1) % 2 == 1

    diagonal, odd = on_cpu(fill, in_xla, _like(((*batch, n), dtype), (batch, bool)), *diagonals)
    return diagonal, odd


def factor_and_solve(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int, b: jax.Array, *, transposed: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b`` or ``A^T x = b`` without keeping the factors, whose memory XLA would have to get from the system.

    Also return whether no pivot is zero (...); x has no meaning otherwise.
    """
    kl, ku, dtype, batch, gbtrf = _general(diagonals, offsets)
    (gbtrs,) = lapack_functions("gbtrs", dtype=dtype)

    def fill(x: np.ndarray, ok: np.ndarray, b: np.ndarray, *diagonals: np.ndarray) -> None:
        columns = np.empty((n, 2 * kl + ku + 1), dtype)
        for i in np.ndindex(ok.shape):
            pivots, ok[i] = _factor_in_place(gbtrf, columns, offsets, [d[i] for d in diagonals])
            right = np.array(b[i], order="F")
            x[i] = gbtrs(columns.T, kl, ku, right, pivots, trans=int(transposed), overwrite_b=1)[0]

    def in_xla(b: jax.Array, *diagonals: jax.Array) -> tuple[jax.Array, jax.Array]:
        columns, pivots, ok = _factor_in_xla(*diagonals, offsets=offsets, n=n)
        return *_solve_in_xla(columns, pivots, b, kl=kl, transposed=transposed), ok

    x, ok = on_cpu(fill, in_xla, _like((b.shape, dtype), (batch, bool)), b, *diagonals)
    return x, ok


def _general(
    diagonals: Sequence[jax.Array], offsets: Sequence[int]
) -> tuple[int, int, np.dtype, tuple[int, ...], Callable[..., Any]]:
    """Bandwidths, data type and batch shape, and LAPACK's factorization."""
    kl, ku = banded_rows.bandwidths(offsets)
    dtype = np.dtype(jnp.result_type(*diagonals))
    (gbtrf,) = lapack_functions("gbtrf", dtype=dtype)
    return kl, ku, dtype, diagonals[0].shape[:-1], gbtrf


def _factor_in_place(
    gbtrf: Callable[..., Any], columns: np.ndarray, offsets: Sequence[int], diagonals: Sequence[np.ndarray]
) -> tuple[np.ndarray, bool]:
    """Fill `columns` with the factors, and return the pivots and whether none is zero."""
    kl, ku = banded_rows.bandwidths(offsets)
    # LAPACK clears the space for further diagonals of the factor, but not outside of the matrix.
    columns[: kl + ku, :kl] = 0
    write_columns(columns[:, kl:], {ku - k: (max(0, k), d) for k, d in zip(offsets, diagonals, strict=True)})
    factors, pivots, info = gbtrf(columns.T, kl, ku, overwrite_ab=1)
    if not np.shares_memory(factors, columns):
        columns[...] = factors.T
    return pivots, info == 0


def _factor_in_xla(*diagonals: jax.Array, offsets: Sequence[int], n: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    kl, ku = banded_rows.bandwidths(offsets)

    def system(rows: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        upper, multipliers, distances = banded_lu.factor_rows(rows, kl, ku)
        return *joined(upper, multipliers, distances), ~jnp.any(upper[:, 0] == 0)

    rows = banded_rows.from_diagonals(diagonals, offsets, n, jnp.result_type(*diagonals))
    return banded_systems.one_by_one(system, rows.shape[:-2], rows)


def joined(upper: jax.Array, multipliers: jax.Array, distances: jax.Array) -> tuple[jax.Array, jax.Array]:
    """``columns`` and ``pivots`` of one matrix from the factors of `banded_factors`: the inverse of `parts`."""
    columns = [banded_rows.shifted(upper[:, d], d) for d in range(upper.shape[1] - 1, -1, -1)]
    pivots = jnp.arange(distances.shape[0], dtype=distances.dtype) + distances
    return jnp.concatenate([jnp.stack(columns, 1), multipliers], 1), pivots


def parts(columns: jax.Array, pivots: jax.Array, kl: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The factors of one matrix in the form of `banded_factors`: ``upper``, ``multipliers`` and ``pivots``."""
    n, width = columns.shape
    last = width - kl - 1
    upper = jnp.stack([banded_rows.shifted(columns[:, last - d], -d) for d in range(last + 1)], 1)
    return upper, columns[:, last + 1 :], pivots - jnp.arange(n, dtype=pivots.dtype)


def solve(columns: jax.Array, pivots: jax.Array, b: jax.Array, kl: int, *, transposed: bool) -> jax.Array:
    """Solve ``A x = b`` or ``A^T x = b``, b (..., n, k), by the factors of `factor`."""
    ku = columns.shape[-1] - 2 * kl - 1
    (gbtrs,) = lapack_functions("gbtrs", dtype=b.dtype)

    def fill(x: np.ndarray, columns: np.ndarray, pivots: np.ndarray, b: np.ndarray) -> None:
        for i in np.ndindex(b.shape[:-2]):
            right = np.array(b[i], order="F")
            # SciPy changes the pivots for a moment, so it gets a copy.
            x[i] = gbtrs(columns[i].T, kl, ku, right, pivots[i].copy(), trans=int(transposed), overwrite_b=1)[0]

    in_xla = functools.partial(_solve_in_xla, kl=kl, transposed=transposed)
    return on_cpu(fill, in_xla, _like((b.shape, b.dtype)), columns, pivots, b)[0]


def _solve_in_xla(columns: jax.Array, pivots: jax.Array, b: jax.Array, kl: int, transposed: bool) -> tuple[jax.Array]:
    def system(columns: jax.Array, pivots: jax.Array, b: jax.Array) -> jax.Array:
        return banded_lu.solve_by_factors(*parts(columns, pivots, kl), b, transposed)[0]

    return (banded_systems.one_by_one(system, b.shape[:-2], columns, pivots, b),)


def _like(*shapes: tuple[Sequence[int], DTypeLike]) -> tuple[jax.ShapeDtypeStruct, ...]:
    return tuple(jax.ShapeDtypeStruct(tuple(shape), dtype) for shape, dtype in shapes)


def lapack_functions(*names: str, dtype: DTypeLike) -> list[Callable[..., Any]]:
    """Functions of LAPACK. Called while JAX traces: the import does not happen on a thread of XLA."""
    from scipy.linalg import get_lapack_funcs  # type: ignore[import-untyped]  # SciPy has no type stubs

    functions: list[Callable[..., Any]] = get_lapack_funcs(names, dtype=np.dtype(dtype))
    return functions
