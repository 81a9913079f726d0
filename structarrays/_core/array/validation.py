"""Checks of the parameters of arrays from files.

Each class registers a check of its static part and of the shapes of its parameters (`validated`). A check computes with
a few integers and traces nothing, so its time is proportional to the number of parameters, for any shapes.
"""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any, Final

import jax

from ..assumptions import IMPLIED
from ..dispatch import explicit
from ..dispatch.registry import Registry
from .base import Array
from .dense import Dense

if TYPE_CHECKING:
    from ..typing import Shape

validated: Registry[None] = Registry("validated")
"""``validated.kernel(A)`` registers ``check(x)``, which raises `ValueError` unless the static part and the parameters
of `x` are valid for the class. The check includes the values of indices if kernels of the class rely on them. `load`
checks parts first, and passes each composed part as a `Dense` of its shape and dtype."""

BACKGROUND: Final = None
"""Core shape of a background in `check_leaves`: a background is a scalar or None."""


def check_parameters(x: Array) -> None:
    """Check that shapes, dtypes and the static part of an array agree, and run the check of its class.

    Raises
    ------
    ValueError
        If they do not.
    """
    cls = type(x)
    try:
        kernel = validated.choose((x,), {})
        if kernel is not None:
            kernel.run(x)
        elif not _is_foreign(cls):
            raise ValueError("the class is abstract; arrays must belong to a concrete subclass")
        if not all(type(n) is int and 0 <= n < 2**63 for n in x.shape):
            raise ValueError(f"its shape must be a tuple of integers from 0 to 2**63 - 1, got {reprlib.repr(x.shape)}")
        if _is_foreign(cls):
            dense = explicit.eval_shape(lambda x: x.dense_data(), x)
            if (dense.shape, dense.dtype) != (x.shape, x.dtype):
                raise ValueError(
                    f"its dense form must have the shape {x.shape} and the dtype {x.dtype}, got {dense.shape} and {dense.dtype}"
                )
        _check_assumptions(x)
    except Exception as error:  # the code of a class may raise anything for invalid parameters
        raise ValueError(f"the parameters of a {cls.__name__} are invalid: {error}") from error


def outline(x: Array) -> Array:
    """Return a `Dense` without data, of the shape and dtype of `x`.

    Checks of arrays that contain `x` need nothing else.
    """
    return Dense.make((jax.ShapeDtypeStruct(x.shape, x.dtype),))


def _is_foreign(cls: type) -> bool:
    """Return whether a class is defined outside this library."""
    return cls.__module__.partition(".")[0] != Array.__module__.partition(".")[0]


def _check_assumptions(x: Array) -> None:
    if not all(a in IMPLIED and IMPLIED[a] <= x.assumptions for a in x.assumptions):
        raise ValueError(
            f"its assumptions must be known, with all that they imply, got {reprlib.repr(sorted(map(str, x.assumptions)))}"
        )
    if x.assumptions and (x.ndim < 2 or x.shape[-1] != x.shape[-2]):
        raise ValueError(f"an array with assumptions must be a square matrix, got the shape {x.shape}")


# ---- for kernels -----------------------------------------------------------------------------------------------------


def require(condition: bool, what: str) -> None:
    """Raise `ValueError` with the message `what` unless the condition is true."""
    if not condition:
        raise ValueError(what)


def check_sizes(value: Any, count: int | None = None) -> Shape:
    """Return a shape from the static part; raise unless it is valid, with `count` dimensions if given."""
    good = type(value) is tuple and all(type(n) is int and 0 <= n < 2**63 for n in value)
    require(
        good and count in (None, len(value)),
        f"a shape in its static part must be {count or 'a tuple of'} nonnegative integers, got {reprlib.repr(value)}",
    )
    shape: Shape = value
    return shape


def check_offsets(value: Any, shape: Shape) -> tuple[int, ...]:
    """Return offsets of diagonals from the static part; raise unless they increase and lie inside a matrix of this
    shape.
    """
    require(
        type(value) is tuple and all(type(k) is int for k in value),
        f"offsets must be integers, got {reprlib.repr(value)}",
    )
    offsets: tuple[int, ...] = value
    inside = all(-shape[0] < k < shape[1] or k == 0 for k in offsets)  # an empty matrix has an empty main diagonal
    increasing = all(a < b for a, b in zip(offsets, offsets[1:]))
    require(
        inside and increasing,
        f"offsets must increase and lie inside a matrix of shape {shape}, got {reprlib.repr(offsets)}",
    )
    return offsets


def check_static(good: bool, x: Array) -> None:
    """Raise `ValueError`, with the static part of the array, unless `good` is true."""
    require(good, f"its static part is invalid: {reprlib.repr(x.meta)}")


def check_leaves(x: Array, *cores: Shape | None, dtype: bool = True) -> None:
    """Raise unless the parameters are arrays with one batch shape, these core shapes, and (if `dtype` is true) the dtype of `x`."""
    leaves = x._value[0]
    require(len(leaves) == len(cores), f"it must have {len(cores)} parameters, got {len(leaves)}")
    batch: Shape | None = None
    for i, (leaf, core) in enumerate(zip(leaves, cores, strict=True)):
        if leaf is None and core is BACKGROUND and i:
            continue
        require(isinstance(leaf, jax.Array), f"parameter {i} must be an array, got {reprlib.repr(leaf)}")
        core = core or ()
        split = len(leaf.shape) - len(core)
        batch = leaf.shape[:split] if batch is None else batch
        require(
            split >= 0 and leaf.shape == batch + core,
            f"parameter {i} must have the shape {batch} + {core}, got {leaf.shape}",
        )
        require(not dtype or leaf.dtype == x.dtype, f"parameter {i} must have the dtype {x.dtype}, got {leaf.dtype}")


def check_parts(x: Array, least: int, most: int | None = None) -> tuple[tuple[int, int], ...]:
    """Return the core shapes of the parts; raise unless there are `least` to `most` matrices of one batch shape and one
    numeric dtype.
    """
    parts = x._value[0]
    require(least <= len(parts) <= (most or len(parts)), f"it has too few or too many parts: {len(parts)}")
    require(all(isinstance(part, Array) for part in parts), "its parts must be arrays of structarrays")
    shapes = [part.shape for part in parts]
    require(all(len(s) >= 2 for s in shapes), "its parts must have at least two dimensions")
    require(all(s[:-2] == shapes[0][:-2] for s in shapes), "its parts must have one batch shape")
    require(
        all(part.dtype == parts[0].dtype for part in parts) and parts[0].dtype.kind != "b",
        "its parts must have one numeric dtype",
    )
    return tuple((s[-2], s[-1]) for s in shapes)


def check_dense_part(part: Array) -> None:
    """Raise unless a part is a `Dense` array with data."""
    require(type(part) is Dense and isinstance(part._value[0][0], jax.Array), "the part must be Dense")


@validated.kernel(Dense)
def check_dense(x: Dense) -> None:
    """Raise unless the parameter is one array."""
    check_static(x.meta is None, x)
    require(len(x._value[0]) == 1 and isinstance(x.data, jax.Array), "its only parameter must be an array")
