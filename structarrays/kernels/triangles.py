"""What is read of a matrix of which one triangle counts: masks, dense forms, reductions of the two halves, systems.

A triangle is the half of ``a`` (..., m, n) with its diagonal, below (``lower``) or above. The other half is never read: it
may hold anything, NaN too, and no NaN comes out of it, not even of a derivative, since it is replaced by a selection
before anything is computed. All of it are selections by an index, which XLA fuses into what follows.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from scipy.linalg import get_lapack_funcs

from structarrays.kernels.host_calls import on_host


def mask(shape, lower: bool, offset: int = 0) -> Array:
    """Where a matrix of this shape has its triangle: ``j - i <= offset`` (lower) or ``j - i >= offset``, (m, n)."""
    rows, columns = (lax.broadcasted_iota(jnp.int32, tuple(shape[-2:]), axis) for axis in (0, 1))
    return columns - rows <= offset if lower else columns - rows >= offset


def triangle(data: Array, lower: bool, outside=0, offset: int = 0) -> Array:
    """The triangle of the data, and `outside` (a scalar, or an array that broadcasts) elsewhere."""
    return jnp.where(mask(data.shape, lower, offset), data, jnp.asarray(outside, data.dtype))


def strict(data: Array, lower: bool, outside=0) -> Array:
    """The triangle without the diagonal."""
    return triangle(data, lower, outside, -1 if lower else 1)


def with_diagonal(data: Array, values) -> Array:
    """The data with a number, or a vector (..., k), on the main diagonal."""
    values, (m, n) = jnp.asarray(values, data.dtype), data.shape[-2:]
    if values.ndim:
        values = jnp.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, m - min(m, n))])[..., :, None]
    return jnp.where(mask((m, n), True) & mask((m, n), False), values, data)


def real_diagonal(data: Array) -> Array:
    """Complex data without the imaginary part of the diagonal."""
    shape = data.shape
    imaginary = jnp.where(mask(shape, True) & mask(shape, False), 0, data.imag)
    return lax.complex(data.real, imaginary.astype(data.real.dtype))


def mirrored(data: Array, lower: bool, conjugate: bool) -> Array:
    """The symmetric (``conjugate``: Hermitian) matrix with this triangle."""
    if not conjugate:
        return jnp.where(mask(data.shape, lower), data, data.mT)
    data = real_diagonal(data)
    return jnp.where(mask(data.shape, lower), data, data.mT.conj())


def diagonal(data: Array, offset: int = 0) -> Array:
    """One diagonal of the data, (..., k)."""
    return jnp.diagonal(data, offset=offset, axis1=-2, axis2=-1)


# ---- linear systems --------------------------------------------------------------------------------------------------


def solve(a: Array, b: Array, *, lower: bool, unit_diagonal: bool) -> tuple[Array, Array]:
    """Solution of ``T @ x = b`` with a triangle T of ``a``, and whether no diagonal has a zero.

    Parameters
    ----------
    a : Array, (..., n, n)
    b : Array, (n,) or (..., n, k)
        One vector for all matrices, or matrices whose batch shape broadcasts.
    lower, unit_diagonal : bool
        Which triangle is T, and whether its diagonal are ones instead of what stands in ``a``.

    Returns
    -------
    x : Array, (..., n) or (..., n, k)
        All NaN for a matrix with a zero on the diagonal.
    ok : Array, ()
    """
    if b.ndim == 1:
        x, ok = solve(a, b[:, None], lower=lower, unit_diagonal=unit_diagonal)
        return x[..., 0], ok
    n, k = b.shape[-2:]
    if a.ndim == 2 and b.ndim > 2:  # one matrix, many stacks: more right-hand sides
        rows_first = jnp.moveaxis(b, -2, 0)
        columns = rows_first.reshape(n, math.prod(rows_first.shape[1:]))
        x, ok = solve(a, columns, lower=lower, unit_diagonal=unit_diagonal)
        return jnp.moveaxis(x.reshape(rows_first.shape), 0, -2), ok
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = jnp.broadcast_to(a, (*batch, n, n)), jnp.broadcast_to(b, (*batch, n, k))
    if k == 1 and not batch and n >= ON_HOST:
        x = _one_column(a, b, lower, unit_diagonal)
    else:
        x = _by_xla(a, b, lower, unit_diagonal, False)
    if unit_diagonal:
        return x, jnp.array(True)
    regular = jnp.all(diagonal(a) != 0, axis=-1)
    return jnp.where(regular[..., None, None], x, jnp.nan), jnp.all(regular)


ON_HOST = 128
"""The number of rows from which LAPACK solves a single linear system with one right-hand side, on XLA's own buffers, on a CPU. XLA (0.12) copies
the matrix, which costs more than the solution, and calls a routine for many right-hand sides, which takes twice the time."""


def _by_xla(a, b, lower, unit_diagonal, transposed):
    # LAPACK wants columns, XLA stores rows: the transpose is the same memory read by columns, where `a` itself would be
    # copied (as far as XLA sees that it is the same: up to 0.11).
    return lax.linalg.triangular_solve(
        a.mT, b, left_side=True, lower=not lower, transpose_a=not transposed, unit_diagonal=unit_diagonal
    )


def _one_column(a, b, lower, unit_diagonal):
    """The solution, (n, 1), with derivatives from the equation."""
    fixed = lax.stop_gradient(a)

    def solver(transposed):
        host = functools.partial(_by_lapack, lower, unit_diagonal, transposed)
        other = functools.partial(_by_xla, lower=lower, unit_diagonal=unit_diagonal, transposed=transposed)
        return lambda _, b: on_host(host, (jax.ShapeDtypeStruct(b.shape, b.dtype),), fixed, b, elsewhere=other)

    def matvec(x):
        t = triangle(a, lower)
        return (with_diagonal(t, 1) if unit_diagonal else t) @ x

    return lax.custom_linear_solve(matvec, b, solver(False), solver(True))


def _by_lapack(lower, unit_diagonal, transposed, a, b):
    """The solutions for NumPy arrays, by LAPACK."""
    (solve_by_columns,) = get_lapack_funcs(("trtrs",), dtype=b.dtype)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.empty((*batch, *b.shape[-2:]), b.dtype)
    a, b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, x.shape)
    for place in np.ndindex(batch):
        # LAPACK reads columns, and the transpose has them in place: nothing is copied.
        x[place] = solve_by_columns(
            a[place].T, b[place], lower=not lower, trans=not transposed, unitdiag=unit_diagonal
        )[0]
    return (x,)
