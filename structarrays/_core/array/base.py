"""`Array`: the base class of all arrays, a handle on an immutable value (docs/design/semantics.md).

A value is a pair ``(leaves, aux)``. The leaves are the parameters, which are the children of the pytree; ``aux`` is
``(class, meta, assumptions)``: everything static. Flattening the pytree returns exactly this pair, so that a compiled
call unpacks an array at the cost of one attribute access (`flattening` describes constant indices).

``aux`` repeats the class, because a write may give a handle a value of another class. Code that reads the value once
gets a class and parameters that belong together, even if another thread writes.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import jax
import numpy as np

from ..dispatch import late
from ..dispatch.recording import describe
from ..dispatch.registry import FUNCTIONS
from ..dispatch.tracing import BUSY
from ..dtypes import check_available
from ..errors import StructureError
from ..families import pattern
from ..hints import ARRAY, hint
from . import writes
from .conveniences import Conveniences
from .flattening import parameters, register, unflatten
from .hooks import HOOKS
from .placement import Placement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from ..dispatch.function import Function
    from ..jax_internals.traces import Origin
    from ..typing import Assumptions, Aux, DTypeLike, InPlaceOperator, Leaves, Meta, Operand, Operator, Shape, Value
    from .dense import Dense

    A = TypeVar("A", bound="Array")

when_defined: list[Callable[[type[Array]], object]] = []
"""Callbacks that receive each class of arrays defined from now on."""


# How an operator treats an operand, by exact type:
# - `FAST`: goes directly to the compiled call.
# - `CHECKED`: the same, unless the operand is a derivative that operators refuse.
# - `DYNAMIC`: an eager kernel may run.
# - `_CAREFUL`: goes through all checks (a Python integer may not fit a dtype).
# - `_FOREIGN`: gets its turn through NotImplemented.
# `is_operand` decides once for each type; the look-up takes 0.05 microseconds.
_FOREIGN, FAST, CHECKED, DYNAMIC, _CAREFUL = range(5)
OPERANDS: dict[type, int] = {}

STATIC, _ARRAYS = (FAST, CHECKED), (FAST, CHECKED, DYNAMIC)

_OF_ARRAYS: dict[str, Any] = FUNCTIONS
"""The functions behind the operators, typed loosely: a type checker does not know that their arguments are
positional arrays."""

COMPILED: dict[str, Callable[..., Any]] = {}
"""The compiled call of each function of positional arrays that has been called before, for the operators."""

RETRIED = (TypeError, ValueError, OverflowError, NotImplementedError)
"""Errors of a compiled call that invalid arguments can cause."""

_EQUALITY = ("equal", "not_equal")


def _completed(result: Any) -> Array:
    """Build an array from the result of a compiled call that returned indices among its parameters."""
    from .sharing import complete

    return cast("Array", complete(result, ()))


def _operators(name: str) -> tuple[Operator, Operator, InPlaceOperator]:
    """Return the operator, the reflected operator and the in-place operator of a function of two arrays."""
    operands = OPERANDS

    def forward(self: Array, other: Operand) -> Any:
        own, others = operands.get(type(self)), operands.get(type(other))
        direct = own == FAST == others
        if not direct and own in _ARRAYS and others in _ARRAYS:
            if own == CHECKED or others == CHECKED:
                writes.refuse_derivatives(name, self, other)
            if own == DYNAMIC or others == DYNAMIC:
                return _OF_ARRAYS[name]._looked_at((self, other), {})
            direct = True
        if direct and not BUSY and name in COMPILED:
            try:
                result = COMPILED[name](self, other)
                return result if isinstance(result, Array) else _completed(result)
            except RETRIED as error:
                failure = error
            return _OF_ARRAYS[name]._after_call(failure, (self, other))
        writes.refuse_derivatives(name, self, other)
        # Call `is_operand` on both, so that `OPERANDS` contains both types at the next call.
        known = is_operand(self) and is_operand(other)
        if not known and name in _EQUALITY and isinstance(other, (list, tuple)):
            # Without this check, Python would report that they differ, whatever they contain.
            raise TypeError(
                f"{name}: x2 must be an array or a number, got {type(other).__name__}; use structarrays.asarray"
            )
        if not known:
            return late.combine(name, self, other)
        result = FUNCTIONS[name](self, other)
        if name == "matmul" and isinstance(other, np.ndarray):
            return late.as_called(result, sys._getframe(1))
        return result

    def reflected(self: Array, other: Operand) -> Any:
        writes.refuse_derivatives(name, self)
        return FUNCTIONS[name](other, self) if is_operand(other) else late.combine(name, other, self)

    def in_place(self: Array, other: Operand) -> Any:
        writes.refuse_derivatives(name, self, other)
        if not is_operand(other):
            return NotImplemented
        with writes.LOCK:  # otherwise a write of another thread in between would be lost
            writes.assign_result(self, FUNCTIONS[name](self, other), name)
        return self

    return forward, reflected, in_place


def _unary(name: str) -> Callable[[Array], Array]:
    """Return the operator of a function of one array."""
    operands = OPERANDS

    def operator(self: Array) -> Array:
        own = operands.get(type(self))
        found: Array
        if own == DYNAMIC:
            found = _OF_ARRAYS[name]._looked_at((self,), {})
            return found
        if own in STATIC and not BUSY and name in COMPILED:
            if own == CHECKED:
                writes.refuse_derivatives(name, self)
            try:
                result = COMPILED[name](self)
                return result if isinstance(result, Array) else _completed(result)
            except RETRIED as error:
                failure = error
            found = _OF_ARRAYS[name]._after_call(failure, (self,))
            return found
        writes.refuse_derivatives(name, self)
        is_operand(self)  # so that `OPERANDS` contains the type at the next call
        return FUNCTIONS[name](self)

    return operator


def _comparison(name: str) -> Operator:
    """Return the operator of a comparison."""
    return _operators(name)[0]


class Array(Conveniences, Placement):
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
    index_parameters: slice | None = None
    """The parameters that are indices, if any: with one dimension after the batch, like the first of the other
    parameters. Constant indices are not leaves of the pytree; see `flattening`."""

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
        return unflatten((cls, meta, assumptions), leaves)

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
        stored: int = sum(leaf.size for leaf in parameters(self))
        return stored // max(1, math.prod(self.shape[:-2]))

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

    # ---- conversions -------------------------------------------------------------------------------------------

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

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        if api_version is not None and api_version not in API_VERSIONS:
            raise ValueError(f"api_version must be one of {', '.join(API_VERSIONS)}, got {api_version!r}")
        return sys.modules["structarrays"]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return late.to_numpy(self, dtype, copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return late.apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return late.apply_function(function, types, args, kwargs)

    def _scalar(self, kind: str) -> Any:
        if self.shape != ():
            raise TypeError(f"only an array of zero dimensions can become a Python {kind}, got shape {self.shape}")
        leaf = self.to_jax()
        return leaf if isinstance(leaf, jax.core.Tracer) else np.asarray(leaf)[()]

    def __bool__(self) -> bool:
        if self.shape != ():
            raise ValueError(
                f"the truth value of an array of shape {self.shape} is ambiguous; use structarrays.any or structarrays.all"
            )
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._real_scalar("int"))

    def __float__(self) -> float:
        return float(self._real_scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"only an integer array of zero dimensions can be an index, got dtype {self.dtype}")
        return operator.index(self._scalar("index"))

    def _real_scalar(self, kind: str) -> Any:
        if self.dtype.kind == "c":
            raise TypeError(f"a complex array cannot become a Python {kind}; take xp.real(x) first")
        return self._scalar(kind)

    def __format__(self, spec: str) -> str:
        if spec and self.shape == ():
            return format(self._scalar("scalar").item(), spec)
        try:
            return format(str(self), spec)
        except ValueError:
            raise TypeError(
                f"an array of shape {self.shape} cannot be formatted with {spec!r}, a format for scalars; "
                "use numpy.array2string(x, precision=2) instead"
            ) from None

    def __repr__(self) -> str:
        return late.to_repr(self.__copy__())

    def __str__(self) -> str:
        return late.to_str(self.__copy__())

    def _repr_html_(self) -> str:
        return late.to_html(self.__copy__())

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

    # ---- container protocol ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of an array of zero dimensions")
        return shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise TypeError("an array of zero dimensions cannot be iterated over")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Operand) -> bool:
        return bool(late.any(late.equal(self, value)))

    def __getitem__(self, key: Any) -> Array:
        return late.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        late.setitem(self, key, value)

    # ---- operators ---------------------------------------------------------------------------------------------

    __hash__ = None  # type: ignore[assignment]  # arrays can be written to

    __neg__, __pos__, __abs__ = _unary("negative"), _unary("positive"), _unary("abs")
    __invert__ = _unary("bitwise_invert")

    def __round__(self, ndigits: int | None = None) -> Array:
        return self.round(0 if ndigits is None else ndigits)

    def __divmod__(self, other: Operand) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Operand) -> tuple[Any, Any]:
        return other // self, other % self

    __add__, __radd__, __iadd__ = _operators("add")
    __sub__, __rsub__, __isub__ = _operators("subtract")
    __mul__, __rmul__, __imul__ = _operators("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _operators("divide")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _operators("floor_divide")
    __mod__, __rmod__, __imod__ = _operators("remainder")
    __pow__, __rpow__, __ipow__ = _operators("pow")
    __matmul__, __rmatmul__, __imatmul__ = _operators("matmul")
    __and__, __rand__, __iand__ = _operators("bitwise_and")
    __or__, __ror__, __ior__ = _operators("bitwise_or")
    __xor__, __rxor__, __ixor__ = _operators("bitwise_xor")
    __lshift__, __rlshift__, __ilshift__ = _operators("bitwise_left_shift")
    __rshift__, __rrshift__, __irshift__ = _operators("bitwise_right_shift")
    __eq__ = _comparison("equal")  # type: ignore[assignment]  # returns an array, not a bool
    __ne__ = _comparison("not_equal")  # type: ignore[assignment]
    __lt__, __le__ = _comparison("less"), _comparison("less_equal")
    __gt__, __ge__ = _comparison("greater"), _comparison("greater_equal")


API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def _unpickle(aux: Aux, leaves: Leaves) -> Array:
    for leaf in leaves:
        if not isinstance(leaf, Array | None):
            check_available(leaf.dtype, "pickle: the array contains")
    x = unflatten(aux, tuple(x if isinstance(x, Array | None) else jax.numpy.asarray(x) for x in leaves))
    check_available(x.dtype, "pickle: the array contains")  # the static part may name another dtype
    return x


_OPERAND_CLASSES = (Array, jax.Array, np.ndarray, np.generic, bool, int, float, complex)


def _no_numbers(dtype: np.dtype) -> bool:
    """Return whether elements of this dtype are not numbers: objects, dates, strings, or records with fields."""
    return dtype.kind in "OMmSUT" or dtype.names is not None


def is_array(value: object) -> bool:
    """Return whether a value is an `Array`; `is_leaf` of `jax.tree` functions that treat arrays as leaves."""
    return isinstance(value, Array)


def is_operand(value: Any) -> bool:
    """Return whether operators and functions accept this value as an array or a scalar."""
    cls = type(value)
    known = OPERANDS.get(cls)
    if known is None:
        known = _FOREIGN
        foreign = isinstance(value, np.ma.MaskedArray) or (cls is np.ndarray and _no_numbers(value.dtype))
        if isinstance(value, _OPERAND_CLASSES) and not foreign:
            known = _CAREFUL
            if isinstance(value, jax.Array):
                known = FAST
            elif isinstance(value, Array):
                # An array of a class that may be nonlinear in its parameters may be a derivative, which operators
                # refuse.
                linear = cls.linear is True
                if cls.static_pattern:
                    known = FAST if linear else CHECKED
                elif linear:
                    known = DYNAMIC
        if cls is not np.ndarray:
            OPERANDS[cls] = known
    return known != _FOREIGN
