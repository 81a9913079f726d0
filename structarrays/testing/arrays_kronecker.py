"""Random Kronecker products and sums, for the equivalence tests."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .._structures.banded.diagonal import Diagonal
from .._structures.kronecker.array import Kronecker
from .._structures.kronecker.kronecker_sum import KroneckerSum
from .arrays import dominant, sampler

if TYPE_CHECKING:
    from .._core.typing import Shape
    from .arrays import Numbers


def _divisor(n: int) -> int:
    """Return the largest divisor of a number up to its square root; 1 for a prime number."""
    return max((d for d in range(1, math.isqrt(max(1, n)) + 1) if n % d == 0), default=1)


@sampler("Kronecker")
def _draw_kronecker(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Kronecker | None:
    """Draw two factors; one of them has one row if the number of rows is prime."""
    if numbers.dtype.kind == "b":
        return None
    (m, n), (p, q) = core, map(_divisor, core)
    if requires:
        return Kronecker(dominant(numbers, batch, q, requires), dominant(numbers, batch, n // q, requires))
    return Kronecker(numbers((*batch, p, q)), numbers((*batch, m // p, n // q)))


@sampler("Kronecker, structured")
def _draw_kronecker_structured(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Kronecker | None:
    """Draw three factors: the first has one element, the second is diagonal."""
    if numbers.dtype.kind == "b":
        return None
    (m, n), (p, q) = core, map(_divisor, core)
    if requires:
        diag = np.asarray(numbers.real((*batch, q)), numbers.dtype)
        diag = diag if requires == "hermitian" else np.asarray(np.abs(diag) + 1, numbers.dtype)
        one = dominant(numbers, batch, 1, requires)
        return Kronecker(one, Diagonal(diag), dominant(numbers, batch, n // q, requires))
    diagonal = Diagonal(numbers((*batch, min(p, q))), shape=(p, q))
    return Kronecker(numbers((*batch, 1, 1)), diagonal, numbers((*batch, m // p, n // q)))


@sampler("KroneckerSum")
def _draw_kronecker_sum(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> KroneckerSum | None:
    if core[0] != core[1] or numbers.dtype.kind == "b":
        return None
    n, q = core[0], _divisor(core[0])
    if not requires:
        return KroneckerSum(numbers((*batch, q, q)), numbers((*batch, n // q, n // q)))
    return KroneckerSum(dominant(numbers, batch, q, requires), dominant(numbers, batch, n // q, requires))
