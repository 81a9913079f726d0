"""Tridiagonal systems in linear time, with derivatives that cost two more solves.

On the CPU, three algorithms share the work:

* one matrix: LAPACK's ``gtsv``, Gaussian elimination with partial pivoting, through ``jax.lax.linalg``;
* positive definite: the LDL^H factorisation and its two substitutions in one loop each. XLA compiles a loop whose
  body touches less than about 1 KB to native code (``xla_cpu_small_call`` in its HLO), 5 ns a row; beyond that every
  iteration costs a microsecond, which is why the unrolling below depends on the number of right-hand sides;
* a large batch: elimination without pivoting on all systems at once, with the batch in the last dimension. A residual
  that shows an unstable elimination anywhere sends the whole batch to LAPACK.

On other devices ``jax.lax.linalg`` solves all of them (a loop over the rows is hopeless there).
"""

import math

import jax.numpy as jnp
from jax import lax

from structarrays.kernels import bands

# From this many systems on, one pass over all of them beats LAPACK on one after the other.
_LARGE_BATCH = 96

# Rows of one right-hand side in double precision that keep a loop body below the limit of native loops.
_NATIVE_ROWS = 4

# Bound on the backward error of an elimination without pivoting, in units of the machine precision.
_TRUSTED_BACKWARD_ERROR = 64


def solve(lower, diag, upper, b, positive_definite=False):
    """Solve ``A x = b`` for a tridiagonal ``A``.

    Parameters
    ----------
    lower, diag, upper : jax.Array, (..., n - 1), (..., n), (..., n - 1)
        Diagonals of ``A``, of the dtype of `b`. Batches broadcast.
    b : jax.Array, (..., n, k)
    positive_definite : bool
        Whether ``A`` is known to be Hermitian positive definite. Then `upper` is not read.

    Returns
    -------
    x : jax.Array, (..., n, k)
        NaN where ``A`` is singular (not positive definite).
    ok : jax.Array, bool scalar
        Whether all pivots were nonzero (positive). NaN in `A` or `b` gives NaN in `x` and leaves it True.

    Notes
    -----
    Derivatives follow the implicit function theorem: ``A dx = db - dA x``, and in reverse a solve with the transpose
    and the three diagonals of an outer product. Nothing differentiates through the elimination.
    """
    n, k = b.shape[-2:]
    matrix_batch = jnp.broadcast_shapes(lower.shape[:-1], diag.shape[:-1], upper.shape[:-1])
    batch = jnp.broadcast_shapes(matrix_batch, b.shape[:-2])
    if n == 0 or 0 in batch:
        return jnp.zeros((*batch, n, k), b.dtype), jnp.array(True)
    if k == 0:
        x, ok = solve(lower, diag, upper, jnp.zeros((*batch, n, 1), b.dtype), positive_definite)
        return x[..., :0], ok
    b = jnp.broadcast_to(b, (*batch, n, k))
    if math.prod(matrix_batch) == 1 and math.prod(batch) > 1:
        # One matrix: all right-hand sides are its columns.
        columns = jnp.moveaxis(b, -2, 0)
        diagonals = (d.reshape(d.shape[-1:]) for d in (lower, diag, upper))
        x, ok = solve(*diagonals, columns.reshape(n, -1), positive_definite)
        return jnp.moveaxis(x.reshape(columns.shape), 0, -2), ok
    lower, diag, upper = (jnp.broadcast_to(d, (*batch, d.shape[-1])) for d in (lower, diag, upper))

    def matvec(x):
        return bands.matmul_dense((lower, diag, upper), (-1, 0, 1), (n, n), x)

    if positive_definite:

        def forward(_, b):
            return _solve(_positive_definite_cpu, lower, diag, lower.conj(), b)

        def transposed(_, b):
            return _solve(_positive_definite_cpu, lower.conj(), diag, lower, b)

    else:

        def forward(_, b):
            return _solve(_general_cpu, lower, diag, upper, b)

        def transposed(_, b):
            return _solve(_general_cpu, upper, diag, lower, b)

    return lax.custom_linear_solve(matvec, b, forward, transposed, has_aux=True)


def _solve(cpu, lower, diag, upper, b):
    """Solve on whichever platform; all batches are equal, no dimension is empty."""
    return lax.platform_dependent(lower, diag, upper, b, cpu=cpu, default=_anywhere)


def _anywhere(lower, diag, upper, b):
    x = _pivoted(lower, diag, upper, b)
    # The accelerators' solvers tell no pivots: what they make of finite input must do.
    finite_input = jnp.all(jnp.array([jnp.all(jnp.isfinite(v)) for v in (lower, diag, upper, b)]))
    return x, jnp.all(jnp.isfinite(x)) | ~finite_input


def _general_cpu(lower, diag, upper, b):
    if math.prod(diag.shape[:-1]) < _LARGE_BATCH:
        x = _pivoted(lower, diag, upper, b)
        return x, _nonsingular(lower, diag, upper, x)
    x, _ = _lanes(lower, diag, upper, b, False)

    def trusted():
        return x, jnp.array(True)

    def pivoted():
        x = _pivoted(lower, diag, upper, b)
        return x, _nonsingular(lower, diag, upper, x)

    return lax.cond(_backward_stable(lower, diag, upper, b, x), trusted, pivoted)


def _positive_definite_cpu(lower, diag, upper, b):
    columns = b.size // diag.shape[-1] * b.dtype.itemsize / 8
    if columns <= _NATIVE_ROWS or math.prod(diag.shape[:-1]) >= _LARGE_BATCH:
        return _lanes(lower, diag, upper, b, True)
    # In between, a loop over the rows is not native and has too little to do: LAPACK solves, and the pivots, whose
    # own loop is native, say whether the matrix is positive definite.
    flat = [d.reshape(-1, d.shape[-1]) for d in (lower, diag)]
    ok = lax.map(lambda system: _pivots_positive(*system), tuple(flat)).reshape(diag.shape[:-1])
    x = _pivoted(lower, diag, upper, b)
    return jnp.where(ok[..., None, None], x, jnp.nan), jnp.all(ok)


def _pivoted(lower, diag, upper, b):
    """``jax.lax.linalg.tridiagonal_solve``; NaN for singular systems."""
    zero = jnp.zeros_like(diag[..., :1])
    below, above = jnp.concatenate([zero, lower], -1), jnp.concatenate([upper, zero], -1)
    return lax.linalg.tridiagonal_solve(below, diag, above, b)


def _nonsingular(lower, diag, upper, x):
    """Whether no pivot of Gaussian elimination with partial pivoting is zero.

    LAPACK knows but ``jax.lax.linalg`` keeps it to itself and only sets the whole solution to NaN. So the first
    entries are looked at, and the pivots are computed once more in the rare case that one of them is NaN.
    """

    def from_pivots():
        flat = [d.reshape(-1, d.shape[-1]) for d in (lower, diag, upper)]
        return jnp.all(lax.map(lambda system: _pivots_nonzero(*system), tuple(flat)))

    return lax.cond(jnp.any(jnp.isnan(x[..., 0, 0])), from_pivots, lambda: jnp.array(True))


def _pivots_nonzero(lower, diag, upper):
    def step(carry, row):
        # The current row has the entries p, q in its columns i, i + 1; the next row is (l, d, u).
        p, q, singular = carry
        l, d, u = row
        swap = jnp.abs(l) > jnp.abs(p)
        pivot = jnp.where(swap, l, p)
        factor = jnp.where(swap, p, l) / pivot
        p = jnp.where(swap, q, d) - factor * jnp.where(swap, d, q)
        q = jnp.where(swap, -factor * u, u)
        return (p, q, singular | (pivot == 0)), None

    above = jnp.concatenate([upper, jnp.zeros_like(diag[:1])])
    start = (diag[0], above[0], jnp.array(False))
    (p, _, singular), _ = lax.scan(step, start, (lower, diag[1:], above[1:]))
    return ~(singular | (p == 0))


def _pivots_positive(lower, diag):
    def step(carry, row):
        p, bad = carry
        l, d = row
        p = d.real - (l * l.conj()).real / p
        return (p, bad | (p <= 0)), None

    start = (diag[0].real, diag[0].real <= 0)
    (_, bad), _ = lax.scan(step, start, (lower, diag[1:]))
    return ~bad


def _lanes(lower, diag, upper, b, positive_definite):
    """Eliminate with the rows in the first dimension, and the systems and columns in the last ones."""
    *batch, n, k = b.shape
    systems = math.prod(batch)
    lower, diag, upper = (d.reshape(systems, -1).T[:, :, None] for d in (lower, diag, upper))
    x, ok = _eliminate(lower, diag, upper, jnp.moveaxis(b.reshape(systems, n, k), 1, 0), positive_definite)
    return jnp.moveaxis(x, 0, 1).reshape(b.shape), ok


def _eliminate(lower, diag, upper, b, positive_definite):
    """Gaussian elimination without pivoting (the Thomas algorithm), (n, systems, 1) and (n, systems, columns).

    Returns the solution and, if `positive_definite`, whether all pivots were positive; where one was not, the
    solution is NaN. The loops write each buffer once an iteration, which XLA does in place.
    """
    n = diag.shape[0]
    unroll = max(1, int(_NATIVE_ROWS / max(1, b[0].size * b.dtype.itemsize / 8)))
    reciprocal = 1 / diag[0]
    bad = diag[0].real <= 0
    ratios = jnp.zeros_like(diag)  # row i: A[i - 1, i] / pivot[i - 1]
    scaled = jnp.zeros_like(b).at[0].set(b[0] * reciprocal)  # row i: y[i] / pivot[i]

    def down(i, carry):
        reciprocal, y, bad, ratios, scaled = carry
        l, u = _row(lower, i), _row(upper, i)
        pivot = _row(diag, i + 1) - (l * u) * reciprocal
        y = _row(b, i + 1) - (l * reciprocal) * y
        ratios = _set_row(ratios, i + 1, u * reciprocal)
        reciprocal = 1 / pivot
        if positive_definite:
            bad = bad | (pivot.real <= 0)
        return reciprocal, y, bad, ratios, _set_row(scaled, i + 1, y * reciprocal)

    carry = (reciprocal, b[0], bad, ratios, scaled)
    _, _, bad, ratios, scaled = lax.fori_loop(0, n - 1, down, carry, unroll=unroll)

    def up(j, carry):
        i = n - 1 - j
        shift, x = carry
        x_i = _row(scaled, i) - shift
        return _row(ratios, i) * x_i, _set_row(x, i, x_i)

    shift = jnp.zeros_like(b[0])
    if positive_definite:
        shift = jnp.where(bad, jnp.nan, shift)  # spreads to the whole solution
    _, x = lax.fori_loop(0, n, up, (shift, jnp.zeros_like(b)), unroll=unroll)
    return x, ~jnp.any(bad)


def _row(a, i):
    return lax.dynamic_slice_in_dim(a, i, 1, 0, allow_negative_indices=False)[0]


def _set_row(a, i, row):
    return lax.dynamic_update_slice_in_dim(a, row[None], i, 0, allow_negative_indices=False)


def _backward_stable(lower, diag, upper, b, x):
    """Whether each system's solution solves exactly a system that differs by rounding: |Ax - b| ~ |A||x| + |b|."""
    shape = (diag.shape[-1], diag.shape[-1])
    diagonals = (lower, diag, upper)
    residual = jnp.abs(bands.matmul_dense(diagonals, (-1, 0, 1), shape, x) - b)
    scale = bands.matmul_dense([jnp.abs(d) for d in diagonals], (-1, 0, 1), shape, jnp.abs(x)) + jnp.abs(b)
    tolerance = _TRUSTED_BACKWARD_ERROR * jnp.finfo(b.dtype).eps
    return jnp.all(jnp.max(residual, -2) <= tolerance * jnp.max(scale, -2))
