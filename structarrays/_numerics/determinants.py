"""Determinants that are products of values, on plain JAX arrays."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from .flags import custom_jvp, custom_vmap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core.typing import Axes, DTypeLike


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def of_parts(multiplied: Callable[..., Array], logarithms: Callable[..., tuple[Array, Array]], parts: Any) -> Array:
    """Product of the determinants of parts, by their logarithms if a determinant or the product overflows or underflows.

    The determinants of ``1e5 * A`` and ``1e-5 * B`` may overflow and underflow although the determinant of their Kronecker product is
    of moderate size.

    Parameters
    ----------
    multiplied : callable
        Maps `parts` to the product of their determinants, ``(...)``. Its derivative is correct for singular matrices, too.
    logarithms : callable
        Maps `parts` to the sign ``(...)`` and the logarithm of the magnitude of the result, ``(...)``; called only if needed.
    parts : pytree of jax.Array
        The parameters of the parts.

    Returns
    -------
    jax.Array, (...)
    """
    value = multiplied(parts)
    result: Array = lax.cond(
        any_of_all(_is_lost(value)), lambda: exponential(*logarithms(parts), value.dtype), lambda: value
    )
    return result


@of_parts.defjvp
def _of_parts_jvp(
    multiplied: Callable[..., Array],
    logarithms: Callable[..., tuple[Array, Array]],
    primals: tuple[Any],
    tangents: tuple[Any],
) -> tuple[Array, Array]:
    (fixed,) = lax.stop_gradient(primals)
    value = multiplied(fixed)

    def derivative(function: Callable[..., Array]) -> Callable[[], tuple[Array, Array]]:
        return lambda: jax.jvp(function, primals, tangents)

    # Compute the determinants again within the branch: if one is out of range, its derivative is not finite, and zero
    # times it would be NaN.
    by_product = derivative(multiplied)
    by_logarithms = derivative(lambda parts: exponential(*logarithms(parts), value.dtype))

    def carefully() -> tuple[Array, Array]:
        singular = logarithms(fixed)[0] == 0  # the logarithm has no derivative for a singular matrix
        results: tuple[Array, Array] = lax.cond(any_of_all(singular & (value == 0)), by_product, by_logarithms)
        return results

    results: tuple[Array, Array] = lax.cond(any_of_all(_is_lost(value)), carefully, by_product)
    return results


def _is_lost(value: Array) -> Array:
    """Return whether a product may have overflowed or underflowed."""
    return ~jnp.isfinite(value) | (value == 0)


def any_of_all(flags: Array) -> Array:
    """Return whether any flag of a stack is true, over all stacks under ``vmap``. A `lax.cond` with this condition
    stays a branch.

    With a condition per batch element, ``vmap`` turns the branch into a selection. There JAX (0.10) stops derivatives
    with a primitive that it cannot transpose, although the derivative rules that contain these conditions are linear in
    the tangents.
    """
    result: Array = _together(jnp.any(flags))
    return result


@custom_vmap
def _together(flag: Array) -> Array:
    return flag


@_together.def_vmap
def _together_vmap(axis_size: int, in_batched: Sequence[bool], flags: Array) -> tuple[Array, bool]:
    return _together(jnp.any(flags)), False


def exponential(sign: Array, logabsdet: Array, dtype: DTypeLike) -> Array:
    """Determinant from its sign and the logarithm of its magnitude."""
    return sign * jnp.exp(logabsdet).astype(dtype)


def sign_and_logarithm(numbers: Array, axes: Axes) -> tuple[Array, Array]:
    """Sign (or phase) and logarithm of the magnitude of a product along axes; 0 and minus infinity for a zero product."""
    return jnp.prod(phase(numbers), axis=axes), jnp.sum(jnp.log(jnp.abs(numbers)), axis=axes)


def tangents(sign: Array, change: Array) -> tuple[Array, Array]:
    """Derivatives of a sign (phase) and of the logarithm of a magnitude, from the derivative of ``log(sign) + log(magnitude)``."""
    return (sign * 1j * change.imag, change.real) if jnp.iscomplexobj(sign) else (jnp.zeros_like(sign), change)


def phase(z: Array) -> Array:
    """The sign; ``z / abs(z)`` for a complex number, written out, since JAX's sign has the derivative zero."""
    if not jnp.iscomplexobj(z):
        return jnp.sign(z)
    size = jnp.abs(z)
    return jnp.where(size == 0, 0, z / jnp.where(size == 0, 1, size))
