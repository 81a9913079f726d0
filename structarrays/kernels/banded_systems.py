"""What all solvers of banded systems share: batches, derivatives, and being mapped.

A *kernel* here takes the diagonals of square matrices and right-hand sides ``b`` (..., n, k), all of one dtype and with
one batch shape and no empty dimension, and returns ``x`` (..., n, k) and one boolean for the whole batch.
"""

import math

import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap

from structarrays.kernels import bands


def solve(kernel, transposed, diagonals, offsets, n, b):
    """Solve ``A x = b`` by a kernel, for any batches, with derivatives by the implicit function theorem.

    ``A dx = db - dA x``; in reverse, one solve with the transpose and the banded part of an outer product. Nothing
    differentiates through the kernels.

    Parameters
    ----------
    kernel, transposed : callable
        Kernels for ``A`` and for its transpose. Both take the diagonals of ``A``.
    diagonals, offsets, n
        The matrix.
    b : jax.Array, (..., n, k)

    Returns
    -------
    x : jax.Array, (..., n, k)
    ok : jax.Array, bool scalar
    """
    k = b.shape[-1]
    matrix_batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    batch = jnp.broadcast_shapes(matrix_batch, b.shape[:-2])
    if n == 0 or 0 in batch:
        return jnp.zeros((*batch, n, k), b.dtype), jnp.array(True)
    if k == 0:
        x, ok = solve(kernel, transposed, diagonals, offsets, n, jnp.zeros((*batch, n, 1), b.dtype))
        return x[..., :0], ok
    b = jnp.broadcast_to(b, (*batch, n, k))
    if math.prod(matrix_batch) == 1 and math.prod(batch) > 1:
        # One matrix: all right-hand sides are its columns.
        columns = jnp.moveaxis(b, -2, 0)
        diagonals = tuple(d.reshape(d.shape[-1:]) for d in diagonals)
        x, ok = solve(kernel, transposed, diagonals, offsets, n, columns.reshape(n, -1))
        return jnp.moveaxis(x.reshape(columns.shape), 0, -2), ok
    diagonals = tuple(jnp.broadcast_to(d, (*batch, d.shape[-1])) for d in diagonals)
    kernel, transposed = for_whole_batch(kernel), for_whole_batch(transposed)

    def matvec(x):
        return bands.matmul_dense(diagonals, offsets, (n, n), x)

    return lax.custom_linear_solve(
        matvec, b, lambda _, b: kernel(*diagonals, b), lambda _, b: transposed(*diagonals, b), has_aux=True
    )


def divide(diag, b, positive_definite):
    """Solve by a diagonal matrix, diag (..., n); a kernel but for its last argument."""
    diag = diag[..., None]
    bad = jnp.any(diag.real <= 0 if positive_definite else diag == 0, axis=-2, keepdims=True)
    return jnp.where(bad, jnp.nan, b / diag), ~jnp.any(bad)


def for_whole_batch(kernel):
    """Let ``vmap`` call the kernel once with one more batch dimension.

    Left to itself it would turn the slices of the loops into gathers and scatters, which XLA does not compile to native
    loops, and would run both branches of fallbacks. If only `b` is mapped, the mapped axis becomes columns of `b`.
    """
    solver = custom_vmap(kernel)

    @solver.def_vmap
    def _(axis_size, in_batched, *args):
        *diagonals, b = args
        if not any(in_batched[:-1]):
            columns = jnp.moveaxis(b, 0, -2)
            x, ok = solver(*diagonals, columns.reshape(*columns.shape[:-2], -1))
            return (jnp.moveaxis(x.reshape(columns.shape), -2, 0), ok), (True, False)
        return solver(*_broadcast(axis_size, in_batched, args)), (True, False)

    return solver


def mapped_together(function, out_batched):
    """The same for a function of arrays with a common batch shape; `out_batched` says which results have it too."""
    function = custom_vmap(function)

    @function.def_vmap
    def _(axis_size, in_batched, *args):
        return function(*_broadcast(axis_size, in_batched, args)), out_batched

    return function


def _broadcast(axis_size, in_batched, args):
    pairs = zip(args, in_batched, strict=True)
    return [a if batched else jnp.broadcast_to(a, (axis_size, *a.shape)) for a, batched in pairs]


def one_by_one(function, batch, *args):
    """Apply a function of single systems to each of a batch, in a loop: side by side they would not be native loops.

    `args` have the batch shape `batch` in front; so have the results.
    """
    if not batch:
        return function(*args)
    flat = tuple(a.reshape(-1, *a.shape[len(batch) :]) for a in args)
    results = lax.map(lambda system: function(*system), flat)
    return tuple(r.reshape(*batch, *r.shape[1:]) for r in results)
