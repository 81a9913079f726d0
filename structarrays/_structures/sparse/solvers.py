"""Linear systems, inverses and determinants of sparse matrices, by a direct solver on the host; see `sparse_direct`.

Small matrices, matrices with many entries, and all matrices if SciPy is not installed use their dense form.
Block-banded matrices use their sparse form if no kernel of `block_banded_solvers`, which come first, applies.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.dispatch.contexts import densify_policy, sparse_solver_policy
from ..._core.dispatch.recording import remark
from ..._core.families.other_forms import by_form
from ..._functions.linalg import det, inv, matrix_transpose, selected_inverse, slogdet, solve
from ..._functions.linalg.sparse_solvers import SUPERLU, solver_for, traced_solver
from ..._functions.linalg.systems import POSITIVE_DEFINITE
from ..blocks.block_banded import BlockBanded
from ..composite.det_by_slogdet import det_by_slogdet
from ..composite.inverse import checked_inverse
from ..composite.part_solvers import generically_regular, solved
from . import array_digests, sparse_direct, sparse_systems
from . import numerics as pattern_kernel
from .array import Sparse, is_plain_matrix
from .sparse_joins import has_sparse_form, to_sparse

if TYPE_CHECKING:
    import jax

    from ..._core.typing import Result

SOLVED_AS_DENSE = 256
"""Up to this size the dense form is faster than the first linear system with a matrix."""

FEW = 16
"""A direct solver is used if at most one in this number of elements is stored; denser factors are nearly full."""


def is_large(n: int) -> bool:
    """Return whether linear systems of n rows are solved in their structure: large ones, or if nothing may densify."""
    return n > SOLVED_AS_DENSE or (n > 0 and keeps_structure())


def keeps_structure() -> bool:
    """Return whether the policy of `densify` warns about dense forms, or forbids them."""
    return densify_policy.value.mode != "allow"


def is_worth_solving(n: int, entries: int, dtype: np.dtype) -> bool:
    """Return whether a direct sparse solver takes n × n matrices with this number of entries, and is worthwhile."""
    fits = max(n, entries) < np.iinfo(np.int32).max and str(dtype) in sparse_direct.PRECISIONS
    few = FEW * entries <= n * n or keeps_structure()
    return fits and is_large(n) and few


def is_solved_directly(x: Sparse, *args: Any) -> bool:
    """Return whether linear systems with an array are solved by the factors of a sparse matrix (static)."""
    return is_plain_matrix(x) and is_worth_solving(x.core_shape[-1], x.nnz, x.dtype)


@generically_regular.kernel(Sparse)
def _generically_regular_sparse(x: Sparse) -> bool:
    """Return whether there are at least as many entries as rows; their coordinates are not static."""
    return x.background is not None or x.nnz >= x.shape[-1]


# ---- systems --------------------------------------------------------------------------------------------------------


@solve.kernel(Sparse, Array, when=is_solved_directly)
def _solve_sparse(x1: Sparse, x2: Array) -> tuple[Array, jax.Array]:
    solver = solver_for(sparse_solver_policy.value, x1.dtype, POSITIVE_DEFINITE in x1.assumptions, x1.padded)
    name = "SuperLU" if solver == SUPERLU else f"the solver {solver!r}"
    if traced_solver(solver):
        remark(f"{name} in the compiled program; the cost follows from the fill of the factors")
    else:
        remark(f"{name} on the host, which keeps the factors of the last matrices; the cost follows from their fill")
    return solved(x1, x2, _solution)


@solve.eager_kernel(Sparse, Array, when=is_solved_directly)
def _solve_sparse_eagerly(x1: Sparse, x2: Array) -> Result:
    """Let the host recognise the arrays of the matrix; the compiled call then solves the linear system."""
    array_digests.remember(x1.data, *x1.coords)
    return NotImplemented


def _solution(x: Sparse, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    (first, second), definite = x._keys(), POSITIVE_DEFINITE in x.assumptions
    transposed = x.order == (1, 0)

    def solution(data: jax.Array, first: jax.Array, second: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        return sparse_systems.solve(data, first, second, b, transposed, definite, x.padded)

    if not x.batch_shape:  # the right-hand sides of a batch become columns
        side_by_side = jnp.moveaxis(b, -2, 0)
        result, ok = solution(x.data, first, second, side_by_side.reshape(b.shape[-2], -1))
        return jnp.moveaxis(result.reshape(side_by_side.shape), 0, -2), ok
    batch = b.shape[:-2]
    own = len(x.batch_shape)
    parts = (jnp.broadcast_to(a, batch + a.shape[own:]) for a in (x.data, first, second))
    result, ok = pattern_kernel.over_batch(solution, len(batch))(*parts, b)
    return result, jnp.all(ok)


inv.kernel(Sparse, when=is_solved_directly)(checked_inverse)


@selected_inverse.kernel(Sparse, when=is_solved_directly)
def _selected_inverse_sparse(x: Sparse) -> tuple[Array, jax.Array]:
    """Compute the inverse at the coordinates of the transpose, which the factors reach."""
    definite = POSITIVE_DEFINITE in x.assumptions

    def elements(data: jax.Array, first: jax.Array, second: jax.Array) -> tuple[jax.Array]:
        return (sparse_systems.inverse_at(data, first, second, x.core_shape[-1], definite, x.padded),)

    _, ok = checked_inverse(x)
    (data,) = x._over_batch(elements, x.data, *x._keys())
    fine = jnp.where(ok, 1, jnp.nan).astype(data.dtype)
    return matrix_transpose.dispatch(x.rebuild((data * fine,), None)), ok


# ---- determinants -----------------------------------------------------------------------------------------------------


@slogdet.kernel(Sparse, when=is_solved_directly)
def _slogdet_sparse(x: Sparse) -> tuple[Dense, ...]:
    definite = POSITIVE_DEFINITE in x.assumptions

    def logarithms(data: jax.Array, first: jax.Array, second: jax.Array) -> tuple[jax.Array, jax.Array]:
        results: tuple[jax.Array, jax.Array] = sparse_systems.slogdet(
            data, first, second, x.core_shape[-1], definite, x.padded
        )
        return results

    return tuple(Dense.make((part,)) for part in x._over_batch(logarithms, x.data, *x._keys()))


det.kernel(Sparse, when=is_solved_directly)(det_by_slogdet)


# ---- structures that are solved by their sparse form --------------------------------------------------------------------


def sparse_size(x: Array) -> int:
    """Return the number of entries of the sparse form of a matrix (static)."""
    return sum(e.size // max(1, math.prod(x.batch_shape)) for e in x.freed().entries)


def has_few_blocks(x: Array, *args: Any) -> bool:
    """Return whether the sparse form of a matrix that stores blocks is solved directly."""
    return x.background is None and has_sparse_form(x) and is_worth_solving(x.shape[-1], sparse_size(x), x.dtype)


@by_form(solve, inv, slogdet, det, of=BlockBanded, when=has_few_blocks)
def block_banded_by_sparse_form(x: BlockBanded) -> Array:
    """Return the sparse form of a matrix that stores few blocks."""
    remark("the sparse form of the blocks")
    return to_sparse(x).assuming(x.assumptions)
