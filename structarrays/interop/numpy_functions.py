"""Tables of our counterparts of NumPy functions, and the translation of NumPy's arguments.

`COUNTERPARTS` lists the functions that differ by their name, or by arguments that ours take by keyword. The others have
an adapter (`numpy_adapters`) or are composed of several functions (`numpy_composed`, `numpy_reductions`). If an adapter
lacks a parameter or returns ``NotImplemented``, NumPy computes the result on converted arrays.
"""

from __future__ import annotations

import inspect
import math
import operator
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import structarrays as sa

from .._core import dtypes
from .._core.array.base import Array
from .._core.array.operators import is_operand
from .._core.array.writes import link_of
from . import numpy_adapters, numpy_composed, numpy_reductions
from .numpy_host import as_ours, signature

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from .._core.typing import Axes, Result
    from .numpy_host import Casting


# ---- queries of shape and dtype -------------------------------------------------------------------------------------


def answer(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Result:
    """Answer a query of shape or data type; NotImplemented for any other function."""
    question = QUESTIONS.get(name)
    return NotImplemented if question is None else question(*args, **kwargs)


def _size(a: Array, axis: Axes = None) -> int:
    if axis is None:
        return a.size
    return math.prod(a.shape[i] for i in (axis if isinstance(axis, tuple) else (axis,)))


def _empty(x: Array) -> np.ndarray:
    """Return a NumPy array of the same shape and data type that takes no memory."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape)


def _can_cast(from_: Any, to: Any, casting: Casting = "safe") -> bool:
    return np.can_cast(_as_dtype(from_), _as_dtype(to), casting)


def _as_dtype(value: Any) -> Any:
    return value.dtype if isinstance(value, (Array, jax.Array, dtypes.DType)) else value


def _share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Return whether two arrays are views of one array and have common elements."""
    if not (isinstance(a, Array) and isinstance(b, Array)):
        return False
    (base, of_a), (other, of_b) = _places_in_base(a), _places_in_base(b)
    return base is other and np.intersect1d(of_a(), of_b()).size > 0


def _places_in_base(x: Array) -> tuple[Array, Callable[[], np.ndarray]]:
    """Return the array that owns the elements of `x`, and a function that returns the flat indices of `x` in it."""
    link = link_of(x)
    if link is None or link.base is None:
        return x, lambda: np.arange(x.size).reshape(x.shape)
    base, places = _places_in_base(link.base)
    return base, lambda: np.asarray(link.get(jax.numpy.asarray(places())))


def _may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    if not (isinstance(a, Array) and isinstance(b, Array)):
        return False
    return _places_in_base(a)[0] is _places_in_base(b)[0]


QUESTIONS: dict[str, Callable[..., Any]] = {
    "numpy.shape": lambda a: a.shape,
    "numpy.ndim": lambda a: a.ndim,
    "numpy.size": _size,
    "numpy.result_type": lambda *arrays: np.result_type(*map(_as_dtype, arrays)),
    "numpy.can_cast": _can_cast,
    "numpy.min_scalar_type": lambda a: a.dtype,
    "numpy.common_type": lambda *arrays: np.result_type(np.float16, *map(_as_dtype, arrays)).type,
    "numpy.iscomplexobj": lambda x: x.dtype.kind == "c",
    "numpy.isrealobj": lambda x: x.dtype.kind != "c",
    "numpy.may_share_memory": _may_share_memory,
    "numpy.shares_memory": _share_memory,
    "numpy.diag_indices_from": lambda arr: np.diag_indices_from(_empty(arr)),
    "numpy.tril_indices_from": lambda arr, k=0: np.tril_indices_from(_empty(arr), k),
    "numpy.triu_indices_from": lambda arr, k=0: np.triu_indices_from(_empty(arr), k),
}

# ---- functions that differ by their name only -----------------------------------------------------------------------

_SAME = (
    "argmax", "argmin", "astype", "broadcast_arrays", "broadcast_to", "count_nonzero", "cumulative_prod",
    "cumulative_sum", "expand_dims", "flip", "isin", "matrix_transpose", "moveaxis", "nonzero", "repeat", "roll",
    "searchsorted", "std", "take_along_axis", "tensordot", "tril", "triu", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "unstack", "var",
)  # fmt: skip
_LINALG = (
    "cross", "det", "diagonal", "eig", "eigvals", "inv", "matrix_norm", "outer", "pinv", "slogdet", "solve", "svdvals",
    "trace", "vector_norm",
)  # fmt: skip
_FFT = ("fft", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftn")
_REDUCTIONS = ("all", "any", "max", "min", "prod", "sum")

COUNTERPARTS: dict[str, str | Callable[..., Result]] = {
    **{f"numpy.{name}": name for name in _SAME},
    **{f"numpy.linalg.{name}": f"linalg.{name}" for name in _LINALG},
    **{f"numpy.linalg.{name}": name for name in ("matmul", "matrix_transpose", "tensordot", "vecdot")},
    **{f"numpy.fft.{name}": f"fft.{name}" for name in _FFT},
    **{f"numpy.{name}": partial(numpy_reductions.reduction, name) for name in _REDUCTIONS},
    **{f"numpy.a{name}": partial(numpy_reductions.reduction, name) for name in ("max", "min")},
    **{f"numpy.nan{name}": partial(numpy_reductions.reduction, name, skip_nan=True) for name in ("prod", "sum")},
    "numpy.fix": "trunc",
}
"""By NumPy function: the name of our function, or a function, that takes the same arguments."""

ADAPTERS = {
    f"numpy.{name}": adapter
    for name, adapter in (numpy_adapters.ADAPTERS | numpy_composed.ADAPTERS | numpy_reductions.ADAPTERS).items()
}
"""By NumPy function: the adapter that translates the arguments. Its parameters have NumPy's names."""

# Options without effect: our arrays have no memory order and no subclasses, sorting is stable, and promises about the
# arguments are not needed.
_IDLE = {"order": ("C", "A", "K", None), "subok": (True, False), "device": ("cpu", None)}
_IDLE_WHATEVER_VALUE = {"assume_unique", "hermitian", "kind", "sorted", "stable"}

_RENAMED = {"ddof": "correction", "rcond": "rtol"}


def counterpart(function: Callable[..., Any], name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Result:
    """Return the result of our counterpart; NotImplemented if there is none, or it lacks an argument."""
    adapter = ADAPTERS.get(name)
    if adapter is None and name not in COUNTERPARTS:
        return NotImplemented
    try:
        given = _given(function, adapter, args, kwargs)
        if adapter is not None:
            bound = signature(adapter).bind(**given)
    except (TypeError, ValueError):
        return NotImplemented  # an option that the adapter lacks, or an error that NumPy should raise
    if adapter is not None:
        return adapter(*bound.args, **bound.kwargs)
    ours = COUNTERPARTS[name]
    return _transfer(operator.attrgetter(ours)(sa) if isinstance(ours, str) else ours, given)


def _given(
    function: Callable[..., Any], adapter: Callable[..., Any] | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments by their NumPy names, without defaults and options without effect."""
    kwargs = {key: value for key, value in kwargs.items() if not _is_idle(key, value)}
    try:
        described = signature(function)
    except ValueError:  # in older versions of NumPy compiled functions have no signature
        described = signature(adapter)
    given = {}
    for key, value in described.bind(*args, **kwargs).arguments.items():
        kind, default = described.parameters[key].kind, described.parameters[key].default
        if kind is inspect.Parameter.VAR_KEYWORD:
            given.update(value)
        elif not (value is default or (_is_plain(value) and value == default) or _is_idle(key, value)):
            given[key] = value
    return given


def _is_idle(key: str, value: Any) -> bool:
    return key in _IDLE_WHATEVER_VALUE or (_is_plain(value) and value in _IDLE.get(key, ()))


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _transfer(function: Callable[..., Any], given: Mapping[str, Any]) -> Result:
    """Call our function: NumPy's first arguments become our positional arguments, the others are passed by name."""
    parameters = signature(function).parameters.values()
    names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    known = getattr(function, "arrays", ())
    renamed = _RENAMED.values()
    given = {_RENAMED.get(k, k): v for k, v in given.items() if not (v is None and k in renamed)}
    args: list[Any] = []
    for parameter in parameters:
        key = next(iter(given), None)
        if key is None or key in names or parameter.name in names:
            break
        value = given.pop(key)
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += map(as_ours, value)
        else:
            args.append(_as_argument(parameter.name, value, known))
    if set(given) - names:
        return NotImplemented
    return function(*args, **{key: _as_argument(key, value, known) for key, value in given.items()})


def _as_argument(name: str, value: Any, arrays: Collection[str]) -> Any:
    """Convert an array argument: NumPy accepts a list wherever it accepts an array."""
    convert = name in arrays and value is not None and not is_operand(value)
    return as_ours(value) if convert else value
