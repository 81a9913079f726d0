"""Linear systems and Cholesky factors of block-banded matrices, computed block by block. Other functions use the banded
form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import densify
from ..._core.dispatch.recording import remark
from ..._core.families.conditions import is_square_pattern
from ..._core.families.join import restrict
from ..._core.families.other_forms import by_form
from ..._functions.linalg import (
    cholesky,
    det,
    eigvalsh,
    inv,
    lu_factor,
    lu_solve,
    matrix_norm,
    matrix_rank,
    qr,
    selected_inverse,
    slogdet,
    solve,
    solve_triangular,
    svdvals,
)
from ..._functions.linalg.systems import POSITIVE_DEFINITE
from ..._functions.linalg.triangular import transposed
from ..._numerics.cyclic_reduction import rows_of_blocks
from ..._numerics.undefined import nan_unless
from ..banded.array import Banded, bands
from ..composite.det_by_slogdet import det_by_slogdet
from ..composite.inverse import checked_inverse
from ..composite.part_solvers import solved
from ..fallback.singular_values import of_singular_values

# import first: kernels of this module then precede kernels of `sparse.solvers`
from ..sparse.solvers import has_few_blocks, is_large
from ..sparse.sparse_joins import to_sparse
from . import block_determinants, block_tridiagonal
from .block_banded import BlockBanded, block_banded

if TYPE_CHECKING:
    from ..._core.typing import Result

SMALLEST, LARGEST = 5, 64
"""The range of block sizes that are solved by blocks. Smaller blocks are solved faster as bands. Block rows are not
merged to larger blocks, since these contain zeros.
"""

SMALLEST_OF_DETERMINANTS = 8
"""The same limit for determinants and selected inverses."""


def _width(x: BlockBanded) -> int:
    """Number of block rows to merge, so that entries lie only in the diagonal and the adjacent blocks."""
    return max(1, *map(abs, x.offsets))


def has_near_blocks(x: BlockBanded, *args: Any, **static: Any) -> bool:
    """Return whether a matrix of square blocks has a block-tridiagonal form whose blocks contain few zeros (static)."""
    square = x.grid[0] == x.grid[1] and x.block_shape[0] == x.block_shape[1]
    width = _width(x)
    return square and x.grid[0] > 0 and x.background is None and (width == 1 or width * x.block_shape[0] <= LARGEST)


def is_solved_by_blocks(x: BlockBanded, *args: Any) -> bool:
    """Return whether linear systems are solved by elimination in the block-tridiagonal form (static)."""
    return is_large(x.shape[-1]) and x.block_shape[0] * _width(x) >= SMALLEST and has_near_blocks(x)


def _has_determinant_by_blocks(x: BlockBanded) -> bool:
    return is_solved_by_blocks(x) and x.block_shape[0] * _width(x) >= SMALLEST_OF_DETERMINANTS


def _solution(x: BlockBanded, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    lower, diagonal, upper = tridiagonal_form(x)
    definite = POSITIVE_DEFINITE in x.assumptions
    result, ok = block_tridiagonal.solve(lower, diagonal, upper, _padded(b, diagonal), definite)
    return result[..., : b.shape[-2], :], ok


def _padded(b: jax.Array, diagonal: jax.Array) -> jax.Array:
    """Append zeros for the rows with which the matrix is padded."""
    missing = diagonal.shape[-3] * diagonal.shape[-1] - b.shape[-2]
    return jnp.pad(b, [(0, 0)] * (b.ndim - 2) + [(0, missing), (0, 0)])


def tridiagonal_form(x: BlockBanded) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The block-tridiagonal form, (..., N, m, m) each, padded by an identity if N does not divide the number of block
    rows.
    """
    count, size, width = x.grid[0], x.block_shape[0], _width(x)
    stored = dict(zip(x.offsets, x.blocks, strict=True))

    def blocks_at(k: int) -> jax.Array:
        """The blocks with offset k of all block rows; zero if there is none."""
        blocks = stored.get(k, jnp.zeros((*x.batch_shape, count - abs(k), size, size), x.dtype))
        return jnp.pad(blocks, [(0, 0)] * len(x.batch_shape) + [(max(0, -k), max(0, k)), (0, 0), (0, 0)])

    if width == 1:
        return blocks_at(-1), blocks_at(0), blocks_at(1)
    panels = jnp.stack([blocks_at(k) for k in range(-width, width + 1)], -3)  # (..., count, 2 width + 1, size, size)
    groups = -(-count // width)
    main = (jnp.arange(2 * width + 1) == width)[:, None, None] & jnp.eye(size, dtype=bool)
    identity = jnp.broadcast_to(main.astype(x.dtype), (*x.batch_shape, groups * width - count, *main.shape))
    panels = jnp.concatenate([panels, identity], -4)
    # Block row r of a group begins r blocks to the right of its first row. Reading panels that are longer by one in
    # flat order gives this shift.
    panels = jnp.pad(panels, [(0, 0)] * (panels.ndim - 3) + [(0, width), (0, 0), (0, 0)])
    panels = panels.reshape(*x.batch_shape, groups, width * (3 * width + 1), size, size)[..., : 3 * width**2, :, :]
    panels = panels.reshape(*x.batch_shape, groups, width, 3 * width, size, size)
    m = width * size
    panels = jnp.swapaxes(panels, -3, -2).reshape(*x.batch_shape, groups, m, 3 * m)
    return panels[..., :m], panels[..., m : 2 * m], panels[..., 2 * m :]


# ---- factors -----------------------------------------------------------------------------------------------------------


def _is_block_tridiagonal(x: BlockBanded, **static: Any) -> bool:
    return has_near_blocks(x) and _width(x) == 1


@cholesky.kernel(BlockBanded, when=_is_block_tridiagonal)
def _cholesky_block_banded_if_is_block_tridiagonal(x: BlockBanded, *, upper: bool) -> tuple[Array, jax.Array]:
    """The factor is block bidiagonal. The Hermitian part is factored."""
    lower, diagonal, above = tridiagonal_form(x)
    diagonal, above = block_tridiagonal.hermitian_part(lower, diagonal, above)
    off_diagonal, factors = block_tridiagonal.cholesky(diagonal, above)
    ok = ~jnp.any(jnp.isnan(factors)) | jnp.any(jnp.isnan(diagonal)) | jnp.any(jnp.isnan(above))
    blocks = {0: _adjoint(factors) if upper else factors}
    if x.grid[0] > 1:
        blocks[1 if upper else -1] = _adjoint(off_diagonal[..., 1:, :, :]) if upper else off_diagonal[..., 1:, :, :]
    return block_banded(blocks, x.grid, x.block_shape), ok


def _adjoint(blocks: jax.Array) -> jax.Array:
    return blocks.mT.conj()


def _is_factored_by_blocks(x: BlockBanded, *others: Any, **static: Any) -> bool:
    return _is_block_tridiagonal(x) and x.grid[0] > 1


@lu_factor.kernel(BlockBanded, when=_is_factored_by_blocks)
def _lu_factor_block_banded(a: BlockBanded) -> tuple[Array, Dense]:
    factors, exchanges, right = block_tridiagonal.lu(*tridiagonal_form(a))
    count, m = a.grid[0], a.block_shape[0]
    blocks = {-1: factors[..., m:, :], 0: factors[..., :m, :], 1: right[..., :m], 2: right[..., m:]}
    blocks = {k: b[..., : count - abs(k), :, :] for k, b in blocks.items() if abs(k) < count}
    first = m * jnp.arange(count, dtype=exchanges.dtype)[:, None]
    piv = (exchanges + first).reshape(*exchanges.shape[:-2], count * m)
    return block_banded(blocks, a.grid, a.block_shape), Dense.make((piv,))


def _is_block_factor(a: BlockBanded, *others: Any, **static: Any) -> bool:
    square = a.grid[0] == a.grid[1] and a.block_shape[0] == a.block_shape[1]
    return square and a.background is None and set(a.offsets) <= {-1, 0, 1, 2}


@lu_solve.kernel(BlockBanded, Array, Array, when=_is_block_factor)
def _lu_solve_block_banded(a: BlockBanded, piv: Array, b: Array, *, trans: int) -> tuple[Dense, jax.Array]:
    count, m = a.grid[0], a.block_shape[0]
    stored = dict(zip(a.offsets, a.blocks, strict=True))

    def at(k: int) -> jax.Array:
        """The blocks with offset k, with zeros appended."""
        blocks = stored.get(k, jnp.zeros((*a.batch_shape, 0, m, m), a.dtype))
        return jnp.pad(blocks, [(0, 0)] * len(a.batch_shape) + [(0, count - blocks.shape[-3]), (0, 0), (0, 0)])

    factors, right = jnp.concatenate([at(0), at(-1)], -2), jnp.concatenate([at(1), at(2)], -1)
    exchanges = piv.dense_data()
    exchanges = exchanges.reshape(*exchanges.shape[:-1], count, m)
    exchanges = exchanges - m * jnp.arange(count, dtype=exchanges.dtype)[:, None]
    data = densify(b, "linalg.lu_solve").data
    x, ok = block_tridiagonal.lu_solve(factors, exchanges, right, data.conj() if trans == 2 else data, bool(trans))
    return Dense.make((x.conj() if trans == 2 else x,)), ok


@solve_triangular.kernel(BlockBanded, Array, when=has_near_blocks)
def _solve_triangular_block_banded(a: BlockBanded, b: Array, *, trans: int, lower: bool, unit_diagonal: bool) -> Result:
    if trans:
        a, lower = cast("BlockBanded", transposed(a, trans)), not lower

    def solution(a: BlockBanded, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        left, diagonal, right = tridiagonal_form(a)
        off_diagonal = left if lower else right
        x, ok = block_tridiagonal.solve_triangular(off_diagonal, diagonal, _padded(b, diagonal), lower, unit_diagonal)
        return x[..., : b.shape[-2], :], ok

    return solved(a, b, solution)


# ---- in banded form ----------------------------------------------------------------------------------------------------


NARROW = 32
"""The largest number of diagonals per side for which QR decompositions, and functions of small blocks, use the banded
form.
"""

NARROW_ON_THE_HOST = 128
"""The same limit for spectra, which call LAPACK and so compile in constant time."""


def _has_few_bands(x: BlockBanded, *args: Any, limit: int = NARROW, **static: Any) -> bool:
    """Return whether a matrix has few bands, and enough rows to justify the program size of the banded form."""
    square = x.shape[-2] == x.shape[-1]
    return square and is_large(x.shape[-1]) and x.background is None and max(x.bandwidths()) <= limit


def _has_spectrum_by_bands(x: BlockBanded, **static: Any) -> bool:
    return _has_few_bands(x, limit=min(NARROW_ON_THE_HOST, max(NARROW, x.shape[-1] // 8)))


def banded_form(x: BlockBanded) -> Banded:
    """Convert a square block-banded matrix to a banded one with all diagonals that its blocks reach."""
    (below, above), n = x.bandwidths(), x.shape[-1]
    offsets = tuple(range(-below, above + 1))
    if not has_near_blocks(x):
        like = bands([jnp.zeros(n - abs(k), x.dtype) for k in offsets], offsets, x.core_shape)
        return cast("Banded", restrict(x, like).assuming(x.assumptions))
    rows = rows_of_blocks(*tridiagonal_form(x))
    middle = rows.shape[-1] // 2
    diagonals = [rows[..., max(0, -k) : n - max(0, k), middle + k] for k in offsets]
    return bands(diagonals, offsets, x.core_shape).assuming(x.assumptions)


_BY_SPARSE_FORM = "block_banded_by_sparse_form"


@by_form(solve, inv, slogdet, det, qr, of=BlockBanded, when=_has_few_bands, before=_BY_SPARSE_FORM)
@by_form(eigvalsh, svdvals, matrix_rank, of=BlockBanded, when=_has_spectrum_by_bands, before=_BY_SPARSE_FORM)
@by_form(matrix_norm, of=BlockBanded, when=of_singular_values(_has_spectrum_by_bands))
@by_form(cholesky, of=BlockBanded, when=lambda x, *, upper: _has_few_bands(x) and not _is_block_tridiagonal(x))
def block_banded_by_banded_form(x: BlockBanded) -> Banded:
    """Use the banded form, unless a kernel for blocks precedes it."""
    remark("the banded form of the blocks")
    return banded_form(x)


# ---- block methods, which precede the banded form --------------------------------------------------------------------


@solve.kernel(BlockBanded, Array, when=is_solved_by_blocks, before=_BY_SPARSE_FORM)
def _solve_block_banded(x1: BlockBanded, x2: Array) -> Result:
    definite = POSITIVE_DEFINITE in x1.assumptions
    width = _width(x1)
    remark(block_tridiagonal.explanation(-(-x1.grid[0] // width), x1.block_shape[0] * width, definite))
    return solved(x1, x2, _solution)


inv.kernel(BlockBanded, when=is_solved_by_blocks, before=_BY_SPARSE_FORM)(checked_inverse)


def _slogdet(x: BlockBanded) -> tuple[jax.Array, jax.Array]:
    return block_determinants.slogdet(*tridiagonal_form(x), POSITIVE_DEFINITE in x.assumptions)


@slogdet.kernel(BlockBanded, when=_has_determinant_by_blocks, before=_BY_SPARSE_FORM)
def _slogdet_block_banded(x: BlockBanded) -> tuple[Dense, ...]:
    remark("block elimination, with pivots unless positive definiteness is assumed; O(n m**2) for blocks of m rows")
    return tuple(Dense.make((part,)) for part in _slogdet(x))


det.kernel(BlockBanded, when=_has_determinant_by_blocks, before=_BY_SPARSE_FORM)(det_by_slogdet)


# ---- factors and elements ----------------------------------------------------------------------------------------------


@selected_inverse.kernel(BlockBanded, when=is_square_pattern)
def _selected_inverse_block_banded_if_background(x: BlockBanded) -> tuple[Array, jax.Array]:
    """Selected inverse from the dense form or from another form with a kernel, at the positions of the blocks."""
    return _restricted(densify(x, "linalg.selected_inverse"), x)


@selected_inverse.kernel(BlockBanded, when=has_few_blocks)
def _selected_inverse_block_banded_if_has_few_blocks(x: BlockBanded) -> tuple[Array, jax.Array]:
    remark("the sparse form of the blocks")
    return _restricted(to_sparse(x), x)


@selected_inverse.kernel(BlockBanded, when=_has_few_bands)
def _selected_inverse_block_banded_if_has_few_bands(x: BlockBanded) -> tuple[Array, jax.Array]:
    remark("the banded form of the blocks")
    return _restricted(banded_form(x), x)


@selected_inverse.kernel(BlockBanded, when=_has_determinant_by_blocks)
def _selected_inverse_block_banded_if_has_determinant_by_blocks(x: BlockBanded) -> tuple[Array, jax.Array]:
    """The selected inverse is the transpose of the derivative of the logarithm of the determinant."""
    remark("the derivative of the determinant, by block elimination")
    stored, (m, n) = dict(zip(x.offsets, x.blocks, strict=True)), x.block_shape
    blocks = {}
    for k in sorted({*x.offsets, *(-k for k in x.offsets)}):
        blocks[k] = stored.get(k, jnp.zeros((*x.batch_shape, x.grid[0] - abs(k), m, n), x.dtype))

    def logarithm(blocks: dict[int, jax.Array]) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        sign, logabsdet = _slogdet(
            cast("BlockBanded", block_banded(blocks, x.grid, x.block_shape).assuming(x.assumptions))
        )
        return jnp.sum(logabsdet), (sign, logabsdet)

    elements, (sign, logabsdet) = jax.grad(logarithm, has_aux=True)(blocks)
    given = sum(jnp.sum(b, (-3, -2, -1)) for b in x.blocks)  # NaN if a matrix contains NaN
    bad = (sign == 0) | (jnp.isnan(logabsdet) & ~jnp.isnan(given))
    inverse = {k: nan_unless(~bad[..., None, None, None], elements[-k].mT) for k in x.offsets}
    return block_banded(inverse, x.grid, x.block_shape), ~jnp.any(bad)


def _restricted(form: Array, x: BlockBanded) -> tuple[Array, jax.Array]:
    elements, ok = selected_inverse.dispatch(form.assuming(x.assumptions))
    return restrict(elements, x), ok
