"""`Array`: the base class of all arrays, a handle on an immutable value (docs/design/semantics.md).

A value is a pair ``(leaves, aux)``. The leaves are the parameters, which are the children of the pytree; ``aux`` is
``(class, meta, assumptions)``: everything static. Flattening the pytree returns exactly this pair, so that a compiled
call unpacks an array at the cost of one attribute access (`flattening` describes constant indices).

``aux`` repeats the class, because a write may give a handle a value of another class. Code that reads the value once
gets a class and parameters that belong together, even if another thread writes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import jax
import numpy as np

from ..._numerics.symbolic import is_symbolic
from ..dispatch import late
from ..dispatch.recording import describe
from ..dtypes import check_available
from ..errors import StructureError
from ..families import pattern
from ..hints import ARRAY, hint
from ..jax_internals.traces import RUNNING
from . import writes
from .conveniences import Conveniences
from .flattening import parameters, register, unflatten, with_common_indices
from .hooks import HOOKS
from .operators import Operators
from .placement import Placement
from .protocols import Protocols

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..dispatch.function import Function
    from ..jax_internals.traces import Origin
    from ..typing import Assumptions, Aux, DTypeLike, Leaves, Meta, Shape, Value
    from .dense import Dense

    A = TypeVar("A", bound="Array")

when_defined: list[Callable[[type[Array]], object]] = []
"""Callbacks that receive each class of arrays defined from now on."""


def for_each_matrix(numbers: int, batch: Shape) -> int:
    """Divide the count of all stored numbers by the number of matrices, which may be symbolic in `jax.export`."""
    if not batch:
        return numbers
    count = math.prod(batch)
    return numbers // (count if is_symbolic(count) else max(1, count))


class Array(Operators, Protocols, Conveniences, Placement):
    """The base class of all arrays of the namespace.

    It cannot be instantiated; `asarray` converts arrays of NumPy and JAX, and each structure has its own constructor. A
    subclass has ``__slots__ = ()`` (a write may change the class of a handle), and defines how its parameters determine
    the shape and the dense form; see the guide to custom structures.
    """

    __slots__ = ("__weakref__", "_link", "_origin", "_owned", "_value")

    _value: Value
    _owned: Value
    _link: writes.Link
    _origin: Origin  # the JAX transformation that was running when the handle was created

    __array_priority__ = 1000
    __pandas_priority__ = 5000  # above pandas' tables (4000), which would otherwise treat a matrix as a list of rows
    if not TYPE_CHECKING:  # a type checker reads the declarations below
        core_ndim: int = 2
        """Number of trailing dimensions that the structure describes; the dimensions before them are batch
        dimensions."""
        linear: bool = True
        """Whether the dense value is a linear function of the parameters (docs/design/semantics.md)."""
    stores_entries: bool = False
    """Whether the structure stores entries of a matrix next to a background, so that functions can be mapped over
    them."""
    full_size: bool = False
    """Whether the parameters are as large as the dense form, so that densifying does not increase the storage."""
    static_pattern: bool = True
    """Whether class and static part determine the positions of the stored entries. Otherwise parameters do
    (coordinates, for example), so that two arrays of one structure may store different positions."""
    conjugates: bool = False
    """Whether the structure stores some elements as complex conjugates of others, so that results depend on whether another
    operand is real."""
    index_parameters: slice | None = None
    """The parameters that are indices, if any: with one dimension after the batch, like the first of the other
    parameters. Constant indices are not leaves of the pytree; see `flattening`."""

    parameter_names: tuple[str, ...] = ()
    """The names of the parameters in paths of `jax.tree`. A name that ends in ``[]`` stands for all parameters that the
    other names leave."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__dict__" in cls.__dict__ or cls.__dict__.get("__slots__", None) != ():
            raise TypeError(f"class {cls.__name__} must have __slots__ = (), since a write may change an array's class")
        register(cls)
        for tell in when_defined:
            tell(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        raise TypeError(
            f"{cls.__name__} has no constructor; use structarrays.asarray or the constructor of a structure"
        )

    @classmethod
    def make(cls, leaves: Leaves, meta: Meta = None, assumptions: Assumptions = frozenset()) -> Self:
        """Build an array of this class from its parameters, without checks."""
        # The same as `unflatten`, without its call: kernels build their results here.
        x = object.__new__(cls)
        x._value = (leaves, (cls, meta, assumptions))
        x._origin = RUNNING.value
        return x

    if not TYPE_CHECKING:  # otherwise a type checker would accept any attribute name

        def __getattr__(self, name):
            # Called only if a slot is unset: a handle that owns its buffer keeps the value in `_owned` until it is
            # exposed.
            if name == "_value":
                return writes.expose(self)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint(ARRAY, name)}")

    def __dir__(self) -> list[str]:
        """List the names that users need, without the hooks by which structures describe themselves."""
        return sorted(set(super().__dir__()) - HOOKS)

    def assuming(self, assumptions: Assumptions) -> Self:
        """Return the same value with these assumptions."""
        leaves, (cls, meta, _) = self._value
        return cast("Self", unflatten((cls, meta, assumptions), leaves))

    # ---- hooks of a structure; they act on values, so that a reader never mixes two values ------------------------

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        """Return the full shape, from the parameters and the static part."""
        raise NotImplementedError

    def dense_data(self) -> jax.Array:
        """Return the dense form, including batch dimensions."""
        raise NotImplementedError

    def map_parameters(self, function: Callable[[Any], Any]) -> Array:
        """Map every parameter and keep the structure: for functions that act on the leading batch dimensions."""
        leaves, (cls, meta, _) = self._value
        return cls.make(tuple(None if leaf is None else function(leaf) for leaf in leaves), meta)

    def constant_over(self, core: int) -> jax.Array | None:
        """Return the data of an array that is constant over the last `core` dimensions, with size 1 there; otherwise
        None.
        """
        return None

    def description(self) -> tuple[list[str], bool]:
        """Return texts that `repr` shows for the parameters, including the shape, and whether they describe the array
        completely.
        """
        return [f"shape={self.shape}"], False

    if not TYPE_CHECKING:
        background: jax.Array | None = None
        """Value of every element that the structure does not store, one scalar for each matrix; None for structural
        zeros."""

    if TYPE_CHECKING:  # constants in most structures, properties in others

        @property
        def core_ndim(self) -> int: ...

        @property
        def linear(self) -> bool: ...

        @property
        def background(self) -> jax.Array | None: ...

        # Attributes of `EntryArray`; code checks `stores_entries` first.

        @property
        def entries(self) -> tuple[jax.Array, ...]: ...

        def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> Array: ...

        def positions(self) -> tuple[tuple[jax.Array, ...], ...]: ...

        def gather(self, data: jax.Array) -> tuple[jax.Array, ...]: ...

    def freed(self) -> Array:
        """Return the same array in a structure of the same pattern in which each stored entry has its own parameter."""
        return self

    @property
    def covers(self) -> bool:
        """Whether the stored entries fill the whole core, so that there is no background and nothing absorbs."""
        return False

    def closed_under(self, function: Function[..., Any], args: Sequence[Array]) -> bool:
        """Return whether an elementwise function of arrays of this structure has a result of this structure.

        For some functions this is false if an entry appears at a second position with another value.
        """
        return True

    def bandwidths(self) -> tuple[int, int]:
        """Return ``(lower, upper)`` of a matrix: all elements outside ``-lower <= j - i <= upper`` are structural
        zeros.
        """
        m, n = self.shape[-2:]
        return max(0, m - 1), max(0, n - 1)

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Classify rectangles of a matrix: return an array ``(R, C)`` of the kinds defined in `pattern`.

        The rectangles are all pairs of an interval of `rows` ``(R, 2)`` and of `columns` ``(C, 2)``, none of them
        empty. Call `pattern.pattern` instead of this method.
        """
        return pattern.default(self, rows, columns)

    @property
    def product_cost(self) -> int:
        """Approximate number of multiplications in the product of a matrix with one column."""
        return for_each_matrix(sum(leaf.size for leaf in parameters(self)), self.shape[:-2])

    def cast(self, dtype: DTypeLike) -> Array:
        """Return the array with another data type."""
        raise NotImplementedError

    @property
    def solved_by_parts(self) -> bool:
        """Whether solvers may fail for a regular matrix, since they first solve for a part of it (without the
        background).
        """
        return self.stores_entries and self.background is not None

    # ---- attributes --------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """Shape of the array, batch dimensions first."""
        leaves, aux = self._value
        return aux[0].shape_of(leaves, aux[1])

    @property
    def dtype(self) -> np.dtype:
        """Data type of the elements."""
        leaf: jax.Array = self._value[0][0]
        return leaf.dtype

    @property
    def parameters(self) -> Leaves:
        """Arrays that determine the value, and None for absent ones; `shape_of` and `dense_data` read them."""
        return self._value[0]

    @property
    def meta(self) -> Meta:
        """Static part of the value, such as the offsets of a banded array."""
        return self._value[1][1]

    @property
    def assumptions(self) -> Assumptions:
        """Properties that the user asserted for this array; see `structarrays.assume`."""
        return self._value[1][2]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements, stored or not."""
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def nbytes(self) -> int:
        """Number of bytes of the parameters (the storage, not the dense form)."""
        return sum(leaf.size * leaf.dtype.itemsize for leaf in parameters(self))

    @property
    def itemsize(self) -> int:
        """Number of bytes of one element."""
        return self.dtype.itemsize

    @property
    def batch_shape(self) -> Shape:
        """Dimensions before the core: the leading shape of every parameter."""
        shape = self.shape
        return shape[: len(shape) - self.core_ndim]

    @property
    def T(self) -> Array:
        """Transpose of a matrix.

        Raises
        ------
        ValueError
            If the array does not have exactly two dimensions; `mT` transposes stacks of matrices.
        """
        if self.ndim != 2:
            raise ValueError(f"x.T: x must have two dimensions, got shape {self.shape}; use x.mT or permute_dims")
        return late.matrix_transpose(self)

    @property
    def mT(self) -> Array:
        """Transpose of each matrix in a stack."""
        return late.matrix_transpose(self)

    @property
    def real(self) -> Array:
        """Real part."""
        return late.real(self) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> Array:
        """Imaginary part; zero for a real array."""
        return late.imag(self) if self.dtype.kind == "c" else late.zeros_like(self)

    # ---- conversions and copies -------------------------------------------------------------------------------------------

    def to_dense(self) -> Dense:
        """Convert to `Dense`. The policy of `densify` does not apply to this explicit request."""
        return late.to_dense(self)

    def to_jax(self) -> jax.Array:
        """Convert to a dense `jax.Array`."""
        return self.to_dense().data

    def to_banded(self) -> Array:
        """Convert to a `Banded` (a `Diagonal` is one), if the class and the shapes and offsets of the parts show that
        the array is banded.

        Raises
        ------
        StructureError
            If they do not.

        Examples
        --------
        >>> import structarrays as sa
        >>> A = sa.tridiagonal([1.0], [2.0, 3.0], [4.0])
        >>> sa.Kronecker(A, sa.eye(2)).to_banded().offsets
        (-2, 0, 2)
        """
        raise StructureError(
            "to_banded: the array must store diagonals, or be a Kronecker product or sum of such arrays, "
            f"got {describe(self)}"
        )

    def __reduce__(self) -> tuple[Callable[..., Array], tuple[Aux, Leaves]]:
        whole = self.__copy__()
        if whole.pieces > 1:  # the array may be loaded on a different number of devices
            from .sharding import repadded

            whole = repadded(whole, 1)
        leaves, aux = whole._value
        return _unpickle, (
            tuple(aux),
            tuple(leaf if isinstance(leaf, Array | None) else np.asarray(leaf) for leaf in leaves),
        )

    def __copy__(self) -> Array:
        """Return another handle on the same value.

        Code that reads several times reads a copy, since another thread may write in between.
        """
        leaves, aux = self._value
        return unflatten(aux, leaves)

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        return self.__copy__()


def _unpickle(aux: Aux, leaves: Leaves) -> Array:
    for leaf in leaves:
        if not isinstance(leaf, Array | None):
            check_available(leaf.dtype, "pickle: the array contains")
    x = unflatten(aux, tuple(x if isinstance(x, Array | None) else jax.numpy.asarray(x) for x in leaves))
    check_available(x.dtype, "pickle: the array contains")  # the static part may name another dtype
    return with_common_indices(x)


def is_array(value: object) -> bool:
    """Return whether a value is an `Array`; `is_leaf` of `jax.tree` functions that treat arrays as leaves."""
    return isinstance(value, Array)
