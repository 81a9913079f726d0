"""Manipulation functions of the standard. The module `batch` describes how they treat structure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import check_operand
from .._core.array.views import view_function
from .._core.dispatch.decorator import function
from .._core.dispatch.function import Function
from .._core.dispatch.results import follow_eager_operands
from .._core.families import batch
from .._core.families.batch import check_axes, check_axis, check_shape
from .conversion import asarray
from .indexing import take

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.typing import Shape


@view_function(
    "x", rule=batch.expand_dims_rule, inverse=lambda data, shape, axis: data.reshape(shape), dense=jnp.expand_dims
)
def expand_dims(x: ArrayLike, /, axis: int | tuple[int, ...] = 0) -> Array:
    """Insert axes of length 1.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.
    axis : int or tuple of int, default 0
        Positions of the new axes in the result.

    Returns
    -------
    array
        Array with the new axes; a view of a dense `x`. The structure is kept if the new axes are batch axes. Otherwise
        structures with few entries become `Sparse`.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If an axis is repeated.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.expand_dims(sa.ones((3, 4)), axis=(0, -1)).shape
    (1, 3, 4, 1)
    """
    x = cast("Array", x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    result: Array = expand_dims.dispatch(x, axis=tuple(sorted(check_axes("expand_dims", axis, x.ndim + count))))
    return result


@view_function("x", rule=batch.squeeze_rule, inverse=lambda data, shape, axis: data.reshape(shape), dense=jnp.squeeze)
def squeeze(x: ArrayLike, /, axis: int | tuple[int, ...]) -> Array:
    """Remove axes of length 1.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.
    axis : int or tuple of int
        Axes to remove.

    Returns
    -------
    array
        Array without these axes; a view of a dense `x`. The structure is kept if batch axes are removed.

    Raises
    ------
    ValueError
        If an axis does not have length 1, or is out of range (`numpy.exceptions.AxisError`).

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.squeeze(sa.ones((1, 3, 1)), axis=(0, 2)).shape
    (3,)
    """
    x = cast("Array", x)
    if axis is None:
        axis = tuple(i for i, n in enumerate(x.shape) if n == 1)
    axes = check_axes("squeeze", axis, x.ndim)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} must have length 1, got {x.shape[a]} in shape {x.shape}")
    result: Array = squeeze.dispatch(x, axis=axes)
    return result


@view_function("x", rule=batch.flip_rule, inverse=lambda data, shape, axis: jnp.flip(data, axis), dense=jnp.flip)
def flip(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Reverse the order of the elements along axes.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.
    axis : int or tuple of int, optional
        Axes to reverse. The default is all axes.

    Returns
    -------
    array, (...)
        Reversed array; a view of a dense `x`. The structure is kept along batch axes.

    Raises
    ------
    ValueError
        If an axis is out of range (`numpy.exceptions.AxisError`) or repeated.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.flip(sa.asarray([1, 2, 3]))
    Dense([3, 2, 1], dtype=int64)
    """
    x = cast("Array", x)
    result: Array = flip.dispatch(x, axis=check_axes("flip", axis, x.ndim))
    return result


def _inverse_permutation(data: jax.Array, shape: Shape, axes: tuple[int, ...]) -> jax.Array:
    return data.transpose(np.argsort([axis % data.ndim for axis in axes]).tolist())


def _moved_axes(ndim: int, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return the permutation of the axes by `moveaxis`."""
    source = check_axes("moveaxis", source, ndim, "source")
    destination = check_axes("moveaxis", destination, ndim, "destination")
    if len(source) != len(destination):
        raise ValueError(
            f"moveaxis: source and destination must have the same length, got {len(source)} and {len(destination)}"
        )
    axes = [axis for axis in range(ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source, strict=True)):
        axes.insert(to, axis)
    return tuple(axes)


@view_function(
    "x",
    inverse=lambda data, shape, source, destination: _inverse_permutation(
        data, shape, _moved_axes(data.ndim, source, destination)
    ),
)
def moveaxis(x: ArrayLike, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Array:
    """Move axes to new positions; the other axes keep their order.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.
    source : int or tuple of int
        Axes to move.
    destination : int or tuple of int
        Position of each of these axes in the result.

    Returns
    -------
    array
        Array with moved axes; a view of a dense `x`. The structure is kept if batch axes are permuted, and if the axes
        of a matrix are exchanged.

    Raises
    ------
    ValueError
        If an axis is out of range (`numpy.exceptions.AxisError`) or repeated, or the numbers of axes differ.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.moveaxis(sa.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = cast("Array", x)
    result: Array = permute_dims.dispatch(x, axes=_moved_axes(x.ndim, source, destination))
    return result


@view_function("x", rule=batch.permute_rule, inverse=_inverse_permutation)
def permute_dims(x: ArrayLike, /, axes: tuple[int, ...]) -> Array:
    """Permute the axes of an array.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.
    axes : tuple of int
        Permutation of the axes: axis i of the result is the axis ``axes[i]`` of `x`.

    Returns
    -------
    array
        Array with permuted axes; a view of a dense `x`. The structure is kept if batch axes are permuted, and if the
        axes of a matrix are exchanged.

    Raises
    ------
    ValueError
        If `axes` is not a permutation of the axes of `x`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.permute_dims(sa.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = cast("Array", x)
    if not isinstance(axes, (tuple, list)):
        axes = (axes,)
    if len(axes) != x.ndim:
        raise ValueError(f"permute_dims: axes must be a permutation of the {x.ndim} axes of x, got {axes}")
    result: Array = permute_dims.dispatch(x, axes=check_axes("permute_dims", axes, x.ndim, "axes"))
    return result


@permute_dims.kernel(Dense)
def _permute_dims_dense(x: Dense, *, axes: tuple[int, ...]) -> Dense:
    return Dense.make((x.data.transpose(axes),))


@view_function("x", rule=batch.reshape_rule, inverse=lambda data, old, shape, copy: data.reshape(old))
def reshape(x: ArrayLike, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    """Reshape an array, with its elements in row-major order.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.
    shape : tuple of int
        New shape. One length may be -1; it is computed from the number of elements.
    copy : bool, optional
        If True, return a copy. If False, never copy, and raise if a structured array must be densified. The default
        copies if needed.

    Returns
    -------
    array
        Reshaped array; a view of a dense `x` unless `copy` is True. The structure is kept if the core shape does not
        change. Otherwise structures with few entries become `Sparse`.

    Raises
    ------
    ValueError
        If the numbers of elements differ, or `copy` is False and a structured array must be densified.

    Notes
    -----
    The result is a view of any dense array, including a transposed one, which NumPy copies.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.reshape(sa.asarray([1, 2, 3, 4]), (2, -1))
    Dense([[1, 2],
           [3, 4]], dtype=int64)
    """
    x = cast("Array", x)
    shape = _full_shape(x, check_shape("reshape", shape, lowest=-1))
    if copy is False and type(x) is not Dense and batch.reshape_rule(reshape, (x,), {"shape": shape}) is NotImplemented:
        raise ValueError(
            f"reshape: copy must not be False, because a {type(x).__name__} of shape {x.shape} must be densified for shape {shape}; "
            "omit copy"
        )
    result: Array = reshape.dispatch(x, shape=shape)
    return result


def _full_shape(x: Array, shape: Shape) -> Shape:
    """Return the shape with the length -1 computed."""
    unknown = [i for i, n in enumerate(shape) if n == -1]
    if len(unknown) > 1:
        raise ValueError(f"reshape: only one length in shape may be -1, got {shape}")
    full = shape
    if unknown:
        others = math.prod(n for n in shape if n != -1)
        missing = x.size // others if others else 0
        full = shape[: unknown[0]] + (missing,) + shape[unknown[0] + 1 :]
    if math.prod(full) != x.size or (unknown and math.prod(n for n in shape if n != -1) == 0):
        raise ValueError(f"reshape: shape must have the number of elements of x, {x.size} for {x.shape}, got {shape}")
    return full


@reshape.kernel(Dense)
def _reshape_dense(x: Dense, *, shape: Shape) -> Dense:
    return Dense.make((x.data.reshape(shape),))


class _Repeat(Function[..., Array]):
    """The class of `repeat`: the shape of its result depends on the values of an array of repeats."""

    def __call__(self, *args: Any, **kwargs: Any) -> Array:
        if len(args) == 2 and type(args[1]) is not int and getattr(args[1], "shape", None) != ():
            result: Array = follow_eager_operands(_repeat_each(args[0], args[1], **kwargs), args)
            return result
        return super().__call__(*args, **kwargs)


def _repeat_each(x: Any, repeats: Any, /, *, axis: int | None = None) -> Array:
    """Implement `repeat` with one number for each element, by a `take` of indices that are computed on the host."""
    check_operand(x, "repeat", "x")
    x = x if isinstance(x, Array) else asarray(x)
    if isinstance(repeats, Array):
        repeats = repeats.to_jax()
    if isinstance(repeats, jax.core.Tracer):
        raise jax.errors.ConcretizationTypeError(
            repeats,
            "repeat: repeats must not be traced, because the shape of the result depends on its values; use static repeats under jit and vmap",
        )
    repeats = np.asarray(repeats)
    if repeats.dtype.kind not in "iu" or repeats.ndim > 1:
        raise TypeError(
            f"repeat: repeats must be an integer or a one-dimensional integer array, "
            f"got dtype {repeats.dtype} and shape {repeats.shape}"
        )
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = check_axis("repeat", axis, x.ndim)
    if repeats.shape[0] not in (1, x.shape[axis]) or (repeats < 0).any():
        raise ValueError(
            f"repeat: repeats must contain 1 or {x.shape[axis]} nonnegative numbers, got {repeats.tolist()[:20]}"
        )
    if repeats.size == 1:
        return repeat(x, int(repeats[0]), axis=axis)
    return take(x, np.repeat(np.arange(x.shape[axis]), repeats), axis=axis)


def _repeat_function(define: Callable[..., Array]) -> _Repeat:
    return _Repeat(define, ("x",), rule=batch.repeat_rule, dense=jnp.repeat)


@_repeat_function
def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    """Repeat each element of an array along an axis.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.
    repeats : int or array, (n,)
        Number of repetitions, one for all elements or one for each of the n elements along the axis. An array must not
        be traced, because the shape of the result is data-dependent.
    axis : int, optional
        Axis along which to repeat. By default, the array is flattened first.

    Returns
    -------
    array
        Array with repeated elements. The structure is kept along batch axes.

    Raises
    ------
    ValueError
        If `repeats` is negative or has the wrong length, or the axis is out of range (`numpy.exceptions.AxisError`).

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.repeat(sa.asarray([1, 2]), 2)
    Dense([1, 1, 2, 2], dtype=int64)
    """
    (repeats,) = check_shape("repeat", repeats, "repeats")
    axis = None if axis is None else check_axis("repeat", axis, x.ndim)
    result: Array = repeat.dispatch(x, repeats=repeats, axis=axis)
    return result


@function("x", "*shift", rule=batch.roll_rule)
def roll(x: ArrayLike, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Roll the elements of an array along axes; elements beyond the last position reappear at the first one.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.
    shift : int or tuple of int
        Number of positions towards larger indices, for all axes or for each axis. It may be traced.
    axis : int or tuple of int, optional
        Axes to roll. By default, the array is flattened, rolled, and reshaped to its shape.

    Returns
    -------
    array, (...)
        Rolled array. The structure is kept along batch axes.

    Raises
    ------
    ValueError
        If an axis is out of range (`numpy.exceptions.AxisError`), or the numbers of shifts and axes differ.

    Notes
    -----
    A loop over values of `shift` compiles once.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.roll(sa.asarray([1, 2, 3]), 1)
    Dense([3, 1, 2], dtype=int64)
    """
    x = cast("Array", x)
    given = cast("Array | tuple[Array, ...]", shift)
    arrays = given if isinstance(given, tuple) else (given,)
    for s in arrays:
        if s.dtype.kind not in "iu" or s.shape != ():
            raise TypeError(
                f"roll: shift must be an integer or a tuple of integers, got dtype {s.dtype} and shape {s.shape}"
            )
    shifts = [s.dense_data() for s in arrays]
    if axis is None:
        if len(shifts) != 1:
            raise ValueError(f"roll: shift must be one integer if axis is None, got {len(shifts)}")
        flat: Array = roll.dispatch(x, shift=tuple(shifts), axis=None)
        return flat
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(check_axis("roll", a, x.ndim) for a in axes)
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: shift and axis must have the same length, got {len(shifts)} and {len(axes)}")
    result: Array = roll.dispatch(x, shift=tuple(shifts), axis=axes)
    return result


@roll.kernel(Dense)
def _roll_dense(x: Dense, *, shift: tuple[jax.Array, ...], axis: tuple[int, ...] | None) -> Dense:
    data = x.data
    if axis is None:
        return Dense.make((jnp.roll(data, shift[0]),))
    for s, a in zip(shift, axis, strict=True):
        data = jnp.roll(data, s, a)
    return Dense.make((data,))


@function("x", rule=batch.tile_rule)
def tile(x: ArrayLike, repetitions: tuple[int, ...], /) -> Array:
    """Construct an array from copies of an array along its axes.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.
    repetitions : tuple of int
        Number of copies along each axis, aligned with the last axis. If there are more numbers than axes, leading axes
        are added.

    Returns
    -------
    array
        Tiled array. The structure is kept along batch axes.

    Raises
    ------
    ValueError
        If a number is negative.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.tile(sa.asarray([1, 2]), (2, 2))
    Dense([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int64)
    """
    x = cast("Array", x)
    repetitions = check_shape("tile", repetitions, "repetitions")
    result: Array = tile.dispatch(x, repetitions=(1,) * (x.ndim - len(repetitions)) + repetitions)
    return result


@tile.kernel(Dense)
def _tile_dense(x: Dense, *, repetitions: tuple[int, ...]) -> Dense:
    return Dense.make((jnp.tile(x.data, repetitions),))
