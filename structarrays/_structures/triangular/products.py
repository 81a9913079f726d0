"""Products, transposes and parts of triangular matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.families.join import is_zero_outside
from ..._functions.creation import tril, triu
from ..._functions.linalg import diagonal, matmul, matrix_transpose
from ..._numerics import packed_triangles as triangles
from ..._numerics.vectors import by_columns, by_rows
from ..banded.array import Banded, bands
from ..banded.diagonal import Diagonal
from ..banded.products import diagonal_of_pattern
from . import numerics as triangular_products
from .array import Triangular, fits

if TYPE_CHECKING:
    import jax

    from ..._core.array.base import Array
    from ..._core.typing import Result

# With more diagonals the product uses a dense matrix, since the compilation time grows with their number.
_UNROLLED_DIAGONALS = 48


def stored(x: Triangular) -> jax.Array:
    """Return the data with a readable diagonal; the other triangle is unchanged."""
    return triangles.with_diagonal(x.data, 1) if x.unit_diagonal else x.data


# ---- matrix products -------------------------------------------------------------------------------------------------


@matmul.kernel(Triangular, Dense)
def _matmul_triangular_dense(x1: Triangular, x2: Dense) -> Dense:
    if x1.background is not None:
        return Dense.make((jnp.matmul(x1.dense_data(), x2.data),))
    return Dense.make((by_columns(lambda data: triangular_products.matmul(stored(x1), data, x1.lower), x2.data),))


@matmul.kernel(Dense, Triangular)
def _matmul_dense_triangular(x1: Dense, x2: Triangular) -> Dense:
    if x2.background is not None:
        return Dense.make((jnp.matmul(x1.data, x2.dense_data()),))
    return Dense.make((by_rows(lambda data: triangular_products.matmul(data, stored(x2), None, x2.lower), x1.data),))


def _zero_outside(*arrays: Array) -> bool:
    return all(map(is_zero_outside, arrays))


@matmul.kernel(Triangular, Triangular, when=_zero_outside)
def _matmul_triangular_triangular(x1: Triangular, x2: Triangular) -> Dense | Triangular:
    product = triangular_products.matmul(stored(x1), stored(x2), x1.lower, x2.lower)
    if x1.lower == x2.lower:
        return Triangular.make((product, None), (x1.lower, False))
    return Dense.make((product,))


def _by_diagonals(x: Triangular, banded: Banded) -> bool:
    return _zero_outside(x, banded) and len(banded.offsets) <= _UNROLLED_DIAGONALS


@matmul.kernel(Triangular, Banded, when=_by_diagonals)
def _matmul_triangular_banded(x1: Triangular, x2: Banded) -> Dense | Triangular:
    product = triangular_products.matmul_banded(stored(x1), x1.lower, x2.diagonals, x2.offsets, x2.shape[-1])
    batch = jnp.broadcast_shapes(x1.batch_shape, x2.batch_shape)
    product = jnp.broadcast_to(product, batch + product.shape[-2:])
    if fits(x2, x1.lower):
        return Triangular.make((product, None), (x1.lower, False))
    return Dense.make((product,))


@matmul.kernel(Banded, Triangular, when=lambda x1, x2: _by_diagonals(x2, x1))
def _matmul_banded_triangular(x1: Banded, x2: Triangular) -> Result:
    return matrix_transpose.dispatch(matmul.dispatch(matrix_transpose.dispatch(x2), matrix_transpose.dispatch(x1)))


# ---- transposes and parts --------------------------------------------------------------------------------------------


@matrix_transpose.kernel(Triangular)
def _matrix_transpose_triangular(x: Triangular) -> Triangular:
    return Triangular.make((x.data.mT, x.background), (not x.lower, x.unit_diagonal))


diagonal.kernel(Triangular)(diagonal_of_pattern)


@tril.kernel(Triangular, when=is_zero_outside)
def _tril_triangular(x: Triangular, *, k: int) -> Array:
    return _kept(x, k, below=True)


@triu.kernel(Triangular, when=is_zero_outside)
def _triu_triangular(x: Triangular, *, k: int) -> Array:
    return _kept(x, k, below=False)


def _kept(x: Triangular, k: int, *, below: bool) -> Array:
    """Return the part below (or above) the diagonal `k`: all, a smaller triangle, the diagonal, or zeros."""
    lower, upper = x.bandwidths()
    first, last = (-lower, min(k, upper)) if below else (max(k, -lower), upper)
    if (first, last) == (-lower, upper):
        return x.assuming(frozenset())
    shape = x.shape[-2:]
    if first > last:
        return bands([], (), shape, dtype=x.dtype, batch=x.batch_shape)
    if first == last == 0:
        return Diagonal.make((x.diagonal(0), None), shape)
    return Triangular.make((triangles.triangle(stored(x), below, 0, k), None), (x.lower, False))
