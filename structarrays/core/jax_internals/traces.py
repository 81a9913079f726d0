"""The running transformation of JAX, and the transformation of a traced value.

Each transformation (`jax.jit`, `jax.grad`, `jax.vmap`, a loop, …) has a trace while it runs. Outside of all transformations the running trace
evaluates eagerly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jax._src.core import trace_state as RUNNING

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

    Origin = Callable[[], Any]
    """A weak reference to a trace: ``RUNNING.value``."""

__all__ = ["RUNNING", "begun_within", "is_of_same_trace"]


def begun_within(origin: Origin, value: jax.core.Tracer[Any]) -> bool:
    """Whether the trace `origin` is the trace of `value`, or began inside it.

    False if the trace `origin` has ended.
    """
    trace = origin()
    while trace is not None:
        if trace is value._trace:
            return True
        trace = getattr(trace, "parent_trace", None)
    return False


def is_of_same_trace(first: jax.core.Tracer[Any], second: jax.core.Tracer[Any]) -> bool:
    """Whether two traced values belong to one trace."""
    return first._trace is second._trace
