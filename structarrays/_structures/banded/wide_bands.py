"""Solvers for banded matrices with diagonals far apart, such as grids and periodic boundaries.

An elimination fills the whole band. If the factors of the sparse matrix cost less, the sparse form solves the linear
system. Sparse solvers do not serve small matrices and some data types. For these the dense form follows, under the
policy of `densify`, if the bandwidth is at least half of the size. The static offsets decide.

"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._core.array.base import Array
from ..._core.array.operands import dense_if_small
from ..._core.dispatch.recording import remark
from ..._core.families.conditions import has_structural_zeros
from ..._core.families.other_forms import by_form
from ..._functions.linalg import det, diagonal, inv, selected_inverse, slogdet, solve
from ..sparse.solvers import is_worth_solving
from ..sparse.sparse_joins import to_sparse
from .array import Banded, at_offsets, bands
from .bandwidths import fills_matrix, is_spread, is_triangular
from .diagonal import Diagonal

if TYPE_CHECKING:
    import jax

    from ..._core.array.dense import Dense
    from ..._core.dispatch.function import Function
    from ..._core.typing import Result


def _fills(x: Banded, *args: Any) -> bool:
    return has_structural_zeros(x) and fills_matrix(x) and not is_triangular(x)


def _is_sparse(x: Banded, *args: Any) -> bool:
    """Return whether the sparse form solves linear systems with this band."""
    entries = sum(d.shape[-1] for d in x.diagonals)
    return has_structural_zeros(x) and is_spread(x) and is_worth_solving(x.shape[-1], entries, x.dtype)


def _dense(x: Banded, function: Function[..., Any]) -> Dense:
    remark("the dense form: the factors of such a wide band have as many entries")
    return dense_if_small(x, function.name)


_FOR_NARROW_BANDS = ("solve_banded", "slogdet_banded", "det_by_slogdet")

# In this file the last kernel for equal classes takes precedence: the sparse form comes before the dense form.


def _by_dense_form(function: Function[..., Any]) -> None:
    others = (Array,) if function is solve else ()

    @function.kernel(Banded, *others, when=_fills, before=_FOR_NARROW_BANDS)
    def by_dense_form_of_band(x: Banded, *rest: Array) -> Result:
        return function.dispatch(_dense(x, function), *rest)


for _function in (solve, slogdet, det):
    _by_dense_form(_function)
del _function


@by_form(solve, slogdet, det, of=Banded, when=_is_sparse, before=_FOR_NARROW_BANDS)
def by_sparse_form_of_band(x: Banded) -> Array:
    """The sparse form, whose factors cost less."""
    remark(
        f"the sparse form: {len(x.offsets)} diagonals in a band of width {sum(x.bandwidths()) + 1}, which an elimination would fill"
    )
    return to_sparse(x).assuming(x.assumptions)


@selected_inverse.kernel(
    Banded, when=lambda x: has_structural_zeros(x) and fills_matrix(x), before="selected_inverse_banded"
)
def selected_inverse_by_dense_form(x: Banded) -> tuple[Banded, jax.Array]:
    """The stored diagonals of the dense inverse."""
    elements, ok = inv.dispatch(_dense(x, selected_inverse))
    return _diagonals(elements, x), ok


@selected_inverse.kernel(Banded, when=_is_sparse, before="selected_inverse_banded")
def selected_inverse_by_sparse_form(x: Banded) -> tuple[Banded, jax.Array]:
    """The selected inverse of the sparse form, at the stored diagonals and at their transposes."""
    offsets = tuple(sorted({s * k for k in x.offsets for s in (1, -1)}))
    elements, ok = selected_inverse.dispatch(by_sparse_form_of_band(at_offsets(x, offsets).assuming(x.assumptions)))
    return _diagonals(elements, x), ok


def _diagonals(elements: Array, x: Banded) -> Banded:
    """The elements of a matrix on the diagonals that `x` stores."""
    found = [diagonal.dispatch(elements, offset=k).data for k in x.offsets]
    return bands(found, x.offsets, x.core_shape, dtype=x.dtype, batch=x.batch_shape)


def _is_wide_triangle(x: Banded) -> bool:
    return has_structural_zeros(x) and fills_matrix(x) and is_triangular(x)


@by_form(slogdet, det, of=Banded, when=_is_wide_triangle, before=("slogdet_banded", "det_by_slogdet"))
def wide_triangle_by_diagonal(x: Banded) -> Diagonal:
    """The main diagonal: derivatives by the other entries are zero."""
    return Diagonal.make((x.diagonal(0), None), x.core_shape)
