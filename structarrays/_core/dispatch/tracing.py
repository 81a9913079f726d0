"""Whether this code runs while JAX traces it for compilation, and whether that is in a function of the namespace."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import jax

from ..jax_internals.traces import is_eager

if TYPE_CHECKING:
    from collections.abc import Iterator

_probe = jax.jit(lambda: jax.numpy.zeros(()))


def compiling() -> bool:
    """Whether we are inside `jit` (or `scan` and its like), where every value made is a tracer.

    It is not so in `grad` or `vmap` of an eager function, where only what depends on their arguments is a tracer. JAX has
    no public question for this, so we look at what a compiled function without arguments returns: about 5 µs
    unless no transformation runs.
    """
    return not is_eager() and isinstance(_probe(), jax.core.Tracer)


BUSY: list[None] = []
"""Not empty if an operator must not call its compiled function directly.

A log that records adds an element while it records, and so does each function that a thread traces. The first write beside another
thread adds an element for good. Operators read this one list in place of three states, since that takes less time.
"""


class _CompiledCall(threading.local):
    """Whether this thread runs the code of a function of the namespace, which JAX traces."""

    active = False


COMPILED_CALL = _CompiledCall()


def within_function() -> bool:
    """Whether a function of the namespace, which JAX traces, runs this code: then it is traced with that function, without a compiled call
    of its own.
    """
    return COMPILED_CALL.active and not is_eager()


@contextlib.contextmanager
def compiled_call() -> Iterator[None]:
    """The context in which a function of the namespace is traced. It marks the errors of the function, see `is_of_function`."""
    before = COMPILED_CALL.active
    COMPILED_CALL.active = True
    BUSY.append(None)
    try:
        yield
    except Exception as error:
        error.of_function = True  # type: ignore[attr-defined]
        raise
    finally:
        COMPILED_CALL.active = before
        BUSY.pop()


def is_of_function(error: Exception) -> bool:
    """Whether the code of a function raised this error. Otherwise JAX raised it, since it does not take an argument as it is."""
    return getattr(error, "of_function", False)
