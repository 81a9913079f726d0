"""`Symmetric` and `Hermitian`: matrices of which one triangle is read; the other one is its mirror image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.array.base import Array
from ..._core.array.dense import parameter
from ..._core.array.validation import check_leaves, check_static, validated
from ..._core.families.elementwise_rule import is_real
from ..._core.families.entries import elements
from ..._core.families.entry_array import EntryArray
from ..._core.families.join import join_pair, restrict_to
from ..._numerics import bands
from ..._numerics import packed_triangles as triangles
from ..._numerics.conversions import converted
from ..banded.array import batch_of
from ..banded.diagonal import Diagonal
from ..fill.array import Fill, fills_matrices
from ..triangular.array import flag, restrict_to_triangle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from ..._core.array.arguments import ParameterLike
    from ..._core.dispatch.function import Function
    from ..._core.typing import DTypeLike, Leaves, Meta, Shape, Spec

    M = TypeVar("M", bound="Mirrored")


class Mirrored(EntryArray):
    """Base class of `Symmetric` and `Hermitian`, which differ in the mirror image of an entry."""

    __slots__ = ()
    parameter_names = ("data",)
    full_size = True
    conjugates = False
    """Whether the mirror image of an entry is its complex conjugate."""

    def __new__(cls, a: ParameterLike, lower: bool = True) -> Self:
        data = parameter(a, "a", cls.__name__)
        if data.ndim < 2 or data.shape[-1] != data.shape[-2]:
            raise ValueError(f"a must be (..., n, n), square in its last two dimensions, got shape {data.shape}")
        return cls.make((data,), flag(lower, "lower"))

    @classmethod
    def from_dense(cls, a: ParameterLike, lower: bool = True) -> Self:
        """Return the array with these values.

        Parameters
        ----------
        a : array_like
            The matrix ``(..., n, n)``, equal to its transpose (for `Hermitian`: its conjugate transpose).
        lower : bool, default True
            Whether the array reads the lower triangle; otherwise the upper one.

        Raises
        ------
        ValueError
            If two mirrored elements differ. Under `jax.jit` the values are unknown and are not checked.

        Examples
        --------
        >>> import structarrays as sa
        >>> sa.Symmetric.from_dense([[2.0, 1.0], [1.0, 4.0]]).shape
        (2, 2)
        """
        x = cls(a, lower)
        (data,), _ = x._value
        if not isinstance(data, jax.core.Tracer):
            host = np.asarray(data)
            image = np.swapaxes(host, -1, -2)
            image = image.conj() if cls.conjugates else image
            wrong = np.argwhere((host != image) & ~((host != host) & (image != image)))
            if wrong.size:
                i = tuple(map(int, wrong[0]))
                j = (*i[:-2], i[-1], i[-2])
                places = [f"a[{', '.join(map(str, k))}] is {host[k]}" for k in (i, j)]
                raise ValueError(f"a must be {cls.__name__}, but {' and '.join(dict.fromkeys(places))}")
        return x

    # ---- the parts -----------------------------------------------------------------------------------------------

    @property
    def data(self) -> jax.Array:
        """The stored matrix ``(..., n, n)``; one triangle of it is read."""
        data: jax.Array = self._value[0][0]
        return data

    @property
    def lower(self) -> bool:
        """Return whether the lower triangle is read; if not, the upper triangle is read."""
        lower: bool = self.meta
        return lower

    @property
    def entries(self) -> tuple[jax.Array, ...]:
        """The matrix with ones for all elements that are not read, so that any function may be mapped over it."""
        data = triangles.triangle(self.data, self.lower, 1)
        return (triangles.real_diagonal(data) if self._is_complex else data,)

    @property
    def _is_complex(self) -> bool:
        """Return whether the mirror image of an entry may differ from it."""
        return self.conjugates and self.dtype.kind == "c"

    @property
    def covers(self) -> bool:
        return True

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        shape: Shape = leaves[0].shape
        batch_of(shape, 2)
        return shape

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        return (spec,)

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> Mirrored:
        return type(self).make(tuple(entries), self.lower)

    def gather(self, data: jax.Array) -> tuple[jax.Array, ...]:
        data = data.reshape((1,) * (2 - data.ndim) + data.shape)
        return (jnp.where(triangles.mask(self.shape, self.lower), data, jnp.ones((), data.dtype)),)

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        i = jnp.arange(self.shape[-1])
        i, j = i[:, None], i[None, :]
        return ((jnp.maximum(i, j), jnp.minimum(i, j)) if self.lower else (jnp.minimum(i, j), jnp.maximum(i, j)),)

    def dense_data(self) -> jax.Array:
        return triangles.mirrored(self.data, self.lower, self._is_complex)

    def cast(self, dtype: DTypeLike) -> Self:
        return type(self).make((converted(self.data, dtype),), self.lower)

    def description(self) -> tuple[list[str], bool]:
        return ["lower" if self.lower else "upper", f"shape={self.shape}"], False

    def reflect(self, values: jax.Array) -> jax.Array:
        """Return the mirror images of entries."""
        return values.conj() if self._is_complex else values

    def turned(self) -> Self:
        """Return the array with the same value that reads the other triangle."""
        return type(self).make((self.reflect(self.data.mT),), not self.lower)

    def diagonal(self, offset: int) -> jax.Array:
        """Return the diagonal with this offset, ``(..., k)``."""
        stored = -abs(offset) if self.lower else abs(offset)
        values = bands.at_diagonal(self.data, stored, self.shape[-2:])
        if offset == 0:
            return jax.lax.complex(values.real, jnp.zeros_like(values.real)) if self._is_complex else values
        return values if stored == offset else self.reflect(values)


class Symmetric(Mirrored):
    r"""A symmetric matrix, ``A.mT == A``: one triangle of `a` is read, the other is its mirror image.

    Parameters
    ----------
    a : array_like
        The matrix ``(..., n, n)``. The other triangle may have any elements, including NaN.
    lower : bool, default True
        Whether the lower triangle (``j <= i``) is read; otherwise the upper one (``j >= i``).

    Raises
    ------
    ValueError
        If `a` is not square.
    TypeError
        If `lower` is not a boolean.

    Notes
    -----
    The array stores `a` unchanged, as LAPACK does. Elementwise functions keep the structure. A complex matrix is
    symmetric, not Hermitian. The costs are

    ======================================  ==================================================================
    elementwise, reductions                 ``O(n**2)``, one half is read
    `matrix_transpose`, `diagonal`          no computation, ``O(n)``
    product with a vector, with k columns   ``2 n**2``, ``2 n**2 k`` operations
    `eigh`, `cholesky` (real)               read one triangle; ``cholesky`` returns a `Triangular`
    `solve`, `inv`                          LU with pivoting; Cholesky if assumed positive definite
    ======================================  ==================================================================

    The gradient has the structure of the array. An off-diagonal entry has two positions, and its derivative is the sum
    over both.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.Symmetric([[2.0, 0.0], [1.0, 2.0]])
    >>> A @ sa.asarray([1.0, 0.0])
    Dense([2., 1.], dtype=float64)
    >>> sa.linalg.eigvalsh(A + sa.eye(2))
    Dense([2., 4.], dtype=float64)
    """

    __slots__ = ()

    def closed_under(self, function: Function[..., Any], args: Sequence[Array]) -> bool:
        """Return False if an operand is Hermitian: a real intermediate result may have hidden it."""
        return not any(x.dtype.kind == "c" and type(x) is Hermitian and not is_real(x) for x in args)


class Hermitian(Mirrored):
    r"""A Hermitian matrix, ``conj(A).mT == A``: one triangle of `a` is read, the other is its conjugated mirror image.

    Parameters
    ----------
    a : array_like
        The matrix ``(..., n, n)``. The other triangle and the imaginary part of the diagonal may have any values,
        including NaN.
    lower : bool, default True
        Whether the lower triangle (``j <= i``) is read; otherwise the upper one (``j >= i``).

    Raises
    ------
    ValueError
        If `a` is not square.
    TypeError
        If `lower` is not a boolean.

    Notes
    -----
    With a real dtype the array behaves as `Symmetric`. With a complex dtype, elementwise functions of Hermitian and
    real operands keep the structure if they map conjugates to conjugates and real numbers to real numbers, such as
    `abs`, `exp`, `add` and `multiply`. Other functions give a dense array: `sqrt`, which is imaginary for negative
    numbers, `imag`, and a product with a complex number. `real`, `abs` and comparisons give a `Symmetric`. The costs
    equal the costs of `Symmetric`. `inv` and `matrix_transpose` are Hermitian.

    Examples
    --------
    >>> import structarrays as sa
    >>> H = sa.Hermitian([[2.0, 0.0], [1.0j, 2.0]])
    >>> sa.linalg.eigvalsh(2 * H)
    Dense([2., 6.], dtype=float64)
    >>> type(sa.real(H)).__name__
    'Symmetric'
    """

    __slots__ = ()
    conjugates = True

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> Mirrored:
        (data,) = entries
        real = self.dtype.kind == "c" != data.dtype.kind
        return (Symmetric if real else Hermitian).make((data,), self.lower)

    def closed_under(self, function: Function[..., Any], args: Sequence[Array]) -> bool:
        """Return whether the function maps conjugates to conjugates and real to real numbers, for these operands."""
        if all(x.dtype.kind != "c" for x in args):
            return True
        hermitian_or_real = all(type(x) is Hermitian or is_real(x) for x in args)
        return function.name in _KEEP_CONJUGATES and hermitian_or_real


_KEEP_CONJUGATES = frozenset(
    """abs add asinh atan conj cos cosh divide equal exp expm1 isfinite isinf isnan multiply negative not_equal positive real
    reciprocal round sign sin sinh square subtract tan tanh where _is_nonzero""".split()
)
"""Elementwise functions f with ``f(conj(z)) == conj(f(z))`` and real values for real numbers.

Roots, logarithms and the other inverse functions are not among them, since they are complex for some real numbers. Nor
are `pow` and `imag`."""


@elements.kernel(Mirrored)
def _elements_mirrored(x: Mirrored, i: jax.Array, j: jax.Array) -> jax.Array:
    low, high = jnp.minimum(i, j), jnp.maximum(i, j)
    value = x.data[..., high, low] if x.lower else x.data[..., low, high]
    if not x._is_complex:
        return value
    value = jnp.where(i == j, value.real.astype(value.dtype), value)
    return jnp.where(i >= j if x.lower else i <= j, value, value.conj())


# ---- the join, the restriction ---------------------------------------------------------------------------------------


# If the triangles differ, the lower one is read, regardless of the order of the arguments.


def _read_alike(cls: type[M], x: Mirrored, y: Mirrored) -> tuple[M, ...]:
    """Return both as arrays of one class that read the same triangle."""
    lower = x.lower or y.lower
    return tuple(cls.make(((a if a.lower == lower else a.turned()).data,), lower) for a in (x, y))


@join_pair.kernel(Hermitian, Hermitian)
@join_pair.kernel(Symmetric, Hermitian, when=lambda x, y: is_real(x))
def _join_pair_hermitian(x: Mirrored, y: Hermitian) -> tuple[Hermitian, ...]:
    return _read_alike(Hermitian, x, y)


@join_pair.kernel(Symmetric, Symmetric)
@join_pair.kernel(Symmetric, Hermitian, when=lambda x, y: is_real(y) and not is_real(x))
def _join_pair_symmetric(x: Symmetric, y: Mirrored) -> tuple[Symmetric, ...]:
    return _read_alike(Symmetric, x, y)


def _can_be_hermitian(x: Hermitian, y: Array) -> bool:
    return not x._is_complex or is_real(y)


@join_pair.kernel(Symmetric, Diagonal)
@join_pair.kernel(Symmetric, Fill, when=lambda x, y: fills_matrices(y))
@join_pair.kernel(Hermitian, Diagonal, when=_can_be_hermitian)
@join_pair.kernel(Hermitian, Fill, when=lambda x, y: fills_matrices(y) and _can_be_hermitian(x, y))
def _join_pair_mirrored_diagonal(x: M, y: Diagonal | Fill) -> tuple[M, M]:
    return x, type(x).make((y.dense_data(),), x.lower)


restrict_to.kernel(Array, Mirrored)(restrict_to_triangle)


@validated.kernel(Symmetric)
@validated.kernel(Hermitian)
def check_mirrored(x: Symmetric | Hermitian) -> None:
    """Raise unless the parameter is a square matrix."""
    check_static(type(x.meta) is bool, x)
    check_leaves(x, x.data.shape[-1:] * 2)
