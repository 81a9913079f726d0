"""The type of dense results, which follows the operands (docs/design/semantics.md).

A call with a `Dense` operand returns `Dense`. A call whose dense operands are of JAX returns a `jax.Array`, so that ``A @ v``
fits into programs of JAX. The policy of `dense_results` applies to calls without dense operands.

A compiled call decides this while JAX traces, so that later calls cost nothing more. There, arrays of NumPy and Python
numbers look like arrays of JAX. Their results become arrays of this library again after the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from ..array.base import Array, is_array
from ..array.dense import Dense
from .call_arguments import concrete_array_class
from .contexts import dense_results_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def _parts(values: Sequence[Any]) -> Iterator[Any]:
    """Iterate over operands, and over the elements of sequences of operands."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _parts(value)
        else:
            yield value


def _unwrapped(result: Any) -> Any:
    """Replace each dense array of a result by its data."""
    if type(result) is Dense:
        return result.data
    if isinstance(result, Array):
        return result
    return jax.tree.map(lambda x: x.data if type(x) is Dense else x, result, is_leaf=is_array)


def as_jax(result: Any) -> jax.Array:
    """Return a result of either type as a `jax.Array`."""
    if type(result) is Dense:
        return result.data
    data: jax.Array = result.to_jax() if isinstance(result, Array) else result
    return data


def follow_operands(result: Any, operands: Sequence[Any]) -> Any:
    """Return the result of a compiled call in the type that follows from its operands, while JAX traces the call."""
    of_jax = False
    for x in operands:
        if isinstance(x, tuple | list):
            operands = tuple(_parts(operands))
            break
    for x in operands:
        if type(x) is Dense:
            return result
        of_jax = of_jax or isinstance(x, jax.Array)
    return _unwrapped(result) if of_jax or dense_results_policy.value == "jax" else result


def follow_host_operands(result: Any, operands: Sequence[Any]) -> Any:
    """Convert the result of a compiled call to an array of this library if its dense operands are of NumPy or Python
    alone.
    """
    if concrete_array_class() in map(type, operands):  # the usual case, without a loop
        return result
    others = [x for x in _parts(operands) if x is not None and not isinstance(x, Array)]
    if not others or any(isinstance(x, jax.Array) for x in others) or dense_results_policy.value == "jax":
        return result
    return jax.tree.map(lambda x: x if isinstance(x, Array) else Dense.make((x,)), result, is_leaf=is_array)


def follow_eager_operands(result: Any, operands: Sequence[Any]) -> Any:
    """Return a result of eager code in the type that follows from its operands."""
    others = [x for x in _parts(operands) if not isinstance(x, Array) or type(x) is Dense]
    of_jax = any(isinstance(x, jax.Array) for x in others) or dense_results_policy.value == "jax"
    return result if not of_jax or any(type(x) is Dense for x in others) else _unwrapped(result)
