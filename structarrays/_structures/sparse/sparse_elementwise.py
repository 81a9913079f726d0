"""Elementwise functions of several arrays, one of them sparse, in eager calls.

The result has exactly the entries that it needs. If the union or the intersection of the patterns is known, all arrays
get this pattern, and the rule of the family applies to equal patterns.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.array.base import Array
from ..._core.array.flattening import (
    as_indices,
    barred,
    common_indices,
    expand_indices,
    opened_arguments,
    with_common_indices,
)
from ..._core.array.sharing import complete, incomplete
from ..._core.assumptions import carried_by_sum
from ..._core.dispatch import explicit
from ..._core.dispatch.call_arguments import have_constant_indices
from ..._core.dispatch.registry import FUNCTIONS
from ..._core.families.elementwise_rule import ElementwiseArrayFunction, absorbing_operands
from ..._core.families.join import is_zero_outside
from . import compressed_rows, numerics, row_arithmetic
from . import sparse_host as host
from .array import Sparse
from .sparse_joins import has_sparse_form, sparse_with_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from ..._core.typing import Assumptions, DTypeLike, Result

    Combine: TypeAlias = Callable[
        [Sequence[np.ndarray], Sequence[np.ndarray], Sequence[int]], tuple[list[np.ndarray], np.ndarray, np.ndarray]
    ]
    Pair: TypeAlias = tuple[tuple[jax.Array, jax.Array | None], tuple[jax.Array, jax.Array | None]]

# ---- functions of two arrays ------------------------------------------------------------------------------------------


def _combination(function: ElementwiseArrayFunction[...], x: Array, y: Array) -> Combine | None:
    """Return how to combine the patterns; None if the compiled call is exact."""
    for a in (x, y):
        if not isinstance(a, Array) or not a.stores_entries or not has_sparse_form(a):
            return None
    if x.core_ndim != y.core_ndim or x.shape[x.ndim - x.core_ndim :] != y.shape[y.ndim - y.core_ndim :]:
        return None
    absorbing = absorbing_operands(function)
    absorbed = [i in absorbing and is_zero_outside(a) for i, a in enumerate((x, y))]
    if all(absorbed):
        return host.intersection
    return None if any(absorbed) else host.union


def _exactly(function: ElementwiseArrayFunction[...], x: Any, y: Any, combine: Combine) -> Result:
    if _have_one_pattern(x, y):
        return complete(_of_one_pattern(function)(*opened_arguments((x,)), y.data, y.background, y.assumptions), (x,))
    assumptions = (x.assumptions, y.assumptions)
    x, y = (sparse_with_values(a) for a in (x, y))
    coordinates_of = _coordinates(x, y)
    if coordinates_of is None:
        return NotImplemented
    try:
        batch = jnp.broadcast_shapes(x.batch_shape, y.batch_shape)  # they may be symbolic
    except ValueError:
        return NotImplemented
    result = _in_compressed_rows(function, x, y, combine, assumptions)
    if result is not None:
        return result
    (keys_x, sources_x), (keys_y, sources_y) = (
        _sorted_keys(a, c, x.order) for a, c in zip((x, y), coordinates_of, strict=True)
    )
    patterns = np.broadcast_shapes(keys_x[0].shape[:-1], keys_y[0].shape[:-1])
    keys_x, keys_y = ([np.broadcast_to(k, patterns + k.shape[-1:]) for k in keys] for keys in (keys_x, keys_y))
    sizes, found = x._sizes(), []
    for b in np.ndindex(*patterns):
        own, other = [k[b] for k in keys_x], [k[b] for k in keys_y]
        inside, there = own[0] < sizes[0], other[0] < sizes[0]
        found.append(combine([k[inside] for k in own], [k[there] for k in other], sizes))
    lengths = [len(s) for _, s, _ in found]
    total = max(lengths, default=0)
    padded = min(lengths, default=0) < total

    def stacked(parts: Sequence[Any], fill: int, dtype: DTypeLike) -> np.ndarray:
        result = np.full((len(parts), total), fill, dtype)
        for row, part in zip(result, parts, strict=True):
            row[: len(part)] = part
        return result.reshape((*patterns, total))

    keys = [as_indices(stacked([c[i] for c, _, _ in found], n, keys_x[i].dtype)) for i, n in enumerate(sizes)]
    coordinates = [keys[x.order.index(i)] for i in range(len(sizes))]
    places = [stacked([f[i] for f in found], -1, np.int32) for i in (1, 2)]
    for i, sources in enumerate((sources_x, sources_y)):
        if sources is not None and sources.shape[-1]:  # the keys were sorted in between
            there = np.take_along_axis(np.broadcast_to(sources, patterns + sources.shape[-1:]), places[i].clip(0), -1)
            places[i] = np.where(places[i] < 0, -1, there).astype(np.int32)
    if patterns != batch:
        coordinates = [expand_indices(c, batch) for c in coordinates]
    pattern = Sparse.make((None, *coordinates, None), (x.core_shape, x.order, padded))
    pattern = pattern if patterns != batch else with_common_indices(pattern)
    return _at_places(function, x, y, pattern, places, assumptions)


def _at_places(
    function: ElementwiseArrayFunction[...],
    x: Sparse,
    y: Sparse,
    pattern: Sparse,
    places: Sequence[np.ndarray],
    assumptions: Sequence[Assumptions],
) -> Any:
    """Return the function of two arrays, whose entries are at these places of the pattern."""
    pair = ((x.data, x.background), (y.data, y.background))
    found_at = tuple(map(barred, places))
    return complete(_on_pattern(function)(pair, *opened_arguments((pattern,)), found_at, assumptions), (pattern,))


def _in_compressed_rows(
    function: ElementwiseArrayFunction[...],
    x: Sparse,
    y: Sparse,
    combine: Combine,
    assumptions: Sequence[Assumptions],
) -> Any:
    """Return the function of two matrices by the routines of SciPy; None if these do not apply."""
    rows_x, rows_y = compressed_rows.rows_of(x), compressed_rows.rows_of(y)
    if rows_x is None or rows_y is None or rows_x.nnz + rows_y.nnz >= 2**31 - 1:
        return None
    plain = x.background is None and y.background is None and x.dtype == y.dtype and x.dtype in compressed_rows.DTYPES
    if plain and function.name in row_arithmetic.ROUTINES and compressed_rows.has_values(x.data, y.data):
        values_x, values_y = np.asarray(x.data), np.asarray(y.data)
        if x.order != y.order:
            rows_y, values_y = compressed_rows.transposed(rows_y, values_y)
        pattern, values = row_arithmetic.combine(function.name, rows_x, rows_y, values_x, values_y)
        of_one = next((a for a in (x, y) if a.order == x.order and a.nnz == pattern.nnz), None)
        result = (
            compressed_rows.sparse(pattern, values, order=x.order)
            if of_one is None
            else of_one.with_data(jax.device_put(values))
        )
        return carried_by_sum(function.name, [a.assuming(tags) for a, tags in zip((x, y), assumptions)], result)
    sources = None
    if x.order != y.order:
        rows_y, sources = compressed_rows.transposed(rows_y, compressed_rows.places(y.nnz))
    two = row_arithmetic.intersection if combine is host.intersection else row_arithmetic.union
    pattern, place_x, place_y = two(rows_x, rows_y)
    if sources is not None and len(sources):
        place_y = np.where(place_y < 0, -1, sources[place_y])
    first, second = as_indices(pattern.numbers()), as_indices(pattern.columns)
    coordinates = (first, second) if x.order == (0, 1) else (second, first)
    together = Sparse.make((None, *coordinates, None), (x.core_shape, x.order, False))
    return _at_places(function, x, y, together, (place_x, place_y), assumptions)


def _have_one_pattern(x: Array, y: Array) -> bool:
    return type(x) is type(y) is Sparse and _share_coordinates(x, y)


def _share_coordinates(x: Sparse, y: Sparse) -> bool:
    """Return whether two arrays share their coordinates in memory."""
    if x.meta != y.meta or x.data.shape != y.data.shape:
        return False
    return all(a is b for a, b in zip(x.coords, y.coords, strict=True))


def _need_no_values(x: Array, y: Array) -> bool:
    """Return whether the pattern of the result is known even if everything is traced."""
    if _have_one_pattern(x, y):
        return True
    return x.ndim + y.ndim > x.core_ndim + y.core_ndim and have_constant_indices(x, y)


def _coordinates(x: Sparse, y: Sparse) -> list[list[np.ndarray]] | None:
    """Return the coordinates of both on the host, of one matrix if each stack has one pattern; None if they are traced."""
    known: list[list[Any]] = [[common_indices(c) for c in a.coords] for a in (x, y)]
    if any(c is None for coordinates in known for c in coordinates):
        known = [list(a.coords) for a in (x, y)]
    if any(isinstance(c, jax.core.Tracer) for coordinates in known for c in coordinates):
        return None
    return [[np.asarray(c) for c in coordinates] for coordinates in known]


def _sorted_keys(
    x: Sparse, coordinates: Sequence[np.ndarray], order: tuple[int, ...]
) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Return coordinates of an array, sorted, and the permutation that sorts them (None if already sorted)."""
    keys = [coordinates[i] for i in order]
    if x.order == order:
        return keys, None
    sorting = np.empty(keys[0].shape, np.int32)
    for b in np.ndindex(*keys[0].shape[:-1]):
        sorting[b] = host.sort([k[b] for k in keys], [x.core_shape[i] for i in order])
    return [np.take_along_axis(k, sorting, -1) for k in keys], sorting


@functools.cache
def _of_one_pattern(function: ElementwiseArrayFunction[...]) -> Callable[..., Any]:
    """Return the compiled function of an array and of the data of another array with the same coordinates."""

    def run(x: Sparse, data: jax.Array, background: jax.Array | None, assumptions: Assumptions) -> Any:
        result = function._trace((), x, x.rebuild((data,), background).assuming(assumptions))
        return incomplete(result, (x,))

    call: Callable[..., Any] = explicit.jit(run, static_argnums=3)
    return call


@functools.cache
def _on_pattern(function: ElementwiseArrayFunction[...]) -> Callable[..., Any]:
    """Return the compiled function of two arrays whose entries are gathered at coordinates; -1 means no entry."""

    def run(pair: Pair, pattern: Sparse, places: tuple[jax.Array, ...], assumptions: Sequence[Assumptions]) -> Any:
        arrays, batch = [], pattern.coords[0].shape[:-1]
        for (data, background), place, assumed in zip(pair, places, assumptions, strict=True):
            fill = jnp.zeros((), data.dtype) if background is None else jnp.broadcast_to(background, batch)[..., None]
            entries = jnp.broadcast_to(fill, batch + place.shape[-1:])
            if data.shape[-1]:
                data = jnp.broadcast_to(data, batch + data.shape[-1:])
                gather = numerics.over_batch(lambda d, i: d.at[..., i].get(mode="clip"), place.ndim - 1)
                entries = jnp.where(place < 0, entries, gather(data, place))
            background = None if background is None else jnp.broadcast_to(background, batch)
            x = Sparse.make((entries, *pattern.coords, background), pattern.meta)
            arrays.append(x.rebuild((entries,), background).assuming(assumed))
        return incomplete(function._trace((), *arrays), (pattern,))

    call: Callable[..., Any] = explicit.jit(run, static_argnums=3)
    return call


def register_exact(cls: type[Array]) -> None:
    """Make eager elementwise functions with an argument of this class return exactly the entries they need."""
    classes: tuple[type, ...]
    for function in _elementwise(2):
        for classes in ((cls, cls), (cls, Array), (Array, cls)):
            function.eager_kernel(*classes, traced=True, always=_need_no_values)(functools.partial(_of_two, function))


def _elementwise(count: int) -> Iterator[ElementwiseArrayFunction[...]]:
    for function in list(FUNCTIONS.values()):
        if isinstance(function, ElementwiseArrayFunction) and len(function.arrays) == count:
            yield function


def _of_two(function: ElementwiseArrayFunction[...], x: Array, y: Array) -> Result:
    combine = _combination(function, x, y)
    return NotImplemented if combine is None else _exactly(function, x, y, combine)


register_exact(Sparse)
