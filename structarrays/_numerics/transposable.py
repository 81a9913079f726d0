"""Linear functions whose programs branch on elements of their argument, such as products with a matrix where NaN is rare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array, lax

if TYPE_CHECKING:
    from collections.abc import Callable


def transposable(function: Callable[[Array], Array], transposed: Callable[[Array], Array], x: Array, m: int) -> Array:
    """Return ``function(x)`` by a program that JAX can transpose, as its iterative solvers and `jax.linear_transpose` do.

    JAX does not transpose a branch that depends on the argument. It transposes the solution of a linear system by the function that is
    given for this purpose. So the result is written as the solution of ``I y = x``, whatever the method "solves".

    Parameters
    ----------
    function : callable
        Maps `x` to the result. Its derivatives by other arrays are lost: the caller defines them.
    transposed : callable
        The transposed function, of finite numbers.
    x : Array, (..., n)
    m : int
        The length of the result, whose other dimensions are equal to the dimensions of `x`.

    Returns
    -------
    Array, (..., m)
    """
    n = x.shape[-1]
    if m == n:
        y: Array = lax.custom_linear_solve(
            lambda x: x, x, lambda _, x: function(x), lambda _, y: transposed(y), symmetric=False
        )
        return y

    # A system has the same number of unknowns and of right-hand sides: [0, y] and [x, 0].
    def joined(first: Array, second: Array) -> Array:
        return jnp.concatenate([first, second], axis=-1)

    both: Array = lax.custom_linear_solve(
        lambda z: z,
        joined(x, jnp.zeros((*x.shape[:-1], m), x.dtype)),
        lambda _, z: joined(jnp.zeros((*x.shape[:-1], n), x.dtype), function(z[..., :n])),
        lambda _, z: joined(transposed(z[..., n:]), jnp.zeros((*x.shape[:-1], m), x.dtype)),
    )
    return both[..., n:]
