"""Rules for functions that move, repeat or join elements: operations on batch dimensions act on the parameters.

Every parameter has the whole batch shape in front, so these rules serve all structures and name none. An operation on
core dimensions keeps an array that is constant over its core (`Fill`); each structure transposes its matrices itself.
All other operations densify.

The rules get nonnegative axes that have been checked.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import jax
import jax.numpy as jnp
from numpy.exceptions import AxisError

from ..._numerics.symbolic import as_length
from ..array.base import Array
from ..array.dense import Dense
from ..array.operands import densify, promote, to_dense
from ..dispatch import late
from ..dispatch.registry import Registry
from .factored import Factored
from .join import join, structure

if TYPE_CHECKING:
    from ..dispatch.function import Function
    from ..typing import Axes, Result, Rule, Shape, Static

concat_pair: Registry[Array] = Registry("concat_pair")
"""``concat_pair.kernel(A, B)`` registers ``(x, y, *, axis)``, which joins both along an axis, counted from the end. It
is for structures that are kept along a core axis, or whose entries have their own positions."""

# ---- axes as arguments ------------------------------------------------------------------------------------------------


def check_axis(function: str, axis: SupportsIndex, ndim: int, argument: str = "axis") -> int:
    """Normalize an axis to a nonnegative integer.

    Raises
    ------
    numpy.exceptions.AxisError
        If the axis is out of range; the error is a ValueError and an IndexError.
    TypeError
        If the axis is not an integer.
    """
    try:
        index = operator.index(axis)
    except TypeError:
        raise TypeError(f"{function}: {argument} must be an integer, got {axis!r}") from None
    if not -ndim <= index < ndim:
        raise AxisError(index, ndim, function if argument == "axis" else f"{function}: {argument}")
    return index % ndim


def check_axes(function: str, axes: Axes | list[int], ndim: int, argument: str = "axis") -> tuple[int, ...]:
    """Normalize one or several axes to a tuple of nonnegative integers; None selects all axes.

    Raises
    ------
    ValueError
        If an axis is repeated or (as in `check_axis`) out of range.
    """
    if axes is None:
        return tuple(range(ndim))
    if not isinstance(axes, (tuple, list)):
        return (check_axis(function, axes, ndim, argument),)
    checked = tuple(check_axis(function, axis, ndim, argument) for axis in axes)
    if len(set(checked)) != len(checked):
        raise ValueError(f"{function}: {argument} must not name an axis twice, got {tuple(axes)} for {ndim} dimensions")
    return checked


def check_shape(function: str, shape: Any, argument: str = "shape", *, lowest: int = 0) -> Shape:
    """Normalize a shape to a tuple of integers, each at least `lowest`."""
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    try:
        sizes: Shape = tuple(map(as_length, shape))
    except TypeError:
        raise TypeError(f"{function}: {argument} must be a tuple of integers, got {shape!r}") from None
    if any(n < lowest for n in sizes):
        raise ValueError(f"{function}: {argument} must contain integers of at least {lowest}, got {sizes}")
    return sizes


# ---- arrays that are constant over their core -------------------------------------------------------------------------


def is_constant(x: Array) -> bool:
    """Return whether an array has one value for its whole core; this value is its only parameter."""
    return x.core_ndim > 0 and x.constant_over(x.core_ndim) is not None


def filled(x: Array, value: Any, core: Sequence[int]) -> Array:
    """Return an array like the constant `x`, with another value and core; dense if no core dimension remains."""
    return type(x).make((value,), tuple(core)) if core else Dense.make((value,))


def parts(x: Array) -> tuple[Shape, Shape]:
    """Return batch shape and core shape."""
    batch = x.batch_shape
    return batch, x.shape[len(batch) :]


def map_elements(x: Array, formula: Callable[[Any], Any]) -> Result:
    """Apply `formula` (an elementwise function of plain arrays) to all elements, stored or not.

    Structural zeros become a background. The result is NotImplemented for structures that store no entries.
    """
    if x.stores_entries:
        background = jnp.zeros((), x.dtype) if x.background is None else x.background
        background = jnp.broadcast_to(formula(background), x.batch_shape)
        return x.rebuild(tuple(formula(e) for e in x.entries), background)
    return x.map_parameters(formula) if is_constant(x) else NotImplemented


# ---- the rules --------------------------------------------------------------------------------------------------------


def along_batch(act: Callable[..., Any]) -> Rule:
    """Return the rule of a function ``act(data, axis, **static)`` that acts along axes and maps zeros to zeros.

    `axis` may be an integer, a tuple or None; along a core axis the array densifies.
    """

    def along_batch_axes(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
        (x,), batch = args, args[0].batch_shape
        axes = static["axis"]
        axes = (axes,) if isinstance(axes, int) else axes
        if axes is None or any(axis >= len(batch) for axis in axes) or not x.static_pattern:
            return NotImplemented
        # `act` would not reach ones that are not parameters (a unit diagonal).
        x = x if x.linear else x.freed()
        return x.map_parameters(lambda leaf: act(leaf, **static))

    return along_batch_axes


def broadcast_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Rule of `broadcast_to`."""
    (x,), shape = args, static["shape"]
    batch, core = parts(x)
    kept = len(shape) - len(core)
    if is_constant(x):
        (value,) = x._value[0]
        return filled(x, jnp.broadcast_to(value, shape[:kept]), shape[kept:])
    if shape[kept:] != core:
        return NotImplemented
    return x.map_parameters(lambda leaf: jnp.broadcast_to(leaf, shape[:kept] + leaf.shape[len(batch) :]))


def expand_dims_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Rule of `expand_dims`: a new axis before the core belongs to the batch."""
    (x,), axes = args, static["axis"]
    batch, core = parts(x)
    old = [axis for axis in range(x.ndim + len(axes)) if axis not in axes]
    first_core = old[len(batch)]
    new_batch = tuple(axis for axis in axes if axis < first_core)
    if len(new_batch) < len(axes):
        if not is_constant(x):
            return NotImplemented
        (value,) = x._value[0]
        sizes = [x.shape[old.index(axis)] if axis in old else 1 for axis in range(first_core, len(old) + len(axes))]
        return filled(x, jnp.expand_dims(value, new_batch), sizes)
    return x.map_parameters(lambda leaf: jnp.expand_dims(leaf, new_batch))


def squeeze_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Rule of `squeeze`: a matrix with one column becomes a vector, which is dense."""
    (x,), axes = args, static["axis"]
    batch, core = parts(x)
    from_batch = tuple(axis for axis in axes if axis < len(batch))
    if len(from_batch) == len(axes):
        return x.map_parameters(lambda leaf: jnp.squeeze(leaf, from_batch))
    if is_constant(x):
        (value,) = x._value[0]
        kept = [n for axis, n in enumerate(core, len(batch)) if axis not in axes]
        return filled(x, jnp.squeeze(value, from_batch), kept)
    left = len(core) - len(axes) + len(from_batch)
    data = x.dense_data() if left < 2 else densify(x, "squeeze").data
    return Dense.make((jnp.squeeze(data, axes),))


def reshape_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Rule of `reshape`: it reshapes the batch; of a constant array also the core."""
    (x,), shape = args, static["shape"]
    batch, core = parts(x)
    kept = len(shape) - len(core)
    if kept >= 0 and shape[kept:] == core and math.prod(shape[:kept]) == math.prod(batch):
        return x.map_parameters(lambda leaf: leaf.reshape(shape[:kept] + leaf.shape[len(batch) :]))
    if is_constant(x):
        (value,) = x._value[0]
        for kept in range(len(shape) + 1):
            if math.prod(shape[:kept]) == value.size and math.prod(shape[kept:]) == math.prod(core):
                return filled(x, value.reshape(shape[:kept]), shape[kept:])
    return NotImplemented


def permute_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Rule of `permute_dims`: it permutes within the batch and within the core, but does not mix them."""
    (x,), axes = args, static["axes"]
    batch, core = parts(x)
    ahead, behind = axes[: len(batch)], tuple(axis - len(batch) for axis in axes[len(batch) :])
    if any(axis >= len(batch) for axis in ahead):
        return NotImplemented
    if is_constant(x):
        (value,) = x._value[0]
        return filled(x, value.transpose(ahead), [core[axis] for axis in behind])
    in_order = tuple(range(len(core)))
    if behind not in (in_order, (1, 0)):
        return NotImplemented
    x = x.map_parameters(lambda leaf: leaf.transpose(ahead + tuple(range(len(batch), leaf.ndim))))
    return x if behind == in_order else late.matrix_transpose(x)


def flip_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Rule of `flip`: it does not change a constant core."""
    (x,), axes = args, static["axis"]
    in_batch = tuple(axis for axis in axes if axis < len(x.batch_shape))
    if len(in_batch) < len(axes) and not is_constant(x):
        return NotImplemented
    return x.map_parameters(lambda leaf: jnp.flip(leaf, in_batch))


def roll_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Rule of `roll`: it does not change a constant core."""
    (x,), axes = args, static["axis"]
    batch = x.batch_shape
    if axes is None:
        return x.map_parameters(lambda leaf: leaf) if is_constant(x) and not batch else NotImplemented
    in_batch = [(shift, axis) for shift, axis in zip(static["shift"], axes, strict=True) if axis < len(batch)]
    if len(in_batch) < len(axes) and not is_constant(x):
        return NotImplemented
    for shift, axis in in_batch:
        x = x.map_parameters(functools.partial(jnp.roll, shift=shift, axis=axis))
    return x


def repeat_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Rule of `repeat` with one count for all elements."""
    (x,), axis, repeats = args, static["axis"], static["repeats"]
    batch, core = parts(x)
    if axis is not None and axis < len(batch):
        return x.map_parameters(lambda leaf: jnp.repeat(leaf, repeats, axis=axis))
    if not is_constant(x) or (axis is None and batch):
        return NotImplemented
    (value,) = x._value[0]
    if axis is None:
        return filled(x, value, (x.size * repeats,))
    axis -= len(batch)
    return filled(x, value, (*core[:axis], core[axis] * repeats, *core[axis + 1 :]))


def tile_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Rule of `tile`; there is one repetition for each dimension of the result."""
    (x,), repetitions = args, static["repetitions"]
    batch, core = parts(x)
    kept = len(repetitions) - len(core)

    def tiled(leaf: Any) -> Any:
        leaf = leaf.reshape((1,) * (kept - len(batch)) + leaf.shape)
        return jnp.tile(leaf, repetitions[:kept] + (1,) * (leaf.ndim - kept))

    if is_constant(x):
        (value,) = x._value[0]
        return filled(x, tiled(value), [n * r for n, r in zip(core, repetitions[kept:], strict=True)])
    return x.map_parameters(tiled) if all(r == 1 for r in repetitions[kept:]) else NotImplemented


def unstack_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Rule of `unstack`."""
    (x,), axis = args, static["axis"]
    batch, core = parts(x)
    if axis < len(batch):
        return tuple(
            x.map_parameters(functools.partial(jax.lax.index_in_dim, index=i, axis=axis, keepdims=False))
            for i in range(batch[axis])
        )
    if not is_constant(x):
        return NotImplemented
    (value,) = x._value[0]
    axis -= len(batch)
    return (filled(x, value, core[:axis] + core[axis + 1 :]),) * core[axis]


def joining(act: Callable[[list[Any], Any], Any], *, new_axis: bool) -> Rule:
    """Return the rule of `stack` and `concat`: ``act(list of data, axis)`` joins the parameters, or the dense forms."""

    def join_along_axis(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
        axis, joined = static["axis"], None
        if axis is not None:
            behind = args[0].ndim - axis - (not new_axis)
            if any(isinstance(x, Factored) for x in args):
                if behind >= 2 and _leaves_fit(args, axis, new_axis):
                    return jax.tree.map(lambda *leaves: act(list(leaves), axis), *args)
            else:
                joined = _in_one_structure(args, behind)
            if joined is None:
                result = _pair_by_pair(*_along_existing(args, axis, new_axis))
                if result is not None:
                    return result
        if joined is None:
            dense = [_dense_operand(x, args, function.name).data for x in args]
            return Dense.make((act(dense, axis),))
        groups = zip(*(x._value[0] for x in joined), strict=True)
        leaves = tuple(None if group[0] is None else act(list(group), axis) for group in groups)
        cls, meta = structure(joined[0])
        return cls.make(leaves, meta)

    return join_along_axis


def _leaves_fit(arrays: Sequence[Array], axis: int, new_axis: bool) -> bool:
    """Return whether factored arrays have the same parts, so that their parameters can be joined along a batch axis."""
    if len({jax.tree.structure(x) for x in arrays}) > 1:
        return False
    shapes = [[leaf.shape for leaf in jax.tree.leaves(x)] for x in arrays]
    if not new_axis:
        shapes = [[s[:axis] + s[axis + 1 :] for s in each] for each in shapes]
    return all(each == shapes[0] for each in shapes)


def _along_existing(arrays: Sequence[Array], axis: int, new_axis: bool) -> tuple[Sequence[Array], int]:
    """Return the arrays with the joined axis, and its number from the end; no arrays if `stack` adds a core axis."""
    if not new_axis:
        return arrays, axis - arrays[0].ndim
    if any(axis > len(x.batch_shape) for x in arrays):
        return (), 0
    return [x.map_parameters(lambda leaf: jnp.expand_dims(leaf, axis)) for x in arrays], axis - arrays[0].ndim - 1


def _pair_by_pair(arrays: Sequence[Array], axis: int) -> Array | None:
    """Join arrays by kernels of `concat_pair`; None if a pair has no kernel.

    Neighbours are joined first, so that no array is copied more than a few times.
    """
    if not arrays:
        return None
    arrays = promote(*arrays)
    while len(arrays) > 1:
        joined = []
        for x, y in zip(arrays[::2], arrays[1::2], strict=False):
            kernel = concat_pair.choose((x, y), {"axis": axis})
            if kernel is None:
                return None
            joined.append(kernel.run(x, y, axis=axis))
        arrays = joined + arrays[len(arrays) // 2 * 2 :]
    return arrays[0]


def _dense_operand(x: Array, others: Sequence[Array], name: str) -> Dense:
    """Densify; it does not count as densified if another operand of the same shape is dense already."""
    return to_dense(x) if any(type(y) is Dense and y.shape == x.shape for y in others) else densify(x, name)


def _in_one_structure(arrays: Sequence[Array], behind: int) -> list[Array] | None:
    """Convert arrays to the narrowest common structure, with backgrounds in all or none of them.

    None if this structure is dense, or has more core dimensions than follow the axis. Unlike `join_all`, the function
    accepts batch shapes that only have the same length.
    """
    if not all(x.static_pattern for x in arrays):
        return None  # their entries have different positions, and perhaps different numbers
    core = min(behind, *(x.core_ndim for x in arrays))
    narrowed = [n for x in arrays if (n := _narrowed(x, core)) is not None]
    if len(narrowed) < len(arrays):
        return None
    # Join single matrices of each batch to find the structure, since a join broadcasts batch shapes.
    widest = functools.reduce(lambda one, other: join(one, other)[0], map(_without_batch, narrowed))
    if type(widest) is Dense or not widest.static_pattern:
        return None
    joined = [
        x if structure(x) == structure(widest) else join(x, _with_batch(widest, x.batch_shape))[0] for x in narrowed
    ]
    if any(x.background is not None for x in joined):
        joined = [
            x.rebuild(x.entries, jnp.zeros(x.batch_shape, x.dtype)) if x.stores_entries and x.background is None else x
            for x in joined
        ]
    return joined


def _narrowed(x: Array, core: int) -> Array | None:
    """Return the array with only `core` core dimensions (at least one); None if that is impossible."""
    if core < 1 or (x.core_ndim > core and not is_constant(x)):
        return None
    if x.core_ndim == core:
        return x
    (value,), shape = x._value[0], x.shape
    kept = len(shape) - core
    value = value.reshape(value.shape + (1,) * (kept - value.ndim))
    return filled(x, jnp.broadcast_to(value, shape[:kept]), shape[kept:])


def _without_batch(x: Array) -> Array:
    batch = len(x.batch_shape)
    return x.map_parameters(lambda leaf: jnp.zeros(leaf.shape[batch:], leaf.dtype))


def _with_batch(x: Array, batch: Shape) -> Array:
    return x.map_parameters(lambda leaf: jnp.broadcast_to(leaf, batch + leaf.shape))
