"""Functions of square matrices under SciPy's names, `expm`, `sqrtm` and `expm_multiply`, and `logdet` under PyTorch's."""

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
from ..statistical import max as largest
from ..statistical import sum as sum_along
from .norms import diagonal
from .systems import differentiable_unless_singular, logarithms

if TYPE_CHECKING:
    from collections.abc import Callable


@function("x", prefix="linalg.")
def logdet(x: ArrayLike) -> Array:
    r"""Natural logarithm of the determinant of each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, M)
        Of a floating-point dtype (integers become the default one).

    Returns
    -------
    array, (...)
        Of the dtype of `x`: NaN where a real determinant is negative, -inf where it is zero. Derivatives are NaN in both
        cases. Of a complex matrix the principal value,
        :math:`\log|\det x| + i \arg(\det x)`.

    Raises
    ------
    ValueError
        If `x` is not square.
    TypeError
        If `x` is boolean.

    See Also
    --------
    linalg.slogdet, torch.logdet

    Notes
    -----
    It is made of what `linalg.slogdet` gives, at the same costs, and neither overflows nor underflows.

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
    r"""Exponential :math:`\sum_k A^k / k!` of each matrix of a stack.

    Parameters
    ----------
    A : array, (..., M, M)
        Of a floating-point dtype (integers become the default one).

    Returns
    -------
    array, (..., M, M)
        The exponentials; NaN for a norm of more than 3e11.

    Raises
    ------
    ValueError
        If `A` is not square.
    TypeError
        If `A` is boolean.

    See Also
    --------
    scipy.linalg.expm, linalg.expm_multiply

    Notes
    -----
    Dense matrices take scaling, a Padé approximant of degree 13, and squaring (Higham, *SIAM J. Matrix Anal. Appl.* 26, 2005). The
    derivative backward keeps twelve matrices.

    ===================================  =========================  ========================================
    structure                            result                     costs
    ===================================  =========================  ========================================
    `Diagonal`, `Identity`               the same                   ``O(M)``
    `BlockDiagonal` of square blocks     `BlockDiagonal`            block by block
    `Circulant`                          `Circulant`                ``O(M log M)``, by its eigenvalues
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


@function("A", prefix="linalg.", checked="A has no square root (or is assumed positive semidefinite, and is not)")
def sqrtm(A: ArrayLike) -> Array:
    r"""Principal square root of each matrix of a stack: that whose eigenvalues have a nonnegative real part.

    Parameters
    ----------
    A : array, (..., M, M)
        Of a floating-point dtype (integers become the default one).

    Returns
    -------
    array, (..., M, M)
        The square roots. They are complex, since the dtype cannot depend on values, as it does in SciPy; but of the dtype of `A`, if
        that is assumed positive semidefinite or definite (see `assume`).

    Raises
    ------
    ValueError
        If `A` is not square.
    TypeError
        If `A` is boolean.
    numpy.linalg.LinAlgError
        If a matrix has no square root (which takes a defective eigenvalue 0), or is assumed positive semidefinite and has a negative
        eigenvalue, and the call is eager; under `jax.jit`, and within ``errstate(linalg="nan")``, its root is NaN.

    See Also
    --------
    scipy.linalg.sqrtm

    Notes
    -----
    Dense matrices take the Schur form (Björck and Hammarling, *Linear Algebra Appl.* 52/53, 1983), which JAX has on CPUs only, or, if
    assumed positive semidefinite, eigenvectors, which is 30 times as fast. The derivative solves the Sylvester equation ``X dX + dX X = dA``.

    ===================================================  =========================  ==============================
    structure                                            result                     costs
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
    return typing.cast("Array", (root.assuming(assumptions) if is_semidefinite(A) else root, ok))  # and its flag


def is_semidefinite(x: Array) -> bool:
    """Whether an array is assumed positive semidefinite (or definite, which implies it)."""
    return "positive_semidefinite" in x.assumptions


@sqrtm.kernel(Dense)
def _sqrtm_dense(A: Dense) -> tuple[Dense, jax.Array]:
    if A.size == 0:
        return A, jnp.array(True)
    if is_semidefinite(A):
        data, ok = matrix_functions.sqrtm_semidefinite((A.data + A.data.mT.conj()) / 2)
    else:
        data, ok = matrix_functions.sqrtm(A.data)
    # NaN in the argument gives NaN, and raises nothing.
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
    r"""The product :math:`e^A B`, by products of `A` with dense matrices: the exponential is never formed.

    With `start` and `stop` the products :math:`e^{t A} B` at evenly spaced times t, those of `linspace`: the solution of
    :math:`y' = A y` in the course of time.

    Parameters
    ----------
    A : array, (..., M, M)
        Of a floating-point dtype (integers become the default one).
    B : array, (M,) or (..., M, K)
        One vector for all matrices if it has one dimension, else matrices whose batch shape broadcasts.
    start, stop : float or complex, or an array of zero dimensions, optional
        The first and the last time; both or neither are given.
    num : int, optional
        How many times, 50 by default.
    endpoint : bool, optional
        Whether `stop` is the last time (default), or the one after the last.

    Returns
    -------
    array, (..., M) or (..., M, K)
        With times ``(num, ..., M)`` or ``(num, ..., M, K)``.

    Raises
    ------
    ValueError
        If `A` is not square, the dimensions M differ, the batch shapes do not broadcast, a time is no scalar, or `num` is less than 1.
    TypeError
        If an argument is boolean that may not be, or one of `start` and `stop` is missing.

    See Also
    --------
    scipy.sparse.linalg.expm_multiply, linalg.expm

    Notes
    -----
    From each time to the next goes the exponential of the step times `A`; one that has structure is formed once.

    Taylor's series of :math:`e^{A/s}`, s times, with the number of terms and s chosen by the 1-norm of A (less a multiple of the
    identity) so that the backward error is below the precision: Al-Mohy and Higham, *Computing the action of the matrix exponential*,
    SIAM J. Sci. Comput. 33 (2011), algorithm 3.2, with the norm in place of estimates of the norms of powers. It takes about 6 products
    for each unit of the norm, and at least a few; so it is for matrices of moderate norm that are large and multiplied cheaply.

    ===========================================  =======================================================
    structure of `A`                             costs
    ===========================================  =======================================================
    `Diagonal`, `Circulant`, `BlockDiagonal`,    those of `expm`, which has structure, and of a product
    `KroneckerSum`, `LowRank`
    any other with a product                     about ``6 norm(A)`` products, memory for three results
    ===========================================  =======================================================

    Of a `Sum` or a `Product` the norm is bounded by those of the parts. In a stack all matrices take the steps that the largest norm
    asks for. Derivatives go through the series, forward and backward; backward it is computed three times, and keeps 192 terms. Its
    steps run one by one there, and not in a fused loop: for vectors of 10**4 elements and three diagonals, a derivative takes 10 (forward)
    to 40 times (backward) as long as the product, on a CPU. Beyond a norm of 40000 it is NaN.

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
        raise TypeError(f"{name}: times need both start and stop, {'start' if start is None else 'stop'} is missing")
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
    """The operands, complex if a time is, and the times in their dtype, or the real one of its precision."""
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
    """The function ``y -> exp(A) @ y`` of data like those of B."""
    if expm_multiply.required((A, B)).classes[0] is Array:
        return _by_products(A)
    exponential = expm.dispatch(A)
    return lambda y: _product(exponential, y)


norm_bound: Registry[jax.Array] = Registry("norm_bound")
"""``norm_bound.kernel(A)``: ``(x)`` to a bound on the 1-norm of each matrix of a stack, as a `jax.Array`."""


@norm_bound.kernel(Dense)
@norm_bound.kernel(Array)
def _norm_bound_dense(x: Array) -> jax.Array:
    """The norm itself."""
    return to_dense(largest(sum_along(magnitude(x), axis=-2), axis=-1)).data


def bounded(x: Array) -> jax.Array:
    """A bound on the 1-norm of each matrix of a stack."""
    return norm_bound.required((x,)).run(x)


@expm_multiply.kernel(Array, Array)
def _expm_multiply_array(A: Array, B: Array) -> Dense:
    right = densify(B, "linalg.expm_multiply").data
    batch = jnp.broadcast_shapes(A.shape[:-2], right.shape[:-2])
    return Dense.make((_by_products(A)(jnp.broadcast_to(right, batch + right.shape[-2:])),))


def _by_products(A: Array) -> Callable[[jax.Array], jax.Array]:
    """The function ``y -> exp(A) @ y`` of data whose batch shape is at least that of A."""
    norm, shift = _norm_and_shift(A) if A.size else (None, None)
    return lambda y: matrix_functions.expm_action(_product, A, y, norm, shift) if y.size else y


def _product(A: Array, x: jax.Array) -> jax.Array:
    result: jax.Array = matmul.dispatch(A, Dense.make((x,))).dense_data()
    return result


def _norm_and_shift(A: Array) -> tuple[jax.Array, jax.Array]:
    """The 1-norm of ``A - shift`` (or a bound), and the shift: of what stores entries the mean of the diagonal."""
    if not (A.stores_entries or type(A) is Dense):
        return bounded(A), jnp.zeros(A.shape[:-2], A.dtype)
    own = to_dense(diagonal(A)).data
    shift = jnp.mean(own, axis=-1)
    sums = to_dense(sum_along(magnitude(A), axis=-2)).data - jnp.abs(own) + jnp.abs(own - shift[..., None])
    return jnp.max(sums, axis=-1), shift
