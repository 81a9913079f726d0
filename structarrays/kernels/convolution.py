"""Cyclic convolutions by Fourier transforms, on plain JAX arrays.

Rounding is normwise: the error of an element is relative to ``norm(a) * norm(b)``, not to its own terms, and a NaN or an
infinity in either spreads over the whole result.
"""

import functools

import jax.numpy as jnp


@functools.cache
def fast_length(n: int) -> int:
    """The smallest length of at least `n` whose transform is fast: a product of twos, threes and fives, even for n > 1.

    Examples
    --------
    >>> from structarrays.kernels.convolution import fast_length
    >>> fast_length(7), fast_length(1999999)
    (8, 2000000)
    """
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
    """Whether a transform of just this length is fast: it has no prime factor above 11.

    With a large one it takes ten times as long, and loses digits.
    """
    for prime in (2, 3, 5, 7, 11):
        while n > 1 and n % prime == 0:
            n //= prime
    return n == 1


def cyclic(a, b, n: int):
    """The cyclic convolution of length `n`: ``c[i] = sum(a[j] * b[(i - j) % n])``, along the last axis.

    Parameters
    ----------
    a, b : jax.Array, (..., up to n)
        Of one inexact dtype; they are padded with zeros. The other dimensions broadcast.
    n : int
    """
    if jnp.iscomplexobj(a):
        return jnp.fft.ifft(jnp.fft.fft(a, n) * jnp.fft.fft(b, n))
    return jnp.fft.irfft(jnp.fft.rfft(a, n) * jnp.fft.rfft(b, n), n)
