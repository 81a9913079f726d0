"""Linear maps with static sparsity patterns: the values of `linear_programs`.

A map sends the entries of the differentiated arguments, numbered from 0 to n - 1, to an array of some shape. The pattern of
a map, the pairs of an entry of the result and an input on which it depends, consists of NumPy arrays, so it is known while
JAX traces. The coefficients are arrays of JAX. There are three forms:

- `Terms`: a sum of a few terms. Each term takes one input for each entry of the result. The coefficients have the shape of the
  result, so that slices and products of arrays apply to them directly, and XLA fuses these.
- `Entries`: a list of coefficients and their coordinates, for patterns with rows of different lengths.
- `Columns`: the dense form.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.flattening import as_indices, barred

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core.typing import Shape

    Take = Callable[[Any], jax.Array]
    """Function that returns the elements of an array at the entries of the result to which coefficients belong."""

MAX_TERMS = 64
"""The largest number of terms of `Terms`; a sum of more becomes `Entries`."""

FEW_ENTRIES = 2**20
"""The number of coefficients up to which a pattern never counts as too large."""


class TooManyEntriesError(Exception):
    """A pattern has about as many entries as the dense form; the dense form is cheaper."""


class LinearMap:
    """Base class of the maps."""

    __slots__ = ()

    shape: Shape
    """The shape of the result."""
    inputs: int
    """The number n of inputs."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the coefficients."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The number of entries of the result."""
        return math.prod(self.shape)


class Term:
    """A term: entry i of the result is ``coefficients[i]`` times the input ``columns[i]``; it is zero if this is -1.

    Attributes
    ----------
    columns : numpy.ndarray
        The inputs, an array of the shape of the result.
    coefficients : jax.Array
        The coefficients: an array of the same shape, or of no dimensions if all are equal.
    clean : bool
        Whether the coefficients are zero where `columns` is -1; otherwise they are arbitrary there.
    """

    def __init__(self, columns: np.ndarray, coefficients: jax.Array, clean: bool = False) -> None:
        self.columns, self.coefficients, self.clean = columns, coefficients, clean

    @functools.cached_property
    def is_full(self) -> bool:
        """Whether each entry of the result has an input."""
        return bool(np.all(self.columns >= 0))

    @functools.cached_property
    def offset(self) -> int | None:
        """The difference between column and row, if it is equal for all entries; otherwise None."""
        offsets = self.offsets
        return int(offsets[0]) if offsets.size and np.all(offsets == offsets[0]) else None

    @property
    def rows(self) -> np.ndarray:
        """The entries of the result that have an input, as indices into the flattened result."""
        return np.flatnonzero(self.columns.reshape(-1) >= 0)

    @property
    def offsets(self) -> np.ndarray:
        """The differences between column and row, for each of `rows`."""
        columns = self.columns.reshape(-1)
        rows = self.rows
        offsets: np.ndarray = columns[rows] - rows.astype(columns.dtype)
        return offsets

    @property
    def is_uniform(self) -> bool:
        """Whether one number represents all coefficients."""
        return self.coefficients.ndim == 0 and self.columns.ndim > 0

    def at(self, places: np.ndarray | slice) -> jax.Array:
        """Return the coefficients at some entries of the flattened result."""
        if self.is_uniform:
            count = len(range(self.columns.size)[places]) if isinstance(places, slice) else len(places)
            return jnp.broadcast_to(self.coefficients, (count,))
        flat = self.coefficients.reshape(-1)
        return flat[places] if isinstance(places, slice) else take(flat, places)

    def masked(self) -> jax.Array:
        """Return the coefficients, with zeros where there is no input."""
        if self.clean or self.is_full:
            return self.coefficients
        mask = barred(as_indices(self.columns >= 0))
        return jnp.where(mask, self.coefficients, jnp.zeros((), self.coefficients.dtype))


@dataclass(eq=False)
class Terms(LinearMap):
    """A sum of terms."""

    shape: Shape
    inputs: int
    terms: list[Term]
    _dtype: np.dtype

    @property
    def dtype(self) -> np.dtype:
        return self._dtype


@dataclass(eq=False)
class Entries(LinearMap):
    """Coefficients ``data[k]`` of the input ``columns[k]`` in entry ``rows[k]`` of the flattened result. Coordinates may
    repeat.
    """

    shape: Shape
    inputs: int
    rows: np.ndarray
    columns: np.ndarray
    data: jax.Array

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype


@dataclass(eq=False)
class Columns(LinearMap):
    """The dense form: ``data[j]`` is the result if input j is one and all others are zero."""

    data: jax.Array

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        """The shape of the result."""
        return self.data.shape[1:]

    @property
    def inputs(self) -> int:  # type: ignore[override]
        """The number of inputs."""
        return self.data.shape[0]

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype


def identity(shape: Shape, dtype: np.dtype, inputs: int, start: int) -> Terms:
    """Return the map whose result consists of the inputs from `start` on."""
    kind = np.int32 if inputs < 2**31 else np.int64
    columns = np.arange(start, start + math.prod(shape), dtype=kind).reshape(shape)
    return Terms(shape, inputs, [Term(columns, jnp.ones((), dtype))], dtype)


# ---- conversions ---------------------------------------------------------------------------------------------------


def entries_of(x: LinearMap) -> Entries:
    """Return a map as `Entries`."""
    if isinstance(x, Entries):
        return x
    if isinstance(x, Columns):
        columns, rows = np.divmod(np.arange(x.inputs * x.size), max(x.size, 1))
        return Entries(x.shape, x.inputs, rows, columns, x.data.reshape(-1))
    assert isinstance(x, Terms)
    all_rows, all_columns, data = [], [], []
    for term in x.terms:
        places = term.rows
        all_rows.append(places)
        all_columns.append(term.columns.reshape(-1)[places].astype(np.int64))
        data.append(term.at(places))
    if not data:
        nothing = np.zeros(0, np.int64)
        return Entries(x.shape, x.inputs, nothing, nothing, jnp.zeros(0, x.dtype))
    return Entries(x.shape, x.inputs, np.concatenate(all_rows), np.concatenate(all_columns), jnp.concatenate(data))


def canonical(x: LinearMap) -> Entries:
    """Return a map as `Entries`, sorted by row and column, with repeated coordinates added."""
    x = entries_of(x)
    keys = x.rows * max(x.inputs, 1) + x.columns
    if np.all(keys[1:] > keys[:-1]):
        return x
    distinct, first, slots = np.unique(keys, return_index=True, return_inverse=True)
    if len(distinct) == len(keys):
        data = take(x.data, first)
    else:
        data = jnp.zeros(len(distinct), x.dtype).at[barred(as_indices(slots.reshape(-1)))].add(x.data)
    rows, columns = np.divmod(distinct, max(x.inputs, 1))
    return Entries(x.shape, x.inputs, rows, columns, data)


def columns_of(x: LinearMap) -> Columns:
    """Return the dense form of a map."""
    if isinstance(x, Columns):
        return x
    x = entries_of(x)
    data = jnp.zeros((x.inputs, x.size), x.dtype)
    data = data.at[barred(as_indices(x.columns)), barred(as_indices(x.rows))].add(x.data)
    return Columns(data.reshape(x.inputs, *x.shape))


def number_of_entries(x: LinearMap) -> int:
    """Return the number of coefficients."""
    if isinstance(x, Terms):
        return sum(len(term.rows) for term in x.terms)
    return len(x.rows) if isinstance(x, Entries) else x.size * x.inputs


def data_on(x: LinearMap, rows: np.ndarray, columns: np.ndarray) -> jax.Array:
    """Return the coefficients of a map at sorted coordinates, zero where it has none; its other coefficients are dropped."""
    x = canonical(x)
    own, wanted = x.rows * max(x.inputs, 1) + x.columns, rows * max(x.inputs, 1) + columns
    if np.array_equal(own, wanted):
        return x.data
    kept = np.flatnonzero(np.isin(own, wanted))
    places, data = np.searchsorted(wanted, own[kept]), take(x.data, kept)
    return jnp.zeros(len(rows), x.dtype).at[barred(as_indices(places))].set(data, unique_indices=True)


def take(data: jax.Array, places: np.ndarray) -> jax.Array:
    """Return the elements of a vector at constant places."""
    if len(places) == data.shape[0] and np.array_equal(places, np.arange(len(places))):
        return data
    if len(places) and np.array_equal(places, np.arange(places[0], places[0] + len(places))):
        return data[int(places[0]) : int(places[0]) + len(places)]
    kind = np.int32 if data.shape[0] < 2**31 else np.int64
    return data.at[barred(as_indices(places.astype(kind)))].get(mode="promise_in_bounds")


# ---- operations ------------------------------------------------------------------------------------------------------


def scaled(x: LinearMap, function: Callable[[jax.Array, Take], jax.Array]) -> LinearMap:
    """Apply an element-wise linear function to a map.

    Parameters
    ----------
    x : LinearMap
        The map, in `Terms` or `Entries`.
    function : callable
        Function of an array of coefficients and of a `Take`, which returns the elements of other operands for them.
    """
    if isinstance(x, Terms):

        def whole(operand: Any) -> jax.Array:
            # A number stays a number, so that equal coefficients stay equal.
            return jnp.reshape(operand, ()) if np.size(operand) == 1 else jnp.broadcast_to(operand, x.shape)

        terms = [Term(t.columns, function(t.coefficients, whole), t.clean and t.is_full) for t in x.terms]
        dtype = terms[0].coefficients.dtype if terms else function(jnp.zeros((), x.dtype), whole).dtype
        return Terms(x.shape, x.inputs, terms, dtype)
    x = entries_of(x)

    def at_rows(operand: Any) -> jax.Array:
        if np.size(operand) == 1:
            return jnp.broadcast_to(jnp.reshape(operand, ()), x.rows.shape)
        return take(jnp.broadcast_to(operand, x.shape).reshape(-1), x.rows)

    return Entries(x.shape, x.inputs, x.rows, x.columns, function(x.data, at_rows))


def selected(x: LinearMap, sources: np.ndarray, apply: Callable[[jax.Array], jax.Array] | None = None) -> LinearMap:
    """Return a map whose result takes, for each entry, one entry of the result of `x`, or zero.

    Parameters
    ----------
    x : LinearMap
        The map, in `Terms` or `Entries`.
    sources : numpy.ndarray
        Index into the flattened result of `x` for each entry; -1 for zero.
    apply : callable, optional
        Function that does the same with an array of the shape of `x`. By default the indices are used.
    """
    flat = sources.reshape(-1)
    inside = bool(np.all(flat >= 0))
    if isinstance(x, Terms):

        def moved(data: jax.Array) -> jax.Array:
            found = take(data.reshape(-1), np.maximum(flat, 0)) if data.size else jnp.zeros(flat.shape, data.dtype)
            return (found if inside else jnp.where(flat >= 0, found, 0)).reshape(sources.shape)

        terms = []
        for term in x.terms:
            given = term.columns.reshape(-1)
            if given.size:
                columns = given[flat] if inside else np.where(flat >= 0, given[flat], -1)
            else:
                columns = np.full(flat.shape, -1, given.dtype)
            if np.any(columns >= 0):
                columns = columns.reshape(sources.shape)
                if term.is_uniform or not term.columns.ndim:
                    terms.append(Term(columns, term.coefficients))
                else:
                    terms.append(Term(columns, (apply or moved)(term.coefficients), term.clean or term.is_full))
        return Terms(sources.shape, x.inputs, terms, x.dtype)
    x = entries_of(x)
    rows = np.flatnonzero(flat >= 0)
    return _composed(x, sources.shape, rows, flat[rows], None)


def _composed(
    x: Entries, shape: Shape, rows: np.ndarray, sources: np.ndarray, weights: Callable[[np.ndarray], jax.Array] | None
) -> Entries:
    """Return the map whose entry ``rows[k]`` collects entry ``sources[k]`` of the result of `x`, times a weight.

    `weights` is a function of the indices k.
    """
    order = None if np.all(x.rows[1:] >= x.rows[:-1]) else np.argsort(x.rows, kind="stable")
    ordered = x.rows if order is None else x.rows[order]
    begins = np.searchsorted(ordered, sources, side="left")
    counts = np.searchsorted(ordered, sources, side="right") - begins
    total = int(counts.sum())
    dense = math.prod(shape) * x.inputs
    if total > max(FEW_ENTRIES, 4 * len(x.rows)) and (total > dense // 4 or total > 2**26):
        raise TooManyEntriesError
    which = np.repeat(np.arange(len(sources)), counts)
    ends = np.cumsum(counts)
    places = np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(begins, counts)
    if order is not None:
        places = order[places]
    data = take(x.data, places)
    if weights is not None:
        data = data * weights(which)
    return _compressed(Entries(shape, x.inputs, rows[which], x.columns[places], data))


def _compressed(x: Entries) -> Entries:
    """Add repeated coordinates if there are many."""
    return canonical(x) if len(x.rows) > FEW_ENTRIES else x


def added(x: LinearMap, y: LinearMap) -> LinearMap:
    """Return the sum of two maps of one shape, in `Terms` or `Entries`."""
    if isinstance(x, Terms) and isinstance(y, Terms):
        terms = list(x.terms)
        for term in y.terms:
            for i, other in enumerate(terms):
                merged = _merged(other, term)
                if merged is not None:
                    terms[i] = merged
                    break
            else:
                terms.append(term)
        if len(terms) <= MAX_TERMS:
            return Terms(x.shape, x.inputs, terms, x.dtype)
        return canonical(Terms(x.shape, x.inputs, terms, x.dtype))
    x, y = entries_of(x), entries_of(y)
    rows, columns = np.concatenate([x.rows, y.rows]), np.concatenate([x.columns, y.columns])
    return canonical(Entries(x.shape, x.inputs, rows, columns, jnp.concatenate([x.data, y.data])))


def _merged(x: Term, y: Term) -> Term | None:
    """Return the sum of two terms as one term, or None if they take different inputs."""
    if x.columns is y.columns:
        return Term(x.columns, x.coefficients + y.coefficients, x.clean and y.clean)
    if x.offset is None or x.offset != y.offset:
        if (x.offset is None) != (y.offset is None) or not np.array_equal(x.columns, y.columns):
            return None
        return Term(x.columns, x.coefficients + y.coefficients, x.clean and y.clean)
    if x.is_full and y.is_full:
        return Term(x.columns, x.coefficients + y.coefficients, True)
    columns = np.maximum(x.columns, y.columns)
    return Term(columns, x.masked() + y.masked(), True)


@dataclass
class Taps:
    """A linear function of an array: entry i of the result is the sum over k of ``weight(k)[i] * apply(k, array)[i]``.

    Attributes
    ----------
    count : int
        The number of values of k.
    sources : numpy.ndarray
        Index of the element that ``apply(k, array)[i]`` is, at ``[k, *i]``; -1 if it is zero.
    apply : callable
        Function of k and an array.
    weight : callable, optional
        Function of k. The result has the shape of the result, or broadcasts to it.
    """

    count: int
    sources: np.ndarray
    apply: Callable[[int, jax.Array], jax.Array]
    weight: Callable[[int], jax.Array] | None = None


def applied(x: LinearMap, taps: Taps) -> LinearMap:
    """Return the composition of a map, in `Terms` or `Entries`, with a linear function."""
    shape = taps.sources.shape[1:]
    if isinstance(x, Terms) and taps.count * len(x.terms) <= MAX_TERMS:
        result: LinearMap = Terms(shape, x.inputs, [], x.dtype)
        for k in range(taps.count):
            part = selected(x, taps.sources[k], functools.partial(taps.apply, k))
            if taps.weight is not None:
                weight = taps.weight(k)
                part = scaled(part, lambda c, at, weight=weight: c * at(weight))  # type: ignore[misc]
            result = added(result, part)
        return result
    flat = taps.sources.reshape(-1)
    kept = np.flatnonzero(flat >= 0)
    weights = None
    if taps.weight is not None:
        stacked = jnp.stack([jnp.broadcast_to(taps.weight(k), shape) for k in range(taps.count)]).reshape(-1)

        def weights(which: np.ndarray) -> jax.Array:
            return take(stacked, kept[which])

    return canonical(_composed(entries_of(x), shape, kept % max(math.prod(shape), 1), flat[kept], weights))


def joined(shape: Shape, axis: int, maps: Sequence[tuple[int, LinearMap | None]], like: LinearMap) -> LinearMap:
    """Return the map whose result consists of the results of maps along an axis.

    Parameters
    ----------
    shape : tuple of int
        The shape of the result.
    axis : int
        The axis.
    maps : sequence of tuple
        Pairs of an index along the axis, at which a result begins, and a map; None for zeros.
    like : LinearMap
        A map with the number of inputs and the dtype.
    """
    result: LinearMap = Terms(shape, like.inputs, [], like.dtype)
    for start, x in maps:
        if x is not None:
            after = shape[axis] - start - x.shape[axis]
            widths = [(start, after) if i == axis else (0, 0) for i in range(len(shape))]
            sources = np.pad(numbered(x.shape), widths, constant_values=-1)
            result = added(result, selected(x, sources, functools.partial(padded, widths=widths)))
    return result


def padded(data: jax.Array, widths: Sequence[tuple[int, int]]) -> jax.Array:
    """Pad an array with zeros; negative widths remove elements."""
    return jax.lax.pad(data, jnp.zeros((), data.dtype), [(*width, 0) for width in widths])


def numbered(shape: Shape) -> np.ndarray:
    """Return the indices of the entries of a flattened array, in its shape."""
    size = math.prod(shape)
    return np.arange(size, dtype=np.int32 if size < 2**31 else np.int64).reshape(shape)
