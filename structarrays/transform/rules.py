"""The table of rules of `structured`, and what all of them use.

A rule binds a primitive of JAX to the function of the namespace that does the same, so that a kernel serves both. It gets the values
of the operands: arrays of JAX, structured arrays (never `Dense`), or constant matrices (`constants`).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import densify, strip_weak
from .._core.dispatch.recording import active_log
from .._core.dispatch.registry import FUNCTIONS
from .._core.jax_internals.equations import bind, is_recognised
from .constant_patterns import LAZY
from .interpreter import Interpreter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .._core.typing import DTypeLike, Static

_SPECIAL = (Array, *LAZY)


def is_special(value: object) -> bool:
    """Whether a value is none of JAX's own."""
    return isinstance(value, _SPECIAL)


def expanded(interpreter: Interpreter, equation: Any, *values: Any) -> Any:
    """The rule where there is no other: structured operands are expanded, and JAX does what it does."""
    return bind(equation, [plain(value, equation.primitive.name) for value in values])


class _Structured(Interpreter):
    """An interpreter to which equations of an unknown form are opaque, those within its reach and those that bring special values."""

    def evaluate(self, equation: Any, values: Sequence[Any], used: Sequence[bool] | None = None) -> Sequence[Any]:
        """Evaluate one equation; see `Interpreter.evaluate`."""
        concerned = equation.primitive.name in self.sources or any(map(self.special, values))
        if concerned and not is_recognised(equation):
            result = expanded(self, equation, *values)
            return result if equation.primitive.multiple_results else [result]
        return super().evaluate(equation, values, used)


STRUCTURED = _Structured(special=is_special, default=expanded)
"""The interpretation of JAX programs in which arrays have structure."""

rule = STRUCTURED.rule


def plain(value: Any, name: str) -> Any:
    """A value as an array of JAX, expanded under the policy; `name` says by what."""
    if isinstance(value, Array):
        return densify(value, name).data
    return value.dense() if isinstance(value, LAZY) else value


def array(value: Any) -> Array:
    """A value as an array of the namespace, inside a compiled call."""
    if isinstance(value, Array):
        return value
    if isinstance(value, LAZY):
        return value.array
    return Dense.make((value if isinstance(value, jax.Array) else jnp.asarray(value),))


def unwrapped(value: Any) -> Any:
    """A result of the namespace as a value: what is dense is an array of JAX."""
    if type(value) is Dense:
        return strip_weak(value.data)
    return value


def involved(values: Iterable[Any]) -> bool:
    """Whether a structured array is among the values, not just constants of the program."""
    return any(isinstance(value, Array) for value in values)


def call(name: str, *arrays: Any, **static: Any) -> Any:
    """The result of a function of the namespace, as a value; of one that returns a flag beside it, the result."""
    if name in _TRACED_ONCE and active_log() is None:
        result = _compiled((name, tuple(static.items())), *map(array, arrays))
    else:
        result = _direct(name, arrays, static)
    return unwrapped(result) if isinstance(result, Array) else result


_TRACED_ONCE = {"matmul", "tensordot", "linalg.solve", "linalg.slogdet", "linalg.inv", "linalg.cholesky", "sum"}
"""Functions whose kernels take long to trace, so that equal calls share what was traced."""


def _direct(name: str, arrays: Sequence[Any], static: Static) -> Any:
    function = FUNCTIONS[name]
    # The code of an elementwise function is a formula for what is stored; what makes it a function of arrays stands beside it.
    define = getattr(function, "define", function.__wrapped__)
    result = define(*map(array, arrays), **static)
    return result[0] if getattr(function, "checked", None) else result


@functools.partial(jax.jit, static_argnums=0)
def _compiled(call: tuple[str, tuple[tuple[str, Any], ...]], *arrays: Any) -> Any:
    name, static = call
    return _direct(name, arrays, dict(static))


def cast(value: Any, dtype: DTypeLike) -> Any:
    """A value with another dtype, unless it has it."""
    if value.dtype == dtype:
        return value
    return value.cast(dtype) if isinstance(value, Array) else jax.lax.convert_element_type(value, dtype)
