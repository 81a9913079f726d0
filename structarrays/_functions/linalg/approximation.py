"""`linalg.compress`: what the standard has no function for, and looks at values."""

from __future__ import annotations

from typing import cast

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.dispatch.decorator import function
from .. import matrix_checks as check


@function("x", prefix="linalg.")
def compress(x: ArrayLike, /, *, rank: int) -> Array:
    r"""Best approximation of each matrix of a stack by one of low rank.

    Parameters
    ----------
    x : array, (..., M, N)
        Of a floating-point dtype (integers become the default one).
    rank : int
        The rank: how many singular values are kept, from 0 to ``min(M, N)``.

    Returns
    -------
    LowRank, (..., M, N)
        With at most so many columns in its factors: the left one has the singular vectors times the singular values, the right one
        the orthonormal (conjugated) right singular vectors.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions, or `rank` is negative or larger than `x` allows.
    TypeError
        If `x` is boolean, or `rank` is no integer.

    Notes
    -----
    No matrix of this rank is nearer in the spectral or in the Frobenius norm (Eckart and Young, *Psychometrika* 1, 1936):
    the error is :math:`\sigma_{k+1}`, or :math:`(\sum_{j>k} \sigma_j^2)^{1/2}`. Structures of low rank are never
    expanded: a `LowRank`, a `Product` through a narrow factor, a `Fill` and their sums take QR factorisations of both factors and the
    singular value decomposition of the small matrix between them.

    ==================================  ====================================
    of low rank r                       ``O((M + N) r**2)``
    dense, or any other structure       ``O(M N min(M, N))``, and the dense form
    ==================================  ====================================

    The derivative needs the last kept and the first lost singular value to differ, and the kept ones not to be 0.

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
