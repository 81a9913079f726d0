"""Eigenvalues of banded Hermitian matrices and singular values of banded matrices, in linear memory; eigenvectors.

The derivatives need the eigenvectors, which are as large as the dense form. Only the eigenvectors of tridiagonal
matrices are computed without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.array.operands import SMALL, dense_if_small, densify, lets_dense
from ..._core.dispatch.recording import remark
from ..._core.families.conditions import has_structural_zeros
from ..._core.families.other_forms import by_form
from ..._functions.linalg import eigh, eigvalsh, matrix_norm, matrix_rank, svd, svdvals
from ..._numerics import bands as band_numerics
from ..._numerics import dense_spectra as spectra
from ..._numerics.flags import custom_jvp
from ..fallback.singular_values import (
    norm_and_rank,
    nuclear_norm,
    of_singular_values,
    spectral_norm,
)
from ..toeplitz.array import Toeplitz, at_diagonals, is_narrow
from . import band_eigenvalues
from .array import Banded, at_offsets, bands
from .bandwidths import fills_matrix

if TYPE_CHECKING:
    import jax

    from ..._core.typing import Result

# Up to this number of rows the dense form is as fast.
_DENSE = 32
_DENSE_SINGULAR, _DENSE_SINGULAR_PER_DIAGONAL = 256, 16


def _is_linear(x: Banded, **static: Any) -> bool:
    """Return whether an algorithm without the dense form applies."""
    return has_structural_zeros(x) and min(x.core_shape) > 0


@eigh.kernel(Banded, when=has_structural_zeros)
def _eigh_banded(x: Banded) -> Result:
    # The policy applies to the result, which is as large as the dense form.
    dense = dense_if_small(x, "linalg.eigh")
    if not _is_tridiagonal(x):
        return eigh.dispatch(dense)
    remark("LAPACK's stevd for tridiagonal matrices (on a CPU); O(n**2) to O(n**3) operations")
    return tuple(Dense.make((part,)) for part in _eigenpairs(x))


def _is_tridiagonal(x: Banded) -> bool:
    """Return whether the Hermitian part is tridiagonal, and not diagonal."""
    return max(map(abs, x.offsets), default=0) == 1


@custom_jvp
def _eigenpairs(x: Banded) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues and eigenvectors of the Hermitian part of a tridiagonal matrix."""
    return band_eigenvalues.tridiagonal_eigenpairs(
        band_eigenvalues.hermitian_storage(x.diagonal, x.shape[-1], x.offsets)
    )


@_eigenpairs.defjvp
def _eigenpairs_jvp(
    primals: tuple[Banded], tangents: tuple[Banded]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    (x,), (dx,) = primals, tangents
    values, vectors = _eigenpairs(x)
    diagonals = [(dx.diagonal(k) + dx.diagonal(-k).conj()) / 2 for k in (-1, 0, 1)]
    moved = band_numerics.matmul_dense(diagonals, (-1, 0, 1), x.core_shape, vectors.astype(dx.dtype))
    return spectra.eigh_derivatives(values, vectors, moved)


@eigvalsh.kernel(Banded, when=_is_linear)
def _eigvalsh_banded(x: Banded) -> Result:
    w = max(map(abs, x.offsets), default=0)
    if x.shape[-1] <= _DENSE or fills_matrix(x):
        return eigvalsh.dispatch(dense_if_small(x, "linalg.eigvalsh"))
    remark(f"LAPACK's routine for banded matrices; O(n**2 w) operations, O(n w) memory, w = {w}")
    return Dense.make((_eigenvalues(x),))


@custom_jvp
def _eigenvalues(x: Banded) -> jax.Array:
    return band_eigenvalues.eigenvalues(band_eigenvalues.hermitian_storage(x.diagonal, x.shape[-1], x.offsets))


@_eigenvalues.defjvp
def _eigenvalues_jvp(primals: tuple[Banded], tangents: tuple[Banded]) -> tuple[jax.Array, jax.Array]:
    (x,), (dx,) = primals, tangents
    values, vectors = (part.dense_data() for part in eigh.dispatch(densify(x, "the derivative of linalg.eigvalsh")))
    return spectra.simple(values, x.shape[-1]), _change(vectors, dx, vectors)


@svdvals.kernel(Banded, when=_is_linear)
def _svdvals_banded(x: Banded) -> Result:
    if not x.offsets:
        return svdvals.dispatch(at_offsets(x, (0,)))
    x = _upper_and_short(x)
    if _is_quicker_densely(x):
        return svdvals.dispatch(dense_if_small(x, "linalg.svdvals"))
    remark(f"eigenvalues of a banded matrix by LAPACK; O(n**2 w) operations, O(n w) memory, w = {_width(x)}")
    return Dense.make((_singular_values(x),))


def _upper_and_short(x: Banded) -> Banded:
    """Return a matrix with the same singular values: no zero rows and columns, most diagonals above the main one."""
    m, n = x.core_shape
    x = bands(x.diagonals, x.offsets, (min(m, n - min(0, *x.offsets)), min(n, m + max(0, *x.offsets))))
    return x.mT if -x.offsets[0] > x.offsets[-1] else x


def _width(x: Banded) -> int:
    """Return the number of off-diagonals of the matrix whose eigenvalues are the singular values."""
    return max(abs(2 * k + 1) for k in x.offsets)


def _is_quicker_densely(x: Banded) -> bool:
    size = max(x.core_shape)
    quicker = size <= max(_DENSE_SINGULAR, _DENSE_SINGULAR_PER_DIAGONAL * _width(x))
    return (quicker and (size <= SMALL or lets_dense(x))) or fills_matrix(x)


@custom_jvp
def _singular_values(x: Banded) -> jax.Array:
    values = band_eigenvalues.eigenvalues(band_eigenvalues.golub_kahan_storage(x.diagonals, x.offsets, x.core_shape))
    # Zero singular values may come out negative.
    return jnp.maximum(jnp.flip(values, -1)[..., : min(x.core_shape)], 0)


@_singular_values.defjvp
def _singular_values_jvp(primals: tuple[Banded], tangents: tuple[Banded]) -> tuple[jax.Array, jax.Array]:
    (x,), (dx,) = primals, tangents
    parts = svd.dispatch(densify(x, "the derivative of linalg.svdvals"), full_matrices=False)
    u, values, vh = (part.dense_data() for part in parts)
    return spectra.simple(values, max(x.core_shape)), _change(u, dx, vh.mT.conj())


def _change(u: jax.Array, dx: Banded, v: jax.Array) -> jax.Array:
    """Return the real diagonal ``(..., k)`` of ``u.mT.conj() @ dx @ v``: the first-order change of the values."""
    total = jnp.zeros((*u.shape[:-2], u.shape[-1]), u.real.dtype)
    for k, d in zip(dx.offsets, dx.diagonals, strict=True):
        row, column = max(0, -k), max(0, k)
        left, right = (a[..., start : start + d.shape[-1], :] for a, start in ((u, row), (v, column)))
        total += jnp.sum((left.conj() * d[..., None] * right).real, axis=-2)
    return total


# ---- what follows from them ----------------------------------------------------------------------------------------


def _nuclear_norm(x: Banded) -> jax.Array:
    if not x.offsets:
        return nuclear_norm(at_offsets(x, (0,)))
    x = _upper_and_short(x)
    if _is_quicker_densely(x):
        return nuclear_norm(dense_if_small(x, "linalg.matrix_norm"))
    total: jax.Array = _sum_of_singular_values(x)
    return total


def _spectral_norm(x: Banded) -> jax.Array:
    if not x.offsets:
        return spectral_norm(at_offsets(x, (0,)))
    x = _upper_and_short(x)
    if _is_quicker_densely(x):
        return spectral_norm(dense_if_small(x, "linalg.matrix_norm"))
    return jnp.max(_singular_values(x), axis=-1)


@custom_jvp
def _sum_of_singular_values(x: Banded) -> jax.Array:
    return jnp.sum(_singular_values(x), axis=-1)


@_sum_of_singular_values.defjvp
def _sum_of_singular_values_jvp(primals: tuple[Banded], tangents: tuple[Banded]) -> tuple[jax.Array, jax.Array]:
    (x,), (dx,) = primals, tangents
    factor = spectra.unitary_factor(densify(x, "the derivative of linalg.matrix_norm").dense_data())
    change = jnp.zeros(factor.shape[:-2], factor.real.dtype)
    for k, d in zip(dx.offsets, dx.diagonals, strict=True):
        change += jnp.sum((jnp.diagonal(factor, k, -2, -1).conj() * d).real, axis=-1)
    return _sum_of_singular_values(x), change


norm_and_rank(Banded, norms={"nuc": _nuclear_norm, 2: _spectral_norm}, when=_is_linear)


# ---- Toeplitz matrices of few diagonals ----------------------------------------------------------------------------


@by_form(matrix_norm, of=Toeplitz, when=of_singular_values(is_narrow))
@by_form(eigvalsh, svdvals, matrix_rank, of=Toeplitz, when=is_narrow)
def toeplitz_by_banded_form(x: Toeplitz) -> Banded:
    """Return the banded form, which has few diagonals."""
    remark("the banded form, which has few diagonals")
    return at_diagonals(x, x.offsets)
