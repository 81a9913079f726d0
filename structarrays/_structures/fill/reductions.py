"""Reductions and differences of `Fill`, from the value and the number of its repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.families.reduction_rule import reduce_core, squared_deviations, squared_magnitude
from ..._functions.utility import diff
from .array import Fill

if TYPE_CHECKING:
    import jax

    from ..._core.families.reduction_rule import Monoid


@reduce_core.kernel(Fill)
def _reduce_core_fill(x: Fill, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Dense | Fill:
    return _reduce(x, x.value, monoid, axes, keepdims)


@squared_deviations.kernel(Fill)
def _squared_deviations_fill(
    x: Fill, *, mean: Fill, monoid: Monoid, axes: tuple[int, ...], keepdims: bool
) -> Dense | Fill:
    # Without the rounding of their mean, equal elements do not deviate from it.
    mean_value = x.value if mean.value.shape == x.value.shape else mean.value
    return _reduce(x, squared_magnitude(x.value - mean_value), monoid, axes, keepdims)


def _reduce(x: Fill, value: jax.Array, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Dense | Fill:
    """Reduce a value for every element of `x`; the result is a `Fill` if a core dimension is left."""
    core = list(x.meta)
    count = 1
    for axis in axes:
        count *= core[axis]
        core[axis] = 1 if keepdims else None
    kept = tuple(n for n in core if n is not None)
    value = monoid.repeated(value, count)
    return Fill.make((value,), kept) if kept else Dense.make((value,))


@diff.kernel(Fill, when=lambda x, *, axis, n: axis >= x.ndim - x.core_ndim)
def _diff_fill(x: Fill, *, axis: int, n: int) -> Fill:
    core = list(x.meta)
    core[axis - x.ndim] = max(0, core[axis - x.ndim] - n)
    value = x.value if n == 0 else x.value - x.value  # NaN if the value is infinite
    return Fill.make((jnp.asarray(value),), tuple(core))
