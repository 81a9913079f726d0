"""Linear algebra of circulant matrices: they are diagonal in the basis of the discrete Fourier transform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import right_side
from ..._core.dispatch.recording import remark
from ..._functions.linalg import det, eigvals, eigvalsh, inv, matmul, matrix_power, pinv, slogdet, solve, svdvals
from ..._functions.linalg.systems import POSITIVE_DEFINITE
from ..._functions.matrix_checks import complex_dtype
from ..._numerics import circulant_transforms
from ..._numerics.quotients import reciprocal
from ..._numerics.undefined import nan_unless
from ..._numerics.vectors import by_columns
from ..fallback.singular_values import is_large, norm_and_rank
from .circulant import Circulant

if TYPE_CHECKING:
    import jax

# ---- products and systems -----------------------------------------------------------------------------------------


@matmul.kernel(Circulant, Dense)
def _matmul_circulant_dense(x1: Circulant, x2: Dense) -> Dense:
    return Dense.make((by_columns(lambda data: circulant_transforms.matmul(x1.c, data), x2.data),))


@matmul.kernel(Circulant, Circulant)
def _matmul_circulant_circulant(x1: Circulant, x2: Circulant) -> Circulant:
    return Circulant.make((circulant_transforms.matmul(x1.c, x2.c[..., None])[..., 0],))


@matrix_power.kernel(Circulant, when=lambda x, *, n: n > 1)
def _matrix_power_circulant(x: Circulant, *, n: int) -> Circulant:
    return Circulant.make((circulant_transforms.from_spectrum(circulant_transforms.spectrum(x.c) ** n, x.c),))


@solve.kernel(Circulant, Array)
def _solve_circulant(x1: Circulant, x2: Array) -> tuple[Dense, jax.Array]:
    remark("Fourier transforms, which diagonalise the matrix; O(n log(n)) for each column")
    values, ok = _regular_spectrum(x1)
    solution = by_columns(lambda b: circulant_transforms.divide_by_spectrum(values, b), right_side(x2))
    return Dense.make((solution,)), ok


@solve.kernel(Circulant, Circulant)
def _solve_circulant_circulant(x1: Circulant, x2: Circulant) -> tuple[Circulant, jax.Array]:
    values, ok = _regular_spectrum(x1)
    return Circulant.make((circulant_transforms.divide_by_spectrum(values, x2.c[..., None])[..., 0],)), ok


@inv.kernel(Circulant)
def _inv_circulant(x: Circulant) -> tuple[Circulant, jax.Array]:
    values, ok = _regular_spectrum(x)
    return Circulant.make((circulant_transforms.from_spectrum(reciprocal(values), x.c),)), ok


def _regular_spectrum(x: Circulant) -> tuple[jax.Array, jax.Array]:
    """Return the eigenvalues, and whether all of them are nonzero (or positive).

    They are NaN for each matrix with an eigenvalue that is zero (or not positive).
    """
    values = circulant_transforms.spectrum(x.c)
    bad = values.real <= 0 if POSITIVE_DEFINITE in x.assumptions else values == 0
    bad = jnp.any(bad, axis=-1, keepdims=True)
    return nan_unless(~bad, values), ~jnp.any(bad)


@pinv.kernel(Circulant)
def pinv_circulant(x: Circulant, *, rtol: jax.Array | None) -> Circulant:
    """Invert each eigenvalue that is not small."""
    return Circulant.make((circulant_transforms.from_spectrum(pseudo_reciprocals(x, rtol), x.c),))


def pseudo_reciprocals(x: Circulant, rtol: jax.Array | None) -> jax.Array:
    """Return the eigenvalues of the pseudo-inverse; singular values up to `rtol` times the largest count as zero."""
    values = circulant_transforms.spectrum(x.c)
    large = is_large(x, jnp.abs(values), rtol)
    # NaN is not large, but must not become zero.
    kept = large | jnp.isnan(values)
    return jnp.where(kept, reciprocal(jnp.where(kept, values, 1)), 0)


# ---- determinants and spectra -------------------------------------------------------------------------------------


@det.kernel(Circulant)
def _det_circulant(x: Circulant) -> Dense:
    return Dense.make((circulant_transforms.det(x.c),))


@slogdet.kernel(Circulant)
def _slogdet_circulant(x: Circulant) -> tuple[Dense, ...]:
    return tuple(Dense.make((part,)) for part in circulant_transforms.slogdet(x.c))


@eigvals.kernel(Circulant)
def _eigvals_circulant(x: Circulant) -> Dense:
    return Dense.make((circulant_transforms.full_spectrum(x.c).astype(complex_dtype(x.dtype)),))


@eigvalsh.kernel(Circulant)
def _eigvalsh_circulant(x: Circulant) -> Dense:
    return Dense.make((jnp.sort(circulant_transforms.full_spectrum(x.c).real, axis=-1),))


def _singular_values(x: Circulant) -> jax.Array:
    """Return the magnitudes of the eigenvalues, in no order: these are the singular values of a normal matrix."""
    return jnp.abs(circulant_transforms.full_spectrum(x.c))


@svdvals.kernel(Circulant)
def _svdvals_circulant(x: Circulant) -> Dense:
    return Dense.make((jnp.flip(jnp.sort(_singular_values(x), axis=-1), axis=-1),))


norm_and_rank(Circulant, _singular_values)
