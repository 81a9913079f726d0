"""What follows from singular values alone, in any order: norms, and which of them count as zero."""

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._functions.linalg import matrix_norm, matrix_rank, svdvals
from ..._functions.matrix_checks import real_dtype


def is_of_singular_values(x, *, keepdims, ord) -> bool:
    """Whether a matrix norm of this order is one of the singular values or their sum."""
    return ord in (2, -2, "nuc")


def norm(values, *, keepdims, ord) -> Dense:
    """The spectral norm, the smallest singular value (-2), or the sum of all (nuclear), from singular values ``(..., k)``."""
    result = {"nuc": jnp.sum, 2: jnp.max, -2: jnp.min}[ord](values, axis=-1)
    return Dense.make((result[..., None, None] if keepdims else result,))


def norm_and_rank(structure, values=lambda x: svdvals.dispatch(x).data, *, norms=None, when=lambda x: True):
    """Register matrix norms and `matrix_rank` of a structure, which follow from its singular values in any order.

    Repeated singular values have no second derivatives, but their sum has, and so have other ones. `norms` has functions for orders
    that compute a norm with its derivatives.
    """

    @matrix_norm.kernel(structure, when=lambda x, **static: when(x) and is_of_singular_values(x, **static))
    def _matrix_norm_structure(x, *, keepdims, ord):
        # A single value is its sum, and the largest of all.
        found = norms[ord](x)[..., None] if norms and ord in norms else values(x)
        return norm(found, keepdims=keepdims, ord=ord)

    @matrix_rank.kernel(structure, when=lambda x, *, rtol: when(x))
    def _matrix_rank_structure(x, *, rtol):
        return rank(x, values(x), rtol)


def nuclear_norm(x):
    """The nuclear norm ``(...)`` of a matrix, zero if it is empty."""
    return _norm_of_part(x, "nuc")


def spectral_norm(x):
    """The spectral norm ``(...)`` of a matrix, zero if it is empty."""
    return _norm_of_part(x, 2)


def _norm_of_part(x, ord):
    if 0 in x.shape[-2:]:
        return jnp.zeros(x.shape[:-2], real_dtype(x.dtype))
    return matrix_norm.dispatch(x, keepdims=False, ord=ord).dense_data()


def tolerance(x, rtol):
    """How small a singular value is, relative to the largest, that counts as zero: by default ``max(M, N) eps``."""
    return jnp.asarray(max(x.shape[-2:]) * jnp.finfo(x.dtype).eps if rtol is None else rtol, real_dtype(x.dtype))


def is_large(x, values, rtol):
    """Which of all nonzero singular values ``(..., k)`` of `x` do not count as zero."""
    return values > tolerance(x, rtol)[..., None] * jnp.max(values, axis=-1, keepdims=True, initial=0)


def rank(x, values, rtol) -> Dense:
    """How many of the singular values ``(..., k)`` of `x` do not count as zero."""
    return Dense.make((jnp.sum(is_large(x, values, rtol), axis=-1, dtype=int),))
