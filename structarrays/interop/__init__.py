"""Conversions to and from NumPy, files and other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

LAZY = frozenset({"jax_sparse", "lineax", "pydata_sparse", "pytensor", "scipy"})
"""Modules that are imported on first access: the other library is optional, or takes long to import."""


def __getattr__(name: str) -> ModuleType:
    if name in LAZY:
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*LAZY, *(name for name in globals() if name.startswith("__"))]
