r"""Eigenvalues and singular values, with second derivatives that are either correct or recognizably undefined.

The first derivative of a value :math:`\lambda_i` is :math:`v_i^* \dot A v_i`. The second one differentiates the vectors, which divides by
the gaps :math:`\lambda_i - \lambda_j`. A gap of repeated values is zero or a rounding error, and its reciprocal is arbitrary. The second
derivative of a function f of the values needs :math:`(f_i - f_j) / (\lambda_i - \lambda_j)` with the first derivatives :math:`f_i` of f. No
rule for the values can compute that for repeated ones, since its limit needs the second derivatives of f.

So second derivatives that depend on repeated values are NaN, infinite or huge. There are two kinds of dependence:

- through the vectors. A huge number replaces the reciprocals of such gaps: about 1e231 (in 32 bits 1e29) over the largest value. A derivative
  that does not depend on them is correct, since a finite number times zero is zero. An example is the second derivative of the largest value
  if smaller values are repeated. No two of the huge numbers are equal, so they do not cancel in the difference of two repeated values.
- through the values, if f is not linear. The first derivatives :math:`f_i` may be zero, as for :math:`\sum (\lambda_i - 1)^2` of the identity.
  So repeated values have the derivative NaN within the rules, where second derivatives read them. Reverse over forward and reverse over
  reverse mode multiply it by zeros. So functions of a simple value that are not linear have NaN in these two orders, too.

`nuclear_norm` and `singular_value` have their own rules, which need fewer of the gaps.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy
from jax import Array, lax

from . import scaling
from .flags import custom_jvp
from .undefined import differentiable_if

__all__ = [
    "are_dependent",
    "eig",
    "eigh",
    "eigh_derivatives",
    "eigvals",
    "eigvalsh",
    "nuclear_norm",
    "simple",
    "singular_value",
    "svd",
    "svdvals",
    "unitary_factor",
]


def _adjoint(x: Array) -> Array:
    return x.mT.conj()


def _largest(values: Array) -> Array:
    return jnp.max(jnp.abs(values), axis=-1, initial=0)[..., None, None]


def _rounding(values: Array, n: int) -> Array:
    """Largest difference of two computed values that are equal, (..., 1, 1), for n rows.

    LAPACK's errors are a few rounding errors of the largest value.
    """
    result: Array = 8 * n**0.5 * jnp.finfo(values.dtype).eps * _largest(values)
    return result


def _are_equal(values: Array, rounding: Array) -> Array:
    """Return which pairs of values, (..., n, n), differ by a rounding error, or agree in three quarters of their
    digits.

    Second derivatives have relative errors of ``eps / gap``. For all other pairs these errors are below ``eps**0.25``.
    """
    sizes = jnp.abs(values)
    nearly = jnp.finfo(values.dtype).eps ** 0.75 * jnp.maximum(sizes[..., None, :], sizes[..., :, None])
    return (jnp.abs(_gaps(values)) <= jnp.maximum(rounding, nearly)) & ~jnp.eye(values.shape[-1], dtype=bool)


def _gaps(values: Array) -> Array:
    """Ones on the diagonal, and differences off it."""
    return jnp.where(jnp.eye(values.shape[-1], dtype=bool), 1, values[..., None, :] - values[..., :, None])


def _off_diagonal(x: Array) -> Array:
    return jnp.where(jnp.eye(x.shape[-1], dtype=bool), 0, x)


def simple(values: Array, n: int, i: int | slice = slice(None)) -> Array:
    """The values of a matrix of `n` rows or columns, or some of them. The derivative is NaN for repeated values.

    Derivative rules return these instead of the values, since second derivatives differentiate them.
    """
    return _simple(values, _are_equal(values, _rounding(values, n)), i)


def _simple(values: Array, equal: Array, i: int | slice = slice(None)) -> Array:
    return differentiable_if(~jnp.any(equal, axis=-1)[..., i], values[..., i])


def _quotient(x: Array, divisors: Array, vanish: Array, largest: Array) -> Array:
    """``x / divisors``. Where `vanish` is true, zero for zero and a huge value otherwise. The derivatives by `x` are
    likewise.

    The array `largest` has the largest value of each matrix.
    """
    m, n = vanish.shape[-2:]
    return x * jnp.where(vanish, _huge(m, n, largest), 1 / jnp.where(vanish, 1, divisors))


def _huge(m: int, n: int, largest: Array) -> Array:
    """Distinct huge values, which are not reciprocals of gaps. Products with values of the matrix are finite and do not
    cancel.
    """
    numbers = jnp.finfo(largest.dtype)
    digits = (2**0.5 * numpy.arange(m)[:, None] + 3**0.5 * numpy.arange(n)) % 1
    huge = jnp.exp2(jnp.array(0.75 * numbers.maxexp, largest.dtype)) / jnp.where(largest == 0, 1, largest)
    return jnp.minimum(huge, numbers.max * 2.0**-20) * jnp.asarray(1 + digits, largest.dtype)


def _diagonal(x: Array) -> Array:
    result: Array = jnp.diagonal(x, axis1=-2, axis2=-1).real
    return result


# ---- Hermitian matrices ----------------------------------------------------------------------------------------------


def eigh(x: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of the Hermitian part of `x`."""
    return _eigh((x + _adjoint(x)) / 2)


def eigvalsh(x: Array) -> Array:
    """Eigenvalues, ascending, of the Hermitian part of `x`."""
    return _eigvalsh((x + _adjoint(x)) / 2)


@custom_jvp
def _eigh(x: Array) -> tuple[Array, Array]:
    values, vectors = jnp.linalg.eigh(x, symmetrize_input=False)
    return values, vectors


@_eigh.defjvp
def _eigh_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    values, vectors = _eigh(*primals)
    return eigh_derivatives(values, vectors, tangents[0] @ vectors)


def eigh_derivatives(values: Array, vectors: Array, moved: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return the eigenvalues and eigenvectors of a Hermitian matrix, and their changes; `moved` is the product of the
    change of the matrix and the eigenvectors.
    """
    change = _adjoint(vectors) @ moved
    equal = _are_equal(values, _rounding(values, values.shape[-1]))
    turn = _off_diagonal(_quotient(change, _gaps(values), equal, _largest(values)))
    return (_simple(values, equal), vectors), (_diagonal(change), vectors @ turn)


@custom_jvp
def _eigvalsh(x: Array) -> Array:
    result: Array = jnp.linalg.eigvalsh(x, symmetrize_input=False)
    return result


@_eigvalsh.defjvp
def _eigvalsh_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    values, vectors = _eigh(*primals)
    return simple(values, values.shape[-1]), _diagonal(_adjoint(vectors) @ tangents[0] @ vectors)


# ---- square matrices -------------------------------------------------------------------------------------------------


def eig(x: Array) -> tuple[Array, Array]:
    """Eigenvalues and right eigenvectors, both complex. Only on CPU (and, in newer JAX, NVIDIA GPU)."""
    x, scale = _of_moderate_size(x)
    values, vectors = jnp.linalg.eig(x)
    return values * scale, vectors


@custom_jvp
def eigvals(x: Array) -> Array:
    """Complex eigenvalues. The eigenvalues of a defective matrix have no derivatives, so that the tangents are NaN."""
    x, scale = _of_moderate_size(x)
    result: Array = jnp.linalg.eigvals(x) * scale
    return result


@eigvals.defjvp
def _eigvals_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    values, vectors, inverse = _eigenbasis(*primals)
    moved = jnp.sum((inverse @ tangents[0]) * vectors.mT, axis=-1)
    equal = _are_equal(values, _rounding_of_eigenvalues(values, vectors, inverse))
    # A factor instead of a selection, since the reverse of a selection gives zeros.
    exists = jnp.where(are_dependent(vectors, inverse, -0.75), jnp.nan, 1)[..., None]
    return _simple(values, equal), moved * exists


@custom_jvp
def _eigenbasis(x: Array) -> tuple[Array, Array, Array]:
    """Eigenvalues, eigenvectors, and the inverse of the eigenvector matrix."""
    values, vectors = eig(x)
    return values, vectors, jnp.linalg.inv(vectors)


@_eigenbasis.defjvp
def _eigenbasis_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    """Derivatives of eigenvectors of arbitrary length: they have no component along the eigenvectors. Only products
    with the inverse are independent of this choice.
    """
    values, vectors, inverse = _eigenbasis(*primals)
    change = inverse @ tangents[0] @ vectors
    equal = _are_equal(values, _rounding_of_eigenvalues(values, vectors, inverse))
    # Errors grow with the square of the condition number.
    exists = jnp.where(are_dependent(vectors, inverse, -1 / 3), jnp.nan, 1)[..., None, None]
    turn = _off_diagonal(_quotient(change, _gaps(values), equal, _largest(values))) * exists
    moved = jnp.diagonal(change, axis1=-2, axis2=-1), vectors @ turn, -turn @ inverse
    return (_simple(values, equal), vectors, inverse), moved


def _rounding_of_eigenvalues(values: Array, vectors: Array, inverse: Array) -> Array:
    """`_rounding` for matrices that are not normal, by the Bauer–Fike theorem."""
    n = max(values.shape[-1], 1)
    return _rounding(values, n) * (_size(vectors) * _size(inverse) / n)[..., None, None]


def are_dependent(vectors: Array, inverse: Array, power: float) -> Array:
    """Return whether the condition number of eigenvectors exceeds a power of the rounding error, for each matrix.

    Products with the eigenvectors and their inverse have errors of at least this condition number times the rounding
    error.
    """
    n = max(vectors.shape[-1], 1)
    return ~(_size(vectors) * _size(inverse) / n <= jnp.finfo(vectors.dtype).eps ** power)


def _size(x: Array) -> Array:
    """Frobenius norms."""
    return jnp.sqrt(jnp.sum(x.real**2 + x.imag**2, axis=(-2, -1)))


def _of_moderate_size(x: Array) -> tuple[Array, Array]:
    """Divide matrices by powers of two; return also these powers, (..., 1).

    LAPACK's geev scales matrices with very large or very small elements, but the LAPACK of SciPy 1.17 does not scale
    the eigenvalues back.
    """
    exponent = scaling.exponent(lax.stop_gradient(jnp.max(jnp.abs(x), axis=(-2, -1), keepdims=True, initial=0)))
    divisor, factor = (scaling.power_of_two(e, jnp.finfo(x.dtype).dtype) for e in (-exponent, exponent))
    return x * divisor, factor[..., 0]


# ---- all matrices ----------------------------------------------------------------------------------------------------


def svd(x: Array, *, full_matrices: bool = True) -> tuple[Array, Array, Array]:
    """``U``, the singular values, descending, and ``Vh``. Full ``U`` and ``Vh`` of a rectangular matrix have no
    derivative.
    """
    if full_matrices and x.shape[-2] != x.shape[-1]:
        u, s, vh = jnp.linalg.svd(x)
        return u, s, vh
    return _thin_svd(x)


@custom_jvp
def _thin_svd(x: Array) -> tuple[Array, Array, Array]:
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    return u, s, vh


@_thin_svd.defjvp
def _thin_svd_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    """Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008), section 3.4."""
    (x,), (change,) = primals, tangents
    u, s, vh = _thin_svd(x)
    v, inner = _adjoint(vh), _adjoint(u) @ change @ _adjoint(vh)
    rounding = _rounding(s, max(x.shape[-2:]))
    equal, across = _are_equal(s, rounding), s[..., None, :]
    together = _off_diagonal(_quotient(inner + _adjoint(inner), _gaps(s), equal, _largest(s)))
    apart = _off_diagonal(_over_sums(inner, s, rounding))
    # A common phase of a pair of complex vectors is arbitrary: assign all of it to `u`.
    phase = jnp.where(jnp.eye(s.shape[-1], dtype=bool), _over_sums(inner, s, 0), 0)
    du = u @ ((together + apart) / 2 + phase)
    dv = v @ ((together - apart) / 2)
    if u.shape[-2] > u.shape[-1]:
        outside = change @ v
        du += _quotient(outside - u @ (_adjoint(u) @ outside), across, across <= rounding, _largest(s))
    if v.shape[-2] > v.shape[-1]:
        outside = _adjoint(change) @ u
        dv += _quotient(outside - v @ (vh @ outside), across, across <= rounding, _largest(s))
    return (u, _simple(s, equal), vh), (du, _diagonal(inner), _adjoint(dv))


def _over_sums(inner: Array, s: Array, rounding: Array | float) -> Array:
    """The skew part of a square matrix over sums of singular values."""
    sums = s[..., None, :] + s[..., :, None]
    return _quotient(inner - _adjoint(inner), sums, sums <= rounding, _largest(s))


@custom_jvp
def svdvals(x: Array) -> Array:
    """Singular values, descending."""
    return jnp.linalg.svd(x, compute_uv=False)


@svdvals.defjvp
def _svdvals_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (change,) = primals, tangents
    u, s, vh = _thin_svd(x)
    return simple(s, max(x.shape[-2:])), _diagonal(_adjoint(u) @ change @ _adjoint(vh))


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def singular_value(x: Array, i: int) -> Array:
    """One of the singular values in descending order: 0 is the largest, -1 the smallest."""
    return svdvals(x)[..., i]


@singular_value.defjvp
def _singular_value_jvp(i: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (change,) = primals, tangents
    u, s, vh = _thin_svd(x)
    moved = (u[..., :, None, i].mT.conj() @ change @ vh[..., i, :, None].conj())[..., 0, 0].real
    return simple(s, max(x.shape[-2:]), i), moved


@custom_jvp
def nuclear_norm(x: Array) -> Array:
    """The sum of the singular values."""
    return jnp.sum(svdvals(x), axis=-1)


@nuclear_norm.defjvp
def _nuclear_norm_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return nuclear_norm(*primals), jnp.sum((unitary_factor(*primals).conj() * tangents[0]).real, axis=(-2, -1))


@custom_jvp
def unitary_factor(x: Array) -> Array:
    """``U @ Vh``, the unitary factor of the polar decomposition. Without full rank it is not unique, and has no
    derivative.
    """
    u, _, vh = _thin_svd(x)
    return u @ vh


@unitary_factor.defjvp
def _unitary_factor_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (change,) = primals, tangents
    u, s, vh = _thin_svd(x)
    v, inner, across = _adjoint(vh), _adjoint(u) @ change @ _adjoint(vh), s[..., None, :]
    rounding = _rounding(s, max(x.shape[-2:]))
    tangent = u @ _over_sums(inner, s, rounding) @ vh
    if u.shape[-2] > u.shape[-1]:
        outside = change @ v
        tangent += _quotient(outside - u @ (_adjoint(u) @ outside), across, across <= rounding, _largest(s)) @ vh
    if v.shape[-2] > v.shape[-1]:
        outside = _adjoint(change) @ u
        tangent += u @ _adjoint(_quotient(outside - v @ (vh @ outside), across, across <= rounding, _largest(s)))
    return u @ vh, tangent
