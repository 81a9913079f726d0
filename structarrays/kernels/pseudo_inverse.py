"""The Moore–Penrose pseudo-inverse of dense matrices."""

import jax
import jax.numpy as jnp
from jax import Array

from . import spectra
from .flags import custom_jvp


def pinv(x: Array, rtol: Array, /) -> Array:
    """Pseudo-inverse; singular values up to `rtol` (real, of batch shape) times the largest count as zero.

    `jax.numpy.linalg.pinv` treats its tolerance as static where it differentiates, and leaks it if it is traced.
    """
    return with_values(x, rtol)[0]


@custom_jvp
def with_values(x: Array, rtol: Array, /) -> tuple[Array, Array]:
    """The same, and the singular values, descending, of one decomposition."""
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    large = s > rtol[..., None] * jnp.max(s, axis=-1, keepdims=True, initial=0)
    inverse = jnp.where(large | jnp.isnan(s), 1 / jnp.where(s == 0, 1, s), 0).astype(x.dtype)
    return (_hermitian(vh) * inverse[..., None, :]) @ _hermitian(u), s


@with_values.defjvp
def _(primals, tangents):
    # Golub and Pereyra (1973), "The differentiation of pseudo-inverses and nonlinear least squares problems", (4.12).
    (a, rtol), (da, _) = primals, tangents
    p, s = with_values(a, rtol)
    ph, dah = _hermitian(p), _hermitian(da)
    # Both terms vanish for full rank. Rounding errors in the place of zeros would be multiplied by the square of the condition number.
    rank = jnp.sum(s > rtol[..., None] * jnp.max(s, axis=-1, keepdims=True, initial=0), axis=-1)[..., None, None]
    in_range = jnp.where(rank == a.shape[-2], 0, p @ ph @ (dah - (dah @ a) @ p))
    in_kernel = jnp.where(rank == a.shape[-1], 0, (dah - p @ (a @ dah)) @ ph @ p)
    _, ds = jax.jvp(spectra.svdvals, (a,), (da,))
    return (p, s), (in_range + in_kernel - p @ da @ p, ds)


def _hermitian(x):
    return x.conj().mT
