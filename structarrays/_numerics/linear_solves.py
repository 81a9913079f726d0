"""Solutions of linear systems by any method, with a flag, and derivatives by the equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax import Array, lax

from .determinants import any_of_all

Solve = Callable[[Any, Array], tuple[Array, Array]]


def solve_with_flag(
    matvec: Callable[[Array], Array], b: Array, solve: Solve, transpose_solve: Solve
) -> tuple[Array, Array]:
    """Apply `jax.lax.custom_linear_solve` to methods that return a solution, and one flag for a whole stack of matrices.

    `jax.vmap` maps the auxiliary values of JAX's function in any case. Then `jax.jacfwd`, which maps tangents alone, would refuse all values
    that depend on the flag. So the flag is one for all mapped elements, too.
    """
    results: tuple[Array, Array] = lax.custom_linear_solve(matvec, b, solve, transpose_solve, has_aux=True)
    x, ok = results
    return x, ~any_of_all(~lax.stop_gradient(ok))
