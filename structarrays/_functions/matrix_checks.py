"""Checks of the arguments of linear algebra functions. They run once, when a call is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from .._core import dtypes
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import cast, promote, to_dense, unsupported
from .._core.families.batch import check_axis

if TYPE_CHECKING:
    from .._core.array.arguments import DTypeLike


def matrix(name: str, x: Array, argument: str = "x") -> None:
    """Raise ValueError unless the array has at least two dimensions."""
    if x.ndim < 2:
        raise ValueError(f"{name}: {argument} must have at least two dimensions, (..., M, N), got shape {x.shape}")


def square(name: str, x: Array, argument: str = "x") -> None:
    """Raise ValueError unless the last two dimensions are equal."""
    matrix(name, x, argument)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name}: {argument} must be square in its last two dimensions, got shape {x.shape}")


def numeric(name: str, *arrays: Array) -> None:
    """Raise TypeError for boolean arrays."""
    for i, x in enumerate(arrays):
        if x.dtype.kind == "b":
            argument = "x" if len(arrays) == 1 else f"x{i + 1}"
            raise TypeError(f"{name}: {argument} must have a numeric dtype, got bool")


def floating(name: str, x: Array, argument: str = "x") -> Array:
    """Convert integers to the default floating-point data type; raise TypeError for booleans.

    Dense arrays of 16 bits raise, too, because LAPACK has no routines for them. Some structures do not need LAPACK.
    """
    if type(x) is Dense and dtypes.is_half(x.dtype):
        raise unsupported(name, argument, x.dtype)
    return inexact(name, x, argument)


def inexact(name: str, x: Array, argument: str = "x") -> Array:
    """Convert like `floating`, but accept 16 bits: for right-hand sides, norms and powers, which do not need LAPACK."""
    if x.dtype.kind == "b":
        raise TypeError(f"{name}: {argument} must have a floating-point or integer dtype, got bool")
    return cast(x, dtypes.default_dtype("f")) if x.dtype.kind in "iu" else cast(x, x.dtype)


def system(name: str, a: Array, b: Array, argument: str, right: str = "b") -> list[Array]:
    """Check the matrices and right-hand sides of linear systems, and convert them to one floating-point data type.

    Raises
    ------
    ValueError
        If the matrices are not square, or the right-hand sides are not (M,) or (..., M, K).
    TypeError
        If an array is boolean.
    """
    square(name, a, argument)
    return right_hand_side(name, floating(name, a, argument), b, argument, right)


def right_hand_side(name: str, a: Array, b: Array, argument: str, right: str = "b", *, axis: int = -1) -> list[Array]:
    """Check right-hand sides against the length of `a` along an axis, and convert both to one floating-point data type.

    Raises
    ------
    ValueError
        If the right-hand sides are not (M,) or (..., M, K).
    TypeError
        If the right-hand sides are boolean.
    """
    if b.ndim == 0:
        raise ValueError(f"{name}: {right} must have at least one dimension, got a 0-d array")
    rows = b.shape[0] if b.ndim == 1 else b.shape[-2]
    if rows != a.shape[axis]:
        raise ValueError(
            f"{name}: {right} must be (M,) or (..., M, K) with M = {a.shape[axis]} for {argument} of shape {a.shape}, "
            f"got shape {b.shape}"
        )
    if b.ndim > 1:
        broadcast(name, a.shape[:-2], b.shape[:-2])
    return promote(a, inexact(name, b, right))


def columns(b: Array) -> Array:
    """Return right-hand sides as matrices; a vector becomes a column."""
    return Dense.make((to_dense(b).data[:, None],)) if b.ndim == 1 else b


def like_right_hand_side(x: Array, b: Array) -> Array:
    """Remove the axis that `columns` added to a vector from the solutions."""
    return Dense.make((to_dense(x).data[..., 0],)) if b.ndim == 1 else x


def real_dtype(dtype: DTypeLike) -> np.dtype:
    """Return the real data type of the same precision."""
    return np.dtype(jnp.finfo(dtype).dtype)


def complex_dtype(dtype: DTypeLike) -> np.dtype:
    """Return the complex data type of the same precision."""
    return np.dtype(jnp.promote_types(dtype, np.complex64))


def common_axis(name: str, axis: int, x1: Array, x2: Array) -> int:
    """Return a common axis of two arrays that broadcast, counted from the end.

    The axis is from -N to -1 for the smaller number of dimensions N. If both arrays have the same number of dimensions, a
    nonnegative axis is accepted, too.
    """
    axis = integer(name, axis, "axis")
    shorter = min(x1.ndim, x2.ndim)
    if axis >= 0 and x1.ndim == x2.ndim:
        axis = check_axis(name, axis, shorter) - shorter
    if not -shorter <= axis < 0:
        raise np.exceptions.AxisError(
            f"{name}: axis must be between {-shorter} and -1 for shapes {x1.shape} and {x2.shape}, got {axis}"
        )
    return axis


def integer(name: str, value: Any, argument: str) -> int:
    """Convert a value to a Python integer.

    Raises
    ------
    TypeError
        If the value is not an integer.
    """
    try:
        result: int = value.__index__()
        return result
    except (AttributeError, TypeError):
        raise TypeError(f"{name}: {argument} must be an integer, got {value!r}") from None


def broadcast(name: str, *shapes: tuple[int, ...], what: str = "batch shapes") -> tuple[int, ...]:
    """Return the broadcast shape, or raise ValueError."""
    try:
        return jnp.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"{name}: {what} {' and '.join(map(str, shapes))} cannot be broadcast together") from None
