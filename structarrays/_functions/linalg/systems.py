"""Linear systems, inverses, determinants and matrix powers of the Array API standard."""

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
from ..._numerics import dense_determinants, positive_definite, pseudo_inverse
from ..._numerics import dense_linalg as linalg_dense
from ..._numerics.undefined import differentiable_if
from .. import matrix_checks as check
from ..linear_algebra import matmul

if TYPE_CHECKING:
    import jax
    import numpy as np

POSITIVE_DEFINITE = "positive_definite"


@function("x1", "x2", prefix="linalg.", checked="x1 is singular (or assumed positive definite, and is not)")
def solve(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Solve the linear system ``x1 @ x = x2`` for each matrix of a stack.

    Parameters
    ----------
    x1 : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.
    x2 : array, (M,) or (..., M, K)
        Right-hand sides. A vector is used for every matrix of `x1`; otherwise the batch shapes must broadcast.

    Returns
    -------
    array, (..., M) or (..., M, K)
        Solutions, in the common data type. The solution of a system with a diagonal matrix has the structure of `x2`;
        otherwise it is usually dense.

    Raises
    ------
    ValueError
        If `x1` is not square, the dimensions M differ, or the batch shapes do not broadcast.
    TypeError
        If an argument has a boolean data type.
    numpy.linalg.LinAlgError
        If a matrix is singular, in an eager call. Under `jax.jit`, or within ``errstate(linalg="nan")``,
        its solution is NaN instead.

    Notes
    -----
    The structure of `x1` selects the solver; ``explain(linalg.solve, x1, x2)`` shows which one. Costs of some
    structures:

    =============================  ====================================================================================
    structure of `x1`              cost, and cost for each right-hand side
    =============================  ====================================================================================
    `Diagonal`                     ``O(M)``
    `Banded`, bandwidth w          ``O(w**2 M)``, ``O(w M)``
    `Toeplitz`                     ``O(M**2)``, ``O(M log(M))``; large positive definite matrices usually need only the
                                   iterations, each ``O(M log(M))``
    `Sparse`                       a factorization by SuperLU on the host, which the next system with the same matrix
                                   reuses; without SciPy, or up to 256 rows, the dense form is solved
    `Dense`                        ``2 M**3 / 3``, ``2 M**2``; LU with partial pivoting
    =============================  ====================================================================================

    With ``assume(x1, "positive_definite")``, the solver uses a Cholesky factorization instead of elimination with
    pivoting, and Levinson's recursion for a Toeplitz matrix.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.tridiagonal([-1.0, -1.0], [2.0, 2.0, 2.0], [-1.0, -1.0])
    >>> sa.linalg.solve(A, sa.asarray([1.0, 0.0, 1.0]))
    Dense([1., 1., 1.], dtype=float64)
    """
    x1, x2 = cast("Array", x1), cast("Array", x2)
    x1, x2 = check.system("linalg.solve", x1, x2, "x1", "x2")
    return cast("Array", solve.dispatch(x1, x2))  # and the success flag


@solve.kernel(Dense, Dense)
def _solve_dense_dense(x1: Dense, x2: Dense) -> tuple[Dense, jax.Array]:
    if POSITIVE_DEFINITE in x1.assumptions:
        remark("Cholesky factorization, because x1 is assumed positive definite; n**3 / 3 operations")
        data, ok = positive_definite.solve(x1.data, x2.data)
    else:
        remark("LU factorization with partial pivoting (general matrix, no assumption); 2 n**3 / 3 operations")
        data, ok = linalg_dense.solve(x1.data, x2.data)
    return Dense.make((data,)), ok


@solve.kernel(Dense, Array)
def _solve_dense(x1: Dense, x2: Array) -> tuple[Array, jax.Array]:
    result: tuple[Array, jax.Array] = solve.dispatch(x1, to_dense(x2))  # the solution is dense and has the same size
    return result


@function("x", prefix="linalg.", checked="x is singular (or assumed positive definite, and is not)")
def inv(x: ArrayLike, /) -> Array:
    """Compute the inverse of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.

    Returns
    -------
    array, (..., M, M)
        Inverses. The inverse of a diagonal matrix is diagonal, the inverse of a banded matrix is dense. The inverse
        keeps the assumptions of `x` (see `assume`).

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` has a boolean data type.
    numpy.linalg.LinAlgError
        If a matrix is singular, in an eager call. Under `jax.jit`, or within ``errstate(linalg="nan")``,
        its inverse is NaN instead.

    Notes
    -----
    To solve a linear system, use `linalg.solve`, which is cheaper and more accurate.

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
    return cast("Array", (carried(result, assumptions), ok))  # and the success flag


@inv.kernel(Dense)
def _inv_dense(x: Dense) -> tuple[Dense, jax.Array]:
    kernel = positive_definite.inv if POSITIVE_DEFINITE in x.assumptions else linalg_dense.inv
    data, ok = kernel(x.data)
    return Dense.make((data,)), ok


@function("x", prefix="linalg.", checked="x is not positive definite")
def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Array:
    """Compute the Cholesky factor of each Hermitian positive definite matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one. The function factors
        the Hermitian part.
    upper : bool, default False
        If False, return the lower triangular factor ``L`` with ``x = L @ conj(L).mT``. If True, return the upper
        triangular factor ``U`` with ``x = conj(U).mT @ U``.

    Returns
    -------
    array, (..., M, M)
        Factors. The factor of a banded matrix is banded, and the factor of a diagonal matrix is diagonal.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` has a boolean data type.
    numpy.linalg.LinAlgError
        If a matrix is not positive definite, in an eager call. Under `jax.jit`, or within ``errstate(linalg="nan")``,
        its factor is NaN instead.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.cholesky(sa.tridiagonal([2.0], [4.0, 2.0], [2.0])).offsets
    (-1, 0)
    """
    x = cast("Array", x)
    check.square("linalg.cholesky", x)
    return cast(
        "Array", cholesky.dispatch(check.floating("linalg.cholesky", x), upper=bool(upper))
    )  # and the success flag


@cholesky.kernel(Dense)
def _cholesky_dense(x: Dense, *, upper: bool) -> tuple[Dense, jax.Array]:
    data, ok = linalg_dense.cholesky(x.data, upper=upper)
    return Dense.make((data,)), ok


@function("x", prefix="linalg.", dense=dense_determinants.det)
def det(x: ArrayLike, /) -> Array:
    """Compute the determinant of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.

    Returns
    -------
    array, (...)
        Determinants, in the data type of `x`.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` has a boolean data type.

    See Also
    --------
    linalg.slogdet : Sign and logarithm of the determinant, without overflow or underflow.

    Notes
    -----
    The derivatives are right if the matrix is singular, up to the third one. Most structures compute the determinant from
    its logarithm, whose derivatives do not exist there: the derivatives of a (nearly) singular matrix are computed from its
    dense form. They are NaN if the policy forbids it, or if it takes more than 32 MiB.

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
    """Sign (or complex phase) of a determinant, and logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


@function("x", prefix="linalg.", dense=dense_determinants.slogdet)
def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """Compute the sign, and the logarithm of the absolute value, of the determinant of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.

    Returns
    -------
    sign : array, (...)
        Determinant divided by its absolute value, in the data type of `x`; 0 for a singular matrix.
    logabsdet : array, (...)
        Natural logarithm of the absolute value, in the real data type of the same precision. For a singular matrix it
        is -inf, and its derivatives are NaN.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` has a boolean data type.

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
    """Return logarithms of determinants, whose derivatives are NaN where the determinant is zero."""
    result: jax.Array = differentiable_if(logabsdet != -jnp.inf, logabsdet)
    return result


def logarithms(x: Array) -> tuple[jax.Array, jax.Array]:
    """Return the sign of the determinant and the logarithm of its absolute value, as data."""
    return tuple(part.dense_data() for part in slogdet.dispatch(x))


@function("x", "rtol", prefix="linalg.")
def pinv(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> Array:
    """Compute the Moore–Penrose pseudo-inverse of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Matrices of a floating-point data type. Integers are converted to the default one.
    rtol : float or array, (...), optional
        Relative tolerance. Singular values less than or equal to ``rtol`` times the largest singular value are treated
        as zero. The default is ``max(M, N) * eps``.

    Returns
    -------
    array, (..., N, M)
        Pseudo-inverses. The pseudo-inverse of a diagonal matrix is diagonal.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    TypeError
        If `x` has a boolean data type.

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
    """Compute the rank of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Matrices of a floating-point data type. Integers are converted to the default one.
    rtol : float or array, (...), optional
        Relative tolerance. Singular values less than or equal to ``rtol`` times the largest singular value are treated
        as zero. The default is ``max(M, N) * eps``.

    Returns
    -------
    array, (...)
        Numbers of nonzero singular values, in the default integer data type.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    TypeError
        If `x` has a boolean data type.

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
    """Return `rtol` as a jax.Array, or None."""
    if rtol is None:
        return None
    matrix, relative = arguments
    if rtol.dtype.kind == "c":
        raise TypeError(f"{name}: {relative} must be real, got {rtol.dtype}")
    check.broadcast(name, x.shape[:-2], rtol.shape, what=f"the batch shape of {matrix} and the shape of {relative}")
    return to_dense(rtol).data


@function("x", prefix="linalg.", checked="x is singular, so it has no negative powers")
def matrix_power(x: ArrayLike, n: int, /) -> Array:
    """Raise each matrix of a stack to an integer power.

    Parameters
    ----------
    x : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.
    n : int
        Exponent. The power 0 is the identity matrix. A negative exponent gives powers of the inverse.

    Returns
    -------
    array, (..., M, M)
        Powers. The n-th power of a banded matrix has n times its bandwidth, limited by the size of the matrix.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` has a boolean data type, or `n` is not an integer.
    numpy.linalg.LinAlgError
        If `n` is negative and a matrix is singular, in an eager call. Under `jax.jit`, or within
        ``errstate(linalg="nan")``, its power is NaN instead.

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
    return cast("Array", (matrix_power.dispatch(base, n=abs(n)), ok))  # and the success flag


@matrix_power.kernel(Dense)
def _matrix_power_dense(x: Dense, *, n: int) -> Dense:
    return Dense.make((jnp.linalg.matrix_power(x.data, n),))


@matrix_power.kernel(Array)
def _matrix_power_array(x: Array, *, n: int) -> Array:
    """Compute a nonnegative power; the caller inverts the matrix for a negative exponent."""
    if n == 0:
        from ..._structures.banded.diagonal import Identity

        return Identity.make((jnp.ones(x.shape[:-2], x.dtype), None), x.shape[-2:])
    return power(x, n)


def power(x: Array, n: int) -> Array:
    """Compute a positive power by repeated squaring."""
    result = None
    while True:
        if n % 2:
            result = x if result is None else matmul(result, x)
        n //= 2
        if n == 0:
            return cast("Array", result)
        x = matmul(x, x)
