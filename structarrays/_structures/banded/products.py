"""Products, transposes and parts of banded matrices; kernels for `Diagonal` and `Identity` are special cases."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import densify
from ..._core.families.conditions import has_structural_zeros, is_square_pattern
from ..._core.families.join import is_zero_outside
from ..._functions.creation import tril, triu
from ..._functions.elementwise import multiply
from ..._functions.linalg import diagonal, matmul, matrix_power, matrix_transpose
from ..._numerics import bands as band_numerics
from ..._numerics.toeplitz_entries import windows
from .array import Banded, at_offsets, bands
from .band_products import band_matmul
from .diagonal import Diagonal, Identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core.typing import Result, Shape
    from ..symmetric.array import Mirrored
    from ..triangular.array import Triangular


# ---- matrix products ----------------------------------------------------------------------------------------------


@matmul.kernel(Banded, Dense)
def _matmul_banded_dense(x1: Banded, x2: Dense) -> Dense:
    *batch, m, n = x1.shape
    data, has_background = x2.data, x1.background is not None
    if has_background:
        x1 = _contiguous(x1)
    times = band_numerics.matvec if data.ndim == 1 else band_numerics.matmul_dense
    product = times(x1.diagonals, x1.offsets, (m, n), data, x1.pieces > 1)
    if has_background:
        product = product + _background_product(x1, data, -min(data.ndim, 2))
    shape = (*jnp.broadcast_shapes(tuple(batch), data.shape[:-2]), m, *(data.shape[-1:] if data.ndim > 1 else ()))
    return Dense.make((jnp.broadcast_to(product, shape),))


@matmul.kernel(Dense, Banded)
def _matmul_dense_banded(x1: Dense, x2: Banded) -> Dense:
    batch = jnp.broadcast_shapes(x1.shape[:-2], x2.batch_shape)
    if x2.background is not None:
        x2 = _contiguous(x2)
    if x1.ndim == 1:
        product = band_numerics.vecmat(x1.data, x2.diagonals, x2.offsets, x2.core_shape, x2.pieces > 1)
    else:
        product = band_numerics.dense_matmul(x1.data, x2.diagonals, x2.offsets, x2.core_shape, x2.pieces > 1)
    if x2.background is not None:
        transposed = matrix_transpose.dispatch(x2)
        if x1.ndim > 1:  # the rows of x1 become a batch dimension
            transposed = transposed.map_parameters(lambda leaf: jnp.expand_dims(leaf, len(x2.batch_shape)))
        product = product + _background_product(transposed, x1.data, -1)
    return Dense.make((jnp.broadcast_to(product, (*batch, *x1.shape[-2:-1], x2.shape[-1])),))


_SHORT_GAP = 32
"""The largest difference of two neighbouring offsets for which the diagonals between them are filled in."""


def _contiguous(x: Banded) -> Banded:
    """Return the array with short gaps between stored diagonals filled by the background."""
    filled = [
        k for low, high in itertools.pairwise(x.offsets) if high - low <= _SHORT_GAP for k in range(low + 1, high)
    ]
    return at_offsets(x, tuple(sorted({*x.offsets, *filled})))


def _background_product(x: Banded, data: jax.Array, axis: int) -> jax.Array:
    """Return the contribution of the background to ``x @ data``: entries left and right of the band, and in its gaps.

    The contributions are running sums from either side, and sums over windows. The rank-one term ``b * sum(data)``
    minus the part inside the band would lose digits, and subtracting sums would spread NaN and infinities.
    """
    m, n = x.core_shape
    stored: Any = x.background  # there is one
    background = stored.reshape(stored.shape + (1,) * -axis)
    terms = background * data
    if not x.offsets:
        total = jnp.sum(terms, axis=axis, keepdims=True, dtype=terms.dtype)
        return jnp.broadcast_to(total, _resized(total.shape, axis, m))
    # Row i stores the columns i + first, ..., i + last.
    first, last = x.offsets[0], x.offsets[-1]
    zero = jnp.zeros(_resized(terms.shape, axis, 1), terms.dtype)
    before = jnp.concatenate([zero, jnp.cumsum(terms, axis, terms.dtype)], axis)
    after = jnp.flip(jnp.concatenate([zero, jnp.cumsum(jnp.flip(terms, axis), axis, terms.dtype)], axis), axis)
    product = _window(before, first, m, axis) + _window(after, last + 1, m, axis)
    for low, high in itertools.pairwise(x.offsets):
        if high - low > 1:
            product = product + _gap(terms, low + 1, high, m, axis)
    return product


def _gap(terms: jax.Array, first: int, end: int, count: int, axis: int) -> jax.Array:
    """Return the sum of the terms ``i + first, …, i + end - 1`` for each row i; terms outside the array are zero."""
    size = terms.shape[axis]
    start, stop = first, first + count - 1 + end - first  # the range of the terms of all rows
    inside = jax.lax.slice_in_dim(terms, min(max(start, 0), size), min(max(stop, 0), size), axis=axis)
    before = max(0, min(stop, 0) - start)
    padded = band_numerics.pad_axis(inside, before, stop - start - before - inside.shape[axis], axis)
    (sums,) = windows((jnp.moveaxis(padded, axis, -1),), end - first, lambda a, b, *_: (a[0] + b[0],))
    return jnp.moveaxis(sums, -1, axis)


def _window(sums: jax.Array, start: int, count: int, axis: int) -> jax.Array:
    """Return the entries ``start, start + 1, …``; indices outside the array are clipped."""
    size = sums.shape[axis]
    low, high = min(max(-start, 0), count), min(max(start + count - size, 0), count)
    # Slices instead of gathers: XLA computes wrong derivatives of gathers on a mesh that does not divide the length.
    middle = jax.lax.slice_in_dim(sums, start + low, max(start + low, start + count - high), axis=axis)
    ends = [jax.lax.slice_in_dim(sums, at, at + 1, axis=axis) for at in (0, size - 1)]
    first, last = (jnp.broadcast_to(e, _resized(e.shape, axis, k)) for e, k in zip(ends, (low, high)))
    return jnp.concatenate([first, middle, last], axis)


def _resized(shape: Shape, axis: int, size: int) -> Shape:
    sizes = list(shape)
    sizes[axis] = size
    return tuple(sizes)


@matmul.kernel(Banded, Banded)
def _matmul_banded_banded(x1: Banded, x2: Banded) -> Result:
    if x1.background is not None or x2.background is not None:
        return matmul.dispatch(*(x if x.background is None else densify(x, "matmul") for x in (x1, x2)))
    diagonals, offsets = band_matmul(x1.diagonals, x1.offsets, x1.core_shape, x2.diagonals, x2.offsets, x2.core_shape)
    batch = jnp.broadcast_shapes(x1.batch_shape, x2.batch_shape)
    return bands(diagonals, offsets, (x1.shape[-2], x2.shape[-1]), dtype=x1.dtype, batch=batch)


@matmul.kernel(Identity, Array, when=is_square_pattern)
def _matmul_identity(x1: Identity, x2: Array) -> Array:
    return scaled(x2, x1.scale, vector=x2.ndim == 1)


@matmul.kernel(Array, Identity, when=lambda x1, x2: is_square_pattern(x2))
def _matmul_array_identity(x1: Array, x2: Identity) -> Array:
    return scaled(x1, x2.scale, vector=x1.ndim == 1)


def scales_pattern(diagonal: Diagonal, x: Array) -> bool:
    """Return whether a square diagonal matrix scales rows or columns of a pattern with structural zeros."""
    return is_square_pattern(diagonal) and is_zero_outside(x) and x.core_ndim == 2


@matmul.kernel(Diagonal, Array, when=scales_pattern)
def _matmul_diagonal(x1: Diagonal, x2: Array) -> Array:
    """Scale the rows, which keeps every pattern."""
    return multiply(Dense.make((x1.diag[..., :, None],)), x2)


@matmul.kernel(Array, Diagonal, when=lambda x1, x2: scales_pattern(x2, x1))
def _matmul_array_diagonal(x1: Array, x2: Diagonal) -> Array:
    return multiply(x1, Dense.make((x2.diag[..., None, :],)))


def _are_identities(x1: Identity, x2: Identity) -> bool:
    """Return whether the product of two identities is an identity: the inner dimension is not the smallest one."""
    plain = x1.background is None and x2.background is None
    return plain and x1.shape[-1] >= min(x1.shape[-2], x2.shape[-1])


@matmul.kernel(Identity, Identity, when=_are_identities)
def _matmul_identity_identity(x1: Identity, x2: Identity) -> Identity:
    return Identity.make((x1.scale * x2.scale, None), (x1.shape[-2], x2.shape[-1]))


def scaled(x: Array, scale: jax.Array, *, vector: bool = False) -> Array:
    """Multiply each matrix by a number, which keeps every structure."""
    scale = scale.reshape(scale.shape + (1,) * (1 if vector else 2))
    return multiply(x, Dense.make((scale,)))


# ---- the transpose, the diagonal, powers --------------------------------------------------------------------------


@matrix_transpose.kernel(Banded)
def _matrix_transpose_banded(x: Banded) -> Banded:
    diagonals, offsets = band_numerics.transpose(x.diagonals, x.offsets)
    entries = diagonals if offsets else x.entries
    return Banded.make((*entries, x.background), (offsets, x.core_shape[::-1]))


@matrix_transpose.kernel(Diagonal)
def _matrix_transpose_diagonal(x: Diagonal) -> Diagonal:
    return type(x).make((*x.entries, x.background), x.core_shape[::-1])


@diagonal.kernel(Banded)
def diagonal_of_pattern(x: Banded | Triangular | Mirrored, *, offset: int) -> Dense:
    """Return the diagonal by the method of the class."""
    return Dense.make((x.diagonal(offset),))


@matrix_power.kernel(Diagonal, when=lambda x, *, n: n > 0 and has_structural_zeros(x))
def _matrix_power_diagonal(x: Diagonal, *, n: int) -> Diagonal:
    return x.rebuild(tuple(e**n for e in x.entries), None)


# ---- triangles ------------------------------------------------------------------------------------------------------


@tril.kernel(Banded, when=has_structural_zeros)
def _tril_banded(x: Banded, *, k: int) -> Array:
    return _keep(x, [offset for offset in x.offsets if offset <= k])


@triu.kernel(Banded, when=has_structural_zeros)
def _triu_banded(x: Banded, *, k: int) -> Array:
    return _keep(x, [offset for offset in x.offsets if offset >= k])


def _keep(x: Banded, offsets: Sequence[int]) -> Array:
    """Return the diagonals with these offsets; the array itself, if these are all its diagonals."""
    if len(offsets) == len(x.offsets):
        return x.assuming(frozenset())
    kept = [x.diagonal(k) for k in offsets]
    return bands(kept, offsets, x.core_shape, dtype=x.dtype, batch=x.batch_shape)
