"""Eigenvalues of Hermitian banded matrices, by LAPACK's ``sbevd`` and ``hbevd`` on the host: O(n**2 w) operations, O(n w) memory.

Rotations make the matrix tridiagonal, along whose band the elements that they bring in are chased away (Schwarz 1968, *Tridiagonalization of
a symmetric band matrix*; Kaufman 1984), and the root-free QR iteration finds the eigenvalues. Each rotation waits for the last: there is
nothing in it for an accelerator.

A matrix is given as LAPACK stores its lower half, ``(..., w + 1, n)``: ``storage[k, j] = A[j + k, j]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from ..._numerics.host_calls import on_host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.typing import Shape


def eigenvalues(storage: jax.Array) -> jax.Array:
    """The eigenvalues ``(..., n)``, ascending; NaN for a matrix that has an element which is not finite."""
    *batch, _, n = storage.shape
    result = jax.ShapeDtypeStruct((*batch, n), storage.real.dtype)
    return on_host(_eigenvalues, (result,), storage)[0]


def _eigenvalues(storage: np.ndarray) -> tuple[np.ndarray]:
    """The same in NumPy."""
    from scipy.linalg import eigvals_banded  # type: ignore[import-untyped]  # SciPy has no types

    *batch, _, n = storage.shape
    values = np.full((*batch, n), np.nan, storage.real.dtype)
    for i in np.ndindex(*batch):
        if np.isfinite(storage[i]).all():
            values[i] = eigvals_banded(storage[i], lower=True, check_finite=False)
    return (values,)


def hermitian_storage(diagonal: Callable[[int], jax.Array], n: int, offsets: Sequence[int]) -> jax.Array:
    """The lower half of the Hermitian part of a square matrix; ``diagonal(k)`` is that with offset k."""
    w = max(map(abs, offsets), default=0)
    halves = [(diagonal(-k) + diagonal(k).conj()) / 2 for k in range(w + 1)]
    return jnp.stack([jnp.pad(d, [(0, 0)] * (d.ndim - 1) + [(0, n - d.shape[-1])]) for d in halves], -2)


def golub_kahan_storage(diagonals: Sequence[jax.Array], offsets: Sequence[int], shape: Shape) -> jax.Array:
    """The lower half of the Hermitian matrix whose eigenvalues are plus and minus the singular values of another one.

    It is ``[[0, A], [A^H, 0]]`` with the rows and columns of both halves in turn, so that what was banded stays so (Golub and Kahan
    1965, *Calculating the singular values and pseudo-inverse of a matrix*). Where A is not square there are zeros more.

    Parameters
    ----------
    diagonals : list of jax.Array
        Of A, each ``(..., length)``; of one batch shape.
    offsets : tuple of int
    shape : tuple of int
        ``(m, n)``

    Returns
    -------
    jax.Array, (..., w + 1, 2 max(m, n))
    """
    w = max(abs(2 * k + 1) for k in offsets)
    storage = jnp.zeros((*diagonals[0].shape[:-1], w + 1, 2 * max(shape)), diagonals[0].dtype)
    for k, d in zip(offsets, diagonals, strict=True):
        # A[i, j] couples 2 i with 2 j + 1, and stands in the column of the smaller one.
        start, d = (0, d.conj()) if k >= 0 else (1, d)
        storage = storage.at[..., abs(2 * k + 1), start : start + 2 * d.shape[-1] : 2].set(d)
    return storage
