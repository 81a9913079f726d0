r"""Eigenvalues and singular values, with second derivatives that are not wrong without a sign of it.

The first derivative of a value :math:`\lambda_i` is :math:`v_i^* \dot A v_i`. The second one differentiates the vectors, which divides by
the gaps :math:`\lambda_i - \lambda_j`. A gap of repeated values is zero or a rounding error, and its reciprocal is arbitrary. The second
derivative of a function f of the values needs :math:`(f_i - f_j) / (\lambda_i - \lambda_j)` with the first derivatives :math:`f_i` of f. No
rule for the values can compute that for repeated ones, since its limit needs the second derivatives of f.

So a huge number replaces the reciprocals of such gaps: about 1e231 (in 32 bits 1e29) over the largest value. A second derivative that
depends on them is NaN, infinite or as huge. A second derivative that does not depend on them is right, since a finite number times zero is
zero. An example is the second derivative of the largest value if smaller values are repeated. `nuclear_norm` has derivatives without gaps.
"""

import jax.numpy as jnp
from jax import Array, lax

from structarrays.kernels import scaling
from structarrays.kernels.flags import custom_jvp

__all__ = ["are_dependent", "eig", "eigh", "eigvals", "eigvalsh", "nuclear_norm", "svd", "svdvals"]


def _adjoint(x: Array) -> Array:
    return x.mT.conj()


def _largest(values: Array) -> Array:
    return jnp.max(jnp.abs(values), axis=-1, initial=0)[..., None, None]


def _rounding(values: Array, n: int) -> Array:
    """Largest difference of two computed values of n rows that are equal. LAPACK's errors are a few rounding errors of the largest value."""
    return 8 * n**0.5 * jnp.finfo(values.dtype).eps * _largest(values)


def _huge(values: Array) -> Array:
    """A number that no reciprocal of a gap has. Its products with numbers of the size of the values are finite."""
    numbers = jnp.finfo(values.dtype)
    largest = _largest(values)
    huge = jnp.exp2(jnp.array(0.75 * numbers.maxexp, values.dtype)) / jnp.where(largest == 0, 1, largest)
    return jnp.minimum(huge, numbers.max * 2.0**-20)


def _reciprocals(values: Array, n: int) -> Array:
    """The reciprocals of ``values[j] - values[i]``, zero on the diagonal; a huge number where the gap is a rounding error."""
    gaps = values[..., None, :] - values[..., :, None]
    repeated = jnp.abs(gaps) <= _rounding(values, n)
    reciprocals = jnp.where(repeated, _huge(values), 1 / jnp.where(repeated, 1, gaps))
    return jnp.where(jnp.eye(gaps.shape[-1], dtype=bool), 0, reciprocals)


def _diagonal(x: Array) -> Array:
    return jnp.diagonal(x, axis1=-2, axis2=-1).real


# ---- Hermitian matrices ----------------------------------------------------------------------------------------------


def eigh(x: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of the Hermitian part of `x`."""
    return _eigh((x + _adjoint(x)) / 2)


def eigvalsh(x: Array) -> Array:
    """Eigenvalues, ascending, of the Hermitian part of `x`."""
    return _eigvalsh((x + _adjoint(x)) / 2)


@custom_jvp
def _eigh(x):
    values, vectors = jnp.linalg.eigh(x, symmetrize_input=False)
    return values, vectors


@_eigh.defjvp
def _eigh_jvp(primals, tangents):
    values, vectors = _eigh(*primals)
    change = _adjoint(vectors) @ tangents[0] @ vectors
    moved = vectors @ (_reciprocals(values, values.shape[-1]) * change)
    return (values, vectors), (_diagonal(change), moved)


@custom_jvp
def _eigvalsh(x):
    return jnp.linalg.eigvalsh(x, symmetrize_input=False)


@_eigvalsh.defjvp
def _eigvalsh_jvp(primals, tangents):
    values, vectors = _eigh(*primals)
    return values, _diagonal(_adjoint(vectors) @ tangents[0] @ vectors)


# ---- square matrices -------------------------------------------------------------------------------------------------


def eig(x: Array) -> tuple[Array, Array]:
    """Eigenvalues and right eigenvectors, both complex. On CPU (and, in newer JAX, NVIDIA GPU) only."""
    x, scale = _of_moderate_size(x)
    values, vectors = jnp.linalg.eig(x)
    return values * scale, vectors


@custom_jvp
def eigvals(x: Array) -> Array:
    """Eigenvalues, complex. Those of a defective matrix have no derivatives, so that the tangents are NaN."""
    x, scale = _of_moderate_size(x)
    return jnp.linalg.eigvals(x) * scale


@eigvals.defjvp
def _eigvals_jvp(primals, tangents):
    values, vectors = eig(*primals)
    inverse = jnp.linalg.inv(vectors)
    moved = jnp.sum((inverse @ tangents[0]) * vectors.mT, axis=-1)
    # A factor, and no selection: the reverse of a selection gives zeros.
    return values, moved * jnp.where(are_dependent(vectors, inverse, -0.75), jnp.nan, 1)[..., None]


def are_dependent(vectors: Array, inverse: Array, power: float) -> Array:
    """Whether the condition number of eigenvectors exceeds a power of the rounding error, for each matrix.

    Products with the eigenvectors and their inverse have errors of this number times the rounding error, or more.
    """

    def size(x):
        return jnp.sqrt(jnp.sum(x.real**2 + x.imag**2, axis=(-2, -1)))

    n = max(vectors.shape[-1], 1)
    return ~(size(vectors) * size(inverse) / n <= jnp.finfo(vectors.dtype).eps ** power)


def _of_moderate_size(x):
    """Matrices divided by powers of two, and these powers, (..., 1).

    LAPACK's geev scales matrices with very large or very small elements, but the LAPACK of SciPy 1.17 does not scale the eigenvalues back.
    """
    exponent = scaling.exponent(lax.stop_gradient(jnp.max(jnp.abs(x), axis=(-2, -1), keepdims=True, initial=0)))
    divisor, factor = (scaling.power_of_two(e, jnp.finfo(x.dtype).dtype) for e in (-exponent, exponent))
    return x * divisor, factor[..., 0]


# ---- all matrices ----------------------------------------------------------------------------------------------------


def svd(x: Array, *, full_matrices: bool = True) -> tuple[Array, Array, Array]:
    """``U``, the singular values, descending, and ``Vh``; all of ``U`` and ``Vh`` of a matrix that is not square has no derivative."""
    if full_matrices and x.shape[-2] != x.shape[-1]:
        u, s, vh = jnp.linalg.svd(x)
        return u, s, vh
    return _thin_svd(x)


@custom_jvp
def _thin_svd(x):
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    return u, s, vh


@_thin_svd.defjvp
def _thin_svd_jvp(primals, tangents):
    """Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008), section 3.4."""
    (x,), (change,) = primals, tangents
    u, s, vh = _thin_svd(x)
    v, inner = _adjoint(vh), _adjoint(u) @ change @ _adjoint(vh)
    across, down = s[..., None, :], s[..., :, None]
    sums = jnp.where(across + down == 0, 1, across + down)
    reciprocals, across_part, down_part = _reciprocals(s, max(x.shape[-2:])), across / sums, down / sums
    # A common phase of a pair of complex vectors changes nothing: all of it goes into `u`.
    phase = (inner - _adjoint(inner)) / 2 * jnp.where(across == 0, 0, 1 / jnp.where(across == 0, 1, across))
    phase = jnp.where(jnp.eye(s.shape[-1], dtype=bool), phase, 0)
    du = u @ (reciprocals * (inner * across_part + _adjoint(inner) * down_part) + phase)
    dv = v @ (reciprocals * (inner * down_part + _adjoint(inner) * across_part))
    if u.shape[-2] > u.shape[-1]:
        outside = change @ v
        du += (outside - u @ (_adjoint(u) @ outside)) / across
    if v.shape[-2] > v.shape[-1]:
        outside = _adjoint(change) @ u
        dv += (outside - v @ (vh @ outside)) / across
    return (u, s, vh), (du, _diagonal(inner), _adjoint(dv))


@custom_jvp
def svdvals(x: Array) -> Array:
    """Singular values, descending."""
    return jnp.linalg.svd(x, compute_uv=False)


@svdvals.defjvp
def _svdvals_jvp(primals, tangents):
    u, s, vh = _thin_svd(*primals)
    return s, _diagonal(_adjoint(u) @ tangents[0] @ _adjoint(vh))


@custom_jvp
def nuclear_norm(x: Array) -> Array:
    """The sum of the singular values."""
    return jnp.sum(svdvals(x), axis=-1)


@nuclear_norm.defjvp
def _nuclear_norm_jvp(primals, tangents):
    return nuclear_norm(*primals), jnp.sum((_unitary_factor(*primals).conj() * tangents[0]).real, axis=(-2, -1))


@custom_jvp
def _unitary_factor(x):
    """``U @ Vh``, the factor of the polar decomposition. Without full rank it is one of many, and has no derivative."""
    u, _, vh = _thin_svd(x)
    return u @ vh


@_unitary_factor.defjvp
def _unitary_factor_jvp(primals, tangents):
    (x,), (change,) = primals, tangents
    u, s, vh = _thin_svd(x)
    v, inner, across = _adjoint(vh), _adjoint(u) @ change @ _adjoint(vh), s[..., None, :]
    sums = across + s[..., :, None]
    vanishing = sums <= _rounding(s, max(x.shape[-2:]))
    reciprocals = jnp.where(vanishing, _huge(s), 1 / jnp.where(vanishing, 1, sums))
    tangent = u @ (reciprocals * (inner - _adjoint(inner))) @ vh
    if u.shape[-2] > u.shape[-1]:
        outside = change @ v
        tangent += ((outside - u @ (_adjoint(u) @ outside)) / across) @ vh
    if v.shape[-2] > v.shape[-1]:
        outside = _adjoint(change) @ u
        tangent += u @ _adjoint((outside - v @ (vh @ outside)) / across)
    return u @ vh, tangent
