"""Creation functions. Except for `tril` and `triu` they run in plain Python and return new handles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._core import dtypes
from .._core.array.arguments import ArrayLike, DTypeLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.dispatch.decorator import function
from .._core.dispatch.registry import FUNCTIONS
from .._numerics import dense_creation
from .._numerics.symbolic import as_length
from .conversion import asarray, from_dlpack, on_host, put
from .inspection import check_device
from .ranges import arange, integer, linspace, meshgrid

if TYPE_CHECKING:
    from .._core.typing import Shape

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

# ---- a shape and a value ------------------------------------------------------------------------------------------


def zeros(shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return a new array of zeros.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    dtype : dtype, optional
        Data type of the array. The default is the default floating-point data type.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the default device.

    Returns
    -------
    array
        A `Dense` array, so that assignments to elements are cheap. ``Fill(0.0, shape)`` stores one
        element only.

    Raises
    ------
    ValueError
        If a length is negative.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.zeros((2, 3))
    Dense([[0., 0., 0.],
           [0., 0., 0.]], dtype=float64)
    """
    return _filled("zeros", shape, 0, dtype, device)


def ones(shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return a new array of ones.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    dtype : dtype, optional
        Data type of the array. The default is the default floating-point data type.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the default device.

    Returns
    -------
    array
        A `Dense` array, so that assignments to elements are cheap. ``Fill(1.0, shape)`` stores one
        element only.

    Raises
    ------
    ValueError
        If a length is negative.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.ones(3, dtype=sa.int32)
    Dense([1, 1, 1], dtype=int32)
    """
    return _filled("ones", shape, 1, dtype, device)


def empty(shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return a new array with arbitrary elements; they are zeros, because JAX has no uninitialized memory.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    dtype : dtype, optional
        Data type of the array. The default is the default floating-point data type.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the default device.

    Returns
    -------
    array
        A `Dense` array.

    Raises
    ------
    ValueError
        If a length is negative.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.empty((2, 0)).shape
    (2, 0)
    """
    return _filled("empty", shape, 0, dtype, device)


def full(
    shape: int | Sequence[int], fill_value: ArrayLike, *, dtype: DTypeLike | None = None, device: Any = None
) -> Array:
    """Return a new array filled with a value.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    fill_value : scalar or 0-d array
        Value of all elements.
    dtype : dtype, optional
        Data type of the array. The default is the data type of `fill_value`.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the default device.

    Returns
    -------
    array
        A `Dense` array, so that assignments to elements are cheap. ``Fill(fill_value, shape)`` stores one
        element only.

    Raises
    ------
    ValueError
        If a length is negative, or `fill_value` is not a scalar.
    OverflowError
        If `fill_value` is a Python integer that is out of range for the data type.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.full(3, 2.5)
    Dense([2.5, 2.5, 2.5], dtype=float64)
    """
    return _full("full", shape, fill_value, dtype, device)


def zeros_like(x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return an array of zeros with the shape and data type of a given array.

    Parameters
    ----------
    x : array, (...)
        Array that determines the shape of the result.
    dtype : dtype, optional
        Data type of the array. The default is the data type of `x`.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the device of `x`.

    Returns
    -------
    array
        A `Dense` array of the shape of `x`, for any structure of `x`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.zeros_like(sa.asarray([1, 2]))
    Dense([0, 0], dtype=int64)
    """
    shape, dtype, device = _like("zeros_like", x, dtype, device)
    return _filled("zeros_like", shape, 0, dtype, device)


def ones_like(x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return an array of ones with the shape and data type of a given array.

    Parameters
    ----------
    x : array, (...)
        Array that determines the shape of the result.
    dtype : dtype, optional
        Data type of the array. The default is the data type of `x`.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the device of `x`.

    Returns
    -------
    array
        A `Dense` array of the shape of `x`, for any structure of `x`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.ones_like(sa.asarray([1, 2]))
    Dense([1, 1], dtype=int64)
    """
    shape, dtype, device = _like("ones_like", x, dtype, device)
    return _filled("ones_like", shape, 1, dtype, device)


def empty_like(x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return an array with arbitrary elements (zeros) and the shape and data type of a given array.

    Parameters
    ----------
    x : array, (...)
        Array that determines the shape of the result.
    dtype : dtype, optional
        Data type of the array. The default is the data type of `x`.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the device of `x`.

    Returns
    -------
    array
        A `Dense` array of the shape of `x`, for any structure of `x`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.empty_like(sa.eye(3)).shape
    (3, 3)
    """
    shape, dtype, device = _like("empty_like", x, dtype, device)
    return _filled("empty_like", shape, 0, dtype, device)


def full_like(x: ArrayLike, /, fill_value: ArrayLike, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return an array filled with a value, with the shape and data type of a given array.

    Parameters
    ----------
    x : array, (...)
        Array that determines the shape of the result.
    fill_value : scalar or 0-d array
        Value of all elements.
    dtype : dtype, optional
        Data type of the array. The default is the data type of `x`.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the device of `x`.

    Returns
    -------
    array
        A `Dense` array of the shape of `x`, for any structure of `x`.

    Raises
    ------
    ValueError
        If `fill_value` is not a scalar.
    OverflowError
        If `fill_value` is a Python integer that is out of range for the data type.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.full_like(sa.asarray([1.0, 2.0]), 7)
    Dense([7., 7.], dtype=float64)
    """
    shape, dtype, device = _like("full_like", x, dtype, device)
    return _full("full_like", shape, fill_value, dtype, device)


def _shape(shape: Any, name: str) -> tuple[int, ...]:
    """Convert a shape argument to a tuple of nonnegative integers."""
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    try:
        shape = tuple(map(as_length, shape))
    except TypeError:
        raise TypeError(f"{name}: shape must be an integer or a tuple of integers, got {shape!r}") from None
    if any(n < 0 for n in shape):
        raise ValueError(f"{name}: shape must not contain negative lengths, got {shape}")
    result: tuple[int, ...] = shape
    return result


def _like(name: str, x: ArrayLike, dtype: DTypeLike | None, device: Any) -> tuple[Shape, DTypeLike, Any]:
    """Return shape, data type and device for a new array like `x`."""
    if not isinstance(x, (Array, jax.Array)):
        x = asarray(x)
    if device is None and not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(x)):
        device = x.device if x.device != _default_device() else None  # None leaves the result uncommitted
    return x.shape, x.dtype if dtype is None else dtype, device


def _default_device() -> jax.Device:
    config: Any = jax.config  # its attributes appear at run time
    chosen: jax.Device | str | None = config.jax_default_device
    return jax.local_devices(backend=chosen)[0] if chosen is None or isinstance(chosen, str) else chosen


def _filled(name: str, shape: int | Sequence[int], value: int, dtype: DTypeLike | None, device: Any) -> Dense:
    shape, device = _shape(shape, name), check_device(device, name)
    dtype = dtypes.default_dtype("f") if dtype is None else dtypes.as_dtype(dtype)
    if on_host(math.prod(shape)):
        return put(np.full(shape, value, dtype), device)
    return Dense.make((dense_creation.full(shape, value, dtype=dtype, device=device),))


def _full(name: str, shape: int | Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None, device: Any) -> Dense:
    shape, device = _shape(shape, name), check_device(device, name)
    try:
        value = asarray(fill_value, dtype=dtype)
    except (TypeError, OverflowError) as error:
        raise type(error)(f"{name}: fill_value: {error}") from None
    if value.shape != ():
        raise ValueError(f"{name}: fill_value must be a scalar or a 0-d array, got shape {value.shape}")
    data = value.to_jax()
    if not isinstance(data, jax.core.Tracer) and on_host(math.prod(shape)):
        return put(np.full(shape, np.asarray(data)), device)
    return Dense.make((dense_creation.full(shape, data, dtype=data.dtype, device=device),))


# ---- matrices -------------------------------------------------------------------------------------------------------


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DTypeLike | None = None, device: Any = None
) -> Array:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_cols : int, optional
        Number of columns. The default is `n_rows`.
    k : int, default 0
        Offset of the diagonal: 0 for the main diagonal, positive above it, negative below it.
    dtype : dtype, optional
        Data type of the array. The default is the default floating-point data type.
    device : jax.Device or jax.sharding.Sharding, optional
        Device or sharding of the array. The default is the default device.

    Returns
    -------
    array, (n_rows, n_cols)
        `Identity` for a square matrix and ``k=0``, `Diagonal` for a rectangular matrix and ``k=0``, otherwise `Banded`.

    Raises
    ------
    ValueError
        If `n_rows` or `n_cols` is negative.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.eye(3)
    Identity(scale=1.0, shape=(3, 3), dtype=float64)
    >>> sa.eye(3, k=1) @ sa.asarray([1.0, 2.0, 3.0])
    Dense([2., 3., 0.], dtype=float64)
    """
    from .._structures.banded.array import bands
    from .._structures.banded.diagonal import Diagonal, Identity

    shape, device = _shape((n_rows, n_rows if n_cols is None else n_cols), "eye"), check_device(device, "eye")
    k = integer(k, "eye", "k")
    dtype = dtypes.default_dtype("f") if dtype is None else dtypes.as_dtype(dtype)
    length = max(0, min(shape[0] + min(k, 0), shape[1] - max(k, 0)))
    one = cast("Dense", ones(() if k == 0 and shape[0] == shape[1] else (length,), dtype=dtype)).data
    if k == 0:
        x: Array = (Identity if one.ndim == 0 else Diagonal).make((one, None), shape)
    elif length == 0:
        x = bands([], (), shape, dtype=dtype)
    else:
        x = bands([one], (k,), shape)
    return x if device is None else x.to_device(device)  # a sharding describes the matrix, not its parameter


@function("x", dense=jnp.tril)
def tril(x: ArrayLike, /, *, k: int = 0) -> Array:
    """Return the lower triangle of each matrix of a stack; elements above it become zero.

    Parameters
    ----------
    x : array, (..., M, N)
        Matrices of any data type.
    k : int, default 0
        Offset of the uppermost diagonal to keep: 0 for the main diagonal, positive above it, negative below it.

    Returns
    -------
    array, (..., M, N)
        Lower triangles. A banded matrix keeps its diagonals up to offset `k`; for other structures the result may be
        dense.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.tril(sa.tridiagonal([1.0], [2.0, 3.0], [4.0])).offsets
    (-1, 0)
    """
    x = cast("Array", x)
    _require_matrix(x, "tril")
    result: Array = tril.dispatch(x, k=integer(k, "tril", "k"))
    return result


@function("x", dense=jnp.triu)
def triu(x: ArrayLike, /, *, k: int = 0) -> Array:
    """Return the upper triangle of each matrix of a stack; elements below it become zero.

    Parameters
    ----------
    x : array, (..., M, N)
        Matrices of any data type.
    k : int, default 0
        Offset of the lowermost diagonal to keep: 0 for the main diagonal, positive above it, negative below it.

    Returns
    -------
    array, (..., M, N)
        Upper triangles. A banded matrix keeps its diagonals from offset `k`; for other structures the result may be
        dense.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.triu(sa.tridiagonal([1.0], [2.0, 3.0], [4.0])).offsets
    (0, 1)
    """
    x = cast("Array", x)
    _require_matrix(x, "triu")
    result: Array = triu.dispatch(x, k=integer(k, "triu", "k"))
    return result


def _require_matrix(x: Array, name: str) -> None:
    if x.ndim < 2:
        raise ValueError(f"{name}: x must have at least two dimensions, got shape {x.shape}")


cast("dict[str, Any]", FUNCTIONS).update(
    empty=empty, empty_like=empty_like, eye=eye, full=full, full_like=full_like, ones=ones, ones_like=ones_like,
    zeros=zeros, zeros_like=zeros_like,
)  # fmt: skip
