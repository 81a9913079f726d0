"""NumPy's ufuncs on our arrays, with their options and methods (docs/design/semantics.md).

A ufunc with a counterpart in the Array API standard calls our function, which keeps the structure. This module
implements ``where``, ``dtype``, ``out``, ``reduce``, ``accumulate`` and ``outer`` in addition. NumPy computes all other
calls on converted arrays.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

import structarrays as sa

from .._core import dtypes
from .._core.array import writes
from .._core.array.base import Array
from .._core.array.foreign import is_table
from .._core.array.operators import is_operand
from .._core.dispatch.registry import FUNCTIONS
from .._core.families.elementwise_rule import KINDS
from .._core.families.neutral_zero import zero_like
from .numpy_host import into, on_host, while_written
from .numpy_reductions import condition_of, reduction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .._core.typing import Axes, DTypeLike, Result
    from .numpy_host import Casting


UFUNCS = {
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
"""Our functions, by the names of NumPy's ufuncs."""

REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
ACCUMULATIONS = {"add": "cumulative_sum", "multiply": "cumulative_prod"}

# Options without effect: our arrays have no memory order and no subclasses.
_IDLE = ("order", "subok")


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Result:
    """Compute ``ufunc.method(*inputs, **kwargs)`` if an argument is one of our arrays."""
    kwargs = {k: v for k, v in kwargs.items() if k not in _IDLE and not _is_default(k, v)}
    out = kwargs.pop("out", None)
    if not all(_is_ours_to_take(v) for v in (*inputs, *(out if isinstance(out, tuple) else ()))):
        if any(is_table(v) for v in inputs) and out is None:  # pandas defers to the array, as in operators
            return getattr(ufunc, method)(*on_host(inputs, f"numpy.{ufunc.__name__}"), **kwargs)
        return NotImplemented
    name = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    _refuse(name, inputs)
    if method == "at":
        with writes.LOCK:
            return _at(ufunc, inputs, name)
    with while_written(out, inputs):
        return _computed(ufunc, method, inputs, kwargs, out, name)


def _computed(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any], out: Any, name: str
) -> Result:
    """Compute a ufunc, and write the result into `out` if given."""
    result = NotImplemented
    if method == "__call__":
        result = _with_options(ufunc, inputs, name, out, **kwargs)
    elif method == "outer" and len(inputs) == 2:
        result = _outer(ufunc, inputs, name, out, **kwargs)
    elif method == "reduce" and len(inputs) == 1:
        result = _reduce(ufunc, *inputs, **kwargs)
    elif method == "accumulate" and len(inputs) == 1:
        result = _accumulate(ufunc, *inputs, **kwargs)
    if result is NotImplemented:
        return _by_numpy(ufunc, method, inputs, kwargs, out, name)
    if method in ("__call__", "outer") or out is None:
        return result
    return into(out, result, name)


def _by_numpy(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any], out: Any, name: str
) -> Result:
    """Let NumPy compute the result on converted arrays."""
    if "where" in kwargs and out is not None:
        kwargs = kwargs | {"out": out}  # keeps its elements where the condition is false
    result = getattr(ufunc, method)(*on_host(inputs, name), **on_host(kwargs, name))
    if out is None:
        return result
    # NumPy has checked the shape and dtype of its own arrays. Its casting rule holds for ours as well.
    casting = kwargs.get("casting", "same_kind")
    return into(out, result, name, casting=casting, broadcast=method in ("__call__", "outer"))


def _is_ours_to_take(value: Any) -> bool:
    """Return False for an object of a third library with ``__array_ufunc__``, which takes precedence."""
    if value is None or is_operand(value) or isinstance(value, (np.ndarray, list, tuple)):
        return True
    return not hasattr(value, "__array_ufunc__")


MASKED = "arguments must not be masked arrays, because the mask would be lost; use numpy.ma with numpy.asarray(x)"


def _refuse(name: str, inputs: Iterable[Any]) -> None:
    """Raise TypeError for masked arrays, and for arrays of objects, dates or fields."""
    for value in inputs:
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"{name}: {MASKED}")
        if isinstance(value, np.ndarray) and not (value.dtype.kind in "biufcSU" or _is_small_float(value.dtype)):
            raise TypeError(
                f"{name}: operands must have a numeric or boolean dtype, got {value.dtype}; convert the operand, or pass "
                "numpy.asarray(x) for the array of structarrays"
            )


def _is_small_float(dtype: np.dtype) -> bool:
    """Return whether a data type is one of JAX's, such as bfloat16, whose kind in NumPy is V (void)."""
    return dtype.names is None and dtype.kind == "V" and jnp.issubdtype(dtype, jnp.floating)


def _is_default(key: str, value: Any) -> bool:
    return (value is None and key != "axis") or (key == "where" and value is True) or (key, value) in (
        ("keepdims", False), ("casting", "same_kind")
    )  # fmt: skip


# ---- calls ----------------------------------------------------------------------------------------------------------


def _with_options(
    ufunc: np.ufunc,
    inputs: Sequence[Any],
    name: str,
    out: Any,
    *,
    where: Any = True,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
    **others: Any,
) -> Result:
    """Call our function with the options of a ufunc, and write the result into `out` if given."""
    if others and not (ufunc.__name__ == "vecdot" and set(others) == {"axis"}):
        return NotImplemented
    condition = True if where is True else condition_of(where)
    inputs = [v if is_operand(v) else as_array(v) for v in inputs]
    if condition is NotImplemented or any(v is NotImplemented for v in inputs):
        return NotImplemented
    result = _call(ufunc, inputs, **others) if dtype is None else _call_in(np.dtype(dtype), casting, ufunc, inputs)
    if result is NotImplemented:
        return result
    if out is not None:
        return into(out, result, name, where=condition, casting=casting, broadcast=True)
    if condition is True:
        return result
    if isinstance(result, tuple):
        return tuple(_where(condition, r) for r in result)
    return _where(condition, result)


def _where(condition: Any, result: Any) -> Array:
    """Return the result where the condition is true, and zeros elsewhere (uninitialized in NumPy)."""
    return sa.where(condition, result, zero_like(result))


def _call_in(dtype: np.dtype, casting: Casting, ufunc: np.ufunc, inputs: Sequence[Any]) -> Result:
    """Compute in the data type that the option ``dtype`` selects."""
    if not all(np.can_cast(v.dtype, dtype, casting) for v in inputs if hasattr(v, "dtype")):
        return NotImplemented  # where NumPy raises
    result = _call(ufunc, [sa.astype(sa.asarray(v), dtype) if hasattr(v, "dtype") else v for v in inputs])
    alike = result is not NotImplemented and not isinstance(result, tuple) and result.dtype == dtype
    return result if alike else NotImplemented


def _call(ufunc: np.ufunc, inputs: Sequence[Any], **axis: Any) -> Result:
    composed = COMPOSED.get(ufunc.__name__)
    if composed is not None:
        return composed(*inputs)
    function = FUNCTIONS.get(UFUNCS.get(ufunc.__name__, ""))
    if function is None:
        return NotImplemented
    if ufunc.__name__.startswith("logical_"):  # NumPy accepts any dtype as truth values
        inputs = [v if _dtype(v).kind == "b" else sa.astype(sa.asarray(v), bool) for v in inputs]
    if ufunc.__name__ in ("fabs", "rint"):
        if ufunc.__name__ == "fabs" and any(_dtype(v).kind == "c" for v in inputs):
            return NotImplemented  # where NumPy raises
        inputs = [sa.astype(sa.asarray(v), float) if _dtype(v).kind in "biu" else v for v in inputs]
    allowed: Any = KINDS.get(getattr(function, "kinds", "all"))
    arrays = [v for v in inputs if hasattr(v, "dtype")]
    if any(v.dtype.kind not in allowed for v in arrays if v.dtype.kind in "biufc"):
        # NumPy computes with booleans, unlike the standard. With a numeric operand the common dtype is well defined.
        common = dtypes.promote(*(v.dtype for v in arrays))
        if common.kind not in allowed:
            return NotImplemented
        inputs = [sa.astype(v, common) if _dtype(v).kind == "b" else v for v in inputs]
    return function(*inputs, **axis)


def as_array(value: Any) -> Result:
    """Convert a value to an array of this library, or return NotImplemented."""
    try:
        return sa.asarray(value)
    except (TypeError, ValueError):
        return NotImplemented


def _dtype(value: Any) -> np.dtype:
    return value.dtype if hasattr(value, "dtype") else np.result_type(value)


# ---- ufuncs that are composed of several functions --------------------------------------------------------------------


def _of_kinds(kinds: str, function: Callable[..., Any]) -> Callable[..., Result]:
    """Restrict a function to operands of these kinds; for others NumPy computes, or raises."""
    return lambda *inputs: function(*inputs) if all(_dtype(v).kind in kinds for v in inputs) else NotImplemented


def _scaled(factor: float) -> Callable[..., Result]:
    return _of_kinds("iuf", lambda x: sa.multiply(x, factor))


def _matvec(x1: Any, x2: Any) -> Result:
    x1, x2 = sa.asarray(x1), sa.asarray(x2)
    if x1.ndim < 2 or x2.ndim < 1:
        return NotImplemented
    if x2.ndim == 1:
        return sa.matmul(x1, x2)
    return sa.squeeze(sa.matmul(x1, sa.expand_dims(x2, -1)), -1)


def _vecmat(x1: Any, x2: Any) -> Result:
    x1, x2 = sa.conj(sa.asarray(x1)), sa.asarray(x2)
    if x1.ndim < 1 or x2.ndim < 2:
        return NotImplemented
    if x1.ndim == 1:
        return sa.matmul(x1, x2)
    return sa.squeeze(sa.matmul(sa.expand_dims(x1, -2), x2), -2)


COMPOSED: dict[str, Callable[..., Result]] = {
    "deg2rad": _scaled(math.pi / 180),
    "degrees": _scaled(180 / math.pi),
    "divmod": _of_kinds("iuf", lambda x1, x2: (sa.floor_divide(x1, x2), sa.remainder(x1, x2))),
    "exp2": _of_kinds("iuf", lambda x: sa.pow(2.0, sa.asarray(x))),
    "imag": _of_kinds("c", lambda x: sa.imag(x)),  # a ufunc since NumPy 2.5; `numpy.imag` is not one
    "matvec": _matvec,
    "rad2deg": _scaled(180 / math.pi),
    "radians": _scaled(math.pi / 180),
    "real": _of_kinds("c", lambda x: sa.real(x)),
    "vecmat": _vecmat,
}


# ---- methods ----------------------------------------------------------------------------------------------------------


def _reduce(ufunc: np.ufunc, x: Any, *, axis: Axes = 0, **options: Any) -> Result:
    """Reduce by a ufunc; the default axis is the first."""
    known = REDUCTIONS.get(ufunc.__name__)
    if known is None or not isinstance(x, Array) or set(options) - {"dtype", "keepdims", "initial", "where"}:
        return NotImplemented
    return reduction(known, x, axis=axis, **options)


def _accumulate(ufunc: np.ufunc, x: Any, *, axis: Axes = 0, dtype: DTypeLike | None = None, **options: Any) -> Result:
    known = ACCUMULATIONS.get(ufunc.__name__)
    if known is None or not isinstance(x, Array) or options:
        return NotImplemented
    return FUNCTIONS[known](x, axis=axis, dtype=dtype)


def _outer(ufunc: np.ufunc, inputs: Sequence[Any], name: str, out: Any, **options: Any) -> Result:
    """Apply a ufunc to all pairs of elements."""
    x1, x2 = map(as_array, inputs)
    if x1 is NotImplemented or x2 is NotImplemented or ufunc.signature is not None:
        return NotImplemented
    behind = tuple(range(x1.ndim, x1.ndim + x2.ndim))
    if behind:
        x1 = sa.expand_dims(x1, behind)
    return _with_options(ufunc, (x1, x2), name, out, **options)


def _at(ufunc: np.ufunc, inputs: Sequence[Any], name: str) -> None:
    """Apply a ufunc at indices without buffering: on the host, then written back."""
    x = inputs[0]
    host, *others = on_host(inputs, name)
    ufunc.at(host, *others)
    if isinstance(x, Array):
        writes.assign_result(x, sa.asarray(host), name)
