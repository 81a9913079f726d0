"""Arguments of compiled calls that share their indices, such as ``x > 0`` and ``x`` for a sparse array `x`.

JAX makes one variable of each argument, so a compiled call could not tell that two patterns are equal, and would search one in the other.
So the second array is passed without its indices. Inside the compiled call it gets the indices of the first array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from .flattening import dynamic_classes, opened_arguments, opened_types, unflatten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..typing import Aux, Leaves


class WithoutIndices:
    """An array that shares its indices with an earlier argument: its other parameters, its static part, and the number of that argument."""

    __slots__ = ("leaves", "static")

    def __init__(self, static: tuple[Aux, int], leaves: Leaves) -> None:
        self.static, self.leaves = static, tuple(leaves)


_made: Any = WithoutIndices  # JAX's leaves are of any type
jax.tree_util.register_pytree_node(WithoutIndices, lambda x: (x.leaves, x.static), _made)


def opened_operands(arrays: Sequence[Any]) -> Sequence[Any]:
    """Return the arguments of a compiled call that begins with `with_shared_indices`. Its indices are arguments, too, each once."""
    if opened_types.isdisjoint(map(type, arrays)):  # the test of `opened_arguments`, to save its call
        return arrays
    opened = opened_arguments(arrays)
    if len(arrays) == 1:
        return opened
    operands = list(opened)
    found: dict[tuple[Any, ...], int] = {}
    for i, x in enumerate(arrays):
        span = type(x).index_parameters if type(x) in dynamic_classes else None
        if span is not None:
            leaves, aux = x._value
            first = found.setdefault((type(x), *map(id, leaves[span])), i)
            if first < i:
                start, stop, _ = span.indices(len(leaves))
                operands[i] = WithoutIndices(((*aux,), first), leaves[:start] + leaves[stop:])
    return operands


def with_shared_indices(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return arrays with the indices that `opened_operands` has left out."""
    whole = list(arrays)
    for i, x in enumerate(arrays):
        if type(x) is WithoutIndices:
            aux, first = x.static
            span = aux[0].index_parameters
            assert span is not None
            indices = arrays[first]._value[0][span]
            start = span.indices(len(x.leaves) + len(indices))[0]
            whole[i] = unflatten(aux, x.leaves[:start] + indices + x.leaves[start:])
    return tuple(whole)
