"""The standard's Fourier transforms, on plain JAX arrays. All keyword arguments are static.

``norm`` is ``"backward"``, ``"ortho"`` or ``"forward"``. The result has the precision of the argument.

On a CPU, XLA (of jaxlib 0.10) cannot compile a transform whose result has a column-major layout, which LAPACK's
routines require: both ``jit(lambda x: cholesky(fft(x)))`` and ``jit(grad(lambda x: f(fft(inv(x)))))`` are internal
errors. A vector has only one layout, so that a flattened array fixes the layout. Since this is a copy, it is done only
if derivatives are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import Array, lax

from .devices import put
from .flags import custom_jvp

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

    from .._core.typing import DTypeLike

fftshift = jnp.fft.fftshift
ifftshift = jnp.fft.ifftshift


def by_rows(x: Array) -> Array:
    """The same array in row-major layout."""
    result: Array = lax.optimization_barrier(x.ravel()).reshape(x.shape)
    return result


@custom_jvp
def _guarded(x: Array) -> Array:
    return x


@_guarded.defjvp
def _guarded_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _guarded(*primals), by_rows(*tangents)


def between(transform: Callable[..., Array], x: Array, **how: Any) -> Array:
    """Apply `by_rows` to the derivatives of the argument and the result of a transform."""
    return _guarded(transform(_guarded(x) if jnp.issubdtype(x.dtype, jnp.inexact) else x, **how))


def _sizes(x: Array, s: Sequence[int] | None, axes: Sequence[int] | None) -> Sequence[int] | None:
    """Replace -1 ("the whole axis") in ``s`` by the length of the axis, since ``jnp`` does not support it."""
    if s is None or axes is None:
        return s
    return [x.shape[axis] if size == -1 else size for size, axis in zip(s, axes, strict=True)]


def fft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Discrete Fourier transform along an axis."""
    return between(jnp.fft.fft, x, n=n, axis=axis, norm=norm)


def ifft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Inverse of `fft`."""
    return between(jnp.fft.ifft, x, n=n, axis=axis, norm=norm)


def fftn(
    x: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Discrete Fourier transform along several axes."""
    return between(jnp.fft.fftn, x, s=_sizes(x, s, axes), axes=axes, norm=norm)


def ifftn(
    x: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Inverse of `fftn`."""
    return between(jnp.fft.ifftn, x, s=_sizes(x, s, axes), axes=axes, norm=norm)


def rfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Transform of a real signal: its nonnegative frequencies."""
    return between(jnp.fft.rfft, x, n=n, axis=axis, norm=norm)


def irfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Inverse of `rfft`; ``n`` is the length of the real signal."""
    return between(jnp.fft.irfft, x, n=n, axis=axis, norm=norm)


def rfftn(
    x: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Transform of a real signal along several axes, `rfft` along the last of them."""
    return between(jnp.fft.rfftn, x, s=_sizes(x, s, axes), axes=axes, norm=norm)


def irfftn(
    x: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Inverse of `rfftn`."""
    return between(jnp.fft.irfftn, x, s=_sizes(x, s, axes), axes=axes, norm=norm)


def hfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Transform of a signal with Hermitian symmetry, which is real."""
    return between(jnp.fft.hfft, x, n=n, axis=axis, norm=norm)


def ihfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Inverse of `hfft`."""
    return between(jnp.fft.ihfft, x, n=n, axis=axis, norm=norm)


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike, device: jax.Device | jax.sharding.Sharding | None = None
) -> Array:
    """Frequencies of `fft` for sample spacing ``d``."""
    return put(jnp.fft.fftfreq(n, d=d, dtype=dtype), device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike, device: jax.Device | jax.sharding.Sharding | None = None
) -> Array:
    """Frequencies of `rfft` for sample spacing ``d``."""
    return put(jnp.fft.rfftfreq(n, d=d, dtype=dtype), device)
