r"""Determinants of Kronecker products beside a multiple of the identity, and of Kronecker sums, with factors that need not be Hermitian.

The eigenvalues are sums of eigenvalues of the factors, or products. As a function of those of one factor :math:`A_i` they are
:math:`\alpha_k \lambda + \beta_k`, so

.. math:: d \log \det M = \sum_i \mathrm{tr}(G_i\, dA_i), \qquad G_i = \sum_k \alpha_k (\alpha_k A_i + \beta_k I)^{-1} .

In the eigenvectors of :math:`A_i` the matrix :math:`G_i` is diagonal, and so is nearly all of its derivative. Eigenvectors of a nearly defective
matrix are nearly dependent, and their inverse is wrong. Then the sum over k is computed with the Schur form, and second derivatives are NaN.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from structarrays.kernels import determinants, spectra, triangles
from structarrays.kernels.flags import custom_jvp
from structarrays.kernels.kronecker import rows_of, slope_of, weights_of


@functools.partial(custom_jvp, nondiff_argnums=(2, 3))
def slogdet(factors, shift, spectrum, diagonal):
    """Sign and logarithm of the magnitude of the determinant; the arguments are those of `kernels.kronecker.slogdet`."""
    dtype = jnp.result_type(shift, jnp.complex64)
    values = [f if d else spectra.eigvals(f) for f, d in zip(factors, diagonal, strict=True)]
    eigenvalues = spectrum([v.astype(dtype) for v in values], shift.astype(dtype))
    sign, logabsdet = determinants.sign_and_logarithm(eigenvalues, tuple(range(-len(values), 0)))
    return (sign if jnp.iscomplexobj(shift) else jnp.sign(sign.real)), logabsdet


@slogdet.defjvp
def slogdet_jvp(spectrum, diagonal, primals, tangents):
    """The derivative is the trace of ``M⁻¹ dM``."""
    sign, logabsdet = slogdet(*primals, spectrum, diagonal)
    gradients, by_shift = _gradients(*primals, spectrum, diagonal)
    changes, change = tangents
    total = by_shift * change
    for g, d, is_diagonal in zip(gradients, changes, diagonal, strict=True):
        total = total + (jnp.sum(g * d, axis=-1) if is_diagonal else jnp.sum(g.mT * d, axis=(-2, -1)))
    if jnp.iscomplexobj(sign):
        return (sign, logabsdet), (sign * 1j * total.imag, total.real)
    return (sign, logabsdet), (jnp.zeros_like(sign), total)


@functools.partial(custom_jvp, nondiff_argnums=(2, 3))
def _gradients(factors, shift, spectrum, diagonal):
    """For each factor the matrix ``G`` (of a diagonal one its diagonal), and the derivative by the shift."""
    found = _eigenbases(factors, shift, diagonal)
    values = [v for v, _, _ in found]
    weights, by_shift = weights_of(spectrum, values, shift.astype(values[0].dtype))
    results = []
    for i, (factor, weight, (_, vectors, inverse)) in enumerate(zip(factors, weights, found, strict=True)):
        if vectors is None:
            results.append(weight)
            continue
        by_vectors = functools.partial(lambda w, v, inverse: (v * w[..., None, :]) @ inverse, weight, vectors, inverse)
        by_resolvents = functools.partial(_sum_of_resolvents, factor, *_line(spectrum, values, shift, i))
        defective = determinants.any_of_all(spectra.are_dependent(vectors, inverse, -1 / 2))
        results.append(lax.cond(defective, by_resolvents, by_vectors))
    return tuple(_like(r, shift) for r in results), _like(by_shift, shift)


@_gradients.defjvp
def gradients_jvp(spectrum, diagonal, primals, tangents):
    """As for Hermitian factors, with the inverse of the eigenvectors for their adjoint."""
    (factors, shift), (changes, change) = primals, tangents
    found = _eigenbases(factors, shift, diagonal)
    values = [v for v, _, _ in found]
    dtype = values[0].dtype
    rotated = [d.astype(dtype) if v is None else w @ d @ v for d, (_, v, w) in zip(changes, found, strict=True)]
    slopes = [r if is_diagonal else triangles.diagonal(r) for r, is_diagonal in zip(rotated, diagonal, strict=True)]
    _, (on_diagonal, by_shift) = jax.jvp(
        functools.partial(weights_of, spectrum), (values, shift.astype(dtype)), (slopes, change.astype(dtype))
    )
    defective = jnp.zeros(shift.shape, bool)
    for _, vectors, inverse in found:
        if vectors is not None:
            defective |= spectra.are_dependent(vectors, inverse, -1 / 3)  # errors grow with the square of that
    unknown = jnp.where(defective, jnp.nan, 1)  # a factor, and no selection: the reverse of a selection gives zeros
    results = []
    for i, (r, (_, vectors, inverse), on) in enumerate(zip(rotated, found, on_diagonal, strict=True)):
        if vectors is None:
            results.append(unknown[..., None] * on)
            continue
        ratio = rows_of(slope_of(spectrum, values, shift.astype(dtype), i), i - len(values), len(values))
        identity = jnp.eye(r.shape[-1], dtype=bool)
        moved = vectors @ jnp.where(identity, on[..., :, None], -(ratio @ ratio.mT) * r) @ inverse
        results.append(unknown[..., None, None] * moved)
    by_shift = unknown * by_shift
    return _gradients(*primals, spectrum, diagonal), (tuple(_like(r, shift) for r in results), _like(by_shift, shift))


def _like(x, shift):
    """Real if the matrix is: then the eigenvalues that are not real come in pairs."""
    return x if jnp.iscomplexobj(shift) else x.real


def _eigenbases(factors, shift, diagonal):
    """For each factor the eigenvalues, the eigenvectors and their inverse; of one that is given by its diagonal None for the last two."""
    dtype = jnp.result_type(shift, jnp.complex64)
    found = []
    for factor, is_diagonal in zip(factors, diagonal, strict=True):
        if is_diagonal:
            found.append((factor.astype(dtype), None, None))
            continue
        values, vectors = spectra.eig(factor)
        found.append((values.astype(dtype), vectors, jnp.linalg.inv(vectors)))
    return found


def _line(spectrum, values, shift, i):
    """The spectrum as a function of one eigenvalue of a factor: slopes and constants, each ``(..., k)`` for all others."""
    shift, axes = shift.astype(values[0].dtype), len(values)

    def of_one(v):
        return spectrum([*values[:i], v, *values[i + 1 :]], shift)

    constant, slope = jax.jvp(of_one, (jnp.zeros_like(values[i]),), (jnp.ones_like(values[i]),))
    return tuple(rows_of(jnp.broadcast_to(x, constant.shape), i - axes, axes)[..., 0, :] for x in (slope, constant))


def _sum_of_resolvents(factor, slopes, constants):
    """``sum_k a_k (a_k A + b_k I)⁻¹``, one after the other, by the Schur form of ``A``."""
    upper, unitary = (x.astype(slopes.dtype) for x in lax.linalg.schur(factor.astype(slopes.dtype)))
    identity = jnp.broadcast_to(jnp.eye(upper.shape[-1], dtype=upper.dtype), upper.shape)

    def add(total, numbers):
        a, b = (x[..., None, None] for x in numbers)
        return total + a * lax.linalg.triangular_solve(a * upper + b * identity, identity, left_side=True), None

    total, _ = lax.scan(add, jnp.zeros_like(upper), tuple(jnp.moveaxis(x, -1, 0) for x in (slopes, constants)))
    return unitary @ total @ unitary.mT.conj()
