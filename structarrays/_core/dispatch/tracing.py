"""Queries: whether JAX traces this code for compilation, and whether a function of the namespace runs it."""

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
    """Return whether JAX traces this code for `jit` (or `scan` and similar), so that every new value is a tracer.

    It is false in `grad` or `vmap` of an eager function, where only values that depend on the arguments are tracers.
    JAX has no public query for this, so this function checks the result of a compiled function without arguments. It
    takes about 5 µs if a transformation runs.
    """
    return not is_eager() and isinstance(_probe(), jax.core.Tracer)


BUSY: list[None] = []
"""Not empty if an operator must not call its compiled function directly.

A log adds an element while it records, and each function adds one while a thread traces it. The first write while
several threads run adds an element permanently. Operators read this one list instead of three states, which is faster.
"""


class _CompiledCall(threading.local):
    """Flag: this thread runs the code of a function of the namespace, which JAX traces."""

    active = False


COMPILED_CALL = _CompiledCall()


def within_function() -> bool:
    """Return whether a function of the namespace, traced by JAX, runs this code.

    Then an inner call is traced with that function, without its own compiled call.
    """
    return COMPILED_CALL.active and not is_eager()


@contextlib.contextmanager
def compiled_call() -> Iterator[None]:
    """Return the context in which a function of the namespace is traced.

    It marks the errors of the function, see `is_of_function`.
    """
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
    """Return whether the code of a function raised this error.

    Otherwise JAX raised it, since it does not accept an argument.
    """
    return getattr(error, "of_function", False)
