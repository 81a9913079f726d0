"""Singular values, pseudo-inverses and best approximations of ``u @ v.mT`` on plain JAX arrays, from the factors.

The factors are ``u`` (..., m, r) and ``v`` (..., n, r), which may have dependent columns. All functions use QR
factorizations of both, and the singular value decomposition of the small matrix between them: ``O((m + n) r**2)``. The
derivatives do not use QR factorizations, which are not differentiable for dependent columns.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import dense_spectra as spectra
from .dense_linalg import qr
from .determinants import any_of_all
from .flags import custom_jvp
from .quotients import reciprocal
from .tall import transposed_product

if TYPE_CHECKING:
    from collections.abc import Callable


def svd(u: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """``U`` (..., m, q), ``s`` (..., q) and ``V`` (..., n, q) with ``u @ v.mT = U @ diag(s) @ V^H``, q the minimum of m, n and r.

    Golub and Van Loan, *Matrix Computations*, 4th edition, 5.4.9: ``Ru @ Rv.mT`` has the same singular values.
    """
    (qu, ru), (qv, rv) = qr(u), qr(v)
    left, s, right = spectra.svd(ru @ rv.mT, full_matrices=False)
    return qu @ left, s, qv.conj() @ _adjoint(right)


def _adjoint(x: jax.Array) -> jax.Array:
    return x.conj().mT


@custom_jvp
def singular_values(u: jax.Array, v: jax.Array) -> jax.Array:
    """The singular values, descending, (..., q)."""
    (_, ru), (_, rv) = qr(u), qr(v)
    return spectra.svdvals(ru @ rv.mT)


@singular_values.defjvp
def _singular_values_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (u, v), (du, dv) = primals, tangents
    left, s, right = svd(u, v)
    moved = du @ (v.mT @ right) + u @ (dv.mT @ right)
    return spectra.simple(s, s.shape[-1]), jnp.sum((left.conj() * moved).real, axis=-2)


def rounding_error(u: jax.Array, v: jax.Array) -> jax.Array:
    """Bound (...) of singular values that are zero without rounding errors, which are relative to the columns of the factors.

    Columns may cancel: ``[a, a] @ [b, -b].mT`` is zero, and its computed singular values are not. The sums in Householder's QR
    factorization of n constant elements have relative errors up to about the square root of n.
    """
    of_u, of_v = (_column_norms(lax.stop_gradient(x)) for x in (u, v))
    n = jnp.asarray(max(u.shape[-2], v.shape[-2]), of_u.dtype)  # which may be symbolic
    return 4 * jnp.sqrt(n) * float(jnp.finfo(u.dtype).eps) * jnp.sum(of_u * of_v, axis=-1)


def _column_norms(x: jax.Array) -> jax.Array:
    """Euclidean norms (..., r), whose squares may overflow or underflow."""
    largest = jnp.max(jnp.abs(x), axis=-2, initial=0)
    scaled = jnp.abs(x) / jnp.where(largest == 0, 1, largest)[..., None, :]
    return largest * jnp.sqrt(jnp.sum(scaled**2, axis=-2))


_CANCELLED = 0.01
"""Below this part of the sum of the terms' magnitudes, a sum of squares is computed without cancellation."""


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def squares(axes: tuple[int, ...], u: jax.Array, v: jax.Array) -> jax.Array:
    """The sums of squared magnitudes over one core axis or both, ``(-1,)``, ``(-2,)`` or ``(-2, -1)``.

    Sums of products of Gram matrices are fast. If their terms cancel, as in the difference of two similar matrices, the relative error
    is the square of the error of the elements, and a QR factorization of a factor gives the squares themselves.
    """
    result, size = _squares_by_gram(axes, u, v)
    if u.shape[-1] <= 1:  # there is at most one term
        return result
    squares: jax.Array = lax.cond(
        any_of_all(result < _CANCELLED * size), lambda: _squares_by_qr(axes, u, v), lambda: result
    )
    return squares


@squares.defjvp
def _squares_jvp(
    axes: tuple[int, ...], primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    _, change = jax.jvp(lambda u, v: _squares_by_gram(axes, u, v)[0], primals, tangents)
    return squares(axes, *primals), change


def _squares_by_gram(axes: tuple[int, ...], u: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The sums of squares, and the sums of the magnitudes of their terms."""
    gram_u, gram_v = (transposed_product(x.conj(), x, jnp.ones(x.shape[-2], x.dtype)) for x in (u, v))
    if len(axes) == 2:
        terms = gram_u * gram_v
        return jnp.sum(terms.real, axis=axes), jnp.sum(lax.stop_gradient(jnp.abs(terms)), axis=axes)
    gram, other = (gram_u, v) if axes == (-2,) else (gram_v, u)
    result = jnp.sum((other.conj() * (other @ gram.mT)).real, axis=-1)
    gram, other = (jnp.abs(lax.stop_gradient(x)) for x in (gram, other))
    return result, jnp.sum(other * (other @ gram.mT), axis=-1)


def _squares_by_qr(axes: tuple[int, ...], u: jax.Array, v: jax.Array) -> jax.Array:
    if axes == (-1,):
        return _squares_by_qr((-2,), v, u)
    triangle = qr(u)[1]
    squared = jnp.abs(triangle @ v.mT) ** 2
    return jnp.sum(squared, axis=-2 if axes == (-2,) else axes)


def not_negative(squares: jax.Array) -> jax.Array:
    """Sums of squares, of which those that rounding makes negative become zero. The derivatives of `maximum` would be wrong at zero."""
    return squares + lax.stop_gradient(jnp.where(squares < 0, -squares, 0))


@custom_jvp
def spectral_norm(u: jax.Array, v: jax.Array) -> jax.Array:
    """The largest singular value."""
    return singular_values(u, v)[..., 0]


@spectral_norm.defjvp
def _spectral_norm_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (u, v), (du, dv) = primals, tangents
    left, s, right = svd(u, v)
    left, right = left[..., :1], right[..., :1]
    moved = du @ (v.mT @ right) + u @ (dv.mT @ right)
    return spectra.simple(s, s.shape[-1], 0), jnp.sum((left.conj() * moved).real, axis=(-2, -1))


@custom_jvp
def nuclear_norm(u: jax.Array, v: jax.Array) -> jax.Array:
    """Sum of the singular values. Second derivatives differentiate the QR factorizations: without full rank they do not
    exist.
    """
    return jnp.sum(singular_values(u, v), axis=-1)


@nuclear_norm.defjvp
def _nuclear_norm_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (u, v), (du, dv) = primals, tangents
    (qu, ru), (qv, rv) = qr(u), qr(v)
    left, right = qu @ spectra.unitary_factor(ru @ rv.mT), qv.conj()
    moved = du @ (v.mT @ right) + u @ (dv.mT @ right)
    return nuclear_norm(u, v), jnp.sum((left.conj() * moved).real, axis=(-2, -1))


@custom_jvp
def pinv(u: jax.Array, v: jax.Array, rtol: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Factors ``p`` (..., n, q) and ``h`` (..., m, q) of the pseudo-inverse ``p @ h.mT``; see `pseudo_inverse.pinv`."""
    left, s, right = svd(u, v)
    large = s > jnp.maximum(rtol * jnp.max(s, axis=-1, initial=0), rounding_error(u, v))[..., None]
    inverse = jnp.where(large | jnp.isnan(s), reciprocal(jnp.where(s == 0, 1, s)), 0).astype(u.dtype)
    return right * inverse[..., None, :], left.conj()


@pinv.defjvp
def _pinv_jvp(
    primals: tuple[jax.Array, jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array, jax.Array]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    # Golub and Pereyra (1973), (4.12), grouped by left and right factors, so that all products are thin.
    (u, v, rtol), (du, dv, _) = primals, tangents
    p, h = pinv(u, v, rtol)

    def times(x: jax.Array) -> jax.Array:  # A x
        return u @ (v.mT @ x)

    def moved(x: jax.Array) -> jax.Array:  # dA x
        return du @ (v.mT @ x) + u @ (dv.mT @ x)

    def adjoint(x: jax.Array) -> jax.Array:  # A^H x
        return v.conj() @ (_adjoint(u) @ x)

    def moved_adjoint(x: jax.Array) -> jax.Array:  # dA^H x
        return dv.conj() @ (_adjoint(u) @ x) + v.conj() @ (_adjoint(du) @ x)

    def inverse(x: jax.Array) -> jax.Array:  # A^+ x
        return p @ (h.mT @ x)

    def inverse_adjoint(x: jax.Array) -> jax.Array:  # A^+^H x
        return h.conj() @ (_adjoint(p) @ x)

    outside = moved_adjoint(inverse_adjoint(p))
    dp = outside - inverse(times(outside)) - inverse(moved(p))
    rows = moved(inverse(h.conj()))  # of the conjugate transpose of A^+^H dA^H (I - A A^+), on the side of h
    rows = rows - inverse_adjoint(adjoint(rows))
    return (p, h), (dp, rows.conj())


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def truncated(u: jax.Array, v: jax.Array, rank: int) -> tuple[jax.Array, jax.Array]:
    """Factors of the best approximation of this rank; the left factor contains the singular values."""
    left, s, right = svd(u, v)
    return (left * s[..., None, :].astype(u.dtype))[..., :rank], right.conj()[..., :rank]


@truncated.defjvp
def _truncated_jvp(
    rank: int, primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    # From the first-order change of singular vectors (Stewart and Sun, *Matrix Perturbation Theory*, V.4). Changes
    # within the kept space cancel, so that only kept and discarded singular values must differ.
    (u, v), (du, dv) = primals, tangents
    left, s, right = svd(u, v)
    (uk, ud), (vk, vd), (sk, sd) = ((a[..., :rank], a[..., rank:]) for a in (left, right, s.astype(u.dtype)))
    on_v = du @ (v.mT @ vk) + u @ (dv.mT @ vk)  # dA Vk
    on_u = dv.conj() @ (_adjoint(u) @ uk) + v.conj() @ (_adjoint(du) @ uk)  # dA^H Uk
    kept_on_lost, lost_on_kept = _adjoint(on_u) @ vd, _adjoint(ud) @ on_v
    one, two = sk[..., :, None], sd[..., None, :]
    gap = one**2 - two**2
    gap = jnp.where(gap == 0, jnp.nan, gap)
    kept_change = (two**2 * kept_on_lost + one * two * _adjoint(lost_on_kept)) / gap
    lost_change = ((two**2 * _adjoint(lost_on_kept) + one * two * kept_on_lost) / gap).conj().mT
    d_left = on_v + ud @ lost_change
    rest = on_u - vk @ (_adjoint(vk) @ on_u) + vd @ _adjoint(kept_change)
    d_right = (rest / jnp.where(sk == 0, jnp.nan, sk)[..., None, :]).conj()
    return ((uk * sk[..., None, :]), vk.conj()), (d_left, d_right)


# ---- orthonormal columns ---------------------------------------------------------------------------------------------------


def reflectors(q: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Represent orthonormal columns ``q`` (..., m, r) by Householder reflectors, each times a number of magnitude 1.

    Returns the vectors (..., r, m), the j-th from its element j on, the factors tau (..., r) and the numbers (..., r).
    These numbers are the diagonal of R in LAPACK's QR factorization of q, where R is diagonal.
    """
    (m, r), batch = q.shape[-2:], q.shape[:-2]
    # The transpose of LAPACK's layout: each row contains a vector below the diagonal of R.
    packed, tau = jnp.linalg.qr(q, mode="raw")
    signs = jnp.diagonal(packed, axis1=-2, axis2=-1)
    places = np.arange(r)[:, None] + np.arange(m)
    below = jnp.pad(packed, [(0, 0)] * len(batch) + [(0, 0), (0, r)])[..., np.arange(r)[:, None], places]
    return below.at[..., 0].set(1), tau, signs / jnp.abs(signs)


def orthonormal_extension(project: Callable[[jax.Array], jax.Array], u: jax.Array) -> jax.Array:
    """Return orthonormal columns (..., m, r), orthogonal to the range of `project`, which together with it span the
    columns of u (..., m, r).

    If the columns of u already lie in that range, to rounding, the result is arbitrary; a little noise ensures that it
    exists.
    """
    noise = jax.random.normal(jax.random.key(0), u.shape[-2:], u.real.dtype)
    scale = jnp.finfo(u.dtype).eps * jnp.linalg.norm(u, axis=(-2, -1), keepdims=True) / math.sqrt(u.shape[-2])
    new = u - project(u)
    new = new - project(new) + jnp.where(scale == 0, 1, scale) * noise
    for _ in range(2):  # two passes suffice: B. N. Parlett, The Symmetric Eigenvalue Problem, 6.9
        new, _ = qr(new - project(new))
    return new
