"""Functions of all arrays that are defined by generators: products, transposes, elements, scalar factors
(docs/design/semantics.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.families.entries import elements, in_blocks
from ..._core.families.factored import scale
from ..._core.families.generator_array import GeneratorArray
from ..._functions.linear_algebra import matmul, matrix_transpose
from ..._numerics.vectors import by_columns
from ..banded.diagonal import Identity
from .product import compose_pair, times_number

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

    from ..._core.array.base import Array


@matmul.kernel(GeneratorArray, Dense)
def _matmul_generators_dense(x1: GeneratorArray, x2: Dense) -> Dense:
    return Dense.make((by_columns(x1.times, x2.data),))


@matmul.kernel(Dense, GeneratorArray)
def _matmul_dense_generators(x1: Dense, x2: GeneratorArray) -> Array:
    transposed = matrix_transpose.dispatch(x2)
    rows: Array = x1 if x1.ndim == 1 else Dense.make((x1.data.mT,))
    product: Array = matmul.dispatch(transposed, rows)
    return product if x1.ndim == 1 else Dense.make((product.dense_data().mT,))


@matrix_transpose.kernel(GeneratorArray)
def _matrix_transpose_generators(x: GeneratorArray) -> Array:
    return x.transposed()


@elements.kernel(GeneratorArray)
def _elements_of_generators(x: GeneratorArray, i: jax.Array, j: jax.Array) -> jax.Array:
    """Compute the elements from their rows or their columns, whichever are fewer."""
    return in_blocks(_from_lines, x, i, j)


def _from_lines(x: Array, i: jax.Array, j: jax.Array) -> jax.Array:
    if i.size < j.size:
        return _from_columns(matrix_transpose.dispatch(x), j, i)
    return _from_columns(x, i, j)


def _from_columns(x: Array, i: jax.Array, j: jax.Array) -> jax.Array:
    units = Dense.make(((jnp.arange(x.shape[-1])[:, None] == j.ravel()).astype(x.dtype),))
    columns: jax.Array = matmul.dispatch(x, units).dense_data()
    return columns[..., i, jnp.arange(j.size).reshape(j.shape)]


@scale.kernel(GeneratorArray)
def _scale_generators(x: GeneratorArray, factor: Callable[[Array], Array]) -> Array:
    """Keep a scalar factor separate: its effect on the generators depends on the class."""
    return times_number(x, factor)


@compose_pair.kernel(Identity, GeneratorArray)
@compose_pair.kernel(GeneratorArray, Identity)
def _compose_pair_identity_generators(x: Array, y: Array) -> None:
    return None
