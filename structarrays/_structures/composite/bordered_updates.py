r"""Low-rank updates of diagonal matrices, by elimination in a bordered matrix.

A matrix ``M = D + U V^T``, (n, n) with U and V of r columns, has the determinant and the linear systems of

.. math:: K = \begin{pmatrix} D & U \\ -V^T & I \end{pmatrix} , \qquad \det K = \det M , \qquad
    M x = b \iff K \begin{pmatrix} x \\ z \end{pmatrix} = \begin{pmatrix} b \\ 0 \end{pmatrix} .

The r rows whose diagonal entries have the smallest magnitudes are kept. Elimination of the others leaves the border

.. math:: S = \begin{pmatrix} D_2 & U_2 \\ -V_2^T & I + V_1^T D_1^{-1} U_1 \end{pmatrix} ,

with 2 r rows, which is solved with pivoting. By Weyl's inequality (Horn and Johnson, *Matrix Analysis*, 2nd edition, 7.3),
:math:`\sigma_{min}(M) \le \sigma_{n - r}(D)`, so that :math:`\lVert D_1^{-1} \rVert \le \lVert M^{-1} \rVert`. The elimination therefore
divides by no small number unless M itself is nearly singular. D may be singular.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
from jax import lax

from ..._core.array.dense import Dense
from ..._numerics import dense_linalg as linalg_dense
from ..._numerics.determinants import any_of_all
from ..._numerics.symbolic import is_symbolic
from ..._numerics.tall import transposed_quotients
from ..banded.diagonal import Diagonal
from .part_solvers import without_derivatives
from .product import Product

if TYPE_CHECKING:
    import jax

    from .part_solvers import Solver


class Bordered(NamedTuple):
    """The matrix after the elimination.

    Attributes
    ----------
    divisors : jax.Array, (..., n)
        The diagonal; infinity in the rows that are kept.
    places : jax.Array, (..., r)
        The rows that are kept.
    border : jax.Array, (..., 2 r, 2 r)
        S.
    of_right : jax.Array, (..., r, k), optional
        ``V^T D_1^{-1} b`` for one right-hand side b.
    """

    divisors: jax.Array
    places: jax.Array
    border: jax.Array
    of_right: jax.Array | None = None


def _bordered(
    d: jax.Array, u: jax.Array, v: jax.Array, places: jax.Array, b: jax.Array | None = None, sign: int = -1
) -> Bordered:
    """Eliminate all rows but those at `places`. The lower left block of K is ``sign * v.mT``."""
    divisors = jnp.where(_is_kept(d, places), jnp.inf, d)
    c, *of_right = transposed_quotients(v, (u,) if b is None else (u, b), divisors)
    unit = jnp.eye(c.shape[-1], dtype=c.dtype)
    diagonal = jnp.take_along_axis(d, places, axis=-1)[..., None] * unit
    blocks = ((diagonal, _rows(u, places)), (sign * _rows(v, places).mT, unit + c))
    batch = jnp.broadcast_shapes(*(block.shape[:-2] for row in blocks for block in row))
    rows = [[jnp.broadcast_to(block, (*batch, *block.shape[-2:])) for block in row] for row in blocks]
    border = jnp.concatenate([jnp.concatenate(row, axis=-1) for row in rows], axis=-2)
    return Bordered(divisors, places, border, *of_right)


def _is_kept(d: jax.Array, places: jax.Array) -> jax.Array:
    return jnp.put_along_axis(jnp.zeros(d.shape, bool), places, True, axis=-1, inplace=False)


def _rows(x: jax.Array, places: jax.Array) -> jax.Array:
    """The rows of matrices at `places`, (..., r, k)."""
    index = places[..., None]
    rank = max(x.ndim, index.ndim)
    x, index = (a.reshape((1,) * (rank - a.ndim) + a.shape) for a in (x, index))
    return jnp.take_along_axis(x, index, axis=-2)


def _places(d: jax.Array, count: int) -> jax.Array:
    """Choose the rows that are kept, (..., count)."""
    sizes = jnp.abs(d)
    first = jnp.broadcast_to(jnp.arange(count), (*d.shape[:-1], count))
    uneven = jnp.min(sizes, axis=-1) < 1e-3 * jnp.max(sizes, axis=-1)  # otherwise any rows will do
    places: jax.Array = lax.cond(any_of_all(uneven), lambda: smallest(sizes, count).astype(first.dtype), lambda: first)
    return places


_WIDTH = 1024
"""Number of values in a block, of which only the smallest is sorted: XLA sorts 1,000,000 numbers in 350 ms on a CPU."""


def smallest(x: jax.Array, count: int) -> jax.Array:
    """Return the indices of the smallest values, (..., count)."""
    n = x.shape[-1]
    if is_symbolic(n) or n <= 4 * _WIDTH or n <= 4 * count * _WIDTH:
        return lax.top_k(-x, count)[1]
    blocks = -(-n // _WIDTH)
    padding = [(0, 0)] * (x.ndim - 1) + [(0, blocks * _WIDTH - n)]
    padded = jnp.pad(x, padding, constant_values=jnp.inf).reshape(*x.shape[:-1], blocks, _WIDTH)
    chosen = smallest(jnp.min(padded, axis=-1), count)  # each of the smallest values is in one of these blocks
    candidates = jnp.take_along_axis(padded, chosen[..., None], axis=-2).reshape(*x.shape[:-1], count * _WIDTH)
    found = lax.top_k(-candidates, count)[1]
    block = jnp.take_along_axis(chosen, found // _WIDTH, axis=-1)
    return jnp.minimum(block * _WIDTH + found % _WIDTH, n - 1)


# ---- linear systems --------------------------------------------------------------------------------------------------


def solvers(base: Diagonal, u: jax.Array, v: jax.Array, b: jax.Array) -> tuple[Solver, Solver]:
    """Return functions that solve systems with the matrix, and with its transpose.

    Parameters
    ----------
    base : Diagonal, (..., n, n)
    u, v : jax.Array, (..., n, r)
        The update ``u @ v.mT``.
    b : jax.Array, (..., n, k)
        The right-hand sides that the first function gets first, and often alone.
    """
    d, count = base.diag, u.shape[-1]
    places = _places(d, count)
    straight = _bordered(d, u, v, places, b)
    signs = jnp.where(lax.iota(jnp.int32, 2 * count) < count, 1, -1).astype(d.dtype)
    flipped = straight._replace(border=signs[:, None] * straight.border.mT * signs, of_right=None)

    def of(x: Bordered, u: jax.Array, v: jax.Array, known: jax.Array | None) -> Solver:
        return lambda b: _solution(x, u, v, b, known)

    return of(straight, u, v, b), of(flipped, v, u, None)


def _solution(
    x: Bordered, u: jax.Array, v: jax.Array, b: jax.Array, known: jax.Array | None
) -> tuple[jax.Array, jax.Array]:
    """Solve for right-hand sides; also return whether the pivots are regular."""

    def reduced() -> jax.Array:
        return transposed_quotients(v, (b,), x.divisors)[0]

    if known is None or x.of_right is None:
        lower = reduced()
    else:  # other right-hand sides come from derivatives and from refinement
        of_right = x.of_right
        lower = lax.cond(any_of_all(b != known), reduced, lambda: of_right)
    upper = jnp.broadcast_to(_rows(b, x.places), lower.shape)
    values, ok = linalg_dense.solve(x.border, jnp.concatenate([upper, lower], axis=-2))
    count = lower.shape[-2]
    kept, z = values[..., :count, :], values[..., count:, :]
    others = (b - u @ z) / x.divisors[..., None]
    index = jnp.broadcast_to(x.places[..., None], kept.shape)
    solution = jnp.put_along_axis(others, index, kept, axis=-2, inplace=False)
    return solution, ok & ~jnp.any(x.divisors == 0)


# ---- determinants ---------------------------------------------------------------------------------------------------


class Determinant(NamedTuple):
    """The determinant as a product: of the diagonal without the rows that are kept, of `scales`, and of `matrix`.

    Attributes
    ----------
    is_kept : jax.Array of bool, (..., n)
    scales : jax.Array, (..., 2 r)
    matrix : jax.Array, (..., 2 r, 2 r)
    fine : jax.Array of bool, (...)
        Whether few digits are lost.
    """

    is_kept: jax.Array
    scales: jax.Array
    matrix: jax.Array
    fine: jax.Array

    def parts(self, base: Diagonal) -> tuple[Diagonal, Product]:
        """Return two matrices, the product of whose determinants is the determinant."""
        diagonal = jnp.where(self.is_kept, 1, base.diag)
        scales = Diagonal.make((self.scales, None), self.matrix.shape[-2:])
        return Diagonal.make((diagonal, None), base.core_shape), Product.make((scales, Dense.make((self.matrix,))))


def by_elimination(d: jax.Array, u: jax.Array, v: jax.Array) -> Determinant:
    """Return the `Determinant` of ``diag(d) + u @ v.mT``."""
    frozen = without_derivatives((d, u, v))
    places = _places(frozen[0], u.shape[-1])
    border = _bordered(d, u, v, places).border
    rows, columns = _scales(*frozen, places)
    scaled = rows[..., :, None] * border * columns[..., None, :]
    fine = _is_accurate(*frozen, lax.stop_gradient(scaled), rows, columns)
    is_kept = jnp.broadcast_to(_is_kept(d, places), (*scaled.shape[:-2], d.shape[-1]))
    return Determinant(is_kept, (1 / (rows * columns)).astype(d.dtype), scaled, fine)


_LIMIT = 256
"""The largest accepted ratio of the errors to those that the condition number of the matrix explains."""


def _is_accurate(
    d: jax.Array, u: jax.Array, v: jax.Array, border: jax.Array, rows: jax.Array, columns: jax.Array
) -> jax.Array:
    """Return whether the determinant of the scaled S has half of the digits, or the digits that the condition number of M allows.

    To first order the error of its logarithm is the sum of magnitudes of its inverse, in units of rounding errors.
    """
    eps = jnp.finfo(d.dtype).eps
    q, triangle = linalg_dense.qr(border)
    inverse = lax.linalg.triangular_solve(triangle, q.conj().mT, left_side=True)
    error = jnp.sum(jnp.abs(inverse), axis=(-2, -1))

    def explained() -> jax.Array:
        condition = _least_condition(d, u, v, columns[..., :, None] * inverse * rows[..., None, :])
        return few | (error <= _LIMIT * condition) | ~jnp.isfinite(error)  # S may be exactly singular

    few = error <= eps**-0.5
    accurate = lax.cond(any_of_all(~few), explained, lambda: few)
    fine: jax.Array = accurate & jnp.all(jnp.isfinite(border), axis=(-2, -1))
    return fine


def _least_condition(d: jax.Array, u: jax.Array, v: jax.Array, inverse: jax.Array) -> jax.Array:
    """Return a lower bound of the condition number of M, from parts of its inverse which the inverse of S shows."""
    count = u.shape[-1]
    unit = jnp.diag((jnp.arange(2 * count) >= count).astype(d.dtype))
    of_v, of_u = (jnp.concatenate([jnp.ones_like(x), x], axis=-1) for x in map(_lengths, (v, u)))
    products = of_v[..., :, None] * of_u[..., None, :]
    largest = jnp.max(jnp.abs(inverse - unit) / jnp.where(products == 0, 1, products), axis=(-2, -1))
    condition: jax.Array = largest * jnp.max(jnp.abs(d + jnp.sum(u * v, axis=-1)), axis=-1)
    return condition


def _lengths(x: jax.Array) -> jax.Array:
    lengths: jax.Array = jnp.linalg.norm(x, axis=-2)
    return lengths


def _scales(d: jax.Array, u: jax.Array, v: jax.Array, places: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the factors of the rows and of the columns of S that make its rounding errors about as large as the precision.

    The rounding errors of an element are proportional to the sum of magnitudes that yields it. These sums are scaled as LAPACK's ``geequ`` does.
    """
    sizes = _bordered(jnp.abs(d), jnp.abs(u), jnp.abs(v), places, sign=1).border
    columns = _reciprocals(jnp.max(sizes, axis=-2))
    return _reciprocals(jnp.max(sizes * columns[..., None, :], axis=-1)), columns


def _reciprocals(x: jax.Array) -> jax.Array:
    usable = (x >= jnp.finfo(x.dtype).tiny) & jnp.isfinite(x)
    return 1 / jnp.where(usable, x, 1)
