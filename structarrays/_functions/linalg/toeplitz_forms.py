"""SciPy's functions for Toeplitz and circulant matrices, under their names: code that calls them needs no structure of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp

from ..._core.array.arguments import ArrayLike, ParameterLike
from ..._core.array.base import Array
from ..._core.array.dense import Dense, parameter
from ..._core.array.operands import lift, promote, to_dense
from ..._core.dispatch.decorator import function
from ..._core.families.batch import check_axis
from ..._numerics import circulant_transforms
from ..._numerics.undefined import nan_unless
from .. import matrix_checks as check
from ..linear_algebra import matmul
from .systems import solve

if TYPE_CHECKING:
    from ..._structures.toeplitz.array import Toeplitz


def solve_toeplitz(c_or_cr: ParameterLike | tuple[ParameterLike, ParameterLike], b: ParameterLike) -> Array:
    """Solution of the system ``T @ x = b`` with a Toeplitz matrix, as by `scipy.linalg.solve_toeplitz`.

    Parameters
    ----------
    c_or_cr : array_like or tuple of (array_like, array_like)
        The first column ``c`` of T, (..., M), or a tuple ``(c, r)`` of it and the first row, of which ``r[..., 0]`` is ignored. Without
        `r` it is ``conj(c)``.
    b : array_like, (M,) or (..., M, K)
        The right-hand sides.

    Returns
    -------
    array, (..., M) or (..., M, K)
        The solutions, in the common dtype of the arguments (integers become the default one).

    Raises
    ------
    ValueError
        If `c` and `r` have different lengths, or `b` has another number of rows.
    TypeError
        If an argument is boolean.
    numpy.linalg.LinAlgError
        If T is singular, and the call is eager; see `linalg.solve`.

    Notes
    -----
    It is ``linalg.solve(Toeplitz(c, r), b)``; `Toeplitz` says how. Other than SciPy's recursion, that is stable for matrices with
    leading minors that vanish, or nearly do, and the residual is looked at. Where T is positive definite, which it need not be
    told, a large system takes ``O(M log(M))`` for each of some ten iterations.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.solve_toeplitz(([1.0, 3.0, 6.0], [1.0, -1.0, -2.0]), sa.asarray([-7.0, 2.0, 15.0]))
    Dense([1., 2., 3.], dtype=float64)
    """
    matrix = _toeplitz("linalg.solve_toeplitz", c_or_cr)
    b, (m, n) = lift(parameter(b, "b", "linalg.solve_toeplitz")), matrix.shape[-2:]
    if m != n:
        raise ValueError(
            f"linalg.solve_toeplitz: c and r must have the same length for a square matrix, got {m} and {n}"
        )
    return solve(*check.system("linalg.solve_toeplitz", matrix, b, "the matrix", "b"))


def matmul_toeplitz(c_or_cr: ParameterLike | tuple[ParameterLike, ParameterLike], x: ParameterLike) -> Array:
    """Product ``T @ x`` with a Toeplitz matrix, as by `scipy.linalg.matmul_toeplitz`.

    Parameters
    ----------
    c_or_cr : array_like or tuple of (array_like, array_like)
        The first column ``c`` of T, (..., M), or a tuple ``(c, r)`` of it and the first row (..., N), of which ``r[..., 0]`` is
        ignored. Without `r` it is ``conj(c)``.
    x : array_like, (N,) or (..., N, K)
        What is multiplied.

    Returns
    -------
    array, (..., M) or (..., M, K)
        The product, in the common dtype of the arguments: of integers it is one of integers, and exact.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    TypeError
        If an argument is boolean.

    Notes
    -----
    It is ``Toeplitz(c, r) @ x``, in ``O((M + N) log(M + N))`` for each column; see `Toeplitz`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.matmul_toeplitz(([1.0, 3.0, 6.0], [1.0, -1.0]), sa.asarray([1.0, 2.0]))
    Dense([-1.,  5., 12.], dtype=float64)
    """
    matrix, x = _toeplitz("linalg.matmul_toeplitz", c_or_cr), lift(parameter(x, "x", "linalg.matmul_toeplitz"))
    n, rows = matrix.shape[-1], x.shape[-2:][:1]
    if rows != (n,):
        raise ValueError(f"linalg.matmul_toeplitz: x must be (N,) or (..., N, K) with N = {n}, got shape {x.shape}")
    return matmul(matrix, x)


def _toeplitz(name: str, c_or_cr: Any) -> Toeplitz:
    """The matrix."""
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
    """Solution of the system ``C @ x = b`` with a circulant matrix, as by `scipy.linalg.solve_circulant`.

    Parameters
    ----------
    c : array
        The first columns of the matrices, each of n elements along `caxis`.
    b : array
        The right-hand sides, each of n elements along `baxis`. The other axes broadcast with those of `c`.
    singular : {"raise", "lstsq"}, optional
        What is done about a matrix that is singular, or nearly so: an error is raised, or x is the least-squares solution of the least
        norm.
    tol : float, optional
        A matrix is nearly singular if an eigenvalue has at most this magnitude. By default n times the precision of the dtype times the
        largest magnitude of them.
    caxis, baxis : int, optional
        The axes of `c` and `b` along which vectors are.
    outaxis : int, optional
        The axis of the result along which solutions are.

    Returns
    -------
    array
        The solutions, in the common dtype of the arguments (integers become the default one).

    Raises
    ------
    ValueError
        If `c` and `b` have vectors of different lengths, the other axes do not broadcast, or `singular` is none of the two.
    numpy.exceptions.AxisError
        If an axis is out of range; it is a ValueError, too.
    TypeError
        If an argument is boolean.
    numpy.linalg.LinAlgError
        If `singular` is "raise", a matrix is singular or nearly so, and the call is eager; under `jax.jit`, and within
        ``errstate(linalg="nan")``, its solutions are NaN.

    Notes
    -----
    The discrete Fourier transform diagonalises C, so x is the transform back of ``fft(b) / fft(c)``, in ``O(n log(n))``. An eigenvalue that
    counts as zero has zero for its reciprocal in a least-squares solution. ``linalg.solve(Circulant(c), b)`` is the same but for
    matrices that are nearly singular, which it does not look for.

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
            f"{name}: b must have {n} elements along baxis, as c has along caxis, got {b.shape[-1]} (the shapes with these axes "
            f"last are {c.shape} and {b.shape})"
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
    reciprocals = jnp.where(small, 0, 1 / jnp.where(small, 1, eigenvalues))
    nearly = jnp.any(small, axis=-1, keepdims=True) & (singular == "raise")
    x = circulant_transforms.apply_spectrum(nan_unless(~nearly, reciprocals), b[..., None])[..., 0]
    return cast("Array", (Dense.make((jnp.moveaxis(x, -1, outaxis),)), ~jnp.any(nearly)))  # and its flag
