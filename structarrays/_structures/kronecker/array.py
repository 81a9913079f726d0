"""`Kronecker`: a Kronecker product of matrices, and its products with other matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, cast

import jax.numpy as jnp
import numpy as np

from ..._core.array.dense import Dense
from ..._core.array.sharding import of_factors
from ..._core.array.validation import check_parts, check_static, validated
from ..._core.assumptions import is_hermitian, self_adjoint
from ..._core.errors import StructureError
from ..._core.families import pattern
from ..._core.families.conditions import is_not_complex, is_square_pattern
from ..._core.families.entries import element, elements
from ..._core.families.factored import (
    Factored,
    chain,
    common_batch,
    merge_pair,
    parts_of,
    scale,
    stored,
    unified,
    with_batch,
)
from ..._functions.elementwise import add
from ..._functions.linear_algebra import matmul, matrix_transpose
from ..._numerics import bands as bands_kernel
from ..._numerics import kronecker_factors
from ..._numerics.symbolic import estimated
from ..._numerics.vectors import by_columns, by_rows
from ..banded.array import bands
from ..banded.diagonal import Diagonal, Identity
from ..composite.product import compose_pair
from ..symmetric.array import Hermitian, Symmetric

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    import jax

    from ..._core.array.arguments import ArrayLike
    from ..._core.array.base import Array
    from ..._core.typing import DTypeLike, Leaves, Meta, Shape, Spec
    from ..banded.array import Banded
    from .kronecker_sum import KroneckerSum

    F = TypeVar("F", bound=Factored)


class Kronecker(Factored):
    r"""A Kronecker product of matrices.

    Parameters
    ----------
    *factors : array_like
        The factors, ``(..., m_i, n_i)``, arrays of any structure. The batch shapes broadcast, and the dtypes are promoted.

    Returns
    -------
    Array
        A `Kronecker` of shape ``(..., m_1 ⋯ m_k, n_1 ⋯ n_k)``, which stores the factors. Nested products are flattened. A product of
        square identities is an `Identity`, and a single factor is returned as it is.

    Raises
    ------
    ValueError
        If there is no factor, one has fewer than two dimensions, or the batch shapes do not broadcast.
    TypeError
        If a factor is boolean.

    Notes
    -----
    The value is :math:`A_1 \otimes \dots \otimes A_k`. For two factors it is the block matrix of all :math:`a_{ij} B`: the element
    ``a[i, j] * b[k, l]`` is in row ``i * m_2 + k`` and column ``j * n_2 + l``. In row-major order
    :math:`(A \otimes B)\, \mathrm{vec}(X) = \mathrm{vec}(A X B^T)`. With dense square factors and N rows in total, the costs are:

    =================================================  =============================================================
    stores                                             ``sum(n_i**2)``
    times a vector, `solve` for a vector               ``O(N sum(n_i))``; `solve` plus ``O(sum(n_i**3))`` once
    times a `Kronecker` of matching factors            a `Kronecker`, ``O(sum(n_i**3))``
    transpose, scaling, `inv`, `cholesky`, `qr`        a `Kronecker`, ``O(sum(n_i**3))`` or less
    powers, elementwise product of two, `abs`          the same
    `det`, `slogdet`, `matrix_rank`                    ``O(sum(n_i**3))``; `matrix_rank` plus ``O(N)``
    `eigh`, `svd`                                      ``O(sum(n_i**3) + N log N)``: a `Product` of a `Kronecker` and the
                                                       `Permutation` that sorts
    `sum`, `mean`, `var`, `max`, norms, diagonal       ``O(sum(n_i**2))`` and the size of the result
    rows by index or mask                              a `Product` of a `Sparse` selection and the whole
    `solve`, `slogdet`, `det`, `eigh` of ``A + c I``   ``O(sum(n_i**3) + N sum(n_i))`` by the eigenvectors of the factors, if
                                                       these or the whole are known to be Hermitian; else the first three by
                                                       Schur forms, on CPUs (see `KroneckerSum`, also for the largest factor)
    =================================================  =============================================================

    A factor is known to be Hermitian by its class (`Symmetric`, `Hermitian`, a real `Diagonal`) or by ``assume(factor, "symmetric")``.
    Assumptions that all factors share hold for the product. A symmetric product may have other factors, since a product
    of two antisymmetric matrices is symmetric. Only for a real array, ``assume(x, "positive_definite")`` implies that all factors are
    symmetric. If the whole is assumed Hermitian, and two factors are antisymmetric, the results of `eigh` are NaN.

    `pinv` treats a singular value as zero if a singular value of a factor is small relative to the largest one of that factor.

    References
    ----------
    C. F. Van Loan, *The ubiquitous Kronecker product*, J. Comput. Appl. Math. 123 (2000).

    Examples
    --------
    >>> import structarrays as sa
    >>> K = sa.Kronecker([[2.0, 1.0], [1.0, 2.0]], sa.Diagonal([1.0, 10.0, 100.0]))
    >>> K @ sa.ones((6,))
    Dense([  3.,  30., 300.,   3.,  30., 300.], dtype=float64)
    >>> float(sa.linalg.det(K))
    27000000.0
    """

    __slots__ = ()
    parameter_names = ("factors[]",)

    def __new__(cls, *factors: ArrayLike) -> Self:
        parts = parts_of(factors, "Kronecker", "factor")
        return cast("Self", combined(parts, canonical))

    @property
    def factors(self) -> tuple[Array, ...]:
        """The factors, from left to right."""
        return self._value[0]

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        # Compute each shape once. A second computation would cost exponential time in the nesting depth.
        shapes = [f.shape for f in leaves]
        return (*shapes[0][:-2], math.prod(s[-2] for s in shapes), math.prod(s[-1] for s in shapes))

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        return of_factors(self.factors, spec, divides)

    def dense_data(self) -> jax.Array:
        return chain(kronecker_factors.kron, [f.dense_data() for f in self.factors])

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return kronecker_pattern(self.factors, rows, columns)

    def to_banded(self) -> Banded:
        """Convert a product of banded factors to one `Banded`. It stores ``O(d N)`` entries for d pairs of diagonals and N rows.

        Raises
        ------
        StructureError
            If a factor is not banded, or one but the first is not square: its diagonals would not become diagonals.
        """
        return chain(banded_product, [cast("Banded", f.to_banded()) for f in self.factors])

    @property
    def product_cost(self) -> int:
        return _cost_of_modes(self.factors)

    def cast(self, dtype: DTypeLike) -> Array:
        return super(Kronecker, with_marks(self)).cast(dtype)


def kronecker_pattern(factors: Sequence[Array], rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The exact pattern of a Kronecker product.

    An interval of its rows consists of at most three pieces: the end of a block, whole blocks, and the beginning of a
    block. Each piece contains all pairs of some rows of the first factor and some rows of the rest.
    """
    first, *rest = factors
    if not rest:
        return pattern.pattern(first, rows, columns)
    sides = [pieces(each, math.prod(f.shape[axis] for f in rest)) for each, axis in ((rows, -2), (columns, -1))]
    (outer_rows, inner_rows), (outer_columns, inner_columns) = sides
    (inner_rows, which_rows), (inner_columns, which_columns) = map(_distinct, (inner_rows, inner_columns))
    inner = kronecker_pattern(rest, inner_rows, inner_columns)[np.ix_(which_rows, which_columns)]
    kinds: np.ndarray = pattern.both(pattern.pattern(first, outer_rows, outer_columns), inner)
    seen: np.ndarray = kinds.reshape(len(rows), 3, len(columns), 3).max(axis=(1, 3))
    return seen


def pieces(intervals: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Three pieces of each interval, some of them empty, with the rows of the first factor and of the rest, which has
    `size` rows.
    """
    outer: list[tuple[int, int]] = []
    inner: list[tuple[int, int]] = []
    for start, stop in intervals.tolist():
        a, b = start // max(size, 1), (stop - 1) // max(size, 1)
        if start >= stop:
            outer += [(0, 0)] * 3
            inner += [(0, 0)] * 3
        elif a == b:
            outer += [(a, a + 1), (0, 0), (0, 0)]
            inner += [(start - a * size, stop - a * size), (0, 0), (0, 0)]
        else:
            outer += [(a, a + 1), (a + 1, b), (b, b + 1)]
            inner += [(start - a * size, size), (0, size), (0, stop - b * size)]
    return pattern.intervals(outer), pattern.intervals(inner)


def _distinct(intervals: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """The distinct intervals, and the index of each interval among them. Pieces repeat; so their number does not grow
    with the factors.
    """
    numbers: dict[tuple[int, int], int] = {}
    which = [numbers.setdefault(pair, len(numbers)) for pair in map(tuple, intervals.tolist())]
    return pattern.intervals(numbers), which


def with_marks(x: F) -> F:
    """The same array, with the known properties of its real factors as assumptions, since no class of a complex array
    implies that it is real.
    """
    if x.dtype.kind != "f":
        return x
    definite = type(x) is Kronecker and has_hermitian_factors(cast("Kronecker", x))
    return cast("F", x.with_parts(lambda f: f.assuming(f.assumptions | MARKS) if definite or is_hermitian(f) else f))


MARKS = frozenset({"symmetric", "hermitian"})
"""The assumptions that hold for a real Hermitian matrix, and for the same matrix with a complex dtype."""


def _with_mark(factor: Array, promoted: Array) -> Array:
    """The promoted factor, which is known to be Hermitian if it was real and is complex now."""
    if factor.dtype.kind == "f" and promoted.dtype.kind == "c" and is_hermitian(factor):
        return promoted.assuming(promoted.assumptions | MARKS)
    return promoted


def combined(factors: Sequence[Array], combine: Callable[[Sequence[Array]], Array]) -> Array:
    """Combine factors with one dtype and batch shape, with the assumptions that all of them share."""
    result = combine([_with_mark(f, u) for f, u in zip(factors, unified(factors), strict=True)])
    return result.assuming(result.assumptions | frozenset.intersection(*(f.assumptions for f in factors)))


def canonical(factors: Sequence[Array]) -> Array:
    """Kronecker product of stacks of matrices with one dtype and batch shape: a single array if possible."""
    factors = [g for f in factors for g in (f.factors if type(f) is Kronecker else (f,))]
    if len(factors) == 1:
        return factors[0]
    if all(map(is_scaled_identity, factors)):
        size = math.prod(f.shape[-1] for f in factors)
        return Identity.make((chain(jnp.multiply, [cast("Identity", f).scale for f in factors]), None), (size, size))
    return Kronecker.make(tuple(factors))


def is_scaled_identity(x: Array, *args: Array) -> bool:
    """Return whether the class implies that each matrix is a multiple of the identity."""
    return type(x) is Identity and is_square_pattern(x)


def banded_product(a: Banded, b: Banded) -> Banded:
    """Kronecker product of a banded array and a square banded array, as a banded array."""
    (m, k), (p, n) = a.core_shape, b.core_shape
    if p != n:
        raise StructureError(f"to_banded: all factors but the first must be square, got one of shape {b.shape}")
    diagonals, offsets = bands_kernel.kron(a.diagonals, a.offsets, a.core_shape, b.diagonals, b.offsets, n)
    batch = jnp.broadcast_shapes(a.batch_shape, b.batch_shape)
    result: Banded = bands(diagonals, offsets, (m * n, k * n), dtype=a.dtype, batch=batch)
    return result


def kronecker(*factors: Array) -> Array:
    """Kronecker product of stacks of matrices with one dtype, which may have different batch shapes; dense if that is
    no larger.
    """
    x = canonical(common_batch(*factors))
    return Dense.make((x.dense_data(),)) if type(x) is Kronecker and x.full_size else x


def has_square_factors(x: Kronecker, *args: Any, **static: Any) -> bool:
    """Return whether all factors are square."""
    return all(f.shape[-2] == f.shape[-1] for f in x.factors)


def same_factor_shapes(x: Kronecker | KroneckerSum, y: Kronecker | KroneckerSum) -> bool:
    """Return whether the factors of two arrays have the same shapes."""
    return [f.shape[-2:] for f in x.factors] == [f.shape[-2:] for f in y.factors]


# ---- elements --------------------------------------------------------------------------------------------------------


def unravel(i: jax.Array, sizes: Sequence[int]) -> list[jax.Array]:
    """Split an index of the whole into the row (or column) indices of the factors."""
    indices = []
    for n in reversed(sizes):
        indices.append(i % max(n, 1))
        i = i // max(n, 1)
    return indices[::-1]


@elements.kernel(Kronecker)
def _elements_kronecker(x: Kronecker, i: jax.Array, j: jax.Array) -> jax.Array:
    rows, columns = (unravel(index, [f.shape[axis] for f in x.factors]) for index, axis in ((i, -2), (j, -1)))
    return chain(jnp.multiply, [element(*each) for each in zip(x.factors, rows, columns, strict=True)])


# ---- products with dense arrays, one factor after the other ------------------------------------------------------------


def _order(factors: Sequence[Array]) -> list[int]:
    """Return the cheapest order of the factors: cheap factors that shrink the array come first.

    The order follows from exchanging adjacent factors: a before b costs ``a + r_a b``, with the cost a for each element
    and the growth ``r_a`` of the number of elements.
    """

    def key(i: int) -> float:
        (m, n), cost = factors[i].shape[-2:], factors[i].product_cost
        return estimated(m - n) / max(1, estimated(cost))

    return sorted(range(len(factors)), key=key)


def _cost_of_modes(factors: Sequence[Array]) -> int:
    size, cost = math.prod(f.shape[-1] for f in factors), 0
    for i in _order(factors):
        (m, n) = factors[i].shape[-2:]
        columns = size // n if n else 0
        cost, size = cost + factors[i].product_cost * columns, columns * m
    return cost


def transformed(
    x: Kronecker, data: jax.Array, function: Callable[[Array, Dense], Array] | None = None, *, columns: bool = True
) -> jax.Array:
    """Apply each factor to its axis of a tensor.

    Parameters
    ----------
    x : Kronecker
    data : jax.Array
        ``(..., N, m)``, or with ``columns=False`` ``(..., m, N)``.
    function : callable, optional
        Of a factor and a stack of matrices ``(..., n_i, c)``, to the same; by default the product.
    columns : bool
        Where the axis of the whole stands.
    """
    factors, tensor, first = as_tensor(x, data, columns)
    for i in _order(factors):
        tensor = along(factors[i], tensor, first + i, function)
    size = math.prod(f.shape[-2] for f in factors)
    return tensor.reshape(*tensor.shape[:first], size, *tensor.shape[first + len(factors) :])


def as_tensor(x: Kronecker | KroneckerSum, data: jax.Array, columns: bool) -> tuple[Sequence[Array], jax.Array, int]:
    """Return the factors (transposed if `columns` is false), the data with an axis for each factor, and the first of
    these axes.
    """
    factors: Sequence[Array] = x.factors if columns else tuple(map(matrix_transpose, x.factors))
    if x.ndim > 2:
        batch = jnp.broadcast_shapes(x.shape[:-2], data.shape[:-2])
        factors = [with_batch(f, batch) for f in factors]
        data = jnp.broadcast_to(data, batch + data.shape[-2:])
    first = data.ndim - (2 if columns else 1)
    return factors, data.reshape(*data.shape[:first], *(f.shape[-1] for f in factors), *data.shape[first + 1 :]), first


def along(
    factor: Array, tensor: jax.Array, axis: int, function: Callable[[Array, Dense], Array] | None = None
) -> jax.Array:
    """Apply a factor to one axis of a tensor, which has the batch axes of the factor in front."""
    batch = factor.ndim - 2
    (m, n), shape = factor.shape[-2:], tensor.shape
    before, after = math.prod(shape[batch:axis]), math.prod(shape[axis + 1 :])
    result = (*shape[:axis], m, *shape[axis + 1 :])
    if 0 in (n, before, after):
        return jnp.zeros(result, tensor.dtype)
    if before == 1:
        data = Dense.make((tensor.reshape(*shape[:batch], n, after),))
        return (matmul(factor, data) if function is None else function(factor, data)).dense_data().reshape(result)
    if after == 1 and function is None:
        data = Dense.make((tensor.reshape(*shape[:batch], before, n),))
        return matmul(data, matrix_transpose(factor)).dense_data().reshape(result)
    return jnp.moveaxis(along(factor, jnp.moveaxis(tensor, axis, batch), batch, function), batch, axis)


@matmul.kernel(Kronecker, Dense)
def _matmul_kronecker_dense(x1: Kronecker, x2: Dense) -> Dense:
    return Dense.make((by_columns(lambda data: transformed(x1, data), x2.data),))


@matmul.kernel(Dense, Kronecker)
def _matmul_dense_kronecker(x1: Dense, x2: Kronecker) -> Dense:
    return Dense.make((by_rows(lambda data: transformed(x2, data, columns=False), x1.data),))


@matrix_transpose.kernel(Kronecker)
def _matrix_transpose_kronecker(x: Kronecker) -> Array:
    return x.with_parts(matrix_transpose)


# ---- products, sums and multiples in the same structure --------------------------------------------------------------


def factors_fit(x1: Kronecker, x2: Kronecker) -> bool:
    """Return whether two arrays can be multiplied factor by factor."""
    return [f.shape[-1] for f in x1.factors] == [f.shape[-2] for f in x2.factors]


@matmul.kernel(Kronecker, Kronecker, when=factors_fit)
@compose_pair.kernel(Kronecker, Kronecker, when=factors_fit)
def _matmul_kronecker_kronecker(x1: Kronecker, x2: Kronecker) -> Array:
    return kronecker(*map(matmul, x1.factors, x2.factors))


def is_diagonal(x: Kronecker, *args: Any) -> bool:
    """Return whether all factors are square diagonal matrices."""
    return all(isinstance(f, Diagonal) and is_square_pattern(f) for f in x.factors)


def as_diagonal(x: Kronecker) -> Diagonal:
    """Convert a Kronecker product of diagonal matrices to a single diagonal matrix."""
    return Diagonal.make((kronecker_factors.products(cast("Diagonal", f).diag for f in x.factors), None), x.shape[-2:])


@merge_pair.kernel(Diagonal, Kronecker, when=lambda x, y: is_diagonal(y) and not is_scaled_identity(x))
def _merge_pair_diagonal_kronecker(x: Diagonal, y: Kronecker) -> Array:
    result: Array = add.dispatch(x, as_diagonal(y))
    return result


def _is_diagonal_product(x1: Diagonal, x2: Kronecker) -> bool:
    return is_square_pattern(x1) and not is_scaled_identity(x1) and is_diagonal(x2)


@matmul.kernel(Diagonal, Kronecker, when=_is_diagonal_product)
@compose_pair.kernel(Diagonal, Kronecker, when=_is_diagonal_product)
def _matmul_diagonal_kronecker(x1: Diagonal, x2: Kronecker) -> Array:
    result: Array = matmul.dispatch(x1, as_diagonal(x2))
    return result


@matmul.kernel(Kronecker, Diagonal, when=lambda x1, x2: _is_diagonal_product(x2, x1))
@compose_pair.kernel(Kronecker, Diagonal, when=lambda x1, x2: _is_diagonal_product(x2, x1))
def _matmul_kronecker_diagonal(x1: Kronecker, x2: Diagonal) -> Array:
    result: Array = matmul.dispatch(as_diagonal(x1), x2)
    return result


@scale.kernel(Kronecker)
def _scale_kronecker(x: Kronecker, factor: Callable[[Array], Array]) -> Kronecker:
    smallest = min(range(len(x.factors)), key=lambda i: estimated(stored(x.factors[i])))
    return x.make(tuple(scaled(f, factor) if i == smallest else f for i, f in enumerate(x.factors)))


def scaled(x: Array, factor: Callable[[Array], Array]) -> Array:
    """A factor times a scalar, with the assumptions that hold for any scalar."""
    kept = {"symmetric"} if x.dtype.kind == "c" else {"symmetric", "hermitian"}
    return factor(x).assuming(x.assumptions & kept)


# ---- arrays that are Hermitian by class ------------------------------------------------------------------------------


@self_adjoint.kernel(Hermitian)
@self_adjoint.kernel(Symmetric, when=is_not_complex)
@self_adjoint.kernel(Diagonal, when=lambda x: x.dtype.kind != "c" and x.shape[-2] == x.shape[-1])
def _self_adjoint_hermitian(x: Array) -> bool:
    return True


@self_adjoint.kernel(Kronecker)
def has_hermitian_factors(x: Kronecker) -> bool:
    """Return whether all factors are known to be Hermitian.

    A positive definite real product has only symmetric factors. An antisymmetric factor would have imaginary
    eigenvalues of both signs, and so the product would have eigenvalues of both signs.
    """
    definite = "positive_definite" in x.assumptions and x.dtype.kind != "c" and has_square_factors(x)
    return definite or all(map(is_hermitian, x.factors))


@validated.kernel(Kronecker)
def check_kronecker(x: Kronecker) -> None:
    """Raise unless there are at least two factors."""
    check_static(x.meta is None, x)
    check_parts(x, 2)
