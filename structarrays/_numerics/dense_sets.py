"""The standard's set functions, on plain JAX arrays.

The ``unique`` functions are eager, since the shapes of their results depend on the data. They run on the host: a
compiled function would compile again for every new number of unique values. Values are sorted, every NaN is a separate
value, and the two zeros are equal.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy
from jax import Array

from .devices import device_of

isin = jnp.isin


def _unique(x: Array, **wanted: bool) -> tuple[Array, ...]:
    """``numpy.unique`` with the results back on the device of ``x``, indices in the default integer dtype."""
    values, *indices = numpy.unique(numpy.asarray(x), return_index=True, equal_nan=False, **wanted)  # type: ignore[call-overload]  # its types are by literals
    integer = jnp.result_type(int)
    return tuple(jax.device_put(a, device_of(x)) for a in (values, *(i.astype(integer) for i in indices)))


def unique_all(x: Array, /) -> tuple[Array, Array, Array, Array]:
    """Values, indices of their first occurrences, indices that reconstruct ``x``, and counts."""
    values, indices, inverse_indices, counts = _unique(x, return_inverse=True, return_counts=True)
    return values, indices, inverse_indices.reshape(x.shape), counts


def unique_counts(x: Array, /) -> tuple[Array, Array]:
    """Values and their counts."""
    values, _, counts = _unique(x, return_counts=True)
    return values, counts


def unique_inverse(x: Array, /) -> tuple[Array, Array]:
    """Values and indices that reconstruct ``x`` from them."""
    values, _, inverse_indices = _unique(x, return_inverse=True)
    return values, inverse_indices.reshape(x.shape)


def unique_values(x: Array, /) -> Array:
    """Values."""
    return _unique(x)[0]
