"""Writing by index: ``x[key] = value``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array import keys as indexing
from .._core.array import writes
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.foreign import is_foreign, readable
from .._core.array.operands import allow_dense
from .._core.dispatch import explicit, late
from .._core.dispatch.registry import FUNCTIONS, Registry
from .._core.dtypes import native
from .conversion import asarray, exact_integers
from .data_type import astype
from .indexing import _core_position
from .searching import where as select

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core.typing import Shape

write_entries: Registry[Array | None] = Registry("write_entries")
"""``write_entries.kernel(A)``: registers a function of ``(x, items, value, donate)`` for a write of single entries.

The function returns the array after the write, or None if no structure can represent it. It runs eagerly, because integers
in a key affect the structure.
"""

_write_box = explicit.jit(indexing.write_box, static_argnums=0)
_write_box_donated = explicit.jit(indexing.write_box, static_argnums=0, donate_argnums=1)
_write_fancy = explicit.jit(indexing.write_fancy, static_argnums=0)
_write_fancy_donated = explicit.jit(indexing.write_fancy, static_argnums=0, donate_argnums=1)
_write_where = explicit.jit(
    lambda data, mask, value: jnp.where(_trailing(mask, data.ndim), value.astype(data.dtype), data)
)


def _trailing(mask: jax.Array, ndim: int) -> jax.Array:
    return mask.reshape(mask.shape + (1,) * (ndim - mask.ndim))


def setitem(x: Array, key: Any, value: Any) -> None:
    """Implement ``x[key] = value``: local to the call under a transform, otherwise visible in views and base."""
    if indexing.may_separate(key):
        key, value = _with_axis_of_separator(key, value, *writes.shape_and_dtype(x))
    key, value = _apart(key), _apart(_value(value, writes.shape_and_dtype(x)[1]))
    traced = writes.is_traced(key, value)  # a write of traced values may raise: then the array needs its buffer
    with writes.LOCK:
        target, owned = writes.held(x)
        owned = owned and not traced
        write: Callable[..., None] = _write_dense if type(target) is Dense else _write_structured
        write(x, target, owned, key, value)


def _with_axis_of_separator(key: Any, value: Any, shape: Shape, dtype: np.dtype) -> tuple[Any, Any]:
    """Return a key, and a value to be written there, with a new axis instead of an ellipsis that separates indices."""
    separated = indexing.without_separator(key, len(shape))
    if separated is None:
        return key, value
    key, axis = separated
    behind = len(indexing.result_axes(indexing.parse(key, shape))) - axis - 1
    value = _value(value, dtype)
    if value.ndim > behind:
        place = value.ndim - behind
        value = late.reshape(asarray(value), (*value.shape[:place], 1, *value.shape[place:]))
    return key, value


def _apart(value: Any) -> Any:
    """Copy the arrays in a key or a value: they may be the target of the write, or views of it."""
    if isinstance(value, tuple):
        return tuple(map(_apart, value))
    return value.__copy__() if isinstance(value, Array) else value


def _write_dense(x: Array, target: Dense, owned: bool, key: Any, value: Any) -> None:
    """Write into a dense array `x`; `target` is a handle on its value."""
    if isinstance(value, Array):
        value = value.to_jax()
    data = target.data
    mask = _single_mask(key, data.shape)
    # A compiled identity returns the buffer of its argument, so arrays may share the buffer of a scalar: never donate
    # it.
    donate = owned and data.ndim > 0 and not isinstance(data, jax.core.Tracer)
    if mask is not None and value.ndim == 0:
        new = _write_where(data, mask, value)
    else:
        new = written(data, indexing.parse(key, data.shape), value, donate)
    value = (new,), (Dense, None, frozenset())
    writes.write(x, value, "x[key] = value", owned=not writes.is_traced(new))


def written(data: jax.Array, items: Sequence[indexing.Item], value: jax.Array, donate: bool) -> jax.Array:
    """Return the data with the elements at a parsed key overwritten; `donate` gives its buffer away."""
    if indexing.is_basic(items):
        static, starts = indexing.box(items)
        _check_broadcast(value.shape, indexing._result_shape(static))
        whole: jax.Array = (_write_box_donated if donate else _write_box)(static, data, starts, value)
        return whole
    axes, operands = indexing.fancy(items)
    shape = explicit.eval_shape(lambda d, o: indexing.read_fancy(axes, d, o), data, operands).shape
    _check_broadcast(value.shape, shape)
    result: jax.Array = (_write_fancy_donated if donate else _write_fancy)(axes, data, operands, value)
    return result


def _value(value: Any, dtype: np.dtype) -> Any:
    """Convert the value to an array whose data type can be cast to the data type of the target."""
    if is_foreign(value):
        value = asarray(value)
    if isinstance(value, (Array, jax.Array)):
        pass
    elif isinstance(value, int) and not isinstance(value, bool) and dtype.kind in "iu":
        value = np.asarray(dtype.type(value))  # raises OverflowError if it is out of range
    else:
        host = readable(value, "x[key] = value")
        integers = exact_integers(host, dtype, "x[key] = value") if dtype.kind in "iu" else None
        value = native(np.asarray(host)) if integers is None else integers
        if value.dtype.kind not in "biufc" and not jnp.issubdtype(value.dtype, jnp.floating):
            raise TypeError(f"x[key] = value: value must be numeric or boolean, got {value.dtype}")
        if value.dtype.kind == "f" and value.ndim == 0 and dtype.kind not in "biu":
            value = value.astype(dtype)
    if value.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(f"x[key] = value: value of dtype {value.dtype} cannot be cast to the dtype of x, {dtype}")
    return value


def _check_broadcast(shape: Shape, into: Shape) -> None:
    extra = len(shape) - len(into)
    if extra > 0 and all(n == 1 for n in shape[:extra]):
        shape = shape[extra:]  # drop leading axes of length 1, as in NumPy
    if len(shape) > len(into) or any(
        n not in (1, m) for n, m in zip(shape, into[len(into) - len(shape) :], strict=True)
    ):
        raise ValueError(f"x[key] = value: value of shape {shape} cannot be broadcast to the shape of x[key], {into}")


def _single_mask(key: Any, shape: Shape) -> jax.Array | np.ndarray | None:
    """Return the key if it is one boolean array over the leading axes, otherwise None."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    if isinstance(key, (Array, jax.Array, np.ndarray)) and key.dtype == bool and key.shape == shape[: key.ndim]:
        return key.to_jax() if isinstance(key, Array) else key
    return None


def _write_structured(x: Array, target: Array, owned: bool, key: Any, value: Any) -> None:
    """Write into a structured array `x`; `target` is a handle on its value.

    The result has the narrowest structure that can represent it.
    """
    value, fresh = _as_array(value, target.dtype), False
    result: Array | None
    if isinstance(key, Array) and key.dtype == bool and key.shape == target.shape and value.shape == ():
        result = select(key, value, target)
    else:
        parsed, result = indexing.parse(key, target.shape), None
        if _one_for_each_axis(parsed):
            items, written_value = _without_new_axes(parsed, value)
            if _whole_matrices(target, items):
                result = _written_batch(target, items, written_value)
            if result is None:
                result = written_entries(target, items, written_value, owned)
                fresh = result is not None
        if result is None:
            result = _dense_for_write(target)
            setitem(result, indexing.as_key(parsed), value)
    new, aux = result._value
    value = new, (*aux[:2], frozenset())
    writes.write(x, value, "x[key] = value", owned=fresh and not writes.is_traced(new))


def written_entries(x: Array, items: Sequence[indexing.Item], value: Array, owned: bool) -> Array | None:
    """Return the array after a write, by the first kernel with a structure for it, or None."""
    for kernel in write_entries.find((type(x),)):
        if kernel.when is None or kernel.when(x):
            result = kernel.run(x, items, value, owned)
            if result is not None:
                return result
    return None


def _as_array(value: Array | jax.Array | np.ndarray, dtype: np.dtype) -> Array:
    """Convert a value to an array of the data type of the target."""
    if isinstance(value, Array):
        return astype(value, dtype)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        with jax.ensure_compile_time_eval():  # kernels may ask whether a number is zero
            return Dense.make((jnp.asarray(value, dtype),))
    return Dense.make((jnp.asarray(value, dtype),))


def _one_for_each_axis(items: Sequence[indexing.Item]) -> bool:
    """Return whether a key without its new axes has one item for each axis.

    This is not the case for a 0-d mask, and for new axes between index arrays, which move the axes of these to the
    front.
    """
    kinds = [item.kind for item in items]
    advanced = [i for i, kind in enumerate(kinds) if kind in ("int", "array")]
    parted = "array" in kinds and "new" in kinds[advanced[0] : advanced[-1]]
    return not parted and all(item.size >= 0 for item in items)


def _without_new_axes(items: Sequence[indexing.Item], value: Array) -> tuple[list[indexing.Item], Array]:
    """Remove the new axes from a key, and the corresponding axes from the value.

    Raises
    ------
    ValueError
        If the value cannot be broadcast to the shape of the selection.
    """
    axes = indexing.result_axes(items)
    _check_broadcast(value.shape, tuple(n for _, n in axes))
    extra = value.ndim - len(axes)
    added = tuple(i + extra for i, (kind, _) in enumerate(axes) if kind == "new" and i + extra >= 0)
    dropped = (*range(max(0, extra)), *added)
    if dropped:
        value = late.squeeze(value, dropped)
    return [item for item in items if item.kind != "new"], value


def _whole_matrices(x: Array, items: Sequence[indexing.Item]) -> bool:
    core = items[len(x.batch_shape) :]
    shape = x.shape[len(x.batch_shape) :]
    return all(indexing.is_full(item, n) for item, n in zip(core, shape, strict=True))


def _dense_for_write(x: Array) -> Dense:
    """Densify an array that no structure can represent after a write; only ``densify("error")`` forbids it."""
    allow_dense(x, "__setitem__", x.size, limit=False)
    return x.to_dense()


def _written_batch(x: Array, items: Sequence[indexing.Item], value: Array) -> Array | None:
    """Overwrite whole matrices, by writing the parameters in the join of both structures."""
    from .._structures.fill.array import Fill  # the structure of a constant value

    batch = len(x.batch_shape)
    core_shape = x.shape[batch:]
    constant = value.constant_over(x.core_ndim)
    if constant is not None:
        kept = constant.shape[: max(0, constant.ndim - x.core_ndim)]
        value = Fill.make((constant.reshape(kept),), core_shape)
    elif value.core_ndim != x.core_ndim or value.shape[len(value.batch_shape) :] != core_shape:
        return None
    if all(indexing.is_full(item, n) for item, n in zip(items, x.shape, strict=False)) and len(items) == len(x.shape):
        return value.map_parameters(
            lambda leaf: jnp.broadcast_to(leaf, x.batch_shape + leaf.shape[len(value.batch_shape) :])
        )
    if not (x.static_pattern and value.static_pattern):
        return None
    join = late.join
    x, _ = join(x, _without_batch(value))
    if type(x) is Dense:
        return None
    value, _ = join(value, _without_batch(x))
    static = tuple((item.kind,) for item in items)
    key = indexing.as_key(items[: _core_position(static, batch)])
    leaves = tuple(
        None if old is None else old.at[key].set(new) for old, new in zip(x._value[0], value._value[0], strict=True)
    )
    return type(x).make(leaves, x.meta)


def _without_batch(x: Array) -> Array:
    """Return an array with the structure of `x` without batch dimensions, for a join."""
    batch = len(x.batch_shape)
    return x.map_parameters(lambda leaf: jnp.zeros(leaf.shape[batch:], leaf.dtype))


cast("dict[str, Any]", FUNCTIONS)["setitem"] = setitem
