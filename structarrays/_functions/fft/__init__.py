"""Discrete Fourier transforms: the ``fft`` extension of the Array API standard.

Transforms densify structured arrays. The shifts are rolls, which keep structure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..._core import dtypes
from ..._core.array.arguments import ArrayLike, DTypeLike
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.dispatch.decorator import function
from ..._core.families.batch import check_axes
from ..._numerics import dense_fft
from ..docstring_sections import with_sections
from ..manipulation import roll
from .one_axis import fft, hfft, ifft, ihfft, irfft, rfft
from .several_axes import fftn, ifftn, irfftn, rfftn

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


def _frequencies(function: Callable[..., jax.Array], n: int, d: float, dtype: DTypeLike | None, device: Any) -> Dense:
    """Check the arguments, and return sample frequencies on a device."""
    name = function.__name__
    if n < 1:
        raise ValueError(f"fft.{name}: n must be at least 1, got {n}")
    dtype = dtypes.default_dtype("f") if dtype is None else dtypes.as_dtype(dtype)
    if not dtypes.is_kind(dtype, "real floating"):
        raise TypeError(f"fft.{name}: dtype must be real floating-point, got {dtype}")
    return Dense.make((function(n, d=d, dtype=dtype, device=device),))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return the sample frequencies of `fft`.

    Parameters
    ----------
    n : int
        Length of the transform.
    d : float, default 1.0
        Sample spacing.
    dtype : dtype, optional
        Real floating-point data type of the result. The default is the default floating-point data type.
    device : jax.Device, optional
        Device of the result.

    Returns
    -------
    array, (n,)
        Frequencies in cycles per unit of `d`. The negative frequencies follow the nonnegative ones.

    Raises
    ------
    ValueError
        If `n` is less than 1.
    TypeError
        If `dtype` is not real floating-point.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.fftfreq(4)
    Dense([ 0.  ,  0.25, -0.5 , -0.25], dtype=float64)
    """
    return _frequencies(dense_fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return the sample frequencies of `rfft`.

    Parameters
    ----------
    n : int
        Length of the real signal.
    d : float, default 1.0
        Sample spacing.
    dtype : dtype, optional
        Real floating-point data type of the result. The default is the default floating-point data type.
    device : jax.Device, optional
        Device of the result.

    Returns
    -------
    array, (n // 2 + 1,)
        Nonnegative frequencies in cycles per unit of `d`.

    Raises
    ------
    ValueError
        If `n` is less than 1.
    TypeError
        If `dtype` is not real floating-point.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.rfftfreq(4)
    Dense([0.  , 0.25, 0.5 ], dtype=float64)
    """
    return _frequencies(dense_fft.rfftfreq, n, d, dtype, device)


_SHIFTED = {
    "Parameters": """\
x : array, (...)
    Array of any data type.
axes : int or tuple of int, optional
    Axes to shift. The default is all axes.""",
    "Returns": "array, (...)\n    Shifted array, with the shape and data type of `x`.",
    "Raises": "numpy.exceptions.AxisError\n    If an axis is out of range.",
}
"""The sections of `fftshift` and `ifftshift`."""


@function("x", prefix="fft.")
@with_sections(**_SHIFTED)
def fftshift(x: ArrayLike, /, *, axes: int | tuple[int, ...] | None = None) -> Array:
    """Shift the zero-frequency component to the center of each axis.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.fftshift(sa.asarray([0.0, 1.0, -2.0, -1.0]))
    Dense([-2., -1.,  0.,  1.], dtype=float64)
    """
    x = cast("Array", x)
    axes = check_axes("fft.fftshift", axes, x.ndim, "axes")
    return roll(x, tuple(x.shape[axis] // 2 for axis in axes), axis=axes) if axes else x


@function("x", prefix="fft.")
@with_sections(**_SHIFTED)
def ifftshift(x: ArrayLike, /, *, axes: int | tuple[int, ...] | None = None) -> Array:
    """Invert `fftshift`: shift the zero-frequency component to the start of each axis.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.fft.ifftshift(sa.asarray([-2.0, -1.0, 0.0, 1.0]))
    Dense([ 0.,  1., -2., -1.], dtype=float64)
    """
    x = cast("Array", x)
    axes = check_axes("fft.ifftshift", axes, x.ndim, "axes")
    return roll(x, tuple(-(x.shape[axis] // 2) for axis in axes), axis=axes) if axes else x
