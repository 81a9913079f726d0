r"""Least squares with tall sparse matrices on the host, by refined normal equations.

For a matrix A ``(m, n)`` of full column rank, the augmented linear system

    [ I    A ] [ y ]   [ f ]
    [ A^H  0 ] [ x ] = [ g ]

has a unique solution. With ``g = 0``, x is the least-squares solution of ``A x = f``, and y the residual. With ``f = 0``, y is the
solution of ``A^H y = g`` with minimum norm. A factorization of ``A^H A`` solves the system, and refinement by the residuals of the
*augmented* system corrects the rounding errors of the product ``A^H A`` (Björck, 1967, *Iterative refinement of linear least squares
solutions I*; Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd edition, 20.5).

All functions take and return NumPy arrays, as in `sparse_direct`, and compute in double precision. A matrix is given as `data` ``(nnz,)``
and its coordinates `rows` and `columns` ``(nnz,)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import sparse_direct

if TYPE_CHECKING:
    from collections.abc import Callable

_REFINEMENTS = 10
_STEPS = 6
"""Steps of power iterations. With three start vectors, they rarely underestimate the largest eigenvalue by a factor of 2."""

_MARGIN = 4
"""Estimates decide about a ratio of singular values only if it exceeds the tolerance by this factor.

The smallest singular value is estimated too large and the largest too small, each by a factor of the square root of 2 in the case above.
"""


class NormalEquations:
    """The factors of ``A^H A`` for one matrix A.

    Attributes
    ----------
    finite : bool
        Whether the matrix has no NaN and no infinity. Other matrices have no factors.
    regular : bool
        Whether the matrix has linearly independent columns, by a margin above the rounding errors of ``A^H A``, so that refinement converges.
    """

    def __init__(self, data: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> None:
        import scipy.sparse  # type: ignore[import-untyped]  # SciPy has no types

        self.finite = bool(np.isfinite(data).all())
        self.regular = False
        self._range = np.float64(0), np.float64(1)
        wide = np.result_type(data.dtype, np.float64)
        if not self.finite or data.size == 0:
            return
        # First the largest elements become about 1, so that squares are in range, then the norms of the columns do.
        data, largest = data.astype(wide), np.zeros(shape[1])
        np.maximum.at(largest, columns, _sizes(data))
        first = np.frexp(largest)[1]
        data = _times_powers(data, -first[columns])
        second = np.frexp(np.sqrt(np.bincount(columns, abs(data) ** 2, minlength=shape[1])))[1]
        self._exponents = first + second
        self._a = scipy.sparse.csr_array((_times_powers(data, -second[columns]), (rows, columns)), shape=shape)
        self._adjoint = self._a.conj().T.tocsr()
        self._factorize()

    def _factorize(self) -> None:
        """Factorize the product, and decide whether it is certainly definite in spite of its rounding errors."""
        product = (self._adjoint @ self._a).tocsr()
        product.sort_indices()
        n = product.shape[0]
        first = np.repeat(np.arange(n), np.diff(product.indptr))
        self._factors = sparse_direct.Factorization(product.data, first, product.indices, n, True)
        if not self._factors.regular:
            return
        sizes = abs(self._adjoint)
        largest = np.max(sizes @ (abs(self._a) @ np.ones(n)))
        # Rounding errors of a sum of k terms grow with the square root of k (Higham and Mary, 2019).
        terms = max(np.max(np.diff(sizes.indptr)), self._factors.lu.nnz / n)
        rounding = np.finfo(np.float64).eps * np.sqrt(terms) * largest
        with np.errstate(all="ignore"):
            smallest = 1 / _largest_eigenvalue(self._inverse, self._start())
            self.regular = bool(smallest > 10 * rounding)
            if self.regular:
                self._range = self._extreme_singular_values()

    def _inverse(self, x: np.ndarray) -> np.ndarray:
        return self._factors.solve(x, False)

    def _start(self) -> np.ndarray:
        rng, shape = np.random.default_rng(0), (self._a.shape[1], 3)
        start: np.ndarray = rng.standard_normal(shape).astype(self._a.dtype)
        return start

    def _extreme_singular_values(self) -> tuple[np.float64, np.float64]:
        """Estimate the smallest and the largest singular value of A, in the unit of its largest column."""
        scales = np.ldexp(1.0, self._exponents - np.max(self._exponents))[:, None]

        def inverse(x: np.ndarray) -> np.ndarray:
            result: np.ndarray = self._inverse(x / scales) / scales
            return result

        def product(x: np.ndarray) -> np.ndarray:
            result: np.ndarray = scales * (self._adjoint @ (self._a @ (scales * x)))
            return result

        start = self._start()
        return _largest_eigenvalue(inverse, start) ** -0.5, _largest_eigenvalue(product, start) ** 0.5

    def has_full_rank(self, cond: float) -> bool:
        """Return whether all singular values are larger than `cond` times the largest, by a margin. A matrix that is not finite counts as one
        of full rank, since its dense form has no solution either.
        """
        smallest, largest = self._range
        return not self.finite or (self.regular and bool(smallest > _MARGIN * cond * largest))

    def solve(self, f: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve the augmented linear system for right-hand sides ``(m, k)`` and ``(n, k)``: return y and x."""
        # Powers of two make the largest elements about 1: changes by refinement must not underflow.
        exponents = self._exponents[:, None]
        common = np.maximum(_largest_exponents(f), _largest_exponents(g, -exponents))
        f, g = _times_powers(f, -common), _times_powers(g, -exponents - common)
        y, x = self._step(f, g)
        before = np.full(x.shape[1], np.inf)
        for _ in range(_REFINEMENTS):
            change_y, change_x = self._step(f - y - self._a @ x, g - self._adjoint @ y)
            size = _norms(change_x) + _norms(change_y)
            # The changes shrink down to the rounding errors of the residuals.
            useful = size < before / 2
            if not useful.any():
                break
            y, x = y + useful * change_y, x + useful * change_x
            before = np.where(useful, size, 0)
            if np.all(size <= np.finfo(np.float64).eps * (_norms(x) + _norms(y))):
                break
        return _times_powers(y, common), _times_powers(x, common - exponents)

    def _step(self, f: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = self._inverse(self._adjoint @ f - g)
        return f - self._a @ x, x

    @property
    def nbytes(self) -> int:
        """The approximate size."""
        if not hasattr(self, "_factors"):
            return 0
        each = self._a.dtype.itemsize + 4
        return int(2 * self._a.nnz * each) + self._factors.nbytes


def _sizes(x: np.ndarray) -> np.ndarray:
    """Return the magnitudes, or for complex numbers, whose magnitudes may overflow, the larger part."""
    return np.maximum(abs(x.real), abs(x.imag)) if np.iscomplexobj(x) else abs(x)


def _largest_exponents(x: np.ndarray, shifts: np.ndarray | int = 0) -> np.ndarray:
    """Return the largest exponent of each column, after multiplication by powers of two; a large negative one for zeros."""
    sizes = _sizes(x)
    exponents: np.ndarray = np.max(np.where(sizes > 0, np.frexp(sizes)[1] + shifts, -2000), axis=0, initial=-2000)
    return exponents


def _times_powers(x: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Multiply by powers of two that may be out of range, if the products are not."""
    for part in (exponents // 4, exponents // 4, exponents // 4, exponents - 3 * (exponents // 4)):
        x = x * np.ldexp(1.0, part)
    return x


def _norms(x: np.ndarray) -> np.ndarray:
    norms: np.ndarray = np.max(abs(x), axis=0, initial=0)
    return norms


def _largest_eigenvalue(apply: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.float64:
    """Estimate the largest eigenvalue of a positive definite matrix by power iterations from several vectors."""
    estimate = np.float64(0)
    for _ in range(_STEPS):
        x = apply(x / np.linalg.norm(x, axis=0))
        estimate = np.maximum(estimate, np.max(np.linalg.norm(x, axis=0)))  # NaN if one is
    return estimate


# ---- stacks of matrices -----------------------------------------------------------------------------------------------


def _kept(data: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> NormalEquations:
    key = sparse_direct.digest(f"normal equations {shape}", data, rows, columns)
    found: NormalEquations = sparse_direct.FACTORIZATIONS.kept(key, lambda: NormalEquations(data, rows, columns, shape))
    return found


def solve(
    data: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    cond: np.ndarray,
    right: np.ndarray,
    *,
    shape: tuple[int, int],
) -> tuple[np.ndarray, np.ndarray]:
    """Solve augmented linear systems.

    Parameters
    ----------
    data, rows, columns : ndarray, (..., nnz)
        The matrices, with padding at the end.
    cond : ndarray, (...)
        The relative tolerance for singular values.
    right : ndarray, (..., m + n, k)
        f above g.
    shape : tuple of int
        m and n.

    Returns
    -------
    tuple of ndarray
        y above x, ``(..., m + n, k)``, and whether each matrix has full rank, ``(...)``; see `NormalEquations.has_full_rank`. If the flag is
        false, the solutions are zero, so that derivatives are finite. If the matrix is not finite, they are NaN.
    """
    batch = np.broadcast_shapes(data.shape[:-1], rows.shape[:-1], columns.shape[:-1], cond.shape, right.shape[:-2])
    arrays: list[Any] = [np.broadcast_to(a, batch + a.shape[-1:]) for a in (data, rows, columns)]
    cond, right = np.broadcast_to(cond, batch), np.broadcast_to(right, batch + right.shape[-2:])
    found, full = np.zeros(right.shape, right.dtype), np.empty(batch, bool)
    for place in np.ndindex(*batch):
        values, i, j = (a[place] for a in arrays)
        stored = i < shape[0]
        if not stored.all():
            values, i, j = values[stored], i[stored], j[stored]
        equations = _kept(values, i, j, shape)
        full[place] = equations.has_full_rank(float(cond[place]))
        if not equations.finite:
            found[place] = np.nan
        elif full[place]:
            b = right[place].astype(np.result_type(right.dtype, np.float64))
            with np.errstate(all="ignore"):
                found[place] = np.concatenate(equations.solve(b[: shape[0]], b[shape[0] :]))
    return found, full
