"""`Fill`: an array with one value everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import parameter
from ..._core.array.validation import check_leaves, check_sizes, validated
from ..._core.families import pattern
from ..._core.text import inline
from ..._numerics.conversions import converted
from ..._numerics.symbolic import as_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax
    import numpy as np

    from ..._core.array.arguments import ParameterLike
    from ..._core.typing import DTypeLike, Leaves, Meta, Shape


class Fill(Array):
    """An array with one value everywhere.

    Parameters
    ----------
    value : array_like
        The value, ``(...)``. Its shape is the batch shape.
    shape : int or tuple of int
        The core shape, with any number of dimensions. The array has the shape ``value.shape + shape``.

    Raises
    ------
    ValueError
        If a dimension is negative.

    Notes
    -----
    The array stores one number for each batch entry. Elementwise functions cost as much as for a scalar.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.exp(sa.Fill(0.0, (1000000, 1000000)))
    Fill(1.0, (1000000, 1000000), dtype=float64)
    """

    __slots__ = ()
    parameter_names = ("value",)

    def __new__(cls, value: ParameterLike, shape: int | Sequence[int]) -> Self:
        return cls.make((parameter(value, "value", cls.__name__),), core_shape(shape, "shape"))

    @property
    def core_ndim(self) -> int:
        """The number of core dimensions."""
        return len(self.meta)

    @property
    def value(self) -> jax.Array:
        """The value, of batch shape."""
        value: jax.Array = self._value[0][0]
        return value

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        shape: Shape = leaves[0].shape + meta
        return shape

    def description(self) -> tuple[list[str], bool]:
        return [inline(self.value)[0], f"{self.meta}"], True  # one number describes an array of any size

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return pattern.everywhere(rows, columns, pattern.BACKGROUND)

    def _constant_data(self) -> jax.Array:
        """Return the value with core dimensions of size 1."""
        return self.value.reshape(self.value.shape + (1,) * len(self.meta))

    def constant_over(self, core: int) -> jax.Array | None:
        """Return the data with size 1 in the last `core` dimensions if it is constant over them, else None."""
        data = self._constant_data()
        return data if all(n == 1 for n in data.shape[max(0, data.ndim - core) :]) else None

    def dense_data(self) -> jax.Array:
        return jnp.broadcast_to(self._constant_data(), self.shape)

    def cast(self, dtype: DTypeLike) -> Fill:
        return Fill.make((converted(self.value, dtype),), self.meta)


def fills_matrices(x: Fill, *args: Array) -> bool:
    """Return whether the value fills at least two dimensions, so that each matrix is constant."""
    return len(x.meta) >= 2


def core_shape(shape: Any, argument: str) -> tuple[int, ...]:
    """Return a shape as a tuple of non-negative integers."""
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    try:
        sizes: Shape = tuple(map(as_length, shape))
    except TypeError:
        raise TypeError(f"{argument} must be an integer or a tuple of integers, got {shape!r}") from None
    if any(n < 0 for n in sizes):
        raise ValueError(f"{argument} must not be negative, got {sizes}")
    return sizes


@validated.kernel(Fill)
def check_fill(x: Fill) -> None:
    """Raise unless the only parameter is the value."""
    check_sizes(x.meta)
    check_leaves(x, ())
