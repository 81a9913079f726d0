"""Methods that arrays of NumPy have and generic code is found to call, although the standard has only functions for them.

They stand for the functions of the namespace; nothing is computed here.
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
    """What `Array` has of NumPy's methods, and of SciPy's linear operators."""

    __slots__ = ()

    if TYPE_CHECKING:  # what `Array` has

        @property
        def shape(self) -> Shape: ...
        @property
        def ndim(self) -> int: ...
        @property
        def size(self) -> int: ...
        def __getitem__(self, key: Any) -> Array: ...

    # ---- reductions ----------------------------------------------------------------------------------------------

    def sum(self, axis: Axes = None, dtype: DTypeLike | None = None, *, keepdims: bool = False) -> Array:
        """The sum; see `structarrays.sum`."""
        return late.sum(cast("Array", self), axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Axes = None, *, keepdims: bool = False) -> Array:
        """The mean; see `structarrays.mean`."""
        return late.mean(cast("Array", self), axis=axis, keepdims=keepdims)

    def min(self, axis: Axes = None, *, keepdims: bool = False) -> Array:
        """The minimum; see `structarrays.min`."""
        return late.min(cast("Array", self), axis=axis, keepdims=keepdims)

    def max(self, axis: Axes = None, *, keepdims: bool = False) -> Array:
        """The maximum; see `structarrays.max`."""
        return late.max(cast("Array", self), axis=axis, keepdims=keepdims)

    def any(self, axis: Axes = None, *, keepdims: bool = False) -> Array:
        """Whether any element is true; see `structarrays.any`."""
        return late.any(cast("Array", self), axis=axis, keepdims=keepdims)

    def all(self, axis: Axes = None, *, keepdims: bool = False) -> Array:
        """Whether all elements are true; see `structarrays.all`."""
        return late.all(cast("Array", self), axis=axis, keepdims=keepdims)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """The sum of a diagonal, by default over the first two axes, as in NumPy; see `structarrays.linalg.trace`."""
        x = cast("Array", self)
        if (axis1 % x.ndim, axis2 % x.ndim) != (x.ndim - 2, x.ndim - 1):
            x = late.moveaxis(x, (axis1, axis2), (-2, -1))
        return late.trace(x, offset=offset)

    def round(self, decimals: int = 0) -> Array:
        """The elements rounded to a number of decimals, as by `numpy.round`."""
        rounded: Array = np.round(cast(Any, self), decimals)
        return rounded

    def conj(self) -> Array:
        """The complex conjugate, element-wise; see `structarrays.conj`. Also called `conjugate`."""
        return late.conj(cast("Array", self))

    conjugate = conj

    # ---- shapes and dtypes ---------------------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> Array:
        """The array in another shape; see `structarrays.reshape`."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return late.reshape(cast("Array", self), tuple(sizes))

    def transpose(self, *axes: Any) -> Array:
        """The array with its axes in another order, by default in reverse; see `structarrays.permute_dims`."""
        order = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes
        return late.permute_dims(cast("Array", self), tuple(order) if order else tuple(reversed(range(self.ndim))))

    def ravel(self) -> Array:
        """The array in one dimension: a view of a dense one."""
        return late.reshape(cast("Array", self), (-1,))

    def flatten(self) -> Array:
        """A copy of the array in one dimension."""
        return late.asarray(late.reshape(cast("Array", self), (-1,)), copy=True)

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> Array:
        """The array with another dtype; see `structarrays.astype`."""
        return late.astype(cast("Array", self), dtype, copy=copy)

    def copy(self) -> Array:
        """A new array with these values; a write to one is not seen in the other."""
        return late.asarray(cast("Array", self), copy=True)

    def view(self, dtype: DTypeLike | None = None) -> Array:
        """The same bytes taken for elements of another dtype, such as complex numbers for pairs of real ones.

        A new array and not a view: a write to it is not seen in this one.
        """
        return self.copy() if dtype is None else late.view(cast("Array", self), dtypes.as_dtype(dtype))

    def item(self, *index: Any) -> Scalar:
        """An element as a Python scalar: the only one, or that at an index."""
        if index:
            index = index[0] if len(index) == 1 else index
            if not isinstance(index, tuple):
                index = np.unravel_index(operator.index(index), self.shape)
            return self[tuple(map(int, index))].item()
        if self.size != 1:
            raise ValueError(f"item() of an array of shape {self.shape}: only one of size 1 is a Python scalar")
        scalar: Scalar = np.asarray(self).item()
        return scalar

    def tolist(self) -> Any:
        """The elements as Python scalars in nested lists."""
        return np.asarray(self).tolist()

    # ---- products ------------------------------------------------------------------------------------------------

    def dot(self, other: Any) -> Any:
        """The product as in `numpy.dot`: of scalars, vectors and matrices that of ``*`` and ``@``."""
        return np.dot(cast(Any, self), other)

    def matvec(self, vector: Any) -> Any:
        """The product of a matrix with a vector ``(n,)`` or a column ``(n, 1)``.

        With `rmatvec`, `matmat` and `rmatmat` it makes a matrix what `scipy.sparse.linalg` takes for a linear operator. A NumPy array
        gives a NumPy array, which can be written to; any other gives one of this namespace. Stacks of matrices raise.
        """
        return late.product(cast("Array", self), vector, "matvec")

    def rmatvec(self, vector: Any) -> Any:
        """The product of the conjugate transpose with a vector ``(m,)`` or a column ``(m, 1)``; see `matvec`."""
        return late.product(cast("Array", self), vector, "rmatvec")

    def matmat(self, matrix: Any) -> Any:
        """The product with a matrix ``(n, k)``; see `matvec`."""
        return late.product(cast("Array", self), matrix, "matmat")

    def rmatmat(self, matrix: Any) -> Any:
        """The product of the conjugate transpose with a matrix ``(m, k)``; see `matvec`."""
        return late.product(cast("Array", self), matrix, "rmatmat")
