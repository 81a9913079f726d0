"""Determinants that are products of numbers, on plain JAX arrays."""

import functools

import jax.numpy as jnp
from jax import Array, lax


def product(determinants, powers, logarithms) -> Array:
    """The product of powers of determinants; see `in_range`.

    Parameters
    ----------
    determinants : sequence of jax.Array, (...)
    powers : sequence of int
    logarithms : callable

    Returns
    -------
    jax.Array, (...)
    """

    def multiplied():
        return functools.reduce(jnp.multiply, [d**p for d, p in zip(determinants, powers, strict=True)])

    return in_range(multiplied, functools.reduce(jnp.logical_or, [d == 0 for d in determinants]), logarithms)


def in_range(multiplied, singular: Array, logarithms) -> Array:
    """A product of numbers, by their logarithms where it, or a part of it, leaves the range of floating-point numbers.

    The determinants of ``1e5 * A`` and ``1e-5 * B`` may be too large and too small for any number although that of their Kronecker product
    is of moderate size.

    Parameters
    ----------
    multiplied : callable
        Of no argument: the product, ``(...)``.
    singular : jax.Array of bool, (...)
        Whether one of the numbers is zero. Then the product has the right derivative, and the logarithms have none.
    logarithms : callable
        Of no argument: the sign ``(...)`` and the logarithm of the magnitude of the result, ``(...)``; computed only if need be.

    Returns
    -------
    jax.Array, (...)
    """
    value = lax.stop_gradient(multiplied())
    lost = ~jnp.isfinite(value) | ((value == 0) & ~singular)

    def by_logarithms():
        sign, logabsdet = logarithms()
        return sign * jnp.exp(logabsdet).astype(value.dtype)

    # All at once, and multiplied in the branch: or the derivative of a product that is not finite would be zero times NaN.
    return lax.cond(jnp.any(lost), by_logarithms, multiplied)


def sign_and_logarithm(numbers: Array, axes) -> tuple[Array, Array]:
    """Sign (or phase) and logarithm of the magnitude of a product of numbers along axes; of zeros 0 and minus infinity."""
    return jnp.prod(phase(numbers), axis=axes), jnp.sum(jnp.log(jnp.abs(numbers)), axis=axes)


def phase(z: Array) -> Array:
    """The sign, of a complex number ``z / abs(z)``; written out, since JAX takes the derivative of its sign for zero."""
    if not jnp.iscomplexobj(z):
        return jnp.sign(z)
    size = jnp.abs(z)
    return jnp.where(size == 0, 0, z / jnp.where(size == 0, 1, size))
