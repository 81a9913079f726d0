"""Products in which structural zeros absorb NaN and infinity although they are written out as zeros (docs/design/semantics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

if TYPE_CHECKING:
    from collections.abc import Callable

    T = TypeVar("T")


def guarded_product(
    product: Callable[..., T], a: Any, stored_a: Callable[[], Any], b: Any, stored_b: Callable[[], Any]
) -> T:
    """Compute a product, corrected in a separate branch if a factor is not finite.

    Parameters
    ----------
    product : callable
        Bilinear: of a pytree of arrays like `a` and one like `b` to a pytree of arrays.
    a, b : pytree of arrays
        The factors, with zeros where they have structural zeros.
    stored_a, stored_b : callable
        Of no arguments: pytrees of boolean arrays like `a` and `b`, where an entry is stored.
    """
    leaves = jax.tree.leaves((a, b))
    if not any(jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in leaves):
        return product(a, b)
    finite = jnp.array(True)
    for leaf in leaves:
        finite &= jnp.all(jnp.isfinite(leaf))
    result: T = lax.cond(
        finite, lambda: product(a, b), lambda: absorbing_product(product, a, stored_a(), b, stored_b())
    )
    return result


def absorbing_product(product: Callable[..., T], a: Any, stored_a: Any, b: Any, stored_b: Any) -> T:
    """Compute the product as a sum over pairs of stored entries, with the special cases of IEEE arithmetic.

    Pairs with a factor that is not finite are counted, together with their signs: equal signs give an infinity, others
    NaN. The arguments are as in `guarded_product`, except that the masks are arrays.
    """
    each = jax.tree.map
    if any(jnp.iscomplexobj(leaf) for leaf in jax.tree.leaves((a, b))):

        def part(x: Callable[[jax.Array], jax.Array], y: Callable[[jax.Array], jax.Array]) -> Any:
            return absorbing_product(product, each(x, a), stored_a, each(y, b), stored_b)

        real = each(jnp.subtract, part(jnp.real, jnp.real), part(jnp.imag, jnp.imag))
        imaginary = each(jnp.add, part(jnp.real, jnp.imag), part(jnp.imag, jnp.real))
        whole: T = each(lax.complex, real, imaginary)
        return whole

    def finite_part(x: Any) -> Any:
        return each(lambda v: jnp.where(jnp.isfinite(v), v, 0), x)

    def chosen(x: Any, where: Any, finite: bool) -> Any:
        return each(lambda v, w: jnp.where(jnp.isfinite(w) == finite, v, jnp.zeros((), v.dtype)), x, where)

    def signs(x: Any, stored: Any) -> Any:
        return each(lambda v, s: jnp.where(s & ~jnp.isnan(v), jnp.sign(v), jnp.zeros((), v.dtype)), x, stored)

    def pairs(x: Any, y: Any) -> Any:
        """Sum over the stored pairs that contain a factor that is not finite."""
        first, second = product(chosen(x, a, False), y), product(chosen(x, a, True), chosen(y, b, False))
        return each(jnp.add, first, second)

    count = pairs(*(each(lambda v, s: s.astype(v.dtype), x, s) for x, s in ((a, stored_a), (b, stored_b))))
    total = pairs(signs(a, stored_a), signs(b, stored_b))
    plain = product(finite_part(a), finite_part(b))

    def special(value: jax.Array, number: jax.Array, sign: jax.Array) -> jax.Array:
        extra = jnp.where(jnp.abs(sign) == number, jnp.copysign(jnp.inf, sign), jnp.nan)
        # The special cases have no derivative; without `stop_gradient` it would be NaN.
        return value + lax.stop_gradient(jnp.where(number == 0, 0, extra).astype(value.dtype))

    result: T = each(special, plain, count, total)
    return result
