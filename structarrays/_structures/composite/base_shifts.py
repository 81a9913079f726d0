r"""Regularisation of the base of a low-rank update.

Woodbury's formula and the matrix determinant lemma solve linear systems with the base A of ``M = A + U V^T``. They lose digits if A is worse
conditioned than M. The formula itself shows how much worse. Let s be the smallest singular value of A, with the singular vectors
:math:`y^* A = s z^*`. From :math:`y^* M = s z^* + y^* U V^T` and :math:`z^* A^{-1} U V^T = y^* U V^T / s` follows, unless
:math:`s \ge \sigma_{min}(M) / 2`,

.. math:: \lVert A^{-1} \rVert \le 2 \lVert A^{-1} U V^T \rVert \lVert M^{-1} \rVert .

So the formula is accurate if :math:`\lVert A^{-1} U V^T \rVert \lVert A \rVert / \lVert M \rVert` is of moderate size. Otherwise some diagonal
entries of the base change by about its norm, and the update takes the change back:

.. math:: M = (A + E D E^T) + [U, -E D] [V, E]^T

with unit vectors E. An entry changes where the inverse of the base, as U and V see it, has its largest diagonal element. This is elimination of
the null space with complete pivoting on the diagonal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import lax

from ..._functions.linalg import matrix_transpose
from ..._numerics import dense_linalg as linalg_dense
from ..banded.array import Banded
from ..banded.diagonal import Diagonal
from .estimates import norm, signs
from .part_solvers import can_solve, solution, times
from .sum import total

if TYPE_CHECKING:
    import jax

    from ..._core.array.base import Array
    from .part_solvers import Solver


LIMIT = 256
"""The largest accepted ratio of the condition numbers of the base and the matrix."""

MOST = 8
"""The largest number of diagonal entries that are changed: the largest dimension of a null space of the base."""


def is_benign(
    base: Array,
    u: jax.Array,
    v: jax.Array,
    inner: jax.Array,
    *,
    strict: bool,
    solve: Solver | None = None,
    quotient: jax.Array | None = None,
) -> jax.Array:
    """Return whether Woodbury's formula loses few digits, for each matrix, (...).

    Parameters
    ----------
    base : Array, (..., n, n)
    u, v : jax.Array, (..., n, r)
    inner : jax.Array, (..., n, r)
        The solution of ``base @ inner = u``.
    strict : bool
        Whether the visible condition number of the base must be at most 1000. Otherwise the limit is the cube root of the reciprocal
        precision, or `LIMIT` times the condition number of the matrix.
    solve : callable, optional
        The function of data that solves linear systems with the base.
    quotient : jax.Array, (..., n, r), optional
        The product of `inner` and the inverse of the capacitance matrix, if it is known.
    """
    probes = jnp.concatenate(
        [jnp.broadcast_to(signs(base.shape[-1], base.dtype), (*v.shape[:-1], 1)), v.conj()], axis=-1
    )
    products = times(base, probes) + u @ (v.mT @ probes)
    size = norm(base)[..., 0, 0]
    relative = size / jnp.max(ratio(products, probes), axis=-1)
    loss, condition = _length_of_product(inner, v) * relative, jnp.max(ratio(inner, u), axis=-1) * size
    eps = jnp.finfo(v.dtype).eps
    # NaN and infinity, which a singular base produces, compare as false.
    if strict:
        return (loss <= LIMIT) | (condition <= 1000)
    # Two steps of inverse iteration show the condition number of the matrix: the solutions of M @ X = U, and of M @ Y = X.
    first = _times_inverse(inner, v) if quotient is None else quotient
    alone, _ = solution(base, first) if solve is None else solve(first)
    second = alone - first @ (v.mT @ alone)
    own = jnp.max(jnp.maximum(ratio(first, u), ratio(second, first)), axis=-1) * size / relative
    allowed = jnp.minimum(jnp.maximum(eps ** (-1 / 3), LIMIT * own), 1e-2 / eps)
    return (loss <= LIMIT) | ((condition <= allowed) & (loss <= 1e-2 / eps))


def _times_inverse(inner: jax.Array, v: jax.Array) -> jax.Array:
    """Multiply by the inverse of the capacitance matrix."""
    capacitance = jnp.eye(v.shape[-1], dtype=v.dtype) + v.mT @ inner
    solved, _ = linalg_dense.solve(capacitance.mT, inner.mT)
    return solved.mT


def _length_of_product(x: jax.Array, y: jax.Array) -> jax.Array:
    """The Frobenius norm of ``x @ y.mT``."""
    (x, largest), (y, other) = map(_scaled, (x, y))
    squares = jnp.sum((x.conj().mT @ x) * (y.conj().mT @ y), axis=(-2, -1))
    return jnp.sqrt(jnp.abs(squares)) * largest * other


def _scaled(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Divide a matrix by its largest magnitude, so that squares stay in range; return both."""
    largest = jnp.max(jnp.abs(x), axis=(-2, -1))
    return x / jnp.where(largest == 0, 1, largest)[..., None, None], largest


def ratio(x: jax.Array, y: jax.Array) -> jax.Array:
    """Ratios of the largest magnitudes of columns; zero for columns of zeros."""
    largest, other = (jnp.max(jnp.abs(z), axis=-2) for z in (x, y))
    return largest / jnp.where(other == 0, 1, other)


def can_be_shifted(base: Array) -> bool:
    """Return whether the base keeps a solver when its diagonal changes (static)."""
    if isinstance(base, Banded) and not isinstance(base, Diagonal) and 0 not in base.offsets:
        return False
    return can_solve(shifted(base, jnp.zeros(base.shape[-1:], base.dtype)))


def shifted(base: Array, diagonal: jax.Array) -> Array:
    """Add values to the diagonal of the base."""
    return total(base, Diagonal.make((diagonal, None), base.shape[-2:]))


def shift(base: Array, u: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The change of the diagonal that makes the base regular.

    Returns
    -------
    changes, units : jax.Array, (..., n, k)
        The diagonal matrix is ``changes @ units.mT``, with unit vectors for columns of `units`.
    """
    size = norm(base)[..., 0]
    n, real = base.shape[-1], jnp.finfo(base.dtype)
    # The null space dominates the inverse of this matrix. Half of the digits of the inverse are right.
    near = shifted(base, jnp.broadcast_to((size * real.eps**0.5).astype(base.dtype), (*base.shape[:-2], n)))
    left, _ = solution(near, u)
    right, _ = solution(matrix_transpose.dispatch(near), v)
    middle = jnp.linalg.pinv(v.mT @ left)
    count = min(u.shape[-1], MOST)

    def step(k: jax.Array, state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        middle, changes, units = state
        inverse = jnp.sum((left @ middle) * right, axis=-1)  # the diagonal of left @ middle @ right.mT
        place = jnp.argmax(jnp.abs(inverse), axis=-1, keepdims=True)
        unit = (lax.broadcasted_iota(place.dtype, inverse.shape, inverse.ndim - 1) == place).astype(base.dtype)
        largest = jnp.sum(unit * inverse, axis=-1, keepdims=True)
        phase = jnp.where(largest == 0, 1, largest / jnp.where(largest == 0, 1, jnp.abs(largest)))
        value = size * phase.conj()
        row, column = unit[..., None, :] @ left, jnp.swapaxes(unit[..., None, :] @ right, -1, -2)
        middle = middle - (middle @ column) @ (row @ middle) / (largest + 1 / value)[..., None]
        return middle, changes.at[..., k].set(value * unit), units.at[..., k].set(unit)

    batch = jnp.broadcast_shapes(base.shape[:-2], left.shape[:-2], right.shape[:-2])
    nothing = jnp.zeros((*batch, n, count), base.dtype)
    middle = jnp.broadcast_to(middle, (*batch, *middle.shape[-2:]))
    changed: tuple[jax.Array, jax.Array] = lax.fori_loop(0, count, step, (middle, nothing, nothing))[1:]
    return changed
