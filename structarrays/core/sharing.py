"""What a compiled call hands through stays outside of it.

A compiled call hands back each parameter of its result, even those that it was given: the coordinates of a sparse array, or a
factor of an array of low rank. They are left out, and the result shares them with the argument.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import jax

from .array import Array, _unflatten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .typing import Leaves


class Incomplete:
    """A result of a compiled call without those parameters that are parameters of its arguments."""

    __slots__ = ("leaves", "static")

    leaves: Leaves
    static: tuple[tuple[int, ...], Any, bool]


def _made(static: tuple[tuple[int, ...], Any, bool], leaves: Leaves) -> Incomplete:
    result = Incomplete()
    result.leaves, result.static = leaves, static
    return result


jax.tree_util.register_pytree_node(Incomplete, lambda result: (result.leaves, result.static), _made)


def incomplete(result: Any, arrays: Sequence[Any]) -> Any:
    """A result, inside a compiled call, without the parameters that it, or a part of it, has from these arrays."""
    if not isinstance(result, Array):
        return result
    arrays = [x for x in arrays if isinstance(x, Array)]
    flat = not any(isinstance(leaf, Array) for x in (result, *arrays) for leaf in x._value[0])
    given = _parameters(arrays, flat)
    places = {id(leaf): i for i, leaf in enumerate(given, -len(given)) if leaf is not None}
    leaves, tree = result._value if flat else jax.tree.flatten(result)
    new = tuple(leaf for leaf in leaves if id(leaf) not in places)
    if len(new) == len(leaves):
        return result
    count = iter(range(len(new)))
    sources = tuple(places[id(leaf)] if id(leaf) in places else next(count) for leaf in leaves)
    return _made((sources, tree, flat), new)


def complete(result: Any, arrays: Sequence[Any]) -> Any:
    """The whole result, given the arrays of the call."""
    if type(result) is not Incomplete:
        return result
    sources, tree, flat = result.static
    leaves = _chosen(sources)(result.leaves + _parameters(arrays, flat))
    return _unflatten(tree, leaves) if flat else tree.unflatten(leaves)


@functools.cache
def _chosen(sources: tuple[int, ...]) -> Callable[[Leaves], Leaves]:
    """What picks these of a tuple, as a tuple: cheaper than a loop, in every eager call."""
    return operator.itemgetter(*sources) if len(sources) > 1 else lambda leaves: tuple(leaves[i] for i in sources)


def _parameters(arrays: Sequence[Any], flat: bool) -> Leaves:
    """The parameters of arrays; where these hold arrays, so that they are not flat, the parameters of all of them."""
    leaves: Leaves = ()
    for x in arrays:
        if isinstance(x, Array):
            leaves += x._value[0] if flat else tuple(jax.tree.leaves(x))
    return leaves
