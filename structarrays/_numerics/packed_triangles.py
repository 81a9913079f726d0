"""Matrices of which one triangle is read: masks, dense forms, reductions of the two halves, linear systems.

A triangle is the half of ``a`` (..., m, n) with its diagonal, below (``lower``) or above. The other half is never read:
it may contain anything, including NaN. It is replaced by a selection before any computation, so that no NaN reaches the
results or derivatives. All functions are selections by index, which XLA fuses into their consumers.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import Array, lax

from .._core.jax_internals import lapack
from . import flags
from .symbolic import smaller
from .undefined import nan_unless
from .vectors import for_right_sides

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import jax

    from .._core.typing import Shape


def mask(shape: Shape, lower: bool, offset: int | Array = 0) -> Array:
    """Mask of the triangle of a matrix of this shape: ``j - i <= offset`` (lower) or ``j - i >= offset``, (m, n)."""
    rows, columns = (lax.broadcasted_iota(jnp.int32, tuple(shape[-2:]), axis) for axis in (0, 1))
    return columns - rows <= offset if lower else columns - rows >= offset


def triangle(data: Array, lower: bool, outside: jax.typing.ArrayLike = 0, offset: int = 0) -> Array:
    """The triangle of the data, with `outside` (a scalar, or an array that broadcasts) elsewhere."""
    return jnp.where(mask(data.shape, lower, offset), data, jnp.asarray(outside, data.dtype))


def strict(data: Array, lower: bool, outside: jax.typing.ArrayLike = 0) -> Array:
    """The triangle without the diagonal."""
    return triangle(data, lower, outside, -1 if lower else 1)


def with_diagonal(data: Array, values: jax.typing.ArrayLike) -> Array:
    """The data with a scalar, or a vector (..., k), on the main diagonal."""
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
    result: Array = jnp.diagonal(data, offset=offset, axis1=-2, axis2=-1)
    return result


# ---- linear systems --------------------------------------------------------------------------------------------------


@for_right_sides
def solve(a: Array, b: Array, *, lower: bool, unit_diagonal: bool) -> tuple[Array, Array]:
    """Solve ``T @ x = b`` with a triangle T of ``a``; also return whether no diagonal element is zero.

    Parameters
    ----------
    a : Array, (..., n, n)
    b : Array, (n,) or (..., n, k)
        A vector for all matrices, or matrices whose batch shape broadcasts.
    lower, unit_diagonal : bool
        Which triangle is T, and whether its diagonal is ones instead of the diagonal of ``a``.

    Returns
    -------
    x : Array, (..., n) or (..., n, k)
        All NaN for a matrix with a zero on the diagonal.
    ok : Array, ()
    """
    n, k = b.shape[-2:]
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    by_buffers = a.ndim == 2 and not smaller(_FEW, k) and lapack.is_available(a.dtype)
    substitute: Callable[..., Array] = _substitution_on_buffers if by_buffers else _substitution
    x = substitute(
        jnp.broadcast_to(a, (*batch, n, n)),
        jnp.broadcast_to(b, (*batch, n, k)),
        lower=lower,
        unit_diagonal=unit_diagonal,
    )
    if unit_diagonal:
        return x, jnp.array(True)
    regular = jnp.all(diagonal(a) != 0, axis=-1)
    return nan_unless(regular[..., None, None], x), jnp.all(regular)


_FEW = 16
"""Up to this number of right-hand sides, a copy of the matrix takes a significant part of the time."""


def _substitution(a: Array, b: Array, *, lower: bool, unit_diagonal: bool, transposed: bool = False) -> Array:
    """Solution of ``T @ x = b``, or of ``T.T @ x = b``."""
    # LAPACK reads columns, XLA stores rows. The transpose is the same memory read by columns, whereas `a` itself would
    # be copied.
    return lax.linalg.triangular_solve(
        a.mT, b, left_side=True, lower=not lower, transpose_a=not transposed, unit_diagonal=unit_diagonal
    )


def _substitution_on_buffers(a: Array, b: Array, **which: bool) -> Array:
    """`_substitution` for one matrix. On CPUs nothing is copied: jaxlib 0.12 copies the transpose, which takes three
    times as long as the solution.
    """

    def solution(b: Array, transposed: bool) -> Array:
        options: dict[str, Any] = {**which, "transposed": transposed}
        on_cpu = flags.custom_vmap(functools.partial(lapack.substitute, **options))

        @on_cpu.def_vmap
        def on_cpu_batched(size: int, batched: Sequence[bool], a: Array, b: Array) -> tuple[Array, bool]:
            if batched[0]:
                return _substitution(a, b if batched[1] else jnp.broadcast_to(b, (size, *b.shape)), **options), True
            n, k = b.shape[-2:]
            x = _substitution(a, jnp.moveaxis(b, 0, 1).reshape(n, size * k), **options)
            return jnp.moveaxis(x.reshape(n, size, k), 1, 0), True

        result: Array = lax.platform_dependent(a, b, cpu=on_cpu, default=functools.partial(_substitution, **options))
        return result

    def product(x: Array) -> Array:
        data = with_diagonal(a, 1) if which["unit_diagonal"] else a
        return triangle(data, which["lower"]) @ x

    result: Array = lax.custom_linear_solve(
        product,
        b,
        solve=lambda _, b: solution(b, transposed=False),
        transpose_solve=lambda _, b: solution(b, transposed=True),
    )
    return result
