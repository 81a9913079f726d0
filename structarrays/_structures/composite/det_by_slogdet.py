"""Determinants from their logarithms, with derivatives of singular matrices.

The logarithm of a determinant has no derivative where the matrix is singular, and the second derivative of the determinant of a nearly
singular one is a difference of large numbers. The derivatives are computed from the dense form there, if the policy allows it.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from ..._core.array.dense import Dense
from ..._core.array.operands import to_dense
from ..._functions.linalg.systems import logarithms
from ..._numerics import dense_determinants, determinants
from ..._numerics.flags import custom_jvp
from ..._numerics.undefined import differentiable_if, nan_unless
from .dense_fallback import is_possible

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._core.array.base import Array


def det_by_slogdet(x: Array) -> Dense:
    """Compute determinants from their logarithms, because intermediate products could overflow or underflow."""
    return Dense.make((_determinant(is_possible(x), x),))


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _determinant(may_expand: bool, x: Any) -> jax.Array:
    return _by_logarithm(x)


def _by_logarithm(x: Array) -> jax.Array:
    return determinants.exponential(*logarithms(x), x.dtype)


@jax.checkpoint  # otherwise reverse mode would allocate the intermediate results, also where this branch does not run
def _by_dense_form(x: Array) -> jax.Array:
    return dense_determinants.det_of_any_rank(to_dense(x).data)


@_determinant.defjvp
def _determinant_jvp(may_expand: bool, primals: tuple[Any], tangents: tuple[Any]) -> tuple[jax.Array, jax.Array]:
    """The derivative of the logarithm, or of the dense form if a matrix is nearly singular.

    Without the dense form, derivatives that do not exist or would have no correct digit are NaN.
    """
    (fixed,) = lax.stop_gradient(primals)
    size, exists = _relative_derivative(fixed)
    regular = jnp.all(exists)
    eps = float(jnp.finfo(fixed.dtype).eps)
    if not may_expand:
        twice = functools.partial(_differentiable_if, regular & (size < eps**-0.75))
        value, change = jax.jvp(_by_logarithm, jax.tree.map(twice, primals), tangents)
        return value, nan_unless(exists, change)

    def derivative(function: Callable[[Array], jax.Array]) -> Callable[[], tuple[jax.Array, jax.Array]]:
        return lambda: jax.jvp(function, primals, tangents)

    small = regular & (size < math.sqrt(fixed.shape[-1]) * eps**-0.25)
    results: tuple[jax.Array, jax.Array] = lax.cond(
        determinants.any_of_all(~small), derivative(_by_dense_form), derivative(_by_logarithm)
    )
    return results


def _relative_derivative(x: Array) -> tuple[jax.Array, jax.Array]:
    """Largest derivative of the logarithm by a parameter, times the size of the parameters, and which matrices are regular.

    Second derivatives are differences of terms that may exceed them by this factor.
    """
    (sign, logarithm), pull_back = jax.vjp(logarithms, x)
    (changes,) = pull_back((jnp.zeros_like(sign), jnp.ones_like(logarithm)))
    products = [
        jnp.max(jnp.abs(parameter), initial=0) * jnp.max(jnp.abs(change), initial=0)
        for parameter, change in zip(jax.tree.leaves(x), jax.tree.leaves(changes), strict=True)
        if jnp.issubdtype(parameter.dtype, jnp.inexact)
    ]
    return jnp.max(jnp.stack([jnp.zeros_like(logarithm, shape=()), *products])), sign != 0


def _differentiable_if(exists: jax.Array, parameter: jax.Array) -> jax.Array:
    return differentiable_if(exists, parameter) if jnp.issubdtype(parameter.dtype, jnp.inexact) else parameter
