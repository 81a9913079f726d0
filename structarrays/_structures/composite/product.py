"""`Product`: a product of matrices, and the order in which a chain of them is multiplied."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, TypeGuard, cast

import jax.numpy as jnp
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import to_dense
from ..._core.array.validation import check_parts, check_static, require, validated
from ..._core.dispatch.registry import Registry
from ..._core.families import pattern
from ..._core.families.conditions import is_first_matrix, is_second_matrix, is_square_pattern
from ..._core.families.entries import element, elements, in_blocks
from ..._core.families.factored import (
    Factored,
    common_batch,
    hadamard,
    hadamard_pair,
    line_key,
    parts_of,
    scale,
    select_lines,
    stored,
    unified,
)
from ..._core.families.join import is_zero_outside
from ..._core.families.unexpanded import unexpanded
from ..._functions.elementwise import abs as absolute
from ..._functions.elementwise import multiply
from ..._functions.indexing import index
from ..._functions.linear_algebra import expanded_product, matmul, matrix_transpose
from ..._functions.statistical import sum as sum_of
from ..._numerics.quotients import reciprocal
from ..._numerics.symbolic import estimated, smaller
from ..banded.array import Banded
from ..banded.diagonal import Diagonal, Identity, identity_like
from ..fill.array import Fill
from ..low_rank.array import LowRank, lines, low_rank
from ..permutation.array import Permutation
from ..toeplitz.array import Toeplitz

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import jax
    import numpy as np

    from ..._core.array.arguments import ArrayLike
    from ..._core.dispatch.function import Function
    from ..._core.typing import Leaves, Meta, Shape, Spec


compose_pair: Registry[Array | None] = Registry("compose_pair")
"""``compose_pair.kernel(A, B)``: return the product of two adjacent factors as one array that is not a `Product`.
Without a kernel, or if it returns None, they stay two factors.
"""


class Product(Factored):
    r"""A product of matrices, each stored in its own structure.

    Parameters
    ----------
    *factors : array_like
        The factors, ``(..., m, k)``, ``(..., k, l)``, ..., arrays of any structure. The batch shapes broadcast, and the dtypes
        are promoted.

    Returns
    -------
    Array
        A `Product`, unless the factors merge into one. Nested products are flattened. Identities become a scalar. Adjacent
        factors are multiplied if their product is no larger than both: diagonal and banded matrices, permutations, Kronecker
        products with matching factors, low-rank matrices. Two thin dense factors become a `LowRank`.

    Raises
    ------
    ValueError
        If there is no factor, one has fewer than two dimensions, or adjacent factors have incompatible shapes.
    TypeError
        If a factor is boolean.

    Notes
    -----
    The value is :math:`A_1 A_2 \cdots A_k`; the factors are stored. A product with a matrix is evaluated in the cheapest order,
    determined from shapes and structures by dynamic programming (matrix chain multiplication; Cormen et al., *Introduction to
    Algorithms*, 15.2). Rows are computed from rows of the first factor, columns from columns of the last factor. A single
    element costs one row and one column.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.Product(sa.Diagonal(sa.arange(1.0, 101.0)), sa.Circulant(sa.ones((100,))))
    >>> (A @ sa.ones((100,)))[:3]
    Dense([100., 200., 300.], dtype=float64)
    """

    __slots__ = ()
    parameter_names = ("factors[]",)

    def __new__(cls, *factors: ArrayLike) -> Self:
        parts = parts_of(factors, "Product", "factor")
        for i, (a, b) in enumerate(zip(parts, parts[1:])):
            if a.shape[-1] != b.shape[-2]:
                raise ValueError(f"factors {i + 1} and {i + 2} have incompatible shapes: got {a.shape} and {b.shape}")
        return cast("Self", canonical(unified(parts)))  # a factor, if only one remains

    @property
    def factors(self) -> tuple[Array, ...]:
        """The factors, from left to right."""
        return self._value[0]

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        return (*leaves[0].shape[:-1], leaves[-1].shape[-1])

    @property
    def product_cost(self) -> int:
        return sum(f.product_cost for f in self.factors)

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return pattern.of_product(self.factors, rows, columns)

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        """The rows are divided for the first factor, and for later ones while all factors before are square; the
        columns likewise from the right.
        """
        *batch, rows, columns = spec
        square = [f.shape[-1] == f.shape[-2] for f in self.factors]
        return tuple(
            (*batch, rows if all(square[:i]) else None, columns if all(square[i + 1 :]) else None)
            for i in range(len(square))
        )

    def dense_data(self) -> jax.Array:
        return chain(self.factors).dense_data()


def canonical(factors: Iterable[Array]) -> Array:
    """Product of stacks of matrices with one dtype and batch shape: a single array if possible, else a `Product`."""
    kept: list[Array] = []
    queue = _flat(factors)
    while queue:
        factor = queue.pop(0)
        if kept and (composed := _composed(kept[-1], factor)) is not None:
            kept.pop()
            queue[:0] = composed.factors if type(composed) is Product else (composed,)
        else:
            kept.append(factor)
    return kept[0] if len(kept) == 1 else Product.make(tuple(kept))


def _flat(factors: Iterable[Array]) -> list[Array]:
    """Replace each `Product` by its factors, since a factor is never a `Product`."""
    return [g for f in factors for g in (_flat(f.factors) if type(f) is Product else (f,))]


def _composed(x: Array, y: Array) -> Array | None:
    kernel = compose_pair.choose((x, y), {})
    return None if kernel is None else kernel.run(x, y)


@compose_pair.kernel(Identity, Array, when=is_square_pattern)
@compose_pair.kernel(Array, Identity, when=lambda x, y: is_square_pattern(y))
@compose_pair.kernel(Fill, Fill)
@compose_pair.kernel(LowRank, Array)
@compose_pair.kernel(Array, LowRank)
@compose_pair.kernel(Permutation, Permutation)
def _compose_pair_identity(x: Array, y: Array) -> Array:
    result: Array = matmul.dispatch(x, y)
    return result


@compose_pair.kernel(Dense, Dense)
def _compose_pair_dense(x: Dense, y: Dense) -> Array:
    """Multiply, unless the factors are thin: then the product would be larger than both."""
    return low_rank(x, matrix_transpose(y)) if pays_as_product((x, y)) else matmul.dispatch(x, y)


@compose_pair.kernel(Fill, Array)
def _compose_pair_fill(x: Fill, y: Array) -> Array:
    return matrix_transpose(_of_equal_columns(matrix_transpose(y), cast("Fill", matrix_transpose(x))))


@compose_pair.kernel(Array, Fill)
def _compose_pair_array_fill(x: Array, y: Fill) -> LowRank:
    return _of_equal_columns(x, y)


def _of_equal_columns(x: Array, y: Fill) -> LowRank:
    """A matrix times a constant matrix. The scalar multiplies the sums, so that structural zeros keep zeros despite
    NaN.
    """
    number = jnp.broadcast_to(y.value[..., None, None], (*y.shape[:-1], 1))
    ones = jnp.ones((*y.shape[:-2], y.shape[-1], 1), y.dtype)
    return LowRank.make(tuple(common_batch(matmul.dispatch(x, Dense.make((number,))), Dense.make((ones,)))))


def _scales(x: Array, y: Array) -> bool:
    return is_zero_outside(x) and is_zero_outside(y) and matmul.choose((x, y), {}) is not None


@compose_pair.kernel(Diagonal, Array, when=_scales)
@compose_pair.kernel(Array, Diagonal, when=_scales)
@compose_pair.kernel(Banded, Banded, when=_scales)
def _compose_pair_diagonal(x: Array, y: Array) -> Array | None:
    result = matmul.dispatch(x, y)
    return result if type(result) is not Dense and stored(result) <= stored(x) + stored(y) else None


@compose_pair.kernel(Diagonal, Toeplitz, when=lambda x, y: type(x) is not Identity)
@compose_pair.kernel(Toeplitz, Diagonal, when=lambda x, y: type(y) is not Identity)
def compose_scaled_toeplitz(x: Array, y: Array) -> None:
    """Return None: a Toeplitz matrix with scaled rows or columns stores more entries than the two factors."""
    return


def product(*factors: Array) -> Array:
    """Product of stacks of matrices with one dtype, in the smallest form: dense if a `Product` does not save memory."""
    result = canonical(common_batch(*factors))
    if not isinstance(result, Factored) or pays_as_product(result.factors if type(result) is Product else (result,)):
        return result
    return Dense.make((result.dense_data(),))


@unexpanded("matmul")
def _matmul_unexpanded(function: Function[..., Any], args: Sequence[Array], shape: Shape) -> Array | None:
    """Product of two structures without a common kernel, as two factors; None if it does not save memory."""
    result = canonical(common_batch(*args))
    factors = result.factors if type(result) is Product else (result,)
    return result if type(result) is not Dense and pays_as_product(factors) else None


def pays_as_product(factors: Sequence[Array]) -> bool:
    """Return whether factors store less, in total, than their product in dense form."""
    return smaller(sum(map(stored, factors)), factors[0].shape[-2] * factors[-1].shape[-1])


@unexpanded("multiply", "divide")
def _multiply_unexpanded(function: Function[..., Any], args: Sequence[Array], shape: Shape) -> Array | None:
    """A matrix that stores all of its entries, times or divided by a row or a column: a product with a diagonal matrix."""
    x, y = args
    if function.name == "multiply" and not x.stores_entries:
        x, y = y, x
    core = shape[-2:]
    if not x.stores_entries or type(y) is not Dense or x.shape[-2:] != core or 1 in core:
        return None
    data = y.data.reshape((1,) * (2 - y.ndim) + y.shape)
    if data.shape[-2:] not in ((1, core[1]), (core[0], 1)):
        return None
    row = data.shape[-2] == 1
    data = data.reshape((*data.shape[:-2], core[1] if row else core[0]))
    diagonal = Diagonal.make((data if function.name == "multiply" else reciprocal(data), None), (data.shape[-1],) * 2)
    factors = common_batch(*((x, diagonal) if row else (diagonal, x)))
    return canonical(factors) if pays_as_product(factors) else None


def times_number(x: Array, factor: Callable[[Array], Array]) -> Product:
    """A matrix with a scalar factor, for `scale` if the structure cannot absorb the scalar."""
    return Product.make((factor(identity_like(x, x.shape[-2])), x))


# ---- the order of multiplication ----------------------------------------------------------------------------------------------


def chain(arrays: Sequence[Array]) -> Array:
    """Multiply several arrays to a dense result, in the order that takes the fewest multiplications."""
    arrays = list(arrays)
    if len(arrays) == 1:
        return to_dense(arrays[0])
    splits = _cheapest([_size_and_cost(x) for x in arrays])

    def multiplied(i: int, j: int) -> Array:
        if i == j:
            return arrays[i]
        k = splits[i, j]
        x, y = multiplied(i, k), multiplied(k + 1, j)
        if type(x) is not Dense and type(y) is not Dense:
            product = expanded_product(matmul, x, y, expand=lambda x, name: to_dense(x), smaller=True)
            if product is not NotImplemented:
                return to_dense(product)
            y = to_dense(y)
        return to_dense(matmul.dispatch(x, y))

    return multiplied(0, len(arrays) - 1)


def _size_and_cost(x: Array) -> tuple[tuple[float, float], float | None]:
    m, n = map(estimated, x.shape[-2:])
    return (m, n), None if type(x) is Dense else estimated(x.product_cost)


def _cheapest(shapes: Sequence[tuple[tuple[float, float], Any]]) -> dict[tuple[int, int], int]:
    """Return where to split each part of a chain.

    `shapes` contains, for each factor, its shape and the cost of a product with a column (None for a dense factor).
    """
    count = len(shapes)
    best = {(i, i): 0.0 for i in range(count)}
    splits = {}

    def pair(i: int, k: int, j: int) -> float:
        rows, columns = shapes[i][0][0], shapes[j][0][1]
        costs = [rows * shapes[k][0][1] * columns]
        if i == k and shapes[i][1] is not None:
            costs.append(shapes[i][1] * columns)
        if k + 1 == j and shapes[j][1] is not None:
            costs.append(shapes[j][1] * rows)
        return min(costs)

    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost, k = min((best[i, k] + best[k + 1, j] + pair(i, k, j), -k) for k in range(i, j))
            best[i, j], splits[i, j] = cost, -k
    return splits


@matmul.kernel(Product, Dense, when=is_second_matrix)
def _matmul_product_dense(x1: Product, x2: Dense) -> Array:
    return chain((*x1.factors, x2))


@matmul.kernel(Dense, Product, when=is_first_matrix)
def _matmul_dense_product(x1: Dense, x2: Product) -> Array:
    return chain((x1, *x2.factors))


@matmul.kernel(Factored, Array)
@matmul.kernel(Array, Factored)
def _matmul_factored(x1: Array, x2: Array) -> Array:
    """A vector is multiplied as a column or a row. Two factors without a kernel stay a product."""
    if x2.ndim == 1:
        return Dense.make((matmul(x1, Dense.make((x2.dense_data()[:, None],))).dense_data()[..., 0],))
    if x1.ndim == 1:
        return Dense.make((matmul(Dense.make((x1.dense_data()[None, :],)), x2).dense_data()[..., 0, :],))
    return product(x1, x2)


# ---- other functions -------------------------------------------------------------------------------------------------


@matrix_transpose.kernel(Product)
def _matrix_transpose_product(x: Product) -> Product:
    return Product.make(tuple(map(matrix_transpose, x.factors[::-1])))


@elements.kernel(Product)
def _elements_product(x: Product, i: jax.Array, j: jax.Array) -> jax.Array:
    """Compute the elements from their rows or their columns, whichever are fewer; diagonal factors at the ends scale them."""
    shape = jnp.broadcast_shapes(i.shape, j.shape)
    for end, lines_of, others in ((0, i, x.factors[1:]), (-1, j, x.factors[:-1])):
        factor = x.factors[end]
        if _scales_lines(factor):
            at = lines_of.reshape((1,) * (len(shape) - lines_of.ndim) + lines_of.shape)
            return factor.diag[..., at] * element(others[0] if len(others) == 1 else Product.make(others), i, j)
    if math.prod(shape) >= math.prod(x.shape[-2:]):
        return x.dense_data()[..., i, j]
    if i.size == j.size == math.prod(shape):
        return _paired(x, i, j, shape)
    return in_blocks(_from_lines, x, i, j)


def _from_lines(x: Product, i: jax.Array, j: jax.Array) -> jax.Array:
    if j.size < i.size:
        return _from_rows(cast("Product", matrix_transpose(x)), j, i)
    return _from_rows(x, i, j)


def _rows_through(factors: Sequence[Array], i: jax.Array) -> jax.Array:
    """Dense rows of a product."""
    rows = Dense.make((lines(factors[0], i.ravel(), -2),))
    for factor in factors[1:]:
        rows = to_dense(matmul(rows, factor))
    return rows.data


def _from_rows(x: Product, i: jax.Array, j: jax.Array) -> jax.Array:
    """Compute elements from their few rows, each with many columns."""
    return _rows_through(x.factors, i)[..., jnp.arange(i.size).reshape(i.shape), j]


IN_ONE_GO = 2**18
"""The maximum number of stored entries of rows and columns at a time, if elements are computed one by one."""


def _paired(x: Product, i: jax.Array, j: jax.Array, shape: Shape) -> jax.Array:
    """Compute each element from its own row and column.

    For the diagonal of a large matrix this is done piece by piece, since all rows together would be as large as the
    dense form.
    """
    *left, last = x.factors

    def elements_of(i: jax.Array, j: jax.Array) -> jax.Array:
        return jnp.sum(_rows_through(left, i) * lines(last, j.ravel(), -1), axis=-1, dtype=x.dtype)

    i, j = i.ravel(), j.ravel()
    at_once = max(1, IN_ONE_GO // max(1, *(f.shape[-1] for f in left)))
    if i.size <= at_once:
        return elements_of(i, j).reshape((*x.shape[:-2], *shape))
    result = lax.map(lambda place: elements_of(*place)[..., 0], (i[:, None], j[:, None]), batch_size=at_once)
    return jnp.moveaxis(result, 0, -1).reshape((*x.shape[:-2], *shape))


@scale.kernel(Product)
def _scale_product(x: Product, factor: Callable[[Array], Array]) -> Array:
    smallest = min(range(len(x.factors)), key=lambda k: stored(x.factors[k]))
    return canonical(factor(f) if k == smallest else f for k, f in enumerate(x.factors))


@sum_of.kernel(Product, when=lambda x, *, axis, keepdims: keepdims and axis in ((x.ndim - 2,), (x.ndim - 1,)))
def _sum_of_product(x: Product, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Multiply the column sums of the first factor by the other factors, or the other factors by the row sums of the
    last one.
    """
    end, others = (x.factors[0], x.factors[1:]) if axis == (x.ndim - 2,) else (x.factors[-1], x.factors[:-1])
    sums = Dense.make((sum_of(end, axis=axis, dtype=x.dtype, keepdims=True).dense_data(),))
    return chain((sums, *others) if axis == (x.ndim - 2,) else (*others, sums))


# ---- elementwise products: scalings of rows and columns stay outside -------------------------------------------------


def _scales_lines(factor: Array) -> TypeGuard[Diagonal]:
    return isinstance(factor, Diagonal) and is_square_pattern(factor)


def _is_scaled(x: Product, *args: Array) -> bool:
    return any(_scales_lines(f) for f in (x.factors[0], x.factors[-1]))


def _unscaled(x: Array) -> tuple[list[Diagonal], Array, list[Diagonal]]:
    """Split a matrix into ``(D, A, E)``: lists of at most one diagonal matrix each, and the factor between them."""
    if type(x) is not Product:
        return [], x, []
    factors = list(x.factors)
    left: list[Any] = [factors.pop(0)] if _scales_lines(factors[0]) else []
    right: list[Any] = [factors.pop()] if len(factors) > 1 and _scales_lines(factors[-1]) else []
    return left, factors[0] if len(factors) == 1 else Product.make(tuple(factors)), right


@hadamard_pair.kernel(Product, Factored, when=_is_scaled)
def _hadamard_pair_product_factored(x: Product, y: Factored) -> Array | None:
    """``(D A E) * (F B G) = D F (A * B) E G`` for diagonal D to G, with the structure of ``A * B``."""
    (left, a, right), (more, b, further) = _unscaled(x), _unscaled(y)
    result = hadamard(a, b) if isinstance(a, Factored) and isinstance(b, Factored) else multiply.dispatch(a, b)
    if result is None:
        return None
    for factor in (*left, *more):
        result = matmul(factor, result)
    for factor in (*right, *further):
        result = matmul(result, factor)
    return result


def _keeps_magnitudes(x: Product) -> bool:
    """Return whether the factor between two scalings has the same structure as its magnitudes."""
    if x.dtype.kind in "biu" or not _is_scaled(x):  # the magnitude of an integer that wrapped around is not a product
        return False
    _, middle, _ = _unscaled(x)
    return middle.stores_entries or (isinstance(middle, Factored) and absolute.choose((middle,), {}) is not None)


@absolute.kernel(Product, when=_keeps_magnitudes)
def _absolute_product(x: Product) -> Array:
    """``|D A E| = |D| |A| |E|`` for diagonal D and E."""
    left, middle, right = _unscaled(x)
    return product(*map(absolute.dispatch, (*left, middle, *right)))


@select_lines.kernel(Product)
def _select_lines_product(x: Product, key: tuple[tuple[Any, ...], tuple[Any, ...]], axis: int) -> Array:
    item, operands = key
    place = 0 if axis == -2 else -1
    own = x.factors[place]
    chosen = index(own, operands, key=line_key(own, item, axis))
    return product(chosen, *x.factors[1:]) if axis == -2 else product(*x.factors[:-1], chosen)


@validated.kernel(Product)
def check_product(x: Product) -> None:
    """Raise unless there are at least two factors, and adjacent factors have compatible shapes."""
    check_static(x.meta is None, x)
    shapes = check_parts(x, 2)
    require(all(a[1] == b[0] for a, b in zip(shapes, shapes[1:])), "adjacent factors must have compatible shapes")
