"""Products and solutions for vectors and stacks of matrices, by routines for matrices."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array


def by_columns(product: Callable[[Array], Array], x: Array) -> Array:
    """``product(x)`` of matrices ``(..., n, k)``; a vector ``(n,)`` is one column."""
    return product(x[:, None])[..., 0] if x.ndim == 1 else product(x)


def by_rows(product: Callable[[Array], Array], x: Array) -> Array:
    """``product(x)`` of matrices ``(..., k, m)``; a vector ``(m,)`` is one row."""
    return product(x[None, :])[..., 0, :] if x.ndim == 1 else product(x)


def for_right_sides(solve: Callable[..., tuple[Array, Array]]) -> Callable[..., tuple[Array, Array]]:
    """Extend a solver for right-hand sides (..., n, k) to vectors (n,), and factorize one matrix only once.

    The solver takes a matrix and right-hand sides, and returns the solution and ``ok``. If there is one matrix for a
    stack of right-hand sides, it gets all their columns side by side.
    """

    @functools.wraps(solve)
    def extended(a: Array, b: Array, /, **options: Any) -> tuple[Array, Array]:
        if b.ndim == 1:
            solution, ok = solve(a, b[:, None], **options)
            return solution[..., 0], ok
        if a.ndim == 2 and b.ndim > 2:
            rows = jnp.moveaxis(b, -2, 0)
            solution, ok = solve(a, rows.reshape(rows.shape[0], math.prod(rows.shape[1:])), **options)
            return jnp.moveaxis(solution.reshape(rows.shape), 0, -2), ok
        return solve(a, b, **options)

    return extended
