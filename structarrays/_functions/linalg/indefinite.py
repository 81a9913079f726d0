"""The LDL factorization of indefinite matrices, as in SciPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import jax.numpy as jnp

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.dispatch.decorator import function
from ..._numerics import indefinite_factors as indefinite
from ..._numerics import packed_triangles as triangles
from .. import matrix_checks as check

if TYPE_CHECKING:
    from ..._structures.banded.array import Banded


class LDLResult(NamedTuple):
    """Row-permuted triangular matrix, block diagonal matrix with blocks of size 1 or 2, and row permutation."""

    lu: Array
    d: Array
    perm: Array


@function("A", prefix="linalg.")
def ldl(A: ArrayLike, lower: bool = True, hermitian: bool = True) -> LDLResult:
    """Compute the Bunch–Kaufman factorization ``A = lu @ d @ conj(lu).mT`` of each Hermitian matrix of a stack.

    Parameters
    ----------
    A : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.
    lower : bool, default True
        If True, ``lu[perm, :]`` is lower triangular. If False, it is upper triangular.
    hermitian : bool, default True
        If True, complex matrices are Hermitian. If False, they are symmetric, and ``A = lu @ d @ lu.mT``.

    Returns
    -------
    lu : array, (..., M, M)
        Row-permuted unit triangular factor.
    d : array, (..., M, M)
        Block diagonal matrix with blocks of size 1 or 2, as `Banded` with three diagonals, or as `Diagonal`.
    perm : array, (..., M)
        Row permutation that makes ``lu[perm, :]`` triangular.

    Raises
    ------
    ValueError
        If `A` is not square.
    TypeError
        If `A` has a boolean data type.

    See Also
    --------
    scipy.linalg.ldl

    Notes
    -----
    The function factors the Hermitian (or symmetric) part, so that derivatives are Hermitian (or symmetric).
    Derivatives treat the pivots as constant. The matrix may be indefinite or singular. The eigenvalues of `d` have the
    same signs as the eigenvalues of `A`.

    The algorithm is the blocked form of LAPACK's ``sytrf``: Bunch and Kaufman, *Some stable methods for calculating
    inertia and solving symmetric linear systems*, Math. Comp. 31 (1977). On CPUs LAPACK runs it.

    ==================================================  ===========================  ==================
    structure                                           `lu`, `d`                    cost
    ==================================================  ===========================  ==================
    `Diagonal`, `Identity`                              `Identity`, the same         ``O(1)``
    `Banded`, assumed positive definite, with `lower`   `Banded`, `Diagonal`         ``O(M w**2)``
    `Dense`, and any other                              `Dense`, `Banded`            ``O(M**3)``
    ==================================================  ===========================  ==================

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.asarray([[0.0, 2.0], [2.0, 0.0]])
    >>> lu, d, perm = sa.linalg.ldl(A)
    >>> d.to_dense()
    Dense([[0., 2.],
           [2., 0.]], dtype=float64)
    >>> (lu @ (d @ lu.mT)).to_dense()
    Dense([[0., 2.],
           [2., 0.]], dtype=float64)
    """
    A = cast("Array", A)
    check.square("linalg.ldl", A, "A")
    return LDLResult(*ldl.dispatch(check.floating("linalg.ldl", A, "A"), lower=bool(lower), hermitian=bool(hermitian)))


@ldl.kernel(Dense)
def _ldl_dense(A: Dense, *, lower: bool, hermitian: bool) -> tuple[Dense, Banded, Dense]:
    from ..._structures.banded.array import bands

    n, data = A.shape[-1], A.data
    data = (data + (data.mT.conj() if hermitian else data.mT)) / 2
    if n == 0:
        none, order = (jnp.zeros(data.shape[:-1], data.dtype),), jnp.zeros(data.shape[:-1], jnp.int32)
        return A, bands(none, (0,), (0, 0)), Dense.make((order,))
    # The upper factor is the lower factor of the matrix with reversed rows and columns.
    factor, d, order = indefinite.ldl(data if lower else jnp.flip(data, (-2, -1)), hermitian)
    if not lower:
        factor, d, order = jnp.flip(factor, (-2, -1)), jnp.flip(d, (-2, -1)), n - 1 - jnp.flip(order, -1)
    offsets = (-1, 0, 1) if n > 1 else (0,)
    lu = jnp.vectorize(lambda rows, places: rows[places], signature="(n,n),(n)->(n,n)")(factor, jnp.argsort(order))
    blocks = bands([triangles.diagonal(d, k) for k in offsets], offsets, (n, n))
    return Dense.make((lu,)), blocks, Dense.make((order.astype(jnp.int32),))
