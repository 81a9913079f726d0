"""Types of array arguments, for a type checker.

A function of the namespace accepts arrays of this library, NumPy and JAX, and Python scalars. Inside the function, each
of them is an `Array`.
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
        """Formulas of elementwise functions. They compute with plain data, although their signatures name arrays."""

        def __getattr__(self, name: str) -> Callable[..., Array]: ...

else:
    ArrayLike = Array
    ParameterLike = DTypeLike = Any  # including scalars in lists
