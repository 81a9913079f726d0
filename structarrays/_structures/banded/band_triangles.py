"""`tril` and `triu` of banded matrices: diagonals on the wrong side are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._core.families.conditions import has_structural_zeros
from ..._functions.creation import tril, triu
from .array import Banded, bands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core.array.base import Array


@tril.kernel(Banded, when=has_structural_zeros)
def _tril_banded(x: Banded, *, k: int) -> Array:
    return _keep(x, [offset for offset in x.offsets if offset <= k])


@triu.kernel(Banded, when=has_structural_zeros)
def _triu_banded(x: Banded, *, k: int) -> Array:
    return _keep(x, [offset for offset in x.offsets if offset >= k])


def _keep(x: Banded, offsets: Sequence[int]) -> Array:
    """The diagonals with these offsets; the array of the same class, if these are all."""
    if len(offsets) == len(x.offsets):
        return x.assuming(frozenset())
    kept = [x.diagonal(k) for k in offsets]
    return bands(kept, offsets, x.core_shape, dtype=x.dtype, batch=x.batch_shape)
