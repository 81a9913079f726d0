"""`Symmetric` and `Hermitian`: matrices of which one triangle is read, and the other is its mirror image."""

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
    """What `Symmetric` and `Hermitian` have in common; they differ in what the mirror does to an entry."""

    __slots__ = ()
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
        """The array with these values.

        Parameters
        ----------
        a : array_like
            ``(..., n, n)``, equal to its transpose (for `Hermitian`, conjugated).
        lower : bool
            Which triangle is read from now on.

        Raises
        ------
        ValueError
            If two mirrored elements differ; under `jax.jit`, where values are not known, that is not noticed.

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
        """The stored matrix ``(..., n, n)``, of which one triangle is read."""
        data: jax.Array = self._value[0][0]
        return data

    @property
    def lower(self) -> bool:
        """Whether the lower triangle is read; else the upper one."""
        lower: bool = self.meta
        return lower

    @property
    def entries(self) -> tuple[jax.Array, ...]:
        """The matrix with ones for what is not read: any function may be mapped over it."""
        data = triangles.triangle(self.data, self.lower, 1)
        return (triangles.real_diagonal(data) if self._is_complex else data,)

    @property
    def _is_complex(self) -> bool:
        """Whether the mirror changes something."""
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
        return type(self).make((jax.lax.convert_element_type(self.data, dtype),), self.lower)

    def description(self) -> tuple[list[str], bool]:
        return ["lower" if self.lower else "upper", f"shape={self.shape}"], False

    def reflect(self, values: jax.Array) -> jax.Array:
        """The mirror images of entries."""
        return values.conj() if self._is_complex else values

    def turned(self) -> Self:
        """The same value, with the other triangle read."""
        return type(self).make((self.reflect(self.data.mT),), not self.lower)

    def diagonal(self, offset: int) -> jax.Array:
        """The diagonal with this offset, ``(..., k)``."""
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
        ``(..., n, n)``. Only one triangle counts; the other half may hold anything, NaN too.
    lower : bool
        Whether that is the triangle with ``j <= i`` (default), or the upper one.

    Raises
    ------
    ValueError
        If `a` is not square.
    TypeError
        If `lower` is no boolean.

    Notes
    -----
    It stores `a` as it is, as LAPACK does. Every elementwise function keeps it: what is equal stays equal. A complex one is
    symmetric, not Hermitian. The costs are

    ======================================  ==================================================================
    elementwise, reductions                 ``O(n**2)``, one half is read
    `matrix_transpose`, `diagonal`          nothing, ``O(n)``
    times a vector, a matrix of k columns   ``2 n**2``, ``2 n**2 k`` operations
    `eigh`, `cholesky` (real)               of the one triangle; ``cholesky`` gives a `Triangular`
    `solve`, `inv`                          with pivots; by Cholesky's factorisation if assumed positive definite
    ======================================  ==================================================================

    The gradient has the structure of the array: an entry beside the diagonal stands at two places, and collects the
    derivatives by both.

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
        """Not where an operand is Hermitian: a real one in between may have hidden it."""
        return not any(x.dtype.kind == "c" and type(x) is Hermitian and not is_real(x) for x in args)


class Hermitian(Mirrored):
    r"""A Hermitian matrix, ``conj(A).mT == A``: one triangle of `a` is read, the other is its conjugated mirror image.

    Parameters
    ----------
    a : array_like
        ``(..., n, n)``. Only one triangle counts, of its diagonal only the real part; the rest may hold anything, NaN
        too.
    lower : bool
        Whether that is the triangle with ``j <= i`` (default), or the upper one.

    Raises
    ------
    ValueError
        If `a` is not square.
    TypeError
        If `lower` is no boolean.

    Notes
    -----
    Of a real dtype it behaves as `Symmetric`. Of a complex one it is kept by elementwise functions that map conjugates to
    conjugates and real numbers to real ones, such as `abs`, `exp`, `add` and `multiply`, of Hermitian and real operands. Others
    (`sqrt`, which is imaginary of negative numbers; `imag`; a product with a complex number) give a dense array.
    `real`, `abs` and comparisons give a `Symmetric`. Costs are those of `Symmetric`; `inv` and `matrix_transpose` are
    Hermitian.

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
        """Whether the function maps conjugates to conjugates and real numbers to real ones, of these operands."""
        if all(x.dtype.kind != "c" for x in args):
            return True
        hermitian_or_real = all(type(x) is Hermitian or is_real(x) for x in args)
        return function.name in _KEEP_CONJUGATES and hermitian_or_real


_KEEP_CONJUGATES = frozenset(
    """abs add asinh atan conj cos cosh divide equal exp expm1 isfinite isinf isnan multiply negative not_equal positive real
    reciprocal round sign sin sinh square subtract tan tanh where _is_nonzero""".split()
)
"""Elementwise functions f of complex numbers with ``f(conj(z)) == conj(f(z))`` and real values of real numbers. Not among them:
roots, logarithms and the other inverse functions, which are complex of some real numbers, `pow`, `imag`."""


@elements.kernel(Mirrored)
def _elements_mirrored(x: Mirrored, i: jax.Array, j: jax.Array) -> jax.Array:
    low, high = jnp.minimum(i, j), jnp.maximum(i, j)
    value = x.data[..., high, low] if x.lower else x.data[..., low, high]
    if not x._is_complex:
        return value
    value = jnp.where(i == j, value.real.astype(value.dtype), value)
    return jnp.where(i >= j if x.lower else i <= j, value, value.conj())


# ---- the join, the restriction ---------------------------------------------------------------------------------------


# The lower triangle is read of two that differ, in whatever order they come.


def _read_alike(cls: type[M], x: Mirrored, y: Mirrored) -> tuple[M, ...]:
    """Both as arrays of one class that read the same triangle."""
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
