"""Sylvester equations ``A X + X B^T + s X = C`` by LAPACK's `trsyl`, in programs for CPUs (see `host_calls`).

These are linear systems with Kronecker sums of two matrices. The Schur forms of real matrices are real, so the solution takes a third of
the time of complex Schur forms (R. H. Bartels and G. W. Stewart, "Solution of the matrix equation AX + XB = C", Communications of the ACM
15 (1972), 820-826).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from . import dense_factors
from . import packed_triangles as triangles
from .host_calls import on_cpu
from .lapack_bands import lapack_functions

if TYPE_CHECKING:
    from collections.abc import Callable


def form(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the quasi-triangular and the orthogonal matrix of the real Schur form, or the complex Schur form of a complex matrix."""
    return dense_factors.schur(a)


def eigenvalues(t: jax.Array) -> jax.Array:
    """Return the complex eigenvalues of a quasi-triangular matrix, whose 2 by 2 blocks have LAPACK's form."""
    diagonal = triangles.diagonal(t)
    if jnp.iscomplexobj(t) or t.shape[-1] < 2:
        return diagonal.astype(jnp.result_type(t, jnp.complex64))
    product = -jnp.diagonal(t, 1, -2, -1) * jnp.diagonal(t, -1, -2, -1)
    # The roots separately: the product of the off-diagonal elements may be out of range.
    above, below = (jnp.sqrt(jnp.abs(jnp.diagonal(t, k, -2, -1))) for k in (1, -1))
    size = jnp.where(product == 0, 0 * product, above * below)
    zero = jnp.zeros_like(diagonal[..., :1])
    imaginary = jnp.concatenate([size, zero], -1) - jnp.concatenate([zero, size], -1)
    return jax.lax.complex(diagonal, imaginary)


def solve(
    forms: tuple[tuple[jax.Array, Any], tuple[jax.Array, Any]],
    shift: jax.Array,
    c: jax.Array,
    *,
    transposed: bool,
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A X + X B^T + s X = C``, or (`transposed`) ``A^T X + X B + s X = C``.

    Parameters
    ----------
    forms : pair of pairs
        The Schur forms of A (..., n, n) and B (..., m, m).
    shift : jax.Array, (...)
        The number s. NaN gives NaN.
    c : jax.Array, (..., n m, k)
        The elements of each C, row by row, of the same dtype and batch shape as the forms.

    Returns
    -------
    x : jax.Array, (..., n m, k)
    fine : jax.Array of bool, (...)
        Whether LAPACK solved the equation without a change to it; always False in other programs.
    """
    (trsyl,) = lapack_functions("trsyl", dtype=c.dtype)
    results = jax.ShapeDtypeStruct(c.shape, c.dtype), jax.ShapeDtypeStruct(c.shape[:-2], bool)
    fill = functools.partial(_by_lapack, trsyl, transposed)
    x, fine = on_cpu(fill, _without_solution, results, *forms[0], *forms[1], shift, c)
    return x, fine


def _without_solution(*args: jax.Array) -> tuple[jax.Array, jax.Array]:
    c = args[-1]
    return jnp.full_like(c, jnp.nan), jnp.zeros(c.shape[:-2], bool)


def _by_lapack(
    trsyl: Callable[..., Any], transposed: bool, x: np.ndarray, fine: np.ndarray, *arrays: np.ndarray
) -> None:
    for i in np.ndindex(fine.shape):
        ta, ua, tb, ub, shift, c = (a[i] for a in arrays)
        x[i], fine[i] = np.nan, True
        if not all(np.isfinite(a).all() for a in (ta, tb, shift)):
            continue
        ta = ta + shift * np.eye(len(ta), dtype=ta.dtype)
        # op(T_A) Y + Y op(T_B) = left C right, X = left^H Y right^H
        if transposed:
            left, right, ta = ua.T, ub, ta.conj()
        else:
            left, right, tb = ua.conj().T, ub.conj(), tb.conj()
        options = {"trana": "C" if transposed else "N", "tranb": "N" if transposed else "C"}
        for j in range(c.shape[1]):
            column = c[:, j].reshape(len(ta), len(tb))
            if not np.isfinite(column).all():
                continue
            with np.errstate(all="ignore"):
                y, scale, info = trsyl(ta, tb, left @ column @ right, **options)
                x[i][:, j] = (left.conj().T @ y @ right.conj().T).reshape(-1)
            fine[i] &= info == 0 and scale == 1
