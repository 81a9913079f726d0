"""Products, transposes and parts of symmetric and Hermitian matrices."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import densify, to_dense
from ..._functions.creation import tril, triu
from ..._functions.linalg import diagonal, matmul, matrix_transpose
from ..._functions.set import isin
from ..._numerics import packed_triangles as triangles
from ..._numerics.vectors import by_columns, by_rows
from ..banded.products import diagonal_of_pattern
from ..triangular.array import Triangular
from . import mirrored_products
from .array import Hermitian, Mirrored, Symmetric

if TYPE_CHECKING:
    from ..._core.typing import Result


@matmul.kernel(Mirrored, Dense)
def _matmul_mirrored_dense(x1: Mirrored, x2: Dense) -> Dense:
    product = functools.partial(mirrored_products.matmul, x1.data, lower=x1.lower, conjugate=x1._is_complex)
    return Dense.make((by_columns(product, x2.data),))


@matmul.kernel(Dense, Mirrored)
def _matmul_dense_mirrored(x1: Dense, x2: Mirrored) -> Dense:
    product = functools.partial(mirrored_products.matmul_from_left, a=x2.data, lower=x2.lower, conjugate=x2._is_complex)
    return Dense.make((by_rows(product, x1.data),))


@matmul.kernel(Mirrored, Mirrored)
@matmul.kernel(Mirrored, Triangular)
@matmul.kernel(Triangular, Mirrored)
def _matmul_mirrored_mirrored(x1: Mirrored | Triangular, x2: Mirrored | Triangular) -> Result:
    """Multiply the dense forms. The product is dense and as large as the factors, so it does not count as densified."""
    if type(x1) is Triangular:
        return matmul.dispatch(x1, to_dense(x2))
    if type(x2) is Triangular:
        return matmul.dispatch(to_dense(x1), x2)
    return matmul.dispatch(to_dense(x1), to_dense(x2))


@matrix_transpose.kernel(Symmetric)
def _matrix_transpose_symmetric(x: Symmetric) -> Array:
    return x.assuming(frozenset())


@matrix_transpose.kernel(Hermitian)
def _matrix_transpose_hermitian(x: Hermitian) -> Hermitian:
    return Hermitian.make((x.data.mT,), not x.lower)


diagonal.kernel(Mirrored)(diagonal_of_pattern)


@tril.kernel(Mirrored, when=lambda x, *, k: k <= 0)
def _tril_mirrored(x: Mirrored, *, k: int) -> Triangular:
    return _part(x if x.lower else x.turned(), k)


@triu.kernel(Mirrored, when=lambda x, *, k: k >= 0)
def _triu_mirrored(x: Mirrored, *, k: int) -> Triangular:
    return _part(x.turned() if x.lower else x, k)


def _part(x: Mirrored, k: int) -> Triangular:
    """Return the stored triangle, up to a diagonal."""
    data = triangles.triangle(x.data, x.lower, 0, k)
    return Triangular.make((triangles.real_diagonal(data) if x._is_complex else data, None), (x.lower, False))


@isin.kernel(Hermitian, Array, when=lambda x1, x2, **static: x1._is_complex)
def _isin_hermitian(x1: Hermitian, x2: Array, **static: Any) -> Result:
    """Use the dense form: a complex number may be among the values although its conjugate is not."""
    return isin.dispatch(densify(x1, "isin"), x2, **static)
