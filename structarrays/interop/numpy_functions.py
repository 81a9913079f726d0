"""Which function of ours stands for which of NumPy's, and how NumPy's arguments become ours.

Most differ from ours by the name, or by arguments that ours take by keyword: `COUNTERPARTS` lists them. The others have an adapter, in
`numpy_adapters`, or are made of several functions, in `numpy_composed` and `numpy_reductions`. An adapter has no parameter for options
that it does not know, or returns ``NotImplemented``: then the arrays are converted, and NumPy computes.
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
from .._core.array.base import Array, is_operand
from .._core.array.writes import link_of
from . import numpy_adapters, numpy_composed, numpy_reductions
from .numpy_host import as_ours, signature

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from .._core.typing import Axes, Result
    from .numpy_host import Casting


# ---- questions that need no elements --------------------------------------------------------------------------------


def answer(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Result:
    """The answer to a question about shape or dtype; NotImplemented for any other function."""
    question = QUESTIONS.get(name)
    return NotImplemented if question is None else question(*args, **kwargs)


def _size(a: Array, axis: Axes = None) -> int:
    if axis is None:
        return a.size
    return math.prod(a.shape[i] for i in (axis if isinstance(axis, tuple) else (axis,)))


def _empty(x: Array) -> np.ndarray:
    """Something of the same shape for NumPy to look at."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape)


def _can_cast(from_: Any, to: Any, casting: Casting = "safe") -> bool:
    return np.can_cast(_as_dtype(from_), _as_dtype(to), casting)


def _as_dtype(value: Any) -> Any:
    return value.dtype if isinstance(value, (Array, jax.Array, dtypes.DType)) else value


def _share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether a write to one is seen in the other: of arrays that are views of one array."""
    if not (isinstance(a, Array) and isinstance(b, Array)):
        return False
    (base, of_a), (other, of_b) = _places_in_base(a), _places_in_base(b)
    return base is other and np.intersect1d(of_a(), of_b()).size > 0


def _places_in_base(x: Array) -> tuple[Array, Callable[[], np.ndarray]]:
    """The array that `x` is a view of, at last, and a function that tells which of its elements `x` has."""
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

# ---- functions that are ours by another name ------------------------------------------------------------------------

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
"""The functions of NumPy whose arguments are ours, and the names of ours, or functions with the same kinds of parameters."""

ADAPTERS = {
    f"numpy.{name}": adapter
    for name, adapter in (numpy_adapters.ADAPTERS | numpy_composed.ADAPTERS | numpy_reductions.ADAPTERS).items()
}
"""The functions of NumPy whose arguments have to be put otherwise; an adapter's parameters have NumPy's names."""

# Options that change nothing: our arrays have no order in memory and no subclasses, sorting is stable, and a promise about the arguments
# is not needed.
_IDLE = {"order": ("C", "A", "K", None), "subok": (True, False), "device": ("cpu", None)}
_IDLE_WHATEVER_VALUE = {"assume_unique", "hermitian", "kind", "sorted", "stable"}

_RENAMED = {"ddof": "correction", "rcond": "rtol"}


def counterpart(function: Callable[..., Any], name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Result:
    """The result of our function for a call of NumPy's; NotImplemented if there is none, or the arguments do not fit."""
    adapter = ADAPTERS.get(name)
    if adapter is None and name not in COUNTERPARTS:
        return NotImplemented
    try:
        given = _given(function, adapter, args, kwargs)
        if adapter is not None:
            bound = signature(adapter).bind(**given)
    except (TypeError, ValueError):
        return NotImplemented  # an option that the adapter does not know; or NumPy has the right words for it
    if adapter is not None:
        return adapter(*bound.args, **bound.kwargs)
    ours = COUNTERPARTS[name]
    return _transfer(operator.attrgetter(ours)(sa) if isinstance(ours, str) else ours, given)


def _given(
    function: Callable[..., Any], adapter: Callable[..., Any] | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of the call by their names in NumPy, without those that only repeat the default, or change nothing."""
    kwargs = {key: value for key, value in kwargs.items() if not _is_idle(key, value)}
    try:
        described = signature(function)
    except ValueError:  # compiled functions have no signature in older versions of NumPy
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
    """Call ours: NumPy's first arguments become our positional ones, the others go by name."""
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
    """An argument of ours; NumPy takes lists for arrays everywhere."""
    convert = name in arrays and value is not None and not is_operand(value)
    return as_ours(value) if convert else value
