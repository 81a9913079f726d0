"""Direct solvers of other packages for sparse linear systems: sparsax, klujax and spineax.

`linalg.use_sparse_solver` imports this module, and the package when one of its solvers is chosen first. All are traced solvers
(see `linalg.register_sparse_solver`): calls of foreign functions within the compiled program. The packages keep the
factors of recent matrices.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp

from .._functions.linalg.sparse_solvers import PRECISIONS, SparseSolver
from .._numerics.undefined import nan_unless

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._functions.linalg.sparse_solvers import CoordinateMatrix


class _Solver:
    """The factors of one matrix by a package, which needs a certain function."""

    package: ClassVar[str]
    function: ClassVar[str]
    dtypes: ClassVar[tuple[str, ...]] = ("float64",)
    only_definite: ClassVar[bool] = False
    sums_duplicates: ClassVar[bool] = True

    def __init__(self, module: Any, matrix: CoordinateMatrix, *, positive_definite: bool) -> None:
        self.module = module
        self.matrix = matrix.rows, matrix.columns, matrix.data
        self.n = matrix.shape[0]

    def solve(self, b: jax.Array, transposed: bool) -> jax.Array:
        if transposed:  # by the same factors
            x: jax.Array
            (x,) = jax.vjp(self.solution, jnp.zeros_like(b))[1](b)
            return x
        return self.solution(b)

    def solution(self, b: jax.Array) -> jax.Array:
        x: jax.Array = getattr(self.module, self.function)(*self.matrix, b)
        return x


class Cholmod(_Solver):
    """Cholesky factors by the CHOLMOD of sparsax, which reads the upper triangle."""

    package, function, only_definite = "sparsax", "solve", True

    def solve(self, b: jax.Array, transposed: bool) -> jax.Array:
        return self.solution(b)

    def slogdet(self) -> tuple[jax.Array, jax.Array]:
        logabsdet: jax.Array = self.module.logdet(*self.matrix, self.n)
        return jnp.ones_like(logabsdet), logabsdet

    def selected_inverse(self) -> jax.Array:
        elements: jax.Array = self.module.selinv(*self.matrix, self.n)
        return elements


class KLU(_Solver):
    """LU factors by the KLU of sparsax."""

    package, function = "sparsax", "lu_solve"


class UMFPACK(_Solver):
    """LU factors by the UMFPACK of sparsax."""

    package, function = "sparsax", "umf_solve"


class KLUJax(_Solver):
    """LU factors by the KLU of klujax."""

    package, function, dtypes, sums_duplicates = "klujax", "solve", ("float64", "complex128"), False


class CuDSS(_Solver):
    """Factors by the cuDSS of spineax, on a GPU."""

    package, function, dtypes, sums_duplicates = "spineax.cudss.solver", "analyze", PRECISIONS, False

    def __init__(self, module: Any, matrix: CoordinateMatrix, *, positive_definite: bool) -> None:
        super().__init__(module, matrix, positive_definite=positive_definite)
        begins = jnp.searchsorted(matrix.rows, jnp.arange(self.n + 1, dtype=matrix.rows.dtype))
        kind = "general"
        if positive_definite:
            kind = "hpd" if jnp.iscomplexobj(matrix.data) else "spd"
        token = module.analyze(matrix.data, begins, matrix.columns, mtype_id=kind, mview_id="full")
        self.token = module.factorize(token, matrix.data)

    def solve(self, b: jax.Array, transposed: bool) -> jax.Array:
        """NaN where the residual is large: cuDSS replaces small pivots, and reports no singular matrix."""
        x = super().solve(b, transposed)
        rows, columns, data = self.matrix
        rows, columns = (columns, rows) if transposed else (rows, columns)
        terms = data[:, None] * x[columns]
        residual = jnp.abs(b.at[rows].add(-terms))
        sizes = jnp.abs(b).at[rows].add(jnp.abs(terms))
        fine = jnp.all(residual <= jnp.finfo(b.dtype).eps ** 0.5 * sizes, axis=0)
        return nan_unless(fine, x)

    def solution(self, b: jax.Array) -> jax.Array:
        # With one step of refinement.
        of_column: Callable[[jax.Array], jax.Array] = functools.partial(self.module.solve, self.token, ir_nsteps=1)
        x: jax.Array = jax.vmap(of_column, 1, 1)(b)
        return x


_SOLVERS: dict[str, type[_Solver]] = {
    "cholmod": Cholmod,
    "klu": KLU,
    "klujax": KLUJax,
    "cudss": CuDSS,
    "umfpack": UMFPACK,
}


def provided_sparse_solver(name: str) -> SparseSolver:
    """The solver with a name of `linalg.sparse_solvers.PROVIDED`; ImportError without its package."""
    solver = _SOLVERS[name]
    package = solver.package.partition(".")[0]
    config: Any = jax.config  # its attributes appear at run time
    doubled = config.jax_enable_x64
    try:
        module = importlib.import_module(solver.package)
    except ImportError as error:
        raise ImportError(f"use_sparse_solver: {name!r} needs {package}: pip install {package} ({error})") from error
    finally:
        config.update("jax_enable_x64", doubled)  # which klujax sets
    if not hasattr(module, solver.function):
        raise ImportError(
            f"use_sparse_solver: {name!r} needs a version of {package} that has {solver.function}: "
            f"pip install --upgrade {package}"
        )
    return SparseSolver(
        functools.partial(solver, module),
        frozenset(solver.dtypes),
        traced=True,
        only_definite=solver.only_definite,
        sums_duplicates=solver.sums_duplicates,
    )
