"""Factorisation of dense symmetric and Hermitian indefinite matrices: ``P A P^T = L D L^H``, D with blocks of one or two rows.

Bunch and Kaufman (1977), "Some stable methods for calculating inertia and solving symmetric linear systems", Math. Comp. 31: diagonal
pivoting, whose choice of pivots looks at two columns (Golub and Van Loan, *Matrix Computations*, 4.4.4; LAPACK's ``sytrf``).
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax import Array, lax

from structarrays.kernels import bands, triangles

_ALPHA = (1 + math.sqrt(17)) / 8


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def ldl(a: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """The lower factor and ``d`` (..., n, n), and the order of the rows ``perm`` (..., n): ``a[perm][:, perm] == lower @ d @ lower^H``.

    `lower` has a unit diagonal, and zeros where `d` has a block. Not `hermitian`, it is the transpose in place of the conjugated one.
    """
    lower, main, beside, perm = jnp.vectorize(_factor, signature="(n,n)->(n,n),(n),(n),(n)")(a)
    main = main.real.astype(a.dtype) if hermitian else main
    below = beside[..., :-1]
    diagonals = {-1: below, 0: main, 1: below.conj() if hermitian else below}
    offsets = (-1, 0, 1) if a.shape[-1] > 1 else (0,)
    return lower, bands.to_dense([diagonals[k] for k in offsets], offsets, a.shape[-2:]), perm


def _factor(a):
    """One matrix. Each step takes a pivot of one or two rows, and updates the whole matrix in one pass."""
    n = a.shape[0]
    places = jnp.arange(n)

    def step(state):
        k, a, lower, main, beside, perm = state
        row, two = _pivot(a, k, places)
        last, after = k + two, jnp.minimum(k + 1, n - 1)
        a = _exchanged(_exchanged(a, last, row, 0), last, row, 1)
        lower, perm = _exchanged(lower, last, row, 0), _exchanged(perm, last, row, 0)
        top = jnp.stack([a[k], jnp.where(two, a[after], 0)])
        columns = jnp.stack([a[:, k], jnp.where(two, a[:, after], 0)], 1)
        # A block of one row is one of two with zeros beside it, so that both go the same way.
        block = jnp.where(jnp.stack([jnp.array(True), two]), top[:, jnp.stack([k, after])], 0)
        below = places > last
        left = jnp.where(below[:, None], columns @ _inverse(block, two), 0)
        top = jnp.where(below, top, 0)
        a = a - (left[:, :1] * top[:1] + left[:, 1:] * top[1:])
        # First the second row, which for the last row alone is the same as the first.
        lower = lower.at[:, after].set(jnp.where(two, left[:, 1], lower[:, after])).at[:, k].set(left[:, 0])
        main = main.at[after].set(jnp.where(two, block[1, 1], main[after])).at[k].set(block[0, 0])
        beside = beside.at[k].set(jnp.where(two, block[1, 0], 0))
        return last + 1, a, lower, main, beside, perm

    zero = jnp.zeros(n, a.dtype)
    state = (jnp.array(0), a, jnp.zeros_like(a), zero, zero, places)
    _, _, lower, main, beside, perm = lax.while_loop(lambda state: state[0] < n, step, state)
    return triangles.with_diagonal(lower, 1), main, beside, perm


def _exchanged(a, i, j, axis):
    """The array with two rows (axis 0) or columns exchanged."""
    first, second = (lax.dynamic_index_in_dim(a, k, axis) for k in (i, j))
    a = lax.dynamic_update_index_in_dim(a, second, i, axis)
    return lax.dynamic_update_index_in_dim(a, first, j, axis)


def _pivot(a, k, places):
    """The row that is exchanged with the last one of the pivot, and whether that has two rows."""
    column = _size(lax.dynamic_index_in_dim(a, k, 1, keepdims=False))
    r = jnp.argmax(jnp.where(places > k, column, -1))
    row = _size(lax.dynamic_index_in_dim(a, r, 0, keepdims=False))
    own, largest = column[k], jnp.where(r > k, column[r], 0)
    beside = jnp.max(jnp.where((places >= k) & (places != r), row, 0))
    stay = (own >= _ALPHA * largest) | (own * beside >= _ALPHA * largest**2)
    one = stay | (row[r] >= _ALPHA * beside)
    # A NaN compares false, and must not ask for a second row behind the last one.
    two = ~one & (k + 1 < a.shape[0])
    return jnp.where(stay, k, jnp.where(two | one, r, k)), two


def _size(z):
    """The magnitude as LAPACK compares it, so that the pivots are the same."""
    return jnp.abs(z.real) + jnp.abs(z.imag)


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
    lower, d, perm = ldl(a, hermitian)
    rows = jnp.take_along_axis(da, perm[..., :, None], axis=-2)
    s = jnp.take_along_axis(rows, perm[..., None, :], axis=-1)
    options = {"lower": True, "unit_diagonal": True}
    s = lax.linalg.triangular_solve(lower, s, left_side=True, **options)
    s = lax.linalg.triangular_solve(lower, s, left_side=False, transpose_a=True, conjugate_a=hermitian, **options)
    n = a.shape[-1]
    joined = triangles.diagonal(d, -1) != 0 if n > 1 else jnp.zeros((*a.shape[:-2], 0), bool)
    first = jnp.pad(~joined, [(0, 0)] * (joined.ndim - 1) + [(1, 0)], constant_values=True)
    number = jnp.cumsum(first, axis=-1)
    below, inside = (f(number[..., :, None], number[..., None, :]) for f in (jnp.greater, jnp.equal))
    dd = jnp.where(inside, s, 0)
    dl = lower @ jnp.linalg.solve(d.mT, jnp.where(below, s, 0).mT).mT
    return (lower, d, perm), (dl, dd, jnp.zeros(perm.shape, jax.dtypes.float0))
