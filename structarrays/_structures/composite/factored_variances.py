"""Variances of factored arrays, from the squares of an array whose lines are centred."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.families.conditions import has_core
from ..._core.families.factored import Factored, squared_norms
from ..._core.families.reduction_rule import reduced_count, squared_magnitude
from ..._functions.elementwise import negative, subtract
from ..._numerics.symbolic import as_number, degrees_of_freedom
from ..low_rank.array import LowRank, line_of_rank_one
from ..low_rank.low_rank_spectra import is_narrow, through_narrowest
from .factored_functions import split_axes, spreads, sums_over
from .product import Product
from .sum import Sum, total

if TYPE_CHECKING:
    import jax

    from ..._core.array.base import Array


@spreads(Factored, when=has_core)
def variance_of_factored(x: Factored, axis: tuple[int, ...], correction: int | float, keepdims: bool) -> jax.Array:
    """Sum the squares within lines, around their means, and the squares of these means around the mean of all.

    So the mean may be much larger than the deviations: the decomposition of the total variance.
    """
    line = split_axes(x, axis)[1][0]
    means = _means(x, line)
    centred = _centred(x, line, means)
    squares = jnp.expand_dims(squared_norms.required((centred,)).run(centred, axes=(line,)), line)
    rest = tuple(a for a in axis if a != x.ndim + line)
    if rest:
        apart = squared_magnitude(means - jnp.mean(means, axis=rest, keepdims=True))
        squares = jnp.sum(squares + as_number(x.shape[line], squares.dtype) * apart, axis=rest, keepdims=True)
    divisor, positive = degrees_of_freedom(reduced_count(x, axis), correction, x.dtype)
    data = squares / divisor if positive else jnp.full_like(squares, jnp.nan)
    return data if keepdims else jnp.squeeze(data, axis)


def _means(x: Array, line: int) -> jax.Array:
    """The means along a core axis (-1 or -2), where this axis has length 1."""
    return sums_over(cast("Factored", x), (x.ndim + line,)) / as_number(x.shape[line], x.dtype)


def _centred(x: Array, line: int, means: jax.Array) -> Array:
    """Subtract the means along a core axis: from a factor of low rank where there is one, so that nothing cancels."""
    if type(x) is Product and is_narrow(x):
        x = through_narrowest(x)
    if type(x) is LowRank:
        parts = list(x.parts)
        data = parts[line].dense_data()
        parts[line] = Dense.make((data - jnp.mean(data, axis=-2, keepdims=True),))
        return LowRank.make(tuple(parts))
    if type(x) is not Sum:
        return subtract(x, Dense.make((means,)))
    narrow = [t for t in x.terms if type(t) is LowRank or (type(t) is Product and is_narrow(t))]
    others = [t for t in x.terms if all(t is not n for n in narrow)]
    centred = [_centred(t, line, means) for t in narrow]
    of_others = [negative(line_of_rank_one(_means(t, line), x.shape[-2:])) for t in others]
    return total(*centred, *others, *of_others)
