"""Operands of kernels: conversion to arrays, promotion, and densification if no kernel keeps the structure."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._numerics.symbolic import smaller
from .. import dtypes
from ..dispatch.contexts import densify_policy
from ..dispatch.recording import Event, active_log
from ..errors import DensifyError, DensifyWarning
from ..hints import PRODUCTS_ONLY
from .base import Array, is_array
from .dense import Dense
from .flattening import unflatten
from .foreign import way_out
from .operators import is_operand

if TYPE_CHECKING:
    from ..typing import DTypeLike


def lift(value: Any, argument: str = "x") -> Array:
    """Convert a value inside a compiled call to an `Array`; arrays of JAX and NumPy become `Dense`."""
    if isinstance(value, Array):
        for leaf in value._value[0]:
            if not isinstance(leaf, Array) and isinstance(leaf, jax.Ref):
                raise TypeError(
                    f"{argument} must contain arrays, got a {type(value).__name__} whose parameters are references "
                    "(jax.Ref); read their values with jax.tree.map(lambda ref: ref[...], x)"
                )
        return value
    if isinstance(value, jax.Array):
        check_numbers(value, argument)
        return Dense.make((value,))
    if is_operand(value):
        return Dense.make((jnp.asarray(value),))
    raise TypeError(f"{argument} must be an array, got {type(value).__name__}: {str(value)[:60]}")


def check_numbers(value: Any, argument: str, function: str = "") -> None:
    """Raise TypeError for a JAX array whose elements are not numbers, such as keys of `jax.random`."""
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.extended):
        prefix = function and f"{function}: "
        raise TypeError(f"{prefix}{argument} must have a numeric or boolean dtype, got {value.dtype}")


def unsupported(function: str, argument: str, dtype: np.dtype) -> TypeError:
    """Return the error for an argument of a 16-bit dtype, for which LAPACK has no routines."""
    return TypeError(
        f"{function}: {argument} has dtype {dtype}, for which LAPACK has no routines; "
        f"cast it with sa.astype({argument}, sa.float32)"
    )


def check_operand(value: Any, function: str, argument: str) -> None:
    """Raise TypeError, in the name of the calling function, unless the value is an operand."""
    if not is_operand(value):
        raise TypeError(
            f"{function}: {argument} must be an array of structarrays, JAX or NumPy, or a Python scalar, "
            f"got {type(value).__name__}{way_out(value)}"
        )
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.itemsize > {"f": 8, "c": 16}.get(
        value.dtype.kind, np.inf
    ):
        raise TypeError(
            f"{function}: {argument} must have a dtype of at most 64 bits (128 if complex), got {value.dtype}; convert it with astype"
        )
    check_numbers(value, argument, function)


def is_weak(x: Array) -> bool:
    """Return whether an array inside a compiled call represents a Python scalar."""
    return type(x) is Dense and getattr(jax.typeof(x._value[0][0]), "weak_type", False)


_WEAK_KIND = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def promote(*arrays: Array) -> list[Array]:
    """Cast arrays to their common dtype; Python scalars adopt the dtype of the arrays, if their kind allows."""
    weak = list(map(is_weak, arrays))
    strong = [x.dtype for x, scalar in zip(arrays, weak, strict=True) if not scalar]
    if len(strong) == len(arrays) and strong.count(strong[0]) == len(strong):
        return list(arrays)
    if strong:
        dtype = dtypes.promote(*strong)
        for x, scalar in zip(arrays, weak, strict=True):
            if scalar:
                dtype = dtypes.promote_scalar(dtype, _WEAK_KIND[x.dtype.kind])
    else:
        dtype = dtypes.promote(*(x.dtype for x in arrays))
    return [cast(x, dtype) for x in arrays]


def cast(x: Array, dtype: DTypeLike) -> Array:
    """Cast an array inside a compiled call; it keeps its structure, and the assumptions that rounding cannot break."""
    if x.dtype == dtype and not is_weak(x):
        return x
    leaves, (cls, meta, assumptions) = x._value
    dtype = np.dtype(dtype)
    if assumptions and dtype.kind in "biu":
        assumptions &= {"symmetric", "hermitian"}
    return cls.cast(x, dtype).assuming(assumptions)


def to_dense(x: Array) -> Dense:
    """Densify an array inside a compiled call, without consulting the policy; it keeps its assumptions."""
    return x if type(x) is Dense else Dense.make((x.dense_data(),), None, x.assumptions)


NO_KERNEL = "No kernel keeps the structure of these operands."


def densify(x: Array, name: str) -> Dense:
    """Densify an operand for which `name` has no kernel, under the policy (docs/design/semantics.md).

    The policy does not apply to an array that stores as many numbers as its dense form (a triangular array) or has no
    elements.

    Raises
    ------
    DensifyError
        If the policy forbids it, or the dense form is larger than the limit.
    """
    if type(x) is Dense:
        return x
    if not x.full_size and x.size:
        allow_dense(x, name, x.size)
    return to_dense(x)


SMALL = 256
"""The largest number of rows or columns of a small matrix. Its dense form does not count as densified if it is the
fastest method or the result."""


def dense_if_small(x: Array, name: str) -> Dense:
    """Densify under the policy of `densify`; the dense form of a small matrix (`SMALL`) does not count."""
    return densify(x, name) if smaller(SMALL, max(x.shape[-2:])) else to_dense(x)


def right_side(x: Array, name: str = "linalg.solve") -> jax.Array:
    """The right-hand side of a linear system as dense data; a vector does not count as densified."""
    return (to_dense(x) if x.ndim == 1 else densify(x, name)).data


def lets_dense(x: Array, size: int | None = None) -> bool:
    """Return whether the policy allows the dense form of `x`, or a dense array of `size` elements: for kernels with an
    alternative.
    """
    policy = densify_policy.value
    fits = not smaller(policy.limit, (x.size if size is None else size) * x.dtype.itemsize)
    return fits and policy.mode != "error"


def allow_dense(x: Array, name: str, size: int, *, limit: bool = True, reason: str = NO_KERNEL) -> None:
    """Check with the policy that `name` may create a dense array of `size` elements from `x`, and log it.

    Parameters
    ----------
    x : Array
        The structured operand.
    name : str
        The function.
    size : int
        The number of elements.
    limit : bool
        Whether to raise if the array exceeds the limit; otherwise only warn, as a write does.
    reason : str
        Sentence that says why the structure is lost.

    Raises
    ------
    DensifyError
        If the policy forbids it, or the dense form is larger than the limit.
    """
    size *= x.dtype.itemsize
    policy = densify_policy.value
    kind = f"{type(x).__name__} of shape {x.shape}"
    exceeds = smaller(policy.limit, size)
    if policy.mode == "error" or (limit and exceeds):
        why = (
            'which sa.densify("error") forbids'
            if policy.mode == "error"
            else f"which is above the limit of {policy.limit} bytes"
        )
        raise DensifyError(
            f"{name} would expand {kind} to its dense form ({size} bytes), {why}\n"
            f"{reason}{_parts(x)}{_instead(name)} Use a function that keeps it (sa.explain shows which kernel runs), call x.to_dense() if you "
            f'want the dense form, or raise the limit with sa.densify("allow", limit=…)'
        )
    if policy.mode == "warn" or exceeds:
        text = f"{name} expands {kind} to its dense form ({size} bytes)"
        warnings.warn(text, DensifyWarning, stacklevel=_level_of_caller())
    log = active_log()
    if log is not None:
        log.add(Event(name, (kind,), "densify", f"Dense of shape {x.shape}", bytes=size, densified=True))


def _parts(x: Array) -> str:
    """Return a sentence with the classes of the parts of a composed array."""
    names = list(dict.fromkeys(type(part).__name__ for part in getattr(x, "parts", ())))
    return f" The parts of the {type(x).__name__} are {', '.join(names)}." if len(names) > 1 else ""


def _instead(name: str) -> str:
    """Return a sentence with a function that needs only products, for a function that has such a replacement."""
    replacement = PRODUCTS_ONLY.get(name)
    return "" if replacement is None else f" Products keep it: use {replacement}."


def _level_of_caller() -> int:
    """Return the `stacklevel` of the line that called this library, for a warning by the calling function, also inside
    transformations of JAX.
    """
    frame = sys._getframe(1)
    level = 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("structarrays", "jax"):
        frame = frame.f_back
        level += 1
    return level


def without_weak_types(result: Any) -> Any:
    """Remove JAX's weak types, which must not leave a call (docs/design/semantics.md).

    The arrays of the result are new handles.
    """
    return _stripped(result) if isinstance(result, Array) else jax.tree.map(_stripped, result, is_leaf=is_array)


def _stripped(x: Any) -> Any:
    if not isinstance(x, Array):
        return strip_weak(x)
    leaves, aux = x._value
    stripped: list[Any] = []
    for leaf in leaves:
        if leaf is not None and (isinstance(leaf, Array) or getattr(jax.typeof(leaf), "weak_type", False)):
            leaf = _stripped(leaf)
        stripped.append(leaf)
    return unflatten(aux, tuple(stripped))


def strip_weak(leaf: Any) -> Any:
    """Remove JAX's weak type from a leaf of a result."""
    if getattr(jax.typeof(leaf), "weak_type", False):
        return jax.lax.convert_element_type(leaf, leaf.dtype)
    return leaf
