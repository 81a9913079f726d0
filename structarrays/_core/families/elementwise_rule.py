"""The family of elementwise functions: map over the stored entries, join or meet the structures (docs/design/semantics.md).

An elementwise function is a formula on plain arrays of one dtype, with declared properties for structural zeros. This
module derives its results for every structure and any number of operands.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from ..._numerics.symbolic import smaller
from .. import dtypes
from ..array.base import Array
from ..array.dense import Dense
from ..array.operands import SMALL, allow_dense, densify, lets_dense, lift, promote, without_weak_types
from ..assumptions import carried_by_sum
from ..dispatch.array_function import ArrayFunction
from ..dispatch.call_arguments import comparable
from ..dispatch.contexts import strong_zeros_policy
from ..dispatch.function import Function, P
from .elementwise_docstrings import DataType, complete_docstring
from .factored import Factored
from .join import is_zero_outside, join_all, meet, restrict, stores_pattern
from .unexpanded import UNEXPANDED

if TYPE_CHECKING:
    from ..array.arguments import Formulas
    from ..typing import Result, Shape, Static

    dense_elementwise: Formulas  # for the formulas, whose signatures contain arrays
else:
    from ..._numerics import dense_elementwise as dense_elementwise


def held_unexpanded(function: Function[..., Any], args: Sequence[Array], shape: Shape) -> Array | None:
    """Return the result in a structure unknown to the function's rules, or None if no structure saves memory."""
    code = UNEXPANDED.get(function.name)
    return None if code is None else code(function, [_without_mark(x) for x in args], shape)


# The kinds of dtype of an argument, by the standard's names. Where the standard asks for a floating dtype, integers are
# accepted and become the default floating dtype, as in NumPy and JAX.
KINDS = {
    "all": "biufc",
    "numeric": "iufc",
    "real": "biuf",
    "real numeric": "iuf",
    "floating": "iufc",
    "real floating": "iuf",
    "integer": "iu",
    "integer or bool": "biu",
    "bool": "b",
}


class _Elementwise(Function[P, Array]):
    """Checks, promotion and rule of an elementwise function."""

    promotes = True

    def _declare(self, kinds: str, zero: bool, absorbs: tuple[int, ...], exact: bool) -> None:
        self.kinds, self.zero, self.absorbs, self.exact = kinds, zero, absorbs, exact
        self.rule = elementwise

    def formula(self, *data: Any, **static: Any) -> Any:
        """Evaluate the function on plain arrays of one dtype."""
        return self.__wrapped__(*data, **static)

    def define(self, *arrays: Array, **static: Any) -> Array:
        """Check, promote and dispatch while a call is traced."""
        prepared = self.prepare(*arrays)
        return carried_by_sum(self.name, prepared, self.dispatch(*prepared, **static))

    def prepare(self, *arrays: Array) -> Sequence[Array]:
        """Check the kinds of the operands and convert them to their common dtype."""
        check_kinds(self, arrays)
        prepared = promote(*arrays)
        kind = prepared[0].dtype.kind
        if kind == "c" and any(x.conjugates for x in prepared):
            prepared = [_marked_real(x, y) for x, y in zip(arrays, prepared, strict=True)]
        elif kind in "iu" and "floating" in self.kinds:
            default = dtypes.default_dtype("f")
            prepared = [x.cast(default) for x in prepared]
        if len(prepared) == 1:
            return prepared
        try:
            jnp.broadcast_shapes(*[x.shape for x in prepared])
        except ValueError:
            shapes = " and ".join(str(x.shape) for x in prepared)
            raise ValueError(f"{self.name}: shapes {shapes} cannot be broadcast together") from None
        return prepared


_REAL = "real"


def _marked_real(x: Array, promoted: Array) -> Array:
    """Mark a promoted operand as real if its dtype was real and is now complex."""
    if x.dtype.kind == "c":
        return promoted
    return promoted.assuming(promoted.assumptions | {_REAL})


def _without_mark(x: Array) -> Array:
    """Return an operand that may become a part of the result, which has no mark."""
    return x.assuming(x.assumptions - {_REAL}) if _REAL in x.assumptions else x


def is_real(x: Array) -> bool:
    """Return whether all elements of an operand are known to be real numbers."""
    return x.dtype.kind != "c" or _REAL in x.assumptions


def check_kinds(function: _Elementwise[...], arrays: Sequence[Array]) -> None:
    """Raise TypeError for operands of a kind that the function does not accept.

    A boolean operand next to a numeric one is promoted, as in NumPy and JAX. Arithmetic of booleans alone is refused.
    """
    allowed = KINDS[function.kinds]
    kinds = [dtypes.kind_of(x.dtype) for x in arrays]
    for i, (x, kind) in enumerate(zip(arrays, kinds, strict=True)):
        if kind not in allowed and not (kind == "b" and any(k in allowed for k in kinds)):
            name = list(function.__signature__.parameters)[i] if i < len(function.__signature__.parameters) else "x"
            raise TypeError(
                f"{function.name}: {name} must have {_article(function.kinds)} {function.kinds} dtype, got {x.dtype}"
            )


def _article(words: str) -> str:
    return "an" if words[0] in "aeiou" else "a"


class ElementwiseArrayFunction(_Elementwise[P], ArrayFunction[P, Array]):
    """An elementwise function of positional arrays only."""

    compares = False

    def _looked_at(self, arrays: Sequence[Any], unknown: dict[str, Any]) -> Array:
        # A Python integer may not fit the dtype of the other operand, which a compiled call would not notice.
        if int in map(type, arrays) and not unknown and any(type(x) is int and not 0 <= x < 128 for x in arrays):
            return self._careful(*arrays)
        return super()._looked_at(arrays, unknown)

    def _repair(self, static: tuple[Any, ...], arrays: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]]:
        if self.compares:
            arrays = [comparable(v, [a.dtype for a in arrays if hasattr(a, "dtype")]) for v in arrays]
        return super()._repair(static, arrays)

    def _trace(self, static: tuple[Any, ...], *arrays: Any) -> Any:
        return without_weak_types(self.define(*map(lift, arrays)))


def elementwise_function(
    *,
    kinds: str,
    zero: bool = False,
    absorbs: tuple[int, ...] = (),
    exact: bool = False,
    compares: bool = False,
    result: DataType = "same",
    made: type[ElementwiseArrayFunction[Any]] = ElementwiseArrayFunction,
) -> Callable[[Callable[P, Array]], ElementwiseArrayFunction[P]]:
    """Make the decorated formula an elementwise function.

    Parameters
    ----------
    kinds : str
        The accepted dtypes, one of `KINDS`.
    zero : bool
        Whether the function maps zeros (in all operands) to zero, so that structural zeros remain structural zeros.
    absorbs : tuple of int
        The operands in which a structural zero gives a structural zero for any values of the other operands
        (docs/design/semantics.md).
    exact : bool
        Whether `absorbs` holds for NaN and infinity, too, as for `logical_and`. `strong_zeros` then has no effect.
    compares : bool
        Whether the function is a comparison: a Python integer may then lie outside the range of the operands' dtypes.
    result : {"same", "real", "bool"}
        The dtype of the result: the (promoted) dtype of the operands, the real dtype of their parts, or bool.
    made : type
        The class of the function.

    Notes
    -----
    The docstring of the formula consists of a summary, a description, special notes and examples. The other sections are generated.
    """

    def decorate(formula: Callable[P, Array]) -> ElementwiseArrayFunction[P]:
        names = formula.__code__.co_varnames[: formula.__code__.co_argcount]
        function: ElementwiseArrayFunction[P] = made(formula, names)
        function._declare(kinds, zero, absorbs, exact)
        function.compares = compares
        if formula.__doc__:  # there is none under `python -OO`
            function.__doc__ = complete_docstring(formula.__doc__, function, result)
        return function

    return decorate


def elementwise(function: _Elementwise[...], args: Sequence[Array], static: Static) -> Result:
    """Map stored entries and background in the join of the structures, or in their meet where zeros absorb."""
    if len(args) == 1 and args[0].stores_entries:
        return _of_one(function, args[0], static)
    shape = jnp.broadcast_shapes(*[x.shape for x in args])
    core = max([x.core_ndim for x in args if x.stores_entries], default=0)
    if not core and any(isinstance(x, Factored) for x in args):
        return _dense_result(function, args, static, shape)
    args = [_for_core(function, x, shape[len(shape) - core :]) for x in args]
    structured = [x for x in args if x.stores_entries]
    if not structured:
        return _without_patterns(function, args, static)
    if any(x.shape[-core:] != shape[-core:] for x in structured):
        return _dense_result(function, args, static, shape)  # a 1 × n structure that broadcasts against m × n
    constants: list[Any] = [None if x.stores_entries else x.constant_over(core) for x in args]
    join_or_absorb = absorb if absorbers(function, args) else join_entries
    common = join_or_absorb(function, args, constants)
    if common is None:
        return _dense_result(function, args, static, shape)
    pattern, values, masks = common
    held = _unless_full(function, pattern, args, shape)
    if held is not None:
        return held
    background = None
    if join_or_absorb is join_entries and not pattern.covers:
        background = _background(function, args, constants, static)
    return map_entries(function, pattern, values(), background, shape, static, masks)


def _of_one(function: _Elementwise[...], x: Array, static: Static) -> Result:
    """Apply a function to one array that stores entries."""
    if not x.closed_under(function, [x]):
        return _dense_result(function, [x], static, x.shape)
    entries = tuple([function.formula(e, **static) for e in x.entries])
    background = x.background
    if x.covers or (background is None and (function.zero or absorbing_operands(function))):
        return x.rebuild(entries, None)
    zero = jnp.zeros((), x.dtype) if background is None else background
    return x.rebuild(entries, jnp.broadcast_to(function.formula(zero, **static), x.batch_shape))


def map_entries(
    function: _Elementwise[...],
    pattern: Array,
    values: Sequence[Sequence[Any]],
    background: jax.Array | None,
    shape: Shape,
    static: Static,
    masks: Sequence[Sequence[Any]] = (),
) -> Array:
    """Apply the formula to the values of each operand at the entries of a pattern.

    Parameters
    ----------
    values : sequence
        For each operand, a sequence with its values at each of the pattern's entries.
    background : jax.Array or None
        The background value of the result, None for structural zeros.
    shape : tuple of int
        The shape of the result; operands may have fewer batch dimensions.
    masks : sequence
        For each absorbing operand, a sequence of boolean arrays that are True where the operand stores an entry. The
        result is zero elsewhere.
    """
    stored = [functools.reduce(jnp.logical_and, each) for each in zip(*masks, strict=True)]
    if stored:
        # Masked values are replaced by ones: an infinite derivative there would become NaN in `where`.
        values = [
            tuple(jnp.where(m, v, jnp.ones((), v.dtype)) for m, v in zip(stored, of_operand, strict=True))
            for of_operand in values
        ]
    entries = [function.formula(*each, **static) for each in zip(*values, strict=True)]
    if stored:
        entries = [jnp.where(m, e, jnp.zeros((), e.dtype)) for m, e in zip(stored, entries, strict=True)]
    batch = shape[: len(shape) - pattern.core_ndim]
    if background is not None and background.shape != batch:
        background = jnp.broadcast_to(background, batch)
    return pattern.rebuild(_with_batch(entries, pattern, batch), background)


class Common(NamedTuple):
    """A pattern for the operands of a function, and the values of the operands at its entries."""

    pattern: Array
    values: Callable[[], Sequence[Sequence[Any]]]
    """Computes the values, see `map_entries`. Not called if the policy refuses the pattern."""
    masks: Sequence[Sequence[Any]] = ()


def join_entries(function: _Elementwise[...], args: Sequence[Array], constants: Sequence[Any]) -> Common | None:
    """Return the operands in the narrowest pattern that contains all of them.

    The result is None if this pattern is dense, or if an operand has no pattern and is not constant.
    """
    if not _others_are_constant(args, constants):
        return None
    joined = join_all([x for x in args if x.stores_entries])
    pattern = joined[0]
    if type(pattern) is Dense or not pattern.closed_under(function, args):
        return None

    def values() -> list[Sequence[Any]]:
        left = iter(joined)
        return [
            next(left).entries if x.stores_entries else pattern.gather(c) for x, c in zip(args, constants, strict=True)
        ]

    return Common(pattern, values)


def absorb(function: _Elementwise[...], args: Sequence[Array], constants: Sequence[Any]) -> Common:
    """Return the operands in the pattern outside of which structural zeros absorb."""
    absorbing = absorbing_operands(function)
    absorbed = absorbers(function, args)
    pattern = absorbed[0]
    for i, x in enumerate(args):
        if x.stores_entries:
            pattern = meet(pattern, x if i in absorbing or not is_zero_outside(x) else with_zero_background(x))
    if not _others_are_constant(args, constants):
        pattern = pattern.freed()
    # Where an absorber stores nothing, the pattern has an explicit zero, which must absorb as well.
    masks = [_indicator(x, pattern) for x in absorbed if not stores_pattern(x, pattern)]
    return Common(pattern, lambda: values_at(pattern, args, constants), masks)


def absorbers(function: _Elementwise[...], args: Sequence[Any]) -> list[Array]:
    """Return the operands whose structural zeros absorb. Scalars have none."""
    absorbing = absorbing_operands(function)
    return [x for i, x in enumerate(args) if i in absorbing and isinstance(x, Array) and is_zero_outside(x)]


def _others_are_constant(args: Sequence[Array], constants: Sequence[Any]) -> bool:
    """Return whether each operand without stored entries is constant over the core."""
    return all([x.stores_entries or c is not None for x, c in zip(args, constants, strict=True)])


def values_at(pattern: Array, args: Sequence[Array], constants: Sequence[Any]) -> list[Sequence[Any]]:
    """Return the values of the operands at the entries of a pattern."""
    return [
        restrict(x, pattern).entries
        if x.stores_entries or (isinstance(x, Factored) and pattern.core_ndim == 2)
        else pattern.gather(x.dense_data() if c is None else c)
        for x, c in zip(args, constants, strict=True)
    ]


def _unless_full(function: _Elementwise[...], pattern: Array, args: Sequence[Array], shape: Shape) -> Array | None:
    """Ask the policy if the pattern of a result stores as many entries as the dense form, and no operand does.

    Returns
    -------
    Array or None
        The result in another structure, if the policy forbids such a pattern and another structure can contain the result.
    """
    full = pattern.full_size or type(pattern) is Dense
    if (
        not full
        or not smaller(SMALL, max(shape[-2:]))
        or any([(type(x) is Dense or x.full_size) and x.shape[-2:] == shape[-2:] for x in args])
    ):
        return None
    if not lets_dense(pattern):
        held = held_unexpanded(function, args, shape)
        if held is not None:
            return held
    allow_dense(next(x for x in args if x.stores_entries), function.name, pattern.size)
    return None


def _indicator(x: Array, pattern: Array) -> tuple[jax.Array, ...]:
    """Return a mask for each array in the pattern's entries: True where `x` stores an entry."""
    return restrict(x.rebuild(tuple(jnp.ones(e.shape, bool) for e in x.entries), None), pattern).entries


def with_zero_background(x: Array) -> Array:
    """Replace structural zeros by an explicit zero background, which does not absorb."""
    return x.rebuild(x.entries, jnp.zeros(x.batch_shape, x.dtype))


def _for_core(function: _Elementwise[...], x: Array, core: Shape) -> Array:
    """Prepare an operand for structures of this core shape.

    A 1 × 1 structure becomes a scalar for each batch entry. A structure with fewer core dimensions becomes dense.
    """
    if not x.stores_entries:
        return x
    own = x.shape[x.ndim - x.core_ndim :]
    if own.count(1) == len(own) and own != core[len(core) - len(own) :]:
        return Dense.make((x.dense_data(),))
    return x if len(own) == len(core) else densify(x, function.name)


def absorbing_operands(function: _Elementwise[...]) -> tuple[int, ...]:
    """Return the operands in which a structural zero absorbs under the current `strong_zeros` policy."""
    return function.absorbs if function.exact or strong_zeros_policy.value else ()


def _with_batch(entries: Sequence[Any], pattern: Array, batch: Shape) -> tuple[jax.Array, ...]:
    """Broadcast the entries to the whole batch shape, since an operand may have had fewer batch dimensions."""
    behind = len(pattern.batch_shape)
    shapes = [batch + e.shape[e.ndim - old.ndim + behind :] for e, old in zip(entries, pattern.entries, strict=True)]
    # Most entries already have the shape, and a call of `broadcast_to` takes longer than tracing an operation.
    return tuple([e if e.shape == s else jnp.broadcast_to(e, s) for e, s in zip(entries, shapes, strict=True)])


def background_value(x: Array) -> jax.Array:
    """Return the value of the elements that an array does not store."""
    background = x.background
    return jnp.zeros((), x.dtype) if background is None else background


def without_core(data: jax.Array, core: int) -> jax.Array:
    """Remove the last `core` axes of the data of an operand that is constant over them."""
    return data.reshape(data.shape[: max(0, data.ndim - core)])


def _background(
    function: _Elementwise[...], args: Sequence[Array], constants: Sequence[Any], static: Static
) -> jax.Array | None:
    """Return the background of a joined result, or None if zeros are mapped to zero."""
    if function.zero and all(x.stores_entries and x.background is None for x in args):
        return None
    core = max(x.core_ndim for x in args if x.stores_entries)
    values = [
        background_value(x) if x.stores_entries else without_core(c, core) for x, c in zip(args, constants, strict=True)
    ]
    background: jax.Array = function.formula(*values, **static)
    return background


def _without_patterns(function: _Elementwise[...], args: Sequence[Array], static: Static) -> Array:
    """Apply the formula to the stored values of dense or filled operands."""
    shape = jnp.broadcast_shapes(*(x.shape for x in args))
    fills = [x for x in args if type(x) is not Dense]
    # The core is at most as large as an operand's core: `vmap` expects batch dimensions of size 1 in the parameters.
    for core in range(min(len(shape), max((x.core_ndim for x in fills), default=0)), 0, -1):
        parts = [x.constant_over(core) for x in args]
        if all(p is not None for p in parts):
            kept = len(shape) - core
            data = without_core(function.formula(*parts, **static), core)
            return type(fills[0]).make((jnp.broadcast_to(data, shape[:kept]),), shape[kept:])
    if fills:
        core = min(len(shape), max(x.core_ndim for x in fills))
        if not any(type(x) is Dense and x.shape[-core:] == shape[-core:] for x in args):
            return _dense_result(function, args, static, shape)  # a constant matrix and a row, say
    # With a dense operand, `densify` is not called for a factored one, as in `_dense_result`.
    constants = [x.constant_over(x.core_ndim) for x in args]
    parts = [x.dense_data() if c is None else c for x, c in zip(args, constants, strict=True)]
    return Dense.make((jnp.broadcast_to(function.formula(*parts, **static), shape),))


def _dense_result(function: _Elementwise[...], args: Sequence[Array], static: Static, shape: Shape) -> Array:
    """Apply the formula to dense forms.

    This counts as a densification only if no operand is dense with the shape of the result.
    """
    held = held_unexpanded(function, args, shape)
    if held is not None:
        return held
    if not any(type(x) is Dense and x.shape[-2:] == shape[-2:] for x in args):
        args = [densify(x, function.name) for x in args]
    return Dense.make((jnp.broadcast_to(function.formula(*(x.dense_data() for x in args), **static), shape),))
