"""Rules of `structured` for primitives that move elements: shapes, joins, slices, gathers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.lax import GatherScatterMode

from .._core.array.base import Array
from .._core.families.entries import elements_at, has_elements
from .._core.jax_internals.equations import parameters
from .._functions.joining import broadcast_to, concat, stack, unstack
from .._functions.manipulation import tile
from .._structures.fill.array import Fill
from .constant_patterns import Constant, Triangle
from .rules import array, call, involved, is_special, plain, rule, unwrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

    from .._core.typing import Result, Shape
    from .interpreter import Interpreter


def _of_array(code: Callable[..., Result]) -> Callable[..., Result]:
    """Return a rule for a structured array as the first operand; constants of the program become dense."""

    def run(interpreter: Interpreter, equation: Any, x: Any, *others: Any) -> Result:
        return code(equation, x, *others) if isinstance(x, Array) else NotImplemented

    return run


@rule("broadcast_in_dim", source=True)
def _broadcast_in_dim_rule(interpreter: Interpreter, equation: Any, x: Any, *sizes: Any) -> Result:
    shape, places = tuple(parameters(equation)["shape"]), parameters(equation)["broadcast_dimensions"]
    if sizes:
        return NotImplemented
    if not is_special(x):
        # A matrix with equal elements becomes a `Constant` only if it may meet a structured array.
        if jnp.ndim(x) == 0 and len(shape) >= 2 and min(shape[-2:]) > 1:
            number = np.asarray(x) if isinstance(x, (np.generic, np.ndarray, int, float, complex)) else None
            return Constant(Fill.make((jnp.asarray(x),), shape), number)
        return NotImplemented
    if not isinstance(x, Array):
        trailing = tuple(range(len(shape) - len(x.shape), len(shape)))
        if isinstance(x, Constant) and tuple(places) == trailing and x.shape[-2:] == shape[-2:]:
            return Constant(broadcast_to.__wrapped__(x.array, shape), x.number)
        return NotImplemented
    new = tuple(i for i in range(len(shape)) if i not in places)
    x = array(call("expand_dims", x, axis=new)) if new else x
    return call("broadcast_to", x, shape=shape) if x.shape != shape else unwrapped(x)


@rule("transpose")
def _transpose_rule(interpreter: Interpreter, equation: Any, x: Any) -> Result:
    axes = tuple(parameters(equation)["permutation"])
    swaps = axes == (*range(len(axes) - 2), len(axes) - 1, len(axes) - 2)
    if isinstance(x, Triangle) and swaps:
        return Triangle(not x.lower, -x.k, x.shape[::-1], x.dtype)
    if isinstance(x, Constant) and swaps:
        result = call("matrix_transpose", x.array)
        return Constant(result) if isinstance(result, Array) else result
    if not isinstance(x, Array):
        return NotImplemented
    return call("matrix_transpose", x) if swaps else call("permute_dims", x, axes=axes)


@rule("reshape")
@_of_array
def _reshape_rule(equation: Any, x: Array) -> Result:
    if parameters(equation)["dimensions"] is not None:
        return NotImplemented
    return call("reshape", x, shape=tuple(parameters(equation)["new_sizes"]))


@rule("squeeze")
@_of_array
def _squeeze_rule(equation: Any, x: Array) -> Result:
    return call("squeeze", x, axis=tuple(parameters(equation)["dimensions"]))


@rule("rev")
@_of_array
def _rev_rule(equation: Any, x: Array) -> Result:
    return call("flip", x, axis=tuple(parameters(equation)["dimensions"]))


@rule("tile")
@_of_array
def _tile_rule(equation: Any, x: Array) -> Result:
    return unwrapped(tile.__wrapped__(x, tuple(parameters(equation)["reps"])))


@rule("concatenate")
def _concatenate_rule(interpreter: Interpreter, equation: Any, *values: Any) -> Result:
    if not involved(values):
        return NotImplemented
    return unwrapped(concat.__wrapped__(tuple(map(array, values)), axis=parameters(equation)["dimension"]))


@rule("stack")
def _stack_rule(interpreter: Interpreter, equation: Any, *values: Any) -> Result:
    if not involved(values):
        return NotImplemented
    return unwrapped(stack.__wrapped__(tuple(map(array, values)), axis=parameters(equation)["axis"]))


@rule("unstack")
@_of_array
def _unstack_rule(equation: Any, x: Array) -> Result:
    return [unwrapped(part) for part in unstack(x, axis=parameters(equation)["axis"])]


@rule("split")
def _split_rule(interpreter: Interpreter, equation: Any, x: Any) -> Result:
    if len(parameters(equation)["sizes"]) == 1:
        return [x]
    return _split(interpreter, equation, x)


@_of_array
def _split(equation: Any, x: Array) -> Result:
    axis, ends = parameters(equation)["axis"], np.cumsum(parameters(equation)["sizes"])
    return [
        _sliced(x, {axis: slice(int(end - size), int(end))})
        for size, end in zip(parameters(equation)["sizes"], ends, strict=True)
    ]


@rule("pad")
def _pad_rule(interpreter: Interpreter, equation: Any, x: Any, value: Any) -> Result:
    """Evaluate a padding by rows and columns of zeros, or their removal."""
    widths = parameters(equation)["padding_config"]
    if not isinstance(x, Array) or is_special(value) or any(inner for _, _, inner in widths):
        return NotImplemented
    if any(min(low, high) < -n for n, (low, high, _) in zip(x.shape, widths, strict=True)):
        return NotImplemented  # the removal on one side would include zeros added on the other
    zero = isinstance(value, (np.generic, np.ndarray, float, int, complex, bool)) and not np.any(value)
    if not zero and any(low > 0 or high > 0 for low, high, _ in widths):
        return NotImplemented
    kept = {
        i: slice(max(0, -low), n - max(0, -high))
        for i, (n, (low, high, _)) in enumerate(zip(x.shape, widths, strict=True))
    }
    result = array(_sliced(x, kept))
    for axis, (low, high, _) in enumerate(widths):
        if low > 0 or high > 0:
            sides = [Fill.make((jnp.zeros((), x.dtype),), _resized(result.shape, axis, max(0, n))) for n in (low, high)]
            parts = [part for part in (sides[0], result, sides[1]) if part.shape[axis]]
            result = concat.__wrapped__(tuple(parts), axis=axis)
    return unwrapped(result)


def _resized(shape: Shape, axis: int, n: int) -> Shape:
    return (*shape[:axis], n, *shape[axis + 1 :])


# ---- slices ----------------------------------------------------------------------------------------------------------


def _sliced(x: Array, slices: dict[int, slice]) -> Any:
    """Return the array with these slices along its axes."""
    key = tuple(slices.get(i, slice(None)) for i in range(x.ndim))
    if all(range(*s.indices(n)) == range(n) for s, n in zip(key, x.shape, strict=True)):
        return x
    return unwrapped(x[key])


@rule("slice")
@_of_array
def _slice_rule(equation: Any, x: Array) -> Result:
    p = parameters(equation)
    strides = p["strides"] or (1,) * x.ndim
    return _sliced(x, dict(enumerate(map(slice, p["start_indices"], p["limit_indices"], strides))))


@rule("dynamic_slice")
@_of_array
def _dynamic_slice_rule(equation: Any, x: Array, *starts: Any) -> Result:
    sizes = parameters(equation)["slice_sizes"]
    if len(starts) != x.ndim:
        return NotImplemented
    moved = [i for i, (n, size) in enumerate(zip(x.shape, sizes, strict=True)) if n != size]
    first = [
        jnp.clip(_index(plain(s, "dynamic_slice")), 0, n - size)
        for s, n, size in zip(starts, x.shape, sizes, strict=True)
    ]
    if not moved:
        return x
    if len(moved) == 1:
        (axis,) = moved
        return call("take", x, first[axis] + lax.iota(first[axis].dtype, sizes[axis]), axis=axis)
    if x.ndim == 2 and x.core_ndim == 2 and has_elements(x):
        rows, columns = (s + lax.iota(s.dtype, n) for s, n in zip(first, sizes, strict=True))
        return elements_at(x, (rows[:, None], columns[None, :]))
    return NotImplemented


def _index(numbers: jax.typing.ArrayLike) -> jax.Array:
    """Convert indices of rows or columns to a dtype that can represent the last index."""
    numbers = jnp.asarray(numbers)
    return numbers.astype(jnp.int32) if numbers.dtype.itemsize < 4 else numbers


@rule("gather")
@_of_array
def _gather_rule(equation: Any, x: Array, indices: Any) -> Result:
    """Gather single elements, or whole rows or columns of a matrix."""
    p = parameters(equation)
    numbers, sizes = p["dimension_numbers"], tuple(p["slice_sizes"])
    batched = numbers.operand_batching_dims or numbers.start_indices_batching_dims
    if batched or is_special(indices) or x.ndim != 2 or x.core_ndim != 2 or indices.ndim < 1:
        return NotImplemented
    axes = tuple(map(int, numbers.start_index_map))
    if tuple(map(int, numbers.collapsed_slice_dims)) != tuple(sorted(axes)) or any(sizes[a] != 1 for a in axes):
        return NotImplemented
    inside: jax.Array | bool
    indices, inside = _index(indices), True
    if p["mode"] == GatherScatterMode.FILL_OR_DROP:
        limits = jnp.asarray([x.shape[a] - 1 for a in axes], indices.dtype)
        inside = jnp.all((indices >= 0) & (indices <= limits), axis=-1)
    where = {a: jnp.clip(indices[..., k], 0, x.shape[a] - 1) for k, a in enumerate(axes)}
    if len(axes) == 2 and has_elements(x):
        return _filled(elements_at(x, (where[0], where[1])), inside, p["fill_value"])
    if len(axes) != 1 or sizes[1 - axes[0]] != x.shape[1 - axes[0]] or inside is not True:
        return NotImplemented
    (axis,) = axes
    (offset,) = map(int, numbers.offset_dims)
    if indices.ndim == 1:
        return call("squeeze", array(call("take", x, where[axis][None], axis=axis)), axis=axis)
    if indices.ndim == 2 and offset == 1 - axis:
        return call("take", x, where[axis], axis=axis)
    return NotImplemented


def _filled(values: jax.Array, inside: jax.Array | bool, fill: Any) -> jax.Array:
    """Replace values by JAX's fill value if an index was out of range."""
    if inside is True:
        return values
    if fill is None:
        fill = jnp.nan if jnp.issubdtype(values.dtype, jnp.inexact) else _extreme(values.dtype)
    return jnp.where(inside, values, jnp.asarray(fill, values.dtype))


def _extreme(dtype: np.dtype) -> int:
    if dtype.kind == "b":
        return True
    limits = jnp.iinfo(dtype)
    return limits.min if limits.min else limits.max
