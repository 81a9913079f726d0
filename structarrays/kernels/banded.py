"""Solving, determinants and Cholesky factors of square banded matrices.

Matrices are tuples of diagonals (..., n - |offset|) and their static offsets, as in `bands`. Everything takes
O(n kl (kl + ku)) operations and O(n (kl + ku)) memory for ``kl`` sub- and ``ku`` superdiagonals, derivatives included.
Which algorithm runs follows from the offsets:

=====================  =================================================================================
diagonal               a division
triangular             substitution
tridiagonal            `tridiagonal`
positive definite      LDL^H (`banded_cholesky`)
otherwise              elimination without pivoting if that turns out stable, else with (`banded_lu`)
=====================  =================================================================================

These loops over the rows are for the CPU. On other devices `cyclic_reduction` comes first, but for diagonal and tridiagonal systems, and
leaves to them what it cannot solve.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from structarrays.kernels import banded_cholesky, banded_lu, banded_rows, banded_systems, cyclic_reduction, tridiagonal


def solve(diagonals, offsets, n, b, positive_definite=False):
    """Solve ``A x = b``.

    Parameters
    ----------
    diagonals, offsets, n
        The matrix, of the dtype of `b`.
    b : jax.Array, (..., n, k)
        Its batch broadcasts with that of the matrix.
    positive_definite : bool
        Whether ``A`` is known to be Hermitian positive definite. Then the entries above the diagonal are not read.

    Returns
    -------
    x : jax.Array, (..., n, k)
        NaN where ``A`` is singular (not positive definite).
    ok : jax.Array, bool scalar
        Whether all pivots were nonzero (positive). NaN in `A` or `b` gives NaN in `x` and leaves it True.
    """
    batch = jnp.broadcast_shapes(b.shape[:-2], *(d.shape[:-1] for d in diagonals))
    diagonals, offsets = _nonempty(diagonals, offsets, n)
    if not diagonals:
        b = jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
    if {-1, 1} <= set(offsets) <= {-1, 0, 1}:
        main = diagonals[1] if 0 in offsets else jnp.zeros((*diagonals[0].shape[:-1], n), b.dtype)
        return tridiagonal.solve(diagonals[0], main, diagonals[-1], b, positive_definite)

    def kernel(*args):
        return _solve(args[:-1], offsets, n, args[-1], positive_definite)

    def transposed(*args):
        *diagonals, b = args
        if positive_definite:
            return _solve([d.conj() for d in diagonals], offsets, n, b, True)
        return _solve(diagonals[::-1], tuple(-k for k in offsets[::-1]), n, b, False)

    return banded_systems.solve(kernel, transposed, diagonals, offsets, n, b)


def explanation(offsets, dtype, positive_definite=False):
    """What `solve` does for these offsets, why, and what it costs: a sentence for users."""
    kl, ku = banded_rows.bandwidths(offsets)
    if kl == ku == 0:
        return "a division of each row; O(n) for each column"
    if (kl, ku) != (1, 1) and jax.default_backend() != "cpu":
        w = max(kl, ku)
        return f"block cyclic reduction, O(n w**2) in some log2(n / w) steps, w = {w}; in order if its backward error is large"
    if kl == 0 or ku == 0:
        return f"substitution, since the matrix is triangular; O(n w) for each column, w = {kl + ku}"
    if positive_definite:
        return (
            f"elimination without pivots (LDL^H), since it is assumed positive definite; O(n w**2), w = {max(kl, ku)}"
        )
    if kl == ku == 1:
        return "tridiagonal elimination with pivots, as nothing is assumed; O(n)"
    how = (
        "without pivots if that turns out stable, else with," if banded_lu.is_native(kl, ku, dtype) else "with pivots,"
    )
    return f"elimination {how} as nothing is assumed; O(n w (w + u)), w = {kl} and u = {ku} diagonals below and above"


def slogdet(diagonals, offsets, n):
    """Sign (phase) of the determinant and logarithm of its magnitude; 0 and -inf for a singular matrix."""
    dtype = jnp.result_type(*diagonals) if diagonals else jnp.result_type(float)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    diagonals, offsets = _nonempty(diagonals, offsets, n)
    if n == 0 or 0 in batch:
        return jnp.ones(batch, dtype), jnp.zeros(batch, jnp.finfo(dtype).dtype)
    rows = banded_rows.from_diagonals(diagonals, offsets, n, dtype)
    rows = jnp.broadcast_to(rows, (*batch, *rows.shape[-2:]))
    return _slogdet(*banded_rows.bandwidths(offsets), rows)


def selected_inverse(diagonals, offsets, n):
    """The diagonals of the inverse at the same offsets, NaN for a singular matrix, and whether all matrices are regular."""
    dtype = jnp.result_type(*diagonals) if diagonals else jnp.result_type(float)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    if n == 0 or 0 in batch:
        return tuple(jnp.zeros((*batch, max(0, n - abs(k))), dtype) for k in offsets), jnp.array(True)
    inside, their_offsets = _nonempty(diagonals, offsets, n)
    rows = banded_rows.from_diagonals(inside, their_offsets, n, dtype)
    kl, ku = banded_rows.bandwidths(their_offsets)
    w = max(kl, ku)  # the elements stand at the places of the transpose
    rows = jnp.pad(jnp.broadcast_to(rows, (*batch, *rows.shape[-2:])), [(0, 0)] * (len(batch) + 1) + [(w - kl, w - ku)])
    sign, _, gradient = _slogdet_and_gradient(w, w, rows)
    gradient = jnp.where((sign == 0)[..., None, None], jnp.nan, gradient)
    found = tuple(
        gradient[..., max(0, k) : n + min(0, k), w - k] if -n < k < n else jnp.zeros((*batch, 0), dtype)
        for k in offsets
    )
    return found, ~jnp.any(sign == 0)


def cholesky(diagonals, offsets, n, upper=False):
    """Cholesky factor of the Hermitian part of a matrix, ``L L^H`` or (`upper`) ``U^H U``.

    Returns
    -------
    diagonals, offsets
        Of the factor, NaN where the matrix is not positive definite.
    ok : jax.Array, bool scalar
        Whether all pivots were positive.
    """
    dtype = jnp.result_type(*diagonals) if diagonals else jnp.result_type(float)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    diagonals, offsets = _nonempty(diagonals, offsets, n)
    if n == 0:
        return (), (), jnp.array(True)
    w = max(banded_rows.bandwidths(offsets))
    if 0 in batch:
        factor, ok = jnp.zeros((*batch, n, w + 1), dtype), jnp.array(True)
    else:
        stored = dict(zip(offsets, diagonals, strict=True))
        lower = {}
        for k in range(w + 1):
            if k in stored or -k in stored:
                zero = jnp.zeros((*batch, n - k), dtype)
                lower[-k] = (stored.get(-k, zero) + stored.get(k, zero).conj()) / 2
        below = tuple(sorted(lower)) or (0,)
        if not lower:
            lower[0] = jnp.zeros((*batch, n), dtype)
        factor, ok = _cholesky(banded_cholesky.from_diagonals([lower[k] for k in below], below, n, dtype))
    diagonals = [factor[..., : n - k, k] for k in range(w + 1)]
    if upper:
        return tuple(d.conj() for d in diagonals), tuple(range(w + 1)), ok
    return tuple(diagonals[::-1]), tuple(range(-w, 1)), ok


def _nonempty(diagonals, offsets, n):
    """The diagonals that lie inside of the matrix."""
    pairs = [(d, k) for d, k in zip(diagonals, offsets, strict=True) if -n < k < n]
    return tuple(d for d, _ in pairs), tuple(k for _, k in pairs)


# Solving


def _solve(diagonals, offsets, n, b, positive_definite):
    """The kernel of `solve` for a whole batch."""
    if set(offsets) <= {0}:
        diag = diagonals[0] if diagonals else jnp.zeros((*b.shape[:-2], n), b.dtype)
        return banded_systems.divide(diag, b, positive_definite)

    def in_order(*args):
        return _solve_in_order(args[:-1], offsets, n, args[-1], positive_definite)

    def log_depth(*args):
        return cyclic_reduction.solve_banded(args[:-1], offsets, n, args[-1], positive_definite)

    return cyclic_reduction.or_in_order(in_order, log_depth)(*diagonals, b)


def _solve_in_order(diagonals, offsets, n, b, positive_definite):
    batch = b.shape[:-2]
    kl, ku = banded_rows.bandwidths(offsets)
    if positive_definite:
        lower = [(d, k) for d, k in zip(diagonals, offsets, strict=True) if k <= 0]
        below = tuple(k for _, k in lower)
        columns = banded_cholesky.from_diagonals([d for d, _ in lower], below, n, b.dtype)
        x, ok = banded_systems.one_by_one(banded_cholesky.solve, batch, columns, b)
    elif kl == 0 or ku == 0:
        diag = diagonals[offsets.index(0)] if 0 in offsets else jnp.zeros((*batch, n), b.dtype)
        pairs = sorted((abs(k), k, d) for d, k in zip(diagonals, offsets, strict=True) if k)
        coefficients = jnp.stack([banded_rows.aligned(d, k, n) for _, k, d in pairs], -1)
        distances = tuple(distance for distance, *_ in pairs)
        system = functools.partial(_substitute, distances=distances, reverse=kl == 0)
        x, ok = banded_systems.one_by_one(system, batch, coefficients, diag, b)
    else:
        rows = banded_rows.from_diagonals(diagonals, offsets, n, b.dtype)
        x, ok = banded_systems.one_by_one(functools.partial(_eliminate, kl=kl, ku=ku), batch, rows, b)
    return x, jnp.all(ok)


def _substitute(coefficients, diag, b, distances, reverse):
    b, ok = banded_systems.divide(diag, b, False)
    return banded_rows.substitute(coefficients / diag[:, None], distances, b, reverse), ok


def _eliminate(rows, b, kl, ku):
    """Solve one system by elimination."""

    def pivoted():
        upper, y, *_ = banded_lu.eliminate_pivoted(rows, b, kl, ku)
        ok = ~jnp.any(upper[:, 0] == 0)
        return jnp.where(ok, _substitute_upper(upper, y), jnp.nan), ok

    if not banded_lu.is_native(kl, ku, rows.dtype):
        return pivoted()
    factors = banded_lu.eliminate(rows, kl, ku)

    def unpivoted():
        y = banded_rows.substitute(factors[:, :kl][:, ::-1], tuple(range(1, kl + 1)), b)
        return _substitute_upper(factors[:, kl:], y), jnp.array(True)

    return lax.cond(banded_lu.is_stable(factors, rows, kl, ku), unpivoted, pivoted)


def _substitute_upper(upper, y):
    """Solve ``U x = y``; row j of `upper` begins at the diagonal."""
    diag = upper[:, :1]
    return banded_rows.substitute(upper[:, 1:] / diag, tuple(range(1, upper.shape[1])), y / diag, reverse=True)


# Determinants


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _slogdet(kl, ku, rows):
    return _batched(rows, kl=kl, ku=ku, gradient=False)


@_slogdet.defjvp
def _(kl, ku, primals, tangents):
    # d log det A = trace(inv(A) dA)
    (rows,), (tangent,) = primals, tangents
    sign, logabsdet, gradient = _slogdet_and_gradient(kl, ku, rows)
    change = jnp.sum(gradient * tangent, (-2, -1))
    if jnp.iscomplexobj(rows):
        return (sign, logabsdet), (sign * 1j * change.imag, change.real)
    return (sign, logabsdet), (jnp.zeros_like(sign), change)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _slogdet_and_gradient(kl, ku, rows):
    """And the derivative of the logarithm by the entries, in the storage of `rows`."""
    return _batched(rows, kl=kl, ku=ku, gradient=True)


@_slogdet_and_gradient.defjvp
def _(kl, ku, primals, tangents):
    """The second derivative goes through a loop that keeps no more than its window."""
    (rows,), (tangent,) = primals, tangents

    def pivoted(rows):
        upper, _, multipliers, pivots = banded_lu.eliminate_pivoted(
            rows, jnp.zeros((rows.shape[0], 0), rows.dtype), kl, ku
        )
        return banded_lu.logdet_gradient_pivoted(upper, multipliers, pivots, kl)

    results = _slogdet_and_gradient(kl, ku, rows)
    changes = jax.jvp(functools.partial(_slogdet, kl, ku), (rows,), (tangent,))[1]
    return results, (*changes, jax.jvp(jnp.vectorize(pivoted, signature="(n,w)->(n,w)"), (rows,), (tangent,))[1])


def _batched(rows, **static):
    """`_determinant` of each matrix."""

    def in_order(rows):
        return banded_systems.one_by_one(functools.partial(_determinant, **static), rows.shape[:-2], rows)

    if static["kl"] == 0 or static["ku"] == 0:  # no loop
        whole_batch = in_order
    else:
        log_depth = functools.partial(cyclic_reduction.slogdet_banded, **static)
        whole_batch = cyclic_reduction.or_in_order(in_order, log_depth)
    return banded_systems.mapped_together(whole_batch, (True,) * (2 + static["gradient"]))(rows)


def _determinant(rows, kl, ku, gradient):
    """Sign, logarithm and (`gradient`) the derivative of the logarithm, of one matrix."""
    one = jnp.ones((), rows.dtype)

    def from_pivots(pivots, sign, derivative):
        values = sign * jnp.prod(jnp.sign(pivots)), jnp.sum(jnp.log(jnp.abs(pivots)))
        return (*values, derivative()) if gradient else values

    def pivoted():
        upper, _, multipliers, pivots = banded_lu.eliminate_pivoted(
            rows, jnp.zeros((rows.shape[0], 0), rows.dtype), kl, ku
        )
        odd = jnp.sum(pivots != 0) % 2 == 1
        return from_pivots(
            upper[:, 0],
            jnp.where(odd, -one, one),
            lambda: banded_lu.logdet_gradient_pivoted(upper, multipliers, pivots, kl),
        )

    if kl == 0 or ku == 0:
        return from_pivots(rows[:, kl], one, lambda: jnp.zeros_like(rows).at[:, kl].set(1 / rows[:, kl]))
    if not banded_lu.is_native(kl, ku, rows.dtype):
        return pivoted()
    factors = banded_lu.eliminate(rows, kl, ku)
    return lax.cond(
        banded_lu.is_stable(factors, rows, kl, ku),
        lambda: from_pivots(factors[:, kl], one, lambda: banded_lu.logdet_gradient(factors, kl, ku)),
        pivoted,
    )


# Cholesky


@jax.custom_jvp
def _cholesky(columns):
    def whole_batch(columns):
        factor, ok = banded_systems.one_by_one(banded_cholesky.cholesky, columns.shape[:-2], columns)
        return factor, jnp.all(ok)

    return banded_systems.mapped_together(whole_batch, (True, False))(columns)


@_cholesky.defjvp
def _(primals, tangents):
    (columns,), (tangent,) = primals, tangents
    factor, ok = _cholesky(columns)
    change = jnp.vectorize(banded_cholesky.cholesky_tangent, signature="(n,w),(n,w)->(n,w)")(factor, tangent)
    return (factor, ok), (change, jnp.zeros(ok.shape, jax.dtypes.float0))
