"""Solutions of linear systems by any method, with a flag, and derivatives by the equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from .flags import custom_vmap

Solve = Callable[[Any, Array], tuple[Array, Array]]


def solve_with_flag(
    matvec: Callable[[Array], Array], b: Array, solve: Solve, transpose_solve: Solve
) -> tuple[Array, Array]:
    """Apply `jax.lax.custom_linear_solve` to methods that return a solution, and one flag.

    `jax.vmap` maps the auxiliary values of JAX's function in any case, even if it maps tangents alone, as in `jax.jacfwd`. JAX refuses
    that for all values that depend on the flag. So here the flag is mapped only if the solution is.
    """
    results: tuple[Array, Array] = lax.custom_linear_solve(matvec, b, solve, transpose_solve, has_aux=True)
    x, ok = results
    flag: Array = _mapped_as(ok, lax.stop_gradient(x))
    return x, flag


@custom_vmap
def _mapped_as(flag: Array, x: Array) -> Array:
    """Return the flag, which ``vmap`` maps only if it maps x."""
    return flag


@_mapped_as.def_vmap
def _mapped_as_vmap(axis_size: int, in_batched: Sequence[bool], flag: Array, x: Array) -> tuple[Array, bool]:
    if in_batched[0] and not in_batched[1]:
        return _mapped_as(jnp.all(flag, axis=0), x), False
    return _mapped_as(flag, x), in_batched[0]
