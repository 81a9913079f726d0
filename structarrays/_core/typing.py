"""The types that annotations in the core name. The core imports it for type checkers only, so that it costs nothing at run time."""

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
"""What an operator or a function takes as an array."""

DTypeLike: TypeAlias = DType | np.dtype | type | str
"""What an argument that is a dtype may be."""

Axes: TypeAlias = int | tuple[int, ...] | None
"""An argument that names one axis, several, or all."""

Leaves: TypeAlias = tuple[Any, ...]
"""The parameters of an array: each is a `jax.Array`, an `Array`, None, or whatever JAX puts there (`object()`, say)."""

Spec: TypeAlias = tuple[Any, ...]
"""For each dimension of an array the axes of a mesh along which it is divided, as in `jax.sharding.PartitionSpec`."""

Meta: TypeAlias = Any
"""The static part of a value, which each class defines for itself: hashable."""

Assumptions: TypeAlias = frozenset[str]

Aux: TypeAlias = tuple[type[Array], Meta, Assumptions]

Value: TypeAlias = tuple[Leaves, Aux]
"""The value of an array, see `array`."""

Static: TypeAlias = dict[str, Any]
"""The static arguments of a call by their names."""

Result: TypeAlias = Any
"""What a rule or a kernel gives: an array, a tuple of arrays, an array and a flag, or NotImplemented."""

Rule: TypeAlias = Callable[[Any, Sequence[Array], Static], Result]
"""The rule of a family: a `Function` of that family, its operands and its static arguments to the result."""

LeafFunction: TypeAlias = Callable[..., Any]
"""A function of a parameter, an array or a tracer, and perhaps of static arguments."""

Operator: TypeAlias = Callable[[Any, Any], Array]
"""An operator of `Array`: its left operand is the handle, its right one what `is_operand` knows."""

InPlaceOperator: TypeAlias = Callable[[Any, Any], Any]
"""The same in place: it gives the handle, which may have another class than before."""
