"""Inverses of dense symmetric and Hermitian matrices that keep their symmetry.

The inverse X by LU is accurate from one side: ``A @ X`` is close to the identity. The symmetric part of X is accurate
only if ``X @ A`` is close to the identity, too. That fails for badly conditioned matrices (Higham, *Accuracy and
Stability of Numerical Algorithms*, 14.1). Then the inverse comes from the eigenvalues, or from the singular values of a
complex symmetric matrix. Its residual is small from both sides.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._numerics import dense_linalg as linalg_dense
from ..._numerics import positive_definite
from ..._numerics.banded_systems import mapped_together
from ..._numerics.flags import custom_jvp
from ..._numerics.symbolic import as_number

_TOLERANCE = 8
"""The largest residual, in rounding errors times the square root of the number of rows, relative to the norms of A and of its inverse."""


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def inverse(definite: bool, hermitian: bool, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the symmetric inverse of each matrix of a stack, and whether all matrices are regular.

    Parameters
    ----------
    definite : bool
        Whether the matrices are assumed positive definite.
    hermitian : bool
        Whether complex matrices equal their conjugate transpose; otherwise they equal their transpose.
    x : jax.Array, (..., n, n)
        The matrices; both triangles are read.

    Returns
    -------
    inverse : jax.Array, (..., n, n)
        NaN for singular matrices.
    ok : jax.Array, bool scalar
    """
    found, ok = (positive_definite.inv if definite else linalg_dense.inv)(x)
    if not x.size:
        return found, ok
    function = functools.partial(_checked, definite, hermitian)
    return mapped_together(function, True)(x, found), ok


@inverse.defjvp
def _inverse_jvp(
    definite: bool, hermitian: bool, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, np.ndarray]]:
    """``d(A^{-1}) = -A^{-1} dA A^{-1}``."""
    (x,), (change,) = primals, tangents
    found, ok = inverse(definite, hermitian, x)
    return (found, ok), (-found @ change @ found, np.zeros((), jax.dtypes.float0))


def _checked(definite: bool, hermitian: bool, x: jax.Array, found: jax.Array) -> jax.Array:
    """Return the symmetric part of the inverse `found`, or the inverse from the spectrum if that part is inaccurate."""
    mirrored = jnp.conj(found.mT) if hermitian else found.mT
    part = found + (mirrored - found) / 2
    size = _largest(x) * jnp.finfo(x.dtype).eps
    n = as_number(x.shape[-1], x.dtype)
    tolerance = _TOLERANCE * n**0.5 * size * _largest(part)
    # A bound of the residual of the symmetric part that needs no matrix product.
    bound = size * _largest(part) + _largest(x) * _largest(mirrored - found) * (n / 2)
    usable = jnp.all(jnp.isfinite(x) & jnp.isfinite(found), axis=(-2, -1))

    def residual() -> jax.Array:
        return _largest(x @ part - jnp.eye(x.shape[-1], dtype=x.dtype))

    near = (bound <= tolerance) | ~usable
    good = lax.cond(jnp.all(near), lambda: near, lambda: near | (residual() <= tolerance))

    def by_spectrum() -> jax.Array:
        return jnp.where(good[..., None, None], part, _by_spectrum(hermitian, x))

    symmetric: jax.Array = lax.cond(jnp.all(good), lambda: part, by_spectrum)
    return symmetric


def _largest(x: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(x), axis=(-2, -1))


def _by_spectrum(hermitian: bool, x: jax.Array) -> jax.Array:
    if hermitian or not jnp.iscomplexobj(x):
        values, vectors = jnp.linalg.eigh(x)
        found: jax.Array = (vectors / values[..., None, :]) @ jnp.conj(vectors.mT)
        return found
    left, values, right = jnp.linalg.svd(x)
    found = (jnp.conj(right.mT) / values[..., None, :]) @ jnp.conj(left.mT)
    return found + (found.mT - found) / 2
