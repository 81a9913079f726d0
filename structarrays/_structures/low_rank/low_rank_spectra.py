"""Singular values, ranks, pseudo-inverses, approximations and determinants of low-rank matrices, from their factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.flattening import parameters
from ..._core.array.operands import densify, to_dense
from ..._core.dispatch.registry import Registry
from ..._core.families.factored import Factored, squared_norms, stored
from ..._core.families.other_forms import by_form
from ..._functions.linalg import (
    det,
    eigvals,
    inv,
    matmul,
    matrix_norm,
    matrix_rank,
    matrix_transpose,
    pinv,
    slogdet,
    solve,
    svdvals,
)
from ..._functions.linalg.approximation import compress
from ..._functions.matrix_checks import complex_dtype, real_dtype
from ..._numerics import low_rank_factors
from ..._numerics.undefined import log_of_zero, nowhere
from ..blocks.block_diagonal import BlockDiagonal
from ..composite.product import Product
from ..composite.sum import Sum, canonical
from ..fallback.singular_values import norm_and_rank, of_singular_values, tolerance
from ..fill.array import Fill
from ..toeplitz.circulant import Circulant
from .array import LowRank, constant_of_rank_one, low_rank

if TYPE_CHECKING:
    import jax

    from ..._core.typing import Shape


low_rank_form: Registry[LowRank] = Registry("low_rank_form")
"""``low_rank_form.kernel(A)``: convert a stack of matrices with a low-rank structure to a `LowRank`."""

bounded_rank: Registry[int | None] = Registry("bounded_rank")
"""``bounded_rank.kernel(A)``: return the number of columns of its `low_rank_form` (static), or None."""


def rank_bound(x: Array) -> int | None:
    """Upper bound of the rank of an array, if its structure implies one."""
    rule = bounded_rank.choose((x,), {})
    return None if rule is None else rule.run(x)


def of_low_rank(x: Array) -> LowRank:
    """Convert an array that has a `rank_bound` to a `LowRank`."""
    return low_rank_form.required((x,)).run(x)


@bounded_rank.kernel(LowRank)
def _bounded_rank_low_rank(x: LowRank) -> int:
    return x.rank


@low_rank_form.kernel(LowRank)
def _low_rank_form_low_rank(x: LowRank) -> LowRank:
    """Form the factors explicitly unless they store entries, so that any two can be joined."""
    return cast("LowRank", x.with_parts(lambda p: p if p.stores_entries else to_dense(p)))


@bounded_rank.kernel(Fill)
def _bounded_rank_fill(x: Fill) -> int:
    return 1


@low_rank_form.kernel(Fill)
def _low_rank_form_fill(x: Fill) -> LowRank:
    return constant_of_rank_one(x)


def is_narrow(x: Product, *args: Array, **static: Any) -> bool:
    """Return whether a chain has an inner dimension so small that the factors on either side of it are smaller than the
    product.
    """
    return 2 * _width(x) <= min(x.shape[-2:])


def _width(x: Product) -> int:
    return min(f.shape[-2] for f in x.factors[1:])


@bounded_rank.kernel(Product, when=is_narrow)
def _bounded_rank_product(x: Product) -> int:
    return _width(x)


@low_rank_form.kernel(Product, when=is_narrow)
def through_narrowest(x: Product) -> LowRank:
    """Split a chain at its smallest inner dimension."""
    place = min(range(1, len(x.factors)), key=lambda k: x.factors[k].shape[-2])
    left, right = (f[0] if len(f) == 1 else Product.make(f) for f in (x.factors[:place], x.factors[place:]))
    return LowRank.make((to_dense(left), to_dense(matrix_transpose(right))))


@bounded_rank.kernel(Sum)
def _bounded_rank_sum(x: Sum) -> int | None:
    ranks: list[Any] = [rank_bound(t) for t in x.terms]
    return None if None in ranks else sum(ranks)


@low_rank_form.kernel(Sum)
def _low_rank_form_sum(x: Sum) -> LowRank:
    return cast("LowRank", canonical([of_low_rank(t) for t in x.terms]))


def has_low_rank(x: Array, *args: Array, **static: Any) -> bool:
    """Return whether a sum and all of its terms have low rank. Terms with implicit factors stay separate."""
    rank = rank_bound(x)
    return rank is not None and rank < min(x.shape[-2:])


# ---- singular values ------------------------------------------------------------------------------------------------


def _factors(x: LowRank) -> tuple[jax.Array, ...]:
    return tuple(p.dense_data() for p in x.parts)


def _is_narrow(x: LowRank, *args: Array, **static: Any) -> bool:
    return x.rank < min(x.shape[-2:])


@svdvals.kernel(LowRank, when=_is_narrow)
def _svdvals_low_rank(x: LowRank) -> Dense:
    values = (
        low_rank_factors.singular_values(*_factors(x)) if x.rank else jnp.zeros((*x.shape[:-2], 0), real_dtype(x.dtype))
    )
    missing = min(x.shape[-2:]) - values.shape[-1]
    return Dense.make((jnp.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)]),))


def _nuclear_norm(x: LowRank) -> jax.Array:
    return low_rank_factors.nuclear_norm(*_factors(x)) if x.rank else jnp.zeros(x.shape[:-2], real_dtype(x.dtype))


def _spectral_norm(x: LowRank) -> jax.Array:
    return low_rank_factors.spectral_norm(*_factors(x)) if x.rank else jnp.zeros(x.shape[:-2], real_dtype(x.dtype))


def significant_values(x: LowRank) -> jax.Array:
    """Singular values, zero where they are rounding errors because columns of the factors cancel."""
    values: jax.Array = svdvals.dispatch(x).data
    return jnp.where(values <= low_rank_factors.rounding_error(*_factors(x))[..., None], 0, values)


norm_and_rank(LowRank, significant_values, norms={"nuc": _nuclear_norm, 2: _spectral_norm}, when=_is_narrow)


@pinv.kernel(LowRank, when=lambda x, *, rtol: _is_narrow(x) and x.rank > 0)
def _pinv_low_rank(x: LowRank, *, rtol: jax.Array | None) -> Array:
    rtol = tolerance(x, rtol)
    batch = jnp.broadcast_shapes(rtol.shape, x.shape[:-2])
    u, v = (jnp.broadcast_to(p, (*batch, *p.shape[-2:])) for p in _factors(x))
    return low_rank(*(Dense.make((p,)) for p in low_rank_factors.pinv(u, v, jnp.broadcast_to(rtol, batch))))


@eigvals.kernel(LowRank, when=_is_narrow)
def _eigvals_low_rank(x: LowRank) -> Dense:
    """The eigenvalues of ``v.mT @ u``, and zeros."""
    u, v = of_low_rank(x).parts
    between = matmul(matrix_transpose(v), u)
    values = eigvals.dispatch(between).dense_data() if x.rank else jnp.zeros((*x.shape[:-2], 0), complex_dtype(x.dtype))
    return Dense.make((jnp.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, x.shape[-1] - x.rank)]),))


by_form(squared_norms, svdvals, matrix_rank, pinv, eigvals, of=Product, when=is_narrow)(through_narrowest)
by_form(svdvals, matrix_rank, pinv, eigvals, of=Sum, when=has_low_rank)(of_low_rank)
for _structure, _has_form in ((Product, is_narrow), (Sum, has_low_rank)):
    by_form(matrix_norm, of=_structure, when=of_singular_values(_has_form))(of_low_rank)
del _structure, _has_form


# ---- approximation --------------------------------------------------------------------------------------------------


@compress.kernel(LowRank)
def _compress_low_rank(x: LowRank, *, rank: int) -> LowRank:
    u, v = _factors(x)
    if not min(rank, x.rank):
        return LowRank.make((Dense.make((u[..., :0],)), Dense.make((v[..., :0],))))
    return LowRank.make(tuple(Dense.make((p,)) for p in low_rank_factors.truncated(u, v, rank)))


@compress.kernel(Array)
def _compress_array(x: Array, *, rank: int) -> Array:
    """Compress the low-rank form if there is one, else the dense form."""
    if rank_bound(x) is not None:
        form = of_low_rank(x)
    else:
        data = densify(x, "linalg.compress").data
        ones = jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), (*x.shape[:-2], x.shape[-1], x.shape[-1]))
        form = LowRank.make((Dense.make((data,)), Dense.make((ones,))))
    result: Array = compress.dispatch(form, rank=rank)
    return result


# ---- matrices that are singular for all values -----------------------------------------------------------------------


def _has_nan(x: LowRank) -> jax.Array:
    return jnp.any(jnp.stack([jnp.any(jnp.isnan(p)) for p in _factors(x)]))


def _nothing(x: LowRank, shape: Shape, *others: Array) -> tuple[Dense, jax.Array]:
    """NaN as the result, and whether that is expected: NaN in the factors propagates."""
    of_parameters = cast("jax.Array", sum(jnp.sum(p) for p in _factors(x))).astype(x.dtype)
    return Dense.make((jnp.broadcast_to(nowhere(of_parameters, *parameters(others)), shape),)), _has_nan(x) | (
        0 in shape
    )


@solve.kernel(LowRank, Array, when=_is_narrow)
def _solve_low_rank(x1: LowRank, x2: Array) -> tuple[Array, jax.Array]:
    if x2.ndim == 1:
        return _nothing(x1, x1.shape[:-1], x2)
    batch = jnp.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    nothing, ok = _nothing(x1, batch, x2)
    return Fill.make((nothing.data,), x2.shape[-2:]), ok


@inv.kernel(LowRank, when=_is_narrow)
def _inv_low_rank(x: LowRank) -> tuple[Array, jax.Array]:
    nothing, ok = _nothing(x, ())
    return Fill.make((jnp.broadcast_to(nothing.data, x.shape[:-2]),), x.shape[-2:]), ok


def _zero(x: LowRank) -> jax.Array:
    """Zero determinants, or NaN if a factor is not finite."""
    zero = sum(jnp.sum(0 * p, axis=(-2, -1)) for p in _factors(x))
    return jnp.broadcast_to(zero, x.shape[:-2]).astype(x.dtype)


@det.kernel(LowRank, when=_is_narrow)
def _det_low_rank(x: LowRank) -> Dense:
    return Dense.make((_zero(x),))


@slogdet.kernel(LowRank, when=_is_narrow)
def _slogdet_low_rank(x: LowRank) -> tuple[Dense, Dense]:
    zero = _zero(x)
    return Dense.make((zero,)), Dense.make((log_of_zero(zero),))


# A low-rank right-hand side: solve only for its left factor.


def _is_smaller(x1: Array, x2: Array) -> bool:
    return stored(x2) < x2.shape[-2] * x2.shape[-1]


# register all three, since otherwise the structure of x1 would take precedence
@solve.kernel(BlockDiagonal, LowRank, when=_is_smaller)
@solve.kernel(Circulant, LowRank, when=_is_smaller)
@solve.kernel(Factored, LowRank, when=_is_smaller)
@solve.kernel(Array, LowRank, when=_is_smaller)
def _solve_for_low_rank(x1: Array, x2: LowRank) -> tuple[Array, jax.Array]:
    solution, ok = solve.dispatch(x1, to_dense(x2.u))
    return low_rank(solution, x2.v), ok
