"""The types of arguments that are arrays, for a type checker.

A function of the namespace takes arrays of this library, of NumPy and of JAX, and numbers; its code gets `Array` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import Array

__all__ = ["ArrayLike", "DTypeLike", "ParameterLike"]

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol, TypeAlias

    from ..typing import DTypeLike
    from ..typing import Operand as ArrayLike

    ParameterLike: TypeAlias = ArrayLike | Sequence[Any]

    class Formulas(Protocol):
        """What elementwise functions compute. They do so with plain data; the signatures around it are those of the functions, of arrays."""

        def __getattr__(self, name: str) -> Callable[..., Array]: ...

else:
    ArrayLike = Array
    ParameterLike = DTypeLike = Any  # numbers in lists, too
