"""Linear systems, inverses and determinants of triangular Toeplitz matrices; the inverses are triangular Toeplitz."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.dispatch.recording import remark
from ..._core.families.other_forms import by_form
from ..._functions.linalg import det, inv, slogdet, solve
from ..banded.diagonal import Identity
from ..composite.part_solvers import by_equation, solved, without_derivatives
from . import toeplitz_substitution
from .array import Toeplitz, as_identity, between, is_narrow, is_triangular, toeplitz

if TYPE_CHECKING:
    import jax

    from ..._core.typing import Result


def _column(x: Toeplitz) -> tuple[jax.Array, bool]:
    """Return the first column (upper triangular: the first row), and whether the matrix is upper triangular."""
    n = x.core_shape[-1]
    if x.last <= 0:
        return between(x, 1 - n, 0).values[..., ::-1], False
    return between(x, 0, n - 1).values, True


_OTHER_FORMS = ("toeplitz_by_dense_form", "toeplitz_by_banded_form")


@solve.kernel(Toeplitz, Array, when=lambda x1, x2: is_triangular(x1) and not is_narrow(x1), before=_OTHER_FORMS)
def _solve_triangular_toeplitz(x1: Toeplitz, x2: Array) -> Result:
    remark(
        "substitution in blocks by Fourier transforms, since the matrix is triangular; O(n log(n)**2) for each column"
    )
    return solved(x1, x2, _solution)


def _solution(x: Toeplitz, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Substitute forwards from the first row, or backwards from the last; the transpose uses the other direction."""
    column, upper = _column(without_derivatives(x))

    def forwards(b: jax.Array) -> tuple[jax.Array, jax.Array]:
        return toeplitz_substitution.solve(column, b)

    def backwards(b: jax.Array) -> tuple[jax.Array, jax.Array]:
        solution, ok = toeplitz_substitution.solve(column, b[..., ::-1, :])
        return solution[..., ::-1, :], ok

    return by_equation(x, b, *((backwards, forwards) if upper else (forwards, backwards)))


@inv.kernel(Toeplitz, when=lambda x: is_triangular(x) and x.first < x.last, before=_OTHER_FORMS)
def _inv_triangular_toeplitz(x: Toeplitz) -> tuple[Toeplitz, jax.Array]:
    """Compute the first column of the inverse (upper triangular: its last column), which determines it."""
    n = x.core_shape[-1]
    _, upper = _column(x)
    unit = (jnp.arange(n) == (n - 1 if upper else 0)).astype(x.dtype)
    column, ok = solve.dispatch(x, Dense.make((unit,)))
    values = column.dense_data()[..., ::-1]
    return toeplitz(values, 0 if upper else 1 - n, (n, n)), ok


@by_form(det, slogdet, of=Toeplitz, when=is_triangular, before=_OTHER_FORMS)
def triangular_toeplitz_by_diagonal(x: Toeplitz) -> Identity:
    """Return the main diagonal, which has the same determinant."""
    return as_identity(x)
