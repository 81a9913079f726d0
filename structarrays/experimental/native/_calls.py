"""Calls of functions of JAX with structured arguments: they run as under `structured`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ...transform.structured import structured
from ._jax import TraceCall, is_collective, is_function_of_jax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import FunctionType

ON = jax.make_user_context(False)
"""Whether native calls are on. As a user context it is a part of the cache key of `jax.jit`: no program that was traced
with native calls runs without them, or the other way round."""

_PLAIN, _STRUCTURED, _SEQUENCE, _MAPPING = range(4)


class _Kinds(dict[type, int]):
    """Kinds of values by their types, for `is_concerned`."""

    def __missing__(self, cls: type) -> int:
        if issubclass(cls, Array):
            kind = _STRUCTURED
        elif issubclass(cls, (list, tuple)):
            kind = _SEQUENCE
        else:
            kind = _MAPPING if issubclass(cls, dict) else _PLAIN
        self[cls] = kind
        return kind


_kinds = _Kinds()


def is_concerned(values: Iterable[Any], named: Mapping[str, Any] | None = None) -> bool:
    """Return whether native calls are on, and an array of this library is among the arguments of a call.

    The array may be in a list, tuple or dictionary. Calls with dense arrays look at the types, too, so that this is fast.
    """
    for value in values:
        kind = _kinds[type(value)]
        if kind == _PLAIN:
            continue
        if kind == _STRUCTURED:
            return bool(ON.value)
        if is_concerned(value if kind == _SEQUENCE else value.values()):
            return True
    return is_concerned(named.values()) if named else False


class _NativeMeta(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Array) and bool(ON.value)


class Native(metaclass=_NativeMeta):
    """The arrays of this library while native calls are on, and no objects otherwise.

    It is one of the types that JAX takes for arrays when it checks the arguments of a function. The check looks for the
    types of JAX first, so that it costs dense arrays nothing.
    """


def on_structured(function: FunctionType) -> Callable[..., Any]:
    """Return what a function of JAX does with structured arrays."""
    return _collective(function) if is_collective(function) else structured(function)


def on_cho_factor(cho_factor: FunctionType) -> Callable[..., Any]:
    """Return what `jax.scipy.linalg.cho_factor` does with structured arrays.

    Its second result is an argument of the call, which `cho_solve` needs as it is.
    """
    run = structured(cho_factor)

    def with_flag(a: Any, lower: bool = False, *args: Any, **kwargs: Any) -> Any:
        return run(a, lower, *args, **kwargs)[0], lower

    return with_flag


def on_custom_jvp(call: FunctionType) -> Callable[..., Any]:
    """Return what functions of `jax.custom_jvp` do with structured arrays.

    Functions of users are called as before.
    """

    @functools.cache  # a new function would be compiled again
    def structured_call(function: Any) -> Callable[..., Any]:
        return structured(functools.partial(call, function))

    def native(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_function_of_jax(self):
            return structured_call(self)(*args, **kwargs)
        return call(self, *args, **kwargs)

    return native


def concerns_compiled(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return whether JAX is about to trace one of its own functions for structured arrays."""
    call = TraceCall(*args)
    return is_concerned(call.args, call.kwargs) and is_function_of_jax(call.fun)


def on_compiled(trace: FunctionType) -> Callable[..., Any]:
    """Return what JAX does instead of tracing one of its functions of `jax.jit` for structured arrays.

    It traces the structured form of the function. Then JAX compiles and caches this form as it does any function of
    pytrees, so that later calls take its fast path.
    """

    def native(*args: Any) -> Any:
        call = TraceCall(*args)
        # The rules of `structured` recognise a function by the name of its compiled call.
        run = structured(jax.jit(call.fun, **call.static))
        return trace(*call._replace(fun=functools.wraps(call.fun)(run)))

    return native


def _collective(fun: Any) -> Callable[..., Any]:
    """Return a collective operation that acts on the parameters of arrays, if this gives the right value."""
    name = fun.__name__

    def checked(value: Any) -> Any:
        if not isinstance(value, Array):
            return value
        if name in ("psum", "pmean") and _is_sum_of_parameters(value):
            return value.assuming(frozenset())
        raise TypeError(
            f"{name}: the operand must be an array of JAX, got {type(value).__name__}, whose parameters do not have this "
            f"{name}; pass its dense form, `x.to_jax()`"
        )

    def run(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = jax.tree.map(checked, (args, kwargs), is_leaf=lambda value: isinstance(value, Array))
        return fun(*args, **kwargs)

    return run


def _is_sum_of_parameters(x: Array) -> bool:
    """Return whether a sum of arrays of this structure is the array of the sums of their parameters."""
    return type(x) is Dense or (x.linear and all(np.issubdtype(leaf.dtype, np.inexact) for leaf in jax.tree.leaves(x)))
