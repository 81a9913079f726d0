"""Linear systems and determinants of sparse matrices, with derivatives: the compiled side of `sparse_direct`.

All functions are about one matrix ``(n, n)`` without batch dimensions, given by `data` ``(nnz,)`` and the coordinates
`first` and `second` ``(nnz,)`` in sort order; it may have padding. `jax.vmap` maps all arguments.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..._core.dispatch.contexts import sparse_solver_policy
from ..._numerics.flags import custom_jvp
from ..._numerics.host_calls import on_host
from ..._numerics.linear_solves import Solve, solve_with_flag
from . import numerics as sparse
from . import sparse_direct, traced_solvers

_NUMBERS = 1 << 22
"""The approximate number of elements of a block of columns of the inverse, and of its products with the entries."""


def solve(
    data: jax.Array,
    first: jax.Array,
    second: jax.Array,
    b: jax.Array,
    transposed: bool = False,
    definite: bool = False,
    padded: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """Return the solution of ``A @ x = b``, where ``A[first, second] = data``, or of ``A.T @ x = b``.

    The derivative follows from ``A dx = db - dA x``. With respect to the entries it consists of the elements of an
    outer product at their coordinates.

    Parameters
    ----------
    data, first, second : jax.Array, (nnz,)
        The matrix.
    b : jax.Array, (n, k)
        The right-hand sides.
    transposed : bool
        Whether to solve the transposed linear system.
    definite : bool
        Whether the matrix is assumed Hermitian and positive definite; then other matrices count as singular.
    padded : bool
        Whether some of the entries may be padding.

    Returns
    -------
    x : jax.Array, (n, k)
        NaN if the matrix is singular.
    ok : jax.Array, bool scalar
        Whether the matrix is regular.
    """
    rows, columns = (second, first) if transposed else (first, second)
    frozen, solver = lax.stop_gradient(data), sparse_solver_policy.value
    traced = traced_solvers.chosen(data, definite, padded)

    def matvec(x: jax.Array) -> jax.Array:
        # The derivative of the product by its factor, in a form that JAX knows to be linear.
        def product(x: jax.Array) -> jax.Array:
            result: jax.Array = sparse.multiply(data, rows, columns, x, None, b.shape[0], not padded, not transposed)
            return result

        tangent: jax.Array = jax.jvp(product, (jnp.zeros_like(x),), (x,))[1]
        return tangent

    def by_factors(transposed: bool) -> Solve:
        function = functools.partial(sparse_direct.solve, definite=definite, transposed=transposed, solver=solver)
        results = (jax.ShapeDtypeStruct(b.shape, b.dtype), jax.ShapeDtypeStruct((), bool))

        def solve(_: Any, b: jax.Array) -> tuple[jax.Array, jax.Array]:
            x, ok = on_host(function, results, frozen, first, second, b)
            return x, ok

        def solve_within(_: Any, b: jax.Array) -> tuple[jax.Array, jax.Array]:
            assert traced is not None
            matrix = _matrix(frozen, first, second, b.shape[0], padded)
            return traced_solvers.solve(traced, matrix, b, transposed=transposed, definite=definite)

        return solve_within if traced else solve

    return solve_with_flag(matvec, b, by_factors(transposed), by_factors(not transposed))


def _matrix(data: jax.Array, first: jax.Array, second: jax.Array, n: int, padded: bool) -> tuple[jax.Array, ...]:
    """A matrix for `traced_solvers`."""
    return traced_solvers.without_padding(data, first, second, n) if padded else (data, first, second)


@functools.partial(custom_jvp, nondiff_argnums=(3, 4, 5))
def slogdet(
    data: jax.Array, first: jax.Array, second: jax.Array, n: int, definite: bool = False, padded: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Return the sign of the determinant (complex: a phase of magnitude 1), and the logarithm of its magnitude.

    The derivative is ``d log(det(A)) = sum(inv(A).T * dA)``. It needs only the elements of the inverse at the entries
    of A.
    """
    matrix = _matrix(data, first, second, n, padded)
    if traced := traced_solvers.with_method("slogdet", matrix, n, definite, padded):
        return traced_solvers.slogdet(traced, matrix, n, definite)
    function = functools.partial(sparse_direct.slogdet, n=n, definite=definite, solver=sparse_solver_policy.value)
    real = jnp.finfo(data.dtype).dtype
    results = (jax.ShapeDtypeStruct((), data.dtype), jax.ShapeDtypeStruct((), real))
    sign, logabsdet = on_host(function, results, data, first, second)
    return sign, logabsdet


@slogdet.defjvp
def _slogdet_jvp(
    n: int, definite: bool, padded: bool, primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    data, first, second = primals
    sign, logabsdet = slogdet(data, first, second, n, definite, padded)
    relative = jnp.sum(inverse_at(data, first, second, n, definite, padded) * tangents[0])
    turned = 1j * relative.imag * sign if jnp.iscomplexobj(data) else jnp.zeros_like(sign)
    return (sign, logabsdet), (turned, relative.real)


@functools.partial(custom_jvp, nondiff_argnums=(3, 4, 5))
def inverse_at(
    data: jax.Array, first: jax.Array, second: jax.Array, n: int, definite: bool = False, padded: bool = False
) -> jax.Array:
    """Return the elements ``(second, first)`` of the inverse, ``(nnz,)``; zero at padding."""
    matrix = _matrix(data, first, second, n, padded)
    if traced := traced_solvers.with_method("selected_inverse", matrix, n, definite, padded):
        elements = traced_solvers.inverse_at(traced, matrix, n, definite)
        return jnp.where(first < n, elements, 0) if padded else elements
    function = functools.partial(sparse_direct.inverse_at, n=n, definite=definite, solver=sparse_solver_policy.value)
    elements = on_host(function, (jax.ShapeDtypeStruct(data.shape, data.dtype),), data, first, second)[0]
    return elements


@inverse_at.defjvp
def _inverse_at_jvp(
    n: int, definite: bool, padded: bool, primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]
) -> tuple[jax.Array, jax.Array]:
    """Differentiate solutions for unit vectors: ``-inv(A) dA inv(A)`` needs whole columns, one block at a time."""
    data, first, second = primals

    def by_columns(data: jax.Array) -> jax.Array:
        return _by_columns(data, first, second, n, definite, padded)

    value = inverse_at(data, first, second, n, definite, padded)
    return value, jax.jvp(by_columns, (data,), tangents[:1])[1]


def _by_columns(
    data: jax.Array, first: jax.Array, second: jax.Array, n: int, definite: bool, padded: bool
) -> jax.Array:
    width = max(1, min(n, _NUMBERS // max(1, n, data.shape[0])))

    @jax.checkpoint  # otherwise reverse mode would store all blocks, that is, the whole inverse
    def block(data: jax.Array, start: jax.Array) -> jax.Array:
        unit = (lax.iota(first.dtype, n)[:, None] == start + lax.iota(first.dtype, width)).astype(data.dtype)
        x, _ = solve(data, first, second, unit, False, definite, padded)
        inside = (first >= start) & (first < start + width)
        return jnp.where(inside, x.at[second, first - start].get(mode="clip", wrap_negative_indices=False), 0)

    def add(total: jax.Array, start: jax.Array) -> tuple[jax.Array, None]:
        return total + block(data, start), None

    starts = jnp.arange(0, n, width, dtype=first.dtype)
    return lax.scan(add, jnp.zeros_like(data), starts)[0]
