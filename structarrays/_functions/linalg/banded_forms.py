"""Banded systems in the matrix diagonal ordered form of SciPy.

The functions serve code whose matrices have that form. They construct a `Banded` array and call `linalg.solve` or
`linalg.cholesky`, at the same cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import to_dense
from ..._core.dispatch.decorator import function
from ..._numerics.bands import diagonal_length
from .. import matrix_checks as check
from .factorizations import CholeskyFactor, cho_solve, of_cholesky_factor
from .systems import POSITIVE_DEFINITE, cholesky, solve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..._structures.banded.array import Banded


def _banded(ab: Array, offsets: Iterable[int]) -> Banded:
    """Construct the square `Banded` array whose diagonals are the rows of `ab` (matrix diagonal ordered form)."""
    from ..._structures.banded.array import bands

    data, n = to_dense(ab).data, ab.shape[-1]
    pairs = [(k, data[..., i, :]) for i, k in enumerate(offsets) if abs(k) < n]
    diagonals = [row[..., max(0, k) : max(0, k) + diagonal_length((n, n), k)] for k, row in pairs]
    result: Banded = bands(diagonals, [k for k, _ in pairs], (n, n), dtype=ab.dtype, batch=ab.shape[:-2])
    return result


def _half(ab: Array, lower: bool) -> range:
    """Return the offsets of the rows of an array that contains the diagonals of one half."""
    w = ab.shape[-2]
    return range(0, -w, -1) if lower else range(w - 1, -1, -1)


def _hermitian(ab: Array, lower: bool) -> Banded:
    """Construct the Hermitian `Banded` array, assumed positive definite, from its lower or upper half `ab`."""
    from ..._structures.banded.array import bands

    half = _banded(ab, _half(ab, lower))
    other = [-k for k in half.offsets if k]
    diagonals = [*map(half.diagonal, half.offsets), *(half.diagonal(-k).conj() for k in other)]
    whole = bands(diagonals, [*half.offsets, *other], half.shape[-2:])
    result: Banded = whole.assuming(frozenset({POSITIVE_DEFINITE, "hermitian", "positive_semidefinite"}))
    return result


def _checked_form(name: str, ab: Array, b: Array | None = None, argument: str = "ab") -> Any:
    """Check the arrays, and convert them to one floating-point data type."""
    check.matrix(name, ab, argument)
    if ab.shape[-2] == 0:
        raise ValueError(f"{name}: {argument} must have a row for each diagonal, got shape {ab.shape}")
    if b is None:
        return check.floating(name, ab, argument)
    return check.right_hand_side(name, check.floating(name, ab, argument), b, argument)


@function("ab", "b", prefix="linalg.", checked="the matrix is singular")
def solve_banded(l_and_u: tuple[int, int], ab: ArrayLike, b: ArrayLike) -> Array:
    """Solve ``a @ x = b`` for banded matrices in matrix diagonal ordered form.

    Parameters
    ----------
    l_and_u : (int, int)
        Numbers ``l`` and ``u`` of diagonals below and above the main diagonal.
    ab : array, (..., l + u + 1, M)
        Diagonals from the uppermost to the lowermost, aligned by columns: ``ab[..., u + i - j, j] == a[..., i, j]``.
        Elements outside of the matrix are ignored.
    b : array, (M,) or (..., M, K)
        Right-hand sides. A vector is used for every matrix of `a`; otherwise the batch shapes must broadcast.

    Returns
    -------
    array, (..., M) or (..., M, K)
        The solutions.

    Raises
    ------
    ValueError
        If `l_and_u` are not two nonnegative numbers that match the rows of `ab`, the dimensions M differ, or the batch
        shapes do not broadcast.
    TypeError
        If an array has a boolean data type, or `l_and_u` are not integers.
    numpy.linalg.LinAlgError
        If a matrix is singular, in an eager call. Under `jax.jit`, or within ``errstate(linalg="nan")``,
        its solution is NaN instead.

    See Also
    --------
    scipy.linalg.solve_banded

    Notes
    -----
    The function calls `linalg.solve` with a `Banded` array. The cost is ``O(M l (l + u))``, and ``O(M (l + u))`` for
    each right-hand side.

    Examples
    --------
    >>> import structarrays as sa
    >>> ab = sa.asarray([[0.0, -1.0, -1.0], [2.0, 2.0, 2.0], [-1.0, -1.0, 0.0]])
    >>> sa.linalg.solve_banded((1, 1), ab, sa.asarray([1.0, 0.0, 1.0]))
    Dense([1., 1., 1.], dtype=float64)
    """
    ab, b = cast("Array", ab), cast("Array", b)
    name = "linalg.solve_banded"
    if not (isinstance(l_and_u, tuple) and len(l_and_u) == 2):
        raise ValueError(f"{name}: l_and_u must be two integers, got {l_and_u!r}")
    low, up = (check.integer(name, count, f"l_and_u[{i}]") for i, count in enumerate(l_and_u))
    form: list[Array] = _checked_form(name, ab, b)
    ab, b = form
    if min(low, up) < 0 or low + up + 1 != ab.shape[-2]:
        raise ValueError(f"{name}: ab must have l + u + 1 rows for l_and_u = {(low, up)}, got shape {ab.shape}")
    return cast("Array", solve.dispatch(_banded(ab, range(up, -low - 1, -1)), b))  # and the success flag


@function("ab", "b", prefix="linalg.", checked="the matrix is not positive definite")
def solveh_banded(ab: ArrayLike, b: ArrayLike, lower: bool = False) -> Array:
    """Solve ``a @ x = b`` for Hermitian positive definite banded matrices in matrix diagonal ordered form.

    Parameters
    ----------
    ab : array, (..., u + 1, M)
        Main diagonal and superdiagonals, ``ab[..., u + i - j, j] == a[..., i, j]``. If `lower` is True, main diagonal
        and subdiagonals, ``ab[..., i - j, j] == a[..., i, j]``. Elements outside of the matrix are ignored.
    b : array, (M,) or (..., M, K)
        Right-hand sides. A vector is used for every matrix of `a`; otherwise the batch shapes must broadcast.
    lower : bool, default False
        Whether `ab` contains the lower half of the matrix instead of the upper half.

    Returns
    -------
    array, (..., M) or (..., M, K)
        The solutions.

    Raises
    ------
    ValueError
        If `ab` has fewer than two dimensions, the dimensions M differ, or the batch shapes do not broadcast.
    TypeError
        If an array has a boolean data type.
    numpy.linalg.LinAlgError
        If a matrix is not positive definite, in an eager call. Under `jax.jit`, or within ``errstate(linalg="nan")``,
        its solution is NaN instead.

    See Also
    --------
    scipy.linalg.solveh_banded

    Notes
    -----
    The function calls `linalg.solve` with a `Banded` array that is assumed positive definite. The cost is ``O(M
    u**2)``, and ``O(M u)`` for each right-hand side.

    Examples
    --------
    >>> import structarrays as sa
    >>> ab = sa.asarray([[0.0, -1.0, -1.0], [2.0, 2.0, 2.0]])
    >>> sa.linalg.solveh_banded(ab, sa.asarray([1.0, 0.0, 1.0]))
    Dense([1., 1., 1.], dtype=float64)
    """
    ab, b = cast("Array", ab), cast("Array", b)
    form: list[Array] = _checked_form("linalg.solveh_banded", ab, b)
    ab, b = form
    return cast("Array", solve.dispatch(_hermitian(ab, bool(lower)), b))  # and the success flag


@function("ab", prefix="linalg.", checked="the matrix is not positive definite")
def cholesky_banded(ab: ArrayLike, lower: bool = False) -> Array:
    """Compute the Cholesky factor of Hermitian positive definite banded matrices in matrix diagonal ordered form.

    Parameters
    ----------
    ab : array, (..., u + 1, M)
        Main diagonal and superdiagonals, ``ab[..., u + i - j, j] == a[..., i, j]``. If `lower` is True, main diagonal
        and subdiagonals, ``ab[..., i - j, j] == a[..., i, j]``. Elements outside of the matrix are ignored.
    lower : bool, default False
        If False, `ab` contains the upper half, and the factor is ``U`` with ``a = conj(U).mT @ U``. If True, `ab`
        contains the lower half, and the factor is ``L`` with ``a = L @ conj(L).mT``.

    Returns
    -------
    Dense, (..., u + 1, M)
        Factor in the form of `ab`, with zeros outside of the matrix.

    Raises
    ------
    ValueError
        If `ab` has fewer than two dimensions.
    TypeError
        If `ab` has a boolean data type.
    numpy.linalg.LinAlgError
        If a matrix is not positive definite, in an eager call. Under `jax.jit`, or within ``errstate(linalg="nan")``,
        its factor is NaN instead.

    See Also
    --------
    scipy.linalg.cholesky_banded

    Notes
    -----
    The function calls `linalg.cholesky` with a `Banded` array. The cost is ``O(M u**2)``.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.cholesky_banded(sa.asarray([[0.0, 2.0, 2.0], [4.0, 5.0, 5.0]]))
    Dense([[0., 1., 1.],
           [2., 2., 2.]], dtype=float64)
    """
    ab = cast("Array", ab)
    form: Array = _checked_form("linalg.cholesky_banded", ab)
    ab, lower = form, bool(lower)
    factor, ok = cholesky.dispatch(_hermitian(ab, lower), upper=not lower)
    n = ab.shape[-1]
    rows = [
        jnp.pad(factor.diagonal(k), [(0, 0)] * (ab.ndim - 2) + [(k, 0) if k > 0 else (0, -k)])
        if abs(k) < n
        else jnp.zeros((*ab.shape[:-2], n), ab.dtype)
        for k in _half(ab, lower)
    ]
    return cast("Array", (Dense.make((jnp.stack(rows, axis=-2),)), ok))  # and the success flag


@of_cholesky_factor
def cho_solve_banded(cb_and_lower: CholeskyFactor, b: Array) -> Array:
    """Solve ``a @ x = b`` with the Cholesky factor of banded matrices in matrix diagonal ordered form.

    Parameters
    ----------
    cb_and_lower : (array, bool)
        Factor of shape (..., u + 1, M) that `cholesky_banded` returned, and its argument `lower`.
    b : array, (M,) or (..., M, K)
        Right-hand sides. A vector is used for every matrix of `a`; otherwise the batch shapes must broadcast.

    Returns
    -------
    array, (..., M) or (..., M, K)
        The solutions.

    Raises
    ------
    ValueError
        If the factor has fewer than two dimensions, the dimensions M differ, or the batch shapes do not broadcast.
    TypeError
        If `cb_and_lower` is not a pair, its second element is traced, or an array has a boolean data type.
    numpy.linalg.LinAlgError
        If the diagonal of a factor contains a zero, in an eager call. Under `jax.jit`, or within
        ``errstate(linalg="nan")``, the solution is NaN instead.

    See Also
    --------
    scipy.linalg.cho_solve_banded

    Notes
    -----
    The cost is ``O(M u)`` for each right-hand side.

    Examples
    --------
    >>> import structarrays as sa
    >>> ab = sa.asarray([[0.0, -1.0, -1.0], [2.0, 2.0, 2.0]])
    >>> factor = sa.linalg.cholesky_banded(ab)
    >>> sa.linalg.cho_solve_banded((factor, False), sa.asarray([1.0, 0.0, 1.0]))
    Dense([1., 1., 1.], dtype=float64)
    """
    cb, lower = cb_and_lower
    cb, b = _checked_form("linalg.cho_solve_banded", cb, b, "cb_and_lower[0]")
    x, ok = cho_solve.dispatch(_banded(cb, _half(cb, lower)), check.columns(b), lower=lower)
    return cast("Array", (check.like_right_hand_side(x, b), ok))  # and the success flag
