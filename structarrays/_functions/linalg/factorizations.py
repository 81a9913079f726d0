"""Factorisations that are kept, and the systems that they solve, under SciPy's names: `cho_factor`, `lu_factor`, `lu`.

SciPy's arguments that concern memory and checks only (``overwrite_a``, ``check_finite``, …) are left out: arrays are immutable here, and
NaN gives NaN.
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
from ..._core.array.base import Array, is_operand
from ..._core.array.dense import Dense
from ..._core.array.operands import lift, to_dense
from ..._core.dispatch.decorator import function
from ..._core.dispatch.function import Function
from .. import matrix_checks as check
from ..linear_algebra import matmul, matrix_transpose
from .systems import cholesky
from .triangular import solve_triangular, transposition

if TYPE_CHECKING:
    from collections.abc import Callable

# ---- Cholesky's factors ----------------------------------------------------------------------------------------------


class CholeskyFactor(NamedTuple):
    """A Cholesky factor and (static in JAX's eyes) whether it is the lower one."""

    c: Array
    lower: bool


jax.tree_util.register_pytree_with_keys(
    CholeskyFactor,
    lambda factor: (((jax.tree_util.GetAttrKey("c"), factor.c),), factor.lower),
    lambda lower, children: CholeskyFactor(children[0], lower),  # type: ignore[index]  # JAX gives a tuple
)


class OfCholeskyFactor(Function[..., Array]):
    """A function whose first argument is a pair ``(c, lower)``, of which `lower` is static."""

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
                f"{self.name}: {argument}[1] must be True or False, known while JAX traces, got {lower!r}; "
                "pass on what cho_factor returns, of which it is a static part"
            ) from None

    def _lift(self, value: Any, name: str) -> Any:
        whole = type(value) is CholeskyFactor
        return CholeskyFactor(lift(value.c), value.lower) if whole else super()._lift(value, name)

    def _operand(self, value: Any, argument: str) -> Any:
        return value if type(value) is CholeskyFactor else super()._operand(value, argument)


def of_cholesky_factor(define: Callable[..., Any]) -> OfCholeskyFactor:
    """Make the decorated code an `OfCholeskyFactor`."""
    message = "the factor is singular"
    return OfCholeskyFactor(define, tuple(inspect.signature(define).parameters)[:2], checked=message, prefix="linalg.")


@function("a", prefix="linalg.", checked="a is not positive definite")
def cho_factor(a: ArrayLike, lower: bool = False) -> CholeskyFactor:
    r"""Cholesky factor of each Hermitian positive definite matrix of a stack, for `cho_solve`.

    Parameters
    ----------
    a : array, (..., M, M)
        Of a floating-point dtype (integers become the default one).
    lower : bool
        Whether the factor is ``L`` with ``a = L @ conj(L).mT``, or (default) ``U`` with ``a = conj(U).mT @ U``.

    Returns
    -------
    c : array, (..., M, M)
        The factor: `Triangular` of a dense matrix, with zeros in the other triangle, where SciPy leaves what was there. Of other
        structures see below.
    lower : bool
        The argument. The pair can be unpacked like a tuple; whole, it goes through `jax.jit`, `jax.vmap` and `jax.lax.scan`, in which
        `lower` is static.

    Raises
    ------
    ValueError
        If `a` is not square.
    TypeError
        If `a` is boolean.
    numpy.linalg.LinAlgError
        If a matrix is not positive definite, and the call is eager; under `jax.jit`, and within ``errstate(linalg="nan")``, its
        factor is NaN.

    See Also
    --------
    scipy.linalg.cho_factor, linalg.cholesky

    Notes
    -----
    As in `linalg.cholesky`, the Hermitian part is factored, so that derivatives are Hermitian. To read one triangle, give
    ``Symmetric(a, lower)`` or ``Hermitian(a, lower)``.

    =========================================  ====================  =========================================
    structure                                  factor                costs of the factor, and of a solution
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
    return cast("CholeskyFactor", (CholeskyFactor(c, bool(lower)), ok))  # and its flag


@cho_factor.kernel(Array)
def _cho_factor_array(a: Array, *, lower: bool) -> tuple[Array, jax.Array]:
    c, ok = cholesky.dispatch(a, upper=not lower)
    return as_triangular(c, lower=lower), ok


def as_triangular(c: Array, *, lower: bool, unit_diagonal: bool = False) -> Array:
    """A factor; a dense one as `Triangular`, so that systems with it need no factorisation."""
    from ..._structures.triangular.array import Triangular

    return Triangular.make((c.data, None), (lower, unit_diagonal)) if type(c) is Dense else c


@of_cholesky_factor
def cho_solve(c_and_lower: CholeskyFactor, b: Array) -> Array:
    """Solution of the linear systems ``a @ x = b`` by the Cholesky factor of `a`.

    Parameters
    ----------
    c_and_lower : (array, bool), (..., M, M)
        What `cho_factor` returns. Of a dense array one triangle is read.
    b : array, (M,) or (..., M, K)
        The right-hand sides: one vector for all matrices if it has one dimension, else matrices whose batch shape broadcasts.

    Returns
    -------
    array, (..., M) or (..., M, K)
        The solutions.

    Raises
    ------
    ValueError
        If the factor is not square, the dimensions M differ, or the batch shapes do not broadcast.
    TypeError
        If `c_and_lower` is no pair, its second part is known to nobody but the compiled call, or an array is boolean.
    numpy.linalg.LinAlgError
        If there is a zero on the diagonal of a factor, and the call is eager; under `jax.jit`, and within
        ``errstate(linalg="nan")``, the solution is NaN.

    See Also
    --------
    scipy.linalg.cho_solve

    Notes
    -----
    Two substitutions; for the costs by structure see `cho_factor`.

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
    return cast("Array", (check.like_right_hand_side(x, b), ok))  # and its flag


@cho_solve.kernel(Array, Array)
def _cho_solve_array(c: Array, b: Array, *, lower: bool) -> tuple[Array, jax.Array]:
    """First with the factor that stands on the left, then with the other."""
    y, ok = solve_triangular.dispatch(c, b, trans=0 if lower else 2, lower=lower, unit_diagonal=False)
    x, _ = solve_triangular.dispatch(c, y, trans=2 if lower else 0, lower=lower, unit_diagonal=False)
    return x, ok


# ---- LU factors ------------------------------------------------------------------------------------------------------


class LUFactor(NamedTuple):
    """Both factors in one array, and for each row the one that it was exchanged with."""

    lu: Array
    piv: Array


class LUResult(NamedTuple):
    """A permutation, a lower triangular matrix with a diagonal of ones, and an upper triangular one."""

    p: Array
    l: Array
    u: Array


@function("a", prefix="linalg.")
def lu_factor(a: ArrayLike) -> LUFactor:
    """LU factors of each matrix of a stack, with partial pivoting, for `lu_solve`.

    Parameters
    ----------
    a : array, (..., M, N)
        Of a floating-point dtype (integers become the default one).

    Returns
    -------
    lu : array, (..., M, N)
        U on and above the diagonal, and below it the unit lower triangular L without its ones. Of other structures see below.
    piv : array, (..., min(M, N))
        Row i was exchanged with row ``piv[i]``, for ``i = 0, 1, …`` in turn.

    Raises
    ------
    ValueError
        If `a` has fewer than two dimensions.
    TypeError
        If `a` is boolean.

    See Also
    --------
    scipy.linalg.lu_factor, linalg.lu

    Notes
    -----
    A singular matrix has factors, too: with a zero on the diagonal of U, at which `lu_solve` raises. The derivative is that for
    constant exchanges.

    ==========================================  ========================  =========================================
    structure                                   `lu`                      costs of the factors, and of a solution
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

    The lower diagonals of a `Banded` or `BlockBanded` factor are the multipliers as LAPACK's ``gbtrf`` leaves them, which later exchanges do
    not move. So its dense form is not what comes of a dense matrix, and is no argument for `lu_solve`. The rows of a `Banded` matrix are
    exchanged, as ``gbtrf`` does it, only if elimination without exchanges turns out unstable, as in `linalg.solve`: it takes ten times as
    long. Those of a `BlockBanded` one are, within their block row and the next.

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
    lu, piv, _ = lax.linalg.lu(a.data)
    return Dense.make((lu,)), Dense.make((piv,))


def no_exchanges(a: Array) -> Dense:
    """The `piv` of matrices that need none."""
    k = min(a.shape[-2:])
    return Dense.make((jnp.broadcast_to(jnp.arange(k, dtype=jnp.int32), (*a.shape[:-2], k)),))


@function("*lu_and_piv", "b", prefix="linalg.", checked="lu_and_piv are the factors of a singular matrix")
def lu_solve(lu_and_piv: tuple[ArrayLike, ArrayLike], b: ArrayLike, trans: int | str = 0) -> Array:
    """Solution of the linear systems ``a @ x = b`` by the LU factors of `a`.

    Parameters
    ----------
    lu_and_piv : (array, array), (..., M, M) and (..., M)
        What `lu_factor` returns.
    b : array, (M,) or (..., M, K)
        The right-hand sides: one vector for all matrices if it has one dimension, else matrices whose batch shape broadcasts.
    trans : {0, 1, 2, "N", "T", "C"}
        Whether to solve with `a` (0, "N"), its transpose (1, "T"), or its conjugated transpose (2, "C").

    Returns
    -------
    array, (..., M) or (..., M, K)
        The solutions.

    Raises
    ------
    ValueError
        If the factors are not square, the dimensions M differ, the batch shapes do not broadcast, or `trans` is none of these.
    TypeError
        If `lu_and_piv` is no pair of arrays, or an array has the wrong kind of dtype.
    numpy.linalg.LinAlgError
        If there is a zero on the diagonal of U, and the call is eager; under `jax.jit`, and within ``errstate(linalg="nan")``, the
        solution is NaN.

    See Also
    --------
    scipy.linalg.lu_solve

    Notes
    -----
    For the costs by structure see `lu_factor`.

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
    return cast("Array", (check.like_right_hand_side(x, b), ok))  # and its flag


@lu_solve.kernel(Array, Array, Array)
def _lu_solve_array(lu: Array, piv: Array, b: Array, *, trans: int) -> tuple[Array, jax.Array]:
    """Two substitutions, and the exchanges before or after them."""
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
    """LU decomposition ``a = p @ l @ u`` of each matrix of a stack, with partial pivoting.

    Parameters
    ----------
    a : array, (..., M, N)
        Of a floating-point dtype (integers become the default one).
    permute_l : bool
        Whether to return ``(p @ l, u)``.
    p_indices : bool
        Whether to return, in place of `p`, the indices with ``a[i, :] = (l @ u)[p[i], :]``.

    Returns
    -------
    p : Permutation, (..., M, M), or array, (..., M)
        Of a real dtype. Not returned with `permute_l`.
    l : array, (..., M, K)
        Lower triangular with a diagonal of ones, ``K = min(M, N)``; or `p` times that.
    u : array, (..., K, N)
        Upper triangular.

    Raises
    ------
    ValueError
        If `a` has fewer than two dimensions.
    TypeError
        If `a` is boolean.

    See Also
    --------
    scipy.linalg.lu, linalg.lu_factor

    Notes
    -----
    To solve systems, `lu_factor` is better: it keeps what is banded, where exchanges of rows would spread the columns of `l`.

    ==============================================  ====================================================
    structure                                       `l` and `u`
    ==============================================  ====================================================
    `Diagonal`, upper banded or triangular          an `Identity` and the same
    `Permutation`                                   two of `Identity`
    `Banded`, assumed positive definite             `Banded` and `Banded`, without exchanges
    `BlockDiagonal` of square blocks                `BlockDiagonal`, block by block
    `Kronecker` of square factors                   `Kronecker`, factor by factor: each element of `l` is at most 1
                                                    in magnitude, but the exchanges are not those of the dense form
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
    """The indices of the permutation as a `jax.Array`, and both factors; so do all kernels."""
    data, _, order = lax.linalg.lu(a.data)
    k = min(a.shape[-2:])
    lower, upper = Dense.make((data[..., :, :k],)), Dense.make((data[..., :k, :],))
    return (
        jnp.argsort(order, axis=-1).astype(jnp.int32),
        as_triangular(lower, lower=True, unit_diagonal=True),
        as_triangular(upper, lower=False),
    )
