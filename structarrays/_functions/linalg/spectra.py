"""The standard's eigenvalue, singular value and QR decompositions."""

from __future__ import annotations

from typing import NamedTuple, cast

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.dispatch.decorator import function
from ..._numerics import dense_linalg as linalg_dense
from ..._numerics import dense_spectra as spectra
from .. import matrix_checks as check


class EigResult(NamedTuple):
    """Eigenvalues and right eigenvectors, both complex."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues, real and ascending, and orthonormal eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Orthonormal columns, and an upper triangular matrix with a real diagonal."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors, singular values, and conjugated and transposed right singular vectors."""

    U: Array
    S: Array
    Vh: Array


@function("x", prefix="linalg.", dense=spectra.eig)
def eig(x: ArrayLike, /) -> EigResult:
    """Eigenvalues and right eigenvectors of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Of a floating-point dtype (integers become the default one).

    Returns
    -------
    eigenvalues : array, (..., M)
        Complex, in no particular order (of a diagonal matrix, in that of the diagonal).
    eigenvectors : array, (..., M, M)
        In the columns, of length 1, of the same dtype.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` is boolean.

    Notes
    -----
    JAX computes it on CPUs and NVIDIA GPUs only. For Hermitian matrices `eigh` is better.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.eig(sa.Diagonal([2.0, 1.0])).eigenvalues
    Dense([2.+0.j, 1.+0.j], dtype=complex128)
    """
    x = cast("Array", x)
    check.square("linalg.eig", x)
    return EigResult(*eig.dispatch(check.floating("linalg.eig", x)))


@function("x", prefix="linalg.", dense=spectra.eigvals)
def eigvals(x: ArrayLike, /) -> Array:
    """Eigenvalues of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Of a floating-point dtype (integers become the default one).

    Returns
    -------
    array, (..., M)
        Complex, in no particular order (of a diagonal matrix, in that of the diagonal).

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` is boolean.

    Notes
    -----
    JAX computes it on CPUs and NVIDIA GPUs only. For Hermitian matrices `eigvalsh` is better.

    Eigenvalues of a defective matrix have no derivatives. For a matrix whose eigenvectors are dependent within rounding errors they are NaN.
    Second derivatives that depend on repeated eigenvalues are NaN, infinite or huge, as in `eigvalsh`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.eigvals(sa.Diagonal([2.0, 1.0]))
    Dense([2.+0.j, 1.+0.j], dtype=complex128)
    """
    x = cast("Array", x)
    check.square("linalg.eigvals", x)
    result: Array = eigvals.dispatch(check.floating("linalg.eigvals", x))
    return result


@function("x", prefix="linalg.", dense=spectra.eigh)
def eigh(x: ArrayLike, /) -> EighResult:
    """Eigenvalues and eigenvectors of each Hermitian matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Of a floating-point dtype (integers become the default one). The Hermitian part is decomposed.

    Returns
    -------
    eigenvalues : array, (..., M)
        Ascending, of the real dtype of the same precision.
    eigenvectors : array, (..., M, M)
        In the columns, orthonormal.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` is boolean.

    Notes
    -----
    Eigenvectors of repeated eigenvalues have no derivatives. What depends on them is NaN, infinite or huge, and so are such second
    derivatives of the eigenvalues. See `eigvalsh`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.eigh(sa.Diagonal([2.0, 1.0])).eigenvalues
    Dense([1., 2.], dtype=float64)
    """
    x = cast("Array", x)
    check.square("linalg.eigh", x)
    return EighResult(*eigh.dispatch(check.floating("linalg.eigh", x)))


@function("x", prefix="linalg.", dense=spectra.eigvalsh)
def eigvalsh(x: ArrayLike, /) -> Array:
    """Eigenvalues of each Hermitian matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Of a floating-point dtype (integers become the default one). Those of the Hermitian part are computed.

    Returns
    -------
    array, (..., M)
        Ascending, of the real dtype of the same precision.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` is boolean.

    Notes
    -----
    First derivatives of symmetric functions of the eigenvalues, such as sums, are right for repeated eigenvalues as well. Second
    derivatives that depend on repeated eigenvalues cannot be computed from the eigenvalues alone. They are NaN, infinite or huge: for a matrix
    and a change of elements near to one above 1e150, in 32 bits above 1e15. For the sum of squares use the Frobenius norm, and for the
    trace of a function `expm`, `sqrtm` or powers.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.eigvalsh(sa.Diagonal([2.0, 1.0]))
    Dense([1., 2.], dtype=float64)
    """
    x = cast("Array", x)
    check.square("linalg.eigvalsh", x)
    result: Array = eigvalsh.dispatch(check.floating("linalg.eigvalsh", x))
    return result


@function("x", prefix="linalg.", dense=spectra.svd)
def svd(x: ArrayLike, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular value decomposition ``U @ S @ Vh`` of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Of a floating-point dtype (integers become the default one).
    full_matrices : bool
        Whether `U` and `Vh` are square, or (False) have only the first ``K = min(M, N)`` columns and rows.

    Returns
    -------
    U : array, (..., M, M) or (..., M, K)
        With orthonormal columns.
    S : array, (..., K)
        Descending, of the real dtype of the same precision.
    Vh : array, (..., N, N) or (..., K, N)
        With orthonormal rows.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    TypeError
        If `x` is boolean.

    Notes
    -----
    Singular vectors of repeated singular values have no derivatives. What depends on them is NaN, infinite or huge, and so are such second
    derivatives of the singular values. See `svdvals`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.svd(sa.Diagonal([2.0, -3.0])).S
    Dense([3., 2.], dtype=float64)
    """
    x = cast("Array", x)
    check.matrix("linalg.svd", x)
    return SVDResult(*svd.dispatch(check.floating("linalg.svd", x), full_matrices=bool(full_matrices)))


@function("x", prefix="linalg.", dense=spectra.svdvals)
def svdvals(x: ArrayLike, /) -> Array:
    """Singular values of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Of a floating-point dtype (integers become the default one).

    Returns
    -------
    array, (..., min(M, N))
        Descending, of the real dtype of the same precision.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    TypeError
        If `x` is boolean.

    Notes
    -----
    First derivatives of symmetric functions of the singular values, such as sums, are right for repeated singular values as well. Second
    derivatives that depend on repeated singular values cannot be computed from the singular values alone. They are NaN, infinite or huge: for
    a matrix and a change of elements near to one above 1e150, in 32 bits above 1e15. `matrix_norm` has right ones of the nuclear and of
    the Frobenius norm.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.svdvals(sa.Diagonal([2.0, -3.0]))
    Dense([3., 2.], dtype=float64)
    """
    x = cast("Array", x)
    check.matrix("linalg.svdvals", x)
    result: Array = svdvals.dispatch(check.floating("linalg.svdvals", x))
    return result


@function("x", prefix="linalg.", dense=linalg_dense.qr)
def qr(x: ArrayLike, /, *, mode: str = "reduced") -> QRResult:
    """QR decomposition of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Of a floating-point dtype (integers become the default one).
    mode : {"reduced", "complete"}
        Whether `Q` has only the first ``K = min(M, N)`` columns, or is square.

    Returns
    -------
    Q : array, (..., M, K) or (..., M, M)
        With orthonormal columns.
    R : array, (..., K, N) or (..., M, N)
        Upper triangular, with a real diagonal.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions, or `mode` is neither of the two.
    TypeError
        If `x` is boolean.

    Notes
    -----
    Of a `Banded` matrix with l diagonals below and u above the main one Q is a `Householder`, and R is `Banded` with l + u
    superdiagonals; both take ``O(min(M, N) (l + 1) (l + u + 1))``. `Diagonal` matrices and `Kronecker` products keep
    their structure, others are dense. Rows of R, and columns of Q, are unique up to signs (phases).

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.qr(sa.Diagonal([2.0, 3.0])).R
    Diagonal([2., 3.], shape=(2, 2), dtype=float64)
    """
    x = cast("Array", x)
    check.matrix("linalg.qr", x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f'linalg.qr: mode must be "reduced" or "complete", got {mode!r}')
    return QRResult(*qr.dispatch(check.floating("linalg.qr", x), mode=mode))
