"""What the namespace has beyond the standard about the structure of arrays."""

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
    """The dense form of an array: an explicit request, to which the policy of `densify` does not apply.

    Parameters
    ----------
    x : array
        Any structure.

    Returns
    -------
    Dense
        Of the same shape and dtype.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.Diagonal([1.0, 2.0]).to_dense()
    Dense([[1., 0.],
           [0., 2.]], dtype=float64)
    """
    x = cast("Array", x)
    return dense_form(x)
