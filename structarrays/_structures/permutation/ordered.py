"""Eigenvalues and singular values in their order, and the permutation that takes their vectors along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.dense import Dense
from .array import Permutation
from .ordering import ordering

if TYPE_CHECKING:
    import jax
    import numpy as np


def in_order(values: jax.Array, dtype: np.dtype, *, descending: bool = False) -> tuple[Dense, Permutation]:
    """Real numbers ``(..., n)`` sorted, and a permutation ``P`` with the elements' `dtype`.

    ``P @ X`` has the rows of X in the same order, and ``X @ P.mT`` the columns.
    """
    order = ordering(values, descending=descending)
    return Dense.make((jnp.take_along_axis(values, order, axis=-1),)), rows_in_order(order, dtype)


def rows_in_order(order: jax.Array, dtype: np.dtype) -> Permutation:
    """The permutation ``P`` with row ``order[i]`` of X as row i of ``P @ X``."""
    index = jnp.int64 if order.shape[-1] > 2**31 - 1 else jnp.int32
    return Permutation.make((order.astype(index),), dtype)
