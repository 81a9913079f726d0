"""`Banded`: a matrix that stores some of its diagonals, and the rules that `Diagonal` and `Identity` share with it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Self

import jax.numpy as jnp
import numpy as np

from ..._core import dtypes
from ..._core.array.dense import batch_shape_of, parameter
from ..._core.array.validation import BACKGROUND, check_leaves, check_offsets, check_sizes, check_static, validated
from ..._core.dispatch import explicit
from ..._core.families import pattern
from ..._core.families.entries import elements
from ..._core.families.entry_array import EntryArray
from ..._core.families.join import holds, is_zero_outside, join_pair, meet_pair, restrict_to
from ..._numerics import bands as band_numerics
from ..fill.array import Fill, core_shape, fills_matrices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import jax

    from ..._core.array.arguments import ParameterLike
    from ..._core.array.base import Array
    from ..._core.typing import Assumptions, DTypeLike, Leaves, Meta, Shape, Spec


class Banded(EntryArray):
    r"""A matrix stored by diagonals; all other entries are structural zeros.

    Parameters
    ----------
    diagonals : sequence of array_like
        One vector ``(..., length)`` for each offset, with the length of that diagonal. The batch shapes broadcast.
    offsets : sequence of int
        The offset of each diagonal: 0 is the main diagonal, positive offsets are above it, negative ones below. The
        offsets may be in any order. A matrix without diagonals is zero.
    shape : tuple of int, optional
        The core shape ``(m, n)``. By default the matrix is square, with the size that the first diagonal implies.

    Raises
    ------
    ValueError
        If an offset repeats or lies outside the matrix, or if a vector has the wrong length.

    Notes
    -----
    Entry ``i`` of the diagonal with offset ``k`` is ``A[i, i + k]`` for ``k >= 0`` and ``A[i - k, i]`` for ``k < 0``,
    as in `numpy.diagonal`. With ``d`` diagonals of length about ``n`` the costs are

    ====================================  ==========================================
    elementwise, reductions, transpose    ``O(d n)``
    product with a vector                 ``O(d n)``
    product with d' diagonals             ``O(d d' n)``, the result has up to d + d' - 1
    solve, `slogdet`, `cholesky`          ``O(w**2 n)``, where w is the bandwidth
    `eigvalsh`, `svdvals`                 ``O(w n**2)`` operations, ``O(w n)`` memory
    ====================================  ==========================================

    `linalg.solve` uses the sparse form if the matrix has few diagonals far apart, as for a periodic boundary or a large
    grid. Factorisations use the dense form, under the policy of `densify`, if the bandwidth is above 64 and at least
    half of the size.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.Banded([[1.0, 2.0], [4.0, 5.0, 6.0]], (1, 0), (3, 3))
    >>> A @ sa.asarray([1.0, 1.0, 1.0])
    Dense([5., 7., 6.], dtype=float64)
    """

    __slots__ = ()
    parameter_names = ("diagonals[]", "background")

    def __new__(
        cls,
        diagonals: Sequence[ParameterLike] | ParameterLike,
        offsets: Sequence[int] | np.ndarray,
        shape: int | Sequence[int] | None = None,
    ) -> Self:
        diagonals, offsets = paired(diagonals, offsets, cls.__name__)
        if len(set(offsets)) != len(offsets):
            raise ValueError(f"offsets must be distinct, got {tuple(offsets)}")
        for i, d in enumerate(diagonals):
            if d.ndim < 1:
                raise ValueError(
                    f"diagonals[{i}] must have at least one dimension, got a scalar; use np.full(length, value) for a "
                    "constant diagonal, or Toeplitz to store each diagonal as one number"
                )
        if shape is None:
            if not offsets:
                raise ValueError("shape must be given if there are no diagonals")
            n = diagonals[0].shape[-1] + abs(offsets[0])
            shape = (n, n)
        shape = matrix_shape(shape, "shape")
        for d, k in zip(diagonals, offsets, strict=True):
            length = band_numerics.diagonal_length(shape, k)
            if not -shape[0] < k < shape[1] and k != 0:  # an empty matrix has an empty main diagonal
                raise ValueError(f"offsets must lie inside a matrix of shape {shape}, got {k}")
            if d.shape[-1] != length:
                raise ValueError(
                    f"the diagonal with offset {k} of a matrix of shape {shape} must have length {length}, "
                    f"got {d.shape[-1]}"
                )
        check_batches(diagonals)
        order = sorted(range(len(offsets)), key=offsets.__getitem__)
        stored = [diagonals[i] for i in order]
        return cls.make(*band_parameters(stored, tuple(offsets[i] for i in order), shape, None))

    # ---- the parts -----------------------------------------------------------------------------------------------

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offsets of the stored diagonals, increasing."""
        offsets: tuple[int, ...] = self._value[1][1][0]
        return offsets

    @property
    def core_shape(self) -> tuple[int, int]:
        """The shape ``(m, n)`` of the matrix."""
        shape: tuple[int, int] = self.meta[1]
        return shape

    @property
    def diagonals(self) -> tuple[jax.Array, ...]:
        """The stored diagonals, one for each offset."""
        leaves, (_, (offsets, *_), _) = self._value
        stored = leaves[: len(offsets)]
        if self.pieces == 1:
            return stored
        diagonals: tuple[jax.Array, ...] = explicit.shortened(
            stored, tuple(band_numerics.diagonal_length(self.core_shape, k) for k in self.offsets), -1
        )
        return diagonals

    @property
    def entries(self) -> tuple[jax.Array, ...]:
        """The parameters that contain entries (a banded array without diagonals carries a scalar for its batch)."""
        return self.diagonals or self._value[0][:-1]

    @property
    def pieces(self) -> int:
        """The number of pieces of equal size for which the diagonals are padded."""
        meta = self._value[1][1]
        pieces: int = meta[2] if len(meta) > 2 else 1
        return pieces

    @property
    def background(self) -> jax.Array | None:
        """The value of all entries that are not stored: None is the structural zero."""
        background: jax.Array | None = self._value[0][-1]
        return background

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        core: Shape = meta[1]
        return batch_of(leaves[0].shape, 1 if meta[0] else 0) + core

    def rebuild(self, entries: Sequence[jax.Array], background: jax.Array | None) -> Banded:
        return Banded.make((*entries, background), self.meta[:2])._padded_for(self.pieces)

    if TYPE_CHECKING:  # these return banded arrays

        @property
        def mT(self) -> Banded: ...

        def assuming(self, assumptions: Assumptions) -> Self: ...

        def freed(self) -> Banded: ...

    def _padded_for(self, pieces: int) -> Banded:
        if pieces == self.pieces or not self.offsets:
            return self
        diagonals: Sequence[jax.Array]
        diagonals, meta = self.diagonals, self.meta[:2]
        if pieces > 1:
            diagonals = band_numerics.divisible(diagonals, min(self.core_shape), pieces, -1)
            meta = (*meta, pieces)
        return Banded.make((*diagonals, self.background), meta, self.assumptions)

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        batch = self._batch_spec(spec)
        entries = self._entries_spec(spec) if self.offsets else batch
        return (entries,) * (len(self._value[0]) - 1) + (batch,)

    def gather(self, data: jax.Array) -> tuple[jax.Array, ...]:
        if not self.offsets:
            return (jnp.zeros(data.shape[:-2], data.dtype),)
        return tuple(band_numerics.at_diagonal(_matrix(data), k, self.core_shape) for k in self.offsets)

    def description(self) -> tuple[list[str], bool]:
        return [f"offsets={self.offsets}", f"shape={self.shape}"], False

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        if not self.offsets:
            zero = jnp.zeros((), int)
            return ((zero, zero),)
        lengths = [band_numerics.diagonal_length(self.core_shape, k) for k in self.offsets]
        along = [jnp.arange(n) for n in lengths]
        return tuple((i + max(0, -k), i + max(0, k)) for i, k in zip(along, self.offsets, strict=True))

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return pattern.stored(self, pattern.meets_diagonals(rows, columns, self.offsets))

    def bandwidths(self) -> tuple[int, int]:
        return max(0, *(-k for k in self.offsets), 0), max(0, *self.offsets, 0)

    def dense_data(self) -> jax.Array:
        return band_numerics.to_dense(
            self.diagonals, self.offsets, self.core_shape, self.background, self.dtype, self.batch_shape
        )

    def diagonal(self, offset: int = 0) -> jax.Array:
        """Return the diagonal with this offset as a `jax.Array`, whether it is stored or not."""
        if offset in self.offsets:
            return self.diagonals[self.offsets.index(offset)]
        length = band_numerics.diagonal_length(self.core_shape, offset)
        fill = jnp.zeros((), self.dtype) if self.background is None else self.background[..., None]
        return jnp.broadcast_to(fill, (*self.batch_shape, length))

    def to_banded(self) -> Array:
        """Return the array itself.

        Raises
        ------
        StructureError
            If the array has a background, which diagonals cannot store.
        """
        return self if self.background is None else super().to_banded()

    def to_dia(self) -> tuple[jax.Array, tuple[int, ...]]:
        """Return the layout of `scipy.sparse.dia_array` (and dynamiqs): aligned by columns, padded by zeros.

        `from_dia` is the inverse.

        Returns
        -------
        data : jax.Array, (..., d, n)
            The d diagonals: ``data[..., i, j]`` is ``A[..., j - offsets[i], j]``.
        offsets : tuple of int
            The d offsets, increasing.

        Raises
        ------
        ValueError
            If the array has a background.

        Examples
        --------
        >>> import structarrays as sa
        >>> data, offsets = sa.tridiagonal([1.0], [2.0, 3.0], [4.0]).to_dia()
        >>> data.tolist(), offsets
        ([[1.0, 0.0], [2.0, 3.0], [0.0, 4.0]], (-1, 0, 1))
        """
        if self.background is not None:
            raise ValueError(
                f"to_dia: the array must have no background, which the layout cannot store, got {self.background}"
            )
        data = band_numerics.by_columns(self.diagonals, self.offsets, self.core_shape)
        return (data if self.offsets else jnp.zeros((*self.batch_shape, *data.shape), self.dtype)), self.offsets


def _matrix(data: jax.Array) -> jax.Array:
    """Return data of at least two dimensions: vectors broadcast as rows."""
    return data.reshape((1,) * (2 - data.ndim) + data.shape) if data.ndim < 2 else data


def batch_of(shape: tuple[int, ...], own: int) -> tuple[int, ...]:
    """Return the batch shape of a parameter with `own` core dimensions.

    Raises
    ------
    ValueError
        If the parameter has fewer dimensions, because a transform has mapped a core dimension.
    """
    if len(shape) < own:
        raise ValueError(
            f"a parameter must have its core dimensions, got shape {shape}: a transform such as jax.vmap mapped a "
            "dimension of the matrix; map leading batch dimensions, or use structarrays.vmap, which maps any dimension"
        )
    return shape[: len(shape) - own]


def matrix_shape(shape: int | Sequence[int], argument: str) -> tuple[int, int]:
    """Return a core shape ``(m, n)``, checked."""
    shape = core_shape(shape, argument)
    if len(shape) != 2:
        raise ValueError(f"{argument} must be (m, n), the two core dimensions, got {shape}")
    return shape


def vectors(values: Any, argument: str, name: str) -> list[jax.Array]:
    """Convert a constructor's sequence of arrays to a list of `jax.Array`.

    Raises
    ------
    TypeError
        If `values` is not a sequence, or `asarray` does not accept an element.
    """
    try:
        each = None if isinstance(values, (str, bytes, dict)) else list(values)
    except TypeError:
        each = None
    if each is None:
        raise TypeError(f"{argument} must be a sequence of arrays, got {type(values).__name__}")
    return [parameter(value, f"{argument}[{i}]", name) for i, value in enumerate(each)]


def integers(values: Sequence[int] | np.ndarray, argument: str) -> tuple[int, ...]:
    """Convert a constructor's sequence of integers to a tuple.

    Raises
    ------
    TypeError
        If `values` is not a sequence of integers.
    """
    try:
        return tuple(operator.index(k) for k in values)
    except TypeError:
        raise TypeError(f"{argument} must be a sequence of integers, got {values!r}") from None


def paired(diagonals: Any, offsets: Any, name: str) -> tuple[list[jax.Array], tuple[int, ...]]:
    """Convert a constructor's diagonals and offsets, and raise unless there are as many of both."""
    arrays, numbers = vectors(diagonals, "diagonals", name), integers(offsets, "offsets")
    if len(arrays) != len(numbers):
        raise ValueError(f"diagonals and offsets must have the same length, got {len(arrays)} and {len(numbers)}")
    return arrays, numbers


def check_batches(diagonals: Sequence[jax.Array]) -> None:
    """Raise unless the batch shapes of a constructor's diagonals broadcast."""
    batch_shape_of(**{f"diagonals[{i}]": d.shape[:-1] for i, d in enumerate(diagonals)})


def band_parameters(
    diagonals: Sequence[jax.Array],
    offsets: Sequence[int],
    shape: Shape,
    background: jax.Array | None,
    dtype: DTypeLike | None = None,
    batch: Shape = (),
) -> tuple[Leaves, Meta]:
    """Return leaves and meta of a banded array: all diagonals with one dtype and the whole batch shape."""
    if offsets:
        dtype = dtypes.promote(*(d.dtype for d in diagonals))
        batch = jnp.broadcast_shapes(batch, *(d.shape[:-1] for d in diagonals))
        diagonals = [jnp.broadcast_to(d.astype(dtype), (*batch, d.shape[-1])) for d in diagonals]
    else:
        diagonals = [jnp.zeros(batch, dtype or dtypes.default_dtype("f"))]
    if background is not None:
        background = jnp.broadcast_to(background, batch)
    return (*diagonals, background), (offsets, shape)


def is_nothing(x: Array) -> bool:
    """Return whether all entries of a matrix are structural zeros."""
    return type(x) is Banded and not x.offsets and x.background is None


def bands(
    diagonals: Sequence[jax.Array],
    offsets: Sequence[int],
    shape: Shape,
    background: jax.Array | None = None,
    *,
    dtype: DTypeLike | None = None,
    batch: Shape = (),
) -> Banded:
    """Return the array with these diagonals in the narrowest class, without diagonals outside the matrix (for kernels).

    Parameters
    ----------
    diagonals, offsets, shape, background
        As for `Banded`, already checked.
    dtype, batch
        Data type and batch shape of the result if there is no diagonal.
    """
    kept = [
        (k, d) for k, d in zip(offsets, diagonals, strict=True) if band_numerics.diagonal_length(shape, k) > 0 or k == 0
    ]
    kept.sort(key=lambda pair: pair[0])
    offsets, diagonals = tuple(k for k, _ in kept), [d for _, d in kept]
    leaves, meta = band_parameters(diagonals, offsets, shape, background, dtype, batch)
    if offsets == (0,):
        from .diagonal import Diagonal

        return Diagonal.make(leaves, shape)
    return Banded.make(leaves, meta)


# ---- the join, the meet, the restriction (Julia's BandedMatrices: bandwidths are joined and met) ------------------


@join_pair.kernel(Banded, Banded)
def _join_pair_banded_banded(x: Banded, y: Banded) -> tuple[Banded, Banded]:
    offsets = tuple(sorted({*x.offsets, *y.offsets}))
    return at_offsets(x, offsets), at_offsets(y, offsets)


@join_pair.kernel(Fill, Banded, when=fills_matrices)
def join_constant(x: Fill, y: Array) -> tuple[Array, Array]:
    """Return a constant as the entries of a pattern and as its background."""
    data, batch = x._constant_data(), x.shape[:-2]
    kept = len(y.batch_shape)
    entries = (jnp.broadcast_to(g, batch + e.shape[kept:]) for g, e in zip(y.gather(data), y.entries, strict=True))
    return y.rebuild(tuple(entries), jnp.broadcast_to(data[..., 0, 0], batch)), y


@meet_pair.kernel(Banded, Banded)
def _meet_pair_banded_banded(x: Banded, y: Banded) -> Banded:
    if not is_zero_outside(y):
        return x.freed()
    return at_offsets(x, tuple(k for k in x.offsets if k in y.offsets))


@holds.kernel(Banded, Banded)
def holds_offsets(x: Any, y: Any) -> bool:
    """Return whether an array stores all diagonals that another one stores."""
    return set(y.offsets) <= set(x.offsets)


@restrict_to.kernel(Banded, Banded)
def _restrict_to_banded_banded(x: Banded, y: Banded) -> Banded:
    return at_offsets(x, y.offsets)


def at_offsets(x: Banded, offsets: tuple[int, ...]) -> Banded:
    """Return the entries of `x` on these diagonals, stored or not, with the background of `x`."""
    return bands(
        [x.diagonal(k) for k in offsets], offsets, x.core_shape, x.background, dtype=x.dtype, batch=x.batch_shape
    )


@elements.kernel(Banded)
def _elements_banded(x: Banded, i: jax.Array, j: jax.Array) -> jax.Array:
    fill = jnp.zeros((), x.dtype) if x.background is None else x.background
    shape = jnp.broadcast_shapes(i.shape, j.shape)
    value = jnp.broadcast_to(fill.reshape(fill.shape + (1,) * len(shape)), (*x.batch_shape, *shape))
    for k, d in zip(x.offsets, x.diagonals, strict=True):
        if d.shape[-1]:
            # On the diagonal either coordinate gives the index. For a row or a column this is a single look-up.
            place = i - max(0, -k) if i.size <= j.size else j - max(0, k)
            entry = d[..., jnp.clip(place, 0, d.shape[-1] - 1)]
            entry = entry.reshape(entry.shape[: d.ndim - 1] + (1,) * (len(shape) - place.ndim) + place.shape)
            value = jnp.where(j - i == k, entry, value)
    return value


def missing(x: Banded, axis: int) -> np.ndarray:
    """Return the number of entries that are not stored in each row (``axis=-1``) or column (``axis=-2``)."""
    m, n = x.core_shape
    count = np.full(m if axis == -1 else n, n if axis == -1 else m)
    for k in x.offsets:
        start = max(0, -k if axis == -1 else k)
        count[start : start + band_numerics.diagonal_length(x.core_shape, k)] -= 1
    return count


@validated.kernel(Banded)
def check_banded(x: Banded) -> None:
    """Raise unless each offset has a diagonal of the right length, and there is a background."""
    check_static(type(x.meta) is tuple and len(x.meta) == 2, x)
    shape = check_sizes(x.core_shape, 2)
    offsets = check_offsets(x.offsets, shape)
    # Without diagonals the parameter is a scalar with the batch shape.
    cores: list[Shape] = [(band_numerics.diagonal_length(shape, k),) for k in offsets] or [()]
    check_leaves(x, *cores, BACKGROUND)
