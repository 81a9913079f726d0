"""Linear systems, inverses and determinants of square Toeplitz matrices.

The matrix is inverted once (`toeplitz_elimination`). Then each solution, with the matrix or its transpose, takes a few
convolutions and a check of its residual. One or two systems are solved without the inverse: with a large Hermitian
matrix by conjugate gradients (`toeplitz_iterations`), with a general matrix by Levinson's recursion in SciPy
(`toeplitz_recursion`). Matrices with few diagonals are solved as `Banded`, small ones as `Dense`, and triangular ones
in `triangular_toeplitz`.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import dense_if_small, to_dense
from ..._core.dispatch.recording import remark
from ..._core.families.other_forms import by_form
from ..._functions.linalg import det, inv, matrix_transpose, slogdet, solve
from ..._functions.linalg.systems import POSITIVE_DEFINITE
from ..._numerics.banded_systems import mapped_together
from ..._numerics.flags import custom_jvp
from ..._numerics.host_calls import are_allowed
from ..._numerics.symbolic import is_symbolic, smaller
from ..composite.dense_fallback import is_replaceable, numbers_or_dense, solution_or_dense
from ..composite.det_by_slogdet import det_by_slogdet
from ..composite.estimates import probes
from ..composite.inverse import checked_inverse, stays_inverse
from ..composite.part_solvers import by_equation, generically_regular, refined, reusable, solved, without_derivatives
from . import toeplitz_elimination
from .array import Toeplitz, at_diagonals, covering, is_narrow, is_solved_as_dense, is_triangular, toeplitz
from .toeplitz_iterations import LARGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._core.typing import Assumptions, Result
    from ..banded.array import Banded

    Solver: TypeAlias = Callable[[jax.Array], tuple[jax.Array, jax.Array]]

_FEW = 2
"""Up to this number of right-hand sides are iterated; for more, the columns of the inverse take less time."""

_ACCEPTED = 8
"""The largest residual of Levinson's recursion that is accepted without another step of refinement, in units of rounding errors.

The recursion has residuals of 1 to 7 rounding errors for well-conditioned matrices of up to 4096 rows, and each step repeats it.
"""

_DENSE_FALLBACK = 1024
"""Up to this size a dense factorization takes at most twice the time of elimination in Toeplitz form, and is compiled in a fifth of it."""

_ERROR = 1000
"""The largest backward error of an elimination, in rounding errors, for which its determinant is accepted."""

_LOSS = 0.05
"""The largest estimated relative error of a determinant that is accepted."""


def _is_definite(x: Array) -> bool:
    return POSITIVE_DEFINITE in x.assumptions


@generically_regular.kernel(Toeplitz)
def _generically_regular_toeplitz(x: Toeplitz) -> bool:
    return x.first <= 0 <= x.last


# ---- systems ----------------------------------------------------------------------------------------------------------


@solve.kernel(Toeplitz, Array)
def _solve_toeplitz(x1: Toeplitz, x2: Array) -> Result:
    return solved(x1, x2, _solution)


def _solution(x: Toeplitz, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    values = lax.stop_gradient(covering(x).values)
    remark(_explanation(x, b))
    if b.shape[-1] <= _FEW and (not _is_definite(x) or b.shape[-2] >= LARGE):
        return by_equation(x, b, *(functools.partial(_few, x.assumptions, v) for v in (values, values[..., ::-1])))
    return _solve_by(_columns(x), x, b)


def _columns(x: Toeplitz) -> toeplitz_elimination.Columns:
    return toeplitz_elimination.columns(
        lax.stop_gradient(covering(x).values), _is_definite(x), eliminates=not _has_dense_fallback(x)
    )


def _has_dense_fallback(x: Toeplitz) -> bool:
    """Return whether the dense form follows at once if Levinson's recursion fails, rather than elimination."""
    return not smaller(_DENSE_FALLBACK, x.shape[-1]) and is_replaceable(x)


def _is_inverted(x: Toeplitz) -> bool:
    """Return whether linear systems use the columns of the inverse for any number of right-hand sides."""
    return not (is_solved_as_dense(x) or is_narrow(x) or is_triangular(x) or (_is_definite(x) and x.shape[-1] >= LARGE))


@reusable.kernel(Toeplitz, when=_is_inverted)
def solvers_by_columns(x: Toeplitz) -> tuple[Solver, Solver]:
    """Return solvers for the matrix and its transpose, which share one inverse."""
    remark(_explanation(x, jnp.zeros((x.shape[-1], 1), x.dtype)))
    columns = _columns(x)

    def solver(solve: Solver) -> Solver:
        def run(data: jax.Array) -> tuple[jax.Array, jax.Array]:
            batch = jnp.broadcast_shapes(x.shape[:-2], data.shape[:-2])
            return solve(jnp.broadcast_to(data, (*batch, *data.shape[-2:])))

        return run

    return (
        solver(functools.partial(_solve_by, columns, x)),
        solver(functools.partial(_solve_by, columns, matrix_transpose.dispatch(x), transposed=True)),
    )


def _explanation(x: Toeplitz, b: jax.Array) -> str:
    definite, large = _is_definite(x), b.shape[-2] >= LARGE
    if definite:
        directly = "the recursion of Levinson, as it is assumed positive definite; O(n**2)"
    else:
        otherwise, cost = "elimination with pivots after Fourier transforms", "O(n**2)"
        if _has_dense_fallback(x):
            otherwise, cost = f"the dense form (up to {_DENSE_FALLBACK} rows)", "O(n**3)"
        directly = f"{otherwise}, as the matrix is general; {cost}"
        if are_allowed():
            recursion = "the recursion of Levinson in SciPy (on a CPU), if the residual is small"
            directly = f"{recursion}, and {otherwise} if it is not, as the matrix is general; O(n**2)"
    if not large:
        return directly
    tried = f"at least {LARGE} rows" if definite else f"at least {LARGE} rows, if it is Hermitian"
    return f"conjugate gradients with a circulant preconditioner, O(n log(n)) per step ({tried}), otherwise {directly}"


def _few(assumptions: Assumptions, values: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Solve by conjugate gradients or Levinson's recursion; if one matrix fails, all by the columns of the inverse."""
    values = jnp.broadcast_to(values, (*b.shape[:-2], values.shape[-1]))
    return mapped_together(functools.partial(_few_together, assumptions), (True, False))(values, b)


def _few_together(assumptions: Assumptions, values: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    n, definite = b.shape[-2], POSITIVE_DEFINITE in assumptions

    def matrix(values: jax.Array) -> Toeplitz:
        return toeplitz(values, 1 - n, (n, n)).assuming(assumptions)

    def by_inverse(values: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        if _has_dense_fallback(matrix(values)):
            return solution_or_dense(matrix(values), b, jnp.full_like(b, jnp.nan), jnp.array(False))
        columns = toeplitz_elimination.factor(values, definite).columns
        return _refined(matrix(values), columns, toeplitz_elimination.times_inverse, b)

    def by_recursion(values: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        return _first_accepted(_by_recursion(matrix, values, b), by_inverse, values, b)

    directly = by_inverse if definite else by_recursion
    if n < LARGE:
        return directly(values, b)
    return _first_accepted(toeplitz_elimination.iterated_if_hermitian(values, b, definite), directly, values, b)


def _first_accepted(
    found: tuple[jax.Array, jax.Array],
    otherwise: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]],
    values: jax.Array,
    b: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Return a solution whose flags are all true, or else the result of another method."""
    x, ok = found
    chosen: tuple[jax.Array, jax.Array] = lax.cond(
        jnp.all(ok), lambda values, b, x: (x, jnp.array(True)), lambda values, b, x: otherwise(values, b), values, b, x
    )
    return chosen


def _by_recursion(
    matrix: Callable[[jax.Array], Toeplitz], values: jax.Array, b: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Solve by Levinson's recursion; also return whether the residuals are small."""
    # The residuals of a system with tiny numbers underflow.
    values, b, unscaled = toeplitz_elimination.scaled_system(values, b)
    size = toeplitz_elimination.row_length(values)[..., None, None]

    def approximate(b: jax.Array) -> tuple[jax.Array, jax.Array]:
        return toeplitz_elimination.recursion(values, b), jnp.array(True)

    x, ok = refined(matrix(values), approximate, b, size, aim=_ACCEPTED, accepted=_ACCEPTED)
    return unscaled(x), ok


def _solve_by(
    columns: toeplitz_elimination.Columns, x: Toeplitz, b: jax.Array, transposed: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Solve by the columns of the inverse (`transposed`: of its transpose); also return whether residuals are small."""
    frozen, columns = without_derivatives((x, columns))
    inverses = toeplitz_elimination.times_inverse, toeplitz_elimination.times_transposed_inverse
    straight, other = inverses[::-1] if transposed else inverses
    return by_equation(
        x,
        b,
        functools.partial(_refined, frozen, columns, straight),
        functools.partial(_refined, matrix_transpose.dispatch(frozen), columns, other),
    )


def _refined(
    x: Toeplitz,
    columns: toeplitz_elimination.Columns,
    times_inverse: Callable[[jax.Array, jax.Array, jax.Array], jax.Array],
    b: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    regular = jnp.all(columns.regular)
    size = toeplitz_elimination.row_length(covering(x).values)[..., None, None]
    found, ok = refined(x, lambda b: (times_inverse(columns.x, columns.z, b), regular), b, size)
    return solution_or_dense(x, b, found, ok)


@inv.kernel(Toeplitz)
def _inv_toeplitz(x: Toeplitz) -> Result:
    """Return the dense inverse, unless the result remains an `Inverse`; it is full and as large as the dense form."""
    if stays_inverse(x):
        return checked_inverse(x)
    return inv.dispatch(dense_if_small(x, "linalg.inv"))


# ---- determinants -----------------------------------------------------------------------------------------------------


@slogdet.kernel(Toeplitz)
def _slogdet_toeplitz(x: Toeplitz) -> tuple[Dense, ...]:
    values = covering(x).values
    factors = _factors(_is_definite(x), values)
    fine = _is_accurate(*lax.stop_gradient((values, factors)))
    results = numbers_or_dense(slogdet.dispatch, x, (factors.sign, factors.logabsdet), fine)
    return tuple(Dense.make((part,)) for part in results)


def _is_accurate(values: jax.Array, factors: toeplitz_elimination.Factors) -> jax.Array:
    """Return whether the determinant of each matrix has correct digits.

    The bound uses the backward error and a condition number estimated from four solutions. A zero pivot is accepted,
    since the matrix is singular.
    """
    x, z, regular = factors.columns
    vectors = probes(x.shape[-1], x.dtype)
    found = toeplitz_elimination.times_inverse(x, z, jnp.broadcast_to(vectors, (*x.shape[:-1], *vectors.shape)))
    length = jnp.maximum(jnp.sum(jnp.abs(x), axis=-1), jnp.max(jnp.abs(found), axis=(-2, -1)))
    eps = jnp.finfo(x.dtype).eps
    condition = length * toeplitz_elimination.row_length(values)
    return ((factors.error <= _ERROR * eps) & (condition * (factors.error + eps) <= _LOSS)) | ~regular


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _factors(definite: bool, values: jax.Array) -> toeplitz_elimination.Factors:
    """Return the two columns of the inverse, without derivatives, and the determinant, with derivatives."""
    return toeplitz_elimination.factor(values, definite)


@_factors.defjvp
def _factors_jvp(
    definite: bool, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[toeplitz_elimination.Factors, toeplitz_elimination.Factors]:
    """``d log(det(T)) = tr(T^{-1} dT)``; the columns of the inverse are solutions, which have derivatives."""
    (values,), (change,) = primals, tangents
    n = (values.shape[-1] + 1) // 2
    factors = _factors(definite, values)
    unit, s, _ = toeplitz_elimination.first_column_and_row(values)
    solutions, _ = _solve_by(factors.columns, toeplitz(values, 1 - n, (n, n)), jnp.stack([unit, s], axis=-1))
    relative = jnp.sum(
        toeplitz_elimination.inverse_diagonal_sums(solutions[..., 0], solutions[..., 1]) * change, axis=-1
    )
    still = jax.tree.map(jnp.zeros_like, factors)
    regular = np.zeros(factors.columns.regular.shape, jax.dtypes.float0)
    still = still._replace(columns=still.columns._replace(regular=regular))
    if jnp.iscomplexobj(values):
        still = still._replace(sign=1j * relative.imag * factors.sign)
    return factors, still._replace(logabsdet=relative.real)


det.kernel(Toeplitz)(det_by_slogdet)


# ---- other forms ------------------------------------------------------------------------------------------------------


_COLUMN = 800
"""A solution for one column takes as long as ``_COLUMN * n * log2(n)`` operations of a dense factorization."""


def _has_many_columns(x: Toeplitz, b: Array) -> bool:
    """Return whether a dense factorization is faster than a few convolutions for each column.

    The dense form is then at most eight times as large as the right-hand sides.
    """
    n, k = x.shape[-1], b.shape[-1] if b.ndim > 1 else 1
    if is_symbolic(n) or is_symbolic(k) or 8 * k < n or is_narrow(x) or is_triangular(x):
        return False
    factorization = n**2 / 3 if _is_definite(x) else 2 * n**2 / 3
    return factorization + 2 * n * k <= 2 * _COLUMN * k * math.log2(max(2, n))


_DETERMINED_AS_DENSE = 512
"""Up to this size the determinant of a general matrix takes no longer in dense form, and is compiled in an eighth of the time."""


def _is_determined_as_dense(x: Toeplitz) -> bool:
    general = not (_is_definite(x) or is_narrow(x) or is_triangular(x))
    return is_solved_as_dense(x) or (general and not smaller(_DETERMINED_AS_DENSE, x.shape[-1]))


@by_form(slogdet, det, of=Toeplitz, when=_is_determined_as_dense)
@by_form(inv, of=Toeplitz, when=is_solved_as_dense)
@by_form(solve, of=Toeplitz, when=lambda x, b: is_solved_as_dense(x) or _has_many_columns(x, b))
def toeplitz_by_dense_form(x: Toeplitz) -> Dense:
    """Return the dense form, which solves small matrices, and linear systems with many right-hand sides."""
    remark("the dense form, which is faster at this size")
    return to_dense(x)


@by_form(solve, inv, slogdet, det, of=Toeplitz, when=is_narrow)
def toeplitz_by_banded_form(x: Toeplitz) -> Banded:
    """Return the banded form, which solves matrices with few diagonals."""
    remark("the banded form, which has few diagonals")
    return at_diagonals(x, x.offsets).assuming(x.assumptions)
