"""Writes into `PeriodicBanded` matrices, and into the corners of bands, which make them periodic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array import keys
from ..._functions.index_writes import write_entries, written
from ..banded.array import Banded
from ..banded.indexing import single_entries
from .array import PeriodicBanded, at_offsets, on_ring
from .numerics import normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core.array.base import Array
    from ..._core.array.keys import Item


def _single(x: PeriodicBanded | Banded, items: Sequence[Item]) -> tuple[int, int] | None:
    """Return row and column of a single element of every matrix that a key selects; None for other keys."""
    batch, (rows, columns) = items[:-2], items[-2:]
    full = all(keys.is_full(item, n) for item, n in zip(batch, x.batch_shape, strict=True))
    if not (full and rows.kind == columns.kind == "int"):
        return None
    place = single_entries(x.core_shape, rows, columns)
    return None if place is None else (int(place[0]), int(place[1]))


@write_entries.kernel(PeriodicBanded)
def _write_entries_periodic_banded(
    x: PeriodicBanded, items: Sequence[Item], value: Array, owned: bool
) -> PeriodicBanded | None:
    """Write a single element of every matrix, on a stored diagonal or on a new one."""
    place = _single(x, items)
    if place is None or x.background is not None:
        return None
    (i, j), n = place, x.meta[1]
    k = normalised(j - i, n)
    if k not in x.offsets and 2 * len(x.offsets) >= n:
        return None
    if k not in x.offsets:
        x, owned = at_offsets(x, {*x.offsets, k}), False
    at, diagonals = x.offsets.index(k), list(x.diagonals)
    diagonals[at] = written(diagonals[at], [*items[:-2], keys.Item("int", i)], value.to_jax(), owned)
    if not owned:
        # The handle now owns all its parameters: none may be shared with another array.
        diagonals = [d if place == at else jnp.copy(d) for place, d in enumerate(diagonals)]
    return x.rebuild(tuple(diagonals), None)


def _can_close(x: Banded) -> bool:
    """Return whether a band is so narrow that an element in a corner makes it periodic."""
    m, n = x.core_shape
    return x.background is None and m == n and n >= 16 and 0 < len(x.offsets) and 4 * max(map(abs, x.offsets)) < n


@write_entries.kernel(Banded, when=_can_close, before="write_entries_banded")
def _write_entries_corner_of_band(x: Banded, items: Sequence[Item], value: Array, owned: bool) -> PeriodicBanded | None:
    """Write an element in a corner that lies within the bandwidth if the diagonals wrap around."""
    place = _single(x, items)
    if place is None:
        return None
    (i, j), n = place, x.core_shape[0]
    width = max(1, *map(abs, x.offsets))
    if abs(j - i) <= width or abs(normalised(j - i, n)) > width:
        return None
    return _write_entries_periodic_banded(on_ring(x), items, value, False)
