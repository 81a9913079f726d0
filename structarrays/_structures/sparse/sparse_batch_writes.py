"""Writes into some arrays of a batch of sparse ones: these are written by themselves, and then put into their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array import keys as indexing
from ..._functions.indexing import moves_axes, write_entries, written_entries
from .array import Sparse
from .sparse_elementwise import _as_sparse
from .sparse_joins import has_sparse_form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core.array.base import Array


@write_entries.kernel(Sparse, when=lambda x: x.batch_shape != ())
def _write_entries_batch_of_sparse(
    x: Sparse, items: Sequence[indexing.Item], value: Array, owned: bool
) -> Array | None:
    batch, core = items[: len(x.batch_shape)], items[len(x.batch_shape) :]
    whole = all(indexing.is_full(item, n) for item, n in zip(batch, x.batch_shape, strict=True))
    if whole or not indexing.is_basic(batch) or moves_axes(items):
        return None
    key = indexing.as_key(batch)
    part = x.map_parameters(lambda leaf: leaf[key])
    if all(indexing.is_full(item, n) for item, n in zip(core, x.core_shape, strict=True)) and _replaces(value, part):
        own = len(value.batch_shape)
        target = part.batch_shape
        written: Array | None = _as_sparse(value).map_parameters(
            lambda leaf: jnp.broadcast_to(leaf, target + leaf.shape[own:])
        )
    else:
        kept = [indexing.Item("slice", 0, n) for n in part.batch_shape]
        written = written_entries(part, [*kept, *core], value, False)
    if type(written) is not Sparse:
        return None
    total = max(x.nnz, written.nnz)
    x, part = x._padded_to(total), written._in_order(x.order)._padded_to(total)
    leaves = (
        None if old is None else old.at[key].set(new) for old, new in zip(x._value[0], part._value[0], strict=True)
    )
    return Sparse.make(tuple(leaves), (x.core_shape, x.order, x.padded or part.padded)).trimmed()


def _replaces(value: Array, part: Sparse) -> bool:
    """Whether a value can stand in the place of whole arrays."""
    fits = value.core_ndim == part.core_ndim and value.shape[len(value.batch_shape) :] == part.core_shape
    return fits and value.background is None and part.background is None and has_sparse_form(value)
