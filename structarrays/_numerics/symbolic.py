"""Sizes that `jax.export` leaves open: they are expressions, and most comparisons of them raise an error.

Algorithms are chosen as for large arrays, since the program runs with each size that the constraints of the user allow. Comparisons
on which the result depends, and not the cost alone, raise the error of JAX, which asks for a constraint.
"""

import math
import operator
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core.jax_internals.sizes import evaluate

_LARGE = 2.0**20  # a float, since JAX's constants may have 32 bits
"""Value of symbolic dimensions where costs are compared."""


def is_symbolic(size: object) -> bool:
    """Return whether a size is an expression of symbolic dimensions."""
    return not isinstance(size, int | np.integer)


def as_length(value: Any) -> Any:
    """Convert a length to an integer; a symbolic one stays what it is.

    Raises
    ------
    TypeError
        If it is neither.
    """
    try:
        return operator.index(value)
    except TypeError:
        if is_dimension(value):
            return value
        raise


def is_dimension(value: Any) -> bool:
    """Return whether any value is an expression of symbolic dimensions."""
    export = sys.modules.get("jax.export")  # without this module there are none, and its import takes time
    return export is not None and export.is_symbolic_dim(value)


def as_number(size: Any, dtype: np.dtype[Any]) -> float | jax.Array:
    """Return a size as a number of the real type that belongs to `dtype`: a traced one if it is symbolic.

    The dimensions are converted before they are multiplied, since JAX multiplies them as 32-bit integers by default.
    """
    if not is_symbolic(size):
        return float(size)
    real = jnp.finfo(dtype).dtype
    return jnp.asarray(evaluate(size, lambda dimension: jnp.asarray(dimension).astype(real)), real)


def power(value: jax.Array, size: Any) -> jax.Array:
    """Return ``value ** size`` for a symbolic size.

    Raises
    ------
    NotImplementedError
        If the values are not real numbers in floating point.
    """
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise NotImplementedError(
            f"the power {size} of values of data type {value.dtype} is symbolic; export the program for a fixed size"
        )
    size_of_power = jnp.abs(value) ** as_number(size, value.dtype)
    return jnp.where(jnp.asarray(size % 2) == 1, jnp.sign(value), 1) * size_of_power


def degrees_of_freedom(count: Any, correction: float, dtype: np.dtype[Any]) -> tuple[float | jax.Array, bool]:
    """Return ``count - correction``, and whether it is positive."""
    if not is_symbolic(count):
        return float(count - correction), count > correction
    return as_number(count, dtype) - correction, bool(count > math.floor(correction))


def estimated(size: Any) -> float:
    """Return a size for costs: the size itself, or its value for large symbolic dimensions.

    Raises
    ------
    jax.errors.InconclusiveDimensionOperation
        If the size is symbolic and JAX does not expose how to evaluate it.
    """
    return float(evaluate(size, lambda _: _LARGE)) if is_symbolic(size) else size


def index_dtype(*sizes: Any) -> np.dtype[Any]:
    """Return the integer type of positions along axes of these sizes."""
    if any(map(is_symbolic, sizes)):
        return np.dtype(jnp.result_type(int))
    return np.dtype(np.int64 if max(sizes) > 2**31 - 1 else np.int32)


def smaller(a: Any, b: Any) -> bool:
    """Return whether the size `a` is smaller than the size `b`, in a comparison of costs.

    If the constraints of symbolic sizes do not decide, compare their values for large dimensions.
    """
    try:
        return bool(a < b)
    except jax.errors.InconclusiveDimensionOperation:
        return estimated(a) < estimated(b)
