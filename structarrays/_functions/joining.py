"""Functions that join, split and broadcast arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import jax
import jax.numpy as jnp

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import promote
from .._core.dispatch.decorator import function
from .._core.families import batch
from .._core.families.batch import check_axis, check_shape

if TYPE_CHECKING:
    from .._core.typing import Shape


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which arrays of these shapes broadcast.

    Parameters
    ----------
    *shapes : tuple of int
        Shapes to broadcast.

    Returns
    -------
    tuple of int
        Broadcast shape; ``()`` without arguments.

    Raises
    ------
    ValueError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    checked = [check_shape("broadcast_shapes", shape, f"shapes[{i}]") for i, shape in enumerate(shapes)]
    return _common_shape("broadcast_shapes", checked)


def _common_shape(name: str, shapes: Sequence[Shape]) -> tuple[int, ...]:
    result = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        for i, n in enumerate(shape, len(result) - len(shape)):
            if n != 1 and result[i] not in (1, n):
                raise ValueError(f"{name}: shapes must broadcast, got {', '.join(map(str, shapes))}")
            result[i] = n if result[i] == 1 else result[i]
    return tuple(result)


@function("*arrays")
def broadcast_arrays(*arrays: ArrayLike) -> tuple[Array, ...]:
    """Broadcast arrays against each other.

    Parameters
    ----------
    *arrays : array, (...)
        Arrays to broadcast.

    Returns
    -------
    tuple of array
        Arrays of the broadcast shape, each with its data type. The structure is kept if only batch dimensions are
        broadcast.

    Raises
    ------
    ValueError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import structarrays as sa
    >>> [x.shape for x in sa.broadcast_arrays(sa.ones(3), sa.ones((2, 1)))]
    [(2, 3), (2, 3)]
    """
    arrays = cast("tuple[Array, ...]", arrays)
    shape = _common_shape("broadcast_arrays", [x.shape for x in arrays])
    return tuple(broadcast_to.dispatch(x, shape=shape) for x in arrays)


@function("x", rule=batch.broadcast_rule, dense=jnp.broadcast_to)
def broadcast_to(x: ArrayLike, /, shape: tuple[int, ...]) -> Array:
    """Broadcast an array to a shape.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.
    shape : tuple of int
        Shape of the result.

    Returns
    -------
    array
        Broadcast array. The structure is kept if only batch dimensions are new or repeated.

    Raises
    ------
    ValueError
        If `x` cannot be broadcast to `shape`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.broadcast_to(sa.asarray([1, 2]), (2, 2))
    Dense([[1, 2],
           [1, 2]], dtype=int64)
    """
    x = cast("Array", x)
    shape = check_shape("broadcast_to", shape)
    tail = shape[max(0, len(shape) - x.ndim) :]
    if len(shape) < x.ndim or any(n not in (1, m) for n, m in zip(x.shape, tail, strict=True)):
        raise ValueError(f"broadcast_to: x of shape {x.shape} cannot be broadcast to {shape}")
    result: Array = broadcast_to.dispatch(x, shape=shape)
    return result


def _check_sequence(name: str, arrays: Array | Sequence[Array]) -> list[Array]:
    """Return the arrays of `stack` and `concat`, in one data type."""
    if isinstance(arrays, Array):
        raise TypeError(f"{name}: arrays must be a tuple or list of arrays, got one array of shape {arrays.shape}")
    if not arrays:
        raise ValueError(f"{name}: arrays must contain at least one array, got none")
    return promote(*arrays)


@function("*arrays", rule=batch.joining(jnp.concatenate, new_axis=False))
def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an existing axis.

    Parameters
    ----------
    arrays : tuple or list of array
        Arrays of the same shape, except along `axis`.
    axis : int or None, default 0
        Axis along which to join the arrays. If None, the arrays are flattened first.

    Returns
    -------
    array
        Joined array. Along a batch axis it has the narrowest structure that can represent all arrays.

    Raises
    ------
    ValueError
        If there are no arrays, their shapes do not match, or the axis is out of range (`numpy.exceptions.AxisError`).

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.concat([sa.asarray([1, 2]), sa.asarray([3])])
    Dense([1, 2, 3], dtype=int64)
    """
    arrays = cast("tuple[Array, ...]", arrays)
    arrays = _check_sequence("concat", arrays)
    if axis is None:
        flat: Array = concat.dispatch(*arrays, axis=None)
        return flat
    first = arrays[0]
    if first.ndim == 0:
        raise ValueError("concat: arrays must have at least one dimension, got 0-d arrays; use stack, or axis=None")
    axis = check_axis("concat", axis, first.ndim)
    for i, x in enumerate(arrays):
        if x.ndim != first.ndim or any(
            m != n for k, (m, n) in enumerate(zip(x.shape, first.shape, strict=True)) if k != axis
        ):
            raise ValueError(
                f"concat: arrays must have the same shape except along axis {axis}, got {first.shape} and, "
                f"for arrays[{i}], {x.shape}"
            )
    result: Array = concat.dispatch(*arrays, axis=axis)
    return result


@function("*arrays", rule=batch.joining(jnp.stack, new_axis=True))
def stack(arrays: Sequence[ArrayLike], /, *, axis: int = 0) -> Array:
    """Join arrays along a new axis.

    Parameters
    ----------
    arrays : tuple or list of array
        Arrays of the same shape.
    axis : int, default 0
        Position of the new axis in the result.

    Returns
    -------
    array
        Joined array. If the new axis is a batch axis, it has the narrowest structure that can represent all arrays.

    Raises
    ------
    ValueError
        If there are no arrays, their shapes differ, or the axis is out of range (`numpy.exceptions.AxisError`).

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.stack([sa.eye(3), sa.Diagonal([1.0, 2.0, 3.0])]).shape
    (2, 3, 3)
    """
    arrays = cast("tuple[Array, ...]", arrays)
    arrays = _check_sequence("stack", arrays)
    axis = check_axis("stack", axis, arrays[0].ndim + 1)
    for i, x in enumerate(arrays):
        if x.shape != arrays[0].shape:
            raise ValueError(
                f"stack: arrays must have the same shape, got {arrays[0].shape} and, for arrays[{i}], {x.shape}"
            )
    result: Array = stack.dispatch(*arrays, axis=axis)
    return result


@function("x", rule=batch.unstack_rule)
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split an array into its slices along an axis.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.
    axis : int, default 0
        Axis along which to split. The slices do not have this axis.

    Returns
    -------
    tuple of array
        Slices, one for each index of the axis. Along a batch axis they have the structure of `x`.

    Raises
    ------
    ValueError
        If the axis is out of range (`numpy.exceptions.AxisError`).

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.unstack(sa.asarray([[1, 2], [3, 4]]))
    (Dense([1, 2], dtype=int64), Dense([3, 4], dtype=int64))
    """
    x = cast("Array", x)
    result: tuple[Array, ...] = unstack.dispatch(x, axis=check_axis("unstack", axis, x.ndim))
    return result


@unstack.kernel(Dense)
def _unstack_dense(x: Dense, *, axis: int) -> tuple[Dense, ...]:
    data = x.data
    return tuple(Dense.make((jax.lax.index_in_dim(data, i, axis, keepdims=False),)) for i in range(data.shape[axis]))
