"""`Sum`: a sum of matrices."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Self, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.validation import check_parts, check_static, require, validated
from ..._core.families import pattern
from ..._core.families.conditions import is_first_matrix, is_second_matrix
from ..._core.families.entries import element, elements
from ..._core.families.factored import (
    Factored,
    common_batch,
    hadamard,
    hadamard_pair,
    has_dynamic_parts,
    in_either_order,
    line_key,
    merge_pair,
    parts_of,
    pays,
    scale,
    select_lines,
    unified,
)
from ..._core.families.join import can_join, join
from ..._core.families.unexpanded import unexpanded
from ..._functions.elementwise import add, multiply, negative
from ..._functions.indexing import index
from ..._functions.linalg.norms import diagonal
from ..._functions.linear_algebra import matmul, matrix_transpose
from ..._functions.rounding_and_parts import conj, imag, real
from ..._functions.statistical import sum as sum_of
from ..._numerics.symbolic import is_symbolic, smaller
from ..banded.array import is_nothing
from ..banded.diagonal import Identity
from ..fill.array import Fill
from ..low_rank.array import LowRank, constant_of_rank_one, line_of_rank_one
from ..toeplitz.array import Toeplitz, is_narrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..._core.array.arguments import ArrayLike
    from ..._core.dispatch.function import Function
    from ..._core.typing import Leaves, Meta, Result, Shape, Spec


class Sum(Factored):
    r"""A sum of matrices of the same shape, each stored in its own structure.

    Parameters
    ----------
    *terms : array_like
        The terms, ``(..., m, n)``, arrays of any structure. The batch shapes broadcast, and the dtypes are promoted.

    Returns
    -------
    Array
        A `Sum`, unless the terms merge into one. Nested sums are flattened. Terms are added if their structures have a common
        structure that is not dense. Constants are added to low-rank terms. The order of the terms is fixed.

    Raises
    ------
    ValueError
        If there is no term, one has fewer than two dimensions, or the shapes differ.
    TypeError
        If a term is boolean.

    Notes
    -----
    The value is :math:`A = \sum_k A_k`; the terms are stored. Linear functions (products, transposes, scaling, `sum`, `mean`,
    rows and columns, diagonals, single elements) distribute over the terms. Elementwise products and squares do, too. Each costs
    what it costs for the terms. ``+`` and ``-`` return a `Sum` if it stores less than the dense form::

        X - xp.mean(X, axis=0)                # Sum(Sparse, LowRank) of a sparse X

    Terms may cancel: the error of a function is relative to the sum of the norms of the terms.

    Examples
    --------
    >>> import structarrays as sa
    >>> X = sa.Diagonal(sa.arange(1.0, 101.0))
    >>> Y = X - sa.mean(X, axis=0)
    >>> [type(term).__name__ for term in Y.terms]
    ['Diagonal', 'LowRank']
    >>> float(sa.max(sa.abs(sa.sum(Y, axis=0)))) < 1e-12
    True
    """

    __slots__ = ()
    parameter_names = ("terms[]",)

    def __new__(cls, *terms: ArrayLike) -> Self:
        parts = parts_of(terms, "Sum", "term")
        cores = {t.shape[-2:] for t in parts}
        if len(cores) > 1:
            raise ValueError(f"the terms must have the same shape, got {' and '.join(str(t.shape) for t in parts)}")
        return cast("Self", canonical(unified(parts)))  # a term, if only one remains

    @property
    def terms(self) -> tuple[Array, ...]:
        """The terms, each of the shape of the sum."""
        return self._value[0]

    @property
    def linear(self) -> bool:  # type: ignore[override]  # of other structures it is a constant
        """Return whether the dense value is linear in the parameters. It is if all terms are linear."""
        return all(term.linear for term in self.terms)

    solved_by_parts = True

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        shape: Shape = leaves[0].shape
        return shape

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        return (spec,) * len(self.terms)

    def dense_data(self) -> jax.Array:
        total = self.terms[0].dense_data()
        for term in self.terms[1:]:
            total = total + term.dense_data()
        return total

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        kinds: np.ndarray = np.maximum.reduce([pattern.pattern(term, rows, columns) for term in self.terms])
        return kinds

    @property
    def product_cost(self) -> int:
        return sum(term.product_cost for term in self.terms) + self.shape[-2] * (len(self.terms) - 1)


def canonical(terms: Iterable[Array]) -> Array:
    """Sum of stacks of matrices with one shape and dtype: a single array if possible, else a `Sum`."""
    kept: list[Array] = []
    queue = list(itertools.chain(*[t.terms if type(t) is Sum else (t,) for t in terms]))
    queue = [t for t in queue if not is_nothing(t)] or queue[:1]
    while queue:
        term = queue.pop(0)
        for i, other in enumerate(kept):
            merged = in_either_order(merge_pair, other, term)
            if merged is not None:
                del kept[i]
                queue[:0] = merged.terms if type(merged) is Sum else (merged,)
                break
        else:
            kept.append(term)
    if len(kept) == 1:
        return kept[0]
    kept.sort(key=lambda x: (isinstance(x, Factored), type(x) is LowRank, type(x).__name__))
    return Sum.make(tuple(kept))


def _joinable(x: Array, y: Array) -> bool:
    stores = [z.stores_entries or type(z) in (Dense, Fill) for z in (x, y)]
    return all(stores)


@merge_pair.kernel(Array, Array, when=_joinable)
def _merge_pair_array(x: Array, y: Array) -> Array | None:
    """Add terms that store entries in their common structure, if it represents the sum and is hardly larger than both
    terms. Solvers take one such term, plus terms of low rank.
    """
    if {type(x), type(y)} <= {Dense, Fill}:
        result: Array = add.dispatch(x, y)
        return result
    if Dense in (type(x), type(y)):
        return None
    # A constant becomes the background, which needs no storage.
    patterned = [z for z in (x, y) if type(z) is not Fill]
    if len(patterned) > 1 and not can_join(x, y):
        return None
    joined = patterned[0] if len(patterned) == 1 else join(x, y)[0]
    if type(joined) is Dense or not joined.closed_under(add, (x, y)):
        return None
    return None if smaller(_GROWTH * sum(map(_entries, patterned)), _entries(joined)) else add.dispatch(x, y)


_GROWTH = 3
"""The sum of a band and of blocks stores whole blocks beside them, but less than three times as many entries as both."""


def _entries(x: Array) -> Any:
    """The number of entries that a matrix needs next to one of another structure."""
    if isinstance(x, Identity):
        x = x.freed()
    repeated = x.shape[-1] if isinstance(x, Toeplitz) and is_narrow(x) else 1
    return repeated * sum(entry.size for entry in x.entries)


def total(*terms: Array, dense: Callable[[], jax.Array] | None = None) -> Array:
    """Sum of stacks of matrices with one dtype, in the smallest form: dense if a `Sum` does not save memory.

    `dense` returns the dense form in another way, if that takes less time than the sum of the dense terms.
    """
    result = canonical(common_batch(*terms))
    if not isinstance(result, Factored) or pays(*(result.terms if type(result) is Sum else (result,))):
        return result
    return Dense.make((result.dense_data() if dense is None else dense(),))


def split_background(x: Array) -> tuple[Array, Fill]:
    """Split a stack of matrices with a background into one with structural zeros, and a constant."""
    rest: Any = x.background
    above = tuple(e - rest.reshape(rest.shape + (1,) * (e.ndim - rest.ndim)) for e in x.entries)
    return x.rebuild(above, None), Fill.make((rest,), x.shape[-2:])


def _factors(x: Sum) -> list[Array]:
    """Return the terms, with constants as terms of rank one, so that a product with any other matrix keeps the
    structure.
    """
    terms: list[Array] = []
    above: Array | None
    for term in x.terms:
        above, constant = (
            split_background(term) if term.stores_entries and term.background is not None else (term, None)
        )
        if type(above) is Fill:
            above, constant = None, above
        terms += [] if above is None else [above]
        terms += [] if constant is None else [constant_of_rank_one(constant)]
    return terms


# ---- sums and differences ---------------------------------------------------------------------------------------------------


@unexpanded("add", "subtract")
def sums(function: Function[..., Any], args: Sequence[Array], shape: Shape) -> Array | None:
    """``x1 + x2`` or ``x1 - x2`` as a `Sum`, or None if that does not save memory.

    The rule of elementwise functions calls this before it densifies. A row, a column or a scalar next to a matrix is a
    term of rank one.
    """
    if len(shape) < 2 or any([type(x) is Dense and x.shape[-2:] == shape[-2:] for x in args]):
        return None
    first = _term(args[0], shape)
    if first is None:
        return None
    second = _term(args[1], shape, negate=function.name == "subtract")
    return None if second is None else total(first, second)


def _term(x: Array, shape: Shape, negate: bool = False) -> Array | None:
    """Convert an operand of a sum to a matrix of its shape, and change its sign if told to; None if it does not cover the core."""
    core = shape[-2:]
    if x.shape[-2:] == core:
        return negative.dispatch(x) if negate else x
    constant = x.constant_over(2)
    if constant is not None:
        batch = constant.shape[: max(0, constant.ndim - 2)]
        constant = constant.reshape(batch)
        return Fill.make((-constant if negate else constant,), core)
    if type(x) is not Dense and not x.full_size and x.size > max(core):
        return None
    line = x.dense_data()
    return line_of_rank_one(-line if negate else line, core)


# ---- functions that distribute over the terms ------------------------------------------------------------------------


@elements.kernel(Sum)
def _elements_sum(x: Sum, i: jax.Array, j: jax.Array) -> jax.Array:
    return _added(element(term, i, j) for term in x.terms)


def _added(arrays: Iterable[jax.Array]) -> jax.Array:
    arrays = list(arrays)
    result = arrays[0]
    for a in arrays[1:]:
        result = result + a
    return result


def _each(function: Callable[..., Array], gather: Callable[..., Array] = total) -> Callable[[Sum], Array]:
    """Return a kernel that maps the terms."""

    def _map_terms_of_sum(x: Sum) -> Array:
        return gather(*map(function, x.terms))

    return _map_terms_of_sum


def _kept(*terms: Array) -> Array:
    """Sum terms without simplifying the result.

    Used by operations that do not change the storage, so that an explicit `Sum` is preserved, such as a frozen weight
    plus a low-rank update.
    """
    return canonical(terms)


matrix_transpose.kernel(Sum)(_each(matrix_transpose, _kept))
conj.kernel(Sum)(_each(conj, _kept))


@real.kernel(Sum)
def _real_sum(x: Sum) -> Array:
    return total(*map(real, x.terms), dense=lambda: x.dense_data().real)


@imag.kernel(Sum)
def _imag_sum(x: Sum) -> Array:
    return total(*map(imag, x.terms), dense=lambda: x.dense_data().imag)


@diagonal.kernel(Sum)
def _diagonal_sum(x: Sum, *, offset: int) -> Dense:
    return Dense.make((_added(diagonal(term, offset=offset).dense_data() for term in x.terms),))


@matmul.kernel(Sum, Dense, when=is_second_matrix)
def _matmul_sum_dense(x1: Sum, x2: Dense) -> Dense:
    return Dense.make((_added(matmul(term, x2).dense_data() for term in x1.terms),))


@matmul.kernel(Dense, Sum, when=is_first_matrix)
def _matmul_dense_sum(x1: Dense, x2: Sum) -> Dense:
    return Dense.make((_added(matmul(x1, term).dense_data() for term in x2.terms),))


@matmul.kernel(Sum, Array, when=is_second_matrix)
def _matmul_sum(x1: Sum, x2: Array) -> Array:
    products = [matmul(term, x2) for term in _factors(x1)]
    return total(*products, dense=_dense_product(products, x1, x2))


@matmul.kernel(Array, Sum, when=is_first_matrix)
def _matmul_array_sum(x1: Array, x2: Sum) -> Array:
    products = [matmul(x1, term) for term in _factors(x2)]
    return total(*products, dense=_dense_product(products, x1, x2))


_PER_TERM = 8
"""The inner dimension at which a matrix product takes as long as the addition of one term to its result."""


def _dense_product(products: Sequence[Array], x1: Array, x2: Array) -> Callable[[], jax.Array] | None:
    """Return a function that multiplies the dense forms; None if the sum of the products of terms takes less time or memory."""
    count = sum(len(p.terms) if type(p) is Sum else 1 for p in products)
    m, k, n = *x1.shape[-2:], x2.shape[-1]
    if is_symbolic(m * k * n) or k > min(max(m, n), _PER_TERM * count):
        return None
    return lambda: jnp.matmul(x1.dense_data(), x2.dense_data())


@matmul.eager_kernel(Sum, Array)
@matmul.eager_kernel(Array, Sum)
def _matmul_sum_eagerly(x1: Array, x2: Array) -> Result:
    """Multiply term by term outside of the compiled call: the product of two sparse terms then has the exact number of
    entries.
    """
    if min(x1.ndim, x2.ndim) < 2 or x1.shape[-1] != x2.shape[-2] or not all(map(has_dynamic_parts, (x1, x2))):
        return NotImplemented
    left, right = (_factors(x) if type(x) is Sum else [x] for x in (x1, x2))
    return total(*(matmul(s, t) for s in left for t in right))


@scale.kernel(Sum)
def _scale_sum(x: Sum, factor: Callable[[Array], Array]) -> Array:
    return x.with_parts(factor)


@select_lines.kernel(Sum)
def _select_lines_sum(x: Sum, key: tuple[tuple[Any, ...], tuple[Any, ...]], axis: int) -> Array:
    item, operands = key
    return total(*(index(term, operands, key=line_key(x, item, axis)) for term in x.terms))


@sum_of.kernel(Sum)
def _sum_of_sum(x: Sum, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    sums = [sum_of(term, axis=axis, dtype=x.dtype, keepdims=keepdims) for term in x.terms]
    if all(a < x.ndim - 2 for a in axis):
        return total(*sums)
    return Dense.make((_added(s.dense_data() for s in sums),))


# ---- elementwise products distribute ----------------------------------------------------------------------------------------


@hadamard_pair.kernel(Sum, Factored)
def _hadamard_pair_sum_factored(x: Sum, y: Factored) -> Array | None:
    products = _each_times([(term, y) for term in x.terms])
    return None if products is None else total(*products)


@hadamard_pair.kernel(Sum, Sum)
def _hadamard_pair_sum_sum(x: Sum, y: Sum) -> Array | None:
    if x is not y:
        products = _each_times(itertools.product(x.terms, y.terms))
        return None if products is None else total(*products, dense=lambda: x.dense_data() * y.dense_data())
    squares, mixed = _each_times((t, t) for t in x.terms), _each_times(itertools.combinations(x.terms, 2))
    if squares is None or mixed is None:
        return None
    two = Dense.make((jnp.full((1, 1), 2, x.dtype),))
    return total(*squares, *(multiply.dispatch(two, m) for m in mixed), dense=lambda: lax.square(x.dense_data()))


def _each_times(pairs: Iterable[tuple[Array, Array]]) -> list[Array] | None:
    """Elementwise products of pairs of terms. None if a product of two factored terms has no structure: then the whole
    is densified once.
    """
    products = []
    for x, y in pairs:
        both = isinstance(x, Factored) and isinstance(y, Factored)
        product = hadamard(x, y) if both else multiply.dispatch(x, y)
        if product is None:
            return None
        products.append(product)
    return products


@validated.kernel(Sum)
def check_sum(x: Sum) -> None:
    """Raise unless there are at least two terms, all of one shape."""
    check_static(x.meta is None, x)
    require(len(set(check_parts(x, 2))) == 1, "all terms must have the same shape")
