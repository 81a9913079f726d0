"""NumPy methods that generic code calls, although the standard defines only functions for them.

Each method calls a function of the namespace; nothing is computed here.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import dtypes
from ..dispatch import late

if TYPE_CHECKING:
    from ..typing import Axes, DTypeLike, Scalar, Shape
    from .base import Array


class Conveniences:
    """Methods of `Array` that exist in NumPy, and methods of SciPy's linear operators."""

    __slots__ = ()

    if TYPE_CHECKING:  # attributes of `Array`

        @property
        def shape(self) -> Shape: ...
        @property
        def ndim(self) -> int: ...
        @property
        def size(self) -> int: ...
        def __getitem__(self, key: Any) -> Array: ...

    # ---- reductions ----------------------------------------------------------------------------------------------

    def sum(self, axis: Axes = None, dtype: DTypeLike | None = None, *, keepdims: bool = False) -> Array:
        """Return the sum of the elements; see `structarrays.sum`."""
        return late.sum(cast("Array", self), axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Axes = None, *, keepdims: bool = False) -> Array:
        """Return the arithmetic mean; see `structarrays.mean`."""
        return late.mean(cast("Array", self), axis=axis, keepdims=keepdims)

    def min(self, axis: Axes = None, *, keepdims: bool = False) -> Array:
        """Return the minimum; see `structarrays.min`."""
        return late.min(cast("Array", self), axis=axis, keepdims=keepdims)

    def max(self, axis: Axes = None, *, keepdims: bool = False) -> Array:
        """Return the maximum; see `structarrays.max`."""
        return late.max(cast("Array", self), axis=axis, keepdims=keepdims)

    def any(self, axis: Axes = None, *, keepdims: bool = False) -> Array:
        """Return whether any element is true; see `structarrays.any`."""
        return late.any(cast("Array", self), axis=axis, keepdims=keepdims)

    def all(self, axis: Axes = None, *, keepdims: bool = False) -> Array:
        """Return whether all elements are true; see `structarrays.all`."""
        return late.all(cast("Array", self), axis=axis, keepdims=keepdims)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """Return the sum of a diagonal, by default over the first two axes, as in NumPy; see
        `structarrays.linalg.trace`.
        """
        x = cast("Array", self)
        if (axis1 % x.ndim, axis2 % x.ndim) != (x.ndim - 2, x.ndim - 1):
            x = late.moveaxis(x, (axis1, axis2), (-2, -1))
        return late.trace(x, offset=offset)

    def round(self, decimals: int = 0) -> Array:
        """Round the elements to a number of decimals, as `numpy.round` does."""
        rounded: Array = np.round(cast(Any, self), decimals)
        return rounded

    def conj(self) -> Array:
        """Return the complex conjugate, element-wise; see `structarrays.conj`. Also available as `conjugate`."""
        return late.conj(cast("Array", self))

    conjugate = conj

    # ---- shapes and dtypes ---------------------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> Array:
        """Return the array in another shape; see `structarrays.reshape`."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return late.reshape(cast("Array", self), tuple(sizes))

    def transpose(self, *axes: Any) -> Array:
        """Return the array with its axes permuted, reversed by default; see `structarrays.permute_dims`."""
        order = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes
        return late.permute_dims(cast("Array", self), tuple(order) if order else tuple(reversed(range(self.ndim))))

    def ravel(self) -> Array:
        """Return the array in one dimension: a view if the array is dense."""
        return late.reshape(cast("Array", self), (-1,))

    def flatten(self) -> Array:
        """Return a copy of the array in one dimension."""
        return late.asarray(late.reshape(cast("Array", self), (-1,)), copy=True)

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> Array:
        """Return the array with another data type; see `structarrays.astype`."""
        return late.astype(cast("Array", self), dtype, copy=copy)

    def copy(self) -> Array:
        """Return a new array with the same values; a write to one does not change the other."""
        return late.asarray(cast("Array", self), copy=True)

    def view(self, dtype: DTypeLike | None = None) -> Array:
        """Reinterpret the bytes as elements of another data type, such as pairs of real numbers as complex numbers.

        The result is a new array, not a view: a write to it does not change this array.
        """
        return self.copy() if dtype is None else late.view(cast("Array", self), dtypes.as_dtype(dtype))

    def item(self, *index: Any) -> Scalar:
        """Return one element as a Python scalar: the only element, or the element at an index."""
        if index:
            index = index[0] if len(index) == 1 else index
            if not isinstance(index, tuple):
                index = np.unravel_index(operator.index(index), self.shape)
            return self[tuple(map(int, index))].item()
        if self.size != 1:
            raise ValueError(f"item: the array must have one element, got shape {self.shape}; pass an index")
        scalar: Scalar = np.asarray(self).item()
        return scalar

    def tolist(self) -> Any:
        """Return the elements as Python scalars in nested lists."""
        return np.asarray(self).tolist()

    # ---- products ------------------------------------------------------------------------------------------------

    def dot(self, other: Any) -> Any:
        """Return the product as `numpy.dot` does: ``*`` for scalars, ``@`` for vectors and matrices."""
        return np.dot(cast(Any, self), other)

    def matvec(self, vector: Any) -> Any:
        """Multiply a matrix by a vector ``(n,)`` or a column ``(n, 1)``.

        With `matvec`, `rmatvec`, `matmat` and `rmatmat`, `scipy.sparse.linalg` accepts a matrix as a linear operator.
        The product with a NumPy array is a writable NumPy array; any other product is an array of this namespace.
        Stacks of matrices raise.
        """
        return late.product(cast("Array", self), vector, "matvec")

    def rmatvec(self, vector: Any) -> Any:
        """Multiply the conjugate transpose by a vector ``(m,)`` or a column ``(m, 1)``; see `matvec`."""
        return late.product(cast("Array", self), vector, "rmatvec")

    def matmat(self, matrix: Any) -> Any:
        """Multiply by a matrix ``(n, k)``; see `matvec`."""
        return late.product(cast("Array", self), matrix, "matmat")

    def rmatmat(self, matrix: Any) -> Any:
        """Multiply the conjugate transpose by a matrix ``(m, k)``; see `matvec`."""
        return late.product(cast("Array", self), matrix, "rmatmat")
