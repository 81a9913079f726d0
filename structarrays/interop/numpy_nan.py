"""NumPy's functions that leave NaN out: sums, means, spreads and extremes of what is left, in the structure that the others have.

The parameters have NumPy's names. Where nothing is left the result is NaN, as NumPy's, which warns of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .numpy_adapters import ADAPTERS as PLAIN
from .numpy_host import as_ours, ours
from .numpy_reductions import reduction

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.array.base import Array
    from .._core.typing import Axes, DTypeLike, Result


def _has_nan(x: Array) -> bool:
    """Whether numbers of this dtype may be NaN."""
    return x.dtype.kind not in "biu"


def _filled(x: Array, value: Any = 0) -> Array:
    """The array with a number for NaN; off the pattern there is none, so the structure stays."""
    filled: Array = ours("where")(ours("isnan")(x), value, x)
    return filled


def _sum(name: str) -> Callable[..., Result]:
    neutral = {"sum": 0, "prod": 1}[name]

    def adapter(
        a: Any,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Result:
        a = as_ours(a)
        a = _filled(a, neutral) if _has_nan(a) else a
        return reduction(name, a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)

    return adapter


def _cumulative(name: str) -> Callable[..., Result]:
    neutral = {"sum": 0, "prod": 1}[name]

    def adapter(a: Any, axis: Axes = None, dtype: DTypeLike | None = None) -> Result:
        a = as_ours(a)
        a = _filled(a, neutral) if _has_nan(a) else a
        given = {} if dtype is None else {"dtype": dtype}
        return PLAIN[f"numpy.cum{name}"](a, axis=axis, **given)

    return adapter


def _extreme(name: str) -> Callable[..., Result]:
    beyond = {"max": -np.inf, "min": np.inf}[name]

    def adapter(a: Any, axis: Axes = None, keepdims: bool = False) -> Result:
        a = as_ours(a)
        if not _has_nan(a):
            return reduction(name, a, axis=axis, keepdims=keepdims)
        if a.dtype.kind == "c":
            return NotImplemented
        result = reduction(name, _filled(a, beyond), axis=axis, keepdims=keepdims)
        nothing = ours("all")(ours("isnan")(a), axis=axis, keepdims=keepdims)
        return ours("where")(nothing, np.nan, result)

    return adapter


def _count(a: Array, axis: Axes, keepdims: bool) -> Array:
    """How many numbers are left, as real numbers of the dtype."""
    real = ours("real")(a).dtype if a.dtype.kind == "c" else a.dtype
    missing = ours("sum")(ours("astype")(ours("isnan")(a), real), axis=axis, keepdims=keepdims)
    everything = a.size // max(1, missing.size)
    left: Array = everything - missing
    return left


def _mean(a: Any, axis: Axes = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Result:
    a = as_ours(a) if dtype is None else ours("astype")(as_ours(a), dtype)
    if not _has_nan(a):
        return ours("mean")(ours("astype")(a, float), axis=axis, keepdims=keepdims)
    return ours("sum")(_filled(a), axis=axis, keepdims=keepdims) / _count(a, axis, keepdims)


def _spread(name: str) -> Callable[..., Result]:
    def adapter(
        a: Any,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        correction: float | None = None,
    ) -> Result:
        a = as_ours(a) if dtype is None else ours("astype")(as_ours(a), dtype)
        if correction is not None:
            ddof = correction
        if a.dtype.kind == "c":
            return NotImplemented
        if not _has_nan(a):
            a = ours("astype")(a, float)
            return ours(name)(a, axis=axis, correction=ddof, keepdims=keepdims)
        # With the mean in the place of NaN neither the mean nor the sum of the squared distances from it changes.
        absent = ours("astype")(ours("isnan")(a), a.dtype)
        left = _count(a, axis, True)
        whole = _filled(a)
        mean = ours("sum")(whole, axis=axis, keepdims=True) / ours("where")(left > 0, left, 1)
        spread = ours("var")(whole + absent * mean, axis=axis, keepdims=keepdims)
        left = ours("reshape")(left, spread.shape)
        everything = a.size // max(1, left.size)
        free = left - ddof
        result = spread * (everything / ours("where")(free > 0, free, np.nan))
        return ours("sqrt")(result) if name == "std" else result

    return adapter


def _nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Result:
    x = as_ours(x)
    if not _has_nan(x) or x.dtype.kind == "c":
        return NotImplemented
    largest = np.finfo(x.dtype).max
    x = _filled(x, nan)
    x = ours("where")(x == np.inf, largest if posinf is None else posinf, x)
    return ours("where")(x == -np.inf, -largest if neginf is None else neginf, x)


ADAPTERS: dict[str, Callable[..., Result]] = {
    "numpy.nan_to_num": _nan_to_num,
    "numpy.nancumprod": _cumulative("prod"),
    "numpy.nancumsum": _cumulative("sum"),
    "numpy.nanmax": _extreme("max"),
    "numpy.nanmean": _mean,
    "numpy.nanmin": _extreme("min"),
    "numpy.nanprod": _sum("prod"),
    "numpy.nanstd": _spread("std"),
    "numpy.nansum": _sum("sum"),
    "numpy.nanvar": _spread("var"),
}
