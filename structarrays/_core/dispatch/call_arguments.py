"""Arguments of calls: hashable static arguments, and new handles for arrays."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import dtypes
from ..array.base import Array
from ..array.flattening import common_indices

if TYPE_CHECKING:
    from collections.abc import Sequence


def hashable_form(value: Any) -> Any:
    """Convert a static argument to hashable form."""
    if isinstance(value, (list, tuple)):
        return tuple(hashable_form(v) for v in value)
    if isinstance(value, np.ndarray):
        return hashable_form(value.tolist())
    if isinstance(value, (Array, jax.Array)):
        return operator.index(value)
    return value


def is_hashable(value: object) -> bool:
    """Return whether a value can be static in a compiled call."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def python_integer(value: int, strong: Sequence[np.dtype], name: str) -> Any:
    """Convert a Python integer that JAX does not accept to the data type of the other operands.

    Raises
    ------
    OverflowError
        If the integer does not fit.
    """
    if strong:
        dtype = dtypes.promote(*strong)
        if dtype.kind in "iu":
            try:
                return dtype.type(value)
            except OverflowError:
                raise OverflowError(f"{name}: the Python integer {value} does not fit into {dtype}") from None
        if dtype.kind not in "b":
            return dtype.type(value).real  # real even if the arrays are complex, so that Hermitian matrices stay so
    return value


def comparable(value: Any, other_dtypes: Sequence[np.dtype]) -> Any:
    """Replace a Python integer outside the range of the other operands' dtypes by an infinity, for a comparison."""
    if type(value) is int and other_dtypes and (dtype := dtypes.promote(*other_dtypes)).kind in "iu":
        limits = np.iinfo(dtype)
        return value if limits.min <= value <= limits.max else math.copysign(math.inf, value)
    return value


_array_classes: list[type] = []


def concrete_array_class() -> type:
    """Return the class of a concrete `jax.Array`: to compare types is faster than `isinstance` in every eager call."""
    if not _array_classes:
        with jax.ensure_compile_time_eval():  # the first call may be inside a trace
            found = type(jnp.zeros(()))
        if issubclass(found, jax.core.Tracer):  # `ensure_compile_time_eval` does not leave an eager `shard_map`
            return type(None)
        _array_classes.append(found)
    return _array_classes[0]


def any_traced(values: Sequence[Any], exact: bool = False) -> bool:
    """Return whether an argument, or a parameter of one, is a tracer (in a third of the time that flattening takes).

    With `exact`, only indices and other integer or boolean parameters count: entries of arrays with indices may be
    traced.
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


def have_constant_indices(*arrays: Array) -> bool:
    """Return whether the indices of all arrays are constants, which the matrices of a stack share.

    Under `jax.jit`, a stack has traced copies of these constants, which `common_indices` returns. Like `any_traced` with
    `exact`, refuse other arrays that have traced integers or booleans.
    """
    for x in arrays:
        leaves, aux = x._value
        span = aux[0].index_parameters
        if span is None:
            if any_traced((x,), exact=True):
                return False
        elif any(common_indices(leaf) is None for leaf in leaves[span]):
            return False
    return True


def new_handles(values: Sequence[Any]) -> list[Any]:
    """Replace the arrays among arguments, and in sequences of arguments, by new handles on the same values."""
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
