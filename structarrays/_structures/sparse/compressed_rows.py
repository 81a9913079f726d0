"""Matrices in compressed rows on the host, and the compiled routines of SciPy for them.

A matrix without batch dimensions, whose coordinates have values, has compressed rows: the start of each row among the
entries, and the columns. The routines come from `scipy.sparse`. Its public classes drop entries whose value becomes
zero, but the pattern of our results depends on patterns alone. So this module calls the routines directly
(`scipy.sparse._sparsetools`, unchanged for more than ten years), and checks the number of entries. Without them, or for
other arrays, the callers use NumPy (`sparse_host`).
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.dispatch.tracing import compiling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .array import Sparse

_NAMES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
DTYPES = frozenset(map(np.dtype, _NAMES.split()))
"""The data types of arithmetic that SciPy's routines and XLA share."""


@functools.cache
def routines() -> Any:
    """Return SciPy's compiled routines; None if this version of SciPy has none."""
    try:
        from scipy.sparse import _sparsetools  # type: ignore[import-untyped]  # SciPy has no types
    except ImportError:
        return None
    return _sparsetools


def empty(count: int, dtype: Any) -> np.ndarray:
    """Return an array without values, in 64-byte-aligned memory, which XLA uses without a copy."""
    return _aligned(np.empty, count, np.dtype(dtype))


def _aligned(make: Callable[..., np.ndarray], count: int, dtype: np.dtype) -> np.ndarray:
    memory = make(count * dtype.itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + count * dtype.itemsize].view(dtype)


class Rows(NamedTuple):
    """The pattern of a matrix in compressed rows, sorted and distinct.

    `origin` contains the coordinates of the array that has this pattern, to recognise the pattern. `coordinates` contains the row and the
    column of each entry, if arrays of JAX have them already.
    """

    shape: tuple[int, int]
    starts: np.ndarray
    columns: np.ndarray
    origin: tuple[jax.Array, ...] = ()
    coordinates: tuple[jax.Array, ...] = ()

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.columns)

    def numbers(self) -> np.ndarray:
        """Return the row of each entry."""
        rows = empty(self.nnz, np.int32)
        routines().expandptr(self.shape[0], self.starts, rows)
        return rows


# ---- patterns -------------------------------------------------------------------------------------------------------

_STARTS: dict[tuple[int, int], tuple[weakref.ref[jax.Array], np.ndarray]] = {}


def _starts(coordinate: jax.Array, size: int) -> np.ndarray:
    """Return the start of each row for the sorted rows of the entries, kept as long as this array."""
    key = id(coordinate), size
    known = _STARTS.get(key)
    if known is not None and known[0]() is coordinate:
        return known[1]
    starts = np.zeros(size + 1, np.int32)
    np.cumsum(np.bincount(np.asarray(coordinate), minlength=size), out=starts[1:])
    keep_starts(coordinate, starts)
    return starts


def keep_starts(coordinate: jax.Array, starts: np.ndarray) -> None:
    """Keep the starts of rows that are known, as long as the array of the rows of the entries."""
    key = id(coordinate), len(starts) - 1
    _STARTS[key] = weakref.ref(coordinate, lambda _: _STARTS.pop(key, None)), starts


def fits(shape: Sequence[int], nnz: int) -> bool:
    """Return whether a matrix is suited for compressed rows: its size is not much larger than its number of entries."""
    return len(shape) == 2 and max(*shape, nnz) < 2**31 - 1 and max(shape) <= 4 * nnz + 1024


def rows_of(x: Sparse) -> Rows | None:
    """Return the pattern of a matrix in sort order (of column-major entries: of the transpose); None if it has none."""
    if x.padded or x.batch_shape or x.core_ndim != 2 or routines() is None or not fits(x.core_shape, x.nnz):
        return None
    # NumPy's arrays may change, so nothing is kept for them.
    coords: Sequence[Any] = x.coords
    if any(isinstance(c, jax.core.Tracer) or not isinstance(c, jax.Array) or c.dtype != np.int32 for c in coords):
        return None
    first, second = x._keys()
    m, n = x._sizes()
    return Rows((m, n), _starts(first, m), np.asarray(second), (first, second))


def of_scipy(x: Any) -> Rows | None:
    """Return the pattern of a SciPy matrix in compressed rows without duplicates, copied; None for other arrays."""
    if getattr(x, "format", "") != "csr" or x.ndim != 2 or x.indices.dtype != np.int32 or not fits(x.shape, x.nnz):
        return None
    canonical = x.dtype in DTYPES and jax.dtypes.canonicalize_dtype(x.dtype) == x.dtype and bool(x.has_canonical_format)
    if not canonical or len(x.data) != x.nnz or routines() is None or compiling():
        return None
    if x.nnz and not 0 <= x.indices.min() <= x.indices.max() < x.shape[1]:
        return None
    m, n = map(int, x.shape)
    return Rows((m, n), x.indptr.astype(np.int32), copied(x.indices))


def assembled(data: jax.Array, coordinates: Sequence[np.ndarray], shape: Sequence[int]) -> Sparse | None:
    """Sort the entries of a matrix and add those at one position, by SciPy's routines; None if they do not apply."""
    if routines() is None or not has_values(data) or data.dtype not in DTYPES or not fits(shape, len(data)):
        return None
    import scipy.sparse  # type: ignore[import-untyped]  # SciPy has no types

    matrix = scipy.sparse.coo_array((np.asarray(data), tuple(coordinates)), shape=tuple(shape)).tocsr()
    pattern = of_scipy(matrix)
    return None if pattern is None else sparse(pattern, copied(matrix.data))


def copied(values: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Return a copy in memory that XLA uses, by default of the same data type."""
    result = empty(len(values), values.dtype if dtype is None else dtype)
    result[:] = values
    return result


def transposed(x: Rows, values: np.ndarray) -> tuple[Rows, np.ndarray]:
    """Return the pattern of the transpose, and values of the entries in its order."""
    m, n = x.shape
    starts, columns, moved = np.empty(n + 1, np.int32), empty(x.nnz, np.int32), empty(x.nnz, values.dtype)
    routines().csr_tocsc(m, n, x.starts, x.columns, values, starts, columns, moved)
    return Rows((n, m), starts, columns, x.origin[::-1]), moved


def places(nnz: int) -> np.ndarray:
    """Return the indices of the entries."""
    return np.arange(nnz, dtype=np.int32)


# ---- the dense form -------------------------------------------------------------------------------------------------

_FILLED_BY_XLA = 1 << 16
"""Up to this number of elements, a compiled call is faster."""


def dense_form(x: Sparse) -> jax.Array | None:
    """Return the dense form of a large matrix without a background; None if the routines do not apply."""
    pattern = rows_of(x)
    m, n = x.core_shape[0], x.core_shape[-1]
    if pattern is None or m * n <= _FILLED_BY_XLA or x.background is not None or x.dtype not in DTYPES:
        return None
    if not has_values(x.data):
        return None
    # The system gives memory that is zero, and maps only what is written.
    result = _aligned(np.zeros, m * n, x.dtype).reshape(m, n)
    first, second = pattern.numbers(), pattern.columns
    result[(first, second) if x.order == (0, 1) else (second, first)] = np.asarray(x.data)
    whole: jax.Array = jax.device_put(result)
    return whole


# ---- selections -----------------------------------------------------------------------------------------------------


def selected(x: Sparse, key: Sequence[slice | np.ndarray]) -> Sparse | None:
    """Return the rows and columns of a matrix that a slice or an index array for each dimension selects.

    Indices may be repeated, and must not be negative. The result is None if the routines do not apply.
    """
    pattern = rows_of(x)
    if pattern is None or x.dtype not in DTYPES or not has_values(x.data):
        return None
    values, (first, second) = np.asarray(x.data), (key[i] for i in x.order)
    if isinstance(first, slice) and isinstance(second, slice) and first.step == second.step == 1:
        sides = [slice(*k.indices(n)[:2]) for k, n in zip((first, second), pattern.shape, strict=True)]
        return sparse(*_box(pattern, values, *sides), order=x.order, background=x.background)
    pattern, values = _selected_rows(pattern, values, first)
    if not (isinstance(second, slice) and second.indices(pattern.shape[1]) == (0, pattern.shape[1], 1)):
        pattern, values = _selected_columns(pattern, values, second)
    return sparse(pattern, values, order=x.order, background=x.background)


def _box(x: Rows, values: np.ndarray, rows: slice, columns: slice) -> tuple[Rows, np.ndarray, np.ndarray | None]:
    """Return the entries in contiguous rows and some contiguous columns, and the row of each entry if it is known."""
    (m, n), top, left = x.shape, rows.start, columns.start
    bottom, right = max(top, rows.stop), max(left, columns.stop)
    shape = bottom - top, right - left
    entries = slice(x.starts[top], x.starts[bottom])
    if not _alternate(x.columns[entries], left, right):
        arguments = m, n, x.starts, x.columns, values, top, bottom, left, right
        starts, found, values = routines().get_csr_submatrix(*arguments)
        return Rows(shape, starts, found), values, None
    starts = x.starts[top : bottom + 1] - entries.start
    parts = [np.asarray(a)[entries] for a in (x.columns, x.origin[0], values)]
    inside = _in_columns(parts[0], left, right)
    counts = np.zeros(len(inside) + 1, np.int32)
    np.cumsum(inside, out=counts[1:])
    starts, places = counts[starts], np.flatnonzero(inside)
    found, numbers, values = (np.take(a, places, out=empty(len(places), a.dtype), mode="clip") for a in parts)
    found -= np.int32(left)
    numbers -= np.int32(top)
    return Rows(shape, starts, found), values, numbers


def _in_columns(columns: np.ndarray, left: int, right: int) -> np.ndarray:
    """Return for each entry whether it is in these columns: one comparison, since a negative difference is a large unsigned number."""
    inside: np.ndarray = (columns - np.int32(left)).view(np.uint32) < np.uint32(right - left)
    return inside


_SAMPLE = 2048
"""Half the number of entries that tell how a box is taken."""


def _alternate(columns: np.ndarray, left: int, right: int) -> bool:
    """Return whether entries in and outside of these columns alternate, judged by a sample.

    A loop with a branch for each entry, as in SciPy, then takes three times as long, since the processor does not foresee the branches.
    """
    middle = len(columns) // 2
    inside = _in_columns(columns[max(0, middle - _SAMPLE) : middle + _SAMPLE], left, right)
    return bool(np.count_nonzero(inside[1:] != inside[:-1]) > 0.1 * len(inside))


def _selected_rows(x: Rows, values: np.ndarray, key: slice | np.ndarray) -> tuple[Rows, np.ndarray]:
    (m, n), starts = x.shape, x.starts
    if isinstance(key, slice) and key.indices(m)[2] == 1:
        start, stop, _ = key.indices(m)
        stop = max(start, stop)
        entries = slice(starts[start], starts[stop])
        return Rows((stop - start, n), starts[start : stop + 1] - starts[start], x.columns[entries]), values[entries]
    index = _indices(key, m)
    counts = np.take(np.diff(starts), index)
    _check_count(int(counts.sum(dtype=np.int64)))
    begins = np.zeros(len(index) + 1, np.int32)
    np.cumsum(counts, out=begins[1:])
    columns, chosen = empty(begins[-1], np.int32), empty(begins[-1], values.dtype)
    routines().csr_row_index(len(index), index, starts, x.columns, values, columns, chosen)
    return Rows((len(index), n), begins, columns), chosen


def _selected_columns(x: Rows, values: np.ndarray, key: slice | np.ndarray) -> tuple[Rows, np.ndarray]:
    m, n = x.shape
    index = _indices(key, n)
    counts = np.bincount(index, minlength=n)
    if counts.max(initial=0) > 1:
        _check_count(int(np.take(counts, x.columns).sum()))
    offsets, starts = np.zeros(n, np.int32), np.empty(m + 1, np.int32)
    routines().csr_column_index1(len(index), index, m, n, x.starts, x.columns, offsets, starts)
    columns, chosen = empty(starts[-1], np.int32), empty(starts[-1], values.dtype)
    increasing = not len(index) or bool((np.diff(index) >= 0).all())
    order = places(len(index)) if increasing else sort_stably(index, n, places(len(index)))
    routines().csr_column_index2(order, offsets, x.nnz, x.columns, values, columns, chosen)
    if not increasing or counts.max(initial=0) > 1:
        routines().csr_sort_indices(m, starts, columns, chosen)
    return Rows((m, len(index)), starts, columns), chosen


def _indices(key: slice | np.ndarray, size: int) -> np.ndarray:
    return np.arange(*key.indices(size), dtype=np.int32) if isinstance(key, slice) else np.asarray(key, np.int32)


def _check_count(count: int) -> None:
    if count >= 2**31 - 1:
        raise OverflowError(f"the result must have fewer than 2**31 - 1 entries, got {count}")


# ---- order ----------------------------------------------------------------------------------------------------------


def sort(coordinates: Sequence[np.ndarray], sizes: Sequence[int]) -> np.ndarray | None:
    """Return the indices that sort entries, stable: one counting sort for each dimension, the last one first.

    The result is None if the dimensions are too large for that.
    """
    count = len(coordinates[0])
    if routines() is None or max(*sizes, count) >= 2**31 - 2 or sum(sizes) > 4 * count:
        return None
    by = places(count)
    for c, n in zip(coordinates[::-1], sizes[::-1], strict=True):
        by = sort_stably(np.take(c, by), n + 1, by)  # the coordinates of padding are n
    return by


def sort_stably(coordinate: np.ndarray, size: int, by: np.ndarray) -> np.ndarray:
    """Return indices in the order of the coordinates, each below `size`, that belong to them."""
    starts, moved, unused = np.empty(size + 1, np.int32), empty(len(by), np.int32), np.empty(len(by), np.int8)
    coordinate = np.asarray(coordinate, np.int32)
    routines().coo_tocsr(size, 1, len(by), coordinate, by, unused, starts, moved, unused.copy())
    return moved


# ---- arrays of JAX --------------------------------------------------------------------------------------------------


def has_values(*arrays: Any) -> bool:
    """Return whether arrays have values in the memory of the host, and results may be made there, too."""
    config: Any = jax.config  # its attributes appear at run time
    checked = config.jax_debug_nans or config.jax_debug_infs
    return not checked and not compiling() and all(map(_is_local, arrays))


def _is_local(array: Any) -> bool:
    if isinstance(array, jax.core.Tracer) or not isinstance(array, jax.Array) or array.committed:
        return False
    (device,) = array.devices()  # an array on several devices is committed
    here: bool = device.platform == "cpu" and device == _first_device()
    return here


def _first_device() -> Any:
    """Return the device of new arrays."""
    config: Any = jax.config  # its attributes appear at run time
    chosen = config.jax_default_device
    return jax.local_devices()[0] if chosen is None else jnp.zeros(()).device


def sparse(
    pattern: Rows,
    values: np.ndarray,
    numbers: np.ndarray | None = None,
    *,
    order: tuple[int, ...] = (0, 1),
    background: jax.Array | None = None,
) -> Sparse:
    """Return a matrix with this pattern and these entries, sorted in this order of its dimensions.

    `numbers` contains the row of each entry, if it is known.
    """
    from .array import Sparse

    if pattern.coordinates:
        data = jax.device_put(values)
    else:
        data, *coordinates = jax.device_put(
            (values, pattern.numbers() if numbers is None else numbers, pattern.columns)
        )
        pattern = _with_coordinates(pattern, coordinates)
    first, second = pattern.coordinates
    leaves, shape = ((data, first, second, background), pattern.shape)
    if order == (1, 0):
        leaves, shape = (data, second, first, background), shape[::-1]
    return Sparse.make(leaves, (shape, order, False))


def located(pattern: Rows) -> Rows:
    """Return a pattern with its coordinates in arrays of JAX, which all matrices with this pattern share."""
    return _with_coordinates(pattern, jax.device_put((pattern.numbers(), pattern.columns)))


def _with_coordinates(pattern: Rows, coordinates: Sequence[jax.Array]) -> Rows:
    keep_starts(coordinates[0], pattern.starts)
    return pattern._replace(coordinates=tuple(coordinates))
