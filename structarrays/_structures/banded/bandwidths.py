"""Static queries about `Banded` arrays: the bandwidth, and the cost of factors.

A band may have few diagonals far apart, as for a grid or a periodic boundary. The factors fill the whole band.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..._core.array.operands import allow_dense
from ..._core.dispatch.contexts import densify_policy
from ..._core.families.conditions import has_structural_zeros
from ..._numerics.symbolic import is_symbolic

if TYPE_CHECKING:
    from .array import Banded

NARROW = 64
"""A band with at most this number of diagonals on either side never counts as full: its programs compile quickly."""

WORK = 2 * NARROW**2
"""The number of multiplications for each row above which the sparse factors take less time than the factors of the band."""

SPREAD = 8
"""A sparse solver is used if at most one in `SPREAD` diagonals of the band is stored. Otherwise the sparse factors are as full as the band."""


def is_triangular(x: Banded) -> bool:
    """Return whether one side of the main diagonal has no stored entries, so that an elimination causes no fill."""
    return 0 in x.bandwidths()


def is_spread(x: Banded) -> bool:
    """Return whether the factors of a band cost more than the factors of the sparse matrix with the same entries."""
    return are_spread(*x.bandwidths(), len(x.offsets))


def are_spread(below: int, above: int, count: int) -> bool:
    """Return the same for a band with `count` diagonals, of which the outermost have the offsets `-below` and `above`."""
    return min(below, above) > 0 and below * (below + above) > WORK and SPREAD * count <= below + above


def fills_matrix(x: Banded, *args: Any, **static: Any) -> bool:
    """Return whether the factors of a band have as many entries as the factors of the dense form."""
    width = max(x.bandwidths())
    return width > NARROW and 2 * width >= min(x.core_shape)


_FILL = "The factors of a band fill the whole band, even if few of its diagonals are stored."


def ask_for_factors(x: Banded, name: str, width: int) -> None:
    """Apply the policy if `width` diagonals exceed its memory limit and are far more than the stored entries."""
    size = math.prod(x.shape[:-1]) * width
    if is_symbolic(size):
        return
    if size * x.dtype.itemsize > densify_policy.value.limit and width >= SPREAD * max(1, len(x.offsets)):
        allow_dense(x, name, size, reason=_FILL)


def is_banded(x: Banded, *args: Any, **static: Any) -> bool:
    """Return whether factorisations keep the band.

    The matrix has no background, and its factors have fewer entries than the dense form.
    """
    return has_structural_zeros(x) and not fills_matrix(x)
