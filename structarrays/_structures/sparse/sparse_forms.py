"""The sparse form of structures that store few entries, for sums and products of two such structures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..._core.families.join import join_pair
from ..blocks.array import Blocks, Run
from ..toeplitz.array import Toeplitz, at_diagonals
from .sparse_joins import have_sparse_forms, join_sparse, sparse_form, sparse_of_runs, stored_runs, to_sparse

if TYPE_CHECKING:
    import jax

    from ..._core.array.base import Array
    from .array import Sparse


def _stores_few(x: Array) -> bool:
    """Return whether the sparse form is no larger than the dense one: an entry takes a number and two coordinates."""
    batch = math.prod(x.batch_shape)
    return 2 * sum(e.size for e in x.entries) <= x.size or not batch


@stored_runs.kernel(Blocks)
def _stored_runs_blocks(x: Blocks) -> tuple[tuple[Run, ...], tuple[jax.Array, ...]]:
    return x.runs, x.blocks


sparse_form.kernel(Blocks, when=_stores_few)(sparse_of_runs)


def _is_narrow(x: Toeplitz) -> bool:
    return not x.covers and 2 * x.values.shape[-1] <= max(x.core_shape)


@sparse_form.kernel(Toeplitz, when=_is_narrow)
def _sparse_form_toeplitz(x: Toeplitz) -> Sparse:
    # Do not use `freed`: a wide matrix with all diagonals below the main one would become triangular, which is large.
    return to_sparse(at_diagonals(x, x.offsets))


join_pair.kernel(Blocks, Toeplitz, when=have_sparse_forms)(join_sparse)
