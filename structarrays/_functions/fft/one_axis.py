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
from ..docstring_sections import with_sections
from .fft_docstrings import along_axis

if TYPE_CHECKING:
    from ..._core.dispatch.function import Function

_REAL = "real, with the precision of `x`."
_HALF = "complex, with the precision of `x`. The axis has length ``n // 2 + 1``."
_TWICE = "The default is ``2 * (m - 1)`` for an axis of length m."

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
@with_sections(**along_axis("forward"))
def fft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Compute the discrete Fourier transform along an axis.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.fft(sa.asarray([1.0, 2.0]))
    Dense([ 3.+0.j, -1.+0.j], dtype=complex128)
    """
    x = typing.cast("Array", x)
    return _along_axis(fft, x, n, axis, norm)


@function("x", prefix="fft.", dense=dense_fft.ifft)
@with_sections(**along_axis("inverse"))
def ifft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Compute the inverse discrete Fourier transform along an axis, the inverse of `fft`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.ifft(sa.asarray([3.0, -1.0]))
    Dense([1.+0.j, 2.+0.j], dtype=complex128)
    """
    x = typing.cast("Array", x)
    return _along_axis(ifft, x, n, axis, norm)


@function("x", prefix="fft.", dense=dense_fft.rfft)
@with_sections(**along_axis("forward", _HALF, dtype="real floating-point"))
def rfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Compute the discrete Fourier transform of a real signal along an axis, at the nonnegative frequencies.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.rfft(sa.asarray([1.0, 2.0]))
    Dense([ 3.+0.j, -1.+0.j], dtype=complex128)
    """
    x = typing.cast("Array", x)
    return _along_axis(rfft, x, n, axis, norm, kinds="real")


@function("x", prefix="fft.", dense=dense_fft.irfft)
@with_sections(**along_axis("inverse", _REAL, length=f"Length of the real signal. {_TWICE}"))
def irfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Compute the real signal from its nonnegative frequencies along an axis, the inverse of `rfft`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.irfft(sa.asarray([3.0, -1.0]))
    Dense([1., 2.], dtype=float64)
    """
    x = typing.cast("Array", x)
    return _along_axis(irfft, x, n, axis, norm, half=True)


@function("x", prefix="fft.", dense=dense_fft.hfft)
@with_sections(**along_axis("forward", _REAL, length=f"Length of the result. {_TWICE}"))
def hfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Compute the discrete Fourier transform of a signal with Hermitian symmetry, given its first half.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.hfft(sa.asarray([1.0, 2.0]))
    Dense([ 3., -1.], dtype=float64)
    """
    x = typing.cast("Array", x)
    return _along_axis(hfft, x, n, axis, norm, half=True)


@function("x", prefix="fft.", dense=dense_fft.ihfft)
@with_sections(**along_axis("inverse", _HALF, dtype="real floating-point"))
def ihfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Compute the first half of a signal with Hermitian symmetry from its transform, the inverse of `hfft`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.ihfft(sa.asarray([3.0, -1.0]))
    Dense([1.+0.j, 2.+0.j], dtype=complex128)
    """
    x = typing.cast("Array", x)
    return _along_axis(ihfft, x, n, axis, norm, kinds="real")
