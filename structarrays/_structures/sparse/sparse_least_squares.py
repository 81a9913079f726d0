"""`lstsq` for sparse matrices, by refined normal equations, or by the dense form without full rank."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import right_side
from ..._core.dispatch.contexts import caller, host_calls_policy
from ..._core.dispatch.recording import remark
from ..._core.families.factored import Factored
from ..._core.families.other_forms import by_form
from ..._functions.linalg import lstsq
from ..._functions.linalg.least_squares import by_dense_form, result_without_values
from ..._numerics.host_calls import on_host
from ..._numerics.linear_solves import Solve, solve_with_flag
from ..._numerics.symbolic import is_symbolic
from ..banded.array import Banded
from ..blocks.block_banded import BlockBanded
from ..composite.dense_fallback import least_squares_or_dense_form
from . import normal_equations, numerics, sparse_direct
from .array import Sparse, is_plain_matrix
from .solvers import FEW, SOLVED_AS_DENSE, keeps_structure, sparse_size
from .sparse_joins import has_sparse_form, to_sparse

if TYPE_CHECKING:
    from collections.abc import Callable


def has_few_entries(a: Sparse, *args: Array, **static: Any) -> bool:
    """Return whether least squares with a matrix of full rank are solved without its dense form (static)."""
    return is_plain_matrix(a) and _is_worthwhile(a, a.nnz)


def _is_worthwhile(a: Array, entries: int) -> bool:
    m, n = a.shape[-2:]
    if is_symbolic(a.size) or 0 in (m, n) or not host_calls_policy.value:
        return False
    fits = max(m, n, entries) < np.iinfo(np.int32).max and str(a.dtype) in sparse_direct.PRECISIONS
    return fits and (keeps_structure() or (m * n > SOLVED_AS_DENSE**2 and FEW * entries <= m * n))


@lstsq.kernel(Sparse, Array, when=has_few_entries)
def lstsq_sparse(a: Sparse, b: Array, *, cond: jax.Array) -> tuple[tuple[Dense, Dense, Dense, Dense], jax.Array]:
    """Solve by a sparse factorization of ``A^H A``, if A has full rank by a margin. If not, solve the dense form where it may be
    formed; the result is NaN with a false flag elsewhere.
    """
    cond = lax.stop_gradient(cond)
    if caller.value.expands:
        return by_dense_form(a, b, cond)
    remark("normal equations by SuperLU on the host, refined; without full rank, singular values of the dense form")
    x, rank, ok = _by_normal_equations(a, b, cond)
    return result_without_values(a, b, cond, x, rank), ok


def _is_wide_band(x: Array) -> bool:
    """Return whether a matrix is a band for which no QR decomposition applies."""
    return isinstance(x, Banded) and x.shape[-2] <= x.shape[-1]


def _has_few_stored_entries(x: Array, *args: Array, **static: Any) -> bool:
    return (
        x.background is None
        and (not isinstance(x, Banded) or _is_wide_band(x))
        and has_sparse_form(x)
        and _is_worthwhile(x, sparse_size(x))
    )


@by_form(lstsq, of=Banded, when=_has_few_stored_entries)
@by_form(lstsq, of=BlockBanded, when=_has_few_stored_entries)
def lstsq_by_sparse_form(x: Banded | BlockBanded) -> Array:
    """Return the sparse form of a matrix for which no QR decomposition applies."""
    remark("the sparse form")
    return to_sparse(x)


# The second attempt runs the same kernels, so that singular values are empty whichever method runs.
lstsq.is_retried = lambda x: isinstance(x, Sparse | Banded | BlockBanded | Factored)


def _by_normal_equations(a: Sparse, b: Array, cond: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return solutions, ranks, and whether there is a solution."""
    right, size = right_side(b, "linalg.lstsq"), min(a.shape[-2:])
    batch = jnp.broadcast_shapes(a.shape[:-2], cond.shape)
    shape = jnp.broadcast_shapes(batch, right.shape[:-2])
    right = jnp.broadcast_to(right, shape + right.shape[-2:])
    if right.size == 0 and 0 not in batch:  # the rank is needed all the same
        _, rank, ok = _by_normal_equations(a, Dense.make((jnp.zeros((*batch, a.shape[-2], 1), a.dtype),)), cond)
        return jnp.zeros((*shape, a.shape[-1], right.shape[-1]), a.dtype), rank, ok
    found, of_each = _solutions(a, right, cond)
    rank = jnp.where(_all_to_shape(of_each, batch), size, size - 1)
    rank = jnp.where(jnp.all(jnp.isfinite(a.entries[0]), axis=-1), rank, 0)
    return least_squares_or_dense_form(a, b, cond, found, of_each, rank)


def _all_to_shape(flags: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Return flags of a shape that broadcasts to the shape of given flags: whether all that they stand for are true."""
    flags = jnp.all(flags, axis=tuple(range(flags.ndim - len(shape))))
    repeated = tuple(i for i, n in enumerate(shape) if n == 1)
    return jnp.all(flags, axis=repeated, keepdims=True)


def _solutions(a: Sparse, b: jax.Array, cond: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the solutions, zero for a matrix that may not have full rank, and a flag for each stacked right-hand side: whether its
    matrix has full rank.
    """
    m, n = a.shape[-2:]
    tall = m >= n

    def solution(
        data: jax.Array, rows: jax.Array, columns: jax.Array, cond: jax.Array, b: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """With the adjoint of a wide matrix, the minimum-norm solution is the upper part."""
        if tall:
            right = jnp.concatenate([b, jnp.zeros((n, b.shape[-1]), b.dtype)])
            z, full = _augmented(data, rows, columns, cond, right, (m, n), not a.padded)
            return z[m:], full
        right = jnp.concatenate([jnp.zeros((n, b.shape[-1]), b.dtype), b])
        z, full = _augmented(jnp.conj(data), columns, rows, cond, right, (n, m), not a.padded)
        return z[:n], full

    if not a.batch_shape and not cond.shape:  # the right-hand sides of a batch become columns
        side_by_side = jnp.moveaxis(b, -2, 0)
        rows, columns = a.coords
        x, full = solution(a.data, rows, columns, cond, side_by_side.reshape(m, -1))
        return jnp.moveaxis(x.reshape(n, *side_by_side.shape[1:]), 0, -2), jnp.broadcast_to(full, b.shape[:-2])
    batch = b.shape[:-2]
    parts = (jnp.broadcast_to(part, batch + part.shape[-1:]) for part in (a.data, *a.coords))
    solutions: tuple[jax.Array, jax.Array] = numerics.over_batch(solution, len(batch))(
        *parts, jnp.broadcast_to(cond, batch), b
    )
    return solutions


def _augmented(
    data: jax.Array,
    rows: jax.Array,
    columns: jax.Array,
    cond: jax.Array,
    right: jax.Array,
    shape: tuple[int, int],
    in_bounds: bool,
) -> tuple[jax.Array, jax.Array]:
    """Solve ``[[I, A], [A^H, 0]] z = right`` on the host; see `normal_equations`. Derivatives follow from
    the equation.
    """
    m, n = shape

    def matvec(z: jax.Array) -> jax.Array:
        # The derivative of the product by its factor, in a form that JAX knows to be linear.
        def product(z: jax.Array) -> jax.Array:
            above = numerics.multiply(data, rows, columns, z[m:], None, m, in_bounds, False)
            below = numerics.multiply(jnp.conj(data), columns, rows, z[:m], None, n, in_bounds, False)
            return jnp.concatenate([z[:m] + above, below])

        tangent: jax.Array = jax.jvp(product, (jnp.zeros_like(z),), (z,))[1]
        return tangent

    def on_the_host(data: jax.Array) -> Solve:
        function = functools.partial(normal_equations.solve, shape=shape)
        results = (jax.ShapeDtypeStruct(right.shape, right.dtype), jax.ShapeDtypeStruct((), bool))

        def solve(_: Callable[..., Any], right: jax.Array) -> tuple[jax.Array, jax.Array]:
            z, full = on_host(function, results, data, rows, columns, cond, right)
            return z, full

        return solve

    frozen = lax.stop_gradient(data)
    # The transpose of the Hermitian matrix is its conjugate.
    return solve_with_flag(matvec, right, on_the_host(frozen), on_the_host(jnp.conj(frozen)))
