"""Low-rank approximation, which is data-dependent and outside of the standard."""

from __future__ import annotations

from typing import cast

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.dispatch.decorator import function
from .. import matrix_checks as check


@function("x", prefix="linalg.")
def compress(x: ArrayLike, /, *, rank: int) -> Array:
    r"""Compute the best low-rank approximation of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Matrices of a floating-point data type. Integers are converted to the default one.
    rank : int
        Number of singular values to keep, from 0 to ``min(M, N)``.

    Returns
    -------
    LowRank, (..., M, N)
        Approximation with at most `rank` columns in its factors. The left factor contains the left singular vectors
        times the singular values, the right factor the orthonormal (conjugated) right singular vectors.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions, or `rank` is negative or larger than `x` allows.
    TypeError
        If `x` has a boolean data type, or `rank` is not an integer.

    Notes
    -----
    The result is the nearest matrix of this rank in the spectral norm and in the Frobenius norm (Eckart and Young,
    *Psychometrika* 1, 1936). The errors are :math:`\sigma_{k+1}` and :math:`(\sum_{j>k} \sigma_j^2)^{1/2}`.

    Low-rank structures are never densified: `LowRank`, a `Product` with a narrow inner dimension, `Fill`, and sums of
    these. The algorithm takes QR factorizations of both factors, and the singular value decomposition of the small
    matrix between them.

    ==================================  =======================================
    structure                           cost
    ==================================  =======================================
    low rank r                          ``O((M + N) r**2)``
    `Dense`, and any other              ``O(M N min(M, N))``, in dense form
    ==================================  =======================================

    The derivative exists if the kept singular values are nonzero, and the smallest of them differs from the largest
    discarded singular value.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.LowRank([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], [[1.0, 2.0], [4.0, 5.0]])
    >>> B = sa.linalg.compress(A, rank=1)
    >>> A.rank, B.rank, bool(sa.max(sa.abs((A - B).to_dense())) < 1e-12)
    (2, 1, True)
    """
    x = cast("Array", x)
    check.matrix("linalg.compress", x)
    rank = check.integer("linalg.compress", rank, "rank")
    if not 0 <= rank <= min(x.shape[-2:]):
        raise ValueError(f"linalg.compress: rank must be from 0 to {min(x.shape[-2:])} for shape {x.shape}, got {rank}")
    result: Array = compress.dispatch(check.floating("linalg.compress", x), rank=rank)
    return result
