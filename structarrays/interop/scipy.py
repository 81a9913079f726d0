"""SciPy: matrices of any structure as its linear operators, and conversions from and to its sparse arrays.

`scipy.sparse.linalg` takes most arrays as they are, since they have the methods of a linear operator. What `operator` gives is one by
class, which the rest of it asks for, and which multiplies all columns of a matrix in one call.
"""

from __future__ import annotations

import copy
from typing import Any

import jax
import numpy as np
import scipy.sparse  # type: ignore[import-untyped]  # SciPy has no types
from scipy.sparse.linalg import LinearOperator  # type: ignore[import-untyped]  # as above

from .._core.array.base import Array
from .._core.array.dense import Dense
from .._structures.banded.array import Banded, from_dia
from .._structures.blocks.block_diagonal import BlockDiagonal
from .._structures.sparse.array import Sparse
from .linear_operators import check_matrix
from .sparse_arrays import as_sparse, check_format

__all__ = ["StructuredOperator", "from_sparse", "operator", "to_sparse"]

FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


def operator(x: Array, /) -> StructuredOperator:
    """A matrix as a `scipy.sparse.linalg.LinearOperator`.

    Parameters
    ----------
    x : array, (M, N)
        Of any structure.

    Returns
    -------
    StructuredOperator

    Raises
    ------
    TypeError
        If `x` is no array of this namespace.
    ValueError
        If it is no single matrix.

    See Also
    --------
    scipy.sparse.linalg.aslinearoperator

    Notes
    -----
    `scipy.sparse.linalg.aslinearoperator` takes an array, too, but before SciPy 1.18 it multiplies a matrix by it column by column.
    `expm_multiply` takes operators by class only. A product follows the operand: NumPy arrays give NumPy arrays, arrays of this
    namespace and of JAX give arrays of this namespace.

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


class StructuredOperator(LinearOperator):  # type: ignore[misc]  # of a library without types
    """The linear operator of a matrix; made by `operator`.

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

    # SciPy makes NumPy arrays of vectors and matrices, which those of this namespace and of JAX are not to become.

    def matvec(self, x: Any) -> Any:
        return self._matvec(x) if _keeps_its_class(x) else super().matvec(x)

    def rmatvec(self, x: Any) -> Any:
        return self._rmatvec(x) if _keeps_its_class(x) else super().rmatvec(x)

    def matmat(self, x: Any) -> Any:
        return self._matmat(x) if _keeps_its_class(x) else super().matmat(x)

    def rmatmat(self, x: Any) -> Any:
        return self._rmatmat(x) if _keeps_its_class(x) else super().rmatmat(x)

    # SciPy takes whatever is no operator by class for a dense matrix.

    def __add__(self, x: Any) -> Any:
        return super().__add__(_as_operator(x))

    def dot(self, x: Any) -> Any:
        x = _as_operator(x)
        return self.array @ x if _keeps_its_class(x) else super().dot(x)

    def rdot(self, x: Any) -> Any:
        x = _as_operator(x)
        return x @ self.array if _keeps_its_class(x) else super().rdot(x)

    def _rdot(self, x: Any) -> Any:  # its name before SciPy 1.18
        x = _as_operator(x)
        return x @ self.array if _keeps_its_class(x) else super()._rdot(x)


def _keeps_its_class(x: object) -> bool:
    """Whether a product with `x` is an array of this namespace, as `x` is or becomes."""
    return isinstance(x, (Array, jax.Array))


def _as_operator(x: Any) -> Any:
    """A structured matrix as an operator; anything else as it is."""
    return StructuredOperator(x) if isinstance(x, Array) and x.ndim == 2 and type(x) is not Dense else x


# ---- sparse arrays ----------------------------------------------------------------------------------------------------


def to_sparse(x: Array, /, format: str | None = None) -> scipy.sparse.sparray:
    """An array as one of `scipy.sparse`.

    Parameters
    ----------
    x : array, (M, N)
        Of any structure, without a batch and a background. (Sparse arrays of other numbers of dimensions have the format ``"coo"``.)
    format : str, optional
        ``"bsr"``, ``"coo"``, ``"csc"``, ``"csr"``, ``"dia"``, ``"dok"`` or ``"lil"``. By default ``"dia"`` of a `Banded` matrix,
        ``"csr"`` of other matrices.

    Returns
    -------
    scipy.sparse.sparray
        With the entries that `x` stores, zeros among them. Its memory is its own.

    Raises
    ------
    TypeError
        If `x` is no array of this namespace.
    ValueError
        If `format` is unknown, or if `x` has a batch, a background, or no dimension.
    DensifyError
        If the structure stores no entries, such as `LowRank`, and the policy forbids to make its dense form.

    See Also
    --------
    from_sparse, Sparse.to_scipy

    Notes
    -----
    The diagonals of a `Banded` matrix become those of a `scipy.sparse.dia_array`, and blocks of equal size the blocks of a
    `scipy.sparse.bsr_array`. `Kronecker`, `KroneckerSum`, `Sum`, `Product` and `Block` of sparse parts are multiplied out, which takes as
    much memory as there are entries. Of other structures the nonzero elements of the dense form are taken.

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
    """The array of one of `scipy.sparse`.

    Parameters
    ----------
    x : scipy.sparse.sparray or scipy.sparse.spmatrix
        Of any format.

    Returns
    -------
    Banded or Sparse
        `Banded` for the format ``"dia"``, `Sparse` for all others. Explicit zeros stay entries, duplicates are added.

    Raises
    ------
    TypeError
        If `x` is none.

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
    # SciPy lets the data end early, and the matrix is zero from there on.
    data = np.zeros((len(inside), n), x.dtype)
    width = min(n, x.data.shape[1])
    data[:, :width] = x.data[inside, :width]
    return from_dia(data, [int(x.offsets[i]) for i in inside], x.shape)
