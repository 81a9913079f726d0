"""Random factored arrays, for the equivalence tests: low-rank arrays, sums and products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._structures.banded.diagonal import Diagonal
from .._structures.composite.product import Product
from .._structures.composite.sum import Sum
from .._structures.low_rank.array import LowRank
from .._structures.toeplitz.array import Toeplitz
from .._structures.triangular.array import Triangular
from .arrays import dominant, sampler

if TYPE_CHECKING:
    from .._core.typing import Shape
    from .arrays import Numbers


def _numeric(numbers: Numbers) -> bool:
    return numbers.dtype.kind != "b"


def _rank_one(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> LowRank:
    """Draw a column and a row; for a Hermitian matrix, the row is the conjugate of the column."""
    m, n = core
    u = numbers((*batch, m, 1))
    v = numbers((*batch, n, 1)) if requires in ("", "invertible") else np.conj(u)
    return LowRank(u / (2 * n) if requires else u, v) if numbers.dtype.kind in "fc" else LowRank(u, v)


@sampler("LowRank")
def _draw_low_rank(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> LowRank | None:
    if not _numeric(numbers):
        return None
    if not requires:
        return _rank_one(numbers, batch, core, requires)
    # The factors of an invertible array are square.
    u = dominant(numbers, batch, core[-1], requires)
    return LowRank(u, np.broadcast_to(np.eye(core[-1], dtype=numbers.dtype), u.shape))


@sampler("Sum")
def _draw_sum(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Sum | None:
    if not _numeric(numbers):
        return None
    diag = numbers((*batch, min(core)))
    if requires not in ("", "invertible"):
        diag = diag.real
    if requires not in ("", "hermitian"):
        diag = diag + numbers.high + 1
    return Sum(Diagonal(np.asarray(diag, numbers.dtype), shape=core), _rank_one(numbers, batch, core, requires))


@sampler("Product")
def _draw_product(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Product | None:
    if not _numeric(numbers):
        return None
    m, n = core
    if not requires:
        left, right = numbers((*batch, m + 1)), numbers((*batch, n + 1))
        return Product(
            Toeplitz(left[..., :m], left[..., :2], shape=(m, 2)), Toeplitz(right[..., :2], right[..., :n], shape=(2, n))
        )
    lower = dominant(numbers, batch, n, "invertible") / np.asarray(numbers.high + 1, numbers.dtype)
    upper = lower if requires == "invertible" else np.conj(np.swapaxes(lower, -1, -2))
    return Product(Triangular(lower), Triangular(upper, lower=False))
