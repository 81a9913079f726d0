"""Direct solvers of sparse linear systems: their registration, and the choice of one.

The solvers in `PROVIDED` call other packages; `interop.direct_solvers` defines them.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..._core.dispatch import late
from ..._core.dispatch.contexts import sparse_solver_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import jax

ENTRY_POINTS = "structarrays.sparse_solvers"
"""The group of entry points in which packages name their solvers."""

SUPERLU = "superlu"
PRECISIONS = ("float32", "float64", "complex64", "complex128")

PROVIDED = ("cholmod", "klu", "klujax", "cudss", "umfpack")
"""The solvers of other packages that the library can call."""


class CoordinateMatrix(NamedTuple):
    """A sparse matrix of a traced solver: ``A[rows, columns] = data``, in the order of the rows and then the columns."""

    data: jax.Array
    rows: jax.Array
    columns: jax.Array
    shape: tuple[int, int]


class SparseFactors(Protocol):
    """The factors of one matrix A, which a registered solver returns.

    A solver may also define ``slogdet()``, which returns the sign of the determinant (complex: a phase of magnitude 1)
    and the logarithm of its magnitude, and ``nbytes``, the size of the factors. Without `slogdet`, SuperLU computes
    determinants. A traced solver may define ``selected_inverse()``, the elements of the inverse of the transpose at the
    coordinates of A.
    """

    def solve(self, b: Any, transposed: bool) -> Any:
        """Return the solution of ``A @ x = b``, or of ``A.T @ x = b``, for right-hand sides ``(n, k)``."""


class Factorize(Protocol):
    """A direct solver: a function that returns the factors of a matrix."""

    def __call__(self, matrix: Any, /, *, positive_definite: bool) -> SparseFactors: ...


class SparseSolver(NamedTuple):
    """A registered solver, and the matrices that it takes."""

    factorize: Factorize
    dtypes: frozenset[str]
    traced: bool = False
    only_definite: bool = False
    sums_duplicates: bool = False


SOLVERS: dict[str, SparseSolver] = {}
"""The registered solvers, except SuperLU."""


def solver_for(name: str, dtype: Any, definite: bool, padded: bool = False) -> str:
    """The name of the solver that takes a matrix: SuperLU if the solver `name` does not.

    A matrix that is `padded` has duplicates for a traced solver.
    """
    if name == SUPERLU:
        return name
    solver = SOLVERS[name]
    takes = str(dtype) in solver.dtypes and (definite or not solver.only_definite)
    merges = not (padded and solver.traced) or solver.sums_duplicates
    return name if takes and merges else SUPERLU


def traced_solver(name: str) -> SparseSolver | None:
    """The solver with this name if it is traced; None if it runs on the host."""
    solver = SOLVERS.get(name)
    return solver if solver and solver.traced else None


def register_sparse_solver(
    name: str,
    factorize: Factorize,
    /,
    *,
    dtypes: Sequence[str] = PRECISIONS,
    traced: bool = False,
    only_definite: bool = False,
    sums_duplicates: bool = False,
) -> None:
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
    traced : bool, default False
        Whether the solver consists of JAX operations, such as calls of a foreign function, which become a part of the
        compiled program. `factorize` then gets a named tuple of ``data``, ``rows``, ``columns`` (nnz,) and ``shape``,
        in the order of the rows. All arrays are JAX arrays, and the factors may also define:

        - ``selected_inverse()``, optional, the elements of ``inv(A).T`` at the coordinates of A, for derivatives of
          determinants. By default SuperLU computes them.
    only_definite : bool, default False
        Whether the solver takes only matrices that are assumed positive definite. SuperLU solves the others.
    sums_duplicates : bool, default False
        Whether a traced solver adds entries with equal coordinates. Otherwise SuperLU solves the linear systems with
        matrices whose number of entries is not known while JAX traces, such as the matrices of a stack. The last entries
        of such a matrix may be zeros with the coordinates of its last element.

    Raises
    ------
    ValueError
        If a solver with this name exists, or is provided, or if a data type is not one of the four.
    TypeError
        If `name` is not a string, or `factorize` is not callable.

    See Also
    --------
    linalg.use_sparse_solver : Choose a solver.

    Notes
    -----
    The function runs on the host with NumPy arrays, outside compiled code, possibly in several threads at once. It must
    not call JAX, which may wait for the host call. The library keeps the factors of recent matrices, checks the
    backward error of each solution, and refines a solution while its error is large.

    A traced solver itself keeps factors, checks its solutions, and reports singular matrices: by an error at run time, or
    by a solution of NaN, for which an eager call raises `numpy.linalg.LinAlgError`. The matrices of a stack are solved
    one after another, and matrices with NaN or infinities are not passed to the solver. The library differentiates
    solutions, so the solver needs no derivative rules.

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
    if name == SUPERLU or name in PROVIDED or name in SOLVERS:
        raise ValueError(f"register_sparse_solver: name must be new, got {name!r}; choose another name")
    for dtype in dtypes:
        if str(dtype) not in PRECISIONS:
            raise ValueError(f"register_sparse_solver: dtypes must be among {', '.join(PRECISIONS)}, got {dtype!r}")
    SOLVERS[name] = SparseSolver(factorize, frozenset(map(str, dtypes)), traced, only_definite, sums_duplicates)


@contextlib.contextmanager
def use_sparse_solver(name: str, /) -> Iterator[None]:
    """Choose the direct solver of sparse linear systems; a context manager.

    Parameters
    ----------
    name : str
        The name of a registered solver, of an entry point of the group ``structarrays.sparse_solvers``, or of a solver in
        the table below.

    Raises
    ------
    ValueError
        If there is no solver with this name.
    ImportError
        If the package of the solver is not installed, or is too old.

    See Also
    --------
    linalg.register_sparse_solver : Register a solver.

    Notes
    -----
    Functions that `jax.jit` compiles use the solver that is chosen when they are called.

    ===============  =======================  ===============================================  =======================
    name             package                  matrices                                         data types
    ===============  =======================  ===============================================  =======================
    ``"superlu"``    SciPy                    all; the default                                 all
    ``"cholmod"``    sparsax                  assumed positive definite                        float64
    ``"klu"``        sparsax                  all; fast if factors have few entries            float64
    ``"umfpack"``    sparsax, version 0.10    all; fast if factors have many entries           float64
    ``"klujax"``     klujax                   all                                              float64, complex128
    ``"cudss"``      spineax                  all; on a GPU                                    all
    ===============  =======================  ===============================================  =======================

    SuperLU solves the linear systems with other matrices.

    The solvers of other packages are traced: see `register_sparse_solver`. For a singular matrix they raise an error of
    JAX, also under `jax.jit`, except cuDSS.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.Sparse(2.0 * sa.ones(300), (range(300), range(300)), (300, 300))
    >>> with sa.linalg.use_sparse_solver("superlu"):
    ...     float(sa.linalg.slogdet(A).sign)
    1.0
    """
    if name in PROVIDED and name not in SOLVERS:
        SOLVERS[name] = late.provided_sparse_solver(name)
    if name != SUPERLU and name not in SOLVERS:
        found = importlib.metadata.entry_points(group=ENTRY_POINTS)
        if name not in found.names:
            known = ", ".join(map(repr, sorted({SUPERLU, *PROVIDED, *SOLVERS, *found.names})))
            raise ValueError(
                f"use_sparse_solver: name must be one of {known}, got {name!r}; register the solver with "
                "register_sparse_solver"
            )
        register_sparse_solver(name, found[name].load())
    with sparse_solver_policy(name):
        yield
