"""`Block`: a matrix of blocks, each in its own structure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, cast

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import allow_dense, lift
from ..._core.array.validation import check_parts, check_sizes, check_static, require, validated
from ..._core.dispatch.registry import Registry
from ..._core.families import pattern
from ..._core.families.batch import concat_pair
from ..._core.families.conditions import is_complex
from ..._core.families.entries import element, elements
from ..._core.families.factored import (
    Factored,
    as_matrix,
    common_batch,
    hadamard_pair,
    line_key,
    merge_pair,
    part,
    scale,
    select_lines,
    squared_norms,
    stored,
    unified,
)
from ..._functions.elementwise import multiply
from ..._functions.indexing import index
from ..._functions.linear_algebra import matmul, matrix_transpose
from ..._functions.rounding_and_parts import imag, real
from ..._numerics.symbolic import smaller
from ..banded.array import Banded, bands
from ..low_rank.array import LowRank, lines
from .product import product
from .sum import total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import jax

    from ..._core.typing import DTypeLike, Leaves, Meta, Shape, Spec


class Block(Factored):
    r"""A block matrix whose blocks keep their own structures.

    Parameters
    ----------
    blocks : sequence of sequences of array_like
        The rows of blocks: p sequences of q matrices ``(..., m_i, n_j)``. All blocks of a row have the same number of rows,
        all blocks of a column the same number of columns. None stands for a block of zeros, whose shape follows from the
        other blocks. The batch shapes broadcast, and the dtypes are promoted.

    Returns
    -------
    Array
        A `Block`. If there is a single block, that block.

    Raises
    ------
    ValueError
        If there is no block, the rows differ in their number of blocks, a block has fewer than two dimensions, the shapes do
        not fit, or a row or a column contains only None.
    TypeError
        If `blocks` is not a sequence of sequences, or a block is boolean.

    Notes
    -----
    The value is the matrix with block :math:`A_{ij}` in block row i and block column j. Functions are applied to the blocks,
    and cost what they cost for the blocks:

    ========================================  =====================================================================
    stores                                    the entries stored by the blocks
    times a matrix                            the products of the blocks
    product of two, if the cuts match         a `Block`
    sum, elementwise product, same cuts       a `Block`
    transpose, scaling, slices, norms, sums   a `Block`, or block by block
    solve, `det`, `slogdet`                   by Schur complements (see below), if rows and columns have the same
                                              cuts; as one `Sparse` if all blocks have few entries, and
                                              one is sparse or would be filled
    other elementwise functions               the dense form
    ========================================  =====================================================================

    A block :math:`A_{kk}` with a cheap solver is eliminated first. The elimination continues with the Schur complement
    :math:`A_{ij} - A_{ik} A_{kk}^{-1} A_{kj}`. Blocks of zeros are skipped, so that a block triangular matrix is solved by
    substitution (Golub and Van Loan, *Matrix Computations*, 4th edition, 3.2.11). A block can be singular although the matrix
    is not. Therefore the residual is checked; see `linalg.solve`. `concat` of structured matrices also returns a `Block`.

    Examples
    --------
    >>> import structarrays as sa
    >>> D = sa.Diagonal(sa.arange(1.0, 101.0))
    >>> A = sa.Block([[D, sa.ones((100, 1))], [sa.ones((1, 100)), None]])
    >>> x = sa.linalg.solve(A, sa.ones(101))
    >>> float(sa.max(sa.abs(A @ x - 1))) < 1e-12
    True
    """

    __slots__ = ()
    solved_by_parts = True

    def __new__(cls, blocks: Any) -> Self:
        rows = _checked_grid(blocks)
        p, q = len(rows), len(rows[0])
        present = unified([b for row in rows for b in row if b is not None])
        left = iter(present)
        rows = [[None if b is None else next(left) for b in row] for row in rows]
        heights = [_size(rows[i], -2) for i in range(p)]
        widths = [_size([row[j] for row in rows], -1) for j in range(q)]
        like = present[0]
        filled = [
            zero_block((*like.shape[:-2], heights[i], widths[j]), like.dtype) if b is None else b
            for i, row in enumerate(rows)
            for j, b in enumerate(row)
        ]
        return cast("Self", filled[0]) if len(filled) == 1 else cls.make(tuple(filled), (p, q))

    # ---- the parts -----------------------------------------------------------------------------------------------

    @property
    def blocks(self) -> tuple[tuple[Array, ...], ...]:
        """The blocks, row by row."""
        parts, (p, q) = self._value[0], self.meta
        return tuple(parts[i * q : (i + 1) * q] for i in range(p))

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        return (spec,) * len(self.parts)

    @property
    def heights(self) -> tuple[int, ...]:
        """The numbers of rows of the blocks, from above."""
        return tuple(row[0].shape[-2] for row in self.blocks)

    @property
    def widths(self) -> tuple[int, ...]:
        """The numbers of columns of the blocks, from the left."""
        return tuple(b.shape[-1] for b in self.blocks[0])

    @property
    def linear(self) -> bool:  # type: ignore[override]  # of other structures it is a constant
        """Return whether the dense value is linear in the parameters. It is if all blocks are linear."""
        return all(b.linear for b in self.parts)

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        p, q = meta
        # Compute each shape once. A second computation for the first block would cost exponential time in the nesting
        # depth.
        *batch, rows, columns = leaves[0].shape
        rows += sum(b.shape[-2] for b in leaves[q::q])
        columns += sum(b.shape[-1] for b in leaves[1:q])
        return (*batch, rows, columns)

    @property
    def product_cost(self) -> int:
        cost: int = sum(b.product_cost for b in self.parts) + self.shape[-2] * (self.meta[1] - 1)
        return cost

    def dense_data(self) -> jax.Array:
        rows = [jnp.concatenate([b.dense_data() for b in row], axis=-1) for row in self.blocks]
        return jnp.concatenate(rows, axis=-2)

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        kinds = pattern.everywhere(rows, columns, pattern.ZERO)
        for row, top in zip(self.blocks, starts(self.heights), strict=True):
            for b, left in zip(row, starts(self.widths), strict=True):
                inside = (
                    np.clip(each - begin, 0, n) for each, begin, n in zip((rows, columns), (top, left), b.shape[-2:])
                )
                kinds = np.maximum(kinds, pattern.pattern(b, *inside))
        return kinds

    def cast(self, dtype: DTypeLike) -> Array:
        return self.with_parts(lambda b: b.cast(dtype))  # each element belongs to one block

    def description(self) -> tuple[list[str], bool]:
        return [f"grid={self.meta}", f"shape={self.shape}"], False


def _checked_grid(blocks: Any) -> list[list[Array | None]]:
    """Return the rows of blocks as lists of stacks of matrices and None. Every row and every column contains a matrix."""
    if not isinstance(blocks, (list, tuple)):
        raise TypeError(f"blocks must be a list of rows, each a list of matrices, got {type(blocks).__name__}")
    for i, row in enumerate(blocks):
        if not isinstance(row, (list, tuple)):
            raise TypeError(
                f"blocks must be a list of rows, each a list of matrices, [[a, b], [c, d]]; blocks[{i}] is {type(row).__name__}"
            )
    if not blocks or not all(blocks):
        raise ValueError(f"blocks must have at least one row and one column, got {len(blocks)} rows")
    counts = [len(row) for row in blocks]
    if len(set(counts)) > 1:
        raise ValueError(f"the rows of blocks must have the same number of blocks, got {', '.join(map(str, counts))}")
    rows = [
        [None if b is None else part(b, f"blocks[{i}][{j}]") for j, b in enumerate(row)] for i, row in enumerate(blocks)
    ]
    for (axis, one, what), along in (((-2, "row", "rows"), rows), ((-1, "column", "columns"), [*zip(*rows)])):
        for k, line in enumerate(along):
            sizes = {b.shape[axis] for b in line if b is not None}
            if len(sizes) > 1:
                shapes = " and ".join(str(b.shape) for b in line if b is not None)
                raise ValueError(f"the blocks of {one} {k} must have the same number of {what}, got shapes {shapes}")
            if not sizes:
                place = f"blocks[{k}][0]" if axis == -2 else f"blocks[0][{k}]"
                raise ValueError(
                    f"{place} is None, and its {one} has no other block that gives the number of {what}; pass a block of zeros instead"
                )
    return rows


def _size(line: Sequence[Array | None], axis: int) -> int:
    return next(b.shape[axis] for b in line if b is not None)


def zero_block(shape: Shape, dtype: DTypeLike) -> Array:
    """A matrix of structural zeros."""
    return bands([], (), shape[-2:], dtype=dtype, batch=shape[:-2])


structurally_zero: Registry[bool] = Registry("structurally_zero")
"""``structurally_zero.kernel(A)``: return whether the structure of a matrix (static) implies that the matrix is zero.
"""


@structurally_zero.kernel(Array)
def _structurally_zero_array(x: Array) -> bool:
    return False


@structurally_zero.kernel(Banded)
def _structurally_zero_banded(x: Banded) -> bool:
    return not x.offsets and x.background is None


@structurally_zero.kernel(LowRank)
def _structurally_zero_low_rank(x: LowRank) -> bool:
    return x.rank == 0


def is_zero(x: Array) -> bool:
    """Return whether the structure of a matrix implies that the matrix is zero."""
    return structurally_zero.required((x,)).run(x)


def block(rows: Sequence[Sequence[Array]]) -> Array:
    """Block matrix of these rows of blocks, which have one dtype; dense if the dense form is no larger."""
    p, q = len(rows), len(rows[0])
    flat = common_batch(*(b for row in rows for b in row))
    x = flat[0] if len(flat) == 1 else Block.make(tuple(flat), (p, q))
    return Dense.make((x.dense_data(),)) if isinstance(x, Factored) and x.full_size else x


def starts(sizes: Sequence[int]) -> list[int]:
    """Start of each piece, given the sizes of the pieces."""
    return [sum(sizes[:k]) for k in range(len(sizes))]


def cut(data: jax.Array, sizes: Sequence[int], axis: int) -> list[jax.Array]:
    """Split dense data along an axis into pieces of these sizes."""
    return [lax.slice_in_dim(data, s, s + n, axis=axis) for s, n in zip(starts(sizes), sizes, strict=True)]


# ---- products -------------------------------------------------------------------------------------------------------


def _sum_of_products(pairs: Iterable[tuple[Array, Array]], shape: Shape, dtype: DTypeLike) -> jax.Array:
    """Sum of dense products, without products with a block of zeros."""
    result = None
    for x, y in pairs:
        if not is_zero(x) and not is_zero(y):
            term = matmul.dispatch(x, y).dense_data()
            result = term if result is None else result + term
    return jnp.zeros(shape, dtype) if result is None else result


@matmul.kernel(Block, Dense)
def _matmul_block_dense(x1: Block, x2: Dense) -> Dense:
    if x2.ndim == 1:
        return Dense.make((matmul.dispatch(x1, Dense.make((x2.data[:, None],))).dense_data()[..., 0],))
    pieces = [Dense.make((piece,)) for piece in cut(x2.data, x1.widths, -2)]
    batch = jnp.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    rows = [
        _sum_of_products(zip(row, pieces, strict=True), (*batch, height, x2.shape[-1]), x1.dtype)
        for row, height in zip(x1.blocks, x1.heights, strict=True)
    ]
    return Dense.make((jnp.concatenate(rows, axis=-2),))


@matmul.kernel(Dense, Block)
def _matmul_dense_block(x1: Dense, x2: Block) -> Dense:
    if x1.ndim == 1:
        return Dense.make((matmul.dispatch(Dense.make((x1.data[None, :],)), x2).dense_data()[..., 0, :],))
    pieces = [Dense.make((piece,)) for piece in cut(x1.data, x2.heights, -1)]
    batch = jnp.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    columns = [
        _sum_of_products(zip(pieces, column, strict=True), (*batch, x1.shape[-2], width), x1.dtype)
        for column, width in zip(zip(*x2.blocks, strict=True), x2.widths, strict=True)
    ]
    return Dense.make((jnp.concatenate(columns, axis=-1),))


@matmul.kernel(Block, Block, when=lambda x1, x2: x1.widths == x2.heights)
def _matmul_block_block(x1: Block, x2: Block) -> Array:
    def block_at(row: Sequence[Array], column: Sequence[Array]) -> Array:
        pairs = [(a, b) for a, b in zip(row, column, strict=True) if not is_zero(a) and not is_zero(b)]
        batch = jnp.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        if not pairs:
            return zero_block((*batch, row[0].shape[-2], column[0].shape[-1]), x1.dtype)
        return total(*(_product(a, b) for a, b in pairs))

    return block([[block_at(row, column) for column in zip(*x2.blocks, strict=True)] for row in x1.blocks])


def _product(a: Array, b: Array) -> Array:
    """Product of two blocks, kept as two factors if the product would have to be densified."""
    if Dense in (type(a), type(b)) or matmul.choose((a, b), {}) is not None:
        return matmul(a, b)
    return product(a, b)


# ---- block by block -------------------------------------------------------------------------------------------------


def _mapped(function: Callable[..., Array], *arrays: Block) -> Array:
    """Apply a function to the blocks of one array, or of several arrays with the same cuts."""
    rows = zip(*(x.blocks for x in arrays), strict=True)
    return block([[function(*each) for each in zip(*row, strict=True)] for row in rows])


@matrix_transpose.kernel(Block)
def _matrix_transpose_block(x: Block) -> Block:
    p, q = x.meta
    return Block.make(tuple(matrix_transpose(b) for column in zip(*x.blocks, strict=True) for b in column), (q, p))


@scale.kernel(Block)
def _scale_block(x: Block, factor: Callable[[Array], Array]) -> Array:
    return x.with_parts(factor)


@real.kernel(Block, when=is_complex)
def _real_block(x: Block) -> Array:
    return _mapped(real, x)


@imag.kernel(Block, when=is_complex)
def _imag_block(x: Block) -> Array:
    return _mapped(imag, x)


def _cut_alike(x: Block, y: Block) -> bool:
    return x.heights == y.heights and x.widths == y.widths


@merge_pair.kernel(Block, Block, when=_cut_alike)
def _merge_pair_block_block(x: Block, y: Block) -> Array:
    return _mapped(_added, x, y)


def _added(a: Array, b: Array) -> Array:
    if is_zero(a) or is_zero(b):
        return b if is_zero(a) else a
    return total(a, b)


@merge_pair.kernel(Block, Banded, when=lambda x, y: y.background is None)
def _merge_pair_block_banded(x: Block, y: Banded) -> Array:
    """The band is cut like the blocks."""
    slices = [
        [("slice", s, n, 1) for s, n in zip(starts(sizes), sizes, strict=True)] for sizes in (x.heights, x.widths)
    ]
    batch = tuple(("slice", 0, n, 1) for n in y.shape[:-2])
    pieces = tuple(index(y, (), key=(*batch, r, c)) for r in slices[0] for c in slices[1])
    return _mapped(_added, x, Block.make(pieces, x.meta))


@hadamard_pair.kernel(Block, Block, when=_cut_alike)
def _hadamard_pair_block_block(x: Block, y: Block) -> Array:
    return _mapped(lambda a, b: a if is_zero(a) else b if is_zero(b) else multiply.dispatch(a, b), x, y)


@elements.kernel(Block)
def _elements_block(x: Block, i: jax.Array, j: jax.Array) -> jax.Array:
    shape = jnp.broadcast_shapes(i.shape, j.shape)
    result = jnp.zeros((*x.shape[:-2], *shape), x.dtype)
    for row, top in zip(x.blocks, starts(x.heights), strict=True):
        for b, left in zip(row, starts(x.widths), strict=True):
            if is_zero(b) or 0 in b.shape:
                continue
            (m, n), r, c = b.shape[-2:], i - top, j - left
            inside = (r >= 0) & (r < m) & (c >= 0) & (c < n)
            result = jnp.where(inside, element(b, jnp.clip(r, 0, m - 1), jnp.clip(c, 0, n - 1)), result)
    return result


@squared_norms.kernel(Block)
def _squared_norms_block(x: Block, *, axes: tuple[int, ...]) -> jax.Array:
    norms = [[squared_norms.required((b,)).run(b, axes=axes) for b in row] for row in x.blocks]
    if axes == (-1,):
        return jnp.concatenate([sum(row[1:], row[0]) for row in norms], axis=-1)
    columns = [sum(column[1:], column[0]) for column in zip(*norms, strict=True)]
    return jnp.concatenate(columns, axis=-1) if axes == (-2,) else sum(columns[1:], columns[0])


# ---- rows and columns -----------------------------------------------------------------------------------------------


@select_lines.kernel(Block)
def _select_lines_block(x: Block, key: tuple[tuple[Any, ...], tuple[Any, ...]], axis: int) -> Array:
    if axis == -1:
        rows = select_lines.required((x,)).run(matrix_transpose.dispatch(x), key, -2)
        columns: Array = matrix_transpose.dispatch(rows)
        return columns
    item, operands = key
    return _rows_of_slice(x, item) if item[0] == "slice" else _rows_at(x, cast("Dense", lift(operands[0])).data)


def _rows_of_slice(x: Block, item: tuple[Any, ...]) -> Array:
    _, start, size, step = item
    kept = []
    for row, top, height in zip(x.blocks, starts(x.heights), x.heights, strict=True):
        if step > 0:
            first, behind = -((start - top) // step), -((start - top - height) // step)
        else:
            first, behind = (start - top - height) // -step + 1, (start - top) // -step + 1
        first, behind = max(0, first), min(size, behind)
        if first < behind:
            kept.append([_lines(b, ("slice", start + first * step - top, behind - first, step)) for b in row])
    if not kept:
        return Dense.make((jnp.zeros((*x.shape[:-2], 0, x.shape[-1]), x.dtype),))
    return block(kept[:: 1 if step > 0 else -1])


def _lines(b: Array, item: tuple[Any, ...]) -> Array:
    return index(b, (), key=line_key(b, item, -2))


def _rows_at(x: Block, i: jax.Array) -> Dense:
    """Dense rows, each taken from its row of blocks."""
    allow_dense(x, "__getitem__", x.size // max(1, x.shape[-2]) * i.size)
    i = jnp.where(i < 0, i + x.shape[-2], i)
    data = jnp.zeros((*x.shape[:-2], i.size, x.shape[-1]), x.dtype)
    for row, top, height in zip(x.blocks, starts(x.heights), x.heights, strict=True):
        if height == 0:
            continue
        inside = (i >= top) & (i < top + height)
        chosen = [lines(b, jnp.clip(i - top, 0, height - 1), -2) for b in row]
        data = jnp.where(inside[:, None], jnp.concatenate(chosen, axis=-1), data)
    return Dense.make((data,))


# ---- joining --------------------------------------------------------------------------------------------------------


LARGE = 4096
"""The minimum number of elements for which `concat` of arrays that are not factored returns a `Block`."""


def _joins(x: Array, y: Array, *, axis: int) -> bool:
    """Return whether `concat` of two matrices returns a `Block`. Otherwise the result would be dense."""
    if x.ndim < 2 or axis < -2 or x.dtype.kind == "b" or x.core_ndim > 2 or y.core_ndim > 2:
        return False
    size = math.prod(x.shape[-2:]) + math.prod(y.shape[-2:])
    if not (isinstance(x, Factored) or isinstance(y, Factored)):
        if smaller(size, LARGE) or any(type(z) is Dense or z.constant_over(2) is not None for z in (x, y)):
            return False
    return x.shape[:-2] == y.shape[:-2] and 0 < size and smaller(stored(x) + stored(y), size)


@concat_pair.kernel(Array, Array, when=_joins, before="concat_pair_by_sparse_form")
def _concat_pair_as_block(x: Array, y: Array, *, axis: int) -> Array:
    if axis == -1:
        x, y = matrix_transpose(x), matrix_transpose(y)
    rows = [z.blocks if type(z) is Block else ((as_matrix(z),),) for z in (x, y)]
    if [b.shape[-1] for b in rows[0][0]] != [b.shape[-1] for b in rows[1][0]]:
        rows = [((z,),) for z in (x, y)]
    joined = block([*rows[0], *rows[1]])
    return matrix_transpose(joined) if axis == -1 else joined


@validated.kernel(Block)
def check_block(x: Block) -> None:
    """Raise unless the parts form a grid of matrices with matching heights and widths."""
    shapes = check_parts(x, 1)
    p, q = check_sizes(x.meta, 2)
    check_static(p * q == len(shapes), x)
    rows = [shapes[i * q : (i + 1) * q] for i in range(p)]
    require(
        all(len({m for m, _ in row}) == 1 for row in rows)
        and all([n for _, n in row] == [n for _, n in rows[0]] for row in rows),
        "its blocks must have equal heights in each row and equal widths in each column",
    )
