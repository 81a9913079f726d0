"""Linear systems, factors, determinants and spectra of block-diagonal matrices, block by block.

The dense kernels compute batches of blocks, so that assumptions reach them as well. The eigenvalues and singular values
of the blocks are the values of the matrix, sorted where the standard requires it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import densify, to_dense
from ..._core.dispatch.recording import remark
from ..._core.families.conditions import has_structural_zeros, is_square_pattern
from ..._core.families.join import restrict
from ..._functions.linalg import (  # fmt: skip
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
)
from ..._functions.linalg.systems import logarithms
from ..._functions.matrix_checks import real_dtype
from ..._numerics import determinants, pseudo_inverse
from ..banded.diagonal import Diagonal
from ..composite.part_solvers import all_true
from ..composite.product import product
from ..fallback.singular_values import norm_and_rank, nuclear_norm, spectral_norm, tolerance
from ..permutation.ordered import in_order
from .block_diagonal import BlockDiagonal, block_diagonal, has_square_blocks, regroup, side_by_side, stacks
from .products import common_cuts, multiply_by_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable

    import jax

    from ..._core.dispatch.function import Function
    from ..._core.typing import Result


def _data(arrays: Iterable[Dense]) -> list[jax.Array]:
    return [a.data for a in arrays]


# ---- linear systems and factors --------------------------------------------------------------------------------------


@solve.kernel(BlockDiagonal, Array, when=has_square_blocks)
def _solve_block_diagonal(x1: BlockDiagonal, x2: Array) -> tuple[Dense, jax.Array]:
    remark("a linear system with each block; O(m**3) for blocks of m rows, blocks of equal size as one batch")
    return solved_by_blocks(solve, x1, x2)


def solved_by_blocks(
    function: Function[..., Any], a: BlockDiagonal, b: Array, **static: Any
) -> tuple[Dense, jax.Array]:
    """Apply a function of a matrix and a right-hand side, such as `solve`, to each block; also return whether all
    blocks are regular.
    """
    data = to_dense(b).data[:, None] if b.ndim == 1 else densify(b, function.name).data
    parts, flags = [], []
    for run, blocks in zip(a.runs, stacks(a), strict=True):
        right = data[..., run.rows, :]
        right = right.reshape(*right.shape[:-2], run.count, run.height, right.shape[-1])
        part, ok = function.dispatch(blocks, Dense.make((right,)), **static)
        parts.append(part.data.reshape(*part.shape[:-3], run.count * run.height, part.shape[-1]))
        flags.append(ok)
    solution = jnp.concatenate(parts, axis=-2)
    return Dense.make((solution[..., 0] if b.ndim == 1 else solution,)), all_true(flags)


@solve.kernel(BlockDiagonal, BlockDiagonal, when=lambda x1, x2: has_square_blocks(x1) and multiply_by_blocks(x1, x2))
def _solve_block_diagonal_block_diagonal(x1: BlockDiagonal, x2: BlockDiagonal) -> tuple[BlockDiagonal, jax.Array]:
    """If the right-hand side has the same cuts as the matrix, so does the solution."""
    kept, other = common_cuts(x1, x2)
    x1, x2 = regroup(x1, kept).assuming(x1.assumptions), regroup(x2, other)
    pairs = [solve.dispatch(Dense.make((a,), None, x1.assumptions), Dense.make((b,))) for a, b in side_by_side(x1, x2)]
    return block_diagonal([part.data for part, _ in pairs]), all_true([ok for _, ok in pairs])


@solve.kernel(BlockDiagonal, Diagonal, when=lambda x1, x2: has_square_blocks(x1) and is_square_pattern(x2))
def _solve_block_diagonal_diagonal(x1: BlockDiagonal, x2: Diagonal) -> Result:
    return solve.dispatch(x1, restrict(x2, x1))


@inv.kernel(BlockDiagonal, when=has_square_blocks)
def _inv_block_diagonal(x: BlockDiagonal) -> tuple[BlockDiagonal, jax.Array]:
    results, flags = zip(*(inv.dispatch(b) for b in stacks(x)), strict=True)
    return x.rebuild(tuple(_data(results)), None), all_true(flags)


@cholesky.kernel(BlockDiagonal, when=has_square_blocks)
def _cholesky_block_diagonal(x: BlockDiagonal, *, upper: bool) -> tuple[BlockDiagonal, jax.Array]:
    results, flags = zip(*(cholesky.dispatch(b, upper=upper) for b in stacks(x)), strict=True)
    return x.rebuild(tuple(_data(results)), None), all_true(flags)


def _tall_or_wide(x: BlockDiagonal, *, mode: str) -> bool:
    """Return whether the factors of the blocks form the factors of the matrix. R is upper triangular only if no block
    is tall, or Q is reduced.
    """
    tall, wide = (all(h >= w for _, h, w in x.meta), all(h <= w for _, h, w in x.meta))
    return x.background is None and (wide or (tall and mode == "reduced"))


@qr.kernel(BlockDiagonal, when=_tall_or_wide)
def _qr_block_diagonal(x: BlockDiagonal, *, mode: str) -> tuple[BlockDiagonal, ...]:
    factors = [_data(qr.dispatch(b, mode=mode)) if min(b.shape[-2:]) else _empty_factors(b) for b in stacks(x)]
    return tuple(block_diagonal(parts) for parts in zip(*factors, strict=True))


def _empty_factors(b: Dense) -> tuple[jax.Array, jax.Array]:
    """Factors of blocks without rows or without columns."""
    return jnp.zeros((*b.shape[:-1], 0), b.dtype), jnp.zeros((*b.shape[:-2], 0, b.shape[-1]), b.dtype)


# ---- determinants ---------------------------------------------------------------------------------------------------


@det.kernel(BlockDiagonal, when=has_square_blocks)
def _det_block_diagonal(x: BlockDiagonal) -> Dense:
    def multiplied(x: BlockDiagonal) -> jax.Array:
        return jnp.prod(jnp.concatenate([det.dispatch(b).data for b in stacks(x)], axis=-1), axis=-1)

    return Dense.make((determinants.of_parts(multiplied, logarithms, x),))


@slogdet.kernel(BlockDiagonal, when=has_square_blocks)
def _slogdet_block_diagonal(x: BlockDiagonal) -> tuple[Dense, Dense]:
    signs, logs = zip(*(_data(slogdet.dispatch(b)) for b in stacks(x)), strict=True)
    sign = functools.reduce(jnp.multiply, [jnp.prod(s, axis=-1) for s in signs])
    return Dense.make((sign,)), Dense.make((sum(jnp.sum(v, axis=-1) for v in logs),))


# ---- spectra --------------------------------------------------------------------------------------------------------


def _in_a_row(parts: Iterable[jax.Array]) -> jax.Array:
    """Concatenate values ``(..., k, b)`` of each block."""
    return jnp.concatenate([p.reshape(*p.shape[:-2], p.shape[-2] * p.shape[-1]) for p in parts], axis=-1)


@eigvals.kernel(BlockDiagonal, when=has_square_blocks)
def _eigvals_block_diagonal(x: BlockDiagonal) -> Dense:
    return Dense.make((_in_a_row([eigvals.dispatch(b).data for b in stacks(x)]),))


@eig.kernel(BlockDiagonal, when=has_square_blocks)
def _eig_block_diagonal(x: BlockDiagonal) -> tuple[Dense, BlockDiagonal]:
    """Eigenvalues may be in any order, so that the eigenvectors are block diagonal."""
    values, vectors = zip(*(_data(eig.dispatch(b)) for b in stacks(x)), strict=True)
    return Dense.make((_in_a_row(values),)), x.rebuild(tuple(vectors), None)


@eigvalsh.kernel(BlockDiagonal, when=has_square_blocks)
def _eigvalsh_block_diagonal(x: BlockDiagonal) -> Dense:
    return Dense.make((jnp.sort(_in_a_row([eigvalsh.dispatch(b).data for b in stacks(x)]), axis=-1),))


@eigh.kernel(BlockDiagonal, when=has_square_blocks)
def _eigh_block_diagonal(x: BlockDiagonal) -> tuple[Dense, Array]:
    """The eigenvectors of the blocks, sorted like the eigenvalues."""
    values, vectors = zip(*(_data(eigh.dispatch(b)) for b in stacks(x)), strict=True)
    ordered, order = in_order(_in_a_row(values), x.dtype)
    return ordered, product(x.rebuild(tuple(vectors), None), order.mT)


# ---- singular values ------------------------------------------------------------------------------------------------


def _singular_values(x: BlockDiagonal) -> list[jax.Array]:
    """Singular values of each run, ``(..., k, min(h, w))``; empty blocks have none."""
    return [svdvals.dispatch(b).data if min(b.shape[-2:]) else jnp.zeros((*b.shape[:-2], 0)) for b in stacks(x)]


@svdvals.kernel(BlockDiagonal, when=has_structural_zeros)
def _svdvals_block_diagonal(x: BlockDiagonal) -> Dense:
    values = _in_a_row(_singular_values(x)).astype(real_dtype(x.dtype))
    zeros = min(x.core_shape) - values.shape[-1]  # with both tall and wide blocks, some directions belong to no block
    values = jnp.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, zeros)])
    return Dense.make((jnp.flip(jnp.sort(values, axis=-1), axis=-1),))


@svd.kernel(BlockDiagonal, when=has_square_blocks)
def _svd_block_diagonal(x: BlockDiagonal, *, full_matrices: bool) -> tuple[Array, Dense, Array]:
    u, s, vh = zip(*(_data(svd.dispatch(b, full_matrices=False)) for b in stacks(x)), strict=True)
    values, order = in_order(_in_a_row(s), x.dtype, descending=True)
    return product(x.rebuild(tuple(u), None), order.mT), values, product(order, x.rebuild(tuple(vh), None))


def _nuclear_norm(x: BlockDiagonal) -> jax.Array:
    return cast("jax.Array", sum(jnp.sum(nuclear_norm(b), axis=-1) for b in stacks(x)))


def _spectral_norm(x: BlockDiagonal) -> jax.Array:
    return jnp.max(jnp.concatenate([spectral_norm(b) for b in stacks(x)], axis=-1), axis=-1)


norm_and_rank(BlockDiagonal, norms={"nuc": _nuclear_norm, 2: _spectral_norm}, when=has_structural_zeros)


@pinv.kernel(BlockDiagonal, when=has_structural_zeros)
def pinv_block_diagonal(x: BlockDiagonal, *, rtol: jax.Array | None) -> BlockDiagonal:
    """Block by block, with tolerances relative to the whole matrix."""
    parts = []
    for b, relative in zip(x.blocks, relative_tolerances(x, rtol), strict=True):
        b = jnp.broadcast_to(b, relative.shape + b.shape[-2:])
        parts.append(pseudo_inverse.pinv(b, relative) if b.size else jnp.zeros(b.mT.shape, b.dtype))
    return block_diagonal(parts)


def relative_tolerances(x: BlockDiagonal, rtol: jax.Array | None) -> list[jax.Array]:
    """For each run, the tolerances ``(..., k)`` relative to the largest singular values of its blocks.

    They correspond to tolerances relative to the largest singular value of all blocks.
    """
    values = [lax.stop_gradient(s) for s in _singular_values(x)]
    largest = [jnp.max(s, axis=-1, initial=0) for s in values]  # the largest of each block
    bound = jnp.max(jnp.concatenate(largest, axis=-1), axis=-1, initial=0) * tolerance(x, rtol)
    return [(bound[..., None] / jnp.where(own == 0, 1, own)).astype(real_dtype(x.dtype)) for own in largest]
