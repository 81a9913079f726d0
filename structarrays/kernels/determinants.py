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
