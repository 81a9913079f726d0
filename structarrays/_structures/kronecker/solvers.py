"""Linear systems, factors, determinants and spectra of Kronecker products, computed from the factors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import jax.numpy as jnp
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import right_side, to_dense
from ..._core.assumptions import is_hermitian
from ..._core.dispatch.recording import remark
from ..._core.families.entries import element
from ..._core.families.factored import chain
from ..._functions.elementwise import multiply
from ..._functions.linalg import (  # fmt: skip
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    matrix_power,
    pinv,
    qr,
    selected_inverse,
    slogdet,
    solve,
    svd,
    svdvals,
)
from ..._functions.linalg.systems import logarithms
from ..._functions.matrix_checks import real_dtype
from ..._numerics import determinants, kronecker_factors
from ..._numerics.symbolic import as_number, is_symbolic, power, smaller
from ..._numerics.undefined import nan_unless
from ..._numerics.vectors import by_columns
from ..composite.part_solvers import all_true
from ..composite.product import product
from ..fallback.singular_values import norm_and_rank, nuclear_norm, spectral_norm, tolerance
from ..low_rank.array import LowRank, low_rank
from ..permutation.ordered import in_order
from . import promised_factors
from .array import Kronecker, factors_fit, has_hermitian_factors, has_square_factors, kronecker, transformed
from .factors import of_each_factor, of_factor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax


# ---- linear systems --------------------------------------------------------------------------------------------------


def _all_true(x: Kronecker, flags: Sequence[jax.Array]) -> jax.Array:
    """Return whether all flags are true; for a matrix without rows, which is regular for any factors, true."""
    ok = all_true(flags)
    return jnp.ones_like(ok) if smaller(x.shape[-1], 1) else ok


@solve.kernel(Kronecker, Array, when=has_square_factors)
def _solve_kronecker(x1: Kronecker, x2: Array) -> tuple[Dense, jax.Array]:
    """Solve a linear system with each factor along its axis."""
    remark(
        "a linear system with each factor, axis by axis; O(sum(n_i**3) + k N sum(n_i)) for k columns and dense factors"
    )
    flags: list[jax.Array] = []

    def solved(factor: Array, right: Dense) -> Array:
        result: Array
        result, ok = solve.dispatch(factor, right)
        flags.append(ok)
        return result

    solution = by_columns(lambda data: transformed(x1, data, solved), right_side(x2))
    return Dense.make((solution,)), _all_true(x1, flags)


@solve.kernel(Kronecker, Kronecker, when=lambda x1, x2: has_square_factors(x1) and factors_fit(x1, x2))
def _solve_kronecker_kronecker(x1: Kronecker, x2: Kronecker) -> tuple[Array, jax.Array]:
    parts, flags = zip(*map(solve.dispatch, x1.factors, x2.factors), strict=True)
    return kronecker(*parts), _all_true(x1, flags)


@solve.kernel(Kronecker, LowRank, when=has_square_factors)
def _solve_kronecker_low_rank(x1: Kronecker, x2: LowRank) -> tuple[Array, jax.Array]:
    u, ok = solve.dispatch(x1, to_dense(x2.u))
    return low_rank(u, x2.v), ok


@inv.kernel(Kronecker, when=has_square_factors)
def _inv_kronecker(x: Kronecker) -> tuple[Array, jax.Array]:
    inverses, flags = zip(*map(inv.dispatch, x.factors), strict=True)
    parts = [p.assuming(f.assumptions - {"positive_semidefinite"}) for p, f in zip(inverses, x.factors, strict=True)]
    return kronecker(*parts), _all_true(x, flags)


@selected_inverse.kernel(Kronecker, when=has_square_factors)
def _selected_inverse_kronecker(x: Kronecker) -> tuple[Array, jax.Array]:
    parts, flags = zip(*map(selected_inverse.dispatch, x.factors), strict=True)
    return kronecker(*parts), _all_true(x, flags)


@cholesky.kernel(Kronecker, when=has_square_factors)
def _cholesky_kronecker(x: Kronecker, *, upper: bool) -> tuple[Array, jax.Array]:
    """The factors of a definite product are definite except for scalars of magnitude 1, whose product is 1."""
    phases = [_first_phase(f) for f in x.factors]
    parts, flags = [], []
    for factor, phase in zip(x.factors, phases, strict=True):
        number = Dense.make((1 / phase[..., None, None],))
        part, ok = of_factor(cholesky, multiply(factor, number), x.shape[-1], upper=upper)
        parts.append(part)
        flags.append(ok)
    positive = ~jnp.any(chain(jnp.multiply, phases).real <= 0)
    return kronecker(*parts), _all_true(x, [*flags, positive])


def _first_phase(factor: Array) -> jax.Array:
    """The first diagonal element divided by its magnitude; real if the factor is known to be Hermitian."""
    dtype = real_dtype(factor.dtype) if is_hermitian(factor) else factor.dtype
    if factor.shape[-1] == 0:
        return jnp.ones(factor.shape[:-2], dtype)
    zero = jnp.zeros((), int)
    first = lax.stop_gradient(element(factor, zero, zero))
    first = first.astype(dtype) if dtype == factor.dtype else first.real
    return jnp.where(first == 0, 1, first / jnp.where(first == 0, 1, jnp.abs(first)))


def _are_tall_or_wide(x: Kronecker, *, mode: str) -> bool:
    """Return whether R (or Q) of the factors is square. Only then is the product of these triangular matrices
    triangular.
    """
    shapes = [f.shape[-2:] for f in x.factors]
    wide = all(m <= n for m, n in shapes)
    return wide or (mode == "reduced" and all(m >= n for m, n in shapes))


@qr.kernel(Kronecker, when=_are_tall_or_wide)
def _qr_kronecker(x: Kronecker, *, mode: str) -> tuple[Array, Array]:
    q, r = zip(*of_each_factor(qr, x, mode=mode), strict=True)
    return kronecker(*q), kronecker(*r)


@matrix_power.kernel(Kronecker, when=has_square_factors)
def _matrix_power_kronecker(x: Kronecker, *, n: int) -> Array:
    return kronecker(*(matrix_power.dispatch(f, n=n) for f in x.factors))


# ---- determinants ------------------------------------------------------------------------------------------------------


def _multiplicities(x: Kronecker) -> list[int]:
    """Multiplicity of each factor in the block-diagonal matrix that has the same determinant."""
    return [math.prod(g.shape[-1] for j, g in enumerate(x.factors) if j != i) for i in range(len(x.factors))]


def _power(value: jax.Array, p: int) -> jax.Array:
    return power(value, p) if is_symbolic(p) else value**p


@det.kernel(Kronecker, when=has_square_factors)
def _det_kronecker(x: Kronecker) -> Dense:
    def multiplied(x: Kronecker) -> jax.Array:
        values = (det.dispatch(f).dense_data() for f in x.factors)
        product: jax.Array = chain(
            jnp.multiply, [_power(d, p) for d, p in zip(values, _multiplicities(x), strict=True)]
        )
        return product

    return Dense.make((determinants.of_parts(multiplied, logarithms, x),))


@slogdet.kernel(Kronecker, when=has_square_factors)
def _slogdet_kronecker(x: Kronecker) -> tuple[Dense, Dense]:
    sign, logabsdet = jnp.ones(x.shape[:-2], x.dtype), jnp.zeros(x.shape[:-2], real_dtype(x.dtype))
    for factor, p in zip(x.factors, _multiplicities(x), strict=True):
        if p:
            own_sign, own_log = slogdet.dispatch(factor)
            sign, logabsdet = (
                sign * _power(own_sign.dense_data(), p),
                logabsdet + as_number(p, x.dtype) * own_log.dense_data(),
            )
    return Dense.make((sign,)), Dense.make((logabsdet,))


# ---- eigenvalues -------------------------------------------------------------------------------------------------------


@eigvals.kernel(Kronecker, when=has_square_factors)
def _eigvals_kronecker(x: Kronecker) -> Dense:
    return Dense.make((kronecker_factors.products(v.dense_data() for v in of_each_factor(eigvals, x)),))


@eig.kernel(Kronecker, when=has_square_factors)
def _eig_kronecker(x: Kronecker) -> tuple[Dense, Array]:
    """Eigenvalues may be in any order, so that the eigenvectors are a Kronecker product."""
    values, vectors = zip(*of_each_factor(eig, x), strict=True)
    return Dense.make((kronecker_factors.products(v.dense_data() for v in values),)), kronecker(*vectors)


def _unknown(x: Kronecker) -> list[Array]:
    """The factors that are not known to be Hermitian, if these are two or more."""
    unknown = [] if has_hermitian_factors(x) else [f for f in x.factors if not is_hermitian(f)]
    return unknown if len(unknown) > 1 else []


@eigvalsh.kernel(Kronecker, when=has_square_factors)
def _eigvalsh_kronecker(x: Kronecker) -> Dense:
    values = kronecker_factors.products(v.dense_data() for v in of_each_factor(eigvalsh, x))
    if _unknown(x):
        values = promised_factors.eigenvalues([f.dense_data() for f in x.factors], values)
    return Dense.make((jnp.sort(values, axis=-1),))


@eigh.kernel(Kronecker, when=has_square_factors)
def _eigh_kronecker(x: Kronecker) -> tuple[Dense, Array]:
    """The eigenvectors are products, unless two factors are antisymmetric: then all results are NaN."""
    each, vectors = zip(*of_each_factor(eigh, x), strict=True)
    products = kronecker_factors.products(v.dense_data() for v in each)
    unknown = _unknown(x)
    if unknown:
        hermitian = promised_factors.are_hermitian([f.dense_data() for f in unknown])
        products = nan_unless(hermitian[..., None], products)
        first = multiply(vectors[0], Dense.make((jnp.where(hermitian, 1, jnp.nan)[..., None, None].astype(x.dtype),)))
        vectors = (first, *vectors[1:])
    values, order = in_order(products, x.dtype)
    return values, product(kronecker(*vectors), order.mT)


# ---- singular values ---------------------------------------------------------------------------------------------------


def _singular_values(x: Kronecker) -> jax.Array:
    """All products of singular values of the factors, ``(..., k)`` with ``k <= min(M, N)``; the others are zero."""
    parts = []
    for f in x.factors:
        empty = jnp.zeros((*f.shape[:-2], 0), real_dtype(f.dtype))
        parts.append(of_factor(svdvals, f, max(x.shape[-2:])).dense_data() if min(f.shape[-2:]) else empty)
    return kronecker_factors.products(parts)


@svdvals.kernel(Kronecker)
def _svdvals_kronecker(x: Kronecker) -> Dense:
    values = _singular_values(x)
    zeros = min(x.shape[-2:]) - values.shape[-1]
    values = jnp.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, zeros)])
    return Dense.make((jnp.sort(values, axis=-1, descending=True),))


def _has_all_vectors(x: Kronecker, *, full_matrices: bool) -> bool:
    """Return whether the singular vectors of the factors are all that is requested."""
    shapes = [f.shape[-2:] for f in x.factors]
    if full_matrices:
        return all(m == n > 0 for m, n in shapes)
    return 0 not in x.shape[-2:] and (all(m >= n for m, n in shapes) or all(m <= n for m, n in shapes))


@svd.kernel(Kronecker, when=_has_all_vectors)
def _svd_kronecker(x: Kronecker, *, full_matrices: bool) -> tuple[Array, Dense, Array]:
    u, s, vh = zip(*of_each_factor(svd, x, full_matrices=full_matrices), strict=True)
    products = kronecker_factors.products(v.dense_data() for v in s)
    values, order = in_order(products, x.dtype, descending=True)
    return product(kronecker(*u), order.mT), values, product(order, kronecker(*vh))


norm_and_rank(
    Kronecker,
    norms={
        "nuc": lambda x: cast("jax.Array", math.prod(map(nuclear_norm, x.factors))),
        2: lambda x: cast("jax.Array", math.prod(map(spectral_norm, x.factors))),
    },
)


@pinv.kernel(Kronecker)
def _pinv_kronecker(x: Kronecker, *, rtol: jax.Array | None) -> Array:
    """Factor by factor, with tolerances relative to the largest singular value of each factor."""
    return kronecker(*of_each_factor(pinv, x, rtol=tolerance(x, rtol)))
