"""Elementwise products of low-rank arrays, and `KhatriRao`: their factors, which are not formed explicitly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from ..._core.array.dense import Dense
from ..._core.array.validation import check_dense_part, check_parts, check_static, require, validated
from ..._core.families import pattern
from ..._core.families.conditions import is_complex, is_first_matrix, is_second_matrix
from ..._core.families.entries import elements, elements_at, has_elements
from ..._core.families.factored import Factored, hadamard_pair, scale, select_lines, stored
from ..._functions.elementwise import multiply
from ..._functions.indexing import index
from ..._functions.linear_algebra import matmul, matrix_transpose
from ..._functions.rounding_and_parts import imag, real
from ..._numerics.symbolic import smaller
from ..._numerics.tall import transposed_product
from ..fallback.selections import by_products, selected_lines
from ..kronecker.array import pieces
from .array import LowRank, low_rank

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from ..._core.array.base import Array
    from ..._core.typing import Leaves, Meta, Shape, Spec


class KhatriRao(Factored):
    r"""Row-wise Khatri–Rao product of two matrices, or its transpose.

    Row `i` is the Kronecker product of the rows :math:`a_i` and :math:`b_i`. The product is also called face-splitting product. It
    is the factor of an elementwise product,

    .. math:: (U V^T) \circ (A B^T) = (U \bullet A) (V \bullet B)^T,

    and stores ``m (r + s)`` entries for ``m`` rows of length ``r s``. A product with a vector costs ``O(m r s)``, by
    :math:`(A \bullet B)\, \mathrm{vec}(Q) = \mathrm{rowsum}((A Q) \circ B)` and
    :math:`(A \bullet B)^T y = \mathrm{vec}(A^T \mathrm{diag}(y)\, B)`, without a temporary array larger than a factor.

    Its parts are `a` ``(..., m, r)``, of any structure, and `b` ``(..., m, s)``, dense. ``meta`` says whether it is the transpose,
    ``(..., r s, m)``. Elementwise products of low-rank arrays create it; it has no public constructor.

    References
    ----------
    V. I. Slyusar, *A family of face products of matrices and its properties*, Cybernetics and Systems Analysis 35 (1999).

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.LowRank(sa.ones((100, 5)), sa.ones((100, 5)))
    >>> type((A * A).u).__name__, (A * A).rank
    ('KhatriRao', 25)
    >>> float(sa.sum(A * A))
    250000.0
    """

    __slots__ = ()

    if TYPE_CHECKING:  # the second one is dense

        @property
        def parts(self) -> tuple[Array, Dense]: ...

    @property
    def transposed(self) -> bool:
        """Return whether this is the transpose, whose columns are products of rows."""
        transposed: bool = self.meta
        return transposed

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        a, b = leaves
        *batch, rows, width = a.shape
        width *= b.shape[-1]
        return (*batch, width, rows) if meta else (*batch, rows, width)

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        *batch, rows, columns = spec
        return ((*batch, columns if self.transposed else rows, None),) * 2

    def dense_data(self) -> jax.Array:
        data = _row_by_row(*(p.dense_data() for p in self.parts))
        return data.mT if self.transposed else data

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """From the pieces of the intervals of its columns; see `kronecker_pattern`."""
        if self.transposed:
            rows, columns = columns, rows
        a, b = self.parts
        outer, inner = pieces(columns, b.shape[-1])
        kinds: np.ndarray = pattern.both(pattern.pattern(a, rows, outer), pattern.pattern(b, rows, inner))
        kinds = kinds.reshape(len(rows), len(columns), 3).max(axis=2)
        return kinds.T if self.transposed else kinds

    @property
    def product_cost(self) -> int:
        a, b = self.parts
        return b.shape[-1] * (a.product_cost + b.shape[-2])


def _row_by_row(a: jax.Array, b: jax.Array) -> jax.Array:
    product = a[..., :, None] * b[..., None, :]
    return product.reshape((*product.shape[:-2], a.shape[-1] * b.shape[-1]))


# ---- elementwise products of low rank ----------------------------------------------------------------------------------------


@hadamard_pair.kernel(LowRank, LowRank)
def _hadamard_pair_low_rank_low_rank(x: LowRank, y: LowRank) -> Array | None:
    """Multiply all pairs of columns of the factors; formed explicitly if that stores no more than the factors."""
    m, n = x.shape[-2:]
    if smaller(2 * m * n, sum(map(stored, (x, y))) * min(x.rank, y.rank)):
        return None
    if x.rank == y.rank == 1:
        return low_rank(multiply(x.u, y.u), multiply(x.v, y.v))
    columns = x.rank * (x.rank + 1) // 2 if x is y else x.rank * y.rank
    if columns > x.rank + y.rank:
        return low_rank(*(KhatriRao.make((p, Dense.make((q.dense_data(),))), False) for p, q in zip(x.parts, y.parts)))
    (u1, v1), (u2, v2) = ([p.dense_data() for p in z.parts] for z in (x, y))
    if x is y:
        first, second = jnp.triu_indices(x.rank)
        weight = jnp.where(first == second, 1, 2).astype(x.dtype)
        u, v = u1[..., first] * u1[..., second] * weight, v1[..., first] * v1[..., second]
    else:
        u, v = _row_by_row(u1, u2), _row_by_row(v1, v2)
    return low_rank(Dense.make((u,)), Dense.make((v,)))


# ---- products ------------------------------------------------------------------------------------------------------------------


def _by_columns(function: Callable[[jax.Array], jax.Array], data: jax.Array) -> jax.Array:
    """A function of vectors ``(..., n)``, applied to each column of ``(..., n, p)``."""
    if data.shape[-1] == 1:
        return function(data[..., 0])[..., None]
    return jnp.moveaxis(lax.map(jax.checkpoint(function), jnp.moveaxis(data, -1, 0)), 0, -1)


@matmul.kernel(KhatriRao, Dense, when=is_second_matrix)
def _matmul_khatri_rao_dense(x1: KhatriRao, x2: Dense) -> Dense:
    a, b = x1.parts
    r, s = a.shape[-1], b.shape[-1]

    def times(column: jax.Array) -> jax.Array:
        middle = Dense.make((column.reshape((*column.shape[:-1], r, s)),))
        product = matmul(a, middle).dense_data() * b.data
        return jnp.sum(product, axis=-1, dtype=product.dtype)  # keep the width of integers

    def transposed_times(column: jax.Array) -> jax.Array:
        if type(a) is Dense:
            product = transposed_product(a.data, b.data, column)
        else:
            product = matmul(matrix_transpose(a), Dense.make((column[..., None] * b.data,))).dense_data()
        return product.reshape((*product.shape[:-2], r * s))

    return Dense.make((_by_columns(transposed_times if x1.transposed else times, x2.data),))


@matmul.kernel(Dense, KhatriRao, when=is_first_matrix)
def _matmul_dense_khatri_rao(x1: Dense, x2: KhatriRao) -> Array:
    return matrix_transpose(matmul(matrix_transpose(x2), matrix_transpose(x1)))


@matrix_transpose.kernel(KhatriRao)
def _matrix_transpose_khatri_rao(x: KhatriRao) -> KhatriRao:
    return KhatriRao.make(x.parts, not x.transposed)


# ---- other functions -------------------------------------------------------------------------------------------------


@elements.kernel(KhatriRao)
def _elements_khatri_rao(x: KhatriRao, i: jax.Array, j: jax.Array) -> jax.Array:
    a, b = x.parts
    row, place = (j, i) if x.transposed else (i, j)
    left, right = place // b.shape[-1], place % b.shape[-1]
    own = elements_at(a, (row, left)) if has_elements(a) else a.dense_data()[..., row, left]
    return own * b.data[..., row, right]


@scale.kernel(KhatriRao)
def _scale_khatri_rao(x: KhatriRao, factor: Callable[[Array], Array]) -> KhatriRao:
    a, b = x.parts
    return KhatriRao.make((factor(a), b), x.transposed)


@real.kernel(KhatriRao, when=is_complex)
def _real_khatri_rao(x: KhatriRao) -> Dense:
    return Dense.make((x.dense_data().real,))


@imag.kernel(KhatriRao, when=is_complex)
def _imag_khatri_rao(x: KhatriRao) -> Dense:
    return Dense.make((x.dense_data().imag,))


@select_lines.kernel(KhatriRao)
def _select_lines_khatri_rao(x: KhatriRao, key: tuple[tuple[Any, ...], tuple[Any, ...]], axis: int) -> Array:
    """Select rows (columns of the transpose) of both factors."""
    if axis != (-1 if x.transposed else -2):
        return selected_lines(x, key, axis, by_products)
    item, operands = key
    chosen = (
        index(p, operands, key=(*(("slice", 0, n, 1) for n in p.shape[:-2]), item, ("slice", 0, p.shape[-1], 1)))
        for p in x.parts
    )
    return KhatriRao.make(tuple(chosen), x.transposed)


@validated.kernel(KhatriRao)
def check_khatri_rao(x: KhatriRao) -> None:
    """Raise unless the parts are two matrices with the same number of rows, the second one dense."""
    check_static(type(x.meta) is bool, x)
    (m, _), (n, _) = check_parts(x, 2, 2)
    require(m == n, f"both parts must have the same number of rows, got {m} and {n}")
    check_dense_part(x.parts[1])
