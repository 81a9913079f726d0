"""NumPy's functions that leave NaN out: means, spreads and extremes of what is left, in the structure that the others have.

The parameters have NumPy's names. Where nothing is left the result is NaN, as NumPy's, which warns of it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import structarrays as sa

from .numpy_adapters import along
from .numpy_host import as_ours
from .numpy_reductions import has_nan, reduction, without_nan

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.array.base import Array
    from .._core.typing import Axes, DTypeLike, Result


def _extreme(name: str, beyond: float, a: Any, axis: Axes = None, keepdims: bool = False) -> Result:
    a = as_ours(a)
    if a.dtype.kind == "c":
        return NotImplemented
    result = reduction(name, without_nan(a, beyond), axis=axis, keepdims=keepdims)
    if not has_nan(a):
        return result
    return sa.where(sa.all(sa.isnan(a), axis=axis, keepdims=keepdims), np.nan, result)


def _count(a: Array, axis: Axes, keepdims: bool) -> Array:
    """How many numbers are left, as real numbers of the dtype."""
    missing = sa.sum(sa.astype(sa.isnan(a), a.real.dtype), axis=axis, keepdims=keepdims)
    return a.size // max(1, missing.size) - missing


def _mean(a: Any, axis: Axes = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Result:
    a = as_ours(a) if dtype is None else sa.astype(as_ours(a), dtype)
    if not has_nan(a):
        return sa.mean(sa.astype(a, float), axis=axis, keepdims=keepdims)
    return sa.sum(without_nan(a), axis=axis, keepdims=keepdims) / _count(a, axis, keepdims)


def _spread(
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
    if not has_nan(a):
        return getattr(sa, name)(sa.astype(a, float), axis=axis, correction=ddof, keepdims=keepdims)
    # With the mean in the place of NaN neither the mean nor the sum of the squared distances from it changes.
    absent = sa.astype(sa.isnan(a), a.dtype)
    left = _count(a, axis, True)
    whole = without_nan(a)
    mean = sa.sum(whole, axis=axis, keepdims=True) / sa.where(left > 0, left, 1)
    spread = sa.var(whole + absent * mean, axis=axis, keepdims=keepdims)
    left = sa.reshape(left, spread.shape)
    free = left - ddof
    result = spread * (a.size // max(1, left.size) / sa.where(free > 0, free, np.nan))
    return sa.sqrt(result) if name == "std" else result


def _nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Result:
    x = as_ours(x)
    if not has_nan(x) or x.dtype.kind == "c":
        return NotImplemented
    largest = np.finfo(x.dtype).max
    x = without_nan(x, nan)
    x = sa.where(x == np.inf, largest if posinf is None else posinf, x)
    return sa.where(x == -np.inf, -largest if neginf is None else neginf, x)


ADAPTERS: dict[str, Callable[..., Result]] = {
    "nan_to_num": _nan_to_num,
    "nancumprod": lambda a, axis=None, dtype=None: along(sa.cumulative_prod, without_nan(a, 1), axis, dtype=dtype),
    "nancumsum": lambda a, axis=None, dtype=None: along(sa.cumulative_sum, without_nan(a), axis, dtype=dtype),
    "nanmax": partial(_extreme, "max", -np.inf),
    "nanmean": _mean,
    "nanmin": partial(_extreme, "min", np.inf),
    "nanstd": partial(_spread, "std"),
    "nanvar": partial(_spread, "var"),
}
