"""Reductions of symmetric and Hermitian matrices: the triangle as rows, and once more as columns.

The second reading is along the other axis, not of the transpose, so that memory is read in order.
"""

import jax.numpy as jnp

from ..core.dense import Dense
from ..core.reductions import reduce_core, squared_deviations, squared_magnitude
from ..kernels import triangles
from .symmetric import Mirrored


@reduce_core.kernel(Mirrored)
def _(x, *, monoid, axes, keepdims):
    (data,) = x.entries
    return _reduced(x, data, data, x.reflect, monoid, axes, keepdims)


@squared_deviations.kernel(Mirrored)
def _(x, *, mean, monoid, axes, keepdims):
    (data,), mean = x.entries, mean.data
    # The mirror image of an entry differs from its own mean by as much as the entry from the mirror image of that.
    as_rows = squared_magnitude(data - mean)
    as_columns = squared_magnitude(data - x.reflect(mean.mT))
    return _reduced(x, as_rows, as_columns, lambda values: values, monoid, axes, keepdims)


def _reduced(x, data, mirrored, reflect, monoid, axes, keepdims):
    """The triangle of `data`, and that of `mirrored` without the diagonal along the other axis, taken together."""
    nothing = monoid.identity(data.dtype)
    own = triangles.triangle(data, x.lower, nothing)
    other = triangles.strict(mirrored, x.lower, nothing)
    if len(axes) == 2:
        both = tuple(axis + x.ndim for axis in axes)
        parts = [monoid.reduce(part, axis=both, keepdims=keepdims) for part in (own, other)]
    else:
        (axis,) = axes
        opposite = -3 - axis
        parts = [monoid.reduce(p, axis=(a + x.ndim,), keepdims=False) for p, a in ((own, axis), (other, opposite))]
        parts = [jnp.expand_dims(part, axis) for part in parts] if keepdims else parts
    return Dense._make((monoid.combine(parts[0], reflect(parts[1])),))
