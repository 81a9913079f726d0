"""Keys of ``x[key]``: parse and check a key once, into one item for each axis (docs/design/semantics.md).

JAX clamps an index that is out of range; this module raises instead. Python integers and the starts of slices become
dynamic operands of compiled calls, so that a loop over them compiles once; sizes and steps are static.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._numerics.symbolic import as_length, is_symbolic
from ..dispatch import late
from ..dtypes import native, x64
from .base import Array
from .dense import Dense

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..typing import Shape

    BoxStatic = tuple[tuple[str, int, int], ...]
    """Kind, size and step of each item of a box."""
    FancyStatic = tuple[str | tuple[int, int, int] | None, ...]
    """Items of a key with index arrays: ``"array"`` (an operand), a slice, None (a new axis), or ``"new axis,
    indexed"``."""


class Item(NamedTuple):
    """The part of a key that applies to one axis.

    `kind` is ``"int"`` (at `start`), ``"slice"`` (`size` elements from `start` by `step`), ``"new"`` (a new axis) or
    ``"array"`` (the integers in `array`).
    """

    kind: str
    start: int = 0
    size: int = 1
    step: int = 1
    array: Any = None

    def operand(self) -> Any:
        """Return the integer or the integers of an item of the kind ``"int"`` or ``"array"``, as an array."""
        if self.kind == "array":
            return self.array
        return jnp.asarray(self.start) if is_symbolic(self.start) else np.asarray(self.start)


FULL = slice(None)


def parse(key: Any, shape: Shape) -> list[Item]:
    """Parse a key for an array of this shape: return one item for each axis, and one for each new axis.

    Raises
    ------
    IndexError
        If there are too many indices, an index is out of range or not an index, or a mask does not fit.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    parts = [_part(p) for p in parts]
    used = sum(_axes(p) for p in parts)
    ellipses = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can have only one ellipsis ('...')")
    if used > len(shape):
        raise IndexError(f"too many indices: the array has {len(shape)} dimensions, but {used} were indexed")
    fill = [FULL] * (len(shape) - used)
    if ellipses:
        parts[ellipses[0] : ellipses[0] + 1] = fill
    else:
        parts += fill
    items, axis = [], 0
    for part in parts:
        n = shape[axis] if axis < len(shape) else 0
        if part is None:
            items.append(Item("new"))
            continue
        if isinstance(part, int):
            items.append(Item("int", _checked(part, n, axis)))
        elif isinstance(part, slice):
            items.append(Item("slice", *_slice(part, n)))
        elif part.dtype == bool:
            items.extend(_mask(part, shape, axis))
            axis += part.ndim - 1
        else:
            items.append(Item("array", array=check_array(part, n, axis)))
        axis += 1
    _block(items)
    return items


def _block(items: Sequence[Item]) -> Shape:
    """Return the shape to which the index arrays broadcast.

    Raises
    ------
    IndexError
        If they do not broadcast.
    """
    shapes = [item.array.shape for item in items if item.kind == "array"]
    if len(shapes) < 2:
        return shapes[0] if shapes else ()
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        named = ", ".join(map(str, shapes))
        raise IndexError(f"index arrays of shapes {named} cannot be broadcast together") from None


def may_separate(key: Any) -> bool:
    """Return whether a key has an ellipsis between other parts."""
    return isinstance(key, tuple) and len(key) > 2 and any(part is Ellipsis for part in key[1:-1])


def without_separator(key: Any, ndim: int) -> tuple[tuple[Any, ...], int] | None:
    """Replace an ellipsis that stands for no axis, between two index arrays or an index array and an integer, by a new axis.

    As in NumPy, such an ellipsis separates the indices, so that their axes come first in the result. The function returns the key and
    the position of the new axis in its result, or None for any other key.
    """
    if not may_separate(key):
        return None
    parts = [_part(p) for p in key]
    if sum(map(_axes, parts)) != ndim or sum(p is Ellipsis for p in parts) > 1:
        return None
    place = next(i for i, p in enumerate(parts) if p is Ellipsis)
    are_indices = [not (p is None or p is Ellipsis or isinstance(p, slice)) for p in parts]
    if not (any(are_indices[:place]) and any(are_indices[place:])):
        return None
    arrays = [p for p, is_index in zip(parts, are_indices, strict=True) if is_index and not isinstance(p, int)]
    if not arrays:
        return None
    # A boolean array has the coordinates of its true elements: one axis, whose length does not matter here.
    block = max(1 if p.dtype == bool else p.ndim for p in arrays)
    return (*key[:place], None, *key[place + 1 :]), block + are_indices[:place].count(False)


def has_ellipsis(key: Any) -> bool:
    """Return whether a key has an ellipsis; the result of such a key is a view even if it has no dimensions."""
    return any(part is Ellipsis for part in (key if isinstance(key, tuple) else (key,)))


def _part(p: Any) -> Any:
    """Normalize one part of a key to None, Ellipsis, an int, a slice or an array."""
    if p is None or p is Ellipsis or isinstance(p, slice):
        return p
    if isinstance(p, (bool, np.bool_)):
        return np.asarray(p)
    if isinstance(p, (int, np.integer)):
        return int(p)
    if isinstance(p, Array):
        if type(p) is not Dense and p.dtype.kind == "b":
            return p  # only the true elements are needed
        p = p.to_jax() if type(p) is Dense else late.densified(p, "an index").to_jax()
    elif isinstance(p, (list, tuple)):
        p = np.asarray(p, dtype=None if len(p) else np.int64)
    if isinstance(p, (np.ndarray, jax.Array)):
        p = native(p)
        if p.dtype.kind not in "biu":
            raise IndexError(f"arrays used as indices must be of integer or boolean dtype, got {p.dtype}")
        if p.ndim == 0 and p.dtype.kind in "iu" and not isinstance(p, jax.core.Tracer):
            return int(p)
        return p
    try:
        return operator.index(p)
    except TypeError:
        raise IndexError(
            "only integers, slices, ellipsis, None, and integer or boolean arrays are indices, "
            f"got {type(p).__name__}: {str(p)[:60]}"
        ) from None


def _axes(part: Any) -> int:
    """Return the number of axes that a part consumes."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, (np.ndarray, jax.Array, Array)) and part.dtype.kind == "b" else 1


def _checked(i: int, n: int, axis: int) -> int:
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
    return i + n if i < 0 else i


def _slice(s: slice, n: int) -> tuple[int, int, int]:
    """Return the start, the number of elements and the step."""
    if is_symbolic(n):
        return _slice_of_symbolic_axis(s, n)
    try:
        start, stop, step = s.indices(n)
    except TypeError:
        raise IndexError(f"slice indices must be integers or None, got {s}") from None
    return start, len(range(start, stop, step)), step


def _slice_of_symbolic_axis(s: slice, n: Any) -> tuple[Any, Any, int]:
    if s.step not in (None, 1):
        raise IndexError(
            f"a slice of an axis of symbolic size {n} must have the step 1, got {s}; use sa.flip or sa.take"
        )

    def place(index: Any, default: Any) -> Any:
        if index is None:
            return default
        try:
            index = as_length(index)
        except TypeError:
            raise IndexError(f"slice indices must be integers or None, got {s}") from None
        return jax.core.max_dim(n + index, 0) if index < 0 else jax.core.min_dim(index, n)

    start, stop = place(s.start, 0), place(s.stop, n)
    return start, jax.core.max_dim(stop - start, 0), 1


def check_array(array: Any, n: int, axis: int) -> Any:
    """Check the range of an index array and return it on the host, nonnegative; return a traced array unchanged."""
    if array.size and n == 0:
        raise IndexError(f"an index array for axis {axis} of size 0 must be empty, got shape {array.shape}")
    if isinstance(array, jax.core.Tracer) or array.size == 0:
        return array
    host = np.asarray(array)
    low, high = int(host.min()), int(host.max())
    if low < -n or high >= n:
        raise IndexError(f"index {low if low < -n else high} is out of bounds for axis {axis} with size {n}")
    if low >= 0 or is_symbolic(n):
        return host
    return np.where(host < 0, host.astype(np.int64) + n, host)


def _mask(mask: np.ndarray | jax.Array | Array, shape: Shape, axis: int) -> list[Item]:
    """Convert a boolean array to the integer arrays of its true elements."""
    # As in NumPy and the standard's test suite, a mask without elements selects nothing, from axes of any size.
    sizes = shape[axis : axis + mask.ndim]
    if len(sizes) != mask.ndim or any(m not in (0, n) for m, n in zip(mask.shape, sizes, strict=True)):
        raise IndexError(
            f"a boolean index of shape {mask.shape} does not match axes {axis} to {axis + mask.ndim - 1} "
            f"of an array of shape {shape}"
        )
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(mask)):
        raise IndexError(
            "the number of elements that a boolean index selects must be known, but the index is traced (under jit, "
            "grad or vmap); use xp.where(mask, a, b), or x[mask] = value with a scalar value"
        )
    if isinstance(mask, Array):
        return [Item("array", array=np.asarray(a)) for a in late.nonzero(mask)]
    host = np.asarray(mask)
    if host.ndim == 0:
        # As in NumPy: a new axis with one element or none.
        return [Item("new"), Item("array", array=np.zeros(int(host), dtype=np.int64), size=-1)]
    return [Item("array", array=a) for a in np.nonzero(host)]


def result_axes(items: Sequence[Item]) -> list[tuple[str, int]]:
    """Return the axes of the selection, as pairs of a kind (``"slice"``, ``"new"`` or ``"array"``) and a size.

    As in NumPy, the integers broadcast with the index arrays. The resulting axes replace the first of them, or come
    first if a slice or a new axis separates them.
    """
    kept = [(item.kind, item.size if item.kind == "slice" else 1) for item in items]
    advanced = [i for i, item in enumerate(items) if item.kind in ("int", "array")]
    if is_basic(items):
        return [axis for axis in kept if axis[0] != "int"]
    block = _block(items)
    together = advanced[-1] - advanced[0] + 1 == len(advanced)
    place = advanced[0] if together else 0
    ahead = [axis for i, axis in enumerate(kept) if i < place and i not in advanced]
    behind = [axis for i, axis in enumerate(kept) if i >= place and i not in advanced]
    return [*ahead, *(("array", n) for n in block), *behind]


def as_slice(start: int, size: int, step: int) -> slice:
    """Return the slice of `size` elements from `start` by `step`."""
    stop = start + size * step
    return slice(start, stop if stop >= 0 else None, step) if size else slice(0, 0)


def as_key(items: Sequence[Item]) -> tuple[Any, ...]:
    """Convert items back to a key."""
    parts: list[Any] = []
    for item in items:
        if item.size == -1:  # a mask without dimensions: it creates its new axis itself
            parts[-1] = np.asarray(item.array.size == 1)
        elif item.kind == "slice":
            parts.append(as_slice(*item[1:4]))
        else:
            parts.append({"int": item.start, "new": None, "array": item.array}[item.kind])
    return tuple(parts)


def is_basic(items: Sequence[Item]) -> bool:
    """Return whether a key selects a box: integers, slices and new axes."""
    return all(item.kind != "array" for item in items)


def is_full(item: Item, n: int) -> bool:
    """Return whether an item selects its whole axis of size `n` in order."""
    return item.kind == "slice" and item.step == 1 and item.size == n and item.start == 0


# ---- a box of dense data: compiled once for all starts --------------------------------------------------------------


def box(items: Sequence[Item]) -> tuple[BoxStatic, np.ndarray | jax.Array]:
    """Return the static description of a box, and its starts."""
    static = tuple((item.kind, item.size, item.step) for item in items)
    starts = [
        item.start + min(0, (item.size - 1) * item.step) if item.size else 0 for item in items if item.kind != "new"
    ]
    dtype = np.int64 if x64() else np.int32
    if any(map(is_symbolic, starts)):
        return static, jnp.stack([jnp.asarray(start).astype(dtype) for start in starts])
    return static, np.asarray(starts, dtype=dtype)


def _cover(static: BoxStatic) -> tuple[list[int], list[int]]:
    """Return the sizes of the contiguous block around a box, and the strides within the block."""
    sizes, strides = [], []
    for kind, size, step in static:
        if kind != "new":
            sizes.append((size - 1) * abs(step) + 1 if size else 0)
            strides.append(abs(step))
    return sizes, strides


def _reversed(static: BoxStatic) -> list[int]:
    return [axis for axis, (_, _, step) in enumerate(s for s in static if s[0] != "new") if step < 0]


def _result_shape(static: BoxStatic) -> Shape:
    return tuple(1 if kind == "new" else size for kind, size, _ in static if kind != "int")


def read_box(static: BoxStatic, data: jax.Array, starts: Any) -> jax.Array:
    """Read the elements of a box."""
    sizes, strides = _cover(static)
    block = jax.lax.dynamic_slice(data, [starts[i] for i in range(data.ndim)], sizes) if data.ndim else data
    if any(s != 1 for s in strides):
        block = jax.lax.slice(block, [0] * block.ndim, block.shape, strides)
    return jax.lax.rev(block, _reversed(static)).reshape(_result_shape(static))


def write_box(static: BoxStatic, data: jax.Array, starts: Any, value: jax.Array) -> jax.Array:
    """Return the data with a box overwritten by a value that broadcasts to the box."""
    sizes, strides = _cover(static)
    shape = _result_shape(static)
    value = jnp.broadcast_to(_without_leading_ones(value, len(shape)), shape).astype(data.dtype)
    value = value.reshape([size for kind, size, _ in static if kind != "new"])
    value = jax.lax.rev(value, _reversed(static))
    if data.ndim == 0:
        return value
    starts = [starts[i] for i in range(data.ndim)]
    if any(s != 1 for s in strides):
        block = jax.lax.dynamic_slice(data, starts, sizes)
        value = block.at[tuple(slice(None, None, s) for s in strides)].set(value)
    return jax.lax.dynamic_update_slice(data, value, starts)


# ---- index arrays ---------------------------------------------------------------------------------------------------


def fancy(items: Sequence[Item]) -> tuple[FancyStatic, tuple[Any, ...]]:
    """Return the static description of a key with index arrays, and its dynamic operands."""
    static: list[str | tuple[int, int, int] | None] = []
    operands: list[Any] = []
    for item in items:
        if item.kind in ("int", "array"):
            static.append("array")
            operands.append(item.operand())
        elif item.kind == "new":
            static.append(None)
        else:
            static.append((item.start, item.size, item.step))
    # A zero-dimensional mask has a marker: its array indexes the new axis before it.
    for i, item in enumerate(items):
        if item.size == -1:
            static[i - 1 : i + 1] = ["new axis, indexed", "array"]
    return tuple(static), tuple(operands)


def _numpy_key(static: FancyStatic, operands: Sequence[Any]) -> tuple[Any, ...]:
    following = iter(operands)
    return tuple(
        next(following) if s == "array" else None if s is None else as_slice(*s)
        for s in static
        if s != "new axis, indexed"
    )


def _expanded(static: FancyStatic, data: jax.Array) -> jax.Array:
    """Insert the new axes that a zero-dimensional mask indexes."""
    axis = 0
    for s in static:
        if s == "new axis, indexed":
            data = data.reshape(*data.shape[:axis], 1, *data.shape[axis:])
        elif s is not None:
            axis += 1
    return data


def read_fancy(static: FancyStatic, data: jax.Array, operands: Sequence[Any]) -> jax.Array:
    """Read the elements at index arrays, by NumPy's rules."""
    return _expanded(static, data)[_numpy_key(static, operands)]


def write_fancy(static: FancyStatic, data: jax.Array, operands: Sequence[Any], value: jax.Array) -> jax.Array:
    """Return the data with the elements at index arrays overwritten."""
    expanded, key = _expanded(static, data), _numpy_key(static, operands)
    value = _without_leading_ones(value, jax.eval_shape(lambda d: d[key], expanded).ndim).astype(data.dtype)
    return expanded.at[key].set(value).reshape(data.shape)


def _without_leading_ones(value: jax.Array, ndim: int) -> jax.Array:
    """Remove leading dimensions of size 1 from a value to be written if it has more than `ndim` dimensions, as NumPy
    does.
    """
    return value.reshape(value.shape[max(0, value.ndim - ndim) :])


def is_open_mesh(items: Sequence[Item]) -> bool:
    """Return whether adjacent index arrays select all combinations of their indices, as the arrays of `numpy.ix_` do."""
    at = [i for i, item in enumerate(items) if item.kind == "array"]
    if len(at) < 2 or at[-1] - at[0] >= len(at) or any(item.kind == "int" or item.size == -1 for item in items):
        return False
    if any(is_symbolic(n) for i in at for n in items[i].array.shape):
        return False
    # Array j has its elements along dimension j of the result: `after` dimensions of length one follow.
    return all(
        array.ndim > after and math.prod(array.shape) == array.shape[-1 - after]
        for after, array in zip(range(len(at) - 1, -1, -1), (items[i].array for i in at), strict=True)
    ) and max(items[i].array.ndim for i in at) == len(at)


def mesh_size(items: Sequence[Item]) -> int:
    """The number of combinations of the indices of an open mesh."""
    return math.prod(item.array.size for item in items if item.kind == "array")


def along_each_axis(items: Sequence[Item], shape: Shape) -> list[list[Item]]:
    """Split an open mesh into keys with one index array each, and a last key with what else the key has."""
    whole = [Item("slice", size=n) for n in shape]
    keys, rest, axis = [], [], 0
    for item in items:
        if item.kind == "array":
            places = item.array.reshape(-1)
            keys.append([*whole[:axis], item._replace(array=places), *whole[axis + 1 :]])
            whole[axis] = item = Item("slice", size=len(places))
        rest.append(item)
        axis += item.kind != "new"
    return [*keys, rest]
