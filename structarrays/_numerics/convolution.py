"""Cyclic convolutions by Fourier transforms, on plain JAX arrays.

Rounding errors are normwise: the error of an element is relative to ``norm(a) * norm(b)``, not to its own terms. A NaN
or an infinity in either argument spreads over the whole result.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import lax

from . import dense_fft as fft
from .symbolic import is_symbolic

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

    from .._core.typing import DTypeLike

    T = TypeVar("T")

# From this length on, many short transforms replace one long transform.
_LARGE = 100_000


def check_length(n: int) -> None:
    """Raise unless the length of a transform is a number.

    Raises
    ------
    NotImplementedError
        If the length is symbolic.
    """
    if is_symbolic(n):
        raise NotImplementedError(
            f"JAX has no Fourier transforms of the symbolic length {n}, which products and systems of Toeplitz and circulant matrices "
            "need; export the program for a fixed size"
        )


@functools.cache
def fast_length(n: int) -> int:
    """Smallest length of at least `n` with a fast transform: a product of twos, threes and fives, even for n > 1.

    Examples
    --------
    >>> from structarrays._numerics.convolution import fast_length
    >>> fast_length(7), fast_length(1999999)
    (8, 2000000)
    """
    check_length(n)
    if n <= 1:
        return 1
    best = 1 << (n - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            quotient = max(2, -(-n // three))
            best = min(best, three << (quotient - 1).bit_length())
            three *= 3
        five *= 5
    return best


def is_fast(n: int) -> bool:
    """Return whether a transform of exactly this length is fast: it has no prime factor above 11.

    A large prime factor makes it ten times slower, and less accurate.
    """
    check_length(n)
    for prime in (2, 3, 5, 7, 11):
        while n > 1 and n % prime == 0:
            n //= prime
    return n == 1


def cyclic(a: jax.Array, b: jax.Array, n: int) -> jax.Array:
    """Cyclic convolution of length `n`: ``c[i] = sum(a[j] * b[(i - j) % n])``, along the last axis.

    Parameters
    ----------
    a, b : jax.Array, (..., up to n)
        Of one inexact dtype; they are padded with zeros. The other dimensions broadcast.
    n : int
    """
    return on_each_platform(functools.partial(_convolved, n=n), n, a, b)


def by_one_transform(a: jax.Array, b: jax.Array, n: int) -> jax.Array:
    """Cyclic convolution by transforms of the full length, which needs less memory."""
    return _convolved(False, a, b, n)


def _convolved(split: bool, a: jax.Array, b: jax.Array, n: int) -> jax.Array:
    forward, inverse = transforms(n, jnp.iscomplexobj(a), split)
    return inverse(forward(a) * forward(b))


def on_each_platform(function: Callable[..., T], n: int, *args: jax.Array, large: int = _LARGE) -> T:
    """Call ``function(split, *args)``, where `split` says whether `transforms` of length `n` should consist of many
    short ones: on the CPU, from length `large` on.
    """
    if n < large:
        return function(False, *args)
    cpu, default = (functools.partial(function, split) for split in (True, False))
    result: T = lax.platform_dependent(*args, cpu=cpu, default=default)
    return result


def widened(x: jax.Array) -> jax.Array:
    """Convert to a dtype that has transforms: 16-bit dtypes to 32 bits."""
    half = x.dtype.itemsize < 4 and jnp.issubdtype(x.dtype, jnp.floating)
    return x.astype(jnp.float32) if half else x


def transforms(
    n: int, is_complex: bool, split: bool
) -> tuple[Callable[[jax.Array], jax.Array], Callable[[jax.Array], jax.Array]]:
    """Return a Fourier transform of length `n` and its inverse, as two functions for products of spectra.

    The first function maps sequences (..., up to n), padded with zeros, to their spectra in an order of its own. For real sequences
    it returns half of the spectrum. The second function maps such a spectrum to a sequence (..., n).

    Parameters
    ----------
    n : int
    is_complex : bool
        Whether the sequences are complex.
    split : bool
        Whether to use many short transforms; see `on_each_platform`.
    """
    if split:
        n1 = _factor(n)
        shape = (n1, n // n1)
        return (
            functools.partial(_transform, shape=shape),
            functools.partial(_inverse_transform, shape=shape, real=not is_complex),
        )
    forward, inverse = (fft.fft, fft.ifft) if is_complex else (fft.rfft, fft.irfft)
    return functools.partial(forward, n=n), functools.partial(inverse, n=n)


# On the CPU a long transform is not vectorised, and waits for memory; many short ones side by side take a sixth of the
# time. So the signal is a matrix n1 × n2, row by row, and with j = n2 j1 + j2 and f = f1 + n1 f2
#
#     X[f] = sum_j2 w_n2^(j2 f2) ( w_n^(j2 f1) sum_j1 w_n1^(j1 f1) x[j] ),    w_n = exp(-2 pi i / n):
#
# transforms of the columns, twiddle factors, transforms of the rows (W. M. Gentleman and G. Sande, "Fast Fourier
# transforms: for fun and profit", AFIPS 29 (1966), 563-578). Of a real signal the frequencies f1 <= n1 / 2 suffice. They
# come out in the order (f1, f2), which does not matter for a product, and the inverse takes the same steps backwards.


def _factor(n: int) -> int:
    """Largest factor that is at most the square root."""
    return next(k for k in range(math.isqrt(n), 0, -1) if n % k == 0)


def _transform(x: jax.Array, shape: tuple[int, int]) -> jax.Array:
    (n1, n2), axis = shape, x.ndim - 1
    widths = [(0, 0, 0)] * axis + [(0, n1 * n2 - x.shape[-1], 0)]
    columns = lax.pad(x, jnp.zeros((), x.dtype), widths).reshape(*x.shape[:-1], n1, n2).mT
    spectra = fft.fft(columns) if jnp.iscomplexobj(x) else fft.rfft(columns)
    return fft.fft((spectra * _twiddle(n2, spectra.shape[-1], n1 * n2, spectra.dtype)).mT)


def _inverse_transform(spectra: jax.Array, shape: tuple[int, int], real: bool) -> jax.Array:
    n1, n2 = shape
    columns = fft.ifft(spectra).mT
    columns = columns * _twiddle(n2, columns.shape[-1], n1 * n2, columns.dtype).conj()
    columns = fft.irfft(columns, n=n1) if real else fft.ifft(columns)
    return columns.mT.reshape(*spectra.shape[:-2], n1 * n2)


def _twiddle(rows: int, columns: int, n: int, dtype: DTypeLike) -> jax.Array:
    """``w_n^(j f)`` for row j and column f, from a table for every s-th row and a table for the s rows between."""
    step = max(1, math.isqrt(rows))
    f = np.arange(columns)
    coarse, fine = (
        jnp.asarray(np.exp(-2j * np.pi / n * (j[:, None] * f % n)).astype(dtype))
        for j in (np.arange(0, rows, step), np.arange(step))
    )
    return (coarse[:, None, :] * fine[None, :, :]).reshape(-1, columns)[:rows]
