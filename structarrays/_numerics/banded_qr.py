"""QR factors of banded matrices by Householder reflectors, and products with the unitary factor.

Column j of a matrix with kl sub- and ku superdiagonals has entries in rows up to ``j + kl``, also after the reflectors
of the previous columns. So one reflector ``H_j = I - tau_j v_j v_j^H`` of ``kl + 1`` rows clears it below the diagonal,
and R has ``kl + ku`` superdiagonals: O(n (kl + 1) (kl + ku + 1)) operations in total. See Golub and Van Loan, *Matrix
Computations*, 5.1 and 5.2, and LAPACK's ``larfg`` and ``geqr2``. The only difference from LAPACK is a column without
entries below the diagonal (see `_reflector`).

``v`` (..., k, kl + 1) has the rows ``j, …, j + kl`` of ``v_j``. The first of them is 1, or zero if there is no such
row. ``tau`` (..., k) are the factors. The unitary matrix is ``Q = H_0 H_1 … H_{k-1}``, and ``A = Q R``.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, cast

import jax
import jax.numpy as jnp
from jax import lax

from . import banded_elimination as banded
from . import banded_rows, banded_systems
from .flags import custom_jvp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core.typing import Shape

# The largest number of subdiagonals for which the loop over the columns, written row by row, is compiled to a native
# loop.
_NATIVE_ROWS = 2

# ---- factors -------------------------------------------------------------------------------------------------------


def factor(
    diagonals: Sequence[jax.Array], offsets: Sequence[int], shape: Shape
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Factor a matrix given by its diagonals.

    Parameters
    ----------
    diagonals : sequence of jax.Array
        (..., length), one for each offset; at least one.
    offsets : tuple of int
    shape : tuple of int
        ``(m, n)``. There are ``k = min(m, n)`` reflectors.

    Returns
    -------
    v : jax.Array, (..., k, kl + 1)
    tau : jax.Array, (..., k)
    upper : jax.Array, (..., k, kl + ku + 1)
        Row j of R from its diagonal on, with a real diagonal.
    """
    m, n = shape
    dtype = jnp.result_type(*diagonals)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    kl, ku = banded_rows.bandwidths(offsets)
    k = min(m, n)
    if k == 0 or 0 in batch:
        zeros = jnp.zeros((*batch, k, kl + ku + 1), dtype)
        return zeros[..., : kl + 1], zeros[..., 0], zeros
    rows = banded_rows.from_diagonals(diagonals, offsets, m, dtype)
    # The last reflector ends at row k - 1 + kl; the rows below are zero.
    rows = _with_rows(jnp.broadcast_to(rows, (*batch, *rows.shape[-2:])), k + kl)[..., : k + kl, :]
    return _factor(kl, rows)


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _factor(kl: int, rows: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    def whole_batch(rows: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        return banded_systems.one_by_one(functools.partial(_factor_one, kl), rows.shape[:-2], rows)

    return banded_systems.mapped_together(whole_batch, (True, True, True))(rows)


@_factor.defjvp
def _factor_jvp(
    kl: int, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[tuple[jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]:
    """Differentiate the loop. Every step has a derivative, also if a column is zero."""
    every = jnp.vectorize(functools.partial(_factor_one, kl), signature="(r,w)->(k,l),(k),(k,w)")
    return jax.jvp(every, primals, tangents)


def _factor_one(kl: int, rows: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Factor one matrix of ``k + kl`` rows in row storage."""
    count, width = rows.shape
    # Divide each column by its largest entry, whose square may overflow. This does not change the reflectors.
    sizes: list[jax.Array] | jax.Array = [jnp.pad(jnp.abs(rows[:, c]), (c, width - 1 - c)) for c in range(width)]
    sizes = lax.stop_gradient(functools.reduce(jnp.maximum, sizes))  # the value of column j is at j + kl
    sizes = jnp.where((sizes > 0) & jnp.isfinite(sizes), sizes, 1)
    rows = rows / jnp.stack([sizes[c : c + count] for c in range(width)], 1)
    # The window contains rows j, …, j + kl - 1 from column j on.
    window: list[jax.Array] | jax.Array = [
        jnp.concatenate([rows[i, kl - i :], jnp.zeros(kl - i, rows.dtype)]) for i in range(kl)
    ]
    window = jnp.stack(window) if kl else jnp.zeros((0, width), rows.dtype)
    step = _row_by_row if kl <= _NATIVE_ROWS else _all_rows
    results = lax.scan(step, window, rows[kl:])[1]
    v, tau, upper = results[:, : kl + 1], results[:, kl + 1], results[:, kl + 2 :]
    return v, tau, upper * jnp.stack([sizes[kl + d : kl + d + count - kl] for d in range(width)], 1)


# Both variants compute the same. XLA compiles a few rows, written out one by one, to a native loop, which is thirty
# times as fast. Many rows are not compiled to a native loop, and the code grows. Each returns one array: v, tau and a
# row of R.


def _row_by_row(window: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
    rows = [*window, row]
    alpha, *below = (r[0] for r in rows)
    factor, tau, beta = _reflector(alpha, sum(map(_square, below), start=_square(alpha)))
    v = [jnp.ones_like(alpha), *(x * factor for x in below)]
    inner = tau.conj() * sum((x.conj() * r[1:] for x, r in zip(v, rows, strict=True)), start=jnp.zeros_like(row[1:]))
    first, *rest = (r[1:] - x * inner for x, r in zip(v, rows, strict=True))
    window = jnp.stack([jnp.pad(r, (0, 1)) for r in rest]) if rest else window
    return window, jnp.concatenate([jnp.stack([*v, tau, beta]), first])


def _all_rows(window: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
    rows = jnp.concatenate([window, row[None]])
    x = rows[:, 0]
    factor, tau, beta = _reflector(x[0], jnp.sum(_square(x)))
    v = jnp.concatenate([jnp.ones_like(x[:1]), x[1:] * factor])
    rest = rows[:, 1:]
    rest = rest - (tau.conj() * v)[:, None] * jnp.sum(v.conj()[:, None] * rest, 0)
    return jnp.pad(rest[1:], ((0, 0), (0, 1))), jnp.concatenate([v, jnp.stack([tau, beta]), rest[0]])


def _square(x: jax.Array) -> jax.Array:
    return (x * x.conj()).real


def _reflector(alpha: jax.Array, square: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Reflector of a column x that begins with alpha, from the sum of its squares: ``factor``, ``tau`` and a real
    ``beta``.

    With v = 1 followed by ``factor`` times the rest of x, ``(I - tau v v^H)^H x`` is beta times the first unit vector.
    The sign of beta avoids cancellation. For a column that is zero (or too small for accurate squares), all three are
    zero, and so are all derivatives. A column with only a real first entry is reflected like all others, whereas LAPACK
    leaves it. So the results depend on the column continuously, and have derivatives.
    """
    info = jnp.finfo(square.dtype)
    zero = square < info.tiny / info.eps
    norm = jnp.sqrt(jnp.where(zero, 1, square))
    alpha = jnp.where(zero, 0, alpha)
    beta = jnp.where(alpha.real >= 0, -norm, norm)
    factor, tau = 1 / (alpha - beta), (beta - alpha) / beta
    results = factor, tau, beta.astype(alpha.dtype)
    return cast("tuple[jax.Array, jax.Array, jax.Array]", tuple(jnp.where(zero, 0, result) for result in results))


# ---- products with Q ---------------------------------------------------------------------------------------------------


def unitary(v: jax.Array, tau: jax.Array) -> jax.Array:
    """The factors `tau` for which all reflectors are unitary to rounding, for any `v`.

    ``1 - tau |v|^2`` is the one eigenvalue of a reflector that may differ from 1; only its phase is used. So the value
    hardly changes, but the derivatives by v and tau are derivatives of a function with unitary values.
    """
    square = jnp.sum((v * v.conj()).real, -1)
    positive = square > 0
    return jnp.where(positive, (1 - eigenvalue(v, tau)) / jnp.where(positive, square, 1), 0).astype(v.dtype)


def eigenvalue(v: jax.Array, tau: jax.Array) -> jax.Array:
    """The eigenvalue of each reflector that may differ from 1: its determinant, of modulus 1."""
    square = jnp.sum((v * v.conj()).real, -1)
    value = 1 - tau * square
    if not jnp.iscomplexobj(value):
        return jnp.where(value < 0, -1, 1).astype(value.dtype)
    zero = value == 0
    value = jnp.where(zero, 1, value)
    return value / jnp.abs(value)


def multiply(v: jax.Array, tau: jax.Array, b: jax.Array, m: int, adjoint: bool) -> jax.Array:
    """``Q b`` or (`adjoint`) ``Q^H b``.

    Parameters
    ----------
    v : jax.Array, (..., k, w)
    tau : jax.Array, (..., k)
    b : jax.Array, (..., r, p)
        Padded with zeros if it has fewer rows than `m`. The batch shape broadcasts against the batch shape of the reflectors.
    m : int
        The number of rows.
    adjoint : bool

    Returns
    -------
    jax.Array, (..., m, p)
    """
    batch = jnp.broadcast_shapes(tau.shape[:-1], b.shape[:-2])
    b = jnp.broadcast_to(_with_rows(b, m), (*batch, m, b.shape[-1]))
    k, w = v.shape[-2:]
    if k == 0:
        return b
    reach = k + w - 1

    # Treat the product as a linear system with the adjoint, which is the inverse. So its derivatives are derivatives of
    # a linear system.
    def method(v: jax.Array, tau: jax.Array, b: jax.Array, transposed: bool) -> tuple[jax.Array, jax.Array]:
        v, tau = (v.conj(), tau.conj()) if transposed else (v, tau)
        one = functools.partial(_multiply_one, adjoint != transposed)
        return banded_systems.one_by_one(one, b.shape[:-2], v, tau, b), jnp.array(True)

    def matvec(factors: tuple[jax.Array, jax.Array], x: jax.Array) -> jax.Array:
        inverse = functools.partial(_multiply_one, not adjoint)
        result: jax.Array = jnp.vectorize(inverse, signature="(k,w),(k),(r,p)->(r,p)")(*factors, x)
        return result

    factors = v, unitary(v, tau)
    product, _ = banded_systems.solve(method, factors, (2, 1), matvec, _with_rows(b, reach)[..., :reach, :])
    return jnp.concatenate([product[..., :m, :], b[..., reach:, :]], -2)


def _multiply_one(adjoint: bool, v: jax.Array, tau: jax.Array, b: jax.Array) -> jax.Array:
    """Product for one matrix, b (k + w - 1, p). The reflectors move down the rows for the adjoint, otherwise up, with a
    window of w rows.
    """
    k, w = v.shape
    tau = tau.conj() if adjoint else tau

    def reflected(window: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
        return window - (tau * v)[:, None] * jnp.sum(v.conj()[:, None] * window, 0)

    def down(others: jax.Array, factors: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        row, v, tau = factors
        window = reflected(jnp.concatenate([others, row[None]]), v, tau)
        return window[1:], window[0]

    def up(others: jax.Array, factors: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        row, v, tau = factors
        window = reflected(jnp.concatenate([row[None], others]), v, tau)
        return window[:-1], window[-1]

    if adjoint:
        last, first = lax.scan(down, b[: w - 1], (b[w - 1 :], v, tau))
    else:
        first, last = lax.scan(up, b[k:], (b[:k], v, tau), reverse=True)
    return jnp.concatenate([first, last])


def _with_rows(a: jax.Array, count: int) -> jax.Array:
    """Append rows of zeros up to this number of rows."""
    missing = max(0, count - a.shape[-2])
    return jnp.pad(a, [(0, 0)] * (a.ndim - 2) + [(0, missing), (0, 0)]) if missing else a


# ---- the rank of R -----------------------------------------------------------------------------------------------------


def has_full_rank(diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int, cond: jax.Array) -> jax.Array:
    """Return whether the smallest singular value of an upper triangular matrix is large relative to its largest entry.

    The value is estimated by two steps of inverse iteration (Golub and Van Loan, *Matrix Computations*, 7.6.1 and 8.2.2, with R^H R). A
    column of signs has a component along any singular vector. Each step multiplies it by the square of the reciprocal singular value.
    The estimate is never too small, and accurate if the other singular values are far larger.

    Parameters
    ----------
    diagonals, offsets, n
        The matrix; ``n > 0``, and at least one diagonal.
    cond : jax.Array, (...)
        The bound is this value times the largest entry, times the number of diagonals (the ratio by which the largest singular
        value can exceed the entry), times four: rounding turns a zero singular value into a few rounding errors.

    Returns
    -------
    jax.Array of bool, (...)
        True where there is NaN.
    """
    diagonals, cond = lax.stop_gradient((tuple(diagonals), cond))
    size = functools.reduce(jnp.maximum, [jnp.max(jnp.abs(d), -1) for d in diagonals])
    divisor = jnp.where(size == 0, 1, size)[..., None]
    diagonals = [d / divisor for d in diagonals]
    adjoint, below = [d.conj() for d in diagonals[::-1]], tuple(-k for k in offsets[::-1])
    # Irregular signs: the high bits of multiples of the golden ratio.
    signs = jnp.where(lax.iota(jnp.uint32, n) * jnp.uint32(2654435769) >> 31, 1, -1)
    x = signs.astype(diagonals[0].dtype)[:, None] / math.sqrt(n)
    for _ in range(2):
        y, _ = banded.solve(adjoint, below, n, x)
        reciprocal = _norm(y)
        x, _ = banded.solve(diagonals, offsets, n, y / reciprocal)
        x = x / _norm(x)
    y, _ = banded.solve(adjoint, below, n, x)
    # A singular matrix, or one so close to it that values overflow, gives NaN, which compares as false.
    found = 1 / jnp.maximum(reciprocal, _norm(y))[..., 0, 0]
    return (found > 4 * len(offsets) * cond) | ~jnp.isfinite(size)


def _norm(x: jax.Array) -> jax.Array:
    result: jax.Array = jnp.linalg.norm(x, axis=-2, keepdims=True)
    return result
