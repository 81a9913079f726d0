"""`Toeplitz`: a matrix with constant diagonals, and the rules that `Circulant` shares with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core import dtypes
from ..._core.array.dense import Dense, batch_shape_of, parameter
from ..._core.array.validation import check_leaves, check_sizes, check_static, validated
from ..._core.dispatch import explicit
from ..._core.families import pattern
from ..._core.families.entries import elements
from ..._core.families.entry_array import EntryArray
from ..._core.families.join import holds, is_zero_outside, join, join_pair, meet_pair, restrict_to
from ..._core.text import inline
from ..._functions.linalg.systems import POSITIVE_DEFINITE
from ..._numerics import toeplitz_entries
from ..._numerics.bands import diagonal_length
from ..._numerics.symbolic import is_symbolic, smaller
from ..banded.array import Banded, at_offsets, bands, batch_of, holds_offsets, matrix_shape
from ..banded.diagonal import Identity
from ..fill.array import Fill, fills_matrices
from ..triangular.array import Triangular

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.array.arguments import ParameterLike
    from ..._core.array.base import Array
    from ..._core.typing import Leaves, Meta, Shape
    from .hankel import Hankel

    A = TypeVar("A", bound=Array)

MANY_DIAGONALS = 48
"""With more stored diagonals a matrix does not become `Banded` if another structure can store it."""

SOLVED_AS_DENSE, DEFINITE_SOLVED_AS_DENSE = 256, 128
"""Up to these sizes the dense form is solved as fast: for general matrices, and for assumed positive definite ones."""


class Toeplitz(EntryArray):
    r"""A matrix with constant diagonals: its entries depend only on ``j - i``.

    Parameters
    ----------
    c : array_like
        The first column, ``(..., p)``.
    r : array_like, optional
        The first row, ``(..., q)``. ``r[..., 0]`` is ignored, since ``c[..., 0]`` is the same entry. By default
        ``conj(c)``, cut to the number of columns, so that a square matrix is Hermitian.
    shape : tuple of int, optional
        The core shape ``(m, n)``. Default is ``(p, q)``. In a larger matrix, the diagonals that `c` and `r` do not
        reach are structural zeros, so the matrix is banded.

    Raises
    ------
    ValueError
        If `c` or `r` is a scalar, empty, or longer than the matrix.

    Notes
    -----
    The array stores the d diagonals between two offsets, one number each: ``T[i, j] = values[j - i - first]``. There is
    never a background: if a function does not map zero to zero, its result stores all diagonals. The costs are

    =======================================  ==============================================
    elementwise, transpose, slices, flips    ``O(d)``
    sums and other reductions                ``O((m + n) log(n))``
    product with a vector                    ``O((m + n) log(m + n))``; few diagonals: ``O(d m)``
    product with a vector of integers        ``O(d m)``, exact
    product of two triangular matrices       the cost of a product with a vector
    element, row, column                     the number of its elements
    `linalg.solve`, `det`, `slogdet`         ``O(n**2)``; few diagonals: ``O(d**2 n)``
    `solve`, positive definite, n >= 1536    usually ``O(n log(n))`` for each step
    `solve`, triangular                      ``O(n log(n)**2)``; `det`, `slogdet` ``O(n)``
    more right-hand sides, derivatives       ``O(n log(n))`` each; with ``n / 8`` or more the dense form, if faster
    `linalg.inv` of a large matrix           an `Inverse`; a `Toeplitz` if triangular
    =======================================  ==============================================

    The storage for all these operations is proportional to the storage of the operands and the result.

    **Large Hermitian matrices.** `solve` first tries conjugate gradients with a circulant preconditioner. About ten
    steps suffice for a covariance plus noise, for every n. The solution is accepted only if its residual is at the
    level of rounding.

    **General matrices.** On a CPU, `solve` runs Levinson's recursion in `scipy.linalg.solve_toeplitz`, once for each of
    up to two right-hand sides. The recursion does not pivot, so its residual is checked, and refined if necessary.

    **Elimination.** If the residual remains large, and for more right-hand sides, `solve` computes two columns in
    ``O(n**2)``. They give the inverse as a sum of products of circulant and skew-circulant matrices. Levinson's
    recursion computes these columns if their residuals are small. Otherwise the elimination of Gohberg, Kailath and
    Olshevsky with partial pivoting does, which takes about ten times as long. Determinants of general matrices always
    use the elimination. Each solution is refined until its residual is at the level of rounding.

    **Badly conditioned matrices.** The columns of the inverse do not suffice beyond a condition number of about 1e8 to 1e12 in double
    precision (positive definite: 1e12). Then an eager call tries the dense form, under the policy of `densify`, and a
    compiled call gives NaN. Matrices with up to 256 rows (positive definite: 128) are solved by their dense form.

    **Triangular matrices.** `solve` substitutes in blocks. The residual is as small as for a dense solver for every
    condition number. The inverse is triangular and Toeplitz.

    **Accuracy of products.** Products of large matrices with inexact dtypes and more than 24 diagonals use Fourier
    transforms. Their errors are relative to the norms of the factors, ``eps * norm(values) * norm(x)``, not to each
    element of the result. NaN and infinities occur at the same positions as in the dense product.

    Examples
    --------
    >>> import structarrays as sa
    >>> T = sa.Toeplitz([2.0, -1.0], shape=(4, 4))
    >>> T @ sa.asarray([1.0, 2.0, 3.0, 4.0])
    Dense([0., 0., 0., 5.], dtype=float64)
    >>> T.offsets
    (-1, 0, 1)
    >>> sa.square(T) - T
    Toeplitz([2., 2., 2.], offsets=-1..1, shape=(4, 4), dtype=float64, stores 3 of 16 entries, 24 B of 128 B dense)
    """

    __slots__ = ()
    parameter_names = ("values",)

    def __new__(
        cls, c: ParameterLike, r: ParameterLike | None = None, *, shape: int | Sequence[int] | None = None
    ) -> Self:
        c = _line(c, "c", cls.__name__)
        if r is not None:
            r = _line(r, "r", cls.__name__)
        else:
            r = jnp.conj(c)
            if shape is not None:
                (r,) = explicit.shortened((r,), (min(r.shape[-1], matrix_shape(shape, "shape")[1]),), -1)
        shape = (c.shape[-1], r.shape[-1]) if shape is None else matrix_shape(shape, "shape")
        for name, line, size, side in (("c", c, shape[0], "rows"), ("r", r, shape[1], "columns")):
            if line.shape[-1] > size:
                raise ValueError(
                    f"{name} must have at most as many elements as there are {side} ({size}), got {line.shape}"
                )
            if line.shape[-1] == 0 < size:
                raise ValueError(
                    f"{name} must have at least one element for a matrix of shape {shape}, got {line.shape}"
                )
        dtype = dtypes.promote(c.dtype, r.dtype)
        batch = batch_shape_of(c=c.shape[:-1], r=r.shape[:-1])
        if 0 in shape:
            return cls.make((jnp.zeros((*batch, 0), dtype),), (0, -1, shape))
        c, r = (jnp.broadcast_to(line.astype(dtype), (*batch, line.shape[-1])) for line in (c, r))
        values = explicit.call(lambda c, r: jnp.concatenate([c[..., ::-1], r[..., 1:]], axis=-1), c, r)
        return cls.make((values,), (1 - c.shape[-1], r.shape[-1] - 1, shape))

    @classmethod
    def from_dense(cls, a: ParameterLike) -> Toeplitz:
        """Return the Toeplitz array with these elements.

        Parameters
        ----------
        a : array_like, (..., m, n)
            A matrix with constant diagonals.

        Raises
        ------
        ValueError
            If `a` has fewer than two dimensions, or its diagonals are not constant (checked unless traced).

        Examples
        --------
        >>> import structarrays as sa
        >>> sa.Toeplitz.from_dense([[1.0, 2.0], [3.0, 1.0]]).values.tolist()
        [3.0, 1.0, 2.0]
        """

        def build(data: jax.Array) -> Toeplitz:
            (m, n), values = data.shape[-2:], explicit.call(first_row_and_column, data)
            return Toeplitz.make((values,), (*toeplitz_entries.full_range((m, n)), (m, n)))

        return with_elements_of(a, cls.__name__, build, "the diagonals are not constant")

    # ---- the parts -----------------------------------------------------------------------------------------------

    @property
    def values(self) -> jax.Array:
        """The entries on the diagonals from offset `first` to `last`, ``(..., d)``."""
        values: jax.Array = self._value[0][0]
        return values

    @property
    def first(self) -> int:
        """The offset ``j - i`` of the lowest stored diagonal."""
        first: int = self.meta[0]
        return first

    @property
    def last(self) -> int:
        """The offset of the highest stored diagonal; ``first - 1`` if there is none."""
        last: int = self.meta[1]
        return last

    @property
    def core_shape(self) -> tuple[int, int]:
        """The shape ``(m, n)`` of the matrix."""
        shape: tuple[int, int] = self.meta[2]
        return shape

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offsets of the stored diagonals, increasing."""
        return tuple(range(self.first, self.last + 1))

    @property
    def entries(self) -> tuple[jax.Array, ...]:
        """The parameter that contains the entries."""
        return self._value[0]

    @property
    def solved_by_parts(self) -> bool:
        """Return whether solvers may fail for regular matrices: badly conditioned ones that no other form solves."""
        return not (is_narrow(self) or is_solved_as_dense(self) or is_triangular(self))

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        shape: Shape = batch_of(leaves[0].shape, 1) + meta[2]
        return shape

    def to_banded(self) -> Array:
        """Convert an array with few diagonals, with separate entries for each element.

        Raises
        ------
        StructureError
            If the array stores more than 48 diagonals, or is full.
        """
        return at_diagonals(self, self.offsets) if is_narrow(self) else super().to_banded()

    @property
    def covers(self) -> bool:
        return (self.first, self.last) == toeplitz_entries.full_range(self.core_shape)

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> Toeplitz:
        x = Toeplitz.make(tuple(entries), self.meta)
        return x if background is None or x.covers else covering(x, background)

    def freed(self) -> Array:
        if self.covers:
            return Dense.make((self.dense_data(),))
        low, high = toeplitz_entries.full_range(self.core_shape)
        many = self.values.shape[-1] > MANY_DIAGONALS
        for lower, one_sided, all_stored in (
            (True, self.last <= 0, (self.first, self.last) == (low, 0)),
            (False, self.first >= 0, (self.first, self.last) == (0, high)),
        ):
            if one_sided and (many or (all_stored and self.first < self.last)):
                return Triangular.make((self.dense_data(), None), (lower, False))
        return at_diagonals(self, self.offsets)

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        k = jnp.arange(self.first, self.last + 1)
        return ((jnp.maximum(-k, 0), jnp.maximum(k, 0)),)

    def gather(self, data: jax.Array) -> tuple[jax.Array, ...]:
        data = data.reshape((1,) * (2 - data.ndim) + data.shape)
        if self.last < self.first:
            return (jnp.zeros((*data.shape[:-2], 0), data.dtype),)
        if data.shape[-2:] == (1, 1):  # a constant
            return (jnp.broadcast_to(data[..., 0], (*data.shape[:-2], self.values.shape[-1])),)
        data = jnp.broadcast_to(data, data.shape[:-2] + self.core_shape)
        start = self.first - toeplitz_entries.full_range(self.core_shape)[0]
        return (first_row_and_column(data)[..., start : start + self.values.shape[-1]],)

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return pattern.stored(self, pattern.meets_band(rows, columns, self.first, self.last))

    def bandwidths(self) -> tuple[int, int]:
        return max(0, -self.first), max(0, self.last)

    def description(self) -> tuple[list[str], bool]:
        offsets = f"{self.first}..{self.last}" if self.first <= self.last else "()"
        return [inline(self.values)[0], f"offsets={offsets}", f"shape={self.shape}"], self.size <= 1

    def dense_data(self) -> jax.Array:
        return toeplitz_entries.to_dense(self.values, self.first, self.core_shape)

    def diagonal_value(self, offset: int) -> jax.Array:
        """Return the number on the diagonal with this offset, of batch shape, whether it is stored or not."""
        if self.first <= offset <= self.last:
            place = offset - self.first
            if is_symbolic(place):
                return lax.index_in_dim(self.values, place, -1, keepdims=False)
            return self.values[..., place]
        return jnp.zeros(self.batch_shape, self.dtype)

    def diagonal(self, offset: int) -> jax.Array:
        """Return the diagonal with this offset, whether it is stored or not."""
        length = diagonal_length(self.core_shape, offset)
        return jnp.broadcast_to(self.diagonal_value(offset)[..., None], (*self.batch_shape, length))


@elements.kernel(Toeplitz)
def _elements_toeplitz(x: Toeplitz, i: jax.Array, j: jax.Array) -> jax.Array:
    return toeplitz_entries.elements(x.values, x.first, i, j)


def is_narrow(x: Toeplitz, *args: Array, **static: Any) -> bool:
    """Return whether few diagonals are stored, so that `Banded` is faster."""
    return not x.covers and x.values.shape[-1] <= MANY_DIAGONALS


def is_triangular(x: Toeplitz) -> bool:
    """Return whether a square matrix has all its diagonals on one side.

    A matrix that is assumed positive definite does not, except a multiple of the identity.
    """
    return (x.last <= 0 or x.first >= 0) and x.core_shape[-1] > 0 and POSITIVE_DEFINITE not in x.assumptions


def is_solved_as_dense(x: Toeplitz, *args: Array, **static: Any) -> bool:
    """Return whether the dense form solves linear systems with a square matrix."""
    definite = POSITIVE_DEFINITE in x.assumptions
    return not smaller(DEFINITE_SOLVED_AS_DENSE if definite else SOLVED_AS_DENSE, x.core_shape[-1])


# ---- from data ----------------------------------------------------------------------------------------------------


def _line(value: ParameterLike, argument: str, name: str) -> jax.Array:
    line = parameter(value, argument, name)
    if line.ndim < 1:
        raise ValueError(f"{argument} must have at least one dimension, got a scalar")
    return line


def first_row_and_column(data: jax.Array) -> jax.Array:
    """Return the elements of the first column and the first row of a matrix, by increasing offset."""
    if 0 in data.shape[-2:]:
        return jnp.zeros((*data.shape[:-2], 0), data.dtype)
    return jnp.concatenate([data[..., :0:-1, 0], data[..., 0, :]], axis=-1)


def with_elements_of(a: ParameterLike, name: str, build: Callable[[jax.Array], A], fault: str) -> A:
    """Build an array of the class `name` from a matrix, for `from_dense`; raise unless it has the same elements.

    Traced elements are not checked. `fault` describes a matrix that has other elements.
    """
    data = parameter(a, "a", f"{name}.from_dense")
    if data.ndim < 2:
        raise ValueError(f"a must have at least two dimensions, (..., m, n), got shape {data.shape}")
    x = build(data)
    if not isinstance(data, jax.core.Tracer) and not np.array_equal(
        np.asarray(x.to_jax()), np.asarray(data), equal_nan=data.dtype.kind in "fc"
    ):
        raise ValueError(f"a must be a {type(x).__name__} matrix, got shape {data.shape}: {fault}")
    return x


def toeplitz(values: jax.Array, first: int, shape: tuple[int, int]) -> Toeplitz:
    """Return the array with these diagonals, from a kernel, without the diagonals outside the matrix."""
    low, high = toeplitz_entries.full_range(shape)
    last = first + values.shape[-1] - 1
    start, stop = max(first, low), min(last, high)
    if stop < start:
        return Toeplitz.make((values[..., :0],), (0, -1, tuple(shape)))
    return Toeplitz.make((values[..., start - first : stop - first + 1],), (start, stop, tuple(shape)))


def between(x: Toeplitz, first: int, last: int) -> Toeplitz:
    """Return the diagonals of `x` from `first` to `last`, which must lie inside the matrix; zeros if not stored."""
    if last < first:
        return toeplitz(x.values[..., :0], 0, x.core_shape)
    if x.last < x.first:
        return toeplitz(jnp.zeros((*x.batch_shape, last - first + 1), x.dtype), first, x.core_shape)
    padding = [(0, 0, 0)] * (x.values.ndim - 1) + [(x.first - first, last - x.last, 0)]
    if first > x.last or last < x.first:
        return toeplitz(jnp.zeros((*x.batch_shape, last - first + 1), x.dtype), first, x.core_shape)
    return toeplitz(jax.lax.pad(x.values, jnp.zeros((), x.dtype), padding), first, x.core_shape)


def at_diagonals(x: Toeplitz, offsets: tuple[int, ...]) -> Banded:
    """Return these diagonals of `x` as `Banded`, with separate entries for each element."""
    diagonals = [x.diagonal(k) for k in offsets]
    return bands(diagonals, offsets, x.core_shape, dtype=x.dtype, batch=x.batch_shape)


def covering(x: Toeplitz, background: jax.Array | None = None) -> Toeplitz:
    """Return the array with all diagonals stored. Unstored ones get `background`: by default the structural zero."""
    if x.covers:
        return x
    low, high = toeplitz_entries.full_range(x.core_shape)
    background = jnp.zeros((), x.dtype) if background is None else background
    batch = jnp.broadcast_shapes(background.shape, x.batch_shape)
    if x.last < x.first:
        return toeplitz(jnp.broadcast_to(background[..., None], (*batch, high - low + 1)), low, x.core_shape)
    parts = [
        jnp.broadcast_to(background[..., None], (*batch, x.first - low)),
        jnp.broadcast_to(x.values, (*batch, x.values.shape[-1])),
        jnp.broadcast_to(background[..., None], (*batch, high - x.last)),
    ]
    return toeplitz(jnp.concatenate(parts, axis=-1), low, x.core_shape)


# ---- the join, the meet, the restriction --------------------------------------------------------------------------


def _hull(x: Toeplitz, y: Toeplitz) -> tuple[int, int]:
    """Return the smallest range of offsets that contains the diagonals of both."""
    ranges = [(a.first, a.last) for a in (x, y) if a.first <= a.last] or [(0, -1)]
    return min(a for a, _ in ranges), max(b for _, b in ranges)


@join_pair.kernel(Toeplitz, Toeplitz)
def _join_pair_toeplitz_toeplitz(x: Toeplitz, y: Toeplitz) -> tuple[Toeplitz, Toeplitz]:
    offsets = _hull(x, y)
    return between(x, *offsets), between(y, *offsets)


@join_pair.kernel(Toeplitz, Identity)
def _join_pair_toeplitz_identity(x: Toeplitz, y: Identity) -> tuple[Toeplitz, Toeplitz]:
    other = covering(_scaled(y), y.background) if y.background is not None else _scaled(y)
    offsets = _hull(x, other)
    return between(x, *offsets), between(other, *offsets)


def _scaled(x: Identity) -> Toeplitz:
    """Return a scaled identity as a single diagonal."""
    return toeplitz(x.scale[..., None], 0, x.core_shape)


@join_pair.kernel(Toeplitz, Banded, when=lambda x, y: not x.covers)
def _join_pair_toeplitz_banded(x: Toeplitz, y: Banded) -> tuple[Array, Array]:
    if type(x.freed()) is Triangular:
        return join(x.freed(), y)
    offsets = tuple(sorted({*x.offsets, *y.offsets}))
    return at_diagonals(x, offsets), at_offsets(y, offsets)


@join_pair.kernel(Fill, Toeplitz, when=fills_matrices)
def join_constant_diagonals(x: Fill, y: Toeplitz | Hankel) -> tuple[Array, Array]:
    """Store a constant on all diagonals, or antidiagonals."""
    y = covering(y) if isinstance(y, Toeplitz) else y
    (entries,) = y.entries
    return y.rebuild((jnp.broadcast_to(x._constant_data()[..., 0], (*x.shape[:-2], entries.shape[-1])),), None), y


@meet_pair.kernel(Toeplitz, Toeplitz)
def _meet_pair_toeplitz_toeplitz(x: Toeplitz, y: Toeplitz) -> Toeplitz:
    return between(x, max(x.first, y.first), min(x.last, y.last))


@meet_pair.kernel(Toeplitz, Banded)
def _meet_pair_toeplitz_banded(x: Toeplitz, y: Banded) -> Array:
    if not is_zero_outside(y):
        return x.freed()
    return at_diagonals(x, tuple(k for k in x.offsets if k in y.offsets))


@meet_pair.kernel(Toeplitz, Identity)
def _meet_pair_toeplitz_identity(x: Toeplitz, y: Identity) -> Array:
    if not is_zero_outside(y):
        return x
    return as_identity(x) if x.first <= 0 <= x.last else at_offsets(y, ())


@meet_pair.kernel(Banded, Toeplitz)
def _meet_pair_banded_toeplitz(x: Banded, y: Toeplitz) -> Array:
    return x.freed() if y.covers else at_offsets(x, tuple(k for k in x.offsets if k in y.offsets))


@meet_pair.kernel(Identity, Toeplitz)
def _meet_pair_identity_toeplitz(x: Identity, y: Toeplitz) -> Banded:
    return x if y.first <= 0 <= y.last else at_offsets(x, ())


def as_identity(x: Toeplitz) -> Identity:
    """Return the main diagonal, whether it is stored or not."""
    return Identity.make((x.diagonal_value(0), None), x.core_shape)


@holds.kernel(Toeplitz, Toeplitz)
def _holds_toeplitz_toeplitz(x: Toeplitz, y: Toeplitz) -> bool:
    return x.first <= y.first and y.last <= x.last


holds.kernel(Toeplitz, Banded)(holds_offsets)
holds.kernel(Banded, Toeplitz)(holds_offsets)


@restrict_to.kernel(Toeplitz, Toeplitz)
def _restrict_to_toeplitz_toeplitz(x: Toeplitz, y: Toeplitz) -> Toeplitz:
    return between(x, y.first, y.last)


@restrict_to.kernel(Toeplitz, Identity)
def _restrict_to_toeplitz_identity(x: Toeplitz, y: Identity) -> Identity:
    return as_identity(x)


@restrict_to.kernel(Toeplitz, Banded)
def _restrict_to_toeplitz_banded(x: Toeplitz, y: Banded) -> Banded:
    return at_diagonals(x, y.offsets)


@validated.kernel(Toeplitz)
def check_toeplitz(x: Toeplitz) -> None:
    """Raise unless there is one entry for each stored diagonal, and all diagonals lie inside the matrix."""
    check_static(type(x.meta) is tuple and len(x.meta) == 3 and all(type(k) is int for k in x.meta[:2]), x)
    low, high = toeplitz_entries.full_range(check_sizes(x.core_shape, 2))
    count = x.last - x.first + 1
    check_static(count == 0 or low <= x.first <= x.last <= high, x)
    check_leaves(x, (count,))
