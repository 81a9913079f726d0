"""Eigenvalue, singular value and QR decompositions of the Array API standard."""

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
    """Real eigenvalues in ascending order, and orthonormal eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Matrix with orthonormal columns, and upper triangular matrix with a real diagonal."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors, singular values, and the conjugate transpose of the right singular vectors."""

    U: Array
    S: Array
    Vh: Array


@function("x", prefix="linalg.", dense=spectra.eig)
def eig(x: ArrayLike, /) -> EigResult:
    """Compute the eigenvalues and right eigenvectors of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.

    Returns
    -------
    eigenvalues : array, (..., M)
        Complex eigenvalues, in no particular order. The eigenvalues of a diagonal matrix have the order of the
        diagonal.
    eigenvectors : array, (..., M, M)
        Complex eigenvectors of norm 1, in the columns.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` has a boolean data type.

    Notes
    -----
    JAX implements this decomposition on CPUs and NVIDIA GPUs only. For Hermitian matrices use `eigh`.

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
    """Compute the eigenvalues of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.

    Returns
    -------
    array, (..., M)
        Complex eigenvalues, in no particular order. The eigenvalues of a diagonal matrix have the order of the
        diagonal.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` has a boolean data type.

    Notes
    -----
    JAX implements this decomposition on CPUs and NVIDIA GPUs only. For Hermitian matrices use `eigvalsh`.

    Eigenvalues of a defective matrix have no derivatives. If the eigenvectors are linearly dependent within rounding
    errors, derivatives are NaN. Second derivatives that depend on repeated eigenvalues are NaN, infinite or huge, as in
    `eigvalsh`.

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
    """Compute the eigenvalues and eigenvectors of each Hermitian matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one. The function
        decomposes the Hermitian part.

    Returns
    -------
    eigenvalues : array, (..., M)
        Eigenvalues in ascending order, in the real data type of the same precision.
    eigenvectors : array, (..., M, M)
        Orthonormal eigenvectors, in the columns.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` has a boolean data type.

    Notes
    -----
    Eigenvectors of repeated eigenvalues have no derivatives. Derivatives that depend on them are NaN, infinite or huge.
    The same is true for second derivatives of the eigenvalues; see `eigvalsh`.

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
    """Compute the eigenvalues of each Hermitian matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one. The function uses the
        Hermitian part.

    Returns
    -------
    array, (..., M)
        Eigenvalues in ascending order, in the real data type of the same precision.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` has a boolean data type.

    Notes
    -----
    First derivatives of symmetric functions of the eigenvalues, such as sums, are correct for repeated eigenvalues,
    too. Second derivatives that depend on repeated eigenvalues cannot be computed from the eigenvalues alone. They are
    NaN, infinite or huge: above 1e150 (in 32 bits above 1e15) if the elements of the matrix and of its tangent are near
    one. For the sum of squares use the Frobenius norm. For the trace of a matrix function use `expm`, `sqrtm` or
    `matrix_power`.

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
    """Compute the singular value decomposition ``U @ diag(S) @ Vh`` of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Matrices of a floating-point data type. Integers are converted to the default one.
    full_matrices : bool, default True
        If True, `U` and `Vh` are square. If False, they contain the first ``K = min(M, N)`` columns and rows.

    Returns
    -------
    U : array, (..., M, M) or (..., M, K)
        Left singular vectors: orthonormal columns.
    S : array, (..., K)
        Singular values in descending order, in the real data type of the same precision.
    Vh : array, (..., N, N) or (..., K, N)
        Conjugate transpose of the right singular vectors: orthonormal rows.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    TypeError
        If `x` has a boolean data type.

    Notes
    -----
    Singular vectors of repeated singular values have no derivatives. Derivatives that depend on them are NaN, infinite
    or huge. The same is true for second derivatives of the singular values; see `svdvals`.

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
    """Compute the singular values of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Matrices of a floating-point data type. Integers are converted to the default one.

    Returns
    -------
    array, (..., min(M, N))
        Singular values in descending order, in the real data type of the same precision.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    TypeError
        If `x` has a boolean data type.

    Notes
    -----
    First derivatives of symmetric functions of the singular values, such as sums, are correct for repeated singular
    values, too. Second derivatives that depend on repeated singular values cannot be computed from the singular values
    alone. They are NaN, infinite or huge: above 1e150 (in 32 bits above 1e15) if the elements of the matrix and of its
    tangent are near one. `matrix_norm` has correct second derivatives of the nuclear norm and the Frobenius norm.

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
    """Compute the QR decomposition ``Q @ R`` of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Matrices of a floating-point data type. Integers are converted to the default one.
    mode : {"reduced", "complete"}, default "reduced"
        If "reduced", `Q` contains the first ``K = min(M, N)`` columns. If "complete", `Q` is square.

    Returns
    -------
    Q : array, (..., M, K) or (..., M, M)
        Matrices with orthonormal columns.
    R : array, (..., K, N) or (..., M, N)
        Upper triangular matrices with a real diagonal.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions, or `mode` is invalid.
    TypeError
        If `x` has a boolean data type.

    Notes
    -----
    For a `Banded` matrix with l subdiagonals and u superdiagonals, Q is a `Householder`, and R is `Banded` with l + u
    superdiagonals. The cost is ``O(min(M, N) (l + 1) (l + u + 1))``. `Diagonal` matrices and `Kronecker` products keep
    their structure; for other structures the factors are dense. Rows of R and columns of Q are unique up to signs (or
    phases).

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
