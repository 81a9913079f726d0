"""Linear systems and determinants of block matrices, by Schur complements."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import allow_dense, to_dense
from ..._core.dispatch.recording import remark
from ..._core.families.other_forms import by_form
from ..._functions.elementwise import negative
from ..._functions.linalg import det, inv, matmul, matrix_transpose, slogdet, solve
from ..._functions.linalg.systems import logarithms
from ..._numerics import determinants
from ..._numerics.determinants import any_of_all
from ..._numerics.symbolic import smaller
from ..banded.diagonal import Diagonal
from ..low_rank.array import LowRank, low_rank
from .base_shifts import LIMIT, ratio
from .block import Block, block, cut, is_zero
from .dense_fallback import by_parts_or_dense
from .estimates import probes, row_sums
from .inverse import checked_inverse, stays_inverse
from .part_solvers import SMALL, all_true, can_solve, checked, is_regular, solution, solved, times, without_derivatives
from .sum import total

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    import jax

    from ..._core.typing import Shape

    Grid: TypeAlias = Sequence[Sequence[Array]]
    """The rows of blocks of a matrix."""


def _is_conformal(x: Block, *args: Array, **static: Any) -> bool:
    """Return whether rows and columns have the same cuts, and a pivot exists."""
    if x.heights != x.widths or x.full_size or _is_small(x):
        return False
    return any(map(_can_be_pivot, _diagonal(x.blocks)))


def _diagonal(grid: Grid) -> list[Array]:
    return [grid[k][k] for k in range(len(grid))]


def _can_be_pivot(x: Array) -> bool:
    return not is_zero(x) and is_regular(x)


def _is_small(x: Block, *args: Array) -> bool:
    return not smaller(SMALL, x.shape[-1])


@by_form(solve, inv, det, slogdet, of=Block, when=_is_small)
def small_block_by_dense_form(x: Block) -> Dense:
    """The dense form of a small matrix."""
    remark(f"the dense form, of at most {SMALL} rows")
    return to_dense(x)


# ---- elimination ----------------------------------------------------------------------------------------------------


def _pivot(grid: Grid) -> int | None:
    """Return the diagonal index of the first pivot: a block without fill, otherwise a block with a structured solver.
    None if no block qualifies.
    """
    count = range(len(grid))

    def preference(k: int) -> tuple[bool, bool, int]:
        is_coupled = any(not is_zero(grid[k][j]) for j in count if j != k)
        return (is_coupled and _has_fill(grid, k), not can_solve(grid[k][k]), -grid[k][k].shape[-1])

    candidates = [k for k in count if _can_be_pivot(grid[k][k])]
    return min(candidates, key=preference) if candidates else None


def _joined(grid: Grid) -> Dense:
    """Return the grid as one dense block, if no block can be a pivot."""
    x = Block.make(tuple(b for row in grid for b in row), (len(grid), len(grid)))
    allow_dense(x, "linalg.solve", x.size)
    return to_dense(x)


def _complement(
    grid: Grid, k: int, b: jax.Array | None = None
) -> tuple[list[int], dict[int, Array], list[list[Array]], Any, jax.Array]:
    """Return ``W_j = A_kk^{-1} A_kj``, the rest ``A_ij - A_ik W_j`` without row and column k, and the solution of
    ``A_kk y = b``.
    """
    others = [i for i in range(len(grid)) if i != k]
    rights = {j: grid[k][j] for j in others if not is_zero(grid[k][j])} if _has_fill(grid, k) else {}
    w, y, ok = _solutions(grid[k][k], rights, b)
    rest = [[_updated(grid[i][j], grid[i][k], w.get(j)) for j in others] for i in others]
    return others, w, rest, y, ok


def _solutions(pivot: Array, rights: dict[int, Array], b: jax.Array | None) -> tuple[dict[int, Array], Any, jax.Array]:
    """Solve linear systems with a pivot, for blocks and for data; also return whether the pivot is regular.

    The right-hand sides with dense columns form one linear system. Otherwise compiled code would contain the solver of
    the pivot once for each block, at every nesting level. A diagonal pivot needs no merging, since its solver is small.
    """
    together, batch = {}, pivot.shape[:-2] if b is None else b.shape[:-2]
    if not isinstance(pivot, Diagonal):
        together = {j: right for j, right in rights.items() if _has_columns(right, pivot.shape[:-2], batch)}
    columns: dict[int | None, jax.Array] = {
        j: to_dense(x.u if type(x) is LowRank else x).data for j, x in together.items()
    }
    if b is not None:
        columns[None] = b
    found, flags = {}, []
    if columns:
        sizes = [data.shape[-1] for data in columns.values()]
        data, ok = solution(
            pivot, jnp.concatenate([jnp.broadcast_to(c, (*batch, *c.shape[-2:])) for c in columns.values()], axis=-1)
        )
        flags.append(ok)
        found = dict(zip(columns, cut(data, sizes, -1), strict=True))
    y = found.pop(None, None)
    w = {}
    for j, right in rights.items():
        if j in found:
            of_columns = Dense.make((found[j],))
            w[j] = low_rank(of_columns, right.v) if type(right) is LowRank else of_columns
        else:
            w[j], ok = solve.dispatch(pivot, right)
            flags.append(ok)
    return w, y, all_true(flags)


def _has_columns(x: Array, of_pivot: Shape, batch: Shape) -> bool:
    """Return whether the solutions for a block have one column for each column of data with this batch shape."""
    if not (type(x) is Dense or type(x) is LowRank and 2 * x.rank < x.shape[-1]):
        return False
    return jnp.broadcast_shapes(of_pivot, x.shape[:-2]) == batch


def _has_fill(grid: Grid, k: int) -> bool:
    """Return whether there are blocks below (or above) a pivot, so that its elimination changes the rest."""
    return any(not is_zero(grid[i][k]) for i in range(len(grid)) if i != k)


def _updated(a: Array, left: Array, w: Array | None) -> Array:
    if w is None or is_zero(left):
        return a
    update = negative(matmul(left, w))
    if is_zero(a):
        return update
    return _with_low_rank(a, update)


def _with_low_rank(a: Array, update: Array) -> Array:
    """Add a low-rank update block by block to a nested matrix that has no blocks of zeros.

    So the elimination continues inside the nested matrix. A `Sum` would need linear systems with the whole nested
    matrix, for more right-hand sides.
    """
    if type(update) is not LowRank or type(a) is not Block or any(is_zero(b) for row in a.blocks for b in row):
        return total(a, update)
    left: list[Any]
    right: list[Any]
    left, right = (cut(to_dense(part).data, sizes, -2) for part, sizes in zip(update.parts, (a.heights, a.widths)))
    left, right = ([Dense.make((data,)) for data in parts] for parts in (left, right))
    return block(
        [
            [_with_low_rank(x, low_rank(u, v)) for x, v in zip(row, right, strict=True)]
            for row, u in zip(a.blocks, left, strict=True)
        ]
    )


def _eliminated(grid: Grid, b: Sequence[jax.Array]) -> tuple[list[jax.Array], jax.Array]:
    """Return the pieces of the solution by elimination, and whether the pivots are regular."""
    x: Any
    right: Any
    k = _pivot(grid)
    if len(grid) == 1 or k is None:
        whole = grid[0][0] if len(grid) == 1 else _joined(grid)
        sizes = [row[0].shape[-2] for row in grid]
        x, ok = solve.dispatch(whole, Dense.make((jnp.concatenate(b, axis=-2),)))
        return cut(x.dense_data(), sizes, -2), ok
    if not _has_fill(grid, k):  # no other block depends on its row, so that it comes last
        others, _, rest, *_ = _complement(grid, k)
        x, ok2 = _eliminated(rest, [b[i] for i in others])
        x = dict(zip(others, x, strict=True))
        right = b[k]
        for j in others:
            if not is_zero(grid[k][j]):
                right = right - times(grid[k][j], x[j])
        x[k], ok3 = solution(grid[k][k], right)
        return [x[i] for i in range(len(grid))], ok2 & ok3
    others, w, rest, y, ok1 = _complement(grid, k, b[k])
    right = [b[i] if is_zero(grid[i][k]) else b[i] - times(grid[i][k], y) for i in others]
    x, ok2 = _eliminated(rest, right)
    x = dict(zip(others, x, strict=True))
    for j in w:
        y = y - times(w[j], x[j])
    return [y if i == k else x[i] for i in range(len(grid))], ok1 & ok2


def _by_elimination(grid: Grid, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    sizes = [row[0].shape[-2] for row in grid]
    x, ok = _eliminated(grid, cut(b, sizes, -2))
    return jnp.concatenate(x, axis=-2), ok


def _schur(x1: Block, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    frozen = without_derivatives(x1)
    flipped = matrix_transpose.dispatch(frozen)
    return checked(
        x1,
        b,
        functools.partial(_by_elimination, frozen.blocks),
        functools.partial(_by_elimination, flipped.blocks),
    )


@solve.kernel(Block, Array, when=_is_conformal)
def _solve_block_if_is_conformal(x1: Block, x2: Array) -> tuple[Dense, jax.Array]:
    remark(
        "block elimination by Schur complements, starting with blocks that cause no fill or have their own solvers, and a check of "
        "the residual; linear systems with the diagonal blocks"
    )
    return solved(x1, x2, _schur)


inv.kernel(Block, when=lambda x: _is_conformal(x) and stays_inverse(x))(checked_inverse)


# ---- determinants ---------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One step of the elimination."""

    places: tuple[int, ...]
    """The block rows of the pivot: several if the pivot is the joined rest."""
    pivot: Array
    below: dict[int, Array]
    """The blocks in the column of the pivot, by block row."""
    w: dict[int, Array]
    """The solutions ``W_j`` that change the rest, by block column."""


def _steps(grid: Grid, places: tuple[int, ...]) -> list[Step]:
    """Return all steps. The determinant is the product of the pivots' determinants: symmetric permutations change no
    sign.
    """
    k = _pivot(grid) if len(grid) > 1 else None
    if k is None:
        return [Step(places, grid[0][0] if len(grid) == 1 else _joined(grid), {}, {})]
    others, w, rest, *_ = _complement(grid, k)
    below = {places[i]: grid[i][k] for i in others if not is_zero(grid[i][k])}
    step = Step(places[k : k + 1], grid[k][k], below, {places[j]: v for j, v in w.items()})
    return [step, *_steps(rest, tuple(places[i] for i in others))]


def steps_of_elimination(x: Block) -> list[Step]:
    """Return the steps of the elimination of a block matrix."""
    return _steps(x.blocks, tuple(range(len(x.blocks))))


def _is_accurate(x: Block, steps: Sequence[Step]) -> jax.Array:
    """Return whether the determinants of the pivots lose few digits, for each matrix.

    They lose few if no product in the elimination is much larger than the matrix. Then each pivot is about as well
    conditioned as the matrix. Otherwise the condition numbers of the pivots decide. The inverse of the last pivot is a
    block of the inverse of the matrix. The sizes are sums over rows, after scaling columns to about one size: scaling
    does not change the relative error of a determinant.
    """
    x = without_derivatives(x)
    pivots = without_derivatives([s.pivot for s in steps])
    weights: Any = _reciprocal(row_sums(matrix_transpose.dispatch(x), _reciprocal(row_sums(x))))
    rows = cut(row_sums(x, weights), x.heights, -2)
    weights = cut(weights, x.widths, -2)

    def at(parts: Sequence[jax.Array], step: Step) -> jax.Array:
        return jnp.concatenate([parts[i] for i in step.places], axis=-2)

    def growth(product: jax.Array, of_matrix: jax.Array) -> jax.Array:
        return jnp.max(jnp.where(product == 0, 0, product / of_matrix), axis=(-2, -1))

    factors = []
    for step, pivot in zip(steps, pivots, strict=True):
        below, w = without_derivatives((step.below, step.w))
        factors.append(growth(row_sums(pivot, at(weights, step)), at(rows, step)))
        for j, v in w.items():
            change = row_sums(v, weights[j])
            factors.append(growth(row_sums(pivot, change), at(rows, step)))
            factors += [growth(row_sums(block, change), rows[i]) for i, block in below.items()]
    fine = functools.reduce(jnp.maximum, factors) <= LIMIT

    def by_conditions() -> jax.Array:
        of_pivots = [at(weights, s) for s in steps]
        conditions = [_condition(a, row_sums(a, v), v) for a, v in zip(pivots, of_pivots, strict=True)]
        eps = jnp.finfo(x.dtype).eps
        allowed = LIMIT * _condition(pivots[-1], at(rows, steps[-1]), of_pivots[-1])
        return fine | (functools.reduce(jnp.maximum, conditions) <= jnp.clip(allowed, eps ** (-1 / 3), 1e-2 / eps))

    accurate: jax.Array = lax.cond(any_of_all(~fine), by_conditions, lambda: fine)
    return accurate


def _reciprocal(sums: jax.Array) -> jax.Array:
    return 1 / jnp.where(sums == 0, 1, sums)


def _condition(a: Array, rows: jax.Array, weights: jax.Array) -> jax.Array:
    """Estimate the norm of the inverse from solutions for a constant, an alternating and an irregular vector.

    The right-hand sides are multiplied by the sums of rows (..., n, 1), the solutions divided by the weights of columns
    (..., n, 1).
    """
    vectors = probes(a.shape[-1], a.dtype)
    found, _ = solution(a, jnp.broadcast_to(vectors * rows, (*a.shape[:-2], *vectors.shape)))
    return jnp.max(ratio(found / weights, vectors), axis=-1)


@slogdet.kernel(Block, when=_is_conformal)
def _slogdet_block(x: Block) -> tuple[Dense, ...]:
    return by_parts_or_dense(slogdet.dispatch, x, _by_pivots(_logarithms))


def _by_pivots(
    function: Callable[[Sequence[Array]], tuple[jax.Array, ...]],
) -> Callable[[Block], tuple[tuple[jax.Array, ...], jax.Array]]:
    """Return a function that maps a matrix to the results of `function` for its pivots, and a flag that few digits are
    lost.
    """

    def run(x: Block) -> tuple[tuple[jax.Array, ...], jax.Array]:
        steps = steps_of_elimination(x)
        return function([s.pivot for s in steps]), _is_accurate(x, steps)

    return run


def _determinant(pivots: Sequence[Array]) -> tuple[jax.Array]:
    return (determinants.of_parts(_multiplied, _logarithms, pivots),)


def _multiplied(pivots: Sequence[Array]) -> jax.Array:
    product: jax.Array = functools.reduce(jnp.multiply, (det.dispatch(b).dense_data() for b in pivots))
    return product


def _logarithms(pivots: Sequence[Array]) -> tuple[jax.Array, jax.Array]:
    signs_, logs = zip(*map(logarithms, pivots), strict=True)
    return functools.reduce(jnp.multiply, signs_), functools.reduce(jnp.add, logs)


@det.kernel(Block, when=_is_conformal)
def _det_block(x: Block) -> Dense:
    (result,) = by_parts_or_dense(det.dispatch, x, _by_pivots(_determinant))
    return result
