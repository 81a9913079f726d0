"""Whether the parameters of an array are such as its class makes: asked of arrays that come from outside, from a file.

Each class says which shapes its parameters have (`validated`). That is arithmetic on a few integers: it takes a time in proportion to the
number of parameters, whatever the shapes are, and traces nothing.
"""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any, Final

import jax

from . import explicit
from .array import Array
from .assumptions import IMPLIED
from .dense import Dense
from .registry import Registry

if TYPE_CHECKING:
    from .typing import Shape

validated: Registry[None] = Registry("validated")
"""``validated.kernel(A)``: ``(x)``, which raises `ValueError` unless static part and parameters of `x` are those of an array of the class.
For classes whose kernels rely on the values of indices, it looks at these, too. Parts that are composed of other parts have been checked
before; a `Dense` of their shape and dtype takes their place."""

BACKGROUND: Final = None
"""In `check_leaves` in place of the core shape: a background, which is a scalar or None."""


def check_parameters(x: Array) -> None:
    """Raise unless shapes, dtypes and the static part of an array agree, and what its class has to say of the values.

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
            raise ValueError("there are no arrays of this class, which others share")
        if not all(type(n) is int and 0 <= n < 2**63 for n in x.shape):
            raise ValueError(f"its shape would be {reprlib.repr(x.shape)}")
        if _is_foreign(cls):
            dense = explicit.eval_shape(lambda x: x._dense(), x)
            if (dense.shape, dense.dtype) != (x.shape, x.dtype):
                raise ValueError(f"its dense form has the shape {dense.shape} and the dtype {dense.dtype}")
        _check_assumptions(x)
    except Exception as error:  # whatever the code of a class meets in parameters that are none
        raise ValueError(f"the parameters of a {cls.__name__} do not fit together: {error}") from error


def outline(x: Array) -> Array:
    """A `Dense` of this shape and dtype without data: all that the check of an array that is composed of `x` looks at."""
    return Dense._make((jax.ShapeDtypeStruct(x.shape, x.dtype),))


def _is_foreign(cls: type) -> bool:
    """Whether a class is not of this library."""
    return cls.__module__.partition(".")[0] != Array.__module__.partition(".")[0]


def _check_assumptions(x: Array) -> None:
    if not all(a in IMPLIED and IMPLIED[a] <= x.assumptions for a in x.assumptions):
        raise ValueError(f"it has unknown assumptions: {reprlib.repr(sorted(map(str, x.assumptions)))}")
    if x.assumptions and (x.ndim < 2 or x.shape[-1] != x.shape[-2]):
        raise ValueError(f"it has assumptions, which only square matrices have, and the shape {x.shape}")


# ---- for kernels -----------------------------------------------------------------------------------------------------


def require(condition: bool, what: str) -> None:
    """Raise `ValueError` with this text unless the condition holds."""
    if not condition:
        raise ValueError(what)


def check_sizes(value: Any, count: int | None = None) -> Shape:
    """A part of the static part that is a shape, of so many dimensions."""
    good = type(value) is tuple and all(type(n) is int and 0 <= n < 2**63 for n in value)
    require(good and count in (None, len(value)), f"{reprlib.repr(value)} is no shape of its core")
    shape: Shape = value
    return shape


def check_offsets(value: Any, shape: Shape) -> tuple[int, ...]:
    """A part of the static part that is the offsets of diagonals of a matrix: increasing, and inside of it."""
    require(
        type(value) is tuple and all(type(k) is int for k in value), f"offsets {reprlib.repr(value)} are no integers"
    )
    offsets: tuple[int, ...] = value
    inside = all(-shape[0] < k < shape[1] or k == 0 for k in offsets)  # an empty matrix has an empty main diagonal
    increasing = all(a < b for a, b in zip(offsets, offsets[1:]))
    require(
        inside and increasing, f"{shape} has no diagonals with offsets {reprlib.repr(offsets)}, or not in this order"
    )
    return offsets


def check_static(good: bool, x: Array) -> None:
    """Raise unless the static part of an array is good."""
    require(good, f"its static part is {reprlib.repr(x.meta)}")


def check_leaves(x: Array, *cores: Shape | None, dtype: bool = True) -> None:
    """Raise unless the parameters are arrays with these shapes behind one batch shape, of the dtype of `x`."""
    leaves = x._value[0]
    require(len(leaves) == len(cores), f"it has {len(leaves)} parameters, not {len(cores)}")
    batch: Shape | None = None
    for i, (leaf, core) in enumerate(zip(leaves, cores, strict=True)):
        if leaf is None and core is BACKGROUND and i:
            continue
        require(isinstance(leaf, jax.Array), f"parameter {i} is {reprlib.repr(leaf)}, no numbers")
        core = core or ()
        split = len(leaf.shape) - len(core)
        batch = leaf.shape[:split] if batch is None else batch
        require(
            split >= 0 and leaf.shape == batch + core,
            f"parameter {i} must have the shape {batch} + {core}, got {leaf.shape}",
        )
        require(not dtype or leaf.dtype == x.dtype, f"parameter {i} has the dtype {leaf.dtype}, not {x.dtype}")


def check_parts(x: Array, least: int, most: int | None = None) -> tuple[tuple[int, int], ...]:
    """The core shapes of the parts, which must be so many arrays with one batch shape and one dtype of numbers."""
    parts = x._value[0]
    require(least <= len(parts) <= (most or len(parts)), f"it has {len(parts)} parts")
    require(all(isinstance(part, Array) for part in parts), "a part is no array of this library")
    shapes = [part.shape for part in parts]
    require(all(len(s) >= 2 for s in shapes), "a part is no matrix")
    require(all(s[:-2] == shapes[0][:-2] for s in shapes), "its parts have several batch shapes")
    require(
        all(part.dtype == parts[0].dtype for part in parts) and parts[0].dtype.kind != "b",
        "its parts have several dtypes, or are boolean",
    )
    return tuple((s[-2], s[-1]) for s in shapes)


def check_dense_part(part: Array) -> None:
    """Raise unless a part stores its elements."""
    require(type(part) is Dense and isinstance(part._value[0][0], jax.Array), "a part must be Dense")


@validated.kernel(Dense)
def check_dense(x: Dense) -> None:
    """One array."""
    check_static(x.meta is None, x)
    require(len(x._value[0]) == 1 and isinstance(x.data, jax.Array), "it must have one array")
