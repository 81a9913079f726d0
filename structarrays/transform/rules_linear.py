"""Rules of `linear_programs` for primitives of arrays: element-wise functions, selections and indices."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core.jax_internals.equations import bind
from .linear_maps import (
    Entries,
    LinearMap,
    Terms,
    TooManyEntriesError,
    added,
    canonical,
    entries_of,
    joined,
    numbered,
    padded,
    scaled,
    selected,
    take,
)
from .linear_programs import is_map, is_static, is_zero, rule, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core.typing import Shape


def shape_of(equation: Any) -> Shape:
    """The shape of the first result of an equation."""
    shape: Shape = equation.outvars[0].aval.shape
    return shape


def _fitted(x: LinearMap, shape: Shape) -> LinearMap:
    """Broadcast a map to a shape as JAX broadcasts an operand: a scalar, or dimensions of length 1."""
    if x.shape == shape:
        return x
    sources = np.broadcast_to(numbered(x.shape), shape)
    return selected(x, sources, lambda data: jnp.broadcast_to(data, shape))


# ---- element-wise functions ------------------------------------------------------------------------------------------


@rule("neg", "real", "imag", "conj", "copy", "copy_p", "reduce_precision", "convert_element_type", "name")
def _linear_function_rule(interpreter: Any, equation: Any, x: Any) -> Any:
    if not jnp.issubdtype(equation.outvars[0].aval.dtype, jnp.inexact):
        return NotImplemented  # an integer part is not linear
    return scaled(x, lambda data, at: bind(equation, [data]))


@rule("optimization_barrier")
def _optimization_barrier_rule(interpreter: Any, equation: Any, *values: Any) -> Any:
    return list(values)


@rule("mul")
def _mul_rule(interpreter: Any, equation: Any, x: Any, y: Any) -> Any:
    if is_map(x) and is_map(y):
        return NotImplemented
    if is_map(y):
        x, y = y, x
    return scaled(_fitted(x, shape_of(equation)), lambda data, at: data * at(value_of(y)))


@rule("div")
def _div_rule(interpreter: Any, equation: Any, x: Any, y: Any) -> Any:
    if is_map(y):
        return NotImplemented
    return scaled(_fitted(x, shape_of(equation)), lambda data, at: data / at(value_of(y)))


@rule("add", "add_any", "sub")
def _add_rule(interpreter: Any, equation: Any, x: Any, y: Any) -> Any:
    if not (is_zero(x) and is_zero(y)):
        return NotImplemented
    shape = shape_of(equation)
    negative = equation.primitive.name == "sub"
    if is_map(y) and negative:
        y = scaled(y, lambda data, at: -data)
    if not (is_map(x) and is_map(y)):
        return _fitted(x if is_map(x) else y, shape)
    return added(_fitted(x, shape), _fitted(y, shape))


@rule("complex")
def _complex_rule(interpreter: Any, equation: Any, x: Any, y: Any) -> Any:
    if not (is_zero(x) and is_zero(y)):
        return NotImplemented
    shape = shape_of(equation)
    parts = [
        scaled(_fitted(part, shape), make)
        for part, make in (
            (x, lambda data, at: lax.complex(data, jnp.zeros_like(data))),
            (y, lambda data, at: lax.complex(jnp.zeros_like(data), data)),
        )
        if is_map(part)
    ]
    return functools.reduce(added, parts)


@rule("select_n")
def _select_rule(interpreter: Any, equation: Any, which: Any, *cases: Any) -> Any:
    if is_map(which) or not all(map(is_zero, cases)):
        return NotImplemented
    shape = shape_of(equation)
    parts = []
    for i, case in enumerate(cases):
        if is_map(case):
            if is_static(which):
                chosen = np.broadcast_to(np.asarray(which) == i, shape)
                kept = selected(
                    case,
                    np.where(chosen, numbered(shape), -1),
                    functools.partial(lambda chosen, data: jnp.where(chosen, data, 0), chosen),
                )
            else:
                chosen = value_of(which) == i

                def keep(data: jax.Array, at: Callable[[Any], jax.Array], chosen: jax.Array = chosen) -> jax.Array:
                    return jnp.where(at(chosen), data, jnp.zeros((), data.dtype))

                kept = scaled(case, keep)
            parts.append(kept)
    return functools.reduce(added, parts)


# ---- selections ------------------------------------------------------------------------------------------------------


def _moved(equation: Any, x: LinearMap, function: Callable[[np.ndarray], np.ndarray]) -> LinearMap:
    """Apply a primitive that only moves elements: `function` does the same with an array of NumPy."""
    return selected(x, function(numbered(x.shape)), lambda data: bind(equation, [data]))


@rule("reshape")
def _reshape_rule(interpreter: Any, equation: Any, x: Any) -> Any:
    if equation.params["dimensions"] is not None:
        return NotImplemented
    return _moved(equation, x, lambda a: a.reshape(shape_of(equation)))


@rule("squeeze")
def _squeeze_rule(interpreter: Any, equation: Any, x: Any) -> Any:
    return _moved(equation, x, lambda a: a.reshape(shape_of(equation)))


@rule("transpose")
def _transpose_rule(interpreter: Any, equation: Any, x: Any) -> Any:
    return _moved(equation, x, lambda a: a.transpose(equation.params["permutation"]))


@rule("rev")
def _rev_rule(interpreter: Any, equation: Any, x: Any) -> Any:
    return _moved(equation, x, lambda a: np.flip(a, equation.params["dimensions"]))


@rule("tile")
def _tile_rule(interpreter: Any, equation: Any, x: Any) -> Any:
    return _moved(equation, x, lambda a: np.tile(a, equation.params["reps"]))


@rule("broadcast_in_dim")
def _broadcast_rule(interpreter: Any, equation: Any, x: Any, *dynamic: Any) -> Any:
    if dynamic:
        return NotImplemented
    shape = shape_of(equation)
    inner = [1] * len(shape)
    for axis, n in zip(equation.params["broadcast_dimensions"], x.shape, strict=True):
        inner[axis] = n
    return _moved(equation, x, lambda a: np.broadcast_to(a.reshape(inner), shape))


@rule("slice")
def _slice_rule(interpreter: Any, equation: Any, x: Any) -> Any:
    p = equation.params
    strides = p["strides"] or (1,) * len(x.shape)
    key = tuple(slice(*each) for each in zip(p["start_indices"], p["limit_indices"], strides, strict=True))
    return _moved(equation, x, lambda a: a[key])


@rule("split")
def _split_rule(interpreter: Any, equation: Any, x: Any) -> Any:
    axis, start, results = equation.params["axis"], 0, []
    for size in equation.params["sizes"]:
        key = (slice(None),) * axis + (slice(start, start + size),)
        results.append(selected(x, numbered(x.shape)[key], functools.partial(lambda key, data: data[key], key)))
        start += size
    return results


@rule("unstack")
def _unstack_rule(interpreter: Any, equation: Any, x: Any) -> Any:
    axis = equation.params["axis"]
    return [element(x, i, axis) for i in range(x.shape[axis])]


def element(x: LinearMap, i: int, axis: int = 0) -> LinearMap:
    """Return the map whose result is one element along an axis of the result of `x`."""
    sources = np.take(numbered(x.shape), i, axis=axis)
    return selected(x, sources, lambda data: lax.index_in_dim(data, i, axis, keepdims=False))


@rule("concatenate")
def _concatenate_rule(interpreter: Any, equation: Any, *values: Any) -> Any:
    if not all(map(is_zero, values)):
        return NotImplemented
    axis, start, pairs = equation.params["dimension"], 0, []
    for value, variable in zip(values, equation.invars, strict=True):
        pairs.append((start, value if is_map(value) else None))
        start += variable.aval.shape[axis]
    return joined(shape_of(equation), axis, pairs, next(filter(is_map, values)))


@rule("stack")
def _stack_rule(interpreter: Any, equation: Any, *values: Any) -> Any:
    return stacked(shape_of(equation), equation.params["axis"], values)


def stacked(shape: Shape, axis: int, values: Sequence[Any]) -> LinearMap:
    """Return the map whose result is a stack of results."""
    if not all(map(is_zero, values)):
        raise TooManyEntriesError
    inner = tuple(1 if i == axis else n for i, n in enumerate(shape))
    pairs = [
        (i, selected(v, numbered(v.shape).reshape(inner), lambda data: data.reshape(inner)) if is_map(v) else None)
        for i, v in enumerate(values)
    ]
    return joined(shape, axis, pairs, next(filter(is_map, values)))


@rule("pad")
def _pad_rule(interpreter: Any, equation: Any, x: Any, padding: Any) -> Any:
    if not (is_zero(x) and is_zero(padding)):
        return NotImplemented
    config = equation.params["padding_config"]
    zero = jnp.zeros((), equation.outvars[0].aval.dtype)
    parts = []
    if is_map(x):
        parts.append(selected(x, padded_indices(numbered(x.shape), config), lambda data: bind(equation, [data, zero])))
    if is_map(padding):
        outside = padded_indices(np.zeros(equation.invars[0].aval.shape, np.int8), config) < 0
        parts.append(selected(padding, np.where(outside, 0, -1)))
    return functools.reduce(added, parts)


def padded_indices(a: np.ndarray, config: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """Pad indices with -1, as `lax.pad` does it."""
    for axis, (low, high, interior) in enumerate(config):
        n = a.shape[axis]
        wide = n + max(n - 1, 0) * interior
        spread = np.full((*a.shape[:axis], wide, *a.shape[axis + 1 :]), -1, a.dtype)
        before = (slice(None),) * axis
        spread[(*before, slice(None, None, interior + 1))] = a
        widths = [(0, 0)] * a.ndim
        widths[axis] = (max(low, 0), max(high, 0))
        a = np.pad(spread, widths, constant_values=-1)
        a = a[(*before, slice(max(-low, 0), a.shape[axis] - max(-high, 0)))]
    return a


# ---- indices ---------------------------------------------------------------------------------------------------------


def _constant(function: Callable[..., Any], *values: Any) -> np.ndarray:
    """Evaluate a function of constants while JAX traces."""
    with jax.ensure_compile_time_eval():
        return np.asarray(function(*map(jnp.asarray, values)))


@rule("gather")
def _gather_rule(interpreter: Any, equation: Any, x: Any, indices: Any) -> Any:
    if not is_map(x) or not is_static(indices):
        return NotImplemented
    p = equation.params
    fills = p["mode"] in (None, lax.GatherScatterMode.FILL_OR_DROP)
    numbers = {"fill_value": -1} if fills else {}

    def gather(operand: Any, **more: Any) -> Any:
        return lax.gather(
            operand,
            jnp.asarray(indices),
            p["dimension_numbers"],
            p["slice_sizes"],
            unique_indices=p["unique_indices"],
            indices_are_sorted=p["indices_are_sorted"],
            mode=p["mode"],
            **more,
        )

    sources = _constant(functools.partial(gather, **numbers), numbered(x.shape))
    return selected(x, sources, lambda data: gather(data, **({"fill_value": 0} if fills else {})))


@rule("dynamic_slice")
def _dynamic_slice_rule(interpreter: Any, equation: Any, x: Any, *starts: Any) -> Any:
    if not is_map(x) or not all(map(is_static, starts)):
        return NotImplemented
    key = _window(starts, equation.params["slice_sizes"], x.shape)
    return selected(x, numbered(x.shape)[key], lambda data: data[key])


def _window(starts: Sequence[Any], sizes: Sequence[int], shape: Shape) -> tuple[slice, ...]:
    """Return the slices of a window, moved inside of the array as JAX does it."""
    begins = [min(max(int(s), 0), n - size) for s, size, n in zip(starts, sizes, shape, strict=True)]
    return tuple(slice(b, b + size) for b, size in zip(begins, sizes, strict=True))


@rule("dynamic_update_slice")
def _dynamic_update_slice_rule(interpreter: Any, equation: Any, x: Any, update: Any, *starts: Any) -> Any:
    if not all(map(is_static, starts)) or not (is_zero(x) and is_zero(update)):
        return NotImplemented
    shape = shape_of(equation)
    key = _window(starts, equation.invars[1].aval.shape, shape)
    parts = []
    if is_map(x):
        kept = numbered(shape).copy()
        kept[key] = -1
        parts.append(selected(x, kept, lambda data: data.at[key].set(0)))
    if is_map(update):
        sources = np.full(shape, -1, np.int64)
        sources[key] = numbered(update.shape)
        widths = [(s.start, n - s.stop) for s, n in zip(key, shape, strict=True)]
        parts.append(selected(update, sources, functools.partial(padded, widths=widths)))
    return functools.reduce(added, parts)


@rule("scatter-add", "scatter")
def _scatter_rule(interpreter: Any, equation: Any, x: Any, indices: Any, update: Any) -> Any:
    if not is_static(indices) or not (is_zero(x) and is_zero(update)):
        return NotImplemented
    p, shape = equation.params, shape_of(equation)
    adds = equation.primitive.name == "scatter-add"
    scatter = lax.scatter_add if adds else lax.scatter
    update_shape = equation.invars[2].aval.shape
    rest = {name: p[name] for name in ("unique_indices", "indices_are_sorted", "mode")}
    where = jnp.asarray(indices)

    def targets(numbers: Any) -> Any:
        # The transpose of `scatter_add` reads the element that each update changes.
        def write(update: jax.Array) -> jax.Array:
            empty = jnp.zeros(shape, update.dtype)
            return lax.scatter_add(empty, where, update, p["dimension_numbers"], mode=p["mode"])

        transposed = jax.linear_transpose(write, jax.ShapeDtypeStruct(update_shape, jnp.float32))
        return transposed(numbers)[0]

    # Two numbers represent each target, since 32 bits of a floating-point number do not suffice.
    size = math.prod(shape)
    all_targets = np.arange(1, size + 1).reshape(shape)
    high, low = (_constant(targets, part.astype(np.float32)) for part in (all_targets // 2**20, all_targets % 2**20))
    destination = high.astype(np.int64).reshape(-1) * 2**20 + low.astype(np.int64).reshape(-1) - 1

    parts = []
    written = destination >= 0
    sources, once = _inverse(destination, size)
    if not adds and not once:
        return NotImplemented  # the order of the writes matters
    if is_map(x):
        if adds:
            parts.append(x)
        else:
            kept = numbered(shape).reshape(-1).copy()
            kept[destination[written]] = -1
            zeros = jnp.zeros(update_shape, x.dtype)
            parts.append(
                selected(
                    x, kept.reshape(shape), lambda data: scatter(data, where, zeros, p["dimension_numbers"], **rest)
                )
            )
    if is_map(update):
        if once:

            def write(data: jax.Array) -> jax.Array:
                return scatter(jnp.zeros(shape, data.dtype), where, data, p["dimension_numbers"], **rest)

            parts.append(selected(update, sources.reshape(shape), write))
        else:
            parts.append(_collected(update, destination, shape))
    return functools.reduce(added, parts)


def _inverse(destination: np.ndarray, size: int) -> tuple[np.ndarray, bool]:
    """Return the update that writes each element, -1 if none does, and whether no element is written twice."""
    written = np.flatnonzero(destination >= 0)
    sources = np.full(size, -1, np.int64)
    sources[destination[written]] = written
    return sources, bool(np.count_nonzero(sources >= 0) == len(written))


def _collected(x: LinearMap, destination: np.ndarray, shape: Shape) -> LinearMap:
    """Return the map whose entry ``destination[j]`` is the sum of all entries j of the result of `x`."""
    order = np.argsort(destination, kind="stable")
    order = order[destination[order] >= 0]
    target = destination[order]
    begins = np.flatnonzero(np.append(True, target[1:] != target[:-1])) if len(target) else np.zeros(0, np.int64)
    lengths = np.diff(np.append(begins, len(target)))
    rank = np.arange(len(target)) - np.repeat(begins, lengths)
    count = int(rank.max(initial=-1)) + 1
    if isinstance(x, Terms) and count * len(x.terms) <= 16:
        sources = np.full((count, math.prod(shape)), -1, np.int64)
        sources[rank, target] = order
        sources = sources.reshape(count, *shape)
        result: LinearMap = Terms(shape, x.inputs, [], x.dtype)
        for each in sources:
            result = added(result, selected(x, each))
        return result
    x = entries_of(x)
    rows = destination[x.rows]
    kept = np.flatnonzero(rows >= 0)
    return canonical(Entries(shape, x.inputs, rows[kept], x.columns[kept], take(x.data, kept)))
