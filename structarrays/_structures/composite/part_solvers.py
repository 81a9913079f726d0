"""Linear systems of factored arrays: shared routines of the solvers, and the solvers of `Product`.

A factored solver solves for a matrix through its parts. The parts may be worse conditioned than the whole, or singular
although the whole is not. So the residual of the solution is checked: if it exceeds the level of rounding errors, a few
steps of iterative refinement follow. If it is still too large, the solution is NaN and the flag false. See `checked`.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import densify, right_side, to_dense
from ..._core.dispatch.contexts import Caller, caller
from ..._core.dispatch.recording import remark
from ..._core.dispatch.registry import Registry
from ..._core.dispatch.tracing import compiling
from ..._core.errors import DensifyError
from ..._core.families.other_forms import by_form
from ..._functions.linalg import det, inv, logdet, matmul, matrix_transpose, slogdet, solve
from ..._functions.linalg.systems import logarithms
from ..._numerics import determinants
from ..._numerics.linear_solves import solve_with_flag
from ..._numerics.undefined import nan_unless
from ..banded.array import Banded
from ..low_rank.low_rank_spectra import has_low_rank, of_low_rank, rank_bound, through_narrowest
from .dense_fallback import for_parts_of, is_replaceable, solution_or_dense
from .estimates import norm, times_finite
from .product import Product, product
from .sum import Sum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias, TypeVar

    from ..._core.dispatch.function import Function
    from ..._core.typing import Result

    T = TypeVar("T")
    Solver: TypeAlias = Callable[[jax.Array], tuple[jax.Array, jax.Array]]
    """A function that maps right-hand sides ``(..., n, k)`` as data to the solutions and a flag that is true if they
    are accurate.
    """


SMALL = 32
"""Up to this size the dense form is as fast as any other method, and is solved with pivoting."""

generically_regular: Registry[bool] = Registry("generically_regular")
"""``generically_regular.kernel(A)``: return whether matrices of this structure (static) are regular except for special
values.
"""


@generically_regular.kernel(Array)
def _generically_regular_array(x: Array) -> bool:
    rank = rank_bound(x)
    return rank is None or rank >= x.shape[-1]


@generically_regular.kernel(Banded)
def _generically_regular_banded(x: Banded) -> bool:
    return 0 in x.offsets or x.background is not None


@generically_regular.kernel(Product)
def _generically_regular_product(x: Product) -> bool:
    return all(f.shape[-1] == f.shape[-2] and is_regular(f) for f in x.factors)


def is_regular(x: Array) -> bool:
    """Return whether a square matrix has a structure that is regular except for special values."""
    return generically_regular.required((x,)).run(x)


def can_solve(x: Array) -> bool:
    """Return whether linear systems of a square matrix are solved by its structure, without a dense form (static)."""
    if type(x) is Dense or not is_regular(x):
        return False
    column = Dense.make((jax.ShapeDtypeStruct((x.shape[-1], 1), x.dtype),))
    kernel = solve.choose((x, column), {})
    return kernel is not None and kernel.classes[0] is not Array


# ---- checked solutions -----------------------------------------------------------------------------------------------

_STEPS = 10
_IMPROVED = 0.8
"""The maximum number of refinement steps, and the ratio by which a step must reduce the residual of some column to
continue.
"""

_AIM = 1
"""The target residual in units of rounding errors: LAPACK's solvers leave about one.

For k columns it is divided by the square root of k. Errors of uncorrelated columns add up to that factor in the
infinity norm, as in an inverse.
"""

_ACCEPTED = 8
_ACCEPTED_IF_LARGE = 64
"""The largest accepted residual, in units of rounding errors. The second value is for matrices whose dense form is too
large.
"""


def checked(x1: Array, b: jax.Array, approximate: Solver, transposed: Solver) -> tuple[jax.Array, jax.Array]:
    """Solve ``x1 @ x = b`` by a method that may lose digits; also return whether the solution is accurate.

    The derivative solves the equation ``x1 dx = db - dx1 x``; the method itself is not differentiated.

    Parameters
    ----------
    x1 : Array, (..., n, n)
    b : jax.Array, (..., n, k)
        The batch shape includes the batch shape of `x1`.
    approximate, transposed : callable
        Functions that map right-hand sides like `b` to approximate solutions for `x1` and for its transpose, and to a flag that is
        false if a pivot is zero. The arrays derived from `x1` that they use must have no derivatives.

    Returns
    -------
    x : jax.Array, (..., n, k)
    ok : jax.Array, bool scalar
    """
    frozen = without_derivatives(x1)

    def solver(a: Array, approximate: Solver) -> Solver:
        return lambda b: solution_or_dense(a, b, *refined(a, approximate, b))

    return by_equation(x1, b, solver(frozen, approximate), solver(matrix_transpose.dispatch(frozen), transposed))


def by_equation(x1: Array, b: jax.Array, solution: Solver, transposed: Solver) -> tuple[jax.Array, jax.Array]:
    """Return the solution of a method and its flag, with derivatives by the equation; see `checked`.

    Parameters
    ----------
    x1, b
        As of `checked`.
    solution, transposed : callable
        Of right-hand sides like `b`: solutions for `x1` and for its transpose, and a flag.
    """
    known = caller.value
    if known.is_constant:  # the transposed solver would double the tracing time, at each nesting level
        return solution(b)

    def constant(solution: Solver) -> Callable[[Any, jax.Array], tuple[jax.Array, jax.Array]]:
        def solve(_: Any, b: jax.Array) -> tuple[jax.Array, jax.Array]:
            with caller(known._replace(is_constant=True)):
                return solution(b)

        return solve

    return solve_with_flag(linear_product(x1), b, constant(solution), constant(transposed))


def linear_product(a: Array) -> Callable[[jax.Array], jax.Array]:
    """The function ``x -> a @ x`` of data, which JAX can transpose."""

    def matvec(x: jax.Array) -> jax.Array:
        # Differentiate the product by `x` at an arbitrary point. Products by Fourier transforms test whether their
        # operand is finite, so that JAX regards only their derivatives as linear.
        product: jax.Array = jax.jvp(lambda y: times(a, y), (jnp.zeros_like(x),), (x,))[1]
        return product

    return matvec


def without_derivatives(x: T) -> T:
    """Return the same array, or arrays, without derivatives."""
    constants: T = jax.tree.map(lax.stop_gradient, x)
    return constants


def refined(
    a: Array,
    approximate: Solver,
    b: jax.Array,
    size: jax.Array | None = None,
    *,
    aim: float = _AIM,
    accepted: float | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Refine the approximate solution while its residual is large; also return whether the final residual is small.

    Parameters
    ----------
    a, approximate, b
        As of `checked`.
    size : jax.Array, (..., 1, 1), optional
        The norm of `a` (`estimates.norm`), if it is known.
    aim, accepted : float, optional
        The target residual and the largest accepted residual, in units of rounding errors. The defaults are `_AIM`, and `_ACCEPTED` or
        `_ACCEPTED_IF_LARGE`.
    """
    precision = jnp.finfo(b.dtype).eps

    target = precision * aim / math.sqrt(b.shape[-1])

    # The first solution is computed by the first step, so that compiled code contains the method once.
    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, r, left, longest, regular, _, count = state
        with for_parts_of(a):
            change, ok = approximate(r)
        better = x + change
        new = b - times_finite(a, better)
        first = count == 0
        # One check suffices for well-conditioned matrices: the residual is small relative to the right-hand side alone.
        good = first & jnp.all(_norm(new) <= target * _norm(b))
        if size is None:
            longest = lax.cond(first & ~good, lambda: norm(a), lambda: longest)
        error = jnp.where(good, 0, _error(new, better, b, longest))
        chosen = first | (error < left)
        improves = jnp.any((error > target) & (first | (error < _IMPROVED * left)))
        x, r, left = (jnp.where(chosen, *pair) for pair in ((better, x), (new, r), (error, left)))
        return x, r, left, longest, jnp.where(first, ok, regular), improves, count + 1

    def continues(state: tuple[Any, ...]) -> jax.Array:
        *_, improves, count = state
        goes_on: jax.Array = improves & (count <= _STEPS)
        return goes_on

    longest = jnp.zeros((*a.shape[:-2], 1, 1), precision.dtype) if size is None else size
    start = (jnp.zeros_like(b), b, jnp.zeros_like(_norm(b)), longest, jnp.array(True), jnp.array(True), 0)
    x, _, left, longest, regular, *_ = lax.while_loop(continues, step, start)
    # NaN is a bad residual, unless the input contains NaN or infinity.
    given = jnp.isfinite(longest) & jnp.all(jnp.isfinite(b), axis=-2, keepdims=True)
    if accepted is None:
        accepted = _ACCEPTED if is_replaceable(a) else _ACCEPTED_IF_LARGE
    bad = (left > accepted * precision) | (jnp.isnan(left) & given)
    return nan_unless(~bad, x), regular & ~jnp.any(bad)


def _norm(x: jax.Array) -> jax.Array:
    """The largest magnitude in each column."""
    return jnp.max(jnp.abs(x), axis=-2, keepdims=True)


def _error(r: jax.Array, x: jax.Array, b: jax.Array, size: jax.Array) -> jax.Array:
    # Higham, Accuracy and Stability of Numerical Algorithms, 7.1.
    return _norm(r) / jnp.maximum(size * _norm(x) + _norm(b), jnp.finfo(r.dtype).tiny)


def solved(
    x1: Array, x2: Array, method: Callable[[Any, jax.Array], tuple[jax.Array, jax.Array]]
) -> tuple[Dense, jax.Array]:
    """Return ``(solution, ok)`` for a right-hand side of any structure and shape, by ``method(x1, b)`` on data ``(...,
    n, k)``.
    """
    data = right_side(x2)
    vector = data.ndim == 1
    b = data[:, None] if vector else data
    batch = jnp.broadcast_shapes(x1.shape[:-2], b.shape[:-2])
    b = jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
    if b.size == 0:
        x, ok = b, jnp.array(True)
    else:
        x, ok = method(x1, b)
    return Dense.make((x[..., 0] if vector else x,)), ok


def all_true(flags: Iterable[jax.Array]) -> jax.Array:
    """Return whether all flags are true."""
    return functools.reduce(jnp.logical_and, flags, jnp.array(True))


def times(a: Array, data: jax.Array) -> jax.Array:
    """Multiply a matrix by data; return data."""
    product: jax.Array = matmul.dispatch(a, Dense.make((data,))).dense_data()
    return product


def solution(a: Array, data: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Solve a linear system for data; also return whether a solution exists."""
    x, ok = solve.dispatch(a, Dense.make((data,)))
    return x.dense_data(), ok


reusable: Registry[tuple[Solver, Solver]] = Registry("reusable")
"""``reusable.kernel(A)``: return two functions like `solution`, for A and for its transpose, of data alone. The work
that does not depend on the data is done once for all calls.
"""


def solvers(a: Array) -> tuple[Solver, Solver]:
    """Return the functions of `reusable`."""
    kernel = reusable.choose((a,), {})
    if kernel is not None:
        return kernel.run(a)
    return functools.partial(solution, a), lambda data: solution(matrix_transpose.dispatch(a), data)


# ---- products: factor by factor -------------------------------------------------------------------------------------


def _square_factors(x: Product, *args: Array, **static: Any) -> bool:
    return all(f.shape[-1] == f.shape[-2] for f in x.factors)


def _is_narrow(x: Product, *args: Array, **static: Any) -> bool:
    """Return whether an inner dimension of a chain is too small, so that the product is singular for all values."""
    return min(f.shape[-2] for f in x.factors) < x.shape[-1]


@solve.kernel(Product, Array, when=_square_factors)
def _solve_product_if_square_factors(x1: Product, x2: Array) -> tuple[Array, jax.Array]:
    remark("a linear system with each factor, from the left")
    if x2.ndim == 1:  # a column, since the solution for the first of several batches is no longer a vector
        column, ok = solve.dispatch(x1, Dense.make((to_dense(x2).data[:, None],)))
        return Dense.make((column.dense_data()[..., 0],)), ok
    flags = []
    for factor in x1.factors:
        x2, ok = solve.dispatch(factor, x2)
        flags.append(ok)
    return x2, all_true(flags)


@inv.kernel(Product, when=_square_factors)
def _inv_product(x: Product) -> tuple[Array, jax.Array]:
    inverses, flags = zip(*(inv.dispatch(f) for f in x.factors[::-1]), strict=True)
    return product(*inverses), all_true(flags)


@det.kernel(Product, when=_square_factors)
def _det_product(x: Product) -> Dense:
    return Dense.make((determinants.of_parts(_multiplied, logarithms, x),))


def _multiplied(x: Product) -> jax.Array:
    product: jax.Array = functools.reduce(jnp.multiply, (det.dispatch(f).dense_data() for f in x.factors))
    return product


@slogdet.kernel(Product, when=_square_factors)
def _slogdet_product(x: Product) -> tuple[Dense, Dense]:
    signs, logs = zip(*((p.dense_data() for p in slogdet.dispatch(f)) for f in x.factors), strict=True)
    return Dense.make((functools.reduce(jnp.multiply, signs),)), Dense.make((functools.reduce(jnp.add, logs),))


# The determinant of these low-rank structures is zero, and they have no inverse.
by_form(solve, det, slogdet, inv, of=Product, when=_is_narrow)(through_narrowest)
by_form(solve, det, slogdet, inv, of=Sum, when=has_low_rank)(of_low_rank)


# ---- determinants, second attempt ------------------------------------------------------------------------------------


def _by_parts(function: Function[..., Any], x: Array) -> Result:
    """Return the result computed from the parts, which is NaN if they fail."""
    with caller(Caller(falls_back=True, is_constant=True)):
        return function.without_eager_kernels(x)


def _is_nan(x: Any) -> np.bool_:
    return np.any(np.isnan(np.asarray(x.data)))


def _has_no_logarithm(x: Array) -> np.bool_:
    """Return whether the parts do not give the logarithm of a determinant. For a negative determinant, NaN is correct."""
    return _is_nan(_by_parts(slogdet, x)[1])


def _of_dense_form_if_nan(
    function: Function[..., Any], is_missing: Callable[[Array], bool | np.bool_] = lambda x: True
) -> None:
    """Register the fallback to the dense form in eager calls, for determinants that the parts do not give, if the policy allows it.

    Parameters
    ----------
    function
        `det`, `slogdet` or `logdet`.
    is_missing : callable
        Of a matrix with a result of NaN: whether the dense form has another.
    """

    @function.eager_kernel(Array, when=lambda x: x.solved_by_parts, of_all=True)  # a background is also a part
    def _by_parts_or_dense_form(x: Array) -> Result:
        if compiling():  # x is a constant of a compiled function, and the results are tracers
            return NotImplemented
        result = _by_parts(function, x)
        if not _is_nan(result if isinstance(result, Array) else result.logabsdet) or not is_missing(x):
            return result
        try:
            return function.without_eager_kernels(densify(x, function.name))
        except DensifyError:
            return result


_of_dense_form_if_nan(det)
_of_dense_form_if_nan(slogdet)
_of_dense_form_if_nan(logdet, _has_no_logarithm)
