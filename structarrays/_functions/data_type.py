"""Data types: casts, and queries of data types. Only `astype` reads the elements of an array."""

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
from .._core.dispatch.results import follow_eager_operands
from .comparisons_and_logic import logical_or
from .inspection import check_device


def _astype(x: ArrayLike, dtype: np.dtype, /) -> Array:
    """Cast an array; the compiled part of `astype`."""
    x = typing.cast("Array", x)
    if x.dtype.kind == "c" and dtype.kind == "b":
        # XLA casts the real part only.
        parts = [cast(part(x), dtype) for part in (late.real, late.imag)]
        return logical_or(*parts)
    return cast(x, dtype)


_astype.__name__ = "astype"  # the name in logs and errors; the public function is below
_compiled_astype = function("x")(_astype)


def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = True, device: Any = None) -> Array:
    """Cast an array to a data type.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.
    dtype : dtype
        Data type of the result.
    copy : bool, default True
        If False, return `x` itself if it has this data type already. If True, always return a new array.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the device of `x`.

    Returns
    -------
    array, (...)
        Array with the structure of `x`.

    Raises
    ------
    TypeError
        If `x` is complex and `dtype` is real; use `real` or `imag` instead.
    ValueError
        If `dtype` has 64 bits while JAX's 64-bit mode is off.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.astype(sa.Diagonal([1.0, 2.0]), sa.float32)
    Diagonal([1., 2.], shape=(2, 2), dtype=float32)
    """
    if not isinstance(x, Array):
        cast_: Array = follow_eager_operands(astype(late.asarray(x), dtype, copy=copy, device=device), (x,))
        return cast_
    dtype = dtypes.as_dtype(dtype, "astype: dtype")
    check_device(device, "astype")
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(f"astype: cannot cast {x.dtype} to {dtype}; use real(x) or imag(x) instead")
    if x.dtype != dtype:
        x = _compiled_astype(x, dtype)
    elif copy:
        x = late.asarray(x, copy=True)
    return x if device is None or device == x.device else x.to_device(device)


typing.cast("dict[str, Any]", FUNCTIONS)["astype"] = astype


@function("x")
def view(x: ArrayLike, dtype: DTypeLike, /) -> Dense:
    """Reinterpret the bytes of an array in another data type, as `numpy.ndarray.view`. The result is not a view."""
    x = typing.cast("Array", x)
    return Dense.make((densify(x, "view").data.view(dtype),))


def _dtype_of(value: Any, function: str, argument: str) -> np.dtype:
    """Return the data type of an array, or the data type itself, even if the device does not support it."""
    if isinstance(value, (Array, jax.Array, np.ndarray, np.generic)):
        return value.dtype
    dtype = _dtype(value, function, argument)
    if dtype.kind != "b" and not jnp.issubdtype(dtype, np.number):
        raise TypeError(f"{function}: {argument} must be a numeric or boolean dtype, got {value!r}")
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
    """Return whether a data type can be cast to another one by the rules of type promotion.

    Parameters
    ----------
    from_ : dtype or array
        Data type to cast from, or an array of this data type. The elements are not read.
    to : dtype
        Data type to cast to.

    Returns
    -------
    bool
        True if the promoted data type of both is `to`. Integers promote to every floating-point data type.

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
    """Machine limits of a floating-point data type, returned by `finfo`."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


@dataclass(frozen=True)
class iinfo_object:
    """Machine limits of an integer data type, returned by `iinfo`."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def finfo(type: Any, /) -> finfo_object:
    """Return the machine limits of a floating-point data type.

    Parameters
    ----------
    type : dtype or array
        Real or complex floating-point data type, or an array of this data type. For a complex data type, the limits are
        the limits of the real and imaginary parts.

    Returns
    -------
    finfo_object
        Object with the attributes `bits`, `eps`, `max`, `min`, `smallest_normal` (Python numbers) and `dtype`.

    Raises
    ------
    TypeError
        If the data type is not a floating-point data type.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.finfo(sa.float32).eps
    1.1920928955078125e-07
    """
    dtype = _dtype_of(type, "finfo", "type")
    if not jnp.issubdtype(dtype, jnp.inexact):
        raise TypeError(f"finfo: type must be a floating-point dtype, got {dtype}; use iinfo for integers")
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
    """Return the machine limits of an integer data type.

    Parameters
    ----------
    type : dtype or array
        Integer data type, or an array of this data type.

    Returns
    -------
    iinfo_object
        Object with the attributes `bits`, `max`, `min` (Python integers) and `dtype`.

    Raises
    ------
    TypeError
        If the data type is not an integer data type.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.iinfo(sa.int8).max
    127
    """
    dtype = _dtype_of(type, "iinfo", "type")
    if dtype.kind not in "iu":
        raise TypeError(f"iinfo: type must be an integer dtype, got {dtype}; use finfo for floating-point dtypes")
    info = np.iinfo(dtype)
    return iinfo_object(bits=int(info.bits), max=int(info.max), min=int(info.min), dtype=dtype)


def isdtype(dtype: DTypeLike, kind: str | tuple[Any, ...] | DTypeLike) -> bool:
    """Return whether a data type is of a kind.

    Parameters
    ----------
    dtype : dtype
        Data type to check.
    kind : {"bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"}
        Kind of data types; or a data type, which is compared with `dtype`; or a tuple of kinds and data types.

    Returns
    -------
    bool
        True if `dtype` is of the kind, or of one of the kinds.

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
    # Check every kind, so that an unknown kind always raises.
    found = [dtypes.is_kind(dtype, k) if isinstance(k, str) else dtype == _dtype(k, "isdtype", "kind") for k in kinds]
    return any(found)


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """Return the data type that results from the rules of type promotion.

    Parameters
    ----------
    *arrays_and_dtypes : array, dtype or Python scalar
        Operands. The elements of arrays are not read. A Python scalar takes the data type of the other operands, unless
        its kind is higher.

    Returns
    -------
    numpy.dtype
        Promoted data type. If all operands are Python scalars, the default data type of their kind.

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
        raise ValueError("result_type: at least one array or dtype must be given, got none")
    strong: list[np.dtype] = []
    scalars: list[type] = []
    for i, value in enumerate(arrays_and_dtypes):
        # NumPy's scalars have a dtype, although some are subclasses of Python numbers.
        if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
            scalars.append(next(c for c in (bool, int, float, complex) if isinstance(value, c)))
        elif getattr(value, "weak_type", False):  # a Python scalar that JAX converted to an array
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
