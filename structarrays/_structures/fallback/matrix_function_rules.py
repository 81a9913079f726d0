"""Exponentials and square roots that keep structure, and bounds on norms of composed arrays."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, cast

import jax
import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.families.conditions import has_structural_zeros
from ..._core.families.factored import Factored
from ..._core.families.join import is_zero_outside
from ..._functions.elementwise import abs as magnitude
from ..._functions.elementwise import add
from ..._functions.linalg import expm, expm_multiply, matmul, matrix_transpose, sqrtm
from ..._functions.linalg.matrix_functions import bound_of_column_sums, column_sums, is_semidefinite
from ..._functions.statistical import max as largest_of
from ..._numerics import circulant_transforms as circulant_kernel
from ..._numerics import dense_matrix_functions
from ..._numerics.undefined import nan_unless
from ..banded.diagonal import Diagonal, Identity, identity_like
from ..blocks.block_diagonal import BlockDiagonal, has_square_blocks, stacks
from ..composite.part_solvers import all_true
from ..composite.product import Product
from ..composite.sum import Sum
from ..kronecker.array import Kronecker, has_square_factors, kronecker
from ..kronecker.factors import of_each_factor
from ..kronecker.kronecker_sum import KroneckerSum
from ..low_rank.array import LowRank, low_rank
from ..toeplitz.circulant import Circulant
from ..triangular.array import Triangular

if TYPE_CHECKING:
    import jax


# ---- exponentials ----------------------------------------------------------------------------------------------------


@expm.kernel(Diagonal, when=has_structural_zeros)
def _expm_diagonal(A: Diagonal) -> Array:
    return A.rebuild(tuple(map(jnp.exp, A.entries)), None)


@expm.kernel(BlockDiagonal, when=has_square_blocks)
def _expm_block_diagonal(A: BlockDiagonal) -> Array:
    return A.rebuild(tuple(expm.dispatch(b).data for b in stacks(A)), None)


@expm.kernel(Circulant)
def _expm_circulant(A: Circulant) -> Circulant:
    return Circulant.make((circulant_kernel.from_spectrum(jnp.exp(circulant_kernel.spectrum(A.c)), A.c),))


@expm.kernel(KroneckerSum)
def _expm_kronecker_sum(A: KroneckerSum) -> Array:
    """The terms ``A ⊗ I`` and ``I ⊗ B`` commute."""
    return kronecker(*of_each_factor(expm, A))


@expm.kernel(Triangular, when=is_zero_outside)
def _expm_triangular(A: Triangular) -> Triangular:
    return Triangular.make((dense_matrix_functions.expm(A.dense_data()), None), (A.lower, False))


def _is_narrow(A: LowRank, *args: Array) -> bool:
    return 0 < 2 * A.rank <= A.shape[-1]


@expm.kernel(LowRank, when=_is_narrow)
def _expm_low_rank(A: LowRank) -> Array:
    """``I + u phi(v.mT @ u) @ v.mT`` with ``phi(M) = M^-1 (exp(M) - I)``, which is the corner block of ``exp([[M, I],
    [0, 0]])``.
    """
    balanced, of_v = _balanced(A)
    small, r = matmul(matrix_transpose(balanced.v), balanced.u).dense_data(), A.rank
    identity = jnp.broadcast_to(jnp.eye(r, dtype=A.dtype), small.shape)
    upper = jnp.concatenate([small, identity], axis=-1)
    phi = dense_matrix_functions.expm(jnp.concatenate([upper, jnp.zeros_like(upper)], axis=-2))[..., :r, r:]
    return add(identity_like(A, A.shape[-1]), low_rank(matmul(balanced.u, Dense.make((phi,))), matmul(A.v, of_v)))


def _balanced(A: LowRank) -> tuple[LowRank, Diagonal]:
    """Scale the columns of both factors by powers of two, such that the largest elements of each pair are about equal.

    Otherwise ``v.mT @ u`` may be much larger than the matrix. Also return the scales of the columns of `v`.

    The elements of factors that are composed of other arrays are computed: no more than ``u @ phi`` has, a part of the exponential.
    """
    parts = [Dense.make((part.dense_data(),)) if isinstance(part, Factored) else part for part in A.parts]
    sizes = [jax.lax.stop_gradient(largest_of(magnitude(part), axis=-2).dense_data()) for part in parts]
    (_, exponents_of_u), (_, exponents_of_v) = map(jnp.frexp, sizes)
    usable = jnp.all(jnp.stack([(size > 0) & jnp.isfinite(size) for size in sizes]), axis=0)
    exponent = jnp.where(usable, (exponents_of_v - exponents_of_u) // 2, 0)
    largest = jnp.finfo(A.dtype).maxexp - 2  # a power whose reciprocal is a normal number
    power = jnp.ldexp(jnp.ones(exponent.shape, sizes[0].dtype), jnp.clip(exponent, -largest, largest)).astype(A.dtype)
    of_u, of_v = (Diagonal.make((data, None), (A.rank, A.rank)) for data in (power, 1 / power))
    return LowRank.make((matmul(parts[0], of_u), matmul(parts[1], of_v))), of_v


@expm_multiply.kernel(Diagonal, Array, when=has_structural_zeros)
@expm_multiply.kernel(BlockDiagonal, Array, when=has_square_blocks)
@expm_multiply.kernel(Circulant, Array)
@expm_multiply.kernel(KroneckerSum, Array)
@expm_multiply.kernel(LowRank, Array, when=_is_narrow)
def _expm_multiply_diagonal(A: Diagonal | BlockDiagonal | Circulant | KroneckerSum | LowRank, B: Array) -> Array:
    return matmul(expm.dispatch(A), B)


# ---- square roots of complex arrays, and of arrays that are assumed positive semidefinite ----------------------------


@sqrtm.kernel(Diagonal, when=has_structural_zeros)
def _sqrtm_diagonal(A: Diagonal) -> tuple[Array, jax.Array]:
    (entries,) = A.entries
    if not is_semidefinite(A):
        return A.rebuild((jnp.sqrt(entries),), None), jnp.array(True)
    bad = jnp.any(entries.real < 0, axis=() if type(A) is Identity else -1, keepdims=True)
    roots = jnp.sqrt(nan_unless(~bad, entries.real)).astype(A.dtype)
    return A.rebuild((roots,), None), ~jnp.any(bad)


@sqrtm.kernel(BlockDiagonal, when=has_square_blocks)
def _sqrtm_block_diagonal(A: BlockDiagonal) -> tuple[Array, jax.Array]:
    roots, flags = zip(*map(sqrtm.dispatch, stacks(A)), strict=True)
    return A.rebuild(tuple(r.data for r in roots), None), all_true(flags)


@sqrtm.kernel(Kronecker, when=lambda A: has_square_factors(A) and all(map(is_semidefinite, A.factors)))
def _sqrtm_kronecker(A: Kronecker) -> tuple[Array, jax.Array]:
    """For general factors the product of principal roots need not be the principal root: ``-I ⊗ -I`` is an example."""
    roots, flags = zip(*of_each_factor(sqrtm, A), strict=True)
    return kronecker(*(r.assuming(f.assumptions) for r, f in zip(roots, A.factors, strict=True))), all_true(flags)


@sqrtm.kernel(Circulant)
def _sqrtm_circulant(A: Circulant) -> tuple[Array, jax.Array]:
    values = circulant_kernel.spectrum(A.c)
    size = A.shape[-1] * jnp.finfo(A.dtype).eps * jnp.max(jnp.abs(values), axis=-1, keepdims=True, initial=0)
    if not is_semidefinite(A):
        # On the negative real axis, rounding errors would select one of the two roots.
        values = jnp.where(jnp.abs(values.imag) <= size, values.real, values)
        return Circulant.make((circulant_kernel.from_spectrum(jnp.sqrt(values), A.c),)), jnp.array(True)
    bad = jnp.any(values.real < -size, axis=-1, keepdims=True)
    roots = jnp.sqrt(nan_unless(~bad, jnp.maximum(values.real, 0))).astype(values.dtype)
    return Circulant.make((circulant_kernel.from_spectrum(roots, A.c),)), ~jnp.any(bad)


# ---- bounds on norms -------------------------------------------------------------------------------------------------


@column_sums.kernel(Sum)
def _column_sums_sum(x: Sum, weights: jax.Array | None) -> jax.Array:
    return cast("jax.Array", sum(bound_of_column_sums(term, weights) for term in x.terms))


@column_sums.kernel(Product)
def _column_sums_product(x: Product, weights: jax.Array | None) -> jax.Array:
    """Factor by factor, so that the bound does not grow if rows are scaled in one factor and columns in another."""
    return cast(
        "jax.Array", functools.reduce(lambda sums, factor: bound_of_column_sums(factor, sums), x.factors, weights)
    )


@column_sums.kernel(LowRank)
def _column_sums_low_rank(x: LowRank, weights: jax.Array | None) -> jax.Array:
    return bound_of_column_sums(matrix_transpose(x.v), bound_of_column_sums(x.u, weights))
