"""Products of the transpose of a tall matrix with another one, on plain JAX arrays.

XLA's CPU backend takes several times as long as BLAS for ``v.mT @ x`` where both have far more rows than columns, and twenty
times for a single column, since it walks down the columns. Here a single column is a sum over rows, and for several the rows go
through the cache in pieces, the transposes of which are written out. XLA shares out the product of two large pieces among
threads, and of small ones only several at a time.
"""

import jax
import jax.numpy as jnp
from jax import lax

_PIECE = 400
_MANY = 10 * _PIECE
_FEW_COLUMNS, _TOGETHER = 64, 25


@jax.custom_jvp
def transposed_product(v, x, weights):
    """``v.mT @ (weights * x)``.

    Parameters
    ----------
    v, x : jax.Array, (..., n, k) and (..., n, p)
    weights : jax.Array, (..., n)
        One number for each row. The batch shapes broadcast.

    Returns
    -------
    jax.Array, (..., k, p)
    """
    if x.shape[-1] == 1:
        product = v * (weights[..., None] * x)
        return jnp.sum(product, axis=-2, dtype=product.dtype)[..., None]
    n = v.shape[-2]
    tall = n >= _MANY and n >= 8 * max(v.shape[-1], x.shape[-1])
    if not tall or v.ndim > 2 or x.ndim > 2 or weights.ndim > 1 or jax.default_backend() != "cpu":
        return v.mT @ (weights[..., None] * x)
    together = _TOGETHER if max(v.shape[-1], x.shape[-1]) <= _FEW_COLUMNS else 1
    count = -(-n // (_PIECE * together))
    piece = n // (count * together)

    def add(i, total):
        # Without the barriers XLA would fuse what is written out here with the product, which is slower than both.
        size = piece * together
        left, right, w = (lax.dynamic_slice_in_dim(a, i * size, size) for a in (v, x, weights))
        left, right = (a.reshape(together, piece, a.shape[-1]) for a in (left, w[:, None] * right))
        return total + jnp.sum(lax.optimization_barrier(left.mT) @ lax.optimization_barrier(right), axis=0)

    left, right, w = (a[count * together * piece :] for a in (v, x, weights))
    return lax.fori_loop(0, count, add, left.T @ (w[:, None] * right))


@transposed_product.defjvp
def _(primals, tangents):
    (v, x, weights), (dv, dx, dw) = primals, tangents
    w = weights[..., None]
    return transposed_product(v, x, weights), dv.mT @ (w * x) + v.mT @ (w * dx + dw[..., None] * x)
