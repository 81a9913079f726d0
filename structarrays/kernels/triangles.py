"""What is read of a matrix of which one triangle counts: masks, dense forms, reductions of the two halves, systems.

A triangle is the half of ``a`` (..., m, n) with its diagonal, below (``lower``) or above. The other half is never read: it
may hold anything, NaN too, and no NaN comes out of it, not even of a derivative, since it is replaced by a selection
before anything is computed. All of it are selections by an index, which XLA fuses into what follows.
"""

import math

import jax.numpy as jnp
from jax import Array, lax


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
    # LAPACK wants columns, XLA stores rows: the transpose is the same memory read by columns, where `a` itself would be
    # copied. For one right-hand side that is a factor of three to five.
    x = lax.linalg.triangular_solve(
        jnp.broadcast_to(a, (*batch, n, n)).mT,
        jnp.broadcast_to(b, (*batch, n, k)),
        left_side=True,
        lower=not lower,
        transpose_a=True,
        unit_diagonal=unit_diagonal,
    )
    if unit_diagonal:
        return x, jnp.array(True)
    regular = jnp.all(diagonal(a) != 0, axis=-1)
    return jnp.where(regular[..., None, None], x, jnp.nan), jnp.all(regular)
