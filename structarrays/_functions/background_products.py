"""Products of arrays with a background: the stored part, and the background times what is not stored (docs/design/semantics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import jax
import jax.numpy as jnp

from .._core.array.dense import Dense

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.array.base import Array


def with_background(product: Callable[[Array, jax.Array], jax.Array], x: Array, data: jax.Array) -> Dense:
    """``x @ data`` for an array with a background, by products with arrays of the same pattern.

    Parameters
    ----------
    product : callable
        ``product(y, data)``: of an array `y` of the structure of `x` with structural zeros, and a `jax.Array`.
    x : Array
        A stack of matrices ``(..., m, n)`` with a background ``b``.
    data : jax.Array
        ``(n,)`` or ``(..., n, p)``.

    Notes
    -----
    What is not stored contributes ``b`` times the sum of all of `data` less the sum of what meets stored entries, so
    rounding errors are those of the whole sum. Infinities and NaN would cancel to NaN there, even in rows which do not
    meet them; they are counted apart, which costs three more products, where there are any.
    """
    own = data if data.ndim > 1 else data[:, None]
    background = cast("jax.Array", x.background)[..., None, None]
    terms = background * own
    zeros = x.rebuild(x.entries, None)
    pattern = x.rebuild(tuple(jnp.ones_like(e.real) for e in x.entries), None)

    def outside(values: jax.Array) -> jax.Array:
        """For each row, the sum of what stands at columns that are not stored."""
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
