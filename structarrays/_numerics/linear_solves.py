"""Solutions of linear systems by any method, with a flag, and derivatives by the equation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

from .flags import custom_jvp

T = TypeVar("T")


def solve_with_flag(
    matvec: Callable[[T, Array], Array],
    matrix: T,
    b: Array,
    solve: Callable[[T, Array], tuple[Array, Array]],
    transpose_solve: Callable[[T, Array], tuple[Array, Array]],
) -> tuple[Array, Array]:
    """Solve ``A x = b`` by a method that is not differentiated.

    The derivative solves ``A dx = db - dA x``.

    Parameters
    ----------
    matvec : callable
        ``matvec(matrix, x)``, linear in x.
    matrix : pytree of jax.Array
        All that A and the methods depend on, for example A and its factors; the functions must not close over it.
    b : jax.Array
    solve, transpose_solve : callable
        Map `matrix` and right-hand sides to solutions for A and for its transpose, and a flag.

    Returns
    -------
    x : jax.Array
    ok : jax.Array of bool
        The flag of `solve`.

    Notes
    -----
    `jax.lax.custom_linear_solve` has auxiliary values, too. But `jax.vmap` maps these in any case, and then `jax.jacfwd`, which maps tangents
    alone, refuses all values that depend on the flag.
    """

    @custom_jvp
    def solution(matrix: T, b: Array) -> tuple[Array, Array]:
        return solve(matrix, b)

    @functools.partial(solution.defjvp, symbolic_zeros=True)
    def _solution_jvp(
        primals: tuple[T, Array], tangents: tuple[Any, Any]
    ) -> tuple[tuple[Array, Array], tuple[Array, np.ndarray]]:
        (matrix, b), (changes, right) = primals, tangents
        x, ok = solution(matrix, b)
        right = jnp.zeros_like(b) if isinstance(right, SymbolicZero) else right
        if not all(isinstance(change, SymbolicZero) for change in jax.tree.leaves(changes, is_leaf=_is_zero)):
            changes = jax.tree.map(_instantiated, changes, is_leaf=_is_zero)
            right = right - jax.jvp(lambda matrix: matvec(matrix, x), (matrix,), (changes,))[1]
        constant = lax.stop_gradient(matrix)
        dx = lax.custom_linear_solve(
            functools.partial(matvec, matrix),
            right,
            lambda _, b: solve(constant, b)[0],
            lambda _, b: transpose_solve(constant, b)[0],
        )
        return (x, ok), (dx, np.zeros(ok.shape, jax.dtypes.float0))

    results: tuple[Array, Array] = solution(matrix, b)
    return results


def _is_zero(tangent: object) -> bool:
    return isinstance(tangent, SymbolicZero)


def _instantiated(tangent: Any) -> Any:
    if not _is_zero(tangent):
        return tangent
    if tangent.dtype == jax.dtypes.float0:
        return np.zeros(tangent.shape, tangent.dtype)
    return jnp.zeros(tangent.shape, tangent.dtype)
