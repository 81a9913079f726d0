"""Linear systems with block-banded matrices, and their Cholesky factors, in the blocks themselves."""

import jax.numpy as jnp

from ..core.array import Array
from ..core.join import restrict
from ..core.recording import remark
from ..functions.linalg import cholesky, inv, qr, selected_inverse, solve
from ..functions.linalg_solvers import POSITIVE_DEFINITE
from ..functions.linalg_triangular import triangle_of
from ..kernels import block_tridiagonal as kernel
from .block_banded import BlockBanded, block_banded
from .factored_solvers import solved
from .inverse import checked_inverse
from .sparse_solvers import SOLVED_AS_DENSE, banded_form  # and so the kernels here come before those there

SMALLEST, LARGEST = 5, 64
"""Blocks of fewer rows are solved sooner as bands; block rows are put together to no larger blocks, since these have zeros inside."""


def _width(x: BlockBanded) -> int:
    """How many block rows together have entries in no more than the blocks beside their own."""
    return max(1, *map(abs, x.offsets))


def is_solved_by_blocks(x: BlockBanded, *args) -> bool:
    """Whether systems are solved by elimination in block-tridiagonal form (static)."""
    square = x.grid[0] == x.grid[1] and x.block_shape[0] == x.block_shape[1]
    if not square or x.background is not None or x.shape[-1] <= SOLVED_AS_DENSE:
        return False
    size, width = x.block_shape[0], _width(x)
    return size * width >= SMALLEST and (width == 1 or size * width <= LARGEST)


@solve.kernel(BlockBanded, Array, when=is_solved_by_blocks)
def _(x1, x2):
    definite = POSITIVE_DEFINITE in x1.assumptions
    remark(kernel.explanation(x1.block_shape[0] * _width(x1), definite))
    return solved(x1, x2, _solution)


def _solution(x, b):
    lower, diagonal, upper = _tridiagonal(x)
    missing = diagonal.shape[-3] * diagonal.shape[-1] - b.shape[-2]
    padded = jnp.pad(b, [(0, 0)] * (b.ndim - 2) + [(0, missing), (0, 0)])
    result, ok = kernel.solve(lower, diagonal, upper, padded, POSITIVE_DEFINITE in x.assumptions)
    return result[..., : b.shape[-2], :], ok


def _tridiagonal(x):
    """The block-tridiagonal form, (..., N, m, m) each, filled up by an identity where N does not divide the number of block rows."""
    count, size, width = x.grid[0], x.block_shape[0], _width(x)
    stored = dict(zip(x.offsets, x.blocks, strict=True))

    def beside(k):
        """The blocks with offset k of all block rows, zero where there is none."""
        blocks = stored.get(k, jnp.zeros((*x.batch_shape, count - abs(k), size, size), x.dtype))
        return jnp.pad(blocks, [(0, 0)] * len(x.batch_shape) + [(max(0, -k), max(0, k)), (0, 0), (0, 0)])

    if width == 1:
        return beside(-1), beside(0), beside(1)
    panels = jnp.stack([beside(k) for k in range(-width, width + 1)], -3)  # (..., count, 2 width + 1, size, size)
    groups = -(-count // width)
    identity = jnp.zeros((groups * width - count, *panels.shape[-3:]), x.dtype).at[:, width].set(jnp.eye(size))
    identity = jnp.broadcast_to(identity, (*x.batch_shape, *identity.shape))
    panels = jnp.concatenate([panels, identity], -4)
    # Block row r of a group begins r blocks to the right of its first: panels that are longer by one, read one after the other, do.
    panels = jnp.pad(panels, [(0, 0)] * (panels.ndim - 3) + [(0, width), (0, 0), (0, 0)])
    panels = panels.reshape(*x.batch_shape, groups, width * (3 * width + 1), size, size)[..., : 3 * width**2, :, :]
    panels = panels.reshape(*x.batch_shape, groups, width, 3 * width, size, size)
    m = width * size
    panels = jnp.swapaxes(panels, -3, -2).reshape(*x.batch_shape, groups, m, 3 * m)
    return panels[..., :m], panels[..., m : 2 * m], panels[..., 2 * m :]


@inv.kernel(BlockBanded, when=is_solved_by_blocks)
def _(x):
    """Full, so that it is not formed."""
    return checked_inverse(x)


# ---- factors -----------------------------------------------------------------------------------------------------------


def _is_block_tridiagonal(x, **static) -> bool:
    square = x.grid[0] == x.grid[1] and x.block_shape[0] == x.block_shape[1]
    return square and x.background is None and _width(x) == 1


@cholesky.kernel(BlockBanded, when=_is_block_tridiagonal)
def _(x, *, upper):
    """A block bidiagonal matrix, of the Hermitian part."""
    lower, diagonal, above = _tridiagonal(x)
    below = jnp.pad(lower[..., 1:, :, :], [(0, 0)] * (lower.ndim - 3) + [(0, 1), (0, 0), (0, 0)])
    diagonal, above = (diagonal + _adjoint(diagonal)) / 2, (above + _adjoint(below)) / 2
    beside, factors = kernel.cholesky(diagonal, above)
    ok = ~jnp.any(jnp.isnan(factors)) | jnp.any(jnp.isnan(diagonal)) | jnp.any(jnp.isnan(above))
    blocks = {0: _adjoint(factors) if upper else factors}
    if x.grid[0] > 1:
        blocks[1 if upper else -1] = _adjoint(beside[..., 1:, :, :]) if upper else beside[..., 1:, :, :]
    return block_banded(blocks, x.grid, x.block_shape), ok


def _adjoint(blocks):
    return blocks.mT.conj()


def _has_square_blocks(x, **static) -> bool:
    return x.background is None and x.block_shape[0] == x.block_shape[1]


@triangle_of.kernel(BlockBanded, when=_has_square_blocks)
def _(x, *, lower, unit_diagonal):
    """The block diagonals on that side, and the triangles of the blocks of the main one."""
    blocks = {k: b for k, b in zip(x.offsets, x.blocks, strict=True) if (k < 0 if lower else k > 0)}
    size = x.block_shape[0]
    own = dict(zip(x.offsets, x.blocks, strict=True)).get(0)
    if own is None:
        own = jnp.zeros((*x.batch_shape, min(x.grid), size, size), x.dtype)
    own = jnp.tril(own) if lower else jnp.triu(own)
    blocks[0] = jnp.where(jnp.eye(size, dtype=bool), 1, own) if unit_diagonal else own
    return block_banded(blocks, x.grid, x.block_shape)


# ---- in banded form ----------------------------------------------------------------------------------------------------


def _has_bands(x, **static) -> bool:
    """Whether a square matrix has zeros enough beside its bands."""
    return x.background is None and x.shape[-2] == x.shape[-1] > 2 * sum(x._bandwidths())


@qr.kernel(BlockBanded, when=_has_bands)
def _(x, *, mode):
    remark("the banded form of the blocks")
    return qr.dispatch(banded_form(x), mode=mode)


@cholesky.kernel(BlockBanded, when=lambda x, *, upper: _has_bands(x) and not _is_block_tridiagonal(x))
def _(x, *, upper):
    remark("the banded form of the blocks")
    return cholesky.dispatch(banded_form(x), upper=upper)


@selected_inverse.kernel(BlockBanded, when=_has_bands)
def _(x):
    remark("the banded form of the blocks")
    elements, ok = selected_inverse.dispatch(banded_form(x))
    return restrict(elements, x), ok
