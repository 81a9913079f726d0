"""Block-tridiagonal and banded linear systems in a logarithmic number of steps, for devices on which loops over the rows are slow.

Block cyclic reduction (D. Heller, "Some aspects of the cyclic reduction algorithm for block tridiagonal linear systems", SIAM J.
Numer. Anal. 13, 1976; G. Golub and C. Van Loan, "Matrix Computations", 4th ed., 4.5.4; W. Gander and G. Golub, "Cyclic reduction:
history and applications", 1997) eliminates the unknowns of every other block row at once. The result is a block-tridiagonal matrix
of half the size. This is elimination in another order, whose steps are batches of dense operations. For N block rows of m × m blocks it
takes O(N m**3) operations and O(N m**2) memory in ``log2(N) + 1`` levels.

Rows are exchanged only within blocks, so that the result may be inaccurate. Therefore each function also returns whether its result is
accurate (`trusted`), and `or_in_order` falls back to sequential elimination.

A *level* has f odd block rows and f + 1 even ones (identity blocks are appended if necessary). It eliminates the even block rows::

    x_even[j] = inverse[j] b_even[j] - ahead[j] [x_odd[j - 1]; x_odd[j]]    ahead[j] = inverse[j] off_diagonal[j]
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from . import banded_rows, determinants
from .flags import custom_jvp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    T = TypeVar("T")

# The backward error, in units of rounding, up to which results are accepted. It also limits the norm of products of
# factors relative to the matrix, as in `banded_lu`.
_BACKWARD_ERROR = 16

# A pivot below this number of rounding errors of the terms that it is a difference of may consist of rounding errors;
# the matrix may be singular.
_CANCELLATION = 64


class Level(NamedTuple):
    """One level of the reduction, of `count` block rows and possibly an identity block."""

    count: int  # type: ignore[assignment]  # in the place of the method of tuples
    pivot: jax.Array
    """The diagonal blocks of the even rows, (..., f + 1, m, m)."""
    inverse: jax.Array
    """The inverses of the pivots."""
    factors: jax.Array
    """Values whose product is the determinant of each pivot, (..., f + 1, m)."""
    off_diagonal: jax.Array
    """The off-diagonal blocks of the even rows, left and right, (..., f + 1, m, 2 m)."""
    ahead: jax.Array
    """``inverse @ off_diagonal``, refined once."""
    left: jax.Array
    """The blocks of the odd rows to the left of the diagonal, (..., f, m, m)."""
    right: jax.Array
    """The blocks of the odd rows to the right of the diagonal."""


def has_accelerator() -> bool:
    """Return whether the default device is not a CPU."""
    return jax.default_backend() != "cpu"


def or_in_order(in_order: Callable[..., T], log_depth: Callable[..., tuple[T, jax.Array]]) -> Callable[..., T]:
    """Return the faster of two functions with the same arguments on this device; a call returns the results of
    `in_order`.

    On a CPU this is `in_order`, whose loops over the rows are fast there. Other devices use `log_depth`, if it trusts
    its results (see `checked`).
    """
    # Without an accelerator `log_depth` is not traced: tracing it would take longer than compiling `in_order`.
    if not has_accelerator():
        return in_order
    return lambda *args: lax.platform_dependent(*args, cpu=in_order, default=checked(in_order, log_depth))


def for_device(
    method: Callable[..., tuple[jax.Array, jax.Array]],
    factor: Callable[..., tuple[jax.Array, ...]] | None,
    log_depth: Callable[..., tuple[tuple[jax.Array, jax.Array], jax.Array]],
) -> tuple[Callable[..., tuple[jax.Array, jax.Array]], Callable[..., tuple[jax.Array, ...]] | None]:
    """Return a method for this device, and the function that factors the matrix for it, as arguments of
    `banded_systems.solve`.

    Parameters
    ----------
    method, factor
        The sequential method and its factorization; `factor` may be None.
    log_depth : callable
        Maps the arguments of a method without factors to ``(x, ok), trusted``.
    """
    # Only the sequential method factors the matrix once for all of its linear systems.
    if not has_accelerator():
        return method, factor

    def in_order(*args: jax.Array, transposed: bool) -> tuple[jax.Array, jax.Array]:
        *matrix, b = args
        factors = factor(*matrix) if factor else ()
        return method(*matrix, *factors, b, transposed=transposed)

    def either(*args: jax.Array, transposed: bool) -> tuple[jax.Array, jax.Array]:
        ways: Iterable[Callable[..., Any]] = (
            functools.partial(way, transposed=transposed) for way in (in_order, log_depth)
        )
        results: tuple[jax.Array, jax.Array] = or_in_order(*ways)(*args)
        return results

    return either, None


def explanation(m: int) -> str:
    """Describe the method for blocks of m rows and its cost: a sentence for users."""
    return f"block cyclic reduction, O(n m**2) in about log2(n / m) steps, m = {m}; sequential elimination if the backward error is large"


def checked(in_order: Callable[..., T], log_depth: Callable[..., tuple[T, jax.Array]]) -> Callable[..., T]:
    """Combine `log_depth`, which returns ``results, trusted``, with `in_order` as the fallback for results that are not
    trusted.

    So `in_order` decides about singular matrices, NaN, and matrices that need exchanges between blocks. One such matrix
    sends the whole batch there.
    """

    @custom_jvp
    def function(*args: jax.Array) -> T:
        results, trusted = log_depth(*args)
        chosen: T = lax.cond(trusted, lambda *args: results, in_order, *args)
        return chosen

    @function.defjvp
    def derivative(primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]) -> tuple[T, T]:
        # The derivative of results that are not trusted may be NaN, and NaN times zero is not zero.
        _, trusted = log_depth(*primals)
        ways: Iterable[Callable[..., Any]] = (lambda *args: log_depth(*args)[0], in_order)
        both = (lambda primals, tangents, way=way: jax.jvp(way, primals, tangents) for way in ways)
        chosen: tuple[T, T] = lax.cond(trusted, *both, primals, tangents)
        return chosen

    return function


# ---- banded matrices -----------------------------------------------------------------------------------------------


def solve_banded(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int, b: jax.Array, positive_definite: bool = False
) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
    """Solve ``A x = b`` for a banded matrix in O(n w**2) operations and O(n w) memory, with w diagonals on either side.

    Parameters
    ----------
    diagonals, offsets, n
        The matrix, of the dtype and the batch shape of `b`, with at least one diagonal.
    b : jax.Array, (..., n, k)
    positive_definite : bool
        Whether ``A`` is known to be Hermitian positive definite. Then the entries above the diagonal are not read.

    Returns
    -------
    (x, ok) : (jax.Array, (..., n, k), jax.Array, bool scalar)
        The solution, and whether all matrices are regular (positive definite), which `trusted` implies.
    trusted : jax.Array, bool scalar
        See `solve`.
    """
    if positive_definite:
        pairs = [(d, k) for d, k in zip(diagonals, offsets, strict=True) if k <= 0]
        pairs = [(d.real.astype(d.dtype) if k == 0 else d, k) for d, k in pairs]
        pairs += [(d.conj(), -k) for d, k in reversed(pairs) if k]
        diagonals, offsets = zip(*pairs, strict=True)
    rows = banded_rows.from_diagonals(diagonals, offsets, n, b.dtype)
    matrix = blocks_of_rows(rows, *banded_rows.bandwidths(offsets))
    count, m = matrix[0].shape[-3:-1]
    padded = jnp.pad(b, [(0, 0)] * (b.ndim - 2) + [(0, count * m - n), (0, 0)])
    x, trusted = solve(*matrix, padded.reshape(*b.shape[:-2], count, m, b.shape[-1]), positive_definite)
    return (x.reshape(padded.shape)[..., :n, :], jnp.array(True)), trusted


def slogdet_banded(
    rows: jax.Array, kl: int, ku: int, gradient: bool = False
) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """Sign and logarithm of the determinant of a banded matrix in row storage, (..., n, kl + ku + 1).

    Returns
    -------
    results : tuple of jax.Array
        The sign (...), the logarithm (...) and, if `gradient`, its derivative by `rows`.
    trusted : jax.Array, bool scalar
        See `is_stable`.
    """
    n = rows.shape[-2]
    matrix = blocks_of_rows(rows, kl, ku)
    levels, regular = reduce(*matrix)
    factors = jnp.concatenate([level.factors for level in levels], -2)
    results: tuple[jax.Array, ...] = determinants.sign_and_logarithm(factors, (-2, -1))
    if gradient:
        # Its entry (i, j) is inv(A)[j, i].
        lower, diagonal, upper = selected_inverse(levels)
        blocks = shifted(upper, 1).mT, diagonal.mT, shifted(lower, -1).mT
        middle = 2 * diagonal.shape[-1] - 1
        results = (*results, rows_of_blocks(*blocks)[..., :n, middle - kl : middle + ku + 1])
    return results, regular & is_stable(levels, matrix)


def blocks_of_rows(rows: jax.Array, kl: int, ku: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Convert a banded matrix to blocks.

    Parameters
    ----------
    rows : jax.Array, (..., n, kl + ku + 1)
        Row storage, as in `banded_rows`.
    kl, ku : int
        Numbers of sub- and superdiagonals.

    Returns
    -------
    lower, diagonal, upper : jax.Array, (..., N, m, m)
        As in `reduce`, with ``m = max(kl, ku, 1)`` and ``N = ceil(n / m)``. The last block is padded by the identity.
    """
    *batch, n, _ = rows.shape
    m = max(kl, ku, 1)
    count = -(-n // m)
    none = [(0, 0)] * len(batch)
    rows = jnp.pad(rows, [*none, (0, 0), (m - kl, m - ku)])
    identity = jnp.zeros((count * m - n, 2 * m + 1), rows.dtype).at[:, m].set(1)
    rows = jnp.concatenate([rows, jnp.broadcast_to(identity, (*batch, *identity.shape))], -2)
    # Row r of a block begins r columns to the right of row 0. Reading rows that are longer by one in flat storage gives
    # this shift.
    rows = jnp.pad(rows, [*none, (0, 0), (0, m)]).reshape(*batch, count, m * (3 * m + 1))
    panels = rows[..., : 3 * m * m].reshape(*batch, count, m, 3 * m)
    return panels[..., :m], panels[..., m : 2 * m], panels[..., 2 * m :]


def rows_of_blocks(lower: jax.Array, diagonal: jax.Array, upper: jax.Array) -> jax.Array:
    """Inverse of `blocks_of_rows`, with all entries of the blocks: (..., N m, 4 m - 1), for ``2 m - 1`` diagonals on
    either side.
    """
    *batch, count, m, _ = diagonal.shape
    none = [(0, 0)] * len(batch)
    panels = jnp.pad(jnp.concatenate([lower, diagonal, upper], -1), [*none, (0, 0), (0, 0), (0, m - 1)])
    flat = jnp.pad(panels.reshape(*batch, count, m * (4 * m - 1)), [*none, (0, 0), (m - 1, 1)])
    return flat.reshape(*batch, count * m, 4 * m)[..., :-1]


# ---- block-tridiagonal matrices ------------------------------------------------------------------------------------


def solve(
    lower: jax.Array, diagonal: jax.Array, upper: jax.Array, b: jax.Array, positive_definite: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b`` for a block-tridiagonal matrix, refine the solution once, and check the residual.

    Parameters
    ----------
    lower, diagonal, upper : jax.Array, (..., N, m, m)
        The blocks of each row; the first of `lower` and the last of `upper` are zero.
    b : jax.Array, (..., N, m, k)
    positive_definite : bool
        Whether ``A`` is known to be Hermitian positive definite.

    Returns
    -------
    x : jax.Array, (..., N, m, k)
    trusted : jax.Array, bool scalar
        Whether, for all matrices, no pivot is near zero (all are positive), and no entry of the residual exceeds 16 rounding errors of
        ``|A| |x| + |b|``. This test does not depend on the scaling of rows and columns. False for NaN.
    """
    levels, regular = reduce(lower, diagonal, upper, positive_definite)
    matrix = jnp.concatenate([lower, diagonal, upper], -1)

    x = substitute(levels, b)
    x = x + substitute(levels, b - product(matrix, x))
    precision = jnp.finfo(b.dtype)
    # Entries of x that underflow have no relative precision.
    largest = product(jnp.abs(matrix), jnp.abs(x) + precision.tiny / precision.eps) + jnp.abs(b)
    small = jnp.abs(b - product(matrix, x)) <= _BACKWARD_ERROR * precision.eps * largest
    return x, regular & jnp.all(small & jnp.isfinite(largest))


def product(panels: jax.Array, x: jax.Array) -> jax.Array:
    """Product of a block-tridiagonal matrix, whose rows of blocks are concatenated (..., N, m, 3 m), and x
    (..., N, m, k).
    """
    return _times(panels, jnp.concatenate([shifted(x, 1), x, shifted(x, -1)], -2))


def reduce(
    lower: jax.Array, diagonal: jax.Array, upper: jax.Array, positive_definite: bool = False
) -> tuple[list[Level], jax.Array]:
    """Eliminate all block rows, level by level.

    Parameters
    ----------
    lower, diagonal, upper : jax.Array, (..., N, m, m)
        The blocks of each row; the first of `lower` and the last of `upper` are zero.

    Returns
    -------
    levels : list of Level
    regular : jax.Array, bool scalar
        Whether no pivot of any matrix is near zero (all are positive). False for NaN.
    """
    m = diagonal.shape[-1]
    tiny = _CANCELLATION * jnp.finfo(diagonal.dtype).eps
    size = jnp.max(jnp.abs(diagonal), (-2, -1))  # the largest size of the entries of each diagonal block so far
    regular = jnp.array(True)
    levels = []
    while count := diagonal.shape[-3]:
        size = _odd_length(size, -1, 1)
        off_diagonal = _odd_length(jnp.concatenate([lower, upper], -1), -3, 0)
        diagonal = _odd_length(diagonal, -3, jnp.eye(m, dtype=diagonal.dtype))
        (pivot, diagonal), (off_diagonal, others) = _halves(diagonal), _halves(off_diagonal)
        inverse, factors = _inverse(pivot, positive_definite)
        regular = regular & jnp.all(jnp.abs(factors) > tiny * size[..., ::2, None])
        ahead = _times(inverse, off_diagonal)
        # A product with an inverse has an error proportional to the condition number of the block. The complements
        # should be more accurate.
        ahead = ahead + _times(inverse, off_diagonal - _times(pivot, ahead))
        left, right = others[..., :m], others[..., m:]
        levels.append(Level(count, pivot, inverse, factors, off_diagonal, ahead, left, right))
        from_left, from_right = _times(left, ahead[..., :-1, :, :]), _times(right, ahead[..., 1:, :, :])
        lower, upper = -from_left[..., :m], -from_right[..., m:]
        diagonal = diagonal - from_left[..., m:] - from_right[..., :m]
        size = jnp.maximum(size[..., 1::2], jnp.max(jnp.abs(diagonal), (-2, -1), initial=0))
    return levels, regular


def substitute(levels: Sequence[Level], b: jax.Array) -> jax.Array:
    """Solve ``A x = b``, (..., N, m, k), with the levels of `reduce`."""
    reduced = []
    for level in levels:
        even, b = _halves(_odd_length(b, -3, 0))
        own = _times(level.inverse, even)
        reduced.append(own)
        b = b - _times(level.left, own[..., :-1, :, :]) - _times(level.right, own[..., 1:, :, :])
    x = b  # no rows
    for level, own in zip(levels[::-1], reduced[::-1], strict=True):
        even = own - _times(level.ahead, jnp.concatenate([_padded(x, 1, 0), _padded(x, 0, 1)], -2))
        x = _interleaved(even, x)[..., : level.count, :, :]
    return x


def selected_inverse(levels: Sequence[Level]) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the blocks of the inverse at the positions of the blocks of a block-tridiagonal matrix, from the levels of
    `reduce`.

    The inverse of the odd rows is a part of the inverse of the whole matrix. The even rows follow from it (block by
    block this is the recursion of Takahashi, see `banded_lu.logdet_gradient`). With K the part at the two odd rows
    around an even row::

        Z[even, odd] = -ahead K     Z[odd, even] = -K [right; left] inverse     Z[even, even] = inverse + ahead K [right; left] inverse

    Returns
    -------
    lower, diagonal, upper : jax.Array, (..., N, m, m)
    """
    m = levels[0].pivot.shape[-1]
    lower = diagonal = upper = levels[-1].left  # no rows
    for level in levels[::-1]:
        above = jnp.concatenate([_padded(diagonal, 1, 0), _padded(upper, 1, 0)], -1)
        below = jnp.concatenate([_padded(lower, 0, 1), _padded(diagonal, 0, 1)], -1)
        around = jnp.concatenate([above, below], -2)
        behind = _times(jnp.concatenate([_padded(level.right, 1, 0), _padded(level.left, 0, 1)], -2), level.inverse)
        to_odd, from_odd = -_times(level.ahead, around), -_times(around, behind)
        middle = level.inverse - _times(to_odd, behind)
        lower = _interleaved(to_odd[..., :m], from_odd[..., :-1, m:, :])[..., : level.count, :, :]
        upper = _interleaved(to_odd[..., m:], from_odd[..., 1:, :m, :])[..., : level.count, :, :]
        diagonal = _interleaved(middle, diagonal)[..., : level.count, :, :]
    return lower, diagonal, upper


def is_stable(levels: Sequence[Level], matrix: Sequence[jax.Array]) -> jax.Array:
    """Return whether the factors belong to a matrix that differs from the given one by rounding errors, in the infinity
    norm.

    The factors of a level are ``[pivot, 0; others, rest]`` and ``[1, ahead; 0, 1]``. The residual
    ``off_diagonal - pivot ahead`` is computed; the error of ``rest`` is the unit of rounding times ``|others| |ahead|``.
    """
    norms = jnp.max(_row_sums(jnp.concatenate(matrix, -1)), (-3, -2, -1))
    allowed = _BACKWARD_ERROR * norms[..., None, None, None]
    stable = jnp.array(True)
    for level in levels:
        error = _row_sums(level.off_diagonal - _times(level.pivot, level.ahead))
        sums = _row_sums(level.ahead)
        product = _times(jnp.abs(level.left), sums[..., :-1, :, :]) + _times(jnp.abs(level.right), sums[..., 1:, :, :])
        small = jnp.all(error <= jnp.finfo(error.dtype).eps * allowed) & jnp.all(product <= allowed)
        stable = stable & small
    return stable & jnp.all(jnp.isfinite(norms))


# ---- blocks --------------------------------------------------------------------------------------------------------


def _inverse(blocks: jax.Array, positive_definite: bool) -> tuple[jax.Array, jax.Array]:
    """Inverses of dense blocks, and values (..., m) whose product is the determinant; NaN if not positive definite."""
    if positive_definite:
        identity = jnp.broadcast_to(jnp.eye(blocks.shape[-1], dtype=blocks.dtype), blocks.shape)
        factor = lax.linalg.cholesky(blocks, symmetrize_input=False)
        y = lax.linalg.triangular_solve(factor, identity, left_side=True, lower=True)
        return _times(y.mT.conj(), y), main_diagonals(factor) ** 2
    lu, exchanges, permutation = lax.linalg.lu(blocks)
    places = jnp.arange(blocks.shape[-1])
    permuted = (permutation[..., None] == places).astype(lu.dtype)
    y = lax.linalg.triangular_solve(lu, permuted, left_side=True, lower=True, unit_diagonal=True)
    # An odd number of exchanges changes the sign of the determinant: negate the first factor.
    odd = jnp.sum(exchanges != places, -1, keepdims=True) % 2 == 1
    factors = jnp.where((places == 0) & odd, -1, 1).astype(lu.dtype) * main_diagonals(lu)
    return lax.linalg.triangular_solve(lu, y, left_side=True, lower=False), factors


def _times(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the products of blocks.

    On a GPU, XLA (jaxlib 0.10 and 0.11) aborts the process if it fuses a product with two slices of an operand (docs/design/jax_bugs.md).
    The precision forbids the format TF32, which has 11 bits.
    """
    return jnp.matmul(lax.optimization_barrier(a), lax.optimization_barrier(b), precision=lax.Precision.HIGHEST)


def main_diagonals(blocks: jax.Array) -> jax.Array:
    """The diagonals (..., m) of blocks (..., m, m)."""
    result: jax.Array = jnp.diagonal(blocks, axis1=-2, axis2=-1)
    return result


def _row_sums(blocks: jax.Array) -> jax.Array:
    return jnp.sum(jnp.abs(blocks), -1, keepdims=True)


def _halves(blocks: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the blocks at even and at odd positions."""
    return blocks[..., ::2, :, :], blocks[..., 1::2, :, :]


def _interleaved(even: jax.Array, odd: jax.Array) -> jax.Array:
    """Interleave even and odd blocks, the inverse of `_halves`. The result has one block more than needed."""
    both = jnp.stack([even, _padded(odd, 0, 1)], -3)
    return both.reshape(*both.shape[:-4], both.shape[-4] * both.shape[-3], *both.shape[-2:])


def _odd_length(a: jax.Array, axis: int, fill: jax.Array | float) -> jax.Array:
    """Append one element if the number of elements along the axis is even."""
    if a.shape[axis] % 2:
        return a
    shape = list(a.shape)
    shape[axis] = 1
    return jnp.concatenate([a, jnp.broadcast_to(jnp.asarray(fill, a.dtype), shape)], axis)


def _padded(blocks: jax.Array, before: int, behind: int) -> jax.Array:
    """Pad with blocks of zeros before and behind."""
    return jnp.pad(blocks, [(0, 0)] * (blocks.ndim - 3) + [(before, behind), (0, 0), (0, 0)])


def shifted(blocks: jax.Array, by: int) -> jax.Array:
    """Move each block to the next (``by=1``) or previous (``by=-1``) position; fill with zeros."""
    return _padded(blocks[..., :-1, :, :], 1, 0) if by == 1 else _padded(blocks[..., 1:, :, :], 0, 1)
