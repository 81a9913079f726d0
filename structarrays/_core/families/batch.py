"""Rules for functions that move, repeat or join elements: what concerns batch dimensions acts on the parameters.

Every parameter carries the whole batch shape in front, so these rules serve all structures, and none is named here. What
concerns core dimensions keeps an array that is constant over its core (`Fill`), and a transposition of a matrix is the
structure's own. Everything else is left to the dispatcher, which densifies.

The rules get axes that are checked and not negative.
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
"""``concat_pair.kernel(A, B)``: ``(x, y, *, axis)`` to both joined along an axis, which is counted from behind: for structures
that keep theirs along a core axis, or whose entries stand at places of their own."""

# ---- axes as arguments ------------------------------------------------------------------------------------------------


def check_axis(function: str, axis: SupportsIndex, ndim: int, argument: str = "axis") -> int:
    """An axis as a number that is not negative.

    Raises
    ------
    numpy.exceptions.AxisError
        If it is out of range; it is a ValueError and an IndexError.
    TypeError
        If it is no integer.
    """
    try:
        index = operator.index(axis)
    except TypeError:
        raise TypeError(f"{function}: {argument} must be an integer, got {axis!r}") from None
    if not -ndim <= index < ndim:
        raise AxisError(index, ndim, function if argument == "axis" else f"{function}: {argument}")
    return index % ndim


def check_axes(function: str, axes: Axes | list[int], ndim: int, argument: str = "axis") -> tuple[int, ...]:
    """An axis or several as a tuple of numbers that are not negative; None is all of them.

    Raises
    ------
    ValueError
        If an axis is named twice, or (as `check_axis`) is out of range.
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
    """A shape as a tuple of integers, each at least `lowest`."""
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    try:
        sizes: Shape = tuple(map(operator.index, shape))
    except TypeError:
        raise TypeError(f"{function}: {argument} must be a tuple of integers, got {shape!r}") from None
    if any(n < lowest for n in sizes):
        raise ValueError(f"{function}: {argument} must not hold numbers below {lowest}, got {sizes}")
    return sizes


# ---- arrays that are constant over their core -------------------------------------------------------------------------


def is_constant(x: Array) -> bool:
    """Whether an array has one value for all of its core, which is then its only parameter."""
    return x.core_ndim > 0 and x.constant_over(x.core_ndim) is not None


def filled(x: Array, value: Any, core: Sequence[int]) -> Array:
    """An array like the constant `x`, with another value and core; dense where no core dimension is left."""
    return type(x).make((value,), tuple(core)) if core else Dense.make((value,))


def parts(x: Array) -> tuple[Shape, Shape]:
    """Batch shape and core shape."""
    batch = x.batch_shape
    return batch, x.shape[len(batch) :]


def map_elements(x: Array, formula: Callable[[Any], Any]) -> Result:
    """An array with `formula` (on plain arrays, element by element) applied to all of its elements, stored or not.

    The structural zero becomes a background. NotImplemented for structures that store no entries.
    """
    if x.stores_entries:
        background = jnp.zeros((), x.dtype) if x.background is None else x.background
        background = jnp.broadcast_to(formula(background), x.batch_shape)
        return x.rebuild(tuple(formula(e) for e in x.entries), background)
    return x.map_parameters(formula) if is_constant(x) else NotImplemented


# ---- the rules --------------------------------------------------------------------------------------------------------


def along_batch(act: Callable[..., Any]) -> Rule:
    """The rule of a function that acts along axes and gives zeros for zeros, by ``act(data, axis, **static)``.

    `axis` may be a number, a tuple or None; a core axis is left to the dense form.
    """

    def along_batch_axes(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
        (x,), batch = args, args[0].batch_shape
        axes = static["axis"]
        axes = (axes,) if isinstance(axes, int) else axes
        if axes is None or any(axis >= len(batch) for axis in axes) or not x.static_pattern:
            return NotImplemented
        # Ones that no parameter holds (a unit diagonal) would be left as they are.
        x = x if x.linear else x.freed()
        return x.map_parameters(lambda leaf: act(leaf, **static))

    return along_batch_axes


def broadcast_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """`broadcast_to`."""
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
    """`expand_dims`: an axis before or right behind the batch is one of the batch."""
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
    """`squeeze`: of a matrix that is one column, a vector is left, which is dense."""
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
    """`reshape`: of the batch alone; a constant array also of its core."""
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
    """`permute_dims`: of the batch, and within the core; never both mixed."""
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
    """`flip`: a constant core looks the same from behind."""
    (x,), axes = args, static["axis"]
    in_batch = tuple(axis for axis in axes if axis < len(x.batch_shape))
    if len(in_batch) < len(axes) and not is_constant(x):
        return NotImplemented
    return x.map_parameters(lambda leaf: jnp.flip(leaf, in_batch))


def roll_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """`roll`: a constant core looks the same rolled."""
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
    """`repeat` by one number."""
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
    """`tile`: the repetitions are as many as the result has dimensions."""
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
    """`unstack`."""
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
    """The rule of `stack` and `concat`, which join by ``act(list of data, axis)``: the parameters, or dense forms."""

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
            dense = [_dense_beside(x, args, function.name).data for x in args]
            return Dense.make((act(dense, axis),))
        groups = zip(*(x._value[0] for x in joined), strict=True)
        leaves = tuple(None if group[0] is None else act(list(group), axis) for group in groups)
        cls, meta = structure(joined[0])
        return cls.make(leaves, meta)

    return join_along_axis


def _leaves_fit(arrays: Sequence[Array], axis: int, new_axis: bool) -> bool:
    """Whether factored arrays are alike in all of their parts, so that their parameters can be joined along a batch axis."""
    if len({jax.tree.structure(x) for x in arrays}) > 1:
        return False
    shapes = [[leaf.shape for leaf in jax.tree.leaves(x)] for x in arrays]
    if not new_axis:
        shapes = [[s[:axis] + s[axis + 1 :] for s in each] for each in shapes]
    return all(each == shapes[0] for each in shapes)


def _along_existing(arrays: Sequence[Array], axis: int, new_axis: bool) -> tuple[Sequence[Array], int]:
    """The arrays, with the axis along which they are joined, and its number from behind; none if it is new to a core."""
    if not new_axis:
        return arrays, axis - arrays[0].ndim
    if any(axis > len(x.batch_shape) for x in arrays):
        return (), 0
    return [x.map_parameters(lambda leaf: jnp.expand_dims(leaf, axis)) for x in arrays], axis - arrays[0].ndim - 1


def _pair_by_pair(arrays: Sequence[Array], axis: int) -> Array | None:
    """The arrays joined by kernels of `concat_pair`, neighbours first, so that none is copied more than a few times; None if
    there is not a kernel for each pair.
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


def _dense_beside(x: Array, others: Sequence[Array], name: str) -> Dense:
    """The dense form; where another operand of that shape is dense anyway, it does not count as densified."""
    return to_dense(x) if any(type(y) is Dense and y.shape == x.shape for y in others) else densify(x, name)


def _in_one_structure(arrays: Sequence[Array], behind: int) -> list[Array] | None:
    """The arrays in the narrowest structure that holds them all, with backgrounds in all or none of them; None if that
    is dense, or has more core dimensions than there are behind the axis. Unlike `join_all` it takes any batch shapes of
    equal length.
    """
    if not all(x.static_pattern for x in arrays):
        return None  # their entries stand at different places, and may not be equally many
    core = min(behind, *(x.core_ndim for x in arrays))
    narrowed = [n for x in arrays if (n := _narrowed(x, core)) is not None]
    if len(narrowed) < len(arrays):
        return None
    # The structure is found on single elements of the batch, since a join broadcasts batch shapes.
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
    """The array with only so many core dimensions, at least one; None where that is not possible."""
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
