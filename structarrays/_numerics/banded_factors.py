"""LU factors of square banded matrices, with partial pivoting where needed, and linear systems with these factors.

The factors have the form of LAPACK's ``gbtrf``: ``A = P_0 L_0 P_1 L_1 … U``. ``P_j`` exchanges row j and a row at most
``kl`` below it. ``L_j`` is the identity with multipliers below the diagonal of column j; later exchanges do not move
them. So L takes ``kl`` entries per column, and U has ``kl + ku`` superdiagonals. See Golub and Van Loan, *Matrix
Computations*, 4.3.3.

``upper`` (..., n, kl + ku + 1) has row j of U from its diagonal on, ``multipliers`` (..., n, kl) the multipliers of
column j, and ``pivots`` (..., n) the distance from row j to the row that it was exchanged with.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, cast

import jax
import jax.numpy as jnp
from jax import lax

from . import banded_lu, banded_rows, banded_systems
from .flags import custom_jvp

if TYPE_CHECKING:
    from collections.abc import Sequence

# ---- factors -------------------------------------------------------------------------------------------------------


def factor(diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Factor a matrix given by its diagonals; return ``upper``, ``multipliers`` and ``pivots``."""
    dtype = jnp.result_type(*diagonals) if diagonals else jnp.result_type(float)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    kl, ku = banded_rows.bandwidths(offsets)
    if n == 0 or 0 in batch:
        zeros = jnp.zeros((*batch, n, kl + ku + 1), dtype)
        return zeros, zeros[..., :kl], jnp.zeros((*batch, n), jnp.int32)
    rows = banded_rows.from_diagonals(diagonals, offsets, n, dtype)
    return _factor(kl, ku, jnp.broadcast_to(rows, (*batch, *rows.shape[-2:])))


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _factor(kl: int, ku: int, rows: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    def whole_batch(rows: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        system = functools.partial(_factor_one, kl=kl, ku=ku)
        return banded_systems.one_by_one(system, rows.shape[:-2], rows)

    return banded_systems.mapped_together(whole_batch, (True, True, True))(rows)


def _factor_one(rows: jax.Array, kl: int, ku: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Factor one matrix: without pivoting, which is several times faster, if that is stable, as in
    `banded_elimination.solve`.
    """

    def pivoted() -> tuple[jax.Array, jax.Array, jax.Array]:
        upper, _, multipliers, pivots = banded_lu.eliminate_pivoted(*banded_lu.apart(rows, kl), kl, ku)
        return upper, multipliers, pivots.astype(jnp.int32)

    n = rows.shape[0]
    factors, stable = banded_lu.eliminate(jnp.pad(rows, ((0, kl), (0, 0))), kl, ku, jnp.max(jnp.abs(rows)))
    factors = factors[:n]

    def unpivoted() -> tuple[jax.Array, jax.Array, jax.Array]:
        upper = jnp.pad(factors[:, kl:], ((0, 0), (0, kl)))
        return upper, banded_lu.multipliers_by_columns(factors, kl, ku), jnp.zeros(n, jnp.int32)

    results: tuple[jax.Array, jax.Array, jax.Array] = lax.cond(stable, unpivoted, pivoted)
    return results


@_factor.defjvp
def _factor_jvp(
    kl: int, ku: int, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[tuple[jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]:
    (rows,), (tangent,) = primals, tangents
    upper, multipliers, pivots = _factor(kl, ku, rows)
    change = jnp.vectorize(_tangent, signature="(n,w),(n,k),(n),(n,w)->(n,w),(n,k)")
    d_upper, d_multipliers = change(upper, multipliers, pivots, tangent)
    return (upper, multipliers, pivots), (d_upper, d_multipliers, jnp.zeros(pivots.shape, jax.dtypes.float0))


def _tangent(
    upper: jax.Array, multipliers: jax.Array, pivots: jax.Array, tangent: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Derivative of the elimination with the same exchanges. It is linear in the tangent, and keeps only the factors."""
    kl, width = multipliers.shape[1], upper.shape[1]
    window: list[jax.Array] | jax.Array = [
        jnp.concatenate([tangent[i, kl - i :], jnp.zeros(kl - i, tangent.dtype)]) for i in range(kl)
    ]
    window = jnp.stack(window) if kl else jnp.zeros((0, width), tangent.dtype)
    incoming = jnp.concatenate([tangent[kl:], jnp.zeros((kl, width), tangent.dtype)])

    def step(
        window: jax.Array, factors: tuple[jax.Array, jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        row, pivot_row, m, p = factors
        d_pivot_row, others = _exchanged(jnp.concatenate([window, row[None]]), p)
        pivot = jnp.where(pivot_row[0] == 0, 1, pivot_row[0])
        dm = (others[:, 0] - m * d_pivot_row[0]) / pivot
        others = others - m[:, None] * d_pivot_row - dm[:, None] * pivot_row
        return jnp.concatenate([others[:, 1:], jnp.zeros((kl, 1), others.dtype)], 1), (d_pivot_row, dm)

    return lax.scan(step, window, (incoming, upper, multipliers, pivots))[1]


def _exchanged(window: jax.Array, p: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Exchange rows 0 and p of a window; return the former row p separately."""
    index = jnp.arange(window.shape[0])[:, None]
    return lax.dynamic_index_in_dim(window, p, 0, keepdims=False), jnp.where(index == p, window[0], window)[1:]


# ---- linear systems --------------------------------------------------------------------------------------------------


def solve(
    upper: jax.Array, multipliers: jax.Array, pivots: jax.Array, b: jax.Array, of_transpose: bool
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b`` or ``A^T x = b`` by the factors of A.

    Parameters
    ----------
    upper, multipliers, pivots : jax.Array
        The factors, of the dtype of `b`.
    b : jax.Array, (..., n, k)
        The batch shape broadcasts against the batch shape of the factors.
    of_transpose : bool

    Returns
    -------
    x : jax.Array, (..., n, k)
        NaN where a pivot is zero.
    ok : jax.Array, bool scalar
        Whether no pivot is zero.
    """
    if 0 in b.shape[-2:]:
        batch = jnp.broadcast_shapes(upper.shape[:-2], pivots.shape[:-1], b.shape[:-2])
        return jnp.zeros((*batch, *b.shape[-2:]), b.dtype), ~jnp.any(upper[..., 0] == 0)

    def method(
        upper: jax.Array, multipliers: jax.Array, pivots: jax.Array, b: jax.Array, transposed: bool
    ) -> tuple[jax.Array, jax.Array]:
        system = functools.partial(_solve, transposed=transposed != of_transpose)
        return banded_systems.each_system(system, b, upper, multipliers, pivots)

    def matvec(factors: tuple[jax.Array, jax.Array, jax.Array], x: jax.Array) -> jax.Array:
        product = functools.partial(_product, transposed=of_transpose)
        result: jax.Array = jnp.vectorize(product, signature="(n,w),(n,m),(n),(n,k)->(n,k)")(*factors, x)
        return result

    # Differentiate the equation, A dx = db - dA x, where A is the product of its factors.
    return banded_systems.solve(method, (upper, multipliers, pivots), (2, 2, 1), matvec, b)


def _solve(
    upper: jax.Array, multipliers: jax.Array, pivots: jax.Array, b: jax.Array, transposed: bool
) -> tuple[jax.Array, jax.Array]:
    """Solve one system."""
    ok = ~jnp.any(upper[:, 0] == 0)
    if transposed:
        right = tuple(range(1, upper.shape[1]))
        x = banded_rows.substitute_by_columns(upper, right, b, upper[:, 0], first=1)
        x = _up(multipliers, pivots, x, transposed)
    else:
        x = banded_lu.substitute_upper(upper, _down(multipliers, pivots, b, transposed))
    return jnp.where(ok, x, jnp.nan), ok


def _product(upper: jax.Array, multipliers: jax.Array, pivots: jax.Array, x: jax.Array, transposed: bool) -> jax.Array:
    """``A x`` or ``A^T x``."""
    if transposed:
        x = _down(multipliers, pivots, x, transposed)
        return cast("jax.Array", sum(banded_rows.shifted(upper[:, d, None] * x, d) for d in range(upper.shape[1])))
    y = cast("jax.Array", sum(upper[:, d, None] * banded_rows.shifted(x, -d) for d in range(upper.shape[1])))
    return _up(multipliers, pivots, y, transposed)


def _down(multipliers: jax.Array, pivots: jax.Array, b: jax.Array, transposed: bool) -> jax.Array:
    """Apply ``(P_0 L_0 …)^-1`` or (`transposed`) ``(P_0 L_0 …)^T`` to b, from the first column to the last."""
    kl = multipliers.shape[1]
    if kl == 0:
        return b
    zeros = jnp.zeros((kl, b.shape[1]), b.dtype)

    def step(window: jax.Array, factors: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        row, m, p = factors
        row, others = _exchanged(jnp.concatenate([window, row[None]]), p)
        return (others, row + m @ others) if transposed else (others - m[:, None] * row, row)

    return lax.scan(step, b[:kl], (jnp.concatenate([b[kl:], zeros]), multipliers, pivots))[1]


def _up(multipliers: jax.Array, pivots: jax.Array, y: jax.Array, transposed: bool) -> jax.Array:
    """Apply ``P_0 L_0 …`` or (`transposed`) ``(P_0 L_0 …)^-T`` to y, from the last column to the first."""
    kl = multipliers.shape[1]
    if kl == 0:
        return y
    index = jnp.arange(kl + 1)[:, None]

    def step(others: jax.Array, factors: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        row, m, p = factors
        if transposed:
            row = row - m @ others
        else:
            others = others + m[:, None] * row
        window = jnp.concatenate([row[None], others])
        top = lax.dynamic_index_in_dim(window, p, 0, keepdims=False)
        window = jnp.concatenate([top[None], jnp.where(index == p, row, window)[1:]])
        return window[:-1], window[-1]

    zeros = jnp.zeros((kl, y.shape[1]), y.dtype)
    first, rest = lax.scan(step, zeros, (y, multipliers, pivots), reverse=True)
    return jnp.concatenate([first, rest])[: y.shape[0]]
