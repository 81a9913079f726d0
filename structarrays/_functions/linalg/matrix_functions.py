"""Functions of square matrices: `expm`, `sqrtm` and `expm_multiply` as in SciPy, and `logdet` as in PyTorch."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import cast, densify, to_dense
from ..._core.dispatch.decorator import function
from ..._core.dispatch.registry import Registry
from ..._numerics import dense_matrix_functions as matrix_functions
from ..._numerics.undefined import nan_unless
from .. import matrix_checks as check
from ..elementwise import abs as magnitude
from ..elementwise import multiply
from ..linear_algebra import matmul
from ..statistical import sum as sum_along
from .norms import diagonal
from .systems import differentiable_unless_singular, logarithms

if TYPE_CHECKING:
    from collections.abc import Callable


@function("x", prefix="linalg.")
def logdet(x: ArrayLike) -> Array:
    r"""Compute the natural logarithm of the determinant of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.

    Returns
    -------
    array, (...)
        Logarithms in the data type of `x`. The logarithm of a negative real determinant is NaN, and of a zero
        determinant -inf, with NaN as derivatives. For complex matrices the result is the principal value
        :math:`\log|\det x| + i \arg(\det x)`.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` has a boolean data type.

    See Also
    --------
    linalg.slogdet, torch.logdet

    Notes
    -----
    The function uses `linalg.slogdet`, so it neither overflows nor underflows, at the same cost.

    Examples
    --------
    >>> import structarrays as sa
    >>> round(float(sa.linalg.logdet(sa.Diagonal([1e200, 1e200]))), 6)
    921.034037
    >>> float(sa.linalg.logdet(sa.Diagonal([1.0, -1.0])))
    nan
    """
    x = typing.cast("Array", x)
    check.square("linalg.logdet", x)
    x = check.floating("linalg.logdet", x)
    sign, logabsdet = logarithms(x)
    logabsdet = differentiable_unless_singular(logabsdet)
    if x.dtype.kind == "c":
        return Dense.make((lax.complex(logabsdet, jnp.angle(sign)),))
    return Dense.make((nan_unless(~(sign < 0), logabsdet),))


@function("A", prefix="linalg.", dense=matrix_functions.expm)
def expm(A: ArrayLike) -> Array:
    r"""Compute the matrix exponential :math:`\sum_k A^k / k!` of each matrix of a stack.

    Parameters
    ----------
    A : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.

    Returns
    -------
    array, (..., M, M)
        Matrix exponentials. The exponential of a matrix whose 1-norm exceeds 3e11 is NaN.

    Raises
    ------
    ValueError
        If `A` is not square.
    TypeError
        If `A` has a boolean data type.

    See Also
    --------
    scipy.linalg.expm, linalg.expm_multiply

    Notes
    -----
    For dense matrices, the algorithm is scaling and squaring with a Padé approximant of degree 13 (Higham, *SIAM J.
    Matrix Anal. Appl.* 26, 2005). The reverse-mode derivative stores twelve matrices.

    ===================================  =========================  ========================================
    structure                            result                     cost
    ===================================  =========================  ========================================
    `Diagonal`, `Identity`               the same                   ``O(M)``
    `BlockDiagonal` of square blocks     `BlockDiagonal`            block by block
    `Circulant`                          `Circulant`                ``O(M log M)``, by the eigenvalues
    `KroneckerSum`                       `Kronecker`                factor by factor
    `LowRank` of rank r                  a multiple of the          ``O(M r**2)``
                                         identity and a `LowRank`
    `Triangular`                         `Triangular`               ``O(M**3)``
    `Dense`, and any other               `Dense`                    ``O(M**3)``
    ===================================  =========================  ========================================

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.expm(sa.asarray([[0.0, 1.0], [0.0, 0.0]]))
    Dense([[1., 1.],
           [0., 1.]], dtype=float64)
    """
    A = typing.cast("Array", A)
    check.square("linalg.expm", A, "A")
    result: Array = expm.dispatch(check.floating("linalg.expm", A, "A"))
    return result


@function(
    "A", prefix="linalg.", checked="A has no principal square root (or is assumed positive semidefinite, and is not)"
)
def sqrtm(A: ArrayLike) -> Array:
    r"""Compute the principal square root of each matrix of a stack.

    The eigenvalues of the principal square root have a nonnegative real part.

    Parameters
    ----------
    A : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.

    Returns
    -------
    array, (..., M, M)
        Square roots. If `A` is assumed positive semidefinite or positive definite (see `assume`), they have the data
        type of `A`. Otherwise they are complex: unlike in SciPy, the data type cannot be data-dependent.

    Raises
    ------
    ValueError
        If `A` is not square.
    TypeError
        If `A` has a boolean data type.
    numpy.linalg.LinAlgError
        If a matrix has no principal square root (because of a defective eigenvalue 0), or is assumed positive semidefinite and
        has a negative eigenvalue, in an eager call. Under `jax.jit`, or within ``errstate(linalg="nan")``, its root is
        NaN instead.

    See Also
    --------
    scipy.linalg.sqrtm

    Notes
    -----
    For dense matrices, the algorithm uses the Schur form (Björck and Hammarling, *Linear Algebra Appl.* 52/53, 1983),
    which JAX implements on CPUs only. SciPy computes it, unless the matrix is badly conditioned. If the matrix is
    Hermitian, or assumed positive semidefinite, the algorithm uses eigenvectors, which is several times as fast. If
    several eigenvalues are zero, the Schur form is sorted. The derivative solves the Sylvester equation
    ``X dX + dX X = dA``. It does not exist if an eigenvalue is zero: elements are then large, or NaN.

    ===================================================  =========================  ==============================
    structure                                            result                     cost
    ===================================================  =========================  ==============================
    `Diagonal`, `Identity`                               the same                   ``O(M)``
    `BlockDiagonal` of square blocks                     `BlockDiagonal`            block by block
    `Circulant`                                          `Circulant`                ``O(M log M)``
    `Kronecker` of factors assumed semidefinite          `Kronecker`                factor by factor
    `Dense`, and any other                               `Dense`                    ``O(M**3)``
    ===================================================  =========================  ==============================

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.linalg.sqrtm(sa.asarray([[4.0, 0.0], [5.0, 9.0]]))
    Dense([[2.+0.j, 0.+0.j],
           [1.+0.j, 3.+0.j]], dtype=complex128)
    >>> sa.linalg.sqrtm(sa.assume(sa.Diagonal([4.0, 9.0]), "positive_definite")).diag.tolist()
    [2.0, 3.0]
    """
    A = typing.cast("Array", A)
    check.square("linalg.sqrtm", A, "A")
    A = check.floating("linalg.sqrtm", A, "A")
    assumptions = A.assumptions
    if not is_semidefinite(A):
        A = cast(A, check.complex_dtype(A.dtype))
    root, ok = sqrtm.dispatch(A)
    return typing.cast(
        "Array", (root.assuming(assumptions) if is_semidefinite(A) else root, ok)
    )  # and the success flag


def is_semidefinite(x: Array) -> bool:
    """Return whether an array is assumed positive semidefinite or positive definite."""
    return "positive_semidefinite" in x.assumptions


@sqrtm.kernel(Dense)
def _sqrtm_dense(A: Dense) -> tuple[Dense, jax.Array]:
    if A.size == 0:
        return A, jnp.array(True)
    if is_semidefinite(A):
        data, ok = matrix_functions.sqrtm_semidefinite((A.data + A.data.mT.conj()) / 2)
    else:
        data, ok = matrix_functions.sqrtm(A.data)
    # NaN in the argument gives NaN without an error.
    return Dense.make((data,)), jnp.all(ok | jnp.any(jnp.isnan(A.data), axis=(-2, -1)))


# ---- the exponential times a matrix ----------------------------------------------------------------------------------


@function("A", "B", "start", "stop", prefix="linalg.")
def expm_multiply(
    A: ArrayLike,
    B: ArrayLike,
    start: ArrayLike | None = None,
    stop: ArrayLike | None = None,
    num: int | None = None,
    endpoint: bool | None = None,
) -> Array:
    r"""Compute the product :math:`e^A B` without forming the matrix exponential.

    With `start` and `stop`, compute :math:`e^{t A} B` at the evenly spaced times t of `linspace`: the solution of the
    differential equation :math:`y' = A y` with the initial value B at t = 0.

    Parameters
    ----------
    A : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one.
    B : array, (M,) or (..., M, K)
        Vector or matrices to multiply. A vector is used for every matrix of `A`; otherwise the batch shapes must
        broadcast.
    start, stop : float, complex or 0-d array, optional
        First and last time. Give both or neither.
    num : int, optional
        Number of times. The default is 50.
    endpoint : bool, optional
        If True, the default, `stop` is the last time. If False, `stop` is the time after the last one.

    Returns
    -------
    array, (..., M) or (..., M, K)
        Products. With times, the shape is (num, ..., M) or (num, ..., M, K).

    Raises
    ------
    ValueError
        If `A` is not square, the dimensions M differ, the batch shapes do not broadcast, a time is not a scalar, or
        `num` is less than 1.
    TypeError
        If `A`, `B` or a time has a boolean data type, or only one of `start` and `stop` is given.

    See Also
    --------
    scipy.sparse.linalg.expm_multiply, linalg.expm

    Notes
    -----
    **Algorithm.** The Taylor series of :math:`e^{A/s}` is applied s times: algorithm 3.2 of Al-Mohy and Higham,
    *Computing the action of the matrix exponential*, SIAM J. Sci. Comput. 33 (2011). The number of terms and s depend
    on the 1-norm of A minus a multiple of the identity, such that the backward error is below the machine precision.
    The norm replaces the estimates of norms of powers. With several times, the exponential of the step leads from each
    time to the next; if it has structure, it is formed once.

    **Cost.** The series takes about 6 products for each unit of the norm, and at least a few. So it suits large
    matrices with moderate norm and cheap products.

    ===========================================  =======================================================
    structure of `A`                             cost
    ===========================================  =======================================================
    `Diagonal`, `Circulant`, `BlockDiagonal`,    cost of `expm`, which keeps structure, and of a product
    `KroneckerSum`, `LowRank`
    any other                                    about ``6 norm(A)`` products, memory for three results
    ===========================================  =======================================================

    The norm of a `Sum`, `Product` or `LowRank` is bounded by the product of the magnitudes of the parts. All matrices of a stack take
    the number of steps that the largest norm requires. Where the norm or its bound exceeds 10**8, the result is NaN.

    **Derivatives.** Forward and reverse mode differentiate the series. Reverse mode computes the series three times and
    stores 192 terms. Its steps do not run in a fused loop: for vectors of 10**4 elements and three diagonals on a CPU,
    a derivative takes 10 times (forward) to 40 times (reverse) as long as the product. Beyond a norm of 40000 it is
    NaN.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.tridiagonal([1.0, 1.0], [-2.0, -2.0, -2.0], [1.0, 1.0])  # heat flows
    >>> y = sa.linalg.expm_multiply(A, sa.asarray([0.0, 1.0, 0.0]))
    >>> [round(v, 6) for v in y.tolist()]
    [0.185179, 0.294785, 0.185179]
    >>> y = sa.linalg.expm_multiply(A, sa.asarray([0.0, 1.0, 0.0]), start=0, stop=1, num=3)
    >>> [round(v, 6) for v in y[:, 1].tolist()]
    [1.0, 0.463746, 0.294785]
    """
    A, B = typing.cast("Array", A), typing.cast("Array", B)
    name = "linalg.expm_multiply"
    A, B = check.system(name, A, B, "A", "B")
    if start is stop is num is endpoint is None:
        return check.like_right_hand_side(expm_multiply.dispatch(A, check.columns(B)), B)
    if start is None or stop is None:
        raise TypeError(f"{name}: start and stop must both be given, {'start' if start is None else 'stop'} is missing")
    start, stop = typing.cast("Array", start), typing.cast("Array", stop)
    num = 50 if num is None else check.integer(name, num, "num")
    if num < 1:
        raise ValueError(f"{name}: num must be at least 1, got {num}")
    a, b, first, last = _in_one_dtype(A, B, *(_time(name, t, a) for t, a in ((start, "start"), (stop, "stop"))))
    steps = max(num - 1, 1) if endpoint is None or endpoint else num
    return check.like_right_hand_side(_at_times(a, check.columns(b), first, (last - first) / steps, num), b)


def _time(name: str, value: Array, argument: str) -> jax.Array:
    if value.ndim or value.dtype.kind not in "iufc":
        raise (ValueError if value.ndim else TypeError)(
            f"{name}: {argument} must be a number, got an array of shape {value.shape} and dtype {value.dtype}"
        )
    return to_dense(value).data


def _in_one_dtype(A: Array, B: Array, *times: jax.Array) -> tuple[Any, ...]:
    """Convert the operands to one data type, complex if a time is, and real times to its real data type."""
    if any(t.dtype.kind == "c" for t in times):
        dtype = check.complex_dtype(A.dtype)
        return cast(A, dtype), cast(B, dtype), *(t.astype(dtype) for t in times)
    return A, B, *(t.astype(check.real_dtype(A.dtype)) for t in times)


def _at_times(A: Array, B: Array, start: jax.Array, step: jax.Array, num: int) -> Array:
    first = to_dense(expm_multiply.dispatch(_scaled(A, start), B)).data
    forward = _propagator(_scaled(A, step), B)

    def advance(y: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        y = forward(y)
        return y, y

    _, others = lax.scan(advance, first, length=num - 1)
    return Dense.make((jnp.concatenate([first[None], others]),))


def _scaled(A: Array, number: jax.Array) -> Array:
    result: Array = multiply.dispatch(A, cast(Dense.make((number,)), A.dtype))
    return result


def _propagator(A: Array, B: Array) -> Callable[[jax.Array], jax.Array]:
    """Return the function ``y -> exp(A) @ y`` of data with the shape of B."""
    if expm_multiply.required((A, B)).classes[0] is Array:
        return _by_products(A)
    exponential = expm.dispatch(A)
    return lambda y: _product(exponential, y)


column_sums: Registry[jax.Array] = Registry("column_sums")
"""``column_sums.kernel(A)``: registers a function of ``x`` ``(..., m, n)`` and `weights` ``(..., m)``, not negative, or None for ones. It
returns ``weights @ abs(x)`` ``(..., n)``, or upper bounds."""


def bound_of_column_sums(x: Array, weights: jax.Array | None = None) -> jax.Array:
    """Return upper bounds on the weighted column sums of the magnitudes of each matrix of a stack."""
    return column_sums.required((x,)).run(x, weights)


@column_sums.kernel(Dense)
@column_sums.kernel(Array)
def _column_sums_array(x: Array, weights: jax.Array | None) -> jax.Array:
    """Return the sums themselves."""
    if weights is None:
        return to_dense(sum_along(magnitude(x), axis=-2)).data
    return to_dense(matmul(Dense.make((weights[..., None, :],)), magnitude(x))).data[..., 0, :]


@expm_multiply.kernel(Array, Array)
def _expm_multiply_array(A: Array, B: Array) -> Dense:
    right = densify(B, "linalg.expm_multiply").data
    batch = jnp.broadcast_shapes(A.shape[:-2], right.shape[:-2])
    return Dense.make((_by_products(A)(jnp.broadcast_to(right, batch + right.shape[-2:])),))


def _by_products(A: Array) -> Callable[[jax.Array], jax.Array]:
    """Return the function ``y -> exp(A) @ y`` of data whose batch shape contains the batch shape of A."""
    norm, shift = _norm_and_shift(A) if A.size else (None, None)
    return lambda y: matrix_functions.expm_action(_product, A, y, norm, shift) if y.size else y


def _product(A: Array, x: jax.Array) -> jax.Array:
    result: jax.Array = matmul.dispatch(A, Dense.make((x,))).dense_data()
    return result


def _norm_and_shift(A: Array) -> tuple[jax.Array, jax.Array]:
    """Return the 1-norm of ``A - shift`` (or a bound), and the shift: the mean of the diagonal if A stores entries."""
    if not (A.stores_entries or type(A) is Dense):
        return jnp.max(bound_of_column_sums(A), axis=-1), jnp.zeros(A.shape[:-2], A.dtype)
    own = to_dense(diagonal(A)).data
    shift = jnp.mean(own, axis=-1)
    sums = to_dense(sum_along(magnitude(A), axis=-2)).data - jnp.abs(own) + jnp.abs(own - shift[..., None])
    return jnp.max(sums, axis=-1), shift
