"""Conversions between structured arrays and linear operators of Lineax, with tags.

The module requires Lineax: ``pip install structarrays[lineax]``.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

try:
    import equinox as eqx
    import lineax as lx  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError(
        f"structarrays.interop.lineax needs Lineax: pip install structarrays[lineax] ({error})"
    ) from error

from .._core import dtypes
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.assumptions import assume, is_hermitian
from .._core.dispatch.results import as_jax
from .._core.families.join import is_zero_outside
from .._functions.conversion import densified
from .._functions.data_type import astype
from .._functions.linalg.norms import diagonal as diagonal_of
from .._functions.linear_algebra import matmul, matrix_transpose
from .._functions.rounding_and_parts import conj
from .._structures.banded.array import Banded
from .._structures.banded.diagonal import Diagonal
from .._structures.banded.from_diagonals import tridiagonal
from .._structures.symmetric.array import Symmetric
from .._structures.triangular.array import Triangular
from .linear_operators import check_matrix
from .lineax_solver import StructuredLinearSolver, matrix_of_products

__all__ = ["StructuredLinearOperator", "StructuredLinearSolver", "from_operator", "operator"]


def operator(x: Array, /, tags: Any = ()) -> StructuredLinearOperator:
    """Convert a matrix to a linear operator of Lineax.

    Parameters
    ----------
    x : array, (M, N)
        Matrix of any structure. Integers and booleans are converted to the default floating-point data type.
    tags : object or iterable of objects, default ()
        Tags to add, such as ``lineax.positive_semidefinite_tag``. They are not verified, as in Lineax.

    Returns
    -------
    StructuredLinearOperator
        Operator with `tags` and the tags that follow from structure and assumptions (`structarrays.assume`) of a square
        matrix: ``diagonal_tag``, ``tridiagonal_tag``, ``lower_triangular_tag``, ``upper_triangular_tag``,
        ``unit_diagonal_tag``, ``symmetric_tag`` and ``positive_semidefinite_tag``.

    Raises
    ------
    TypeError
        If `x` is not an array of this namespace.
    ValueError
        If `x` is not a single matrix.

    Notes
    -----
    The solvers of Lineax access an operator in different ways:

    ===============================================  ================================================================
    `CG`, `GMRES`, `BiCGStab`, `LSMR`, `NormalCG`    products with the matrix and its transpose, no dense form
    `Diagonal`, `Tridiagonal`                        the diagonals, no dense form
    `LU`, `QR`, `SVD`, `Cholesky`, `Triangular`      ``as_matrix()``, the dense form under the policy of `densify`
    ===============================================  ================================================================

    `AutoLinearSolver`, the default of `lineax.linear_solve`, selects a solver by the tags.

    Examples
    --------
    >>> import lineax
    >>> import structarrays as sa
    >>> A = sa.assume(sa.tridiagonal([1.0], [2.0, 2.0], [1.0]), "positive_definite")
    >>> L = sa.interop.lineax.operator(A)
    >>> lineax.is_tridiagonal(L), lineax.is_positive_semidefinite(L)
    (True, True)
    >>> lineax.linear_solve(L, sa.asarray([3.0, 3.0]).to_jax()).value
    Array([1., 1.], dtype=float64)
    """
    check_matrix(x)
    if x.dtype.kind not in "fc":
        x = astype(x, dtypes.default_dtype("f"))
    given = frozenset(tags) if hasattr(tags, "__iter__") else frozenset((tags,))
    return StructuredLinearOperator(x, given | _tags(x))


def _tags(x: Array) -> frozenset[Any]:
    """Return the tags that follow from the structure and the assumptions of a matrix."""
    if x.shape[0] != x.shape[1]:
        return frozenset()
    is_real = x.dtype.kind != "c"
    known = {
        lx.symmetric_tag: (
            "symmetric" in x.assumptions or isinstance(x, Symmetric | Diagonal) or (is_real and is_hermitian(x))
        ),
        lx.positive_semidefinite_tag: "positive_semidefinite" in x.assumptions,
        lx.unit_diagonal_tag: isinstance(x, Triangular) and x.unit_diagonal,
    }
    if is_zero_outside(x):
        below, above = x.bandwidths()
        known |= {
            lx.diagonal_tag: below == above == 0,
            lx.tridiagonal_tag: max(below, above) <= 1,
            lx.lower_triangular_tag: above == 0,
            lx.upper_triangular_tag: below == 0,
        }
    if x.shape == (1, 1):
        known[lx.diagonal_tag] = True  # as in Lineax, for any class
    return frozenset(tag for tag, holds in known.items() if holds)


class StructuredLinearOperator(lx.AbstractLinearOperator):  # type: ignore[misc]  # Lineax has no types
    """Linear operator of a structured matrix, returned by `operator`.

    Attributes
    ----------
    array : Array
        The matrix. Derivatives with respect to the operator have its structure.
    tags : frozenset
        Tags of Lineax.
    """

    array: Any
    tags: frozenset[Any] = eqx.field(static=True)

    def mv(self, vector: jax.Array) -> jax.Array:
        """Multiply by a vector, in the structure of the matrix."""
        return as_jax(matmul(self.array, vector))

    def as_matrix(self) -> jax.Array:
        """Return the dense form, under the policy of `structarrays.densify`."""
        return densified(self.array, "lineax: as_matrix").to_jax()

    def transpose(self) -> StructuredLinearOperator:
        """Return the operator of the transpose."""
        return StructuredLinearOperator(matrix_transpose(self.array), lx.transpose_tags(self.tags))

    def in_structure(self) -> jax.ShapeDtypeStruct:
        """Return the shape and data type of input vectors."""
        return jax.ShapeDtypeStruct(self.array.shape[1:], self.array.dtype)

    def out_structure(self) -> jax.ShapeDtypeStruct:
        """Return the shape and data type of output vectors."""
        return jax.ShapeDtypeStruct(self.array.shape[:1], self.array.dtype)


# ---- functions of Lineax for the operator -----------------------------------------------------------------------------


@lx.linearise.register(StructuredLinearOperator)  # type: ignore[untyped-decorator]  # of Lineax
def _linearise_structured_linear_operator(operator: StructuredLinearOperator) -> StructuredLinearOperator:
    return operator


@lx.materialise.register(StructuredLinearOperator)  # type: ignore[untyped-decorator]  # of Lineax
def _materialise_structured_linear_operator(operator: StructuredLinearOperator) -> lx.AbstractLinearOperator:
    if lx.is_diagonal(operator):
        narrow = lx.DiagonalLinearOperator(lx.diagonal(operator))
    elif lx.is_tridiagonal(operator):
        narrow = lx.TridiagonalLinearOperator(*lx.tridiagonal(operator))
    else:
        return lx.MatrixLinearOperator(operator.as_matrix(), operator.tags)
    return lx.TaggedLinearOperator(narrow, operator.tags)


@lx.diagonal.register(StructuredLinearOperator)  # type: ignore[untyped-decorator]  # of Lineax
def _diagonal_structured_linear_operator(operator: StructuredLinearOperator) -> jax.Array:
    return as_jax(diagonal_of(operator.array))


@lx.tridiagonal.register(StructuredLinearOperator)  # type: ignore[untyped-decorator]  # of Lineax
def _tridiagonal_structured_linear_operator(operator: StructuredLinearOperator) -> tuple[jax.Array, ...]:
    return tuple(as_jax(diagonal_of(operator.array, offset=k)) for k in (0, -1, 1))


@lx.conj.register(StructuredLinearOperator)  # type: ignore[untyped-decorator]  # of Lineax
def _conj_structured_linear_operator(operator: StructuredLinearOperator) -> StructuredLinearOperator:
    return StructuredLinearOperator(conj(operator.array), operator.tags)


@lx.is_symmetric.register(StructuredLinearOperator)  # type: ignore[untyped-decorator]  # of Lineax
def _is_symmetric_structured_linear_operator(operator: StructuredLinearOperator) -> bool:
    if operator.tags & {lx.symmetric_tag, lx.diagonal_tag}:
        return True
    semidefinite = operator.tags & {lx.positive_semidefinite_tag, lx.negative_semidefinite_tag}
    return bool(semidefinite) and operator.array.dtype.kind != "c"


def _tagged(ask: Any, *tags: Any) -> None:
    """Register a predicate of Lineax that holds if the operator has one of the tags."""
    ask.register(StructuredLinearOperator, lambda operator: not operator.tags.isdisjoint(tags))


_tagged(lx.is_diagonal, lx.diagonal_tag)
_tagged(lx.is_tridiagonal, lx.tridiagonal_tag, lx.diagonal_tag)
_tagged(lx.is_lower_triangular, lx.lower_triangular_tag, lx.diagonal_tag)
_tagged(lx.is_upper_triangular, lx.upper_triangular_tag, lx.diagonal_tag)
_tagged(lx.has_unit_diagonal, lx.unit_diagonal_tag)
_tagged(lx.is_positive_semidefinite, lx.positive_semidefinite_tag)
_tagged(lx.is_negative_semidefinite, lx.negative_semidefinite_tag)


# ---- from Lineax's operators ------------------------------------------------------------------------------------------


def from_operator(operator: lx.AbstractLinearOperator, /) -> Array:
    """Convert a linear operator of Lineax to a structured array.

    Parameters
    ----------
    operator : lineax.AbstractLinearOperator
        Operator of any class. An operator on pytrees becomes the matrix that ``as_matrix()`` returns, with concatenated
        leaves.

    Returns
    -------
    array, (M, N)
        A `Diagonal` or a tridiagonal `Banded` if the class or the tags of `operator` say so. Sums, multiples and
        compositions are computed from the converted parts. A function or a Jacobian has the structure that
        `structarrays.jacobian` finds. Otherwise ``as_matrix()`` as `Triangular` or `Dense`.
        Symmetric and positive semidefinite tags become assumptions, unless the structure implies them.

    Raises
    ------
    TypeError
        If `operator` is not a linear operator of Lineax.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import lineax
    >>> import structarrays as sa
    >>> L = lineax.TridiagonalLinearOperator(jnp.ones(3), jnp.ones(2), jnp.ones(2))
    >>> sa.interop.lineax.from_operator(2.0 * L).offsets
    (-1, 0, 1)
    """
    if not isinstance(operator, lx.AbstractLinearOperator):
        raise TypeError(
            f"from_operator: operator must be a lineax.AbstractLinearOperator, got {type(operator).__name__}"
        )
    x = _converted(operator)
    if operator.in_size() != operator.out_size():
        return x
    if type(x) is Dense and (lx.is_lower_triangular(operator) or lx.is_upper_triangular(operator)):
        lower = lx.is_lower_triangular(operator)
        x = Triangular(x.data, lower=lower, unit_diagonal=lx.has_unit_diagonal(operator))
    asked = (
        ("symmetric", lx.is_symmetric, lx.symmetric_tag),
        ("positive_semidefinite", lx.is_positive_semidefinite, lx.positive_semidefinite_tag),
    )
    told = _tags(x)
    known = [name for name, ask, tag in asked if tag not in told and ask(operator)]
    return assume(x, *known) if known else x


def _converted(operator: lx.AbstractLinearOperator) -> Array:
    """Convert an operator by its tags (diagonal or tridiagonal), or else by its class."""
    if isinstance(operator, StructuredLinearOperator):
        x: Array = operator.array
        return x
    if operator.in_size() == operator.out_size():
        if lx.is_diagonal(operator):
            return Diagonal(lx.diagonal(operator))
        if lx.is_tridiagonal(operator) and operator.in_size() > 1:
            diagonal, lower, upper = lx.tridiagonal(operator)
            return tridiagonal(lower, diagonal, upper)
    return _by_class(operator)


@functools.singledispatch
def _by_class(operator: lx.AbstractLinearOperator) -> Array:
    return Dense.make((operator.as_matrix(),))


@_by_class.register
def _by_class_identity_linear_operator(operator: lx.IdentityLinearOperator) -> Array:
    shape = operator.out_size(), operator.in_size()
    dtype = jnp.result_type(*jax.tree.leaves(operator.in_structure()))
    return Banded([jnp.ones(min(shape), dtype)], (0,), shape)


_by_class.register(lx.FunctionLinearOperator, matrix_of_products)
_by_class.register(lx.JacobianLinearOperator, matrix_of_products)
_by_class.register(lx.TaggedLinearOperator, lambda L: from_operator(L.operator))
_by_class.register(lx.AddLinearOperator, lambda L: from_operator(L.operator1) + from_operator(L.operator2))
_by_class.register(lx.ComposedLinearOperator, lambda L: from_operator(L.operator1) @ from_operator(L.operator2))
_by_class.register(lx.NegLinearOperator, lambda L: -from_operator(L.operator))
_by_class.register(lx.MulLinearOperator, lambda L: from_operator(L.operator) * L.scalar)
_by_class.register(lx.DivLinearOperator, lambda L: from_operator(L.operator) / L.scalar)
