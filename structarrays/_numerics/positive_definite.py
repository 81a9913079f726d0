"""Dense Hermitian positive definite linear systems, by Cholesky factorization."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from . import dense_linalg as linalg_dense
from .vectors import for_right_sides


@for_right_sides
def solve(x1: Array, x2: Array, /) -> tuple[Array, Array]:
    """Solution of ``x1 @ x = x2`` and ``ok``, as in `dense_linalg.solve`; ``ok`` says that ``x1`` is positive definite."""
    n, k = x2.shape[-2:]
    batch = jnp.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    right = jnp.broadcast_to(x2, (*batch, n, k))
    factor, ok = linalg_dense.cholesky(lax.stop_gradient(x1))
    factor = jnp.broadcast_to(factor, (*batch, n, n))

    def substitute(b: Array, factor: Array) -> Array:
        options = {"left_side": True, "lower": True}
        y = lax.linalg.triangular_solve(factor, b, **options)
        return lax.linalg.triangular_solve(factor, y, transpose_a=True, conjugate_a=True, **options)

    # Differentiate the equation, A dx = db - dA x, not the factorization.
    solution = lax.custom_linear_solve(
        lambda x: x1 @ x,
        right,
        solve=lambda _, b: substitute(b, factor),
        transpose_solve=lambda _, b: substitute(b, factor.conj()),
    )
    return solution, ok


def inv(x: Array, /) -> tuple[Array, Array]:
    """Inverse and ``ok``."""
    return solve(x, jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape))
