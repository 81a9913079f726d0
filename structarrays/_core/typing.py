"""Type aliases for annotations in the core.

The core imports them only for type checkers, so that they cost nothing at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from .array.base import Array
from .dtypes import DType

Shape: TypeAlias = tuple[int, ...]

Scalar: TypeAlias = bool | int | float | complex

Operand: TypeAlias = Array | jax.Array | np.ndarray | np.generic | Scalar
"""An argument that an operator or a function accepts as an array."""

DTypeLike: TypeAlias = DType | np.dtype | type | str
"""An argument that specifies a data type."""

Axes: TypeAlias = int | tuple[int, ...] | None
"""An argument that selects one axis, several, or all."""

Leaves: TypeAlias = tuple[Any, ...]
"""The parameters of an array: each is a `jax.Array`, an `Array`, None, or a placeholder of JAX (such as `object()`)."""

Spec: TypeAlias = tuple[Any, ...]
"""For each dimension of an array, the mesh axes along which it is divided, as in `jax.sharding.PartitionSpec`."""

Meta: TypeAlias = Any
"""The static part of a value, which each class defines; hashable."""

Assumptions: TypeAlias = frozenset[str]

Aux: TypeAlias = tuple[type[Array], Meta, Assumptions]

Value: TypeAlias = tuple[Leaves, Aux]
"""The value of an array, see `array.base`."""

Static: TypeAlias = dict[str, Any]
"""The static arguments of a call by name."""

Result: TypeAlias = Any
"""Result of a rule or a kernel: an array, a tuple of arrays, an array and a flag, or NotImplemented."""

Rule: TypeAlias = Callable[[Any, Sequence[Array], Static], Result]
"""Rule of a family: maps a `Function` of that family, its operands and its static arguments to the result."""

LeafFunction: TypeAlias = Callable[..., Any]
"""A function of a parameter (an array or a tracer), possibly with static arguments."""

Operator: TypeAlias = Callable[[Any, Any], Array]
"""An operator of `Array`: its left operand is the handle, its right operand satisfies `is_operand`."""

InPlaceOperator: TypeAlias = Callable[[Any, Any], Any]
"""An in-place operator: it returns the handle, whose class may have changed."""
