"""The sparse form of structures that store few entries, for sums and products of two such structures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.families.join import join_pair
from ..blocks.array import Blocks
from ..toeplitz.array import Toeplitz, at_diagonals
from .array import Sparse
from .sorted_entries import index_dtype
from .sparse_joins import have_sparse_forms, join_sparse, sparse_form, sparse_matrix, to_sparse

if TYPE_CHECKING:
    from ..._core.array.base import Array


def _stores_few(x: Array) -> bool:
    """Return whether the sparse form is no larger than the dense one: an entry takes a number and two coordinates."""
    batch = math.prod(x.batch_shape)
    return 2 * sum(e.size for e in x.entries) <= x.size or not batch


@sparse_form.kernel(Blocks, when=_stores_few)
def _sparse_form_blocks(x: Blocks) -> Sparse:
    dtype = index_dtype(x.core_shape)
    rows, columns, data = [], [], []
    for entry, (i, j) in zip(x.entries, x.positions(), strict=True):
        core = jnp.broadcast_shapes(i.shape, j.shape)
        rows.append(jnp.broadcast_to(i, core).ravel().astype(dtype))
        columns.append(jnp.broadcast_to(j, core).ravel().astype(dtype))
        data.append(entry.reshape((*x.batch_shape, math.prod(core))))
    return sparse_matrix(x, data, rows, columns)


def _is_narrow(x: Toeplitz) -> bool:
    return not x.covers and 2 * x.values.shape[-1] <= max(x.core_shape)


@sparse_form.kernel(Toeplitz, when=_is_narrow)
def _sparse_form_toeplitz(x: Toeplitz) -> Sparse:
    # Do not use `freed`: a wide matrix with all diagonals below the main one would become triangular, which is large.
    return to_sparse(at_diagonals(x, x.offsets))


join_pair.kernel(Blocks, Toeplitz, when=have_sparse_forms)(join_sparse)
