"""`GeneratorArray`: the third family of structures, whose parameters are neither entries nor arrays (docs/semantics.md).

A structure of this family says how it is multiplied by columns and what its transpose is. From this follow products with every structure,
elements, rows and columns, sums, scaling, reductions and batch operations: sums with other structures are a `Sum`, products a `Product`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from ..array.base import Array
from ..array.dense import Dense
from ..array.operands import dense_if_small
from .factored import Factored

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import jax

    from ..typing import DTypeLike


class GeneratorArray(Factored):
    """The base class of structures that are given by generators: parameters from which the matrix is computed.

    A subclass defines `shape_of`, `times` and `transposed`. Its parameters are arrays of JAX with the whole batch shape in front. Unless the
    class defines `dense_data`, the dense form is the product with an identity. The sum of two arrays of the class is an array of the class if
    a kernel of `merge_pair` makes it, and a number in front is taken up by the generators if a kernel of `scale` says how.

    Notes
    -----
    The conjugate is the structure of the conjugate generators. A class of complex matrices for which that is wrong registers a kernel of
    `conj`, and one whose generators may not be cast as the matrix is overrides `cast`.
    """

    __slots__ = ()
    is_family = True
    static_pattern = True

    def times(self, columns: jax.Array) -> jax.Array:
        """The product with columns.

        Parameters
        ----------
        columns : jax.Array, (..., n, k)
            Of the dtype of the array. Its batch shape broadcasts against that of the array.

        Returns
        -------
        jax.Array, (..., m, k)
            With the batch shape of both.
        """
        raise NotImplementedError

    def transposed(self) -> Array:
        """The transpose of each matrix, an array of any structure."""
        raise NotImplementedError

    def dense_data(self) -> jax.Array:
        return jnp.broadcast_to(self.times(jnp.eye(self.shape[-1], dtype=self.dtype)), self.shape)

    @property
    def parts(self) -> tuple[Array, ...]:
        """The generators as stacks of matrices of one column."""
        batch = self.shape[:-2]
        return tuple([Dense.make((leaf.reshape((*batch, -1, 1)),)) for leaf in self._value[0] if leaf is not None])

    def with_parts(self, function: Callable[[Array], Array]) -> Array:
        """The same structure with a function of stacks of matrices mapped over its generators."""
        leaves, (cls, meta, _) = self._value
        behind = len(self.shape) - 2
        parts, mapped = iter(self.parts), []
        for leaf in leaves:
            data = None if leaf is None else function(next(parts)).dense_data()
            mapped.append(data if data is None else data.reshape((*data.shape[:-2], *leaf.shape[behind:])))
        return cls.make(tuple(mapped), meta)

    def map_parameters(self, function: Callable[[Any], Any]) -> Array:
        return Array.map_parameters(self, function)

    def cast(self, dtype: DTypeLike) -> Array:
        dtype = np.dtype(dtype)
        if self.dtype.kind in "biu" or dtype.kind in "biu" or (self.dtype.kind == "c" and dtype.kind != "c"):
            return dense_if_small(self, "astype").cast(
                dtype
            )  # what is rounded, or has no imaginary part any more, is no such matrix
        return self.map_parameters(lambda leaf: leaf.astype(dtype) if leaf.dtype.kind in "fc" else leaf)
