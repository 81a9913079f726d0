r"""Linear systems of Kronecker products and sums with general factors, on plain JAX arrays.

With the Schur forms :math:`A_i = U_i T_i U_i^H`, whose :math:`T_i` are upper triangular, both
:math:`A_1 \otimes \dots \otimes A_k + c I` and :math:`A_1 \oplus \dots \oplus A_k + c I` are unitarily similar to the
same expressions of :math:`T_i`. These are upper triangular matrices, and solved by block back substitution. The method
is backward stable for any eigenvectors of the factors (R. H. Bartels and G. W. Stewart, "Solution of the matrix
equation AX + XB = C", Communications of the ACM 15 (1972), 820-826, for two factors of a sum).

JAX provides the Schur form on CPUs only.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import lax

from . import cyclic_reduction, dense_factors, sylvester
from . import packed_triangles as triangles
from .banded_systems import mapped_together
from .host_calls import are_allowed
from .kronecker_factors import apply_along, spread_number, sum_spectrum

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import jax


def solve(
    matvec: Callable[..., jax.Array],
    right: jax.Array,
    factors: Sequence[jax.Array],
    shift: jax.Array,
    spectrum: Callable[..., jax.Array],
    diagonal: Sequence[bool],
) -> tuple[jax.Array, jax.Array]:
    """Solve a linear system; also return, for each matrix, whether no eigenvalue is zero. The arguments are as in
    `kronecker_factors.solver`.

    Notes
    -----
    ``O(sum(n_i**3) + N m sum(n_i))``, in ``n_1 n_2 ⋯`` sequential steps, without the size of the last factor.
    """
    adds = spectrum is sum_spectrum
    if adds and len(factors) == 2 and not any(diagonal) and 0 not in right.shape and is_on_cpu():
        return _solve_sylvester(matvec, right, factors[0], factors[1], shift)
    dtype = jnp.result_type(right, jnp.complex64)
    forms = [form(lax.stop_gradient(f).astype(dtype), d) for f, d in zip(factors, diagonal, strict=True)]
    shift = lax.stop_gradient(shift).astype(dtype)
    eigenvalues = spectrum([t if u is None else triangles.diagonal(t) for t, u in forms], shift)
    regular = jnp.all((eigenvalues != 0) | jnp.isnan(eigenvalues), axis=tuple(range(-len(forms), 0)))
    if right.shape[-2] == 0:
        return right, regular
    shift = jnp.where(regular, shift, jnp.nan)
    solution = lax.custom_linear_solve(
        matvec,
        right,
        solve=lambda _, b: substitute(forms, shift, b, adds=adds),
        transpose_solve=lambda _, b: substitute([transposed_form(*f) for f in forms], shift, b, adds=adds),
    )
    return solution, regular


def is_on_cpu() -> bool:
    """Return whether Sylvester equations may call LAPACK on the host."""
    return are_allowed() and not cyclic_reduction.has_accelerator()


def _solve_sylvester(
    matvec: Callable[..., jax.Array], right: jax.Array, a: jax.Array, b: jax.Array, shift: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """`solve` for the Kronecker sum of two matrices, in programs for CPUs."""
    batch = right.shape[:-2]
    a, b = (jnp.broadcast_to(lax.stop_gradient(f).astype(right.dtype), (*batch, *f.shape[-2:])) for f in (a, b))
    shift = jnp.broadcast_to(lax.stop_gradient(shift).astype(right.dtype), batch)
    forms = sylvester.form(a), sylvester.form(b)
    sums = sum_spectrum([sylvester.eigenvalues(t) for t, _ in forms], shift)
    regular = jnp.all((sums != 0) | jnp.isnan(sums), axis=(-2, -1))
    arguments = (*forms[0], *forms[1], a, b, jnp.where(regular, shift, jnp.nan))

    def by_lapack(*args: jax.Array, transposed: bool) -> jax.Array:
        ta, ua, tb, ub, a, b, shift, c = args
        x, fine = sylvester.solve(((ta, ua), (tb, ub)), shift, c, transposed=transposed)

        def otherwise(a: jax.Array, b: jax.Array, shift: jax.Array, c: jax.Array, _: jax.Array) -> jax.Array:
            dtype = jnp.result_type(c, jnp.complex64)
            forms = [form(f.astype(dtype)) for f in (a, b)]
            forms = [transposed_form(*f) for f in forms] if transposed else forms
            return substitute(forms, shift.astype(dtype), c, adds=True)

        chosen: jax.Array = lax.cond(jnp.all(fine), lambda *args: args[-1], otherwise, a, b, shift, c, x)
        return chosen

    straight, other = (mapped_together(functools.partial(by_lapack, transposed=t), True) for t in (False, True))
    solution = lax.custom_linear_solve(
        matvec,
        right,
        solve=lambda _, c: straight(*arguments, c),
        transpose_solve=lambda _, c: other(*arguments, c),
    )
    return solution, regular


def substitute(
    forms: Sequence[tuple[jax.Array, jax.Array | None]], shift: jax.Array, b: jax.Array, *, adds: bool
) -> jax.Array:
    """Solve a linear system with the matrix whose factors have these Schur forms.

    Parameters
    ----------
    forms : sequence of pairs
        The results of `form`, complex.
    shift : (...)
        The multiple of the identity, of the same dtype.
    b : (..., N, m)
        With the batch shape of the matrix; any batch shape if the matrix has none.
    adds : bool
        Whether it is a Kronecker sum.
    """
    if b.ndim > shift.ndim + 2:  # one matrix for a stack of right-hand sides: these become columns
        rows = jnp.moveaxis(b, -2, 0)
        columns = substitute(forms, shift, rows.reshape(rows.shape[0], math.prod(rows.shape[1:])), adds=adds)
        return jnp.moveaxis(columns.reshape(rows.shape), 0, -2)
    uppers, axes = tuple(t for t, _ in forms), len(forms)
    data = b.astype(shift.dtype).reshape(*b.shape[:-2], *(t.shape[-1] for t in uppers), b.shape[-1])
    for i, (_, u) in enumerate(forms):
        data = apply_along(u, data, i - axes - 1, transpose=True, conjugate=True)
    data = _backwards(uppers, jnp.ones_like(shift), shift, data, adds=adds)
    for i, (_, u) in enumerate(forms):
        data = apply_along(u, data, i - axes - 1, transpose=False, conjugate=False)
    data = data.reshape(b.shape)
    return data if jnp.iscomplexobj(b) else data.real


def form(factor: jax.Array, is_diagonal: bool = False) -> tuple[jax.Array, jax.Array | None]:
    """Return the triangular and the unitary matrix of the Schur form; for a diagonal factor its diagonal, and None."""
    return (factor, None) if is_diagonal else dense_factors.schur(factor)


def transposed_form(t: jax.Array, u: jax.Array | None) -> tuple[jax.Array, jax.Array | None]:
    """Schur form of the transpose: reversing all indices turns a lower triangular matrix into an upper one."""
    if u is None:
        return t, None
    return jnp.flip(t.mT, (-2, -1)), jnp.flip(u.conj(), -1)


def _backwards(
    uppers: Sequence[jax.Array], scale: jax.Array, shift: jax.Array, b: jax.Array, *, adds: bool
) -> jax.Array:
    """Solve a triangular linear system with ``scale (T_1 ⊗ ...) + shift I``, or (with scale 1) of ``T_1 ⊕ ... + shift I``.

    Parameters
    ----------
    uppers : tuple of (..., n_i, n_i), or (..., n_i) for a diagonal factor
    scale, shift : (...)
    b : (..., n_1, ..., n_k, m)
    adds : bool
        Whether it is a Kronecker sum.
    """
    first, *rest = uppers
    batch = shift.ndim
    if first.ndim == batch + 1:  # rows do not depend on each other: one more batch axis
        scale, shift = _level(first, scale[..., None], shift[..., None], adds)
        if not rest:
            return b / (shift if adds else scale + shift)[..., None]
        return _backwards([jnp.expand_dims(t, batch) for t in rest], scale, shift, b, adds=adds)
    if not rest:
        n = first.shape[-1]
        matrix = scale[..., None, None] * first + shift[..., None, None] * jnp.eye(n, dtype=first.dtype)
        shape = jnp.broadcast_shapes(matrix.shape[:-2], b.shape[:-2])
        matrix, b = (jnp.broadcast_to(a, shape + a.shape[-2:]) for a in (matrix, b))
        return lax.linalg.triangular_solve(matrix, b, left_side=True, lower=False)
    n = first.shape[-1]
    axes = b.ndim - batch

    def step(b: jax.Array, row: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        i, on_diagonal, above = row
        own_scale, own_shift = _level(on_diagonal, scale, shift, adds)
        right = lax.dynamic_index_in_dim(b, i, batch, keepdims=False)
        y = _backwards(rest, own_scale, own_shift, right, adds=adds)
        known = y if adds else spread_number(scale, axes - 1) * _times(rest, y)
        above = above.reshape(above.shape + (1,) * (axes - 1))
        return b - above * jnp.expand_dims(known, batch), y

    above = jnp.triu(first, 1)
    rows = (jnp.arange(n), jnp.moveaxis(triangles.diagonal(first), -1, 0), jnp.moveaxis(above, -1, 0))
    _, solution = lax.scan(step, b, rows, reverse=True)
    return jnp.moveaxis(solution, 0, batch)


def _level(values: jax.Array, scale: jax.Array, shift: jax.Array, adds: bool) -> tuple[jax.Array, jax.Array]:
    """The scalars that multiply and shift the other factors, for a diagonal element of the first factor."""
    return (scale, shift + values) if adds else (scale * values, shift)


def _times(uppers: Sequence[jax.Array], y: jax.Array) -> jax.Array:
    """Product of the Kronecker product of triangular matrices and a tensor with one trailing column axis."""
    count = len(uppers)
    batch = y.ndim - count - 1
    for i, t in enumerate(uppers):
        if t.ndim == batch + 1:
            y = y * t.reshape(*t.shape[:-1], *(1,) * i, t.shape[-1], *(1,) * (count - i))
        else:
            y = apply_along(t, y, i - count - 1, transpose=False, conjugate=False)
    return y
