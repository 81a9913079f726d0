"""Reductions of triangular matrices, in one pass over the storage; the other triangle is masked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.families.reduction_rule import reduce_core, squared_deviations, squared_magnitude
from ..._functions.monoids import PROD, with_zero
from .array import Triangular

if TYPE_CHECKING:
    import jax

    from ..._core.families.reduction_rule import Monoid


@reduce_core.kernel(Triangular)
def _reduce_core_triangular(x: Triangular, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Dense:
    data = x.dense_data()
    if monoid is PROD and x.background is None:
        # The product of a line must not overflow before a zero.
        data = jnp.where(_has_zeros(x, axes), with_zero(monoid, data), data)
    return Dense.make((monoid.reduce(data, axis=_counted(x, axes), keepdims=keepdims),))


def _has_zeros(x: Triangular, axes: tuple[int, ...]) -> jax.Array:
    """Return whether a row (axis -1), a column (axis -2), or the matrix has structural zeros; it broadcasts with the matrix."""
    m, n = x.shape[-2:]
    if axes == (-2,):
        columns = jnp.arange(n)
        return columns > 0 if x.lower else columns < m - 1
    rows = jnp.arange(m)[:, None]
    zeros = rows < n - 1 if x.lower else rows > 0
    return zeros if len(axes) == 1 else jnp.any(zeros)


@squared_deviations.kernel(Triangular)
def _squared_deviations_triangular(
    x: Triangular, *, mean: Dense, monoid: Monoid, axes: tuple[int, ...], keepdims: bool
) -> Dense:
    squares = squared_magnitude(x.dense_data() - mean.data)
    return Dense.make((monoid.reduce(squares, axis=_counted(x, axes), keepdims=keepdims),))


def _counted(x: Triangular, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes as non-negative numbers."""
    return tuple(axis + x.ndim for axis in axes)
