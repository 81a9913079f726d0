"""Conversions from and to the arrays of PyData's package ``sparse``.

The module requires the package: ``pip install structarrays[pydata-sparse]``. Only this module imports it.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

try:
    import sparse  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError(
        f"structarrays.interop.pydata_sparse needs sparse: pip install structarrays[pydata-sparse] ({error})"
    ) from error

from .._core.array.base import Array
from .._structures.sparse.array import Sparse
from .sparse_arrays import as_sparse, check_format

__all__ = ["from_sparse", "to_sparse"]

FORMATS = ("coo", "gcxs", "dok")


def to_sparse(x: Array, /, format: str = "coo") -> sparse.SparseArray:
    """Convert an array to an array of the package ``sparse``.

    Parameters
    ----------
    x : array, (..., M, N)
        Array of any structure with at least one dimension. Batch dimensions become ordinary dimensions. The background
        value becomes the fill value.
    format : {"coo", "gcxs", "dok"}, default "coo"
        Format of the result.

    Returns
    -------
    sparse.SparseArray
        Array with the stored entries of `x`. The package may drop explicit zeros.

    Raises
    ------
    TypeError
        If `x` is not an array of this namespace.
    ValueError
        If `format` is unknown, or `x` is 0-dimensional, or its background differs within the batch.
    DensifyError
        If the structure does not store entries (such as `LowRank`) and the policy of `densify` forbids the dense form.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.interop.pydata_sparse.to_sparse(sa.exp(sa.Diagonal([1.0, 2.0])))
    >>> A.nnz, float(A.fill_value)
    (2, 1.0)
    """
    check_format(format, FORMATS)
    x = as_sparse(x, "to_sparse")
    fill = x.dtype.type(0)
    if x.background is not None:
        fills = np.asarray(x.background).ravel()
        if fills.size and (fills != fills[0]).any() and not (fills != fills).all():
            raise ValueError(
                "to_sparse: x must have one background value, got different values within the batch; convert x[i] one at a time"
            )
        fill = fills[0] if fills.size else fill
    data, coordinates = np.array(x.data), [np.asarray(c) for c in x.coords]
    batch = [np.broadcast_to(i[..., None], data.shape) for i in np.indices(x.batch_shape)]
    stored = coordinates[0] < x.core_shape[0]
    places = np.stack([i[stored] for i in (*batch, *coordinates)])
    return sparse.COO(places, data[stored], shape=x.shape, fill_value=fill).asformat(format)


def from_sparse(x: Any, /) -> Array:
    """Convert an array of the package ``sparse`` to an array of this namespace.

    Parameters
    ----------
    x : sparse.SparseArray
        `COO`, `GCXS` or `DOK` array with at least one dimension.

    Returns
    -------
    Sparse
        Array whose dimensions are all core dimensions. A nonzero fill value becomes the background value.

    Raises
    ------
    TypeError
        If `x` is not an array of the package ``sparse``.

    Examples
    --------
    >>> import sparse
    >>> import structarrays as sa
    >>> sa.interop.pydata_sparse.from_sparse(sparse.eye(3)).nnz
    3
    """
    if not isinstance(x, sparse.SparseArray):
        raise TypeError(f"from_sparse: x must be an array of the package sparse, got {type(x).__name__}")
    x = x.asformat("coo")
    found = Sparse(x.data, tuple(x.coords), x.shape)
    fill = np.asarray(x.fill_value, x.dtype)
    return found if fill == 0 else found.rebuild(found.entries, jnp.asarray(fill))
