"""Values of the sizes that `jax.export` leaves open."""

from __future__ import annotations

import operator
from typing import Any


def evaluate(size: Any, value: int) -> int:
    """Return a size of which all symbolic dimensions are `value`.

    Raises
    ------
    jax.errors.InconclusiveDimensionOperation
        If JAX does not expose how to compute it.
    """
    try:
        return operator.index(size._evaluate(dict.fromkeys(size._get_vars(), value)))
    except (AttributeError, TypeError):
        return int(size)  # raises the error of JAX
