"""NaN for undefined values and derivatives."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from .flags import custom_jvp


@custom_jvp
def nan_unless(exists: Array, x: Array) -> Array:
    """The array `x`, NaN where a condition that broadcasts is false, and so are the derivatives. A selection would have
    zero derivatives there.
    """
    return jnp.where(exists, x, jnp.nan)


@nan_unless.defjvp
def _nan_unless_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    exists, x = primals
    return nan_unless(exists, x), _nan_or(tangents[1], exists, x)


@custom_jvp
def differentiable_if(exists: Array, x: Array) -> Array:
    """The array `x`, whose derivatives are NaN where a condition that broadcasts is false."""
    return x


@differentiable_if.defjvp
def _differentiable_if_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    exists, x = primals
    return differentiable_if(exists, x), _nan_or(tangents[1], exists, x)


def _nan_or(change: Array, exists: Array, x: Array) -> Array:
    """The change of `x`, NaN where a condition is false. A factor, unlike a selection, keeps the NaN in reverse mode."""
    factor = jnp.where(exists, 1, jnp.nan).astype(jnp.finfo(x.dtype).dtype)
    if jnp.iscomplexobj(x):
        return lax.complex(change.real * factor, change.imag * factor)
    return change * factor


def log_of_zero(zero: Array) -> Array:
    """Minus infinity for a zero computed from finite values, NaN for any other zero. Derivatives of all orders are NaN."""
    return differentiable_if(jnp.array(False), jnp.exp(jnp.abs(zero))) - jnp.inf


def nowhere(x: Array, *others: Array) -> Array:
    """NaN instead of `x`, with derivatives of all orders that are NaN, also by the elements of other arrays."""
    numbers = [other for other in others if jnp.issubdtype(other.dtype, jnp.inexact)]
    total = sum(jnp.sum(other if jnp.iscomplexobj(x) else other.real) for other in numbers)
    return nan_unless(jnp.array(False), jnp.exp(x + total).astype(x.dtype))
