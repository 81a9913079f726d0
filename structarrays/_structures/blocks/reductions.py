"""Reductions of block-diagonal and block-banded matrices: the blocks, and the background with its multiplicity.

A row (or column) of a run is reduced within its block. The results of runs that share no rows are concatenated;
otherwise they are combined. Entries that are not stored equal the background. The static function `missing` counts
them.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.families.reduction_rule import reduce_core, squared_deviations, squared_magnitude
from ..._functions.monoids import with_zero
from . import numerics
from .array import Blocks, missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax

    from ..._core.families.reduction_rule import Monoid


@reduce_core.kernel(Blocks)
def _reduce_core_blocks(x: Blocks, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Dense:
    background = x.background
    if background is None and not monoid.zero_is_identity(x.dtype):
        background = jnp.zeros((), x.dtype)
    if len(axes) == 2:
        entries: Sequence[jax.Array]
        entries, count = x.entries, _unstored(x)
        if x.background is None and background is not None and count:
            # One zero suffices here. The product must not overflow before it.
            entries = [with_zero(monoid, e) for e in entries]
        return _everything(x, monoid, entries, background, count, keepdims)
    segments = missing(x, *axes)
    start = None
    if background is not None and any(count for _, _, count in segments):
        start = _segmented([monoid.repeated(background, count) for _, _, count in segments], segments)
    return _lines(x, monoid, x.entries, start, axes, keepdims)


@squared_deviations.kernel(Blocks)
def _squared_deviations_blocks(
    x: Blocks, *, mean: Dense, monoid: Monoid, axes: tuple[int, ...], keepdims: bool
) -> Dense:
    means = mean.data
    entries = [squared_magnitude(e - m) for e, m in zip(x.entries, x.gather(means), strict=True)]
    background = jnp.zeros((), x.dtype) if x.background is None else x.background[..., None, None]
    background = squared_magnitude(background - means)
    if len(axes) == 2:
        return _everything(x, monoid, entries, background[..., 0, 0], _unstored(x), keepdims)
    segments = missing(x, *axes)
    background = jnp.squeeze(background, axes)
    counts = _segmented([jnp.asarray(float(count), background.dtype) for _, _, count in segments], segments)
    start = jnp.where(counts > 0, background * counts.astype(background.dtype), 0)
    return _lines(x, monoid, entries, start, axes, keepdims)


def _unstored(x: Blocks) -> int:
    """The number of all entries that are not stored."""
    m, n = x.core_shape
    return m * n - x.stored


def _everything(
    x: Blocks, monoid: Monoid, entries: Sequence[jax.Array], background: jax.Array | None, count: int, keepdims: bool
) -> Dense:
    """Reduce all entries of a matrix: the blocks, and `count` times the background (None has no effect)."""
    terms = [] if background is None or count == 0 else [monoid.repeat(background, count)]
    terms += [
        monoid.reduce(e, axis=(e.ndim - 3, e.ndim - 2, e.ndim - 1), keepdims=False)
        for run, e in zip(x.runs, entries, strict=True)
        if run.size
    ]
    terms = terms or [jnp.asarray(monoid.identity(x.dtype if background is None else background.dtype))]
    result = functools.reduce(monoid.combine, [jnp.broadcast_to(t, x.batch_shape) for t in terms])
    return Dense.make((result[..., None, None] if keepdims else result,))


def _lines(
    x: Blocks,
    monoid: Monoid,
    entries: Sequence[jax.Array],
    start: jax.Array | None,
    axes: tuple[int, ...],
    keepdims: bool,
) -> Dense:
    """Reduce each row (``axes == (-1,)``) or column of a matrix: the blocks, and `start` for entries that are not
    stored, if these matter.
    """
    (axis,) = axes
    length = x.core_shape[0 if axis == -1 else 1]
    parts = []
    for run, e in zip(x.runs, entries, strict=True):
        if run.size:
            line = monoid.reduce(e, axis=(e.ndim + axis,), keepdims=False)
            line = line.reshape(*e.shape[:-3], run.size // e.shape[axis])
            parts.append((run.row if axis == -1 else run.column, line))
    terms = [] if start is None else [start]
    if parts:
        terms += numerics.layers(parts, length, monoid.identity(parts[0][1].dtype), -1, x.pieces > 1)
    terms = terms or [jnp.asarray(monoid.identity(x.dtype))]
    result = functools.reduce(monoid.combine, [jnp.broadcast_to(t, (*x.batch_shape, length)) for t in terms])
    return Dense.make((jnp.expand_dims(result, axis) if keepdims else result,))


def _segmented(values: Sequence[jax.Array], segments: Sequence[tuple[int, int, int]]) -> jax.Array:
    """An axis with one value in each segment."""
    parts = [
        jnp.broadcast_to(v[..., None], (*v.shape, stop - start))
        for v, (start, stop, _) in zip(values, segments, strict=True)
    ]
    return jnp.concatenate(parts or [jnp.zeros(0)], axis=-1)
