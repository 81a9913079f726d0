"""The chapter *sorting functions* of the standard."""

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
    """Along batch axes the parameters are sorted; a constant core is."""
    (x,) = args
    if static["axis"] >= len(x.batch_shape) and is_constant(x):
        return x.map_parameters(lambda leaf: leaf)
    return _sort_batch(function, args, static)


def _argsort_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """The indices along an axis are no zeros where the array has zeros, so that only a constant array keeps structure."""
    return along_batch(dense_sorting.argsort)(function, args, static) if is_constant(args[0]) else NotImplemented


@function("x", rule=_argsort_rule, dense=dense_sorting.argsort)
def argsort(x: ArrayLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The indices that sort an array along an axis.

    Parameters
    ----------
    x : Array
        The array. NaN counts as the largest value; complex numbers are sorted by real, then imaginary part.
    axis : int
        The axis.
    descending : bool
        Whether the largest comes first.
    stable : bool
        Whether equal values keep their order.

    Returns
    -------
    Array
        The indices, of the default integer dtype and the shape of `x`.

    Raises
    ------
    ValueError
        If the axis is out of range.

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
    """A sorted copy of an array.

    Parameters
    ----------
    x : Array
        The array. NaN counts as the largest value; complex numbers are sorted by real, then imaginary part.
    axis : int
        The axis.
    descending : bool
        Whether the largest comes first.
    stable : bool
        Whether equal values keep their order.

    Returns
    -------
    Array
        The sorted array. Along batch axes structure is kept.

    Raises
    ------
    ValueError
        If the axis is out of range.

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
