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

from . import banded_by_lapack, banded_lu, banded_rows, banded_systems, lapack_bands
from .flags import custom_jvp
from .undefined import nan_unless

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
    whole = tuple(jnp.broadcast_to(d, (*batch, *d.shape[-1:])).astype(dtype) for d in diagonals)
    return _factor(tuple(offsets), n, whole)


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _factor(
    offsets: tuple[int, ...], n: int, diagonals: tuple[jax.Array, ...]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    kl, ku = banded_rows.bandwidths(offsets)

    def whole_batch(*diagonals: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        batch = diagonals[0].shape[:-1]
        if lapack_bands.is_faster(kl, ku, n, banded_by_lapack.PIVOTED):
            columns, pivots, _ = lapack_bands.factor(diagonals, offsets, n)
            return banded_systems.one_by_one(functools.partial(lapack_bands.parts, kl=kl), batch, columns, pivots)
        rows = banded_rows.from_diagonals(diagonals, offsets, n, diagonals[0].dtype)
        return banded_systems.one_by_one(functools.partial(banded_lu.factor_rows, kl=kl, ku=ku), batch, rows)

    return banded_systems.mapped_together(whole_batch, (True, True, True))(*diagonals)


@_factor.defjvp
def _factor_jvp(
    offsets: tuple[int, ...], n: int, primals: tuple[tuple[jax.Array, ...]], tangents: tuple[tuple[jax.Array, ...]]
) -> tuple[tuple[jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]:
    upper, multipliers, pivots = _factor(offsets, n, *primals)
    tangent = banded_rows.from_diagonals(*tangents, offsets, n, upper.dtype)
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
        d_pivot_row, others = banded_lu.exchanged(jnp.concatenate([window, row[None]]), p)
        pivot = jnp.where(pivot_row[0] == 0, 1, pivot_row[0])
        dm = (others[:, 0] - m * d_pivot_row[0]) / pivot
        others = others - m[:, None] * d_pivot_row - dm[:, None] * pivot_row
        return jnp.concatenate([others[:, 1:], jnp.zeros((kl, 1), others.dtype)], 1), (d_pivot_row, dm)

    return lax.scan(step, window, (incoming, upper, multipliers, pivots))[1]


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
        transposed = transposed != of_transpose
        kl, n = multipliers.shape[-1], b.shape[-2]
        if lapack_bands.is_faster(kl, upper.shape[-1] - 1 - kl, n, banded_by_lapack.PIVOTED):
            joined = functools.partial(banded_systems.one_by_one, lapack_bands.joined, b.shape[:-2])
            x = lapack_bands.solve(*joined(upper, multipliers, pivots), b, kl, transposed=transposed)
            bad = jnp.any(upper[..., 0] == 0, -1)
            return nan_unless(~bad[..., None, None], x), ~jnp.any(bad)
        system = functools.partial(banded_lu.solve_by_factors, transposed=transposed)
        return banded_systems.each_system(system, b, upper, multipliers, pivots)

    def matvec(factors: tuple[jax.Array, jax.Array, jax.Array], x: jax.Array) -> jax.Array:
        product = functools.partial(_product, transposed=of_transpose)
        result: jax.Array = jnp.vectorize(product, signature="(n,w),(n,m),(n),(n,k)->(n,k)")(*factors, x)
        return result

    # Differentiate the equation, A dx = db - dA x, where A is the product of its factors.
    return banded_systems.solve(method, (upper, multipliers, pivots), (2, 2, 1), matvec, b)


def _product(upper: jax.Array, multipliers: jax.Array, pivots: jax.Array, x: jax.Array, transposed: bool) -> jax.Array:
    """``A x`` or ``A^T x``."""
    if transposed:
        x = banded_lu.down(multipliers, pivots, x, transposed)
        return cast("jax.Array", sum(banded_rows.shifted(upper[:, d, None] * x, d) for d in range(upper.shape[1])))
    y = cast("jax.Array", sum(upper[:, d, None] * banded_rows.shifted(x, -d) for d in range(upper.shape[1])))
    return banded_lu.up(multipliers, pivots, y, transposed)
