"""Reductions of symmetric and Hermitian matrices: off-diagonal entries count twice.

The triangle without its diagonal is reduced along one axis, and along the other axis for its mirror image. Memory is
read in order, unlike for a transpose. In a reduction of all elements, the second reduction is the image of the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.families.reduction_rule import reduce_core, squared_deviations, squared_magnitude
from ..._numerics import bands
from ..._numerics import packed_triangles as triangles
from .array import Mirrored

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

    from ..._core.families.reduction_rule import Monoid


@reduce_core.kernel(Mirrored)
def _reduce_core_mirrored(x: Mirrored, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Dense:
    (data,) = x.entries
    return _reduced(x, data, data, x.diagonal(0), x.reflect, monoid, axes, keepdims)


@squared_deviations.kernel(Mirrored)
def _squared_deviations_mirrored(
    x: Mirrored, *, mean: Dense, monoid: Monoid, axes: tuple[int, ...], keepdims: bool
) -> Dense:
    (data,), means = x.entries, mean.data
    own = image = squared_magnitude(data - means)
    diagonal = squared_magnitude(x.diagonal(0) - bands.at_diagonal(means, 0, x.shape[-2:]))
    if len(axes) == 1:
        # A mirror image deviates from the mean by the same magnitude as the entry from the mirrored mean.
        image = squared_magnitude(data - x.reflect(means.mT))
    return _reduced(x, own, image, diagonal, lambda values: values, monoid, axes, keepdims)


def _reduced(
    x: Mirrored,
    own: jax.Array,
    image: jax.Array,
    diagonal: jax.Array,
    reflect: Callable[[jax.Array], jax.Array],
    monoid: Monoid,
    axes: tuple[int, ...],
    keepdims: bool,
) -> Dense:
    """Combine the triangle of `own`, the mirror image of the triangle of `image`, and the diagonal."""
    nothing = monoid.identity(own.dtype)
    off_diagonal = triangles.strict(own, x.lower, nothing)
    if len(axes) == 2:
        off_diagonal = monoid.reduce(off_diagonal, axis=(x.ndim - 2, x.ndim - 1), keepdims=False)
        diagonal = monoid.reduce(diagonal, axis=(x.ndim - 2,), keepdims=False)
        result = monoid.combine(monoid.combine(off_diagonal, reflect(off_diagonal)), diagonal)
        return Dense.make((result[..., None, None] if keepdims else result,))
    (axis,), other = axes, -3 - axes[0]
    mirrored = off_diagonal if image is own else triangles.strict(image, x.lower, nothing)
    along = monoid.reduce(off_diagonal, axis=(x.ndim + axis,), keepdims=False)
    across = monoid.reduce(mirrored, axis=(x.ndim + other,), keepdims=False)
    result = monoid.combine(monoid.combine(along, reflect(across)), diagonal)
    return Dense.make((jnp.expand_dims(result, axis) if keepdims else result,))
