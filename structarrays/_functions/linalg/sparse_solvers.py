"""Direct solvers of sparse linear systems: their registration, and the choice of one."""

from __future__ import annotations

import contextlib
import importlib.metadata
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..._core.dispatch.contexts import sparse_solver_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENTRY_POINTS = "structarrays.sparse_solvers"
"""The group of entry points in which packages name their solvers."""

SUPERLU = "superlu"
PRECISIONS = ("float32", "float64", "complex64", "complex128")


class SparseFactors(Protocol):
    """The factors of one matrix A, which a registered solver returns.

    A solver may also define ``slogdet()``, which returns the sign of the determinant (complex: a phase of magnitude 1)
    and the logarithm of its magnitude, and ``nbytes``, the size of the factors. Without `slogdet`, SuperLU computes
    determinants.
    """

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Return the solution of ``A @ x = b``, or of ``A.T @ x = b``, for right-hand sides ``(n, k)``."""


class Factorize(Protocol):
    """A direct solver: a function that returns the factors of a matrix."""

    def __call__(self, matrix: Any, /, *, positive_definite: bool) -> SparseFactors: ...


class SparseSolver(NamedTuple):
    """A registered solver, and the data types that it supports."""

    factorize: Factorize
    dtypes: frozenset[str]


SOLVERS: dict[str, SparseSolver] = {}
"""The registered solvers, except SuperLU."""


def register_sparse_solver(name: str, factorize: Factorize, /, *, dtypes: Sequence[str] = PRECISIONS) -> None:
    """Register a direct solver of sparse linear systems.

    `use_sparse_solver` then chooses it for `solve`, `inv`, `det` and `slogdet` of sparse matrices. The default is
    SuperLU.

    Parameters
    ----------
    name : str
        Name of the solver.
    factorize : callable
        ``factorize(matrix, positive_definite=...)`` returns the factors of a square `scipy.sparse.csc_array` without
        duplicates, whose entries are finite. `positive_definite` tells whether the matrix is assumed Hermitian and
        positive definite. The function raises `numpy.linalg.LinAlgError` if the matrix is singular, or if it is assumed
        positive definite, and is not. The factors are an object with these methods:

        - ``solve(b, transposed)`` returns the solution of ``A @ x = b``, or of ``A.T @ x = b`` (not conjugated), for
          right-hand sides ``(n, k)`` of the data type of the matrix.
        - ``slogdet()``, optional, returns the sign of the determinant (complex: a phase of magnitude 1), and the
          logarithm of its magnitude. By default SuperLU computes them.
        - ``nbytes``, optional, is the size of the factors in bytes.
    dtypes : sequence of str, default ("float32", "float64", "complex64", "complex128")
        Data types that the solver supports. SuperLU solves the others.

    Raises
    ------
    ValueError
        If a solver with this name exists, or if a data type is not one of the four.
    TypeError
        If `name` is not a string, or `factorize` is not callable.

    See Also
    --------
    use_sparse_solver : Choose a solver.

    Notes
    -----
    The function runs on the host with NumPy arrays, outside compiled code, possibly in several threads at once. It must
    not call JAX, which may wait for the host call. The library keeps the factors of recent matrices, checks the
    backward error of each solution, and refines a solution once if its error is large.

    A package can offer a solver as an entry point of the group ``structarrays.sparse_solvers``, which names the
    function. `use_sparse_solver` loads it.

    Examples
    --------
    >>> import scipy.sparse.linalg
    >>> import structarrays as sa
    >>> class NaturalOrder:
    ...     def __init__(self, matrix, *, positive_definite):
    ...         self.factors = scipy.sparse.linalg.splu(matrix, permc_spec="NATURAL")
    ...
    ...     def solve(self, b, transposed):
    ...         return self.factors.solve(b, "T" if transposed else "N")
    >>> sa.linalg.register_sparse_solver("natural order", NaturalOrder)
    >>> A = sa.Sparse(4.0 * sa.ones(300), (range(300), range(300)), (300, 300))
    >>> with sa.linalg.use_sparse_solver("natural order"):
    ...     x = sa.linalg.solve(A, sa.ones(300))
    >>> float(x[0])
    0.25
    """
    if not isinstance(name, str):
        raise TypeError(f"register_sparse_solver: name must be a string, got {name!r}")
    if not callable(factorize):
        raise TypeError(f"register_sparse_solver: factorize must be callable, got {factorize!r}")
    if name == SUPERLU or name in SOLVERS:
        raise ValueError(f"register_sparse_solver: name must be new, got {name!r}; choose another name")
    for dtype in dtypes:
        if str(dtype) not in PRECISIONS:
            raise ValueError(f"register_sparse_solver: dtypes must be among {', '.join(PRECISIONS)}, got {dtype!r}")
    SOLVERS[name] = SparseSolver(factorize, frozenset(map(str, dtypes)))


@contextlib.contextmanager
def use_sparse_solver(name: str, /) -> Iterator[None]:
    """Choose the direct solver of sparse linear systems; a context manager.

    Parameters
    ----------
    name : str
        ``"superlu"`` (the default), the name of a registered solver, or the name of an entry point of the group
        ``structarrays.sparse_solvers``.

    Raises
    ------
    ValueError
        If there is no solver with this name.

    See Also
    --------
    register_sparse_solver : Register a solver.

    Notes
    -----
    Functions that `jax.jit` compiles use the solver that is chosen when they are called.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.Sparse(2.0 * sa.ones(300), (range(300), range(300)), (300, 300))
    >>> with sa.linalg.use_sparse_solver("superlu"):
    ...     float(sa.linalg.slogdet(A).sign)
    1.0
    """
    if name != SUPERLU and name not in SOLVERS:
        found = importlib.metadata.entry_points(group=ENTRY_POINTS)
        if name not in found.names:
            known = ", ".join(map(repr, sorted({SUPERLU, *SOLVERS, *found.names})))
            raise ValueError(
                f"use_sparse_solver: name must be one of {known}, got {name!r}; register the solver with "
                "register_sparse_solver"
            )
        register_sparse_solver(name, found[name].load())
    with sparse_solver_policy(name):
        yield
