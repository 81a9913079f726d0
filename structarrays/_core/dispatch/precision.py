"""The precision of dense products within functions, on a GPU or a TPU."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import jax

from ..._numerics.flags import full_precision
from ..array.base import Array
from ..array.dense import Dense

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

_PRODUCTS = frozenset({"adjoint_product", "matmul", "tensordot", "vecdot"})


def precision_of(name: str, arrays: Sequence[Any]) -> AbstractContextManager[Any]:
    """Return the context that sets the precision of dense products within a function of these operands.

    JAX's default on GPUs and TPUs has 11 or 8 bits for float32. Products of dense arrays alone, and products under a
    precision that the user has set, are computed as `jax.numpy` does.
    """
    if name in _PRODUCTS:
        config: Any = jax.config
        dense = all(isinstance(x, Dense) or not isinstance(x, Array) for x in arrays)
        if dense or config.jax_default_matmul_precision is not None:
            return contextlib.nullcontext()
    return full_precision()
