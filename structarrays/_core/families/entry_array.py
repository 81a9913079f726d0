"""`EntryArray`: the first family of structures, which store entries of a matrix and a background
(docs/design/semantics.md).

A structure returns its stored entries and their positions. From these follow functions of one array, sums and products
with scalars and dense arrays, reductions along the batch, and casts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax

from ..._numerics.conversions import converted
from ..array.base import Array
from .entries import gather

if TYPE_CHECKING:
    from ..typing import DTypeLike


class EntryArray(Array):
    """Base class of structures that store entries.

    A subclass defines `shape_of` and `dense_data`, like every structure, and `entries`, `background`, `rebuild` and `positions`.
    """

    __slots__ = ()
    stores_entries = True
    is_family = True
    """Whether this class itself (not a subclass) is the base of a family: kernels for it are as close as kernels for
    `Array`, and precede them."""

    @property
    def entries(self) -> tuple[jax.Array, ...]:
        """Stored entries: parameters with the whole batch shape in front."""
        raise NotImplementedError

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> Array:
        """Return the array of the same pattern with other entries and another background."""
        raise NotImplementedError

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        """Return the indices of the stored entries: a tuple of integer arrays (one per core dimension) for each array
        in `entries`.

        The index arrays have no batch dimensions if `static_pattern` is true. If an entry fills several positions, any
        one of them may be returned.
        """
        raise NotImplementedError

    def gather(self, data: jax.Array) -> tuple[jax.Array, ...]:
        """Return dense data, which broadcasts to the matrix, at the stored entries: one array for each of `entries`."""
        batch_ndim = 0 if self.static_pattern else len(self.batch_shape)
        return tuple(gather(data, where, batch_ndim) for where in self.positions())

    def cast(self, dtype: DTypeLike) -> Array:
        """Return the array with another data type."""
        background = None if self.background is None else converted(self.background, dtype)
        return self.rebuild(tuple(converted(e, dtype) for e in self.entries), background)
