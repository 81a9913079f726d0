"""Reductions of `PeriodicBanded` arrays by their diagonals: each row and each column has one entry of every diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.families.reduction_rule import reduce_core, squared_deviations, squared_magnitude
from ..._functions.monoids import PROD, with_zero
from ..banded.reductions import combined
from .array import PeriodicBanded

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax

    from ..._core.families.reduction_rule import Monoid


@reduce_core.kernel(PeriodicBanded)
def _reduce_core_periodic_banded(x: PeriodicBanded, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Dense:
    background = x.background
    if background is None and not monoid.zero_is_identity(x.dtype):
        background = jnp.zeros((), x.dtype)
    others = None if background is None else background[..., None]
    diagonals: Sequence[jax.Array] = x.diagonals
    if monoid is PROD and x.background is None and len(axes) == 2 and x.core_shape[0] > len(x.offsets):
        # One zero suffices here. The product must not overflow before it.
        diagonals = [with_zero(monoid, d) for d in diagonals]
    return _reduced(x, monoid, diagonals, others, axes, keepdims)


@squared_deviations.kernel(PeriodicBanded)
def _squared_deviations_periodic_banded(
    x: PeriodicBanded, *, mean: Dense, monoid: Monoid, axes: tuple[int, ...], keepdims: bool
) -> Dense:
    # One mean for each row, for each column, or for the matrix.
    by_columns = axes == (-2,)
    means = mean.data[..., 0, :] if by_columns else mean.data[..., 0]
    squares = [
        squared_magnitude(d - (jnp.roll(means, -k, -1) if by_columns else means))
        for d, k in zip(x.diagonals, x.offsets, strict=True)
    ]
    background = jnp.zeros((), x.dtype) if x.background is None else x.background[..., None]
    return _reduced(x, monoid, squares, squared_magnitude(background - means), axes, keepdims)


def _reduced(
    x: PeriodicBanded,
    monoid: Monoid,
    diagonals: Sequence[jax.Array],
    background: jax.Array | None,
    axes: tuple[int, ...],
    keepdims: bool,
) -> Dense:
    """Reduce diagonals, and the value ``(..., 1)`` or ``(..., n)`` of what is not stored in each line (None: ignored)."""
    n, unstored = x.core_shape[0], x.core_shape[0] - len(x.offsets)
    # The background comes first, so that a product cannot overflow before its zero.
    terms = [] if background is None or not unstored else [monoid.repeat(background, unstored)]
    if len(axes) == 2:
        terms = [monoid.repeat(t, n) for t in terms]
        terms += [monoid.reduce(d, axis=(d.ndim - 1,), keepdims=True) for d in diagonals]
        total = combined(monoid, terms, (*x.batch_shape, 1))
        return Dense.make((total[..., None] if keepdims else total[..., 0],))
    by_columns = axes == (-2,)
    terms += [jnp.roll(d, k, -1) if by_columns else d for d, k in zip(diagonals, x.offsets, strict=True)]
    lines = combined(monoid, terms, (*x.batch_shape, n))
    return Dense.make((jnp.expand_dims(lines, axes) if keepdims else lines,))
