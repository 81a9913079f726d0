"""Conversions from and to `jax.experimental.sparse`, which also run under `jax.jit`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCOO, BCSR

from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.dispatch import explicit
from .._structures.sparse.array import Sparse
from .sparse_arrays import as_sparse, check_format

__all__ = ["from_sparse", "to_sparse"]

FORMATS = ("bcoo", "bcsr")


def to_sparse(x: Array, /, format: str = "bcoo") -> BCOO | BCSR:
    """Convert an array to a sparse array of JAX.

    Parameters
    ----------
    x : array, (..., M, N)
        Array of any structure without a background. Batch dimensions become batch dimensions of the result. The format
        ``"bcoo"`` also accepts `Sparse` arrays with other numbers of core dimensions.
    format : {"bcoo", "bcsr"}, default "bcoo"
        Format of the result.

    Returns
    -------
    jax.experimental.sparse.BCOO or jax.experimental.sparse.BCSR
        Array with the stored entries of `x`, including explicit zeros.

    Raises
    ------
    TypeError
        If `x` is not an array of this namespace.
    ValueError
        If `format` is unknown, or `x` has a background or is 0-dimensional. If `x` is traced and the number of its
        entries is data-dependent.
    DensifyError
        If the structure does not store entries (such as `LowRank`) and the policy of `densify` forbids the dense form.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.interop.jax_sparse.to_sparse(sa.tridiagonal([1.0], [2.0, 3.0], [4.0]))
    BCOO(float64[2, 2], nse=4)
    """
    check_format(format, FORMATS)
    x = as_sparse(x, "to_sparse", without_background="jax.experimental.sparse")
    if format == "bcsr" and x.core_ndim != 2:
        raise ValueError(f"to_sparse: x must be a matrix for the format 'bcsr', got {x.core_ndim} core dimensions")
    x = x._in_order(tuple(range(x.core_ndim)))
    found = BCOO((x.data, jnp.stack(x.coords, axis=-1)), shape=x.shape, indices_sorted=True, unique_indices=True)
    return found if format == "bcoo" else BCSR.from_bcoo(found)


def from_sparse(x: Any, /) -> Array:
    """Convert a sparse array of JAX to an array of this namespace.

    Parameters
    ----------
    x : jax.experimental.sparse.BCOO or jax.experimental.sparse.BCSR
        Array to convert. Its batch dimensions remain batch dimensions. Entries with indices out of range are padding,
        and duplicate entries are summed.

    Returns
    -------
    Sparse or Dense
        `Dense` if `x` has no sparse dimensions, `Sparse` otherwise.

    Raises
    ------
    TypeError
        If `x` is neither a BCOO nor a BCSR array.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import structarrays as sa
    >>> from jax.experimental.sparse import BCOO
    >>> sa.interop.jax_sparse.from_sparse(BCOO.fromdense(jnp.eye(3))).nnz
    3
    """
    if isinstance(x, BCSR):
        x = x.to_bcoo()
    if not isinstance(x, BCOO):
        raise TypeError(f"from_sparse: x must be a BCOO or a BCSR of jax.experimental.sparse, got {type(x).__name__}")
    if x.n_sparse == 0:
        return Dense.make((x.todense(),))
    if x.n_dense:
        x = x.update_layout(n_dense=0)
    data, shape = x.data, x.shape[x.n_batch :]
    coordinates = tuple(x.indices[..., i] for i in range(x.n_sparse))
    if any(isinstance(c, jax.core.Tracer) for c in coordinates):
        return Sparse(data, coordinates, shape)
    host = [np.asarray(c) for c in coordinates]
    stored = np.logical_and.reduce([(c >= 0) & (c < n) for c, n in zip(host, shape, strict=True)])
    if stored.all():
        return Sparse(data, coordinates, shape)
    if x.n_batch:
        # Each matrix has its own padding. The constructor for traced coordinates, which may be out of range, removes
        # it.
        sorted_out: Sparse = explicit.jit(lambda data, coordinates: Sparse(data, coordinates, shape))(data, coordinates)
        return sorted_out
    return Sparse(data[np.flatnonzero(stored)], tuple(c[stored] for c in host), shape)
