r"""Determinants of low-rank updates of diagonal matrices, in particular of Hermitian updates of positive ones.

The determinant of ``M = D + U U^*`` is :math:`\det D \det C`, with a positive diagonal matrix D, :math:`W = D^{-1/2} U` and
:math:`C = I + W^* W`. The rounding errors of an element of C are at most :math:`\epsilon\, l_i l_j` with the lengths :math:`l_i` of the columns
of W, which are shorter than :math:`C_{ii}^{1/2}`. So, to first order,

.. math:: |\delta \log \det C| \le \epsilon \sum_{ij} |C^{-1}|_{ij} (C_{ii} C_{jj})^{1/2} .

If this is too large, the triangular factor of W above I gives the determinant with all digits, also if rows of W have different magnitudes
(Golub and Van Loan, *Matrix Computations*, 4th edition, 5.2). Other updates (`bordered_updates`) need several passes over U.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import lax

from ..._numerics import dense_linalg as linalg_dense
from ..._numerics.determinants import any_of_all
from ..._numerics.tall import transposed_quotients
from .bordered_updates import Determinant, by_elimination

if TYPE_CHECKING:
    from ..banded.diagonal import Diagonal


def determinant(base: Diagonal, u: jax.Array, v: jax.Array) -> Determinant:
    """Return the determinant of ``base + u @ v.mT``, with u and v (..., n, r)."""
    definite = _is_definite(base, u, v)
    # The derivatives of results that are not used must be finite.
    positive = jnp.where(definite[..., None], base.diag, 1)
    (c,) = transposed_quotients(v, (u,), positive)
    c = c + jnp.eye(c.shape[-1], dtype=c.dtype)
    accurate = definite & _has_digits(lax.stop_gradient(c))

    def of_triangular(r: jax.Array) -> Determinant:
        """Return the determinant of the base and of ``r.conj().mT @ r``; squares might overflow."""
        diagonal = jnp.abs(jnp.diagonal(r, axis1=-2, axis2=-1)).astype(r.dtype)
        twice = jnp.concatenate([diagonal, diagonal], axis=-1)
        nothing = jnp.zeros((*definite.shape, base.shape[-1]), bool)
        return Determinant(
            nothing, jnp.ones_like(twice), twice[..., None] * jnp.eye(twice.shape[-1], dtype=r.dtype), definite
        )

    def otherwise() -> Determinant:
        nothing = of_triangular(jnp.zeros_like(c))
        others = functools.partial(by_elimination, base.diag, jnp.where(definite[..., None, None], 0, u), v)
        results = (
            lax.cond(any_of_all(definite), lambda: of_triangular(_of_rows(positive, u)), lambda: nothing),
            lax.cond(any_of_all(~definite), others, lambda: nothing),
        )
        return Determinant(*(jnp.where(_like(definite, own), own, other) for own, other in zip(*results, strict=True)))

    result: Determinant = lax.cond(
        any_of_all(~accurate),
        # Derivatives of the other branch would fill its intermediate results with zeros.
        jax.checkpoint(otherwise),
        lambda: of_triangular(jnp.linalg.cholesky(c)),
    )
    return result


def _like(flags: jax.Array, x: jax.Array) -> jax.Array:
    return flags.reshape(*flags.shape, *(1,) * (x.ndim - flags.ndim))


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


def _of_rows(d: jax.Array, u: jax.Array) -> jax.Array:
    """Return R of the orthogonal factorization of ``W`` above ``I``."""
    w = u / jnp.sqrt(d)[..., None]
    unit = jnp.eye(w.shape[-1], dtype=w.dtype)
    unit = jnp.broadcast_to(unit, (*w.shape[:-2], *unit.shape))
    _, r = linalg_dense.qr(jnp.concatenate([w, unit], axis=-2))
    return r
