"""`BlockBanded`: block-tridiagonal and block-banded matrices, stored by block diagonals."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core import dtypes
from ..._core.array.dense import parameter
from ..._core.array.validation import BACKGROUND, check_leaves, check_offsets, check_sizes, check_static, validated
from ..._core.dispatch import explicit
from ..._core.families.join import restrict
from ..._numerics import bands as band_kernel
from ..banded.array import Banded, bands, integers, matrix_shape, vectors
from .array import Blocks, Run, batch_of_blocks, grid_offsets
from .block_diagonal import BlockDiagonal, _block_shape, _check_rest

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..._core.array.arguments import ParameterLike
    from ..._core.typing import Leaves, Meta, Shape


class BlockBanded(Blocks):
    r"""A matrix of equal blocks, stored by block diagonals.

    Parameters
    ----------
    blocks : sequence of array_like
        The blocks of each block diagonal, ``(..., length, bm, bn)``, where `length` is the number of blocks on the diagonal. All
        blocks have the same shape ``(bm, bn)``. The batch shapes broadcast.
    offsets : sequence of int
        The offset of each block diagonal: ``0`` is the main diagonal, positive offsets are above it, negative offsets below. At
        least one offset, in any order.
    shape : tuple of int, optional
        The core shape ``(m, n)``, multiples of the block shape. Default: K × K blocks, determined by the first block diagonal.

    Raises
    ------
    ValueError
        If offsets repeat or lie outside of the matrix, a block diagonal does not have the length that its offset requires, the
        block shapes differ or are empty, or the block shape does not divide the core shape.

    Notes
    -----
    Block t of the block diagonal with offset d is the block in block row ``t + max(0, -d)`` and block column
    ``t + max(0, d)``. With d block diagonals of K blocks of b × b, the costs are:

    ==================================================  =======================================================
    elementwise, reductions, transpose, `diagonal`      ``O(d K b**2)``
    times a vector, times a matrix of p columns         ``O(d K b**2)``, ``O(d K b**2 p)``
    times one with d' block diagonals                   ``O(d d' K b**3)``; the result has up to d + d' - 1
    `solve`, `cholesky`; w block diagonals per side     ``O(K (w b)**3 / w)``, memory ``O(K (w b)**2)``
    ==================================================  =======================================================

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.BlockBanded([[[[1.0, 2.0]]], [[[3.0, 4.0]], [[5.0, 6.0]]]], (1, 0))
    >>> A.to_dense()
    Dense([[3., 4., 1., 2.],
           [0., 0., 5., 6.]], dtype=float64)
    """

    __slots__ = ()

    def __new__(
        cls, blocks: Any, offsets: Sequence[int] | np.ndarray, shape: int | Sequence[int] | None = None
    ) -> BlockBanded:
        blocks = vectors(blocks, "blocks", cls.__name__)
        offsets = integers(offsets, "offsets")
        if len(blocks) != len(offsets):
            raise ValueError(f"blocks and offsets must have the same length, got {len(blocks)} and {len(offsets)}")
        if not blocks:
            raise ValueError(
                "blocks must contain at least one block diagonal, got none; for a zero matrix use Banded([], (), shape)"
            )
        if len(set(offsets)) != len(offsets):
            raise ValueError(f"offsets must differ from each other, got {tuple(offsets)}")
        for i, b in enumerate(blocks):
            if b.ndim < 3:
                raise ValueError(f"blocks[{i}] must be (..., length, bm, bn), got shape {b.shape}")
        block = blocks[0].shape[-2:]
        for i, b in enumerate(blocks):
            if b.shape[-2:] != block or 0 in block:
                raise ValueError(
                    f"blocks must be nonempty and have the same block shape, got {block} and blocks[{i}] of {b.shape[-2:]}"
                )
        if shape is None:
            count = blocks[0].shape[-3] + abs(offsets[0])
            shape = (count * block[0], count * block[1])
        shape = matrix_shape(shape, "shape")
        if shape[0] % block[0] or shape[1] % block[1]:
            raise ValueError(f"shape must be multiples of the block shape {block}, got {shape}")
        grid = (shape[0] // block[0], shape[1] // block[1])
        for b, k in zip(blocks, offsets, strict=True):
            if not -grid[0] < k < grid[1] and k != 0:
                raise ValueError(f"offsets must lie inside the matrix of {grid} blocks, got {k}")
            length = band_kernel.diagonal_length(grid, k)
            if b.shape[-3] != length:
                raise ValueError(
                    f"the block diagonal with offset {k} must have {length} blocks in a grid of {grid} blocks, got {b.shape[-3]}"
                )
        return cast("BlockBanded", block_banded(dict(zip(offsets, blocks, strict=True)), grid, block))

    # ---- the parts -----------------------------------------------------------------------------------------------

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offsets of the stored block diagonals, increasing."""
        offsets: tuple[int, ...] = self.meta[0]
        return offsets

    @property
    def grid(self) -> tuple[int, int]:
        """The number of block rows and block columns."""
        grid: tuple[int, int] = self.meta[1]
        return grid

    @property
    def block_shape(self) -> tuple[int, int]:
        """The shape ``(bm, bn)`` of a block."""
        shape: tuple[int, int] = self.meta[2]
        return shape

    @property
    def pieces(self) -> int:
        """The numbers of pieces of equal size for which the block diagonals are padded."""
        return self.meta[3] if len(self.meta) > 3 else 1

    @property
    def blocks(self) -> tuple[jax.Array, ...]:
        """The stored blocks, an array ``(..., k, bm, bn)`` for each block diagonal."""
        stored = self._value[0][:-1]
        if self.pieces == 1:
            return stored
        return explicit.shortened(stored, tuple(run.count for run in self.runs), -3)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The position of each run."""
        return _runs(self.meta)

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> BlockBanded:
        return BlockBanded.make((*entries, background), self.meta[:3])._padded_for(self.pieces)

    def _padded_for(self, pieces: int) -> BlockBanded:
        if pieces == self.pieces:
            return self
        blocks: Sequence[jax.Array]
        blocks, meta = self.blocks, self.meta[:3]
        if pieces > 1:
            blocks = band_kernel.divisible(blocks, min(self.grid), pieces, -3)
            meta = (*meta, pieces)
        return BlockBanded.make((*blocks, self.background), meta, self.assumptions)

    @property
    def core_shape(self) -> tuple[int, int]:
        """The shape ``(m, n)`` of the matrix."""
        return _core_shape(self.meta)

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        return batch_of_blocks(leaves) + _core_shape(meta)

    def description(self) -> tuple[list[str], bool]:
        return [f"offsets={self.offsets}", f"block_shape={self.block_shape}", f"shape={self.shape}"], False

    def dense_data(self) -> jax.Array:
        (rows, columns), (height, width) = self.grid, self.block_shape
        fill = jnp.zeros((), self.dtype) if self.background is None else self.background[..., None, None, None, None]
        dense = jnp.broadcast_to(fill, (*self.batch_shape, rows, height, columns, width))
        place = [lax.broadcasted_iota(jnp.int32, (rows, 1, columns, 1), axis) for axis in (0, 2)]
        for k, blocks in zip(self.offsets, self.blocks, strict=True):
            # Align with the block rows: one expression, which XLA fuses.
            before = max(0, -k)
            widths = [(0, 0)] * (blocks.ndim - 3) + [(before, rows - before - blocks.shape[-3]), (0, 0), (0, 0)]
            dense = jnp.where(place[1] - place[0] == k, jnp.pad(blocks, widths)[..., :, :, None, :], dense)
        return dense.reshape(self.shape)

    # ---- conversions ---------------------------------------------------------------------------------------------

    @classmethod
    def from_dense(
        cls, a: ParameterLike, block: int | Sequence[int], offsets: Collection[int] | None = None
    ) -> BlockBanded:
        """Convert a dense matrix to a block-banded one.

        Parameters
        ----------
        a : array_like, (..., m, n)
            The matrix. It must be zero outside of the block diagonals.
        block : int or (int, int)
            The size or the shape of a block.
        offsets : sequence of int, optional
            The block diagonals to store. Default: all that contain nonzero values, and at least the main one.

        Returns
        -------
        BlockBanded

        Raises
        ------
        ValueError
            If the block shape does not divide the matrix, or there are nonzero values elsewhere (not checked under `jax.jit`).
        TypeError
            If `offsets` is omitted under `jax.jit`.

        Examples
        --------
        >>> import structarrays as sa
        >>> sa.BlockBanded.from_dense(sa.tridiagonal([1.0] * 5, [2.0] * 6, [1.0] * 5), 2).offsets
        (-1, 0, 1)
        """
        a, block = parameter(a, "a", f"{cls.__name__}.from_dense"), _block_shape(block, "block")
        if a.ndim < 2:
            raise ValueError(f"a must be a matrix (..., m, n), got shape {a.shape}")
        shape = a.shape[-2:]
        if 0 in block or 0 in shape or shape[0] % block[0] or shape[1] % block[1]:
            raise ValueError(f"a must be divisible into blocks of shape {block}, got shape {a.shape}")
        if offsets is None:
            if isinstance(a, jax.core.Tracer):
                raise TypeError(
                    "offsets must be given under jax.jit, since they are static and cannot depend on values"
                )
            i, j = np.nonzero(np.any(np.asarray(a) != 0, axis=tuple(range(a.ndim - 2))))
            offsets = {0, *np.unique(j // block[1] - i // block[0]).tolist()}
        empty = without_values(offsets, shape, block, a.dtype)
        x = empty.rebuild(explicit.call(empty.gather, a), None)
        _check_rest(a, x)
        return x

    @classmethod
    def from_banded(cls, x: Banded, block: int | Sequence[int]) -> BlockBanded:
        """Convert a banded (or diagonal) matrix to a block-banded one, without a dense intermediate.

        Parameters
        ----------
        x : Banded
            The matrix ``(..., m, n)``.
        block : int or (int, int)
            The size or the shape of a block, which must divide the matrix.

        Returns
        -------
        BlockBanded
            The block diagonals that contain stored entries of `x`, and at least one.

        Raises
        ------
        ValueError
            If the block shape does not divide the matrix.

        Examples
        --------
        >>> import structarrays as sa
        >>> sa.BlockBanded.from_banded(sa.tridiagonal([1.0] * 5, [2.0] * 6, [1.0] * 5), 3).blocks[1].shape
        (2, 3, 3)
        """
        block = _block_shape(block, "block")
        if not isinstance(x, Banded):
            raise TypeError(f"x must be a Banded array, got {type(x).__name__}; use from_dense for other arrays")
        m, n = x.core_shape
        if 0 in (*block, m, n) or m % block[0] or n % block[1]:
            raise ValueError(f"x must be divisible into blocks of shape {block}, got shape {x.shape}")
        empty = without_values(needed_offsets(x, block) or {0}, (m, n), block, x.dtype, x.batch_shape)
        return explicit.call(lambda x: empty.rebuild(restrict(x, empty).entries, x.background), x)

    @classmethod
    def from_bsr(cls, matrix: Any) -> BlockBanded:
        """Convert a `scipy.sparse.bsr_array` to a block-banded matrix.

        Parameters
        ----------
        matrix : scipy.sparse.bsr_array or bsr_matrix
            Duplicate blocks are added.

        Returns
        -------
        BlockBanded
            The block diagonals on which the matrix stores blocks, and at least the main one. Missing blocks are zero.

        Raises
        ------
        TypeError
            If `matrix` is not in BSR format.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> import structarrays as sa
        >>> sa.BlockBanded.from_bsr(scipy.sparse.bsr_array(np.eye(6), blocksize=(3, 3))).offsets
        (0,)
        """
        if getattr(matrix, "format", None) != "bsr":
            raise TypeError(f"matrix must be a scipy.sparse matrix in BSR format, got {type(matrix).__name__}")
        block = matrix.blocksize
        rows = np.repeat(np.arange(matrix.shape[0] // block[0]), np.diff(matrix.indptr))
        distance = matrix.indices - rows
        offsets = tuple(sorted({0, *np.unique(distance).tolist()}))
        empty = without_values(offsets, matrix.shape, block, matrix.dtype)
        parts = []
        for k, zeros in zip(empty.offsets, empty.blocks, strict=True):
            part, chosen = np.zeros(zeros.shape, matrix.dtype), distance == k
            np.add.at(part, rows[chosen] - max(0, -k), matrix.data[chosen])
            parts.append(parameter(part, "matrix", f"{cls.__name__}.from_bsr"))
        return empty.rebuild(tuple(parts), None)


@functools.lru_cache(maxsize=1024)
def _runs(meta: Meta) -> tuple[Run, ...]:
    offsets, grid, (height, width) = meta[:3]
    return tuple(
        Run(max(0, -k) * height, max(0, k) * width, band_kernel.diagonal_length(grid, k), height, width)
        for k in offsets
    )


def _core_shape(meta: Meta) -> tuple[int, int]:
    _, (rows, columns), (height, width) = meta[:3]
    return rows * height, columns * width


def without_values(
    offsets: Collection[int], shape: Shape, block: Shape, dtype: np.dtype, batch: Shape = ()
) -> BlockBanded:
    """Validated array of zeros with these block diagonals."""
    grid = (shape[0] // block[0], shape[1] // block[1])
    zeros = [jnp.zeros((*batch, band_kernel.diagonal_length(grid, operator.index(k)), *block), dtype) for k in offsets]
    return BlockBanded(zeros, tuple(offsets), shape)


def block_banded(
    blocks: dict[int, jax.Array],
    grid: Shape,
    block: Shape,
    background: jax.Array | None = None,
    *,
    dtype: np.dtype | None = None,
    batch: Shape = (),
) -> BlockBanded | Banded:
    """Array with these block diagonals (by offset), for kernels; a `Banded` without diagonals if there are none.

    Parameters
    ----------
    blocks, grid, block, background
        The block diagonals by offset, the number of block rows and columns, the shape of a block, and the background.
    dtype, batch
        The dtype and the batch shape of the array if there is no block diagonal.
    """
    if not blocks:
        return bands([], (), (grid[0] * block[0], grid[1] * block[1]), background, dtype=dtype, batch=batch)
    offsets = tuple(sorted(blocks))
    dtype = dtypes.promote(*(b.dtype for b in blocks.values()))
    batch = jnp.broadcast_shapes(batch, *(b.shape[:-3] for b in blocks.values()))
    leaves = [jnp.broadcast_to(blocks[k].astype(dtype), batch + blocks[k].shape[-3:]) for k in offsets]
    if background is not None:
        background = jnp.broadcast_to(background, batch)
    return BlockBanded.make((*leaves, background), (offsets, tuple(grid), tuple(block)))


def block_tridiagonal(lower: ParameterLike, diag: ParameterLike, upper: ParameterLike) -> BlockBanded:
    """Block-tridiagonal matrix of k × k blocks.

    Parameters
    ----------
    lower, diag, upper : array_like
        The blocks below, on and above the diagonal, ``(..., k - 1, m, m)``, ``(..., k, m, m)`` and ``(..., k - 1, m, m)``.

    Returns
    -------
    BlockBanded
        The matrix of shape ``(..., k m, k m)``, with offsets ``(-1, 0, 1)``.

    Examples
    --------
    >>> import numpy as np
    >>> import structarrays as sa
    >>> A = sa.block_tridiagonal(-np.ones((2, 2, 2)), np.full((3, 2, 2), 4.0), -np.ones((2, 2, 2)))
    >>> A @ sa.ones(6)
    Dense([6., 6., 4., 4., 6., 6.], dtype=float64)
    """
    name = "block_tridiagonal"
    diag = parameter(diag, "diag", name)
    if diag.ndim < 3:
        raise ValueError(f"diag must be (..., k, m, m), got shape {diag.shape}")
    k, *block = diag.shape[-3:]
    shape_of_others = (max(0, k - 1), *block)
    lower, upper = parameter(lower, "lower", name), parameter(upper, "upper", name)
    for argument, blocks in (("lower", lower), ("upper", upper)):
        if blocks.shape[-3:] != shape_of_others:
            expected = ", ".join(map(str, shape_of_others))
            raise ValueError(
                f"{argument} must be (..., {expected}), as diag has shape {diag.shape}, got shape {blocks.shape}"
            )
    if k < 2:
        return BlockBanded([diag], (0,))
    return BlockBanded([lower, diag, upper], (-1, 0, 1), (k * block[0], k * block[1]))


# ---- conversions between structures on a grid of blocks --------------------------------------------------------------


def at_offsets(x: BlockBanded, offsets: Collection[int]) -> BlockBanded | Banded:
    """The entries of `x` on these block diagonals, stored or not, with the background of `x`."""
    stored = dict(zip(x.offsets, x.blocks, strict=True))
    fill = jnp.zeros((), x.dtype) if x.background is None else x.background[..., None, None, None]

    def blocks(k: int) -> jax.Array:
        shape = (*x.batch_shape, band_kernel.diagonal_length(x.grid, k), *x.block_shape)
        return stored[k] if k in stored else jnp.broadcast_to(fill, shape)

    return block_banded(
        {k: blocks(k) for k in offsets}, x.grid, x.block_shape, x.background, dtype=x.dtype, batch=x.batch_shape
    )


def needed_offsets(x: Banded, block: Shape) -> set[int]:
    """Return the block diagonals that contain a banded matrix cut into blocks."""
    return set().union(*(grid_offsets(k, x.core_shape, block) for k in x.offsets))


def from_uniform(x: BlockDiagonal) -> BlockBanded:
    """Convert a block-diagonal matrix of equal blocks to a block-banded one."""
    k, *block = x.meta[0]
    return BlockBanded.make(x._value[0], ((0,), (k, k), tuple(block)))


@validated.kernel(BlockBanded)
def check_block_banded(x: BlockBanded) -> None:
    """Raise unless there is a stack of blocks of the right length for each offset, and a background."""
    check_static(type(x.meta) is tuple and len(x.meta) == 3, x)
    _, grid, block = x.meta
    check_sizes(grid, 2)
    check_sizes(block, 2)
    offsets = check_offsets(x.offsets, grid)
    check_static(len(offsets) > 0, x)
    check_leaves(x, *((band_kernel.diagonal_length(grid, k), *block) for k in offsets), BACKGROUND)
