"""`linalg.selected_inverse`: the elements of an inverse where the matrix has entries."""

from __future__ import annotations

from typing import cast

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.dispatch.decorator import function
from .. import matrix_checks as check


@function("x", prefix="linalg.", checked="x is singular (or assumed positive definite, and is not)")
def selected_inverse(x: ArrayLike, /) -> Array:
    r"""Elements of the inverse of each matrix of a stack, at the places that the structure of the matrix stores.

    Parameters
    ----------
    x : array, (..., M, M)
        Of a floating-point dtype (integers become the default one).

    Returns
    -------
    array, (..., M, M)
        With the structure of `x`: of a banded matrix the same diagonals of its inverse, of a sparse one the elements where its transpose
        has entries (most patterns are symmetric). Where the inverse has the structure of the matrix, or the matrix stores everything, it
        is `inv`.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` is boolean.
    numpy.linalg.LinAlgError
        If a matrix is singular, and the call is eager; under `jax.jit`, and within ``errstate(linalg="nan")``, the elements are NaN.

    Notes
    -----
    What the derivative of a determinant needs, :math:`\partial \log \det A / \partial A_{ij} = (A^{-1})_{ji}`, and the variances of a Gaussian
    variable with a banded precision, its diagonal. The recursion of Takahashi, Fagan and Chin (*Formation of a sparse bus impedance matrix
    and its application to short circuit study*, 8th PICA Conference, 1973) takes ``O(w**2 M)`` for w diagonals on either side of a
    banded matrix, and never forms another element; of a sparse one about as many operations as its factorisation, on the host.

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
    return cast("Array", selected_inverse.dispatch(check.floating("linalg.selected_inverse", x)))  # and its flag
