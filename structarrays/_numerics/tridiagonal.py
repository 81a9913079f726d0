"""Tridiagonal linear systems in linear time, with derivatives that cost two more solves.

On the CPU there are three algorithms:

* one matrix: LAPACK's ``gtsv``, Gaussian elimination with partial pivoting, through ``jax.lax.linalg``;
* positive definite: elimination without pivoting (LDL^H) and back substitution, a loop each. XLA compiles a loop whose body touches less
  than about 1 KB to native code (``xla_cpu_small_call`` in its HLO), 5 ns per row. Otherwise every iteration costs a microsecond. So the
  loops process only a few linear systems together, which also hides the latency of the divisions;
* a batch: the same elimination, with a stability check. One unstable system sends the batch to LAPACK.

Other devices use ``jax.lax.linalg`` for all linear systems, since a loop over the rows is slow there.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import lax

from . import banded_systems, bands, dense_linalg
from .symbolic import is_symbolic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import jax

# The maximum number of right-hand sides in double precision for which a loop is compiled to a native loop.
_NATIVE_COLUMNS = 4

# The maximum number of rows in each step of a native loop, of numbers of any size, since the indices have their own size.
_NATIVE_ROWS = 4

# Elimination without pivoting is accepted if no update exceeds this factor times the entries that it is added to. The
# backward error of an entry is then the precision times this factor. (Diagonally dominant and positive definite
# matrices stay below 1.)
_GROWTH = 8


# Fewer rows than cuSPARSE accepts, or so few that a dense matrix takes no more time.
_FEW_ROWS = 4

# The residual of a batch, in rounding errors, up to which it is accepted without exchanges of rows.
_RESIDUAL = 16


def solve(
    lower: jax.Array, diag: jax.Array, upper: jax.Array, b: jax.Array, positive_definite: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Solve ``A x = b`` for a tridiagonal ``A``.

    Parameters
    ----------
    lower, diag, upper : jax.Array, (..., n - 1), (..., n), (..., n - 1)
        Diagonals of ``A``, of the dtype of `b`. Batch shapes broadcast.
    b : jax.Array, (..., n, k)
    positive_definite : bool
        Whether ``A`` is known to be Hermitian positive definite. Then `upper` is not read.

    Returns
    -------
    x : jax.Array, (..., n, k)
        NaN where ``A`` is singular (not positive definite).
    ok : jax.Array, bool scalar
        Whether all pivots were nonzero (positive). NaN in `A` or `b` gives NaN in `x` and leaves it True.
    """

    def method(
        lower: jax.Array, diag: jax.Array, upper: jax.Array, b: jax.Array, transposed: bool
    ) -> tuple[jax.Array, jax.Array]:
        if diag.shape[-1] == 1:
            return banded_systems.divide(diag, b, positive_definite)
        if positive_definite:
            upper = lower.conj()
        if transposed:
            lower, upper = upper, lower
        by = _positive_definite_on_cpu if positive_definite else _general_on_cpu
        results: tuple[jax.Array, jax.Array] = lax.platform_dependent(lower, diag, upper, b, cpu=by, default=_anywhere)
        return results

    def matvec(diagonals: Sequence[jax.Array], x: jax.Array) -> jax.Array:
        return bands.matmul_dense(diagonals, (-1, 0, 1), (diag.shape[-1],) * 2, x)

    return banded_systems.solve(method, (lower, diag, upper), (1, 1, 1), matvec, b)


def _anywhere(lower: jax.Array, diag: jax.Array, upper: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    n, batch = diag.shape[-1], diag.shape[:-1]
    if n <= _FEW_ROWS:
        places = jnp.arange(n)
        rows = jnp.zeros((*batch, n, n), b.dtype).at[..., places, places].set(diag)
        rows = rows.at[..., places[1:], places[:-1]].set(lower)
        return dense_linalg.solve(rows.at[..., places[:-1], places[1:]].set(upper), b)
    x = _pivoted(lower, diag, upper, b)
    count = math.prod(batch)
    if is_symbolic(count) or count > 1:
        # cuSPARSE exchanges no rows in a batch.
        accurate = _is_accurate(lower, diag, upper, b, x)
        one_by_one: Callable[..., jax.Array] = functools.partial(banded_systems.one_by_one, _pivoted, batch)
        x = lax.cond(accurate, lambda *_: x, one_by_one, lower, diag, upper, b)
    # The solvers on accelerators do not return pivots: the result for finite input decides.
    finite_input = jnp.all(jnp.array([jnp.all(jnp.isfinite(v)) for v in (lower, diag, upper, b)]))
    return x, jnp.all(jnp.isfinite(x)) | ~finite_input


def _is_accurate(lower: jax.Array, diag: jax.Array, upper: jax.Array, b: jax.Array, x: jax.Array) -> jax.Array:
    """Return whether no entry of a residual exceeds a few rounding errors of the terms that it is a difference of.

    Systems with infinity or NaN do not count, since their solutions are not finite.
    """
    offsets, shape, precision = (-1, 0, 1), (diag.shape[-1],) * 2, jnp.finfo(b.dtype)
    residual = bands.matmul_dense((lower, diag, upper), offsets, shape, x) - b
    sizes = tuple(map(jnp.abs, (lower, diag, upper)))
    terms = bands.matmul_dense(sizes, offsets, shape, jnp.abs(x) + precision.tiny / precision.eps) + jnp.abs(b)
    small = (jnp.abs(residual) <= _RESIDUAL * precision.eps * terms) & jnp.isfinite(terms)
    given = functools.reduce(jnp.logical_and, (jnp.all(jnp.isfinite(d), -1) for d in (lower, diag, upper)))
    given &= jnp.all(jnp.isfinite(b), (-2, -1))
    return jnp.all(jnp.all(small, (-2, -1)) | ~given)


def _general_on_cpu(lower: jax.Array, diag: jax.Array, upper: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    def pivoted() -> tuple[jax.Array, jax.Array]:
        x = _pivoted(lower, diag, upper, b)
        return x, _nonsingular(lower, diag, upper, x)

    if math.prod(diag.shape[:-1]) == 1 or _columns(b) > _NATIVE_COLUMNS:
        return pivoted()
    x, stable = _eliminate(lower, diag, upper, b, False)
    results: tuple[jax.Array, jax.Array] = lax.cond(stable, lambda: (x, stable), pivoted)
    return results


def _positive_definite_on_cpu(
    lower: jax.Array, diag: jax.Array, upper: jax.Array, b: jax.Array
) -> tuple[jax.Array, jax.Array]:
    diag = diag.real.astype(diag.dtype)
    if _columns(b) <= _NATIVE_COLUMNS:
        return _eliminate(lower, diag, upper, b, True)
    # Too many columns for a native loop: LAPACK solves, and an elimination of a single column yields the pivots.
    y, ok = _eliminate(lower, diag, upper, jnp.zeros_like(b[..., :1]), True)
    return _pivoted(lower, diag, upper, b) + y, ok


def _columns(b: jax.Array) -> float:
    return b.shape[-1] * b.dtype.itemsize / 8


def _pivoted(lower: jax.Array, diag: jax.Array, upper: jax.Array, b: jax.Array) -> jax.Array:
    """``jax.lax.linalg.tridiagonal_solve``; NaN for singular systems."""
    zero = jnp.zeros_like(diag[..., :1])
    below, above = jnp.concatenate([zero, lower], -1), jnp.concatenate([upper, zero], -1)
    return lax.linalg.tridiagonal_solve(below, diag, above, b)


def _nonsingular(lower: jax.Array, diag: jax.Array, upper: jax.Array, x: jax.Array) -> jax.Array:
    """Return whether no pivot of Gaussian elimination with partial pivoting is zero.

    ``jax.lax.linalg`` does not return LAPACK's flag, and only sets the whole solution to NaN. So the first entries are
    checked. The pivots are recomputed in the rare case that one of these entries is NaN.
    """

    def from_pivots() -> jax.Array:
        flat = [d.reshape(-1, d.shape[-1]) for d in (lower, diag, upper)]
        return jnp.all(lax.map(lambda system: _pivots_nonzero(*system), tuple(flat)))

    result: jax.Array = lax.cond(jnp.any(jnp.isnan(x[..., 0, 0])), from_pivots, lambda: jnp.array(True))
    return result


def _pivots_nonzero(lower: jax.Array, diag: jax.Array, upper: jax.Array) -> jax.Array:
    def step(
        carry: tuple[jax.Array, jax.Array, jax.Array], row: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array, jax.Array], None]:
        # The current row has the entries p, q in its columns i, i + 1; the next row is (l, d, u).
        p, q, singular = carry
        l, d, u = row
        swap = _size(l) > _size(p)
        pivot = jnp.where(swap, l, p)
        factor = jnp.where(swap, p, l) / pivot
        p = jnp.where(swap, q, d) - factor * jnp.where(swap, d, q)
        q = jnp.where(swap, -factor * u, u)
        return (p, q, singular | (pivot == 0)), None

    above = jnp.concatenate([upper, jnp.zeros_like(diag[:1])])
    start = (diag[0], above[0], jnp.array(False))
    (p, _, singular), _ = lax.scan(step, start, (lower, diag[1:], above[1:]))
    return ~(singular | (p == 0))


def _eliminate(
    lower: jax.Array, diag: jax.Array, upper: jax.Array, b: jax.Array, positive_definite: bool
) -> tuple[jax.Array, jax.Array]:
    """Eliminate without pivoting, a few linear systems at a time.

    Returns the solution and whether, in all linear systems, the pivots are positive, or the elimination is stable. The
    solution is NaN for a pivot that is not positive.
    """
    *_, n, k = b.shape
    systems = [v.reshape(-1, *v.shape[-r:]) for v, r in ((lower, 1), (diag, 1), (upper, 1), (b, 2))]
    count = systems[1].shape[0]
    size = max(1, int(_NATIVE_COLUMNS / _columns(b)))
    size = 1 if is_symbolic(count) else min(count, size)
    unroll = min(_NATIVE_ROWS, max(1, int(_NATIVE_COLUMNS / (size * _columns(b)))))

    def group(systems: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
        l, d, u, right = systems
        return _eliminate_together(l, d, u, right, positive_definite, unroll)

    whole = count // size * size
    x, ok = lax.map(group, tuple(v[:whole].reshape(-1, size, *v.shape[1:]) for v in systems))
    x = x.reshape(whole, n, k)
    if whole < count:
        rest, rest_ok = group([v[whole:] for v in systems])
        x, ok = jnp.concatenate([x, rest]), jnp.append(ok, rest_ok)
    return x.reshape(b.shape), jnp.all(ok)


def _eliminate_together(
    lower: jax.Array, diag: jax.Array, upper: jax.Array, b: jax.Array, positive_definite: bool, unroll: int
) -> tuple[jax.Array, jax.Array]:
    """Apply the Thomas algorithm to several linear systems together: (s, n - 1), (s, n), (s, n - 1) and (s, n, k).

    The loops write each buffer once per iteration, and read no buffer that they write, so that XLA works in place.
    """
    n = diag.shape[1]
    lower, diag, upper = lower[..., None], diag[..., None], upper[..., None]
    pivot = diag[:, :1]
    reciprocal = 1 / pivot
    bad = pivot.real <= 0 if positive_definite else jnp.zeros(pivot.shape, bool)
    ratios = jnp.zeros_like(diag)  # row i: A[i - 1, i] / pivot[i - 1]
    scaled = jnp.zeros_like(b).at[:, :1].set(b[:, :1] * reciprocal)  # row i: y[i] / pivot[i]

    def down(i: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        reciprocal, y, bad, ratios, scaled = carry
        l, d, u = _row(lower, i), _row(diag, i + 1), _row(upper, i)
        ratio = u * reciprocal
        update = l * ratio  # ``l * u`` could overflow or underflow
        pivot = d - update
        if positive_definite:
            bad = bad | (pivot.real <= 0)
        else:
            bad = bad | ~(_size(update) <= _GROWTH * (_size(l) + _size(d) + _size(u)))
        y = _row(b, i + 1) - (l * reciprocal) * y
        ratios = _set_row(ratios, i + 1, ratio)
        reciprocal = 1 / pivot
        return reciprocal, y, bad, ratios, _set_row(scaled, i + 1, y * reciprocal)

    carry = (reciprocal, b[:, :1], bad, ratios, scaled)
    last, _, bad, ratios, scaled = lax.fori_loop(0, n - 1, down, carry, unroll=unroll)

    def up(j: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        i = n - 1 - j
        shift, x = carry
        x_i = _row(scaled, i) - shift
        return _row(ratios, i) * x_i, _set_row(x, i, x_i)

    shift = jnp.zeros_like(b[:, :1])
    if positive_definite:
        shift = jnp.where(bad, jnp.nan, shift)  # spreads to the whole solution
    else:
        bad = bad | ~jnp.isfinite(last)
    _, x = lax.fori_loop(0, n, up, (shift, jnp.zeros_like(b)), unroll=unroll)
    return x, ~jnp.any(bad)


def _row(a: jax.Array, i: int | jax.Array) -> jax.Array:
    return lax.dynamic_slice_in_dim(a, i, 1, 1, allow_negative_indices=False)


def _set_row(a: jax.Array, i: int | jax.Array, row: jax.Array) -> jax.Array:
    return lax.dynamic_update_slice_in_dim(a, row, i, 1, allow_negative_indices=False)


def _size(z: jax.Array) -> jax.Array:
    """|z|; for complex numbers the cheaper |re| + |im| that LAPACK compares."""
    return jnp.abs(z.real) + jnp.abs(z.imag) if jnp.iscomplexobj(z) else jnp.abs(z)
