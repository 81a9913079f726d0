"""`BlockDiagonal`: blocks of any sizes along the diagonal; conversions, merging and splitting of blocks."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from ..._core import dtypes
from ..._core.array.dense import Dense, batch_shape_of, parameter
from ..._core.array.validation import BACKGROUND, check_leaves, check_sizes, check_static, validated
from ..._core.dispatch import explicit
from . import numerics
from .array import Blocks, Run, batch_of_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..._core.array.arguments import ParameterLike
    from ..._core.array.base import Array
    from ..._core.typing import Leaves, Meta, Shape


class BlockDiagonal(Blocks):
    r"""A block-diagonal matrix: ``A = diag(A_1, A_2, …)``. Each block begins where the previous block ends.

    Parameters
    ----------
    blocks : array_like or sequence of array_like
        An array ``(..., k, m, n)`` of k equal blocks, or a list (or tuple) of matrices ``(..., m_i, n_i)`` of any sizes, as in
        `scipy.linalg.block_diag`. The batch shapes broadcast. A block without rows (columns) represents columns (rows) of
        zeros.

    Raises
    ------
    ValueError
        If an array has fewer than three dimensions, a matrix has fewer than two dimensions, or there is no block.

    Notes
    -----
    Consecutive blocks of the same shape are stored as one parameter ``(..., k, m, n)``, and computed by one batched operation. With
    k blocks of b × b, the costs are:

    =================================================  ============================================================
    elementwise, reductions, transpose, `diagonal`     ``O(k b**2)``
    times a vector, times a matrix of p columns        ``O(k b**2)``, ``O(k b**2 p)``
    times one of the same blocks, `matrix_power`       ``O(k b**3)``, block by block
    `solve`, `inv`, `det`, `slogdet`, `cholesky`       ``O(k b**3)``, block by block (square blocks)
    `eigvalsh`, `eigvals`, `eig`, `svdvals`, `pinv`    ``O(k b**3)``, block by block
    =================================================  ============================================================

    ``A[a:b, c:d]`` is block diagonal: the blocks are cut. A sum of two block-diagonal matrices has the finest blocks that contain
    both. If a block is singular, its rows of the solution are NaN under `jax.jit`; an eager call raises.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.BlockDiagonal([[[2.0, 1.0], [1.0, 2.0]], [[4.0]]])
    >>> A.to_dense()
    Dense([[2., 1., 0.],
           [1., 2., 0.],
           [0., 0., 4.]], dtype=float64)
    >>> sa.linalg.solve(A, sa.asarray([3.0, 3.0, 4.0]))
    Dense([1., 1., 1.], dtype=float64)
    """

    __slots__ = ()

    def __new__(cls, blocks: Any) -> BlockDiagonal:
        if isinstance(blocks, (list, tuple)):
            blocks = [parameter(b, f"blocks[{i}]", cls.__name__) for i, b in enumerate(blocks)]
            if not blocks:
                raise ValueError("blocks must contain at least one matrix, got none")
            for i, b in enumerate(blocks):
                if b.ndim < 2:
                    raise ValueError(f"blocks[{i}] must be a matrix (..., m, n), got shape {b.shape}")
            return _from_matrices(blocks)
        blocks = parameter(blocks, "blocks", cls.__name__)
        if blocks.ndim < 3:
            raise ValueError(f"blocks must be (..., k, m, n), or a list of matrices, got shape {blocks.shape}")
        return block_diagonal([blocks])

    # ---- the parts -----------------------------------------------------------------------------------------------

    @property
    def runs(self) -> tuple[Run, ...]:
        """The position of each run."""
        return _runs(self.meta)

    @property
    def core_shape(self) -> tuple[int, int]:
        """The shape ``(m, n)`` of the matrix."""
        return _core_shape(self.meta)

    @property
    def block_shapes(self) -> tuple[tuple[int, int], ...]:
        """The shapes of the blocks in order."""
        return tuple(itertools.chain.from_iterable([(h, w)] * k for k, h, w in self.meta))

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        return batch_of_blocks(leaves) + _core_shape(meta)

    def description(self) -> tuple[list[str], bool]:
        shapes = [f"{h}×{w}" if k == 1 else f"{k} of {h}×{w}" for k, h, w in self.meta]
        if len(shapes) > 6:
            shapes = [*shapes[:3], "…", *shapes[-3:]]
        return [f"blocks=[{', '.join(shapes)}]", f"shape={self.shape}"], False

    # ---- conversions ---------------------------------------------------------------------------------------------

    @classmethod
    def from_dense(cls, a: ParameterLike, sizes: int | Sequence[int | Sequence[int]]) -> Self:
        """Convert a dense matrix to a block-diagonal one.

        Parameters
        ----------
        a : array_like, (..., M, N)
            The matrix. It must be zero outside of the blocks.
        sizes : int, (int, int), or a sequence of them
            The sizes of the blocks. ``b`` or a tuple ``(m, n)`` is the shape of all blocks, and must divide the matrix. A
            list contains the size of each block.

        Returns
        -------
        BlockDiagonal

        Raises
        ------
        ValueError
            If the blocks do not add up to the matrix shape, or there are nonzero values outside of them (not checked under `jax.jit`).

        Examples
        --------
        >>> import structarrays as sa
        >>> A = sa.BlockDiagonal.from_dense([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0], [0.0, 0.0, 5.0]], [2, 1])
        >>> A.block_shapes
        ((2, 2), (1, 1))
        """
        a = parameter(a, "a", f"{cls.__name__}.from_dense")
        if a.ndim < 2:
            raise ValueError(f"a must be a matrix (..., M, N), got shape {a.shape}")
        meta = _meta_of(_sizes(sizes, a.shape[-2:]))
        if _core_shape(meta) != a.shape[-2:]:
            raise ValueError(
                f"sizes must add up to the shape of a, got sizes for shape {_core_shape(meta)} and a of shape {a.shape}"
            )
        empty = cls.make((*(jnp.zeros(m, a.dtype) for m in meta), None), meta)
        x = cls.make((*explicit.call(empty.gather, a), None), meta)
        _check_rest(a, x)
        return x


@functools.lru_cache(maxsize=1024)
def _runs(meta: Meta) -> tuple[Run, ...]:
    row = column = 0
    runs = []
    for k, h, w in meta:
        runs.append(Run(row, column, k, h, w))
        row, column = row + k * h, column + k * w
    return tuple(runs)


@functools.lru_cache(maxsize=1024)
def _core_shape(meta: Meta) -> tuple[int, int]:
    return sum(k * h for k, h, _ in meta), sum(k * w for k, _, w in meta)


def _meta_of(shapes: Iterable[tuple[int, int]]) -> tuple[tuple[int, int, int], ...]:
    """Static part for these block shapes: consecutive equal shapes are one run."""
    return tuple((len(list(group)), *shape) for shape, group in itertools.groupby(shapes))


def _from_matrices(blocks: Sequence[jax.Array]) -> BlockDiagonal:
    """Build from a list of matrices; consecutive matrices of equal shape are stacked."""
    dtype = dtypes.promote(*(b.dtype for b in blocks))
    batch = batch_shape_of(**{f"blocks[{i}]": b.shape[:-2] for i, b in enumerate(blocks)})
    blocks = [jnp.broadcast_to(b.astype(dtype), batch + b.shape[-2:]) for b in blocks]
    return block_diagonal([jnp.stack(list(g), axis=-3) for _, g in itertools.groupby(blocks, key=lambda b: b.shape)])


def _sizes(sizes: Any, shape: Shape) -> list[tuple[int, int]]:
    """Convert the argument `sizes` to a list of block shapes."""
    uniform = isinstance(sizes, tuple) and len(sizes) == 2 and all(hasattr(s, "__index__") for s in sizes)
    if uniform or not isinstance(sizes, (list, tuple)):
        h, w = _block_shape(sizes, "sizes")
        if not h or not w or shape[0] % h or shape[1] % w or shape[0] // h != shape[1] // w:
            raise ValueError(
                f"sizes must divide the matrix, got blocks of shape {(h, w)} for a matrix of shape {shape}"
            )
        return [(h, w)] * (shape[0] // h)
    return [_block_shape(s, f"sizes[{i}]") for i, s in enumerate(sizes)]


def _block_shape(size: Any, argument: str) -> tuple[int, int]:
    """Convert a size to a block shape; an integer is a square block."""
    try:
        pair = size if isinstance(size, (tuple, list)) else (size, size)
        h, w = map(operator.index, pair)
    except (TypeError, ValueError):
        raise TypeError(f"{argument} must be an integer or a shape (m, n), got {size!r}") from None
    if h < 0 or w < 0:
        raise ValueError(f"{argument} must not be negative, got {size}")
    return h, w


def _check_rest(a: jax.Array, x: Blocks) -> None:
    """Raise if dense values are nonzero outside of the blocks; tracers are not checked."""
    if isinstance(a, jax.core.Tracer):
        return
    host = np.asarray(a)
    wrong = (host != np.asarray(x.to_jax())) & ~np.isnan(host)
    wrong |= np.isnan(host) & ~np.isnan(np.asarray(x.to_jax()))
    if wrong.any():
        place = tuple(map(int, np.argwhere(wrong)[0]))
        raise ValueError(
            f"a must be zero outside of the blocks, but has {int(wrong.sum())} nonzero elements there, the first at {place}"
        )


# ---- constructors for kernels ----------------------------------------------------------------------------------------


def block_diagonal(runs: Sequence[jax.Array], background: jax.Array | None = None) -> BlockDiagonal:
    """Array of these runs ``(..., k, h, w)``, for kernels: consecutive runs of equal shape are merged, empty runs
    dropped.
    """
    batch = jnp.broadcast_shapes(*(r.shape[:-3] for r in runs))
    if background is not None:
        background = jnp.broadcast_to(background, batch)
    runs = [jnp.broadcast_to(r, batch + r.shape[-3:]) for r in runs]
    kept = [r for r in runs if r.shape[-3] and (r.shape[-2] or r.shape[-1])] or [
        jnp.zeros((*batch, 0, 0, 0), runs[0].dtype)
    ]
    leaves = []
    for _, group in itertools.groupby(kept, key=lambda r: r.shape[-2:]):
        equal = list(group)
        leaves.append(equal[0] if len(equal) == 1 else jnp.concatenate(equal, axis=-3))
    return BlockDiagonal.make((*leaves, background), tuple(leaf.shape[-3:] for leaf in leaves))


def narrowest(x: BlockDiagonal) -> Array:
    """The array itself; dense if it is a single block or empty."""
    alone = len(x.meta) == 1 and x.meta[0][0] <= 1
    return Dense.make((x.dense_data(),)) if alone or 0 in x.core_shape else x


# ---- partitions: the cuts of a block-diagonal matrix -----------------------------------------------------------------


def is_uniform(x: BlockDiagonal) -> bool:
    """Return whether all blocks have the same shape, which is not empty."""
    return len(x.meta) == 1 and all(x.meta[0])


def has_square_blocks(x: BlockDiagonal, *args: Any, **static: Any) -> bool:
    """Return whether a matrix is zero outside of square blocks, which then lie on the main diagonal."""
    return x.background is None and all(h == w for _, h, w in x.meta)


def stacks(x: BlockDiagonal) -> list[Dense]:
    """The runs as stacks of dense matrices. Blocks on the main diagonal inherit the assumptions of the matrix."""
    return [Dense.make((b,), None, x.assumptions) for b in x.blocks]


def cuts(x: BlockDiagonal) -> tuple[np.ndarray, np.ndarray]:
    """The rows and columns at which the blocks begin, and the ends of the last block."""
    counts, heights, widths = (np.array(v, int) for v in zip(*x.meta, strict=True))
    rows, columns = (np.concatenate([[0], np.cumsum(np.repeat(sizes, counts))]) for sizes in (heights, widths))
    return rows, columns


def regroup(x: BlockDiagonal, kept: np.ndarray) -> BlockDiagonal:
    """The same matrix with fewer blocks. `kept` are the numbers of the cuts that stay, including the first and the
    last.
    """
    counts = np.array([k for k, _, _ in x.meta])
    if len(kept) == counts.sum() + 1:
        return x
    begin = np.concatenate([[0], np.cumsum(counts)])
    run_of = np.repeat(np.arange(len(counts)), counts)

    def kind(block: int) -> tuple[int, int]:
        """A key for new blocks that can be merged in one operation: those with the same number of old blocks from the
        same run.
        """
        first, last = kept[block], kept[block + 1] - 1
        return (run_of[first], last - first) if run_of[first] == run_of[last] else (-1, block)

    result = []
    for (run, _), group in itertools.groupby(range(len(kept) - 1), key=kind):
        old = list(group)
        first, stop = int(kept[old[0]]), int(kept[old[-1] + 1])
        if run >= 0:
            part = x.blocks[run][..., first - begin[run] : stop - begin[run], :, :]
            part = part.reshape(*part.shape[:-3], len(old), (stop - first) // len(old), *part.shape[-2:])
            background = None if x.background is None else x.background[..., None]
            result.append(numerics.spread(part, background))
        else:
            merged = block_diagonal(between(x, first, stop), x.background)
            result.append(merged.dense_data()[..., None, :, :])
    return block_diagonal(result, x.background)


def between(x: BlockDiagonal, first: int, stop: int) -> list[jax.Array]:
    """The runs of the blocks with numbers from `first` up to `stop`."""
    parts, begin = [], 0
    for (k, _, _), run in zip(x.meta, x.blocks, strict=True):
        low, high = max(first - begin, 0), min(stop - begin, k)
        if low < high:
            parts.append(run if high - low == k else run[..., low:high, :, :])
        begin += k
    return parts


def side_by_side(x: BlockDiagonal, y: BlockDiagonal) -> list[tuple[jax.Array, jax.Array]]:
    """Pairs of runs of equal length, from two arrays with the same number of blocks."""
    ends = {*itertools.accumulate(k for k, _, _ in x.meta), *itertools.accumulate(k for k, _, _ in y.meta)}
    pairs = itertools.pairwise(sorted({0, *ends}))
    return [(between(x, *p)[0], between(y, *p)[0]) for p in pairs] or [(x.blocks[0], y.blocks[0])]


@validated.kernel(BlockDiagonal)
def check_block_diagonal(x: BlockDiagonal) -> None:
    """Raise unless there is a stack of blocks for each run, and a background."""
    check_static(type(x.meta) is tuple and len(x.meta) > 0, x)
    check_leaves(x, *(check_sizes(run, 3) for run in x.meta), BACKGROUND)
