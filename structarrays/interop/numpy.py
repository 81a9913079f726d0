"""NumPy's functions on our arrays: our counterpart if there is one, a conversion otherwise (docs/design/semantics.md).

NumPy calls ``Array.__array_function__``, which calls `apply_function` here. `numpy_functions` and `numpy_composed`
contain the counterparts, `numpy_writes` the functions that write into an argument, `numpy_ufuncs` the ufuncs, and
`numpy_host` the conversions to and from the host.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.array.base import Array
from .._core.dispatch.results import follow_eager_operands
from . import numpy_functions, numpy_ufuncs, numpy_writes
from .numpy_host import as_ours, into, on_host, signature, while_written

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .._core.typing import Result


_DATES = "of dates, which structarrays does not support"
_REFUSED = {
    "numpy.busday_count": _DATES,
    "numpy.busday_offset": _DATES,
    "numpy.is_busday": _DATES,
    "numpy.datetime_as_string": _DATES,
    "numpy.lib.recfunctions": "of arrays with fields, which structarrays does not support",
}


# Functions with ``like=`` that NumPy computes; the result becomes one of our arrays.
_READERS = ("frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring", "genfromtxt", "loadtxt", "require")


def apply_function(
    function: Callable[..., Any], types: Collection[type], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Result:
    """Compute NumPy's ``function(*args, **kwargs)`` if an argument is one of our arrays."""
    if not all(issubclass(cls, (Array, np.ndarray)) for cls in types):
        return NotImplemented  # an array of a third library, which may implement the function
    name = f"{function.__module__}.{function.__name__}"
    answer = numpy_functions.answer(name, args, kwargs)
    if answer is not NotImplemented:
        return answer
    _refuse(name, types, kwargs)
    if name in numpy_writes.WRITES:
        return numpy_writes.write(function, name, args, kwargs)
    out, args, kwargs = _without_out(function, args, kwargs)
    with while_written(out, (*args, *kwargs.values())):
        result = numpy_functions.counterpart(function, name, args, kwargs)
        if result is NotImplemented:
            result = function(*on_host(args, name), **on_host(kwargs, name))
            if name.removeprefix("numpy.") in _READERS:
                result = as_ours(result)
        return follow_eager_operands(result, args) if out is None else into(out, result, name)


def _refuse(name: str, types: Collection[type], kwargs: dict[str, Any]) -> None:
    """Raise TypeError for calls that NumPy could run on a copy, but whose result would be useless."""
    if any(issubclass(cls, np.ma.MaskedArray) for cls in types):
        raise TypeError(f"{name}: {numpy_ufuncs.MASKED}")
    what = _REFUSED.get(name) or _REFUSED.get(name.rpartition(".")[0])
    if what is not None:
        raise TypeError(f"{name} is a function {what}; pass numpy.asarray(x) instead")
    if name == "numpy.lib.stride_tricks.sliding_window_view" and kwargs.get("writeable"):
        raise TypeError(
            f"{name}: writeable must be False, because the windows are views of a copy on the host; write into the array "
            "itself, x[key] = value"
        )


def _without_out(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return `out`, given by position or keyword, and the arguments without it."""
    place = _place_of_out(function)
    if "out" in kwargs:
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
    elif place is not None and len(args) > place:
        out, args = args[place], (*args[:place], None, *args[place + 1 :])
    else:
        out = None
    return (None if out is Ellipsis else out), args, kwargs


@functools.cache
def _place_of_out(function: Callable[..., Any]) -> int | None:
    """Return the position of the parameter ``out``, or None."""
    try:
        parameters = list(signature(function).parameters.values())
    except ValueError:
        return None
    places = [i for i, p in enumerate(parameters) if p.name == "out" and p.kind is p.POSITIONAL_OR_KEYWORD]
    return places[0] if places else None
