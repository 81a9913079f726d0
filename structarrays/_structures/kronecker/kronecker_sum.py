"""`KroneckerSum`: a sum of matrices that each act on one axis of a tensor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, cast

import jax.numpy as jnp
import numpy as np

from ..._core.array.dense import Dense
from ..._core.array.sharding import of_factors
from ..._core.array.validation import check_parts, check_static, require, validated
from ..._core.assumptions import is_hermitian, self_adjoint
from ..._core.families.conditions import is_complex, on_main_diagonal
from ..._core.families.entries import element, elements
from ..._core.families.factored import (
    Factored,
    chain,
    common_batch,
    hadamard_pair,
    inner_pair,
    merge_pair,
    parts_of,
    scale,
    squared_norms,
)
from ..._core.families.other_forms import by_form
from ..._functions.creation import tril, triu
from ..._functions.elementwise import abs as absolute
from ..._functions.elementwise import multiply
from ..._functions.linalg.norms import diagonal, trace
from ..._functions.linear_algebra import matmul, matrix_transpose
from ..._functions.rounding_and_parts import imag, real
from ..._numerics import kronecker_factors
from ..._numerics.symbolic import as_number
from ..._numerics.vectors import by_columns, by_rows
from ..banded.diagonal import Diagonal, Identity, identity_like
from ..composite.sum import Sum, total
from ..composite.sums_of_squares import inner
from .array import (
    Kronecker,
    along,
    as_tensor,
    banded_product,
    combined,
    is_scaled_identity,
    kronecker_pattern,
    same_factor_shapes,
    scaled,
    unravel,
    with_marks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import jax

    from ..._core.array.arguments import ArrayLike
    from ..._core.array.base import Array
    from ..._core.typing import DTypeLike, Leaves, Meta, Shape, Spec
    from ..banded.array import Banded


class KroneckerSum(Factored):
    r"""A Kronecker sum of square matrices.

    Parameters
    ----------
    *factors : array_like
        The factors, ``(..., n_i, n_i)``, arrays of any structure. The batch shapes broadcast, and the dtypes are promoted.

    Returns
    -------
    Array
        A `KroneckerSum` with ``N = n_1 ⋯ n_k`` rows, which stores the factors. A single factor is returned as it is. Nested sums are
        flattened.

    Raises
    ------
    ValueError
        If there is no factor, one is not square, or the batch shapes do not broadcast.
    TypeError
        If a factor is boolean.

    Notes
    -----
    The value is :math:`A_1 \oplus \dots \oplus A_k`, with :math:`A \oplus B = A \otimes I + I \otimes B`. In row-major order
    :math:`(A \oplus B)\, \mathrm{vec}(X) = \mathrm{vec}(A X + X B^T)`. Examples are the Laplacian on a grid (a Kronecker sum of second
    differences) and the Sylvester equation (a linear system with a Kronecker sum). With dense factors, the costs are:

    ==================================================  ============================================================
    stores                                              ``sum(n_i**2)``
    times a vector                                      ``O(N sum(n_i))``
    sum of two, with a multiple of the identity         a `KroneckerSum`
    `solve`, `slogdet`, `det`                           ``O(sum(n_i**3) + N sum(n_i))``: by the eigenvectors of the factors if the
                                                        matrix is known to be Hermitian, else by their Schur forms
    `eigvalsh`, `eigvals`                               ``O(sum(n_i**3) + N log N)``
    `eigh`, `eig`                                       the same; the eigenvectors are a `Kronecker` (`eigh`: sorted)
    `sum`, `mean`, diagonal, Frobenius norm             no more than a product with a vector
    ==================================================  ============================================================

    The matrix is known to be Hermitian if all factors are, by their class (`Symmetric`, `Hermitian`, a real `Diagonal`) or by
    ``assume(factor, "symmetric")``, or if the whole is, by ``assume(x, "hermitian")``. JAX provides the Schur form on CPUs. Other devices
    use the dense form if a factor is not known to be Hermitian. First and second derivatives of `slogdet` then use eigenvectors. For a
    nearly defective factor, first derivatives take ``O(N n_i**2)`` operations, and second derivatives are NaN.

    On CPUs, linear systems and determinants use the tridiagonal form of the largest Hermitian factor instead of its eigenvectors, if
    its size exceeds 128 and no derivative is taken. This halves the work.

    References
    ----------
    R. H. Bartels, G. W. Stewart, *Solution of the matrix equation AX + XB = C*, Communications of the ACM 15 (1972).

    R. E. Lynch, J. R. Rice, D. H. Thomas, *Direct solution of partial difference equations by tensor product methods*, Numerische
    Mathematik 6 (1964).

    Examples
    --------
    >>> import structarrays as sa
    >>> D = sa.tridiagonal([-1.0] * 99, [2.0] * 100, [-1.0] * 99)
    >>> laplacian = sa.KroneckerSum(D, D)
    >>> laplacian.shape
    (10000, 10000)
    >>> sa.sum(laplacian @ sa.ones((10000,)))
    Dense(400., dtype=float64)
    """

    __slots__ = ()
    parameter_names = ("factors[]",)

    def __new__(cls, *factors: ArrayLike) -> Self:
        parts = parts_of(factors, "KroneckerSum", "factor")
        for i, f in enumerate(parts):
            if f.shape[-1] != f.shape[-2]:
                raise ValueError(f"factor {i + 1} must be square in its last two dimensions, got shape {f.shape}")
        return cast("Self", combined(parts, canonical))

    @property
    def factors(self) -> tuple[Array, ...]:
        """The factors, from left to right."""
        return self._value[0]

    @property
    def linear(self) -> bool:  # type: ignore[override]  # of other factored arrays it is a constant
        """Return whether the dense value is linear in the parameters. It is if all factors are linear."""
        return all(f.linear for f in self.factors)

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        shapes = [f.shape for f in leaves]  # each shape once, as in `Kronecker`
        n = math.prod(s[-1] for s in shapes)
        return (*shapes[0][:-2], n, n)

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        return of_factors(self.factors, spec, divides)

    def to_banded(self) -> Banded:
        """Convert a sum of banded factors to one `Banded`.

        Raises
        ------
        StructureError
            If a factor is not banded.
        """
        return chain(_banded_sum, [cast("Banded", f.to_banded()) for f in self.factors])

    def dense_data(self) -> jax.Array:
        return chain(kronecker_factors.kron_sum, [f.dense_data() for f in self.factors])

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The pattern of the sum of products of one factor with identities."""
        identities = [Identity.make((np.ones(()), None), f.shape[-2:]) for f in self.factors]
        terms = [
            kronecker_pattern([*identities[:k], f, *identities[k + 1 :]], rows, columns)
            for k, f in enumerate(self.factors)
        ]
        seen: np.ndarray = np.maximum.reduce(terms)
        return seen

    @property
    def product_cost(self) -> int:
        n = self.shape[-1]
        return sum(f.product_cost * (n // max(1, f.shape[-1])) for f in self.factors)

    def cast(self, dtype: DTypeLike) -> Array:
        return super(KroneckerSum, with_marks(self)).cast(dtype)


def _banded_sum(a: Banded, b: Banded) -> Banded:
    """The Kronecker sum of two square banded arrays, as a banded array."""
    left, right = (Identity.make((jnp.ones((), x.dtype), None), x.core_shape) for x in (a, b))
    return cast("Banded", banded_product(a, right) + banded_product(left, b))


def canonical(factors: Sequence[Array]) -> Array:
    """Kronecker sum of stacks of square matrices with one dtype and batch shape: a single array if possible."""
    factors = [g for f in factors for g in (f.factors if type(f) is KroneckerSum else (f,))]
    return factors[0] if len(factors) == 1 else KroneckerSum.make(tuple(factors))


def kronecker_sum(*factors: Array) -> Array:
    """Kronecker sum of stacks of square matrices with one dtype, which may have different batch shapes; dense if that
    is no larger.
    """
    x = canonical(common_batch(*factors))
    return Dense.make((x.dense_data(),)) if type(x) is KroneckerSum and x.full_size else x


def as_sum(x: KroneckerSum) -> Sum:
    """The same matrix as a sum of Kronecker products with identities."""
    ones = [identity_like(f, f.shape[-1]) for f in x.factors]
    return Sum.make(
        tuple(Kronecker.make((*ones[:i], f, *ones[i + 1 :])) for i, f in enumerate(x.factors))
    )  # not canonical, since that would merge them again


@self_adjoint.kernel(KroneckerSum)
def _self_adjoint_kronecker_sum(x: KroneckerSum) -> bool:
    return all(map(is_hermitian, x.factors))


# ---- elements and products -------------------------------------------------------------------------------------------


@elements.kernel(KroneckerSum)
def _elements_kronecker_sum(x: KroneckerSum, i: jax.Array, j: jax.Array) -> jax.Array:
    """An element of a factor contributes if the indices of all other factors are equal."""
    sizes = [f.shape[-1] for f in x.factors]
    rows, columns = unravel(i, sizes), unravel(j, sizes)
    equal = [r == c for r, c in zip(rows, columns, strict=True)]
    terms = []
    for k, factor in enumerate(x.factors):
        others = chain(jnp.logical_and, [e for l, e in enumerate(equal) if l != k])
        terms.append(jnp.where(others, element(factor, rows[k], columns[k]), jnp.zeros((), x.dtype)))
    return chain(jnp.add, terms)


def _summed(x: KroneckerSum, data: jax.Array, *, columns: bool) -> jax.Array:
    """Sum of each factor applied to its axis of a tensor."""
    factors, tensor, first = as_tensor(x, data, columns)
    total = chain(jnp.add, [along(f, tensor, first + i) for i, f in enumerate(factors)])
    return total.reshape(*tensor.shape[:first], x.shape[-1], *tensor.shape[first + len(factors) :])


@matmul.kernel(KroneckerSum, Dense)
def _matmul_kronecker_sum_dense(x1: KroneckerSum, x2: Dense) -> Dense:
    return Dense.make((by_columns(lambda data: _summed(x1, data, columns=True), x2.data),))


@matmul.kernel(Dense, KroneckerSum)
def _matmul_dense_kronecker_sum(x1: Dense, x2: KroneckerSum) -> Dense:
    return Dense.make((by_rows(lambda data: _summed(x2, data, columns=False), x1.data),))


@matrix_transpose.kernel(KroneckerSum)
def _matrix_transpose_kronecker_sum(x: KroneckerSum) -> Array:
    return x.with_parts(matrix_transpose)


# ---- sums and multiples ------------------------------------------------------------------------------------------------


@merge_pair.kernel(KroneckerSum, KroneckerSum, when=same_factor_shapes)
def _merge_pair_kronecker_sum_kronecker_sum(x: KroneckerSum, y: KroneckerSum) -> KroneckerSum:
    return KroneckerSum.make(tuple(_added(a, b) for a, b in zip(x.factors, y.factors, strict=True)))


def _added(a: Array, b: Array) -> Array:
    return total(a, b).assuming(a.assumptions & b.assumptions)


@merge_pair.kernel(Identity, KroneckerSum, when=is_scaled_identity)
def _merge_pair_identity_kronecker_sum(x: Identity, y: KroneckerSum) -> KroneckerSum:
    """The multiple of the identity is added to the first factor."""
    first, *others = y.factors
    n = first.shape[-1]
    shifted = total(first, Identity.make((x.scale, None), (n, n)))
    kept = {"symmetric"} if x.dtype.kind == "c" else {"symmetric", "hermitian"}
    return KroneckerSum.make((shifted.assuming(first.assumptions & kept), *others))


def _acts_on_one(x: Kronecker) -> int | None:
    """Return the only factor of a Kronecker product that is not an identity."""
    places = [i for i, f in enumerate(x.factors) if not is_scaled_identity(f)]
    return places[0] if len(places) == 1 else None


def _makes_sum(x: Kronecker, y: Kronecker) -> bool:
    if len(x.factors) != 2 or not same_factor_shapes(x, y):
        return False
    return (_acts_on_one(x), _acts_on_one(y)) == (0, 1)


@merge_pair.kernel(Kronecker, Kronecker, when=_makes_sum)
def _merge_pair_kronecker_kronecker(x: Kronecker, y: Kronecker) -> KroneckerSum | None:
    """``A ⊗ s I + t I ⊗ B``."""
    (a, one), (other, b) = x.factors, y.factors
    if a.shape[-2] != a.shape[-1] or b.shape[-2] != b.shape[-1]:
        return None
    s, t = cast("Identity", one).scale, cast("Identity", other).scale
    return KroneckerSum.make((_times(a, s), _times(b, t)))


def _times(x: Array, number: jax.Array) -> Array:
    factor = Dense.make((number[..., None, None],))
    return scaled(x, lambda f: multiply(f, factor))


@scale.kernel(KroneckerSum)
def _scale_kronecker_sum(x: KroneckerSum, factor: Callable[[Array], Array]) -> Array:
    return x.with_parts(lambda f: scaled(f, factor))


@real.kernel(KroneckerSum, when=is_complex)
def _real_kronecker_sum(x: KroneckerSum) -> Array:
    return x.with_parts(real)


@imag.kernel(KroneckerSum, when=is_complex)
def _imag_kronecker_sum(x: KroneckerSum) -> Array:
    return x.with_parts(imag)


@hadamard_pair.kernel(KroneckerSum, Factored)
def _hadamard_pair_kronecker_sum_factored(x: KroneckerSum, y: Factored) -> Array:
    return total(*(multiply.dispatch(term, y) for term in as_sum(x).terms))


@hadamard_pair.kernel(KroneckerSum, KroneckerSum, when=same_factor_shapes)
def _hadamard_pair_kronecker_sum_kronecker_sum(x: KroneckerSum, y: KroneckerSum) -> Array:
    """An off-diagonal element belongs to a single factor. So elements are multiplied factor by factor, and nothing
    cancels.
    """
    factors = [multiply.dispatch(a, b) for a, b in zip(x.factors, y.factors, strict=True)]
    return _by_places(factors, diagonal(x).dense_data() * diagonal(y).dense_data())


@absolute.kernel(KroneckerSum)
def _absolute_kronecker_sum(x: KroneckerSum) -> Array:
    return _by_places([absolute(f) for f in x.factors], jnp.abs(diagonal(x).dense_data()))


def _by_places(factors: Sequence[Array], on_diagonal: jax.Array) -> Array:
    """Array with the off-diagonal elements of the factors, and with these diagonal elements."""
    off = [total(tril(f, k=-1), triu(f, k=1)) for f in factors]  # a difference could leave rounding errors
    n = on_diagonal.shape[-1]
    return total(kronecker_sum(*off), Diagonal.make((on_diagonal, None), (n, n)))


# ---- reductions --------------------------------------------------------------------------------------------------------


@diagonal.kernel(KroneckerSum, when=on_main_diagonal)
def _diagonal_kronecker_sum(x: KroneckerSum, *, offset: int) -> Dense:
    return Dense.make((kronecker_factors.sums(diagonal(f).dense_data() for f in x.factors),))


@trace.kernel(
    KroneckerSum, when=lambda x, *, offset, dtype: offset == 0 and dtype is None and x.dtype.kind not in "biu"
)
def _trace_kronecker_sum(x: KroneckerSum, *, offset: int, dtype: np.dtype | None) -> Dense:
    n = x.shape[-1]
    traces = [trace(f).dense_data() * as_number(n // max(1, f.shape[-1]), x.dtype) for f in x.factors]
    return Dense.make((chain(jnp.add, traces),))


by_form(squared_norms, of=KroneckerSum)(as_sum)


@inner_pair.kernel(KroneckerSum, Kronecker)
@inner_pair.kernel(KroneckerSum, KroneckerSum)
def _inner_pair_kronecker_sum_kronecker(
    x: KroneckerSum, y: Kronecker | KroneckerSum, *, axes: tuple[int, ...]
) -> jax.Array:
    return chain(jnp.add, [inner(term, y, axes) for term in as_sum(x).terms])


@inner_pair.kernel(Kronecker, KroneckerSum)
def _inner_pair_kronecker_kronecker_sum(x: Kronecker, y: KroneckerSum, *, axes: tuple[int, ...]) -> jax.Array:
    return chain(jnp.add, [inner(x, term, axes) for term in as_sum(y).terms])


@validated.kernel(KroneckerSum)
def check_kronecker_sum(x: KroneckerSum) -> None:
    """Raise unless there are at least two factors, all of them square."""
    check_static(x.meta is None, x)
    require(all(m == n for m, n in check_parts(x, 2)), "all factors must be square")
