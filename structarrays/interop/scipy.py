"""Conversions to linear operators of SciPy, and from and to its sparse arrays.

Most functions of `scipy.sparse.linalg` accept structured arrays directly, because they have the methods of a linear
operator. `operator` returns an instance of `LinearOperator`, which the other functions require. It multiplies all
columns of a matrix in one call.
"""

from __future__ import annotations

import copy
from typing import Any

import jax
import numpy as np
import scipy.sparse  # type: ignore[import-untyped]
from scipy.sparse.linalg import LinearOperator  # type: ignore[import-untyped]

from .._core.array.base import Array
from .._core.array.dense import Dense
from .._structures.banded.array import Banded
from .._structures.banded.from_diagonals import from_dia
from .._structures.blocks.block_diagonal import BlockDiagonal
from .._structures.sparse.array import Sparse
from .linear_operators import check_matrix
from .sparse_arrays import as_sparse, check_format

__all__ = ["StructuredOperator", "from_sparse", "operator", "to_sparse"]

FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


def operator(x: Array, /) -> StructuredOperator:
    """Convert a matrix to a linear operator of SciPy.

    Parameters
    ----------
    x : array, (M, N)
        Matrix of any structure.

    Returns
    -------
    StructuredOperator
        A `scipy.sparse.linalg.LinearOperator` of the shape and data type of `x`.

    Raises
    ------
    TypeError
        If `x` is not an array of this namespace.
    ValueError
        If `x` is not a single matrix.

    See Also
    --------
    scipy.sparse.linalg.aslinearoperator

    Notes
    -----
    `scipy.sparse.linalg.aslinearoperator` also accepts an array, but before SciPy 1.18 it multiplies a matrix column by
    column. `scipy.sparse.linalg.expm_multiply` accepts instances of `LinearOperator` only. A product with a NumPy array
    is a NumPy array. A product with an array of this namespace or of JAX is an array of this namespace.

    Examples
    --------
    >>> import numpy
    >>> import structarrays as sa
    >>> L = sa.interop.scipy.operator(sa.Toeplitz([2.0, -1.0, 0.0]))
    >>> L
    <3x3 StructuredOperator with dtype=float64>
    >>> (2 * L.T + sa.eye(3)) @ numpy.ones(3)
    array([3., 1., 3.])
    """
    check_matrix(x)
    return StructuredOperator(x)


class StructuredOperator(LinearOperator):  # type: ignore[misc]  # SciPy has no types
    """Linear operator of a structured matrix, returned by `operator`.

    Attributes
    ----------
    array : Array
        The matrix.
    """

    def __init__(self, array: Array) -> None:
        super().__init__(array.dtype, array.shape)
        self.array = array
        self.args = (array,)

    def _matvec(self, x: Any) -> Any:
        return self.array.matvec(x)

    def _rmatvec(self, x: Any) -> Any:
        return self.array.rmatvec(x)

    def _matmat(self, x: Any) -> Any:
        return self.array.matmat(x)

    def _rmatmat(self, x: Any) -> Any:
        return self.array.rmatmat(x)

    def _transpose(self) -> Any:
        return super()._transpose() if self.dtype.kind == "c" else self._adjoint()

    # SciPy converts vectors and matrices to NumPy arrays. Arrays of this namespace and of JAX must keep their class.

    def matvec(self, x: Any) -> Any:
        return self._matvec(x) if _keeps_its_class(x) else super().matvec(x)

    def rmatvec(self, x: Any) -> Any:
        return self._rmatvec(x) if _keeps_its_class(x) else super().rmatvec(x)

    def matmat(self, x: Any) -> Any:
        return self._matmat(x) if _keeps_its_class(x) else super().matmat(x)

    def rmatmat(self, x: Any) -> Any:
        return self._rmatmat(x) if _keeps_its_class(x) else super().rmatmat(x)

    # SciPy treats anything that is not an instance of LinearOperator as a dense matrix.

    def __add__(self, x: Any) -> Any:
        return super().__add__(_as_operator(x))

    def dot(self, x: Any) -> Any:
        x = _as_operator(x)
        return self.array @ x if _keeps_its_class(x) else super().dot(x)

    def rdot(self, x: Any) -> Any:
        x = _as_operator(x)
        return x @ self.array if _keeps_its_class(x) else super().rdot(x)

    def _rdot(self, x: Any) -> Any:  # the name of `rdot` before SciPy 1.18
        x = _as_operator(x)
        return x @ self.array if _keeps_its_class(x) else super()._rdot(x)


def _keeps_its_class(x: object) -> bool:
    """Return whether a product with `x` is an array of this namespace."""
    return isinstance(x, (Array, jax.Array))


def _as_operator(x: Any) -> Any:
    """Convert a structured matrix to an operator; return anything else unchanged."""
    return StructuredOperator(x) if isinstance(x, Array) and x.ndim == 2 and type(x) is not Dense else x


# ---- sparse arrays ----------------------------------------------------------------------------------------------------


def to_sparse(x: Array, /, format: str | None = None) -> scipy.sparse.sparray:
    """Convert an array to a sparse array of SciPy.

    Parameters
    ----------
    x : array, (M, N)
        Matrix of any structure, without a batch and without a background. `Sparse` arrays with other numbers of core
        dimensions are converted to the format ``"coo"``.
    format : {"bsr", "coo", "csc", "csr", "dia", "dok", "lil"}, optional
        Format of the result. The default is ``"dia"`` for a `Banded` matrix, and ``"csr"`` for other matrices.

    Returns
    -------
    scipy.sparse.sparray
        Array with a copy of the stored entries of `x`, including explicit zeros.

    Raises
    ------
    TypeError
        If `x` is not an array of this namespace.
    ValueError
        If `format` is unknown, or if `x` has a batch or a background, or is 0-dimensional.
    DensifyError
        If the structure does not store entries (such as `LowRank`) and the policy of `densify` forbids the dense form.

    See Also
    --------
    from_sparse, Sparse.to_scipy

    Notes
    -----
    A `Banded` matrix becomes a `scipy.sparse.dia_array` with the same diagonals. With the format ``"bsr"``, blocks of
    equal size become the blocks of a `scipy.sparse.bsr_array`. `Kronecker`, `KroneckerSum`, `Sum`, `Product` and
    `Block` with sparse parts are expanded, in memory proportional to the number of entries of the result. For other
    structures, the result contains the nonzero elements of the dense form.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.interop.scipy.to_sparse(sa.tridiagonal([1.0], [2.0, 3.0], [4.0])).format
    'dia'
    """
    if format is not None:
        check_format(format, FORMATS)
    x = copy.copy(x)  # another thread may write in between
    if isinstance(x, Banded) and x.background is None and x.ndim == 2 and format in (None, "dia"):
        data, offsets = x.to_dia()
        return scipy.sparse.dia_array((np.array(data), np.asarray(offsets, np.int32)), shape=x.shape)
    found = as_sparse(x, "to_sparse", without_background="scipy.sparse").to_scipy()
    if found.ndim != 2:
        return found.asformat(format or "coo")
    if format == "bsr" and type(x) is BlockDiagonal and len(x.blocks) == 1:
        return found.tobsr(blocksize=x.blocks[0].shape[-2:])
    return found.asformat(format or "csr")


def from_sparse(x: Any, /) -> Array:
    """Convert a sparse array of SciPy to an array of this namespace.

    Parameters
    ----------
    x : scipy.sparse.sparray or scipy.sparse.spmatrix
        Sparse array or matrix of any format.

    Returns
    -------
    Banded or Sparse
        `Banded` for the format ``"dia"``, `Sparse` for all others. Explicit zeros are kept, and duplicate entries are
        summed.

    Raises
    ------
    TypeError
        If `x` is not a sparse array of SciPy.

    Examples
    --------
    >>> import scipy.sparse
    >>> import structarrays as sa
    >>> sa.interop.scipy.from_sparse(scipy.sparse.eye_array(3, 4, k=1)).offsets
    (1,)
    """
    if not scipy.sparse.issparse(x):
        raise TypeError(f"from_sparse: x must be an array of scipy.sparse, got {type(x).__name__}")
    return _from_dia(x) if x.format == "dia" else Sparse.from_scipy(x)


def _from_dia(x: Any) -> Banded:
    m, n = x.shape
    inside = [i for i, k in enumerate(x.offsets) if -m < k < n]
    # SciPy accepts data with fewer columns than the matrix; the remaining columns are zero.
    data = np.zeros((len(inside), n), x.dtype)
    width = min(n, x.data.shape[1])
    data[:, :width] = x.data[inside, :width]
    return from_dia(data, [int(x.offsets[i]) for i in inside], x.shape)
