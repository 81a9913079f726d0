"""Eigenvalues of Hermitian banded matrices by LAPACK's ``sbevd`` and ``hbevd`` on the host, and eigenvectors of tridiagonal ones.

The cost is O(n**2 w) operations and O(n w) memory. Rotations make the matrix tridiagonal. They create elements outside
the band, which further rotations chase along the band (Schwarz 1968, *Tridiagonalization of a symmetric band matrix*;
Kaufman 1984). The root-free QR iteration then finds the eigenvalues. Each rotation depends on the previous one, so an
accelerator does not help.

A matrix is given in LAPACK's storage of the lower half, ``(..., w + 1, n)``: ``storage[k, j] = A[j + k, j]``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from ..._numerics import bands
from ..._numerics.host_calls import on_cpu, on_host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.typing import Shape


def eigenvalues(storage: jax.Array) -> jax.Array:
    """Return the eigenvalues ``(..., n)``, ascending; NaN for a matrix with an element that is not finite, and without convergence."""
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
            with contextlib.suppress(np.linalg.LinAlgError):  # no convergence
                values[i] = eigvals_banded(storage[i], lower=True, check_finite=False)
    return (values,)


def tridiagonal_eigenpairs(storage: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the eigenvalues ``(..., n)``, ascending, and the eigenvectors of Hermitian tridiagonal matrices, w = 1 < n.

    LAPACK's ``stevd`` divides the matrix and conquers, after a diagonal unitary similarity has made it real. There is no
    reduction to a tridiagonal matrix, which takes most of the time for a dense one. A matrix with an element that is not
    finite has NaN for both.
    """
    *batch, _, n = storage.shape
    real, complex_ = storage.real.dtype, jnp.iscomplexobj(storage)
    main, off_diagonal = storage[..., 0, :].real, storage[..., 1, :-1]
    if complex_:
        size = jnp.abs(off_diagonal)
        turns = jnp.cumprod(jnp.where(size == 0, 1, off_diagonal / jnp.where(size == 0, 1, size)), axis=-1)
        turns = jnp.concatenate([jnp.ones_like(turns[..., :1]), turns / jnp.abs(turns)], axis=-1)
        off_diagonal = size
    results = jax.ShapeDtypeStruct((*batch, n), real), jax.ShapeDtypeStruct((*batch, n, n), real)
    values, vectors = on_cpu(_by_stevd, _by_dense_form, results, main, off_diagonal)
    return values, turns[..., None] * vectors if complex_ else vectors


def _by_stevd(values: np.ndarray, vectors: np.ndarray, main: np.ndarray, off_diagonal: np.ndarray) -> None:
    from scipy.linalg import eigh_tridiagonal, lapack

    driver = "stevd" if hasattr(lapack, "dstevd") else "stev"  # for older versions of SciPy
    for i in np.ndindex(*main.shape[:-1]):
        values[i], vectors[i] = np.nan, np.nan
        if np.isfinite(main[i]).all() and np.isfinite(off_diagonal[i]).all():
            with contextlib.suppress(np.linalg.LinAlgError):  # no convergence
                values[i], vectors[i] = eigh_tridiagonal(
                    main[i], off_diagonal[i], check_finite=False, lapack_driver=driver
                )


def _by_dense_form(main: jax.Array, off_diagonal: jax.Array) -> tuple[jax.Array, jax.Array]:
    n = main.shape[-1]
    values, vectors = jnp.linalg.eigh(
        bands.to_dense([off_diagonal, main, off_diagonal], (-1, 0, 1), (n, n)), symmetrize_input=False
    )
    return values, vectors


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
