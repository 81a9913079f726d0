"""Linear least squares, as in SciPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import jax.numpy as jnp

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import densify, to_dense
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
    "a must have full column rank (full row rank if it is wide) in the accuracy of its structured solver, which cannot "
    "compute other minimum-norm solutions; use the dense form, a.to_dense(), or scipy.sparse.linalg.lsmr(a, b) instead"
)


@function("a", "b", "cond", "rcond", checked=DEFICIENT, prefix="linalg.")
def lstsq(a: ArrayLike, b: ArrayLike, cond: ArrayLike | None = None, *, rcond: ArrayLike | None = None) -> LstsqResult:
    r"""Compute the least-squares solution of ``a @ x = b`` with minimum norm, for each matrix of a stack.

    Parameters
    ----------
    a : array, (..., M, N)
        Matrices of a floating-point data type. Integers are converted to the default one.
    b : array, (M,) or (..., M, K)
        Right-hand sides. A vector is used for every matrix of `a`; otherwise the batch shapes must broadcast.
    cond : float or array, (...), optional
        Relative tolerance. Singular values less than or equal to ``cond`` times the largest singular value are treated
        as zero. The default is 8 times the machine precision ``eps`` of the data type. Rounding errors of singular values
        that are zero are usually below ``2 * eps``, which SciPy's default ``eps`` does not cover.
    rcond : float or array, (...), optional
        Alias of `cond`, the name in NumPy, JAX and PyTorch.

    Returns
    -------
    x : array, (..., N) or (..., N, K)
        Solutions.
    residues : array, (...) or (..., K) or (..., 0)
        Sums of squared residuals ``sum(abs(b - a @ x)**2)`` for each column of `b` if ``M > N``, otherwise empty.
        Unlike in SciPy they are not empty for a rank-deficient matrix, because shapes cannot be data-dependent.
    rank : array, (...)
        Numbers of singular values that are not treated as zero, in the default integer data type.
    s : array, (..., min(M, N)) or (..., 0)
        Singular values in descending order. Empty for a tall `Banded` and for a large `Sparse` matrix, like SciPy's
        result with LAPACK's ``gelsy``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a tall `Banded` or a large `Sparse` matrix may not have full rank, and the policy of `densify` does not allow
        its dense form. Under `jax.jit`, or within ``errstate(linalg="nan")``, `x` and `residues` are NaN instead, also if
        the dense form takes more than 32 MiB.
    ValueError
        If `a` has fewer than two dimensions, the dimensions M differ, or the batch shapes do not broadcast.
    TypeError
        If an argument has a boolean data type, `cond` is complex, or both `cond` and `rcond` are given.

    See Also
    --------
    scipy.linalg.lstsq, linalg.pinv

    Notes
    -----
    The solution is :math:`A^+ b`, computed by the singular value decomposition like in LAPACK's ``gelsd`` (SciPy's
    default). The derivative is the derivative for constant rank (Golub and Pereyra, *SIAM J. Numer. Anal.* 10, 1973).

    ========================================  =========================================================
    structure of `a`                          cost, in addition to products with `b`
    ========================================  =========================================================
    `Diagonal`, `Identity`                    ``O(N log N)``
    `Banded`, M > N, bandwidths l and u        ``O(N (l + 1) (l + u + 1))``, by `qr`. If an estimate of the smallest
                                              singular value is at most ``4 (l + u + 1) cond`` times the largest
                                              element of R, the dense form
    `BlockDiagonal`, k blocks m × n           ``O(k m n min(m, n))``, block by block
    `Circulant`                               ``O(N log N)``
    `Kronecker`                               ``O(sum(m_i n_i min(m_i, n_i)))``, factor by factor; `cond` is
                                              relative to the largest singular value of each factor
    `LowRank` and others of low rank r        ``O((M + N) r**2)``
    `Sparse`, large with few entries          a sparse factorization of ``A.mT @ A``, refined by the residuals of the
                                              least-squares problem (Björck, *BIT* 7, 1967), on the host. If estimates
                                              of the singular values do not show full rank, or the condition number of
                                              A with scaled columns exceeds about 1e6, the dense form
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
        raise TypeError(f"{name}: only one of cond and rcond may be given, got both; remove one")
    argument, given = ("cond", cond) if rcond is None else ("rcond", rcond)
    cond = tolerance(name, a, given, arguments=("a", argument))
    cond = jnp.asarray(8 * jnp.finfo(a.dtype).eps if cond is None else cond, check.real_dtype(a.dtype))
    (x, residues, rank, s), ok = lstsq.dispatch(a, check.columns(b), cond=cond)
    if a.shape[-2] > a.shape[-1]:
        residues = check.like_right_hand_side(residues, b)
    return cast(
        "LstsqResult", (LstsqResult(check.like_right_hand_side(x, b), residues, rank, s), ok)
    )  # and the success flag


@lstsq.kernel(Dense, Array)
def _lstsq_dense(a: Dense, b: Array, *, cond: jax.Array) -> tuple[tuple[Array, Dense, Dense, Dense], jax.Array]:
    return solution(a, b, cond, *minimum_norm_dense(a, b, cond))


def minimum_norm_dense(a: Dense, b: Array, cond: jax.Array) -> tuple[Dense, jax.Array]:
    """Compute the minimum-norm solution and the singular values, with the relative tolerance `cond`."""
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
    """Return the results of a kernel of `lstsq` from the solution and the singular values."""
    rank = number_of_large(values, cond)
    if a.shape[-2] > a.shape[-1]:
        residues = squared_residuals(a, b, x)
    else:
        residues = Dense.make((jnp.zeros((*x.shape[:-2], 0), cond.dtype),))
    return (x, residues, Dense.make((rank,)), Dense.make((values,))), jnp.array(True)


def result_without_values(
    a: Array, b: Array, cond: jax.Array, x: jax.Array, rank: jax.Array
) -> tuple[Dense, Dense, Dense, Dense]:
    """Return the results of a kernel of `lstsq` that computes no singular values."""
    found, batch = Dense.make((x,)), jnp.broadcast_shapes(cond.shape, a.shape[:-2])
    none = jnp.zeros((*x.shape[:-2], 0), cond.dtype)
    residues = squared_residuals(a, b, found) if a.shape[-2] > a.shape[-1] else Dense.make((none,))
    values = jnp.zeros((*batch, 0), cond.dtype)
    return found, residues, Dense.make((jnp.broadcast_to(rank, batch),)), Dense.make((values,))


def by_dense_form(a: Array, b: Array, cond: jax.Array) -> tuple[tuple[Dense, Dense, Dense, Dense], jax.Array]:
    """Return the same results from the dense form, if the policy allows it; see `Caller.expands`."""
    x, values = minimum_norm_dense(densify(a, "linalg.lstsq"), b, cond)
    return result_without_values(a, b, cond, x.data, number_of_large(values, cond)), jnp.array(True)


def number_of_large(values: jax.Array, cond: jax.Array) -> jax.Array:
    """Return the number of singular values that are larger than `cond` times the largest."""
    return jnp.sum(values > cond[..., None] * jnp.max(values, axis=-1, keepdims=True, initial=0), axis=-1, dtype=int)


def squared_residuals(a: Array, b: Array, x: Array) -> Dense:
    """Compute the squared norms of the columns of ``b - a @ x``."""
    rest = subtract(b, matmul(a, x))
    return to_dense(sum_along(real(multiply(conj(rest), rest)), axis=-2))
