"""Linear systems, determinants, factors and spectra of `PeriodicBanded` matrices, by a band matrix; see `numerics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import right_side
from ..._core.dispatch.recording import remark
from ..._core.families.conditions import has_structural_zeros
from ..._core.families.other_forms import by_form
from ..._functions.linalg import (
    cholesky,
    det,
    eigvalsh,
    inv,
    matrix_rank,
    matrix_transpose,
    selected_inverse,
    slogdet,
    solve,
    svdvals,
)
from ..._functions.rounding_and_parts import conj
from ..banded.array import Banded, bands
from ..banded.bandwidths import are_spread
from ..composite.block import Block
from ..sparse.solvers import is_worth_solving
from ..sparse.sparse_joins import to_sparse
from . import numerics
from .array import PeriodicBanded, elements_on_ring, periodic

if TYPE_CHECKING:
    import jax


_FOLDED = (
    "the band matrix of rows and columns in the order 0, n - 1, 1, n - 2, …, with pivots; O(n w**2), bandwidth w = {}"
)


@by_form(det, slogdet, eigvalsh, svdvals, matrix_rank, of=PeriodicBanded, when=has_structural_zeros)
def folded_form(x: PeriodicBanded) -> Banded:
    """Return the band matrix of rows and columns in the order of `numerics.fold`, with the assumptions of `x`."""
    remark(_FOLDED.format(2 * max(map(abs, x.offsets))))
    diagonals, offsets = numerics.folded(x.diagonals, x.offsets, x.meta[1])
    band = bands(diagonals, offsets, x.core_shape, dtype=x.dtype, batch=x.batch_shape)
    return band.assuming(x.assumptions)


@solve.kernel(PeriodicBanded, Array, when=has_structural_zeros)
def _solve_periodic_banded(x1: PeriodicBanded, x2: Array) -> tuple[Dense, jax.Array]:
    data = right_side(x2)
    axis = -min(data.ndim, 2)
    solution, ok = solve.dispatch(folded_form(x1), Dense.make((numerics.fold(data, axis),)))
    vector = data.ndim == 1
    return Dense.make((numerics.unfold(solution.dense_data(), -1 if vector else -2),)), ok


def _is_sparse(x: PeriodicBanded, *args: Any) -> bool:
    """Return whether the factors of the sparse matrix cost less than the factors of the folded band, as for a grid."""
    n, count, width = x.meta[1], len(x.offsets), 2 * max(map(abs, x.offsets))
    return has_structural_zeros(x) and are_spread(width, width, 2 * count) and is_worth_solving(n, count * n, x.dtype)


@by_form(solve, slogdet, det, of=PeriodicBanded, when=_is_sparse, before=("solve_periodic_banded", "folded_form"))
def by_sparse_form_of_ring(x: PeriodicBanded) -> Array:
    """The sparse form, whose factors cost less."""
    remark(
        f"the sparse form: {len(x.offsets)} diagonals up to offset {max(map(abs, x.offsets))}, whose elimination would fill the band"
    )
    return to_sparse(x).assuming(x.assumptions)


@inv.kernel(PeriodicBanded, when=has_structural_zeros)
def _inv_periodic_banded(x: PeriodicBanded) -> tuple[Dense, jax.Array]:
    inverse, ok = inv.dispatch(folded_form(x))
    return Dense.make((numerics.unfold(numerics.unfold(inverse.dense_data(), -1), -2),)), ok


@selected_inverse.kernel(PeriodicBanded, when=has_structural_zeros)
def _selected_inverse_periodic_banded(x: PeriodicBanded) -> tuple[PeriodicBanded, jax.Array]:
    band = folded_form(x)
    inverse, ok = selected_inverse.dispatch(band)
    diagonals = numerics.unfolded([inverse.diagonal(t) for t in band.offsets], x.offsets, x.meta[1])
    return periodic(dict(zip(x.offsets, diagonals, strict=True)), None), ok


def _is_long(x: PeriodicBanded, **static: Any) -> bool:
    """Return whether the matrix has far more rows than its factor has full rows."""
    return has_structural_zeros(x) and x.meta[1] > 4 * max(map(abs, x.offsets)) > 0


@cholesky.kernel(PeriodicBanded, when=_is_long)
def _cholesky_periodic_banded(x: PeriodicBanded, *, upper: bool) -> tuple[Array, jax.Array]:
    """Factorise: the factor has a band, except for its last w rows, which are full."""
    n, w = x.meta[1], max(map(abs, x.offsets))
    m = n - w
    remark(f"a band of width {w}, and {w} full rows; O(n w**2)")
    first, last = jnp.arange(m), jnp.arange(m, n)
    inside = [(k, x.diagonal(k)[..., max(0, -k) : m - max(0, k)]) for k in x.offsets]
    leading = bands([d for _, d in inside], tuple(k for k, _ in inside), (m, m), dtype=x.dtype, batch=x.batch_shape)
    factor, fine = cholesky.dispatch(leading, upper=False)
    below = elements_on_ring(x, last[:, None], first[None, :])
    solution, _ = solve.dispatch(factor, Dense.make((below.mT.conj(),)))
    rows = solution.dense_data().mT.conj()
    corner = elements_on_ring(x, last[:, None], last[None, :]) - rows @ rows.mT.conj()
    corner, definite = cholesky.dispatch(Dense.make((corner,)), upper=False)
    lower = Block([[factor, None], [Dense.make((rows,)), corner]])
    return (matrix_transpose.dispatch(conj.dispatch(lower)) if upper else lower), fine & definite
