"""Linear systems with block-banded matrices, in the blocks themselves."""

import jax.numpy as jnp

from ..core.array import Array
from ..core.recording import remark
from ..functions.linalg import inv, solve
from ..functions.linalg_solvers import POSITIVE_DEFINITE
from ..kernels import block_tridiagonal as kernel
from .block_banded import BlockBanded
from .factored_solvers import solved
from .inverse import checked_inverse
from .sparse_solvers import SOLVED_AS_DENSE  # and so the kernels here come before those there

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
