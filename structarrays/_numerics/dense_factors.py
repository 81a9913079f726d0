"""Factorizations of dense matrices with NaN, and the Schur form, on devices other than CPUs.

LAPACK's factors of a matrix with NaN contain NaN. cuSOLVER returns finite factors for some of these matrices, so NaN is
put back. cuSOLVER has no Schur form, so LAPACK on the host computes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .undefined import nan_unless

if TYPE_CHECKING:
    from collections.abc import Sequence


def nan_kept(x: Array, result: Array) -> Array:
    """Return the result (..., *) for matrices `x` (..., m, n), or NaN for each matrix with NaN."""
    if jax.default_backend() == "cpu":
        return result
    fine = ~jnp.any(jnp.isnan(x), axis=(-2, -1))
    return nan_unless(fine.reshape(fine.shape + (1,) * (result.ndim - fine.ndim)), result)


def lu(x: Array) -> tuple[Array, Array, Array]:
    """`jax.lax.linalg.lu`: the factors, the exchanges of rows, and the order of the rows."""
    factors, exchanges, order = lax.linalg.lu(x)
    return nan_kept(x, factors), exchanges, order


def cholesky(x: Array) -> Array:
    """Lower Cholesky factor, from the lower triangle of `x`."""
    return nan_kept(jnp.tril(x), lax.linalg.cholesky(x, symmetrize_input=False))


def schur(x: Array) -> tuple[Array, Array]:
    """`jax.lax.linalg.schur`: the triangular factor (quasi-triangular of a real matrix), and the unitary factor."""
    if jax.default_backend() == "cpu":
        return _by_jax(x)
    results: tuple[Array, Array] = lax.platform_dependent(x, cpu=_by_jax, default=_on_host)
    return results


def _by_jax(x: Array) -> tuple[Array, Array]:
    triangular, unitary = lax.linalg.schur(x)
    return triangular, unitary


def _on_host(x: Array) -> tuple[Array, Array]:
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    results: Sequence[Array] = jax.pure_callback(_by_scipy, (like, like), x, vmap_method="broadcast_all")
    return results[0], results[1]


def _by_scipy(x: Any) -> tuple[np.ndarray, np.ndarray]:
    import scipy.linalg  # type: ignore[import-untyped]

    x = np.asarray(x)
    triangular, unitary = np.full_like(x, np.nan), np.full_like(x, np.nan)
    for i in np.ndindex(x.shape[:-2]):
        if np.all(np.isfinite(x[i])):
            triangular[i], unitary[i] = scipy.linalg.schur(x[i])
    return triangular, unitary
