"""Linear systems, inverses, determinants and eigenvalues of triangular matrices, without a factorisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import to_dense
from ..._core.dispatch.recording import remark
from ..._core.families.join import is_zero_outside
from ..._core.families.other_forms import by_form
from ..._functions.linalg import cholesky, det, eig, eigh, eigvals, inv, pinv, qr, slogdet, solve, svd
from ..._numerics import packed_triangles as triangles
from ..banded.diagonal import Diagonal
from .array import Triangular, fits

if TYPE_CHECKING:
    import jax


@solve.kernel(Triangular, Array, when=is_zero_outside)
def _solve_triangular(x1: Triangular, x2: Array) -> tuple[Dense | Triangular, jax.Array]:
    """Solve by substitution; the solution is triangular if the right-hand side is zero in the same half."""
    remark("substitution, since the matrix is triangular; O(n**2) for each column")
    data, ok = triangles.solve(x1.data, x2.dense_data(), lower=x1.lower, unit_diagonal=x1.unit_diagonal)
    if x2.ndim > 1 and is_zero_outside(x2) and fits(x2, x1.lower):
        return Triangular.make((data, None), (x1.lower, False)), ok
    return Dense.make((data,)), ok


@inv.kernel(Triangular, when=is_zero_outside)
def _inv_triangular(x: Triangular) -> tuple[Triangular, jax.Array]:
    identity = jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    data, ok = triangles.solve(x.data, identity, lower=x.lower, unit_diagonal=x.unit_diagonal)
    return Triangular.make((data, None), (x.lower, x.unit_diagonal)), ok


# ---- other forms -----------------------------------------------------------------------------------------------------


@by_form(det, slogdet, eigvals, of=Triangular, when=is_zero_outside)
def triangular_by_diagonal(x: Triangular) -> Diagonal:
    """Return the diagonal, which has the same determinant and the same eigenvalues."""
    return Diagonal.make((x.diagonal(0), None), x.shape[-2:])


@by_form(cholesky, eig, eigh, pinv, qr, svd, of=Triangular)
def triangular_by_dense_form(x: Triangular) -> Dense:
    """Return the dense form. The results are equally large, so nothing counts as densified."""
    return to_dense(x)
