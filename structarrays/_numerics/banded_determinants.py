"""Determinants and selected inverses of square banded matrices, with their derivatives.

Wide bands are factored by LAPACK, if only the determinant is wanted. Otherwise the elimination of `banded_lu` is reversed.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from . import banded_by_lapack, banded_lu, banded_rows, banded_systems, cyclic_reduction, determinants, lapack_bands
from .flags import custom_jvp
from .undefined import nan_unless

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def slogdet(diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int) -> tuple[jax.Array, jax.Array]:
    """Sign (phase) of the determinant and logarithm of its magnitude; 0 and -inf for a singular matrix."""
    inside, at = banded_rows.nonempty(diagonals, offsets, n)
    kl, ku = banded_rows.bandwidths(at)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    in_order = not cyclic_reduction.has_accelerator()
    if kl and ku and 0 not in batch and in_order and lapack_bands.is_faster(kl, ku, n, banded_by_lapack.GENERAL):
        return _slogdet_by_lapack(at, n, tuple(jnp.broadcast_to(d, (*batch, *d.shape[-1:])) for d in inside))
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


def _rows(diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int) -> tuple[jax.Array, tuple[int, int]]:
    """Convert a matrix to row storage with its full batch shape; return also the numbers of sub- and superdiagonals."""
    dtype = jnp.result_type(*diagonals) if diagonals else jnp.result_type(float)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    diagonals, offsets = banded_rows.nonempty(diagonals, offsets, n)
    rows = banded_rows.from_diagonals(diagonals, offsets, n, dtype)
    return jnp.broadcast_to(rows, (*batch, *rows.shape[-2:])), banded_rows.bandwidths(offsets)


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
    return determinants.tangents(sign, jnp.sum(gradient * tangent, (-2, -1)))


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


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _slogdet_by_lapack(
    offsets: tuple[int, ...], n: int, diagonals: tuple[jax.Array, ...]
) -> tuple[jax.Array, jax.Array]:
    def whole_batch(*diagonals: jax.Array) -> tuple[jax.Array, jax.Array]:
        diagonal, odd = lapack_bands.determinant_factors(diagonals, offsets, n)
        sign, logabsdet = determinants.sign_and_logarithm(diagonal, -1)
        return jnp.where(odd, -sign, sign), logabsdet

    return banded_systems.mapped_together(whole_batch, (True, True))(*diagonals)


@_slogdet_by_lapack.defjvp
def _slogdet_by_lapack_jvp(
    offsets: tuple[int, ...],
    n: int,
    primals: tuple[tuple[jax.Array, ...]],
    tangents: tuple[tuple[jax.Array, ...]],
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    dtype = jnp.result_type(*primals[0])
    rows, tangent = (banded_rows.from_diagonals(d, offsets, n, dtype) for d in (*primals, *tangents))
    sign, logabsdet, gradient = _slogdet_and_gradient(*banded_rows.bandwidths(offsets), rows)
    return (sign, logabsdet), _changes(sign, gradient, tangent)
