"""Arrays of other libraries, such as PyTorch, CuPy, Dask and PyData's ``sparse``, as `array_api_compat` recognises them.

It looks only at libraries that are loaded, and is imported itself when there is a foreign array to look at.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np

from .base import Array

KNOWN: tuple[type, ...] = (bool, int, float, complex, str, list, tuple, dict, np.ndarray, np.generic, Array)
"""Classes whose instances are no foreign arrays, though an array of NumPy may be masked."""


def is_foreign(value: object) -> bool:
    """Whether a value is an array, but of none of NumPy, JAX and this library."""
    if isinstance(value, KNOWN) or isinstance(value, jax.Array):  # which takes longer to find out
        return False
    import array_api_compat

    return bool(array_api_compat.is_array_api_obj(value))


def is_pydata_sparse(value: object) -> bool:
    """Whether a value is an array of the package ``sparse``."""
    import array_api_compat

    return bool(array_api_compat.is_pydata_sparse_array(value))


def is_table(value: object) -> bool:
    """Whether a value is a table, a column or an index of pandas."""
    return type(value).__module__.partition(".")[0] == "pandas"


def way_out(value: object) -> str:
    """How to convert an array of another library, as the end of an error; nothing for what is none."""
    if not is_foreign(value):
        return ""
    return f"; {SPARSE}" if is_pydata_sparse(value) else "; structarrays.asarray converts it"


def readable(value: Any, name: str) -> Any:
    """An array of another library as one that `numpy.asarray` or DLPack takes with nothing lost.

    Parameters
    ----------
    value : object
        Whatever is no array of this library or of JAX; what is no array is returned as it is.
    name : str
        The function that reads it, for errors.

    Raises
    ------
    TypeError
        If elements are masked, or the array is sparse.
    """
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise TypeError(f"{name}: {_MASKED}")
        return np.ma.getdata(value)
    if not is_foreign(value):
        return value
    import array_api_compat as compat

    if is_pydata_sparse(value):
        raise TypeError(f"{name}: {SPARSE}")
    if compat.is_torch_array(value):
        if value.layout is not sys.modules["torch"].strided:
            raise TypeError(
                f"{name}: a tensor of the layout {value.layout} is not made dense unasked; to_dense() makes it dense"
            )
        return value.resolve_conj().resolve_neg()  # which DLPack has no flags for
    if compat.is_dask_array(value):
        return np.asarray(value)  # computed
    if compat.is_ndonnx_array(value):
        return _values(value, name)
    if getattr(value, "mask", None) is not None and np.any(np.asarray(value.mask)):  # such as one of marray
        raise TypeError(f"{name}: {_MASKED}")
    return value


_MASKED = "elements are masked, and an array of structarrays has no mask; fill them with a value first"

SPARSE = (
    "an array of the package sparse is not made dense unasked; structarrays.interop.pydata_sparse.from_sparse makes a Sparse of it, "
    "todense() a dense array"
)


def _values(value: Any, name: str) -> Any:
    """The values of an array that may be a part of a graph, and then has none."""
    try:
        return value.unwrap_numpy()
    except ValueError as error:
        raise TypeError(f"{name}: an array of ndonnx without values cannot be read: {error}") from error


def on_cpu(value: Any) -> Any:
    """An array of another library in the memory of the host; None if it is there already, or its library does not move it."""
    import array_api_compat

    try:
        moved = array_api_compat.to_device(value, "cpu")
    except (AttributeError, RuntimeError, ValueError, TypeError):
        return None
    return None if moved is value else moved
