"""Kronecker sums, and Kronecker products plus a multiple of the identity, by the eigenvectors of their Hermitian
factors.

``A ⊗ B + c I`` and ``A ⊕ B`` have the eigenvectors of ``A ⊗ B``, and the eigenvalues ``λ μ + c`` and ``λ + μ``. Linear
systems and determinants need only the tridiagonal form of one factor (see `kronecker_factors`). If some factor is not
known to be Hermitian, linear systems use the Schur forms of the factors, which JAX provides on CPUs. Other devices use
the dense form, if the policy allows it.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import right_side
from ..._core.assumptions import is_hermitian, self_adjoint
from ..._core.dispatch.recording import remark
from ..._core.dispatch.registry import Registry
from ..._core.families.conditions import is_square_pattern
from ..._core.families.factored import with_batch
from ..._functions.linalg import det, eig, eigh, eigvals, eigvalsh, inv, matrix_transpose, slogdet, solve
from ..._functions.linalg.systems import POSITIVE_DEFINITE
from ..._numerics import kronecker_factors, kronecker_schur
from ..banded.diagonal import Diagonal, Identity
from ..composite.det_by_slogdet import det_by_slogdet
from ..composite.inverse import inverse_by
from ..composite.part_solvers import linear_product, solution
from ..composite.product import product
from ..composite.sum import Sum
from ..fill.array import Fill
from ..permutation.ordered import in_order
from . import kronecker_determinants, promised_factors
from .array import Kronecker, has_hermitian_factors, has_square_factors, is_scaled_identity, kronecker
from .factors import dense_factor, of_each_factor
from .kronecker_sum import KroneckerSum

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from ..._core.typing import Result
    from ..composite.part_solvers import Solver

    Terms: TypeAlias = tuple[Kronecker, Identity]

diagonal_of: Registry[jax.Array] = Registry("diagonal_of")
"""``diagonal_of.kernel(A)``: return the diagonal ``(..., n)`` of a matrix that is diagonal by its class, so that no
eigenvectors are needed.
"""


@diagonal_of.kernel(Diagonal, when=is_square_pattern)
def _diagonal_of_diagonal(x: Diagonal) -> jax.Array:
    return x.diag


@self_adjoint.kernel(Sum)
def _self_adjoint_sum(x: Sum) -> bool:
    return all(map(is_hermitian, x.terms))


@self_adjoint.kernel(Fill, when=lambda x: x.dtype.kind != "c" and x.core_ndim == 2 and x.shape[-2] == x.shape[-1])
def _self_adjoint_fill(x: Fill) -> bool:
    return True


class Spectral(NamedTuple):
    """A matrix with the eigenvectors of its factors, as arguments of `kronecker_factors`."""

    factors: tuple[jax.Array, ...]
    shift: jax.Array
    spectrum: Callable[..., jax.Array]
    diagonal: tuple[bool, ...]


def _spectral(factors: Sequence[Array], shift: jax.Array, spectrum: Callable[..., jax.Array], name: str) -> Spectral:
    """The factors as dense matrices, or their diagonals, for the function of this name."""
    data = [_diagonal(f) for f in factors]
    rows = math.prod(f.shape[-1] for f in factors)
    dense = [dense_factor(f, rows, name).data if d is None else d for f, d in zip(factors, data, strict=True)]
    return Spectral(tuple(dense), shift, spectrum, tuple(d is not None for d in data))


def _diagonal(x: Array) -> jax.Array | None:
    found = diagonal_of.choose((x,), {})
    return None if found is None else found.run(x)


# ---- conditions ------------------------------------------------------------------------------------------------------


def _terms(x: Sum) -> Terms | None:
    """Return the Kronecker product and the multiple of the identity that a sum consists of; None for every other sum.

    A `Diagonal` never counts as a multiple of the identity, whatever its values.
    """
    by_class: dict[type[Array], Any] = {type(t): t for t in x.terms}
    if len(x.terms) != 2 or set(by_class) != {Identity, Kronecker}:
        return None
    product, number = by_class[Kronecker], by_class[Identity]
    return (product, number) if is_scaled_identity(number) and has_square_factors(product) else None


def _is_shifted(x: Sum, *args: Any) -> bool:
    """Return whether a sum is a Kronecker product with Hermitian factors plus a multiple of the identity."""
    terms = _terms(x)
    return terms is not None and has_hermitian_factors(terms[0])


def _is_hermitian(x: Array) -> bool:
    """Return whether the factors are known to be Hermitian. A Hermitian Kronecker sum has such factors alone."""
    return is_hermitian(x) if type(x) is KroneckerSum else _is_shifted(cast("Sum", x))


def _promised(x: Array) -> tuple[bool, ...] | None:
    """Return which factors are known to be Hermitian, if the whole sum is promised to be, and some factors are not; otherwise None."""
    terms = None if type(x) is KroneckerSum else _terms(cast("Sum", x))
    if terms is None or _is_hermitian(x) or not is_hermitian(x):
        return None
    return tuple(map(is_hermitian, terms[0].factors))


def has_schur() -> bool:
    """Return whether JAX provides the Schur form on this device."""
    return jax.default_backend() == "cpu"


def _is_solved(x: Array, *args: Any) -> bool:
    """Return whether linear systems of a Kronecker sum, or of a sum of two terms, are solved by the factors."""
    if type(x) is Sum and _terms(x) is None:
        return False
    return _is_hermitian(x) or _promised(x) is not None or has_schur()


def _parts(x: Array, name: str) -> Spectral:
    if type(x) is Sum:
        product, number = cast("Terms", _terms(x))
        return _spectral(product.factors, number.scale, kronecker_factors.product_spectrum, name)
    factors = cast("KroneckerSum", x).factors
    return _spectral(factors, jnp.zeros(x.shape[:-2], x.dtype), kronecker_factors.sum_spectrum, name)


# ---- linear systems and determinants ---------------------------------------------------------------------------------


@solve.kernel(Sum, Array, when=_is_solved, before="of_low_rank")
@solve.kernel(KroneckerSum, Array, when=_is_solved)
def _solve_by_spectra(x1: Sum | KroneckerSum, x2: Array) -> tuple[Dense, jax.Array]:
    data = right_side(x2)
    return _solved(x1, data)


def _solved(x: Array, data: jax.Array) -> tuple[Dense, jax.Array]:
    right = data[:, None] if data.ndim == 1 else data
    batch = jnp.broadcast_shapes(x.shape[:-2], right.shape[:-2])
    right = jnp.broadcast_to(right, batch + right.shape[-2:])
    x = with_batch(x, batch) if x.ndim > 2 else x

    times = linear_product(x)
    cost = "O(sum(n_i**3) + k N sum(n_i)) for k columns"
    substitute = _solver(x)
    if substitute is not None:
        remark(
            f"the eigenvectors of the factors, since the matrix is known to be Hermitian, or the tridiagonal form of the largest factor if "
            f"that is cheaper; {cost}"
        )
        solution, regular = kronecker_factors.solve(times, right, substitute)
    else:
        remark(
            f"the Schur forms of the factors, since some are not known to be Hermitian (`sa.assume` makes it known, of the matrix or of "
            f"the factors); {cost}"
        )
        solution, regular = kronecker_schur.solve(times, right, *_parts(x, "linalg.solve"))
    return Dense.make((solution[..., 0] if data.ndim == 1 else solution,)), jnp.all(regular)


def _solver(x: Array) -> Callable[..., tuple[jax.Array, jax.Array]] | None:
    """The solver by eigenvectors of the factors; None if the matrix is not known to be Hermitian."""
    known, positive = _promised(x), POSITIVE_DEFINITE in x.assumptions
    if known is not None:
        return promised_factors.solver(*_parts(x, "linalg.solve"), known=known, positive=positive)
    if _is_hermitian(x):
        return kronecker_factors.solver(*_parts(x, "linalg.solve"), positive=positive)
    return None


def solvers_by_spectra(x: Array) -> tuple[Solver, Solver]:
    """Return functions of data that solve linear systems with such a sum, and with its transpose, without derivatives.

    They share the eigenvectors of Hermitian factors.
    """
    substitute = _solver(x)
    if substitute is None:
        return functools.partial(solution, x), lambda data: solution(matrix_transpose.dispatch(x), data)
    return functools.partial(substitute, transposed=False), functools.partial(substitute, transposed=True)


@inv.kernel(Sum, when=_is_solved, before="of_low_rank")
@inv.kernel(KroneckerSum, when=_is_solved)
def _inv_by_spectra(x: Sum | KroneckerSum) -> Result:
    return inverse_by(_solved, x)


@slogdet.kernel(Sum, when=_is_solved, before="of_low_rank")
@slogdet.kernel(KroneckerSum, when=_is_solved)
def _slogdet_by_spectra(x: Sum | KroneckerSum) -> tuple[Dense, ...]:
    parts, known = _parts(x, "linalg.slogdet"), _promised(x)
    if known is not None:
        results = promised_factors.slogdet(*parts, known=known)
    else:
        results = kronecker_determinants.slogdet(*parts, hermitian=_is_hermitian(x))
    return tuple(Dense.make((part,)) for part in results)


det.kernel(Sum, when=_is_solved, before="of_low_rank")(det_by_slogdet)
det.kernel(KroneckerSum, when=_is_solved)(det_by_slogdet)


# ---- eigenvalues -------------------------------------------------------------------------------------------------------


def _has_real_spectrum(x: Sum) -> bool:
    return _is_shifted(x) or _promised(x) is not None


@eigvalsh.kernel(Sum, when=_has_real_spectrum)
def _eigvalsh_sum(x: Sum) -> Dense:
    product, number = cast("Terms", _terms(x))
    return Dense.make((eigvalsh.dispatch(product).data + number.scale.real[..., None],))


@eigh.kernel(Sum, when=_has_real_spectrum)
def _eigh_sum(x: Sum) -> tuple[Dense, Array]:
    product, number = cast("Terms", _terms(x))
    values, vectors = eigh.dispatch(product)
    return Dense.make((values.data + number.scale.real[..., None],)), vectors


def _is_shifted_product(x: Sum) -> bool:
    return _terms(x) is not None


@eigvals.kernel(Sum, when=_is_shifted_product, before="of_low_rank")
def _eigvals_sum(x: Sum) -> Dense:
    product, number = cast("Terms", _terms(x))
    values = eigvals.dispatch(product).data
    return Dense.make((values + number.scale[..., None].astype(values.dtype),))


@eig.kernel(Sum, when=_is_shifted_product)
def _eig_sum(x: Sum) -> tuple[Dense, Array]:
    product, number = cast("Terms", _terms(x))
    values, vectors = eig.dispatch(product)
    return Dense.make((values.data + number.scale[..., None].astype(values.dtype),)), vectors


@eigvalsh.kernel(KroneckerSum)
def _eigvalsh_kronecker_sum(x: KroneckerSum) -> Dense:
    """The Hermitian part of a sum is the sum of the Hermitian parts, so that the factors can be general."""
    return Dense.make((jnp.sort(kronecker_factors.sums(v.dense_data() for v in of_each_factor(eigvalsh, x)), axis=-1),))


@eigh.kernel(KroneckerSum)
def _eigh_kronecker_sum(x: KroneckerSum) -> tuple[Dense, Array]:
    each, vectors = zip(*of_each_factor(eigh, x), strict=True)
    values, order = in_order(kronecker_factors.sums(v.dense_data() for v in each), x.dtype)
    return values, product(kronecker(*vectors), order.mT)


@eigvals.kernel(KroneckerSum)
def _eigvals_kronecker_sum(x: KroneckerSum) -> Dense:
    return Dense.make((kronecker_factors.sums(v.dense_data() for v in of_each_factor(eigvals, x)),))


@eig.kernel(KroneckerSum)
def _eig_kronecker_sum(x: KroneckerSum) -> tuple[Dense, Array]:
    values, vectors = zip(*of_each_factor(eig, x), strict=True)
    return Dense.make((kronecker_factors.sums(v.dense_data() for v in values),)), kronecker(*vectors)
