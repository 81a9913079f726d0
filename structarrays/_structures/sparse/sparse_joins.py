"""Joins and meets with sparse arrays: unions and intersections of coordinates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.array.base import Array
from ..._core.array.flattening import as_indices, barred, expand_indices
from ..._core.array.sharing import jit
from ..._core.dispatch.call_arguments import any_traced
from ..._core.dispatch.registry import Registry
from ..._core.dispatch.tracing import compiling
from ..._core.families.entries import elements, elements_at
from ..._core.families.join import holds, is_zero_outside, join_pair, meet_pair, restrict_to
from ..banded.array import Banded
from ..blocks.array import Run
from ..fill.array import Fill
from . import numerics, row_order
from .array import Sparse, zero_sparse
from .sorted_entries import index_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.typing import Shape

sparse_form: Registry[Sparse] = Registry("sparse_form")
"""``sparse_form.kernel(S)``: conversion to `Sparse`, for structures that store few entries; used by joins."""


def has_sparse_form(x: Array) -> bool:
    """Return whether a structure can be converted to `Sparse` at a cost proportional to its storage."""
    return sparse_form.choose((x,), {}) is not None


def to_sparse(x: Array) -> Sparse:
    """Convert the array to `Sparse` (inside a compiled call)."""
    return sparse_form.required((x,)).run(x)


@sparse_form.kernel(Sparse)
def _sparse_form_sparse(x: Sparse) -> Sparse:
    return x


def full_sparse(x: Array) -> Sparse:
    """Return a matrix as a `Sparse` that stores all of its elements (inside a compiled call)."""
    (m, n), batch = x.shape[-2:], x.shape[:-2]
    i, j = (jax.lax.broadcasted_iota(index_dtype((m, n)), (m, n), axis).ravel() for axis in (0, 1))
    data = x.dense_data().reshape(*batch, m * n)
    return Sparse.make((data, *(jnp.broadcast_to(c, data.shape) for c in (i, j)), None), ((m, n), (0, 1), False))


stored_runs: Registry[tuple[tuple[Run, ...], tuple[jax.Array, ...]]] = Registry("stored_runs")
"""``stored_runs.kernel(S)``: the entries as runs of blocks, and for each run an array ``(..., count, height, width)``."""


@stored_runs.kernel(Banded)
def _stored_runs_banded(x: Banded) -> tuple[tuple[Run, ...], tuple[jax.Array, ...]]:
    runs = tuple(Run(max(0, -k), max(0, k), d.shape[-1], 1, 1) for k, d in zip(x.offsets, x.diagonals, strict=True))
    return runs, tuple(d[..., None, None] for d in x.diagonals)


@sparse_form.kernel(Banded)
def sparse_of_runs(x: Array) -> Sparse:
    """Return the sparse form of a structure with `stored_runs`."""
    runs, blocks = stored_runs.required((x,)).run(x)
    if not runs:
        return zero_sparse(x.shape[-2:], x.dtype, x.batch_shape, x.background)
    return sparse_at(runs, blocks, x.shape[-2:], x.background)


def sparse_at(
    runs: Sequence[Run], blocks: Sequence[jax.Array], shape: Shape, background: jax.Array | None = None
) -> Sparse:
    """Return the matrix with these blocks ``(..., count, height, width)`` at runs that do not overlap, at least one."""
    data, *coordinates = _by_rows(runs, blocks, shape, jnp)
    coordinates = [jnp.broadcast_to(c, data.shape) for c in coordinates]
    return Sparse.make((data, *coordinates, background), (shape, (0, 1), False))


def _by_rows(runs: Sequence[Run], blocks: Sequence[jax.Array], shape: Shape, xp: Any) -> tuple[jax.Array, Any, Any]:
    """Return the entries in the order of rows, and their rows and columns: values of NumPy, or expressions of `jax.numpy`."""
    dtype, pieces = index_dtype(shape), row_order.pieces(runs)
    if pieces is not None:
        return row_order.in_order(runs, pieces, blocks), *row_order.coordinates(runs, pieces, dtype, xp)
    positions = [[xp.broadcast_to(c.astype(dtype), run[2:]).ravel() for c in run.positions(xp)] for run in runs]
    rows, columns = (xp.concatenate(parts) for parts in zip(*positions, strict=True))
    data = jnp.concatenate([b.reshape(*b.shape[:-3], math.prod(b.shape[-3:])) for b in blocks], axis=-1)
    if xp is np:
        order = np.lexsort((columns, rows))
        return data[..., barred(order)], rows[order], columns[order]
    (rows, columns), order = numerics.sort((rows, columns), jax.lax.iota(jnp.int32, rows.shape[0]))
    return data[..., order], rows, columns


compiled_to_sparse: Callable[[Array], Sparse] = jit(to_sparse)
"""Convert the array to `Sparse` by a compiled call."""


def sparse_with_values(x: Array) -> Sparse:
    """Convert to `Sparse` outside a compiled call, with coordinates that have values if they are static."""
    if type(x) is Sparse:
        return x
    if sparse_form.required((x,)).run is not sparse_of_runs:
        return compiled_to_sparse(x)
    entries = x.entries  # once, since some structures make them
    is_small = not any_traced(entries) and not compiling() and sum(e.size for e in entries) < _ON_THE_HOST
    if is_small or not stored_runs.required((x,)).run(x)[0]:
        return compiled_to_sparse(x)
    data, *coordinates = _by_rows(*stored_runs.required((x,)).run(x), x.shape[-2:], np)
    coordinates = [expand_indices(as_indices(c), x.batch_shape) for c in coordinates]
    return Sparse.make((data, *coordinates, x.background), (x.shape[-2:], (0, 1), False))


_ON_THE_HOST = 1000
"""Below this number of entries, one compiled call is faster. Inside of a transformation, it would trace the coordinates."""


@elements.kernel(Sparse)
def _elements_sparse(x: Sparse, *coordinates: jax.Array) -> jax.Array:
    wanted = tuple(coordinates[i].astype(c.dtype) for i, c in zip(x.order, x._keys(), strict=True))

    def look_up(data: jax.Array, fill: jax.Array, *known: jax.Array) -> jax.Array:
        return numerics.look_up(data, known, wanted, fill)

    return x._over_batch(look_up, x.data, x._fill(), *x._keys())


# ---- the join -------------------------------------------------------------------------------------------------------


def is_same_pattern(x: Sparse, y: Sparse) -> bool:
    """Return whether two arrays have identical coordinates, object for object."""
    return x.meta == y.meta and all(a is b for a, b in zip(x.coords, y.coords, strict=True))


@join_pair.kernel(Sparse, Sparse)
def _join_pair_sparse_sparse(x: Sparse, y: Sparse) -> tuple[Sparse, Sparse]:
    if is_same_pattern(x, y):
        return x, y
    y = y._in_order(x.order)
    x, y = _common_batch(x, y)
    count = x.nnz + y.nnz

    def merge(
        data_x: jax.Array, fill_x: jax.Array, data_y: jax.Array, fill_y: jax.Array, *coordinates: jax.Array
    ) -> tuple[jax.Array, ...]:
        half = len(coordinates) // 2
        merged, place_x, place_y = numerics.merge(coordinates[:half], coordinates[half:], x._sizes())
        place_y = jnp.where(coordinates[half] < x._sizes()[0], place_y, count)  # for its padding
        data_x = numerics.put(jnp.full(count, fill_x, data_x.dtype), (place_x,), data_x)
        data_y = numerics.put(jnp.full(count, fill_y, data_y.dtype), (place_y,), data_y)
        return data_x, data_y, *merged

    data_x, data_y, *merged = x._over_batch(merge, x.data, x._fill(), y.data, y._fill(), *x._keys(), *y._keys())
    coordinates = numerics.by_dimension(merged, x.order)
    meta = (x.core_shape, x.order, x.padded or y.padded or min(x.nnz, y.nnz) > 0)
    pattern = Sparse.make((data_x, *coordinates, x.background), meta)
    return pattern.rebuild((data_x,), x.background), pattern.rebuild((data_y,), y.background)


def _common_batch(x: Sparse, y: Sparse) -> tuple[Sparse, Sparse]:
    batch = jnp.broadcast_shapes(x.batch_shape, y.batch_shape)

    def broadcast(a: Sparse) -> Sparse:
        own = len(a.batch_shape)
        return a.map_parameters(lambda leaf: jnp.broadcast_to(leaf, batch + leaf.shape[own:]))

    return (x, y) if x.batch_shape == y.batch_shape else (broadcast(x), broadcast(y))


@join_pair.kernel(Sparse, Fill, when=lambda x, y: len(y.meta) >= x.core_ndim)
def _join_pair_sparse_fill(x: Sparse, y: Fill) -> tuple[Sparse, Sparse]:
    """Return a constant as entries and background of the pattern."""
    value = y.value.reshape(y.value.shape + (1,) * (len(y.meta) - x.core_ndim))
    batch = y.shape[: y.ndim - x.core_ndim]
    value = jnp.broadcast_to(value, batch)
    both = jnp.broadcast_shapes(batch, x.batch_shape)
    data = jnp.broadcast_to(jnp.broadcast_to(value, both)[..., None], (*both, x.nnz))
    return x, x.rebuild((data,), jnp.broadcast_to(value, both))


def have_sparse_forms(x: Array, y: Array) -> bool:
    """Return whether two structures can be converted to `Sparse` at a cost proportional to their storage."""
    return has_sparse_form(x) and has_sparse_form(y)


@join_pair.kernel(Sparse, Array, when=have_sparse_forms)
def join_sparse(x: Array, y: Array) -> tuple[Array, Array]:
    """Join two structures that have a sparse form."""
    return join_pair.required((to_sparse(x), to_sparse(y))).run(to_sparse(x), to_sparse(y))


# ---- the meet -------------------------------------------------------------------------------------------------------


@meet_pair.kernel(Sparse, Array, when=lambda x, y: has_sparse_form(y) or not is_zero_outside(y))
def _meet_pair_sparse(x: Sparse, y: Array) -> Sparse:
    if not is_zero_outside(y):
        return x
    return intersection(x, to_sparse(y))


@holds.kernel(Sparse, Sparse)
def _holds_sparse_sparse(x: Sparse, y: Sparse) -> bool:
    return True  # the pattern of a product with a sparse array is an intersection with it


def intersection(x: Sparse, y: Sparse) -> Sparse:
    """Return the entries of `x` at which `y` has an entry; the size is the smaller number of entries."""
    if is_same_pattern(x, y):
        return x
    y = y._in_order(x.order)
    x, y = _common_batch(x, y)
    bound = min(x.nnz, y.nnz)
    if not bound:
        return zero_sparse(x.core_shape, x.dtype, x.batch_shape)

    def keep(data: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, ...]:
        own, other = coordinates[: len(x.order)], coordinates[len(x.order) :]
        if x.nnz <= y.nnz:
            found = numerics.search(other, own)[1]
        else:
            place, found = numerics.search(own, other)
            data = data.at[place].get(mode="clip")
            own = other
        inside = own[0] < x._sizes()[0]
        data, own = numerics.keep(found & inside, data, own, x._sizes(), bound)
        return data, *own

    data, *keys = x._over_batch(keep, x.data, *x._keys(), *y._keys())
    return Sparse.make((data, *numerics.by_dimension(keys, x.order), None), (x.core_shape, x.order, bound > 0))


@restrict_to.kernel(Sparse, Sparse)
def _restrict_to_sparse_sparse(x: Sparse, y: Sparse) -> Sparse:
    if is_same_pattern(x, y):
        return x
    return y.rebuild((elements_at(x, y.coords, len(y.batch_shape)),), None)
