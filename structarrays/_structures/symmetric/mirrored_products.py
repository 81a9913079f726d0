"""Products with symmetric and Hermitian matrices of which one triangle is read.

For a few vectors, the mirror image is not written out, since that takes ten times as long as the product. The triangle is cut into strips
of rows. A strip without its block on the diagonal is multiplied twice: as it is, and as its mirror image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._numerics import packed_triangles as triangles
from ..._numerics.symbolic import is_symbolic
from ..triangular.numerics import cuts, strip_size

if TYPE_CHECKING:
    from jax import Array

# The number of vectors from which the mirror image is written out.
_MANY = 128


def matmul(a: Array, b: Array, lower: bool, conjugate: bool) -> Array:
    """Multiply a matrix that equals its (``conjugate``: conjugated) mirror image with columns.

    Parameters
    ----------
    a : Array, (..., n, n)
        The lower (or upper) triangle is read.
    b : Array, (..., n, k)
        The batch shapes broadcast.
    lower, conjugate : bool

    Returns
    -------
    Array, (..., n, k)
    """
    n, k = b.shape[-2:]
    if is_symbolic(k) or is_symbolic(n) or k >= _MANY:
        product: Array = triangles.mirrored(a, lower, conjugate) @ b
        return product
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total = jnp.zeros((*batch, n, k), a.dtype)
    for first, last in cuts(n, strip_size(n, n, 1)):
        start, stop = (0, first) if lower else (last, n)
        own, other = b[..., first:last, :], b[..., start:stop, :]
        part = triangles.mirrored(a[..., first:last, first:last], lower, conjugate) @ own
        if start < stop:
            strip = a[..., first:last, start:stop]
            part = part + strip @ other
            # Written so that XLA need not transpose the strip.
            image = jnp.conj(jnp.conj(own.mT) @ strip) if conjugate else own.mT @ strip
            total = total.at[..., start:stop, :].add(image.mT)
        total = total.at[..., first:last, :].add(part)
    return total


def matmul_from_left(b: Array, a: Array, lower: bool, conjugate: bool) -> Array:
    """Multiply rows (..., k, n) with such a matrix."""
    if is_symbolic(b.shape[-2]) or b.shape[-2] >= _MANY:
        product: Array = b @ triangles.mirrored(a, lower, conjugate)
        return product
    if not conjugate:
        return matmul(a, b.mT, lower, conjugate).mT
    return jnp.conj(matmul(a, jnp.conj(b.mT), lower, conjugate).mT)
