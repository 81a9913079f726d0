"""`PeriodicBanded`: a band matrix whose diagonals wrap around the edge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import jax
import jax.numpy as jnp

from ..._core import dtypes
from ..._core.array.validation import BACKGROUND, check_leaves, check_static, require, validated
from ..._core.families import pattern
from ..._core.families.entries import elements
from ..._core.families.entry_array import EntryArray
from ..._core.families.join import holds, is_zero_outside, join_pair, meet_pair, restrict_to
from ..banded.array import Banded, batch_of, check_batches, holds_offsets, join_constant, paired
from ..blocks.array import Run
from ..fill.array import Fill, fills_matrices
from ..sparse.sparse_joins import sparse_form, sparse_of_runs, stored_runs
from .numerics import normalised

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np

    from ..._core.array.arguments import ParameterLike
    from ..._core.typing import Leaves, Meta, Shape


class PeriodicBanded(EntryArray):
    r"""A square matrix stored by diagonals that wrap around the edge: ``A[i, (i + k) mod n]`` for each offset k.

    Examples are periodic splines, finite differences on a circle, and closed chains.

    Parameters
    ----------
    diagonals : sequence of array_like
        One vector ``(..., n)`` for each offset: entry ``i`` is ``A[i, (i + k) mod n]``. The batch shapes broadcast.
    offsets : sequence of int
        The offset of each diagonal, modulo n.

    Raises
    ------
    ValueError
        If there is no diagonal, if lengths differ, or if two offsets are equal modulo n.

    Notes
    -----
    With ``d`` diagonals at offsets of at most ``w`` the costs are

    ====================================  ==========================================
    elementwise, reductions, transpose    ``O(d n)``
    product with a vector                 ``O(d n)``
    product with d' diagonals             ``O(d d' n)``
    solve, `slogdet`, `cholesky`          ``O(w**2 n)``
    `eigvalsh`, `svdvals`                 ``O(w n**2)`` operations, ``O(w n)`` memory
    ====================================  ==========================================

    Linear systems, determinants and eigenvalues use a `Banded` matrix: in the order 0, n - 1, 1, n - 2, … of rows and
    columns the matrix has twice the bandwidth and no corners. The elimination pivots, so the matrix may be general.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.PeriodicBanded([[4.0] * 5, [1.0] * 5, [1.0] * 5], (0, 1, -1))
    >>> A.to_dense()
    Dense([[4., 1., 0., 0., 1.],
           [1., 4., 1., 0., 0.],
           [0., 1., 4., 1., 0.],
           [0., 0., 1., 4., 1.],
           [1., 0., 0., 1., 4.]], dtype=float64)
    >>> sa.linalg.solve(A, sa.ones(5))[0]
    Dense(0.16666667, dtype=float64)
    """

    __slots__ = ()
    parameter_names = ("diagonals[]", "background")

    def __new__(cls, diagonals: Sequence[ParameterLike] | ParameterLike, offsets: Sequence[int] | np.ndarray) -> Self:
        diagonals, offsets = paired(diagonals, offsets, cls.__name__)
        if not offsets:
            raise ValueError("diagonals must not be empty: their length is the size of the matrix")
        for i, d in enumerate(diagonals):
            if d.shape[-1:] != diagonals[0].shape[-1:] or d.ndim < 1 or d.shape[-1] == 0:
                raise ValueError(
                    f"diagonals must be vectors (..., n) of one length n > 0, got shapes {diagonals[0].shape} and {d.shape} (diagonals[{i}])"
                )
        n = diagonals[0].shape[-1]
        places = [normalised(k, n) for k in offsets]
        if len(set(places)) != len(places):
            raise ValueError(f"offsets must differ modulo {n}, the size of the matrix, got {offsets}")
        check_batches(diagonals)
        leaves, (_, meta, _) = periodic(dict(zip(places, diagonals, strict=True)), None)._value
        return cls.make(leaves, meta)

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offsets of the stored diagonals, increasing, between ``-n / 2`` and ``n / 2``."""
        offsets: tuple[int, ...] = self.meta[0]
        return offsets

    @property
    def core_shape(self) -> tuple[int, int]:
        """The shape ``(n, n)`` of the matrix."""
        return (self.meta[1],) * 2

    @property
    def diagonals(self) -> tuple[jax.Array, ...]:
        """The stored diagonals ``(..., n)``, one for each offset."""
        return self.parameters[:-1]

    entries = diagonals

    @property
    def background(self) -> jax.Array | None:
        """The value of all entries that are not stored: None is the structural zero."""
        background: jax.Array | None = self.parameters[-1]
        return background

    @property
    def covers(self) -> bool:
        """Return whether every diagonal is stored."""
        size: int = self.meta[1]
        return len(self.offsets) == size

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        return (*batch_of(leaves[0].shape, 1), meta[1], meta[1])

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> PeriodicBanded:
        return PeriodicBanded.make((*entries, background), self.meta)

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        i = jnp.arange(self.meta[1])
        return tuple((i, (i + k) % self.meta[1]) for k in self.offsets)

    def dense_data(self) -> jax.Array:
        i = jnp.arange(self.meta[1])
        return elements_on_ring(self, i[:, None], i[None, :])

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        n = self.meta[1]
        offsets = sorted({k + turn for k in self.offsets for turn in (-n, 0, n) if abs(k + turn) < n})
        return pattern.stored(self, pattern.meets_diagonals(rows, columns, offsets))

    def description(self) -> tuple[list[str], bool]:
        return [f"offsets={self.offsets}", f"shape={self.shape}"], False

    def diagonal(self, offset: int = 0) -> jax.Array:
        """Return the diagonal ``A[i, (i + offset) mod n]``, ``(..., n)``, whether it is stored or not."""
        k = normalised(offset, self.meta[1])
        if k in self.offsets:
            return self.diagonals[self.offsets.index(k)]
        fill = jnp.zeros((), self.dtype) if self.background is None else self.background[..., None]
        return jnp.broadcast_to(fill, (*self.batch_shape, self.meta[1]))


def periodic(diagonals: dict[int, jax.Array], background: jax.Array | None) -> PeriodicBanded:
    """Return the matrix with these diagonals by normalised offset: one dtype, and the whole batch shape for each."""
    offsets = tuple(sorted(diagonals))
    dtype = dtypes.promote(*(d.dtype for d in diagonals.values()))
    batch = jnp.broadcast_shapes(
        *(d.shape[:-1] for d in diagonals.values()), *([] if background is None else [background.shape])
    )
    n = diagonals[offsets[0]].shape[-1]
    leaves = [jnp.broadcast_to(diagonals[k].astype(dtype), (*batch, n)) for k in offsets]
    return PeriodicBanded.make(
        (*leaves, None if background is None else jnp.broadcast_to(background, batch)), (offsets, n)
    )


def at_offsets(x: PeriodicBanded, offsets: Iterable[int]) -> PeriodicBanded:
    """Return the entries of `x` on these diagonals, stored or not, with the background of `x`."""
    return periodic({k: x.diagonal(k) for k in offsets}, x.background)


def is_ring(x: Banded) -> bool:
    """Return whether a band matrix can be stored by diagonals that wrap around: it is square, with few diagonals."""
    m, n = x.core_shape
    return m == n and n > 0 and 0 < len({k % n for k in x.offsets}) < n


def on_ring(x: Banded) -> PeriodicBanded:
    """Convert a square band matrix: the diagonals with offsets k and k - n become one."""
    n = x.core_shape[0]
    fill = jnp.zeros((), x.dtype) if x.background is None else x.background[..., None]
    found = {normalised(k, n): jnp.broadcast_to(fill, (*x.batch_shape, n)) for k in x.offsets}
    for k, d in zip(x.offsets, x.diagonals, strict=True):
        start = max(0, -k)
        found[normalised(k, n)] = found[normalised(k, n)].at[..., start : start + d.shape[-1]].set(d)
    return periodic(found, x.background)


@elements.kernel(PeriodicBanded)
def elements_on_ring(x: PeriodicBanded, i: jax.Array, j: jax.Array) -> jax.Array:
    """Return the elements at these coordinates."""
    i, j = jnp.broadcast_arrays(i, j)
    fill = jnp.zeros((), x.dtype) if x.background is None else x.background
    value = jnp.broadcast_to(fill.reshape(fill.shape + (1,) * i.ndim), (*x.batch_shape, *i.shape))
    for k, d in zip(x.offsets, x.diagonals, strict=True):
        value = jnp.where((j - i - k) % x.meta[1] == 0, d[..., i], value)
    return value


# ---- joins ----------------------------------------------------------------------------------------------------------


@join_pair.kernel(PeriodicBanded, PeriodicBanded)
def _join_pair_periodic_banded(x: PeriodicBanded, y: PeriodicBanded) -> tuple[PeriodicBanded, PeriodicBanded]:
    offsets = {*x.offsets, *y.offsets}
    return at_offsets(x, offsets), at_offsets(y, offsets)


@join_pair.kernel(PeriodicBanded, Banded, when=lambda x, y: is_ring(y))
def _join_pair_periodic_banded_banded(x: PeriodicBanded, y: Banded) -> tuple[PeriodicBanded, PeriodicBanded]:
    return _join_pair_periodic_banded(x, on_ring(y))


join_pair.kernel(Fill, PeriodicBanded, when=fills_matrices)(join_constant)


@meet_pair.kernel(PeriodicBanded, PeriodicBanded)
def _meet_pair_periodic_banded(x: PeriodicBanded, y: PeriodicBanded) -> PeriodicBanded:
    if not is_zero_outside(y):
        return x
    return at_offsets(x, set(x.offsets) & set(y.offsets) or {0})


@meet_pair.kernel(PeriodicBanded, Banded, when=lambda x, y: is_ring(y))
def _meet_pair_periodic_banded_banded(x: PeriodicBanded, y: Banded) -> PeriodicBanded:
    return _meet_pair_periodic_banded(x, on_ring(y)) if is_zero_outside(y) else x


holds.kernel(PeriodicBanded, PeriodicBanded)(holds_offsets)


@holds.kernel(PeriodicBanded, Banded)
def _holds_periodic_banded_banded(x: PeriodicBanded, y: Banded) -> bool:
    return is_ring(y) and {normalised(k, x.meta[1]) for k in y.offsets} <= set(x.offsets)


@restrict_to.kernel(PeriodicBanded, PeriodicBanded)
def _restrict_to_periodic_banded(x: PeriodicBanded, y: PeriodicBanded) -> PeriodicBanded:
    return at_offsets(x, y.offsets)


@stored_runs.kernel(PeriodicBanded)
def _stored_runs_periodic_banded(x: PeriodicBanded) -> tuple[tuple[Run, ...], tuple[jax.Array, ...]]:
    n, runs, blocks = x.meta[1], [], []
    for k, d in zip(x.offsets, x.diagonals, strict=True):
        first = Run(0, k % n, n - k % n, 1, 1)  # the entries before the column returns to zero
        runs += [first, Run(first.count, 0, n - first.count, 1, 1)]
        blocks += [d[..., : first.count, None, None], d[..., first.count :, None, None]]
    return tuple(runs), tuple(blocks)


sparse_form.kernel(PeriodicBanded)(sparse_of_runs)


@validated.kernel(PeriodicBanded)
def check_periodic_banded(x: PeriodicBanded) -> None:
    """Raise unless there is a background, and diagonals of the right length for increasing, normalised offsets."""
    check_static(type(x.meta) is tuple and len(x.meta) == 2 and type(x.meta[1]) is int and 0 < x.meta[1] < 2**63, x)
    offsets, n = x.meta
    require(
        type(offsets) is tuple and bool(offsets) and all(type(k) is int and normalised(k, n) == k for k in offsets),
        "offsets must be integers between minus half the size and half the size",
    )
    require(offsets == tuple(sorted(set(offsets))), "offsets must increase")
    check_leaves(x, *[(n,)] * len(offsets), BACKGROUND)
