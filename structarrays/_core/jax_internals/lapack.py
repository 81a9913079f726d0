"""Substitution with a triangular matrix (``trsm`` of LAPACK), as jaxlib registers it for XLA programs on CPUs.

JAX documents calls of registered functions (`jax.ffi.ffi_call`), and `jax.export` promises that the function keeps its
name. JAX does not document the attributes of the function, nor how LAPACK is loaded. So `is_available` loads it, solves
a linear system, and compares the solution. If this fails, callers use `jax.lax.linalg.triangular_solve`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["is_available", "substitute"]

initialize_lapack: Callable[[], None] | None
try:
    from jax._src.lax.linalg import initialize_lapack
except ImportError:
    initialize_lapack = None

_TARGETS = {"f4": "lapack_strsm_ffi", "f8": "lapack_dtrsm_ffi", "c8": "lapack_ctrsm_ffi", "c16": "lapack_ztrsm_ffi"}


@functools.cache
def is_available(dtype: np.dtype) -> bool:
    """Return whether `substitute` solves linear systems of this dtype on the CPU."""
    if initialize_lapack is None or dtype.str[1:] not in _TARGETS:
        return False
    a = np.array([[2, 7], [4, 8]], dtype)  # 7 must not be read
    b = np.array([[2], [20]], dtype)
    try:
        initialize_lapack()
        with jax.ensure_compile_time_eval(), jax.default_device(jax.local_devices(backend="cpu")[0]):
            x = jax.jit(functools.partial(substitute, lower=True, unit_diagonal=False))(a, b)
        return x.dtype == dtype and np.array_equal(x, [[1], [2]])
    except Exception:  # a future jaxlib may raise anything for a missing function or attribute
        return False


def substitute(a: jax.Array, b: jax.Array, *, lower: bool, unit_diagonal: bool, transposed: bool = False) -> jax.Array:
    """Solve ``T @ x = b`` or ``T.T @ x = b``, for a triangle T of `a` (n, n) and columns `b` (n, k).

    LAPACK reads the rows of `a` as columns, so its matrix is the transpose. `jax.lax.linalg.triangular_solve` with a
    transpose is equivalent, but XLA copies the transpose in jaxlib 0.12.
    """
    call = jax.ffi.ffi_call(
        _TARGETS[np.dtype(b.dtype).str[1:]],
        jax.ShapeDtypeStruct(b.shape, b.dtype),
        input_layouts=[(0, 1), (1, 0)],
        output_layouts=(1, 0),
        input_output_aliases={1: 0},
    )
    letters = {
        "side": "L",
        "uplo": "U" if lower else "L",
        "trans_x": "N" if transposed else "T",
        "diag": "U" if unit_diagonal else "N",
    }
    return call(a, b, **{name: np.uint8(ord(letter)) for name, letter in letters.items()})
