"""The way of our arrays to the host, where NumPy computes, and the way of results into the array that a call names with ``out``."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any, cast

import jax
import numpy as np

from .._core.array import writes
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._functions.conversion import asarray, densified
from .._functions.data_type import astype
from .._functions.joining import broadcast_to
from .._functions.searching import where as select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from typing import Literal, TypeAlias

    from .._core.typing import DTypeLike

    Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]


@functools.cache
def signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function; it takes some hundred microseconds to make."""
    return inspect.signature(function)


def as_ours(x: Any) -> Array:
    """An array of the namespace of what NumPy takes for one."""
    return x if isinstance(x, Array) else asarray(x)


def to_numpy(
    x: Array, dtype: DTypeLike | None = None, copy: bool | None = None, *, name: str = "numpy.asarray"
) -> np.ndarray:
    """The array on the host: a fresh copy, which can be written to.

    Parameters
    ----------
    x : Array
        Any structure; expanded under the policy of `densify`.
    dtype : dtype, optional
        The dtype of the result.
    copy : bool, optional
        With False, the read-only memory of a `Dense` on the host.

    Raises
    ------
    ValueError
        If ``copy=False`` and a copy is needed.
    """
    x = x.__copy__()  # another thread may change the class of the array
    dense = x if type(x) is Dense else _expanded(x, name)
    data = dense.data
    if copy is False:
        shared = dense is x and not isinstance(data, jax.core.Tracer) and (dtype is None or dtype == data.dtype)
        if not shared or any(d.platform != "cpu" for d in data.devices()):
            raise ValueError(f"{name}: copy=False, but a copy is needed of a {type(x).__name__} of dtype {x.dtype}")
        return np.asarray(data)
    return np.array(np.asarray(data), dtype)  # JAX's own is read-only, which compiled code of SciPy does not take


def _expanded(x: Array, name: str) -> Dense:
    if is_traced(x):
        return densified(x, name)
    with jax.ensure_compile_time_eval():  # a constant has values inside `jit`, too
        return densified(x, name)


def is_traced(value: Any) -> bool:
    """Whether a value, or a parameter of an array, is known only when a function being transformed is called."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def on_host(value: Any, name: str) -> Any:
    """Arguments of a function of NumPy with NumPy arrays in the place of ours.

    Raises
    ------
    TypeError
        If one of them has no values, since a function is being transformed by JAX.
    DensifyError
        If the policy forbids to expand one.
    """
    if isinstance(value, (Array, jax.core.Tracer)):
        if is_traced(value):
            raise TypeError(_no_values(name))
        return to_numpy(cast("Array", value), name=name)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(on_host(v, name) for v in value)
    if isinstance(value, tuple):
        return type(value)(*(on_host(v, name) for v in value))
    if isinstance(value, dict):
        return {k: on_host(v, name) for k, v in value.items()}
    return value


def _no_values(name: str) -> str:
    module, _, short = name.rpartition(".")
    where = module.replace("numpy", "jax.numpy", 1)
    own = jax.numpy if where == "jax.numpy" else getattr(jax.numpy, where.removeprefix("jax.numpy."), None)
    same = f"; structarrays.structured({where}.{short})" if hasattr(own, short) else ""
    return (
        f"{name}, or an option that it was given, has no counterpart in structarrays, so that NumPy would have to compute it, from "
        "values; under jax.jit, grad, vmap and their like arrays have none. Ways out: a function of structarrays"
        f"{same}; structarrays.host_function, which calls NumPy from compiled code; or the call outside of the transformation"
    )


def into(
    out: Any, result: Any, name: str, *, where: Any = True, casting: Casting = "same_kind", broadcast: bool = False
) -> Any:
    """Write a result into the array that a call names with ``out``, and return that array.

    Parameters
    ----------
    out : Array, numpy.ndarray, or a tuple of these and None
        As many as there are results.
    result : array or tuple of arrays
        What was computed.
    name : str
        The function, for errors.
    where : bool or array of bool
        Which elements are written.
    casting : str
        What may be lost on the way to the dtype of `out`, in NumPy's words.
    broadcast : bool
        Whether `out` may be larger, as the results of ufuncs may.
    """
    if isinstance(out, tuple):
        if len(out) == 1:
            result = result[0] if isinstance(result, tuple) else result
            return into(out[0], result, name, where=where, casting=casting, broadcast=broadcast)
        return tuple(
            r if o is None else into(o, r, name, where=where, casting=casting, broadcast=broadcast)
            for o, r in zip(out, result, strict=True)
        )
    if not isinstance(result, Array):
        result = np.asarray(result)
    shape = out.shape if broadcast else result.shape
    if out.shape != shape or (broadcast and np.broadcast_shapes(out.shape, result.shape) != out.shape):
        raise ValueError(f"{name}: out has shape {out.shape}, but the result has shape {result.shape}")
    if not np.can_cast(result.dtype, out.dtype, casting):
        raise TypeError(
            f"{name}: a result of dtype {result.dtype} cannot be cast to that of out, {out.dtype}, by {casting!r}"
        )
    if not isinstance(out, Array):
        np.copyto(out, on_host(result, name), casting=casting, where=on_host(where, name))
        return out
    result = astype(asarray(result), out.dtype, copy=False)
    if result.shape != shape:
        result = broadcast_to(result, shape)
    with writes.LOCK:
        if where is not True:
            result = select(where, result, out)
        writes.assign_result(out, result, name)
    return out


def while_written(out: Any, inputs: Iterable[Any]) -> AbstractContextManager[Any]:
    """The context of a call with `out`: the lock if `out` is one of the inputs. Otherwise a write of another thread in between would be lost."""
    outs = out if isinstance(out, tuple) else (out,)
    own = any(isinstance(o, Array) and any(o is x for x in inputs) for o in outs)
    return writes.LOCK if own else contextlib.nullcontext()
