"""Systems and determinants of matrices of blocks, by Schur complements."""

import functools

import jax.numpy as jnp

from ..core.array import Array
from ..core.dense import Dense
from ..core.operands import allow_dense, to_dense
from ..core.recording import remark
from ..functions.elementwise import negative
from ..functions.linalg import det, inv, matmul, matrix_transpose, slogdet, solve
from ..functions.linalg_solvers import logarithms
from ..kernels import determinants
from .block import Block, cut, is_zero
from .factored_solvers import (
    SMALL,
    all_true,
    backward_error,
    can_solve,
    checked,
    is_regular,
    signs,
    solution,
    solved,
    times,
    without_derivatives,
)
from .inverse import checked_inverse, stays_inverse
from .sum import total


def _is_conformal(x, *args, **static) -> bool:
    """Whether rows and columns are cut alike, and there is something to eliminate."""
    if x.heights != x.widths or x.full_size or x.shape[-1] <= SMALL:
        return False
    return any(map(_can_be_pivot, _diagonal(x.blocks)))


def _diagonal(grid):
    return [grid[k][k] for k in range(len(grid))]


def _can_be_pivot(x) -> bool:
    return not is_zero(x) and is_regular(x)


def _is_small(x, *args) -> bool:
    return x.shape[-1] <= SMALL


@solve.kernel(Block, Array, when=_is_small)
def _(x1, x2):
    remark(f"the dense form, of at most {SMALL} rows")
    return solve.dispatch(to_dense(x1), x2)


for _function in (inv, det, slogdet):
    _function.kernel(Block, when=_is_small)(lambda x, _function=_function: _function.dispatch(to_dense(x)))
del _function


# ---- elimination ----------------------------------------------------------------------------------------------------


def _pivot(grid):
    """The place on the diagonal to eliminate first: with no fill, else with a structured solver, else the largest; None where no
    block can be one.
    """
    count = range(len(grid))

    def preference(k):
        beside = any(not is_zero(grid[k][j]) for j in count if j != k)
        return (beside and _has_fill(grid, k), not can_solve(grid[k][k]), -grid[k][k].shape[-1])

    candidates = [k for k in count if _can_be_pivot(grid[k][k])]
    return min(candidates, key=preference) if candidates else None


def _joined(grid):
    """The grid as one dense block, where there is nothing to eliminate."""
    x = Block._make(tuple(b for row in grid for b in row), (len(grid), len(grid)))
    allow_dense(x, "linalg.solve", x.size)
    return to_dense(x)


def _complement(grid, k):
    """``W_j = A_kk^{-1} A_kj`` and the rest ``A_ij - A_ik W_j``, without row and column k."""
    others = [i for i in range(len(grid)) if i != k]
    w, flags = {}, []
    for j in others:
        if not is_zero(grid[k][j]) and _has_fill(grid, k):
            w[j], ok = solve.dispatch(grid[k][k], grid[k][j])
            flags.append(ok)
    rest = [[_updated(grid[i][j], grid[i][k], w.get(j)) for j in others] for i in others]
    return others, w, rest, all_true(flags)


def _has_fill(grid, k) -> bool:
    """Whether there are blocks below (or above) a pivot, so that its elimination changes the rest."""
    return any(not is_zero(grid[i][k]) for i in range(len(grid)) if i != k)


def _updated(a, left, w):
    if w is None or is_zero(left):
        return a
    update = negative(matmul(left, w))
    return update if is_zero(a) else total(a, update)


def _eliminated(grid, b):
    """The solution, in pieces, by elimination, and whether the pivots are regular."""
    k = _pivot(grid)
    if len(grid) == 1 or k is None:
        whole = grid[0][0] if len(grid) == 1 else _joined(grid)
        sizes = [row[0].shape[-2] for row in grid]
        x, ok = solve.dispatch(whole, Dense._make((jnp.concatenate(b, axis=-2),)))
        return cut(x._dense(), sizes, -2), ok
    others, w, rest, ok1 = _complement(grid, k)
    if not _has_fill(grid, k):  # nothing else depends on its row, so that it comes last
        x, ok2 = _eliminated(rest, [b[i] for i in others])
        x = dict(zip(others, x, strict=True))
        right = b[k]
        for j in others:
            if not is_zero(grid[k][j]):
                right = right - times(grid[k][j], x[j])
        x[k], ok3 = solution(grid[k][k], right)
        return [x[i] for i in range(len(grid))], ok2 & ok3
    y, ok2 = solution(grid[k][k], b[k])
    right = [b[i] if is_zero(grid[i][k]) else b[i] - times(grid[i][k], y) for i in others]
    x, ok3 = _eliminated(rest, right)
    x = dict(zip(others, x, strict=True))
    for j in w:
        y = y - times(w[j], x[j])
    return [y if i == k else x[i] for i in range(len(grid))], ok1 & ok2 & ok3


def _by_elimination(grid, b):
    sizes = [row[0].shape[-2] for row in grid]
    x, ok = _eliminated(grid, cut(b, sizes, -2))
    return jnp.concatenate(x, axis=-2), ok


def _schur(x1, b):
    frozen = without_derivatives(x1)
    flipped = matrix_transpose.dispatch(frozen)
    return checked(
        x1,
        b,
        functools.partial(_by_elimination, frozen.blocks),
        functools.partial(_by_elimination, flipped.blocks),
    )


@solve.kernel(Block, Array, when=_is_conformal)
def _(x1, x2):
    remark(
        "block elimination by Schur complements, first of blocks that change no others or have solvers of their own, and a look at the "
        "residual; systems with the blocks on the diagonal"
    )
    return solved(x1, x2, _schur)


@inv.kernel(Block, when=lambda x: _is_conformal(x) and stays_inverse(x))
def _(x):
    return checked_inverse(x)


# ---- determinants ---------------------------------------------------------------------------------------------------


def _pivots(grid):
    """The blocks whose determinants multiply to that of the matrix: an equal permutation of rows and columns has no sign."""
    if len(grid) == 1:
        return [grid[0][0]]
    k = _pivot(grid)
    if k is None:
        return [_joined(grid)]
    return [grid[k][k], *_pivots(_complement(grid, k)[2])]


def _is_accurate(x):
    """Whether no pivot is near to a singular matrix, tried on one system: for each matrix."""
    x = without_derivatives(x)
    b = jnp.broadcast_to(signs(x), (*x.shape[:-1], 1))
    tried, _ = _by_elimination(x.blocks, b)
    return backward_error(x, tried, b)[..., 0, 0] <= jnp.finfo(x.dtype).eps ** (2 / 3)


@slogdet.kernel(Block, when=_is_conformal)
def _(x):
    fine = _is_accurate(x)
    return tuple(Dense._make((jnp.where(fine, part, jnp.nan),)) for part in _logarithms(_pivots(x.blocks)))


def _multiplied(pivots):
    return functools.reduce(jnp.multiply, (det.dispatch(b)._dense() for b in pivots))


def _logarithms(pivots):
    signs_, logs = zip(*map(logarithms, pivots), strict=True)
    return functools.reduce(jnp.multiply, signs_), functools.reduce(jnp.add, logs)


@det.kernel(Block, when=_is_conformal)
def _(x):
    value = determinants.of_parts(_multiplied, _logarithms, _pivots(x.blocks))
    return Dense._make((jnp.where(_is_accurate(x), value, jnp.nan),))
