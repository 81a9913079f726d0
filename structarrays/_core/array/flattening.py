"""Arrays as pytrees.

The leaves of an array are its parameters, with one exception: constant indices belong to the static part of the pytree.
They determine the positions of entries, like the offsets of a banded array. So an optimizer, `jax.tree.map` and
`jax.grad` see the entries of a sparse array and leave its coordinates alone. Indices stay leaves if they are traced, if
each matrix of a stack has its own indices, or if they lie on a mesh.

JAX requires that an array flattens to the leaves from which JAX built it. So an array remembers these leaves
(`FromConstants`). If `jax.jit` returns an array with computed indices, the indices stay leaves (`Variable`), although
they have values by then. If a function of this library builds an array from them, its indices are constant.

The compiled calls of this library get all parameters as arguments (`opened`): they compile once for all patterns of one size.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from ..._numerics.symbolic import is_symbolic
from ..dispatch.contexts import ENTERED, apply
from ..dispatch.tracing import compiling
from ..jax_internals.traces import RUNNING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..typing import Assumptions, Aux, Leaves, Meta, Shape, Value
    from .base import Array

    A = TypeVar("A", bound="Array")

T = TypeVar("T")

_new = object.__new__

dynamic_classes: set[type] = set()
"""Classes whose `static_pattern` is false: functions look for eager kernels if an argument belongs to one of them."""

opened_types: set[type] = {tuple, list}
"""The same classes, and sequences, which may contain arrays: the types that `opened_arguments` opens."""


def unflatten(aux: tuple[type[A], Meta, Assumptions], leaves: Leaves) -> A:
    """Build an array from a value, without checks, since the leaves may be tracers, shapes, or other objects of JAX."""
    x = _new(aux[0])
    x._value = (leaves, aux)
    x._origin = RUNNING.value
    return x


def _flatten(x: Array) -> Value:
    """Return the leaves and the static part.

    JAX calls this before it looks up compiled code, so the policies of this task apply first.
    """
    if ENTERED:
        apply()
    return x._value


Keyed = tuple[tuple[jax.tree_util.GetAttrKey, Any], ...]


_KEYS: dict[tuple[type, int], tuple[jax.tree_util.GetAttrKey, ...]] = {}
"""Keys by class and number of parameters. Usual numbers are filled in when the class is defined."""

_USUAL = 8
"""Number of parameters of one sequence up to which keys are made with the class."""


def _keys(cls: type[Array], count: int) -> tuple[jax.tree_util.GetAttrKey, ...]:
    """Return the keys of `count` parameters, by the names that the class gives them."""
    found = _KEYS.get((cls, count))
    if found is None:
        found = _KEYS[cls, count] = tuple(map(jax.tree_util.GetAttrKey, parameter_names(cls, count)))
    return found


def parameter_names(cls: type[Array], count: int) -> list[str]:
    """Return the names of `count` parameters of a class."""
    single = [name for name in cls.parameter_names if not name.endswith("[]")]
    several = count - len(single)
    if not cls.parameter_names or several < 0 or (several > 0 and len(single) == len(cls.parameter_names)):
        return [f"parameter{i}" for i in range(count)]
    names = []
    for name in cls.parameter_names:
        names += [f"{name[:-1]}{i}]" for i in range(several)] if name.endswith("[]") else [name]
    return names


def _flatten_with_keys(x: Array) -> tuple[Keyed, Aux]:
    leaves, aux = x._value
    keys = _KEYS.get((aux[0], len(leaves))) or _keys(aux[0], len(leaves))
    return tuple(zip(keys, leaves, strict=True)), aux


def register(cls: type[Array]) -> None:
    """Register a class of arrays as a pytree."""
    names: Any = cls.parameter_names  # of any class
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"class {cls.__name__}: parameter_names must be a tuple of strings, got {names!r}")
    single = sum(not name.endswith("[]") for name in names)
    if len(set(names)) < len(names) or len(names) - single > 1:
        raise TypeError(
            f"class {cls.__name__}: parameter_names must be different, with at most one name that ends in [], got {names!r}"
        )
    if not cls.static_pattern:
        dynamic_classes.add(cls)
        opened_types.add(cls)
    indexed = cls.index_parameters is not None
    keyed: Any = _flatten_indexed_with_keys if indexed else _flatten_with_keys
    back: Any = _unflatten_indexed if indexed else unflatten  # JAX gives a tuple, though its types say any iterable
    jax.tree_util.register_pytree_with_keys(cls, keyed, back, _flatten_indexed if indexed else _flatten)
    for count in range(single, single + (_USUAL if single < len(names) else 0) + 1):
        _keys(cls, count)


# ---- constant indices -----------------------------------------------------------------------------------------------

_digests: dict[int, tuple[weakref.ref[Any], bytes]] = {}


def _digest(array: Any) -> bytes:
    """Return a hash of the content of an array, cached for an immutable array of JAX."""
    if isinstance(array, np.ndarray):
        return _content(array)
    key = id(array)
    known = _digests.get(key)
    if known is not None and known[0]() is array:
        return known[1]
    digest = _content(array)
    _digests[key] = weakref.ref(array, lambda _: _digests.pop(key, None)), digest
    return digest


def _content(array: Any) -> bytes:
    return hashlib.blake2b(np.asarray(array).tobytes(), digest_size=16).digest()


class Constant:
    """An array of indices in the static part of a pytree, compared and hashed by content."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __eq__(self, other: object) -> bool:
        if type(other) is not Constant:
            return NotImplemented
        one, two = self.array, other.array
        return one is two or (one.shape == two.shape and one.dtype == two.dtype and _digest(one) == _digest(two))

    def __hash__(self) -> int:
        return hash(_digest(self.array))

    def __repr__(self) -> str:
        values = np.asarray(self.array)
        return f"indices{values.tolist()}" if values.size <= 6 else f"indices(size={values.size}, hash={hash(self)})"

    def __reduce__(self) -> tuple[type[Constant], tuple[np.ndarray]]:
        return Constant, (np.asarray(self.array),)


class Indexed(NamedTuple):
    """Static part of an array with constant indices."""

    aux: Aux
    constants: tuple[Constant, ...]


class Variable(tuple[Any, ...]):
    """Static part ``(class, meta, assumptions)`` of an array whose indices are leaves."""

    __slots__ = ()


class FromConstants(tuple[Any, ...]):
    """Static part ``(class, meta, assumptions)`` of an array that JAX built.

    It remembers the leaves and the static part from which JAX built the array, and the resulting parameters. The
    parameters tell whether an array with this static part is still that array.
    """

    origin: tuple[Leaves, Indexed]
    made: Leaves


def _constant(leaf: Any) -> Constant | None:
    """Return indices as a constant if they have values, lie on one device, and form a single pattern; otherwise None.

    Indices on a mesh stay leaves, since `jax.jit` would give each device all of them.
    """
    if _has_values(leaf):
        return Constant(leaf)
    known = _expanded.get(id(leaf))
    return known[1] if known is not None and known[0]() is leaf else None


_expanded: dict[int, tuple[weakref.ref[Any], Constant]] = {}


def as_indices(values: Any, dtype: Any = None) -> Any:
    """Convert indices to an array of JAX. Unless they are traced, they are constant even while JAX traces."""
    if isinstance(values, jax.core.Tracer):
        return jnp.asarray(values, dtype)
    with jax.ensure_compile_time_eval():
        return jnp.asarray(values, dtype)


def common_indices(leaf: Any) -> Any:
    """Return the constant indices that a parameter holds, or repeats for each matrix of a stack; None if it has none."""
    constant = _constant(leaf)
    return None if constant is None else constant.array


def expand_indices(indices: Any, batch: Shape) -> Any:
    """Repeat indices for each matrix of a stack. Constant indices stay constant."""
    if not batch:
        return indices
    expanded = jnp.broadcast_to(indices, (*batch, *indices.shape))
    if _has_values(indices):
        key = id(expanded)
        _expanded[key] = weakref.ref(expanded, lambda _: _expanded.pop(key, None)), Constant(indices)
    return expanded


def with_common_indices(x: A) -> A:
    """Make the indices of an array constant if they have values, and are equal in all matrices of a stack.

    Constructors, files and compiled functions give the indices of each matrix.
    """
    if x.index_parameters is None:
        return x
    leaves, aux = x._value
    start, stop, _ = x.index_parameters.indices(len(leaves))
    given = leaves[start:stop]
    if not all(leaf.ndim > 1 and 0 not in leaf.shape[:-1] and _is_on_one_device(leaf) for leaf in given):
        return x
    values = [np.asarray(leaf) for leaf in given]
    ones = [v[(0,) * (v.ndim - 1)] for v in values]
    if any((v != one).any() for v, one in zip(values, ones, strict=True)):
        return x
    common = tuple(_indices_for(leaf, as_indices(v), leaf.shape[:-1]) for leaf, v in zip(given, ones, strict=True))
    return cast("A", unflatten(aux, leaves[:start] + common + leaves[stop:]))


def _has_values(leaf: Any) -> bool:
    """Return whether a parameter has values, one dimension, and a single device."""
    return _is_on_one_device(leaf) and leaf.ndim == 1


def _is_on_one_device(leaf: Any) -> bool:
    """Return whether a parameter is an array of values on a single device."""
    if isinstance(leaf, jax.Array):
        return not isinstance(leaf, jax.core.Tracer) and isinstance(leaf.sharding, SingleDeviceSharding)
    return isinstance(leaf, np.ndarray)


def _split(value: Value) -> tuple[tuple[int, ...], Leaves, Aux | Indexed]:
    """Split an array: return the numbers of the parameters that are leaves, the leaves, and the static part."""
    leaves, aux = value
    if isinstance(aux, FromConstants) and aux.made is leaves:
        given, static = aux.origin
        start, stop, _ = _span(aux[0]).indices(len(leaves))
        return ((*range(start), *range(stop, len(leaves))) or (0,)), given, static
    span = aux[0].index_parameters
    if span is not None and type(aux) is not Variable:
        start, stop, _ = span.indices(len(leaves))
        found = leaves[start:stop]
        constants = tuple(filter(None, map(_constant, found)))
        if len(constants) == len(found):
            numbers = (*range(start), *range(stop, len(leaves)))
            static = Indexed(aux, constants)
            if not numbers:
                return (0,), (_placeholder(found[0], found[0].shape[:-1]),), static
            return numbers, leaves[:start] + leaves[stop:], static
        aux = cast("Aux", Variable(aux))
    return tuple(range(len(leaves))), leaves, aux


def _flatten_indexed(x: Array) -> tuple[Leaves, Aux | Indexed]:
    if ENTERED:
        apply()
    _, leaves, static = _split(x._value)
    return leaves, static


def _flatten_indexed_with_keys(x: Array) -> tuple[Keyed, Aux | Indexed]:
    value = x._value
    numbers, leaves, static = _split(value)
    keys = _keys(type(x), len(value[0]))
    return tuple((keys[i], leaf) for i, leaf in zip(numbers, leaves, strict=True)), static


def _unflatten_indexed(static: Aux | Indexed, leaves: Leaves) -> Array:
    if not isinstance(static, Indexed):
        return unflatten(static, leaves)
    aux, constants = static
    leaves = tuple(leaves)  # `jax.export` gives a list
    start, stop, _ = _span(aux[0]).indices(len(leaves) + len(constants))
    has_placeholder = stop - start > len(constants)
    first = leaves[0]
    shape = first.shape if isinstance(first, jax.Array | np.ndarray | jax.ShapeDtypeStruct) else ()
    batch = shape if has_placeholder else shape[:-1]
    indices = tuple(_indices_for(first, constant.array, batch) for constant in constants)
    made = indices if has_placeholder else leaves[:start] + indices + leaves[start:]
    remembering: Any = FromConstants(aux)
    remembering.origin, remembering.made = (leaves, static), made
    x: Array = unflatten(remembering, made)
    return x


def _span(cls: type[Array]) -> slice:
    span = cls.index_parameters
    assert span is not None
    return span


def _indices_for(leaf: Any, indices: Any, batch: Shape) -> Any:
    """Put constant indices on the device of another parameter, repeated for each matrix of a stack built by `jax.vmap`
    or `jax.numpy.stack`.
    """
    if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer):
        where = leaf.sharding
        moves = (
            not isinstance(indices, jax.core.Tracer) and isinstance(indices, jax.Array) and indices.sharding != where
        )
        if moves and batch and not isinstance(where, SingleDeviceSharding):
            return jax.device_put(jnp.broadcast_to(indices, (*batch, *indices.shape)), where)
        if moves:
            indices = jax.device_put(indices, where)
    if isinstance(leaf, jax.ShapeDtypeStruct) and any(map(is_symbolic, batch)):  # an argument of `jax.export`
        return jax.ShapeDtypeStruct((*batch, *indices.shape), indices.dtype)
    return expand_indices(indices, batch)


def _placeholder(indices: Any, batch: Shape) -> Any:
    """Return the leaf of an array whose only parameters are constant indices; `jax.vmap` and `jax.device_put` act on
    it.

    Its value is never read. It is zero, so that it adds nothing to the norm of a gradient.
    """
    if batch:
        return jnp.zeros(batch, jnp.float32)
    if isinstance(indices, jax.Array):
        return _zero(indices.sharding if indices.committed else None)
    return np.zeros((), np.float32)


@functools.lru_cache(maxsize=64)
def _zero(sharding: jax.sharding.Sharding | None) -> jax.Array:
    with jax.ensure_compile_time_eval():  # the first call may be inside a trace
        zero = jnp.zeros((), jnp.float32)
        return zero if sharding is None else jax.device_put(zero, sharding)


# ---- all parameters, including indices
# ---------------------------------------------------------------------------------


class Opened:
    """Wrapper of an array among the arguments of JAX functions, which then see all of its parameters as leaves.

    If JAX `compiles` the function, XLA must not compute with constant indices at compile time.
    """

    __slots__ = ("value", "x")

    def __init__(self, x: Array, compiles: bool = False) -> None:
        leaves, aux = x._value
        if type(aux) is not tuple:
            aux = cast("Aux", tuple(aux))  # as in `all_parameters`, without its call
        if compiles and aux[0].index_parameters is not None:
            start, stop, _ = aux[0].index_parameters.indices(len(leaves))
            leaves = leaves[:start] + tuple(map(barred, leaves[start:stop])) + leaves[stop:]
        if aux[0].index_parameters is None and not dynamic_classes.isdisjoint(map(type, leaves)):
            leaves = tuple(_opened_argument(leaf, compiles) for leaf in leaves)
        self.x = x
        self.value = leaves, aux


def all_parameters(x: Array) -> Value:
    """Return all parameters of an array, and its static part without the kind of its indices (constant or leaves)."""
    leaves, aux = x._value
    return leaves, aux if type(aux) is tuple else cast("Aux", tuple(aux))


_made: Any = unflatten  # JAX's results are arrays
jax.tree_util.register_pytree_node(Opened, operator.attrgetter("value"), _made)


def opened_arguments(arguments: Sequence[Any]) -> Sequence[Any]:
    """Return the arguments of a compiled call such that constant indices are arguments, too."""
    if opened_types.isdisjoint(map(type, arguments)):
        return arguments
    compiles = compiling()
    # The test of `_opened_argument` stands here, too, to save its call.
    return [Opened(v, compiles) if type(v) in dynamic_classes else _opened_argument(v, compiles) for v in arguments]


def _opened_argument(value: Any, compiles: bool) -> Any:
    if type(value) in dynamic_classes:
        return Opened(value, compiles)
    if isinstance(value, tuple | list):
        make = getattr(type(value), "_make", type(value))  # named tuples have `_make`
        return make(_opened_argument(v, compiles) for v in value)
    return value


def barred_arguments(arguments: Sequence[Any]) -> Sequence[Any]:
    """Return the arguments of a function traced with its caller; constant indices become values of the program."""
    if opened_types.isdisjoint(map(type, arguments)):
        return arguments
    return tuple(_barred_argument(value) for value in arguments)


def _barred_argument(value: Any) -> Any:
    if type(value) in dynamic_classes:
        leaves, aux = Opened(value, compiles=True).value
        return unflatten(aux, tuple(_barred_argument(leaf.x) if type(leaf) is Opened else leaf for leaf in leaves))
    if isinstance(value, tuple | list):
        make = getattr(type(value), "_make", type(value))
        return make(map(_barred_argument, value))
    return value


def barred(indices: Any) -> Any:
    """Keep XLA from computing with these indices at compile time, where sorting 100,000 constants takes a minute."""
    constant = not isinstance(indices, jax.core.Tracer) or _constant(indices) is not None
    return jax.lax.optimization_barrier(indices) if constant and compiling() else indices


def _is_dynamic(value: object) -> bool:
    return type(value) in dynamic_classes


def opened(tree: Any) -> Any:
    """Return a pytree in which all parameters of each array are leaves."""
    return jax.tree.map(lambda x: Opened(x) if type(x) in dynamic_classes else x, tree, is_leaf=_is_dynamic)


def parameters(tree: Any) -> list[Any]:
    """Return all parameters of the arrays in a pytree, and its other leaves."""
    return jax.tree.leaves(opened(tree))


def map_parameters(function: Callable[[Any], Any], tree: T) -> T:
    """Map all parameters of the arrays in a pytree, and its other leaves."""
    mapped: T = jax.tree.map(function, opened(tree))
    return mapped
