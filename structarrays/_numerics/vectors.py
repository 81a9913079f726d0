"""Products of matrices and vectors, by routines for matrices."""

from __future__ import annotations

from collections.abc import Callable

from jax import Array


def by_columns(product: Callable[[Array], Array], x: Array) -> Array:
    """``product(x)`` of matrices ``(..., n, k)``; a vector ``(n,)`` is one column."""
    return product(x[:, None])[..., 0] if x.ndim == 1 else product(x)


def by_rows(product: Callable[[Array], Array], x: Array) -> Array:
    """``product(x)`` of matrices ``(..., k, m)``; a vector ``(m,)`` is one row."""
    return product(x[None, :])[..., 0, :] if x.ndim == 1 else product(x)
