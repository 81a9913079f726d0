"""Conversion of our arrays to NumPy arrays on the host, and writes of results into ``out``."""

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
from .._functions.conversion import asarray, densified, exact_integers
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
    """Return the signature of a function; cached, because inspection takes some hundred microseconds."""
    return inspect.signature(function)


def as_ours(x: Any) -> Array:
    """Convert an array-like object to an array of this library."""
    return x if isinstance(x, Array) else asarray(x)


def cast_to(value: Any, dtype: np.dtype, name: str) -> Array:
    """Convert a value to an array of a data type without a check, as NumPy does, except for Python's numbers.

    Raises
    ------
    OverflowError
        If the data type is of integers, and a number, or an integer in a list, does not fit.
    """
    if dtype.kind in "iu":
        if type(value) is float:
            return asarray(dtype.type(value))  # raises OverflowError if it is infinite
        integers = exact_integers(value, dtype, name)
        if integers is not None:
            return asarray(integers)
    return astype(asarray(value), dtype, copy=False)


def to_numpy(
    x: Array, dtype: DTypeLike | None = None, copy: bool | None = None, *, name: str = "numpy.asarray"
) -> np.ndarray:
    """Convert an array to a NumPy array: by default a new copy, which is writeable.

    Parameters
    ----------
    x : Array
        Array of any structure, densified under the policy of `densify`.
    dtype : dtype, optional
        Data type of the result. The default is the data type of `x`.
    copy : bool, optional
        If False, return the read-only memory of a `Dense` on the host, or raise.
    name : str, default "numpy.asarray"
        Function that is named in errors.

    Returns
    -------
    numpy.ndarray
        Array of the shape of `x`.

    Raises
    ------
    ValueError
        If ``copy=False`` and a copy is needed.
    """
    x = x.__copy__()  # another thread may change the class of the array
    dense = x if type(x) is Dense else _expanded(x, name)
    data = dense.data
    if not isinstance(data, jax.core.Tracer):
        jax.block_until_ready(data)  # raises if there was no memory for it, where reading it would end the process
    if copy is False:
        shared = dense is x and not isinstance(data, jax.core.Tracer) and (dtype is None or dtype == data.dtype)
        if not shared or any(d.platform != "cpu" for d in data.devices()):
            raise ValueError(
                f"{name}: copy must not be False, because a {type(x).__name__} of dtype {x.dtype} needs a copy; omit copy"
            )
        return np.asarray(data)
    return np.array(np.asarray(data), dtype)  # JAX's memory is read-only, which compiled code of SciPy rejects


def _expanded(x: Array, name: str) -> Dense:
    if is_traced(x):
        return densified(x, name)
    with jax.ensure_compile_time_eval():  # constants have values under `jit`, too
        return densified(x, name)


def is_traced(value: Any) -> bool:
    """Return whether a value, or a parameter of an array, is a tracer of JAX."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def on_host(value: Any, name: str) -> Any:
    """Replace our arrays in the arguments of a NumPy function by NumPy arrays.

    Raises
    ------
    TypeError
        If an array is traced, so that it has no values.
    DensifyError
        If the policy of `densify` forbids the dense form of an array.
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
        f"{name}: arrays must have values, got a traced array, because structarrays has no counterpart of the function or of an "
        f"option. Use another function of structarrays{same}; structarrays.host_function, which calls NumPy from compiled code; or "
        "call the function outside of jax.jit, grad and vmap"
    )


def into(
    out: Any, result: Any, name: str, *, where: Any = True, casting: Casting = "same_kind", broadcast: bool = False
) -> Any:
    """Write a result into `out`, and return `out`.

    Parameters
    ----------
    out : Array, numpy.ndarray, or a tuple of these and None
        Destination of each result.
    result : array or tuple of arrays
        Results of the function.
    name : str
        Function that is named in errors.
    where : bool or array of bool, default True
        Mask of the elements to write.
    casting : {"no", "equiv", "safe", "same_kind", "unsafe"}, default "same_kind"
        Which casts to the data type of `out` are allowed, as in NumPy.
    broadcast : bool, default False
        Whether a result may be broadcast to the shape of `out`, as in ufuncs.

    Returns
    -------
    Array, numpy.ndarray or tuple
        The destination, or the result where the destination is None.
    """
    if isinstance(out, tuple):
        if len(out) == 1:
            result = result[0] if isinstance(result, tuple) else result
            return into(out[0], result, name, where=where, casting=casting, broadcast=broadcast)
        return tuple(
            r if o is None else into(o, r, name, where=where, casting=casting, broadcast=broadcast)
            for o, r in zip(out, result, strict=True)
        )
    if not isinstance(result, Array | jax.Array):
        result = np.asarray(result)
    shape = out.shape if broadcast else result.shape
    if out.shape != shape or (broadcast and np.broadcast_shapes(out.shape, result.shape) != out.shape):
        raise ValueError(f"{name}: out must have the shape of the result, {result.shape}, got {out.shape}")
    if not np.can_cast(result.dtype, out.dtype, casting):
        raise TypeError(
            f"{name}: a result of dtype {result.dtype} cannot be cast to the dtype of out, {out.dtype}, with casting={casting!r}"
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
    """Return the context of a call with `out`: the lock if `out` is an input, which protects writes of other threads."""
    outs = out if isinstance(out, tuple) else (out,)
    own = any(isinstance(o, Array) and any(o is x for x in inputs) for o in outs)
    return writes.LOCK if own else contextlib.nullcontext()
