"""Linear systems, determinants and Cholesky factors of square banded matrices.

Matrices are tuples of diagonals (..., n - |offset|) and their static offsets, as in `bands`. All functions take
O(n kl (kl + ku)) operations and O(n (kl + ku)) memory for ``kl`` sub- and ``ku`` superdiagonals, derivatives included.
The offsets select the algorithm:

=====================  =================================================================================
diagonal               a division
triangular             substitution
tridiagonal            `tridiagonal`
positive definite      LDL^H (`narrow_definite`, `banded_cholesky`), for wide bands Cholesky by LAPACK (`lapack_bands`)
otherwise              elimination without pivoting if stable (`banded_lu`), else, and for wide bands, with
                       partial pivoting by LAPACK
=====================  =================================================================================

These loops over the rows are for the CPU. On other devices, `cyclic_reduction` precedes them, except for diagonal and tridiagonal
matrices. They solve what cyclic reduction cannot.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
from jax import lax

from . import (
    banded_by_lapack,
    banded_cholesky,
    banded_lu,
    banded_rows,
    banded_systems,
    bands,
    cyclic_reduction,
    lapack_bands,
    narrow_definite,
    tridiagonal,
)
from .flags import custom_jvp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core.typing import DTypeLike, Shape


def solve(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int, b: jax.Array, positive_definite: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b``.

    Parameters
    ----------
    diagonals, offsets, n
        The matrix, of the dtype of `b`.
    b : jax.Array, (..., n, k)
        The batch shape broadcasts against the batch shape of the matrix.
    positive_definite : bool
        Whether ``A`` is known to be Hermitian positive definite. Then the entries above the diagonal are not read.

    Returns
    -------
    x : jax.Array, (..., n, k)
        NaN where ``A`` is singular (not positive definite).
    ok : jax.Array, bool scalar
        Whether all pivots were nonzero (positive). NaN in `A` or `b` gives NaN in `x` and leaves it True.
    """
    batch = jnp.broadcast_shapes(b.shape[:-2], *(d.shape[:-1] for d in diagonals))
    diagonals, offsets = banded_rows.nonempty(diagonals, offsets, n)
    if not diagonals:
        diagonals, offsets = (jnp.zeros((*batch, n), b.dtype),), (0,)
    if {-1, 1} <= set(offsets) <= {-1, 0, 1}:
        main = diagonals[1] if 0 in offsets else jnp.zeros((*diagonals[0].shape[:-1], n), b.dtype)
        return tridiagonal.solve(diagonals[0], main, diagonals[-1], b, positive_definite)

    def matvec(diagonals: Sequence[jax.Array], x: jax.Array) -> jax.Array:
        return bands.matmul_dense(diagonals, offsets, (n, n), x)

    method, factor = _method(offsets, n, positive_definite)
    once = _once(offsets, n, positive_definite)
    return banded_systems.solve(method, diagonals, (1,) * len(diagonals), matvec, b, factor, once)


def explanation(offsets: Sequence[int], n: int, positive_definite: bool = False) -> str:
    """Describe what `solve` does for a matrix with n rows, why, and what it costs: a sentence for users."""
    kl, ku = banded_rows.bandwidths(offsets)
    if kl == ku == 0:
        return "a division of each row; O(n) for each column"
    if (kl, ku) != (1, 1) and cyclic_reduction.has_accelerator():
        return cyclic_reduction.explanation(max(kl, ku))
    if kl == 0 or ku == 0:
        return f"substitution, since the matrix is triangular; O(n w) for each column, w = {kl + ku}"
    w = max(kl, ku)
    if positive_definite and lapack_bands.is_faster(kl, ku, n, banded_by_lapack.DEFINITE):
        return f"Cholesky factorization by LAPACK, since it is assumed positive definite; O(n w**2), w = {w}"
    if positive_definite:
        return f"elimination without pivots (LDL^H), since it is assumed positive definite; O(n w**2), w = {w}"
    if kl == ku == 1:
        return "tridiagonal elimination with partial pivoting (no assumption); O(n)"
    if lapack_bands.is_faster(kl, ku, n, banded_by_lapack.GENERAL):
        return (
            "LU factorization with partial pivoting by LAPACK (no assumption); O(n w (w + u)), "
            f"w = {kl} and u = {ku} diagonals below and above"
        )
    return (
        "elimination without pivots if stable, else with partial pivoting (no assumption); O(n w (w + u)), "
        f"w = {kl} and u = {ku} diagonals below and above"
    )


def cholesky(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int, upper: bool = False, hermitian: bool = False
) -> tuple[tuple[jax.Array, ...], tuple[int, ...], jax.Array]:
    """Cholesky factor of the Hermitian part of a matrix, ``L L^H`` or (`upper`) ``U^H U``.

    If the matrix is `hermitian`, one triangle may be read alone.

    Returns
    -------
    diagonals, offsets
        Of the factor, NaN where the matrix is not positive definite.
    ok : jax.Array, bool scalar
        Whether all pivots were positive.
    """
    dtype = jnp.result_type(*diagonals) if diagonals else jnp.result_type(float)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    diagonals, offsets = banded_rows.nonempty(diagonals, offsets, n)
    if n == 0:
        return (), (), jnp.array(True)
    w = max(banded_rows.bandwidths(offsets))
    found: Sequence[jax.Array]
    if 0 in batch:
        found, ok = [jnp.zeros((*batch, n - k), dtype) for k in range(w + 1)], jnp.array(True)
    else:
        whole = (jnp.broadcast_to(d, (*batch, *d.shape[-1:])) for d in diagonals)
        found, ok = _lower_factor(dict(zip(offsets, whole, strict=True)), (*batch, n), w, dtype, hermitian)
    if upper:
        return tuple(d.conj() for d in found), tuple(range(w + 1)), ok
    return tuple(found[::-1]), tuple(range(-w, 1)), ok


def _lower_factor(
    stored: dict[int, jax.Array], shape: Shape, w: int, dtype: DTypeLike, hermitian: bool
) -> tuple[Sequence[jax.Array], jax.Array]:
    """The diagonals of the Cholesky factor from the main diagonal down.

    `stored` has the diagonals of the matrix by their offsets, and `shape` is the shape of its main diagonal.
    """
    *batch, n = shape
    if stored and lapack_bands.is_faster(w, 0, n, banded_by_lapack.CHOLESKY):
        return banded_by_lapack.cholesky(stored, n, w, dtype, hermitian)
    lower = [jnp.zeros((*batch, n - k), dtype) for k in range(w + 1)]
    for k in range(w + 1):
        if k in stored or -k in stored:
            lower[k] = (stored.get(-k, lower[k]) + stored.get(k, lower[k]).conj()) / 2
    return _cholesky(tuple(lower))


# Solving


def _method(
    offsets: Sequence[int], n: int, positive_definite: bool
) -> tuple[Callable[..., tuple[jax.Array, jax.Array]], Callable[..., tuple[jax.Array, ...]] | None]:
    """Return a method (see `banded_systems`), and the function that factors the matrix for it."""
    kl, ku = banded_rows.bandwidths(offsets)
    if kl == ku == 0:
        return functools.partial(_divide, positive_definite=positive_definite), None
    matrix: dict[str, Any] = {"offsets": offsets, "n": n}
    method: Callable[..., tuple[jax.Array, jax.Array]]
    factor: Callable[..., tuple[jax.Array, ...]] | None
    if positive_definite and lapack_bands.is_faster(kl, ku, n, banded_by_lapack.DEFINITE):
        method, factor = banded_by_lapack.solve_definite, functools.partial(banded_by_lapack.factor_definite, **matrix)
    elif positive_definite and 0 < kl <= narrow_definite.MOST:
        method, factor = functools.partial(_solve_narrow, kl=kl), functools.partial(_factor_narrow, **matrix)
    elif positive_definite:
        method, factor = (
            functools.partial(_solve_definite, offsets=offsets),
            functools.partial(_factor_definite, **matrix),
        )
    elif kl == 0 or ku == 0:
        method, factor = functools.partial(_solve_triangular, **matrix), None
    elif lapack_bands.is_faster(kl, ku, n, banded_by_lapack.GENERAL):
        method = functools.partial(banded_by_lapack.solve_general, kl=kl)
        factor = functools.partial(banded_by_lapack.factor_general, **matrix)
    else:
        method, factor = functools.partial(_solve_general, **matrix), functools.partial(_factor_general, **matrix)

    def log_depth(*args: jax.Array, transposed: bool) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        *diagonals, b = args
        matrix: tuple[Sequence[jax.Array], Sequence[int]] = diagonals, offsets
        if transposed and positive_definite:
            matrix = [d.conj() for d in diagonals], offsets
        elif transposed:
            matrix = bands.transpose(diagonals, offsets)
        return cyclic_reduction.solve_banded(*matrix, n, b, positive_definite)

    return cyclic_reduction.for_device(method, factor, log_depth)


def _once(offsets: Sequence[int], n: int, positive_definite: bool) -> Callable[..., tuple[jax.Array, jax.Array]] | None:
    """The solver without derivatives, if there is one of its own."""
    kl, ku = banded_rows.bandwidths(offsets)
    narrowest = banded_by_lapack.DEFINITE if positive_definite else banded_by_lapack.GENERAL
    if cyclic_reduction.has_accelerator() or kl == 0 or ku == 0 or not lapack_bands.is_faster(kl, ku, n, narrowest):
        return None
    once = banded_by_lapack.solve_definite_once if positive_definite else banded_by_lapack.solve_general_once
    return functools.partial(once, offsets=offsets, n=n)


def _divide(
    diagonal: jax.Array, b: jax.Array, transposed: bool, positive_definite: bool
) -> tuple[jax.Array, jax.Array]:
    return banded_systems.divide(diagonal, b, positive_definite)


def _factor_narrow(*diagonals: jax.Array, offsets: Sequence[int], n: int) -> tuple[jax.Array, ...]:
    lower, batch = banded_by_lapack.lower_diagonals(diagonals, offsets, n), diagonals[0].shape[:-1]
    zero = jnp.zeros_like(lower[0])
    every = [lower.get(k, zero[..., : n + k]) for k in range(0, min(lower) - 1, -1)]
    pivots, multipliers, ok = banded_systems.one_by_one(lambda *d: narrow_definite.ldl(d), batch, *every)
    return pivots, *multipliers, ok


def _solve_narrow(*args: jax.Array, kl: int, transposed: bool) -> tuple[jax.Array, jax.Array]:
    pivots, *multipliers, ok, b = args[-kl - 3 :]

    def system(pivots: jax.Array, *others: jax.Array) -> tuple[jax.Array, jax.Array]:
        *multipliers, ok, b = others
        return jnp.where(ok, narrow_definite.substitute(pivots, multipliers, b), jnp.nan), ok

    multipliers = [m.conj() for m in multipliers] if transposed else multipliers
    return banded_systems.each_system(system, b, pivots, *multipliers, ok)


def _factor_definite(*diagonals: jax.Array, offsets: Sequence[int], n: int) -> tuple[jax.Array]:
    lower, dtype = banded_by_lapack.lower_diagonals(diagonals, offsets, n), diagonals[0].dtype
    columns = banded_cholesky.from_diagonals(lower.values(), lower.keys(), n, dtype)
    ldl = functools.partial(banded_cholesky.ldl, w=-min(lower))
    return (banded_systems.one_by_one(ldl, columns.shape[:-2], columns),)


def _solve_definite(*args: jax.Array, offsets: Sequence[int], transposed: bool) -> tuple[jax.Array, jax.Array]:
    *_, factors, b = args
    substitute = functools.partial(banded_cholesky.substitute, w=-min(0, *offsets))
    return banded_systems.each_system(substitute, b, factors.conj() if transposed else factors)


def _solve_triangular(
    *args: jax.Array, offsets: Sequence[int], n: int, transposed: bool
) -> tuple[jax.Array, jax.Array]:
    diagonals: Sequence[jax.Array]
    *diagonals, b = args
    if transposed:
        diagonals, offsets = bands.transpose(diagonals, offsets)
    diagonal = diagonals[offsets.index(0)] if 0 in offsets else jnp.zeros((*b.shape[:-2], n), b.dtype)
    pairs = [(k, d) for d, k in zip(diagonals, offsets, strict=True) if k]
    coefficients = jnp.stack([banded_rows.aligned(d, k, n) for k, d in pairs], -1)

    def system(coefficients: jax.Array, diagonal: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = banded_rows.substitute(coefficients, tuple(k for k, _ in pairs), b, diagonal)
        ok = ~jnp.any(diagonal == 0)
        return jnp.where(ok, x, jnp.nan), ok

    return banded_systems.each_system(system, b, coefficients, diagonal)


def _factor_general(*diagonals: jax.Array, offsets: Sequence[int], n: int) -> tuple[jax.Array, jax.Array]:
    kl, ku = banded_rows.bandwidths(offsets)

    def system(*diagonals: jax.Array) -> tuple[jax.Array, jax.Array]:
        dtype = diagonals[0].dtype

        def rows(count: int) -> jax.Array:
            return banded_rows.from_diagonals(diagonals, offsets, n, dtype, count=count)

        def largest(rows: jax.Array) -> jax.Array:
            # one reduction per diagonal would increase the compilation time
            parts = [rows] if len(diagonals) > banded_rows.FEW else diagonals
            return jnp.max(jnp.array([jnp.max(jnp.abs(d)) for d in parts]))

        return banded_lu.eliminate_if_promising(rows, n, kl, ku, dtype, largest)

    return banded_systems.one_by_one(system, diagonals[0].shape[:-1], *diagonals)


def _solve_general(*args: jax.Array, offsets: Sequence[int], n: int, transposed: bool) -> tuple[jax.Array, jax.Array]:
    """Solve with the factors without pivoting, or by an elimination with partial pivoting if these are not stable."""

    def system(*args: jax.Array) -> tuple[jax.Array, jax.Array]:
        *diagonals, factors, stable, b = args

        def pivoted() -> tuple[jax.Array, jax.Array]:
            kl, ku = banded_rows.bandwidths(offsets)
            if lapack_bands.is_faster(kl, ku, n, banded_by_lapack.PIVOTED):
                return banded_by_lapack.solve_general_once(*diagonals, b, offsets=offsets, n=n, transposed=transposed)
            matrix = cast(
                "tuple[Sequence[jax.Array], Sequence[int]]",
                bands.transpose(diagonals, offsets) if transposed else (diagonals, offsets),
            )
            kl, ku = banded_rows.bandwidths(matrix[1])
            place: dict[str, Any] = {"dtype": b.dtype, "extra_columns": b.shape[1]}
            top = banded_rows.from_diagonals(*matrix, n, **place, count=kl).at[:, kl + ku + 1 :].set(b[:kl])
            rows = banded_rows.from_diagonals(*matrix, n, **place, first=kl)
            rows = lax.dynamic_update_slice(rows, b[kl:], (0, kl + ku + 1))
            upper, y, *_ = banded_lu.eliminate_pivoted(top, rows, kl, ku)
            ok = ~jnp.any(upper[:, 0] == 0)
            return jnp.where(ok, banded_lu.substitute_upper(upper, y), jnp.nan), ok

        # Placed before the choice, so that its branches can reuse the memory of the factors.
        kl, ku = banded_rows.bandwidths(offsets)
        steps = jnp.where(stable, n, 0)
        x = banded_lu.substitute(factors, kl, ku, b, transposed, banded_rows.is_narrow(ku, b.dtype), steps)
        results: tuple[jax.Array, jax.Array] = lax.cond(stable, lambda: (x, jnp.array(True)), pivoted)
        return results

    return banded_systems.each_system(system, args[-1], *args[:-1])


# Cholesky


@custom_jvp
def _cholesky(lower: tuple[jax.Array, ...]) -> tuple[tuple[jax.Array, ...], jax.Array]:
    w, n = len(lower) - 1, lower[0].shape[-1]

    def system(*lower: jax.Array) -> tuple[jax.Array, ...]:
        if 0 < w <= narrow_definite.MOST:
            factor, ok = narrow_definite.cholesky(lower)
            return *factor, ok
        columns = banded_cholesky.from_diagonals(lower, tuple(range(0, -w - 1, -1)), n, lower[0].dtype)
        columns, ok = banded_cholesky.cholesky(columns, n, w)
        return *(columns[: n - k, k] for k in range(w + 1)), ok

    def whole_batch(*lower: jax.Array) -> tuple[jax.Array, ...]:
        *factor, ok = banded_systems.one_by_one(system, lower[0].shape[:-1], *lower)
        return *factor, jnp.all(ok)

    *factor, ok = banded_systems.mapped_together(whole_batch, (*(True for _ in lower), False))(*lower)
    return tuple(factor), ok


@_cholesky.defjvp
def _cholesky_jvp(
    primals: tuple[tuple[jax.Array, ...]], tangents: tuple[tuple[jax.Array, ...]]
) -> tuple[tuple[tuple[jax.Array, ...], jax.Array], tuple[tuple[jax.Array, ...], jax.Array]]:
    factor, ok = _cholesky(*primals)
    ((main, *below),) = tangents
    change = banded_cholesky.change_of_factor(factor, (main.real.astype(main.dtype), *below))
    return (factor, ok), (change, jnp.zeros(ok.shape, jax.dtypes.float0))
