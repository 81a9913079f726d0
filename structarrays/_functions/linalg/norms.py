"""Norms, diagonals, traces and products of vectors of the standard's ``linalg`` extension."""

from __future__ import annotations

import functools
import math
import numbers
from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp

from ..._core.array.arguments import ArrayLike, DTypeLike
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import promote, to_dense
from ..._core.dispatch.decorator import function
from ..._core.dtypes import as_dtype
from ..._core.families.batch import check_axes
from ..._numerics import dense_linalg as linalg_dense
from ..._numerics import dense_statistical as statistical
from .. import matrix_checks as check
from ..comparisons_and_logic import not_equal
from ..data_type import astype
from ..elementwise import abs as absolute
from ..elementwise import square
from ..exponential import sqrt
from ..pow_and_clip import pow as power
from ..statistical import max as largest
from ..statistical import min as smallest
from ..statistical import sum as sum_of

if TYPE_CHECKING:
    import numpy as np


@function("x", prefix="linalg.", dense=linalg_dense.vector_norm)
def vector_norm(
    x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: int | float = 2
) -> Array:
    """Compute the vector norm of an array along axes.

    Parameters
    ----------
    x : array, (...)
        Array of a floating-point data type. Integers are converted to the default one.
    axis : int or tuple of int, optional
        Axis or axes along which to compute the norm. The default is all axes.
    keepdims : bool, default False
        Whether to keep the reduced axes with length 1.
    ord : int or float, default 2
        Order of the norm: 2 (Euclidean), 1, ``inf`` (largest absolute value), ``-inf`` (smallest absolute value), 0
        (number of nonzero elements), or any other p for ``sum(abs(x)**p)**(1/p)``.

    Returns
    -------
    array
        Norms, in the real data type of the same precision.

    Raises
    ------
    TypeError
        If `x` has a boolean data type, or `ord` is not a real number.
    ValueError
        If an axis is repeated.
    numpy.exceptions.AxisError
        If an axis is out of range.

    Examples
    --------
    >>> import structarrays as sa
    >>> float(sa.linalg.vector_norm(sa.Diagonal([3.0, 4.0])))
    5.0
    """
    x = cast("Array", x)
    x = check.inexact("linalg.vector_norm", x)
    axes = check_axes("linalg.vector_norm", axis, x.ndim)
    if not isinstance(ord, numbers.Real) or math.isnan(ord):
        raise TypeError(f"linalg.vector_norm: ord must be a real number, got {ord!r}")
    # A scalar of NumPy would take part in the promotion of data types.
    order = int(ord) if isinstance(ord, numbers.Integral) else float(ord)
    return vector_norm.dispatch(x, axis=axes, keepdims=bool(keepdims), ord=order)


@vector_norm.kernel(Array)
def _vector_norm_array(x: Array, *, axis: tuple[int, ...], keepdims: bool, ord: float) -> Array:
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    magnitude = absolute(x)
    if ord == 2:
        return _root(sum_of(square(magnitude), **options), ord)
    if math.isinf(ord):
        return (largest if ord > 0 else smallest)(magnitude, **options)
    if ord == 0:
        # Count in floating point: 32-bit integers could overflow.
        return sum_of(astype(not_equal(x, 0), magnitude.dtype), **options)
    if ord == 1:
        return sum_of(magnitude, **options)
    return _root(sum_of(power(magnitude, float(ord)), **options), ord)


def _root(total: Array, degree: float) -> Array:
    """Return the root of a sum of powers, with derivative zero where all terms are structural zeros."""
    if type(total) is Dense and degree > 0:
        return Dense.make((statistical.root(total.data, degree),))
    return power(total, 1.0 / degree) if degree != 2 else sqrt(total)


_MATRIX_ORDERS = ("fro", "nuc", None, 1, -1, 2, -2, math.inf, -math.inf)


@function("x", prefix="linalg.", dense=linalg_dense.matrix_norm)
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str | None = "fro") -> Array:
    """Compute the norm of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Matrices of a floating-point data type. Integers are converted to the default one.
    keepdims : bool, default False
        Whether to keep the last two axes with length 1.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}, default "fro"
        Order of the norm:

        * "fro" or None: Frobenius norm,
        * "nuc": nuclear norm, the sum of the singular values,
        * 1, -1: largest, smallest column sum of absolute values,
        * 2, -2: largest, smallest singular value,
        * inf, -inf: largest, smallest row sum of absolute values.

    Returns
    -------
    array, (...) or (..., 1, 1)
        Norms, in the real data type of the same precision.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions, or `ord` is invalid, or the norm is the smallest of no numbers.
    TypeError
        If `x` has a boolean data type.

    Notes
    -----
    The largest of no numbers is zero.

    For structured matrices, the cost is proportional to the number of stored entries, except for "nuc", 2 and -2, which
    need singular values. For diagonal matrices, these orders are cheap, too.

    Examples
    --------
    >>> import structarrays as sa
    >>> float(sa.linalg.matrix_norm(sa.tridiagonal([1.0], [2.0, 2.0], [1.0]), ord=1))
    3.0
    """
    x = cast("Array", x)
    check.matrix("linalg.matrix_norm", x)
    if ord not in _MATRIX_ORDERS:
        raise ValueError(f'linalg.matrix_norm: ord must be "fro", "nuc", 1, -1, 2, -2, inf or -inf, got {ord!r}')
    by_singular_values = ord in ("nuc", 2, -2)
    if not isinstance(ord, str) and ord is not None and _has_no_numbers(x, abs(ord)):
        if ord < 0:
            raise ValueError(
                f"linalg.matrix_norm: x must have elements for ord={ord!r}, the smallest of several numbers, "
                f"got shape {x.shape}"
            )
        ord = "fro"
    x = (check.floating if by_singular_values else check.inexact)("linalg.matrix_norm", x)
    result: Array = matrix_norm.dispatch(x, keepdims=bool(keepdims), ord=ord)
    return result


def _has_no_numbers(x: Array, ord: float) -> bool:
    """Whether a matrix has no columns (1), rows (inf) or singular values (2)."""
    rows, columns = (size == 0 for size in x.shape[-2:])
    return columns if ord == 1 else rows if ord == math.inf else rows or columns


@matrix_norm.kernel(Array, when=lambda x, *, keepdims, ord: ord in ("fro", None, 1, -1, math.inf, -math.inf))
def _matrix_norm_array(x: Array, *, keepdims: bool, ord: Any) -> Array:
    if ord in ("fro", None):
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    sums = sum_of(absolute(x), axis=-2 if abs(ord) == 1 else -1, keepdims=True)
    return (largest if ord > 0 else smallest)(sums, axis=(-2, -1), keepdims=keepdims)


@function("x", prefix="linalg.", dense=functools.partial(jnp.diagonal, axis1=-2, axis2=-1))
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Return a diagonal of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Matrices.
    offset : int, default 0
        Offset of the diagonal: 0 for the main diagonal, positive above it, negative below it.

    Returns
    -------
    array, (..., K)
        Diagonals, as a copy. The result is empty if the diagonal lies outside of the matrix.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    TypeError
        If `offset` is not an integer.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.diagonal(sa.tridiagonal([1.0], [2.0, 3.0], [4.0]), offset=1)
    Dense([4.], dtype=float64)
    """
    x = cast("Array", x)
    check.matrix("linalg.diagonal", x)
    result: Array = diagonal.dispatch(x, offset=check.integer("linalg.diagonal", offset, "offset"))
    return result


@function("x", prefix="linalg.")
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Compute the sum along a diagonal of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Matrices of a numeric data type.
    offset : int, default 0
        Offset of the diagonal: 0 for the main diagonal, positive above it, negative below it.
    dtype : dtype, optional
        Data type of the sum. The default is the data type of `x`; integers are at least of the default integer data
        type.

    Returns
    -------
    array, (...)
        Sums.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    TypeError
        If `x` has a boolean data type, or `offset` is not an integer.

    Examples
    --------
    >>> import structarrays as sa
    >>> float(sa.linalg.trace(sa.Identity(3)))
    3.0
    """
    x = cast("Array", x)
    check.matrix("linalg.trace", x)
    check.numeric("linalg.trace", x)
    dtype = None if dtype is None else as_dtype(dtype)
    result: Array = trace.dispatch(x, offset=check.integer("linalg.trace", offset, "offset"), dtype=dtype)
    return result


@trace.kernel(Array)
def _trace_array(x: Array, *, offset: int, dtype: np.dtype | None) -> Array:
    return sum_of(diagonal(x, offset=offset), axis=-1, dtype=dtype)


@function("x1", "x2", prefix="linalg.")
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the outer product of two vectors.

    Parameters
    ----------
    x1 : array, (M,)
        First vector, of a numeric data type.
    x2 : array, (N,)
        Second vector, of a numeric data type.

    Returns
    -------
    array, (M, N)
        Dense array with the elements ``x1[i] * x2[j]``.

    Raises
    ------
    ValueError
        If an argument is not one-dimensional.
    TypeError
        If an argument has a boolean data type.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.outer(sa.asarray([1.0, 2.0]), sa.asarray([3.0, 4.0]))
    Dense([[3., 4.],
           [6., 8.]], dtype=float64)
    """
    x1, x2 = cast("Array", x1), cast("Array", x2)
    check.numeric("linalg.outer", x1, x2)
    for argument, x in (("x1", x1), ("x2", x2)):
        if x.ndim != 1:
            raise ValueError(f"linalg.outer: {argument} must have one dimension, got shape {x.shape}")
    result: Array = outer.dispatch(*promote(x1, x2))
    return result


@outer.kernel(Array, Array)
def _outer_array(x1: Array, x2: Array) -> Dense:
    # The result is dense and larger than either operand.
    return Dense.make((linalg_dense.outer(to_dense(x1).data, to_dense(x2).data),))


@function("x1", "x2", prefix="linalg.")
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Compute the cross product of vectors with three elements.

    Parameters
    ----------
    x1, x2 : array, (..., 3)
        Arrays of numeric data types. All axes except `axis` must broadcast.
    axis : int, default -1
        Axis of the vectors, counted from the end of each array.

    Returns
    -------
    array, (..., 3)
        Cross products, with the broadcast shape.

    Raises
    ------
    ValueError
        If the axis does not have length 3, or the other axes do not broadcast.
    TypeError
        If an argument has a boolean data type.
    numpy.exceptions.AxisError
        If the axis is out of range.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.cross(sa.asarray([1.0, 0.0, 0.0]), sa.asarray([0.0, 1.0, 0.0]))
    Dense([0., 0., 1.], dtype=float64)
    """
    x1, x2 = cast("Array", x1), cast("Array", x2)
    check.numeric("linalg.cross", x1, x2)
    for argument, x in (("x1", x1), ("x2", x2)):
        if x.ndim == 0:
            raise ValueError(f"linalg.cross: {argument} must have at least one dimension, got a 0-d array")
    axis = check.common_axis("linalg.cross", axis, x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"linalg.cross: axis {axis} must have size 3, got shapes {x1.shape} and {x2.shape}")
    check.broadcast("linalg.cross", x1.shape, x2.shape, what="shapes")
    result: Array = cross.dispatch(*promote(x1, x2), axis=axis)
    return result


@cross.kernel(Dense, Dense)
def _cross_dense_dense(x1: Dense, x2: Dense, *, axis: int) -> Dense:
    a, b = jnp.broadcast_arrays(x1.data, x2.data)
    return Dense.make((jnp.cross(a, b, axis=axis),))
