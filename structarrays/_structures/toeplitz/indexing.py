"""Parts of Toeplitz, Circulant and Hankel matrices: transposes, diagonals, triangles, slices, flips, shifts, writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import SMALL, allow_dense
from ..._core.families.conditions import has_core
from ..._functions.creation import tril, triu
from ..._functions.index_writes import write_entries, written_entries
from ..._functions.indexing import index
from ..._functions.linalg import diagonal, matrix_transpose
from ..._functions.manipulation import flip, roll
from ..._numerics import toeplitz_entries
from ..._numerics.bands import diagonal_length
from ..fill.array import Fill
from .array import Toeplitz, between, toeplitz
from .circulant import Circulant
from .hankel import Hankel

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax

    from ..._core.array.keys import Item
    from ..._core.typing import Result

    Key: TypeAlias = tuple[tuple[Any, ...], tuple[Any, ...]]

# ---- the transpose, diagonals, triangles --------------------------------------------------------------------------


@matrix_transpose.kernel(Toeplitz)
def _matrix_transpose_toeplitz(x: Toeplitz) -> Toeplitz:
    return Toeplitz.make((x.values[..., ::-1],), (-x.last, -x.first, x.core_shape[::-1]))


@matrix_transpose.kernel(Circulant)
def _matrix_transpose_circulant(x: Circulant) -> Circulant:
    return Circulant.make((jnp.concatenate([x.c[..., :1], x.c[..., :0:-1]], axis=-1),))


@matrix_transpose.kernel(Hankel)
def _matrix_transpose_hankel(x: Hankel) -> Hankel:
    return Hankel.make((x.values,), x.core_shape[::-1])


@diagonal.kernel(Toeplitz)
def _diagonal_toeplitz(x: Toeplitz, *, offset: int) -> Fill:
    return Fill.make((x.diagonal_value(offset),), (diagonal_length(x.core_shape, offset),))


@diagonal.kernel(Hankel)
def _diagonal_hankel(x: Hankel, *, offset: int) -> Dense:
    length = diagonal_length(x.core_shape, offset)
    return Dense.make((x.values[..., abs(offset) :: 2][..., :length],))


@tril.kernel(Toeplitz)
def _tril_toeplitz(x: Toeplitz, *, k: int) -> Toeplitz:
    return x if x.last <= k else between(x, x.first, k)


@triu.kernel(Toeplitz)
def _triu_toeplitz(x: Toeplitz, *, k: int) -> Toeplitz:
    return x if x.first >= k else between(x, k, x.last)


# ---- slices -------------------------------------------------------------------------------------------------------


def _slices(x: Array, *, operands: tuple[jax.Array, ...], key: Key) -> bool:
    return tuple(k[0] for k in key) == ("slice", "slice")


def _steps(key: Key) -> tuple[int, int]:
    """Return the steps of two slices. A slice with at most one element takes the step of the other slice."""
    (_, _, m, row_step), (_, _, n, column_step) = key
    if m <= 1:
        row_step = column_step
    elif n <= 1:
        column_step = row_step
    return row_step, column_step


def _parallel(x: Array, *, operands: tuple[jax.Array, ...], key: Key) -> bool:
    return _slices(x, operands=operands, key=key) and _steps(key)[0] == _steps(key)[1]


def _crossed(x: Toeplitz | Hankel, *, operands: tuple[jax.Array, ...], key: Key) -> bool:
    """Return whether the slices have opposite steps of one size, so that diagonals become antidiagonals."""
    return _slices(x, operands=operands, key=key) and _steps(key)[0] == -_steps(key)[1] and x.covers


def _begins(key: Key) -> tuple[int, int, tuple[int, int]]:
    return key[0][1], key[1][1], (key[0][2], key[1][2])


@index.kernel(Toeplitz, when=_parallel)
def _index_toeplitz_if_parallel(x: Toeplitz, *, operands: tuple[jax.Array, ...], key: Key) -> Toeplitz:
    """Take the rows ``a + s i`` and columns ``b + s j``: the diagonal k has the offset ``b - a + s k``."""
    (a, b, shape), step = _begins(key), _steps(key)[0]
    # The stored k satisfy first <= b - a + step k <= last.
    begin, end = (x.first, x.last) if step > 0 else (x.last, x.first)
    low, high = -((b - a - begin) // step), (end - (b - a)) // step
    if high < low:
        return toeplitz(x.values[..., :0], 0, shape)
    return toeplitz(_strided(x.values, b - a + step * low - x.first, high - low + 1, step), low, shape)


@index.kernel(Toeplitz, when=_crossed)
def _index_toeplitz_if_crossed(x: Toeplitz, *, operands: tuple[jax.Array, ...], key: Key) -> Hankel:
    """Take the rows ``a + s i`` and columns ``b - s j``: the offset is ``b - a - s (i + j)``."""
    (a, b, shape), step = _begins(key), _steps(key)[0]
    return _hankel(x.values, b - a - x.first, -step, shape)


@index.kernel(Hankel, when=_parallel)
def _index_hankel_if_parallel(x: Hankel, *, operands: tuple[jax.Array, ...], key: Key) -> Hankel:
    (a, b, shape), step = _begins(key), _steps(key)[0]
    return _hankel(x.values, a + b, step, shape)


@index.kernel(Hankel, when=_crossed)
def _index_hankel_if_crossed(x: Hankel, *, operands: tuple[jax.Array, ...], key: Key) -> Toeplitz:
    """Take the rows ``a + s i`` and columns ``b - s j``: the antidiagonal is ``a + b - s (j - i)``."""
    (a, b, shape), step = _begins(key), _steps(key)[0]
    low, high = toeplitz_entries.full_range(shape)
    return toeplitz(_strided(x.values, a + b - step * low, high - low + 1, -step), low, shape)


def _hankel(values: jax.Array, start: int, step: int, shape: tuple[int, int]) -> Hankel:
    count = sum(shape) - 1 if 0 not in shape else 0
    return Hankel.make((_strided(values, start, count, step),), tuple(shape))


def _strided(values: jax.Array, start: int, count: int, step: int) -> jax.Array:
    """Return ``values[start], values[start + step], …``: `count` elements."""
    if count == 0:
        return values[..., :0]
    stop = start + step * count
    return values[..., start : stop if stop >= 0 else None : step]


# ---- flips and shifts ---------------------------------------------------------------------------------------------


def _flipped(x: Toeplitz | Hankel, axis: tuple[int, ...]) -> Array:
    """Flip the matrices along core axes, which is a slice, and the batch along the other axes."""
    batch = tuple(a for a in axis if a < x.ndim - 2)
    key = tuple(
        ("slice", n - 1, n, -1) if a in axis and n > 0 else ("slice", 0, n, 1)
        for a, n in zip((x.ndim - 2, x.ndim - 1), x.core_shape, strict=True)
    )
    result: Array = index.dispatch(x, operands=(), key=key)
    return result.map_parameters(lambda leaf: jnp.flip(leaf, batch))


@flip.kernel(Toeplitz, when=lambda x, *, axis: has_core(x, axis=axis) and (x.covers or _flips_both(x, axis)))
def _flip_toeplitz(x: Toeplitz, *, axis: tuple[int, ...]) -> Array:
    return _flipped(x, axis)


@flip.kernel(Hankel, when=has_core)
def _flip_hankel(x: Hankel, *, axis: tuple[int, ...]) -> Array:
    return _flipped(x, axis)


def _flips_both(x: Array, axis: tuple[int, ...]) -> bool:
    return {x.ndim - 2, x.ndim - 1} <= set(axis)


@flip.kernel(Circulant, when=lambda x, *, axis: _flips_both(x, axis))
def _flip_circulant(x: Circulant, *, axis: tuple[int, ...]) -> Result:
    batch = tuple(a for a in axis if a < x.ndim - 2)
    return matrix_transpose.dispatch(x).map_parameters(lambda leaf: jnp.flip(leaf, batch))


@roll.kernel(Circulant, when=has_core)
def _roll_circulant(x: Circulant, *, shift: tuple[int, ...], axis: tuple[int, ...]) -> Circulant:
    """Roll rows or columns: the first column is rolled down or up."""
    c = x.c
    for places, a in zip(shift, axis, strict=True):
        columns = a == x.ndim - 1
        c = jnp.roll(c, -places if columns else places, axis=min(a, x.ndim - 2))
    return Circulant.make((c,))


# ---- writes -------------------------------------------------------------------------------------------------------


@write_entries.kernel(Toeplitz, when=lambda x: not x.covers)
def _write_entries_toeplitz(x: Toeplitz, items: Sequence[Item], value: Array, owned: bool) -> Array | None:
    """Write entries. A single entry makes the diagonals vary.

    The result is `Banded` for a banded array, and `Triangular` for many diagonals on one side.
    """
    free = x.freed()
    if free.full_size and max(x.core_shape) > SMALL:
        allow_dense(x, "__setitem__", x.size, limit=False)
    return written_entries(free, items, value, False)
