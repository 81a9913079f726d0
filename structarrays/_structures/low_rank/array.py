"""`LowRank`: the product of a tall matrix and a wide one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.validation import check_parts, check_static, require, validated
from ..._core.families import pattern
from ..._core.families.conditions import along_core_axis, are_matrices, is_complex
from ..._core.families.entries import elements, elements_at, has_elements
from ..._core.families.factored import (
    Factored,
    common_batch,
    inner_pair,
    line_key,
    merge_pair,
    part,
    scale,
    select_lines,
    squared_norms,
    stored,
    unified,
)
from ..._functions.elementwise import multiply
from ..._functions.indexing import index
from ..._functions.linear_algebra import matmul, matrix_transpose, product
from ..._functions.rounding_and_parts import conj, imag, real
from ..._functions.statistical import cumulative_sum
from ..._functions.statistical import sum as sum_of
from ..._numerics import low_rank_factors
from ..._numerics.tall import transposed_product
from ..fill.array import Fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import jax
    import numpy as np

    from ..._core.array.arguments import ParameterLike
    from ..._core.typing import Leaves, Meta, Shape, Spec


class LowRank(Factored):
    r"""A low-rank matrix, ``u @ v.mT``, stored as its two factors.

    Parameters
    ----------
    u : array_like
        The left factor, ``(..., m, r)``, an array of any structure.
    v : array_like
        The right factor, ``(..., n, r)``, an array of any structure. The batch shapes broadcast, and the dtypes are promoted.

    Raises
    ------
    ValueError
        If a factor has fewer than two dimensions, or the factors differ in their number of columns.
    TypeError
        If a factor is boolean.

    Notes
    -----
    The value is :math:`U V^T`, without a conjugate: :math:`A_{ij} = \sum_k U_{ik} V_{jk}`. With dense factors, the costs are:

    =========================================  =================================================================
    stores                                     ``r (m + n)``
    times a vector                             ``O(r (m + n))``
    times a matrix of another structure        a `LowRank`: one factor is multiplied; dense for a dense matrix
    sum of two, with a row, a column           a `LowRank` with the sum of the ranks, while it saves memory; rows added
                                               to a row are one row
    elementwise product of two, square         a `LowRank` with the product of the ranks, while it saves memory; stores
                                               the factors of both; times a vector costs ``O(r s (m + n))``
    row and column scaling, rows, columns      ``O(r (m + n))``
    `cumulative_sum`                           a `LowRank`: applied to one factor
    `sum`, `mean`                              ``O(r (m + n))``
    `var`, `std`, Frobenius norm               ``O(r**2 (m + n))``
    =========================================  =================================================================

    The operations are not data-dependent, so that they never reduce the rank. Call `linalg.compress` to reduce it.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.LowRank(sa.ones((100, 1)), sa.reshape(sa.arange(1.0, 201.0), (200, 1)))
    >>> (A @ sa.ones((200,)))[:3]
    Dense([20100., 20100., 20100.], dtype=float64)
    >>> (A - sa.mean(A, axis=1, keepdims=True)).rank
    2
    """

    __slots__ = ()
    parameter_names = ("u", "v")

    def __new__(cls, u: ParameterLike, v: ParameterLike) -> Self:
        u, v = part(u, "u"), part(v, "v")
        if u.shape[-1] != v.shape[-1]:
            raise ValueError(f"u and v must have the same number of columns, got shapes {u.shape} and {v.shape}")
        return cls.make(unified((u, v)))

    @property
    def u(self) -> Array:
        """The left factor, ``(..., m, r)``."""
        u: Array = self._value[0][0]
        return u

    @property
    def v(self) -> Array:
        """The right factor, ``(..., n, r)``."""
        v: Array = self._value[0][1]
        return v

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        u: Array = self._value[0][0]
        return u.ndim

    @property
    def rank(self) -> int:
        """The number of columns of the factors: an upper bound of the rank."""
        return self.u.shape[-1]

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        u, v = leaves
        return (*u.shape[:-1], v.shape[-2])

    def dense_data(self) -> jax.Array:
        return matmul(self.u, matrix_transpose(self.v)).dense_data()

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        inner = pattern.cuts(self.rank, pattern.FINE)
        return pattern.composed(pattern.pattern(self.u, rows, inner), pattern.pattern(self.v, columns, inner).T)

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        *batch, rows, columns = spec
        return (*batch, rows, None), (*batch, columns, None)

    @property
    def product_cost(self) -> int:
        return self.u.product_cost + self.v.product_cost

    def description(self) -> tuple[list[str], bool]:
        return [f"shape={self.shape}", f"rank={self.rank}"], False


@elements.kernel(LowRank)
def _elements_low_rank(x: LowRank, i: jax.Array, j: jax.Array) -> jax.Array:
    ndim = max(i.ndim, j.ndim)
    i, j = (k.reshape((1,) * (ndim - k.ndim) + k.shape) for k in (i, j))
    return jnp.sum(lines(x.u, i, -2) * lines(x.v, j, -2), axis=-1, dtype=x.dtype)


def lines(x: Array, i: jax.Array, axis: int) -> jax.Array:
    """The rows (axis -2) or columns of a matrix at indices of any shape. The result has the shape of the indices, and
    the row or column last.
    """
    constant = x.constant_over(2)
    if constant is not None:  # all rows or columns are equal
        length = x.shape[-1 if axis == -2 else -2]
        constant = constant.reshape(constant.shape[:-2] + (1,) * (i.ndim + 1))
        return jnp.broadcast_to(constant, (*x.shape[:-2], *i.shape, length))
    x = x if has_elements(x) or type(x) is Dense else Dense.make((x.dense_data(),))
    if type(x) is Dense:
        data = x.data if axis == -2 else x.data.mT
        return data[..., i, :]
    along = jnp.arange(x.shape[-1 if axis == -2 else -2])
    return elements_at(x, (i[..., None], along) if axis == -2 else (along, i[..., None]))


@matrix_transpose.kernel(LowRank)
def _matrix_transpose_low_rank(x: LowRank) -> LowRank:
    return LowRank.make((x.v, x.u))


# ---- products: one factor absorbs the other matrix -------------------------------------------------------------------


@matmul.kernel(LowRank, Dense, when=are_matrices)
def _matmul_low_rank_dense(x1: LowRank, x2: Dense) -> Array:
    return product(x1.u, Dense.make((transposed_times(x1.v, x2.data),)))


def transposed_times(v: Array, data: jax.Array) -> jax.Array:
    """``v.mT @ data`` for a factor of any structure and dense data ``(..., n, p)``."""
    if type(v) is Dense and v.dtype.kind in "fc":
        return transposed_product(v.data, data, jnp.ones(v.shape[-2], v.dtype))
    return product(matrix_transpose.dispatch(v), Dense.make((data,))).dense_data()


@matmul.kernel(Dense, LowRank, when=are_matrices)
def _matmul_dense_low_rank(x1: Dense, x2: LowRank) -> Array:
    return product(product(x1, x2.u), matrix_transpose.dispatch(x2.v))


@matmul.kernel(LowRank, Array, when=are_matrices)
def _matmul_low_rank(x1: LowRank, x2: Array) -> Array:
    return low_rank(x1.u, matmul(matrix_transpose(x2), x1.v))


@matmul.kernel(Array, LowRank, when=are_matrices)
def _matmul_array_low_rank(x1: Array, x2: LowRank) -> Array:
    return low_rank(matmul(x1, x2.u), x2.v)


@matmul.kernel(LowRank, LowRank)
def _matmul_low_rank_low_rank(x1: LowRank, x2: LowRank) -> Array:
    """The small matrix between the outer factors multiplies the side that leaves the lower rank."""
    between = matmul(matrix_transpose(x1.v), x2.u)
    if x1.rank <= x2.rank:
        return low_rank(x1.u, matmul(x2.v, matrix_transpose(between)))
    return low_rank(matmul(x1.u, between), x2.v)


def low_rank(u: Array, v: Array) -> Array:
    """Array with these factors, which may have different batch shapes; dense if that is no larger."""
    u, v = common_batch(u, v)
    x = LowRank.make((u, v))
    return Dense.make((x.dense_data(),)) if x.full_size else x


# ---- sums and elementwise products ------------------------------------------------------------------------------------------


@merge_pair.kernel(LowRank, Fill, when=lambda x, y: _written_out(x))
def _merge_pair_low_rank_fill(x: LowRank, y: Fill) -> Array:
    if _is_constant_column(x.u):
        return _ranks_added(x, row_of_rank_one(_ones(y, -1).mT * y._constant_data(), y.shape))
    return _ranks_added(x, constant_of_rank_one(y))


def _written_out(*arrays: LowRank) -> bool:
    """Return whether no factor is composed of other arrays: a composed factor would be densified to append columns."""
    return not any([isinstance(part, Factored) for x in arrays for part in (x.u, x.v)])


@merge_pair.kernel(LowRank, LowRank, when=_written_out)
def _ranks_added(x: LowRank, y: LowRank) -> Array:
    """Join the factors. Two matrices of equal rows, or of equal columns, are one such matrix."""
    if _is_constant_column(x.u) and _is_constant_column(y.u):
        row: Any = sum(multiply(z.v, Dense.make((z.u.constant_over(2),))).dense_data() for z in (x, y))
        return row_of_rank_one(row.mT, x.shape)
    if _is_constant_column(x.v) and _is_constant_column(y.v):
        return matrix_transpose(_ranks_added(*cast("Iterable[LowRank]", map(matrix_transpose, (x, y)))))
    return LowRank.make((_side_by_side(x.u, y.u), _side_by_side(x.v, y.v)))


def _is_constant_column(part: Array) -> bool:
    """Return whether a factor has one column of equal values, so that all rows (or columns) of the matrix are equal."""
    return part.shape[-1] == 1 and part.constant_over(2) is not None


def constant_of_rank_one(x: Fill) -> LowRank:
    """A constant matrix as `LowRank`."""
    ones = jnp.ones((*x.shape[:-1], 1), x.dtype)
    return LowRank.make((Dense.make((ones * x.value[..., None, None],)), Dense.make((_ones(x, -1),))))


def _ones(x: Array, axis: int) -> jax.Array:
    return jnp.ones((*x.shape[:-2], x.shape[axis], 1), x.dtype)


def row_of_rank_one(row: jax.Array, shape: Shape) -> LowRank:
    """A row ``(..., 1, n)``, broadcast to all rows of a matrix of this shape."""
    ones = Fill.make((jnp.ones(shape[:-2], row.dtype),), (shape[-2], 1))
    v = jnp.broadcast_to(row.mT, (*shape[:-2], shape[-1], 1))
    return LowRank.make((ones, Dense.make((v,))))


def line_of_rank_one(data: jax.Array, core: Shape) -> LowRank:
    """A vector or a row broadcast to all rows, or a column ``(..., m, 1)`` broadcast to all columns, of a matrix with
    this core.
    """
    data = data.reshape((1,) * (2 - data.ndim) + data.shape)
    if data.shape[-2] == 1:
        return row_of_rank_one(data, (*data.shape[:-2], *core))
    return cast("LowRank", matrix_transpose(row_of_rank_one(data.mT, (*data.shape[:-2], *core[::-1]))))


def _side_by_side(a: Array, b: Array) -> Array:
    """Join factors of one batch shape."""
    return Dense.make((jnp.concatenate((a.dense_data(), b.dense_data()), axis=-1),))


@scale.kernel(LowRank)
def _scale_low_rank(x: LowRank, factor: Callable[[Array], Array]) -> LowRank:
    u, v = x.parts
    return LowRank.make((factor(u), v) if stored(u) <= stored(v) else (u, factor(v)))


@cumulative_sum.kernel(LowRank, when=along_core_axis)
def _cumulative_sum_low_rank(x: LowRank, *, axis: int, include_initial: bool) -> LowRank:
    parts, which = list(x.parts), axis - (x.ndim - 2)
    factor = parts[which]
    parts[which] = cumulative_sum.dispatch(factor, axis=factor.ndim - 2, include_initial=include_initial)
    return LowRank.make(tuple(parts))


def _parts_of_complex(x: LowRank) -> list[Array]:
    return [f(p) for f in (real, imag) for p in x.parts]


@real.kernel(LowRank, when=is_complex)
def _real_low_rank(x: LowRank) -> Array:
    a, b, c, d = _parts_of_complex(x)
    return low_rank(_side_by_side(a, -c), _side_by_side(b, d))


@imag.kernel(LowRank, when=is_complex)
def _imag_low_rank(x: LowRank) -> Array:
    a, b, c, d = _parts_of_complex(x)
    return low_rank(_side_by_side(a, c), _side_by_side(d, b))


# ---- reductions --------------------------------------------------------------------------------------------------------------


@inner_pair.kernel(Array, LowRank)
def _inner(x: Array, y: LowRank, *, axes: tuple[int, ...]) -> jax.Array:
    """Sums of ``conj(x) * y``: the product of `x` with one factor, multiplied with the other factor."""
    x = _conj(x)
    if axes == (-2,):
        return jnp.sum(_meeting(matrix_transpose(x), y.u) * y.v.dense_data(), axis=-1, dtype=x.dtype)
    rows = jnp.sum(_meeting(x, y.v) * y.u.dense_data(), axis=-1, dtype=x.dtype)
    return rows if axes == (-1,) else jnp.sum(rows, axis=-1, dtype=x.dtype)


def _meeting(x: Array, part: Array) -> jax.Array:
    """Product with a factor; a factor of equal values gives a multiple of the row sums."""
    if _is_constant_column(part):
        return sum_of(x, axis=-1, keepdims=True, dtype=x.dtype).dense_data() * cast("jax.Array", part.constant_over(2))
    return matmul(x, part).dense_data()


@inner_pair.kernel(LowRank, Array)
def _inner_pair_low_rank(x: LowRank, y: Array, *, axes: tuple[int, ...]) -> jax.Array:
    return jnp.conj(_inner(y, x, axes=axes))


def _conj(x: Array) -> Array:
    return conj(x) if x.dtype.kind == "c" else x


@squared_norms.kernel(LowRank)
def _squared_norms_low_rank(x: LowRank, *, axes: tuple[int, ...]) -> jax.Array:
    """Without factors of equal values being written out, if the rank is one."""
    if x.rank != 1:
        return low_rank_factors.squares(axes, *(p.dense_data() for p in x.parts))
    u, v = (p if _is_constant_column(p) else Dense.make((p.dense_data(),)) for p in x.parts)
    gram_u, gram_v = (matmul(matrix_transpose(_conj(p)), p).dense_data() for p in (u, v))
    if len(axes) == 2:
        total = jnp.sum(gram_u * gram_v, axis=(-2, -1))
    else:
        gram, other = (gram_u, v.dense_data()) if axes == (-2,) else (gram_v, u.dense_data())
        total = jnp.sum(jnp.conj(other) * (other @ gram.mT), axis=-1)
    return low_rank_factors.not_negative(total.real)


# ---- rows and columns --------------------------------------------------------------------------------------------------------


@select_lines.kernel(LowRank)
def _select_lines_low_rank(x: LowRank, key: tuple[tuple[Any, ...], tuple[Any, ...]], axis: int) -> Array:
    u, v = x.parts
    own, (item, operands) = u if axis == -2 else v, key
    chosen = index(own, operands, key=line_key(own, item, -2))
    return low_rank(*((chosen, v) if axis == -2 else (u, chosen)))


@validated.kernel(LowRank)
def check_low_rank(x: LowRank) -> None:
    """Raise unless the parts are two factors with the same number of columns."""
    check_static(x.meta is None, x)
    (_, r), (_, s) = check_parts(x, 2, 2)
    require(r == s, f"both factors must have the same number of columns, got {r} and {s}")
