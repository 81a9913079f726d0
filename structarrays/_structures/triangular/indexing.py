"""Principal parts of triangular matrices, and writes into the triangle, which keep the structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from ..._core.array import keys as indexing
from ..._functions.index_writes import write_entries, written
from ..._functions.indexing import index
from ..._numerics import packed_triangles as triangles
from .array import Triangular

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core.array.base import Array


def is_principal(x: Array, *, operands: tuple[Any, ...], key: tuple[tuple[Any, ...], ...]) -> bool:
    """Return whether a key consists of two slices with equal start and step."""
    return tuple(k[0] for k in key) == ("slice", "slice") and key[0][1] == key[1][1] and key[0][3] == key[1][3]


@index.kernel(Triangular, when=is_principal)
def _index_triangular(x: Triangular, *, operands: tuple[Any, ...], key: tuple[tuple[Any, ...], ...]) -> Triangular:
    """Take a principal part; with a negative step the lower triangle becomes the upper one."""
    data = x.data[(..., *(indexing.as_slice(*k[1:]) for k in key))]
    return Triangular.make((data, x.background), (x.lower == (key[0][3] > 0), x.unit_diagonal))


def places(items: Sequence[indexing.Item], batch_ndim: int) -> tuple[np.ndarray, ...] | None:
    """Return the rows and columns that the key of a write selects, as broadcastable arrays; None if traced."""
    core = items[batch_ndim:]
    if any(item.kind == "array" and not isinstance(item.array, np.ndarray) for item in core):
        return None
    rows, columns = (_numbers(item) for item in core)
    if core[0].kind == "array" and core[1].kind == "array":
        return np.broadcast_arrays(rows, columns)
    return rows.reshape(-1, 1), columns.reshape(1, -1)


def _numbers(item: indexing.Item) -> np.ndarray:
    if item.kind == "slice":
        return item.start + item.step * np.arange(item.size)
    return np.asarray(item.start if item.kind == "int" else item.array)


@write_entries.kernel(Triangular)
def _write_entries_triangular(
    x: Triangular, items: Sequence[indexing.Item], value: Array, owned: bool
) -> Triangular | None:
    where = places(items, len(x.batch_shape))
    if where is None or where[0].size == 0:
        return None
    i, j = where
    low, high = (j, i) if x.lower else (i, j)
    if low.shape == high.shape:
        inside = bool((low <= high).all())
    else:
        inside = low.size == 0 or high.size == 0 or low.max() <= high.min()
    if not inside:
        return None
    data = x.data
    if x.unit_diagonal:
        data, owned = triangles.with_diagonal(data, 1), True
    background = x.background if owned or x.background is None else jnp.copy(x.background)  # the handle now owns it
    return Triangular.make((written(data, items, value.to_jax(), owned), background), (x.lower, False))
