"""Circulant matrices as plain JAX arrays, given by their first column ``c`` (..., n): ``C[i, j] = c[(i - j) % n]``.

The eigenvalues are the discrete Fourier transform of ``c``. The eigenvalues of a real matrix come in conjugate pairs;
`spectrum` returns one of each pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from . import dense_fft as fft
from . import determinants
from . import toeplitz_entries as toeplitz
from .convolution import check_length, is_fast, widened
from .quotients import quotient
from .symbolic import smaller

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax


def matmul(c: jax.Array, x: jax.Array) -> jax.Array:
    """``C @ x`` for a dense `x` (..., n, p), of the same dtype; batch shapes broadcast.

    Uses transforms of twice the length, as for a Toeplitz matrix, unless the length n is itself fast.
    """
    n = c.shape[-1]
    if not smaller(toeplitz.SMALL, n) or c.dtype.kind in "iu" or not is_fast(n):
        upwards = c[..., ::-1]
        return toeplitz.matmul(jnp.concatenate([upwards, upwards[..., :-1]], axis=-1), min(0, 1 - n), (n, n), x)
    return toeplitz.cyclic_matmul(c, x)


def spectrum(c: jax.Array) -> jax.Array:
    """Eigenvalues, (..., n), or ``n // 2 + 1`` of them for a real matrix."""
    if c.shape[-1] == 0:
        return jnp.zeros(c.shape, jnp.result_type(c, np.complex64))
    check_length(c.shape[-1])
    c = widened(c)
    return fft.fft(c) if jnp.iscomplexobj(c) else fft.rfft(c)


def full_spectrum(c: jax.Array) -> jax.Array:
    """All eigenvalues, (..., n)."""
    return fft.fft(widened(c)) if c.shape[-1] else spectrum(c)


def from_spectrum(values: jax.Array, like: jax.Array) -> jax.Array:
    """First column of the matrix with these eigenvalues, as returned by `spectrum` for a matrix like `like`."""
    n = like.shape[-1]
    if n == 0:
        return like
    return (fft.ifft(values) if jnp.iscomplexobj(like) else fft.irfft(values, n=n)).astype(like.dtype)


def apply_spectrum(values: jax.Array, x: jax.Array) -> jax.Array:
    """Product of the matrix with these eigenvalues (see `spectrum`) and a dense `x` (..., n, p); batch shapes
    broadcast.
    """
    return _changed_spectrum(jnp.multiply, values, x)


def divide_by_spectrum(values: jax.Array, x: jax.Array) -> jax.Array:
    """Solution for the matrix with these eigenvalues, as `apply_spectrum`."""
    return _changed_spectrum(quotient, values, x)


def _changed_spectrum(
    function: Callable[[jax.Array, jax.Array], jax.Array], values: jax.Array, x: jax.Array
) -> jax.Array:
    columns = x.mT
    result = fft.by_rows(from_spectrum(function(spectrum(columns), values[..., None, :]), columns).mT)
    return jnp.broadcast_to(result, (*jnp.broadcast_shapes(values.shape[:-1], x.shape[:-2]), *x.shape[-2:]))


def _once_and_twice(values: jax.Array, n: int) -> tuple[jax.Array, jax.Array]:
    """Split the spectrum of a real matrix into the real eigenvalues, and one of each conjugate pair."""
    paired = (n - 1) // 2
    alone = jnp.concatenate([values[..., :1], values[..., 1 + paired :]], axis=-1).real
    return alone, values[..., 1 : 1 + paired]


def slogdet(c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Sign (or phase) and logarithm of the magnitude of the determinant."""
    values, n = spectrum(c), c.shape[-1]
    if jnp.iscomplexobj(c):
        return determinants.sign_and_logarithm(values, -1)
    alone, pairs = _once_and_twice(values, n)
    logarithm = jnp.sum(jnp.log(jnp.abs(alone)), axis=-1) + 2 * jnp.sum(jnp.log(jnp.abs(pairs)), axis=-1)
    # The product of a pair is never negative, but it may be zero.
    sign = jnp.prod(jnp.sign(alone), axis=-1) * jnp.all(pairs != 0, axis=-1)
    return sign, logarithm


def det(c: jax.Array) -> jax.Array:
    """Determinant. A partial product of eigenvalues may overflow or underflow although the full product does not."""
    return determinants.of_parts(_product, slogdet, c)


def _product(c: jax.Array) -> jax.Array:
    values, n = spectrum(c), c.shape[-1]
    if jnp.iscomplexobj(c):
        return jnp.prod(values, axis=-1)
    alone, pairs = _once_and_twice(values, n)
    return jnp.prod(alone, axis=-1) * jnp.prod(jnp.square(pairs.real) + jnp.square(pairs.imag), axis=-1)
