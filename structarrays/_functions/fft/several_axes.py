"""Fourier transforms along several axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.dispatch.decorator import function
from ..._core.families.batch import check_axes
from ..._numerics import dense_fft
from .one_axis import check_length, check_norm, operand

if TYPE_CHECKING:
    from ..._core.dispatch.function import Function


def _along_axes(
    function: Function[..., Any],
    x: Array,
    s: tuple[int, ...] | None,
    axes: tuple[int, ...] | None,
    norm: str,
    *,
    kinds: str = "real or complex",
    half: bool = False,
) -> Array:
    """Check and dispatch a transform along several axes; kernels receive all axes with their lengths."""
    name = function.name
    x = operand(name, x, kinds)
    check_norm(name, norm)
    if axes is None:
        axes = tuple(range(0 if s is None else max(0, x.ndim - len(s)), x.ndim))
        if s is not None and len(s) > x.ndim:
            raise ValueError(f"{name}: s must contain at most {x.ndim} lengths for shape {x.shape}, got {s}")
    else:
        axes = check_axes(name, tuple(axes), x.ndim, "axes")
    if s is not None and len(s) != len(axes):
        raise ValueError(f"{name}: s must contain one length for each of the axes {axes}, got {s}")
    for length in s or ():
        if length != -1:
            check_length(name, length, "each length in s")
    if not axes:
        raise ValueError(f"{name}: axes must contain at least one axis, got none")
    given = s or (-1,) * len(axes)
    if any(n == -1 and x.shape[axis] == 0 for n, axis in zip(given, axes)) or (
        half and not s and x.shape[axes[-1]] < 2
    ):
        raise ValueError(f"{name}: an axis of x is too short for a transform, got shape {x.shape} and axes {axes}")
    result: Array = function.dispatch(x, s=s, axes=axes, norm=norm)
    return result


@function("x", prefix="fft.", dense=dense_fft.fftn)
def fftn(
    x: ArrayLike, /, *, s: tuple[int, ...] | None = None, axes: tuple[int, ...] | None = None, norm: str = "backward"
) -> Array:
    """Compute the discrete Fourier transform along several axes.

    Parameters
    ----------
    x : array, (...)
        Array with a floating-point data type. Integers are converted to the default one.
    s : tuple of int, optional
        Length of the transform along each axis. `x` is truncated or padded with zeros to these lengths. -1 is the
        length of the axis, which is the default.
    axes : tuple of int, optional
        Axes of the transform. The default is all axes, or the last ``len(s)`` axes if `s` is given.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Normalization mode. The forward transform is scaled by 1, 1 / sqrt(n) or 1 / n, respectively, where n
        is the product of the lengths.

    Returns
    -------
    array
        Transformed array: complex, with the precision of `x`.

    Raises
    ------
    TypeError
        If `x` does not have such a data type.
    ValueError
        If a length is less than 1, `s` and `axes` have different lengths, an axis is repeated or too short, or `norm`
        is invalid.
    numpy.exceptions.AxisError
        If an axis is out of range.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.fftn(sa.ones((2, 2)))
    Dense([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    x = cast("Array", x)
    return _along_axes(fftn, x, s, axes, norm)


@function("x", prefix="fft.", dense=dense_fft.ifftn)
def ifftn(
    x: ArrayLike, /, *, s: tuple[int, ...] | None = None, axes: tuple[int, ...] | None = None, norm: str = "backward"
) -> Array:
    """Compute the inverse discrete Fourier transform along several axes, the inverse of `fftn`.

    Parameters
    ----------
    x : array, (...)
        Array with a floating-point data type. Integers are converted to the default one.
    s : tuple of int, optional
        Length of the transform along each axis. `x` is truncated or padded with zeros to these lengths. -1 is the
        length of the axis, which is the default.
    axes : tuple of int, optional
        Axes of the transform. The default is all axes, or the last ``len(s)`` axes if `s` is given.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Normalization mode. The inverse transform is scaled by 1 / n, 1 / sqrt(n) or 1, respectively, where n
        is the product of the lengths.

    Returns
    -------
    array
        Transformed array: complex, with the precision of `x`.

    Raises
    ------
    TypeError
        If `x` does not have such a data type.
    ValueError
        If a length is less than 1, `s` and `axes` have different lengths, an axis is repeated or too short, or `norm`
        is invalid.
    numpy.exceptions.AxisError
        If an axis is out of range.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.ifftn(sa.ones((2, 2)))
    Dense([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    x = cast("Array", x)
    return _along_axes(ifftn, x, s, axes, norm)


@function("x", prefix="fft.", dense=dense_fft.rfftn)
def rfftn(
    x: ArrayLike, /, *, s: tuple[int, ...] | None = None, axes: tuple[int, ...] | None = None, norm: str = "backward"
) -> Array:
    """Compute the discrete Fourier transform of a real signal along several axes.

    The last axis contains the nonnegative frequencies only, as in `rfft`.

    Parameters
    ----------
    x : array, (...)
        Array with a real floating-point data type. Integers are converted to the default one.
    s : tuple of int, optional
        Length of the transform along each axis. `x` is truncated or padded with zeros to these lengths. -1 is the
        length of the axis, which is the default.
    axes : tuple of int, optional
        Axes of the transform. The default is all axes, or the last ``len(s)`` axes if `s` is given.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Normalization mode. The forward transform is scaled by 1, 1 / sqrt(n) or 1 / n, respectively, where n
        is the product of the lengths.

    Returns
    -------
    array
        Transformed array: complex, with the precision of `x`. The last axis has length ``s[-1] // 2 + 1``.

    Raises
    ------
    TypeError
        If `x` does not have such a data type.
    ValueError
        If a length is less than 1, `s` and `axes` have different lengths, an axis is repeated or too short, or `norm`
        is invalid.
    numpy.exceptions.AxisError
        If an axis is out of range.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.rfftn(sa.ones((2, 2)))
    Dense([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    x = cast("Array", x)
    return _along_axes(rfftn, x, s, axes, norm, kinds="real")


@function("x", prefix="fft.", dense=dense_fft.irfftn)
def irfftn(
    x: ArrayLike, /, *, s: tuple[int, ...] | None = None, axes: tuple[int, ...] | None = None, norm: str = "backward"
) -> Array:
    """Compute a real signal from its Fourier transform along several axes, the inverse of `rfftn`.

    Parameters
    ----------
    x : array, (...)
        Array with a floating-point data type. Integers are converted to the default one.
    s : tuple of int, optional
        Length of the real signal along each axis. -1 is the length m of the axis in `x`. The default is m, and
        ``2 * (m - 1)`` for the last axis.
    axes : tuple of int, optional
        Axes of the transform. The default is all axes, or the last ``len(s)`` axes if `s` is given.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Normalization mode. The inverse transform is scaled by 1 / n, 1 / sqrt(n) or 1, respectively, where n
        is the product of the lengths.

    Returns
    -------
    array
        Transformed array: real, with the precision of `x`.

    Raises
    ------
    TypeError
        If `x` does not have such a data type.
    ValueError
        If a length is less than 1, `s` and `axes` have different lengths, an axis is repeated or too short, or `norm`
        is invalid.
    numpy.exceptions.AxisError
        If an axis is out of range.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.irfftn(sa.ones((2, 2)))
    Dense([[1., 0.],
           [0., 0.]], dtype=float64)
    """
    x = cast("Array", x)
    return _along_axes(irfftn, x, s, axes, norm, half=True)
