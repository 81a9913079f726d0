"""Principal parts of symmetric matrices, and writes of symmetric values, which keep the structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._core.array import keys as indexing
from ..._functions.index_writes import write_entries, written
from ..._functions.indexing import index
from ..triangular.indexing import is_principal, places
from .array import Mirrored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core.array.base import Array


def _is_square(x: Mirrored, *, operands: tuple[Any, ...], key: tuple[tuple[Any, ...], ...]) -> bool:
    return is_principal(x, operands=operands, key=key) and key[0] == key[1]


@index.kernel(Mirrored, when=_is_square)
def _index_mirrored(x: Mirrored, *, operands: tuple[Any, ...], key: tuple[tuple[Any, ...], ...]) -> Mirrored:
    """Take a principal part; with a negative step the lower triangle becomes the upper one."""
    data = x.data[(..., *(indexing.as_slice(*k[1:]) for k in key))]
    return type(x).make((data,), x.lower == (key[0][3] > 0))


@write_entries.kernel(Mirrored)
def _write_entries_mirrored(x: Mirrored, items: Sequence[indexing.Item], value: Array, owned: bool) -> Mirrored | None:
    """Write elements of the diagonal, or a block around it whose new value is symmetric."""
    where = places(items, len(x.batch_shape))
    if where is None or where[0].size == 0 or x._is_complex:
        return None  # in a Hermitian array the value would have to be real
    i, j = where
    on_diagonal = i.shape == j.shape and bool((i == j).all())
    core = items[len(x.batch_shape) :]
    block = core[0].kind == core[1].kind == "slice" and core[0] == core[1]
    symmetric = value.ndim == 0 or type(value) is type(x)
    if not (on_diagonal or (block and symmetric)):
        return None
    return type(x).make((written(x.data, items, value.to_jax(), owned),), x.lower)
