"""`Dense`: an array that stores every element. It is part of the core, since every array can be converted to it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._numerics.conversions import converted
from ..dispatch import late
from ..families import pattern
from .base import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..typing import DTypeLike, Leaves, Meta, Shape


def on_data(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel for `Dense` operands that applies a function of `jax.Array` to their data. A tuple becomes a tuple of `Dense`."""

    @functools.wraps(formula)
    def kernel(*operands: Dense, **static: Any) -> Dense | tuple[Dense, ...]:
        result = formula(*[x.data for x in operands], **static)
        return tuple([Dense.make((data,)) for data in result]) if isinstance(result, tuple) else Dense.make((result,))

    return kernel


class Dense(Array):
    """An array that stores every element: a `jax.Array` that can be written to.

    Parameters
    ----------
    data : array_like
        The elements: anything that `asarray` accepts.

    Notes
    -----
    Basic indexing, iteration, transposition, `reshape`, `squeeze`, `expand_dims`, `moveaxis` and `flip` return views,
    as in NumPy: a write to the array changes the view, and vice versa. A single element is an independent array.

    Examples
    --------
    >>> import structarrays as sa
    >>> x = sa.Dense([[1.0, 2.0], [3.0, 4.0]])
    >>> row = x[0, :]
    >>> row[1] = 9.0
    >>> x
    Dense([[1., 9.],
           [3., 4.]], dtype=float64)
    """

    __slots__ = ()
    parameter_names = ("data",)
    core_ndim = 0

    def __new__(cls, data: Any) -> Dense:
        if isinstance(data, jax.core.Tracer):
            return cls.make((data,))
        return late.asarray(data).to_dense()

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        shape: Shape = leaves[0].shape
        return shape

    @property
    def shape(self) -> Shape:
        """Shape of the array."""
        leaves, aux = self._value
        return leaves[0].shape if aux[0] is Dense else aux[0].shape_of(leaves, aux[1])

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        leaves, aux = self._value
        return leaves[0].ndim if aux[0] is Dense else len(aux[0].shape_of(leaves, aux[1]))

    @property
    def data(self) -> jax.Array:
        """Elements as a `jax.Array`."""
        data: jax.Array = self._value[0][0]
        return data

    def dense_data(self) -> jax.Array:
        data: jax.Array = self._value[0][0]
        return data

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return pattern.everywhere(rows, columns, pattern.DENSE)

    def constant_over(self, core: int) -> jax.Array | None:
        data = self.data
        return data if set(data.shape[max(0, data.ndim - core) :]) <= {1} else None

    def cast(self, dtype: DTypeLike) -> Dense:
        return Dense.make((converted(self.data, dtype),))


def parameter(value: Any, argument: str, name: str) -> jax.Array:
    """Convert an argument of a constructor to a `jax.Array`.

    A structured matrix densifies under the policy of `densify`. A vector does not count, since only matrices lose structure.

    Parameters
    ----------
    value : array_like
        The argument.
    argument, name : str
        Names of the argument and of the constructor, for error messages.

    Raises
    ------
    TypeError
        If `asarray` does not accept the value.
    """
    if isinstance(value, Array):
        structured = type(value) is not Dense and value.ndim > 1
        value = (late.densified(value, f"{name}: {argument}") if structured else value).to_jax()
    if isinstance(value, jax.Array):
        return value
    try:
        return late.asarray(value).to_jax()
    except TypeError as error:
        raise TypeError(f"{name}: {argument} must be an array or convertible with asarray: {error}") from error


def batch_shape_of(**shapes: Shape) -> Shape:
    """Broadcast the batch shapes of a constructor's arguments.

    Raises
    ------
    ValueError
        If the shapes do not broadcast; the message names the arguments.
    """
    try:
        return jnp.broadcast_shapes(*shapes.values())
    except ValueError:
        named = ", ".join(f"{shape} of {argument}" for argument, shape in shapes.items())
        raise ValueError(f"the batch shapes must broadcast, got {named}") from None
