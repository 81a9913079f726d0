"""Linear systems, determinants and Cholesky factors of square banded matrices.

Matrices are tuples of diagonals (..., n - |offset|) and their static offsets, as in `bands`. All functions take
O(n kl (kl + ku)) operations and O(n (kl + ku)) memory for ``kl`` sub- and ``ku`` superdiagonals, derivatives included.
The offsets select the algorithm:

=====================  =================================================================================
diagonal               a division
triangular             substitution
tridiagonal            `tridiagonal`
positive definite      LDL^H (`banded_cholesky`)
otherwise              elimination without pivoting if stable, else with partial pivoting (`banded_lu`)
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
    banded_cholesky,
    banded_lu,
    banded_rows,
    banded_systems,
    bands,
    cyclic_reduction,
    determinants,
    tridiagonal,
)
from .flags import custom_jvp
from .undefined import nan_unless

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
    diagonals, offsets = _nonempty(diagonals, offsets, n)
    if not diagonals:
        diagonals, offsets = (jnp.zeros((*batch, n), b.dtype),), (0,)
    if {-1, 1} <= set(offsets) <= {-1, 0, 1}:
        main = diagonals[1] if 0 in offsets else jnp.zeros((*diagonals[0].shape[:-1], n), b.dtype)
        return tridiagonal.solve(diagonals[0], main, diagonals[-1], b, positive_definite)

    def matvec(diagonals: Sequence[jax.Array], x: jax.Array) -> jax.Array:
        return bands.matmul_dense(diagonals, offsets, (n, n), x)

    method, factor = _method(offsets, n, positive_definite)
    return banded_systems.solve(method, diagonals, (1,) * len(diagonals), matvec, b, factor)


def explanation(offsets: Sequence[int], positive_definite: bool = False) -> str:
    """Describe what `solve` does for these offsets, why, and what it costs: a sentence for users."""
    kl, ku = banded_rows.bandwidths(offsets)
    if kl == ku == 0:
        return "a division of each row; O(n) for each column"
    if (kl, ku) != (1, 1) and cyclic_reduction.has_accelerator():
        return cyclic_reduction.explanation(max(kl, ku))
    if kl == 0 or ku == 0:
        return f"substitution, since the matrix is triangular; O(n w) for each column, w = {kl + ku}"
    if positive_definite:
        return (
            f"elimination without pivots (LDL^H), since it is assumed positive definite; O(n w**2), w = {max(kl, ku)}"
        )
    if kl == ku == 1:
        return "tridiagonal elimination with partial pivoting (no assumption); O(n)"
    return (
        "elimination without pivots if stable, else with partial pivoting (no assumption); O(n w (w + u)), "
        f"w = {kl} and u = {ku} diagonals below and above"
    )


def slogdet(diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int) -> tuple[jax.Array, jax.Array]:
    """Sign (phase) of the determinant and logarithm of its magnitude; 0 and -inf for a singular matrix."""
    rows, bandwidths = _rows(diagonals, offsets, n)
    if rows.size == 0:
        return determinants.sign_and_logarithm(rows[..., 0], -1)
    return _slogdet(*bandwidths, rows)


def selected_inverse(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int
) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """The diagonals of the inverse at the same offsets, NaN for a singular matrix, and whether all matrices are regular."""
    rows, (kl, ku) = _rows(diagonals, offsets, n)
    batch, dtype = rows.shape[:-2], rows.dtype
    if rows.size == 0:
        return tuple(jnp.zeros((*batch, max(0, n - abs(k))), dtype) for k in offsets), jnp.array(True)
    w = max(kl, ku)  # the elements are in the positions of the transpose
    rows = jnp.pad(rows, [(0, 0)] * (len(batch) + 1) + [(w - kl, w - ku)])
    sign, _, gradient = _slogdet_and_gradient(w, w, rows)
    gradient = nan_unless((sign != 0)[..., None, None], gradient)
    found = tuple(
        gradient[..., max(0, k) : n + min(0, k), w - k] if -n < k < n else jnp.zeros((*batch, 0), dtype)
        for k in offsets
    )
    return found, ~jnp.any(sign == 0)


def cholesky(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int, upper: bool = False
) -> tuple[tuple[jax.Array, ...], tuple[int, ...], jax.Array]:
    """Cholesky factor of the Hermitian part of a matrix, ``L L^H`` or (`upper`) ``U^H U``.

    Returns
    -------
    diagonals, offsets
        Of the factor, NaN where the matrix is not positive definite.
    ok : jax.Array, bool scalar
        Whether all pivots were positive.
    """
    dtype = jnp.result_type(*diagonals) if diagonals else jnp.result_type(float)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    diagonals, offsets = _nonempty(diagonals, offsets, n)
    if n == 0:
        return (), (), jnp.array(True)
    w = max(banded_rows.bandwidths(offsets))
    if 0 in batch:
        factor, ok = jnp.zeros((*batch, n, w + 1), dtype), jnp.array(True)
    else:
        stored = dict(zip(offsets, diagonals, strict=True))
        lower = {}
        for k in range(w + 1):
            if k in stored or -k in stored:
                zero = jnp.zeros((*batch, n - k), dtype)
                lower[-k] = (stored.get(-k, zero) + stored.get(k, zero).conj()) / 2
        if not lower:
            lower[0] = jnp.zeros((*batch, n), dtype)
        factor, ok = _cholesky(n, w, banded_cholesky.from_diagonals(lower.values(), lower.keys(), n, dtype))
    diagonals = [factor[..., : n - k, k] for k in range(w + 1)]
    if upper:
        return tuple(d.conj() for d in diagonals), tuple(range(w + 1)), ok
    return tuple(diagonals[::-1]), tuple(range(-w, 1)), ok


def _nonempty(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int
) -> tuple[tuple[jax.Array, ...], tuple[int, ...]]:
    """Drop diagonals that lie outside of the matrix."""
    pairs = [(d, k) for d, k in zip(diagonals, offsets, strict=True) if -n < k < n]
    return tuple(d for d, _ in pairs), tuple(k for _, k in pairs)


def _rows(diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int) -> tuple[jax.Array, tuple[int, int]]:
    """Convert a matrix to row storage with its full batch shape; return also the numbers of sub- and superdiagonals."""
    dtype = jnp.result_type(*diagonals) if diagonals else jnp.result_type(float)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    diagonals, offsets = _nonempty(diagonals, offsets, n)
    rows = banded_rows.from_diagonals(diagonals, offsets, n, dtype)
    return jnp.broadcast_to(rows, (*batch, *rows.shape[-2:])), banded_rows.bandwidths(offsets)


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
    if positive_definite:
        method, factor = (
            functools.partial(_solve_definite, offsets=offsets),
            functools.partial(_factor_definite, **matrix),
        )
    elif kl == 0 or ku == 0:
        method, factor = functools.partial(_solve_triangular, **matrix), None
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


def _divide(
    diagonal: jax.Array, b: jax.Array, transposed: bool, positive_definite: bool
) -> tuple[jax.Array, jax.Array]:
    return banded_systems.divide(diagonal, b, positive_definite)


def _factor_definite(*diagonals: jax.Array, offsets: Sequence[int], n: int) -> tuple[jax.Array]:
    dtype = diagonals[0].dtype
    lower = {0: jnp.zeros((*diagonals[0].shape[:-1], n), dtype)}
    lower.update({k: d for d, k in zip(diagonals, offsets, strict=True) if k <= 0})
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
        rows = banded_rows.from_diagonals(diagonals, offsets, n, diagonals[0].dtype, count=n + kl)
        # one reduction per diagonal would increase the compilation time
        parts = [rows] if len(diagonals) > banded_rows.FEW else diagonals
        largest = jnp.max(jnp.array([jnp.max(jnp.abs(d)) for d in parts]))
        return banded_lu.eliminate(rows, kl, ku, largest)

    return banded_systems.one_by_one(system, diagonals[0].shape[:-1], *diagonals)


def _solve_general(*args: jax.Array, offsets: Sequence[int], n: int, transposed: bool) -> tuple[jax.Array, jax.Array]:
    """Solve with the factors without pivoting, or by an elimination with partial pivoting if these are not stable."""

    def system(*args: jax.Array) -> tuple[jax.Array, jax.Array]:
        *diagonals, factors, stable, b = args

        def pivoted() -> tuple[jax.Array, jax.Array]:
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
        x = banded_lu.substitute(factors, kl, ku, b, transposed, banded_rows.is_narrow(ku, b.dtype))
        results: tuple[jax.Array, jax.Array] = lax.cond(stable, lambda: (x, jnp.array(True)), pivoted)
        return results

    return banded_systems.each_system(system, args[-1], *args[:-1])


# Determinants


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _slogdet(kl: int, ku: int, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    results: tuple[jax.Array, jax.Array] = _batched(rows, kl=kl, ku=ku, gradient=False)
    return results


@_slogdet.defjvp
def _slogdet_jvp(
    kl: int, ku: int, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    (rows,), (tangent,) = primals, tangents
    sign, logabsdet, gradient = _slogdet_and_gradient(kl, ku, rows)
    return (sign, logabsdet), _changes(sign, gradient, tangent)


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _slogdet_and_gradient(kl: int, ku: int, rows: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return also the derivative of the logarithm by the entries, in the storage of `rows`."""
    results: tuple[jax.Array, jax.Array, jax.Array] = _batched(rows, kl=kl, ku=ku, gradient=True)
    return results


@_slogdet_and_gradient.defjvp
def _slogdet_and_gradient_jvp(
    kl: int, ku: int, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[tuple[jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]:
    """The second derivative differentiates a loop that keeps only its window."""
    (rows,), (tangent,) = primals, tangents

    def pivoted(rows: jax.Array) -> jax.Array:
        upper, _, multipliers, pivots = banded_lu.eliminate_pivoted(*banded_lu.apart(rows, kl), kl, ku)
        return banded_lu.logdet_gradient_pivoted(upper, multipliers, pivots, kl)

    sign, logabsdet, gradient = _slogdet_and_gradient(kl, ku, rows)
    second = jax.jvp(jnp.vectorize(pivoted, signature="(n,w)->(n,w)"), (rows,), (tangent,))[1]
    return (sign, logabsdet, gradient), (*_changes(sign, gradient, tangent), second)


def _changes(sign: jax.Array, gradient: jax.Array, tangent: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Derivative of the determinant along a change of the rows: d log det A = trace(inv(A) dA)."""
    change = jnp.sum(gradient * tangent, (-2, -1))
    return (sign * 1j * change.imag, change.real) if jnp.iscomplexobj(sign) else (jnp.zeros_like(sign), change)


def _batched(rows: jax.Array, **static: Any) -> Any:
    """Apply `_determinant` to each matrix."""

    def in_order(rows: jax.Array) -> tuple[jax.Array, ...]:
        return banded_systems.one_by_one(functools.partial(_determinant, **static), rows.shape[:-2], rows)

    if static["kl"] == 0 or static["ku"] == 0:  # no loop
        whole_batch = in_order
    else:
        log_depth = functools.partial(cyclic_reduction.slogdet_banded, **static)
        whole_batch = cyclic_reduction.or_in_order(in_order, log_depth)
    return banded_systems.mapped_together(whole_batch, (True,) * (2 + static["gradient"]))(rows)


def _determinant(rows: jax.Array, kl: int, ku: int, gradient: bool) -> tuple[jax.Array, ...]:
    """Sign, logarithm and (`gradient`) the derivative of the logarithm, for one matrix."""
    n, one = rows.shape[0], jnp.ones((), rows.dtype)

    def from_pivots(pivots: jax.Array, sign: jax.Array, derivative: Callable[[], jax.Array]) -> tuple[jax.Array, ...]:
        product, logarithm = determinants.sign_and_logarithm(pivots, -1)
        values = sign * product, logarithm
        return (*values, derivative()) if gradient else values

    def pivoted() -> tuple[jax.Array, ...]:
        upper, _, multipliers, pivots = banded_lu.eliminate_pivoted(*banded_lu.apart(rows, kl), kl, ku)
        odd = jnp.sum(pivots != 0) % 2 == 1
        return from_pivots(
            upper[:, 0],
            jnp.where(odd, -one, one),
            lambda: jnp.pad(banded_lu.logdet_gradient_pivoted(upper, multipliers, pivots, kl), below),
        )

    if kl == 0 or ku == 0:
        return from_pivots(rows[:, kl], one, lambda: jnp.zeros_like(rows).at[:, kl].set(1 / rows[:, kl]))
    factors, stable = banded_lu.eliminate(jnp.pad(rows, ((0, kl), (0, 0))), kl, ku, jnp.max(jnp.abs(rows)))
    below = ((0, factors.shape[0] - n), (0, 0))
    results = lax.cond(
        stable,
        lambda: from_pivots(factors[:n, kl], one, lambda: banded_lu.logdet_gradient(factors, n, kl, ku)),
        pivoted,
    )
    # Rows below the matrix are dropped here, where this needs no copy.
    return (*results[:2], *(derivative[:n] for derivative in results[2:]))


# Cholesky


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _cholesky(n: int, w: int, columns: jax.Array) -> tuple[jax.Array, jax.Array]:
    system = functools.partial(banded_cholesky.cholesky, n=n, w=w)

    def whole_batch(columns: jax.Array) -> tuple[jax.Array, jax.Array]:
        factor, ok = banded_systems.one_by_one(system, columns.shape[:-2], columns)
        return factor, jnp.all(ok)

    return banded_systems.mapped_together(whole_batch, (True, False))(columns)


@_cholesky.defjvp
def _cholesky_jvp(
    n: int, w: int, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    (columns,), (tangent,) = primals, tangents
    factor, ok = _cholesky(n, w, columns)
    tangent = tangent[..., :n, : w + 1]
    change = jnp.vectorize(banded_cholesky.cholesky_tangent, signature="(n,w),(n,w)->(n,w)")(factor, tangent)
    return (factor, ok), (change, jnp.zeros(ok.shape, jax.dtypes.float0))
