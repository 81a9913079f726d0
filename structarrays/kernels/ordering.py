"""The order of many numbers.

XLA's sort on CPU has a fast road for one array of integers, and a slow one for floating-point numbers, whose total order costs a
function call a comparison, and for several arrays. Of 60,000 float64 numbers: `jnp.argsort` 9.9 ms, the sort of their bits as integers
2.4 ms, and a search for the place of each in the result 1.5 ms.
"""

import jax.numpy as jnp
from jax import Array, lax

MANY = 4096
"""With fewer numbers the search is not worth its compilation."""
_INTEGERS = {"float32": jnp.int32, "float64": jnp.int64}


def ordering(x: Array, *, descending: bool = False) -> Array:
    """The indices that sort real numbers ``(..., n)`` along the last axis; NaN is the largest, equal ones are in any order."""

    def plain(x):
        return jnp.argsort(x, axis=-1, descending=descending)

    def by_bits(x):
        bits = lax.bitcast_convert_type(-x if descending else x, _INTEGERS[x.dtype.name])
        keys = jnp.where(bits < 0, bits ^ jnp.iinfo(bits.dtype).max, bits)
        ordered = lax.sort(keys)
        # The places of the numbers among the sorted ones are a permutation where no two are equal.
        distinct = jnp.all(ordered[1:] > ordered[:-1]) & ~jnp.any(jnp.isnan(x))

        def searched(x):
            index = jnp.arange(x.shape[0])
            return jnp.zeros_like(index).at[jnp.searchsorted(ordered, keys)].set(index)

        return lax.cond(distinct, searched, plain, x)

    x = lax.stop_gradient(x)
    if x.ndim != 1 or x.shape[0] < MANY or x.dtype.name not in _INTEGERS:
        return plain(x)
    return lax.platform_dependent(x, cpu=by_bits, default=plain)
