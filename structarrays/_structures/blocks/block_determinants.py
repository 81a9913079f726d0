"""Determinants of block-tridiagonal matrices and their derivatives, block row by block row (see `block_tridiagonal`).

The derivative of ``log(det(A))`` along dA is ``trace(inv(A) dA)``. Only the blocks of the inverse at the positions of the matrix are
needed. A loop from the last block row to the first computes their transposes. Automatic differentiation of the elimination would take
several times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from ..._numerics import cyclic_reduction, dense_factors, determinants
from ..._numerics.flags import custom_jvp
from .block_tridiagonal import eliminate_pivoted, factor_definite, hermitian_part, triangular

if TYPE_CHECKING:
    from collections.abc import Callable

    Blocks: TypeAlias = tuple[jax.Array, jax.Array, jax.Array]

# Up to this block size, a sum of products takes less time than XLA's product of two matrices.
_SMALL = 8


def slogdet(
    lower: jax.Array, diagonal: jax.Array, upper: jax.Array, positive_definite: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Sign (phase) of the determinant and logarithm of its magnitude, (...); 0 and -inf for a singular matrix.

    Uses LU with partial pivoting, or the Cholesky factor of the Hermitian part (NaN if there is none).
    """
    one = _definite if positive_definite else _general
    in_order: Callable[..., tuple[jax.Array, jax.Array]] = jnp.vectorize(
        one, signature="(n,m,m),(n,m,m),(n,m,m)->(),()"
    )

    def log_depth(*blocks: *Blocks) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        if positive_definite:
            # The Cholesky factors of the pivots read one triangle, so the derivative would belong to that triangle.
            diagonal, upper = hermitian_part(*blocks)
            blocks = cyclic_reduction.shifted(upper, 1).mT.conj(), diagonal, upper
        levels, regular = cyclic_reduction.reduce(*blocks, positive_definite)
        factors = jnp.concatenate([level.factors for level in levels], -2)
        trusted = regular & cyclic_reduction.is_stable(levels, blocks)
        return determinants.sign_and_logarithm(factors, (-2, -1)), trusted

    return cyclic_reduction.or_in_order(in_order, log_depth)(lower, diagonal, upper)


def _change(gradient: Blocks, tangents: Blocks) -> jax.Array:
    """The derivative of the logarithm along a change of the blocks."""
    return sum((jnp.sum(g * t) for g, t in zip(gradient, tangents, strict=True)), jnp.zeros((), gradient[0].dtype))


def _times(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.sum(a[:, :, None] * b, 1) if a.shape[1] <= _SMALL else a @ b


# ---- general matrices ------------------------------------------------------------------------------------------------


@custom_jvp
def _general(lower: jax.Array, diagonal: jax.Array, upper: jax.Array) -> tuple[jax.Array, jax.Array]:
    factors, exchanges, *_ = eliminate_pivoted(lower, diagonal, upper)
    return _from_pivots(cyclic_reduction.main_diagonals(factors[:, : diagonal.shape[-1]]), exchanges)


@_general.defjvp
def _general_jvp(primals: Blocks, tangents: Blocks) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    sign, logabsdet, gradient = _with_gradient(*primals)
    return (sign, logabsdet), determinants.tangents(sign, _change(gradient, tangents))


def _from_pivots(pivots: jax.Array, exchanges: jax.Array) -> tuple[jax.Array, jax.Array]:
    odd = jnp.sum(exchanges != jnp.arange(exchanges.shape[1], dtype=exchanges.dtype)) % 2
    sign, logarithm = determinants.sign_and_logarithm(pivots, (-2, -1))
    return jnp.where(odd == 1, -sign, sign), logarithm


def _with_gradient(lower: jax.Array, diagonal: jax.Array, upper: jax.Array) -> tuple[jax.Array, jax.Array, Blocks]:
    """Return also the derivative of the logarithm by the blocks.

    Step i of the elimination has a panel of 2 m rows, the rest of block row i and block row i + 1. After the exchanges it is
    ``[[L U, L T], [N U, S]]`` with triangular L and U, and the next panel begins with ``S - N T``. From the derivative G by these rows
    follow the derivatives of the four parts, with ``B = -G T^T`` and ``M = N inv(L)``:

        [[F inv(U)^T, -M^T G], [B inv(U)^T, G]],    F = inv(L)^T - M^T B.

    F is a difference of matrices of moderate size, while ``inv(U)`` may be large.
    """
    m = diagonal.shape[-1]
    identity = jnp.eye(m, dtype=diagonal.dtype)
    still = jnp.zeros((m, m), diagonal.dtype)

    def down(rows: jax.Array, following: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        # The same steps as of `eliminate_pivoted`.
        panel = jnp.concatenate([jnp.concatenate([rows, still], 1), following])
        factors, exchanges, order = dense_factors.lu(panel[:, :m])
        rest = panel[order, m:]
        both = jnp.concatenate([rest[:m], identity], 1)
        both = triangular(factors[:m], both, lower=True, unit_diagonal=True)  # T and inv(L)
        inverse = triangular(factors[:m], identity, lower=False)
        right = _times(factors[m:], both)  # N T and M
        kept = both.T, inverse.T, right[:, 2 * m :].T
        return rest[m:] - right[:, : 2 * m], (jnp.diagonal(factors), exchanges, order, *kept)

    def up(new: jax.Array, factors: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        positions, both, inverse, multipliers = factors
        below = jnp.concatenate([-_times(new, both[: 2 * m]), new], 1)
        above = jnp.concatenate([both[2 * m :], still, still], 1) - _times(multipliers, below)
        panel = jnp.concatenate([above, below])
        panel = jnp.concatenate([_times(panel[:, :m], inverse), panel[:, m:]], 1)[positions]
        return panel[:m, : 2 * m], panel[m:]

    rows = jnp.concatenate([diagonal, upper], -1)
    following = jnp.concatenate([lower, rows], -1)[1:]
    following = jnp.concatenate([following, jnp.zeros((1, m, 3 * m), rows.dtype)])
    _, (pivots, exchanges, order, *factors) = lax.scan(down, rows[0], following)
    index = jnp.arange(2 * m, dtype=order.dtype)
    positions = jnp.sum(jnp.where(order[:, None, :] == index[:, None], index, 0), -1)  # the inverse permutations
    first, others = lax.scan(up, jnp.zeros((m, 2 * m), rows.dtype), (positions, *factors), reverse=True)
    # Step i gives the derivative by block row i + 1. The last of these block rows is below the matrix.
    every = jnp.concatenate([jnp.concatenate([still, first], 1)[None], others[:-1]])
    return *_from_pivots(pivots, exchanges), (every[..., :m], every[..., m : 2 * m], every[..., 2 * m :])


# ---- positive definite matrices --------------------------------------------------------------------------------------


@custom_jvp
def _definite(lower: jax.Array, diagonal: jax.Array, upper: jax.Array) -> tuple[jax.Array, jax.Array]:
    factors, _ = factor_definite(None, *hermitian_part(lower, diagonal, upper))
    return _from_factors(factors)


@_definite.defjvp
def _definite_jvp(primals: Blocks, tangents: Blocks) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    factors, right = factor_definite(None, *hermitian_part(*primals))
    sign, logabsdet = _from_factors(factors)
    change = _change(_gradient_definite(factors, right), tangents).real
    return (sign, logabsdet), (jnp.zeros_like(sign), change)


def _from_factors(factors: jax.Array) -> tuple[jax.Array, jax.Array]:
    sign, logarithm = determinants.sign_and_logarithm(cyclic_reduction.main_diagonals(factors), (-2, -1))
    return sign, 2 * logarithm


def _gradient_definite(factors: jax.Array, right: jax.Array) -> Blocks:
    """The derivative of the logarithm by the blocks, from the factor ``L`` with the diagonal blocks `factors` and ``right^H`` below.

    With ``S = factors factors^H`` and ``W = factors^-H right`` the blocks of the inverse are ``Z[i, i] = inv(S) + W Z[i + 1, i + 1] W^H``
    and ``Z[i, i + 1] = -W Z[i + 1, i + 1]``.
    """
    identity = jnp.broadcast_to(jnp.eye(factors.shape[-1], dtype=factors.dtype), factors.shape)
    adjoint = triangular(factors, identity, lower=True, adjoint=True)  # factors^-H
    inverses = adjoint @ adjoint.mT.conj()

    def up(following: jax.Array, blocks: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        inverse, multipliers = blocks
        upper = -_times(multipliers, following)
        diagonal = inverse - _times(upper, multipliers.mT.conj())
        return diagonal, (diagonal, upper)

    start = jnp.zeros(factors.shape[1:], factors.dtype)
    diagonal, upper = lax.scan(up, start, (inverses, adjoint @ right), reverse=True)[1]
    return cyclic_reduction.shifted(upper, 1).mT, diagonal.mT, upper.conj()
