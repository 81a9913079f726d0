"""Eigenvalues of Hermitian banded matrices by LAPACK's ``sbevd`` and ``hbevd`` on the host.

The cost is O(n**2 w) operations and O(n w) memory. Rotations make the matrix tridiagonal. They create elements outside
the band, which further rotations chase along the band (Schwarz 1968, *Tridiagonalization of a symmetric band matrix*;
Kaufman 1984). The root-free QR iteration then finds the eigenvalues. Each rotation depends on the previous one, so an
accelerator does not help.

A matrix is given in LAPACK's storage of the lower half, ``(..., w + 1, n)``: ``storage[k, j] = A[j + k, j]``.
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
    """Return the eigenvalues ``(..., n)``, ascending; NaN for a matrix with an element that is not finite."""
    *batch, _, n = storage.shape
    result = jax.ShapeDtypeStruct((*batch, n), storage.real.dtype)
    return on_host(_eigenvalues, (result,), storage)[0]


def _eigenvalues(storage: np.ndarray) -> tuple[np.ndarray]:
    """Compute the eigenvalues in NumPy."""
    from scipy.linalg import eigvals_banded  # type: ignore[import-untyped]  # SciPy has no type stubs

    *batch, _, n = storage.shape
    values = np.full((*batch, n), np.nan, storage.real.dtype)
    for i in np.ndindex(*batch):
        if np.isfinite(storage[i]).all():
            values[i] = eigvals_banded(storage[i], lower=True, check_finite=False)
    return (values,)


def hermitian_storage(diagonal: Callable[[int], jax.Array], n: int, offsets: Sequence[int]) -> jax.Array:
    """Return the lower half of the Hermitian part of a square matrix; ``diagonal(k)`` is the diagonal with offset k."""
    w = max(map(abs, offsets), default=0)
    halves = [(diagonal(-k) + diagonal(k).conj()) / 2 for k in range(w + 1)]
    return jnp.stack([jnp.pad(d, [(0, 0)] * (d.ndim - 1) + [(0, n - d.shape[-1])]) for d in halves], -2)


def golub_kahan_storage(diagonals: Sequence[jax.Array], offsets: Sequence[int], shape: Shape) -> jax.Array:
    """Return the lower half of a Hermitian banded matrix with the eigenvalues ``±s``, s the singular values of A.

    The matrix is ``[[0, A], [A^H, 0]]`` with the rows and columns of both halves interleaved, which keeps the band
    (Golub and Kahan 1965, *Calculating the singular values and pseudo-inverse of a matrix*). If A is not square, there
    are additional zeros.

    Parameters
    ----------
    diagonals : list of jax.Array
        The diagonals of A, each ``(..., length)``, with one batch shape.
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
        # A[i, j] couples 2 i with 2 j + 1, and is stored in the column of the smaller index.
        start, d = (0, d.conj()) if k >= 0 else (1, d)
        storage = storage.at[..., abs(2 * k + 1), start : start + 2 * d.shape[-1] : 2].set(d)
    return storage
