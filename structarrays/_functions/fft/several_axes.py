"""The standard's Fourier transforms along several axes."""

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
    """Check and dispatch a transform along several axes: kernels get all of them, and a length for each."""
    name = function.name
    x = operand(name, x, kinds)
    check_norm(name, norm)
    if axes is None:
        axes = tuple(range(0 if s is None else max(0, x.ndim - len(s)), x.ndim))
        if s is not None and len(s) > x.ndim:
            raise ValueError(f"{name}: s must have at most {x.ndim} lengths for shape {x.shape}, got {s}")
    else:
        axes = check_axes(name, tuple(axes), x.ndim, "axes")
    if s is not None and len(s) != len(axes):
        raise ValueError(f"{name}: s must have one length for each of the axes {axes}, got {s}")
    for length in s or ():
        if length != -1:
            check_length(name, length, "each length in s")
    if not axes:
        raise ValueError(f"{name}: axes must name at least one axis")
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
    """Discrete Fourier transform along several axes.

    Parameters
    ----------
    x : array
        Of a floating-point dtype, real or complex (integers become the default one).
    s : tuple of int, optional
        The lengths of the transform, to which `x` is cut or padded with zeros; -1 and the default are its sizes.
    axes : tuple of int, optional
        Along which; by default all, or the last ones if `s` is given.
    norm : {"backward", "ortho", "forward"}
        What is divided by: the forward transform by nothing, the root of the length, or the length.

    Returns
    -------
    array
        Complex, of the precision of `x`.

    Raises
    ------
    TypeError
        If the dtype of `x` is none of these.
    ValueError
        If a length is less than 1, lengths and axes are not as many, an axis is named twice or too short, or `norm` is
        unknown.
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
    """Inverse of `fftn`.

    Parameters
    ----------
    x : array
        Of a floating-point dtype, real or complex (integers become the default one).
    s : tuple of int, optional
        The lengths of the transform, to which `x` is cut or padded with zeros; -1 and the default are its sizes.
    axes : tuple of int, optional
        Along which; by default all, or the last ones if `s` is given.
    norm : {"backward", "ortho", "forward"}
        What is divided by: the inverse transform by the length, its root, or nothing.

    Returns
    -------
    array
        Complex, of the precision of `x`.

    Raises
    ------
    TypeError
        If the dtype of `x` is none of these.
    ValueError
        If a length is less than 1, lengths and axes are not as many, an axis is named twice or too short, or `norm` is
        unknown.
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
    """Discrete Fourier transform of a real signal along several axes: `rfft` along the last of them.

    Parameters
    ----------
    x : array
        Of a real floating-point dtype (integers become the default one).
    s : tuple of int, optional
        The lengths of the transform, to which `x` is cut or padded with zeros; -1 and the default are its sizes.
    axes : tuple of int, optional
        Along which; by default all, or the last ones if `s` is given.
    norm : {"backward", "ortho", "forward"}
        What is divided by: the forward transform by nothing, the root of the length, or the length.

    Returns
    -------
    array
        Complex, of the precision of `x`. The last axis has size ``s[-1] // 2 + 1``.

    Raises
    ------
    TypeError
        If the dtype of `x` is none of these.
    ValueError
        If a length is less than 1, lengths and axes are not as many, an axis is named twice or too short, or `norm` is
        unknown.
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
    """Inverse of `rfftn`.

    Parameters
    ----------
    x : array
        Of a floating-point dtype, real or complex (integers become the default one).
    s : tuple of int, optional
        The lengths of the real signal, by default the sizes and along the last axis ``2 * (size - 1)``; -1 is the size.
    axes : tuple of int, optional
        Along which; by default all, or the last ones if `s` is given.
    norm : {"backward", "ortho", "forward"}
        What is divided by: the inverse transform by the length, its root, or nothing.

    Returns
    -------
    array
        Real, of the precision of `x`.

    Raises
    ------
    TypeError
        If the dtype of `x` is none of these.
    ValueError
        If a length is less than 1, lengths and axes are not as many, an axis is named twice or too short, or `norm` is
        unknown.
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
