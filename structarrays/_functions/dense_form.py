"""The dense form of arrays, a function outside of the standard."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from .._core.array.arguments import ArrayLike
from .._core.array.dense import Dense
from .._core.array.operands import to_dense as dense_form
from .._core.dispatch.decorator import function

if TYPE_CHECKING:
    from .._core.array.base import Array


@function("x")
def to_dense(x: ArrayLike, /) -> Dense:
    """Return the dense form of an array. The policy of `densify` does not apply to this explicit request.

    Parameters
    ----------
    x : array, (...)
        Array of any structure and data type.

    Returns
    -------
    Dense, (...)
        Dense array with the shape, data type and elements of `x`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.Diagonal([1.0, 2.0]).to_dense()
    Dense([[1., 0.],
           [0., 2.]], dtype=float64)
    """
    x = cast("Array", x)
    return dense_form(x)


to_dense.follows = False
