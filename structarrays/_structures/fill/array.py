"""`Fill`: one value everywhere."""

import operator
from collections.abc import Sequence
from typing import Self

import jax
import jax.numpy as jnp

from ..._core.array.arguments import ParameterLike
from ..._core.array.base import Array
from ..._core.array.dense import parameter
from ..._core.array.validation import check_leaves, check_sizes, validated
from ..._core.families import pattern
from ..._core.text import inline


class Fill(Array):
    """An array with one value everywhere.

    Parameters
    ----------
    value : array_like
        The value, ``(...)``; its shape is the batch shape.
    shape : int or tuple of int
        The core shape, any number of dimensions; the array's shape is ``value.shape + shape``.

    Raises
    ------
    ValueError
        If a dimension is negative.

    Notes
    -----
    It stores one number for each batch entry. Elementwise functions of it and with it cost as much as of a scalar.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.exp(sa.Fill(0.0, (1000000, 1000000)))
    Fill(1.0, (1000000, 1000000), dtype=float64)
    """

    __slots__ = ()

    def __new__(cls, value: ParameterLike, shape: int | Sequence[int]) -> Self:
        return cls.make((parameter(value, "value", cls.__name__),), core_shape(shape, "shape"))

    @property
    def core_ndim(self) -> int:
        """The number of dimensions that the one value fills."""
        return len(self.meta)

    @property
    def value(self) -> jax.Array:
        """The value, of batch shape."""
        return self._value[0][0]

    @staticmethod
    def shape_of(leaves, meta):
        return leaves[0].shape + meta

    def description(self):
        return [inline(self.value)[0], f"{self.meta}"], True  # one number says it all, however large the array is

    def pattern(self, rows, columns):
        return pattern.everywhere(rows, columns, pattern.BACKGROUND)

    def _constant_data(self):
        """The value with ones for the core dimensions."""
        return self.value.reshape(self.value.shape + (1,) * len(self.meta))

    def constant_over(self, core):
        """The data with ones where it is constant over the last `core` dimensions."""
        data = self._constant_data()
        return data if all(n == 1 for n in data.shape[max(0, data.ndim - core) :]) else None

    def dense_data(self):
        return jnp.broadcast_to(self._constant_data(), self.shape)

    def cast(self, dtype):
        return Fill.make((self.value.astype(dtype),), self.meta)


def core_shape(shape, argument: str) -> tuple[int, ...]:
    """A shape as a tuple of non-negative integers."""
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    try:
        shape = tuple(operator.index(n) for n in shape)
    except TypeError:
        raise TypeError(f"{argument} must be an integer or a tuple of integers, got {shape!r}") from None
    if any(n < 0 for n in shape):
        raise ValueError(f"{argument} must not be negative, got {shape}")
    return shape


@validated.kernel(Fill)
def check_fill(x):
    """Raise unless the parameter is the value, a scalar."""
    check_sizes(x.meta)
    check_leaves(x, ())
