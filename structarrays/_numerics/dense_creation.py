"""The standard's creation functions, on plain JAX arrays. ``dtype`` is never ``None``: the caller knows the default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

from .devices import put

if TYPE_CHECKING:
    import jax

    from .._core.typing import DTypeLike, Shape


def full(
    shape: Shape,
    fill_value: jax.typing.ArrayLike,
    *,
    dtype: DTypeLike,
    device: jax.Device | jax.sharding.Sharding | None = None,
) -> Array:
    """``fill_value`` everywhere."""
    return put(
        jnp.full(shape, fill_value, dtype, device=device), device
    )  # in compiled functions `full` makes no explicit type


def linspace(
    start: jax.typing.ArrayLike,
    stop: jax.typing.ArrayLike,
    /,
    num: int,
    *,
    dtype: DTypeLike,
    device: jax.Device | jax.sharding.Sharding | None = None,
    endpoint: bool = True,
) -> Array:
    """``num`` evenly spaced values from ``start`` to ``stop``."""
    return put(jnp.linspace(start, stop, num, endpoint=endpoint, dtype=dtype), device)


def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate arrays of a grid, as a tuple (``jnp`` returns a list)."""
    return tuple(jnp.meshgrid(*arrays, indexing=indexing))
