"""Determinants of dense matrices, with derivatives that are right for singular matrices, on plain JAX arrays ``(..., n, n)``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import Array, lax

from . import dense_factors, determinants, scaling
from . import packed_triangles as triangles
from .flags import custom_jvp

if TYPE_CHECKING:
    from collections.abc import Callable


def det(x: Array, /) -> Array:
    """Determinant."""
    if x.shape[-1] > 3:
        return _det(x)
    return jnp.linalg.det(x) if x.shape[-1] < 2 or x.size == 0 else _det_of_few_rows(x)


def _det_of_few_rows(x: Array) -> Array:
    """Determinant by a sum of products, of which none overflows or underflows."""
    x, exponent = _equilibrated(x)
    half, value = exponent // 2, _sum_of_products(x)
    largest = _largest_exponent(x)
    for power in (half, exponent - half):
        value = value * scaling.power_of_two(jnp.clip(power, -largest, largest), value.real.dtype)
    return value


def _equilibrated(x: Array) -> tuple[Array, Array]:
    """Scale rows and columns by powers of two, which is exact, such that the largest elements are about one.

    The second result is an exponent e: the determinant of `x` is the determinant of the first result times ``2**e``.
    """
    fixed, total = lax.stop_gradient(x), jnp.zeros(x.shape[:-2], jnp.int32)
    largest = _largest_exponent(x)
    for axis in (-1, -2):
        exponent = scaling.exponent(jnp.max(jnp.abs(fixed), axis, keepdims=True))
        exponent = jnp.clip(exponent, -largest, largest)
        scale = scaling.power_of_two(-exponent, fixed.real.dtype)
        x, fixed, total = x * scale, fixed * scale, total + jnp.sum(exponent, (-2, -1))
    return x, total


def _largest_exponent(x: Array) -> int:
    """Exponent of a power of two whose reciprocal is finite, also after a multiplication by a few values below one."""
    return int(jnp.finfo(x.dtype).maxexp) - 24


def _sum_of_products(x: Array) -> Array:
    """Determinant of two or three rows. It is written out, since the derivative of JAX (0.12) is NaN for singular matrices."""
    if x.shape[-1] == 2:
        return x[..., 0, 0] * x[..., 1, 1] - x[..., 0, 1] * x[..., 1, 0]
    first, (a, b, c), (d, e, f) = ([x[..., i, j] for j in range(3)] for i in range(3))
    return first[0] * (b * f - c * e) + first[1] * (c * d - a * f) + first[2] * (a * e - b * d)


@custom_jvp
def _det(x: Array) -> Array:
    return dense_factors.nan_kept(x, jnp.linalg.det(x))


@_det.defjvp
def _det_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The derivative of the logarithm, or the formula for nearly singular matrices.

    JAX's derivative (0.10) multiplies pivots up to each row, which may overflow or underflow although the determinant does not. For
    some singular matrices it is zero.
    """

    def derivative(function: Callable[[Array], Array]) -> Callable[[], tuple[Array, Array]]:
        return lambda: jax.jvp(function, primals, tangents)

    singular = _is_nearly_singular(*_equilibrated(lax.stop_gradient(primals[0])))
    results: tuple[Array, Array] = lax.cond(
        determinants.any_of_all(singular), derivative(det_of_any_rank), derivative(_det_of_regular)
    )
    return results


def det_of_any_rank(x: Array) -> Array:
    """Determinants whose derivatives are right for regular and for singular matrices, without a branch."""
    if x.shape[-1] <= 3:
        return det(x)
    scaled, exponent = _equilibrated(x)
    singular = _is_nearly_singular(lax.stop_gradient(scaled), exponent)[..., None, None]
    # Each formula gets the identity in place of the other's matrices, since all derivatives are finite there.
    identity = jnp.eye(x.shape[-1], dtype=x.dtype)
    nearly_singular = _det_of_nearly_singular(jnp.where(singular, scaled, identity), exponent)
    return jnp.where(singular[..., 0, 0], nearly_singular, _det_of_regular(jnp.where(singular, identity, x)))


def _det_of_regular(x: Array) -> Array:
    _, sign, logarithm = _inverse_and_determinant(x)
    return determinants.exponential(sign, logarithm, x.dtype)


@custom_jvp
def _inverse_and_determinant(x: Array) -> tuple[Array, Array, Array]:
    """Inverse, sign of the determinant, and logarithm of its magnitude. Their derivatives are products with the inverse."""
    n = x.shape[-1]
    factor, exchanges, order = dense_factors.lu(x)
    rows = jnp.broadcast_to(jnp.eye(n, dtype=x.dtype)[order], x.shape)
    for lower in (True, False):
        rows = lax.linalg.triangular_solve(factor, rows, left_side=True, lower=lower, unit_diagonal=lower)
    sign, logarithm = determinants.sign_and_logarithm(triangles.diagonal(factor), -1)
    odd = jnp.sum(exchanges != jnp.arange(n), axis=-1) % 2 == 1
    return rows, jnp.where(odd, -sign, sign), logarithm


@_inverse_and_determinant.defjvp
def _inverse_and_determinant_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    inverse, sign, logarithm = _inverse_and_determinant(*primals)
    product = inverse @ tangents[0]
    change = jnp.trace(product, axis1=-2, axis2=-1)
    return (inverse, sign, logarithm), (-product @ inverse, *determinants.tangents(sign, change))


def _is_nearly_singular(x: Array, exponent: Array) -> Array:
    """Return whether second derivatives of the logarithm of the determinant would cancel, because a pivot is small or zero.

    Unless a pivot is zero, `_det_of_nearly_singular` must be more accurate: at most three pivots are small, and its numbers are in
    range. The arguments are the results of `_equilibrated`.
    """
    eps = jnp.finfo(x.dtype).eps
    pivots = jnp.sort(jnp.abs(triangles.diagonal(lax.linalg.lu(x)[0])), axis=-1)
    smallest, fourth, largest = pivots[..., 0], pivots[..., 3], pivots[..., -1]
    small = (smallest <= eps**0.25 * largest) & (fourth > x.shape[-1] * eps * largest)
    logarithm = jnp.sum(jnp.log(pivots[..., 3:]), axis=-1) + _LOG_2 * exponent.astype(pivots.dtype)
    in_range = jnp.abs(logarithm) < 1.5 * jnp.log(jnp.finfo(x.dtype).max)
    return jnp.isfinite(largest) & ((smallest == 0) | small & in_range)


_LOG_2 = math.log(2)


def _det_of_nearly_singular(x: Array, exponent: Array) -> Array:
    r"""Determinant, with all derivatives if up to three singular values are zero; if more are, the first three derivatives are zero.

    In the bases of the singular vectors, which are constants here, :math:`U^H A V = \begin{bmatrix} B & C \\ D & E \end{bmatrix}`, where
    E belongs to the three smallest singular values. The determinant is the product of det(B) and the determinant
    of the 3 x 3 matrix :math:`E - D B^{-1} C`, which is a polynomial of its elements. They are multiplied by the cubic root of det(B),
    such that neither overflows. The arguments are the results of `_equilibrated`: the singular values of graded matrices are inaccurate.
    """
    u, values, vh = jnp.linalg.svd(lax.stop_gradient(x), full_matrices=False)
    rotated = u.conj().mT @ x @ vh.conj().mT
    above, below = rotated[..., :-3, :], rotated[..., -3:, :]
    b, c, d, e = above[..., :-3], above[..., -3:], below[..., :-3], below[..., -3:]
    regular = values[..., -4] > x.shape[-1] * jnp.finfo(x.dtype).eps * values[..., 0]
    b = jnp.where(regular[..., None, None], b, jnp.eye(b.shape[-1], dtype=x.dtype))
    inverse, sign, logarithm = _inverse_and_determinant(b)
    factor = jnp.exp((logarithm + _LOG_2 * exponent.astype(logarithm.dtype)) / 3).astype(x.real.dtype)[..., None, None]
    rest = _sum_of_products(factor * (e - d @ (inverse @ c)))
    _, turned, _ = _inverse_and_determinant(u @ vh)
    return jnp.where(regular, turned * sign * rest, 0)


def slogdet(x: Array, /) -> tuple[Array, Array]:
    """Sign and logarithm of the magnitude of the determinant."""
    if x.shape[-1] == 2:
        return _slogdet_of_two_rows(x)
    sign, logabsdet = jnp.linalg.slogdet(x)
    return dense_factors.nan_kept(x, sign), dense_factors.nan_kept(x, logabsdet)


@custom_jvp
def _slogdet_of_two_rows(x: Array) -> tuple[Array, Array]:
    """Determinant by elimination: JAX (0.10) takes the logarithm of ``a d - b c``, which overflows although the
    logarithm does not.
    """
    exchanged, ((pivot, _), _), _, rest = _eliminated(x)
    sign, logabsdet = determinants.sign_and_logarithm(jnp.stack([pivot, rest], axis=-1), -1)
    return jnp.where(exchanged, -sign, sign), logabsdet


@_slogdet_of_two_rows.defjvp
def _slogdet_of_two_rows_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """``tr(A^-1 dA)``, written without squares, which JAX's derivative of a quotient contains."""
    (x,), (dx,) = primals, tangents
    sign, logabsdet = _slogdet_of_two_rows(x)
    exchanged, ((pivot, right), _), factor, rest = _eliminated(x)
    (dpivot, dright), (dbelow, dlast) = _rows_in_order(dx, exchanged)
    dfactor = (dbelow - factor * dpivot) / pivot
    change = dpivot / pivot + (dlast - dfactor * right - factor * dright) / rest
    if jnp.iscomplexobj(x):
        return (sign, logabsdet), (sign * 1j * change.imag, change.real)
    return (sign, logabsdet), (jnp.zeros_like(sign), change)


def _eliminated(x: Array) -> tuple[Array, tuple[tuple[Array, ...], ...], Array, Array]:
    """Return whether the rows are exchanged, their elements in that order, the multiplier of the first row, and the
    remaining pivot.
    """
    exchanged = jnp.abs(x[..., 1, 0]) > jnp.abs(x[..., 0, 0])
    (pivot, right), (below, last) = rows = _rows_in_order(x, exchanged)
    factor = below / jnp.where(pivot == 0, 1, pivot)
    return exchanged, rows, factor, last - factor * right


def _rows_in_order(x: Array, exchanged: Array) -> tuple[tuple[Array, ...], ...]:
    rows = jnp.where(exchanged[..., None, None], jnp.flip(x, -2), x)
    return tuple(tuple(rows[..., i, j] for j in range(2)) for i in range(2))
