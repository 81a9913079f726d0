"""Linear systems, inverses, determinants and Cholesky factors of banded, diagonal and scaled identity matrices.

No kernel here takes an array with a background (`has_structural_zeros`): such an array uses its dense form.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import SMALL, allow_dense, dense_if_small, right_side, to_dense
from ..._core.dispatch.recording import remark
from ..._core.families.conditions import has_structural_zeros
from ..._functions.elementwise import divide
from ..._functions.linalg import cholesky, det, eig, inv, pinv, selected_inverse, slogdet, solve, svd
from ..._functions.linalg.systems import POSITIVE_DEFINITE
from ..._functions.matrix_checks import real_dtype
from ..._numerics import banded_determinants, banded_elimination, determinants
from ..._numerics.quotients import reciprocal
from ..._numerics.undefined import nan_unless
from ..composite.det_by_slogdet import det_by_slogdet
from .array import Banded, at_offsets, bands
from .bandwidths import ask_for_factors, fills_matrix, is_banded, is_triangular
from .diagonal import Diagonal, Identity

if TYPE_CHECKING:
    import jax

    from ..._core.dispatch.function import Function
    from ..._core.typing import Axes, Result


def _parts(x: Banded) -> tuple[tuple[jax.Array, ...], tuple[int, ...], int]:
    """Diagonals, offsets and size, as the kernels take them; a matrix without diagonals gets one of zeros."""
    if not x.offsets:
        x = at_offsets(x, (0,))
    return x.diagonals, x.offsets, x.shape[-1]


# ---- systems ------------------------------------------------------------------------------------------------------


@solve.kernel(Banded, Array, when=has_structural_zeros)
def _solve_banded(x1: Banded, x2: Array) -> tuple[Dense, jax.Array]:
    data = right_side(x2)
    vector = data.ndim == 1
    b = data[:, None] if vector else data
    definite = POSITIVE_DEFINITE in x1.assumptions
    if not is_triangular(x1):
        below, above = x1.bandwidths()
        ask_for_factors(x1, "linalg.solve", 1 + (below if definite else 2 * below + above))
    remark(banded_elimination.explanation(*_parts(x1)[1:], definite))
    solution, ok = banded_elimination.solve(*_parts(x1), b, definite)
    return Dense.make((solution[..., 0] if vector else solution,)), ok


@solve.kernel(Diagonal, Array, when=has_structural_zeros)
def _solve_diagonal(x1: Diagonal, x2: Array) -> tuple[Array, jax.Array]:
    """A scaling of the rows, which keeps the structure of the right-hand side."""
    remark("a division of each row; O(n) for each column, and the structure of x2 stays")
    divisor, ok = _regular(x1.diag, axis=-1, positive=POSITIVE_DEFINITE in x1.assumptions)
    return _quotient(x2, divisor), ok


@solve.kernel(Identity, Array, when=has_structural_zeros)
def _solve_identity(x1: Identity, x2: Array) -> tuple[Array, jax.Array]:
    remark("a division by one number; the structure of x2 stays")
    divisor, ok = _regular(x1.scale, axis=(), positive=POSITIVE_DEFINITE in x1.assumptions)
    return _quotient(x2, divisor[..., None]), ok


def _quotient(x: Array, divisor: jax.Array) -> Array:
    return divide(x, Dense.make((divisor if x.ndim == 1 else divisor[..., None],)))


def _regular(pivots: jax.Array, *, axis: Axes, positive: bool = False) -> tuple[jax.Array, jax.Array]:
    """The pivots, all NaN where a matrix has one that is zero (or not positive), and whether no matrix has."""
    bad = jnp.any(pivots.real <= 0 if positive else pivots == 0, axis=axis, keepdims=True)
    return nan_unless(~bad, pivots), ~jnp.any(bad)


@inv.kernel(Banded, when=has_structural_zeros)
def _inv_banded(x: Banded) -> Result:
    if x.shape[-1] > SMALL:
        allow_dense(x, "linalg.inv", x.size)
    identity = jnp.eye(x.shape[-1], dtype=x.dtype)
    if fills_matrix(x):
        return inv.dispatch(to_dense(x))
    data, ok = banded_elimination.solve(*_parts(x), identity, POSITIVE_DEFINITE in x.assumptions)
    return Dense.make((jnp.broadcast_to(data, x.shape),)), ok


@inv.kernel(Diagonal, when=has_structural_zeros)
def _inv_diagonal(x: Diagonal) -> tuple[Diagonal, jax.Array]:
    (entries,) = x.entries
    axis = () if type(x) is Identity else -1
    divisor, ok = _regular(entries, axis=axis, positive=POSITIVE_DEFINITE in x.assumptions)
    return x.rebuild((reciprocal(divisor),), None), ok


@selected_inverse.kernel(Banded, when=has_structural_zeros)
def _selected_inverse_banded(x: Banded) -> tuple[Banded, jax.Array]:
    diagonals, ok = banded_determinants.selected_inverse(*_parts(x))
    if POSITIVE_DEFINITE in x.assumptions:
        ok = ok & banded_elimination.cholesky(*_parts(x))[-1]
    return bands(diagonals, x.offsets, x.core_shape, dtype=x.dtype, batch=x.batch_shape), ok


@selected_inverse.kernel(Diagonal, when=has_structural_zeros)
def _selected_inverse_diagonal(x: Diagonal) -> Result:
    return inv.dispatch(x)


# ---- Cholesky factors ---------------------------------------------------------------------------------------------


@cholesky.kernel(Banded, when=is_banded)
def _cholesky_banded(x: Banded, *, upper: bool) -> tuple[Banded, jax.Array]:
    ask_for_factors(x, "linalg.cholesky", 1 + max(x.bandwidths()))
    diagonals, offsets, ok = banded_elimination.cholesky(*_parts(x), upper, "hermitian" in x.assumptions)
    return bands(diagonals, offsets, x.core_shape, dtype=x.dtype, batch=x.batch_shape), ok


@cholesky.kernel(Diagonal, when=has_structural_zeros)
def _cholesky_diagonal(x: Diagonal, *, upper: bool) -> tuple[Diagonal, jax.Array]:
    (entries,) = x.entries
    pivots, ok = _regular(entries.real, axis=() if type(x) is Identity else -1, positive=True)
    return x.rebuild((jnp.sqrt(pivots).astype(x.dtype),), None), ok


# ---- determinants -------------------------------------------------------------------------------------------------


@slogdet.kernel(Banded, when=has_structural_zeros)
def _slogdet_banded(x: Banded) -> tuple[Dense, Dense]:
    below, above = x.bandwidths()
    ask_for_factors(x, "linalg.slogdet", 1 + 2 * below + above)
    sign, logabsdet = banded_determinants.slogdet(*_parts(x))
    return Dense.make((sign,)), Dense.make((logabsdet,))


@slogdet.kernel(Diagonal, when=has_structural_zeros)
def _slogdet_diagonal(x: Diagonal) -> tuple[Dense, ...]:
    return tuple(Dense.make((part,)) for part in determinants.sign_and_logarithm(x.diag, -1))


@slogdet.kernel(Identity, when=has_structural_zeros)
def _slogdet_identity(x: Identity) -> tuple[Dense, Dense]:
    n = x.shape[-1]
    logabsdet = jnp.zeros(x.batch_shape, real_dtype(x.dtype)) if n == 0 else n * jnp.log(jnp.abs(x.scale))
    return Dense.make((determinants.phase(x.scale) ** n,)), Dense.make((logabsdet,))


det.kernel(Banded, when=has_structural_zeros)(det_by_slogdet)


@det.kernel(Diagonal, when=has_structural_zeros)
def _det_diagonal(x: Diagonal) -> Dense:
    logarithms = functools.partial(determinants.sign_and_logarithm, axes=-1)
    return Dense.make((determinants.of_parts(functools.partial(jnp.prod, axis=-1), logarithms, x.diag),))


@det.kernel(Identity, when=has_structural_zeros)
def _det_identity(x: Identity) -> Dense:
    return Dense.make((x.scale ** x.shape[-1],))


# ---- decompositions whose parts are full matrices -----------------------------------------------------------------


def _by_dense_form(function: Function[..., Any]) -> None:
    """Register a kernel that computes with the dense form. The results are as large, so small matrices do not count as densified."""

    @function.kernel(Banded, when=has_structural_zeros)
    def by_dense_form_of_band(x: Banded, **static: Any) -> Result:
        return function.dispatch(dense_if_small(x, function.name), **static)


for _function in (eig, pinv, svd):
    _by_dense_form(_function)
del _function
