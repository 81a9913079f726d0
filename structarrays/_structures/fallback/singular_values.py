"""Functions of singular values in any order: norms, and which values count as zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._functions.linalg import matrix_norm, matrix_rank, svdvals
from ..._functions.matrix_checks import real_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

    from ..._core.array.base import Array


def is_of_singular_values(x: Array, *, keepdims: bool, ord: int | float | str | None) -> bool:
    """Return whether a matrix norm of this order is a singular value or the sum of all."""
    return ord in (2, -2, "nuc")


def of_singular_values(when: Callable[..., bool]) -> Callable[..., bool]:
    """Condition of a kernel for matrix norms that follow from singular values: `when`, and a suitable order."""
    return lambda x, **static: when(x) and is_of_singular_values(x, **static)


def norm(values: jax.Array, *, keepdims: bool, ord: int | float | str | None) -> Dense:
    """The spectral norm, the smallest singular value (-2), or the sum of all (nuclear), from singular values ``(..., k)``."""
    reductions: dict[int | float | str | None, Callable[..., jax.Array]] = {"nuc": jnp.sum, 2: jnp.max, -2: jnp.min}
    result = reductions[ord](values, axis=-1)
    return Dense.make((result[..., None, None] if keepdims else result,))


def norm_and_rank(
    structure: type[Array],
    values: Callable[[Any], jax.Array] = lambda x: svdvals.dispatch(x).data,
    *,
    norms: dict[int | float | str | None, Callable[[Any], jax.Array]] | None = None,
    when: Callable[[Any], bool] = lambda x: True,
) -> None:
    """Register matrix norms and `matrix_rank` of a structure that follow from its singular values in any order.

    Repeated singular values have no second derivatives. Their sum and other values do. `norms` contains functions for
    orders that compute a norm with its derivatives.
    """

    @matrix_norm.kernel(structure, when=of_singular_values(when))
    def _matrix_norm_structure(x: Array, *, keepdims: bool, ord: int | float | str | None) -> Dense:
        # A single value is both the sum and the largest.
        found = norms[ord](x)[..., None] if norms and ord in norms else values(x)
        return norm(found, keepdims=keepdims, ord=ord)

    @matrix_rank.kernel(structure, when=lambda x, *, rtol: when(x))
    def _matrix_rank_structure(x: Array, *, rtol: jax.Array | None) -> Dense:
        return rank(x, values(x), rtol)


def nuclear_norm(x: Array) -> jax.Array:
    """The nuclear norm ``(...)`` of a matrix, zero if it is empty."""
    return _norm_of_part(x, "nuc")


def spectral_norm(x: Array) -> jax.Array:
    """The spectral norm ``(...)`` of a matrix, zero if it is empty."""
    return _norm_of_part(x, 2)


def _norm_of_part(x: Array, ord: int | str) -> jax.Array:
    if 0 in x.shape[-2:]:
        return jnp.zeros(x.shape[:-2], real_dtype(x.dtype))
    found: jax.Array = matrix_norm.dispatch(x, keepdims=False, ord=ord).dense_data()
    return found


def tolerance(x: Array, rtol: jax.Array | None) -> jax.Array:
    """Relative threshold below which singular values count as zero: by default ``max(M, N) eps``."""
    return jnp.asarray(max(x.shape[-2:]) * jnp.finfo(x.dtype).eps if rtol is None else rtol, real_dtype(x.dtype))


def is_large(x: Array, values: jax.Array, rtol: jax.Array | None) -> jax.Array:
    """Return which of all nonzero singular values ``(..., k)`` of `x` do not count as zero."""
    return values > tolerance(x, rtol)[..., None] * jnp.max(values, axis=-1, keepdims=True, initial=0)


def rank(x: Array, values: jax.Array, rtol: jax.Array | None) -> Dense:
    """Number of singular values ``(..., k)`` of `x` that do not count as zero."""
    return Dense.make((jnp.sum(is_large(x, values, rtol), axis=-1, dtype=int),))
