r"""Determinants of Kronecker products with a multiple of the identity added, and of Kronecker sums.

The eigenvalues are products or sums of the factors' eigenvalues. They depend on the eigenvalue :math:`\lambda` of one factor :math:`A_i` as
:math:`\alpha_k \lambda + \beta_k`, so

.. math:: d \log \det M = \sum_i \mathrm{tr}(G_i\, dA_i), \qquad G_i = \sum_k \alpha_k (\alpha_k A_i + \beta_k I)^{-1} .

In the eigenvectors of :math:`A_i` the matrix :math:`G_i` is diagonal. The formula for its derivative does not differentiate the
eigenvectors, so that it is right for repeated eigenvalues.

The inverse of the eigenvectors of a Hermitian factor is their adjoint. Eigenvectors of another factor may be nearly dependent, so that
their inverse is wrong: the factor is nearly defective. Then the sum over k is computed by the Schur form, and second derivatives are NaN.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import lax

from ..._numerics import dense_factors, determinants
from ..._numerics import dense_spectra as spectra
from ..._numerics import packed_triangles as triangles
from ..._numerics.flags import custom_jvp
from ..._numerics.kronecker_factors import bases, eigenbasis, flat, largest_factor, tridiagonal_systems
from ..._numerics.tridiagonal_form import pivots

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    import numpy as np
    from jax import Array

    Spectrum: TypeAlias = Callable[[Sequence[Array], Array], Array]
    Arguments: TypeAlias = tuple[tuple[Array, ...], Array]


class Eigenbasis(NamedTuple):
    """The eigenvectors of a factor. A factor that is given by its diagonal needs none."""

    values: Array
    vectors: Array | None
    inverse: Array | None


def slogdet(
    factors: Sequence[Array], shift: Array, spectrum: Spectrum, diagonal: tuple[bool, ...], *, hermitian: bool
) -> tuple[Array, Array]:
    """Sign and logarithm of the magnitude of the determinant.

    Parameters
    ----------
    factors, shift, spectrum, diagonal
        As in `kronecker_factors.solver`.
    hermitian : bool
        Whether all factors are known to be Hermitian.

    Notes
    -----
    The logarithm of the determinant is the sum of the logarithms of the eigenvalues. Without derivatives, pivots of tridiagonal matrices
    replace the eigenvalues of matrices with Hermitian factors.
    """
    result: tuple[Array, Array]
    if hermitian:
        result = _by_pivots(tuple(factors), shift, spectrum, diagonal)
    else:
        result = _by_eigenvalues(tuple(factors), shift, spectrum, diagonal, False)
    return result


@functools.partial(custom_jvp, nondiff_argnums=(2, 3))
def _by_pivots(
    factors: tuple[Array, ...], shift: Array, spectrum: Spectrum, diagonal: tuple[bool, ...]
) -> tuple[Array, Array]:
    found, largest = bases(factors, shift, diagonal), largest_factor(factors, diagonal)
    if largest is None:
        numbers = spectrum(found.values, shift)
    else:
        numbers = pivots(*tridiagonal_systems(found, spectrum, shift, largest))
    return determinants.sign_and_logarithm(numbers, tuple(range(-len(factors), 0)))


@_by_pivots.defjvp
def _by_pivots_jvp(
    spectrum: Spectrum, diagonal: tuple[bool, ...], primals: Arguments, tangents: Arguments
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    return jax.jvp(lambda *args: _by_eigenvalues(*args, spectrum, diagonal, True), primals, tangents)


@functools.partial(custom_jvp, nondiff_argnums=(2, 3, 4))
def _by_eigenvalues(
    factors: tuple[Array, ...], shift: Array, spectrum: Spectrum, diagonal: tuple[bool, ...], hermitian: bool
) -> tuple[Array, Array]:
    dtype = _dtype(shift, hermitian)
    if hermitian:
        values = [eigenbasis(f, d)[0] for f, d in zip(factors, diagonal, strict=True)]
    else:
        values = [f if d else spectra.eigvals(f) for f, d in zip(factors, diagonal, strict=True)]
    eigenvalues = spectrum([v.astype(dtype) for v in values], shift.astype(dtype))
    sign, logabsdet = determinants.sign_and_logarithm(eigenvalues, tuple(range(-len(values), 0)))
    return (sign if jnp.iscomplexobj(shift) else jnp.sign(sign.real)), logabsdet


@_by_eigenvalues.defjvp
def _by_eigenvalues_jvp(
    spectrum: Spectrum, diagonal: tuple[bool, ...], hermitian: bool, primals: Arguments, tangents: Arguments
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The derivative is the trace of ``M⁻¹ dM``."""
    sign, logabsdet = _by_eigenvalues(*primals, spectrum, diagonal, hermitian)
    gradients, by_shift = _gradients(*primals, spectrum, diagonal, hermitian)
    changes, change = tangents
    total = by_shift * change
    for g, d, is_diagonal in zip(gradients, changes, diagonal, strict=True):
        total = total + (jnp.sum(g * d, axis=-1) if is_diagonal else jnp.sum(g.mT * d, axis=(-2, -1)))
    if jnp.iscomplexobj(sign):
        return (sign, logabsdet), (sign * 1j * total.imag, total.real)
    return (sign, logabsdet), (jnp.zeros_like(sign), total)


# ---- derivatives by the factors ----------------------------------------------------------------------------------------


@functools.partial(custom_jvp, nondiff_argnums=(2, 3, 4))
def _gradients(
    factors: tuple[Array, ...], shift: Array, spectrum: Spectrum, diagonal: tuple[bool, ...], hermitian: bool
) -> Arguments:
    """For each factor, return the matrix ``G`` (its diagonal for a diagonal factor), and the derivative by the shift."""
    found = _eigenbases(factors, shift, diagonal, hermitian)
    values = [basis.values for basis in found]
    weights, by_shift = _weights(spectrum, values, shift.astype(values[0].dtype))
    results = []
    for i, (factor, weight, basis) in enumerate(zip(factors, weights, found, strict=True)):
        if basis.vectors is None or basis.inverse is None:
            results.append(weight)
        elif hermitian:
            results.append(_with_eigenvalues(weight, basis))
        else:
            defective = determinants.any_of_all(spectra.are_dependent(basis.vectors, basis.inverse, -1 / 2))
            by_schur_form = functools.partial(_sum_of_resolvents, factor, *_line(spectrum, values, shift, i))
            results.append(lax.cond(defective, by_schur_form, functools.partial(_with_eigenvalues, weight, basis)))
    return tuple(_like(r, shift) for r in results), _like(by_shift, shift)


@_gradients.defjvp
def _gradients_jvp(
    spectrum: Spectrum, diagonal: tuple[bool, ...], hermitian: bool, primals: Arguments, tangents: Arguments
) -> tuple[Arguments, Arguments]:
    """``dG = d(V w V⁻¹)``: on the diagonal, in the eigenvectors, what follows from the change of the eigenvalues and the shift; off it,
    for the elements ``p, q`` of ``V⁻¹ dA V``, the sum over the other axes of ``-s / (λ_p λ_q)``, with s the square of the
    spectrum's derivative by the factor's eigenvalues. A third derivative differentiates the eigenvectors.
    """
    (factors, shift), (changes, change) = primals, tangents
    found = _eigenbases(factors, shift, diagonal, hermitian)
    values = [basis.values for basis in found]
    dtype = values[0].dtype
    rotated = [
        d.astype(dtype) if basis.vectors is None or basis.inverse is None else basis.inverse @ d @ basis.vectors
        for d, basis in zip(changes, found, strict=True)
    ]
    slopes = [
        (r if is_diagonal else triangles.diagonal(r)).astype(dtype)
        for r, is_diagonal in zip(rotated, diagonal, strict=True)
    ]
    _, (on_diagonal, by_shift) = jax.jvp(
        functools.partial(_weights, spectrum), (values, shift.astype(dtype)), (slopes, change.astype(dtype))
    )
    exists = _has_second_derivatives(found, shift, hermitian)
    results = []
    for i, (r, basis, on) in enumerate(zip(rotated, found, on_diagonal, strict=True)):
        if basis.vectors is None or basis.inverse is None:
            results.append(exists[..., None] * on)
            continue
        ratio = _rows(_slope(spectrum, values, shift.astype(dtype), i), i - len(values), len(values))
        identity = jnp.eye(r.shape[-1], dtype=bool)
        inner = jnp.where(identity, on[..., :, None], -(ratio @ ratio.mT) * r)
        results.append(exists[..., None, None] * (basis.vectors @ inner @ basis.inverse))
    moved = tuple(_like(r, shift) for r in results), _like(exists * by_shift, shift)
    return _gradients(*primals, spectrum, diagonal, hermitian), moved


def _has_second_derivatives(found: Sequence[Eigenbasis], shift: Array, hermitian: bool) -> Array:
    """Return one for matrices whose second derivatives are accurate, else NaN. It is used as a factor, since the
    reverse of a selection gives zeros.

    The errors grow with the square of the condition number of the eigenvectors.
    """
    defective = jnp.zeros(shift.shape, bool)
    for basis in found:
        if basis.vectors is not None and basis.inverse is not None and not hermitian:
            defective |= spectra.are_dependent(basis.vectors, basis.inverse, -1 / 3)
    return jnp.where(defective, jnp.nan, 1)


def _with_eigenvalues(values: Array, basis: Eigenbasis) -> Array:
    """Matrix with these eigenvalues."""
    vectors, inverse = cast("tuple[Array, Array]", basis[1:])
    return (vectors * values[..., None, :]) @ inverse


def _sum_of_resolvents(factor: Array, slopes: Array, constants: Array) -> Array:
    """``sum_k a_k (a_k A + b_k I)⁻¹``, one term after the other, by the Schur form of ``A``."""
    upper, unitary = (x.astype(slopes.dtype) for x in dense_factors.schur(factor.astype(slopes.dtype)))
    identity = jnp.broadcast_to(jnp.eye(upper.shape[-1], dtype=upper.dtype), upper.shape)

    def add(total: Array, numbers: tuple[Array, ...]) -> tuple[Array, None]:
        a, b = (x[..., None, None] for x in numbers)
        return total + a * lax.linalg.triangular_solve(a * upper + b * identity, identity, left_side=True), None

    total, _ = lax.scan(add, jnp.zeros_like(upper), tuple(jnp.moveaxis(x, -1, 0) for x in (slopes, constants)))
    return unitary @ total @ unitary.mT.conj()


# ---- eigenvectors and spectra --------------------------------------------------------------------------------------------


def _dtype(shift: Array, hermitian: bool) -> np.dtype:
    """The dtype of the spectrum."""
    return shift.dtype if hermitian else jnp.result_type(shift, jnp.complex64)


def _like(x: Array, shift: Array) -> Array:
    """Convert to real if the matrix is real: complex eigenvalues then come in conjugate pairs."""
    return x if jnp.iscomplexobj(shift) else x.real


def _eigenbases(
    factors: Sequence[Array], shift: Array, diagonal: tuple[bool, ...], hermitian: bool
) -> list[Eigenbasis]:
    dtype = _dtype(shift, hermitian)
    found = []
    for factor, is_diagonal in zip(factors, diagonal, strict=True):
        if is_diagonal:
            values = factor.real if hermitian else factor
            found.append(Eigenbasis(values.astype(dtype), None, None))
            continue
        values, vectors = (spectra.eigh if hermitian else spectra.eig)(factor)
        inverse = vectors.mT.conj() if hermitian else jnp.linalg.inv(vectors)
        found.append(Eigenbasis(values.astype(dtype), vectors, inverse))
    return found


def _weights(spectrum: Spectrum, values: list[Array], shift: Array) -> tuple[list[Array], Array]:
    """The derivative of the sum of the logarithms of the spectrum by the eigenvalues of each factor and by the shift."""
    eigenvalues, pull = jax.vjp(spectrum, values, shift)
    by_values, by_shift = pull(1 / eigenvalues)
    return by_values, by_shift


def _of_one(spectrum: Spectrum, values: list[Array], shift: Array, i: int, value: Array) -> tuple[Array, Array]:
    """The spectrum, and its derivative by the eigenvalues of factor i, which are set to `value`."""

    def of_one(v: Array) -> Array:
        return spectrum([*values[:i], v, *values[i + 1 :]], shift)

    return jax.jvp(of_one, (value,), (jnp.ones_like(value),))


def _slope(spectrum: Spectrum, values: list[Array], shift: Array, i: int) -> Array:
    """The derivative of the logarithm of the spectrum by the eigenvalues of one factor."""
    eigenvalues, slope = _of_one(spectrum, values, shift, i, values[i])
    return slope / eigenvalues


def _line(spectrum: Spectrum, values: list[Array], shift: Array, i: int) -> tuple[Array, ...]:
    """The spectrum as a linear function of one eigenvalue of factor i: slopes and constants, each ``(..., k)`` for all
    other eigenvalues.
    """
    zero, axes = jnp.zeros_like(values[i]), len(values)
    constant, slope = _of_one(spectrum, values, shift.astype(zero.dtype), i, zero)
    return tuple(_rows(jnp.broadcast_to(x, constant.shape), i - axes, axes)[..., 0, :] for x in (slope, constant))


def _rows(tensor: Array, axis: int, axes: int) -> Array:
    """Move one of the last `axes` axes in front of the others, and flatten the others."""
    moved = jnp.moveaxis(tensor, axis, tensor.ndim - axes)
    return flat(moved, axes - 1) if axes > 1 else moved[..., None]
