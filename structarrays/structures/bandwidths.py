"""What the width of a band costs, beside the number of its diagonals: static questions about `Banded` arrays.

A band may have few diagonals far apart, as that of a grid, or of a periodic boundary. Its factors fill the whole band.
"""

import math

from ..core.contexts import densify_policy
from ..core.operands import allow_dense
from .banded_products import has_structural_zeros

NARROW = 64
"""Bands of up to so many diagonals on either side never count as filling a matrix: programs for them are quick to compile."""

WORK = 2 * NARROW**2
"""From so many multiplications for each row on, the factors of a sparse matrix take less time than those of its band."""

SPREAD = 8
"""A direct solver of sparse systems serves if at most one diagonal in so many of the band is stored: the factors of others are as full."""


def is_triangular(x) -> bool:
    """Whether nothing is stored on one side of the diagonal: then an elimination fills nothing."""
    return 0 in x._bandwidths()


def is_spread(x) -> bool:
    """Whether the factors of a band cost more than those of the sparse matrix with the same entries."""
    below, above = x._bandwidths()
    return min(below, above) > 0 and below * (below + above) > WORK and SPREAD * len(x.offsets) <= below + above


def fills_matrix(x, *args, **static) -> bool:
    """Whether the factors of a band have as many entries as those of the dense form."""
    width = max(x._bandwidths())
    return width > NARROW and 2 * width >= min(x.core_shape)


_FILL = "The factors of a band fill all of it, however few of its diagonals are stored."


def ask_for_factors(x, name: str, width: int) -> None:
    """Ask the policy where the factors of a band, of so many diagonals, take more memory than its limit, and far more than what is stored."""
    size = math.prod(x.shape[:-1]) * width
    if size * x.dtype.itemsize > densify_policy.value.limit and width >= SPREAD * max(1, len(x.offsets)):
        allow_dense(x, name, size, reason=_FILL)


def is_banded(x, *args, **static) -> bool:
    """Whether an array without a background has factors with fewer entries than the dense form: when factorisations keep the band."""
    return has_structural_zeros(x) and not fills_matrix(x)
