"""`Orthonormal`: closed forms for matrices with orthonormal columns or rows, including permutations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import densify
from ..._core.dispatch.recording import remark
from ..._core.families.conditions import has_default_tolerance, is_square
from ..._core.families.factored import squared_norms
from ..._core.families.generator_array import GeneratorArray
from ..._functions.linalg import det, inv, lu, matmul, matrix_norm, matrix_rank, pinv, qr, slogdet, solve, svd, svdvals
from ..._functions.matrix_checks import real_dtype
from ..banded.diagonal import Identity, identity_like
from ..fallback.singular_values import of_singular_values
from ..permutation.array import Permutation

if TYPE_CHECKING:
    import jax

    from ..._core.typing import DTypeLike


class Orthonormal(GeneratorArray):
    """Base class of arrays with orthonormal columns (square and tall matrices) or orthonormal rows (wide matrices).

    A subclass defines its adjoint, which is the inverse or pseudo-inverse, and its determinant.
    """

    __slots__ = ()

    def _adjoint(self) -> Orthonormal:
        """Return the conjugate transpose."""
        raise NotImplementedError

    def _determinant(self) -> jax.Array:
        """Return the determinants of square matrices, (...), with modulus 1."""
        raise NotImplementedError

    def _solution_remark(self) -> str:
        """Return a phrase for `explain`: the algorithm and the cost of a product with the adjoint."""
        raise NotImplementedError


def ones(x: Array, *shape: int, dtype: DTypeLike | None = None) -> jax.Array:
    """Return ones with the batch shape and additional dimensions."""
    return jnp.ones((*x.shape[:-2], *shape), dtype or x.dtype)


@inv.kernel(Orthonormal)
@inv.kernel(Permutation)
def _inv_orthonormal(x: Orthonormal | Permutation) -> tuple[Array, jax.Array]:
    return x._adjoint(), jnp.array(True)


@pinv.kernel(Orthonormal, when=has_default_tolerance)
@pinv.kernel(Permutation, when=has_default_tolerance)
def _pinv_orthonormal(x: Orthonormal | Permutation, *, rtol: jax.Array | None) -> Array:
    return x._adjoint()


@solve.kernel(Orthonormal, Array)
@solve.kernel(Permutation, Array)
def _solve_orthonormal(x1: Orthonormal | Permutation, x2: Array) -> tuple[Array, jax.Array]:
    remark(x1._solution_remark())
    return matmul.dispatch(x1._adjoint(), x2), jnp.array(True)


@det.kernel(Orthonormal)
@det.kernel(Permutation)
def _det_orthonormal(x: Orthonormal | Permutation) -> Dense:
    return Dense.make((x._determinant(),))


@slogdet.kernel(Orthonormal)
@slogdet.kernel(Permutation)
def _slogdet_orthonormal(x: Orthonormal | Permutation) -> tuple[Dense, Dense]:
    return Dense.make((x._determinant(),)), Dense.make((jnp.zeros(x.shape[:-2], real_dtype(x.dtype)),))


@svdvals.kernel(Orthonormal)
@svdvals.kernel(Permutation)
def _svdvals_orthonormal(x: Orthonormal | Permutation) -> Dense:
    return Dense.make((ones(x, min(x.shape[-2:]), dtype=real_dtype(x.dtype)),))


@matrix_rank.kernel(Orthonormal, when=has_default_tolerance)
@matrix_rank.kernel(Permutation, when=has_default_tolerance)
def _matrix_rank_orthonormal(x: Orthonormal | Permutation, *, rtol: jax.Array | None) -> Dense:
    return Dense.make((jnp.full(x.shape[:-2], min(x.shape[-2:]), int),))


@matrix_norm.kernel(Orthonormal, when=of_singular_values(lambda x: min(x.shape[-2:]) > 0))
@matrix_norm.kernel(Permutation, when=of_singular_values(lambda x: min(x.shape[-2:]) > 0))
def _matrix_norm_orthonormal(x: Orthonormal | Permutation, *, keepdims: bool, ord: int | float | str | None) -> Dense:
    norm = ones(x, dtype=real_dtype(x.dtype)) * (min(x.shape[-2:]) if ord == "nuc" else 1)
    return Dense.make((norm[..., None, None] if keepdims else norm,))


@svd.kernel(Orthonormal, when=is_square)
@svd.kernel(Permutation)
def _svd_orthonormal(x: Orthonormal | Permutation, *, full_matrices: bool) -> tuple[Array, Array, Identity]:
    return x, svdvals.dispatch(x), identity_like(x, x.shape[-1])


@qr.kernel(Orthonormal, when=is_square)
@qr.kernel(Permutation)
def _qr_orthonormal(x: Orthonormal | Permutation, *, mode: str) -> tuple[Array, Identity]:
    return x, identity_like(x, x.shape[-1])


@lu.kernel(Permutation)
def _lu_permutation(a: Permutation) -> tuple[jax.Array, Identity, Identity]:
    """Factorise: the rows, exchanged, are an identity."""
    return a.p, identity_like(a, a.shape[-1]), identity_like(a, a.shape[-1])


@squared_norms.kernel(Orthonormal)
def _squared_norms_orthonormal(x: Orthonormal, *, axes: tuple[int, ...]) -> jax.Array:
    m, n = x.shape[-2:]
    if len(axes) == 2:
        return ones(x, dtype=real_dtype(x.dtype)) * min(m, n)
    if m == n or axes == ((-2,) if m > n else (-1,)):
        return ones(x, n if axes == (-2,) else m, dtype=real_dtype(x.dtype))
    data = densify(x, "a sum of squares").data
    return jnp.sum((data * data.conj()).real, axis=axes)
