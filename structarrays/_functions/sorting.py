"""Sorting functions of the standard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.dispatch.decorator import function
from .._core.families.batch import along_batch, check_axis, is_constant
from .._numerics import dense_sorting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core.dispatch.function import Function
    from .._core.typing import Result, Static

_sort_batch = along_batch(dense_sorting.sort)


def _sort_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Sort the parameters along batch axes; a constant core is sorted already."""
    (x,) = args
    if static["axis"] >= len(x.batch_shape) and is_constant(x):
        return x.map_parameters(lambda leaf: leaf)
    return _sort_batch(function, args, static)


def _argsort_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Keep the structure of a constant array only: indices are nonzero at structural zeros."""
    return along_batch(dense_sorting.argsort)(function, args, static) if is_constant(args[0]) else NotImplemented


@function("x", rule=_argsort_rule, dense=dense_sorting.argsort)
def argsort(x: ArrayLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the indices that sort an array along an axis.

    Parameters
    ----------
    x : array, (...)
        Array of any data type. NaN is sorted last, as the largest value. Complex numbers are sorted by the real part,
        then by the imaginary part.
    axis : int, default -1
        Axis along which to sort.
    descending : bool, default False
        Whether to sort in descending order.
    stable : bool, default True
        Whether equal elements keep their order.

    Returns
    -------
    array, (...)
        Indices of the shape of `x`, in the default integer data type.

    Raises
    ------
    ValueError
        If the axis is out of range (`numpy.exceptions.AxisError`).

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.argsort(sa.asarray([3.0, 1.0, 2.0]))
    Dense([1, 2, 0], dtype=int64)
    """
    x = cast("Array", x)
    axis = check_axis("argsort", axis, x.ndim)
    result: Array = argsort.dispatch(x, axis=axis, descending=bool(descending), stable=bool(stable))
    return result


@function("x", rule=_sort_rule, dense=dense_sorting.sort)
def sort(x: ArrayLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return a copy of an array that is sorted along an axis.

    Parameters
    ----------
    x : array, (...)
        Array of any data type. NaN is sorted last, as the largest value. Complex numbers are sorted by the real part,
        then by the imaginary part.
    axis : int, default -1
        Axis along which to sort.
    descending : bool, default False
        Whether to sort in descending order.
    stable : bool, default True
        Whether equal elements keep their order.

    Returns
    -------
    array, (...)
        Sorted array. The structure is kept along batch axes.

    Raises
    ------
    ValueError
        If the axis is out of range (`numpy.exceptions.AxisError`).

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.sort(sa.asarray([3.0, 1.0, 2.0]), descending=True)
    Dense([3., 2., 1.], dtype=float64)
    """
    x = cast("Array", x)
    axis = check_axis("sort", axis, x.ndim)
    result: Array = sort.dispatch(x, axis=axis, descending=bool(descending), stable=bool(stable))
    return result
