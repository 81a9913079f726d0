"""Products of arrays with a background: the stored entries, and the background at all other positions.

See docs/design/semantics.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import jax
import jax.numpy as jnp

from .._core.array.dense import Dense

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.array.base import Array


def with_background(product: Callable[[Array, jax.Array], jax.Array], x: Array, data: jax.Array) -> Dense:
    """Compute ``x @ data`` for an array with a background, by products with arrays of the same pattern.

    Parameters
    ----------
    product : callable
        Function ``product(y, data)`` of an array `y` with the structure of `x` and structural zeros, and a `jax.Array`.
    x : Array, (..., M, N)
        Matrices with a background ``b``.
    data : jax.Array, (N,) or (..., N, K)
        Vector or matrices to multiply.

    Returns
    -------
    Dense, (..., M) or (..., M, K)
        Products.

    Notes
    -----
    The contribution of the background is ``b`` times (the sum of `data` minus the sum over stored positions), so its
    rounding error is the rounding error of the whole sum. In this difference infinities and NaN would give NaN, even in
    rows that do not contain them. They are counted separately, at the cost of three more products if there are any.
    """
    own = data if data.ndim > 1 else data[:, None]
    background = cast("jax.Array", x.background)[..., None, None]
    terms = background * own
    zeros = x.rebuild(x.entries, None)
    pattern = x.rebuild(tuple(jnp.ones_like(e.real) for e in x.entries), None)

    def outside(values: jax.Array) -> jax.Array:
        """Return, for each row, the sum of the values at columns that are not stored."""
        return jnp.sum(values, axis=-2, keepdims=True, dtype=values.dtype) - product(pattern, values)

    def plain(terms: jax.Array) -> jax.Array:
        return outside(terms)

    def careful(terms: jax.Array) -> jax.Array:
        result = outside(jnp.where(jnp.isfinite(terms), terms, 0))
        for kind, value in ((jnp.isposinf, jnp.inf), (jnp.isneginf, -jnp.inf), (jnp.isnan, jnp.nan)):
            met = outside(kind(terms).astype(terms.dtype)) > 0.5
            result = result + jnp.where(met, jnp.asarray(value, terms.dtype), 0)
        return result

    def guarded(terms: jax.Array) -> jax.Array:
        result: jax.Array = jax.lax.cond(jnp.all(jnp.isfinite(terms)), plain, careful, terms)
        return result

    if terms.dtype.kind == "c":
        rest = jax.lax.complex(guarded(terms.real), guarded(terms.imag))
    else:
        rest = plain(terms) if terms.dtype.kind in "biu" else guarded(terms)
    result = product(zeros, own) + rest
    return Dense.make((result if data.ndim > 1 else result[..., 0],))
