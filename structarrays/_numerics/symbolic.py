"""Sizes that `jax.export` leaves open: they are expressions, and most comparisons of them raise an error."""

import numpy as np


def is_symbolic(size: object) -> bool:
    """Return whether a size is an expression of symbolic dimensions."""
    return not isinstance(size, int | np.integer)
