"""LDL^H and Cholesky factorisation of one Hermitian positive definite banded matrix.

Columns from the diagonal down are the storage: ``columns[j, k] = A[j + k, j]``, (n, w + 1).
"""

import jax.numpy as jnp
from jax import lax

from structarrays.kernels import banded_rows, bands

# Bytes of a column up to which the flat loop is native.
_NATIVE_BYTES = 104


def from_diagonals(diagonals, offsets, n, dtype):
    """Column storage of the lower triangle, offsets <= 0; the imaginary part of the diagonal is dropped."""
    diagonals = [d if k else d.real.astype(dtype) for d, k in zip(diagonals, offsets, strict=True)]
    # The columns of a matrix are the rows of its transpose.
    return banded_rows.from_diagonals(*bands.transpose(diagonals, tuple(offsets)), n, dtype)


def ldl(columns):
    """Factor ``A = L D L^H`` with unit lower triangular L.

    Returns ``columns`` of ``L D``: the pivots, D, are its first entries.
    """
    n, width = columns.shape
    w = width - 1
    if w == 0:
        return columns
    if width * columns.dtype.itemsize > _NATIVE_BYTES:
        return _ldl_by_columns(columns)
    # One flat loop over the pairs of columns (j, j + k): A[j + k, :w] -= A[j, k : k + w] conj(A[j, k]) / A[j, 0].
    # The rows are w longer so that the slice may run over their end.
    stride = 2 * w + 1
    flat = jnp.pad(columns, ((0, w), (0, w))).reshape(-1)

    def step(t, flat):
        j, k = t // w, t % w + 1
        source = _slice(flat, j * stride + k, w)
        target = _slice(flat, (j + k) * stride, w)
        factor = source[0].conj() / _slice(flat, j * stride, 1)[0]
        target = target - factor * source
        return lax.dynamic_update_slice_in_dim(flat, target, (j + k) * stride, 0, allow_negative_indices=False)

    flat = lax.fori_loop(0, n * w, step, flat)
    return flat.reshape(n + w, stride)[:n, :width]


def _ldl_by_columns(columns):
    """The same for wide bands: a loop over the columns with a dense window of what is left of the next ones."""
    w = columns.shape[1] - 1

    def step(correction, column):
        # correction[b, a] is what earlier columns added to entry (j + a, j + b)
        column = correction[0] + column
        below = column[1:]
        update = (below.conj() / column[0])[:, None] * below
        return jnp.pad(correction[1:, 1:] - update, ((0, 1), (0, 1))), column

    return lax.scan(step, jnp.zeros((w + 1, w + 1), columns.dtype), columns)[1]


def substitute(factors, b):
    """Solve ``A x = b``, b (n, k), by what `ldl` returns. Returns x and whether all pivots are positive; x is NaN if not."""
    pivots, below = factors[:, 0], tuple(range(1, factors.shape[1]))
    ok = ~jnp.any(pivots.real <= 0)
    # A = (L D) D^-1 (L D)^H: the first solution is inv(D) inv(L) b.
    y = banded_rows.substitute_by_columns(factors, below, b, pivots, first=1)
    x = banded_rows.substitute((factors / pivots[:, None]).conj(), below, y, first=1)
    return jnp.where(ok, x, jnp.nan), ok


def cholesky(columns):
    """Columns of the lower Cholesky factor, and whether all pivots are positive; NaN if not."""
    factors = ldl(columns)
    pivots = factors[:, :1].real
    ok = ~jnp.any(pivots <= 0)
    return jnp.where(ok, factors / jnp.sqrt(pivots), jnp.nan), ok


def cholesky_tangent(factor, tangent):
    """Columns of dL for ``A = L L^H``, given those of L and of dA.

    Column by column from ``dA = dL L^H + L dL^H``; the loop is linear in dA and keeps only L for its transpose.
    """
    w = factor.shape[1] - 1

    def step(correction, columns):
        # correction[a, b]: the part of dA[j + a, j + b] that the earlier columns of L and dL make up
        l, d = columns
        d = d - jnp.append(correction[:, 0], jnp.zeros(1, d.dtype)) if w else d
        d0 = d[:1].real / (2 * l[:1].real)
        below = (d[1:] - l[1:] * d0) / l[0]
        update = below[:, None] * l[1:].conj() + l[1:, None] * below.conj()
        correction = jnp.pad(correction[1:, 1:], ((0, 1), (0, 1))) + update if w else correction
        return correction, jnp.concatenate([d0.astype(d.dtype), below])

    return lax.scan(step, jnp.zeros((w, w), factor.dtype), (factor, tangent))[1]


def _slice(a, start, size):
    return lax.dynamic_slice_in_dim(a, start, size, 0, allow_negative_indices=False)
