"""The interpreter of `structured` with all rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import custom_rules, rules_elementwise, rules_equinox, rules_linalg, rules_reductions, rules_shapes  # noqa: F401 (they register rules)
from .control_flow import remembering
from .interpreter import trace
from .rules import STRUCTURED, plain

if TYPE_CHECKING:
    from .._core.jax_internals.equations import ClosedJaxpr

__all__ = ["plain", "run", "trace"]


def run(program: ClosedJaxpr, *values: Any) -> list[Any]:
    """Run a program, whose arguments and constants may be structured arrays, and return its results."""
    with remembering():
        return STRUCTURED.run(program, *values)
