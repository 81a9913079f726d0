"""Positive definite Toeplitz systems by conjugate gradients, on plain JAX arrays: ``O(n log(n))`` for each step.

A step takes one product with the matrix T and one with a preconditioner, each of them two Fourier transforms. The
number of steps depends on the symbol, the Fourier series of the diagonals. If it is smooth and far from zero, as for a
covariance plus noise, ten steps suffice for every n (R. H. Chan and M. K. Ng, "Conjugate gradient methods for Toeplitz
systems", SIAM Review 38 (1996), 427-482). `solve` returns whether the steps sufficed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._numerics.convolution import fast_length, on_each_platform, transforms

if TYPE_CHECKING:
    from collections.abc import Callable

    State: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, int | jax.Array]

LARGE = 1536
"""From this size on the iteration takes less time than a recursion in ``O(n**2)``."""

# With many transforms of one length, splitting them saves time at much smaller sizes than for a single product.
_SPLIT_FROM = 4096


def solve(c: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Solve linear systems with a positive definite Hermitian Toeplitz matrix, and return whether they converged.

    Parameters
    ----------
    c : jax.Array, (..., n)
        The first column of the matrix, with numbers of magnitude about 1.
    b : jax.Array, (..., k, n)
        The right-hand sides, with the same dtype and batch shape, and numbers of magnitude about 1.

    Returns
    -------
    x : jax.Array, (..., k, n)
    ok : jax.Array of bool, (..., k)
        Whether x solves the system for a matrix whose elements differ by a few rounding errors, in the maximum norm (N.
        J. Higham, *Accuracy and Stability of Numerical Algorithms*, 7.1). False if the steps did not suffice, and for a
        matrix that is not positive definite or not finite.
    """
    return on_each_platform(_iterated, _order(c.shape[-1]), c[..., None, :], b, large=_SPLIT_FROM)


def _order(n: int) -> int:
    """Return the order of the circulant preconditioner."""
    return fast_length(n + n // 4)


def _steps(n: int) -> int:
    """Return the maximum number of steps. Without success they take less time than the recursion that follows."""
    return min(n // 64, 500)


def _iterated(split: bool, c: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    n = c.shape[-1]
    precision = jnp.finfo(c.dtype).eps
    length, order = fast_length(2 * n - 1), _order(n)
    spectrum = _hermitian_spectrum(c, length, split)
    multiplied = _multiplication(spectrum, n, length, c, split)
    preconditioned = _multiplication(1 / _preconditioner(c, order, split), n, order, c, split)
    # At least the largest eigenvalue, and at most the largest row sum.
    size = jnp.max(jnp.abs(spectrum), axis=range(c.ndim - 1, spectrum.ndim))

    def step(state: State) -> State:
        x, r, p, rho, done, _, count = state
        q = multiplied(p)
        curvature = _dot(p, q)
        alpha = jnp.where(done, 0, rho / curvature)[..., None]
        x, r = x + alpha * p, r - alpha * q
        z = preconditioned(r)
        beta = jnp.where(done, 0, _dot(r, z) / rho)[..., None]
        definite = done | (curvature > 0)
        done = _dot(r, r) <= jnp.square(precision / 8 * size) * _dot(x, x)
        return x, r, z + beta * p, _dot(r, z), done, definite, count + 1

    def unfinished(state: State) -> jax.Array:
        *_, done, definite, count = state
        return jnp.all(definite) & ~jnp.all(done) & (count < _steps(n))

    z = preconditioned(b)
    start: State = (jnp.zeros_like(b), b, z, _dot(b, z), jnp.all(b == 0, axis=-1), jnp.ones(b.shape[:-1], bool), 0)
    x, *_, definite, _ = lax.while_loop(unfinished, step, start)
    # The updated residual may be smaller than the true one. The first row sum is at least half of the largest.
    row = jnp.sum(jnp.abs(c), axis=-1)
    bound = 16 * precision * (row * _largest(x) + _largest(b))
    return x, definite & (_largest(b - multiplied(x)) <= bound)


def _preconditioner(c: jax.Array, order: int, split: bool) -> jax.Array:
    """Return the eigenvalues of a positive definite circulant matrix; a part of its inverse is the preconditioner.

    Strang's preconditioner has the diagonals of T that do not meet around the edge ("A proposal for Toeplitz matrix
    calculations", Studies in Applied Mathematics 74 (1986), 171-176). If it is not positive definite, T. Chan's is
    used. It has the diagonals of T with weights that decrease to zero, and is positive definite if T is ("An optimal
    circulant preconditioner for Toeplitz systems", SIAM Journal on Scientific and Statistical Computing 9 (1988),
    766-771). Both are a quarter larger than T, since the elements of the inverse around the edge do not help. The part
    that is used is as definite as the whole, and the number of steps is about a third lower.
    """
    n = c.shape[-1]
    reach = (order - 1) // 2 + 1
    strang = _hermitian_spectrum(c[..., :reach], order, split)
    chan = _hermitian_spectrum(c * jnp.asarray((n - np.arange(n)) / n, c.real.dtype), order, split)
    definite = jnp.all(strang > 0, axis=range(c.ndim - 1, strang.ndim), keepdims=True)
    return jnp.where(definite, strang, chan)


def _hermitian_spectrum(c: jax.Array, order: int, split: bool) -> jax.Array:
    """Return the eigenvalues of the circulant matrix with these lower diagonals and their conjugates above."""
    forward, _ = transforms(order, jnp.iscomplexobj(c), split)
    still = [(0, 0)] * (c.ndim - 1)
    above = jnp.pad(c[..., :0:-1].conj(), [*still, (order - c.shape[-1] + 1, 0)])
    return forward(jnp.pad(c, [*still, (0, order - c.shape[-1])]) + above).real


def _multiplication(
    spectrum: jax.Array, n: int, length: int, c: jax.Array, split: bool
) -> Callable[[jax.Array], jax.Array]:
    """Return the product with the leading n rows and columns of a circulant matrix with these eigenvalues."""
    forward, inverse = transforms(length, jnp.iscomplexobj(c), split)

    def multiply(x: jax.Array) -> jax.Array:
        return inverse(spectrum * forward(x))[..., :n]

    return multiply


def _dot(x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the real part of ``vecdot(x, y)``, which is real for all arguments here."""
    return jnp.sum((x.conj() * y).real, axis=-1)


def _largest(x: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(x), axis=-1)
