"""`lstsq`, under SciPy's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import jax.numpy as jnp

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import to_dense
from ..._core.dispatch.decorator import function
from ..._numerics import pseudo_inverse
from .. import matrix_checks as check
from ..elementwise import multiply, subtract
from ..linear_algebra import matmul
from ..rounding_and_parts import conj, real
from ..statistical import sum as sum_along
from .systems import tolerance

if TYPE_CHECKING:
    import jax


class LstsqResult(NamedTuple):
    """Solutions, squared norms of the residuals, ranks, and singular values."""

    x: Array
    residues: Array
    rank: Array
    s: Array


DEFICIENT = (
    "a matrix has less than full column rank, and no decomposition that keeps its structure finds the solution of least norm: "
    "that of its dense form, a.to_dense(), does"
)


@function("a", "b", "cond", "rcond", checked=DEFICIENT, prefix="linalg.")
def lstsq(a: ArrayLike, b: ArrayLike, cond: ArrayLike | None = None, *, rcond: ArrayLike | None = None) -> LstsqResult:
    r"""Least-squares solutions of ``a @ x = b``: those that minimise ``norm(b - a @ x)``, and among them ``norm(x)``.

    Parameters
    ----------
    a : array, (..., M, N)
        The matrices, of a floating-point dtype (integers become the default one).
    b : array, (M,) or (..., M, K)
        The right-hand sides: one vector for all matrices if it has one dimension, else matrices whose batch shape broadcasts.
    cond : float or array, (...), optional
        Singular values up to ``cond`` times the largest count as zero. By default the precision.
    rcond : float or array, (...), optional
        The same by the name that NumPy, JAX and PyTorch give it.

    Returns
    -------
    x : array, (..., N) or (..., N, K)
        The solutions.
    residues : array, (...) or (..., K), or of shape (..., 0)
        The sums of ``abs(b - a @ x)**2`` over the rows if ``M > N``, else empty. Where a matrix has less than full rank SciPy returns
        an empty array, too; here the shape cannot depend on values, and these are the sums as well.
    rank : array, (...)
        The number of singular values that do not count as zero, of the default integer dtype.
    s : array, (..., min(M, N)), or of shape (..., 0)
        The singular values, descending; of a tall `Banded` matrix none, as SciPy has none by LAPACK's ``gelsy``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If (in an eager call) a tall `Banded` matrix has less than full column rank; in a compiled one `x` and `residues` are NaN then.
    ValueError
        If `a` has fewer than two dimensions, the dimensions M differ, or the batch shapes do not broadcast.
    TypeError
        If an argument is boolean, `cond` is complex, or both `cond` and `rcond` are given.

    See Also
    --------
    scipy.linalg.lstsq, linalg.pinv

    Notes
    -----
    The solution is :math:`A^+ b`, by the singular value decomposition, like that of LAPACK's ``gelsd`` (SciPy's default). The
    derivative is that for constant rank (Golub and Pereyra, *SIAM J. Numer. Anal.* 10, 1973).

    ========================================  =========================================================
    structure of `a`                          costs, beside those of products with `b`
    ========================================  =========================================================
    `Diagonal`, `Identity`                    ``O(N log N)``
    `Banded`, M > N, l and u diagonals        ``O(N (l + 1) (l + u + 1))``: by `qr`, which needs full column rank.
    below and above the main one              `cond` is compared with an estimate of the smallest singular value,
                                              relative to a bound of the largest, ``4 (l + u + 1)`` times the
                                              largest element of R
    `BlockDiagonal`, k blocks m × n           ``O(k m n min(m, n))``, block by block
    `Circulant`                               ``O(N log N)``
    `Kronecker`                               ``O(sum(m_i n_i min(m_i, n_i)))``, factor by factor: what is small
                                              is small beside the largest singular value of its factor
    `LowRank` of rank r, and products and     ``O((M + N) r**2)``
    sums that are of low rank
    `Dense`, and any other                    ``O(M N min(M, N))``
    ========================================  =========================================================

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x, residues, rank, s = sa.linalg.lstsq(A, sa.asarray([0.0, 2.0, 1.0]))
    >>> bool(sa.max(sa.abs(x - sa.asarray([0.5, 0.5]))) < 1e-14), round(float(residues), 12), int(rank)
    (True, 1.5, 2)
    """
    a, b = cast("Array", a), cast("Array", b)
    cond, rcond = cast("Array | None", cond), cast("Array | None", rcond)
    name = "linalg.lstsq"
    check.matrix(name, a, "a")
    a, b = check.right_hand_side(name, check.floating(name, a, "a"), b, "a", axis=-2)
    if cond is not None and rcond is not None:
        raise TypeError(f"{name}: cond and rcond are two names of one argument, give one of them")
    argument, given = ("cond", cond) if rcond is None else ("rcond", rcond)
    cond = tolerance(name, a, given, arguments=("a", argument))
    cond = jnp.asarray(jnp.finfo(a.dtype).eps if cond is None else cond, check.real_dtype(a.dtype))
    (x, residues, rank, s), ok = lstsq.dispatch(a, check.columns(b), cond=cond)
    if a.shape[-2] > a.shape[-1]:
        residues = check.like_right_hand_side(residues, b)
    return cast("LstsqResult", (LstsqResult(check.like_right_hand_side(x, b), residues, rank, s), ok))  # and its flag


@lstsq.kernel(Dense, Array)
def _lstsq_dense(a: Dense, b: Array, *, cond: jax.Array) -> tuple[tuple[Array, Dense, Dense, Dense], jax.Array]:
    return solution(a, b, cond, *minimum_norm_dense(a, b, cond))


def minimum_norm_dense(a: Dense, b: Array, cond: jax.Array) -> tuple[Dense, jax.Array]:
    """The solution of least norm, and the singular values, of which those up to `cond` times the largest one count as zero."""
    batch = jnp.broadcast_shapes(cond.shape, a.shape[:-2])
    data, right = jnp.broadcast_to(a.data, batch + a.shape[-2:]), to_dense(b).data
    if a.size == 0:
        batch = jnp.broadcast_shapes(batch, right.shape[:-2])
        x = jnp.zeros((*batch, a.shape[-1], right.shape[-1]), a.dtype)
        values = jnp.zeros((*data.shape[:-2], min(a.shape[-2:])), cond.dtype)
    else:
        x, values = pseudo_inverse.least_squares(data, right, jnp.broadcast_to(cond, data.shape[:-2]))
    return Dense.make((x,)), values


def solution(
    a: Array, b: Array, cond: jax.Array, x: Array, values: jax.Array
) -> tuple[tuple[Array, Dense, Dense, Dense], jax.Array]:
    """The results of a kernel of `lstsq`, by the solution and the singular values."""
    rank = jnp.sum(values > cond[..., None] * jnp.max(values, axis=-1, keepdims=True, initial=0), axis=-1, dtype=int)
    if a.shape[-2] > a.shape[-1]:
        residues = squared_residuals(a, b, x)
    else:
        residues = Dense.make((jnp.zeros((*x.shape[:-2], 0), cond.dtype),))
    return (x, residues, Dense.make((rank,)), Dense.make((values,))), jnp.array(True)


def squared_residuals(a: Array, b: Array, x: Array) -> Dense:
    """The squared norms of the columns of ``b - a @ x``."""
    rest = subtract(b, matmul(a, x))
    return to_dense(sum_along(real(multiply(conj(rest), rest)), axis=-2))
