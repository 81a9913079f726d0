"""Dense linear algebra on plain JAX arrays of shape ``(..., m, n)``, for the standard's ``linalg`` extension.

`solve`, `inv` and `cholesky` return ``(result, ok)``. ``ok`` is one boolean for the whole call: no pivot of the
factorization is zero (or negative, for Cholesky). It is computed in the same compiled call, so that an eager caller
only has to read it. The result is NaN for a matrix with such a pivot. NaN in the argument does not count: it gives NaN
in the result and leaves ``ok`` true.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy
from jax import Array, lax

from . import dense_elementwise as elementwise
from . import dense_factors, determinants, pseudo_inverse
from . import dense_spectra as spectra
from . import dense_statistical as statistical
from . import packed_triangles as triangles
from .flags import custom_jvp
from .vectors import for_right_sides

if TYPE_CHECKING:
    from collections.abc import Callable


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


def det(x: Array, /) -> Array:
    """Determinant."""
    if x.shape[-1] > 3:
        return _det(x)
    return jnp.linalg.det(x) if x.shape[-1] < 2 or x.size == 0 else _det_of_few_rows(x)


def _det_of_few_rows(x: Array) -> Array:
    """Determinant by a sum of products, of which none overflows or underflows."""
    x, exponent = _equilibrated(x)
    half, value = exponent // 2, _sum_of_products(x)
    for power in (half, exponent - half):
        value = value * jnp.ldexp(jnp.ones((), value.real.dtype), jnp.clip(power, -_exponents(x), _exponents(x)))
    return value


def _equilibrated(x: Array) -> tuple[Array, Array]:
    """Scale rows and columns by powers of two, which is exact, such that the largest elements are about one.

    The second result is an exponent e: the determinant of `x` is the determinant of the first result times ``2**e``.
    """
    fixed, total = lax.stop_gradient(x), jnp.zeros(x.shape[:-2], int)
    largest = _exponents(x)
    for axis in (-1, -2):
        size = jnp.max(jnp.abs(fixed), axis, keepdims=True)
        _, exponent = jnp.frexp(jnp.where(jnp.isfinite(size), size, 0))
        exponent = jnp.clip(exponent, -largest, largest)
        scale = jnp.ldexp(jnp.ones_like(size), -exponent)
        x, fixed, total = x * scale, fixed * scale, total + jnp.sum(exponent, (-2, -1))
    return x, total


def _exponents(x: Array) -> int:
    """The largest power of two whose reciprocal is finite, also after a multiplication by a few values below one."""
    return int(jnp.finfo(x.dtype).maxexp) - 24


def _sum_of_products(x: Array) -> Array:
    """Determinant of two or three rows. It is written out, since the derivative of JAX (0.12) is NaN for singular matrices."""
    if x.shape[-1] == 2:
        return x[..., 0, 0] * x[..., 1, 1] - x[..., 0, 1] * x[..., 1, 0]
    first, second, third = (x[..., i, :] for i in range(3))
    return jnp.sum(first * jnp.cross(second, third), axis=-1)


@custom_jvp
def _det(x: Array) -> Array:
    return dense_factors.nan_kept(x, jnp.linalg.det(x))


@_det.defjvp
def _det_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The derivative of the logarithm, or the formula for nearly singular matrices.

    JAX's derivative (0.10) multiplies pivots up to each row, which may overflow or underflow although the determinant does not. For
    some singular matrices it is zero.
    """
    singular = _is_nearly_singular(lax.stop_gradient(primals[0]))

    def chosen(x: Array, where: Array) -> Array:
        """Keep these matrices, and replace the others by the identity, whose derivative is defined in both branches."""
        return jnp.where(where[..., None, None], x, jnp.eye(x.shape[-1], dtype=x.dtype))

    def regular(x: Array) -> Array:
        return determinants.exponential(*slogdet(chosen(x, ~singular)), x.dtype)

    def some_singular(x: Array) -> Array:
        return jnp.where(singular, _det_near_singular(chosen(x, singular)), regular(x))

    def derivative(function: Callable[..., Array]) -> Callable[[], tuple[Array, Array]]:
        return lambda: jax.jvp(function, primals, tangents)

    results: tuple[Array, Array] = lax.cond(
        determinants.any_of_all(singular), derivative(some_singular), derivative(regular)
    )
    return results


def _is_nearly_singular(x: Array) -> Array:
    """Return whether second derivatives of the logarithm of the determinant would cancel, because a pivot is small or zero.

    Unless a pivot is zero, `_det_near_singular` must be more accurate: at most three pivots are small, and its numbers are in range.
    """
    x, exponent = _equilibrated(x)
    eps = jnp.finfo(x.dtype).eps
    pivots = jnp.sort(jnp.abs(triangles.diagonal(lax.linalg.lu(x)[0])), axis=-1)
    smallest, fourth, largest = pivots[..., 0], pivots[..., 3], pivots[..., -1]
    small = (smallest <= eps**0.25 * largest) & (fourth > x.shape[-1] * eps * largest)
    logarithm = jnp.sum(jnp.log(pivots[..., 3:]), axis=-1) + _LOG_2 * exponent.astype(pivots.dtype)
    in_range = jnp.abs(logarithm) < 1.5 * jnp.log(jnp.finfo(x.dtype).max)
    return jnp.isfinite(largest) & ((smallest == 0) | small & in_range)


_LOG_2 = math.log(2)


def _det_near_singular(x: Array) -> Array:
    r"""Determinant, with all derivatives if up to three singular values are zero; if more are, the first three derivatives are zero.

    In the bases of the singular vectors, which are constants here, :math:`U^H A V = \begin{bmatrix} B & C \\ D & E \end{bmatrix}`, where
    E belongs to the three smallest singular values. The determinant is the product of det(B) and the determinant
    of the 3 x 3 matrix :math:`E - D B^{-1} C`, which is a polynomial of its elements. They are multiplied by the cubic root of det(B),
    such that neither overflows. Rows and columns are equilibrated first: otherwise the singular values of graded matrices are inaccurate.
    """
    x, exponent = _equilibrated(x)
    u, _, vh = jnp.linalg.svd(lax.stop_gradient(x), full_matrices=False)
    rotated = u.conj().mT @ x @ vh.conj().mT
    above, below = rotated[..., :-3, :], rotated[..., -3:, :]
    b, c, d, e = above[..., :-3], above[..., -3:], below[..., :-3], below[..., -3:]
    regular = slogdet(lax.stop_gradient(b))[0] != 0
    b = jnp.where(regular[..., None, None], b, jnp.eye(b.shape[-1], dtype=x.dtype))
    sign, logarithm = slogdet(b)
    factor = jnp.exp((logarithm + _LOG_2 * exponent.astype(logarithm.dtype)) / 3).astype(x.real.dtype)[..., None, None]
    rest = _det_of_few_rows(factor * (e - d @ jnp.linalg.solve(b, c)))
    return jnp.where(regular, slogdet(u)[0] * slogdet(vh)[0] * sign * rest, 0)


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
