"""Inverses and determinants of square Toeplitz matrices on plain JAX arrays, in ``O(n**2)`` time and ``O(n)`` storage.

A matrix is given by all its diagonals: ``T[i, j] = values[..., j - i + n - 1]``, with `values` (..., 2 n - 1) of an inexact dtype.

Z is the down-shift whose n-th power is I, and S the down-shift whose n-th power is -I (its corner is -1). The
difference ``Z T - T S`` has rank two, and so has ``T^{-1} Z - S T^{-1}``. Therefore two columns determine the inverse:

    T x = e_0,        T z = s,        s = (0, t_{1-n}, …, t_{-1}),        t_{i-j} = T[i, j],

    T^{-1} = (skew(x) cyclic(e_0 - z) + skew(e_0 + z) cyclic(x)) / 2,

where ``cyclic(v)`` and ``skew(v)`` are the circulant and the skew-circulant matrix with the first column v. Products
with the inverse are convolutions. The formula does not divide by ``x[0]``, unlike the formula of Gohberg and Semencul,
and holds for every regular T. A multiple of x may be added to z, since circulant matrices commute (G. Heinig and K.
Rost, "Algebraic Methods for Toeplitz-like Matrices and Operators", 1984; G. Ammar and P. Gader, "A variant of the
Gohberg-Semencul formula involving circulant matrices", SIAM Journal on Matrix Analysis and Applications 12 (1991),
534-540).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._numerics import scaling
from ..._numerics import toeplitz_entries as toeplitz
from ..._numerics.banded_systems import mapped_together, one_by_one
from ..._numerics.convolution import cyclic, fast_length
from . import toeplitz_iterations, toeplitz_recursion

if TYPE_CHECKING:
    from collections.abc import Callable

_ACCEPTED = 8
"""The largest residual of a column by Levinson's recursion that is accepted, in units of rounding errors."""


class Columns(NamedTuple):
    """The two columns that determine the inverse of a matrix."""

    x: jax.Array
    """The first column of the inverse, (..., n)."""
    z: jax.Array
    """The other column, up to a multiple of `x`: (..., n)."""
    regular: jax.Array
    """Whether no pivot is zero (for a positive definite matrix: negative), (...)."""


class Factors(NamedTuple):
    """The inverse and the determinant of a matrix, with an error estimate."""

    columns: Columns
    sign: jax.Array
    """The determinant divided by its magnitude, (...); zero if a pivot is."""
    logabsdet: jax.Array
    """The logarithm of that magnitude, (...), real."""
    error: jax.Array
    """The backward error of the recursion or the elimination, (...), real, measured on the column `x` before refinement."""


def factor(values: jax.Array, positive_definite: bool) -> Factors:
    """Return the columns that determine the inverse, and the determinant.

    Parameters
    ----------
    values : jax.Array, (..., 2 n - 1)
        All diagonals, n > 0.
    positive_definite : bool
        Whether the matrix is Hermitian and positive definite. Then the lower triangle is read, and the algorithm is
        Levinson's recursion. Otherwise it is elimination with partial pivoting.

    Returns
    -------
    Factors
    """
    n = (values.shape[-1] + 1) // 2
    values, exponent = _scaled(values)
    columns, sign, logabsdet, residual = _recursion(values) if positive_definite else _eliminated(values)
    logabsdet = logabsdet + n * np.log(2).astype(logabsdet.dtype) * exponent
    error = jnp.max(jnp.abs(residual), axis=-1) / (row_length(values) * jnp.max(jnp.abs(columns.x), axis=-1) + 1)
    return Factors(_scaled_back(columns, exponent), sign, logabsdet, error)


def columns(values: jax.Array, positive_definite: bool, *, eliminates: bool = True) -> Columns:
    """Return the columns that determine the inverse, without the determinant.

    This takes less time than `factor`. A large positive definite matrix is inverted by conjugate gradients, in ``O(n
    log(n))`` for each step. Every large Hermitian matrix is tried, at a comparatively low cost: an x with a small
    residual and ``x[0] > 0`` proves that there is an inverse, and determines it. A general matrix is inverted by
    Levinson's recursion (`toeplitz_recursion`), if the residuals of both columns are small. If one matrix of a batch
    has no such columns, all are inverted as by `factor`.

    Parameters
    ----------
    values, positive_definite
        As for `factor`.
    eliminates : bool
        Whether elimination follows if the recursion fails for a general matrix. Otherwise both columns are then NaN.
    """
    n = (values.shape[-1] + 1) // 2
    if positive_definite and n < toeplitz_iterations.LARGE:
        return factor(values, positive_definite).columns
    method = _columns if n >= toeplitz_iterations.LARGE else _columns_by_recursion
    run = functools.partial(method, positive_definite=positive_definite, eliminates=eliminates)
    return Columns(*mapped_together(lambda values: tuple(run(values)), (True, True, True))(values))


def _columns(values: jax.Array, positive_definite: bool, eliminates: bool) -> Columns:
    unit, *_ = first_column_and_row(values)
    x, ok = iterated_if_hermitian(values, unit[..., None], positive_definite)
    x = x[..., 0]

    def accepted(_: jax.Array, x: jax.Array) -> Columns:
        return Columns(x, _other_column(x / x[..., :1]), jnp.ones(x.shape[:-1], bool))

    def directly(values: jax.Array, _: jax.Array) -> Columns:
        if positive_definite:
            return factor(values, positive_definite).columns
        return _columns_by_recursion(values, positive_definite, eliminates)

    found: Columns = lax.cond(jnp.all(ok & (x[..., 0].real > 0)), accepted, directly, values, x)
    return found


def _columns_by_recursion(values: jax.Array, positive_definite: bool, eliminates: bool) -> Columns:
    scaled, exponent = _scaled(values)
    unit, s, _ = first_column_and_row(scaled)
    solutions = toeplitz_recursion.solve(scaled, jnp.stack([unit, s], axis=-1))
    found, wanted, _ = _improved(scaled, solutions[..., 0], solutions[..., 1])
    residual = wanted - _product(scaled, found)
    image, largest = row_length(scaled)[..., None] * jnp.max(jnp.abs(found), axis=-2), jnp.max(jnp.abs(wanted), axis=-2)
    precision = jnp.finfo(largest.dtype).eps
    small = jnp.max(jnp.abs(residual), axis=-2) <= _ACCEPTED * precision * (image + largest)
    # The residual of a much larger solution, of a singular matrix, tells nothing.
    small &= (precision * image < largest) | (largest == 0)

    def accepted(_: jax.Array, found: jax.Array) -> Columns:
        columns = Columns(found[..., 0], found[..., 1], jnp.ones(found.shape[:-2], bool))
        return _scaled_back(columns, exponent)

    def directly(values: jax.Array, found: jax.Array) -> Columns:
        if eliminates:
            return factor(values, positive_definite).columns
        missing = jnp.full_like(found[..., 0], jnp.nan)
        return Columns(missing, missing, jnp.zeros(found.shape[:-2], bool))

    chosen: Columns = lax.cond(jnp.all(small), accepted, directly, values, found)
    return chosen


def iterated_if_hermitian(values: jax.Array, b: jax.Array, positive_definite: bool) -> tuple[jax.Array, jax.Array]:
    """`iterated`, also for matrices that may not be Hermitian; these take no steps, and have no solution."""
    hermitian = jnp.all(values == values[..., ::-1].conj(), axis=-1) | positive_definite
    # The solution for zeros is zero, and says nothing about the matrix: another right-hand side tells whether it is singular.
    zero = jnp.all(b == 0, axis=(-2, -1), keepdims=True)
    other = jnp.zeros_like(b).at[..., 0, :].set(1)
    # Zeros need no steps, if the matrix is not Hermitian.
    x, ok = iterated(values, jnp.where(hermitian[..., None, None], jnp.where(zero, other, b), 0))
    return jnp.where(zero, 0, x), ok & hermitian


def recursion(values: jax.Array, b: jax.Array) -> jax.Array:
    """Return approximate solutions by Levinson's recursion, of the linear systems that `iterated` solves; NaN if it fails."""
    values, b, unscaled = scaled_system(values, b)
    return unscaled(toeplitz_recursion.solve(values, b))


def scaled_system(values: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array, Callable[[jax.Array], jax.Array]]:
    """Return a linear system with numbers of about 1, and the function that maps its solution to the solution of this one."""
    values, exponent = _scaled(values)
    columns, exponents = _scaled(b.mT)
    return values, columns.mT, functools.partial(_unscaled, exponent=exponent, exponents=exponents)


def iterated(values: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Solve positive definite linear systems by conjugate gradients, and return whether they converged.

    Parameters
    ----------
    values : jax.Array, (..., 2 n - 1)
        The diagonals; the lower triangle is read.
    b : jax.Array, (..., n, k)
        The right-hand sides, of the same batch shape.

    Returns
    -------
    x : jax.Array, (..., n, k)
    ok : jax.Array of bool, (...)
    """
    n = b.shape[-2]
    values, exponent = _scaled(values)
    columns, exponents = _scaled(b.mT)
    x, ok = toeplitz_iterations.solve(values[..., n - 1 :: -1], columns)
    return _unscaled(x.mT, exponent, exponents), jnp.all(ok, axis=-1)


def _scaled(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the values scaled to about 1, and the exponent of the power of two.

    So no square overflows or underflows, and no bit is lost.
    """
    exponent = scaling.exponent(jnp.max(jnp.abs(values), axis=-1, keepdims=True))
    return values * scaling.power_of_two(-exponent, values.real.dtype), exponent[..., 0]


def _unscaled(x: jax.Array, exponent: jax.Array, exponents: jax.Array) -> jax.Array:
    """Return the solutions, from the solutions of a scaled matrix (...) and scaled right-hand sides (..., k)."""
    for power in (-exponent[..., None], exponents):  # one after the other, since the sum may be out of range
        x = x * scaling.power_of_two(power, x.real.dtype)[..., None, :]
    return x


def _scaled_back(columns: Columns, exponent: jax.Array) -> Columns:
    return columns._replace(x=columns.x * scaling.power_of_two(-exponent, columns.x.real.dtype)[..., None])


def first_column_and_row(values: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the right-hand sides ``e_0`` and s of the two systems, and the first column of T, each (..., n)."""
    n = (values.shape[-1] + 1) // 2
    column = values[..., n - 1 :: -1]
    zero = jnp.zeros_like(column[..., :1])
    s = jnp.concatenate([zero, values[..., : n - 1 : -1]], axis=-1)
    unit = jnp.concatenate([zero + 1, jnp.zeros_like(column[..., 1:])], axis=-1)
    return unit, s, column


def row_length(values: jax.Array) -> jax.Array:
    """Return the larger sum of magnitudes of the first row and the first column: at least half the largest row sum."""
    n = (values.shape[-1] + 1) // 2
    magnitudes = jnp.abs(values)
    return jnp.maximum(jnp.sum(magnitudes[..., :n], axis=-1), jnp.sum(magnitudes[..., n - 1 :], axis=-1))


# ---- positive definite matrices ---------------------------------------------------------------------------------------


def _recursion(values: jax.Array) -> tuple[Columns, jax.Array, jax.Array, jax.Array]:
    n = (values.shape[-1] + 1) // 2
    columns, sign, logabsdet = _levinson(values[..., n - 1 :: -1])
    unit, *_ = first_column_and_row(values)
    lower = values[..., :n]
    hermitian = jnp.concatenate([lower, lower[..., -2::-1].conj()], axis=-1)
    return columns, sign, logabsdet, unit - toeplitz.convolved(1 - n, (n, n), hermitian, columns.x)


def _levinson(c: jax.Array) -> tuple[Columns, jax.Array, jax.Array]:
    """Compute the linear predictors of all orders by Levinson and Durbin's recursion, from the first column c (..., n).

    The predictor of order k solves ``T_k a = beta e_0`` with ``a[0] = 1``. The determinant is the product of all errors
    beta (J. Durbin, "The fitting of time-series models", Review of the International Statistical Institute 28 (1960),
    233-244; Golub and Van Loan, *Matrix Computations*, 4th edition, 4.7). The predictor of the last order, reversed, is
    -z.
    """
    n = c.shape[-1]
    zeros = jnp.zeros((*c.shape[:-1], n), c.dtype)
    backwards = jnp.concatenate([c[..., ::-1], zeros], axis=-1)

    # All vectors have their full length: half of the elements are zero, but nothing is copied, and the loop consists of
    # vectorised code.
    def step(
        k: jax.Array, state: tuple[jax.Array, jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        a, error, logarithm, regular = state
        reversed_c = lax.dynamic_slice_in_dim(backwards, n - 1 - k, n, axis=-1)
        missing = jnp.einsum("...i,...i->...", reversed_c, a)
        reflection = -missing / error
        mirrored = jnp.concatenate([a[..., ::-1].conj(), zeros], axis=-1)
        a = a + reflection[..., None] * lax.dynamic_slice_in_dim(mirrored, n - 1 - k, n, axis=-1)
        error = error * (1 - jnp.square(reflection.real) - jnp.square(reflection.imag))
        return a, error, logarithm + jnp.log(error), regular & ~(error <= 0)

    error = c[..., 0].real
    start = (zeros.at[..., 0].set(1), error, jnp.log(error), ~(error <= 0))
    a, error, logarithm, regular = lax.fori_loop(1, n, step, start)
    fine = jnp.where(regular, 1, jnp.nan).astype(error.dtype)
    x = a * (fine / error)[..., None]
    return Columns(x, _other_column(a), regular), fine.astype(c.dtype), logarithm * fine


def _other_column(a: jax.Array) -> jax.Array:
    """Return z, from the predictor of the last order."""
    return -jnp.concatenate([jnp.zeros_like(a[..., :1]), a[..., :0:-1].conj()], axis=-1)


# ---- all others -------------------------------------------------------------------------------------------------------


def _eliminated(values: jax.Array) -> tuple[Columns, jax.Array, jax.Array, jax.Array]:
    """Solve for x and z by elimination with partial pivoting, with one step of refinement for both."""
    solutions, sign, logabsdet, regular = _eliminate_each(values)
    found, _, residual = _improved(values, solutions[..., 0, :], solutions[..., 1, :])
    found = jnp.where(regular[..., None, None], found, jnp.nan)
    return Columns(found[..., 0], found[..., 1], regular), sign, logabsdet, residual[..., 0]


def _improved(values: jax.Array, x: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Refine both columns once: return them, their right-hand sides, and the residuals before, each (..., n, 2)."""
    # Choose the smallest z, since errors are relative to it.
    norm = jnp.sum(jnp.square(x.real) + jnp.square(x.imag), axis=-1, keepdims=True)
    multiple = jnp.sum(x.conj() * z, axis=-1, keepdims=True) / norm
    z = z - multiple * x
    unit, s, _ = first_column_and_row(values)
    found = jnp.stack([x, z], axis=-1)
    wanted = jnp.stack([unit, s - multiple * unit], axis=-1)
    residual = wanted - _product(values, found)
    return found + times_inverse(x, z, residual), wanted, residual


def _product(values: jax.Array, x: jax.Array) -> jax.Array:
    """Return the product of the matrix and x (..., n, k)."""
    n = x.shape[-2]
    return toeplitz.convolved(1 - n, (n, n), values[..., None, :], x.mT).mT


def _eliminate_each(values: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Eliminate one matrix after the other, since each has its own pivots."""
    n = (values.shape[-1] + 1) // 2
    i = np.arange(n)
    exact = np.exp(1j * np.pi * np.stack([-2 * i, -(2 * i + 1), i]) / n)
    # A separate argument: `custom_vmap` refuses constants that become mapped, as in a branch.
    roots = jnp.broadcast_to(exact.astype(jnp.result_type(values, jnp.complex64)), (*values.shape[:-1], 3, n))
    run = mapped_together(lambda *args: one_by_one(_eliminate, args[0].shape[:-1], *args), (True,) * 4)
    return run(values, roots)


def _eliminate(values: jax.Array, roots: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Eliminate a Cauchy-like matrix by Gauss-Jordan steps with partial pivoting, from its `values` (2 n - 1).

    `roots` (3, n) contains the numbers d, e and ``exp(pi i j / n)`` below.

    The discrete Fourier transform F diagonalises Z to ``diag(d)``. V, the inverse transform with rows multiplied by
    ``exp(pi i j / n)``, diagonalises S to ``diag(e)``. So ``C = F T V`` has the elements ``C[i, j] = (G[:, i] . B[:,
    j]) / (d[i] - e[j])``, with two numbers in each column of G and of B. Elimination keeps this form: each step changes
    G and B by one multiple of a column. Therefore only G and B are stored, and pivots are searched in one column (I.
    Gohberg, T. Kailath and V. Olshevsky, "Fast Gaussian elimination with partial pivoting for matrices with
    displacement structure", Mathematics of Computation 64 (1995), 1557-1576).

    The rows of U would take ``n**2`` numbers. They are not stored, since the finished rows are eliminated, too. These
    are rows of the Schur complement of C in ``[[C, R], [-I, 0]]``, which ends as ``C^{-1} R``. Its elements have the
    same form, with e instead of d (A. Aricò and G. Rodriguez, "A fast solver for linear systems with displacement
    structure", Numerical Algorithms 55 (2010), 529-556). At each step the new row of -I replaces the row of the pivot.
    """
    n = (values.shape[-1] + 1) // 2
    unit, s, column = first_column_and_row(values)
    dtype = roots.dtype
    d, e, turn = roots
    left, right = jnp.stack([unit, column + s]), jnp.stack([(column - s)[::-1], unit[::-1]])
    rows = jnp.concatenate([left, jnp.stack([unit, s])]).astype(dtype)
    # Without norm="ortho", for which JAX makes constants: see `_eliminate_each`.
    root = math.sqrt(n)
    rows = jnp.fft.fft(rows) / root  # G above, the right-hand sides below
    b = jnp.fft.ifft(right.astype(dtype) * turn) * root
    places = lax.iota(jnp.int32, n)

    def at(vector: jax.Array, index: int | jax.Array) -> jax.Array:
        entry: jax.Array = lax.dynamic_index_in_dim(vector, index, -1, keepdims=False)
        return entry

    def step(
        j: jax.Array, state: tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
        rows, b, nodes, done, pivots, swaps = state
        b_j, e_j = at(b, j), at(e, j)
        multipliers = (rows[0] * b_j[0] + rows[1] * b_j[1]) * _reciprocal(nodes - e_j)
        p = jnp.argmax(jnp.where(done < 0, _square(multipliers), -1))
        pivot = at(multipliers, p)
        above = places < p
        swaps = swaps + jnp.sum(above & (done < 0), dtype=jnp.int32)
        row = (at(rows, p) / pivot)[:, None]
        pivot_row = (row[0] * b[0] + row[1] * b[1]) * _reciprocal(at(nodes, p) - e)
        b = b - jnp.where(places > j, pivot_row, 0) * b_j[:, None]
        here = places == p
        rows = jnp.where(here, row, rows - multipliers * row)
        nodes, done = jnp.where(here, e_j, nodes), jnp.where(here, j, done)
        return rows, b, nodes, done, lax.dynamic_update_index_in_dim(pivots, pivot, j, 0), swaps

    start = (rows, b, d, jnp.full(n, -1, jnp.int32), jnp.zeros(n, dtype), jnp.int32(0))
    rows, _, _, done, pivots, swaps = lax.fori_loop(0, n, step, start)
    # Row p contains the element done[p] of the solutions.
    solutions = turn * jnp.fft.ifft(rows[2:, jnp.argsort(done)]) * root
    magnitudes = jnp.abs(pivots)
    # det(C) = det(T) det(F V), and det(F V) is the product of the phases exp(pi i j / n).
    turned = (1, -1j, -1, 1j)[(n - 1) % 4]
    sign = jnp.prod(pivots / magnitudes) * jnp.where(swaps % 2 == 0, turned, -turned)
    if not jnp.iscomplexobj(values):
        solutions, sign = solutions.real, jnp.sign(sign.real)
    # Everything after a zero pivot is NaN.
    singular = jnp.any(magnitudes == 0)
    sign = jnp.where(singular, 0, sign).astype(values.dtype)
    logabsdet = jnp.where(singular, -jnp.inf, jnp.sum(jnp.log(magnitudes)))
    return solutions, sign, logabsdet, ~singular


def _square(z: jax.Array) -> jax.Array:
    return z.real * z.real + z.imag * z.imag


def _reciprocal(z: jax.Array) -> jax.Array:
    """Return ``1 / z`` for magnitudes between ``1 / n`` and 2, without the range checks of a general division."""
    return z.conj() * (1 / _square(z))


# ---- the inverse ------------------------------------------------------------------------------------------------------


def times_inverse(x: jax.Array, z: jax.Array, b: jax.Array) -> jax.Array:
    """Multiply the inverse, given by `x` and `z` (..., n), by b (..., n, k), in ``O(n log(n))`` for each column.

    The error is relative to the norms of x and z. For a badly conditioned matrix the result is an approximation to
    refine.
    """
    # Both columns at once: compiled code contains two convolutions instead of four.
    both = jnp.stack([x, z], axis=-2)[..., :, None, :]
    columns = b.mT
    products = _wrapped(both, columns[..., None, :, :], 1)
    by_x, by_z = products[..., 0, :, :], products[..., 1, :, :]
    products = _wrapped(both, jnp.stack([columns - by_z, by_x], axis=-3), -1)
    return ((products[..., 0, :, :] + by_x + products[..., 1, :, :]) / 2).mT


def times_transposed_inverse(x: jax.Array, z: jax.Array, b: jax.Array) -> jax.Array:
    """Multiply by the inverse of the transpose, which is T with rows and columns in reverse order."""
    return times_inverse(x, z, b[..., ::-1, :])[..., ::-1, :]


def _wrapped(a: jax.Array, b: jax.Array, sign: int) -> jax.Array:
    """Return the cyclic (sign 1) or skew-cyclic (-1) convolution of two sequences, by a longer and faster one."""
    n = a.shape[-1]
    full = _convolution(a, b)
    return full[..., :n] + sign * full[..., n:]


def _convolution(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the convolution of two sequences of length n, followed by a zero: of length 2 n."""
    n = a.shape[-1]
    full = cyclic(a, b, fast_length(2 * n - 1))[..., : 2 * n - 1]
    return lax.pad(full, jnp.zeros((), full.dtype), [(0, 0, 0)] * (full.ndim - 1) + [(0, 1, 0)])


def inverse_diagonal_sums(x: jax.Array, z: jax.Array) -> jax.Array:
    """Return the derivative of ``log(det(T))`` by the diagonals of T in ``O(n log(n))``: diagonal sums of the inverse.

    The result is ``sum over i of T^{-1}[i + k, i]`` for k = 1 - n, …, n - 1. In a product ``skew(a) cyclic(b)`` the
    terms of this sum are ``a[p] b[q]`` with ``p + q = k (mod n)``, counted by the overlap of two windows. For both
    products together, with ``*`` for the convolution and i x for the sequence ``i x[i]``, the sum is

        (n - k) x[k] + w[n + k]    for k >= 0,        w[n + k]    for k < 0,        w = (i x) * z - x * (i z).

    Parameters
    ----------
    x, z : jax.Array, (..., n)

    Returns
    -------
    jax.Array, (..., 2 n - 1)
        In the order of `values`.
    """
    n = x.shape[-1]
    i = jnp.arange(n).astype(x.dtype)
    w = _convolution(i * x, z) - _convolution(x, i * z)
    return w[..., 1:] + jnp.concatenate([jnp.zeros_like(x[..., 1:]), (n - i) * x], axis=-1)
