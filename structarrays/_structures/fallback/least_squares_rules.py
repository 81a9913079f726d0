"""`lstsq` for matrices whose pseudo-inverse or QR decomposition has structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import to_dense
from ..._core.dispatch.contexts import caller
from ..._core.dispatch.recording import remark
from ..._core.dispatch.registry import Registry
from ..._core.families.conditions import has_structural_zeros
from ..._core.families.factored import with_batch
from ..._core.families.other_forms import by_form
from ..._functions.elementwise import add, subtract
from ..._functions.linalg import lstsq, matmul, matrix_transpose, pinv, qr, solve, svdvals
from ..._functions.linalg.least_squares import by_dense_form, minimum_norm_dense, result_without_values, solution
from ..._functions.rounding_and_parts import conj
from ..._numerics import banded_qr
from ..._numerics import circulant_transforms as circulant
from ..._numerics.flags import custom_jvp
from ..banded.array import Banded, at_offsets, bands
from ..banded.bandwidths import is_banded
from ..banded.diagonal import Diagonal
from ..blocks.block_diagonal import BlockDiagonal, stacks
from ..blocks.block_diagonal_solvers import relative_tolerances
from ..composite.dense_fallback import least_squares_or_dense_form
from ..composite.product import Product
from ..composite.sum import Sum
from ..kronecker.array import Kronecker, transformed
from ..low_rank.array import LowRank
from ..low_rank.low_rank_spectra import has_low_rank, is_narrow, of_low_rank, significant_values
from ..toeplitz.circulant import Circulant
from ..toeplitz.circulant_solvers import pseudo_reciprocals

if TYPE_CHECKING:
    from ..._core.typing import Result


def _is_narrow(a: LowRank, *args: Array, **static: Any) -> bool:
    return 0 < a.rank < min(a.shape[-2:])


@lstsq.kernel(Diagonal, Array, when=has_structural_zeros)
@lstsq.kernel(BlockDiagonal, Array, when=has_structural_zeros)
@lstsq.kernel(Circulant, Array)
@lstsq.kernel(Kronecker, Array)
def lstsq_by_parts(a: Diagonal | BlockDiagonal | Circulant | Kronecker, b: Array, *, cond: jax.Array) -> Result:
    """Solve by decompositions of the parts, without a dense form."""
    return solution(a, b, cond, _minimum_norm(a, b, cond), svdvals.dispatch(a).dense_data())


@lstsq.kernel(LowRank, Array, when=_is_narrow)
def _lstsq_low_rank(a: LowRank, b: Array, *, cond: jax.Array) -> Result:
    """Solve by the pseudo-inverse."""
    return solution(a, b, cond, minimum_norm_by_pinv(a, b, cond), significant_values(a))


minimum_norm: Registry[Array] = Registry("minimum_norm")
"""``minimum_norm.kernel(A)``: return the minimum-norm solution for ``(A, b, cond)``, by decompositions that are applied
to `b`; see `pseudo_inverse.least_squares`.
"""


def _minimum_norm(a: Array, b: Array, cond: jax.Array) -> Array:
    return minimum_norm.required((a,)).run(a, b, cond)


@minimum_norm.kernel(Array)
def minimum_norm_by_dense_form(a: Array, b: Array, cond: jax.Array) -> Dense:
    """Use the decomposition of the dense form."""
    return minimum_norm_dense(to_dense(a), b, cond)[0]


@minimum_norm.kernel(Diagonal)
@minimum_norm.kernel(LowRank, when=_is_narrow)
def minimum_norm_by_pinv(a: Diagonal | LowRank, b: Array, cond: jax.Array) -> Array:
    """Equally accurate here: elements are divided by the elements of a `Diagonal`, and the factors of the inverse of a
    `LowRank` are singular vectors.
    """
    return matmul(pinv.dispatch(a, rtol=cond), b)


@minimum_norm.kernel(Circulant)
def minimum_norm_circulant(a: Circulant, b: Array, cond: jax.Array) -> Dense:
    """Use the eigenvalues."""
    return Dense.make((circulant.apply_spectrum(pseudo_reciprocals(a, cond), to_dense(b).data),))


@minimum_norm.kernel(BlockDiagonal, when=has_structural_zeros)
def minimum_norm_block_diagonal(a: BlockDiagonal, b: Array, cond: jax.Array) -> Dense:
    """Block by block."""
    data, parts = to_dense(b).data, []
    for run, blocks, relative in zip(a.runs, stacks(a), relative_tolerances(a, cond), strict=True):
        right = data[..., run.rows, :]
        right = right.reshape(*right.shape[:-2], run.count, run.height, right.shape[-1])
        x = minimum_norm_dense(blocks, Dense.make((right,)), relative)[0].data
        parts.append(x.reshape(*x.shape[:-3], run.count * run.width, x.shape[-1]))
    return Dense.make((jnp.concatenate(parts, axis=-2),))


@minimum_norm.kernel(Kronecker)
def minimum_norm_kronecker(a: Array, b: Array, cond: jax.Array) -> Dense:
    """Axis by axis. The function along an axis receives the transposed factor."""
    a = with_batch(a, jnp.broadcast_shapes(cond.shape, a.shape[:-2]))

    def along_axis(factor: Array, right: Array) -> Array:
        return _minimum_norm(matrix_transpose(factor), right, cond)

    return Dense.make((transformed(cast("Kronecker", matrix_transpose(a)), to_dense(b).data, along_axis),))


by_form(lstsq, of=Product, when=is_narrow)(of_low_rank)
by_form(lstsq, of=Sum, when=has_low_rank)(of_low_rank)


def _is_tall(a: Banded, *args: Array, **static: Any) -> bool:
    return is_banded(a) and a.shape[-2] > a.shape[-1] > 0


@lstsq.kernel(Banded, Array, when=_is_tall, before="lstsq_by_sparse_form")
def _lstsq_banded(a: Banded, b: Array, *, cond: jax.Array) -> tuple[tuple[Dense, Dense, Dense, Dense], jax.Array]:
    """Use the QR decomposition: ``R x = Q^H b``. There is no linear-time algorithm for singular values of a banded
    matrix, so a matrix that may not have full column rank needs the dense form.
    """
    cond = lax.stop_gradient(cond)
    if caller.value.expands:
        return by_dense_form(a, b, cond)
    remark(
        "a QR decomposition; without full column rank, singular values of the dense form; "
        "O(n (l + 1) (l + u + 1)), l and u diagonals below and above"
    )
    n = a.shape[-1]
    found, full = _by_qr(a, to_dense(b), cond)
    x, rank, ok = least_squares_or_dense_form(a, b, cond, found, full, jnp.where(full, n, n - 1))
    return result_without_values(a, b, cond, x, rank), ok


@custom_jvp
def _by_qr(a: Banded, b: Dense, cond: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the solutions as data, and whether each matrix has full rank. If not, the solution is another finite vector, so
    that its derivatives are finite.
    """
    _, _, x, full = _factors_and_solution(a, b, cond)
    return x.dense_data(), full


@_by_qr.defjvp
def _by_qr_jvp(
    primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, Any]]:
    """``dx = A^+ (db - dA x) + (A^H A)^-1 dA^H (b - A x)``, with ``A^+ = R^-1 Q^H`` and ``A^H A = R^H R`` (Golub and Pereyra, 1973)."""
    (a, b, cond), (da, db, _) = primals, tangents
    q, r, x, full = _factors_and_solution(a, b, cond)
    rest = matmul(_adjoint(da), subtract(b, matmul(a, x)))
    right = add(matmul(_adjoint(q), subtract(db, matmul(da, x))), solve.dispatch(_adjoint(r), rest)[0])
    dx = solve.dispatch(r, right)[0]
    return (x.dense_data(), full), (dx.dense_data(), np.zeros(full.shape, jax.dtypes.float0))


def _factors_and_solution(a: Banded, b: Dense, cond: jax.Array) -> tuple[Array, Banded, Array, jax.Array]:
    """Return Q, R, the solution, and whether R has full rank. R is the identity matrix where it has not."""
    q, r = qr.dispatch(a, mode="reduced")
    r = at_offsets(r, tuple(sorted({0, *r.offsets})))
    full = banded_qr.has_full_rank(r.diagonals, r.offsets, a.shape[-1], cond)
    diagonals = [jnp.where(full[..., None], d, float(k == 0)) for d, k in zip(r.diagonals, r.offsets, strict=True)]
    r = bands(diagonals, r.offsets, r.core_shape, None, dtype=r.dtype, batch=full.shape)
    return q, r, solve.dispatch(r, matmul(_adjoint(q), b))[0], full


def _adjoint(x: Array) -> Array:
    return conj(matrix_transpose(x))
