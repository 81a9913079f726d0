"""Factorisation of dense symmetric and Hermitian indefinite matrices: ``P A P^T = L D L^H``, D with blocks of one or two rows.

Bunch and Kaufman (1977), "Some stable methods for calculating inertia and solving symmetric linear systems", Math. Comp. 31: diagonal
pivoting, whose choice of pivots looks at two columns (Golub and Van Loan, *Matrix Computations*, 4.4.4; LAPACK's ``sytrf``).
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax import Array, lax

from structarrays.kernels import triangles

_ALPHA = (1 + math.sqrt(17)) / 8


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def ldl(a: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """``l`` and ``d`` (..., n, n), and the order of the rows ``perm`` (..., n): ``a[perm][:, perm] == l @ d @ l^H``.

    `l` has a unit diagonal, and zeros where `d` has a block. Not `hermitian`, it is the transpose in place of the conjugated one.
    """
    l, d, perm = jnp.vectorize(_factor, signature="(n,n)->(n,n),(n,n),(n)")(a)  # noqa: E741
    return l, (triangles.real_diagonal(d) if hermitian and jnp.iscomplexobj(d) else d), perm


def _factor(a):
    """One matrix. Each step takes a pivot of one or two rows, and updates the whole matrix."""
    n = a.shape[0]
    places = jnp.arange(n)

    def step(state):
        k, a, l, d, perm = state  # noqa: E741
        row, two = _pivot(a, k, places)
        last = k + two
        order = places.at[last].set(row).at[row].set(last)
        a, l, perm = a[order][:, order], l[order], perm[order]  # noqa: E741
        # A block of one row is one of two with an identity beside it, so that both go the same way.
        rows = jnp.stack([k, jnp.minimum(k + 1, n - 1)])
        used = jnp.stack([jnp.array(True), two])
        top = jnp.where(used[:, None], a[rows], 0)
        block = jnp.where(used[:, None] & used, top[:, rows], 0)
        below = places > last
        left = jnp.where(below[:, None], jnp.where(used, a[:, rows], 0) @ _inverse(block, two), 0)
        a = a - left @ jnp.where(below, top, 0)
        ours = (places >= k) & (places <= last)
        d = jnp.where(ours[:, None] & ours, jnp.where(places[:, None] == k, top[0], top[1]), d)
        l = jnp.where(places == k, left[:, :1], l)  # noqa: E741
        l = jnp.where((places == k + 1) & two, left[:, 1:], l)  # noqa: E741
        return last + 1, a, l, d, perm

    zero = jnp.zeros_like(a)
    _, _, l, d, perm = lax.while_loop(lambda state: state[0] < n, step, (jnp.array(0), a, zero, zero, places))  # noqa: E741
    return triangles.with_diagonal(l, 1), d, perm


def _pivot(a, k, places):
    """The row that is exchanged with the last one of the pivot, and whether that has two rows."""
    magnitude = jnp.abs(a.real) + jnp.abs(a.imag)  # as LAPACK does, so that the pivots are the same
    column = jnp.where(places > k, magnitude[:, k], -1)
    r = jnp.argmax(column)
    own, largest = magnitude[k, k], jnp.maximum(column[r], 0)
    beside = jnp.max(jnp.where((places >= k) & (places != r), magnitude[r], 0))
    stay = (own >= _ALPHA * largest) | (own * beside >= _ALPHA * largest**2)
    one = stay | (magnitude[r, r] >= _ALPHA * beside)
    # A NaN compares false, and must not ask for a second row behind the last one.
    two = ~one & (k + 1 < a.shape[0])
    return jnp.where(stay, k, jnp.where(two | one, r, k)), two


def _inverse(block, two):
    """Inverse of a block of two rows, or of the number in its corner; of zero it is zero, since all below is."""
    (a, b), (c, d) = block
    determinant = a * d - b * c
    one = jnp.where(a == 0, 0, 1 / jnp.where(a == 0, 1, a))
    both = jnp.array([[d, -b], [-c, a]]) / jnp.where(two, determinant, 1)
    return jnp.where(two, both, jnp.zeros_like(block).at[0, 0].set(one))


@ldl.defjvp
def _(hermitian, primals, tangents):
    # For constant pivots: of S = L^-1 dA L^-H the blocks on the diagonal are dD, and what is below is L^-1 dL D.
    (a,), (da,) = primals, tangents
    l, d, perm = ldl(a, hermitian)  # noqa: E741
    rows = jnp.take_along_axis(da, perm[..., :, None], axis=-2)
    s = jnp.take_along_axis(rows, perm[..., None, :], axis=-1)
    options = {"lower": True, "unit_diagonal": True}
    s = lax.linalg.triangular_solve(l, s, left_side=True, **options)
    s = lax.linalg.triangular_solve(l, s, left_side=False, transpose_a=True, conjugate_a=hermitian, **options)
    n = a.shape[-1]
    joined = triangles.diagonal(d, -1) != 0 if n > 1 else jnp.zeros((*a.shape[:-2], 0), bool)
    first = jnp.pad(~joined, [(0, 0)] * (joined.ndim - 1) + [(1, 0)], constant_values=True)
    number = jnp.cumsum(first, axis=-1)
    below, inside = (f(number[..., :, None], number[..., None, :]) for f in (jnp.greater, jnp.equal))
    dd = jnp.where(inside, s, 0)
    dl = l @ jnp.linalg.solve(d.mT, jnp.where(below, s, 0).mT).mT
    return (l, d, perm), (dl, dd, jnp.zeros(perm.shape, jax.dtypes.float0))
