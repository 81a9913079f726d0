"""Structured reductions with NumPy's options, such as ``where`` and ``initial``, and reductions that ignore NaN.

The parameters of the adapters have NumPy's names. A slice with only NaN gives NaN, as in NumPy, which warns in
addition.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import structarrays as sa

from .._core.array.base import Array
from .._core.dispatch.registry import FUNCTIONS
from .._core.families.neutral_zero import zero_like
from .numpy_host import as_ours, cast_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.typing import Axes, DTypeLike, Result, Static


# The value of an element that `where` excludes, and the function that combines `initial` with the result.
_NEUTRAL = {"sum": 0, "prod": 1, "any": False, "all": True, "max": None, "min": None}
_JOIN = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def reduction(
    name: str,
    x: Any,
    /,
    *,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    skip_nan: bool = False,
) -> Result:
    """Reduce an array with NumPy's options.

    Parameters
    ----------
    name : {"sum", "prod", "max", "min", "any", "all"}
        Name of the reduction.
    x : array_like
        Array to reduce.
    axis, dtype, keepdims, initial, where
        Options of NumPy's functions.
    skip_nan : bool, default False
        Whether a sum or a product ignores NaN.

    Returns
    -------
    Array
        The result, or NotImplemented for options that only NumPy supports.
    """
    x = _without_nan(x, _NEUTRAL[name]) if skip_nan else as_ours(x)
    if name in ("any", "all", "max", "min") and dtype is not None:
        return NotImplemented
    if initial is not None and (name not in _JOIN or np.ndim(initial) != 0 or x.size == 0):
        return NotImplemented
    if where is not True:
        x = _selected(name, x, where, initial)
        if x is NotImplemented:
            return x
    options: Static = {"axis": axis, "keepdims": keepdims}
    if name in ("sum", "prod"):
        options["dtype"] = dtype
    result = FUNCTIONS[name](x, **options)
    if initial is None:
        return result
    return FUNCTIONS[_JOIN[name]](result, cast_to(initial, result.dtype, f"numpy.{name}"))


def _selected(name: str, x: Array, where: Any, initial: Any) -> Result:
    """Replace the elements that `where` excludes by the neutral element of the reduction."""
    where = condition_of(where)
    if where is NotImplemented or where.ndim > x.ndim:
        return NotImplemented
    neutral = initial if name in ("max", "min") else _NEUTRAL[name]
    if neutral is None:
        return NotImplemented
    if neutral == 0:
        neutral = zero_like(x)
    elif name in ("max", "min"):
        neutral = cast_to(initial, x.dtype, f"numpy.{name}")
    elif name in ("any", "all") and x.dtype.kind != "b":
        x = sa.astype(x, bool)
    return sa.where(where, x, neutral)


def condition_of(where: Any) -> Result:
    """Convert the argument ``where`` to an array; NotImplemented if it is not boolean, so that NumPy raises."""
    try:
        where = sa.asarray(where if hasattr(where, "dtype") else np.asarray(where, bool))
    except (TypeError, ValueError):
        return NotImplemented
    return where if where.dtype.kind == "b" else NotImplemented


def _mean(
    a: Any, axis: Axes = None, dtype: DTypeLike | None = None, keepdims: bool = False, where: Any = True
) -> Result:
    if dtype is not None and np.dtype(dtype).kind in "biu":
        return NotImplemented  # NumPy rounds the mean to an integer
    a = as_ours(a) if dtype is None else sa.astype(as_ours(a), dtype)
    if a.dtype.kind in "biu":
        a = sa.astype(a, float)
    if where is True:
        return sa.mean(a, axis=axis, keepdims=keepdims)
    total = reduction("sum", a, axis=axis, keepdims=keepdims, where=where)
    if total is NotImplemented:
        return total
    counted = sa.astype(sa.broadcast_to(as_ours(where), a.shape), total.real.dtype)
    return total / sa.sum(counted, axis=axis, keepdims=keepdims)


def flat(a: Any) -> Array:
    """Flatten an array."""
    return sa.reshape(as_ours(a), (-1,))


def along(function: Callable[..., Result], a: Any, axis: int | None, **options: Any) -> Result:
    """Apply a function along an axis, or to the flattened array if `axis` is None."""
    return function(flat(a), axis=0, **options) if axis is None else function(as_ours(a), axis=axis, **options)


# ---- without NaN ------------------------------------------------------------------------------------------------------


def _has_nan(x: Array) -> bool:
    """Return whether elements of this data type can be NaN."""
    return x.dtype.kind not in "biu"


def _without_nan(a: Any, value: Any = 0) -> Array:
    """Replace NaN by a value. Structural zeros are never NaN, so the structure is kept."""
    x = as_ours(a)
    return sa.where(sa.isnan(x), value, x) if _has_nan(x) else x


def _nanextreme(name: str, beyond: float, a: Any, axis: Axes = None, keepdims: bool = False) -> Result:
    a = as_ours(a)
    if a.dtype.kind == "c":
        return NotImplemented
    result = reduction(name, _without_nan(a, beyond), axis=axis, keepdims=keepdims)
    if not _has_nan(a):
        return result
    return sa.where(sa.all(sa.isnan(a), axis=axis, keepdims=keepdims), np.nan, result)


def _count(a: Array, axis: Axes, keepdims: bool) -> Array:
    """Return the number of elements that are not NaN, in the real data type of the array."""
    missing = sa.sum(sa.astype(sa.isnan(a), a.real.dtype), axis=axis, keepdims=keepdims)
    return a.size // max(1, missing.size) - missing


def _nanmean(a: Any, axis: Axes = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Result:
    a = as_ours(a) if dtype is None else sa.astype(as_ours(a), dtype)
    if not _has_nan(a):
        return sa.mean(sa.astype(a, float), axis=axis, keepdims=keepdims)
    return sa.sum(_without_nan(a), axis=axis, keepdims=keepdims) / _count(a, axis, keepdims)


def _nanspread(
    name: str,
    a: Any,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    correction: float | None = None,
) -> Result:
    a = as_ours(a) if dtype is None else sa.astype(as_ours(a), dtype)
    ddof = ddof if correction is None else correction
    if a.dtype.kind == "c":
        return NotImplemented
    if not _has_nan(a):
        return getattr(sa, name)(sa.astype(a, float), axis=axis, correction=ddof, keepdims=keepdims)
    # Replacing NaN by the mean changes neither the mean nor the sum of squared deviations.
    absent = sa.astype(sa.isnan(a), a.dtype)
    left = _count(a, axis, True)
    whole = _without_nan(a)
    mean = sa.sum(whole, axis=axis, keepdims=True) / sa.where(left > 0, left, 1)
    spread = sa.var(whole + absent * mean, axis=axis, keepdims=keepdims)
    left = sa.reshape(left, spread.shape)
    free = left - ddof
    result = spread * (a.size // max(1, left.size) / sa.where(free > 0, free, np.nan))
    return sa.sqrt(result) if name == "std" else result


def _nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Result:
    x = as_ours(x)
    if not _has_nan(x) or x.dtype.kind == "c":
        return NotImplemented
    largest = np.finfo(x.dtype).max
    x = _without_nan(x, nan)
    x = sa.where(x == np.inf, largest if posinf is None else posinf, x)
    return sa.where(x == -np.inf, -largest if neginf is None else neginf, x)


ADAPTERS: dict[str, Callable[..., Result]] = {
    "cumprod": lambda a, axis=None, dtype=None: along(sa.cumulative_prod, a, axis, dtype=dtype),
    "cumsum": lambda a, axis=None, dtype=None: along(sa.cumulative_sum, a, axis, dtype=dtype),
    "mean": _mean,
    "nan_to_num": _nan_to_num,
    "nancumprod": lambda a, axis=None, dtype=None: along(sa.cumulative_prod, _without_nan(a, 1), axis, dtype=dtype),
    "nancumsum": lambda a, axis=None, dtype=None: along(sa.cumulative_sum, _without_nan(a), axis, dtype=dtype),
    "nanmax": partial(_nanextreme, "max", -np.inf),
    "nanmean": _nanmean,
    "nanmin": partial(_nanextreme, "min", np.inf),
    "nanstd": partial(_nanspread, "std"),
    "nanvar": partial(_nanspread, "var"),
}
