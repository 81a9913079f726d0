"""`GeneratorArray`: the third family of structures, whose parameters are neither entries nor arrays (docs/design/semantics.md).

A structure of this family defines its product with columns and its transpose. From these follow products with every
structure, elements, rows and columns, sums, scaling, reductions and batch operations. Its sum with another structure is
a `Sum`, and its product a `Product`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from ..array.base import Array
from ..array.dense import Dense
from ..array.operands import cast
from .factored import Factored

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import jax

    from ..typing import DTypeLike, Shape


class GeneratorArray(Factored):
    """Base class of structures that are defined by generators: parameters from which the matrix is computed.

    A subclass defines `shape_of`, `times` and `transposed`. Its parameters are arrays of JAX with the whole batch shape in
    front, or arrays of this library. By default, the dense form is the product with an identity (override `dense_data`
    for a faster method). The sum of two arrays of the class is an array of the class if a kernel of `merge_pair`
    computes it. The generators absorb a scalar factor if a kernel of `scale` defines how.

    Notes
    -----
    The conjugate is the structure of the conjugate generators. A class of complex matrices for which this is wrong
    registers a kernel of `conj`. A class whose generators must not be cast like the matrix overrides `cast`.
    """

    __slots__ = ()
    parameter_names: tuple[str, ...] = ()
    is_family = True

    def times(self, columns: jax.Array) -> jax.Array:
        """Multiply by columns.

        Parameters
        ----------
        columns : jax.Array, (..., n, k)
            Columns of the dtype of the array. Their batch shape broadcasts with the batch shape of the array.

        Returns
        -------
        jax.Array, (..., m, k)
            The product, with the broadcast batch shape.
        """
        raise NotImplementedError

    def transposed(self) -> Array:
        """Return the transpose of each matrix, an array of any structure."""
        raise NotImplementedError

    def dense_data(self) -> jax.Array:
        return jnp.broadcast_to(self.times(jnp.eye(self.shape[-1], dtype=self.dtype)), self.shape)

    @property
    def parts(self) -> tuple[Array, ...]:
        """Generators as stacks of matrices; a generator that is not an array of this library becomes a matrix with one
        column.
        """
        batch = self.shape[:-2]
        return tuple([_as_column(leaf, batch) for leaf in self._value[0] if leaf is not None])

    def with_parts(self, function: Callable[[Array], Array]) -> Array:
        """Map a function of stacks of matrices over the generators and keep the structure."""
        leaves, (cls, meta, _) = self._value
        batch, mapped = self.shape[:-2], []
        for leaf in leaves:
            if leaf is not None:
                part = function(_as_column(leaf, batch))
                leaf = part if isinstance(leaf, Array) else _from_column(part, leaf.shape[len(batch) :])
            mapped.append(leaf)
        return cls.make(tuple(mapped), meta)

    def map_parameters(self, function: Callable[[Any], Any]) -> Array:
        leaves, (cls, meta, _) = self._value
        mapped = [leaf.map_parameters(function) if isinstance(leaf, Array) else leaf for leaf in leaves]
        mapped = [leaf if leaf is None or isinstance(leaf, Array) else function(leaf) for leaf in mapped]
        return cls.make(tuple(mapped), meta)

    def cast(self, dtype: DTypeLike) -> Array:
        new, old = np.dtype(dtype).kind, self.dtype.kind
        if new == "c" == old or (new in "fc" and old == "f"):
            return self.with_parts(lambda part: cast(part, dtype) if part.dtype.kind in "fc" else part)
        return super().cast(dtype)  # after rounding, or without imaginary part, the matrix has another structure


def _as_column(leaf: Any, batch: Shape) -> Array:
    if isinstance(leaf, Array):
        return leaf
    return Dense.make((leaf.reshape((*batch, math.prod(leaf.shape[len(batch) :]), 1)),))


def _from_column(part: Array, core: Shape) -> jax.Array:
    data = part.dense_data()
    return data.reshape((*data.shape[:-2], *core))
