"""Spectra, singular values, pseudo-inverses and ranks of diagonal and scaled identity matrices.

The eigenvectors of a diagonal matrix are unit vectors in the order of the eigenvalues: a permutation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.families.conditions import has_structural_zeros
from ..._functions.linalg import eig, eigh, eigvals, eigvalsh, matrix_norm, matrix_rank, pinv, qr, svd, svdvals
from ..._functions.matrix_checks import complex_dtype
from ..._numerics.quotients import reciprocal
from ..composite.product import product
from ..fallback.singular_values import is_large, norm, of_singular_values, tolerance
from ..permutation.ordered import in_order, rows_in_order
from .diagonal import Diagonal, Identity

if TYPE_CHECKING:
    import jax

    from ..._core.array.base import Array
    from ..._core.typing import DTypeLike, Shape
    from ..permutation.array import Permutation


def identity(scale: jax.Array, shape: Shape) -> Diagonal:
    """Return a scaled identity: an `Identity`, or a `Diagonal` if it is rectangular."""
    x = Identity.make((scale, None), shape)
    return x if shape[0] == shape[1] else x.freed()


def _ones(x: Diagonal, dtype: DTypeLike | None = None) -> jax.Array:
    return jnp.ones(x.batch_shape, dtype or x.dtype)


def phase(z: jax.Array) -> jax.Array:
    """Return ``z / abs(z)``, and 1 for zero."""
    zero = z == 0
    if not jnp.iscomplexobj(z):
        return jnp.where(zero, 1, jnp.sign(z))
    z = jnp.where(zero, 1, z)
    return z / jnp.abs(z)  # the derivative of JAX's `sign` is 0, for complex numbers too


# ---- eigenvalues --------------------------------------------------------------------------------------------------


@eigvals.kernel(Diagonal, when=has_structural_zeros)
def _eigvals_diagonal(x: Diagonal) -> Dense:
    return Dense.make((x.diag.astype(complex_dtype(x.dtype)),))


@eig.kernel(Diagonal, when=has_structural_zeros)
def _eig_diagonal(x: Diagonal) -> tuple[Array, Diagonal]:
    return eigvals.dispatch(x), identity(_ones(x, complex_dtype(x.dtype)), x.core_shape)


@eigvalsh.kernel(Diagonal, when=has_structural_zeros)
def _eigvalsh_diagonal(x: Diagonal) -> Dense:
    return Dense.make((jnp.sort(x.diag.real, axis=-1),))


@eigh.kernel(Diagonal, when=has_structural_zeros)
def _eigh_diagonal(x: Diagonal) -> tuple[Dense, Array]:
    values, order = in_order(x.diag.real, x.dtype)
    return values, order.mT


@eigh.kernel(Identity, when=has_structural_zeros)
def _eigh_identity(x: Identity) -> tuple[Dense, Diagonal]:
    return Dense.make((x.diag.real,)), identity(_ones(x), x.core_shape)


# ---- singular values ----------------------------------------------------------------------------------------------


@svdvals.kernel(Diagonal, when=has_structural_zeros)
def _svdvals_diagonal(x: Diagonal) -> Dense:
    return Dense.make((jnp.flip(jnp.sort(jnp.abs(x.diag), axis=-1), axis=-1),))


@svdvals.kernel(Identity, when=has_structural_zeros)
def _svdvals_identity(x: Identity) -> Dense:
    return Dense.make((jnp.abs(x.diag),))


@svd.kernel(Diagonal, when=has_structural_zeros)
def _svd_diagonal(x: Diagonal, *, full_matrices: bool) -> tuple[Array, Dense, Array]:
    """``U = phases P`` and ``Vh = P^T``, where P sorts. The longer factor is completed by unit vectors or zeros."""
    (m, n), k = x.core_shape, min(x.core_shape)
    values, order = in_order(jnp.abs(x.diag), x.dtype, descending=True)
    columns, rows = (m, n) if full_matrices else (k, k)

    def sorting(count: int) -> Permutation:
        rest = jnp.broadcast_to(jnp.arange(k, count), (*x.batch_shape, count - k))
        return rows_in_order(jnp.concatenate([order.p, rest], axis=-1), x.dtype)

    phases = jnp.pad(phase(x.diag), [(0, 0)] * len(x.batch_shape) + [(0, columns - k)], constant_values=1)
    u = product(Diagonal.make((phases, None), (m, columns)), sorting(columns).mT)
    vh = sorting(rows)
    return u, values, vh if rows == n else product(vh, identity(_ones(x), (rows, n)))


@svd.kernel(Identity, when=has_structural_zeros)
def _svd_identity(x: Identity, *, full_matrices: bool) -> tuple[Diagonal, Dense, Diagonal]:
    (m, n), k = x.core_shape, min(x.core_shape)
    columns, rows = (m, n) if full_matrices else (k, k)
    u = identity(phase(x.scale), (m, columns))
    return u, Dense.make((jnp.abs(x.diag),)), identity(_ones(x), (rows, n))


@matrix_norm.kernel(Diagonal, when=of_singular_values(has_structural_zeros))
def _matrix_norm_diagonal(x: Diagonal, *, keepdims: bool, ord: float | str) -> Dense:
    return norm(jnp.abs(x.diag), keepdims=keepdims, ord=ord)


def _is_large(x: Diagonal, rtol: jax.Array | None) -> jax.Array:
    """Return a mask of the entries that count as nonzero: those above `rtol` times the largest."""
    magnitude = jnp.abs(x.entries[0])
    if type(x) is Identity:
        return magnitude > tolerance(x, rtol) * magnitude
    return is_large(x, magnitude, rtol)


@matrix_rank.kernel(Diagonal, when=has_structural_zeros)
def _matrix_rank_diagonal(x: Diagonal, *, rtol: jax.Array | None) -> Dense:
    large = _is_large(x, rtol)
    if type(x) is Identity:
        return Dense.make((large.astype(int) * min(x.core_shape),))
    return Dense.make((jnp.sum(large, axis=-1, dtype=int),))


@pinv.kernel(Diagonal, when=has_structural_zeros)
def _pinv_diagonal(x: Diagonal, *, rtol: jax.Array | None) -> Diagonal:
    large = _is_large(x, rtol)
    (entries,) = x.entries
    # NaN is not large, but must not become zero.
    inverse = jnp.where(large | jnp.isnan(entries), reciprocal(jnp.where(entries == 0, 1, entries)), 0)
    return type(x).make((jnp.broadcast_to(inverse, entries.shape), None), x.core_shape[::-1])


# ---- QR -----------------------------------------------------------------------------------------------------------


@qr.kernel(Diagonal, when=has_structural_zeros)
def _qr_diagonal(x: Diagonal, *, mode: str) -> tuple[Diagonal, Diagonal]:
    (m, n), k = x.core_shape, min(x.core_shape)
    inner = m if mode == "complete" else k
    (entries,) = x.entries
    if x.dtype.kind != "c":
        return identity(_ones(x), (m, inner)), type(x).make((entries, None), (inner, n))
    # The diagonal of R is real, so Q has the phases.
    r = type(x).make((jnp.abs(entries).astype(x.dtype), None), (inner, n))
    if type(x) is Identity:
        return identity(phase(entries), (m, inner)), r
    phases = jnp.concatenate([phase(entries), jnp.ones((*x.batch_shape, min(m, inner) - k), x.dtype)], axis=-1)
    return Diagonal.make((phases, None), (m, inner)), r
