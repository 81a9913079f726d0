"""Arrays of other libraries, such as PyTorch, CuPy, Dask and PyData's ``sparse``, as `array_api_compat` recognizes
them.

`array_api_compat` checks only libraries that are already imported. It is imported here only when there is a foreign
array to check.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np

from .base import Array

KNOWN: tuple[type, ...] = (bool, int, float, complex, str, list, tuple, dict, np.ndarray, np.generic, Array)
"""Classes whose instances are not foreign arrays; a NumPy array may still be masked."""


def is_foreign(value: object) -> bool:
    """Return whether a value is an array of a library other than NumPy, JAX and this one."""
    if isinstance(value, KNOWN) or isinstance(value, jax.Array):  # the slower check comes last
        return False
    import array_api_compat

    return bool(array_api_compat.is_array_api_obj(value))


def is_pydata_sparse(value: object) -> bool:
    """Return whether a value is an array of the package ``sparse``."""
    import array_api_compat

    return bool(array_api_compat.is_pydata_sparse_array(value))


def is_table(value: object) -> bool:
    """Return whether a value is a table, a column or an index of pandas."""
    return type(value).__module__.partition(".")[0] == "pandas"


def way_out(value: object) -> str:
    """Return the end of an error message that says how to convert a foreign array; empty for other values."""
    if not is_foreign(value):
        return ""
    return f"; {SPARSE}" if is_pydata_sparse(value) else "; structarrays.asarray converts it"


def readable(value: Any, name: str) -> Any:
    """Convert an array of another library to an array that `numpy.asarray` or DLPack reads without loss.

    Parameters
    ----------
    value : object
        An object that is not an array of this library or JAX. An object that is not an array is returned unchanged.
    name : str
        Name of the function that reads the array, for error messages.

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
                f"{name}: a tensor of layout {value.layout} is not densified implicitly; call its to_dense() first"
            )
        return value.resolve_conj().resolve_neg()  # DLPack has no flags for lazy conjugation and negation
    if compat.is_dask_array(value):
        return np.asarray(value)  # runs the task graph
    if compat.is_ndonnx_array(value):
        return _values(value, name)
    if getattr(value, "mask", None) is not None and np.any(np.asarray(value.mask)):  # for example an array of marray
        raise TypeError(f"{name}: {_MASKED}")
    return value


_MASKED = "elements are masked, and an array of structarrays has no mask; fill them with a value first"

SPARSE = (
    "an array of the package sparse is not densified implicitly; convert it with "
    "structarrays.interop.pydata_sparse.from_sparse to a Sparse, or with todense() to a dense array"
)


def _values(value: Any, name: str) -> Any:
    """Return the values of an ndonnx array; raise if it is part of a graph and has none."""
    try:
        return value.unwrap_numpy()
    except ValueError as error:
        raise TypeError(f"{name}: an array of ndonnx must have values to be read: {error}") from error


def on_cpu(value: Any) -> Any:
    """Copy an array of another library to host memory.

    Return None if it is already there, or its library cannot move it.
    """
    import array_api_compat

    try:
        moved = array_api_compat.to_device(value, "cpu")
    except (AttributeError, RuntimeError, ValueError, TypeError):
        return None
    return None if moved is value else moved
