"""From what others have to our arrays: `asarray` and `from_dlpack`."""

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
from .data_type import astype
from .inspection import check_device

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def asarray(obj: Any, /, *, dtype: DTypeLike | None = None, device: Any = None, copy: bool | None = None) -> Array:
    """An array of whatever can be one.

    Parameters
    ----------
    obj : array, scalar, nested sequence, or an object with ``__dlpack__``, ``__array__`` or the buffer protocol
        What to convert. An array of this namespace keeps its structure.
    dtype : dtype, optional
        The dtype; by default that of `obj`, and the default dtypes for Python scalars.
    device : jax.Device or jax.sharding.Sharding, optional
        Where to place it; by default where `obj` is.
    copy : bool, optional
        Whether the result must not (True) or must (False) share its elements with `obj`; by default it is a copy only
        if it has to be. An array of this namespace with nothing to change is returned as it is.

    Returns
    -------
    array
        `Dense`, or of the structure of `obj`. The values are not looked at: a list that happens to be a diagonal
        matrix is dense.

    Raises
    ------
    TypeError
        If `obj` is nothing that can be an array of numbers, has masked elements, or is a sparse array of another library.
    ValueError
        If nested sequences differ in length, a copy is needed but ``copy=False``, or a 64-bit dtype is asked for while
        JAX's x64 switch is off.
    OverflowError
        If a Python integer does not fit the dtype.

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
            raise TypeError(f"asarray: obj has dtype {obj.dtype}, which is no dtype of numbers")
        obj = _traced(Dense.make((strip_weak(obj),)))
    recast = dtype is not None and dtype != obj.dtype
    move = device is not None and device != obj.device
    if recast or move:
        if copy is False:
            what = f"dtype {obj.dtype} to {dtype}" if recast else f"device {obj.device} to {device}"
            raise ValueError(f"asarray: copy=False, but a change of {what} needs a copy")
        return astype(obj, obj.dtype if dtype is None else dtype, copy=False, device=device)
    return _traced(obj.assuming(obj.assumptions)) if copy else obj


def _traced(x: Array) -> Array:
    """A handle made inside of a function being traced, so that traced values can be written into it."""
    return jax.tree.map(jax.device_put, x) if compiling() else x


# Arrays up to this size are made by NumPy and transferred, in some ten microseconds; XLA would compile for each new
# shape, in some ten milliseconds. Larger ones, and all inside `jit`, are made where they are needed.
_SMALL = 1 << 16


def on_host(size: int) -> bool:
    """Whether a new array of this size is made by NumPy."""
    return size <= _SMALL and not compiling()


def put(host: np.ndarray, device: Any = None) -> Dense:
    """A fresh NumPy array, which nobody else will write to, as an array on the device."""
    return Dense.make((jax.device_put(host, device),))


def _from_host(obj: Any, dtype: np.dtype | None, device: Any, copy: bool | None) -> Array:
    """An array from what JAX does not know."""
    if copy is False:
        raise ValueError(
            f"asarray: copy=False, but an array of this namespace cannot share the memory of a {type(obj).__name__}, "
            "which can be written to (from_dlpack can, at your own risk)"
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
    """The elements of nested lists."""
    for element in obj:
        if isinstance(element, list):
            yield from _leaves(element)
        else:
            yield element


def _readable(obj: Any) -> Any:
    """Nested lists with what can be read of arrays of other libraries."""
    if isinstance(obj, (list, tuple)):
        return [_readable(element) for element in obj]
    return foreign.readable(obj, "asarray")


def _unwrap(obj: Any) -> Any:
    """Nested lists with `jax.Array` in the place of our arrays."""
    if isinstance(obj, (list, tuple)):
        return [_unwrap(element) for element in obj]
    return densified(obj, "asarray").data if isinstance(obj, Array) else obj


def _to_host(obj: Any) -> Any:
    if isinstance(obj, list):
        return [_to_host(element) for element in obj]
    return np.asarray(obj) if isinstance(obj, jax.Array) else obj


def _checked(obj: Any, kinds: set[type], dtype: np.dtype | None) -> np.ndarray:
    """What NumPy makes of it, if that is an array of numbers, in a dtype that the namespace has."""
    python_integers = bool(kinds) and all(issubclass(t, int) for t in kinds)
    for t in kinds:
        if issubclass(t, (str, bytes, type(None))):
            raise TypeError(f"asarray: obj must hold numbers, got {t.__name__} in {_short(obj)}")
    try:
        # Integers go straight to a dtype that is asked for: they may fit nothing else.
        host = np.asarray(obj, dtype if python_integers and dtype is not None else None)
    except OverflowError:
        raise OverflowError(f"asarray: a Python integer in {_short(obj)} does not fit into {dtype}") from None
    except ValueError as error:
        raise ValueError(f"asarray: obj is {_short(obj)}: {error}") from None
    host = dtypes.native(host)
    kind = host.dtype.kind
    if python_integers and (kind not in "bi" if dtype is None else kind == "O"):
        # NumPy would go on with uint64, float64 or objects.
        raise OverflowError(
            f"asarray: a Python integer in {_short(obj)} does not fit into {dtype or dtypes.default_dtype('i')}"
        )
    if kind == "O" and dtype is not None and not isinstance(obj, np.ndarray):
        host = _numbers(host, dtype, obj)
    elif kind not in "biufc" and not jnp.issubdtype(host.dtype, jnp.floating):
        hint = "; structarrays.Sparse.from_scipy takes arrays of scipy.sparse" if hasattr(obj, "tocoo") else ""
        raise TypeError(f"asarray: obj must be an array of numbers, got {_short(obj)}{hint}")
    if dtype is None:
        dtype = _default(host, obj)
    if host.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(f"asarray: cannot cast complex numbers to {dtype}; take the real or the imaginary part first")
    if host.dtype.kind in "iu" and not isinstance(obj, np.ndarray) and dtype.kind in "iu":
        _check_range(host, dtype, obj)
    return host.astype(dtype)


def _numbers(host: np.ndarray, dtype: np.dtype, obj: Any) -> np.ndarray:
    """An array of Python objects, such as integers too large for NumPy's dtypes, as numbers."""
    try:
        return host.astype(dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"asarray: obj must hold numbers, got {_short(obj)}: {error}") from None


def _default(host: np.ndarray, obj: Any, name: str = "asarray") -> np.dtype:
    """The dtype for an array that has none by itself: what NumPy says, as wide as the x64 switch allows."""
    if host.dtype.name in ("longdouble", "clongdouble", "float128", "complex256"):
        return dtypes.default_dtype(host.dtype.kind)
    dtype = dtypes.canonical(host.dtype)
    if host.dtype.kind in "iu" and dtype != host.dtype:
        _check_range(host, dtype, obj, name)
    return dtype


def _check_range(host: np.ndarray, dtype: np.dtype, obj: Any, name: str = "asarray") -> None:
    limits = np.iinfo(dtype)
    if host.size and not (limits.min <= int(host.min()) and int(host.max()) <= limits.max):
        raise OverflowError(f"{name}: an integer in {_short(obj)} does not fit into {dtype}")


def _short(obj: Any) -> str:
    text = type(obj).__name__ if isinstance(obj, np.ndarray) and obj.size > 8 else repr(obj)
    return text if len(text) <= 60 else text[:57] + "..."


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array from any object with ``__dlpack__``: arrays such as those of NumPy, JAX, PyTorch and CuPy.

    Parameters
    ----------
    x : object
        The array. One of this namespace that has structure is expanded, under the policy of `densify`; with ``copy=False``, where
        that is not allowed, it keeps its structure.
    device : jax.Device or jax.sharding.Sharding, optional
        Where to place the result; by default where `x` is.
    copy : bool, optional
        True copies, False never does, by default the memory is shared if that is possible. Then later writes to `x` may
        be seen in the result, whereas writes to the result are never seen in `x`.

    Returns
    -------
    array
        `Dense`, or with ``copy=False`` of the structure of `x`.

    Raises
    ------
    AttributeError
        If `x` has no ``__dlpack__``.
    TypeError
        If `x` has masked elements, or is a sparse array of another library.
    ValueError
        If a copy is needed and ``copy=False``.
    OverflowError
        If an integer does not fit into 32 bits while JAX's 64-bit mode is off.
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
            if copy is False:  # shared are the parameters, since the dense form would be a copy
                return asarray(x, device=device, copy=False).__copy__()
            x = densified(x, "from_dlpack")
        return asarray(x.data if isinstance(x, Dense) else x, device=device, copy=copy)
    x = foreign.readable(x, "from_dlpack")
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise AttributeError(f"from_dlpack: x has no __dlpack__ and __dlpack_device__; it is a {type(x).__name__}")
    host = None if dtypes.x64() else _in_64_bits(x)
    if host is not None:
        if copy is False:
            raise ValueError(
                f"from_dlpack: copy=False, but a copy of x is needed: its dtype is {host.dtype}, and JAX's 64-bit mode is off; "
                'switch it on with jax.config.update("jax_enable_x64", True)'
            )
        return _moved(put(host.astype(_default(host, host, "from_dlpack"))), device)
    if copy:
        return _moved(_by_copy(x), device)
    try:
        data = jax.dlpack.from_dlpack(x)
    except _NOT_SHARED as error:
        # Strides that XLA does not know, or memory that is read-only.
        if copy is False:
            raise ValueError(f"from_dlpack: copy=False, but JAX cannot share this memory: {error}") from error
        return _moved(_by_copy(x), device)
    if copy is False and device is not None and device != data.device:
        raise ValueError(f"from_dlpack: copy=False, but a change of device {data.device} to {device} needs a copy")
    return _moved(Dense.make((data,)), device)


_NOT_SHARED = (RuntimeError, BufferError, ValueError, TypeError)
"""What JAX and NumPy raise for memory that they do not take; among the first are JAX's own errors."""


def _in_64_bits(x: Any) -> np.ndarray | None:
    """The array on the host, if its dtype needs JAX's 64-bit mode, without which JAX would truncate integers; else None."""
    try:
        host = x if isinstance(x, np.ndarray) else np.from_dlpack(x)
    except _NOT_SHARED:
        return None
    return host if dtypes.canonical(host.dtype) != host.dtype else None


def _by_copy(x: Any) -> Array:
    """A copy of an array of another library."""
    if isinstance(x, np.ndarray):
        return asarray(x)
    try:
        return Dense.make((jnp.array(jax.dlpack.from_dlpack(x), copy=True),))
    except _NOT_SHARED:
        pass
    try:
        return put(np.array(np.from_dlpack(x)))
    except _NOT_SHARED as error:
        # On a device that JAX was not installed for.
        host = foreign.on_cpu(x)
        if host is None:
            raise BufferError(
                f"from_dlpack: neither JAX nor NumPy can take this {type(x).__name__}: {error}"
            ) from error
        return asarray(host)


def _moved(x: Array, device: Any) -> Array:
    return x if device is None or device == x.device else x.to_device(device)


@function("x")
def densified(x: ArrayLike, name: str) -> Dense:
    """The dense form of an array on behalf of the function `name`: under the policy of `densify`, and logged."""
    return densify(cast("Array", x), name)


cast("dict[str, Any]", FUNCTIONS).update(asarray=asarray, from_dlpack=from_dlpack)
