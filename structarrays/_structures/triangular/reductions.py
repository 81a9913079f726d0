"""Reductions of triangular matrices, in one pass over the storage; the other triangle is masked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._core.array.dense import Dense
from ..._core.families.reduction_rule import reduce_core, squared_deviations, squared_magnitude
from .array import Triangular

if TYPE_CHECKING:
    from ..._core.families.reduction_rule import Monoid


@reduce_core.kernel(Triangular)
def _reduce_core_triangular(x: Triangular, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Dense:
    return Dense.make((monoid.reduce(x.dense_data(), axis=_counted(x, axes), keepdims=keepdims),))


@squared_deviations.kernel(Triangular)
def _squared_deviations_triangular(
    x: Triangular, *, mean: Dense, monoid: Monoid, axes: tuple[int, ...], keepdims: bool
) -> Dense:
    squares = squared_magnitude(x.dense_data() - mean.data)
    return Dense.make((monoid.reduce(squares, axis=_counted(x, axes), keepdims=keepdims),))


def _counted(x: Triangular, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes as non-negative numbers."""
    return tuple(axis + x.ndim for axis in axes)
