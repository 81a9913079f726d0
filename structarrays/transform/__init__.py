"""Interpretation of JAX programs on structured arrays, and transformations of functions of structured arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._core.jax_internals.equations import CondCall as CondCall
    from .._core.jax_internals.equations import ScanCall as ScanCall
    from .._core.jax_internals.equations import UnrecognisedEquation as UnrecognisedEquation
    from .._core.jax_internals.equations import WhileCall as WhileCall
    from .interpreter import Interpreter as Interpreter

__all__ = ["CondCall", "Interpreter", "ScanCall", "UnrecognisedEquation", "WhileCall"]


def __getattr__(name: str) -> Any:
    # Imported on first use, since most programs do not need it.
    if name == "Interpreter":
        from .interpreter import Interpreter

        return Interpreter
    if name in __all__:
        from .._core.jax_internals import equations

        return getattr(equations, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
