"""Sorting functions of the standard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.dispatch.decorator import function
from .._core.families.batch import along_batch, check_axis, is_constant
from .._numerics import dense_sorting
from .docstring_sections import with_sections

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


def _sections(result: str) -> dict[str, str]:
    """Return the shared sections of the docstrings."""
    return {
        "Parameters": """\
x : array, (...)
    Array of any data type. NaN is sorted last, as the largest value. Complex numbers are sorted by the real part,
    then by the imaginary part.
axis : int, default -1
    Axis along which to sort.
descending : bool, default False
    Whether to sort in descending order.
stable : bool, default True
    Whether equal elements keep their order.""",
        "Returns": f"array, (...)\n    {result}",
        "Raises": "ValueError\n    If the axis is out of range (`numpy.exceptions.AxisError`).",
    }


@function("x", rule=_argsort_rule, dense=dense_sorting.argsort)
@with_sections(**_sections("Indices of the shape of `x`, in the default integer data type."))
def argsort(x: ArrayLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the indices that sort an array along an axis.

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
@with_sections(**_sections("Sorted array. The structure is kept along batch axes."))
def sort(x: ArrayLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return a copy of an array that is sorted along an axis.

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
