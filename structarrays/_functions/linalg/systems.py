"""The standard's linear systems, inverses, determinants and powers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import jax.numpy as jnp

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import to_dense
from ..._core.assumptions import carried
from ..._core.dispatch.decorator import function
from ..._core.dispatch.recording import remark
from ..._numerics import dense_linalg as linalg_dense
from ..._numerics import determinants, positive_definite, pseudo_inverse
from ..._numerics.undefined import differentiable_if
from .. import matrix_checks as check
from ..linear_algebra import matmul

if TYPE_CHECKING:
    import jax
    import numpy as np

POSITIVE_DEFINITE = "positive_definite"


@function("x1", "x2", prefix="linalg.", checked="x1 is singular (or assumed positive definite, and is not)")
def solve(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Solution of the linear systems ``x1 @ x = x2``.

    Parameters
    ----------
    x1 : array, (..., M, M)
        The matrices, of a floating-point dtype (integers become the default one).
    x2 : array, (M,) or (..., M, K)
        The right-hand sides: one vector for all matrices if it has one dimension, else matrices whose batch shape
        broadcasts with that of `x1`.

    Returns
    -------
    array, (..., M) or (..., M, K)
        The solutions.

    Raises
    ------
    ValueError
        If `x1` is not square, the dimensions M differ, or the batch shapes do not broadcast.
    TypeError
        If an argument is boolean.
    numpy.linalg.LinAlgError
        If a matrix is singular, and the call is eager; under `jax.jit`, and within ``errstate(linalg="nan")``, its
        solution is NaN.

    Notes
    -----
    A diagonal matrix costs ``O(M)``, and the solution has the structure of `x2`; a banded one of bandwidth w costs
    ``O(w**2 M)`` and for each right-hand side ``O(w M)``, a Toeplitz one ``O(M**2)`` and ``O(M log(M))``, or mostly only that if it
    is large and positive definite. A sparse one costs its factorisation by SuperLU, on the host (on every platform, under `jax.jit`,
    too), which is kept for the next system with the same matrix; without SciPy, and up to 256 rows, its dense form is solved. With
    ``assume(x1, "positive_definite")`` Cholesky's factorisation (of a Toeplitz matrix Levinson's recursion) takes the place of
    elimination with pivots. `explain` says which solver runs.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.tridiagonal([-1.0, -1.0], [2.0, 2.0, 2.0], [-1.0, -1.0])
    >>> sa.linalg.solve(A, sa.asarray([1.0, 0.0, 1.0]))
    Dense([1., 1., 1.], dtype=float64)
    """
    x1, x2 = cast("Array", x1), cast("Array", x2)
    x1, x2 = check.system("linalg.solve", x1, x2, "x1", "x2")
    return cast("Array", solve.dispatch(x1, x2))  # and its flag


@solve.kernel(Dense, Dense)
def _solve_dense_dense(x1: Dense, x2: Dense) -> tuple[Dense, jax.Array]:
    if POSITIVE_DEFINITE in x1.assumptions:
        remark("Cholesky's factorisation, since it is assumed positive definite; n**3 / 3 operations")
        data, ok = positive_definite.solve(x1.data, x2.data)
    else:
        remark("LU with partial pivoting (no assumption); 2 n**3 / 3 operations")
        data, ok = linalg_dense.solve(x1.data, x2.data)
    return Dense.make((data,)), ok


@solve.kernel(Dense, Array)
def _solve_dense(x1: Dense, x2: Array) -> tuple[Array, jax.Array]:
    result: tuple[Array, jax.Array] = solve.dispatch(x1, to_dense(x2))  # the solution is dense and no smaller
    return result


@function("x", prefix="linalg.", checked="x is singular (or assumed positive definite, and is not)")
def inv(x: ArrayLike, /) -> Array:
    """Inverse of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Of a floating-point dtype (integers become the default one).

    Returns
    -------
    array, (..., M, M)
        The inverses. That of a diagonal matrix is diagonal, that of a banded one full; `solve` is cheaper. Assumptions
        stay; see `assume`.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` is boolean.
    numpy.linalg.LinAlgError
        If a matrix is singular, and the call is eager; under `jax.jit`, and within ``errstate(linalg="nan")``, its
        inverse is NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.inv(sa.Diagonal([2.0, 4.0]))
    Diagonal([0.5 , 0.25], shape=(2, 2), dtype=float64)
    """
    x = cast("Array", x)
    check.square("linalg.inv", x)
    x = check.floating("linalg.inv", x)
    assumptions = x.assumptions
    if assumptions and POSITIVE_DEFINITE not in assumptions:
        assumptions -= {"positive_semidefinite"}
    result, ok = inv.dispatch(x)
    return cast("Array", (carried(result, assumptions), ok))  # and its flag


@inv.kernel(Dense)
def _inv_dense(x: Dense) -> tuple[Dense, jax.Array]:
    kernel = positive_definite.inv if POSITIVE_DEFINITE in x.assumptions else linalg_dense.inv
    data, ok = kernel(x.data)
    return Dense.make((data,)), ok


@function("x", prefix="linalg.", checked="x is not positive definite")
def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Array:
    """Cholesky factor of each Hermitian positive definite matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Of a floating-point dtype (integers become the default one). The Hermitian part is factored.
    upper : bool
        Whether the factor is ``U`` with ``x = conj(U).mT @ U``, or (default) ``L`` with ``x = L @ conj(L).mT``.

    Returns
    -------
    array, (..., M, M)
        The factor: of a banded matrix banded, of a diagonal one diagonal.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` is boolean.
    numpy.linalg.LinAlgError
        If a matrix is not positive definite, and the call is eager; under `jax.jit`, and within
        ``errstate(linalg="nan")``, its factor is NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.cholesky(sa.tridiagonal([2.0], [4.0, 2.0], [2.0])).offsets
    (-1, 0)
    """
    x = cast("Array", x)
    check.square("linalg.cholesky", x)
    return cast("Array", cholesky.dispatch(check.floating("linalg.cholesky", x), upper=bool(upper)))  # and its flag


@cholesky.kernel(Dense)
def _cholesky_dense(x: Dense, *, upper: bool) -> tuple[Dense, jax.Array]:
    data, ok = linalg_dense.cholesky(x.data, upper=upper)
    return Dense.make((data,)), ok


@function("x", prefix="linalg.", dense=linalg_dense.det)
def det(x: ArrayLike, /) -> Array:
    """Determinant of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Of a floating-point dtype (integers become the default one).

    Returns
    -------
    array, (...)
        The determinants; `slogdet` neither overflows nor underflows.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` is boolean.

    Examples
    --------
    >>> import structarrays as sa
    >>> float(sa.linalg.det(sa.Diagonal([2.0, 3.0])))
    6.0
    """
    x = cast("Array", x)
    check.square("linalg.det", x)
    result: Array = det.dispatch(check.floating("linalg.det", x))
    return result


class SlogdetResult(NamedTuple):
    """Sign (of a complex matrix: phase) and logarithm of the magnitude of a determinant."""

    sign: Array
    logabsdet: Array


@function("x", prefix="linalg.", dense=linalg_dense.slogdet)
def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """Sign and natural logarithm of the magnitude of the determinant of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Of a floating-point dtype (integers become the default one).

    Returns
    -------
    sign : array, (...)
        Of the dtype of `x`: the determinant divided by its magnitude; 0 for a singular matrix.
    logabsdet : array, (...)
        Of the real dtype of the same precision; -inf for a singular matrix, with derivatives that are NaN.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` is boolean.

    Examples
    --------
    >>> import structarrays as sa
    >>> sign, logabsdet = sa.linalg.slogdet(-2.0 * sa.Identity(3))
    >>> float(sign), round(float(logabsdet), 6)
    (-1.0, 2.079442)
    """
    x = cast("Array", x)
    check.square("linalg.slogdet", x)
    sign, logabsdet = slogdet.dispatch(check.floating("linalg.slogdet", x))
    return SlogdetResult(sign, logabsdet.map_parameters(differentiable_unless_singular))


def differentiable_unless_singular(logabsdet: jax.Array) -> jax.Array:
    """Logarithms of determinants, with derivatives that are NaN where the determinant is zero."""
    result: jax.Array = differentiable_if(logabsdet != -jnp.inf, logabsdet)
    return result


def logarithms(x: Array) -> tuple[jax.Array, jax.Array]:
    """The sign of the determinant, and the logarithm of its magnitude, as data."""
    return tuple(part.dense_data() for part in slogdet.dispatch(x))


def det_by_slogdet(x: Array) -> Dense:
    """The determinants by their logarithms: a product of the numbers that make them could leave the range on its way."""
    return Dense.make((determinants.exponential(*logarithms(x), x.dtype),))


@function("x", "rtol", prefix="linalg.")
def pinv(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> Array:
    """Moore–Penrose pseudo-inverse of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Of a floating-point dtype (integers become the default one).
    rtol : float or array, (...), optional
        Singular values up to ``rtol`` times the largest count as zero. By default ``max(M, N)`` times the precision.

    Returns
    -------
    array, (..., N, M)
        The pseudo-inverses; of a diagonal matrix diagonal.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    TypeError
        If `x` is boolean.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.pinv(sa.Diagonal([2.0, 0.0]))
    Diagonal([0.5, 0. ], shape=(2, 2), dtype=float64)
    """
    x = cast("Array", x)
    rtol = cast("Array | None", rtol)
    check.matrix("linalg.pinv", x)
    result: Array = pinv.dispatch(check.floating("linalg.pinv", x), rtol=tolerance("linalg.pinv", x, rtol))
    return result


@pinv.kernel(Dense)
def _pinv_dense(x: Dense, *, rtol: jax.Array | np.floating | None) -> Dense:
    if rtol is None:
        rtol = max(x.shape[-2:]) * jnp.finfo(x.dtype).eps
    rtol = jnp.asarray(rtol, check.real_dtype(x.dtype))
    batch = jnp.broadcast_shapes(rtol.shape, x.shape[:-2])
    data = jnp.broadcast_to(x.data, batch + x.shape[-2:])
    return Dense.make((pseudo_inverse.pinv(data, jnp.broadcast_to(rtol, batch)),))


@function("x", "rtol", prefix="linalg.")
def matrix_rank(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> Array:
    """Rank of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Of a floating-point dtype (integers become the default one).
    rtol : float or array, (...), optional
        Singular values up to ``rtol`` times the largest count as zero. By default ``max(M, N)`` times the precision.

    Returns
    -------
    array, (...)
        The number of the others, of the default integer dtype.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    TypeError
        If `x` is boolean.

    Examples
    --------
    >>> import structarrays as sa
    >>> int(sa.linalg.matrix_rank(sa.Diagonal([2.0, 0.0, 1.0])))
    2
    """
    x = cast("Array", x)
    rtol = cast("Array | None", rtol)
    check.matrix("linalg.matrix_rank", x)
    rtol = tolerance("linalg.matrix_rank", x, rtol)
    result: Array = matrix_rank.dispatch(check.floating("linalg.matrix_rank", x), rtol=rtol)
    return result


@matrix_rank.kernel(Dense)
def _matrix_rank_dense(x: Dense, *, rtol: jax.Array | None) -> Dense:
    return Dense.make((linalg_dense.matrix_rank(x.data, rtol=rtol),))


def tolerance(
    name: str, x: Array, rtol: Array | None, *, arguments: tuple[str, str] = ("x", "rtol")
) -> jax.Array | None:
    """`rtol` as a jax.Array; None stays None."""
    if rtol is None:
        return None
    matrix, relative = arguments
    if rtol.dtype.kind == "c":
        raise TypeError(f"{name}: {relative} must be real, got {rtol.dtype}")
    check.broadcast(name, x.shape[:-2], rtol.shape, what=f"the batch shape of {matrix} and the shape of {relative}")
    return to_dense(rtol).data


@function("x", prefix="linalg.", checked="x is singular, so it has no negative powers")
def matrix_power(x: ArrayLike, n: int, /) -> Array:
    """Integer power of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Of a floating-point dtype (integers become the default one).
    n : int
        The exponent: 0 gives the identity, a negative one powers of the inverse.

    Returns
    -------
    array, (..., M, M)
        The powers. The n-th power of a banded matrix has n times its bandwidth, up to the size of the matrix.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` is boolean, or `n` is no integer.
    numpy.linalg.LinAlgError
        If `n` is negative, a matrix is singular, and the call is eager; under `jax.jit`, and within
        ``errstate(linalg="nan")``, its power is NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.matrix_power(sa.tridiagonal([1.0] * 4, [2.0] * 5, [1.0] * 4), 3).offsets
    (-3, -2, -1, 0, 1, 2, 3)
    """
    x = cast("Array", x)
    check.square("linalg.matrix_power", x)
    n = check.integer("linalg.matrix_power", n, "n")
    base = (check.floating if n < 0 else check.inexact)("linalg.matrix_power", x)
    ok = jnp.array(True)
    if n < 0:
        base, ok = inv.dispatch(base)
    return cast("Array", (matrix_power.dispatch(base, n=abs(n)), ok))  # and its flag


@matrix_power.kernel(Dense)
def _matrix_power_dense(x: Dense, *, n: int) -> Dense:
    return Dense.make((jnp.linalg.matrix_power(x.data, n),))


@matrix_power.kernel(Array)
def _matrix_power_array(x: Array, *, n: int) -> Array:
    """Kernels get no negative exponent."""
    if n == 0:
        from ..._structures.banded.diagonal import Identity

        return Identity.make((jnp.ones(x.shape[:-2], x.dtype), None), x.shape[-2:])
    return power(x, n)


def power(x: Array, n: int) -> Array:
    """A positive power, by repeated squaring."""
    result = None
    while True:
        if n % 2:
            result = x if result is None else matmul(result, x)
        n //= 2
        if n == 0:
            return cast("Array", result)
        x = matmul(x, x)
