"""The operands of a kernel: arrays, of one dtype, and dense where there is no kernel that keeps their structure."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import dtypes
from ..dispatch.contexts import densify_policy
from ..dispatch.recording import Event, active_log
from ..errors import DensifyError, DensifyWarning
from .base import Array, is_array, is_operand
from .dense import Dense
from .flattening import unflatten
from .foreign import way_out

if TYPE_CHECKING:
    from ..typing import DTypeLike


def lift(value: Any, argument: str = "x") -> Array:
    """A value inside a compiled call as an `Array`; what JAX and NumPy have becomes `Dense`."""
    if isinstance(value, Array):
        return value
    if isinstance(value, jax.Array):
        check_numbers(value, argument)
        return Dense.make((value,))
    if is_operand(value):
        return Dense.make((jnp.asarray(value),))
    raise TypeError(f"{argument} must be an array, got {type(value).__name__}: {str(value)[:60]}")


def check_numbers(value: Any, argument: str, function: str = "") -> None:
    """Raise TypeError for an array of JAX whose elements are no numbers, such as keys of `jax.random`."""
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.extended):
        prefix = function and f"{function}: "
        raise TypeError(f"{prefix}{argument} must have a numeric or boolean dtype, got {value.dtype}")


def unsupported(function: str, argument: str, dtype: np.dtype) -> TypeError:
    """The error for an argument of a dtype that LAPACK has no routines for: one of 16 bits."""
    return TypeError(
        f"{function}: {argument} has dtype {dtype}, for which LAPACK has no routines; cast it, as by sa.astype({argument}, sa.float32)"
    )


def check_operand(value: Any, function: str, argument: str) -> None:
    """Raise TypeError for what is no array, in the words of the function that got it."""
    if not is_operand(value):
        raise TypeError(
            f"{function}: {argument} must be an array of structarrays, JAX or NumPy, or a Python scalar, "
            f"got {type(value).__name__}{way_out(value)}"
        )
    check_numbers(value, argument, function)


def is_weak(x: Array) -> bool:
    """Whether an array inside a compiled call stands for a Python scalar."""
    return type(x) is Dense and getattr(jax.typeof(x._value[0][0]), "weak_type", False)


_WEAK_KIND = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def promote(*arrays: Array) -> list[Array]:
    """The arrays with their common dtype; Python scalars take that of the arrays, if their kind allows."""
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
    """The array with another dtype, inside a compiled call; its structure and assumptions stay."""
    if x.dtype == dtype and not is_weak(x):
        return x
    leaves, (cls, meta, assumptions) = x._value
    return cls.cast(x, np.dtype(dtype)).assuming(assumptions)


def to_dense(x: Array) -> Dense:
    """The dense form, inside a compiled call, without asking the policy; what is assumed of the array stays."""
    return x if type(x) is Dense else Dense.make((x.dense_data(),), None, x.assumptions)


NO_KERNEL = "It has no kernel that keeps the structure of these operands."


def densify(x: Array, name: str) -> Dense:
    """The dense form of an operand that `name` has no kernel for, under the policy (docs/design/semantics.md).

    An operand that stores as many numbers as its dense form has (a triangular one) is not expanded by that, nor is one without
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
"""The largest number of rows and columns of a matrix that does not count as densified, if its dense form is the fastest method or the result."""


def dense_if_small(x: Array, name: str) -> Dense:
    """The dense form, under the policy of `densify`; the dense form of a small matrix (`SMALL`) does not count."""
    return to_dense(x) if max(x.shape[-2:]) <= SMALL else densify(x, name)


def right_side(x: Array, name: str = "linalg.solve") -> jax.Array:
    """The right-hand side of a linear system as dense data; a vector does not count as densified."""
    return (to_dense(x) if x.ndim == 1 else densify(x, name)).data


def lets_dense(x: Array, size: int | None = None) -> bool:
    """Whether the policy allows the dense form of `x`, or a dense array of `size` elements: for kernels that have another method."""
    policy = densify_policy.value
    fits: bool = (x.size if size is None else size) * x.dtype.itemsize <= policy.limit
    return fits and policy.mode != "error"


def allow_dense(x: Array, name: str, size: int, *, limit: bool = True, reason: str = NO_KERNEL) -> None:
    """Ask the policy, and the log, whether `name` may make a dense array of so many elements of `x`.

    Parameters
    ----------
    x : Array
        The structured operand.
    name : str
        The function.
    size : int
        The number of elements.
    limit : bool
        Whether more than the limit raises; else it only warns, as a write does.
    reason : str
        A sentence that says why the structure is lost.

    Raises
    ------
    DensifyError
        If the policy forbids it, or the dense form is larger than the limit.
    """
    size *= x.dtype.itemsize
    policy = densify_policy.value
    kind = f"{type(x).__name__} of shape {x.shape}"
    if policy.mode == "error" or (limit and size > policy.limit):
        why = (
            'which sa.densify("error") forbids'
            if policy.mode == "error"
            else f"which is above the limit of {policy.limit} bytes"
        )
        raise DensifyError(
            f"{name} would expand {kind} to its dense form ({size} bytes), {why}\n"
            f"{reason} Ways out: a function that keeps it "
            f"(sa.explain tells what runs), x.to_dense() where the dense form is wanted, "
            f'or with sa.densify("allow", limit=…)'
        )
    if policy.mode == "warn" or size > policy.limit:
        text = f"{name} expands {kind} to its dense form ({size} bytes)"
        warnings.warn(text, DensifyWarning, stacklevel=_level_of_caller())
    log = active_log()
    if log is not None:
        log.add(Event(name, (kind,), "densify", f"Dense of shape {x.shape}", bytes=size, densified=True))


def _level_of_caller() -> int:
    """The `stacklevel`, for a warning by the function that asks, of the line that called this library, under a transformation of JAX or not."""
    frame = sys._getframe(1)
    level = 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("structarrays", "jax"):
        frame = frame.f_back
        level += 1
    return level


def without_weak_types(result: Any) -> Any:
    """A result without JAX's weak types, which must not leak out (docs/design/semantics.md). Its arrays are new handles."""
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
    """A leaf of a result without JAX's weak type."""
    if getattr(jax.typeof(leaf), "weak_type", False):
        return jax.lax.convert_element_type(leaf, leaf.dtype)
    return leaf
