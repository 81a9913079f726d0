"""Reductions and differences of `Banded` arrays, and so of `Diagonal` and `Identity`, by their diagonals.

A row (or column) meets each diagonal at most once, so its reduction is an elementwise expression of the diagonals,
aligned by padding with the identity element; what is not stored is the background, as often as `missing` says. The
shapes and offsets are static, so these counts are, too: where everything is stored, the background takes no part.
"""

import functools
import itertools

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..core.dense import Dense
from ..core.reductions import reduce_core, squared_deviations, squared_magnitude
from ..functions.utility import diff
from ..kernels import bands as kernel
from .banded import Banded, bands, missing

# A fused expression of more operands compiles slowly; more diagonals are stacked and reduced.
_UNROLLED_DIAGONALS = 48


@reduce_core.kernel(Banded)
def _(x, *, monoid, axes, keepdims):
    background = None if x.background is None else x.background[..., None]
    return _reduce(x, monoid, x.diagonals, background, axes, keepdims)


@squared_deviations.kernel(Banded)
def _(x, *, mean, monoid, axes, keepdims):
    mean = mean.data
    diagonals = [
        squared_magnitude(d - kernel.at_diagonal(mean, k, x.core_shape))
        for d, k in zip(x.diagonals, x.offsets, strict=True)
    ]
    background = jnp.zeros((), x.dtype) if x.background is None else x.background[..., None, None]
    # One value for each line that is left: the mean is constant along the axes that are reduced.
    lines = jnp.squeeze(squared_magnitude(background - mean), axes[0] if len(axes) == 1 else -1)
    return _reduce(x, monoid, diagonals, lines, axes, keepdims)


def _reduce(x, monoid, diagonals, background, axes, keepdims):
    """Entries at the pattern of `x`, and a background for each line (``(..., lines)`` or ``(..., 1)``, None is the
    structural zero), reduced."""
    stored = [(d, k) for d, k in zip(diagonals, x.offsets, strict=True) if d.shape[-1] > 0]
    dtype = diagonals[0].dtype if diagonals else x.dtype if background is None else background.dtype
    zero = background is None
    if zero and not monoid.zero_is_identity(dtype):
        background = jnp.zeros((1,), dtype)
    if len(axes) == 2:
        result = _everything(monoid, [d for d, _ in stored], background, zero, int(missing(x, -1).sum()), dtype)
        result = jnp.broadcast_to(result, x.batch_shape)
        return Dense._make((result[..., None, None] if keepdims else result,))
    (axis,) = axes
    if axis == -2:
        stored = [(d, -k) for d, k in stored]
    counts = missing(x, axis)
    result = _lines(monoid, stored, background, counts, dtype)
    result = jnp.broadcast_to(result, (*x.batch_shape, len(counts)))
    return Dense._make((jnp.expand_dims(result, axis) if keepdims else result,))


def _everything(monoid, diagonals, background, zero, count, dtype):
    """All entries of a matrix."""
    terms = []
    if background is not None and count > 0:
        if zero:
            # A zero is as good as many, here. It meets every entry, lest their product overflows before it does.
            diagonals = [monoid.combine(jnp.broadcast_to(background, d.shape), d) for d in diagonals]
        terms = [monoid.repeat(background[..., 0], count)]
    terms += [monoid.reduce(d, axis=(d.ndim - 1,), keepdims=False) for d in diagonals]
    return functools.reduce(lambda a, b: monoid.combine(*jnp.broadcast_arrays(a, b)), terms) if terms else (
        jnp.asarray(monoid.identity(dtype))
    )  # fmt: skip


def _lines(monoid, stored, background, counts, dtype):
    """The rows of a matrix with the diagonals `stored`; row i has ``counts[i]`` entries that are not stored."""
    terms = [] if background is None or not counts.any() else [_repeated_lines(monoid, background, counts)]
    for d, k in stored:
        before = max(0, -k)
        widths = [(0, 0, 0)] * (d.ndim - 1) + [(before, len(counts) - before - d.shape[-1], 0)]
        terms.append(lax.pad(d, monoid.identity(dtype), widths))
    if not terms:
        return jnp.full(len(counts), monoid.identity(dtype))
    terms = jnp.broadcast_arrays(*terms)
    if len(terms) > _UNROLLED_DIAGONALS:
        return monoid.reduce(jnp.stack(terms), axis=(0,), keepdims=False)
    return functools.reduce(monoid.combine, terms)  # the background first: see `_everything`


def _repeated_lines(monoid, background, counts):
    """The part of the background in each row. The counts change only where a diagonal begins or ends."""
    edges = [0, *(np.flatnonzero(np.diff(counts)) + 1).tolist(), len(counts)]
    parts = []
    for start, stop in itertools.pairwise(edges):
        rows = background if background.shape[-1] == 1 else lax.slice_in_dim(background, start, stop, axis=-1)
        part = monoid.repeated(rows, int(counts[start]))
        parts.append(jnp.broadcast_to(part, (*part.shape[:-1], stop - start)))
    return jnp.concatenate(parts, axis=-1)


# ---- differences -------------------------------------------------------------------------------------------------


@diff.kernel(Banded, when=lambda x, *, axis, n: axis >= x.ndim - 2)
def _(x, *, axis, n):
    columns = axis == x.ndim - 1
    shape = x.core_shape if columns else x.core_shape[::-1]
    diagonals = {k if columns else -k: d for d, k in zip(x.diagonals, x.offsets, strict=True)}
    background = x.background
    for _ in range(min(n, shape[1])):
        diagonals, shape = _column_differences(diagonals, shape, background)
        background = None if background is None else background - background
    if not columns:
        diagonals, shape = {-k: d for k, d in diagonals.items()}, shape[::-1]
    offsets = tuple(sorted(diagonals))
    return bands([diagonals[k] for k in offsets], offsets, shape, background, dtype=x.dtype, batch=x.batch_shape)


def _column_differences(diagonals, shape, background):
    """``A[:, 1:] - A[:, :-1]``: the diagonal k of the first is the diagonal k + 1 of A, but for a column."""
    shape = (shape[0], shape[1] - 1)
    unstored = 0 if background is None else background[..., None]

    def part(k, source, length):
        d = diagonals.get(source)
        if d is None:
            return unstored
        skipped = max(0, -k) - max(0, -source)  # rows of the source's diagonal above the first of the result's
        return lax.slice_in_dim(d, skipped, skipped + length, axis=-1)

    result = {}
    for k in sorted({s for k in diagonals for s in (k, k - 1)}):
        length = kernel.diagonal_length(shape, k)
        if length > 0:
            result[k] = part(k, k + 1, length) - part(k, k, length)
    return result, shape
