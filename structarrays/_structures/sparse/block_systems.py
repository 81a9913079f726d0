"""The sparse form of block matrices whose blocks store few entries, such as optimality conditions.

Block elimination fills the other blocks, unless the pivots have sparse inverses. A direct sparse solver chooses its own order.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.dispatch.contexts import host_calls_policy
from ..._core.dispatch.recording import remark
from ..._core.errors import DensifyError
from ..._core.families.other_forms import by_form
from ..._functions.linalg import det, inv, slogdet, solve
from ..._numerics.symbolic import is_symbolic
from ..composite.block import Block, starts
from ..composite.block_solvers import steps_of_elimination
from ..composite.entry_forms import entry_form, entry_form_of, few, forms_of, of_shapes, shapes_of_form
from . import numerics
from .array import Sparse
from .solvers import is_large, is_worth_solving
from .sorted_entries import index_dtype
from .sparse_joins import has_sparse_form, sparse_at, stored_runs, to_sparse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..._core.array.base import Array
    from ..._core.typing import Shape
    from ..blocks.array import Run

Corner = tuple[int, int]
"""The row and the column where a block begins."""


@entry_form.kernel(Block)
def _entry_form_block(x: Block) -> Array | None:
    forms = forms_of(x.parts)
    if forms is None or not all(map(has_sparse_form, forms)):
        return None
    return few(_joined(forms, list(_corners(x)), x.shape[-2:]))


def _corners(x: Block) -> Iterator[Corner]:
    for row in starts(x.heights):
        for column in starts(x.widths):
            yield row, column


def _joined(forms: Sequence[Array], corners: Sequence[Corner], shape: Shape) -> Sparse:
    """Return the matrix with these blocks, which have sparse forms."""
    if all(stored_runs.choose((form,), {}) is not None for form in forms):
        runs: list[Run] = []
        blocks: list[jax.Array] = []
        for form, (row, column) in zip(forms, corners, strict=True):
            own, entries = stored_runs.required((form,)).run(form)
            runs += [run._replace(row=run.row + row, column=run.column + column) for run in own]
            blocks += entries
        if runs:
            return sparse_at(runs, blocks, shape)
    moved = [_moved(to_sparse(form), corner, shape) for form, corner in zip(forms, corners, strict=True)]
    data, rows, columns = (jnp.concatenate(parts, axis=-1) for parts in zip(*moved, strict=True))
    leaves = numerics.over_batch(functools.partial(numerics.sort_by, (0, 1)), data.ndim - 1)(data, rows, columns)
    return Sparse.make((*leaves, None), (shape, (0, 1), True))


def _moved(x: Sparse, corner: Corner, shape: Shape) -> tuple[jax.Array, ...]:
    """Return the entries of a block with their coordinates in the whole matrix; padding remains padding."""
    stored = x.coords[0] < x.core_shape[0]
    coordinates = (
        jnp.where(stored, c.astype(index_dtype(shape)) + start, n)
        for c, start, n in zip(x.coords, corner, shape, strict=True)
    )
    return x.data, *coordinates


def _is_solved_as_sparse(x: Block, *args: Any) -> bool:
    """Return whether the sparse form is solved: if a block is sparse, or if elimination would fill a large block."""
    if any(map(is_symbolic, x.shape)):
        return False
    form: Any = shapes_of_form(x)
    if form is None or not is_worth_solving(x.shape[-1], form.nnz, x.dtype):
        return False
    return any(type(b) is Sparse for b in x.parts) or (host_calls_policy.value and _fills(x, form.nnz))


def _fills(x: Block, entries: int) -> bool:
    """Return whether block elimination ends with a dense block of more elements than the matrix has entries."""
    if x.heights != x.widths:
        return True

    def largest(x: Block) -> int:
        return max((s.pivot.shape[-1] for s in steps_of_elimination(x) if type(s.pivot) is Dense), default=0)

    try:
        size = of_shapes(largest, x)
    except DensifyError:
        return True
    return is_large(size) and size**2 > entries


_BY_ELIMINATION = (
    "solve_block_if_is_conformal",
    "small_block_by_dense_form",
    "checked_inverse",
    "slogdet_block",
    "det_block",
)


@by_form(solve, inv, slogdet, det, of=Block, when=_is_solved_as_sparse, before=_BY_ELIMINATION)
def block_by_sparse_form(x: Block) -> Array:
    """Return the sparse form of a matrix of blocks with few entries."""
    remark("the sparse form of the blocks: one is sparse, or block elimination would fill one")
    form = entry_form_of(x)
    assert form is not None  # see the condition
    return form.assuming(x.assumptions)
