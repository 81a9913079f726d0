"""`Sparse`: an array that stores entries and their coordinates."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from ..._core import dtypes
from ..._core.array.base import Array
from ..._core.array.dense import parameter
from ..._core.array.flattening import as_indices, barred, expand_indices, with_common_indices
from ..._core.array.validation import BACKGROUND, check_leaves, check_sizes, check_static, require, validated
from ..._core.dispatch import explicit
from ..._core.families import pattern
from ..._core.families.entries import gather
from ..._core.families.entry_array import EntryArray
from ..._core.text import inline
from ..banded.array import batch_of
from ..fill.array import core_shape
from . import compressed_rows, numerics
from . import sparse_host as host
from .sorted_entries import coordinates_of, index_dtype, sorted_on_device, sorted_on_host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from ..._core.array.arguments import ParameterLike
    from ..._core.array.dense import Dense
    from ..._core.typing import DTypeLike, Leaves, Meta, Shape, Spec

    T = TypeVar("T")


class Sparse(EntryArray):
    r"""An array that stores entries at some coordinates; all other entries are structural zeros.

    Parameters
    ----------
    data : array_like
        The entries, ``(..., nnz)``.
    indices : array_like or tuple of array_like
        The coordinates: an integer array ``(..., nnz, ndim)``, or (as in `scipy.sparse.coo_array`) a tuple of one array
        ``(..., nnz)`` for each core dimension. They may be in any order. Entries with equal coordinates are added;
        boolean entries are combined by *or*.
    shape : tuple of int
        The core shape, with any number of dimensions.

    Raises
    ------
    ValueError
        If the shapes do not fit, or if a coordinate is negative or too large (checked in eager calls).
    TypeError
        If the coordinates do not have an integer dtype.

    Notes
    -----
    The value is :math:`\sum_k \mathrm{data}_k\, e_{i_k} \otimes e_{j_k} \otimes \dots` The entries are sorted
    lexicographically by their coordinates, in the order `order` of the dimensions. ``(0, 1)`` is row-major order. A
    transpose only exchanges the coordinates, so its order is ``(1, 0)``, column-major. With `nnz` entries the costs are

    =========================================  ===================================================================
    elementwise with one array, transpose      ``O(nnz)``; the transpose is free
    reductions                                 ``O(nnz + size of the result)``
    product with a vector                      ``O(nnz + m)``; with ``p`` columns, p times as much
    product with a sparse matrix               proportional to the elementary products; see below
    an element                                 ``O(log nnz)``; a row or column ``O(nnz + n)``
    sum of two                                 ``O(nnz)``
    `linalg.solve`, `det`, `slogdet`           by SuperLU on the host, if SciPy is installed, else by the dense form;
                                               the factors are cached, so a second linear system with the same matrix
                                               costs two triangular solutions
    derivative of `det` and `slogdet`          as many operations as the factorisation
    `linalg.inv`                               an `Inverse`
    =========================================  ===================================================================

    **Number of entries.** In an eager call the number of entries of a result is exact, also under `grad` of an eager
    function. Under `jax.jit` it is exact for sums and products of arrays with constant coordinates. With traced
    coordinates, the result has the largest possible number of entries: ``nnz + nnz'`` for a sum, ``nnz * min(p, nnz')``
    or ``nnz' * min(m, nnz)`` for a product. If these take more memory than the dense form, the result is dense.

    **Padding.** `padded` tells whether some entries may be unused. Unused entries are last, with coordinates out of
    range.

    **Interoperability.** Operators convert arrays of `scipy.sparse` to `Sparse` arrays.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.Sparse([1.0, 2.0, 3.0], ([0, 2, 2], [1, 0, 1]), (3, 2))
    >>> A @ sa.asarray([1.0, 10.0])
    Dense([10.,  0., 32.], dtype=float64)
    >>> sa.exp(A).background.item()
    1.0
    """

    __slots__ = ()
    parameter_names = ("data", "coords[]", "background")
    static_pattern = False
    index_parameters = slice(1, -1)

    def __new__(
        cls, data: ParameterLike, indices: Sequence[ParameterLike] | ParameterLike, shape: int | Sequence[int]
    ) -> Self:
        data = parameter(data, "data", cls.__name__)
        shape = core_shape(shape, "shape")
        if any(n >= 2**63 for n in shape):
            raise ValueError(f"shape must have dimensions below 2**63, the range of indices, got {shape}")
        if not shape:
            raise ValueError("shape must have at least one dimension, got ()")
        if data.ndim < 1:
            raise ValueError("data must have at least one dimension, got a scalar")
        coordinates = coordinates_of(indices, len(shape))
        try:
            batch = np.broadcast_shapes(data.shape, *(c.shape for c in coordinates))
            if any(a.shape[-1:] != batch[-1:] for a in (data, *coordinates)):
                raise ValueError
        except ValueError:
            shapes = ", ".join(str(c.shape) for c in coordinates)
            raise ValueError(
                f"data and the coordinates must have the same number of entries, and batch shapes that broadcast, got "
                f"data of shape {data.shape} and coordinates of shapes {shapes}"
            ) from None
        data = jnp.broadcast_to(data, batch)
        if any(isinstance(c, jax.core.Tracer) for c in coordinates):
            return cls.make(*sorted_on_device(data, coordinates, shape, batch))
        leaves = sorted_on_host(data, [np.broadcast_to(c, batch) for c in coordinates], shape)
        return with_common_indices(cls.make(*leaves))

    @classmethod
    def from_scipy(cls, x: Any) -> Self:
        """Convert a `scipy.sparse` array or matrix of any format, without a dense intermediate.

        Parameters
        ----------
        x : scipy.sparse.sparray or scipy.sparse.spmatrix
            The array. Explicit zeros remain entries, duplicates are added.

        Raises
        ------
        TypeError
            If `x` is not an array or matrix of `scipy.sparse`.

        Examples
        --------
        >>> import scipy.sparse
        >>> import structarrays as sa
        >>> sa.Sparse.from_scipy(scipy.sparse.eye_array(3, format="csr")).nnz
        3
        """
        if not hasattr(x, "tocoo"):
            raise TypeError(f"x must be an array of scipy.sparse, got {type(x).__name__}")
        pattern = compressed_rows.of_scipy(x)
        if pattern is not None:
            leaves, (_, meta, _) = compressed_rows.sparse(pattern, compressed_rows.copied(x.data))._value
            return cls.make(leaves, meta)
        x = x.tocoo()
        return cls(x.data, tuple(x.coords), x.shape)

    @classmethod
    def from_dense(cls, a: ParameterLike, *, nnz: int | None = None, core_ndim: int | None = None) -> Sparse:
        """Return the array of the nonzero elements of a dense array.

        Parameters
        ----------
        a : array_like
            The dense array, ``(..., *shape)``.
        nnz : int, optional
            The number of entries. Default is the number of nonzero elements. It is required under `jax.jit`: the first
            `nnz` nonzero elements are stored, and unused entries are padding.
        core_ndim : int, optional
            The number of core dimensions, the last ones. Default is two (one for a vector).

        Raises
        ------
        ValueError
            If `a` is a scalar, if `a` is traced and `nnz` is not given, or if `nnz` is too small (checked in eager
            calls).

        Examples
        --------
        >>> import structarrays as sa
        >>> sa.Sparse.from_dense([[0.0, 2.0], [0.0, 0.0]]).indices
        Dense([[0, 1]], dtype=int32)
        """
        a = parameter(a, "a", f"{cls.__name__}.from_dense")
        if a.ndim == 0:
            raise ValueError("a must have at least one dimension, got a scalar")
        core_ndim = min(2, a.ndim) if core_ndim is None else core_ndim
        if not 1 <= core_ndim <= a.ndim:
            raise ValueError(f"core_ndim must be between 1 and the {a.ndim} dimensions of a, got {core_ndim}")
        shape, behind = a.shape[a.ndim - core_ndim :], a.ndim - core_ndim
        if isinstance(a, jax.core.Tracer):
            if nnz is None:
                raise ValueError(
                    "from_dense: nnz must be given if a is traced, since it determines the shape of the result"
                )
            bound = nnz
        else:
            counts = np.count_nonzero(np.asarray(a), axis=tuple(range(behind, a.ndim)))
            bound = int(counts.max(initial=0)) if nnz is None else nnz
            if nnz is not None and counts.max(initial=0) > nnz:
                raise ValueError(
                    f"from_dense: nnz must be at least {counts.max()}, the number of nonzeros of a, got {nnz}"
                )
            if not behind:
                where = np.nonzero(np.asarray(a))
                return cls.make(*sorted_on_host(explicit.call(lambda a: a[where], a), list(where), shape))._padded_to(
                    bound
                )

        def entries(matrix: jax.Array) -> tuple[jax.Array, ...]:
            where = jnp.nonzero(matrix, size=bound, fill_value=0)
            stored = jnp.arange(bound) < jnp.count_nonzero(matrix)
            coordinates = (jnp.where(stored, w, n) for w, n in zip(where, shape, strict=True))
            return jnp.where(stored, gather(matrix, where), 0), *(c.astype(index_dtype(shape)) for c in coordinates)

        leaves = explicit.call(numerics.over_batch(entries, behind), a)
        return with_common_indices(cls.make((*leaves, None), (shape, tuple(range(core_ndim)), True)))

    def to_scipy(self) -> Any:
        """Convert to a `scipy.sparse.coo_array`, without a dense intermediate.

        Raises
        ------
        ValueError
            If the array has batch dimensions or a background, which SciPy's arrays do not support.
        """
        from scipy.sparse import coo_array  # type: ignore[import-untyped]  # SciPy has no types

        if self.batch_shape:
            raise ValueError(
                f"to_scipy: the array must have no batch dimensions (unsupported by scipy.sparse), got {self.batch_shape}"
            )
        if self.background is not None:
            raise ValueError(
                f"to_scipy: the array must have no background (unsupported by scipy.sparse), got {self.background}"
            )
        leaves = [np.array(leaf) for leaf in (self.data, *self.coords)]  # the memory of JAX arrays is read-only
        if self.padded:
            stored = leaves[1] < self.core_shape[0]
            leaves = [leaf[stored] for leaf in leaves]
        return coo_array((leaves[0], tuple(leaves[1:])), shape=self.core_shape)

    if TYPE_CHECKING:  # the class is kept

        def map_parameters(self, function: Callable[[Any], Any]) -> Self: ...

    # ---- the parts -----------------------------------------------------------------------------------------------

    @property
    def core_shape(self) -> tuple[int, ...]:
        """The shape without batch dimensions."""
        shape: Shape = self.meta[0]
        return shape

    @property
    def core_ndim(self) -> int:
        """The number of core dimensions."""
        return len(self.meta[0])

    @property
    def order(self) -> tuple[int, ...]:
        """The order of the dimensions in which the entries are sorted lexicographically."""
        order: tuple[int, ...] = self.meta[1]
        return order

    @property
    def padded(self) -> bool:
        """Return whether some of the entries may be unused."""
        padded: bool = self.meta[2]
        return padded

    @property
    def data(self) -> jax.Array:
        """The stored entries, ``(..., nnz)``."""
        data: jax.Array = self._value[0][0]
        return data

    @property
    def coords(self) -> tuple[jax.Array, ...]:
        """The coordinates of the entries, one integer array ``(..., nnz)`` for each core dimension."""
        return self._value[0][1:-1]

    @property
    def indices(self) -> Dense:
        """The coordinates of the entries as a single array ``(..., nnz, ndim)``."""
        from ..._core.array.dense import Dense

        return Dense.make((jnp.stack(self.coords, axis=-1),))

    @property
    def nnz(self) -> int:
        """The number of entries stored for each matrix, including padding."""
        return self.data.shape[-1]

    @property
    def entries(self) -> tuple[jax.Array, ...]:
        """The parameter that contains the entries."""
        # Functions and their derivatives must not return values from the padding, so it is masked on both sides.
        return (self._without_padding(self.data),) if self.padded else self._value[0][:1]

    @property
    def background(self) -> jax.Array | None:
        """The value of all entries that are not stored: None is the structural zero."""
        background: jax.Array | None = self._value[0][-1]
        return background

    def with_data(self, data: ParameterLike) -> Sparse:
        """Return an array with the same pattern and other entries ``(..., nnz)``, in the order of `coords`."""
        data = parameter(data, "data", "with_data")
        if data.shape[-1:] != (self.nnz,):
            raise ValueError(f"data must be (..., {self.nnz}), one number for each entry, got shape {data.shape}")
        batch = np.broadcast_shapes(data.shape[:-1], self.batch_shape)
        background = None if self.background is None else jnp.broadcast_to(self.background, batch)
        return self.rebuild((jnp.broadcast_to(data, (*batch, self.nnz)),), background)

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        shape: Shape = batch_of(leaves[0].shape, 1) + meta[0]
        return shape

    def description(self) -> tuple[list[str], bool]:
        texts = [f"nnz={self.nnz}", f"shape={self.shape}"]
        if self.batch_shape or self.nnz > 10:
            return texts, False
        return [inline(self.data)[0], f"({', '.join(inline(c)[0] for c in self.coords)})", *texts[1:]], False

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> Sparse:
        (data,) = entries
        if self.padded:  # a function may map the zeros of the padding to other values
            data = self._without_padding(data)
        return Sparse.make((data, *self._like(data), background), self.meta)

    @property
    def pieces(self) -> int:
        """The number of pieces of equal size into which the entries divide."""
        return self.meta[3] if len(self.meta) > 3 else 1

    def _padded_for(self, pieces: int) -> Sparse:
        if pieces == self.pieces:
            return self
        leaves, (_, meta, _) = self._padded_to(self.nnz + -self.nnz % pieces)._value
        return Sparse.make(leaves, (*meta[:3], pieces) if pieces > 1 else meta[:3], self.assumptions)

    def trimmed(self) -> Sparse:
        leaves = [self.data, *self.coords]
        if self.pieces > 1 or any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return self
        if not all(getattr(leaf, "is_fully_addressable", True) for leaf in leaves):
            return self  # no process has all the values
        if not self.padded:
            return with_common_indices(self)
        (axis, *_) = self.order
        counts = np.count_nonzero(np.asarray(self.coords[axis]) < self.core_shape[axis], axis=-1)
        total, least = int(counts.max(initial=0)), int(counts.min(initial=self.nnz))
        if total < self.nnz:
            leaves = [jnp.asarray(np.asarray(leaf)[..., :total]) for leaf in leaves]
        meta = (self.core_shape, self.order, least < total)
        return with_common_indices(Sparse.make((*leaves, self.background), meta, self.assumptions))

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        return (self._entries_spec(spec),) * (1 + self.core_ndim) + (self._batch_spec(spec),)

    def _without_padding(self, data: jax.Array) -> jax.Array:
        return jnp.where(self.coords[0] < self.core_shape[0], data, jnp.zeros((), data.dtype))

    def _like(self, data: jax.Array) -> tuple[jax.Array, ...]:
        """Broadcast the coordinates for data with more batch dimensions."""
        if self.data.shape == data.shape:
            return self.coords
        if not self.batch_shape:
            return tuple(expand_indices(c, data.shape[:-1]) for c in self.coords)
        return tuple(jnp.broadcast_to(c, data.shape) for c in self.coords)

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return pattern.of_coordinates(self, self.coords, rows, columns)

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        return (self.coords,)

    def gather(self, data: jax.Array) -> tuple[jax.Array, ...]:
        core = data.shape[max(0, data.ndim - self.core_ndim) :]
        if any(n != 1 for n in core):
            return super().gather(data)
        batch = data.shape[: max(0, data.ndim - self.core_ndim)]
        return (jnp.broadcast_to(data.reshape((*batch, 1)), (*batch, self.nnz)),)

    def _keys(self) -> tuple[jax.Array, ...]:
        """Return the coordinates in the order in which they are sorted."""
        return tuple(self.coords[i] for i in self.order)

    def _sizes(self) -> tuple[int, ...]:
        """Return the core shape in the order in which the coordinates are sorted."""
        return tuple(self.core_shape[i] for i in self.order)

    def dense_data(self) -> jax.Array:
        shape = self.core_shape

        def put(data: jax.Array, background: jax.Array, *coordinates: jax.Array) -> jax.Array:
            return numerics.put(jnp.full(shape, background, self.dtype), coordinates, data)

        return self._over_batch(put, self.data, self._fill(), *self.coords)

    def _fill(self) -> jax.Array:
        """Return the value of the entries that are not stored, of batch shape."""
        return jnp.zeros(self.batch_shape, self.dtype) if self.background is None else self.background

    def _over_batch(self, function: Callable[..., T], *arrays: jax.Array) -> T:
        return numerics.over_batch(function, len(self.batch_shape))(*arrays)

    def _in_order(self, order: tuple[int, ...]) -> Sparse:
        """Return the array with its entries sorted by another order of the dimensions."""
        if self.order == order:
            return self
        meta = (self.core_shape, tuple(order), self.padded)
        if self.dtype in compressed_rows.DTYPES and compressed_rows.has_values(self.data):
            rows = compressed_rows.rows_of(self)
            if rows is not None:
                moved = compressed_rows.transposed(rows, np.asarray(self.data))
                return compressed_rows.sparse(*moved, order=order, background=self.background)
        if not self.batch_shape and not any(isinstance(c, jax.core.Tracer) for c in self.coords):
            sorting = host.sort([np.asarray(self.coords[i]) for i in order], [self.core_shape[i] for i in order])
            data = jnp.take(self.data, barred(sorting), mode="clip", unique_indices=True)
            return Sparse.make(
                (data, *(as_indices(np.asarray(c)[sorting]) for c in self.coords), self.background), meta
            )
        leaves = self._over_batch(functools.partial(numerics.sort_by, order), self.data, *self.coords)
        return Sparse.make((*leaves, self.background), meta)

    def _padded_to(self, nnz: int) -> Sparse:
        """Return the array with `nnz` entries, including unused entries at the end."""
        more = nnz - self.nnz
        if more <= 0:
            return self

        def pad(leaf: jax.Array, value: int) -> jax.Array:
            tail = jnp.full((*leaf.shape[:-1], more), value, leaf.dtype)
            return jnp.concatenate([leaf, tail], axis=-1)

        coordinates = (pad(c, n) for c, n in zip(self.coords, self.core_shape, strict=True))
        meta = (self.core_shape, self.order, True)
        return Sparse.make((pad(self.data, 0), *coordinates, self.background), meta)


def is_plain_matrix(x: Sparse, *args: Array, **static: Any) -> bool:
    """Return whether the array is a matrix whose unstored entries are structural zeros."""
    return x.core_ndim == 2 and x.background is None


def zero_sparse(
    shape: Shape, dtype: DTypeLike | None = None, batch: Shape = (), background: jax.Array | None = None
) -> Sparse:
    """Return a sparse array without entries."""
    dtype = dtypes.default_dtype("f") if dtype is None else dtype
    coordinates = (jnp.zeros((*batch, 0), index_dtype(shape)) for _ in shape)
    leaves = (jnp.zeros((*batch, 0), dtype), *coordinates, background)
    return Sparse.make(leaves, (shape, tuple(range(len(shape))), False))


@validated.kernel(Sparse)
def check_sparse(x: Sparse) -> None:
    """Raise unless the coordinates are in range, sorted and distinct, with padding behind them."""
    check_static(type(x.meta) is tuple and len(x.meta) == 3 and type(x.meta[2]) is bool, x)
    ndim = len(check_sizes(x.meta[0]))
    check_static(ndim > 0 and sorted(check_sizes(x.meta[1], ndim)) == list(range(ndim)), x)
    require(len(x._value[0]) == ndim + 2, f"it must have {ndim + 2} parameters, got {len(x._value[0])}")
    coordinates = [np.asarray(c) for c in x._keys()]
    data, *_, background = x._value[0]
    check_leaves(Sparse.make((data, background), x.meta), data.shape[-1:], BACKGROUND)
    require(
        all(c.shape == data.shape and c.dtype.kind == "i" for c in coordinates),
        "the coordinates of a Sparse must be integers, one for each entry",
    )
    stored = functools.reduce(
        np.logical_and, [(c >= 0) & (c < n) for c, n in zip(coordinates, x._sizes(), strict=True)]
    )
    unused = functools.reduce(np.logical_and, [c == n for c, n in zip(coordinates, x._sizes(), strict=True)])
    if not np.all(stored | unused if x.padded else stored) or np.any(stored[..., 1:] & ~stored[..., :-1]):
        raise ValueError(f"the coordinates of a Sparse of shape {x.shape} must be in range")
    # Of two neighbours, the second is larger in the first coordinate in which they differ.
    less, equal = np.zeros(stored[..., 1:].shape, bool), np.ones(stored[..., 1:].shape, bool)
    for c in coordinates:
        less |= equal & (c[..., 1:] > c[..., :-1])
        equal &= c[..., 1:] == c[..., :-1]
    if not np.all(less | ~stored[..., 1:]):
        raise ValueError("the coordinates of a Sparse must be sorted and distinct")
