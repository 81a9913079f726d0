"""Factorization of dense symmetric and Hermitian indefinite matrices: ``P A P^T = L D L^H``, D with blocks of one or
two rows.

Bunch and Kaufman (1977), "Some stable methods for calculating inertia and solving symmetric linear systems", Math.
Comp. 31: diagonal pivoting that compares two columns (Golub and Van Loan, *Matrix Computations*, 4.4.4). On CPUs
LAPACK's ``sytrf`` and ``hetrf`` compute the factors, elsewhere the same algorithm in XLA. Both choose the same pivots.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from . import bands
from . import packed_triangles as triangles
from .flags import custom_jvp
from .host_calls import on_cpu

_ALPHA = (1 + math.sqrt(17)) / 8

_WIDTH = 32
"""Columns of a panel."""


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def ldl(a: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """Return the lower factor and ``d`` (..., n, n), and the order of the rows ``perm`` (..., n):
    ``a[perm][:, perm] == lower @ d @ lower^H``.

    `lower` has a unit diagonal, and zeros where `d` has a block. If `hermitian` is false, the transpose replaces the
    conjugate transpose.
    """
    *batch, n, _ = a.shape
    if a.size == 0:
        return a, a, jnp.zeros((*batch, n), jnp.int32)
    shapes = (((*batch, n, n), a.dtype), ((*batch, n), a.dtype), ((*batch, n), a.dtype), ((*batch, n), jnp.int32))
    fill = functools.partial(_by_lapack, hermitian=hermitian)
    portable = functools.partial(_by_panels, hermitian=hermitian)
    lower, main, off_diagonal, perm = on_cpu(fill, portable, tuple(jax.ShapeDtypeStruct(*s) for s in shapes), a)
    lower = triangles.with_diagonal(jnp.tril(lower, -1), 1)
    below = off_diagonal[..., :-1]
    diagonals = {-1: below, 0: main, 1: below.conj() if hermitian else below}
    offsets = (-1, 0, 1) if a.shape[-1] > 1 else (0,)
    return lower, bands.to_dense([diagonals[k] for k in offsets], offsets, a.shape[-2:]), perm


def _by_lapack(
    lower: np.ndarray, main: np.ndarray, off_diagonal: np.ndarray, perm: np.ndarray, a: np.ndarray, *, hermitian: bool
) -> None:
    """Factor stacks of matrices by LAPACK; a matrix with an element that is not finite has NaN for all elements. `lower`
    has other elements on and above the diagonal.
    """
    from scipy.linalg import get_lapack_funcs  # type: ignore[import-untyped]  # SciPy has no type stubs

    n = a.shape[-1]
    name = "hetrf" if hermitian and np.iscomplexobj(a) else "sytrf"
    factor, query, convert = get_lapack_funcs((name, f"{name}_lwork", "syconv"), (a,))
    size = int(query(n, lower=1)[0].real)
    for i in np.ndindex(*a.shape[:-2]):
        largest = np.max(np.abs(a[i].view(a.real.dtype)))
        if not np.isfinite(largest):
            lower[i], main[i], off_diagonal[i], perm[i] = np.nan, np.nan, 0, np.arange(n)
            continue
        scale = _scale(largest)
        factors, pivots, _ = factor(np.array(a[i] * scale, order="F"), lower=1, lwork=size, overwrite_a=1)
        main[i] = np.diagonal(factors) / scale
        factors, below, _ = convert(factors, pivots, lower=1, overwrite_a=1)
        off_diagonal[i] = below / scale
        lower[i] = factors
        perm[i] = _order(pivots)


def _scale(largest: np.floating) -> np.floating:
    """Return a power of two that makes huge matrices smaller, so that no product overflows."""
    exponent, limit = int(np.frexp(largest)[1]), np.finfo(largest.dtype).maxexp // 4
    return largest.dtype.type(2.0**-exponent if exponent > limit else 1.0)


def _order(pivots: np.ndarray) -> list[int]:
    """Return the order of the rows. LAPACK stores, from one on, the row that each step exchanges with the pivot; negative
    in both rows of a block, whose second row is exchanged.
    """
    order, rows = list(range(len(pivots))), pivots.tolist()
    k = 0
    while k < len(rows):
        row = rows[k]
        k += row < 0
        other = abs(row) - 1
        order[k], order[other] = order[other], order[k]
        k += 1
    return order


def _by_panels(a: Array, *, hermitian: bool) -> tuple[Array, ...]:
    factor = functools.partial(_factor, hermitian=hermitian)
    lower, main, off_diagonal, perm = jnp.vectorize(factor, signature="(n,n)->(n,n),(n),(n),(n)")(a)
    return lower, main, off_diagonal, perm.astype(jnp.int32)


def _factor(a: Array, hermitian: bool) -> tuple[Array, Array, Array, Array]:
    """Factor one matrix with pivots of one or two rows, in panels of columns. One product per panel updates the rest
    (LAPACK's ``lasyf``).

    Rows are not moved, since exchanges would copy the matrix; `perm` and `position` contain their order. The number of
    steps of all loops depends only on the shape, so that the loops of a stack are one loop.
    """
    n = a.shape[0]
    width = min(_WIDTH, n)

    def conjugated(x: Array) -> Array:
        return x.conj() if hermitian else x

    def step(k: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        """Process the pivot at k, unless it is the second row of the previous pivot.

        `left` and `scaled` are L and L D in the panel. Their future columns are zero.
        """
        start, inside, a, left, scaled, main, off_diagonal, perm, position = state

        def column(i: Array) -> Array:
            return conjugated(a[i]) - left @ conjugated(scaled[i])

        own = column(perm[k])
        size = jnp.where(position > k, _size(own), -1)
        # Take the first of several largest entries, as LAPACK does. NaN compares as false.
        r = perm[jnp.min(jnp.where((size == jnp.max(size)) & (position > k), position, n - 1))]
        other = column(r)
        stay, two = _pivot(_size(own), _size(other), perm[k], r, position)
        stay, two = stay | inside, two & ~inside
        last, after = k + two, jnp.minimum(k + 1, n - 1)
        perm, position = _exchanged(perm, position, last, jnp.where(stay, k, position[r]))
        columns = jnp.stack([jnp.where(stay | two, own, other), jnp.where(two, other, 0)], 1)
        # A block of one row is treated as a block of two with off-diagonal zeros, so that both use the same code.
        block = _block(columns[perm[jnp.stack([k, after])]], two, hermitian)
        below = (position > last) & ~inside
        columns = jnp.where(below[:, None], columns, 0)
        place = (0, k - start)
        left = _added(left, jnp.where(below[:, None], columns @ _inverse(block, two), 0), place)
        scaled = _added(scaled, columns, place)
        main = main.at[k].add(jnp.where(inside, 0, block[0, 0])).at[after].add(jnp.where(two, block[1, 1], 0))
        off_diagonal = off_diagonal.at[k].set(jnp.where(two, block[1, 0], 0))
        return start, two, a, left, scaled, main, off_diagonal, perm, position

    def panel(i: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        inside, a, lower, *others = state
        start, nothing = i * width, jnp.zeros((n, width + 1), a.dtype)
        state = (start, inside, a, nothing, nothing, *others)
        state = lax.fori_loop(start, jnp.minimum(start + width, n), step, state)
        _, inside, a, left, scaled, *others = state
        return inside, a - left @ conjugated(scaled).mT, _added(lower, left, (0, start)), *others

    zero, places = jnp.zeros(n, a.dtype), jnp.arange(n)
    count = -(-n // width)
    state = (jnp.array(False), a, jnp.zeros((n, count * width + 1), a.dtype), zero, zero, places, places)
    _, _, lower, main, off_diagonal, perm, _ = lax.fori_loop(0, count, panel, state)
    return lower[perm, :n], main, off_diagonal, perm


def _added(x: Array, part: Array, corner: tuple[int | Array, int | Array]) -> Array:
    """Add to a part of the array."""
    old = lax.dynamic_slice(x, corner, part.shape)
    return lax.dynamic_update_slice(x, old + part, corner)


def _exchanged(perm: Array, position: Array, i: Array, j: Array) -> tuple[Array, Array]:
    """Exchange two rows in the order of the rows and in its inverse."""
    first, second = perm[i], perm[j]
    return perm.at[i].set(second).at[j].set(first), position.at[first].set(j).at[second].set(i)


def _pivot(column: Array, other: Array, p: Array, r: Array, position: Array) -> tuple[Array, Array]:
    """Return whether the pivot stays in place, and whether it has two rows; otherwise row r is exchanged with row p.

    `column` and `other` are the magnitudes of columns p and r of the remaining matrix. Row r has the largest entry
    below p.
    """
    k = position[p]
    own, largest = column[p], jnp.where(position[r] > k, column[r], 0)
    largest_other = jnp.max(jnp.where((position >= k) & (position != position[r]), other, 0))
    # The quotient is at most one, whereas squares may overflow.
    stay = (own >= _ALPHA * largest) | (
        own >= _ALPHA * largest * (largest / jnp.where(largest_other > 0, largest_other, 1))
    )
    one = stay | (other[r] >= _ALPHA * largest_other)
    # NaN compares as false, and must not request a second row after the last one.
    two = ~one & (k + 1 < len(position))
    return stay | ~(two | one), two


def _size(z: Array) -> Array:
    """Magnitude as LAPACK compares it, so that the pivots agree."""
    return jnp.abs(z.real) + jnp.abs(z.imag)


def _block(rows: Array, two: Array, hermitian: bool) -> Array:
    """The pivot block, made exactly Hermitian (symmetric), since deviations would grow from pivot to pivot."""
    (a, _), (b, c) = rows
    above, (a, c) = (b.conj(), (a.real, c.real)) if hermitian else (b, (a, c))
    return jnp.where(two, jnp.array([[a, above], [b, c]]), jnp.array([[a, 0], [0, 0]]))


def _inverse(block: Array, two: Array) -> Array:
    """Inverse of a block of two rows, or of the number in its corner; zero for a zero block, since all entries below
    are zero.

    The block is scaled first. Otherwise the determinant of small complex numbers, and squares in a division by it,
    would be subnormal.
    """
    scale = jnp.max(_size(block))
    scale = jnp.where(scale > 0, scale, 1)  # NaN compares as false, and stays in the block
    (a, b), (c, d) = block / scale
    determinant = a * d - b * c
    one = jnp.where(a == 0, 0, 1 / jnp.where(a == 0, 1, a))
    both = jnp.array([[d, -b], [-c, a]]) / jnp.where(two, determinant, 1)
    return jnp.where(two, both, jnp.zeros_like(block).at[0, 0].set(one)) / scale


@ldl.defjvp
def _ldl_jvp(
    hermitian: bool, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    # Derivative for constant pivots: the diagonal blocks of S = L^-1 dA L^-H are dD, and the rest below is L^-1 dL D.
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
