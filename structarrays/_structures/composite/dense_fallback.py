"""The dense form as the fallback of compiled solvers.

A solver that works on the parts of a matrix may fail for a regular matrix. An eager call then solves the dense form (`Function._once_more`).
Compiled code contains both methods: `lax.cond` runs the second method only if the first one has failed, also under ``vmap``.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.array.dense import Dense
from ..._core.array.operands import to_dense
from ..._core.dispatch.contexts import Caller, caller, densify_policy
from ..._functions.linalg import solve
from ..._functions.linalg.least_squares import minimum_norm_dense, number_of_large
from ..._numerics.determinants import any_of_all
from ..._numerics.flags import custom_jvp
from ..._numerics.symbolic import is_symbolic
from ..._numerics.undefined import nan_unless

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from ..._core.array.base import Array
    from ..._core.typing import Result


LARGEST = 1 << 25
"""The largest dense form, in bytes, that compiled code may allocate. A smaller limit of the policy takes precedence."""


def is_possible(x: Array) -> bool:
    """Return whether compiled code may form the dense form of a stack of matrices (static). Dimensions that ``vmap``
    adds are not counted.
    """
    return not caller.value.falls_back and _may_expand(x)


def is_replaceable(x: Array) -> bool:
    """Return whether the dense form is solved if a solver rejects its solution (static): in compiled code, or by the
    eager call.
    """
    return is_possible(x) or (caller.value.is_eager and _may_expand(x))


def _may_expand(x: Array) -> bool:
    policy = densify_policy.value
    size = math.prod(x.shape) * x.dtype.itemsize
    return not is_symbolic(size) and policy.mode != "error" and size <= min(policy.limit, LARGEST)


def for_parts_of(x: Array) -> AbstractContextManager[None]:
    """Context for solvers of parts of a matrix. The caller checks the solution for the whole, and takes no derivatives
    of these solvers.

    If the whole matrix falls back to its dense form, its parts need not. Otherwise compiled code would contain a dense
    form at each nesting level.
    """
    context: AbstractContextManager[None] = caller(Caller(caller.value.falls_back or is_possible(x), is_constant=True))
    return context


def solution_or_dense(x: Array, b: jax.Array, found: jax.Array, ok: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return a solution and its flag, from the dense form if the flag is false.

    Parameters
    ----------
    x : Array, (..., n, n)
    b, found : jax.Array, (..., n, k)
        The right-hand sides, and the solutions by another method.
    ok : jax.Array, bool scalar
        Whether that method has succeeded.
    """
    if not is_possible(x):
        return found, ok

    def by_dense_form() -> tuple[jax.Array, jax.Array]:
        other, fine = solve.dispatch(to_dense(x), Dense.make((b,)))
        return jnp.where(ok, found, other.dense_data()), ok | fine

    result: tuple[jax.Array, jax.Array] = lax.cond(any_of_all(~ok), by_dense_form, lambda: (found, ok))
    return result


def least_squares_or_dense_form(
    a: Array, b: Array, cond: jax.Array, found: jax.Array, full: jax.Array, rank: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return solutions and ranks of `lstsq`, from the dense form where a flag is false, and whether there are solutions.

    Parameters
    ----------
    a, b, cond
        The matrices, right-hand sides and tolerances.
    found : jax.Array, (..., n, k)
        Solutions by another method, whose derivatives must be finite.
    full : jax.Array of bool, (...)
        Whether that method applies: the matrix has full rank by a margin, so that its dense form has the same rank.
    rank : jax.Array, (...)
        Ranks.
    """
    if not is_possible(a):
        return nan_unless(full[..., None, None], found), rank, jnp.all(full)

    @jax.checkpoint  # as in `_densely`
    def dense(a: Array, b: Array) -> tuple[jax.Array, jax.Array]:
        x, values = minimum_norm_dense(to_dense(a), b, cond)
        return x.data, number_of_large(values, cond)

    def by_dense_form() -> tuple[jax.Array, jax.Array]:
        x, rank = dense(a, b)
        return jnp.where(full[..., None, None], found, x), rank

    x, rank = lax.cond(any_of_all(~full), by_dense_form, lambda: (found, rank))
    return x, rank, jnp.array(True)


def numbers_or_dense(
    function: Callable[[Array], Result], x: Array, found: Sequence[jax.Array], fine: jax.Array
) -> tuple[jax.Array, ...]:
    """Return one value for each matrix of a stack, such as the determinant; from the dense form where a flag is false.

    Parameters
    ----------
    function : callable
        Function of a matrix, such as `det.dispatch`, which returns an array or a tuple of arrays, each ``(...)``.
    x : Array, (..., n, n)
    found : tuple of jax.Array, (...)
        The results of another method, whose derivatives must be finite; see `by_parts_or_dense`.
    fine : jax.Array of bool, (...)
        Whether that method has succeeded. If it has not, and the dense form is not possible, the results are NaN.

    Returns
    -------
    tuple of jax.Array
    """
    if not is_possible(x):
        return _nan_unless(fine, found)

    def by_dense_form() -> tuple[jax.Array, ...]:
        return tuple(jnp.where(fine, part, other) for part, other in zip(found, _densely(function, x), strict=True))

    results: tuple[jax.Array, ...] = lax.cond(any_of_all(~fine), by_dense_form, lambda: tuple(found))
    return results


def by_parts_or_dense(
    function: Callable[[Array], Result],
    x: Array,
    by_parts: Callable[[Any], tuple[tuple[jax.Array, ...], jax.Array]],
    *,
    fall_back: bool = True,
) -> tuple[Dense, ...]:
    """`numbers_or_dense` for a method whose derivatives may be infinite where it fails, such as elimination with a zero pivot.

    Parameters
    ----------
    function, x
        As in `numbers_or_dense`.
    by_parts : callable
        Function of `x`, which returns `found` and `fine`.
    fall_back : bool
        Whether the dense form may be used.

    Returns
    -------
    tuple of Dense
    """
    if fall_back and is_possible(x):
        results, _ = _chosen(function, by_parts, x)
    else:
        found, fine = by_parts(x)
        results = _nan_unless(fine, found)
    return tuple(Dense.make((part,)) for part in results)


def _nan_unless(fine: jax.Array, found: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
    return tuple(nan_unless(fine, part) for part in found)


def _densely(function: Callable[[Array], Result], x: Array) -> tuple[jax.Array, ...]:
    @jax.checkpoint  # otherwise reverse mode would allocate the intermediate results, also where this branch does not run
    def evaluated(x: Any) -> tuple[jax.Array, ...]:
        results = function(to_dense(x))
        return tuple(r.dense_data() for r in (results if isinstance(results, tuple) else (results,)))

    parts: tuple[jax.Array, ...] = evaluated(x)
    return parts


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _chosen(
    function: Callable[[Array], Result], by_parts: Callable[[Any], tuple[tuple[jax.Array, ...], jax.Array]], x: Array
) -> tuple[tuple[jax.Array, ...], jax.Array]:
    found, fine = by_parts(x)
    return numbers_or_dense(function, x, found, fine), jnp.all(fine)


@_chosen.defjvp
def _chosen_jvp(
    function: Callable[[Array], Result],
    by_parts: Callable[[Any], tuple[tuple[jax.Array, ...], jax.Array]],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
) -> tuple[tuple[tuple[jax.Array, ...], jax.Array], tuple[tuple[jax.Array, ...], np.ndarray]]:
    """Derivative of the method that is used. A selection of values would fail: zero times an infinite derivative is
    NaN.
    """
    found, fine = _chosen(function, by_parts, *primals)

    def derivative(run: Callable[[Any], tuple[jax.Array, ...]]) -> Callable[[], tuple[jax.Array, ...]]:
        return lambda: jax.jvp(run, primals, tangents)[1]

    change = lax.cond(
        any_of_all(~fine),
        derivative(functools.partial(_densely, function)),
        derivative(lambda x: tuple(by_parts(x)[0])),
    )
    return (found, fine), (change, np.zeros((), jax.dtypes.float0))
