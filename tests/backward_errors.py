"""Backward errors of the functions of `linalg`: how far from a matrix is the matrix whose exact result was returned?

`FUNCTIONS` has for each name how this library and LAPACK are called, and the error of what they return, relative to the norm of the matrix.
LAPACK is called through SciPy, since NumPy's functions compute in double precision whatever the precision of the matrix is. Residuals are
computed in extended precision (`numpy.longdouble`). They are applied to a few vectors instead of being formed, which costs ``O(n^2)``
operations that no BLAS does.
"""

import copy
import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg

import structarrays as sa

FACTOR = 10
"""How many times LAPACK's backward error, or one rounding error, is allowed."""

BY_PARTS = 10
"""A further factor for results of parts, whose errors are relative to the norms of the parts."""


def bar(structure: str, function: str) -> int:
    """How many times LAPACK's backward error a function of a structure may have.

    A `Product` is solved factor by factor. A product with an `Inverse` is a linear system. The inverse of a `Sum` is the inverse of its base
    plus a matrix of low rank.
    """
    by_parts = structure in ("Product", "Inverse") or (structure == "Sum" and function.startswith("inv"))
    return FACTOR * BY_PARTS if by_parts else FACTOR


def wide(a):
    return np.asarray(a, np.clongdouble if np.iscomplexobj(a) else np.longdouble)


def row_sums(a) -> float:
    """The norm by largest row sums."""
    return float(np.max(np.sum(np.abs(a), axis=-1), initial=0)) if np.ndim(a) == 2 else float(np.max(np.abs(a)))


def largest(a) -> float:
    return float(np.max(np.abs(a), initial=0))


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def log_determinant(a):
    """Sign and logarithm of the magnitude, by elimination in extended precision."""
    a = np.array(a, np.clongdouble if np.iscomplexobj(a) else np.longdouble)
    sign, logarithm = a.dtype.type(1), np.longdouble(0)
    for k in range(len(a)):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            a[[k, p]], sign = a[[p, k]], -sign
        sign *= a[k, k] / np.abs(a[k, k])
        logarithm += np.log(np.abs(a[k, k]))
        a[k + 1 :, k:] -= np.outer(a[k + 1 :, k] / a[k, k], a[k, k:])
    return sign, logarithm


class Data(NamedTuple):
    """What functions take next to a matrix: right-hand sides, another factor, vectors, and a factor that makes the norm about one."""

    b: np.ndarray
    other: np.ndarray
    probes: np.ndarray
    scale: np.ndarray


class Problem:
    """A dense matrix, right-hand sides, and what is exact of it."""

    def __init__(self, a, rng):
        self.a = np.asarray(a)
        self.eps = float(np.finfo(self.a.dtype).eps)
        self.wide, self.norm = wide(self.a), row_sums(self.a)
        m, n = self.a.shape
        vectors = [np.ones((n, 1)), (-1.0) ** np.arange(n)[:, None], np.eye(n, 1), np.linspace(0, 1, n)[:, None]]
        self.probes = np.concatenate([*vectors, rng.normal(size=(n, 3))], axis=1).astype(self.a.dtype)
        self.b = np.concatenate([self.probes, self.a @ self.probes[:, -1:]], axis=1).astype(self.a.dtype)
        self.other = rng.normal(size=(n, 8)).astype(self.a.dtype)

    @functools.cached_property
    def singular_values(self):
        return np.linalg.svd(self.a.astype(np.result_type(self.a.dtype, np.float64)), compute_uv=False)

    @functools.cached_property
    def eigenvalues(self):
        return np.linalg.eigvalsh(self.a.astype(np.result_type(self.a.dtype, np.float64)))

    @functools.cached_property
    def log_determinant(self):
        return log_determinant(self.a)

    @functools.cached_property
    def sensitivity(self):
        """How much the logarithm of the determinant changes with a relative change of the matrix."""
        s = np.linalg.svd(self.a.astype(np.result_type(self.a.dtype, np.float64)) / largest(self.a), compute_uv=False)
        with np.errstate(divide="ignore"):
            return max(float(s[0] * np.sum(1 / s)), len(s))

    @functools.cached_property
    def inverse(self):
        """The exact one to extended precision, by two steps of Newton's method."""
        x = wide(np.linalg.inv(self.a.astype(np.result_type(self.a.dtype, np.float64))))
        for _ in range(2):
            x = x @ (2 * np.eye(len(x)) - self.wide @ x)
        return x

    @functools.cached_property
    def scale(self):
        """A power of two that makes the norm about one."""
        return self.a.dtype.type(2.0 ** -np.round(np.log2(self.norm)) if self.norm else 1.0)

    @property
    def data(self) -> Data:
        return Data(self.b, self.other, self.probes, self.scale)

    @functools.cached_property
    def exponential(self):
        """That of the scaled matrix, applied to the probes, by its series."""
        total = term = wide(self.probes)
        for k in range(1, 40):
            term = self.wide @ term * wide(self.scale) / k
            total = total + term
        return total

    def residual(self, *terms) -> float:
        """The norm of a sum of products of matrices, applied to the probes."""
        total = 0
        for factors in terms:
            x = wide(self.probes[: factors[-1].shape[-1]])
            for factor in reversed(factors):
                x = wide(factor) @ x
            total = total + x
        return float(np.max(np.max(np.abs(total), axis=0) / np.max(np.abs(self.probes), axis=0)))

    def of_matrix(self, *factors) -> float:
        """How far the product of factors is from the matrix, relative to its norm."""
        return self.residual(factors, (-self.wide,)) / (self.norm or 1.0)

    def of_orthonormal(self, q) -> float:
        """How far the columns of q are from being orthonormal."""
        k = q.shape[-1]
        x = wide(self.probes[:k])
        return float(np.max(np.abs(adjoint(wide(q)) @ (wide(q) @ x) - x)) / np.max(np.abs(x))) / np.sqrt(k)


class Function(NamedTuple):
    """How to call a function, what the matrix must be, and the error of the results.

    Attributes
    ----------
    ours : callable
        Function of a structured matrix and `Data`, which returns a tuple of arrays.
    lapack : callable
        Function of the `Problem`, which returns a tuple of NumPy arrays.
    error : callable
        Function of the `Problem` and the results.
    matrix : str
        "any", "square", "lower" (with a regular lower triangle), "regular", "hermitian" or "definite".
    lapacks_error : callable, optional
        The error of LAPACK's results, if these are more than ours: of singular values, of which no oracle knows the last digits, it is the
        error of the whole decomposition.
    """

    ours: Callable
    lapack: Callable
    error: Callable
    matrix: str = "regular"
    lapacks_error: Callable | None = None


# ---- errors ------------------------------------------------------------------------------------------------------------


def of_solution(p, x, matrix=None, b=None):
    """How large a change of the matrix, relative to its norm, makes x the solution."""
    matrix, b = (p.wide if matrix is None else wide(matrix)), wide(p.b if b is None else b)
    residual = np.max(np.abs(b - matrix @ wide(x)), axis=0)
    scale = row_sums(matrix) * np.max(np.abs(wide(x)), axis=0) + np.max(np.abs(b), axis=0)
    return float(np.max(residual / np.where(scale > 0, scale, 1)))


def of_inverse(p, x):
    return p.residual((p.wide, x), (-np.eye(len(p.a)),)) / (p.norm * row_sums(x))


def of_product(p, found, exact, scale):
    return largest(wide(found) - exact) / (scale or 1.0)


def of_logarithm(p, sign, logarithm):
    """How large a change of the matrix changes the logarithm of the determinant as much."""
    exact_sign, exact = p.log_determinant
    return float(abs(wide(sign) - exact_sign) + abs(np.real(logarithm) - exact)) / p.sensitivity


def of_determinant(p, found):
    sign, logarithm = p.log_determinant
    exact = sign * np.exp(logarithm)
    return float(abs(wide(found) - exact) / max(abs(exact), np.finfo(p.a.dtype).tiny)) / p.sensitivity


def of_values(p, found, exact):
    return largest(np.asarray(found, float) - exact) / (largest(exact) or 1.0)


def of_svd(p, u, s, vh):
    k = len(s)
    product = p.of_matrix(u[:, :k], np.diag(s), vh[:k])
    return max(product, p.of_orthonormal(u), p.of_orthonormal(adjoint(vh)), of_values(p, s, p.singular_values))


def of_eigh(p, values, vectors):
    product = p.of_matrix(vectors, np.diag(values), adjoint(vectors))
    return max(product, p.of_orthonormal(vectors), of_values(p, values, p.eigenvalues))


def of_eig(p, values, vectors):
    residual = p.wide @ wide(vectors) - wide(vectors) * wide(values)
    size = np.max(np.abs(vectors), axis=0)
    return float(np.max(np.max(np.abs(residual), axis=0) / (p.norm * size)))


def of_eigenvalues(p, values):
    """The smallest singular value of the matrix without an eigenvalue on its diagonal, for a few of them."""
    chosen = np.asarray(values)[np.linspace(0, len(values) - 1, 4).astype(int)]
    a = p.a.astype(np.complex128)
    return max(float(np.linalg.svd(a - v * np.eye(len(a)), compute_uv=False)[-1]) for v in chosen) / p.norm


def of_pinv(p, x):
    """The first two of Moore's and Penrose's equations, and the symmetry of the projector."""
    scale = p.norm * row_sums(x)
    once, twice = (p.wide, x, p.wide), (x, p.wide, x)
    products = max(p.residual(once, (-p.wide,)) / p.norm, p.residual(twice, (-x,)) / row_sums(x))
    symmetric = p.residual((p.wide, x), (-adjoint(x), adjoint(p.wide)))
    return max(products, symmetric) / scale


def of_least_squares(p, x):
    residual = wide(p.b) - p.wide @ wide(x)
    gradient = np.max(np.abs(adjoint(p.wide) @ residual), axis=0)
    scale = p.norm * (p.norm * np.max(np.abs(x), axis=0) + np.max(np.abs(p.b), axis=0))
    return float(np.max(gradient / np.where(scale > 0, scale, 1)))


def of_rank(p, rank):
    """Zero if the rank is that of a matrix within rounding errors, else infinite."""
    s, m = p.singular_values, max(p.a.shape)
    limit, margin = m * p.eps * s[0], FACTOR * p.eps * s[0]
    return 0.0 if np.sum(s > limit + margin) <= rank <= np.sum(s > limit - margin) else np.inf


def of_norms(p, one, infinity, frobenius):
    absolute = np.abs(p.wide)
    exact = (np.max(absolute.sum(axis=0)), np.max(absolute.sum(axis=1)), np.sqrt(np.sum(absolute**2)))
    return max(abs(float(f / e - 1)) for f, e in zip((one, infinity, frobenius), exact, strict=True) if e)


def of_spectral_norms(p, two, nuclear, smallest):
    s = p.singular_values
    return max(abs(two - s[0]), abs(smallest - s[-1]), abs(nuclear - s.sum()) / len(s)) / (s[0] or 1.0)


def of_selected_inverse(p, x):
    """An error in the elements, relative to the condition number and to the largest element of the exact inverse or the computed one.

    The inverse of ``A + E`` differs by that times E times the inverse of A.
    """
    s = p.singular_values
    chosen = np.asarray(x) != 0
    return float(largest((wide(x) - p.inverse)[chosen]) / max(largest(x), largest(p.inverse)) * s[-1] / s[0])


def of_triangle(p, x):
    return of_solution(p, x, np.tril(p.a))


def of_power(p, x, power):
    """Relative to the power of the norm, or to the smallest number where that underflows."""
    return p.residual((p.wide,) * power, (-x,)) / max(p.norm**power, float(np.finfo(p.a.dtype).tiny))


def of_exponential(p, x):
    return largest(wide(x) - p.exponential) / largest(p.exponential)


def of_square_root(p, x):
    """Relative to the matrix: a root that is much larger than the principal root has a large residual."""
    return p.residual((x, x), (-p.wide,)) / (p.norm or 1.0)


def of_ldl(p, lu, d):
    return p.of_matrix(lu, d, adjoint(lu))


# ---- calls -------------------------------------------------------------------------------------------------------------


def dense(*arrays):
    """The results as plain arrays of JAX."""
    return tuple(x.to_jax() if isinstance(x, sa.Array) else x for x in arrays)


def definite(x):
    return sa.assume(x, "positive_definite")


def _square_root(p):
    """By eigenvectors if the matrix is Hermitian. A matrix without a root has a large residual."""
    if np.array_equal(p.a, adjoint(p.a)):
        values, vectors = np.linalg.eigh(p.a)
        return vectors * np.sqrt(values.astype(complex)) @ adjoint(vectors)
    root = scipy.linalg.sqrtm(p.a)
    if of_square_root(p, root) > np.sqrt(p.eps):
        raise np.linalg.LinAlgError("no square root")
    return root


def _cho_solve(a, b):
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b)


def _solution(a, b):
    return scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b)


def lapacks_inverse(a):
    """LAPACK's getri."""
    lu, pivots = scipy.linalg.lu_factor(a)
    (getri,) = scipy.linalg.get_lapack_funcs(("getri",), (lu,))
    return getri(lu, pivots)[0]


def _determinant_by_lu(a):
    lu, pivots = scipy.linalg.lu_factor(a)
    return np.diagonal(lu), (-1) ** np.count_nonzero(pivots != np.arange(len(pivots)))


def _determinant(a):
    pivots, sign = _determinant_by_lu(a)
    return sign * np.prod(pivots)


def _log_determinant(a):
    pivots, sign = _determinant_by_lu(a)
    magnitudes = np.abs(pivots)
    return sign * np.prod(pivots / magnitudes), np.sum(np.log(magnitudes))


_solve = (lambda p: (_solution(p.a, p.b),), of_solution)
_cholesky_solve = (lambda p: (_cho_solve(p.a, p.b),), of_solution)
_inverse = (lambda p: (lapacks_inverse(p.a),), of_inverse)
_slogdet = (lambda p: _log_determinant(p.a), of_logarithm)
_svd = (lambda p: scipy.linalg.svd(p.a), of_svd)
_eigh = (lambda p: scipy.linalg.eigh(p.a), of_eigh)


def _norms(linalg, x):
    return tuple(linalg.matrix_norm(x, ord=order) for order in (1, float("inf"), "fro"))


def _spectral_norms(linalg, x):
    return tuple(linalg.matrix_norm(x, ord=order) for order in (2, "nuc", -2))


FUNCTIONS = {
    "matmul": Function(
        lambda x, p: dense(sa.linalg.matmul(x, sa.asarray(p.other))),
        lambda p: (p.a @ p.other,),
        lambda p, r: of_product(p, r, p.wide @ wide(p.other), p.norm * largest(p.other)),
        "any",
    ),
    "matmul, with itself": Function(
        lambda x, p: dense(sa.linalg.matmul(x, x)),
        lambda p: (p.a @ p.a,),
        lambda p, x: of_power(p, x, 2),
        "square",
    ),
    "tensordot": Function(
        lambda x, p: dense(sa.linalg.tensordot(x, sa.asarray(p.other), axes=1)),
        lambda p: (np.tensordot(p.a, p.other, axes=1),),
        lambda p, r: of_product(p, r, p.wide @ wide(p.other), p.norm * largest(p.other)),
        "any",
    ),
    "vecdot": Function(
        lambda x, p: dense(sa.linalg.vecdot(x, sa.asarray(p.other[:, 0]))),
        lambda p: (np.vecdot(p.a, p.other[:, 0]),),
        lambda p, r: of_product(p, r, np.conj(p.wide) @ wide(p.other[:, 0]), p.norm * largest(p.other)),
        "any",
    ),
    "trace": Function(
        lambda x, p: dense(sa.linalg.trace(x)),
        lambda p: (np.trace(p.a),),
        lambda p, r: of_product(p, r, np.trace(p.wide), float(np.sum(np.abs(np.diagonal(p.a))))),
        "any",
    ),
    "diagonal": Function(
        lambda x, p: dense(sa.linalg.diagonal(x)),
        lambda p: (np.diagonal(p.a),),
        lambda p, r: of_product(p, r, np.diagonal(p.wide), p.norm),
        "any",
    ),
    "matrix_norm, of rows and columns": Function(
        lambda x, p: dense(*_norms(sa.linalg, x)), lambda p: _norms(np.linalg, p.a), of_norms, "any"
    ),
    "matrix_norm, of singular values": Function(
        lambda x, p: dense(*_spectral_norms(sa.linalg, x)),
        lambda p: scipy.linalg.svd(p.a),
        of_spectral_norms,
        "any",
        of_svd,
    ),
    "matrix_rank": Function(
        lambda x, p: dense(sa.linalg.matrix_rank(x)), lambda p: (np.linalg.matrix_rank(p.a),), of_rank, "any"
    ),
    "matrix_power, 3": Function(
        lambda x, p: dense(sa.linalg.matrix_power(x, 3)),
        lambda p: (np.linalg.matrix_power(p.a, 3),),
        lambda p, x: of_power(p, x, 3),
        "square",
    ),
    "solve": Function(lambda x, p: dense(sa.linalg.solve(x, sa.asarray(p.b))), *_solve),
    "solve, definite": Function(
        lambda x, p: dense(sa.linalg.solve(definite(x), sa.asarray(p.b))), *_cholesky_solve, "definite"
    ),
    "solve_triangular": Function(
        lambda x, p: dense(sa.linalg.solve_triangular(x, sa.asarray(p.b), lower=True)),
        lambda p: (scipy.linalg.solve_triangular(p.a, p.b, lower=True),),
        of_triangle,
        "lower",
    ),
    "inv": Function(lambda x, p: dense(sa.linalg.inv(x)), *_inverse),
    "inv, definite": Function(lambda x, p: dense(sa.linalg.inv(definite(x))), *_inverse, "definite"),
    "selected_inverse": Function(
        lambda x, p: dense(sa.linalg.selected_inverse(x)), lambda p: (lapacks_inverse(p.a),), of_selected_inverse
    ),
    "det": Function(lambda x, p: dense(sa.linalg.det(x)), lambda p: (_determinant(p.a),), of_determinant),
    "slogdet": Function(lambda x, p: dense(*sa.linalg.slogdet(x)), *_slogdet),
    "slogdet, definite": Function(lambda x, p: dense(*sa.linalg.slogdet(definite(x))), *_slogdet, "definite"),
    "logdet": Function(
        lambda x, p: dense(sa.linalg.logdet(x)),
        lambda p: (_log_determinant(p.a)[1],),
        lambda p, r: of_logarithm(p, p.log_determinant[0], r),
        "definite",
    ),
    "cholesky": Function(
        lambda x, p: dense(sa.linalg.cholesky(x)),
        lambda p: (scipy.linalg.cholesky(p.a, lower=True),),
        lambda p, x: p.of_matrix(x, adjoint(x)),
        "definite",
    ),
    "cho_factor, cho_solve": Function(
        lambda x, p: dense(sa.linalg.cho_solve(sa.linalg.cho_factor(x), sa.asarray(p.b))), *_cholesky_solve, "definite"
    ),
    "lu": Function(
        lambda x, p: dense(*sa.linalg.lu(x)),
        lambda p: scipy.linalg.lu(p.a),
        lambda p, *factors: p.of_matrix(*factors),
        "square",
    ),
    "lu_factor, lu_solve": Function(
        lambda x, p: dense(sa.linalg.lu_solve(sa.linalg.lu_factor(x), sa.asarray(p.b))), *_solve
    ),
    "ldl": Function(
        lambda x, p: dense(*sa.linalg.ldl(x)[:2]), lambda p: scipy.linalg.ldl(p.a)[:2], of_ldl, "hermitian"
    ),
    "qr": Function(
        lambda x, p: dense(*sa.linalg.qr(x)),
        lambda p: scipy.linalg.qr(p.a, mode="economic"),
        lambda p, q, r: max(p.of_matrix(q, r), p.of_orthonormal(q)),
        "any",
    ),
    "lstsq": Function(
        lambda x, p: dense(sa.linalg.lstsq(x, sa.asarray(p.b)).x),
        lambda p: (scipy.linalg.lstsq(p.a, p.b)[0],),
        of_least_squares,
        "any",
    ),
    "pinv": Function(
        lambda x, p: dense(sa.linalg.pinv(x)),
        lambda p: (scipy.linalg.pinv(p.a, rtol=max(p.a.shape) * p.eps),),
        of_pinv,
        "any",
    ),
    "svd": Function(lambda x, p: dense(*sa.linalg.svd(x)), *_svd, "any"),
    "svdvals": Function(
        lambda x, p: dense(sa.linalg.svdvals(x)),
        _svd[0],
        lambda p, s: of_values(p, s, p.singular_values),
        "any",
        of_svd,
    ),
    "eigh": Function(lambda x, p: dense(*sa.linalg.eigh(x)), *_eigh, "hermitian"),
    "eigvalsh": Function(
        lambda x, p: dense(sa.linalg.eigvalsh(x)),
        _eigh[0],
        lambda p, values: of_values(p, values, p.eigenvalues),
        "hermitian",
        of_eigh,
    ),
    "eig": Function(lambda x, p: dense(*sa.linalg.eig(x)), lambda p: scipy.linalg.eig(p.a), of_eig, "square"),
    "eigvals": Function(
        lambda x, p: dense(sa.linalg.eigvals(x)), lambda p: (scipy.linalg.eigvals(p.a),), of_eigenvalues, "square"
    ),
    "expm": Function(
        lambda x, p: dense(sa.linalg.expm(x * p.scale) @ sa.asarray(p.probes)),
        lambda p: (scipy.linalg.expm(p.a * p.scale) @ p.probes,),
        of_exponential,
        "square",
    ),
    "expm_multiply": Function(
        lambda x, p: dense(sa.linalg.expm_multiply(x * p.scale, sa.asarray(p.probes))),
        lambda p: (scipy.linalg.expm(p.a * p.scale) @ p.probes,),
        of_exponential,
        "square",
    ),
    "sqrtm": Function(lambda x, p: dense(sa.linalg.sqrtm(x)), lambda p: (_square_root(p),), of_square_root, "square"),
}


def applies(function: Function, p: Problem) -> bool:
    """Whether the matrix is what a function needs, in the precision that it has."""
    square, hermitian = p.a.shape[0] == p.a.shape[1], p.a.shape[0] == p.a.shape[1] and np.array_equal(p.a, adjoint(p.a))
    if function.matrix == "definite":
        return hermitian and is_definite(p.a)
    if function.matrix == "lower":
        return square and bool(np.all(np.diagonal(p.a)))
    return {"any": True, "square": square, "regular": square, "hermitian": hermitian}[function.matrix]


def is_definite(a) -> bool:
    try:
        np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return False
    return True


def lapacks_error(function: Function, p: Problem, computed: np.ndarray | None = None) -> float | None:
    """That of LAPACK, at least one rounding error; None if it has no finite result.

    Parameters
    ----------
    function : Function
    p : Problem
    computed : np.ndarray, optional
        The matrix with LAPACK's own errors, such as an inverse that LAPACK computes. Its result is what LAPACK is given.
    """
    given = copy.copy(p)
    if computed is not None:
        given.a = computed
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            results = function.lapack(given)
            if not all(np.all(np.isfinite(r)) for r in results):
                return None
            error = float((function.lapacks_error or function.error)(p, *results))
            return max(error, p.eps) if np.isfinite(error) else None
    except (np.linalg.LinAlgError, ValueError):
        return None


def our_error(function: Function, call, x, p: Problem) -> float | str:
    """The error of the results of a call, or why there is none: the class of an exception, or "NaN"."""
    try:
        results = [np.asarray(r) for r in call(x, p.data)]
    except (np.linalg.LinAlgError, sa.DensifyError) as error:
        return type(error).__name__
    if not all(np.all(np.isfinite(r)) for r in results):
        return "NaN"
    with np.errstate(all="ignore"):
        error = float(function.error(p, *results))
    return np.inf if np.isnan(error) else error
