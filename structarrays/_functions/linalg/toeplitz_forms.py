"""SciPy's functions for Toeplitz and circulant matrices that are given by their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp

from ..._core.array.arguments import ArrayLike, ParameterLike
from ..._core.array.base import Array
from ..._core.array.dense import Dense, parameter
from ..._core.array.operands import lift, promote, to_dense
from ..._core.dispatch.decorator import function
from ..._core.dispatch.results import follow_eager_operands
from ..._core.families.batch import check_axis
from ..._numerics import circulant_transforms
from ..._numerics.quotients import reciprocal
from ..._numerics.undefined import nan_unless
from .. import matrix_checks as check
from ..linear_algebra import matmul
from .systems import solve

if TYPE_CHECKING:
    from ..._structures.toeplitz.array import Toeplitz


def solve_toeplitz(c_or_cr: ParameterLike | tuple[ParameterLike, ParameterLike], b: ParameterLike) -> Array:
    """Solve the linear system ``T @ x = b`` with a Toeplitz matrix, as `scipy.linalg.solve_toeplitz`.

    Parameters
    ----------
    c_or_cr : array_like, (..., M), or tuple of two array_like
        First column ``c`` of T, or a tuple ``(c, r)`` of the first column and the first row. ``r[..., 0]`` is ignored.
        The default of ``r`` is ``conj(c)``.
    b : array_like, (M,) or (..., M, K)
        Right-hand sides. A vector is used for every matrix; otherwise the batch shapes must broadcast.

    Returns
    -------
    array, (..., M) or (..., M, K)
        Solutions, in the common data type of the arguments. Integers are converted to the default floating-point data
        type.

    Raises
    ------
    ValueError
        If `c` and `r` have different lengths, or the number of rows of `b` is not M.
    TypeError
        If an argument has a boolean data type.
    numpy.linalg.LinAlgError
        If T is singular, in an eager call; see `linalg.solve`.

    Notes
    -----
    The function computes ``linalg.solve(Toeplitz(c, r), b)``; `Toeplitz` describes the algorithm. Unlike SciPy's
    recursion, it is stable for matrices with zero or small leading minors, and it checks the residual. If T is positive
    definite (no assumption is needed), a large system takes about ten iterations of ``O(M log(M))`` each.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.solve_toeplitz(([1.0, 3.0, 6.0], [1.0, -1.0, -2.0]), sa.asarray([-7.0, 2.0, 15.0]))
    Dense([1., 2., 3.], dtype=float64)
    """
    matrix = _toeplitz("linalg.solve_toeplitz", c_or_cr)
    right, (m, n) = lift(parameter(b, "b", "linalg.solve_toeplitz")), matrix.shape[-2:]
    if m != n:
        raise ValueError(
            f"linalg.solve_toeplitz: c and r must have the same length for a square matrix, got {m} and {n}"
        )
    solution = solve(*check.system("linalg.solve_toeplitz", matrix, right, "the matrix", "b"))
    result: Array = follow_eager_operands(solution, (c_or_cr, b))
    return result


def matmul_toeplitz(c_or_cr: ParameterLike | tuple[ParameterLike, ParameterLike], x: ParameterLike) -> Array:
    """Compute the product ``T @ x`` with a Toeplitz matrix, as `scipy.linalg.matmul_toeplitz`.

    Parameters
    ----------
    c_or_cr : array_like, (..., M), or tuple of two array_like
        First column ``c`` of T, or a tuple ``(c, r)`` of the first column and the first row, (..., N). ``r[..., 0]`` is
        ignored. The default of ``r`` is ``conj(c)``.
    x : array_like, (N,) or (..., N, K)
        Vector or matrices to multiply.

    Returns
    -------
    array, (..., M) or (..., M, K)
        Products, in the common data type of the arguments. Products of integers are exact integers.

    Raises
    ------
    ValueError
        If the shapes do not match.
    TypeError
        If an argument has a boolean data type.

    Notes
    -----
    The function computes ``Toeplitz(c, r) @ x``. The cost is ``O((M + N) log(M + N))`` for each column; see `Toeplitz`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.matmul_toeplitz(([1.0, 3.0, 6.0], [1.0, -1.0]), sa.asarray([1.0, 2.0]))
    Dense([-1.,  5., 12.], dtype=float64)
    """
    matrix, columns = _toeplitz("linalg.matmul_toeplitz", c_or_cr), lift(parameter(x, "x", "linalg.matmul_toeplitz"))
    n, shape = matrix.shape[-1], columns.shape
    if shape[-2:][:1] != (n,):
        raise ValueError(f"linalg.matmul_toeplitz: x must be (N,) or (..., N, K) with N = {n}, got shape {shape}")
    result: Array = follow_eager_operands(matmul(matrix, columns), (c_or_cr, x))
    return result


def _toeplitz(name: str, c_or_cr: Any) -> Toeplitz:
    """Construct the `Toeplitz` array from the argument `c_or_cr`."""
    from ..._structures.toeplitz.array import Toeplitz

    if isinstance(c_or_cr, tuple) and len(c_or_cr) != 2:
        raise ValueError(f"{name}: c_or_cr must be the first column, or a tuple (c, r), got a tuple of {len(c_or_cr)}")
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    return Toeplitz(parameter(c, "c", name), None if r is None else parameter(r, "r", name))


@function("c", "b", prefix="linalg.", checked="the circulant matrix of c is singular, or nearly so")
def solve_circulant(
    c: ArrayLike,
    b: ArrayLike,
    singular: str = "raise",
    tol: float | None = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Array:
    """Solve the linear system ``C @ x = b`` with a circulant matrix, as `scipy.linalg.solve_circulant`.

    Parameters
    ----------
    c : array, (..., n)
        First columns of the matrices, of length n along `caxis`.
    b : array, (n, ...)
        Right-hand sides, of length n along `baxis`. The other axes must broadcast with the other axes of `c`.
    singular : {"raise", "lstsq"}, default "raise"
        Treatment of singular and nearly singular matrices: raise an error, or return the minimum-norm least-squares
        solution.
    tol : float, optional
        A matrix is nearly singular if the absolute value of an eigenvalue is less than or equal to `tol`. The default
        is ``n * eps`` times the largest absolute value of the eigenvalues.
    caxis, baxis : int, default -1 and 0
        Axes of the vectors in `c` and `b`.
    outaxis : int, default 0
        Axis of the solutions in the result.

    Returns
    -------
    array, (n, ...)
        Solutions, in the common data type of the arguments. Integers are converted to the default floating-point data
        type.

    Raises
    ------
    ValueError
        If `c` and `b` have vectors of different lengths, the other axes do not broadcast, or `singular` is invalid.
    numpy.exceptions.AxisError
        If an axis is out of range. AxisError is a ValueError.
    TypeError
        If an argument has a boolean data type.
    numpy.linalg.LinAlgError
        If `singular` is "raise" and a matrix is singular or nearly singular, in an eager call. Under `jax.jit`, or
        within ``errstate(linalg="nan")``, its solutions are NaN instead.

    Notes
    -----
    The discrete Fourier transform diagonalizes C, so x is the inverse transform of ``fft(b) / fft(c)``. The cost is
    ``O(n log(n))``. A least-squares solution replaces the reciprocals of zero eigenvalues by zero.
    ``linalg.solve(Circulant(c), b)`` returns the same solution, without a check for nearly singular matrices.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.solve_circulant(sa.asarray([2.0, 2.0, 4.0]), sa.asarray([1.0, 2.0, 3.0]))
    Dense([ 0.75, -0.25,  0.25], dtype=float64)
    >>> c = sa.asarray([1.0, 1.0, 0.0, 0.0])
    >>> sa.linalg.solve_circulant(c, sa.asarray([1.0, 2.0, 3.0, 4.0]), singular="lstsq")
    Dense([0.25, 1.25, 2.25, 1.25], dtype=float64)
    """
    c, b = cast("Array", c), cast("Array", b)
    name = "linalg.solve_circulant"
    if singular not in ("raise", "lstsq"):
        raise ValueError(f"{name}: singular must be 'raise' or 'lstsq', got {singular!r}")
    c, b = promote(check.floating(name, c, "c"), check.floating(name, b, "b"))
    c = jnp.moveaxis(to_dense(c).data, check_axis(name, caxis, c.ndim, "caxis"), -1)
    b = jnp.moveaxis(to_dense(b).data, check_axis(name, baxis, b.ndim, "baxis"), -1)
    n = c.shape[-1]
    if b.shape[-1] != n:
        raise ValueError(
            f"{name}: b must have {n} elements along baxis, like c along caxis, got {b.shape[-1]} (with these axes last, the shapes "
            f"are {c.shape} and {b.shape})"
        )
    shape = (*check.broadcast(name, c.shape[:-1], b.shape[:-1], what="the other axes of c and b, of shapes"), n)
    outaxis = check_axis(name, outaxis, len(shape), "outaxis")
    if 0 in shape:
        return cast("Array", (Dense.make((jnp.moveaxis(jnp.zeros(shape, b.dtype), -1, outaxis),)), jnp.array(True)))
    eigenvalues = circulant_transforms.spectrum(c)
    magnitudes = jnp.abs(eigenvalues)
    bound: Any = tol
    if bound is None:
        bound = n * jnp.finfo(c.dtype).eps * jnp.max(magnitudes, axis=-1, keepdims=True)
    small = magnitudes <= bound
    reciprocals = jnp.where(small, 0, reciprocal(jnp.where(small, 1, eigenvalues)))
    nearly = jnp.any(small, axis=-1, keepdims=True) & (singular == "raise")
    x = circulant_transforms.apply_spectrum(nan_unless(~nearly, reciprocals), b[..., None])[..., 0]
    return cast("Array", (Dense.make((jnp.moveaxis(x, -1, outaxis),)), ~jnp.any(nearly)))  # and the success flag
