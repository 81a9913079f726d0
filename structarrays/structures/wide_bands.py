"""Banded matrices with diagonals far apart: grids, periodic boundaries.

An elimination fills the whole band. Where the factors of a sparse matrix cost less, the sparse form solves the systems; where they do not
serve (small matrices, other data types) and the band is as wide as half of the matrix, the dense form does, under the policy of `densify`.
The offsets decide, which are static.
"""

from ..core.array import Array
from ..core.operands import dense_if_small
from ..core.recording import remark
from ..functions.linalg import det, diagonal, inv, selected_inverse, slogdet, solve
from .banded import Banded, at_offsets, bands
from .banded_products import has_structural_zeros
from .bandwidths import fills_matrix, is_spread, is_triangular
from .diagonal import Diagonal
from .sparse_joins import to_sparse
from .sparse_solvers import is_worth_solving


def _fills(x, *args) -> bool:
    return has_structural_zeros(x) and fills_matrix(x) and not is_triangular(x)


def _is_sparse(x, *args) -> bool:
    """Whether the sparse form solves systems of a band."""
    entries = sum(d.shape[-1] for d in x.diagonals)
    return has_structural_zeros(x) and is_spread(x) and is_worth_solving(x.shape[-1], entries, x.dtype)


def _sparse(x):
    remark(
        f"the sparse form: {len(x.offsets)} diagonals of a band as wide as {sum(x._bandwidths()) + 1}, which an elimination would fill"
    )
    return to_sparse(x)._assuming(x.assumptions)


def _dense(x, function):
    remark("the dense form: the factors of a band as wide have as many entries")
    return dense_if_small(x, function.name)


# Of kernels for the same classes the one registered last is asked first: the sparse form comes before the dense one.


def _by_dense_form(function):
    others = (Array,) if function is solve else ()

    @function.kernel(Banded, *others, when=_fills)
    def by_dense_form_of_band(x, *rest):
        return function.dispatch(_dense(x, function), *rest)


def _by_sparse_form(function):
    others = (Array,) if function is solve else ()

    @function.kernel(Banded, *others, when=_is_sparse)
    def by_sparse_form_of_band(x, *rest):
        return function.dispatch(_sparse(x), *rest)


for _function in (solve, slogdet, det):
    _by_dense_form(_function)
for _function in (solve, slogdet, det):
    _by_sparse_form(_function)
del _function


@selected_inverse.kernel(Banded, when=lambda x: has_structural_zeros(x) and fills_matrix(x))
def selected_inverse_by_dense_form(x):
    """The diagonals of the whole inverse."""
    elements, ok = inv.dispatch(_dense(x, selected_inverse))
    return _diagonals(elements, x), ok


@selected_inverse.kernel(Banded, when=_is_sparse)
def selected_inverse_by_sparse_form(x):
    """From the elements at the places of the stored diagonals and of their transposes."""
    offsets = tuple(sorted({s * k for k in x.offsets for s in (1, -1)}))
    elements, ok = selected_inverse.dispatch(_sparse(at_offsets(x, offsets)._assuming(x.assumptions)))
    return _diagonals(elements, x), ok


def _diagonals(elements, x):
    """The elements of a matrix on the diagonals that `x` stores."""
    found = [diagonal.dispatch(elements, offset=k).data for k in x.offsets]
    return bands(found, x.offsets, x.core_shape, dtype=x.dtype, batch=x.batch_shape)


def _is_wide_triangle(x) -> bool:
    return has_structural_zeros(x) and fills_matrix(x) and is_triangular(x)


@slogdet.kernel(Banded, when=_is_wide_triangle)
def slogdet_of_wide_triangle(x):
    """That of the diagonal: its derivative by the other entries is zero."""
    return slogdet.dispatch(_diagonal(x))


@det.kernel(Banded, when=_is_wide_triangle)
def det_of_wide_triangle(x):
    """The product of the diagonal."""
    return det.dispatch(_diagonal(x))


def _diagonal(x) -> Diagonal:
    return Diagonal._make((x.diagonal(0), None), x.core_shape)
