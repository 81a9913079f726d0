"""`Triangular`: one triangle of a matrix, and its joins and meets with other structures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.array.base import Array
from ..._core.array.dense import parameter
from ..._core.array.validation import BACKGROUND, check_leaves, check_static, validated
from ..._core.families import pattern
from ..._core.families.entries import elements
from ..._core.families.entry_array import EntryArray
from ..._core.families.join import holds, is_zero_outside, join_pair, meet_pair, restrict, restrict_to
from ..._numerics import bands
from ..._numerics import packed_triangles as triangles
from ..._numerics.conversions import converted
from ..banded.array import Banded, at_offsets, batch_of
from ..banded.diagonal import Diagonal
from ..fill.array import Fill, fills_matrices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.array.arguments import ParameterLike
    from ..._core.typing import DTypeLike, Leaves, Meta, Shape, Spec
    from ..symmetric.array import Mirrored


class Triangular(EntryArray):
    r"""A lower or upper triangular matrix: one triangle of `a` is read, all other entries are structural zeros.

    Parameters
    ----------
    a : array_like
        The matrix ``(..., m, n)``, square or not. The other triangle may have any elements, including NaN, such as the
        other factor of a factorisation.
    lower : bool, default True
        Whether the lower triangle (``j <= i``) is read; otherwise the upper one (``j >= i``).
    unit_diagonal : bool, default False
        Whether the diagonal consists of ones and is not read.

    Raises
    ------
    ValueError
        If `a` has fewer than two dimensions.
    TypeError
        If `lower` or `unit_diagonal` is not a boolean.

    Notes
    -----
    The array stores `a` unchanged, as LAPACK does: no copy, and as many bytes as the dense form. The costs for
    an ``n x n`` matrix are

    ==========================================  ====================================================
    elementwise, reductions, transpose          ``O(n**2)``, the other half is skipped
    product with a vector, with k columns       ``n**2``, ``n**2 k`` operations: half of the dense product
    product with a triangular matrix            ``n**3 / 3``; triangular if both have the same side
    `solve`                                     ``n**2`` for each right-hand side, without a factorisation
    `inv`                                       ``O(n**3)``, triangular
    `det`, `slogdet`, `eigvals`                 ``O(n)``
    ==========================================  ====================================================

    The gradient has the structure of the array, with zeros in the half that is not read.

    Examples
    --------
    >>> import structarrays as sa
    >>> L = sa.Triangular([[2.0, float("nan")], [1.0, 4.0]])
    >>> sa.linalg.solve(L, sa.asarray([2.0, 9.0]))
    Dense([1., 2.], dtype=float64)
    >>> (L @ L).to_dense()
    Dense([[ 4.,  0.],
           [ 6., 16.]], dtype=float64)
    """

    __slots__ = ()
    parameter_names = ("data", "background")
    full_size = True

    def __new__(cls, a: ParameterLike, lower: bool = True, unit_diagonal: bool = False) -> Self:
        data = parameter(a, "a", cls.__name__)
        if data.ndim < 2:
            raise ValueError(f"a must be (..., m, n), at least two dimensions, got shape {data.shape}")
        return cls.make((data, None), (flag(lower, "lower"), flag(unit_diagonal, "unit_diagonal")))

    @classmethod
    def from_dense(cls, a: ParameterLike, lower: bool = True) -> Self:
        """Return the triangular array with these values.

        Parameters
        ----------
        a : array_like
            The matrix ``(..., m, n)``, with zeros outside the triangle.
        lower : bool, default True
            Whether the matrix is lower triangular; otherwise upper triangular.

        Raises
        ------
        ValueError
            If an element outside the triangle is not zero. Under `jax.jit` the values are unknown and are not checked.

        Examples
        --------
        >>> import structarrays as sa
        >>> sa.Triangular.from_dense([[2.0, 0.0], [1.0, 4.0]]).lower
        True
        """
        x = cls(a, lower)
        (data, _), _ = x._value
        if not isinstance(data, jax.core.Tracer):
            host = np.asarray(data)
            wrong = np.argwhere((np.triu(host, 1) if x.lower else np.tril(host, -1)) != 0)
            if wrong.size:
                place = tuple(map(int, wrong[0]))
                side = "lower" if x.lower else "upper"
                raise ValueError(f"a must be {side} triangular, but a[{', '.join(map(str, place))}] is {host[place]}")
        return x

    # ---- the parts -----------------------------------------------------------------------------------------------

    @property
    def data(self) -> jax.Array:
        """The stored matrix ``(..., m, n)``; one triangle of it is read."""
        data: jax.Array = self._value[0][0]
        return data

    @property
    def lower(self) -> bool:
        """Return whether the lower triangle is read; if not, the upper triangle is read."""
        lower: bool = self.meta[0]
        return lower

    @property
    def unit_diagonal(self) -> bool:
        """Return whether the diagonal consists of ones instead of the stored elements."""
        unit_diagonal: bool = self.meta[1]
        return unit_diagonal

    @property
    def linear(self) -> bool:
        """Return whether the dense value is linear in the parameters; a unit diagonal is a constant term."""
        return not self.unit_diagonal

    @property
    def background(self) -> jax.Array | None:
        """The value of all entries of the other triangle: None is the structural zero."""
        background: jax.Array | None = self._value[0][1]
        return background

    @property
    def entries(self) -> tuple[jax.Array, ...]:
        """The matrix with ones for all elements that are not read, so that any function may be mapped over it.

        A unit diagonal is a separate entry, since it has no derivative (the derivative of `acos` is infinite at 1).
        """
        (data, _), (_, (lower, unit_diagonal), _) = self._value
        if not unit_diagonal:
            return (triangles.triangle(data, lower, 1),)
        ones = jnp.ones((*data.shape[:-2], min(data.shape[-2:])), data.dtype)
        return triangles.strict(data, lower, 1), ones

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        shape: Shape = leaves[0].shape
        batch_of(shape, 2)
        return shape

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        return spec, self._batch_spec(spec)

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> Triangular:
        data = triangles.with_diagonal(*entries) if self.unit_diagonal else entries[0]
        return Triangular.make((data, background), (self.lower, False))

    def freed(self) -> Triangular:
        return self.rebuild(self.entries, self.background) if self.unit_diagonal else self

    def gather(self, data: jax.Array) -> tuple[jax.Array, ...]:
        data = data.reshape((1,) * (2 - data.ndim) + data.shape)
        inside = triangles.mask(self.shape, self.lower)
        inner = jnp.where(inside, data, jnp.ones((), data.dtype))
        return (inner, bands.at_diagonal(data, 0, self.shape[-2:])) if self.unit_diagonal else (inner,)

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        # An element that is not read gets the position of the diagonal entry in its row or column.
        i, j = (jnp.arange(n) for n in self.shape[-2:])
        i, j = i[:, None], j[None, :]
        inside = (i, jnp.minimum(i, j)) if self.lower else (jnp.minimum(i, j), j)
        along = jnp.arange(min(self.shape[-2:]))
        return (inside, (along, along)) if self.unit_diagonal else (inside,)

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        below, above = self.bandwidths()
        return pattern.stored(self, pattern.meets_band(rows, columns, -below, above))

    def bandwidths(self) -> tuple[int, int]:
        m, n = (max(0, size - 1) for size in self.shape[-2:])
        return (m, 0) if self.lower else (0, n)

    def dense_data(self) -> jax.Array:
        outside = 0 if self.background is None else self.background[..., None, None]
        dense = triangles.triangle(self.data, self.lower, outside)
        return triangles.with_diagonal(dense, 1) if self.unit_diagonal else dense

    def cast(self, dtype: DTypeLike) -> Triangular:
        leaves, meta = self._value[0], self.meta
        return Triangular.make(tuple(None if leaf is None else converted(leaf, dtype) for leaf in leaves), meta)

    def description(self) -> tuple[list[str], bool]:
        texts = ["lower" if self.lower else "upper", f"shape={self.shape}"]
        if self.unit_diagonal:
            texts.insert(1, "unit diagonal")
        return texts, False

    def diagonal(self, offset: int) -> jax.Array:
        """Return the diagonal with this offset, ``(..., k)``, read or not."""
        data, shape = self.data, self.shape[-2:]
        length = bands.diagonal_length(shape, offset)
        if offset == 0 and self.unit_diagonal:
            return jnp.ones((*self.batch_shape, length), self.dtype)
        if offset <= 0 if self.lower else offset >= 0:
            return bands.at_diagonal(data, offset, shape)
        outside = jnp.zeros((), self.dtype) if self.background is None else self.background[..., None]
        return jnp.broadcast_to(outside, (*self.batch_shape, length))


def flag(value: object, argument: str) -> bool:
    """Return a boolean argument, checked.

    Raises
    ------
    TypeError
        If `value` is not a boolean.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument} must be True or False, got {value!r}")
    return bool(value)


@elements.kernel(Triangular)
def _elements_triangular(x: Triangular, i: jax.Array, j: jax.Array) -> jax.Array:
    value = x.data[..., i, j]
    if x.unit_diagonal:
        value = jnp.where(i == j, jnp.ones((), x.dtype), value)
    outside = jnp.zeros((), x.dtype) if x.background is None else x.background
    outside = outside.reshape(outside.shape + (1,) * (value.ndim - len(x.batch_shape)))
    return jnp.where(i >= j if x.lower else i <= j, value, outside)


# ---- the join, the meet, the restriction ---------------------------------------------------------------------------


def fits(x: Array, lower: bool) -> bool:
    """Return whether all stored entries lie in the triangle, by the bandwidths."""
    if not x.stores_entries or x.core_ndim != 2:
        return False
    below, above = x.bandwidths()
    return (above if lower else below) == 0


def as_triangular(x: Array, lower: bool) -> Triangular:
    """Return an array that fits a triangle as `Triangular`, with its background."""
    return Triangular.make((x.dense_data(), x.background), (lower, False))


@join_pair.kernel(Triangular, Array, when=lambda x, y: fits(y, x.lower))
def _join_pair_triangular(x: Triangular, y: Array) -> tuple[Triangular, Triangular]:
    return x.freed(), as_triangular(y, x.lower)


def _common_sides(x: Triangular, y: Triangular) -> list[bool]:
    """Return the triangles that both fit, the lower one first, regardless of the order of the arguments."""
    return [side for side in (True, False) if fits(x, side) and fits(y, side)]


@join_pair.kernel(Triangular, Triangular, when=lambda x, y: bool(_common_sides(x, y)))
def _join_pair_triangular_triangular(x: Triangular, y: Triangular) -> tuple[Triangular, ...]:
    lower = x.lower if x.lower == y.lower else _common_sides(x, y)[0]
    return tuple(a.freed() if a.lower == lower else as_triangular(a, lower) for a in (x, y))


@join_pair.kernel(Fill, Triangular, when=fills_matrices)
def _join_pair_fill_triangular(x: Fill, y: Triangular) -> tuple[Triangular, Triangular]:
    constant = x._constant_data()
    data, background = jnp.broadcast_to(constant, x.shape), jnp.broadcast_to(constant[..., 0, 0], x.shape[:-2])
    return Triangular.make((data, background), (y.lower, False)), y.freed()


@meet_pair.kernel(Triangular, Triangular)
def _meet_pair_triangular_triangular(x: Triangular, y: Triangular) -> Diagonal | Triangular:
    if is_zero_outside(y) and x.lower != y.lower:
        return Diagonal.make((x.diagonal(0), None), x.shape[-2:])
    return x.freed()


@meet_pair.kernel(Triangular, Banded, when=lambda x, y: is_zero_outside(y))
def _meet_pair_triangular_banded(x: Triangular, y: Banded) -> Array:
    return restrict(x, at_offsets(y, _inside(y.offsets, x.lower)))


@meet_pair.kernel(Banded, Triangular)
def _meet_pair_banded_triangular(x: Banded, y: Triangular) -> Array:
    return at_offsets(x, _inside(x.offsets, y.lower)) if is_zero_outside(y) else x.freed()


@holds.kernel(Triangular, Array)
def _holds_triangular(x: Triangular, y: Array) -> bool:
    return fits(y, x.lower)


def _inside(offsets: Sequence[int], lower: bool) -> tuple[int, ...]:
    return tuple(k for k in offsets if (k <= 0 if lower else k >= 0))


@restrict_to.kernel(Triangular, Banded)
def _restrict_to_triangular_banded(x: Triangular, y: Banded) -> Array:
    return y.freed().rebuild(tuple(x.diagonal(k) for k in y.offsets) or y.entries, None)


@restrict_to.kernel(Array, Triangular)
def restrict_to_triangle(x: Array, y: Triangular | Mirrored) -> Array:
    """Return the elements of the triangle, from the dense form."""
    return y.rebuild(y.gather(x.dense_data()), None)


@validated.kernel(Triangular)
def check_triangular(x: Triangular) -> None:
    """Raise unless the parameters are a matrix and the background."""
    check_static(type(x.meta) is tuple and list(map(type, x.meta)) == [bool, bool], x)
    check_leaves(x, x.data.shape[-2:], BACKGROUND)
