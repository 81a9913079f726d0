"""Direct solvers of sparse systems that consist of JAX operations; see `linalg.register_sparse_solver`.

A matrix is given as in `sparse_systems`, without padding. A stack is solved by one matrix after another: a solver need not support `jax.vmap`,
and may rely on one pattern for the whole stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from ..._core.dispatch.contexts import sparse_solver_policy
from ..._functions.linalg.sparse_solvers import CoordinateMatrix, SparseSolver, solver_for, traced_solver

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.typing import DTypeLike, Shape


def chosen(data: jax.Array, definite: bool, padded: bool) -> SparseSolver | None:
    """The traced solver that is chosen for a matrix; None if the host solves its systems."""
    return traced_solver(solver_for(sparse_solver_policy.value, data.dtype, definite, padded))


def with_method(method: str, matrix: Sequence[jax.Array], n: int, definite: bool, padded: bool) -> SparseSolver | None:
    """The traced solver that is chosen for a matrix, if its factors have an optional method."""
    solver, found = chosen(matrix[0], definite, padded), []
    if solver is None:
        return None

    def look(*matrix: jax.Array) -> None:
        found.append(hasattr(_factors(solver, matrix, n, definite), method))

    jax.eval_shape(look, *matrix)
    return solver if found[0] else None


def without_padding(
    data: jax.Array, first: jax.Array, second: jax.Array, n: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Turn padding into zeros that are added to the last element of the matrix."""
    return jnp.where(first < n, data, 0), jnp.minimum(first, n - 1), jnp.minimum(second, n - 1)


def solve(
    solver: SparseSolver, matrix: Sequence[jax.Array], b: jax.Array, *, transposed: bool, definite: bool
) -> tuple[jax.Array, jax.Array]:
    """Return the solution ``(n, k)`` for right-hand sides ``(n, k)``, and whether the matrix is regular.

    The solution is NaN if the matrix is not finite. If it is NaN for finite numbers, the matrix counts as singular.
    """

    def solution(factors: Any, b: jax.Array) -> tuple[jax.Array, ...]:
        return (factors.solve(b, transposed),)

    results = [("solve", b.shape, b.dtype)]
    (x,) = _by_factors(solver, solution, results, matrix, b.shape[0], definite, b)
    finite = jnp.all(jnp.isfinite(matrix[0])) & jnp.all(jnp.isfinite(b))
    return x, ~(finite & jnp.any(jnp.isnan(x)))


def slogdet(solver: SparseSolver, matrix: Sequence[jax.Array], n: int, definite: bool) -> tuple[jax.Array, jax.Array]:
    """Return the sign of the determinant and the logarithm of its magnitude; NaN if the matrix is not finite."""
    dtype = matrix[0].dtype
    results = [("slogdet", (), dtype), ("slogdet", (), jnp.finfo(dtype).dtype)]
    sign, logabsdet = _by_factors(solver, lambda factors: tuple(factors.slogdet()), results, matrix, n, definite)
    return sign, logabsdet


def inverse_at(solver: SparseSolver, matrix: Sequence[jax.Array], n: int, definite: bool) -> jax.Array:
    """Return the elements ``(second, first)`` of the inverse, ``(nnz,)``; NaN if the matrix is not finite."""
    results = [("selected_inverse", matrix[0].shape, matrix[0].dtype)]
    (elements,) = _by_factors(solver, lambda factors: (factors.selected_inverse(),), results, matrix, n, definite)
    return elements


def _by_factors(
    solver: SparseSolver,
    compute: Callable[..., tuple[jax.Array, ...]],
    results: Sequence[tuple[str, Shape, DTypeLike]],
    matrix: Sequence[jax.Array],
    n: int,
    definite: bool,
    *others: jax.Array,
) -> tuple[jax.Array, ...]:
    """Call ``compute(factors, *others)``, whose `results` have these shapes and dtypes, and come from methods with these names."""

    def of_one(*operands: jax.Array) -> tuple[jax.Array, ...]:
        matrix, others = operands[:3], operands[3:]

        def regular() -> tuple[jax.Array, ...]:
            found = compute(_factors(solver, matrix, n, definite), *others)
            return tuple(_verified(x, *expected) for x, expected in zip(found, results, strict=True))

        def undefined() -> tuple[jax.Array, ...]:
            return tuple(jnp.full(shape, jnp.nan, dtype) for _, shape, dtype in results)

        found: tuple[jax.Array, ...] = lax.cond(jnp.all(jnp.isfinite(matrix[0])), regular, undefined)
        return found

    one_by_one: Callable[..., tuple[jax.Array, ...]] = jax.custom_batching.sequential_vmap(of_one)
    return one_by_one(*matrix, *others)


def _factors(solver: SparseSolver, matrix: Sequence[jax.Array], n: int, definite: bool) -> Any:
    data, first, second = matrix
    factors = solver.factorize(CoordinateMatrix(data, first, second, (n, n)), positive_definite=definite)
    if not callable(getattr(factors, "solve", None)):
        raise TypeError(
            "a registered sparse solver must return factors with a method solve(b, transposed), got "
            f"{type(factors).__name__}"
        )
    return factors


def _verified(x: jax.Array, method: str, shape: Shape, dtype: DTypeLike) -> jax.Array:
    if x.shape != shape:
        raise ValueError(f"{method} of a registered sparse solver must return shape {shape}, got {x.shape}")
    if x.dtype != dtype:
        raise TypeError(f"{method} of a registered sparse solver must return dtype {dtype}, got {x.dtype}")
    return x
