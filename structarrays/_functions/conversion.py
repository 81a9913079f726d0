"""Conversions to arrays of this library: `asarray` and `from_dlpack`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._core import dtypes
from .._core.array import foreign
from .._core.array.arguments import ArrayLike, DTypeLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import densify, strip_weak
from .._core.dispatch.decorator import function
from .._core.dispatch.registry import FUNCTIONS
from .._core.dispatch.tracing import compiling
from .._numerics.symbolic import is_symbolic
from .data_type import astype
from .inspection import check_device

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def asarray(obj: Any, /, *, dtype: DTypeLike | None = None, device: Any = None, copy: bool | None = None) -> Array:
    """Convert an object to an array.

    Parameters
    ----------
    obj : array, scalar, nested sequence, or object with ``__dlpack__``, ``__array__`` or the buffer protocol
        Object to convert. An array of this namespace keeps its structure.
    dtype : dtype, optional
        Data type of the array. The default is the data type of `obj`, and the default data types for Python scalars.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the device of `obj`.
    copy : bool, optional
        If True, always copy. If False, never copy, and raise if a copy is needed. The default copies if needed. An
        array of this namespace that needs no change is returned itself, unless `copy` is True.

    Returns
    -------
    array, (...)
        Array with the structure of `obj`, or a `Dense` array for other objects. The structure is never inferred from
        values: a nested list with the elements of a diagonal matrix becomes `Dense`.

    Raises
    ------
    TypeError
        If `obj` cannot be converted to an array of numbers or booleans, has masked elements, or is a sparse array of
        another library.
    ValueError
        If nested sequences have different lengths, a copy is needed but `copy` is False, or `dtype` has 64 bits while
        JAX's 64-bit mode is off.
    OverflowError
        If a Python integer is out of range for the data type.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.asarray([[1, 2], [3, 4]])
    Dense([[1, 2],
           [3, 4]], dtype=int64)
    >>> D = sa.Diagonal([1.0, 2.0])
    >>> sa.asarray(D) is D, type(sa.asarray(D, copy=True)).__name__
    (True, 'Diagonal')
    """
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    check_device(device, "asarray")
    if not isinstance(obj, Array):
        if not isinstance(obj, jax.Array):
            return _from_host(obj, dtype, device, copy)
        if not isinstance(obj.dtype, np.dtype):
            raise TypeError(f"asarray: obj must have a numeric or boolean dtype, got {obj.dtype}")
        obj = _traced(Dense.make((strip_weak(obj),)))
    recast = dtype is not None and dtype != obj.dtype
    move = device is not None and device != obj.device
    if recast or move:
        if copy is False:
            what = f"dtype {obj.dtype} to {dtype}" if recast else f"device {obj.device} to {device}"
            raise ValueError(f"asarray: copy must not be False, because a change of {what} needs a copy; omit copy")
        return astype(obj, obj.dtype if dtype is None else dtype, copy=False, device=device)
    return _traced(obj.assuming(obj.assumptions)) if copy else obj


def _traced(x: Array) -> Array:
    """Return a handle that belongs to the current trace, so that traced values can be written into it."""
    return jax.tree.map(jax.device_put, x) if compiling() else x


# NumPy creates arrays up to this size on the host, in about ten microseconds; XLA would compile a program for each new
# shape, in about ten milliseconds. Larger arrays, and all arrays inside `jit`, are created on the device.
_SMALL = 1 << 16


def on_host(size: int) -> bool:
    """Return whether NumPy creates a new array of this size."""
    return not is_symbolic(size) and size <= _SMALL and not compiling()


def put(host: np.ndarray, device: Any = None) -> Dense:
    """Transfer a new NumPy array, which no other code writes to, to the device."""
    return Dense.make((jax.device_put(host, device),))


def _from_host(obj: Any, dtype: np.dtype | None, device: Any, copy: bool | None) -> Array:
    """Convert an object that JAX does not support, by NumPy."""
    if copy is False:
        raise ValueError(
            f"asarray: copy must not be False, because the memory of a {type(obj).__name__} is writeable; omit copy, or share the memory "
            "at your own risk with from_dlpack"
        )
    obj = foreign.readable(obj, "asarray")
    if not isinstance(obj, (np.ndarray, np.generic)) and hasattr(obj, "__dlpack__"):
        return asarray(from_dlpack(obj, device=device, copy=True), dtype=dtype)
    kinds: set[type] = set()
    if isinstance(obj, (list, tuple)):
        _leaf_types(obj, kinds)
        if any(issubclass(t, np.ma.MaskedArray) or not issubclass(t, (*foreign.KNOWN, jax.Array)) for t in kinds):
            obj = _readable(obj)
        if any(issubclass(t, (Array, jax.Array)) for t in kinds):
            obj = _unwrap(obj)
            if any(issubclass(t, jax.core.Tracer) for t in map(type, _leaves(obj))):
                data = jnp.asarray(obj, dtype)
                return _placed(Dense.make((strip_weak(data),)), device)
            obj = _to_host(obj)
    else:
        kinds.add(type(obj))
    return put(np.array(_checked(obj, kinds, dtype)), device)


def _placed(x: Array, device: Any) -> Array:
    return x if device is None else x.to_device(device)


def _leaf_types(obj: Sequence[Any], found: set[type]) -> None:
    """Collect the types of the elements of nested lists and tuples."""
    types = set(map(type, obj))
    nested = {t for t in types if issubclass(t, (list, tuple))}
    found |= types - nested
    if nested:
        for element in obj:
            if type(element) in nested:
                _leaf_types(element, found)


def _leaves(obj: list[Any]) -> Iterator[Any]:
    """Iterate over the elements of nested lists."""
    for element in obj:
        if isinstance(element, list):
            yield from _leaves(element)
        else:
            yield element


def _readable(obj: Any) -> Any:
    """Replace arrays of other libraries in nested lists by readable arrays."""
    if isinstance(obj, (list, tuple)):
        return [_readable(element) for element in obj]
    return foreign.readable(obj, "asarray")


def _unwrap(obj: Any) -> Any:
    """Replace our arrays in nested lists by `jax.Array`."""
    if isinstance(obj, (list, tuple)):
        return [_unwrap(element) for element in obj]
    return densified(obj, "asarray").data if isinstance(obj, Array) else obj


def _to_host(obj: Any) -> Any:
    if isinstance(obj, list):
        return [_to_host(element) for element in obj]
    return np.asarray(obj) if isinstance(obj, jax.Array) else obj


def _checked(obj: Any, kinds: set[type], dtype: np.dtype | None) -> np.ndarray:
    """Convert an object by NumPy, and raise unless the result has a data type of the namespace."""
    python_integers = bool(kinds) and all(issubclass(t, int) for t in kinds)
    for t in kinds:
        if issubclass(t, (str, bytes, type(None))):
            raise TypeError(f"asarray: obj must contain numbers, got {t.__name__} in {_short(obj)}")
    try:
        # Convert integers directly to a given dtype: they may be out of range for any other.
        host = np.asarray(obj, dtype if python_integers and dtype is not None else None)
    except OverflowError:
        raise OverflowError(f"asarray: a Python integer in {_short(obj)} does not fit into {dtype}") from None
    except ValueError as error:
        raise ValueError(f"asarray: obj is {_short(obj)}: {error}") from None
    host = dtypes.native(host)
    kind = host.dtype.kind
    if python_integers and (kind not in "bi" if dtype is None else kind == "O"):
        # NumPy would use uint64, float64 or objects.
        raise OverflowError(
            f"asarray: a Python integer in {_short(obj)} does not fit into {dtype or dtypes.default_dtype('i')}"
        )
    if kind == "O" and dtype is not None and not isinstance(obj, np.ndarray):
        host = _numbers(host, dtype, obj)
    elif kind not in "biufc" and not jnp.issubdtype(host.dtype, jnp.floating):
        hint = "; use structarrays.Sparse.from_scipy for arrays of scipy.sparse" if hasattr(obj, "tocoo") else ""
        raise TypeError(f"asarray: obj must be an array of numbers, got {_short(obj)}{hint}")
    if dtype is None:
        dtype = _default(host, obj)
    if host.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(f"asarray: cannot cast complex numbers to {dtype}; use the real or the imaginary part instead")
    if host.dtype.kind in "iu" and not isinstance(obj, np.ndarray) and dtype.kind in "iu":
        _check_range(host, dtype, obj)
    return host.astype(dtype)


def _numbers(host: np.ndarray, dtype: np.dtype, obj: Any) -> np.ndarray:
    """Convert an array of Python objects, such as integers out of NumPy's range, to numbers."""
    try:
        return host.astype(dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"asarray: obj must contain numbers, got {_short(obj)}: {error}") from None


def _default(host: np.ndarray, obj: Any, name: str = "asarray") -> np.dtype:
    """Return the data type for an object without one: NumPy's choice, in the width that JAX's 64-bit mode allows."""
    if host.dtype.name in ("longdouble", "clongdouble", "float128", "complex256"):
        return dtypes.default_dtype(host.dtype.kind)
    dtype = dtypes.canonical(host.dtype)
    if host.dtype.kind in "iu" and dtype != host.dtype:
        _check_range(host, dtype, obj, name)
    return dtype


def _check_range(host: np.ndarray, dtype: np.dtype, obj: Any, name: str = "asarray") -> None:
    """Raise an error if an element of `host`, an integer array made from `obj`, does not fit into a data type."""
    limits = np.iinfo(dtype)
    if host.size and not (limits.min <= int(host.min()) and int(host.max()) <= limits.max):
        raise OverflowError(f"{name}: an integer in {_short(obj)} does not fit into {dtype}")


def exact_integers(value: Any, dtype: np.dtype, name: str) -> np.ndarray | None:
    """Convert one of Python's integers, or a sequence of them, to an integer data type; None for other values.

    NumPy alone would make floating-point numbers of large and small integers together.
    """
    first = value
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if type(first) is not int:
        return None
    try:
        host = np.asarray(value, object)
    except ValueError:  # sequences of different lengths
        return None
    if not all(type(v) is int for v in host.flat):
        return None
    _check_range(host, dtype, value, name)
    return host.astype(dtype)


def _short(obj: Any) -> str:
    text = type(obj).__name__ if isinstance(obj, np.ndarray) and obj.size > 8 else " ".join(repr(obj).split())
    return text if len(text) <= 60 else text[:57] + "..."


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Convert an object with ``__dlpack__`` to an array, for example an array of NumPy, JAX, PyTorch or CuPy.

    Parameters
    ----------
    x : object
        Array to convert. A structured array of this namespace is densified, under the policy of `densify`. If `copy` is
        False, it keeps its structure.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the device of `x`.
    copy : bool, optional
        If True, always copy. If False, never copy, and raise if a copy is needed. The default shares memory if
        possible. With shared memory, later writes to `x` may change the result, but writes to the result never change
        `x`.

    Returns
    -------
    array, (...)
        A `Dense` array, or an array with the structure of `x` if `copy` is False.

    Raises
    ------
    AttributeError
        If `x` has no ``__dlpack__``.
    TypeError
        If `x` has masked elements, or is a sparse array of another library.
    ValueError
        If a copy is needed and `copy` is False.
    OverflowError
        If an integer is out of range for 32 bits while JAX's 64-bit mode is off.
    BufferError
        If `x` cannot export its data.

    Examples
    --------
    >>> import numpy
    >>> import structarrays as sa
    >>> sa.from_dlpack(numpy.arange(3.0))
    Dense([0., 1., 2.], dtype=float64)
    """
    check_device(device, "from_dlpack")
    if isinstance(x, (Array, jax.Array)):
        if type(x) is not Dense and isinstance(x, Array):
            if copy is False:  # share the parameters, because the dense form would be a copy
                return asarray(x, device=device, copy=False).__copy__()
            x = densified(x, "from_dlpack")
        return asarray(x.data if isinstance(x, Dense) else x, device=device, copy=copy)
    x = foreign.readable(x, "from_dlpack")
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise AttributeError(f"from_dlpack: x must have __dlpack__ and __dlpack_device__, got {type(x).__name__}")
    host = None if dtypes.x64() else _in_64_bits(x)
    if host is not None:
        if copy is False:
            raise ValueError(
                f"from_dlpack: copy must not be False, because dtype {host.dtype} needs a copy while JAX's 64-bit mode is off; omit copy, "
                'or call jax.config.update("jax_enable_x64", True)'
            )
        return _moved(put(host.astype(_default(host, host, "from_dlpack"))), device)
    if copy:
        return _moved(_by_copy(x), device)
    try:
        data = jax.dlpack.from_dlpack(x)
    except _NOT_SHARED as error:
        # XLA does not support the strides, or the memory is read-only.
        if copy is False:
            raise ValueError(
                f"from_dlpack: copy must not be False, because JAX cannot share this memory; omit copy ({error})"
            ) from error
        return _moved(_by_copy(x), device)
    if copy is False and device is not None and device != data.device:
        raise ValueError(
            f"from_dlpack: copy must not be False, because a change from {data.device} to {device} needs a copy; omit copy"
        )
    return _moved(Dense.make((data,)), device)


_NOT_SHARED = (RuntimeError, BufferError, ValueError, TypeError)
"""Errors that JAX and NumPy raise for unsupported memory."""


def _in_64_bits(x: Any) -> np.ndarray | None:
    """Return the array on the host if it has 64 bits while JAX's 64-bit mode is off: JAX would truncate integers."""
    try:
        host = x if isinstance(x, np.ndarray) else np.from_dlpack(x)
    except _NOT_SHARED:
        return None
    return host if dtypes.canonical(host.dtype) != host.dtype else None


def _by_copy(x: Any) -> Array:
    """Copy an array of another library."""
    if isinstance(x, np.ndarray):
        return asarray(x)
    try:
        return Dense.make((jnp.array(jax.dlpack.from_dlpack(x), copy=True),))
    except _NOT_SHARED:
        pass
    try:
        return put(np.array(np.from_dlpack(x)))
    except _NOT_SHARED as error:
        # The array is on a device that this installation of JAX does not support.
        host = foreign.on_cpu(x)
        if host is None:
            raise BufferError(
                f"from_dlpack: x must be readable by JAX or NumPy, got {type(x).__name__}: {error}"
            ) from error
        return asarray(host)


def _moved(x: Array, device: Any) -> Array:
    return x if device is None or device == x.device else x.to_device(device)


@function("x")
def densified(x: ArrayLike, name: str) -> Dense:
    """Return the dense form of an array for the function `name`, under the policy of `densify`; the log records it."""
    return densify(cast("Array", x), name)


densified.follows = False


cast("dict[str, Any]", FUNCTIONS).update(asarray=asarray, from_dlpack=from_dlpack)
