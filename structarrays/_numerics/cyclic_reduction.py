"""Block-tridiagonal and banded systems in a logarithmic number of steps, for devices on which a loop over the rows is slow.

Block cyclic reduction (D. Heller, "Some aspects of the cyclic reduction algorithm for block tridiagonal linear systems", SIAM J.
Numer. Anal. 13, 1976; G. Golub and C. Van Loan, "Matrix Computations", 4th ed., 4.5.4; W. Gander and G. Golub, "Cyclic reduction:
history and applications", 1997) eliminates the unknowns of every other block row at once. What stays is a block-tridiagonal matrix
of half the size: elimination in another order, whose steps are batches of dense ones. For N block rows of m × m blocks these are
O(N m**3) operations and O(N m**2) memory in ``log2(N) + 1`` levels.

Rows are exchanged inside of blocks only. So nothing here promises a result: each function returns beside it whether it can be trusted, and
`or_in_order` takes another way where it cannot.

A *level* has f odd block rows and f + 1 even ones (blocks of the identity are appended where that is not so). It eliminates the latter::

    x_even[j] = inverse[j] b_even[j] - ahead[j] [x_odd[j - 1]; x_odd[j]]    ahead[j] = inverse[j] beside[j]
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from . import banded_rows, determinants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    T = TypeVar("T")

# Backward error in units of rounding up to which results are trusted; also how much larger than the matrix, by norm, the products of its factors
# may be. As in `banded_lu`.
_BACKWARD_ERROR = 16

# A pivot below this many units of rounding of what it is a difference of may be all rounding, and the matrix singular.
_CANCELLATION = 64


class Level(NamedTuple):
    """One level of the reduction, of `count` block rows and perhaps one of the identity."""

    count: int  # type: ignore[assignment]  # in the place of the method of tuples
    pivot: jax.Array
    """The diagonal blocks of the even rows, (..., f + 1, m, m)."""
    inverse: jax.Array
    """Of these."""
    factors: jax.Array
    """Numbers whose product is the determinant of each, (..., f + 1, m)."""
    beside: jax.Array
    """The blocks of the even rows to the left and to the right of the diagonal, (..., f + 1, m, 2 m)."""
    ahead: jax.Array
    """``inverse @ beside``, refined once."""
    left: jax.Array
    """The blocks of the odd rows to the left of the diagonal, (..., f, m, m)."""
    right: jax.Array
    """And to the right."""


def has_accelerator() -> bool:
    """Whether the default device is no CPU."""
    return jax.default_backend() != "cpu"


def or_in_order(in_order: Callable[..., T], log_depth: Callable[..., tuple[T, jax.Array]]) -> Callable[..., T]:
    """The one of two functions with the same arguments that is fast on this device, a call of which gives the results of `in_order`.

    On a CPU that is `in_order`, whose loops over the rows are fast there; elsewhere `log_depth`, if it trusts its results (see `checked`).
    """
    # Without an accelerator the other way is not even traced, which would take longer than to compile this one.
    if not has_accelerator():
        return in_order
    return lambda *args: lax.platform_dependent(*args, cpu=in_order, default=checked(in_order, log_depth))


def for_device(
    method: Callable[..., tuple[jax.Array, jax.Array]],
    factor: Callable[..., tuple[jax.Array, ...]] | None,
    log_depth: Callable[..., tuple[tuple[jax.Array, jax.Array], jax.Array]],
) -> tuple[Callable[..., tuple[jax.Array, jax.Array]], Callable[..., tuple[jax.Array, ...]] | None]:
    """How to solve systems on this device: a method, and what factors the matrix for it, as `banded_systems.solve` takes them.

    Parameters
    ----------
    method, factor
        Those that solve in order; `factor` may be None.
    log_depth : callable
        With the arguments of a method without factors, to ``(x, ok), trusted``.
    """
    # In order alone the matrix is factored once for all of its systems.
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
    """What this does for blocks of m rows, and what it costs: a sentence for users."""
    return (
        f"block cyclic reduction, O(n m**2) in some log2(n / m) steps, m = {m}; in order if its backward error is large"
    )


def checked(in_order: Callable[..., T], log_depth: Callable[..., tuple[T, jax.Array]]) -> Callable[..., T]:
    """`log_depth`, which returns ``results, trusted``, with `in_order` for what it does not trust.

    So `in_order` decides about singular matrices, NaN, and all that needs exchanges of rows of different blocks. One such
    matrix sends the whole batch there.
    """

    def function(*args: jax.Array) -> T:
        results, trusted = log_depth(*args)
        chosen: T = lax.cond(trusted, lambda *args: results, in_order, *args)
        return chosen

    return function


# ---- banded matrices -----------------------------------------------------------------------------------------------


def solve_banded(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int, b: jax.Array, positive_definite: bool = False
) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
    """Solve ``A x = b`` for a banded matrix: O(n w**2) operations and O(n w) memory for w diagonals on either side.

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
        Whether all matrices are regular (positive definite), which is so if `trusted`.
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
    x, trusted = solve(*matrix, padded.reshape(*b.shape[:-2], count, m, -1), positive_definite)
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
    """The blocks of a banded matrix.

    Parameters
    ----------
    rows : jax.Array, (..., n, kl + ku + 1)
        Row storage, as in `banded_rows`.
    kl, ku : int
        Numbers of sub- and superdiagonals.

    Returns
    -------
    lower, diagonal, upper : jax.Array, (..., N, m, m)
        As `reduce` takes them, with ``m = max(kl, ku, 1)`` and ``N = ceil(n / m)``. The last block is filled up by the identity.
    """
    *batch, n, _ = rows.shape
    m = max(kl, ku, 1)
    count = -(-n // m)
    none = [(0, 0)] * len(batch)
    rows = jnp.pad(rows, [*none, (0, 0), (m - kl, m - ku)])
    identity = jnp.zeros((count * m - n, 2 * m + 1), rows.dtype).at[:, m].set(1)
    rows = jnp.concatenate([rows, jnp.broadcast_to(identity, (*batch, *identity.shape))], -2)
    # Row r of a block begins r columns to the right of row 0: rows that are longer by one, read in flat storage, do.
    rows = jnp.pad(rows, [*none, (0, 0), (0, m)]).reshape(*batch, count, m * (3 * m + 1))
    panels = rows[..., : 3 * m * m].reshape(*batch, count, m, 3 * m)
    return panels[..., :m], panels[..., m : 2 * m], panels[..., 2 * m :]


def rows_of_blocks(lower: jax.Array, diagonal: jax.Array, upper: jax.Array) -> jax.Array:
    """The reverse, with all entries of the blocks: (..., N m, 4 m - 1), of ``2 m - 1`` diagonals on either side."""
    *batch, count, m, _ = diagonal.shape
    none = [(0, 0)] * len(batch)
    panels = jnp.pad(jnp.concatenate([lower, diagonal, upper], -1), [*none, (0, 0), (0, 0), (0, m - 1)])
    flat = jnp.pad(panels.reshape(*batch, count, m * (4 * m - 1)), [*none, (0, 0), (m - 1, 1)])
    return flat.reshape(*batch, count * m, 4 * m)[..., :-1]


# ---- block-tridiagonal matrices ------------------------------------------------------------------------------------


def solve(
    lower: jax.Array, diagonal: jax.Array, upper: jax.Array, b: jax.Array, positive_definite: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b`` for a block-tridiagonal matrix, refine the solution once, and look at what is left.

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
        Whether for all matrices no pivot is near to zero (all are positive), and no entry of the residual larger than 16 times the unit of
        rounding times ``|A| |x| + |b|``: this does not depend on how rows and columns are scaled. False for NaN.
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
    """The product of a block-tridiagonal matrix, its rows of blocks side by side (..., N, m, 3 m), with x (..., N, m, k)."""
    return panels @ jnp.concatenate([shifted(x, 1), x, shifted(x, -1)], -2)


def reduce(
    lower: jax.Array, diagonal: jax.Array, upper: jax.Array, positive_definite: bool = False
) -> tuple[list[Level], jax.Array]:
    """Eliminate, level by level, until nothing is left.

    Parameters
    ----------
    lower, diagonal, upper : jax.Array, (..., N, m, m)
        The blocks of each row; the first of `lower` and the last of `upper` are zero.

    Returns
    -------
    levels : list of Level
    regular : jax.Array, bool scalar
        Whether no pivot of any matrix is near to zero (all are positive). False for NaN.
    """
    m = diagonal.shape[-1]
    tiny = _CANCELLATION * jnp.finfo(diagonal.dtype).eps
    size = jnp.max(jnp.abs(diagonal), (-2, -1))  # the largest that the entries of a diagonal block have been
    regular = jnp.array(True)
    levels = []
    while count := diagonal.shape[-3]:
        size = _odd_length(size, -1, 1)
        beside = _odd_length(jnp.concatenate([lower, upper], -1), -3, 0)
        diagonal = _odd_length(diagonal, -3, jnp.eye(m, dtype=diagonal.dtype))
        (pivot, diagonal), (beside, others) = _halves(diagonal), _halves(beside)
        inverse, factors = _inverse(pivot, positive_definite)
        regular = regular & jnp.all(jnp.abs(factors) > tiny * size[..., ::2, None])
        ahead = inverse @ beside
        # A product with an inverse is off by the condition of the block; the complements should not be.
        ahead = ahead + inverse @ (beside - pivot @ ahead)
        left, right = others[..., :m], others[..., m:]
        levels.append(Level(count, pivot, inverse, factors, beside, ahead, left, right))
        from_left, from_right = left @ ahead[..., :-1, :, :], right @ ahead[..., 1:, :, :]
        lower, upper = -from_left[..., :m], -from_right[..., m:]
        diagonal = diagonal - from_left[..., m:] - from_right[..., :m]
        size = jnp.maximum(size[..., 1::2], jnp.max(jnp.abs(diagonal), (-2, -1), initial=0))
    return levels, regular


def substitute(levels: Sequence[Level], b: jax.Array) -> jax.Array:
    """Solve ``A x = b``, (..., N, m, k), from the levels of `reduce`."""
    reduced = []
    for level in levels:
        even, b = _halves(_odd_length(b, -3, 0))
        own = level.inverse @ even
        reduced.append(own)
        b = b - level.left @ own[..., :-1, :, :] - level.right @ own[..., 1:, :, :]
    x = b  # of no rows
    for level, own in zip(levels[::-1], reduced[::-1], strict=True):
        even = own - level.ahead @ jnp.concatenate([_padded(x, 1, 0), _padded(x, 0, 1)], -2)
        x = _interleaved(even, x)[..., : level.count, :, :]
    return x


def selected_inverse(levels: Sequence[Level]) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The blocks of the inverse of a block-tridiagonal matrix at the places of its own, from the levels of `reduce`.

    That of the odd rows is a part of the inverse of the whole matrix, from which its even rows follow (block by block this is the recursion of
    Takahashi, see `banded_lu.logdet_gradient`): with K the part at the two odd rows around an even one::

        Z[even, odd] = -ahead K     Z[odd, even] = -K [right; left] inverse     Z[even, even] = inverse + ahead K [right; left] inverse

    Returns
    -------
    lower, diagonal, upper : jax.Array, (..., N, m, m)
    """
    m = levels[0].pivot.shape[-1]
    lower = diagonal = upper = levels[-1].left  # of no rows
    for level in levels[::-1]:
        above = jnp.concatenate([_padded(diagonal, 1, 0), _padded(upper, 1, 0)], -1)
        below = jnp.concatenate([_padded(lower, 0, 1), _padded(diagonal, 0, 1)], -1)
        around = jnp.concatenate([above, below], -2)
        behind = jnp.concatenate([_padded(level.right, 1, 0), _padded(level.left, 0, 1)], -2) @ level.inverse
        to_odd, from_odd = -level.ahead @ around, -around @ behind
        middle = level.inverse - to_odd @ behind
        lower = _interleaved(to_odd[..., :m], from_odd[..., :-1, m:, :])[..., : level.count, :, :]
        upper = _interleaved(to_odd[..., m:], from_odd[..., 1:, :m, :])[..., : level.count, :, :]
        diagonal = _interleaved(middle, diagonal)[..., : level.count, :, :]
    return lower, diagonal, upper


def is_stable(levels: Sequence[Level], matrix: Sequence[jax.Array]) -> jax.Array:
    """Whether the factors are those of a matrix that differs from the given one by rounding, in the norm of the largest sum of a row.

    The factors of a level are ``[pivot, 0; others, rest]`` and ``[1, ahead; 0, 1]``. What is left of ``beside - pivot ahead`` is computed;
    the error of ``rest`` is the unit of rounding times ``|others| |ahead|``.
    """
    norms = jnp.max(_row_sums(jnp.concatenate(matrix, -1)), (-3, -2, -1))
    allowed = _BACKWARD_ERROR * norms[..., None, None, None]
    stable = jnp.array(True)
    for level in levels:
        error = _row_sums(level.beside - level.pivot @ level.ahead)
        sums = _row_sums(level.ahead)
        product = jnp.abs(level.left) @ sums[..., :-1, :, :] + jnp.abs(level.right) @ sums[..., 1:, :, :]
        small = jnp.all(error <= jnp.finfo(error.dtype).eps * allowed) & jnp.all(product <= allowed)
        stable = stable & small
    return stable & jnp.all(jnp.isfinite(norms))


# ---- blocks --------------------------------------------------------------------------------------------------------


def _inverse(blocks: jax.Array, positive_definite: bool) -> tuple[jax.Array, jax.Array]:
    """Inverses of dense blocks, and numbers (..., m) whose product is the determinant: NaN if not positive definite."""
    if positive_definite:
        identity = jnp.broadcast_to(jnp.eye(blocks.shape[-1], dtype=blocks.dtype), blocks.shape)
        factor = lax.linalg.cholesky(blocks, symmetrize_input=False)
        y = lax.linalg.triangular_solve(factor, identity, left_side=True, lower=True)
        return y.mT.conj() @ y, main_diagonals(factor) ** 2
    lu, exchanges, permutation = lax.linalg.lu(blocks)
    places = jnp.arange(blocks.shape[-1])
    permuted = (permutation[..., None] == places).astype(lu.dtype)
    y = lax.linalg.triangular_solve(lu, permuted, left_side=True, lower=True, unit_diagonal=True)
    # An odd number of exchanges changes the sign, here of the first factor.
    odd = jnp.sum(exchanges != places, -1, keepdims=True) % 2 == 1
    factors = jnp.where((places == 0) & odd, -1, 1).astype(lu.dtype) * main_diagonals(lu)
    return lax.linalg.triangular_solve(lu, y, left_side=True, lower=False), factors


def main_diagonals(blocks: jax.Array) -> jax.Array:
    """The diagonals (..., m) of blocks (..., m, m)."""
    result: jax.Array = jnp.diagonal(blocks, axis1=-2, axis2=-1)
    return result


def _row_sums(blocks: jax.Array) -> jax.Array:
    return jnp.sum(jnp.abs(blocks), -1, keepdims=True)


def _halves(blocks: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The blocks at even and at odd places."""
    return blocks[..., ::2, :, :], blocks[..., 1::2, :, :]


def _interleaved(even: jax.Array, odd: jax.Array) -> jax.Array:
    """The reverse, of one more even than odd ones; a block too many."""
    both = jnp.stack([even, _padded(odd, 0, 1)], -3)
    return both.reshape(*both.shape[:-4], -1, *both.shape[-2:])


def _odd_length(a: jax.Array, axis: int, fill: jax.Array | float) -> jax.Array:
    """With one more element behind, if they are an even number along the axis."""
    if a.shape[axis] % 2:
        return a
    shape = list(a.shape)
    shape[axis] = 1
    return jnp.concatenate([a, jnp.broadcast_to(jnp.asarray(fill, a.dtype), shape)], axis)


def _padded(blocks: jax.Array, before: int, behind: int) -> jax.Array:
    """With blocks of zeros before and behind."""
    return jnp.pad(blocks, [(0, 0)] * (blocks.ndim - 3) + [(before, behind), (0, 0), (0, 0)])


def shifted(blocks: jax.Array, by: int) -> jax.Array:
    """Each block in the place of the next (``by=1``) or the previous (``by=-1``) one; zeros from outside."""
    return _padded(blocks[..., :-1, :, :], 1, 0) if by == 1 else _padded(blocks[..., 1:, :, :], 0, 1)
