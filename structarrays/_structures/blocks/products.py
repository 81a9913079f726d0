"""Products, transposes, diagonals and triangles of block-diagonal and block-banded matrices."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import jax.numpy as jnp
import numpy as np

from ..._core.array.dense import Dense
from ..._core.families.conditions import has_structural_zeros, is_square_pattern
from ..._functions.creation import tril, triu
from ..._functions.elementwise import multiply
from ..._functions.linalg import diagonal, matmul, matrix_transpose
from ..._numerics.absorbing import guarded_product
from ..._numerics.vectors import by_columns, by_rows
from ..banded.array import Banded
from ..banded.diagonal import Diagonal
from . import numerics
from .array import Blocks, diagonal_of
from .block_banded import BlockBanded, at_offsets, block_banded
from .block_diagonal import BlockDiagonal, block_diagonal, cuts, regroup, side_by_side
from .block_joins import grid_form

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import jax

    from ..._core.array.base import Array
    from ..._core.typing import Shape

    S = TypeVar("S", bound=Array)
    Forms: TypeAlias = tuple[BlockBanded, BlockBanded]

# ---- times a dense matrix -------------------------------------------------------------------------------------------


@matmul.kernel(Blocks, Dense, when=has_structural_zeros)
def _matmul_blocks_dense(x1: Blocks, x2: Dense) -> Dense:
    def multiply(data: jax.Array) -> jax.Array:
        shape = (*jnp.broadcast_shapes(x1.batch_shape, data.shape[:-2]), x1.shape[-2], data.shape[-1])
        parts = [
            (run.row, numerics.multiply(blocks, data[..., run.columns, :]))
            for run, blocks in zip(x1.runs, x1.blocks, strict=True)
            if run.size
        ]
        return _sum_of(parts, shape, -2, x1)

    return Dense.make((by_columns(multiply, x2.data),))


@matmul.kernel(Dense, Blocks, when=lambda x1, x2: has_structural_zeros(x2))
def _matmul_dense_blocks(x1: Dense, x2: Blocks) -> Dense:
    def multiply(data: jax.Array) -> jax.Array:
        shape = (*jnp.broadcast_shapes(data.shape[:-2], x2.batch_shape), data.shape[-2], x2.shape[-1])
        parts = [
            (run.column, numerics.multiply_left(data[..., run.rows], blocks))
            for run, blocks in zip(x2.runs, x2.blocks, strict=True)
            if run.size
        ]
        return _sum_of(parts, shape, -1, x2)

    return Dense.make((by_rows(multiply, x1.data),))


def _sum_of(parts: Sequence[tuple[int, jax.Array]], shape: Shape, axis: int, x: Blocks) -> jax.Array:
    """Combine the products with all runs: concatenate them if they share no rows (columns), otherwise add them."""
    parts = [(start, jnp.broadcast_to(p, shape[:-2] + p.shape[-2:])) for start, p in parts]
    terms = numerics.layers(parts, shape[axis], 0, axis, x.pieces > 1) or [jnp.zeros(shape, x.dtype)]
    return functools.reduce(jnp.add, terms)


# ---- times each other -----------------------------------------------------------------------------------------------


def common_cuts(x1: BlockDiagonal, x2: BlockDiagonal) -> tuple[np.ndarray, np.ndarray]:
    """Return the common cuts of the columns of a block-diagonal matrix and the rows of another."""
    columns, rows = cuts(x1)[1], cuts(x2)[0]
    if np.array_equal(columns, rows):
        return np.arange(len(rows)), np.arange(len(rows))
    # Blocks without columns (rows) repeat a cut. Repeated cuts are paired, and so are the ends.
    first, second = _numbered(columns), _numbered(rows)
    common = sorted(first.keys() & second.keys())
    kept, other = [first[c] for c in common], [second[c] for c in common]
    kept[-1], other[-1] = len(columns) - 1, len(rows) - 1
    return np.array(kept), np.array(other)


def _numbered(places: np.ndarray) -> dict[tuple[int, int], int]:
    """Pair each cut position with the number of its previous occurrences, and map it to the number of the cut."""
    count: dict[int, int]
    numbers: dict[tuple[int, int], int]
    count, numbers = {}, {}
    for number, place in enumerate(places.tolist()):
        count[place] = count.get(place, -1) + 1
        numbers[place, count[place]] = number
    return numbers


def multiply_by_blocks(x1: BlockDiagonal, x2: BlockDiagonal) -> bool:
    """Return whether the product of two block-diagonal matrices is block diagonal."""
    if x1.background is not None or x2.background is not None:
        return False
    common = len(common_cuts(x1, x2)[0])
    return common > 2 or common == len(cuts(x1)[0]) == len(cuts(x2)[0])


@matmul.kernel(BlockDiagonal, BlockDiagonal, when=multiply_by_blocks)
def _matmul_block_diagonal_block_diagonal(x1: BlockDiagonal, x2: BlockDiagonal) -> BlockDiagonal:
    kept, other = common_cuts(x1, x2)
    pairs, stored = (side_by_side(regroup(a, kept), regroup(b, other)) for a, b in ((x1, x2), map(indicator, (x1, x2))))

    def multiply(first: Sequence[jax.Array], second: Sequence[jax.Array]) -> list[jax.Array]:
        return [jnp.matmul(a, b) for a, b in zip(first, second, strict=True)]

    (first, second), masks = zip(*pairs, strict=True), list(zip(*stored, strict=True))
    if _same_places(x1, kept) and _same_places(x2, other):
        return block_diagonal(multiply(first, second))
    return block_diagonal(guarded_product(multiply, first, lambda: masks[0], second, lambda: masks[1]))


def _number_stored(x: Blocks | Banded) -> int:
    """The number of stored entries of one matrix."""
    return sum(math.prod(e.shape[len(x.batch_shape) :]) for e in x.entries)


def indicator(x: S) -> S:
    """The array with True where entries are stored, False elsewhere."""
    return cast("S", x.rebuild(tuple(jnp.ones(e.shape, bool) for e in x.entries), None))


def _same_places(x: BlockDiagonal, kept: np.ndarray) -> bool:
    """Return whether regrouping at these cuts leaves the blocks unchanged."""
    return len(kept) == len(cuts(x)[0])


def _scales_columns(x1: Blocks, x2: Diagonal) -> bool:
    return has_structural_zeros(x1) and is_square_pattern(x2)


@matmul.kernel(Blocks, Diagonal, when=_scales_columns)
def _matmul_blocks_diagonal(x1: Blocks, x2: Diagonal) -> Array:
    return multiply(x1, Dense.make((x2.diag[..., None, :],)))


def _on_common_grid(x1: Array, x2: Array) -> Forms | None:
    """Return both factors as block-banded matrices whose blocks can be multiplied, or None if one has no such form."""
    first, second = grid_form(x1, (None, None)), grid_form(x2, (None, None))
    if first is not None:
        other = grid_form(x2, (first.block_shape[1], None))
        if other is not None:
            return first, other
    if second is not None:
        other = grid_form(x1, (None, second.block_shape[0]))
        if other is not None:
            return other, second
    return None


def _share_a_grid(x1: Blocks | Banded, x2: Blocks | Banded) -> bool:
    return has_structural_zeros(x1) and has_structural_zeros(x2) and _on_common_grid(x1, x2) is not None


@matmul.kernel(BlockBanded, Blocks, when=_share_a_grid)
@matmul.kernel(Blocks, BlockBanded, when=_share_a_grid)
@matmul.kernel(Blocks, Banded, when=_share_a_grid)
@matmul.kernel(Banded, Blocks, when=_share_a_grid)
def _matmul_block_banded_blocks(x1: BlockBanded | Blocks | Banded, x2: Blocks | BlockBanded | Banded) -> Array:
    """The offsets of block diagonals add, like the offsets of diagonals."""
    forms = _on_common_grid(x1, x2), _on_common_grid(indicator(x1), indicator(x2))
    (a, b), (stored_a, stored_b) = cast("tuple[Forms, Forms]", forms)  # neither is None: see `_share_a_grid`
    grid = (a.grid[0], b.grid[1])

    def multiply(blocks_a: Sequence[jax.Array], blocks_b: Sequence[jax.Array]) -> dict[int, jax.Array]:
        return numerics.band_matmul(blocks_a, a.offsets, a.grid, blocks_b, b.offsets, b.grid)

    if a.stored == _number_stored(x1) and b.stored == _number_stored(x2):  # no zeros are stored explicitly
        blocks = multiply(a.blocks, b.blocks)
    else:
        blocks = guarded_product(multiply, a.blocks, lambda: stored_a.blocks, b.blocks, lambda: stored_b.blocks)
    batch = jnp.broadcast_shapes(a.batch_shape, b.batch_shape)
    return block_banded(blocks, grid, (a.block_shape[0], b.block_shape[1]), dtype=a.dtype, batch=batch)


# ---- the transpose, the diagonal, triangles -------------------------------------------------------------------------


@matrix_transpose.kernel(BlockDiagonal)
def _matrix_transpose_block_diagonal(x: BlockDiagonal) -> BlockDiagonal:
    return BlockDiagonal.make((*(b.mT for b in x.blocks), x.background), tuple((k, w, h) for k, h, w in x.meta))


@matrix_transpose.kernel(BlockBanded)
def _matrix_transpose_block_banded(x: BlockBanded) -> BlockBanded:
    meta = (tuple(-k for k in x.offsets[::-1]), x.grid[::-1], x.block_shape[::-1])
    return BlockBanded.make((*(b.mT for b in x.blocks[::-1]), x.background), meta)


@diagonal.kernel(Blocks)
def _diagonal_blocks(x: Blocks, *, offset: int) -> Dense:
    return Dense.make((diagonal_of(x, offset),))


@tril.kernel(Blocks, when=has_structural_zeros)
def _tril_blocks(x: Blocks, *, k: int) -> Blocks:
    return _masked(x, lambda i, j: j - i <= k)


@triu.kernel(Blocks, when=has_structural_zeros)
def _triu_blocks(x: Blocks, *, k: int) -> Blocks:
    return _masked(x, lambda i, j: j - i >= k)


def _masked(x: Blocks, keeps: Callable[[jax.Array, jax.Array], jax.Array]) -> Blocks:
    """Keep the entries (i, j) that `keeps` selects; the others are zero."""
    pairs = zip(x.runs, x.entries, strict=True)
    return x.rebuild(tuple(jnp.where(keeps(*run.positions()), e, jnp.zeros((), e.dtype)) for run, e in pairs), None)


@tril.kernel(BlockBanded, when=has_structural_zeros)
def _tril_block_banded(x: BlockBanded, *, k: int) -> Array:
    kept = [d for d, run in zip(x.offsets, x.runs, strict=True) if run.distances[0] <= k]
    return _masked(cast("BlockBanded", at_offsets(x, kept)), lambda i, j: j - i <= k) if kept else at_offsets(x, kept)


@triu.kernel(BlockBanded, when=has_structural_zeros)
def _triu_block_banded(x: BlockBanded, *, k: int) -> Array:
    kept = [d for d, run in zip(x.offsets, x.runs, strict=True) if run.distances[1] >= k]
    return _masked(cast("BlockBanded", at_offsets(x, kept)), lambda i, j: j - i >= k) if kept else at_offsets(x, kept)
