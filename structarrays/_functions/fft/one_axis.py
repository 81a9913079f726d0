"""The standard's Fourier transforms along one axis, and what all transforms ask of their arguments."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

from ..._core import dtypes
from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.array.operands import cast
from ..._core.dispatch.decorator import function
from ..._core.families.batch import check_axis
from ..._numerics import dense_fft

if TYPE_CHECKING:
    from ..._core.dispatch.function import Function

_NORMS = ("backward", "ortho", "forward")


def operand(name: str, x: Array, kinds: str) -> Array:
    """The array with a floating-point dtype of one of these kinds; integers become the default one."""
    kind = "f" if x.dtype.kind in "iu" else x.dtype.kind
    if kind == "b" or (kind == "c" and kinds == "real"):
        raise TypeError(f"{name}: x must have a {kinds} floating-point dtype, got {x.dtype}")
    if dtypes.is_half(x.dtype):
        raise TypeError(f"{name}: there are no transforms of {x.dtype}; cast x, as by sa.astype(x, sa.float32)")
    return cast(x, dtypes.default_dtype("f")) if x.dtype.kind in "iu" else x


def check_length(name: str, n: int | None, argument: str) -> None:
    """Raise unless a length is None or at least 1."""
    if n is not None and n < 1:
        raise ValueError(f"{name}: {argument} must be at least 1, got {n}")


def check_norm(name: str, norm: str) -> None:
    """Raise for an unknown normalisation."""
    if norm not in _NORMS:
        raise ValueError(f"{name}: norm must be one of {', '.join(map(repr, _NORMS))}, got {norm!r}")


def _along_axis(
    function: Function[..., Any],
    x: Array,
    n: int | None,
    axis: int,
    norm: str,
    *,
    kinds: str = "real or complex",
    half: bool = False,
) -> Array:
    """Check and dispatch a transform along one axis; `half` says that n is by default ``2 * (size - 1)``."""
    name = function.name
    x = operand(name, x, kinds)
    axis = check_axis(name, axis, x.ndim)
    check_norm(name, norm)
    check_length(name, n, "n")
    size = x.shape[axis]
    if n is None and size < (2 if half else 1):
        raise ValueError(f"{name}: axis {axis} of x is too short for a transform, got shape {x.shape}")
    result: Array = function.dispatch(x, n=n, axis=axis, norm=norm)
    return result


@function("x", prefix="fft.", dense=dense_fft.fft)
def fft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Discrete Fourier transform along an axis.

    Parameters
    ----------
    x : array
        Of a floating-point dtype, real or complex (integers become the default one).
    n : int, optional
        The length of the transform, to which `x` is cut or padded with zeros; by default its size.
    axis : int
        Along which.
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
        If `n` is less than 1, the axis is too short, or `norm` is unknown.
    numpy.exceptions.AxisError
        If the axis is out of range.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.fft(sa.asarray([1.0, 2.0]))
    Dense([ 3.+0.j, -1.+0.j], dtype=complex128)
    """
    x = typing.cast("Array", x)
    return _along_axis(fft, x, n, axis, norm)


@function("x", prefix="fft.", dense=dense_fft.ifft)
def ifft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Inverse of `fft`.

    Parameters
    ----------
    x : array
        Of a floating-point dtype, real or complex (integers become the default one).
    n : int, optional
        The length of the transform, to which `x` is cut or padded with zeros; by default its size.
    axis : int
        Along which.
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
        If `n` is less than 1, the axis is too short, or `norm` is unknown.
    numpy.exceptions.AxisError
        If the axis is out of range.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.ifft(sa.asarray([3.0, -1.0]))
    Dense([1.+0.j, 2.+0.j], dtype=complex128)
    """
    x = typing.cast("Array", x)
    return _along_axis(ifft, x, n, axis, norm)


@function("x", prefix="fft.", dense=dense_fft.rfft)
def rfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Discrete Fourier transform of a real signal along an axis: its nonnegative frequencies.

    Parameters
    ----------
    x : array
        Of a real floating-point dtype (integers become the default one).
    n : int, optional
        The length of the transform, to which `x` is cut or padded with zeros; by default its size.
    axis : int
        Along which.
    norm : {"backward", "ortho", "forward"}
        What is divided by: the forward transform by nothing, the root of the length, or the length.

    Returns
    -------
    array
        Complex, of the precision of `x`. The axis has size ``n // 2 + 1``.

    Raises
    ------
    TypeError
        If the dtype of `x` is none of these.
    ValueError
        If `n` is less than 1, the axis is too short, or `norm` is unknown.
    numpy.exceptions.AxisError
        If the axis is out of range.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.rfft(sa.asarray([1.0, 2.0]))
    Dense([ 3.+0.j, -1.+0.j], dtype=complex128)
    """
    x = typing.cast("Array", x)
    return _along_axis(rfft, x, n, axis, norm, kinds="real")


@function("x", prefix="fft.", dense=dense_fft.irfft)
def irfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Inverse of `rfft`.

    Parameters
    ----------
    x : array
        Of a floating-point dtype, real or complex (integers become the default one).
    n : int, optional
        The length of the real signal; by default ``2 * (size - 1)``.
    axis : int
        Along which.
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
        If `n` is less than 1, the axis is too short, or `norm` is unknown.
    numpy.exceptions.AxisError
        If the axis is out of range.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.irfft(sa.asarray([3.0, -1.0]))
    Dense([1., 2.], dtype=float64)
    """
    x = typing.cast("Array", x)
    return _along_axis(irfft, x, n, axis, norm, half=True)


@function("x", prefix="fft.", dense=dense_fft.hfft)
def hfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Discrete Fourier transform of a signal with Hermitian symmetry, of which the first half is given.

    Parameters
    ----------
    x : array
        Of a floating-point dtype, real or complex (integers become the default one).
    n : int, optional
        The length of the result; by default ``2 * (size - 1)``.
    axis : int
        Along which.
    norm : {"backward", "ortho", "forward"}
        What is divided by: the forward transform by nothing, the root of the length, or the length.

    Returns
    -------
    array
        Real, of the precision of `x`.

    Raises
    ------
    TypeError
        If the dtype of `x` is none of these.
    ValueError
        If `n` is less than 1, the axis is too short, or `norm` is unknown.
    numpy.exceptions.AxisError
        If the axis is out of range.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.hfft(sa.asarray([1.0, 2.0]))
    Dense([ 3., -1.], dtype=float64)
    """
    x = typing.cast("Array", x)
    return _along_axis(hfft, x, n, axis, norm, half=True)


@function("x", prefix="fft.", dense=dense_fft.ihfft)
def ihfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Inverse of `hfft`.

    Parameters
    ----------
    x : array
        Of a real floating-point dtype (integers become the default one).
    n : int, optional
        The length of the transform, to which `x` is cut or padded with zeros; by default its size.
    axis : int
        Along which.
    norm : {"backward", "ortho", "forward"}
        What is divided by: the inverse transform by the length, its root, or nothing.

    Returns
    -------
    array
        Complex, of the precision of `x`. The axis has size ``n // 2 + 1``.

    Raises
    ------
    TypeError
        If the dtype of `x` is none of these.
    ValueError
        If `n` is less than 1, the axis is too short, or `norm` is unknown.
    numpy.exceptions.AxisError
        If the axis is out of range.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.ihfft(sa.asarray([3.0, -1.0]))
    Dense([1.+0.j, 2.+0.j], dtype=complex128)
    """
    x = typing.cast("Array", x)
    return _along_axis(ihfft, x, n, axis, norm, kinds="real")
