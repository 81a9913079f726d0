"""Selected elements of an inverse matrix, at the positions of the stored entries."""

from __future__ import annotations

from typing import cast

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.dispatch.decorator import function
from .. import matrix_checks as check


@function("x", prefix="linalg.", checked="x is singular (or assumed positive definite, and is not)")
def selected_inverse(x: ArrayLike, /) -> Array:
    r"""Compute the elements of the inverse of each matrix at the positions of its stored entries.

    Parameters
    ----------
    x : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.

    Returns
    -------
    array, (..., M, M)
        Elements of the inverse, in the structure of `x`. For a banded matrix they are the same diagonals of the
        inverse. For a sparse matrix they are the elements at the positions of the entries of the transpose (most
        patterns are symmetric). For other structures the result is `inv`, if the inverse keeps the structure or all
        elements are stored.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` has a boolean data type.
    numpy.linalg.LinAlgError
        If a matrix is singular, in an eager call. Under `jax.jit`, or within ``errstate(linalg="nan")``,
        the elements are NaN instead.

    Notes
    -----
    These elements are the derivative of a determinant, :math:`\partial \log \det A / \partial A_{ij} = (A^{-1})_{ji}`.
    The diagonal contains the variances of a Gaussian variable with the precision matrix A.

    The algorithm is the recursion of Takahashi, Fagan and Chin (*Formation of a sparse bus impedance matrix and its
    application to short circuit study*, 8th PICA Conference, 1973), which forms no other elements. The cost is ``O(w**2
    M)`` for a banded matrix with w diagonals on each side. For a sparse matrix the cost is similar to the cost of its
    factorization, on the host.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.tridiagonal(-sa.ones(4), 2.0 * sa.ones(5), -sa.ones(4))
    >>> Z = sa.linalg.selected_inverse(A)
    >>> Z.offsets
    (-1, 0, 1)
    >>> sa.linalg.diagonal(Z)
    Dense([0.83333333, 1.33333333, 1.5       , 1.33333333, 0.83333333], dtype=float64)
    """
    x = cast("Array", x)
    check.square("linalg.selected_inverse", x)
    return cast(
        "Array", selected_inverse.dispatch(check.floating("linalg.selected_inverse", x))
    )  # and the success flag
