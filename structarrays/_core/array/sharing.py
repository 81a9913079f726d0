"""Results of compiled calls: a compiled call returns parameters and a static part, and the caller builds an array from
them.

Indices that a compiled call computes are constant for the caller; see `flattening`. A parameter of the result may be a
parameter of an argument, such as the coordinates of a sparse array, or a factor of an array of low rank. The compiled
call does not return this parameter; the result shares it with the argument.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import jax

from ..dispatch import explicit
from .base import Array
from .flattening import all_parameters, dynamic_classes, opened, opened_arguments, unflatten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..typing import Leaves


class Incomplete:
    """Result of a compiled call: its parameters, possibly without the parameters that it shares with the arguments.

    `static` contains the sources of its parameters (None if all are in `leaves`), the static part, and whether it
    belongs to one array.
    """

    __slots__ = ("leaves", "static")

    leaves: Leaves
    static: tuple[_Sources | None, Any, bool]


class _Sources(tuple[int, ...]):
    """For each parameter of a result, its number in the new parameters followed by the parameters of the arguments."""

    choose: Callable[[Leaves], Leaves]
    """Select these elements of a tuple, as a tuple."""
    trims: bool
    """Whether the result has indices that are not parameters of the arguments."""


def _sources(numbers: tuple[int, ...], cls: type[Array] | None) -> _Sources:
    """Return the sources of the parameters of one array, or (`cls` is None) of several arrays."""
    sources = _Sources(numbers)
    # `itemgetter` is faster than a loop, in every eager call.
    sources.choose = operator.itemgetter(*numbers) if len(numbers) > 1 else lambda leaves: (leaves[numbers[0]],)
    span = None if cls is None else cls.index_parameters
    sources.trims = span is not None and any(number >= 0 for number in numbers[span])
    return sources


def _made(static: tuple[_Sources | None, Any, bool], leaves: Leaves) -> Incomplete:
    result = Incomplete()
    result.leaves, result.static = leaves, static
    return result


jax.tree_util.register_pytree_node(Incomplete, lambda result: (result.leaves, result.static), _made)


def incomplete(result: Any, arrays: Sequence[Any]) -> Any:
    """Drop, inside a compiled call, the parameters that a result or a part of it shares with these arrays."""
    if not isinstance(result, Array):
        return with_indices(result)
    flat = True
    for x in (result, *arrays):
        if isinstance(x, Array):
            for leaf in x._value[0]:
                flat = flat and not isinstance(leaf, Array)
    given = _parameters(arrays, flat)
    places = {id(leaf): i for i, leaf in enumerate(given, -len(given)) if leaf is not None}
    leaves: Sequence[Any]
    if flat:
        leaves, tree = all_parameters(result)
    else:
        is_static = dynamic_classes.isdisjoint(map(type, _with_parts([result])))
        leaves, tree = jax.tree.flatten(result if is_static else opened(result))
    new = tuple([leaf for leaf in leaves if id(leaf) not in places])
    if len(new) == len(leaves):
        return with_indices(result)
    count = iter(range(len(new)))
    numbers = tuple(places[id(leaf)] if id(leaf) in places else next(count) for leaf in leaves)
    return _made((_sources(numbers, tree[0] if flat else None), tree, flat), new)


def with_indices(result: Any) -> Any:
    """Wrap a result, inside a compiled call, so that its indices are constant outside."""
    if isinstance(result, Incomplete):
        return result
    # The parts of one array are found by a loop: to search its pytree takes longer. The loop is `_with_parts`, without its call.
    found = [result] if isinstance(result, Array) else jax.tree.leaves(result, is_leaf=_has_indices)
    for x in found:
        if isinstance(x, Array):
            if x.index_parameters is not None:
                break
            for leaf in x._value[0]:
                if isinstance(leaf, Array):
                    found.append(leaf)
    else:
        return result
    if _has_indices(result):
        leaves, aux = all_parameters(result)
        return _made((None, aux, True), leaves)
    parts, tree = jax.tree.flatten(opened(result))
    return _made((None, tree, False), tuple(parts))


def _has_indices(value: object) -> bool:
    return isinstance(value, Array) and value.index_parameters is not None


def complete(result: Any, arrays: Sequence[Any]) -> Any:
    """Complete a result with the parameters that it shares with the arrays of the call."""
    if type(result) is not Incomplete:
        return result
    sources, tree, flat = result.static
    leaves = result.leaves if sources is None else sources.choose(result.leaves + _parameters(arrays, flat))
    if not flat:
        return tree.unflatten(leaves)
    whole = unflatten(tree, leaves)
    return whole.trimmed() if sources is None or sources.trims else whole


def _parameters(arrays: Sequence[Any], flat: bool) -> Leaves:
    """Return the parameters of arrays; unless `flat`, including the parameters of arrays inside them."""
    leaves: Leaves = ()
    for x in arrays if flat else _with_parts([x for x in arrays if isinstance(x, Array)]):
        if isinstance(x, Array):
            leaves += x._value[0]
    return leaves


def _with_parts(arrays: Sequence[Array]) -> list[Array]:
    """Return arrays and all arrays inside them."""
    found = list(arrays)
    for y in found:  # which grows
        for leaf in y._value[0]:
            if isinstance(leaf, Array):
                found.append(leaf)
    return found


def jit(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function of arrays with `explicit.jit`, for eager code: all parameters are arguments and results."""

    @functools.wraps(function)
    def with_all_parameters(*arguments: Any) -> Any:
        return with_indices(function(*arguments))

    compiled = explicit.jit(with_all_parameters, **options)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return complete(compiled(*opened_arguments(arguments)), ())

    return call
