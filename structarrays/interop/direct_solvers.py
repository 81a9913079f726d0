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
from jax import lax

from .._functions.linalg.sparse_solvers import PRECISIONS, SparseSolver
from .._numerics.undefined import nan_unless

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._functions.linalg.sparse_solvers import CoordinateMatrix

    _State = tuple[jax.Array, jax.Array, jax.Array, jax.Array]


# The largest number of refinements of a solution.
_STEPS = 10


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
        """Refined while the residual is large, and NaN where it remains large.

        KLU accepts pivots of a thousandth of the largest element of a column, and cuDSS replaces small pivots.
        """
        _, transpose = jax.vjp(self.solution, jnp.zeros_like(b))  # by the same factors
        precision = float(jnp.finfo(b.dtype).eps)

        def substituted(b: jax.Array) -> jax.Array:
            return transpose(b)[0] if transposed else self.solution(b)

        def unfinished(state: _State) -> jax.Array:
            step, _, _, error = state
            return (step < _STEPS) & jnp.any(error > 32 * precision)

        def refined(state: _State) -> _State:
            step, x, residual, error = state
            new = x + substituted(residual)
            new_residual, new_error = self._residual(new, b, transposed)
            better = new_error < error
            new, residual = jnp.where(better, new, x), jnp.where(better, new_residual, residual)
            return jnp.where(jnp.any(better), step + 1, _STEPS), new, residual, jnp.where(better, new_error, error)

        x = substituted(b)
        found = lax.while_loop(unfinished, refined, (jnp.array(0), x, *self._residual(x, b, transposed)))
        return nan_unless(found[3] <= precision**0.5, found[1])

    def _residual(self, x: jax.Array, b: jax.Array, transposed: bool) -> tuple[jax.Array, jax.Array]:
        """The residual of a solution, and its backward error by components (Oettli and Prager, 1964) in each column."""
        rows, columns, data = self.matrix
        rows, columns = (columns, rows) if transposed else (rows, columns)
        terms = data[:, None] * x[columns]
        residual = b.at[rows].add(-terms)
        sizes = jnp.abs(b).at[rows].add(jnp.abs(terms))
        ratio = jnp.where(sizes > 0, jnp.abs(residual) / jnp.where(sizes > 0, sizes, 1), 0)
        return residual, jnp.max(ratio, axis=0, initial=0)

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

    def solution(self, b: jax.Array) -> jax.Array:
        of_column: Callable[[jax.Array], jax.Array] = functools.partial(self.module.solve, self.token)
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
