"""The running transformation of JAX, and the transformation of a traced value.

Each transformation (`jax.jit`, `jax.grad`, `jax.vmap`, a loop, …) has a trace while it runs. Outside of all
transformations the running trace evaluates eagerly. If a version of JAX stores traces in another way, no two traces
count as the same, and writes of traced values raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

    Origin = Callable[[], Any]
    """A weak reference to a trace: ``RUNNING.value``."""

__all__ = ["RUNNING", "begun_within", "is_eager", "is_of_same_trace"]


class Unknown:
    """Replacement for the running trace if JAX does not expose it: then no array counts as created inside a
    transformation.
    """

    @staticmethod
    def value() -> None:
        """Return None, as a reference to no trace."""


try:
    from jax._src.core import trace_state as RUNNING
except ImportError:
    RUNNING = Unknown

try:
    from jax._src.core import EvalTrace
except ImportError:
    EvalTrace = Unknown  # type: ignore[misc, assignment]


def is_eager() -> bool:
    """Return whether certainly no transformation runs; False if JAX does not expose it."""
    return type(RUNNING.value()) is EvalTrace


def begun_within(origin: Origin, value: jax.core.Tracer[Any]) -> bool:
    """Return whether the trace `origin` is the trace of `value`, or began inside it; False if the trace `origin` has
    ended.
    """
    wanted = getattr(value, "_trace", None)
    trace = origin()
    while trace is not None:
        if trace is wanted:
            return True
        trace = getattr(trace, "parent_trace", None)
    return False


def is_of_same_trace(first: jax.core.Tracer[Any], second: jax.core.Tracer[Any]) -> bool:
    """Return whether two traced values belong to one trace."""
    trace = getattr(first, "_trace", None)
    return trace is not None and trace is getattr(second, "_trace", None)
