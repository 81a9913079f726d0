"""Factorizations that keep structure, and linear systems with their factors: `cho_factor`, `lu_factor`, `lu`,
`solve_triangular`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import densify, to_dense
from ..._core.families.conditions import has_structural_zeros, is_square_pattern
from ..._core.families.join import is_zero_outside
from ..._functions.linalg import cho_factor, cholesky, ldl, lu, lu_factor, lu_solve, solve_triangular
from ..._functions.linalg.factorizations import as_triangular, no_exchanges
from ..._functions.linalg.systems import POSITIVE_DEFINITE
from ..._functions.linalg.triangular import transposed, triangle_of
from ..._numerics import banded_factors
from ..banded.array import Banded, at_offsets, bands
from ..banded.bandwidths import fills_matrix
from ..banded.diagonal import Diagonal, Identity, identity_like
from ..blocks.block_diagonal import BlockDiagonal, has_square_blocks, stacks
from ..blocks.block_diagonal_solvers import solved_by_blocks
from ..kronecker.array import Kronecker, has_square_factors, kronecker
from ..triangular.array import Triangular, fits

if TYPE_CHECKING:
    from collections.abc import Iterable

    import jax

    from ..._core.typing import Result


# ---- triangles -------------------------------------------------------------------------------------------------------


@triangle_of.kernel(Triangular, when=is_zero_outside)
def _triangle_of_triangular(x: Triangular, *, lower: bool, unit_diagonal: bool) -> Array:
    if x.lower != lower:
        return triangle_of.required((diagonal := _diagonal(x),)).run(diagonal, lower=lower, unit_diagonal=unit_diagonal)
    return Triangular.make((x.data, None), (lower, unit_diagonal or x.unit_diagonal))


def _diagonal(x: Triangular) -> Diagonal:
    return Diagonal.make((x.diagonal(0), None), x.shape[-2:])


@triangle_of.kernel(Banded, when=has_structural_zeros)
def _triangle_of_banded(x: Banded, *, lower: bool, unit_diagonal: bool) -> Array:
    offsets = [k for k in x.offsets if (k < 0 if lower else k > 0)]
    if not unit_diagonal:
        return at_offsets(x, (*offsets, 0))
    ones = jnp.ones((*x.batch_shape, x.shape[-1]), x.dtype)
    return bands([*map(x.diagonal, offsets), ones], (*offsets, 0), x.core_shape)


@triangle_of.kernel(Diagonal, when=has_structural_zeros)
def _triangle_of_diagonal(x: Diagonal, *, lower: bool, unit_diagonal: bool) -> Diagonal:
    return identity_like(x, x.shape[-1]) if unit_diagonal else x


def _has_triangular_factors(x: Kronecker, *, lower: bool, unit_diagonal: bool) -> bool:
    """Return whether each factor is zero outside of the triangle. Only then is the triangle of the product the product
    of the triangles.
    """
    return (
        not unit_diagonal and has_square_factors(x) and all(fits(f, lower) and f.background is None for f in x.factors)
    )


@triangle_of.kernel(Kronecker, when=_has_triangular_factors)
def _triangle_of_kronecker(x: Kronecker, *, lower: bool, unit_diagonal: bool) -> Kronecker:
    return x


# ---- block by block --------------------------------------------------------------------------------------------------


@solve_triangular.kernel(BlockDiagonal, Array, when=has_square_blocks)
def _solve_triangular_block_diagonal(
    a: BlockDiagonal, b: Array, *, trans: int, lower: bool, unit_diagonal: bool
) -> tuple[Array, jax.Array]:
    return solved_by_blocks(solve_triangular, a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal)


def _in_a_row(a: BlockDiagonal, parts: Iterable[jax.Array]) -> jax.Array:
    """Convert row indices within each block to row indices of the whole."""
    moved = []
    for run, p in zip(a.runs, parts, strict=True):
        p = p + (run.row + run.height * jnp.arange(run.count, dtype=p.dtype))[:, None]
        moved.append(p.reshape(*p.shape[:-2], run.count * run.height))
    return jnp.concatenate(moved, axis=-1)


@lu_factor.kernel(BlockDiagonal, when=has_square_blocks)
def _lu_factor_block_diagonal(a: BlockDiagonal) -> tuple[Array, Dense]:
    factors, pivots = zip(*(lu_factor.dispatch(b) for b in stacks(a)), strict=True)
    return a.rebuild(tuple(f.data for f in factors), None), Dense.make((_in_a_row(a, [p.data for p in pivots]),))


@lu.kernel(BlockDiagonal, when=has_square_blocks)
def _lu_block_diagonal(a: BlockDiagonal) -> tuple[jax.Array, *tuple[Array, ...]]:
    orders, *factors = zip(*(lu.dispatch(b) for b in stacks(a)), strict=True)
    return _in_a_row(a, orders), *(a.rebuild(tuple(f.dense_data() for f in parts), None) for parts in factors)


# ---- factor by factor ------------------------------------------------------------------------------------------------


@cho_factor.kernel(Kronecker)
def _cho_factor_kronecker(a: Kronecker, *, lower: bool) -> tuple[Array, jax.Array]:
    c, ok = cholesky.dispatch(a, upper=not lower)
    if type(c) is Kronecker:
        c = c.with_parts(lambda f: as_triangular(f, lower=lower))
    return as_triangular(c, lower=lower), ok


@lu.kernel(Kronecker, when=has_square_factors)
def _lu_kronecker(a: Kronecker) -> tuple[jax.Array, Array, Array]:
    """``(A ⊗ B) = (P_A ⊗ P_B) (L_A ⊗ L_B) (U_A ⊗ U_B)``."""
    orders, lower, upper = zip(*map(lu.dispatch, a.factors), strict=True)
    order = functools.reduce(
        lambda p, q: (q.shape[-1] * p[..., :, None] + q[..., None, :]).reshape(
            *p.shape[:-1], p.shape[-1] * q.shape[-1]
        ),
        orders,
    )
    return order, as_triangular(kronecker(*lower), lower=True), as_triangular(kronecker(*upper), lower=False)


# ---- matrices that are their own factors -----------------------------------------------------------------------------


def _is_upper(x: Array, *args: Array, **static: Any) -> bool:
    return is_zero_outside(x) and fits(x, lower=False)


@lu_factor.kernel(Identity, when=is_square_pattern)
def _lu_factor_identity(a: Identity) -> tuple[Array, Dense]:
    return a.assuming(frozenset()), no_exchanges(a)


@lu_factor.kernel(Triangular, when=_is_upper)
@lu_factor.kernel(Diagonal, when=is_square_pattern)
def _lu_factor_triangular(a: Triangular | Diagonal) -> tuple[Array, Dense]:
    return a.freed(), no_exchanges(a)


@lu.kernel(Triangular, when=lambda x: _is_upper(x) and x.shape[-2] <= x.shape[-1])
@lu.kernel(Banded, when=lambda x: _is_upper(x) and is_square_pattern(x))
@lu.kernel(Diagonal, when=is_square_pattern)
def _lu_triangular(a: Triangular | Banded | Diagonal) -> tuple[jax.Array, Identity, Array]:
    return no_exchanges(a).data, identity_like(a, a.shape[-2]), a.assuming(frozenset())


# ---- bands -----------------------------------------------------------------------------------------------------------


def _is_square_band(x: Banded, *args: Array, **static: Any) -> bool:
    return is_square_pattern(x) and not fills_matrix(x)


@lu_factor.kernel(Banded, when=_is_square_band)
def _lu_factor_banded(a: Banded) -> tuple[Banded, Dense]:
    n, offsets = a.shape[-1], a.offsets or (0,)
    upper, multipliers, pivots = banded_factors.factor(at_offsets(a, offsets).diagonals, offsets, n)
    kl, width = multipliers.shape[-1], upper.shape[-1]
    diagonals = [multipliers[..., : n - k, k - 1] for k in range(kl, 0, -1)]
    diagonals += [upper[..., : max(0, n - k), k] for k in range(width)]
    factors = bands(diagonals, tuple(range(-kl, width)), (n, n), dtype=a.dtype, batch=a.batch_shape)
    return factors, Dense.make((pivots + jnp.arange(n, dtype=pivots.dtype),))


@lu_solve.kernel(Banded, Array, Array, when=is_square_pattern)
def _lu_solve_banded(a: Banded, piv: Array, b: Array, *, trans: int) -> tuple[Array, jax.Array]:
    n = a.shape[-1]
    kl, ku = a.bandwidths()

    def columns(count: int, sign: int) -> jax.Array:
        """The diagonals of one side, from the main one on, as columns of an array with one row for each row (column) of
        `a`.
        """
        lines = [a.diagonal(sign * k) for k in range(count)]
        return jnp.stack([jnp.pad(d, [(0, 0)] * (d.ndim - 1) + [(0, n - d.shape[-1])]) for d in lines], axis=-1)

    upper, multipliers = columns(ku + 1, 1), columns(kl + 1, -1)[..., 1:]
    right = densify(b, "linalg.lu_solve").data
    pivots = to_dense(piv).data - jnp.arange(n, dtype=piv.dtype)
    right = right.conj() if trans == 2 else right
    x, ok = banded_factors.solve(upper, multipliers, pivots, right, bool(trans))
    return Dense.make((x.conj() if trans == 2 else x,)), ok


@lu_solve.kernel(Diagonal, Array, Array, when=is_square_pattern)
def _lu_solve_diagonal(a: Diagonal, piv: Array, b: Array, *, trans: int) -> Result:
    return solve_triangular.dispatch(a, b, trans=trans, lower=False, unit_diagonal=False)


def _is_definite(x: Banded, *, lower: bool = True, hermitian: bool = True) -> bool:
    return _is_square_band(x) and lower and hermitian and POSITIVE_DEFINITE in x.assumptions


def _without_square_roots(a: Banded) -> tuple[Banded, jax.Array]:
    """Return ``L`` with a unit diagonal, and the diagonal of D, of ``A = L D L^H``, from the Cholesky factor."""
    factor, _ = cholesky.dispatch(a, upper=False)
    n, d = a.shape[-1], factor.diagonal(0)
    return bands([factor.diagonal(k) / d[..., : n + k] for k in factor.offsets], factor.offsets, (n, n)), d * d


@lu.kernel(Banded, when=_is_definite)
def _lu_banded(a: Banded) -> tuple[jax.Array, Banded, Banded]:
    """``L`` and ``D L^H``: no pivoting is needed."""
    lower, d = _without_square_roots(a)
    upper, n = cast("Banded", transposed(lower, 2)), a.shape[-1]
    upper = bands([upper.diagonal(k) * d[..., : n - k] for k in upper.offsets], upper.offsets, (n, n))
    return no_exchanges(a).data, lower, upper


@ldl.kernel(Banded, when=_is_definite)
def _ldl_banded(a: Banded, *, lower: bool, hermitian: bool) -> tuple[Banded, Diagonal, Dense]:
    factor, d = _without_square_roots(a)
    return factor, Diagonal.make((d, None), a.shape[-2:]), no_exchanges(a)


@ldl.kernel(Diagonal, when=is_square_pattern)
def _ldl_diagonal(a: Diagonal, *, lower: bool, hermitian: bool) -> tuple[Identity, Array, Dense]:
    real = a.rebuild(tuple(e.real.astype(a.dtype) for e in a.entries), None)
    return identity_like(a, a.shape[-1]), real if hermitian else a.assuming(frozenset()), no_exchanges(a)
