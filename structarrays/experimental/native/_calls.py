"""Calls of functions of JAX with structured arguments: they run as under `structured`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ...transform.structured import structured
from ._jax import is_collective, is_function_of_jax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FunctionType

ON = jax.make_user_context(False)
"""Whether native calls are on. As a user context it is a part of the cache key of `jax.jit`: no program that was traced
with native calls runs without them, or the other way round."""

_PLAIN, _STRUCTURED, _SEQUENCE, _MAPPING = range(4)
_kinds: dict[type, int] = {}
"""What `has_structured` does with values of each type that it has met."""


def has_structured(values: Iterable[Any]) -> bool:
    """Return whether an array of this library is among the values, or in a list, tuple or dictionary among them.

    All calls of functions of JAX that are not compiled pay for this look at the types of the arguments.
    """
    for value in values:
        kind = _kinds.get(type(value))
        if kind is None:
            kind = _kinds[type(value)] = _kind_of(type(value))
        if kind == _PLAIN:
            continue
        if kind == _STRUCTURED or has_structured(value if kind == _SEQUENCE else value.values()):
            return True
    return False


def _kind_of(cls: type) -> int:
    if issubclass(cls, Array):
        return _STRUCTURED
    if issubclass(cls, (list, tuple)):
        return _SEQUENCE
    return _MAPPING if issubclass(cls, dict) else _PLAIN


def on_structured(function: FunctionType) -> Callable[..., Any]:
    """Return the replacement of a function of JAX, which also accepts structured arrays."""
    run = _collective(function) if is_collective(function) else structured(function)

    def native(*args: Any, **kwargs: Any) -> Any:
        if (has_structured(args) or (kwargs and has_structured(kwargs.values()))) and ON.value:
            return run(*args, **kwargs)
        return function(*args, **kwargs)

    return native


def on_cho_factor(cho_factor: FunctionType) -> Callable[..., Any]:
    """Return the replacement of `jax.scipy.linalg.cho_factor`.

    Its second result is an argument of the call, which `cho_solve` needs as it is.
    """
    native = on_structured(cho_factor)

    def with_flag(a: Any, lower: bool = False, *args: Any, **kwargs: Any) -> Any:
        return native(a, lower, *args, **kwargs)[0], lower

    return with_flag


def on_method(call: FunctionType) -> Callable[..., Any]:
    """Return the replacement of the method with which objects of a class are called: ufuncs, or `jax.custom_jvp`.

    Functions of users with derivatives of their own are called on structured arrays as before.
    """

    @functools.cache  # a new function would be compiled again
    def structured_call(function: Any) -> Callable[..., Any]:
        return structured(functools.partial(call, function))

    def native(self: Any, *args: Any, **kwargs: Any) -> Any:
        if (
            (has_structured(args) or (kwargs and has_structured(kwargs.values())))
            and ON.value
            and is_function_of_jax(self)
        ):
            return structured_call(self)(*args, **kwargs)
        return call(self, *args, **kwargs)

    return native


def on_compiled(trace: FunctionType) -> Callable[..., Any]:
    """Return the replacement of JAX's function that traces a function of `jax.jit`.

    If the function belongs to JAX, its structured form is traced instead. Then JAX compiles and caches this form as it
    does any function of pytrees, so that later calls take its fast path.
    """

    def native(fun: Any, ji: Any, ctx_mesh: Any, dbg: Any, avals: Any, args: Any, kwargs: Any) -> Any:
        if ON.value and is_function_of_jax(fun) and (has_structured(args) or has_structured(kwargs.values())):
            # The rules of `structured` recognise a function by the name of its compiled call.
            inner = jax.jit(fun, static_argnums=ji.static_argnums, static_argnames=ji.static_argnames)
            fun = functools.wraps(fun)(structured(inner))
        return trace(fun, ji, ctx_mesh, dbg, avals, args, kwargs)

    return native


def _collective(fun: Any) -> Callable[..., Any]:
    """Return a collective operation that acts on the parameters of arrays, if this gives the right value."""
    name = fun.__name__

    def run(*args: Any, **kwargs: Any) -> Any:
        for value in jax.tree.leaves((args, kwargs), is_leaf=lambda v: isinstance(v, Array)):
            if isinstance(value, Array) and not (name in ("psum", "pmean") and _is_sum_of_parameters(value)):
                raise TypeError(
                    f"{name}: the operand must be an array of JAX, got {type(value).__name__}, whose parameters do not have this "
                    f"{name}; pass its dense form, `x.to_jax()`"
                )
        return fun(*args, **kwargs)

    return run


def _is_sum_of_parameters(x: Array) -> bool:
    """Return whether a sum of arrays of this structure is the array of the sums of their parameters."""
    return type(x) is Dense or (x.linear and all(np.issubdtype(leaf.dtype, np.inexact) for leaf in jax.tree.leaves(x)))
