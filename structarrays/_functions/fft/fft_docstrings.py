"""The sections that the docstrings of Fourier transforms share."""

from __future__ import annotations

from typing import Literal, TypeAlias

Direction: TypeAlias = Literal["forward", "inverse"]

_SCALES = {"forward": "1, 1 / sqrt(n) or 1 / n", "inverse": "1 / n, 1 / sqrt(n) or 1"}

_PADDED = """\
Length of the transform. `x` is truncated or padded with zeros to this length. The default is the length of the
    axis."""

_PADDED_AXES = """\
Length of the transform along each axis. `x` is truncated or padded with zeros to these lengths. -1 is the
    length of the axis, which is the default."""


def _sections(dtype: str, arguments: str, direction: Direction, n: str, result: str, errors: str) -> dict[str, str]:
    return {
        "Parameters": f"""\
x : array, (...)
    Array with a {dtype} data type. Integers are converted to the default one.
{arguments}
norm : {{"backward", "ortho", "forward"}}, default "backward"
    Normalization mode. The {direction} transform is scaled by {_SCALES[direction]}, respectively{n}.""",
        "Returns": f"array\n    Transformed array: {result}",
        "Raises": f"TypeError\n    If `x` does not have such a data type.\n{errors}",
    }


def along_axis(
    direction: Direction,
    result: str = "complex, with the precision of `x`.",
    *,
    dtype: str = "floating-point",
    length: str = _PADDED,
) -> dict[str, str]:
    """Return the sections of a transform along one axis.

    Parameters
    ----------
    direction : {"forward", "inverse"}
    result : str
        The data type of the result, and its shape if it is not the shape of `x`.
    dtype : str
        The data types of `x`.
    length : str
        The meaning of the argument `n`.
    """
    arguments = f"n : int, optional\n    {length}\naxis : int, default -1\n    Axis of the transform."
    errors = """\
ValueError
    If `n` is less than 1, the axis is too short, or `norm` is invalid.
numpy.exceptions.AxisError
    If the axis is out of range."""
    return _sections(dtype, arguments, direction, "", result, errors)


def along_axes(
    direction: Direction,
    result: str = "complex, with the precision of `x`.",
    *,
    dtype: str = "floating-point",
    lengths: str = _PADDED_AXES,
) -> dict[str, str]:
    """Return the sections of a transform along several axes; see `along_axis`."""
    arguments = f"""\
s : tuple of int, optional
    {lengths}
axes : tuple of int, optional
    Axes of the transform. The default is all axes, or the last ``len(s)`` axes if `s` is given."""
    errors = """\
ValueError
    If a length is less than 1, `s` and `axes` have different lengths, an axis is repeated or too short, or `norm`
    is invalid.
numpy.exceptions.AxisError
    If an axis is out of range."""
    n = ", where n\n    is the product of the lengths"
    return _sections(dtype, arguments, direction, n, result, errors)
