"""Powers with integer exponents, by repeated squaring. Integers wrap around, as in NumPy."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax


def repeated_squaring(value: Array, count: Array) -> Array:
    """Return ``value ** count`` for arrays that broadcast; 1 where the exponent is negative."""
    shape = jnp.broadcast_shapes(value.shape, count.shape)
    value = jnp.broadcast_to(value, shape)

    # A loop: XLA of jaxlib 0.12 does not finish compiling the unrolled steps (docs/design/jax_bugs.md).
    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        result, value, count = state
        return jnp.where(count & 1 == 1, result * value, result), value * value, count >> 1

    start = jnp.ones_like(value), value, jnp.maximum(count, 0)
    return lax.while_loop(lambda state: jnp.any(state[2] > 0), step, start)[0]
