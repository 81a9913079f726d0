"""Data types: casting, and questions about dtypes. Only `astype` looks at the elements of an array."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core import dtypes
from .._core.array.arguments import ArrayLike, DTypeLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import cast, densify
from .._core.dispatch import late
from .._core.dispatch.decorator import function
from .._core.dispatch.registry import FUNCTIONS
from .comparisons_and_logic import logical_or
from .inspection import check_device


def _astype(x: ArrayLike, dtype: np.dtype, /) -> Array:
    """What is compiled of `astype`."""
    x = typing.cast("Array", x)
    if x.dtype.kind == "c" and dtype.kind == "b":
        # XLA looks at the real part only.
        parts = [cast(part(x), dtype) for part in (late.real, late.imag)]
        return logical_or(*parts)
    return cast(x, dtype)


_astype.__name__ = "astype"  # as `record` and errors show it; the function of the namespace is below
_compiled_astype = function("x")(_astype)


def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = True, device: Any = None) -> Array:
    """Cast an array to another dtype; its structure stays.

    Parameters
    ----------
    x : array
        The array, of any structure.
    dtype : dtype
        The dtype of the result.
    copy : bool
        Whether to return a new array, too, where `x` has that dtype already; if False, that is `x` itself.
    device : jax.Device or jax.sharding.Sharding, optional
        Where to place the result; by default where `x` is.

    Returns
    -------
    array
        Of the structure of `x`.

    Raises
    ------
    TypeError
        If `x` is complex and `dtype` is real (take `real` or `imag` first).
    ValueError
        If `dtype` is a 64-bit dtype while JAX's x64 switch is off.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.astype(sa.Diagonal([1.0, 2.0]), sa.float32)
    Diagonal([1., 2.], shape=(2, 2), dtype=float32)
    """
    if not isinstance(x, Array):
        x = late.asarray(x)
    dtype = dtypes.as_dtype(dtype, "astype: dtype")
    check_device(device, "astype")
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(f"astype: cannot cast {x.dtype} to {dtype}; take xp.real(x) or xp.imag(x) first")
    if x.dtype != dtype:
        x = _compiled_astype(x, dtype)
    elif copy:
        x = late.asarray(x, copy=True)
    return x if device is None or device == x.device else x.to_device(device)


typing.cast("dict[str, Any]", FUNCTIONS)["astype"] = astype


@function("x")
def view(x: ArrayLike, dtype: DTypeLike, /) -> Dense:
    """The bytes of an array taken for elements of another dtype, as `numpy.ndarray.view`; not a view to write through."""
    x = typing.cast("Array", x)
    return Dense.make((densify(x, "view").data.view(dtype),))


def _dtype_of(value: Any, function: str, argument: str) -> np.dtype:
    """The dtype of an array, or the dtype itself, whether it exists on the device or not."""
    if isinstance(value, (Array, jax.Array, np.ndarray, np.generic)):
        return value.dtype
    dtype = _dtype(value, function, argument)
    if dtype.kind != "b" and not jnp.issubdtype(dtype, np.number):
        raise TypeError(f"{function}: {argument} must be a dtype of booleans or numbers, got {value!r}")
    return dtype


def _dtype(value: Any, function: str, argument: str) -> np.dtype:
    if isinstance(value, dtypes.DType):
        return value.dtype
    if isinstance(value, type) and value in (int, float, complex):
        return dtypes.default_dtype({int: "i", float: "f", complex: "c"}[value])
    if value is not None and not isinstance(value, (Array, jax.Array, np.ndarray, np.generic)):
        try:
            result: np.dtype = np.dtype(value)
            return result
        except TypeError:
            pass
    raise TypeError(f"{function}: {argument} must be a dtype, got {value!r}")


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether one dtype can be cast to another by the rules of type promotion.

    Parameters
    ----------
    from_ : dtype or array
        The dtype, or an array of it; the elements are not looked at.
    to : dtype
        The other dtype.

    Returns
    -------
    bool
        True if the promotion of the two is `to`; integers promote to every floating dtype.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.can_cast(sa.int32, sa.int64), sa.can_cast(sa.float64, sa.float32)
    (True, False)
    """
    from_, to = _dtype_of(from_, "can_cast", "from_"), _dtype(to, "can_cast", "to")
    if from_.kind in "biu" and to.kind not in "biu":
        return True
    return bool(np.can_cast(from_, to))


@dataclass(frozen=True)
class finfo_object:
    """The limits of a floating dtype: what `finfo` returns."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


@dataclass(frozen=True)
class iinfo_object:
    """The limits of an integer dtype: what `iinfo` returns."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def finfo(type: Any, /) -> finfo_object:
    """The limits of a floating dtype, or of the parts of a complex one.

    Parameters
    ----------
    type : dtype or array
        The dtype, or an array of it.

    Returns
    -------
    finfo_object
        With `bits`, `eps`, `max`, `min`, `smallest_normal` (Python numbers) and `dtype`.

    Raises
    ------
    TypeError
        If the dtype is not floating.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.finfo(sa.float32).eps
    1.1920928955078125e-07
    """
    dtype = _dtype_of(type, "finfo", "type")
    if not jnp.issubdtype(dtype, jnp.inexact):
        raise TypeError(f"finfo: type must be a floating dtype, got {dtype}; iinfo is for integers")
    info = jnp.finfo(dtype)
    return finfo_object(
        bits=int(info.bits),
        eps=float(info.eps),
        max=float(info.max),
        min=float(info.min),
        smallest_normal=float(info.smallest_normal),
        dtype=np.dtype(info.dtype),
    )


def iinfo(type: Any, /) -> iinfo_object:
    """The limits of an integer dtype.

    Parameters
    ----------
    type : dtype or array
        The dtype, or an array of it.

    Returns
    -------
    iinfo_object
        With `bits`, `max`, `min` (Python integers) and `dtype`.

    Raises
    ------
    TypeError
        If the dtype is not an integer one.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.iinfo(sa.int8).max
    127
    """
    dtype = _dtype_of(type, "iinfo", "type")
    if dtype.kind not in "iu":
        raise TypeError(f"iinfo: type must be an integer dtype, got {dtype}; finfo is for floating dtypes")
    info = np.iinfo(dtype)
    return iinfo_object(bits=int(info.bits), max=int(info.max), min=int(info.min), dtype=dtype)


def isdtype(dtype: DTypeLike, kind: str | tuple[Any, ...] | DTypeLike) -> bool:
    """Whether a dtype is of a kind.

    Parameters
    ----------
    dtype : dtype
        The dtype.
    kind : str or dtype or tuple of these
        One of the standard's kinds, such as ``"real floating"``; a dtype, to which it is compared; or several.

    Returns
    -------
    bool
        Whether `dtype` is of that kind, or of one of them.

    Raises
    ------
    ValueError
        If a kind is unknown.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.isdtype(sa.float32, "real floating"), sa.isdtype(sa.int8, ("bool", sa.float64))
    (True, False)
    """
    dtype = _dtype(dtype, "isdtype", "dtype")
    kinds = kind if isinstance(kind, tuple) else (kind,)
    # Every kind is looked at, so that a mistake in the last one is told, too.
    found = [dtypes.is_kind(dtype, k) if isinstance(k, str) else dtype == _dtype(k, "isdtype", "kind") for k in kinds]
    return any(found)


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The dtype of a result of operands with these dtypes.

    Parameters
    ----------
    *arrays_and_dtypes : array, dtype or Python scalar
        Arrays are asked for their dtypes only. A Python scalar takes the dtype of the others, unless its kind is higher.

    Returns
    -------
    numpy.dtype
        The common dtype; that of the scalars by default, if there is nothing else.

    Raises
    ------
    ValueError
        If there are no arguments.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.result_type(sa.ones(3, dtype=sa.float32), 2.0, sa.int64)
    dtype('float32')
    """
    if not arrays_and_dtypes:
        raise ValueError("result_type needs at least one array or dtype")
    strong: list[np.dtype] = []
    scalars: list[type] = []
    for i, value in enumerate(arrays_and_dtypes):
        # NumPy's scalars have a dtype, although some of them are Python numbers as well.
        if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
            scalars.append(next(c for c in (bool, int, float, complex) if isinstance(value, c)))
        elif getattr(value, "weak_type", False):  # a Python scalar that JAX has made an array of
            scalars.append({"b": bool, "i": int, "u": int, "c": complex}.get(value.dtype.kind, float))
        else:
            strong.append(_dtype_of(value, "result_type", f"argument {i + 1}"))
    if strong:
        result = dtypes.promote(*strong)
    else:
        result = np.dtype(bool)
    for scalar in scalars:
        result = dtypes.promote_scalar(result, scalar)
    return result
