"""Rules of `linear_programs` for sums, windows, convolutions and products of arrays."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .linear_maps import Taps, TooManyEntriesError, applied, numbered, padded
from .linear_programs import is_map, is_static, rule, value_of
from .rules_linear import padded_indices, shape_of

if TYPE_CHECKING:
    from .._core.typing import Shape

LARGEST_SUM = 2**26
"""The largest number of products in a sum, such as a matrix product, whose pattern is determined."""


def _check_size(count: int, shape: Shape) -> None:
    if count * math.prod(shape) > LARGEST_SUM:
        raise TooManyEntriesError


@rule("reduce_sum")
def _reduce_sum_rule(interpreter: Any, equation: Any, x: Any) -> Any:
    axes = tuple(equation.params["axes"])
    kept = [i for i in range(len(x.shape)) if i not in axes]
    count, shape = math.prod(x.shape[i] for i in axes), tuple(x.shape[i] for i in kept)

    def arranged(a: Any) -> Any:
        return a.transpose((*axes, *kept)).reshape((count, *shape))

    return applied(x, Taps(count, arranged(numbered(x.shape)), lambda k, data: arranged(data)[k]))


@rule("cumsum")
def _cumsum_rule(interpreter: Any, equation: Any, x: Any) -> Any:
    axis, reverse = equation.params["axis"], equation.params["reverse"]
    n = x.shape[axis]
    _check_size(n, x.shape)

    def shifted(k: int, data: jax.Array) -> jax.Array:
        widths = [(0, 0)] * data.ndim
        widths[axis] = (-k, k) if reverse else (k, -k)
        return padded(data, widths)

    numbers = np.moveaxis(numbered(x.shape), axis, -1)
    source = np.arange(n) + np.arange(n)[:, None] if reverse else np.arange(n) - np.arange(n)[:, None]
    inside = (source >= 0) & (source < n)
    sources = np.where(inside, numbers[..., np.where(inside, source, 0)], -1)  # (..., k, i)
    return applied(x, Taps(n, np.moveaxis(np.moveaxis(sources, -2, 0), -1, axis + 1), shifted))


@rule("reduce_window_sum")
def _reduce_window_sum_rule(interpreter: Any, equation: Any, x: Any) -> Any:
    p = equation.params
    config = [(low, high, base - 1) for (low, high), base in zip(p["padding"], p["base_dilation"], strict=True)]
    window = p["window_dimensions"]
    shape, count = shape_of(equation), math.prod(window)
    _check_size(count, shape)

    def window_element(k: int, wide: Any) -> Any:
        place = np.unravel_index(k, window)
        key = tuple(
            slice(int(i) * d, int(i) * d + (n - 1) * s + 1, s)
            for i, d, n, s in zip(place, p["window_dilation"], shape, p["window_strides"], strict=True)
        )
        return wide[key]

    wide = padded_indices(numbered(x.shape), config)
    sources = np.stack([window_element(k, wide) for k in range(count)])
    return applied(x, Taps(count, sources, lambda k, data: window_element(k, lax.pad(data, _zero(data), config))))


def _zero(data: jax.Array) -> jax.Array:
    return jnp.zeros((), data.dtype)


@rule("conv_general_dilated")
def _convolution_rule(interpreter: Any, equation: Any, x: Any, kernel: Any) -> Any:
    p = equation.params
    if is_map(kernel) or p["batch_group_count"] != 1:
        return NotImplemented
    numbers, groups = p["dimension_numbers"], p["feature_group_count"]
    weights = jnp.asarray(value_of(kernel)).transpose(numbers.rhs_spec)  # (outputs, inputs of a group, *window)
    window, own = weights.shape[2:], weights.shape[1]
    shape = shape_of(equation)
    inner = tuple(shape[i] for i in numbers.out_spec)  # (batch, outputs, *space)
    back = tuple(np.argsort(numbers.out_spec))
    count = own * math.prod(window)
    _check_size(count, shape)
    config = [(0, 0, 0), (0, 0, 0)]
    config += [(low, high, base - 1) for (low, high), base in zip(p["padding"], p["lhs_dilation"], strict=True)]
    group = np.arange(inner[1]) // (inner[1] // groups) if inner[1] else np.zeros(0, int)

    def kernel_element(k: int, wide: Any) -> Any:
        channel, *place = np.unravel_index(k, (own, *window))
        key = tuple(
            slice(int(i) * d, int(i) * d + (n - 1) * s + 1, s)
            for i, d, n, s in zip(place, p["rhs_dilation"], inner[2:], p["window_strides"], strict=True)
        )
        if groups == 1:
            one = wide[(slice(None), slice(int(channel), int(channel) + 1), *key)]
            one = np.broadcast_to(one, inner) if isinstance(one, np.ndarray) else jnp.broadcast_to(one, inner)
        else:
            one = wide[(slice(None), slice(None), *key)][:, group * own + int(channel)]
        return one.transpose(back)

    def weight(k: int) -> jax.Array:
        channel, *place = np.unravel_index(k, (own, *window))
        column = weights[(slice(None), int(channel), *map(int, place))]
        return jnp.broadcast_to(column.reshape((1, -1) + (1,) * len(window)), inner).transpose(back)

    wide = padded_indices(numbered(x.shape).transpose(numbers.lhs_spec), config)
    sources = np.stack([kernel_element(k, wide) for k in range(count)]) if count else np.zeros((0, *shape), int)

    def apply(k: int, data: jax.Array) -> jax.Array:
        taken: jax.Array = kernel_element(k, lax.pad(data.transpose(numbers.lhs_spec), _zero(data), config))
        return taken

    return applied(x, Taps(count, sources, apply, weight))


@rule("dot_general")
def _dot_general_rule(interpreter: Any, equation: Any, x: Any, y: Any) -> Any:
    if is_map(x) and is_map(y):
        return NotImplemented
    (contract, batch) = equation.params["dimension_numbers"]
    first = is_map(x)
    map_contract, other_contract = contract if first else contract[::-1]
    map_batch, other_batch = batch if first else batch[::-1]
    given, other = (x, y) if first else (y, x)
    constant = np.asarray(other) if is_static(other) else None
    other = jnp.asarray(value_of(other))
    shape = shape_of(equation)
    count = math.prod(given.shape[i] for i in map_contract)
    _check_size(count, shape)
    map_free = [i for i in range(len(given.shape)) if i not in (*map_contract, *map_batch)]
    other_free = [i for i in range(other.ndim) if i not in (*other_contract, *other_batch)]
    nb, nm, no = len(map_batch), len(map_free), len(other_free)
    # Dimensions of the result: of the batch, free ones of the first operand, free ones of the second.
    map_places = [*range(nb), *range(nb, nb + nm)] if first else [*range(nb), *range(nb + no, nb + no + nm)]
    other_places = [*range(nb), *range(nb + nm, nb + nm + no)] if first else [*range(nb), *range(nb, nb + no)]

    def arranged(a: Any, contracted: Any, batched: Any, free: Any, places: Any) -> Any:
        rest = [a.shape[i] for i in (*batched, *free)]
        spread = [1] * len(shape)
        for place, n in zip(places, rest, strict=True):
            spread[place] = n
        return a.transpose((*contracted, *batched, *free)).reshape((count, *spread))

    of_map = functools.partial(arranged, contracted=map_contract, batched=map_batch, free=map_free, places=map_places)
    of_other = functools.partial(
        arranged, contracted=other_contract, batched=other_batch, free=other_free, places=other_places
    )
    sources = np.broadcast_to(of_map(numbered(given.shape)), (count, *shape))
    if constant is not None:
        sources = np.where(of_other(constant) != 0, sources, -1)
    dtype = equation.outvars[0].aval.dtype
    return applied(
        given,
        Taps(
            count,
            sources,
            lambda k, data: jnp.broadcast_to(of_map(data)[k].astype(dtype), shape),
            lambda k: of_other(other)[k].astype(dtype),
        ),
    )
