"""Sparse arrays in other shapes: new coordinates are computed in time proportional to the number of entries."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import SMALL
from ..._functions.elementwise import subtract
from ..._functions.indexing import index
from ..._functions.linalg import matmul, matrix_transpose, tensordot
from ..._functions.linear_algebra import contracted_axes
from ..._functions.manipulation import expand_dims, permute_dims, repeat, reshape, squeeze, tile
from ..._functions.utility import diff
from . import numerics
from .array import Sparse
from .indexing import in_core
from .reductions import with_new_axes
from .sorted_entries import index_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import jax

    from ..._core.typing import Result, Shape

# ---- axes of size one -------------------------------------------------------------------------------------------------


def new_core_axes(x: Sparse, axes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return which new axes belong to the core of the result, numbered within it, and which to the batch."""
    old = [axis for axis in range(x.ndim + len(axes)) if axis not in axes]
    first = old[len(x.batch_shape)]
    return tuple(a - first for a in axes if a > first), tuple(a for a in axes if a < first)


@expand_dims.kernel(Sparse, when=lambda x, *, axis: new_core_axes(x, axis)[0] != ())
def _expand_dims_sparse(x: Sparse, *, axis: tuple[int, ...]) -> Sparse:
    core, batch = new_core_axes(x, axis)
    return with_new_axes(x, core).map_parameters(lambda leaf: jnp.expand_dims(leaf, batch))


def _has_new_axes(x: Sparse, *, operands: Sequence[jax.Array], key: tuple[tuple[Any, ...], ...]) -> bool:
    kinds = [k[0] for k in key]
    return set(kinds) <= {"int", "slice", "new"} and "new" in kinds and "slice" in kinds


@index.kernel(Sparse, when=_has_new_axes, before="index_box_of_sparse")
def _index_sparse_with_new_axes(x: Sparse, *, operands: Sequence[jax.Array], key: tuple[tuple[Any, ...], ...]) -> Array:
    kept = [k for k in key if k[0] != "int"]
    places = tuple(i for i, k in enumerate(kept) if k[0] == "new")
    plain = tuple(k for k in key if k[0] != "new")
    if plain != tuple(("slice", 0, n, 1) for n in x.core_shape):
        x = index.dispatch(x, operands=operands, key=plain)
    if type(x) is Sparse:
        return with_new_axes(x, places)
    return Dense.make((jnp.expand_dims(x.data, tuple(i - len(kept) for i in places)),))


def _keeps_a_matrix(x: Sparse, *, axis: tuple[int, ...]) -> bool:
    return x.core_ndim - sum(a >= len(x.batch_shape) for a in axis) >= 2


@squeeze.kernel(Sparse, when=lambda x, *, axis: in_core(x, axis) and _keeps_a_matrix(x, axis=axis))
def _squeeze_sparse(x: Sparse, *, axis: tuple[int, ...]) -> Sparse:
    batch = len(x.batch_shape)
    kept = [i for i in range(x.core_ndim) if i + batch not in axis]
    shape = tuple(x.core_shape[i] for i in kept)
    order = tuple(kept.index(i) for i in x.order if i in kept)
    leaves = (x.data, *(x.coords[i] for i in kept), x.background)
    return Sparse.make(leaves, (shape, order, x.padded)).map_parameters(
        lambda leaf: jnp.squeeze(leaf, tuple(a for a in axis if a < batch))
    )


# ---- other sizes --------------------------------------------------------------------------------------------------------


def split_shape(x: Sparse, shape: Shape) -> int | None:
    """Return the number of batch dimensions of a new shape; None if it mixes batch and core dimensions."""
    count = math.prod(x.batch_shape)
    core = x.shape[len(x.batch_shape) :]
    behind = len(shape) - len(core)
    kept: int
    for kept in (*((behind,) if shape[behind:] == core else ()), len(x.batch_shape), *range(len(shape))):
        if 0 <= kept < len(shape) and math.prod(shape[:kept]) == count and math.prod(shape[kept:]) == math.prod(core):
            return kept
    return None


def can_reshape(x: Sparse, *, shape: Shape) -> bool:
    """Return whether the coordinates in a new shape can be computed.

    They follow from the flat index if integers can represent it, and without it from a matrix to a matrix.
    """
    kept = split_shape(x, shape)
    if kept is None:
        return False
    core = x.shape[len(x.batch_shape) :]  # `x` may be of any class that `to_sparse` takes
    matrices = len(core) == len(shape) - kept == 2 and max(*core, *shape[kept:]) < 2**31 - 1
    return matrices or not _is_too_large(x)


def _is_too_large(x: Sparse) -> bool:
    """Return whether there are more elements than the default integers can count (static)."""
    return math.prod(x.shape[len(x.batch_shape) :]) >= np.iinfo(np.dtype(jnp.result_type(int))).max


def changes_core(x: Sparse, shape: Shape) -> bool:
    """Return whether a new shape has another core."""
    return split_shape(x, shape) is None or shape[split_shape(x, shape) :] != x.shape[len(x.batch_shape) :]


@reshape.kernel(Sparse, when=can_reshape)
def _reshape_sparse(x: Sparse, *, shape: Shape) -> Sparse:
    kept = split_shape(x, shape)
    batch, core = shape[:kept], shape[kept:]
    if core != x.core_shape:
        x = _with_core_shape(x._in_order(tuple(range(x.core_ndim))), core)
    own = len(x.batch_shape)
    return x.map_parameters(lambda leaf: leaf.reshape(batch + leaf.shape[own:]))


def _with_core_shape(x: Sparse, shape: Shape) -> Sparse:
    outside, dtype = x.coords[0] >= x.core_shape[0], index_dtype(shape)
    if _is_too_large(x):
        coordinates: Iterable[jax.Array] = numerics.divided(x.coords[0], x.core_shape[1], x.coords[1], shape[1])
    else:
        flat, behind = numerics.flat_index(x.coords, x.core_shape), []
        for n in shape[:0:-1]:
            flat, place = jnp.divmod(flat, max(1, n))
            behind.append(place)
        coordinates = [flat, *behind[::-1]]
    coordinates = (jnp.where(outside, n, c).astype(dtype) for c, n in zip(coordinates, shape, strict=True))
    return Sparse.make((x.data, *coordinates, x.background), (shape, tuple(range(len(shape))), x.padded))


@repeat.kernel(Sparse, when=lambda x, *, repeats, axis: axis is not None and in_core(x, (axis,)))
def _repeat_sparse(x: Sparse, *, repeats: int, axis: int) -> Sparse:
    return _copies(x, axis - len(x.batch_shape), repeats, lambda c, copy, n: c * repeats + copy)


@tile.kernel(Sparse, when=lambda x, *, repetitions: any(r != 1 for r in repetitions[-x.core_ndim :]))
def _tile_sparse(x: Sparse, *, repetitions: tuple[int, ...]) -> Array:
    kept = len(repetitions) - x.core_ndim
    for axis, count in enumerate(repetitions[kept:]):
        if count != 1:
            x = _copies(x, axis, count, lambda c, copy, n: c + copy * n)
    result: Array = tile.dispatch(x, repetitions=(*repetitions[:kept], *(1,) * x.core_ndim))
    return result


def _copies(x: Sparse, axis: int, count: int, place: Callable[[jax.Array, jax.Array, int], jax.Array]) -> Sparse:
    """Repeat each entry `count` times, at the coordinates ``place(c, copy, n)`` of one axis."""
    n = x.core_shape[axis]
    shape = (*x.core_shape[:axis], n * count, *x.core_shape[axis + 1 :])
    dtype = index_dtype(shape)

    def copies(data: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, ...]:
        outside = (coordinates[0] >= x.core_shape[0])[:, None]
        copy = jnp.arange(count, dtype=dtype)
        places = [c[:, None].astype(dtype) for c in coordinates]
        places[axis] = place(places[axis], copy, n)
        inside = (jnp.where(outside, m, c) for c, m in zip(places, shape, strict=True))
        places = [jnp.broadcast_to(c, (x.nnz, count)).ravel() for c in inside]
        return numerics.sort_by(x.order, jnp.repeat(data, count), *places)

    leaves = x._over_batch(copies, x.data, *x.coords)
    return Sparse.make((*leaves, x.background), (shape, x.order, x.padded))


# ---- products of more than two dimensions, by products of matrices ------------------------------------------------------


@matmul.kernel(Sparse, Array, when=lambda x1, x2: x1.core_ndim > 2 and x2.ndim <= 2)
def _matmul_sparse(x1: Sparse, x2: Array) -> Array:
    """Multiply all rows of all matrices as one tall matrix."""
    *ahead, m, n = x1.shape
    product = matmul.dispatch(reshape.dispatch(x1, shape=_as_rows(x1, n)), x2)
    result: Array = reshape.dispatch(product, shape=(*ahead, m, *x2.shape[1:]))
    return result


def _stacks(x1: Sparse, x2: Array) -> bool:
    return x1.core_ndim > 2 and x2.ndim == 2 and x1.shape[-1] == x2.shape[0]


@matmul.eager_kernel(Sparse, Sparse, when=_stacks)
@matmul.eager_kernel(Sparse, Array, when=_stacks)
def _matmul_stacks_of_sparse_eagerly(x1: Sparse, x2: Array) -> Array:
    """Multiply stacks of two sparse arrays; the result has exactly the entries of the product."""
    *ahead, m, n = x1.shape
    return reshape(matmul(reshape(x1, _as_rows(x1, n)), x2), (*ahead, m, x2.shape[1]))


@matmul.kernel(Array, Sparse, when=lambda x1, x2: x2.core_ndim > 2 and x1.ndim == 1)
def _matmul_array_sparse(x1: Array, x2: Sparse) -> Array:
    product: Array = matmul.dispatch(matrix_transpose.dispatch(x2), x1)
    return product


def _as_rows(x: Sparse, n: int) -> Shape:
    return (*x.batch_shape, math.prod(x.core_shape[:-1]), n)


def _contracts_more_dimensions(x1: Sparse, x2: Sparse, *, axes: Any = 2) -> bool:
    plain = all(not x.batch_shape and x.background is None and x.dtype.kind != "b" for x in (x1, x2))
    return plain and max(x1.ndim, x2.ndim) > 2


@tensordot.eager_kernel(Sparse, Sparse, when=_contracts_more_dimensions, traced=True, before="tensordot_sparse_eager")
def _tensordot_of_more_dimensions_eagerly(x1: Sparse, x2: Sparse, *, axes: Any = 2) -> Result:
    """Multiply matrices with the contracted axes as one dimension; the result has exactly the entries of the product."""
    axes1, axes2 = contracted_axes(x1, x2, axes)
    kept1, kept2 = ([a for a in range(x.ndim) if a not in own] for x, own in ((x1, axes1), (x2, axes2)))
    if not axes1 or len(kept1) + len(kept2) < 2:
        return NotImplemented
    inner = math.prod(x1.shape[a] for a in axes1)
    shape1, shape2 = (tuple(x.shape[a] for a in kept) for x, kept in ((x1, kept1), (x2, kept2)))
    tall, wide = (math.prod(shape1), inner), (inner, math.prod(shape2))
    if max(map(math.prod, (tall, wide, (tall[0], wide[1])))) >= np.iinfo(np.int64).max:
        return NotImplemented
    first = reshape(permute_dims(x1, (*kept1, *axes1)), tall)
    second = reshape(permute_dims(x2, (*axes2, *kept2)), wide)
    return reshape(matmul(first, second), shape1 + shape2)


# ---- differences ----------------------------------------------------------------------------------------------------------


def has_sparse_differences(x: Sparse, *, axis: int, n: int) -> bool:
    """Return whether the differences store fewer entries than elements, by static shapes.

    Each step may double the number of entries.
    """
    few = x.nnz * 2**n <= max(math.prod(x.core_shape), SMALL**2)
    return in_core(x, (axis,)) and x.core_ndim >= 2 and few


@diff.kernel(Sparse, when=has_sparse_differences)
def diff_sparse(x: Sparse, *, axis: int, n: int) -> Array:
    """Subtract the array without its last slice along the axis from the array without its first slice."""
    core = axis - len(x.batch_shape)
    for _ in range(n):
        size = x.core_shape[core]
        without_first, without_last = (
            index.dispatch(x, operands=(), key=_all_but_one(x.core_shape, core, start)) for start in (min(1, size), 0)
        )
        x = subtract.dispatch(without_first, without_last)
    return x


def _all_but_one(shape: Shape, axis: int, start: int) -> tuple[tuple[Any, ...], ...]:
    return tuple(("slice", start, max(0, n - 1), 1) if i == axis else ("slice", 0, n, 1) for i, n in enumerate(shape))


@diff.eager_kernel(Sparse)
def _diff_sparse_eagerly(x: Array, *, axis: int = -1, n: Any = 1) -> Result:
    if not isinstance(n, int) or n < 2:
        return NotImplemented
    for _ in range(n):  # the number of entries is exact after each step
        x = diff(x, axis=axis, n=1)
    return x
