"""PyData's package ``sparse``: conversions from and to its arrays.

Needs that package, ``pip install structarrays[pydata-sparse]``. Import it by name, ``structarrays.interop.pydata_sparse``: nothing else
of this library imports it.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

try:
    import sparse  # type: ignore[import-untyped]  # which has no types
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
    """An array as one of the package ``sparse``.

    Parameters
    ----------
    x : array
        Of any structure and number of dimensions but none. A batch becomes dimensions like all others, the background the fill value.
    format : str
        ``"coo"``, ``"gcxs"`` or ``"dok"``.

    Returns
    -------
    sparse.SparseArray
        With the entries that `x` stores (but of zeros among them the package may drop some).

    Raises
    ------
    TypeError
        If `x` is no array of this namespace.
    ValueError
        If `format` is unknown, or `x` has no dimension, or a background that differs within the batch.
    DensifyError
        If the structure stores no entries, such as `LowRank`, and the policy forbids to make its dense form.

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
                "to_sparse: an array of the package sparse has one fill value, but the backgrounds of x differ"
            )
        fill = fills[0] if fills.size else fill
    data, coordinates = np.array(x.data), [np.asarray(c) for c in x.coords]
    batch = [np.broadcast_to(i[..., None], data.shape) for i in np.indices(x.batch_shape)]
    stored = coordinates[0] < x.core_shape[0]
    places = np.stack([i[stored] for i in (*batch, *coordinates)])
    return sparse.COO(places, data[stored], shape=x.shape, fill_value=fill).asformat(format)


def from_sparse(x: Any, /) -> Array:
    """The array of one of the package ``sparse``.

    Parameters
    ----------
    x : sparse.SparseArray
        `COO`, `GCXS` or `DOK`, of any number of dimensions but none.

    Returns
    -------
    Sparse
        All dimensions are core dimensions; a fill value other than zero is the background.

    Raises
    ------
    TypeError
        If `x` is none.

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
