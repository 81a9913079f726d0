"""NaN for what does not exist, in values and in derivatives."""

import jax.numpy as jnp
from jax import Array, lax

from structarrays.kernels.flags import custom_jvp


@custom_jvp
def nan_unless(exists: Array, x: Array) -> Array:
    """The array `x`, NaN where a condition that broadcasts is false. So are the derivatives; those of a selection would be zero there."""
    return jnp.where(exists, x, jnp.nan)


@nan_unless.defjvp
def _nan_unless_jvp(primals, tangents):
    exists, x = primals
    change, factor = tangents[1], jnp.where(exists, 1, jnp.nan).astype(jnp.finfo(x.dtype).dtype)
    if jnp.iscomplexobj(x):
        change = lax.complex(change.real * factor, change.imag * factor)
    else:
        change = change * factor
    return nan_unless(exists, x), change


def nowhere(x: Array) -> Array:
    """NaN in the place of `x`, with derivatives of all orders that are NaN."""
    return nan_unless(jnp.array(False), jnp.exp(x))
