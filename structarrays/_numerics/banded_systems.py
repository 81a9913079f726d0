"""Shared routines of all solvers of banded linear systems: batches, derivatives, and vmap.

A *method* takes the arrays that define a matrix, its factors, right-hand sides ``b`` (..., n, k), all with one batch
shape and no empty dimension, and a flag for the transposed matrix. It returns ``x`` (..., n, k) and one boolean for the
whole batch.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from .flags import custom_jvp, custom_vmap
from .linear_solves import solve_with_flag
from .quotients import quotient
from .symbolic import is_symbolic
from .undefined import nan_unless

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core.typing import Shape

    T = TypeVar("T")


def solve(
    method: Callable[..., tuple[jax.Array, jax.Array]],
    matrix: tuple[jax.Array, ...],
    ranks: Sequence[int],
    matvec: Callable[..., jax.Array],
    b: jax.Array,
    factor: Callable[..., tuple[jax.Array, ...]] | None = None,
    once: Callable[..., tuple[jax.Array, jax.Array]] | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b`` by a method, for any batch shapes, with derivatives by the implicit function theorem.

    The derivative solves ``A dx = db - dA x``. Reverse mode takes one solve with the transpose, and the entries of an outer product that
    the matrix stores. The methods are not differentiated, and a matrix is factored once for all of its linear systems.

    Parameters
    ----------
    method : callable
        ``method(*matrix, *factors, b, transposed=…)``.
    matrix : tuple of jax.Array
        The arrays that define the matrix.
    ranks : tuple of int
        The number of core dimensions of each of these arrays.
    matvec : callable
        Product of the matrix and an array (..., n, k), for any batch shapes.
    b : jax.Array, (..., n, k)
    factor : callable, optional
        Maps the matrix to a tuple of arrays with its batch shape in front.
    once : callable, optional
        ``once(*matrix, b)`` solves without factors that are kept; taken where no derivative is needed.

    Returns
    -------
    x : jax.Array, (..., n, k)
    ok : jax.Array, bool scalar
    """
    n, k = b.shape[-2:]
    matrix_batch = jnp.broadcast_shapes(*(a.shape[: a.ndim - r] for a, r in zip(matrix, ranks, strict=True)))
    batch = jnp.broadcast_shapes(matrix_batch, b.shape[:-2])
    if n == 0 or 0 in batch:
        return jnp.zeros((*batch, n, k), b.dtype), jnp.array(True)
    if k == 0:
        x, ok = solve(method, matrix, ranks, matvec, jnp.zeros((*batch, n, 1), b.dtype), factor, once)
        return x[..., :0], ok
    b = jnp.broadcast_to(b, (*batch, n, k))
    count = math.prod(batch)
    if math.prod(matrix_batch) == 1 and (is_symbolic(count) or count > 1):
        # One matrix: all right-hand sides become its columns.
        columns = jnp.moveaxis(b, -2, 0)
        matrix = tuple(a.reshape(a.shape[a.ndim - r :]) for a, r in zip(matrix, ranks, strict=True))
        x, ok = solve(method, matrix, ranks, matvec, columns.reshape(n, -1), factor, once)
        return jnp.moveaxis(x.reshape(columns.shape), 0, -2), ok
    matrix = tuple(
        jnp.broadcast_to(a, matrix_batch + a.shape[a.ndim - r :]) for a, r in zip(matrix, ranks, strict=True)
    )
    solution = functools.partial(_by_factors, method, matvec, factor, batch, len(matrix_batch))
    if once is None:
        return solution(matrix, b)

    @custom_jvp
    def solution_once(matrix: tuple[jax.Array, ...], b: jax.Array) -> tuple[jax.Array, jax.Array]:
        whole = (jnp.broadcast_to(a, batch + a.shape[len(matrix_batch) :]) for a in matrix)
        result: tuple[jax.Array, jax.Array] = for_whole_batch(once)(*whole, b)
        return result

    solution_once.defjvp(lambda primals, tangents: jax.jvp(solution, primals, tangents))
    results: tuple[jax.Array, jax.Array] = solution_once(matrix, b)
    return results


def _by_factors(
    method: Callable[..., tuple[jax.Array, jax.Array]],
    matvec: Callable[..., jax.Array],
    factor: Callable[..., tuple[jax.Array, ...]] | None,
    batch: Shape,
    ndim: int,
    matrix: tuple[jax.Array, ...],
    b: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """`solve` for arrays with `ndim` batch dimensions; `b` has the whole batch shape."""
    factors = lax.stop_gradient(matrix)
    if factor is not None:
        count = len(jax.eval_shape(factor, *factors))
        factors += mapped_together(factor, (True,) * count)(*factors)
    factors = tuple(jnp.broadcast_to(a, batch + a.shape[ndim:]) for a in factors)
    straight, transposed = (for_whole_batch(functools.partial(method, transposed=t)) for t in (False, True))
    return solve_with_flag(
        lambda x: matvec(matrix, x),
        b,
        lambda _, b: straight(*factors, b),
        lambda _, b: transposed(*factors, b),
    )


def divide(diag: jax.Array, b: jax.Array, positive_definite: bool) -> tuple[jax.Array, jax.Array]:
    """Solve by a diagonal matrix, diag (..., n)."""
    diag = diag[..., None]
    bad = jnp.any(diag.real <= 0 if positive_definite else diag == 0, axis=-2, keepdims=True)
    return nan_unless(~bad, quotient(b, diag)), ~jnp.any(bad)


def for_whole_batch(method: Callable[..., tuple[jax.Array, jax.Array]]) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """Let ``vmap`` call the method once with one more batch dimension.

    By default ``vmap`` would turn the slices of the loops into gathers and scatters, which XLA does not compile to
    native loops, and would run both branches of fallbacks. If only `b` is mapped, the mapped axis becomes columns of
    `b`.
    """
    solver = custom_vmap(method)

    @solver.def_vmap
    def _solver_vmap(
        axis_size: int, in_batched: Sequence[bool], *args: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], tuple[bool, bool]]:
        *factors, b = args
        if not any(in_batched[:-1]):
            columns = jnp.moveaxis(b, 0, -2)
            x, ok = solver(*factors, columns.reshape(*columns.shape[:-2], columns.shape[-2] * columns.shape[-1]))
            return (jnp.moveaxis(x.reshape(columns.shape), -2, 0), ok), (True, False)
        return solver(*_broadcast(axis_size, in_batched, args)), (True, False)

    return solver


def mapped_together(function: Callable[..., T], out_batched: bool | tuple[bool, ...]) -> Callable[..., T]:
    """`for_whole_batch` for a function of arrays with a common batch shape; `out_batched` says which results have it,
    too.
    """
    function = custom_vmap(function)

    @function.def_vmap
    def _function_vmap(
        axis_size: int, in_batched: Sequence[bool], *args: jax.Array
    ) -> tuple[Any, bool | tuple[bool, ...]]:
        return function(*_broadcast(axis_size, in_batched, args)), out_batched

    return function


def _broadcast(axis_size: int, in_batched: Sequence[bool], args: Sequence[jax.Array]) -> list[jax.Array]:
    pairs = zip(args, in_batched, strict=True)
    return [a if batched else jnp.broadcast_to(a, (axis_size, *a.shape)) for a, batched in pairs]


def each_system(
    system: Callable[..., tuple[jax.Array, jax.Array]], b: jax.Array, *factors: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Apply a solver of one linear system, ``(*factors, b)`` to the solution and a flag, to each of a batch: a method."""
    x, ok = one_by_one(system, b.shape[:-2], *factors, b)
    return x, jnp.all(ok)


def one_by_one(function: Callable[..., T], batch: Shape, *args: jax.Array) -> T:
    """Apply a function of single linear systems to each of a batch, in a loop: batched loops would not be native.

    `args` and the results have the batch shape `batch` in front.
    """
    if not batch:
        return function(*args)
    flat = tuple(a.reshape(-1, *a.shape[len(batch) :]) for a in args)
    results = lax.map(lambda system: function(*system), flat)
    shaped: T = jax.tree.map(lambda r: r.reshape(*batch, *r.shape[1:]), results)
    return shaped
