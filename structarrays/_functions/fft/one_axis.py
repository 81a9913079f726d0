"""Fourier transforms along one axis, and the checks of the arguments of all transforms."""

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
    """Convert integers to the default floating-point data type, and check the data type against `kinds`."""
    kind = "f" if x.dtype.kind in "iu" else x.dtype.kind
    if kind == "b" or (kind == "c" and kinds == "real"):
        raise TypeError(f"{name}: x must have a {kinds} floating-point dtype, got {x.dtype}")
    if dtypes.is_half(x.dtype):
        raise TypeError(
            f"{name}: x must have a data type of at least 32 bits, got {x.dtype}; convert it by sa.astype(x, sa.float32)"
        )
    return cast(x, dtypes.default_dtype("f")) if x.dtype.kind in "iu" else x


def check_length(name: str, n: int | None, argument: str) -> None:
    """Raise ValueError unless a length is None or at least 1."""
    if n is not None and n < 1:
        raise ValueError(f"{name}: {argument} must be at least 1, got {n}")


def check_norm(name: str, norm: str) -> None:
    """Raise ValueError for an unknown normalization mode."""
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
    """Check and dispatch a transform along one axis; with `half` the default of n is ``2 * (size - 1)``."""
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
    """Compute the discrete Fourier transform along an axis.

    Parameters
    ----------
    x : array, (...)
        Array with a floating-point data type. Integers are converted to the default one.
    n : int, optional
        Length of the transform. `x` is truncated or padded with zeros to this length. The default is the length of the
        axis.
    axis : int, default -1
        Axis of the transform.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Normalization mode. The forward transform is scaled by 1, 1 / sqrt(n) or 1 / n, respectively.

    Returns
    -------
    array
        Transformed array: complex, with the precision of `x`.

    Raises
    ------
    TypeError
        If `x` does not have such a data type.
    ValueError
        If `n` is less than 1, the axis is too short, or `norm` is invalid.
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
    """Compute the inverse discrete Fourier transform along an axis, the inverse of `fft`.

    Parameters
    ----------
    x : array, (...)
        Array with a floating-point data type. Integers are converted to the default one.
    n : int, optional
        Length of the transform. `x` is truncated or padded with zeros to this length. The default is the length of the
        axis.
    axis : int, default -1
        Axis of the transform.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Normalization mode. The inverse transform is scaled by 1 / n, 1 / sqrt(n) or 1, respectively.

    Returns
    -------
    array
        Transformed array: complex, with the precision of `x`.

    Raises
    ------
    TypeError
        If `x` does not have such a data type.
    ValueError
        If `n` is less than 1, the axis is too short, or `norm` is invalid.
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
    """Compute the discrete Fourier transform of a real signal along an axis, at the nonnegative frequencies.

    Parameters
    ----------
    x : array, (...)
        Array with a real floating-point data type. Integers are converted to the default one.
    n : int, optional
        Length of the transform. `x` is truncated or padded with zeros to this length. The default is the length of the
        axis.
    axis : int, default -1
        Axis of the transform.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Normalization mode. The forward transform is scaled by 1, 1 / sqrt(n) or 1 / n, respectively.

    Returns
    -------
    array
        Transformed array: complex, with the precision of `x`. The axis has length ``n // 2 + 1``.

    Raises
    ------
    TypeError
        If `x` does not have such a data type.
    ValueError
        If `n` is less than 1, the axis is too short, or `norm` is invalid.
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
    """Compute the real signal from its nonnegative frequencies along an axis, the inverse of `rfft`.

    Parameters
    ----------
    x : array, (...)
        Array with a floating-point data type. Integers are converted to the default one.
    n : int, optional
        Length of the real signal. The default is ``2 * (m - 1)`` for an axis of length m.
    axis : int, default -1
        Axis of the transform.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Normalization mode. The inverse transform is scaled by 1 / n, 1 / sqrt(n) or 1, respectively.

    Returns
    -------
    array
        Transformed array: real, with the precision of `x`.

    Raises
    ------
    TypeError
        If `x` does not have such a data type.
    ValueError
        If `n` is less than 1, the axis is too short, or `norm` is invalid.
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
    """Compute the discrete Fourier transform of a signal with Hermitian symmetry, given its first half.

    Parameters
    ----------
    x : array, (...)
        Array with a floating-point data type. Integers are converted to the default one.
    n : int, optional
        Length of the result. The default is ``2 * (m - 1)`` for an axis of length m.
    axis : int, default -1
        Axis of the transform.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Normalization mode. The forward transform is scaled by 1, 1 / sqrt(n) or 1 / n, respectively.

    Returns
    -------
    array
        Transformed array: real, with the precision of `x`.

    Raises
    ------
    TypeError
        If `x` does not have such a data type.
    ValueError
        If `n` is less than 1, the axis is too short, or `norm` is invalid.
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
    """Compute the first half of a signal with Hermitian symmetry from its transform, the inverse of `hfft`.

    Parameters
    ----------
    x : array, (...)
        Array with a real floating-point data type. Integers are converted to the default one.
    n : int, optional
        Length of the transform. `x` is truncated or padded with zeros to this length. The default is the length of the
        axis.
    axis : int, default -1
        Axis of the transform.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Normalization mode. The inverse transform is scaled by 1 / n, 1 / sqrt(n) or 1, respectively.

    Returns
    -------
    array
        Transformed array: complex, with the precision of `x`. The axis has length ``n // 2 + 1``.

    Raises
    ------
    TypeError
        If `x` does not have such a data type.
    ValueError
        If `n` is less than 1, the axis is too short, or `norm` is invalid.
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
