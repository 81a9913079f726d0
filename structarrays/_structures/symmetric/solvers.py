"""Solvers, spectra and factorisations of symmetric and Hermitian matrices.

Where LAPACK has special routines, they are used. The eigenvalues of a Hermitian matrix give its singular values, and
its Cholesky factor is triangular. A complex symmetric matrix is treated as a general matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import to_dense
from ..._core.dispatch.recording import remark
from ..._core.families.other_forms import by_form
from ..._functions.linalg import (
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
)
from ..._functions.linalg.systems import POSITIVE_DEFINITE
from ..._functions.matrix_checks import complex_dtype
from ..triangular.array import Triangular
from .array import Mirrored
from .numerics import inverse

if TYPE_CHECKING:
    import jax

    from ..._core.typing import Result


def is_hermitian(x: Mirrored, *args: Any, **static: Any) -> bool:
    """Return whether the matrix equals its conjugate transpose."""
    return x.dtype.kind != "c" or x.conjugates


@solve.kernel(Mirrored, Array)
def _solve_mirrored(x1: Mirrored, x2: Array) -> Result:
    remark(
        "the dense form, which has the same number of stored elements; assume(x1, 'positive_definite') halves the work"
    )
    return solve.dispatch(to_dense(x1), to_dense(x2))


@inv.kernel(Mirrored)
def _inv_mirrored(x: Mirrored) -> tuple[Mirrored, jax.Array]:
    definite = POSITIVE_DEFINITE in x.assumptions
    remark(
        "LU, or the Cholesky factorisation if assumed positive definite; the eigenvalues if the matrix is badly conditioned"
    )
    data, ok = inverse(definite and is_hermitian(x), x.conjugates, to_dense(x).data)
    return type(x).make((data,), x.lower), ok


@cholesky.kernel(Mirrored, when=is_hermitian)
def _cholesky_mirrored(x: Mirrored, *, upper: bool) -> tuple[Triangular, jax.Array]:
    factor, ok = cholesky.dispatch(to_dense(x), upper=upper)
    return Triangular.make((factor.data, None), (not upper, False)), ok


# ---- spectra ---------------------------------------------------------------------------------------------------------


@eigvals.kernel(Mirrored, when=is_hermitian)
def _eigvals_mirrored(x: Mirrored) -> Dense:
    return Dense.make((eigvalsh.dispatch(to_dense(x)).data.astype(complex_dtype(x.dtype)),))


@eig.kernel(Mirrored, when=is_hermitian)
def _eig_mirrored(x: Mirrored) -> tuple[Dense, ...]:
    values, vectors = eigh.dispatch(to_dense(x))
    return tuple(Dense.make((part.data.astype(complex_dtype(x.dtype)),)) for part in (values, vectors))


@svdvals.kernel(Mirrored, when=is_hermitian)
def _svdvals_mirrored(x: Mirrored) -> Dense:
    """Return the magnitudes of the eigenvalues, which takes a third of the time."""
    return Dense.make((jnp.flip(jnp.sort(jnp.abs(eigvalsh.dispatch(to_dense(x)).data), axis=-1), axis=-1),))


# ---- by the dense form -----------------------------------------------------------------------------------------------


@by_form(cholesky, det, eig, eigh, eigvals, eigvalsh, pinv, qr, slogdet, svd, svdvals, of=Mirrored)
def mirrored_by_dense_form(x: Mirrored) -> Dense:
    """Return the dense form, which is no larger than the storage, so nothing counts as densified."""
    return to_dense(x)
