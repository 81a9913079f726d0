"""`jax.experimental.sparse`: conversions from and to its arrays, which run under `jax.jit`, too."""

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
    """An array as one of `jax.experimental.sparse`.

    Parameters
    ----------
    x : array, (..., M, N)
        Of any structure, without a background. A batch becomes batch dimensions. (Sparse arrays of other numbers of dimensions can be
        converted to ``"bcoo"``.)
    format : str
        ``"bcoo"`` or ``"bcsr"``.

    Returns
    -------
    jax.experimental.sparse.BCOO or jax.experimental.sparse.BCSR
        With the entries that `x` stores, zeros among them.

    Raises
    ------
    TypeError
        If `x` is no array of this namespace.
    ValueError
        If `format` is unknown, if `x` has a background or no dimension; if `x` is traced, and how many entries there are depends on
        values.
    DensifyError
        If the structure stores no entries, such as `LowRank`, and the policy forbids to make its dense form.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.interop.jax_sparse.to_sparse(sa.tridiagonal([1.0], [2.0, 3.0], [4.0]))
    BCOO(float64[2, 2], nse=4)
    """
    check_format(format, FORMATS)
    x = as_sparse(x, "to_sparse", without_background="jax.experimental.sparse")
    if format == "bcsr" and x.core_ndim != 2:
        raise ValueError(f"to_sparse: the format 'bcsr' is for matrices, got {x.core_ndim} core dimensions")
    x = x._in_order(tuple(range(x.core_ndim)))
    found = BCOO((x.data, jnp.stack(x.coords, axis=-1)), shape=x.shape, indices_sorted=True, unique_indices=True)
    return found if format == "bcoo" else BCSR.from_bcoo(found)


def from_sparse(x: Any, /) -> Array:
    """The array of one of `jax.experimental.sparse`.

    Parameters
    ----------
    x : jax.experimental.sparse.BCOO or jax.experimental.sparse.BCSR
        Batch dimensions become a batch. Entries out of range are padding, and those of equal coordinates are added.

    Returns
    -------
    Sparse
        Or `Dense` if all dimensions of `x` are batch or dense ones.

    Raises
    ------
    TypeError
        If `x` is none.

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
        # Each matrix has padding of its own: the constructor for traced coordinates, which may be out of range, sorts it out.
        sorted_out: Sparse = explicit.jit(lambda data, coordinates: Sparse(data, coordinates, shape))(data, coordinates)
        return sorted_out
    return Sparse(data[np.flatnonzero(stored)], tuple(c[stored] for c in host), shape)
