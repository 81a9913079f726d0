"""The Moore–Penrose pseudo-inverse of dense matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import Array

from . import dense_spectra as spectra
from .flags import custom_jvp
from .quotients import reciprocal

if TYPE_CHECKING:
    from .._core.typing import DTypeLike


def pinv(x: Array, rtol: Array, /) -> Array:
    """Pseudo-inverse; singular values up to `rtol` (real, of batch shape) times the largest count as zero.

    `jax.numpy.linalg.pinv` treats its tolerance as static in its derivative, and leaks it if it is traced.
    """
    return with_values(x, rtol)[0]


@custom_jvp
def with_values(x: Array, rtol: Array, /) -> tuple[Array, Array]:
    """Pseudo-inverse, and the singular values, descending, from one decomposition."""
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    return (_hermitian(vh) * _reciprocals(s, rtol, x.dtype)[..., None, :]) @ _hermitian(u), s


@with_values.defjvp
def _with_values_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    # Golub and Pereyra (1973), "The differentiation of pseudo-inverses and nonlinear least squares problems", (4.12).
    (a, rtol), (da, _) = primals, tangents
    p, s = with_values(a, rtol)
    ph, dah = _hermitian(p), _hermitian(da)
    # Both terms vanish for full rank. Rounding errors instead of zeros would be multiplied by the square of the
    # condition number.
    rank = jnp.sum(_are_large(s, rtol), axis=-1)[..., None, None]
    in_range = jnp.where(rank == a.shape[-2], 0, p @ ph @ (dah - (dah @ a) @ p))
    in_kernel = jnp.where(rank == a.shape[-1], 0, (dah - p @ (a @ dah)) @ ph @ p)
    _, ds = jax.jvp(spectra.svdvals, (a,), (da,))
    return (p, s), (in_range + in_kernel - p @ da @ p, ds)


@custom_jvp
def least_squares(a: Array, b: Array, rtol: Array, /) -> tuple[Array, Array]:
    """The solution ``pinv(a, rtol) @ b``, and the singular values.

    The factors are applied one after the other. A product with the pseudo-inverse would have a residual of rounding
    errors times the condition number.
    """
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    return _hermitian(vh) @ (_reciprocals(s, rtol, a.dtype)[..., None] * (_hermitian(u) @ b)), s


@least_squares.defjvp
def _least_squares_jvp(
    primals: tuple[Array, Array, Array], tangents: tuple[Array, Array, Array]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    # The same formula, times b, and ``A^+ db``. Residuals that vanish for full rank would be rounding errors times the
    # squared condition number.
    (a, b, rtol), (da, db, _) = primals, tangents
    x, s = least_squares(a, b, rtol)
    p = with_values(a, rtol)[0]
    dah = _hermitian(da)
    rank = jnp.sum(_are_large(s, rtol), axis=-1)[..., None, None]
    residual = jnp.where(rank == a.shape[-2], 0, b - a @ x)
    in_range = p @ (db - da @ x + _hermitian(p) @ (dah @ residual))
    rows = dah @ (_hermitian(p) @ x)
    in_kernel = jnp.where(rank == a.shape[-1], 0, rows - p @ (a @ rows))
    _, ds = jax.jvp(spectra.svdvals, (a,), (da,))
    return (x, s), (in_range + in_kernel, ds)


def _reciprocals(s: Array, rtol: Array, dtype: DTypeLike) -> Array:
    """Reciprocals of the singular values that do not count as zero; zeros for the others."""
    large = _are_large(s, rtol)
    return jnp.where(large | jnp.isnan(s), reciprocal(jnp.where(s == 0, 1, s)), 0).astype(dtype)


def _are_large(s: Array, rtol: Array) -> Array:
    return s > rtol[..., None] * jnp.max(s, axis=-1, keepdims=True, initial=0)


def _hermitian(x: Array) -> Array:
    return x.conj().mT
