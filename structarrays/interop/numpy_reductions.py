"""Reductions with the options of NumPy's: ``where`` and ``initial``, which the standard's have not, and those that leave NaN out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from .._core.array.base import Array
from .._core.dispatch.registry import FUNCTIONS
from .._functions.comparisons_and_logic import isnan
from .._functions.conversion import asarray
from .._functions.data_type import astype
from .._functions.searching import where as select
from .numpy_host import as_ours

if TYPE_CHECKING:
    from .._core.typing import Axes, DTypeLike, Result, Static


# What an element that `where` leaves out counts as, and what joins `initial` to the result.
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
    """A reduction of ours with NumPy's options.

    Parameters
    ----------
    name : str
        ``"sum"``, ``"prod"``, ``"max"``, ``"min"``, ``"any"`` or ``"all"``.
    x : array_like
        What is reduced.
    axis, dtype, keepdims, initial, where
        As of NumPy's functions; None for `initial` is none.
    skip_nan : bool
        Whether a sum or a product leaves NaN out.

    Returns
    -------
    Array
        NotImplemented for what only NumPy has.
    """
    x = without_nan(x, _NEUTRAL[name]) if skip_nan else as_ours(x)
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
    return FUNCTIONS[_JOIN[name]](result, astype(asarray(initial), result.dtype))


def _selected(name: str, x: Array, where: Any, initial: Any) -> Result:
    """The array in which the elements that `where` leaves out change nothing."""
    where = condition_of(where)
    if where is NotImplemented or where.ndim > x.ndim:
        return NotImplemented
    neutral = initial if name in ("max", "min") else _NEUTRAL[name]
    if neutral is None:
        return NotImplemented
    if neutral == 0:
        neutral = zero_like(x)
    elif name in ("any", "all") and x.dtype.kind != "b":
        x = astype(x, bool)
    return select(where, x, neutral)


def has_nan(x: Array) -> bool:
    """Whether numbers of this dtype may be NaN."""
    return x.dtype.kind not in "biu"


def without_nan(a: Any, value: Any = 0) -> Array:
    """The array with a number for NaN; off the pattern there is none, so the structure stays."""
    x = as_ours(a)
    return select(isnan(x), value, x) if has_nan(x) else x


def condition_of(where: Any) -> Result:
    """The argument ``where`` as an array; NotImplemented where NumPy has an error, since it is not boolean."""
    try:
        where = asarray(where if hasattr(where, "dtype") else np.asarray(where, bool))
    except (TypeError, ValueError):
        return NotImplemented
    return where if where.dtype.kind == "b" else NotImplemented


def zero_like(x: Array) -> Array | np.ndarray:
    """Zeros that cost no structure beside `x`: an array of the same pattern, or the number."""
    if not (x.stores_entries and x.linear):
        return np.zeros((), x.dtype)
    background = None if x.background is None else jnp.zeros_like(x.background)
    return x.rebuild(tuple(map(jnp.zeros_like, x.entries)), background)
