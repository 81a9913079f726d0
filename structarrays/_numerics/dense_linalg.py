"""Dense linear algebra on plain JAX arrays of shape ``(..., m, n)``, for the standard's ``linalg`` extension.

`solve`, `inv` and `cholesky` return ``(result, ok)``. ``ok`` is one boolean for the whole call: no pivot of the
factorization is zero (or negative, for Cholesky). It is computed in the same compiled call, so that an eager caller
only has to read it. The result is NaN for a matrix with such a pivot. NaN in the argument does not count: it gives NaN
in the result and leaves ``ok`` true.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax import Array, lax

from . import dense_elementwise as elementwise
from . import dense_factors, pseudo_inverse
from . import dense_spectra as spectra
from . import dense_statistical as statistical
from .flags import custom_jvp
from .vectors import for_right_sides


def _real_dtype(x: Array) -> numpy.dtype:
    return jnp.finfo(x.dtype).dtype


# Linear systems and factorizations


@for_right_sides
def solve(x1: Array, x2: Array, /) -> tuple[Array, Array]:
    """Solution of ``x1 @ x = x2`` and ``ok``; ``x2`` is a vector if it has one dimension, else a stack of matrices."""
    n, k = x2.shape[-2:]
    batch = jnp.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    right = jnp.broadcast_to(x2, (*batch, n, k))
    factor, _, permutation = dense_factors.lu(lax.stop_gradient(x1))
    state = _pivot_state(factor, n)
    regular = state == 0

    # Differentiate the equation, A dx = db - dA x, not the factorization.
    def matvec(x: Array) -> Array:
        return x1 @ x

    def substitute(x: Array, *, transposed: bool) -> Array:
        full = jnp.broadcast_to(factor, (*batch, n, n))
        order = jnp.broadcast_to(permutation, (*batch, n))[..., None]
        if transposed:
            x = _triangular(full, x, lower=False, transpose=True)
            x = _triangular(full, x, lower=True, transpose=True)
            x = jnp.take_along_axis(x, jnp.argsort(order, axis=-2), axis=-2)
        else:
            x = jnp.take_along_axis(x, order, axis=-2)
            x = _triangular(full, x, lower=True)
            x = _triangular(full, x, lower=False)
        return jnp.where(regular[..., None, None], x, jnp.nan)

    solution = lax.custom_linear_solve(
        matvec,
        right,
        solve=lambda _, b: substitute(b, transposed=False),
        transpose_solve=lambda _, b: substitute(b, transposed=True),
    )
    return solution, jnp.all(state != _ZERO_PIVOT)


_ZERO_PIVOT, _NAN_PIVOT = 1, 2


def _pivot_state(factor: Array, n: int) -> Array:
    """Summarize the worst pivot of an LU factor: 0 if all pivots are regular. It is one reduction, since each costs an
    eager call.

    A zero pivot next to a NaN pivot has no meaning: LAPACK leaves zeros there.
    """
    flat = factor.reshape(*factor.shape[:-2], n * n)
    pivots = flat[..., :: n + 1]  # one strided slice, which fuses, unlike a gather
    states = jnp.where(pivots == 0, numpy.int8(_ZERO_PIVOT), jnp.where(jnp.isnan(pivots), numpy.int8(_NAN_PIVOT), 0))
    return jnp.max(states.astype(jnp.int8), axis=-1, initial=0)


def _triangular(factor: Array, x: Array, *, lower: bool, transpose: bool = False) -> Array:
    """Solve with one triangle of an LU factor; L has a unit diagonal."""
    return lax.linalg.triangular_solve(
        factor, x, left_side=True, lower=lower, transpose_a=transpose, unit_diagonal=lower
    )


def inv(x: Array, /) -> tuple[Array, Array]:
    """Inverse and ``ok``."""
    return solve(x, jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape))


def cholesky(x: Array, /, *, upper: bool = False) -> tuple[Array, Array]:
    """Cholesky factor of the Hermitian part of ``x``, and ``ok``."""
    factor = dense_factors.nan_kept(x, jnp.linalg.cholesky(x, upper=upper))
    # LAPACK's flag for a nonpositive pivot appears as a factor full of NaN. So NaN in x must be distinguished.
    failed = jnp.any(jnp.isnan(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    failed = failed & ~jnp.any(jnp.isnan(x), axis=(-2, -1))
    return factor, ~jnp.any(failed)


def qr(x: Array, /, *, mode: str = "reduced") -> tuple[Array, Array]:
    """``Q`` and ``R``."""
    q, r = jnp.linalg.qr(x, mode=mode) if jax.default_backend() == "cpu" else _qr(mode, x)
    return q, r


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _qr(mode: str, x: Array) -> tuple[Array, Array]:
    q, r = jnp.linalg.qr(x, mode=mode)
    return q, r


@_qr.defjvp
def _qr_jvp(mode: str, primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], ...]:
    """JAX's derivative, in the precision of `custom_jvp`."""
    return jax.jvp(lambda x: tuple(jnp.linalg.qr(x, mode=mode)), primals, tangents)


# Functions of singular values


def _relative_tolerance(x: Array, rtol: float | Array | None) -> Array:
    """``rtol``, by default ``max(m, n) * eps``, as a real array that broadcasts against singular values."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * jnp.finfo(x.dtype).eps  # type: ignore[assignment]  # ml_dtypes
    return jnp.asarray(rtol, _real_dtype(x))[..., None]


def matrix_rank(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Number of singular values above ``rtol`` times the largest."""
    s = spectra.svdvals(x)
    if s.shape[-1] == 0:
        return jnp.zeros(x.shape[:-2], int)
    return jnp.sum(s > _relative_tolerance(x, rtol) * s[..., :1], axis=-1, dtype=int)


def pinv(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Pseudo-inverse; singular values up to ``rtol`` times the largest count as zero."""
    return pseudo_inverse.pinv(x, _relative_tolerance(x, rtol)[..., 0])


# Norms


def vector_norm(x: Array, /, *, axis: statistical.Axis = None, keepdims: bool = False, ord: int | float = 2) -> Array:
    """Norm of order ``ord`` over one or several axes; of all elements by default."""
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    if ord == 2:
        squares = jnp.real(x) ** 2 + jnp.imag(x) ** 2 if jnp.iscomplexobj(x) else x * x
        return jnp.sqrt(jnp.sum(squares, **options))
    magnitude = elementwise.abs(x)
    if ord == jnp.inf:
        return statistical.max(magnitude, **options)
    if ord == -jnp.inf:
        return statistical.min(magnitude, **options)
    if ord == 0:
        return jnp.sum(x != 0, dtype=magnitude.dtype, **options)
    if ord == 1:
        return jnp.sum(magnitude, **options)
    return jnp.sum(magnitude**ord, **options) ** (1 / ord)


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: int | float | str | None = "fro") -> Array:
    """Frobenius (``"fro"``), nuclear (``"nuc"``), spectral (2, -2), column-sum (1, -1) or row-sum (inf, -inf) norm."""
    if ord in ("fro", None):
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (1, -1, jnp.inf, -jnp.inf):
        sums = jnp.sum(elementwise.abs(x), axis=-2 if ord in (1, -1) else -1)
        extremum = statistical.max if ord > 0 else statistical.min
        result = extremum(sums, axis=-1)
    elif ord == "nuc":
        result = spectra.nuclear_norm(x)
    elif ord == 2:
        result = spectra.singular_value(x, 0)
    elif ord == -2:
        result = spectra.singular_value(x, -1)
    else:
        raise ValueError(f"matrix_norm: ord must be 'fro', 'nuc', ±1, ±2 or ±inf, got {ord!r}")
    return result[..., None, None] if keepdims else result


# Products


def outer(x1: Array, x2: Array, /) -> Array:
    """``x1[i] * x2[j]``."""
    return x1[:, None] * x2[None, :]


# Parts


def matrix_transpose(x: Array, /) -> Array:
    """Last two axes swapped."""
    return x.mT
