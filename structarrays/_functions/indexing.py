"""Reading by index: ``x[key]``, and the indexing functions of the standard."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array import keys as indexing
from .._core.array import writes
from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import allow_dense, densify
from .._core.array.operators import is_operand
from .._core.dispatch import explicit, late
from .._core.dispatch.decorator import function
from .._core.dispatch.function import Function
from .._core.dispatch.registry import FUNCTIONS
from .._core.dispatch.results import follow_eager_operands
from .._core.families.entries import elements_at, has_elements
from .._numerics.symbolic import index_dtype, is_symbolic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .._core.typing import Shape

    Key: TypeAlias = tuple[tuple[Any, ...], ...]
    """Static key: ``("int",)``, ``("array",)``, ``("new",)`` or ``("slice", start, size, step)`` for each axis."""

_read_box = explicit.jit(indexing.read_box, static_argnums=0)
_write_box = explicit.jit(indexing.write_box, static_argnums=0)
_read_fancy = explicit.jit(indexing.read_fancy, static_argnums=0)

# ---- reading --------------------------------------------------------------------------------------------------------


def getitem(x: Array, key: Any) -> Array:
    """Implement ``x[key]``. A basic key of a `Dense` array gives a view, except for a single element."""
    if indexing.may_separate(key):
        separated = indexing.without_separator(key, len(writes.shape_and_dtype(x)[0]))
        if separated is not None:
            key, axis = separated
            return late.squeeze(getitem(x, key), axis)
    items = indexing.parse(key, writes.shape_and_dtype(x)[0])
    with writes.LOCK:
        if writes.peek(x)[1][0] is Dense:
            dense: Any = x  # its value is dense
            return _read_dense(dense, items, indexing.has_ellipsis(key))
        seen = x.__copy__()  # another thread may change the class of `x`
    result: Array = follow_eager_operands(_read_structured(seen, items), key if isinstance(key, tuple) else (key,))
    return result


def _read_dense(x: Dense, items: Sequence[indexing.Item], ellipsis: bool) -> Array:
    """Implement ``x[key]`` of a dense array. Call it under the lock.

    The lock ensures that no write donates the buffer before the computation that reads it starts, and that `x` stays
    the owner.
    """
    basic = indexing.is_basic(items)
    if basic and (ellipsis or any(item.kind != "int" for item in items)):
        return _view(x, *indexing.box(items))
    (data,) = writes.peek(x)[0]
    if basic:
        # Single elements are copies, as in NumPy: `x[i], x[j] = x[j], x[i]` must exchange them.
        static, starts = indexing.box(items)
        return Dense.make((_read_box(static, data, starts),))
    axes, operands = indexing.fancy(items)
    if _on_host(data, items):
        host: Any = np.asarray(data)
        return Dense.make((jnp.asarray(indexing.read_fancy(axes, host, operands)),))
    return Dense.make((_read_fancy(axes, data, operands),))


def _on_host(data: jax.Array, items: Sequence[indexing.Item]) -> bool:
    """Return whether to select with NumPy: on the CPU this avoids a compilation for each number of elements."""
    if isinstance(data, jax.core.Tracer) or any(isinstance(item.array, jax.core.Tracer) for item in items):
        return False
    return all(d.platform == "cpu" for d in data.devices())


def _view(x: Dense, static: indexing.BoxStatic, starts: np.ndarray | jax.Array) -> Array:
    """Return a view of a box of a dense array."""
    return writes.make_view(
        Dense.make((_read_box(static, x.data, starts),)),
        x,
        lambda base: _read_box(static, base, starts),
        lambda base, new: _write_box(static, base, starts, new),
    )


def _read_structured(x: Array, items: Sequence[indexing.Item]) -> Array:
    """Read a key of a structured array. Integers and index arrays are dynamic; slices are static (they affect structure)."""
    # A mesh with fewer elements than the array stores is read by its coordinates.
    is_mesh = indexing.is_open_mesh(items) and not is_symbolic(x.nbytes)
    if is_mesh and indexing.mesh_size(items) * x.itemsize > x.nbytes:
        for one in indexing.along_each_axis(items, x.shape):
            x = _read_structured(x, one)
        return x
    static, operands = [], []
    for item in items:
        if item.kind in ("int", "array"):
            operands.append(item.operand())
        if item.size == -1:
            return _read_dense(densify(x, "__getitem__"), items, False)
        static.append((item.kind, item.start, item.size, item.step) if item.kind == "slice" else (item.kind,))
    return index(x, tuple(operands), key=tuple(static))


@function("x", "*operands", prefix="indexing.")
def index(x: ArrayLike, operands: tuple[ArrayLike, ...], /, *, key: Key) -> Array:
    """Return the elements of a structured array that a parsed key selects.

    The batch part of the key applies to the parameters. The kernel of the class receives the core part, with one item
    for each core dimension and no new axes.
    """
    x = cast("Array", x)
    sizes = [n for k, n in zip([k for k in key if k[0] != "new"], x.shape, strict=True) if k[0] in ("int", "array")]
    taken_at = [_in_range(o.dense_data(), n) for o, n in zip(cast("tuple[Array, ...]", operands), sizes, strict=True)]
    position = _core_position(key, len(x.batch_shape))
    batch, core = key[:position], key[position:]
    kinds_batch, kinds_core = {k[0] for k in batch}, {k[0] for k in core}
    if ("array" in kinds_core and kinds_batch & {"int", "array"}) or ("array" in kinds_batch and "int" in kinds_core):
        # NumPy broadcasts these indices, and moves their axes to the front if a slice separates them.
        return Dense.make((densify(x, "__getitem__").data[_numpy_key(key, taken_at)],))
    taken = sum(k[0] in ("int", "array") for k in batch)
    if not _keeps_all(batch, x.batch_shape):
        x = x.map_parameters(lambda leaf: leaf[_numpy_key(batch, taken_at[:taken])])
    if _keeps_all(core, x.shape[len(x.batch_shape) :]):
        return x
    result: Array = index.dispatch(x, operands=tuple(taken_at[taken:]), key=core)
    return result


index.follows = False  # `getitem` knows the type of the indices


@index.kernel(Dense)
def _index_dense(x: Dense, *, operands: tuple[jax.Array, ...], key: Key) -> Dense:
    return Dense.make((x.data[(..., *_numpy_key(key, operands))],))


def _by_coordinates(x: Array, *, operands: tuple[jax.Array, ...], key: Key) -> bool:
    """Return whether the structure has elements by coordinates, and NumPy keeps the axes of the result in place."""
    return has_elements(x) and not moves_axes(key)


def moves_axes(key: Sequence[tuple[Any, ...]]) -> bool:
    """Return whether a slice or a new axis separates index arrays: then NumPy moves their axes to the front."""
    advanced = [i for i, k in enumerate(key) if k[0] in ("int", "array")]
    return any(k[0] == "array" for k in key) and advanced[-1] - advanced[0] >= len(advanced)


@index.kernel(Array, when=_by_coordinates)
def _index_array_by_coordinates(x: Array, *, operands: tuple[jax.Array, ...], key: Key) -> Dense:
    """Compute the selected elements only. A result with a matrix counts as densified."""
    sizes = x.shape[len(x.batch_shape) :]
    places = [k for k in key if k[0] != "new"]
    arrays = [o for o in operands if o.ndim]
    block = jnp.broadcast_shapes(*(o.shape for o in arrays)) if any(k[0] == "array" for k in key) else ()
    slices = sum(k[0] == "slice" for k in places)
    # Index arrays that broadcast have fewer elements than the result; symbolic sizes can't be compared.
    broadcast = bool(arrays) and not is_symbolic(math.prod(block)) and math.prod(block) > max(o.size for o in arrays)
    if slices + bool(block) > 1 or broadcast:
        allow_dense(x, "__getitem__", math.prod(x.batch_shape + block + tuple(k[2] for k in places if k[0] == "slice")))
    # The axes of the index arrays replace the first index array or integer.
    first = next((i for i, k in enumerate(places) if k[0] != "slice"), 0)
    ndim, axis, coordinates, remaining = slices + len(block), 0, [], iter(operands)
    for i, (k, n) in enumerate(zip(places, sizes, strict=True)):
        if i == first and block:
            start, axis = axis, axis + len(block)
        if k[0] == "slice":
            _, begin, size, step = k
            line = begin + step * jax.lax.iota(index_dtype(n), size)
            coordinates.append(line.reshape((size,) + (1,) * (ndim - axis - 1)))
            axis += 1
        else:
            where = next(remaining)
            coordinates.append(where.reshape(where.shape + (1,) * (ndim - start - len(block))) if block else where)
    data = elements_at(x, coordinates)
    kept = tuple(None if k[0] == "new" else slice(None) for k in _with_block(key, len(block)) if k[0] != "int")
    return Dense.make((data[(..., *kept)],))


def _with_block(key: Key, block_ndim: int) -> list[tuple[Any, ...]]:
    """Return the key with one item for each dimension of the result and each new axis."""
    expanded, seen = [], False
    any_array = any(k[0] == "array" for k in key)
    for k in key:
        if k[0] in ("int", "array") and any_array:
            expanded += [] if seen else [("slice",)] * block_ndim
            seen = True
        else:
            expanded.append(k)
    return expanded


def _in_range(indices: jax.Array, n: int) -> jax.Array:
    """Normalize indices along an axis of length `n` to nonnegative ones. Traced indices out of range are clamped."""
    if n == 0:
        return indices
    if indices.dtype.kind == "u":
        return jnp.minimum(indices, min(n - 1, jnp.iinfo(indices.dtype).max)).astype(index_dtype(n))
    indices = indices.astype(jnp.promote_types(indices.dtype, index_dtype(n)))
    return jnp.clip(jnp.where(indices < 0, indices + n, indices), 0, n - 1)


def _core_position(key: Key, batch_ndim: int) -> int:
    """Return the position of the first item of the core; new axes directly before it belong to the batch."""
    seen = 0
    for position, item in enumerate(key):
        if item[0] != "new":
            if seen == batch_ndim:
                return position
            seen += 1
    return len(key)


def _keeps_all(key: Key, shape: Shape) -> bool:
    return key == tuple(("slice", 0, n, 1) for n in shape)


def _numpy_key(key: Key, operands: Iterable[jax.Array]) -> tuple[Any, ...]:
    """Combine a static key and its dynamic operands to a key of NumPy and JAX."""
    operands = iter(operands)
    return tuple(
        next(operands) if k[0] in ("int", "array") else None if k[0] == "new" else indexing.as_slice(*k[1:])
        for k in key
    )


# ---- indexing functions of the standard -----------------------------------------------------------------------------


class _Taking(Function[..., Array]):
    """A function of indices, which an eager call checks first: JAX clamps indices out of range."""

    def __call__(self, *args: Any, **kwargs: Any) -> Array:
        if len(args) == 2 and all(map(is_operand, args)):
            self._check_range(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def _check_range(self, x: Any, indices: Any, axis: int | None = None, **_: Any) -> None:
        data = indices.to_jax() if isinstance(indices, Array) else indices
        data = data if isinstance(data, jax.Array) else np.asarray(data)  # a Python integer
        if isinstance(data, jax.core.Tracer) or data.size == 0 or data.dtype.kind not in "iu" or not np.shape(x):
            return
        axis = (0 if len(x.shape) == 1 else -1) if axis is None else axis
        if -len(x.shape) <= axis < len(x.shape):
            indexing.check_array(data, x.shape[axis], axis % len(x.shape))


def _taking(define: Callable[..., Array]) -> _Taking:
    return _Taking(define, ("x", "indices"))


@_taking
def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Take elements along an axis.

    Parameters
    ----------
    x : array, (..., n, ...)
        Array with at least one dimension.
    indices : array, (...)
        Integer array. Its dimensions replace the axis. Negative indices count from the end.
    axis : int, optional
        Axis along which to take elements. It may be omitted if `x` is one-dimensional.

    Returns
    -------
    array
        Selected elements, in the data type of `x`. The structure is kept along batch axes.

    Raises
    ------
    IndexError
        If an index is out of range. Traced indices are clamped instead, as JAX does for ``x[indices]``.
    ValueError
        If `axis` is missing.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.take(sa.asarray([1.0, 2.0, 3.0]), sa.asarray([2, 0]))
    Dense([3., 1.], dtype=float64)
    """
    axis = _axis(x, axis, "take")
    _check_integers(indices, "take", "indices")
    if x.shape[axis] == 0 and indices.size:
        raise IndexError(f"take: indices must be empty for axis {axis} of length 0, got shape {indices.shape}")
    operands = (indices,)
    key = tuple(("array",) if i == axis else ("slice", 0, n, 1) for i, n in enumerate(x.shape))
    if type(x) is Dense:
        data = jnp.take(x.data, _in_range(indices.dense_data(), x.shape[axis]), axis=axis, mode="clip")
        return Dense.make((data,))
    return index(x, operands, key=key)


@_taking
def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Take elements along an axis, with different indices for each position on the other axes.

    Parameters
    ----------
    x : array, (..., n, ...)
        Array with at least one dimension.
    indices : array, (..., m, ...)
        Integer array with the number of dimensions of `x`. All axes except `axis` must broadcast.
    axis : int, default -1
        Axis along which to take elements.

    Returns
    -------
    array, (..., m, ...)
        Selected elements, in the data type of `x`.

    Raises
    ------
    IndexError
        If an index is out of range. Traced indices are clamped instead, as JAX does for ``x[indices]``.
    ValueError
        If the numbers of dimensions differ.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.take_along_axis(sa.asarray([[3.0, 1.0], [2.0, 5.0]]), sa.asarray([[1], [0]]))
    Dense([[1.],
           [2.]], dtype=float64)
    """
    axis = _axis(x, axis, "take_along_axis")
    _check_integers(indices, "take_along_axis", "indices")
    if indices.ndim != x.ndim:
        raise ValueError(
            f"take_along_axis: indices must have the number of dimensions of x, {x.ndim}, got shape {indices.shape}"
        )
    result: Array = take_along_axis.dispatch(x, indices, axis=axis)
    return result


@take_along_axis.kernel(Dense, Dense)
def _take_along_axis_dense_dense(x: Dense, indices: Dense, *, axis: int) -> Dense:
    shape = jnp.broadcast_shapes(
        x.shape[:axis] + (1,) + x.shape[axis + 1 :], indices.shape[:axis] + (1,) + indices.shape[axis + 1 :]
    )
    n, m = x.shape[axis], indices.shape[axis]
    data = jnp.broadcast_to(x.data, shape[:axis] + (n,) + shape[axis + 1 :])
    where = jnp.broadcast_to(_in_range(indices.data, n), shape[:axis] + (m,) + shape[axis + 1 :])
    return Dense.make((jnp.take_along_axis(data, where, axis=axis, mode="clip"),))


def _axis(x: Array, axis: int | None, name: str) -> int:
    if x.ndim == 0:
        raise np.exceptions.AxisError(f"{name}: x must have at least one dimension, got a 0-d array")
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}: axis must be given for an array of {x.ndim} dimensions, got None")
        return 0
    if not -x.ndim <= axis < x.ndim:
        raise np.exceptions.AxisError(f"{name}: axis {axis} is out of bounds for an array of {x.ndim} dimensions")
    return axis % x.ndim


def _check_integers(indices: Array, name: str, argument: str) -> None:
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{name}: {argument} must have an integer dtype, got {indices.dtype}")


cast("dict[str, Any]", FUNCTIONS)["getitem"] = getitem
