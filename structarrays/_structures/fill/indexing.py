"""Indexing of filled arrays, whose parts are filled arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._functions.indexing import _numpy_key, index
from .array import Fill


@index.kernel(Fill)
def _index_fill(x: Fill, *, operands: tuple[Any, ...], key: tuple[tuple[Any, ...], ...]) -> Dense | Fill:
    """Compute only the shape: all selected elements are equal."""
    batch = len(x.batch_shape)
    core = x.shape[batch:]
    selected = jax.eval_shape(lambda o: jnp.zeros(core, bool)[_numpy_key(key, o)], operands).shape
    if not selected:
        return Dense.make((x.value,))
    return Fill.make((x.value,), selected)
