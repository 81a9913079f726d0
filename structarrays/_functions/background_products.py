"""Products of arrays with a background: the stored entries, and the background at all other positions.

See docs/design/semantics.md.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp

from .._core.array.dense import Dense
from .._numerics.flags import custom_jvp
from .._numerics.transposable import transposable

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from .._core.array.base import Array

    Product: TypeAlias = Callable[[Array, jax.Array], jax.Array]


def with_background(product: Product, x: Array, data: jax.Array) -> Dense:
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

    def guarded(terms: jax.Array) -> jax.Array:
        return _outside_with_special_values(product, pattern, terms.mT).mT

    if terms.dtype.kind == "c":
        rest = jax.lax.complex(guarded(terms.real), guarded(terms.imag))
    else:
        rest = _outside(product, pattern, terms) if terms.dtype.kind in "biu" else guarded(terms)
    result = product(zeros, own) + rest
    return Dense.make((result if data.ndim > 1 else result[..., 0],))


def _outside(product: Product, pattern: Array, values: jax.Array) -> jax.Array:
    """Return, for each row, the sum of the values at columns that are not stored."""
    return jnp.sum(values, axis=-2, keepdims=True, dtype=values.dtype) - product(pattern, values)


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _outside_with_special_values(product: Product, pattern: Array, lines: jax.Array) -> jax.Array:
    """Do the same for values (..., K, N), some of which may be NaN or infinite; (..., K, M)."""

    def plain(lines: jax.Array) -> jax.Array:
        return _outside(product, pattern, lines.mT).mT

    def careful(lines: jax.Array) -> jax.Array:
        result = plain(jnp.where(jnp.isfinite(lines), lines, 0))
        for kind, value in ((jnp.isposinf, jnp.inf), (jnp.isneginf, -jnp.inf), (jnp.isnan, jnp.nan)):
            met = plain(kind(lines).astype(lines.dtype)) > 0.5
            result = result + jnp.where(met, jnp.asarray(value, lines.dtype), 0)
        return result

    def decided(lines: jax.Array) -> jax.Array:
        result: jax.Array = jax.lax.cond(jnp.all(jnp.isfinite(lines)), plain, careful, lines)
        return result

    def transposed(y: jax.Array) -> jax.Array:
        result: jax.Array = jax.linear_transpose(plain, jax.ShapeDtypeStruct(lines.shape, lines.dtype))(y)[0]
        return result

    return transposable(decided, transposed, lines, pattern.shape[-2])


@_outside_with_special_values.defjvp
def _outside_with_special_values_jvp(
    product: Product, primals: tuple[Array, jax.Array], tangents: tuple[Any, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """The pattern consists of ones."""
    pattern, _ = primals
    return _outside_with_special_values(product, *primals), _outside(product, pattern, tangents[1].mT).mT
