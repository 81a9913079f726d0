"""Reductions and differences of `Banded` arrays, including `Diagonal` and `Identity`, by their diagonals.

A row or a column meets each diagonal at most once. Its reduction is an elementwise expression of the diagonals, padded
with the identity element. `missing` counts the background values of each row or column. The shapes and offsets are
static, and so are these counts: if all entries are stored, the background takes no part.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.array.dense import Dense
from ..._core.families.conditions import along_core_axis
from ..._core.families.reduction_rule import reduce_core, squared_deviations, squared_magnitude
from ..._functions.monoids import with_zero
from ..._functions.utility import diff
from ..._numerics import bands as band_numerics
from ..._numerics.symbolic import index_dtype, is_symbolic
from .array import Banded, bands, missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax

    from ..._core.families.reduction_rule import Monoid
    from ..._core.typing import Shape

# Above this number of diagonals a fused expression compiles slowly; they are stacked and reduced instead.
_UNROLLED_DIAGONALS = 48

# A diagonal of a tall or wide matrix that meets less than one row in this number is combined with these rows alone.
# Padding would have the full length, and a fused expression of many paddings is 15 times slower (5 of 3000 diagonals
# in 100,000 rows).
_SHORT = 4


@reduce_core.kernel(Banded)
def _reduce_core_banded(x: Banded, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Dense:
    background = x.background
    if background is None and not monoid.zero_is_identity(x.dtype):
        background = jnp.zeros((), x.dtype)
    if len(axes) == 2:
        diagonals: Sequence[jax.Array]
        diagonals, count = x.diagonals, _unstored(x)
        if x.background is None and background is not None and _has_unstored(x):
            # One zero suffices here. The product must not overflow before it.
            diagonals = [with_zero(monoid, d) for d in diagonals]
        return _everything(x, monoid, diagonals, background, count, keepdims)
    start = None if background is None else _of_background(x, monoid, background, *axes)
    return _lines(x, monoid, x.diagonals, start, axes, keepdims)


def _of_background(x: Banded, monoid: Monoid, background: jax.Array, axis: int) -> jax.Array | None:
    """Reduce the entries that are not stored in each row or column; None if all are stored."""
    if any(map(is_symbolic, x.core_shape)):
        traced = _missing(x, axis)
        return jnp.where(traced > 0, monoid.repeat(background[..., None], traced), monoid.identity(x.dtype))
    counts = missing(x, axis)
    return _repeated(monoid, background, counts) if counts.any() else None


@squared_deviations.kernel(Banded)
def _squared_deviations_banded(
    x: Banded, *, mean: Dense, monoid: Monoid, axes: tuple[int, ...], keepdims: bool
) -> Dense:
    means = mean.data
    diagonals = [
        squared_magnitude(d - band_numerics.at_diagonal(means, k, x.core_shape))
        for d, k in zip(x.diagonals, x.offsets, strict=True)
    ]
    background = jnp.zeros((), x.dtype) if x.background is None else x.background[..., None, None]
    background = squared_magnitude(background - means)
    if len(axes) == 2:
        return _everything(x, monoid, diagonals, background[..., 0, 0], _unstored(x), keepdims)
    counts = _missing(x, *axes)
    background = jnp.squeeze(background, axes)
    start = jnp.where(counts > 0, background * counts.astype(background.dtype), 0)
    return _lines(x, monoid, diagonals, start, axes, keepdims)


def _has_unstored(x: Banded) -> bool:
    m, n = x.core_shape
    return m > 0 and n > 0 and sum(d.shape[-1] > 0 for d in x.diagonals) < m + n - 1


def _unstored(x: Banded) -> int:
    """Return the number of entries that are not stored."""
    m, n = x.core_shape
    return m * n - sum(d.shape[-1] for d in x.diagonals)


def _everything(
    x: Banded, monoid: Monoid, diagonals: Sequence[jax.Array], background: jax.Array | None, count: int, keepdims: bool
) -> Dense:
    """Reduce all entries of a matrix: the diagonals, and the background with its multiplicity (None: ignored)."""
    terms = [] if background is None or not _has_unstored(x) else [monoid.repeat(background, count)]
    terms += [monoid.reduce(d, axis=(d.ndim - 1,), keepdims=False) for d in diagonals if d.shape[-1] > 0]
    terms = terms or [jnp.asarray(monoid.identity(x.dtype if background is None else background.dtype))]
    result = functools.reduce(monoid.combine, [jnp.broadcast_to(t, x.batch_shape) for t in terms])
    return Dense.make((result[..., None, None] if keepdims else result,))


def _lines(
    x: Banded,
    monoid: Monoid,
    diagonals: Sequence[jax.Array],
    start: jax.Array | None,
    axes: tuple[int, ...],
    keepdims: bool,
) -> Dense:
    """Reduce each row (``axes == (-1,)``) or column of a matrix.

    `start` is the contribution of the entries that are not stored; None has no effect.
    """
    (axis,) = axes
    length = x.core_shape[0 if axis == -1 else 1]
    terms = [] if start is None else [start]  # the background first: a zero must enter a product before it overflows
    short = []
    for d, k in zip(diagonals, x.offsets, strict=True):
        before, count = max(0, -k if axis == -1 else k), d.shape[-1]
        if 0 < _SHORT * count < length:
            short.append((d, before))
        elif count > 0:
            terms.append(band_numerics.pad_axis(d, before, length - before - count, -1, monoid.identity(d.dtype)))
    terms = terms or [jnp.asarray(monoid.identity(x.dtype))]
    result = combined(monoid, terms, (*x.batch_shape, length))
    for d, before in short:
        met = lax.slice_in_dim(result, before, before + d.shape[-1], axis=-1)
        result = lax.dynamic_update_slice_in_dim(result, monoid.combine(met, d), before, -1)
    return Dense.make((jnp.expand_dims(result, axis) if keepdims else result,))


def combined(monoid: Monoid, terms: Sequence[jax.Array], shape: Shape) -> jax.Array:
    """Combine arrays that broadcast to a shape, elementwise."""
    terms = [jnp.broadcast_to(t, shape) for t in terms]
    if len(terms) > _UNROLLED_DIAGONALS:
        return monoid.reduce(jnp.stack(terms), axis=(0,), keepdims=False)
    return functools.reduce(monoid.combine, terms)


def _repeated(monoid: Monoid, background: jax.Array, counts: np.ndarray) -> jax.Array:
    """Reduce the background `counts` times in each row or column; the counts change where a diagonal begins or ends."""
    edges = [0, *(np.flatnonzero(np.diff(counts)) + 1).tolist(), len(counts)]
    parts = []
    for start, stop in itertools.pairwise(edges):
        part = monoid.repeated(background, int(counts[start]))[..., None]
        parts.append(jnp.broadcast_to(part, (*part.shape[:-1], stop - start)))
    return jnp.concatenate(parts, axis=-1)


def _missing(x: Banded, axis: int) -> jax.Array:
    """`missing` as an expression that fuses; a constant of n numbers would be part of the compiled code."""
    m, n = x.core_shape
    line = lax.iota(index_dtype(m, n), m if axis == -1 else n)
    count = jnp.full_like(line, n if axis == -1 else m)
    for d, k in zip(x.diagonals, x.offsets, strict=True):
        before = max(0, -k if axis == -1 else k)
        count -= ((line >= before) & (line < before + d.shape[-1])).astype(line.dtype)
    return count


# ---- differences -------------------------------------------------------------------------------------------------


@diff.kernel(Banded, when=along_core_axis)
def _diff_banded(x: Banded, *, axis: int, n: int) -> Banded:
    columns = axis == x.ndim - 1
    shape: Shape = x.core_shape if columns else x.core_shape[::-1]
    diagonals = {k if columns else -k: d for d, k in zip(x.diagonals, x.offsets, strict=True)}
    background = x.background
    for _ in range(min(n, shape[1])):
        diagonals, shape = _column_differences(diagonals, shape, background)
        background = None if background is None else background - background
    if not columns:
        diagonals, shape = {-k: d for k, d in diagonals.items()}, shape[::-1]
    offsets = tuple(sorted(diagonals))
    return bands([diagonals[k] for k in offsets], offsets, shape, background, dtype=x.dtype, batch=x.batch_shape)


def _column_differences(
    diagonals: dict[int, jax.Array], shape: Shape, background: jax.Array | None
) -> tuple[dict[int, jax.Array], Shape]:
    """Return ``A[:, 1:] - A[:, :-1]``. Diagonal k of ``A[:, 1:]`` is the diagonal k + 1 of A, without column 0."""
    shape = (shape[0], shape[1] - 1)
    unstored: Any = 0 if background is None else background[..., None]

    def part(k: int, source: int, length: int) -> Any:
        d = diagonals.get(source)
        if d is None:
            return unstored
        skipped = max(0, -k) - max(0, -source)  # rows of the source diagonal above the first row of the result
        return lax.slice_in_dim(d, skipped, skipped + length, axis=-1)

    result: dict[int, jax.Array] = {}
    for k in sorted({stored - shift for stored in diagonals for shift in (0, 1)}):
        length = band_numerics.diagonal_length(shape, k)
        if length > 0:
            result[k] = part(k, k + 1, length) - part(k, k, length)
    return result, shape
