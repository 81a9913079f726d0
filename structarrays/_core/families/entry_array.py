"""`EntryArray`: the first family of structures, which store entries of a matrix beside a background (docs/design/semantics.md).

A structure says what it stores and where that stands. From this follow functions of one array, sums and products with numbers and dense arrays,
reductions along the batch and casts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax

from ..array.base import Array
from .entries import gather

if TYPE_CHECKING:
    from ..typing import DTypeLike


class EntryArray(Array):
    """The base class of structures that store entries.

    A subclass defines `shape_of` and `dense_data`, like every structure, and `entries`, `background`, `rebuild` and `positions`.
    """

    __slots__ = ()
    stores_entries = True
    is_family = True
    """Whether this class, and not a subclass, is the base of a family: kernels for it are as near as those for `Array`, and come before them."""

    @property
    def entries(self) -> tuple[jax.Array, ...]:
        """The stored entries: parameters with the whole batch shape in front."""
        raise NotImplementedError

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> Array:
        """The array of the same pattern with other entries and another background."""
        raise NotImplementedError

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        """Where the stored entries stand: for each of `entries` one integer array a core dimension, without the batch if
        `static_pattern`, else with it; the place of an entry that fills several is any of them.
        """
        raise NotImplementedError

    def gather(self, data: jax.Array) -> tuple[jax.Array, ...]:
        """Dense data that broadcasts to the matrix, at the stored entries: one array for each of `entries`."""
        batch_ndim = 0 if self.static_pattern else len(self.batch_shape)
        return tuple(gather(data, where, batch_ndim) for where in self.positions())

    def cast(self, dtype: DTypeLike) -> Array:
        """The array with another dtype."""
        convert = jax.lax.convert_element_type
        background = None if self.background is None else convert(self.background, dtype)
        return self.rebuild(tuple(convert(e, dtype) for e in self.entries), background)
