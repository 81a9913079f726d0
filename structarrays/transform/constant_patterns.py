"""Constant matrices of a program; they are materialized only if an equation needs their elements.

``jnp.eye(n)`` is a program: it compares two counters of n x n elements. The same holds for ``tril``, ``trace``, and
``ones``. Here such a matrix stays symbolic (a counter, a triangle, a constant, a structure) until a primitive needs its
elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from .._core.array.base import Array
from .._core.array.operands import densify
from .._core.families.join import is_zero_outside
from .._functions.conversion import asarray
from .._functions.creation import tril, triu
from .._structures.banded.array import bands
from .._structures.banded.diagonal import Identity

if TYPE_CHECKING:
    import numpy as np

    from .._core.typing import Shape


class _Matrix:
    """Common base class: a matrix with `shape` and `dtype`, whose elements are computed on demand."""

    __slots__ = ()

    if TYPE_CHECKING:  # defined differently in each class

        @property
        def shape(self) -> Shape: ...

        @property
        def dtype(self) -> np.dtype: ...

        def dense(self) -> jax.Array: ...

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def array(self) -> Array:
        """Elements as an array of the namespace."""
        return asarray(self.dense())


class Constant(_Matrix):
    """A constant matrix in some structure: `array`.

    Unlike an argument, it becomes dense next to a dense operand and as a result, since the user did not choose its
    structure.
    """

    __slots__ = ("array", "number")

    array: Array

    def __init__(self, array: Array, number: np.ndarray | None = None) -> None:
        self.array, self.number = array, number  # `number` is the value of all elements, if the program contains it

    @property
    def shape(self) -> Shape:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def is_zero(self) -> bool:
        """Whether all elements are known to be zero."""
        return self.number is not None and not self.number

    def structured(self) -> Array | None:
        """Return a structured array that can replace the constant; None if it has no structural zeros."""
        if self.is_zero:
            zeros: Array = bands([], (), self.shape[-2:], dtype=self.dtype, batch=self.shape[:-2])
            return zeros
        return self.array if is_zero_outside(self.array) else None

    def dense(self) -> jax.Array:
        """Return the elements."""
        return self.array.dense_data()


class Counter(_Matrix):
    """``offset + i`` or ``offset + j`` at row i and column j: `axis` is 0 or 1."""

    __slots__ = ("axis", "dtype", "offset", "shape")

    shape: tuple[int, int]
    dtype: np.dtype

    def __init__(self, axis: int, shape: tuple[int, int], dtype: np.dtype, offset: int = 0) -> None:
        self.axis, self.shape, self.dtype, self.offset = axis, shape, dtype, offset

    def dense(self) -> jax.Array:
        """Return the elements."""
        data = lax.broadcasted_iota(self.dtype, self.shape, self.axis)
        return data + jnp.asarray(self.offset, self.dtype) if self.offset else data


def counter(axis: int, shape: tuple[int, int], dtype: np.dtype, offset: int = 0) -> Counter | None:
    """Return a counter, or None if its dtype does not represent all of its elements exactly."""
    if jnp.issubdtype(dtype, jnp.integer):
        low, high = jnp.iinfo(dtype).min, jnp.iinfo(dtype).max
    elif jnp.issubdtype(dtype, jnp.floating):
        high = 2 ** (jnp.finfo(dtype).nmant + 1)
        low = -high
    else:
        return None
    return Counter(axis, shape, dtype, offset) if low <= offset and offset + shape[axis] - 1 <= high else None


class Triangle(_Matrix):
    """Ones where ``j - i <= k`` (`lower`) or ``j - i >= k``, zeros elsewhere."""

    __slots__ = ("dtype", "k", "lower", "shape")

    shape: tuple[int, int]
    dtype: np.dtype

    def __init__(self, lower: bool, k: int, shape: tuple[int, int], dtype: np.dtype) -> None:
        self.lower, self.k, self.shape, self.dtype = lower, k, shape, dtype

    @property
    def complement(self) -> Triangle:
        """Triangle with ones and zeros exchanged."""
        return Triangle(not self.lower, self.k + 1 if self.lower else self.k - 1, self.shape, self.dtype)

    def of(self, x: Array) -> Array:
        """Return an array with zeros outside of the triangle."""
        function = tril if self.lower else triu
        part: Array = function.__wrapped__(x, k=self.k)
        return part

    def dense(self) -> jax.Array:
        """Return the elements."""
        data = jnp.tri(*self.shape, k=self.k if self.lower else self.k - 1, dtype=bool)
        return (data if self.lower else ~data).astype(self.dtype)


@jax.tree_util.register_pytree_node_class
class LU(_Matrix):
    """A part of the LU factorization of a structured matrix, which is computed only if an equation needs its elements.

    To solve a linear system with the factorization is to solve it with the matrix. Unlike constants, it is a pytree,
    since loops may carry it.
    """

    __slots__ = ("matrix", "part")

    def __init__(self, matrix: Array, part: int) -> None:
        self.matrix, self.part = matrix, part

    @property
    def shape(self) -> Shape:
        """Shape of the part."""
        *batch, m, n = self.matrix.shape
        return ((*batch, m, n), (*batch, min(m, n)), (*batch, m))[self.part]

    @property
    def dtype(self) -> np.dtype:
        """Data type of the part."""
        return self.matrix.dtype if self.part == 0 else jnp.dtype("int32")

    def dense(self) -> jax.Array:
        """Return the elements: both triangles for part 0, row exchanges for part 1, their permutation for part 2."""
        return lax.linalg.lu(densify(self.matrix, "lu").data)[self.part]

    def tree_flatten(self) -> tuple[tuple[Array], int]:
        """Return the matrix and the number of the part."""
        return (self.matrix,), self.part

    @classmethod
    def tree_unflatten(cls, part: int, children: tuple[Any]) -> LU:
        """Build the part from the matrix."""
        return cls(*children, part)


CONSTANTS = (Constant, Counter, Triangle)
"""Classes of constant matrices."""

LAZY = (*CONSTANTS, LU)
"""Classes of values whose elements are computed on demand."""


def compared(name: str, x: Counter, y: Counter) -> Constant | Triangle | None:
    """Compare two counters of different axes; return a boolean constant."""
    if x.axis == 1:
        x, y, name = y, x, {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(name, name)
    # i + a <name> j + b with k = a - b: j - i == k for "eq", and so on.
    k, (m, n) = x.offset - y.offset, x.shape
    match name:
        case "ge":
            return Triangle(True, k, (m, n), jnp.dtype(bool))
        case "gt":
            return Triangle(True, k - 1, (m, n), jnp.dtype(bool))
        case "le":
            return Triangle(False, k, (m, n), jnp.dtype(bool))
        case "lt":
            return Triangle(False, k + 1, (m, n), jnp.dtype(bool))
    if name == "ne":
        return None
    if k == 0 and m == n:
        return Constant(Identity.make((jnp.asarray(True), None), (m, n)))
    length = max(0, min(m, n - k) if k >= 0 else min(m + k, n))
    return Constant(bands([jnp.ones((length,), bool)] if length else [], (k,) if length else (), (m, n), dtype=bool))
