"""Fourier transforms along several axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.dispatch.decorator import function
from ..._core.families.batch import check_axes
from ..._numerics import dense_fft
from ..docstring_sections import with_sections
from .fft_docstrings import along_axes
from .one_axis import check_length, check_norm, operand

if TYPE_CHECKING:
    from ..._core.dispatch.function import Function


_HALF = "complex, with the precision of `x`. The last axis has length ``s[-1] // 2 + 1``."
_TWICE = """\
Length of the real signal along each axis. -1 is the length m of the axis in `x`. The default is m, and
    ``2 * (m - 1)`` for the last axis."""


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
@with_sections(**along_axes("forward"))
def fftn(
    x: ArrayLike, /, *, s: tuple[int, ...] | None = None, axes: tuple[int, ...] | None = None, norm: str = "backward"
) -> Array:
    """Compute the discrete Fourier transform along several axes.

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
@with_sections(**along_axes("inverse"))
def ifftn(
    x: ArrayLike, /, *, s: tuple[int, ...] | None = None, axes: tuple[int, ...] | None = None, norm: str = "backward"
) -> Array:
    """Compute the inverse discrete Fourier transform along several axes, the inverse of `fftn`.

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
@with_sections(**along_axes("forward", _HALF, dtype="real floating-point"))
def rfftn(
    x: ArrayLike, /, *, s: tuple[int, ...] | None = None, axes: tuple[int, ...] | None = None, norm: str = "backward"
) -> Array:
    """Compute the discrete Fourier transform of a real signal along several axes.

    The last axis contains the nonnegative frequencies only, as in `rfft`.

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
@with_sections(**along_axes("inverse", "real, with the precision of `x`.", lengths=_TWICE))
def irfftn(
    x: ArrayLike, /, *, s: tuple[int, ...] | None = None, axes: tuple[int, ...] | None = None, norm: str = "backward"
) -> Array:
    """Compute a real signal from its Fourier transform along several axes, the inverse of `rfftn`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.irfftn(sa.ones((2, 2)))
    Dense([[1., 0.],
           [0., 0.]], dtype=float64)
    """
    x = cast("Array", x)
    return _along_axes(irfftn, x, s, axes, norm, half=True)
