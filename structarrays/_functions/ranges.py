"""Creation functions of ranges and grids."""

from __future__ import annotations

import math
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._core import dtypes
from .._core.array.arguments import ArrayLike, DTypeLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import densify
from .._core.dispatch.decorator import function
from .._core.dispatch.registry import FUNCTIONS
from .._numerics import dense_creation
from .._numerics.symbolic import as_length, is_dimension, is_symbolic
from .conversion import asarray, on_host, put
from .data_type import astype
from .inspection import check_device


def arange(
    start: ArrayLike,
    /,
    stop: ArrayLike | None = None,
    step: ArrayLike = 1,
    *,
    dtype: DTypeLike | None = None,
    device: Any = None,
) -> Array:
    """Return evenly spaced values in the half-open interval ``[start, stop)``.

    Parameters
    ----------
    start : int or float
        Start of the interval. If `stop` is omitted, the interval is ``[0, start)``.
    stop : int or float, optional
        End of the interval. The result does not contain it.
    step : int or float, default 1
        Distance between two values. It must not be 0.
    dtype : dtype, optional
        Data type of the array. The default is the default integer data type if all arguments are integers, otherwise
        the default floating-point data type.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the default device.

    Returns
    -------
    array, (n,)
        Dense array of ``n = max(0, ceil((stop - start) / step))`` values.

    Raises
    ------
    ValueError
        If `step` is 0, or the number of values is not finite.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.arange(1, 10, 3)
    Dense([1, 4, 7], dtype=int64)
    """
    if stop is None:
        start, stop = 0, start
    if is_symbolic(stop) and is_dimension(stop):
        first, by = _real_number(start, "arange", "start"), _real_number(step, "arange", "step")
        return _placed(jnp.arange(first, cast("int", stop), by, dtype=dtype), device)
    arguments = {"start": start, "stop": stop, "step": step}
    start, stop, step = (_real_number(v, "arange", name) for name, v in arguments.items())
    check_device(device, "arange")
    if step == 0:
        raise ValueError("arange: step must be nonzero, got 0")
    integers = all(isinstance(v, int) for v in (start, stop, step))
    dtype = dtypes.default_dtype("i" if integers else "f") if dtype is None else dtypes.as_dtype(dtype)
    if integers:
        count: Any = max(0, -((start - stop) // step))
    else:
        quotient = (stop - start) / step
        if not math.isfinite(quotient):
            raise ValueError(
                f"arange: the number of values must be finite, got start {start}, stop {stop} and step {step}"
            )
        count = max(0, math.ceil(quotient))
    if not (integers and dtype.kind in "iu"):
        # The same formula on the host and on the device; NumPy's formula accumulates rounding errors.
        start, step = float(start), float(step)
        if on_host(count):
            return put((start + step * np.arange(count)).astype(dtype), device)
        work = dtype if dtype.kind == "f" else dtypes.default_dtype("f")
        data = start + step * jax.lax.iota(work, count)
        return _placed(data.astype(dtype), device)
    start, step = cast("int", start), cast("int", step)
    for v in (start, start + step * (count - 1)) if count else ():
        if not np.iinfo(dtype).min <= v <= np.iinfo(dtype).max:
            raise OverflowError(f"arange: the Python integer {v} does not fit into {dtype}")
    if on_host(count):
        return put(np.asarray(range(start, start + step * count, step), dtype), device)
    # Modulo 2**bits, so that a negative step is no problem for unsigned integers.
    wrap = np.dtype(dtype.name.replace("int", "uint") if dtype.kind == "i" else dtype)
    bits = 8 * dtype.itemsize
    scalar: Any = wrap.type
    first, by = (scalar(v % (1 << bits)) for v in (start, step))
    return _placed((first + by * jax.lax.iota(wrap, count)).astype(dtype), device)


def _placed(data: jax.Array, device: Any) -> Dense:
    return Dense.make((data if device is None else jax.device_put(data, device),))


def _real_number(value: Any, name: str, argument: str) -> int | float:
    """Convert a Python scalar, a NumPy scalar or a 0-d array to a Python integer or float."""
    if isinstance(value, (Array, jax.Array, np.ndarray)) and value.shape == ():
        value = value.item() if not isinstance(value, Array) else np.asarray(value).item()
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"{name}: {argument} must be an integer or a float, got {value!r}")
    return int(value) if isinstance(value, bool) else value


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: Any = None,
    endpoint: bool = True,
) -> Array:
    """Return evenly spaced numbers over an interval.

    Parameters
    ----------
    start, stop : scalar or 0-d array
        Ends of the interval.
    num : int
        Number of values.
    dtype : dtype, optional
        Data type of the array. The default is the default floating-point data type; complex if an end is complex.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the default device.
    endpoint : bool, default True
        If True, `stop` is the last value. If False, `stop` is the value after the last one.

    Returns
    -------
    array, (num,)
        Dense array of evenly spaced values.

    Raises
    ------
    ValueError
        If `num` is negative, or an end is not a scalar.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linspace(0.0, 1.0, 5)
    Dense([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float64)
    """
    num = integer(num, "linspace", "num")
    if num < 0:
        raise ValueError(f"linspace: num must not be negative, got {num}")
    check_device(device, "linspace")
    ends = []
    for argument, value in (("start", start), ("stop", stop)):
        value = asarray(value)
        if value.shape != ():
            raise ValueError(f"linspace: {argument} must be a scalar, got shape {value.shape}")
        if value.dtype.kind in "biu":  # integers may be out of range for the common dtype
            value = astype(value, dtypes.default_dtype("f"))
        ends.append(value.to_jax())
    if dtype is None:
        dtype = dtypes.default_dtype("c" if any(e.dtype.kind == "c" for e in ends) else "f")
    dtype = dtypes.as_dtype(dtype)
    return Dense.make(
        (dense_creation.linspace(ends[0], ends[1], num, dtype=dtype, device=device, endpoint=bool(endpoint)),)
    )


@function("arrays")
def meshgrid(*arrays: ArrayLike, indexing: str = "xy") -> tuple[Array, ...]:
    """Return the coordinate matrices of a grid from coordinate vectors.

    Parameters
    ----------
    *arrays : array, (n1,), (n2,), …
        Coordinates along each axis.
    indexing : {"xy", "ij"}, default "xy"
        Order of the first two axes: the grid has shape (n2, n1, n3, …) for "xy", and (n1, n2, n3, …) for "ij".

    Returns
    -------
    tuple of array
        Coordinates of all grid points: one array of the shape of the grid for each argument, in its data type.

    Raises
    ------
    ValueError
        If `indexing` is invalid, or an argument has more than one dimension.

    Examples
    --------
    >>> import structarrays as sa
    >>> x, y = sa.meshgrid(sa.arange(3), sa.arange(2))
    >>> y
    Dense([[0, 0, 0],
           [1, 1, 1]], dtype=int64)
    """
    arrays = cast("tuple[Array, ...]", arrays)
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing must be "xy" or "ij", got {indexing!r}')
    for i, x in enumerate(arrays):
        if x.ndim > 1:
            raise ValueError(f"meshgrid: argument {i + 1} must have one dimension, got shape {x.shape}")
    data = dense_creation.meshgrid(*(densify(x, "meshgrid").data for x in arrays), indexing=indexing)
    return tuple(Dense.make((d,)) for d in data)


def integer(value: Any, name: str, argument: str) -> int:
    """Convert an argument to a Python integer.

    Raises
    ------
    TypeError
        If the argument is not an integer.
    """
    try:
        result: int = as_length(value)
    except TypeError:
        raise TypeError(f"{name}: {argument} must be an integer, got {value!r}") from None
    return result


cast("dict[str, Any]", FUNCTIONS).update(arange=arange, linspace=linspace)
