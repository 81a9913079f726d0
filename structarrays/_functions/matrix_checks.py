"""What the functions of linear algebra ask of their arguments. All of it runs while a call is traced, once."""

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
    """Raise unless the array has at least two dimensions."""
    if x.ndim < 2:
        raise ValueError(f"{name}: {argument} must have at least two dimensions, (..., M, N), got shape {x.shape}")


def square(name: str, x: Array, argument: str = "x") -> None:
    """Raise unless the last two dimensions are a square matrix."""
    matrix(name, x, argument)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name}: {argument} must be square in its last two dimensions, got shape {x.shape}")


def numeric(name: str, *arrays: Array) -> None:
    """Raise for booleans."""
    for i, x in enumerate(arrays):
        if x.dtype.kind == "b":
            argument = "x" if len(arrays) == 1 else f"x{i + 1}"
            raise TypeError(f"{name}: {argument} must have a numeric dtype, got bool")


def floating(name: str, x: Array, argument: str = "x") -> Array:
    """The array with a floating-point dtype: integers become the default one, booleans raise.

    So do dense arrays of 16 bits: LAPACK has no routines for them. Some structures need none.
    """
    if type(x) is Dense and dtypes.is_half(x.dtype):
        raise unsupported(name, argument, x.dtype)
    return inexact(name, x, argument)


def inexact(name: str, x: Array, argument: str = "x") -> Array:
    """The same where no routine is called for: right-hand sides, norms, powers."""
    if x.dtype.kind == "b":
        raise TypeError(f"{name}: {argument} must have a floating-point dtype (or integers), got bool")
    return cast(x, dtypes.default_dtype("f")) if x.dtype.kind in "iu" else cast(x, x.dtype)


def system(name: str, a: Array, b: Array, argument: str, right: str = "b") -> list[Array]:
    """The matrices and right-hand sides of linear systems, in one floating-point dtype.

    Raises
    ------
    ValueError
        If the matrices are not square, or the right-hand sides, ``(M,)`` or ``(..., M, K)``, do not fit.
    TypeError
        If an array is boolean.
    """
    square(name, a, argument)
    return right_hand_side(name, floating(name, a, argument), b, argument, right)


def right_hand_side(name: str, a: Array, b: Array, argument: str, right: str = "b", *, axis: int = -1) -> list[Array]:
    """`a` and right-hand sides, as long as `a` is along the axis, in one floating-point dtype.

    Raises
    ------
    ValueError
        If the right-hand sides, ``(M,)`` or ``(..., M, K)``, do not fit.
    TypeError
        If they are boolean.
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
    """Right-hand sides as matrices: a single vector is a column."""
    return Dense.make((to_dense(b).data[:, None],)) if b.ndim == 1 else b


def like_right_hand_side(x: Array, b: Array) -> Array:
    """Solutions for `columns` of right-hand sides, without the axis that was added to a single vector."""
    return Dense.make((to_dense(x).data[..., 0],)) if b.ndim == 1 else x


def real_dtype(dtype: DTypeLike) -> np.dtype:
    """The real dtype of the same precision."""
    return np.dtype(jnp.finfo(dtype).dtype)


def complex_dtype(dtype: DTypeLike) -> np.dtype:
    """The complex dtype of the same precision."""
    return np.dtype(jnp.promote_types(dtype, np.complex64))


def common_axis(name: str, axis: int, x1: Array, x2: Array) -> int:
    """The axis of two arrays that broadcast, counted from the end: from -N to -1, N the smaller number of dimensions.

    Where both have the same number of dimensions a count from the front says the same, and is taken.
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
    """A Python integer.

    Raises
    ------
    TypeError
        If it is none.
    """
    try:
        result: int = value.__index__()
        return result
    except (AttributeError, TypeError):
        raise TypeError(f"{name}: {argument} must be an integer, got {value!r}") from None


def broadcast(name: str, *shapes: tuple[int, ...], what: str = "batch shapes") -> tuple[int, ...]:
    """The shape to which these broadcast."""
    try:
        return jnp.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"{name}: {what} {' and '.join(map(str, shapes))} cannot be broadcast together") from None
