"""Direct solvers of sparse systems on the host, with the SuperLU of SciPy.

    P_r A P_c = L U

with permutations of the rows, chosen by partial pivoting, and of the columns, chosen beforehand so that L and U have
few entries (Demmel, Eisenstat, Gilbert, Li and Liu, 1999, *A supernodal approach to sparse partial pivoting*). All
functions here take and return NumPy arrays, run outside compiled code (see `host_calls`), and do not call JAX.

A matrix is given as `data` ``(..., nnz)`` and its coordinates `first` and `second` ``(..., nnz)``, sorted
lexicographically, with padding at the end: ``A[first, second] = data``. The coordinates are in sort order, so a matrix
and its transpose share one factorisation: a transposed linear system uses the same factors.

Factorisations are cached by the content of the matrix, so no caller has to pass them on. A second linear system with
the same matrix, such as the derivative of a solution, costs two triangular solutions.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._functions.linalg.sparse_solvers import PRECISIONS as PRECISIONS  # the data types that SuperLU supports
from ..._functions.linalg.sparse_solvers import SOLVERS, SUPERLU, solver_for, traced_solver
from . import array_digests, factor_threads, sparse_inverse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_COLUMNS = 8
"""With this number of right-hand sides at a time, SuperLU is up to twice as fast as with one or with all of them."""

_STEPS = 10
"""The largest number of refinements of a solution."""


# ---- one matrix -----------------------------------------------------------------------------------------------------


class Factorization:
    """The factors of one matrix.

    Attributes
    ----------
    lu : scipy.sparse.linalg.SuperLU or None
        The factors; None if the matrix is singular or not finite.
    finite : bool
        Whether the matrix has no NaN and no infinity.
    regular : bool
        Whether no pivot is zero (if assumed positive definite: whether all pivots are positive). A matrix that is not
        finite counts as regular: its solutions are NaN, without an error.
    """

    lu: Any

    def __init__(self, data: np.ndarray, first: np.ndarray, second: np.ndarray, n: int, definite: bool) -> None:
        import scipy.sparse  # type: ignore[import-untyped]  # SciPy has no types

        counts = np.bincount(first, minlength=n)
        begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        rows = scipy.sparse.csr_array((data, second.astype(np.int32), begins), shape=(n, n))
        self.matrix: Any = rows.tocsc()
        self.finite = bool(np.isfinite(data).all())
        self.regular = self._factorize(definite) or not self.finite
        self._logarithms: tuple[Any, Any] | None = None

    def _factorize(self, definite: bool) -> bool:
        """Compute the factors of a finite matrix, and return whether it is regular."""
        self.lu = _factors(self.matrix, definite) if self.finite else None
        return self.lu is not None and (not definite or self._is_definite())

    def _is_definite(self) -> bool:
        """Return whether all pivots were found on the diagonal, and are positive."""
        lu = self.lu
        return np.array_equal(lu.perm_r, lu.perm_c) and bool(np.all(lu.U.diagonal().real > 0))

    @property
    def nbytes(self) -> int:
        """The approximate size, including magnitudes, and the copies of L and U that SciPy keeps after access."""
        each: int = self.matrix.dtype.itemsize + 4
        entries: int = 2 * self.matrix.nnz + 2 * (self.lu.nnz if self.lu is not None else 0)
        return entries * each

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Return the solution ``(n, k)`` for right-hand sides ``(n, k)``, refined while its residual requires and allows it."""
        if not self.finite or not self.regular:
            return np.full(b.shape, np.nan, b.dtype)
        x = self._substituted(b, transposed)
        a = self.matrix.T if transposed else self.matrix
        r = b - a @ x
        if self._is_accurate(r, x, b):
            return x
        error = self._backward_error(r, x, b, transposed)
        for _ in range(_STEPS):
            worse = error > 32 * np.finfo(b.dtype).eps
            if not worse.any():
                break
            old = x[:, worse]
            new = old + self._substituted(r[:, worse], transposed)
            residual = b[:, worse] - a @ new
            after = self._backward_error(residual, new, b[:, worse], transposed)
            better = after < error[worse]
            if not better.any():
                break
            x[:, worse] = np.where(better, new, old)
            r[:, worse] = np.where(better, residual, r[:, worse])
            error[worse] = np.where(better, after, error[worse])
        return x

    def _is_accurate(self, r: np.ndarray, x: np.ndarray, b: np.ndarray) -> bool:
        """Return whether the backward error is small by a bound from the diagonal, which takes no product."""
        with np.errstate(all="ignore"):
            size = self._diagonal[:, None] * abs(x)
            size += abs(b)
            size *= 32 * np.finfo(b.dtype).eps
        return bool((abs(r) <= size).all())

    @functools.cached_property
    def _diagonal(self) -> np.ndarray:
        """The magnitudes of the diagonal."""
        diagonal: np.ndarray = abs(self.matrix.diagonal())
        return diagonal

    @functools.cached_property
    def _sizes(self) -> Any:
        """The magnitudes of the entries."""
        return abs(self.matrix)

    def _substituted(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Substitute with the two triangular matrices."""
        if b.shape[1] <= _COLUMNS:
            solution: np.ndarray = self.lu.solve(np.asfortranarray(b), "T" if transposed else "N")
            return solution
        x = np.empty(b.shape, b.dtype, order="F")
        for start in range(0, b.shape[1], _COLUMNS):
            part = slice(start, start + _COLUMNS)
            x[:, part] = self.lu.solve(np.asfortranarray(b[:, part]), "T" if transposed else "N")
        return x

    def _backward_error(self, r: np.ndarray, x: np.ndarray, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Return the largest ``|r| / (|A| |x| + |b|)`` of each column, the backward error of `x`.

        See Oettli and Prager (1964). One step of refinement makes it small (Skeel 1980; Higham, *Accuracy and Stability
        of Numerical Algorithms*, 12.3).
        """
        sizes = self._sizes
        size = (sizes.T if transposed else sizes) @ abs(x) + abs(b)
        ratio = np.zeros(r.shape, r.real.dtype)
        with np.errstate(all="ignore"):
            np.divide(abs(r), size, out=ratio, where=size > 0)
        error: np.ndarray = ratio.max(axis=0, initial=0)
        return error

    def logarithms(self) -> tuple[Any, Any]:
        """The sign of the determinant (complex: a phase of magnitude 1), and the logarithm of its magnitude."""
        if self._logarithms is None:
            self._logarithms = self._determinant()
        return self._logarithms

    def _determinant(self) -> tuple[Any, Any]:
        if not self.finite:
            return np.nan, np.nan
        if self.lu is None:
            return 0.0, -np.inf
        pivots = self.lu.U.diagonal()
        sizes = abs(pivots).astype(np.float64)
        sign = np.prod(pivots / sizes) * _sign(self.lu.perm_r) * _sign(self.lu.perm_c)
        return sign / abs(sign), np.log(sizes).sum()

    def inverse_at(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the elements ``(second, first)`` of the inverse at all coordinates, in the order of `first`."""
        if self.lu is None:
            return np.full(first.shape, np.nan, self.matrix.dtype)
        result = sparse_inverse.inverse_at(self.lu, first, second)
        return self._inverse_by_columns(first, second) if result is None else result

    def _inverse_by_columns(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Compute these elements from a solution for each column."""
        result, n = np.empty(first.shape, self.matrix.dtype), self.matrix.shape[0]
        for start in range(0, n, _COLUMNS):
            width = min(_COLUMNS, n - start)
            unit = np.zeros((n, width), self.matrix.dtype)
            unit[start + np.arange(width), np.arange(width)] = 1
            part = slice(*np.searchsorted(first, [start, start + width]))
            result[part] = self._substituted(unit, False)[second[part], first[part] - start]
        return result


class RegisteredFactorization(Factorization):
    """The factors of one matrix by a registered solver; see `linalg.register_sparse_solver`.

    SuperLU computes elements of the inverse, and determinants unless the solver does.
    """

    def __init__(
        self, data: np.ndarray, first: np.ndarray, second: np.ndarray, n: int, definite: bool, solver: str
    ) -> None:
        self._solver = SOLVERS[solver]
        self._definite = definite
        super().__init__(data, first, second, n, definite)

    def _factorize(self, definite: bool) -> bool:
        self.factors: Any = None
        if self.finite:
            try:
                # A copy, which the solver may overwrite.
                self.factors = self._solver.factorize(self.matrix.copy(), positive_definite=definite)
            except np.linalg.LinAlgError:
                return False
            if not callable(getattr(self.factors, "solve", None)):
                raise TypeError(
                    "a registered sparse solver must return factors with a method solve(b, transposed), got "
                    f"{type(self.factors).__name__}"
                )
        return self.finite

    @functools.cached_property
    def lu(self) -> Any:
        """SuperLU's factors; None if the matrix is singular or not finite."""
        return _factors(self.matrix, self._definite and self.regular) if self.finite else None

    @property
    def nbytes(self) -> int:
        size: int = self.matrix.nnz * (self.matrix.dtype.itemsize + 4)
        if "lu" in self.__dict__:
            size = super().nbytes
        return size + int(getattr(self.factors, "nbytes", 0))

    def _substituted(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        x = np.asarray(self.factors.solve(np.asfortranarray(b), transposed))
        if x.shape != b.shape:
            raise ValueError(f"solve of a registered sparse solver must return shape {b.shape}, got {x.shape}")
        if not np.can_cast(x.dtype, b.dtype, "same_kind"):
            raise TypeError(f"solve of a registered sparse solver must return dtype {b.dtype}, got {x.dtype}")
        return np.array(x, b.dtype)

    def _determinant(self) -> tuple[Any, Any]:
        if self.factors is None or not hasattr(self.factors, "slogdet"):
            return super()._determinant()
        sign, logabsdet = self.factors.slogdet()
        return sign, logabsdet

    def _inverse_by_columns(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        if self.factors is None:  # SuperLU found pivots
            return np.full(first.shape, np.nan, self.matrix.dtype)
        return super()._inverse_by_columns(first, second)


def _factors(matrix: Any, definite: bool) -> Any:
    """Return SuperLU's factors; None if the matrix is singular."""
    return factor_threads.compute(_computed_factors, matrix, definite)


def _computed_factors(matrix: Any, definite: bool) -> Any:
    from scipy.sparse.linalg import splu  # type: ignore[import-untyped]

    options: dict[str, Any] = {}
    if definite:
        # Pivots on the diagonal need no search, so the ordering for symmetric matrices is effective.
        options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    elif _keeps_its_diagonal(matrix):
        options = {"permc_spec": "MMD_AT_PLUS_A"}
    try:
        return splu(matrix, **options)
    except RuntimeError:
        from scipy.sparse.csgraph import structural_rank  # type: ignore[import-untyped]

        # SuperLU raises RuntimeError for a zero pivot and for other failures, such as a failed allocation. With random
        # entries at the same coordinates and full structural rank there is no zero pivot, but SuperLU fails again.
        if structural_rank(matrix) == matrix.shape[0]:
            generic = matrix.copy()
            generic.data[:] = np.random.default_rng(0).uniform(1, 2, matrix.nnz)
            splu(generic, **options)  # raises again unless the entries are the reason
        return None


def _keeps_its_diagonal(matrix: Any) -> bool:
    """Return whether partial pivoting is likely to find its pivots on the diagonal.

    Then an ordering for symmetric patterns is better: the factors have half the number of entries.
    """
    turned = matrix.T.tocsc()
    if not (np.array_equal(matrix.indptr, turned.indptr) and np.array_equal(matrix.indices, turned.indices)):
        return False
    largest = abs(matrix).max(axis=0).toarray()
    return bool(np.all(abs(matrix.diagonal()) >= largest))


def _sign(permutation: np.ndarray) -> int:
    """Return the sign of a permutation, which has an even cycle for each -1."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(permutation)
    graph = coo_array((np.ones(n, np.int8), (np.arange(n), permutation)), shape=(n, n))
    cycles, _ = connected_components(graph, directed=False)
    return -1 if (n - cycles) % 2 else 1


# ---- the factorisations that are kept ---------------------------------------------------------------------------------


class Cache:
    """A cache of the most recent factorisations, by the content of the matrices; thread-safe.

    Parameters
    ----------
    count : int
        The largest number of factorisations.
    nbytes : int
        The largest total size in bytes. The last factorisation is kept regardless of its size.
    """

    def __init__(self, count: int, nbytes: int) -> None:
        self.count, self.nbytes = count, nbytes
        self._lock = threading.Lock()
        self._slots: collections.OrderedDict[bytes, _Slot] = collections.OrderedDict()

    def __len__(self) -> int:
        return len(self._slots)

    def clear(self) -> None:
        """Remove all factorisations."""
        with self._lock:
            self._slots.clear()
        factor_threads.release()

    def get(
        self,
        data: np.ndarray,
        first: np.ndarray,
        second: np.ndarray,
        n: int,
        definite: bool,
        solver: str = SUPERLU,
    ) -> Factorization:
        """Return the factorisation of a matrix, computed if it is not in the cache."""
        solver = solver_for(solver, data.dtype, definite)
        if traced_solver(solver):
            solver = SUPERLU

        def compute() -> Factorization:
            if solver == SUPERLU:
                return factorize(data, first, second, n, definite)
            return RegisteredFactorization(data, first, second, n, definite, solver)

        found: Factorization = self.kept(digest(f"{n} {definite} {solver}", data, first, second), compute)
        return found

    def kept(self, key: bytes, compute: Callable[[], Any]) -> Any:
        """Return the factorisation with a key (see `digest`), computed if it is not in the cache. It has `nbytes`."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
        with slot.lock:  # only threads with the same matrix wait
            if slot.value is not None:
                return slot.value
            try:
                slot.value = compute()
            except BaseException:
                with self._lock:
                    if self._slots.get(key) is slot:
                        del self._slots[key]
                raise
        self._forget_oldest()
        return slot.value

    def _forget_oldest(self) -> None:
        with self._lock:
            sizes = {key: slot.value.nbytes for key, slot in self._slots.items() if slot.value is not None}
            count, total = len(sizes), sum(sizes.values())
            before = len(self._slots)
            for key in list(sizes)[:-1]:
                if count <= self.count and total <= self.nbytes:
                    break
                count, total = count - 1, total - sizes[key]
                del self._slots[key]
            forgotten = before - len(self._slots)
        if forgotten:
            factor_threads.release()


class _Slot:
    """One factorisation, and a lock during its computation."""

    __slots__ = ("lock", "value")

    value: Any

    def __init__(self) -> None:
        self.lock, self.value = threading.Lock(), None


def digest(kind: str, data: np.ndarray, first: np.ndarray, second: np.ndarray) -> bytes:
    """Return the key of a factorisation: a hash of its kind and of the content of the matrix."""
    whole = hashlib.blake2b(f"{kind} {data.dtype} {first.dtype}".encode(), digest_size=32)
    for array in (data, first, second):
        whole.update(array_digests.digest_of(array, may_change=array is data))
    return whole.digest()


def factorize(data: np.ndarray, first: np.ndarray, second: np.ndarray, n: int, definite: bool) -> Factorization:
    """Compute the factors of a matrix that is not in the cache."""
    return Factorization(data, first, second, n, definite)


FACTORIZATIONS = Cache(count=64, nbytes=1 << 30)
"""The cache of the process."""


# ---- stacks of matrices -----------------------------------------------------------------------------------------------


def _matrices(
    data: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    n: int,
    definite: bool,
    solver: str,
    *,
    whatever: bool = False,
) -> Iterator[tuple[tuple[int, ...], Factorization, slice]]:
    """Yield for each matrix of a stack its index, its factorisation, and the slice of its entries without padding.

    With `whatever`, a matrix that was assumed positive definite but is not is factorised with pivoting.
    """
    batch = np.broadcast_shapes(data.shape[:-1], first.shape[:-1], second.shape[:-1])
    arrays = [np.broadcast_to(a, batch + a.shape[-1:]) for a in (data, first, second)]
    for place in np.ndindex(*batch):
        one = [a[place] for a in arrays]
        inside = slice(0, np.count_nonzero(one[1] < n))
        values, i, j = (a[inside] for a in one)
        factorization = FACTORIZATIONS.get(values, i, j, n, definite, solver)
        if whatever and definite and not factorization.regular:
            factorization = FACTORIZATIONS.get(values, i, j, n, False, solver)
        yield place, factorization, inside


def solve(
    data: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    b: np.ndarray,
    *,
    definite: bool,
    transposed: bool,
    solver: str = SUPERLU,
) -> tuple[np.ndarray, np.ndarray]:
    """Return solutions ``(..., n, k)`` for right-hand sides ``(..., n, k)``, and whether each matrix is regular.

    All batch shapes have the same number of dimensions, and broadcast. A matrix with several right-hand sides is looked
    up once.
    """
    batch = np.broadcast_shapes(data.shape[:-1], first.shape[:-1], second.shape[:-1], b.shape[:-2])
    n, k = b.shape[-2:]
    b = np.broadcast_to(b, (*batch, n, k))
    x, regular = np.empty(b.shape, b.dtype), np.empty(batch, bool)
    own = np.broadcast_shapes(data.shape[:-1], first.shape[:-1], second.shape[:-1])
    for place, factorization, _ in _matrices(data, first, second, n, definite, solver):
        its = tuple(slice(None) if size == 1 else i for size, i in zip(own, place, strict=True))
        columns = np.moveaxis(b[its], -2, 0)
        solution = factorization.solve(columns.reshape(n, -1), transposed)
        x[its] = np.moveaxis(solution.reshape(columns.shape), 0, -2)
        regular[its] = factorization.regular
    return x, regular


def slogdet(
    data: np.ndarray, first: np.ndarray, second: np.ndarray, *, n: int, definite: bool, solver: str = SUPERLU
) -> tuple[np.ndarray, np.ndarray]:
    """Return the signs and logarithms of the determinants ``(...)``."""
    batch = np.broadcast_shapes(data.shape[:-1], first.shape[:-1])
    sign, logabsdet = np.empty(batch, data.dtype), np.empty(batch, data.real.dtype)
    for place, factorization, _ in _matrices(data, first, second, n, definite, solver, whatever=True):
        sign[place], logabsdet[place] = factorization.logarithms()
    return sign, logabsdet


def inverse_at(
    data: np.ndarray, first: np.ndarray, second: np.ndarray, *, n: int, definite: bool, solver: str = SUPERLU
) -> tuple[np.ndarray]:
    """Return ``inv(A)[second, first]``, the inverses at the pattern of the transposes; zero at padding."""
    batch = np.broadcast_shapes(data.shape[:-1], first.shape[:-1])
    result = np.zeros(batch + data.shape[-1:], data.dtype)
    first, second = (np.broadcast_to(a, result.shape) for a in (first, second))
    for place, factorization, inside in _matrices(data, first, second, n, definite, solver, whatever=True):
        result[place][inside] = factorization.inverse_at(first[place][inside], second[place][inside])
    return (result,)
