"""NumPy functions that write into an argument, as assignments ``x[key] = values`` (docs/design/semantics.md).

As in any assignment, a write inside of the pattern keeps the structure. A write outside of the pattern changes the
array to the narrowest structure that can represent the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import structarrays as sa

from .._core.array import writes
from .._core.array.base import Array
from .numpy_host import cast_to, on_host, signature

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .numpy_host import Casting


def write(function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a NumPy function that writes into its first argument: our array by an assignment, a NumPy array by NumPy."""
    bound = signature(WRITES[name]).bind(*args, **kwargs)  # raises where NumPy raises
    target, *_ = bound.args
    if not isinstance(target, Array):
        args, kwargs = on_host(bound.args[1:], name), on_host(bound.kwargs, name)
        return function(target, *args, **kwargs)
    with writes.LOCK:  # several of these functions read the array before they write
        return WRITES[name](*bound.args, **bound.kwargs)


def _copyto(dst: Array, src: Any, casting: Casting = "same_kind", where: Any = True) -> None:
    src = sa.asarray(src)
    if not np.can_cast(src.dtype, dst.dtype, casting):
        raise TypeError(
            f"numpy.copyto: dtype {src.dtype} cannot be cast to the dtype of dst, {dst.dtype}, with casting={casting!r}"
        )
    dst[...] = src if where is True else sa.where(where, src, dst)


def _fill_diagonal(a: Array, val: Any, wrap: bool = False) -> None:
    if a.ndim < 2:
        raise ValueError(f"numpy.fill_diagonal: a must have at least two dimensions, got shape {a.shape}")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"numpy.fill_diagonal: all dimensions of a must have equal length, got shape {a.shape}")
    rows = np.arange(min(a.shape))
    columns = rows
    if wrap and a.ndim == 2:
        rows, columns = np.divmod(np.arange(0, a.size, a.shape[1] + 1), a.shape[1])
    _assign(a, (rows,) + (columns,) * (a.ndim - 1), val, "numpy.fill_diagonal")


def _put(a: Array, ind: Any, v: Any, mode: str = "raise") -> None:
    indices = on_host(ind, "numpy.put")
    places = np.unravel_index(_in_range("numpy.put", np.ravel(indices), a.size, mode), a.shape)
    _assign(a, places, v, "numpy.put")


def _in_range(name: str, indices: np.ndarray, size: int, mode: str = "raise") -> np.ndarray:
    """Normalize indices to nonnegative ones, as `mode` says."""
    if mode == "clip":
        clipped: np.ndarray = np.clip(indices, 0, size - 1)
        return clipped
    wrong = (indices < -size) | (indices >= size)
    if mode == "raise" and wrong.any():
        raise IndexError(f"{name}: index {indices[wrong][0]} is out of range for {size} elements")
    wrapped: np.ndarray = indices % max(1, size)
    return wrapped


def _putmask(a: Array, mask: Any, values: Any) -> None:
    mask, name = sa.asarray(mask), "numpy.putmask"
    if mask.shape != a.shape:
        raise ValueError(f"{name}: mask must have the shape of a, {a.shape}, got {mask.shape}")
    values = cast_to(values, a.dtype, name)
    if values.ndim == 0:
        a[sa.astype(mask, bool)] = values
    else:
        repeated = np.resize(on_host(values, name), a.shape)
        a[...] = sa.where(sa.astype(mask, bool), repeated, a)


def _place(arr: Array, mask: Any, vals: Any) -> None:
    name = "numpy.place"
    mask = np.asarray(on_host(mask, name), bool)
    if mask.size != arr.size:
        raise ValueError(f"{name}: mask must have the number of elements of arr, {arr.size}, got {mask.size}")
    if not mask.any():
        return
    vals = cast_to(vals, arr.dtype, name)
    if not vals.size:
        raise ValueError(f"{name}: vals must not be empty")
    _assign(arr, np.nonzero(mask.reshape(arr.shape)), vals, name)


def _put_along_axis(arr: Array, indices: Any, values: Any, axis: int | None) -> None:
    name = "numpy.put_along_axis"
    indices = np.asarray(on_host(indices, name))
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"{name}: indices must have one dimension if axis is None, got shape {indices.shape}")
        _assign(arr, np.unravel_index(_in_range(name, indices, arr.size), arr.shape), values, name)
        return
    if indices.ndim != arr.ndim:
        raise ValueError(f"{name}: indices must have the number of dimensions of arr, {arr.ndim}, got {indices.ndim}")
    axis = range(arr.ndim)[axis]
    grid = list(np.ogrid[tuple(slice(n) for n in arr.shape)])
    grid[axis] = _in_range(name, indices, arr.shape[axis])
    places = np.broadcast_arrays(*grid)
    values = sa.broadcast_to(cast_to(values, arr.dtype, name), places[0].shape)
    _assign(arr, tuple(p.ravel() for p in places), sa.reshape(values, (-1,)), name)


def _assign(x: Array, places: Sequence[np.ndarray], values: Any, name: str) -> None:
    """Write values to positions in order, repeating them as needed. The last value for a position is kept."""
    count = len(places[0])
    values = cast_to(values, x.dtype, name)
    if values.ndim != 0:
        if values.size == 0:
            return
        flat = sa.reshape(values, (-1,))
        values = flat if flat.size == count else sa.take(flat, np.arange(count) % flat.size)
        # XLA writes to duplicate positions in any order.
        linear = np.ravel_multi_index(places, x.shape)
        last = count - 1 - np.unique(linear[::-1], return_index=True)[1]
        if len(last) < count:
            places = tuple(p[last] for p in places)
            values = sa.take(values, last)
    if count:
        x[places] = values


WRITES: dict[str, Callable[..., None]] = {
    "numpy.copyto": _copyto,
    "numpy.fill_diagonal": _fill_diagonal,
    "numpy.place": _place,
    "numpy.put": _put,
    "numpy.put_along_axis": _put_along_axis,
    "numpy.putmask": _putmask,
}
"""Implementations by NumPy's names; the parameters have NumPy's names, too."""
