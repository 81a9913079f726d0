r"""Factors of Kronecker products that are promised to be Hermitian as a whole.

Let :math:`A_1 \otimes \dots \otimes A_k` be Hermitian and not zero. Then each factor is Hermitian up to a number of magnitude 1, which is 1
for nearly all users. But the product of two antisymmetric matrices is symmetric, too. With
:math:`a = \langle A, A^H \rangle / \lVert A \rVert^2`, which has magnitude 1 for such a factor, :math:`\sqrt{a}\, A` is Hermitian.

Real factors are therefore symmetric or antisymmetric. Symmetric factors are used as they are. If some are antisymmetric, the same formulas
are used for complex factors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import lax

from ..._numerics import dense_spectra as spectra
from ..._numerics import kronecker_factors
from ..._numerics.undefined import nan_unless
from . import kronecker_determinants

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jax import Array

    Spectrum = Callable[..., Array]


def _ratio(factor: Array, is_diagonal: bool) -> Array:
    """``⟨A, Aᴴ⟩ / ‖A‖²``; 1 unless its magnitude is 1 up to rounding. Then another factor is zero, or the promise is broken."""
    frozen = lax.stop_gradient(factor)
    axes = (-1,) if is_diagonal else (-2, -1)
    other = frozen if is_diagonal else frozen.mT
    largest = jnp.max(jnp.abs(frozen), axis=axes, keepdims=True, initial=0)
    scale = jnp.where(largest > 0, 1 / jnp.where(largest > 0, largest, 1), 0)
    frozen, other = frozen * scale, other * scale
    product = jnp.sum((frozen * other).conj(), axis=axes)
    norm = jnp.sum(jnp.square(jnp.abs(frozen)), axis=axes)
    ratio = product / jnp.where(norm > 0, norm, 1)
    return jnp.where(jnp.abs(ratio) > 0.99, ratio, 1)


def _rotated(factors: Sequence[Array], diagonal: Sequence[bool], known: Sequence[bool]) -> tuple[Array, ...]:
    """The factors times numbers of magnitude 1, as Hermitian matrices with the same Kronecker product."""
    dtype = jnp.result_type(*factors, jnp.complex64)
    results, whole = [], jnp.ones((), dtype)
    for factor, is_diagonal, is_known in zip(factors, diagonal, known, strict=True):
        data = factor.astype(dtype)
        if not is_known:
            phase = jnp.sqrt(_ratio(factor, is_diagonal).astype(dtype))
            phase = phase / jnp.abs(phase)
            data = data * phase.reshape(*phase.shape, *(1,) * (1 if is_diagonal else 2))
            whole = whole / phase
        results.append(data)
    sign = jnp.where(whole.real < 0, -1, 1).astype(dtype)  # the numbers have the product 1 or -1
    first = results[0] * sign.reshape(*sign.shape, *(1,) * (1 if diagonal[0] else 2))
    return (first, *results[1:])


def _are_symmetric(factors: Sequence[Array], diagonal: Sequence[bool], known: Sequence[bool]) -> Array:
    """Return whether no real factor is antisymmetric."""
    fine = jnp.array(True)
    for factor, is_diagonal, is_known in zip(factors, diagonal, known, strict=True):
        if not (is_diagonal or is_known):
            fine &= jnp.all(_ratio(factor, False) >= 0)
    return fine


def solver(
    factors: Sequence[Array],
    shift: Array,
    spectrum: Spectrum,
    diagonal: tuple[bool, ...],
    *,
    known: Sequence[bool],
    positive: bool,
) -> Callable[..., tuple[Array, Array]]:
    """Return a function as `kronecker_factors.solver` does; `known` says which factors are known to be Hermitian."""
    if jnp.iscomplexobj(shift):
        return kronecker_factors.solver(
            _rotated(factors, diagonal, known), shift, spectrum, diagonal, positive=positive
        )
    straight = kronecker_factors.solver(factors, shift, spectrum, diagonal, positive=positive)
    symmetric = _are_symmetric(factors, diagonal, known)

    def substitute(b: Array, *, transposed: bool) -> tuple[Array, Array]:
        def by_complex_factors(b: Array) -> tuple[Array, Array]:
            others = _rotated(factors, diagonal, known)
            dtype = others[0].dtype
            other = kronecker_factors.solver(others, shift.astype(dtype), spectrum, diagonal, positive=positive)
            x, ok = other(b.astype(dtype), transposed=transposed)
            return x.real, ok

        result: tuple[Array, Array] = lax.cond(
            symmetric, lambda b: straight(b, transposed=transposed), by_complex_factors, b
        )
        return result

    return substitute


def slogdet(
    factors: Sequence[Array], shift: Array, spectrum: Spectrum, diagonal: tuple[bool, ...], *, known: Sequence[bool]
) -> tuple[Array, Array]:
    """Sign and logarithm of the magnitude of the determinant, as of `kronecker_determinants.slogdet`."""

    def by_rotated_factors(factors: Sequence[Array], shift: Array) -> tuple[Array, Array]:
        others = _rotated(factors, diagonal, known)
        return kronecker_determinants.slogdet(others, shift.astype(others[0].dtype), spectrum, diagonal, hermitian=True)

    def by_complex_factors(factors: Sequence[Array], shift: Array) -> tuple[Array, Array]:
        sign, logabsdet = by_rotated_factors(factors, shift)
        return jnp.sign(sign.real), logabsdet

    def straight(factors: Sequence[Array], shift: Array) -> tuple[Array, Array]:
        return kronecker_determinants.slogdet(factors, shift, spectrum, diagonal, hermitian=True)

    if jnp.iscomplexobj(shift):
        return by_rotated_factors(factors, shift)
    symmetric = _are_symmetric(factors, diagonal, known)
    result: tuple[Array, Array] = lax.cond(symmetric, straight, by_complex_factors, tuple(factors), shift)
    return result


# ---- eigenvalues -------------------------------------------------------------------------------------------------------


def are_hermitian(factors: Sequence[Array]) -> Array:
    """Return whether the Hermitian part of the Kronecker product of some matrices is the product of their Hermitian parts, (...).

    With the Hermitian and antihermitian parts H and S of two factors, it is ``H ⊗ H + S ⊗ S``, so that ``S ⊗ S`` has to be negligible.
    """
    shares = []
    for factor in map(lax.stop_gradient, factors):
        whole, part = (
            jnp.sum(jnp.square(jnp.abs(a)), axis=(-2, -1)) for a in (factor, (factor - factor.mT.conj()) / 2)
        )
        shares.append(jnp.sqrt(part / jnp.where(whole == 0, 1, whole)))
    ordered = jnp.sort(jnp.stack(shares), axis=0)
    return ordered[-1] * ordered[-2] <= 100 * jnp.finfo(factors[0].dtype).eps


def eigenvalues(factors: Sequence[Array], values: Array) -> Array:
    """Eigenvalues of the Hermitian part of a Kronecker product, in any order; NaN if they are no products of numbers.

    Parameters
    ----------
    factors : sequence of (..., n_i, n_i)
    values : (..., N)
        The products of the eigenvalues of the Hermitian parts of the factors.
    """

    def rotated(factors: Sequence[Array]) -> Array:
        every = (False,) * len(factors)
        others = _rotated(factors, every, every)
        found = kronecker_factors.products(map(spectra.eigvalsh, others))
        checked: Array = nan_unless(are_hermitian(others)[..., None], found)
        return checked

    fine = are_hermitian(factors)
    chosen: Array = lax.cond(jnp.all(fine), lambda _: values, rotated, tuple(factors))
    return jnp.where(fine[..., None], values, chosen)
