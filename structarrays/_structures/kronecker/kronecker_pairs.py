r"""Sums of two Kronecker products in which each axis has one definite factor: separable noise, mass matrices.

In :math:`A_1 \otimes A_2 + D_1 \otimes D_2` let :math:`D_i = L_i L_i^H` be positive definite, and :math:`B_i = L_i^{-1} A_i L_i^{-H}`. Then

.. math:: A_1 \otimes A_2 + D_1 \otimes D_2 = (L_1 \otimes L_2)\,(B_1 \otimes B_2 + I)\,(L_1 \otimes L_2)^H .

If the definite factors belong to different terms, the matrix in the middle is a Kronecker sum:

.. math:: A_1 \otimes D_2 + D_1 \otimes A_2 = (L_1 \otimes L_2)\,(B_1 \oplus B_2)\,(L_1 \otimes L_2)^H .

Both have closed forms (`kronecker_spectra`). Negative definite diagonal factors change the signs in the middle. The eigenvalues of
:math:`B_i` solve the generalized eigenvalue problem :math:`A_i z = \lambda D_i z`.

If the sum is not known to be Hermitian, and some :math:`A_i` is not, :math:`B_i = D_i^{-1} A_i`, and the factor on the left is
:math:`D_1 \otimes D_2`.

References: R. E. Lynch, J. R. Rice, D. H. Thomas, "Direct solution of partial difference equations by tensor product methods", Numerische
Mathematik 6 (1964), for mass matrices; B. Rakitsch, C. Lippert, K. Borgwardt, O. Stegle, "It is all in the noise: Efficient multi-task
Gaussian process inference with structured residuals", NIPS 2013, for noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.assumptions import IMPLIED, is_hermitian
from ..._core.dispatch.recording import remark
from ..._core.families.conditions import is_square_pattern
from ..._core.families.factored import chain
from ..._functions.elementwise import multiply
from ..._functions.linalg import cholesky, det, inv, matrix_transpose, slogdet, solve
from ..._functions.linalg.systems import POSITIVE_DEFINITE, logarithms
from ..._functions.rounding_and_parts import conj
from ..banded.diagonal import Diagonal, Identity
from ..composite.dense_fallback import by_parts_or_dense, for_parts_of
from ..composite.det_by_slogdet import det_by_slogdet
from ..composite.inverse import inverse_by
from ..composite.part_solvers import checked, solution, solved, without_derivatives
from ..composite.sum import Sum
from .array import MARKS, Kronecker, has_square_factors, same_factor_shapes
from .factors import dense_factor
from .kronecker_spectra import has_schur, solvers_by_spectra
from .kronecker_sum import KroneckerSum

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import jax

    from ..._core.typing import Result

# ---- the choice of the definite factors --------------------------------------------------------------------------------


class Choice(NamedTuple):
    """For each axis the term with the definite factor, and whether the other factors, or the whole, are known to be Hermitian."""

    terms: tuple[int, ...]
    hermitian: bool


def _choice(x: Sum) -> Choice | None:
    """Return the choice (static), or None if this sum has no closed form. Diagonal factors of the last term come first."""
    if len(x.terms) != 2 or any(type(t) is not Kronecker for t in x.terms) or x.full_size:
        return None
    first, second = cast("Sequence[Kronecker]", x.terms)
    if not (has_square_factors(first) and same_factor_shapes(first, second)):
        return None
    pairs = list(zip(first.factors, second.factors, strict=True))
    choices = [(term,) * len(pairs) for term in (1, 0)]
    choices += [(1, 0), (0, 1)] if len(pairs) == 2 else []
    for known in (_is_real_diagonal, _is_definite):
        for terms in choices:
            if all(known(pair[t]) for pair, t in zip(pairs, terms, strict=True)):
                others = (pair[1 - t] for pair, t in zip(pairs, terms, strict=True))
                choice = Choice(terms, all(map(is_hermitian, others)) or is_hermitian(x))
                if choice.hermitian or has_schur():
                    return choice
    return None


def _is_real_diagonal(x: Array) -> bool:
    """Return whether a matrix is known to be diagonal and Hermitian. Its values decide later whether it is definite."""
    return isinstance(x, Diagonal) and is_square_pattern(x) and is_hermitian(x)


def _is_definite(x: Array) -> bool:
    return _is_real_diagonal(x) or POSITIVE_DEFINITE in x.assumptions


def _is_paired(x: Sum, *args: Any) -> bool:
    return _choice(x) is not None


# ---- the three factors -------------------------------------------------------------------------------------------------


class PairFactors(NamedTuple):
    """``left @ middle @ right``; `definite` is the Kronecker product of the definite factors."""

    left: Array
    middle: Array
    right: Array | None
    definite: Kronecker


def _factored(x: Sum, name: str) -> PairFactors:
    choice = cast("Choice", _choice(x))
    terms = cast("Sequence[Kronecker]", x.terms)
    pairs = list(zip(*(t.factors for t in terms), strict=True))
    definite = [pair[t] for pair, t in zip(pairs, choice.terms, strict=True)]
    others = [_diagonal_or_dense(pair[1 - t], x, name) for pair, t in zip(pairs, choice.terms, strict=True)]
    signs = [_sign(d) if choice.hermitian else jnp.ones(x.shape[:-2], x.dtype) for d in definite]
    left = [_root(d, s) if choice.hermitian else d for d, s in zip(definite, signs, strict=True)]
    parts = [_quotient(l, a, choice.hermitian) for l, a in zip(left, others, strict=True)]

    middle: Array
    if len(set(choice.terms)) > 1:
        parts = [_times(p, s) for p, s in zip(parts, signs[::-1], strict=True)]
        middle = KroneckerSum.make(tuple(parts))
    else:
        one = Identity.make((chain(jnp.multiply, signs), None), x.shape[-2:])
        middle = Sum.make((Kronecker.make(tuple(parts)), one))
    if choice.hermitian:
        middle = middle.assuming(IMPLIED[POSITIVE_DEFINITE] if POSITIVE_DEFINITE in x.assumptions else _hermitian(x))
    right = Kronecker.make(tuple(map(_adjoint, left))) if choice.hermitian else None
    return PairFactors(Kronecker.make(tuple(left)), middle, right, Kronecker.make(tuple(definite)))


def _times(x: Array, sign: jax.Array) -> Array:
    product: Array = multiply.dispatch(x, Dense.make((sign[..., None, None],)))
    return product.assuming(x.assumptions)


def _adjoint(x: Array) -> Array:
    adjoint: Array = matrix_transpose.dispatch(conj.dispatch(x))
    return adjoint


def _diagonal_or_dense(factor: Array, whole: Sum, name: str) -> Array:
    """The factor, dense unless it is diagonal."""
    if isinstance(factor, Diagonal) and is_square_pattern(factor):
        return factor
    return dense_factor(factor, whole.shape[-1], name)


def _sign(definite: Any) -> jax.Array:
    """1, or -1 for diagonal matrices whose first element is negative, (...)."""
    if _is_real_diagonal(definite) and definite.shape[-1]:
        (values,) = definite.entries
        first = values if isinstance(definite, Identity) else values[..., 0]
        return jnp.where(first.real < 0, -1, 1).astype(definite.dtype)
    return jnp.ones(definite.shape[:-2], definite.dtype)


def _root(definite: Any, sign: jax.Array) -> Array:
    """The lower triangular L with ``L @ Lᴴ`` equal to a definite matrix times its sign; NaN if it is not definite."""
    if _is_real_diagonal(definite):
        (values,) = definite.entries
        values = values * (sign if isinstance(definite, Identity) else sign[..., None])
        diagonal: Array = definite.rebuild((jnp.sqrt(values.real).astype(values.dtype),), None)
        return diagonal
    root: Array = cholesky.dispatch(definite, upper=False)[0]
    return root


def _quotient(left: Array, x: Array, hermitian: bool) -> Array:
    """``L⁻¹ A L⁻ᴴ``, known to be Hermitian if A is, or ``L⁻¹ A``."""
    quotient: Array = solve.dispatch(left, x)[0]
    if not hermitian:
        return quotient
    # (L⁻¹ (L⁻¹ A)ᴴ)ᴴ; the last step changes nothing if A is Hermitian
    quotient = solve.dispatch(left, _adjoint(quotient))[0]
    return quotient.assuming(_hermitian(x)) if is_hermitian(x) else _adjoint(quotient)


def _hermitian(x: Array) -> frozenset[str]:
    """The assumptions about a Hermitian matrix of the data type of x."""
    return IMPLIED["hermitian"] if x.dtype.kind == "c" else MARKS


# ---- linear systems and determinants -----------------------------------------------------------------------------------

_OTHERS = ("by_base_and_low_rank", "of_low_rank")
"""Kernels for sums with a term of low rank, which a Kronecker product with a factor of low rank also is."""


@solve.kernel(Sum, Array, when=_is_paired, before=("solve_by_spectra", "solve_by_transforms", *_OTHERS))
def _solve_by_pairs(x1: Sum, x2: Array) -> tuple[Dense, jax.Array]:
    return solved(x1, x2, _method)


def _method(x1: Sum, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    remark(
        "two Kronecker products with a definite factor on each axis: the eigenvectors of the other factors relative to these, or their "
        "Schur forms, and a check of the residual; O(sum(n_i**3) + k N sum(n_i)) for k columns"
    )
    frozen = without_derivatives(x1)
    with for_parts_of(x1):
        factored = _factored(frozen, "linalg.solve")
        straight, transposed = solvers_by_spectra(factored.middle)
        left, right = factored.left, factored.right

        def approximate(b: jax.Array) -> tuple[jax.Array, jax.Array]:
            x, ok = straight(solution(left, b)[0])
            return (x if right is None else solution(right, x)[0]), ok

        def of_transpose(b: jax.Array) -> tuple[jax.Array, jax.Array]:
            x = b if right is None else solution(matrix_transpose.dispatch(right), b)[0]
            x, ok = transposed(x)
            return solution(matrix_transpose.dispatch(left), x)[0], ok

    return checked(x1, b, approximate, of_transpose)


@inv.kernel(Sum, when=_is_paired, before=("inv_by_spectra", "inv_by_transforms", *_OTHERS))
def _inv_by_pairs(x: Sum) -> Result:
    return inverse_by(lambda x, data: _solve_by_pairs(x, Dense.make((data,))), x)


@slogdet.kernel(Sum, when=_is_paired, before=("slogdet_by_spectra", "slogdet_by_transforms", *_OTHERS))
def _slogdet_by_pairs(x: Sum) -> tuple[Dense, ...]:
    return by_parts_or_dense(slogdet.dispatch, x, _logarithms)


def _logarithms(x: Sum) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
    factored = _factored(x, "linalg.slogdet")
    sign, logabsdet = logarithms(factored.middle)
    more, further = logarithms(factored.definite)
    fine = jnp.isfinite(further) & ~jnp.isnan(logabsdet)
    if factored.right is None:
        sign = sign * more
    return (sign, logabsdet + further), fine


@det.kernel(Sum, when=_is_paired, before=("det_by_slogdet", *_OTHERS))
def _det_by_pairs(x: Sum) -> Dense:
    return det_by_slogdet(x)
