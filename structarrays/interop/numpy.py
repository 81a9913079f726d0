"""NumPy's functions on our arrays: ours in their place where there is one, else a conversion (DESIGN 4.6).

NumPy hands a call of a ufunc or a function with one of our arrays to `Array`, and that to the hooks here. Which of our
functions stands for which of NumPy's, and how the arguments go over, is in `numpy_functions`.
"""

import jax
import numpy as np

from ..core import dtypes, writes
from ..core.array import Array, is_operand
from ..core.dense import Dense
from ..core.elementwise import KINDS
from ..core.registry import FUNCTIONS
from . import numpy_functions


def to_numpy(x: Array, dtype=None, copy=None, *, name: str = "numpy.asarray") -> np.ndarray:
    """The array on the host: a fresh copy, which can be written to.

    Parameters
    ----------
    x : Array
        Any structure; expanded under the policy of `densify`.
    dtype : dtype, optional
        The dtype of the result.
    copy : bool, optional
        With False, the read-only memory of a `Dense` on the host.

    Raises
    ------
    ValueError
        If ``copy=False`` and a copy is needed.
    """
    dense = x if type(x) is Dense else FUNCTIONS["densified"](x, name)
    data = dense.data
    if copy is False:
        shared = dense is x and not isinstance(data, jax.core.Tracer) and (dtype is None or dtype == data.dtype)
        if not shared or any(d.platform != "cpu" for d in data.devices()):
            raise ValueError(f"{name}: copy=False, but a copy is needed of a {type(x).__name__} of dtype {x.dtype}")
        return np.asarray(data)
    return np.array(np.asarray(data), dtype)  # JAX's own is read-only, which compiled code of SciPy does not take


def _on_host(value, name: str):
    """Arguments with NumPy arrays in the place of ours."""
    if isinstance(value, Array):
        return to_numpy(value, name=name)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_on_host(v, name) for v in value)
    if isinstance(value, tuple):
        return type(value)(*(_on_host(v, name) for v in value))
    if isinstance(value, dict):
        return {k: _on_host(v, name) for k, v in value.items()}
    return value


def _into(out, result, name: str):
    """Write a result into the array that a call names with ``out``."""
    if isinstance(out, tuple):
        if len(out) == 1:
            return _into(out[0], result, name)
        return tuple(r if o is None else _into(o, r, name) for o, r in zip(out, result, strict=True))
    if isinstance(out, Array):
        writes.assign_result(out, result if isinstance(result, Array) else FUNCTIONS["asarray"](result), name)
    else:
        np.copyto(out, _on_host(result, name), casting="same_kind")
    return out


# ---- ufuncs -------------------------------------------------------------------------------------------------------

_UFUNCS = {
    "absolute": "abs", "fabs": "abs", "power": "pow", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "conjugate": "conj",
    "invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
    "rint": "round", "true_divide": "divide",
} | {
    name: name
    for name in (
        "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_or", "bitwise_xor",
        "ceil", "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater",
        "greater_equal", "hypot", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2",
        "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "maximum", "minimum",
        "multiply", "negative", "nextafter", "not_equal", "positive", "reciprocal", "remainder", "sign", "signbit",
        "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc", "vecdot",
    )
}  # fmt: skip

_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
_ACCUMULATIONS = {"add": "cumulative_sum", "multiply": "cumulative_prod"}


def ufunc(ufunc, method: str, inputs: tuple, kwargs: dict):
    """What ``ufunc.method(*inputs, **kwargs)`` is where one of the arguments is our array."""
    out = kwargs.pop("out", None)
    if not all(_is_ours_to_take(v) for v in (*inputs, *(out if isinstance(out, tuple) else ()))):
        return NotImplemented
    name = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    result = NotImplemented
    kwargs = {k: v for k, v in kwargs.items() if not _is_default(k, v)}
    if method == "__call__" and not kwargs:
        result = _call(ufunc, inputs)
    elif method == "reduce" and len(inputs) == 1:
        result = _reduce(_REDUCTIONS, ufunc, inputs[0], kwargs, ("axis", "dtype", "keepdims"))
    elif method == "accumulate" and len(inputs) == 1:
        result = _reduce(_ACCUMULATIONS, ufunc, inputs[0], kwargs, ("axis", "dtype"))
    elif method == "at":
        return _at(ufunc, inputs)
    if result is NotImplemented:
        if "where" in kwargs and out is not None:
            kwargs["out"] = out  # whose elements stay where the condition is false
        inputs, kwargs = _on_host(inputs, name), _on_host(kwargs, name)
        result = getattr(ufunc, method)(*inputs, **kwargs)
    return result if out is None else _into(out, result, name)


def _is_ours_to_take(value) -> bool:
    """Whether an argument is something that has no claim of its own on the call."""
    if value is None or is_operand(value) or isinstance(value, (np.ndarray, list, tuple)):
        return True
    return not hasattr(value, "__array_ufunc__")


def _is_default(key, value) -> bool:
    return (value is None and key != "axis") or (key == "where" and value is True) or (key, value) in (
        ("keepdims", False), ("casting", "same_kind"), ("order", "K"), ("subok", True)
    )  # fmt: skip


def _call(ufunc, inputs):
    if ufunc.__name__ == "divmod":
        return FUNCTIONS["floor_divide"](*inputs), FUNCTIONS["remainder"](*inputs)
    function = FUNCTIONS.get(_UFUNCS.get(ufunc.__name__))
    if function is None:
        return NotImplemented
    inputs = [v if is_operand(v) else _as_array(v) for v in inputs]
    if any(v is NotImplemented for v in inputs):
        return NotImplemented
    if ufunc.__name__.startswith("logical_"):  # NumPy takes any dtype for a truth value
        inputs = [v if _dtype(v).kind == "b" else FUNCTIONS["astype"](FUNCTIONS["asarray"](v), bool) for v in inputs]
    if ufunc.__name__ == "fabs" and any(_dtype(v).kind == "c" for v in inputs):
        return NotImplemented  # where NumPy raises
    allowed = KINDS.get(getattr(function, "kinds", "all"))
    arrays = [v for v in inputs if hasattr(v, "dtype")]
    if any(v.dtype.kind not in allowed for v in arrays if v.dtype.kind in "biufc"):
        # Unlike the standard NumPy counts with booleans, and where there are numbers beside them so can we.
        common = dtypes.promote(*(v.dtype for v in arrays))
        if common.kind not in allowed:
            return NotImplemented
        inputs = [FUNCTIONS["astype"](v, common) if _dtype(v).kind == "b" else v for v in inputs]
    return function(*inputs)


def _as_array(value):
    try:
        return FUNCTIONS["asarray"](value)
    except (TypeError, ValueError):
        return NotImplemented


def _dtype(value) -> np.dtype:
    return value.dtype if hasattr(value, "dtype") else np.result_type(value)


def _reduce(table, ufunc, x, kwargs, known):
    function = FUNCTIONS.get(table.get(ufunc.__name__))
    if function is None or set(kwargs) - {*known, "axis"} or not isinstance(x, Array):
        return NotImplemented
    kwargs = {"axis": 0} | kwargs  # a reduction by a ufunc is over the first axis, if it does not say so
    if ufunc.__name__.startswith("logical_") or ufunc.__name__ in ("maximum", "minimum"):
        if kwargs.pop("dtype", None) is not None:
            return NotImplemented
    return function(x, **kwargs)


def _at(ufunc, inputs):
    """Unbuffered operations at indices: on the host, and written back."""
    x, name = inputs[0], f"numpy.{ufunc.__name__}.at"
    host, *others = _on_host(inputs, name)
    ufunc.at(host, *others)
    if isinstance(x, Array):
        writes.assign_result(x, FUNCTIONS["asarray"](host), name)


# ---- functions ----------------------------------------------------------------------------------------------------


def function(function, args: tuple, kwargs: dict):
    """What ``function(*args, **kwargs)`` of NumPy is where one of the arguments is our array."""
    name = f"{function.__module__}.{function.__name__}"
    answer = numpy_functions.answer(name, args, kwargs)
    if answer is not NotImplemented:
        return answer
    if name == "numpy.copyto":
        return _copyto(*args, **kwargs)
    out = kwargs.get("out")
    if out is not None:
        kwargs = {k: v for k, v in kwargs.items() if k != "out"}
    result = numpy_functions.counterpart(function, name, args, kwargs)
    if result is NotImplemented:
        result = function(*_on_host(args, name), **_on_host(kwargs, name))
    return result if out is None else _into(out, result, name)


def _copyto(dst, src, casting="same_kind", where=True):
    if not isinstance(dst, Array):
        np.copyto(dst, _on_host(src, "numpy.copyto"), casting=casting, where=_on_host(where, "numpy.copyto"))
    elif where is True:
        dst[...] = src
    else:
        dst[...] = FUNCTIONS["where"](where, FUNCTIONS["asarray"](src), dst)


FUNCTIONS.update({"interop.to_numpy": to_numpy, "interop.ufunc": ufunc, "interop.function": function})
