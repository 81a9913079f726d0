"""Arguments of calls: static ones in hashable form, arrays as handles of their own."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import dtypes
from ..array.base import Array

if TYPE_CHECKING:
    from collections.abc import Sequence


def hashable_form(value: Any) -> Any:
    """A static argument in hashable form."""
    if isinstance(value, (list, tuple)):
        return tuple(hashable_form(v) for v in value)
    if isinstance(value, np.ndarray):
        return hashable_form(value.tolist())
    if isinstance(value, (Array, jax.Array)):
        return operator.index(value)
    return value


def is_hashable(value: object) -> bool:
    """Whether a value can be static in a compiled call."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def python_integer(value: int, strong: Sequence[np.dtype], name: str) -> Any:
    """A Python integer that JAX cannot take as it stands, in the dtype of the arrays beside it.

    Raises
    ------
    OverflowError
        If it does not fit.
    """
    if strong:
        dtype = dtypes.promote(*strong)
        if dtype.kind in "iu":
            try:
                return dtype.type(value)
            except OverflowError:
                raise OverflowError(f"{name}: the Python integer {value} does not fit into {dtype}") from None
        if dtype.kind not in "b":
            return dtype.type(value).real  # a real number beside complex ones, too: what is Hermitian stays so
    return value


_array_classes: list[type] = []


def concrete_array_class() -> type:
    """The class of a concrete `jax.Array`: a look at the type is cheaper than an `isinstance` in every eager call."""
    if not _array_classes:
        with jax.ensure_compile_time_eval():  # the first call may be inside a trace
            found = type(jnp.zeros(()))
        if issubclass(found, jax.core.Tracer):  # that of an eager `shard_map` cannot be left
            return type(None)
        _array_classes.append(found)
    return _array_classes[0]


def any_traced(values: Sequence[Any], exact: bool = False) -> bool:
    """Whether an argument, or a parameter of one, is a tracer (a third of the cost of flattening them).

    With `exact` the entries of arrays with indices may be traced, and other parameters that are no integers or booleans.
    """
    for value in values:
        if isinstance(value, Array):
            leaves, aux = value._value
            span = aux[0].index_parameters if exact else None
            if any_traced(leaves if span is None else leaves[span], exact):
                return True
        elif isinstance(value, jax.core.Tracer):
            if not (exact and value.dtype.kind not in "biu"):
                return True
        elif isinstance(value, (tuple, list)) and any_traced(value, exact):
            return True
    return False


def new_handles(values: Sequence[Any]) -> list[Any]:
    """Arguments, and sequences of arguments, in which new handles on the same values replace the arrays."""
    apart: list[Any] = []
    for value in values:
        if isinstance(value, Array):
            value = value.__copy__()
        elif isinstance(value, (tuple, list)):
            parts = new_handles(value)
            make = getattr(type(value), "_make", type(value))  # named tuples have `_make`
            value = make(parts)
        apart.append(value)
    return apart
