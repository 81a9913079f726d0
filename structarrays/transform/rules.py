"""The registry of rules of `structured`, and functions that all rules use.

A rule maps a primitive of JAX to the equivalent function of the namespace, so that one kernel serves both. It receives
the values of the operands: arrays of JAX, structured arrays (never `Dense`), or constant matrices
(`constant_patterns`).
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
from .._core.dispatch.tracing import compiled_call
from .._core.jax_internals.equations import bind, is_recognised
from .._numerics.conversions import converted
from .constant_patterns import LAZY
from .interpreter import Interpreter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .._core.typing import DTypeLike, Static

_SPECIAL = (Array, *LAZY)


def is_special(value: object) -> bool:
    """Return whether a value is not one of JAX's own."""
    return isinstance(value, _SPECIAL)


def expanded(interpreter: Interpreter, equation: Any, *values: Any) -> Any:
    """Densify structured operands and let JAX evaluate the equation; the default rule."""
    return bind(equation, [plain(value, equation.primitive.name) for value in values])


class _Structured(Interpreter):
    """An interpreter that treats equations of an unknown form as opaque if they have special operands or may create
    special values.
    """

    def evaluate(self, equation: Any, values: Sequence[Any], used: Sequence[bool] | None = None) -> Sequence[Any]:
        """Evaluate one equation; see `Interpreter.evaluate`."""
        concerned = equation.primitive.name in self.sources or any(map(self.special, values))
        if concerned and not is_recognised(equation):
            result = expanded(self, equation, *values)
            return result if equation.primitive.multiple_results else [result]
        return super().evaluate(equation, values, used)


STRUCTURED = _Structured(special=is_special, default=expanded)
"""Interpreter of JAX programs on structured arrays."""

rule = STRUCTURED.rule


def plain(value: Any, name: str) -> Any:
    """Convert a value to an array of JAX; it densifies under the policy, and `name` is the operation in messages."""
    if isinstance(value, Array):
        return densify(value, name).data
    return value.dense() if isinstance(value, LAZY) else value


def array(value: Any) -> Array:
    """Convert a value to an array of the namespace, inside a compiled call."""
    if isinstance(value, Array):
        return value
    if isinstance(value, LAZY):
        return value.array
    return Dense.make((value if isinstance(value, jax.Array) else jnp.asarray(value),))


def unwrapped(value: Any) -> Any:
    """Convert a result of the namespace to a value: a dense result becomes an array of JAX."""
    if type(value) is Dense:
        return strip_weak(value.data)
    return value


def involved(values: Iterable[Any]) -> bool:
    """Return whether a structured array, and not only constants of the program, is among the values."""
    return any(isinstance(value, Array) for value in values)


def call(name: str, *arrays: Any, **static: Any) -> Any:
    """Call a function of the namespace and return its result as a value, without the flag of a checked function."""
    if name in _TRACED_ONCE and active_log() is None:
        result = _compiled((name, tuple(static.items())), *map(array, arrays))
    else:
        result = _direct(name, arrays, static)
    return unwrapped(result) if isinstance(result, Array) else result


_TRACED_ONCE = {"matmul", "tensordot", "linalg.solve", "linalg.slogdet", "linalg.inv", "linalg.cholesky", "sum"}
"""Functions whose kernels take long to trace, so that equal calls share one trace."""


def _direct(name: str, arrays: Sequence[Any], static: Static) -> Any:
    function = FUNCTIONS[name]
    # The wrapped code of an elementwise function is a formula for entries; `define` is the function of arrays.
    define = getattr(function, "define", function.__wrapped__)
    with compiled_call():
        result = define(*map(array, arrays), **static)
    return result[0] if getattr(function, "checked", None) else result


@functools.partial(jax.jit, static_argnums=0)
def _compiled(call: tuple[str, tuple[tuple[str, Any], ...]], *arrays: Any) -> Any:
    name, static = call
    return _direct(name, arrays, dict(static))


def cast(value: Any, dtype: DTypeLike) -> Any:
    """Cast a value to another dtype, if it differs."""
    if value.dtype == dtype:
        return value
    return value.cast(dtype) if isinstance(value, Array) else converted(value, dtype)
