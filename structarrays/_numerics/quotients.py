"""Quotients whose derivatives do not square the divisor.

JAX differentiates ``x / y`` by ``-x y**-2``. The square overflows or underflows for divisors that are far from one, although the
derivative does not.
"""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero

from .flags import custom_jvp


def quotient(x: Array, y: Array, /) -> Array:
    """Return ``x / y``."""
    if not jnp.issubdtype(jnp.result_type(x, y), jnp.inexact):
        return jnp.true_divide(x, y)
    result: Array = _quotient(jnp.asarray(x), jnp.asarray(y))
    return result


def reciprocal(x: Array, /) -> Array:
    """Return ``1 / x``."""
    return quotient(jnp.ones((), x.dtype), x)


@custom_jvp
def _quotient(x: Array, y: Array) -> Array:
    return jnp.true_divide(x, y)


@functools.partial(_quotient.defjvp, symbolic_zeros=True)
def _quotient_jvp(primals: tuple[Array, Array], tangents: tuple[Any, Any]) -> tuple[Array, Array]:
    (x, y), (dx, dy) = primals, tangents
    result = _quotient(x, y)
    change = jnp.zeros((), result.dtype) if isinstance(dx, SymbolicZero) else dx
    if not isinstance(dy, SymbolicZero):
        change = change - result * dy
    return result, jnp.broadcast_to(change / y, result.shape).astype(result.dtype)
