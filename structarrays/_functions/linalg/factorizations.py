"""Cholesky and LU factorizations, and linear systems with given factors, as in SciPy.

The functions omit SciPy's arguments for memory and checks (``overwrite_a``, ``check_finite``, …): data is immutable,
and NaN in the input gives NaN.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import lift, to_dense
from ..._core.array.operators import is_operand
from ..._core.dispatch.decorator import function
from ..._core.dispatch.function import Function
from ..._numerics import dense_factors
from .. import matrix_checks as check
from ..linear_algebra import matmul, matrix_transpose
from .systems import cholesky
from .triangular import solve_triangular, transposition

if TYPE_CHECKING:
    from collections.abc import Callable

# ---- Cholesky's factors ----------------------------------------------------------------------------------------------


class CholeskyFactor(NamedTuple):
    """A Cholesky factor, and whether it is the lower one (a static part of the pytree)."""

    c: Array
    lower: bool


jax.tree_util.register_pytree_with_keys(
    CholeskyFactor,
    lambda factor: (((jax.tree_util.GetAttrKey("c"), factor.c),), factor.lower),
    lambda lower, children: CholeskyFactor(children[0], lower),  # type: ignore[index]  # JAX gives a tuple
)


class OfCholeskyFactor(Function[..., Array]):
    """A function whose first argument is a pair ``(c, lower)`` with a static `lower`."""

    followed = ("b",)

    def __call__(self, *args: Any, **kwargs: Any) -> Array:
        first = next(iter(self.__signature__.parameters))
        if args:
            args = (self._pair(args[0], first), *args[1:])
        elif first in kwargs:
            kwargs = {**kwargs, first: self._pair(kwargs[first], first)}
        return super().__call__(*args, **kwargs)

    def _pair(self, value: Any, argument: str) -> CholeskyFactor:
        if type(value) is CholeskyFactor:
            return value
        if not (isinstance(value, (tuple, list)) and len(value) == 2 and is_operand(value[0])):
            raise TypeError(f"{self.name}: {argument} must be a pair (array, lower), got {type(value).__name__}")
        c, lower = value
        try:
            return CholeskyFactor(c, bool(lower))
        except jax.errors.TracerBoolConversionError:
            raise TypeError(
                f"{self.name}: {argument}[1] must be a static bool, got {lower!r}; "
                "pass the CholeskyFactor that cho_factor returns, in which it is static"
            ) from None

    def _lift(self, value: Any, name: str) -> Any:
        whole = type(value) is CholeskyFactor
        return CholeskyFactor(lift(value.c), value.lower) if whole else super()._lift(value, name)

    def _operand(self, value: Any, argument: str) -> Any:
        return value if type(value) is CholeskyFactor else super()._operand(value, argument)


def of_cholesky_factor(define: Callable[..., Any]) -> OfCholeskyFactor:
    """Decorate an implementation as an `OfCholeskyFactor`."""
    message = "the factor is singular"
    return OfCholeskyFactor(define, tuple(inspect.signature(define).parameters)[:2], checked=message, prefix="linalg.")


@function("a", prefix="linalg.", checked="a is not positive definite")
def cho_factor(a: ArrayLike, lower: bool = False) -> CholeskyFactor:
    r"""Compute the Cholesky factor of each Hermitian positive definite matrix of a stack, for `cho_solve`.

    Parameters
    ----------
    a : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.
    lower : bool, default False
        If False, compute the upper triangular factor ``U`` with ``a = conj(U).mT @ U``. If True, compute the lower
        triangular factor ``L`` with ``a = L @ conj(L).mT``.

    Returns
    -------
    c : array, (..., M, M)
        Factor; see Notes for its structure. The other triangle of the factor of a dense matrix is zero, unlike in
        SciPy, which leaves arbitrary elements there.
    lower : bool
        The argument `lower`. The pair can be unpacked like a tuple. It is a pytree for `jax.jit`, `jax.vmap` and
        `jax.lax.scan`, in which `lower` is static.

    Raises
    ------
    ValueError
        If `a` is not square.
    TypeError
        If `a` has a boolean data type.
    numpy.linalg.LinAlgError
        If a matrix is not positive definite, in an eager call. Under `jax.jit`, or within ``errstate(linalg="nan")``,
        its factor is NaN instead.

    See Also
    --------
    scipy.linalg.cho_factor, linalg.cholesky

    Notes
    -----
    As in `linalg.cholesky`, the function factors the Hermitian part, so that derivatives are Hermitian. To read one
    triangle only, pass ``Symmetric(a, lower)`` or ``Hermitian(a, lower)``.

    =========================================  ====================  =========================================
    structure                                  factor                cost of the factor, and of a solution
    =========================================  ====================  =========================================
    `Diagonal`, `Identity`                     the same              ``O(M)``, ``O(M)``
    `Banded`, w diagonals                      `Banded`              ``O(M w**2)``, ``O(M w)``
    `BlockDiagonal`, M / b blocks              `BlockDiagonal`       ``O(M b**2)``, ``O(M b)``
    `BlockBanded`, block-tridiagonal           `BlockBanded`         ``O(M b**2)``, ``O(M b)``
    `Kronecker`                                `Kronecker`           ``O(sum(n_i**3))``, ``O(M sum(n_i))``
    `Dense`, and any other                     `Triangular`          ``M**3 / 3``, ``2 M**2``
    =========================================  ====================  =========================================

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.tridiagonal([-1.0, -1.0], [2.0, 2.0, 2.0], [-1.0, -1.0])
    >>> factor = sa.linalg.cho_factor(A)
    >>> sa.linalg.cho_solve(factor, sa.asarray([1.0, 0.0, 1.0]))
    Dense([1., 1., 1.], dtype=float64)
    >>> c, lower = factor
    >>> c.offsets, lower
    ((0, 1), False)
    """
    a = cast("Array", a)
    check.square("linalg.cho_factor", a, "a")
    c, ok = cho_factor.dispatch(check.floating("linalg.cho_factor", a, "a"), lower=bool(lower))
    return cast("CholeskyFactor", (CholeskyFactor(c, bool(lower)), ok))  # and the success flag


@cho_factor.kernel(Array)
def _cho_factor_array(a: Array, *, lower: bool) -> tuple[Array, jax.Array]:
    c, ok = cholesky.dispatch(a, upper=not lower)
    return as_triangular(c, lower=lower), ok


def as_triangular(c: Array, *, lower: bool, unit_diagonal: bool = False) -> Array:
    """Wrap a dense factor as `Triangular`, so that systems with it need no factorization."""
    from ..._structures.triangular.array import Triangular

    return Triangular.make((c.data, None), (lower, unit_diagonal)) if type(c) is Dense else c


@of_cholesky_factor
def cho_solve(c_and_lower: CholeskyFactor, b: Array) -> Array:
    """Solve the linear system ``a @ x = b`` for each matrix of a stack, with the Cholesky factor of `a`.

    Parameters
    ----------
    c_and_lower : (array, bool)
        Factor of shape (..., M, M), and whether it is the lower one, as returned by `cho_factor`. The other triangle of
        a dense factor is ignored.
    b : array, (M,) or (..., M, K)
        Right-hand sides. A vector is used for every matrix of `a`; otherwise the batch shapes must broadcast.

    Returns
    -------
    array, (..., M) or (..., M, K)
        The solutions.

    Raises
    ------
    ValueError
        If the factor is not square, the dimensions M differ, or the batch shapes do not broadcast.
    TypeError
        If `c_and_lower` is not a pair, its second element is traced, or an array has a boolean data type.
    numpy.linalg.LinAlgError
        If the diagonal of a factor contains a zero, in an eager call. Under `jax.jit`, or within
        ``errstate(linalg="nan")``, the solution is NaN instead.

    See Also
    --------
    scipy.linalg.cho_solve

    Notes
    -----
    The function performs two substitutions. See `cho_factor` for the cost by structure.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.asarray([[2.0, 1.0], [1.0, 2.0]])
    >>> sa.linalg.cho_solve(sa.linalg.cho_factor(A, lower=True), sa.asarray([3.0, 3.0]))
    Dense([1., 1.], dtype=float64)
    """
    c, lower = c_and_lower
    c, b = check.system("linalg.cho_solve", c, b, "c_and_lower[0]")
    x, ok = cho_solve.dispatch(c, check.columns(b), lower=lower)
    return cast("Array", (check.like_right_hand_side(x, b), ok))  # and the success flag


@cho_solve.kernel(Array, Array)
def _cho_solve_array(c: Array, b: Array, *, lower: bool) -> tuple[Array, jax.Array]:
    """Solve with the left factor, then with the right factor."""
    y, ok = solve_triangular.dispatch(c, b, trans=0 if lower else 2, lower=lower, unit_diagonal=False)
    x, _ = solve_triangular.dispatch(c, y, trans=2 if lower else 0, lower=lower, unit_diagonal=False)
    return x, ok


# ---- LU factors ------------------------------------------------------------------------------------------------------


class LUFactor(NamedTuple):
    """Both factors in one array, and the pivot indices: row i was interchanged with row ``piv[i]``."""

    lu: Array
    piv: Array


class LUResult(NamedTuple):
    """Permutation, unit lower triangular matrix, and upper triangular matrix."""

    p: Array
    l: Array
    u: Array


@function("a", prefix="linalg.")
def lu_factor(a: ArrayLike) -> LUFactor:
    """Compute the LU factorization with partial pivoting of each matrix of a stack, for `lu_solve`.

    Parameters
    ----------
    a : array, (..., M, N)
        Matrices of a floating-point data type. Integers are converted to the default one.

    Returns
    -------
    lu : array, (..., M, N)
        U on and above the diagonal, and the unit lower triangular L below it, without its unit diagonal. See Notes for
        the structure.
    piv : array, (..., min(M, N))
        Pivot indices: row i was interchanged with row ``piv[i]``, for i = 0, 1, … in order.

    Raises
    ------
    ValueError
        If `a` has fewer than two dimensions.
    TypeError
        If `a` has a boolean data type.

    See Also
    --------
    scipy.linalg.lu_factor, linalg.lu

    Notes
    -----
    A singular matrix has factors with a zero on the diagonal of U; `lu_solve` raises for them. Derivatives treat the
    interchanges as constant.

    ==========================================  ========================  =========================================
    structure                                   `lu`                      cost of the factors, and of a solution
    ==========================================  ========================  =========================================
    `Diagonal`, `Identity`                      the same                  ``O(1)``, ``O(M)``
    `Banded`, square, kl lower, ku upper        `Banded`, kl lower and    ``O(M kl (kl + ku))``,
    diagonals                                   kl + ku upper diagonals   ``O(M (kl + ku))``
    `BlockDiagonal` of square blocks b × b      `BlockDiagonal`           ``O(M b**2)``, ``O(M b)``
    `BlockBanded`, block-tridiagonal            `BlockBanded`, 1 lower    ``O(M b**2)``, ``O(M b)``
                                                and 2 upper diagonals
    upper `Triangular`                          the same                  ``O(1)``, ``M**2``
    `Dense`, and any other                      `Dense`                   ``2 M**3 / 3``, ``2 M**2``
    ==========================================  ========================  =========================================

    The lower diagonals of a `Banded` or `BlockBanded` factor contain the multipliers, in the order of LAPACK's
    ``gbtrf``: later interchanges do not permute them. So the dense form of the factor differs from the factor of the
    dense matrix; do not pass it to `lu_solve`.

    For a `Banded` matrix, as in `linalg.solve`, rows are interchanged only if elimination without interchanges is
    unstable; elimination with interchanges takes ten times as long. For a `BlockBanded` matrix, rows are interchanged
    within a block row and the next one.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.tridiagonal([4.0, 1.0], [0.0, 1.0, 1.0], [2.0, 1.0])
    >>> factors = sa.linalg.lu_factor(A)
    >>> factors.lu.offsets, factors.piv.tolist()
    ((-1, 0, 1, 2), [1, 1, 2])
    >>> sa.linalg.lu_solve(factors, sa.asarray([2.0, 6.0, 2.0]))
    Dense([1., 1., 1.], dtype=float64)
    """
    a = cast("Array", a)
    check.matrix("linalg.lu_factor", a, "a")
    return LUFactor(*lu_factor.dispatch(check.floating("linalg.lu_factor", a, "a")))


@lu_factor.kernel(Dense)
def _lu_factor_dense(a: Dense) -> tuple[Dense, Dense]:
    lu, piv, _ = dense_factors.lu(a.data)
    return Dense.make((lu,)), Dense.make((piv,))


def no_exchanges(a: Array) -> Dense:
    """Return the `piv` of matrices without interchanges."""
    k = min(a.shape[-2:])
    return Dense.make((jnp.broadcast_to(jnp.arange(k, dtype=jnp.int32), (*a.shape[:-2], k)),))


@function("*lu_and_piv", "b", prefix="linalg.", checked="lu_and_piv are the factors of a singular matrix")
def lu_solve(lu_and_piv: tuple[ArrayLike, ArrayLike], b: ArrayLike, trans: int | str = 0) -> Array:
    """Solve the linear system ``a @ x = b`` for each matrix of a stack, with the LU factors of `a`.

    Parameters
    ----------
    lu_and_piv : (array, array)
        Factors of shape (..., M, M), and pivot indices of shape (..., M), as returned by `lu_factor`.
    b : array, (M,) or (..., M, K)
        Right-hand sides. A vector is used for every matrix of `a`; otherwise the batch shapes must broadcast.
    trans : {0, 1, 2, "N", "T", "C"}, default 0
        Type of the system: with `a` (0, "N"), its transpose (1, "T"), or its conjugate transpose (2, "C").

    Returns
    -------
    array, (..., M) or (..., M, K)
        The solutions.

    Raises
    ------
    ValueError
        If the factors are not square, the dimensions M differ, the batch shapes do not broadcast, or `trans` is
        invalid.
    TypeError
        If `lu_and_piv` is not a pair of arrays, or an array has the wrong kind of data type.
    numpy.linalg.LinAlgError
        If the diagonal of U contains a zero, in an eager call. Under `jax.jit`, or within ``errstate(linalg="nan")``,
        the solution is NaN instead.

    See Also
    --------
    scipy.linalg.lu_solve

    Notes
    -----
    See `lu_factor` for the cost by structure.

    Examples
    --------
    >>> import structarrays as sa
    >>> factors = sa.linalg.lu_factor(sa.asarray([[1.0, 2.0], [3.0, 4.0]]))
    >>> sa.linalg.lu_solve(factors, sa.asarray([4.0, 6.0]), trans=1)
    Dense([1., 1.], dtype=float64)
    """
    lu_and_piv = cast("tuple[Array, Array]", lu_and_piv)
    b = cast("Array", b)
    if not (isinstance(lu_and_piv, tuple) and len(lu_and_piv) == 2):
        raise TypeError(f"linalg.lu_solve: lu_and_piv must be a pair of arrays, got {type(lu_and_piv).__name__}")
    lu, piv = lu_and_piv
    lu, b = check.system("linalg.lu_solve", lu, b, "lu_and_piv[0]")
    if piv.dtype.kind not in "iu":
        raise TypeError(f"linalg.lu_solve: lu_and_piv[1] must have an integer dtype, got {piv.dtype}")
    if piv.ndim < 1 or piv.shape[-1] != lu.shape[-1]:
        raise ValueError(
            f"linalg.lu_solve: lu_and_piv[1] must be (..., {lu.shape[-1]}) for factors of shape {lu.shape}, "
            f"got shape {piv.shape}"
        )
    check.broadcast("linalg.lu_solve", lu.shape[:-2], piv.shape[:-1])
    x, ok = lu_solve.dispatch(lu, piv, check.columns(b), trans=transposition("linalg.lu_solve", trans))
    return cast("Array", (check.like_right_hand_side(x, b), ok))  # and the success flag


lu_solve.followed = ("b",)


@lu_solve.kernel(Array, Array, Array)
def _lu_solve_array(lu: Array, piv: Array, b: Array, *, trans: int) -> tuple[Array, jax.Array]:
    """Perform two substitutions, and the interchanges before or after them."""
    from ..._structures.permutation.array import Permutation

    order = lax.linalg.lu_pivots_to_permutation(to_dense(piv).data.astype(jnp.int32), lu.shape[-1])
    exchanges = Permutation.make((order,), np.dtype(lu.dtype))
    lower = functools.partial(solve_triangular.dispatch, trans=trans, lower=True, unit_diagonal=True)
    upper = functools.partial(solve_triangular.dispatch, trans=trans, lower=False, unit_diagonal=False)
    if trans:
        y, ok = upper(lu, b)
        return matmul.dispatch(matrix_transpose(exchanges), lower(lu, y)[0]), ok
    result: tuple[Array, jax.Array] = upper(lu, lower(lu, matmul.dispatch(exchanges, b))[0])
    return result


@function("a", prefix="linalg.")
def lu(a: ArrayLike, permute_l: bool = False, *, p_indices: bool = False) -> LUResult | tuple[Array, Array]:
    """Compute the LU decomposition ``a = p @ l @ u`` with partial pivoting of each matrix of a stack.

    Parameters
    ----------
    a : array, (..., M, N)
        Matrices of a floating-point data type. Integers are converted to the default one.
    permute_l : bool, default False
        If True, return the pair ``(p @ l, u)``.
    p_indices : bool, default False
        If True, return the permutation as indices with ``a[i, :] = (l @ u)[p[i], :]``.

    Returns
    -------
    p : Permutation, (..., M, M), or array, (..., M)
        Permutation matrix with a real data type, or indices if `p_indices` is True. Not returned if `permute_l` is
        True.
    l : array, (..., M, K)
        Unit lower triangular matrix with ``K = min(M, N)`` columns, or ``p @ l`` if `permute_l` is True.
    u : array, (..., K, N)
        Upper triangular matrix.

    Raises
    ------
    ValueError
        If `a` has fewer than two dimensions.
    TypeError
        If `a` has a boolean data type.

    See Also
    --------
    scipy.linalg.lu, linalg.lu_factor

    Notes
    -----
    To solve linear systems, use `lu_factor`. It keeps banded factors, while the interchanges fill the columns of `l`.

    ==============================================  ====================================================
    structure                                       `l` and `u`
    ==============================================  ====================================================
    `Diagonal`, upper banded or triangular          `Identity` and the same
    `Permutation`                                   `Identity` and `Identity`
    `Banded`, assumed positive definite             `Banded` and `Banded`, without interchanges
    `BlockDiagonal` of square blocks                `BlockDiagonal`, block by block
    `Kronecker` of square factors                   `Kronecker`, factor by factor; each element of `l` is at most 1 in
                                                    magnitude, but `p` differs from the dense form
    `Dense`, and any other                          `Triangular`
    ==============================================  ====================================================

    Examples
    --------
    >>> import structarrays as sa
    >>> p, l, u = sa.linalg.lu(sa.asarray([[1.0, 2.0], [4.0, 4.0]]))
    >>> p
    Permutation([1, 0], shape=(2, 2), dtype=float64, stores 2 of 4 entries, 8 B of 32 B dense)
    >>> (p @ (l @ u)).to_dense()
    Dense([[1., 2.],
           [4., 4.]], dtype=float64)
    """
    a = cast("Array", a)
    from ..._structures.permutation.array import Permutation

    check.matrix("linalg.lu", a, "a")
    p, lower, u = lu.dispatch(check.floating("linalg.lu", a, "a"))
    if permute_l:
        return matmul.dispatch(Permutation.make((p,), np.dtype(lower.dtype)), lower), u
    return LUResult(Dense.make((p,)) if p_indices else Permutation.make((p,), check.real_dtype(lower.dtype)), lower, u)


@lu.kernel(Dense)
def _lu_dense(a: Dense) -> tuple[jax.Array, Array, Array]:
    """Return the indices of the permutation as a `jax.Array`, and both factors, like every kernel."""
    data, _, order = dense_factors.lu(a.data)
    k = min(a.shape[-2:])
    lower, upper = Dense.make((data[..., :, :k],)), Dense.make((data[..., :k, :],))
    return (
        jnp.argsort(order, axis=-1).astype(jnp.int32),
        as_triangular(lower, lower=True, unit_diagonal=True),
        as_triangular(upper, lower=False),
    )
