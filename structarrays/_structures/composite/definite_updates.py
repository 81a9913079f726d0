r"""Determinants of low-rank updates of diagonal matrices, in particular of Hermitian updates of positive ones.

The determinant of ``M = D + U U^*`` is :math:`\det D \det C`, with a positive diagonal matrix D, :math:`W = D^{-1/2} U` and
:math:`C = I + W^* W`. The rounding errors of an element of C are at most :math:`\epsilon\, l_i l_j` with the lengths :math:`l_i` of the columns
of W, which are shorter than :math:`C_{ii}^{1/2}`. So, to first order,

.. math:: |\delta \log \det C| \le \epsilon \sum_{ij} |C^{-1}|_{ij} (C_{ii} C_{jj})^{1/2} .

If this is too large, the triangular factor of W above I gives the determinant with all digits, also if rows of W have different magnitudes
(Golub and Van Loan, *Matrix Computations*, 4th edition, 5.2). The estimates for other updates (`base_shifts.is_benign`) need several passes over
U.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import lax

from ..._numerics import dense_linalg as linalg_dense
from ..._numerics.determinants import any_of_all
from ..._numerics.tall import transposed_quotients
from ..banded.diagonal import Diagonal

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._core.array.base import Array


def of_updated_diagonal(
    base: Diagonal,
    u: jax.Array,
    v: jax.Array,
    of_base_and_capacitance: Callable[[tuple[Array, Array]], tuple[jax.Array, ...]],
    by_estimates: Callable[[Diagonal, jax.Array, jax.Array], tuple[tuple[jax.Array, ...], jax.Array]],
) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """Return the results of a function of the base and of ``C``, and whether few digits are lost, for each matrix.

    Parameters
    ----------
    base : Diagonal, (..., n, n)
    u, v : jax.Array, (..., n, r)
        The update ``u @ v.mT``.
    of_base_and_capacitance : callable
        The function, whose results depend on the determinant of ``C`` alone.
    by_estimates : callable
        Function that returns the same for any base and update.
    """
    definite = _is_definite(base, u, v)
    # The derivatives of results that are not used must be finite.
    positive = Diagonal.make((jnp.where(definite[..., None], base.diag, 1), None), base.core_shape)
    (c,) = transposed_quotients(v, (u,), positive.diag)
    c = c + jnp.eye(c.shape[-1], dtype=c.dtype)
    accurate = definite & _has_digits(lax.stop_gradient(c))

    def by_rows() -> tuple[jax.Array, ...]:
        return of_base_and_capacitance((positive, _from_rows(positive, u)))

    def others() -> tuple[tuple[jax.Array, ...], jax.Array]:
        return by_estimates(base, jnp.where(definite[..., None, None], 0, u), v)

    def otherwise() -> tuple[tuple[jax.Array, ...], jax.Array]:
        nothing = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), jax.eval_shape(by_rows))
        results, fine = lax.cond(any_of_all(~definite), others, lambda: (nothing, definite))
        own = lax.cond(any_of_all(definite), by_rows, lambda: nothing)
        return tuple(jnp.where(definite, a, b) for a, b in zip(own, results, strict=True)), definite | fine

    results: tuple[tuple[jax.Array, ...], jax.Array] = lax.cond(
        any_of_all(~accurate),
        # Derivatives of the other branch would fill its intermediate results with zeros.
        jax.checkpoint(otherwise),
        lambda: (of_base_and_capacitance((base, _from_cholesky(c))), jnp.ones_like(accurate)),
    )
    return results


def _is_definite(base: Diagonal, u: jax.Array, v: jax.Array) -> jax.Array:
    """Return whether the base is positive and the update Hermitian, for each matrix."""
    d = base.diag
    positive = jnp.all((d.real > jnp.finfo(d.dtype).tiny ** 0.25) & (d.imag == 0), axis=-1)
    if u is not v or jnp.iscomplexobj(u):
        positive = positive & jnp.all(u == v.conj(), axis=(-2, -1))
    return jnp.broadcast_to(positive, jnp.broadcast_shapes(d.shape[:-1], u.shape[:-2], v.shape[:-2]))


def _has_digits(c: jax.Array) -> jax.Array:
    """Return whether the determinant of ``C`` has half of the digits, for each matrix."""
    lengths = jnp.sqrt(jnp.abs(jnp.diagonal(c, axis1=-2, axis2=-1)))
    unit = jnp.broadcast_to(jnp.eye(c.shape[-1], dtype=c.dtype), c.shape)
    root = lax.linalg.triangular_solve(jnp.linalg.cholesky(c), unit, left_side=True, lower=True)
    errors = jnp.abs(root.conj().mT @ root) * lengths[..., :, None] * lengths[..., None, :]
    are_small: jax.Array = jnp.sum(errors, axis=(-2, -1)) <= jnp.finfo(c.dtype).eps ** -0.5
    return are_small


def _from_cholesky(c: jax.Array) -> Diagonal:
    """Return a diagonal matrix with the determinant of ``C``."""
    return _of_triangular(jnp.linalg.cholesky(c))


def _from_rows(base: Diagonal, u: jax.Array) -> Diagonal:
    """Return a diagonal matrix with the determinant of ``C``, from the orthogonal factorization of ``W`` above ``I``."""
    w = u / jnp.sqrt(base.diag)[..., None]
    unit = jnp.eye(w.shape[-1], dtype=w.dtype)
    unit = jnp.broadcast_to(unit, (*w.shape[:-2], *unit.shape))
    _, r = linalg_dense.qr(jnp.concatenate([w, unit], axis=-2))
    return _of_triangular(r)


def _of_triangular(r: jax.Array) -> Diagonal:
    """Return a diagonal matrix with the determinant of ``r.conj().mT @ r``; squares might overflow."""
    diagonal = jnp.abs(jnp.diagonal(r, axis1=-2, axis2=-1)).astype(r.dtype)
    return Diagonal.make((jnp.concatenate([diagonal, diagonal], axis=-1), None), (2 * r.shape[-1],) * 2)
