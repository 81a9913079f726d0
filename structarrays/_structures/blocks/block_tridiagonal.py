"""Linear systems with block-tridiagonal matrices, block row by block row.

A matrix is given by ``lower``, ``diagonal`` and ``upper`` (..., N, m, m), the blocks of each block row. The first block of `lower` and
the last block of `upper` are zero. See Golub and Van Loan, *Matrix Computations*, 4.5.1; Isaacson and Keller, *Analysis of Numerical
Methods*, 2.3.3. The solvers take O(N m**3) operations and O(N m**2) memory, in one of two ways:

Small blocks are eliminated without pivoting, column by column, in a window of the next two block rows. The window of these nested loops
stays in the cache. The factors have the same layout as in `banded_lu` for wide bands, and are tested for stability in the same way.

Large blocks, and small ones that fail the test, are eliminated by LAPACK's ``getrf`` of the 2 m rows in which a block column has
entries. This is partial pivoting, as in ``gbtrf``. ``A = P_0 L_0 P_1 L_1 … U``, where ``P_i`` and ``L_i`` act on block rows i and i + 1,
and U has two block superdiagonals.

These loops are for the CPU. Matrices of many elements call LAPACK on the host instead (`block_tridiagonal_by_lapack`). Other devices try
`cyclic_reduction` first.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import lax

from ..._numerics import banded_lu, banded_systems, cyclic_reduction, dense_factors
from ..._numerics.undefined import nan_unless
from . import block_tridiagonal_by_lapack as by_lapack

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

# The largest block size for which the loop over the columns is faster than LAPACK's LU or Cholesky factorization.
_SMALL = 24
_SMALL_DEFINITE = 8


def solve(
    lower: jax.Array, diagonal: jax.Array, upper: jax.Array, b: jax.Array, positive_definite: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b``.

    Parameters
    ----------
    lower, diagonal, upper : jax.Array, (..., N, m, m)
        The blocks, of the dtype of `b`; N and m are positive.
    b : jax.Array, (..., N m, k)
        The batch shape broadcasts against the batch shape of the matrix.
    positive_definite : bool
        Whether ``A`` is known to be Hermitian positive definite.

    Returns
    -------
    x : jax.Array, (..., N m, k)
        NaN where ``A`` is singular (not positive definite).
    ok : jax.Array, bool scalar
        Whether all pivots were nonzero (positive).
    """
    count, m, _ = diagonal.shape[-3:]
    solvers = _solvers(count, m, positive_definite)
    return banded_systems.solve(solvers[0], (lower, diagonal, upper), (3, 3, 3), _product, b, *solvers[1:])


def solve_triangular(
    off_diagonal: jax.Array, diagonal: jax.Array, b: jax.Array, lower: bool, unit_diagonal: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Solve a block bidiagonal linear system by substitution.

    Parameters
    ----------
    off_diagonal, diagonal : jax.Array, (..., N, m, m)
        The off-diagonal blocks of each row, left (`lower`) or right of the diagonal, and the diagonal blocks, of which one
        triangle is read.
    b : jax.Array, (..., N m, k)
    lower, unit_diagonal : bool

    Returns
    -------
    x : jax.Array, (..., N m, k)
        NaN where there is a zero on the diagonal.
    ok : jax.Array, bool scalar
    """
    diagonal = jnp.tril(diagonal) if lower else jnp.triu(diagonal)
    if unit_diagonal:
        diagonal = jnp.where(jnp.eye(diagonal.shape[-1], dtype=bool), 1, diagonal)

    def method(
        off_diagonal: jax.Array, diagonal: jax.Array, b: jax.Array, transposed: bool
    ) -> tuple[jax.Array, jax.Array]:
        system = functools.partial(_substitute, lower=lower, transposed=transposed)
        return banded_systems.each_system(system, b, off_diagonal, diagonal)

    def product(blocks: tuple[jax.Array, jax.Array], x: jax.Array) -> jax.Array:
        off_diagonal, diagonal = blocks
        zero = jnp.zeros_like(off_diagonal)
        return _product((off_diagonal, diagonal, zero) if lower else (zero, diagonal, off_diagonal), x)

    return banded_systems.solve(method, (off_diagonal, diagonal), (3, 3), product, b)


def _substitute(
    off_diagonal: jax.Array, diagonal: jax.Array, b: jax.Array, lower: bool, transposed: bool
) -> tuple[jax.Array, jax.Array]:
    m = diagonal.shape[-1]

    def step(carried: jax.Array, blocks: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        off_diagonal, diagonal, b = blocks
        b = b - (carried if transposed else off_diagonal @ carried)
        x = triangular(diagonal, b, lower=lower, transposed=transposed)
        return off_diagonal.mT @ x if transposed else x, x

    zero = jnp.zeros((m, b.shape[-1]), b.dtype)
    x = lax.scan(step, zero, (off_diagonal, diagonal, _in_blocks(b, m)), reverse=lower == transposed)[1]
    ok = ~jnp.any(cyclic_reduction.main_diagonals(diagonal) == 0)
    return jnp.where(ok, x.reshape(b.shape), jnp.nan), ok


def cholesky(diagonal: jax.Array, upper: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Lower Cholesky factor of a Hermitian matrix, given by its diagonal blocks (lower triangles are read) and upper blocks.

    Returns
    -------
    lower, diagonal : jax.Array, (..., N, m, m)
        The blocks of the factor; the first of `lower` is zero. NaN where the matrix is not positive definite.
    """
    every = jnp.vectorize(functools.partial(factor_definite, None), signature="(n,m,m),(n,m,m)->(n,m,m),(n,m,m)")
    factors, right = every(diagonal, upper)
    return cyclic_reduction.shifted(right, 1).mT.conj(), factors


def lu(lower: jax.Array, diagonal: jax.Array, upper: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """LU factors with partial pivoting, as described in the module docstring.

    Returns
    -------
    factors : jax.Array, (..., N, 2 m, m)
        Factors of each block column: U and the multipliers of the block row, and below them the multipliers of the next block row.
    exchanges : jax.Array, (..., N, m)
        For each row of a block row, the index among these 2 m rows of the row that it was exchanged with.
    right : jax.Array, (..., N, m, 2 m)
        The two blocks of U to the right of the diagonal block.
    """
    every = jnp.vectorize(eliminate_pivoted, signature="(n,m,m),(n,m,m),(n,m,m)->(n,p,m),(n,m),(n,p),(n,m,p)")
    factors, exchanges, _, right = every(lower, diagonal, upper)
    return factors, exchanges, right


def lu_solve(
    factors: jax.Array, exchanges: jax.Array, right: jax.Array, b: jax.Array, transposed: bool
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b``, or `transposed` ``A^T x = b``, by the factors that `lu` returns; b and x are (..., N m, k).

    Returns
    -------
    x : jax.Array, (..., N m, k)
        NaN where a pivot is zero.
    ok : jax.Array, bool scalar
        Whether none is.
    """
    m = factors.shape[-1]
    order = lax.linalg.lu_pivots_to_permutation(exchanges, 2 * m)
    steps = jnp.vectorize(
        _transposed_steps if transposed else _steps, signature="(n,p,m),(n,p),(n,m,p),(n,m,k)->(n,m,k)"
    )
    x = steps(factors, order, right, _in_blocks(b, m))
    regular = jnp.all(cyclic_reduction.main_diagonals(factors[..., :m, :]) != 0, (-2, -1))
    return nan_unless(regular[..., None, None], x.reshape(*x.shape[:-3], *b.shape[-2:])), jnp.all(regular)


def hermitian_part(lower: jax.Array, diagonal: jax.Array, upper: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The blocks of ``(A + A^H) / 2`` on the diagonal and to the right of it."""
    return (diagonal + diagonal.mT.conj()) / 2, (upper + cyclic_reduction.shifted(lower, -1).mT.conj()) / 2


def explanation(count: int, m: int, positive_definite: bool = False) -> str:
    """Describe what `solve` does for `count` block rows of m rows, why, and what it costs: a sentence for users."""
    if cyclic_reduction.has_accelerator():
        return cyclic_reduction.explanation(m)
    if by_lapack.is_faster(count, m, positive_definite):
        return f"{by_lapack.explanation(m, positive_definite)}; O(n m**2), m = {m}"
    small = _is_small(m, positive_definite)
    if positive_definite:
        how = "block elimination without pivots" if small else "a Cholesky factor of each block"
        return f"{how}, since it is assumed positive definite; O(n m**2), m = {m}"
    how = "without pivots if stable, else with partial pivoting" if small else "with partial pivoting"
    return f"block elimination {how} (no assumption); O(n m**2), m = {m}"


def _is_small(m: int, positive_definite: bool) -> bool:
    return m <= (_SMALL_DEFINITE if positive_definite else _SMALL)


def _solvers(
    count: int, m: int, positive_definite: bool
) -> tuple[
    Callable[..., tuple[jax.Array, jax.Array]],
    Callable[..., tuple[jax.Array, ...]] | None,
    Callable[..., tuple[jax.Array, jax.Array]] | None,
]:
    """Return a method, the function that factors the matrix for it, and a solver without derivatives (see `banded_systems.solve`)."""
    factor: Callable[..., tuple[jax.Array, ...]]
    one: Callable[..., tuple[jax.Array, jax.Array]]
    if _is_small(m, positive_definite):
        factor, one = _factor_small, functools.partial(_solve_small, positive_definite=positive_definite)
    elif positive_definite:
        factor, one = factor_definite, _solve_definite
    else:
        factor, one = _factor_pivoted, _solve_pivoted

    def factor_all(*blocks: jax.Array) -> tuple[jax.Array, ...]:
        return banded_systems.one_by_one(factor, blocks[0].shape[:-3], *blocks)

    def method(*args: jax.Array, transposed: bool) -> tuple[jax.Array, jax.Array]:
        *factors, b = args
        return banded_systems.each_system(functools.partial(one, transposed=transposed), b, *factors)

    def in_xla(
        lower: jax.Array, diagonal: jax.Array, upper: jax.Array, b: jax.Array, transposed: bool
    ) -> tuple[jax.Array, jax.Array]:
        solve_one: Callable[..., tuple[jax.Array, jax.Array]] = functools.partial(one, transposed=transposed)

        def system(*args: jax.Array) -> tuple[jax.Array, jax.Array]:
            *blocks, b = args
            return solve_one(*blocks, *factor(*blocks), b)

        zero = jnp.zeros_like(diagonal[..., :1, :, :])
        blocks = jnp.concatenate([zero, lower], -3), diagonal, jnp.concatenate([upper, zero], -3)
        return banded_systems.one_by_one(system, b.shape[:-2], *blocks, b)

    def inside(lower: jax.Array, diagonal: jax.Array, upper: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The blocks without the two that stand outside of the matrix."""
        return lower[..., 1:, :, :], diagonal, upper[..., :-1, :, :]

    def factor_on_host(*blocks: jax.Array) -> tuple[jax.Array, ...]:
        return by_lapack.factor(positive_definite, *inside(*blocks))

    def on_host(
        lower: jax.Array, diagonal: jax.Array, upper: jax.Array, *args: jax.Array, transposed: bool
    ) -> tuple[jax.Array, jax.Array]:
        *factors, b = args
        portable, blocks = functools.partial(in_xla, transposed=transposed), inside(lower, diagonal, upper)
        x, ok = by_lapack.solve_by_factors(portable, positive_definite, *blocks, factors, b, transposed=transposed)
        return x, jnp.all(ok)

    def once_on_host(
        lower: jax.Array, diagonal: jax.Array, upper: jax.Array, b: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        portable = functools.partial(in_xla, transposed=False)
        x, ok = by_lapack.solve(portable, positive_definite, *inside(lower, diagonal, upper), b)
        return x, jnp.all(ok)

    def log_depth(
        lower: jax.Array, diagonal: jax.Array, upper: jax.Array, b: jax.Array, transposed: bool
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        if transposed:
            lower, upper = cyclic_reduction.shifted(upper, 1).mT, cyclic_reduction.shifted(lower, -1).mT
            diagonal = diagonal.mT
        x, trusted = cyclic_reduction.solve(lower, diagonal, upper, _in_blocks(b, m), positive_definite)
        return (x.reshape(b.shape), jnp.array(True)), trusted

    if by_lapack.is_faster(count, m, positive_definite) and not cyclic_reduction.has_accelerator():
        return on_host, factor_on_host, once_on_host
    return *cyclic_reduction.for_device(method, factor_all, log_depth), None


def _product(blocks: tuple[jax.Array, jax.Array, jax.Array], x: jax.Array) -> jax.Array:
    """Product of the matrix with (..., N m, k)."""
    y = cyclic_reduction.product(jnp.concatenate(blocks, -1), _in_blocks(x, blocks[0].shape[-1]))
    return y.reshape(*y.shape[:-3], *x.shape[-2:])


def _in_blocks(b: jax.Array, m: int) -> jax.Array:
    return b.reshape(*b.shape[:-2], b.shape[-2] // m, m, b.shape[-1])


# ---- small blocks ------------------------------------------------------------------------------------------------------


def _factor_small(lower: jax.Array, diagonal: jax.Array, upper: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Factors of one matrix in the layout of `banded_lu.eliminate`, and whether they are stable."""
    count, m, _ = diagonal.shape

    def step(window: jax.Array, blocks: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        # window[a, b] is entry (i m + a, i m + b) after the previous eliminations; entries of the next block row are
        # added later.
        off_diagonal, below = blocks
        corner = window[:m, :m]

        def column(window: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            row = window[0]
            multipliers = window[1:, 0] / row[0]
            rest = window[1:, 1:] - multipliers[:, None] * row[1:]
            return jnp.pad(rest, ((0, 1), (0, 1))), jnp.concatenate([multipliers, row])

        window = jnp.concatenate([jnp.concatenate([corner, off_diagonal], 1), below])
        return lax.scan(column, window, length=m)

    below = jnp.concatenate([lower, diagonal], -1)[1:]
    below = jnp.concatenate([below, jnp.zeros((1, m, 2 * m), below.dtype)])
    window = jnp.pad(diagonal[0], ((0, m), (0, m)))
    factors = lax.scan(step, window, (upper, below))[1].reshape(count * m, 4 * m - 1)
    sizes = [jnp.max(jnp.abs(blocks)) for blocks in (lower, diagonal, upper)]
    largest = functools.reduce(jnp.maximum, sizes)
    return factors, banded_lu.is_stable(factors, count * m, 2 * m - 1, 2 * m - 1, largest, by_rows=False)


def _solve_small(*args: jax.Array, transposed: bool, positive_definite: bool) -> tuple[jax.Array, jax.Array]:
    lower, diagonal, upper, factors, stable, b = args
    width = 2 * lower.shape[-1] - 1
    x = banded_lu.substitute(factors, width, width, b, transposed, by_rows=False)
    if positive_definite:  # the elimination of a positive definite matrix is always stable
        ok = ~jnp.any(factors[:, width].real <= 0)
        return jnp.where(ok, x, jnp.nan), ok

    def pivoted() -> tuple[jax.Array, jax.Array]:
        return _solve_pivoted(
            lower, diagonal, upper, *_factor_pivoted(lower, diagonal, upper), b, transposed=transposed
        )

    found: tuple[jax.Array, jax.Array] = lax.cond(stable, lambda: (x, jnp.array(True)), pivoted)
    return found


# ---- large blocks of positive definite matrices ------------------------------------------------------------------------


def factor_definite(lower: jax.Array | None, diagonal: jax.Array, upper: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cholesky factors of the Schur complements, and the blocks to their right in the factor of the whole matrix."""

    def step(block: jax.Array, blocks: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        off_diagonal, following = blocks
        factor = dense_factors.cholesky(block)
        right = triangular(factor, off_diagonal, lower=True)
        return following - right.mT.conj() @ right, (factor, right)

    following = jnp.concatenate([diagonal[1:], diagonal[:1]])
    return lax.scan(step, diagonal[0], (upper, following))[1]


def _solve_definite(
    lower: jax.Array,
    diagonal: jax.Array,
    upper: jax.Array,
    factors: jax.Array,
    right: jax.Array,
    b: jax.Array,
    transposed: bool,
) -> tuple[jax.Array, jax.Array]:
    if transposed:
        factors, right = factors.conj(), right.conj()
    m = diagonal.shape[-1]
    ok = (
        ~jnp.any(jnp.isnan(cyclic_reduction.main_diagonals(factors)))
        | jnp.any(jnp.isnan(diagonal))
        | jnp.any(jnp.isnan(upper))
    )

    def down(carried: jax.Array, blocks: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        factor, right, b = blocks
        y = triangular(factor, b - carried, lower=True)
        return right.mT.conj() @ y, y

    def up(x: jax.Array, blocks: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        factor, right, y = blocks
        x = triangular(factor, y - right @ x, lower=True, adjoint=True)
        return x, x

    zero = jnp.zeros((m, b.shape[-1]), b.dtype)
    y = lax.scan(down, zero, (factors, right, _in_blocks(b, m)))[1]
    x = lax.scan(up, zero, (factors, right, y), reverse=True)[1]
    return jnp.where(ok, x.reshape(b.shape), jnp.nan), ok


# ---- large blocks, with exchanges --------------------------------------------------------------------------------------


def _factor_pivoted(lower: jax.Array, diagonal: jax.Array, upper: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """For each block row, return the factors of its block column (N, 2 m, m), the order of its rows (N, 2 m), and the
    two blocks of U to the right.
    """
    factors, _, order, right = eliminate_pivoted(lower, diagonal, upper)
    return factors, order, right


def eliminate_pivoted(
    lower: jax.Array, diagonal: jax.Array, upper: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return the results of `_factor_pivoted`, and for each of m rows the row that it was exchanged with (N, m)."""
    count, m, _ = diagonal.shape

    def step(
        rows: jax.Array, following: jax.Array
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array, jax.Array, jax.Array]]:
        # The rows of block row i from block column i on, after the previous eliminations, and the rows of the next
        # block row.
        panel = jnp.concatenate([jnp.pad(rows, ((0, 0), (0, m))), following])
        factors, exchanges, order = dense_factors.lu(panel[:, :m])
        rest = panel[order, m:]
        right = triangular(factors[:m], rest[:m], lower=True, unit_diagonal=True)
        return rest[m:] - factors[m:] @ right, (factors, exchanges, order, right)

    rows = jnp.concatenate([diagonal, upper], -1)
    following = jnp.concatenate([lower, rows], -1)[1:]
    following = jnp.concatenate([following, jnp.zeros((1, m, 3 * m), rows.dtype)])
    return lax.scan(step, rows[0], following)[1]


def _solve_pivoted(
    lower: jax.Array,
    diagonal: jax.Array,
    upper: jax.Array,
    factors: jax.Array,
    order: jax.Array,
    right: jax.Array,
    b: jax.Array,
    transposed: bool,
) -> tuple[jax.Array, jax.Array]:
    m = diagonal.shape[-1]
    ok = ~jnp.any(cyclic_reduction.main_diagonals(factors[:, :m]) == 0)
    steps = _transposed_steps if transposed else _steps
    x = steps(factors, order, right, _in_blocks(b, m))
    return jnp.where(ok, x.reshape(b.shape), jnp.nan), ok


def _steps(factors: jax.Array, order: jax.Array, right: jax.Array, b: jax.Array) -> jax.Array:
    m = b.shape[-2]
    zero = jnp.zeros_like(b[0])

    def down(rows: jax.Array, blocks: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        factor, order, following = blocks
        both = jnp.concatenate([rows, following])[order]
        y = triangular(factor[:m], both[:m], lower=True, unit_diagonal=True)
        return both[m:] - factor[m:] @ y, y

    def up(solved: jax.Array, blocks: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        factor, right, y = blocks
        x = triangular(factor[:m], y - right @ solved, lower=False)
        return jnp.concatenate([x, solved[:m]]), x

    y = lax.scan(down, b[0], (factors, order, jnp.concatenate([b[1:], zero[None]])))[1]
    return lax.scan(up, jnp.concatenate([zero, zero]), (factors, right, y), reverse=True)[1]


def _transposed_steps(factors: jax.Array, order: jax.Array, right: jax.Array, b: jax.Array) -> jax.Array:
    m = b.shape[-2]
    zero = jnp.zeros_like(b[0])

    def down(carried: jax.Array, blocks: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        # The contributions of the previous block rows to this block row, and to the next.
        factor, right, b = blocks
        y = triangular(factor[:m], b - carried[:m], lower=False, transposed=True)
        return jnp.concatenate([carried[m:], zero]) + right.mT @ y, y

    def up(rows: jax.Array, blocks: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        factor, order, y = blocks
        top = triangular(factor[:m], y - factor[m:].mT @ rows, lower=True, transposed=True, unit_diagonal=True)
        both = jnp.zeros((2 * m, b.shape[-1]), b.dtype).at[order].set(jnp.concatenate([top, rows]))
        return both[:m], both[m:]

    y = lax.scan(down, jnp.concatenate([zero, zero]), (factors, right, b))[1]
    # Step i produces block row i + 1. The final carry is the first block row, and the last step produces one below the
    # matrix.
    first, rest = lax.scan(up, zero, (factors, order, y), reverse=True)
    return jnp.concatenate([first[None], rest[:-1]])


def triangular(
    a: jax.Array,
    b: jax.Array,
    lower: bool,
    transposed: bool = False,
    adjoint: bool = False,
    unit_diagonal: bool = False,
) -> jax.Array:
    """Solve ``A x = b`` with a triangular matrix, or with its transpose or adjoint."""
    return lax.linalg.triangular_solve(
        a,
        b,
        left_side=True,
        lower=lower,
        transpose_a=transposed or adjoint,
        conjugate_a=adjoint,
        unit_diagonal=unit_diagonal,
    )
