"""Random Toeplitz, circulant and Hankel arrays, for the equivalence tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._structures.toeplitz.array import Toeplitz
from .._structures.toeplitz.circulant import Circulant
from .._structures.toeplitz.hankel import Hankel
from .arrays import SAMPLERS, sampler

if TYPE_CHECKING:
    from .._core.typing import Shape
    from .arrays import Numbers, Sampler


def _diagonals(first: int, last: int) -> Sampler:
    """Return the sampler of Toeplitz arrays with the diagonals from `first` to `last` that lie in the matrix."""

    def draw(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Toeplitz:
        m, n = core
        if 0 in core:
            return Toeplitz(*(np.zeros((*batch, size), numbers.dtype) for size in core))
        low, high = max(first, 1 - m), min(last, n - 1)
        if requires not in ("", "invertible"):
            low, high = max(low, -high), min(high, -low)
        values = numbers((*batch, high - low + 1))
        if requires:
            values = values / (2 * n)
        if requires not in ("", "invertible"):
            values = (values + values[..., ::-1].conj()) / 2
        if requires not in ("", "hermitian"):
            values[..., -low] += numbers.high + 1
        column, row = values[..., : 1 - low][..., ::-1], values[..., -low:]
        return Toeplitz(np.asarray(column, numbers.dtype), np.asarray(row, numbers.dtype), shape=core)

    return draw


SAMPLERS["Toeplitz"] = _diagonals(-99, 99)
SAMPLERS["Toeplitz, tridiagonal"] = _diagonals(-1, 1)
SAMPLERS["Toeplitz, lower"] = _diagonals(-99, 0)


@sampler("Circulant")
def _draw_circulant(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Circulant | None:
    m, n = core
    if m != n:
        return None
    c = numbers((*batch, n))
    if requires:
        c = c / (2 * n)
    if requires not in ("", "invertible"):
        c = (c + np.roll(c[..., ::-1], 1, axis=-1).conj()) / 2
    if requires not in ("", "hermitian"):
        c[..., 0] += numbers.high + 1
    return Circulant(np.asarray(c, numbers.dtype))


@sampler("Hankel")
def _draw_hankel(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Hankel | None:
    """Draw a Hankel array; with requirements, a real one with a dominant antidiagonal.

    Only arrays of size 1 are definite.
    """
    m, n = core
    if requires == "positive definite":
        return (
            Hankel(np.full((*batch, 1), 2, numbers.dtype), np.full((*batch, 1), 2, numbers.dtype)) if n == 1 else None
        )
    values = numbers((*batch, max(m, n, m + n - 1)))  # if one of them is zero, the other
    if requires:
        values = values.real / (2 * n)
        values[..., n - 1] += numbers.high + 1
    values = np.asarray(values, numbers.dtype)
    return Hankel(values[..., :m], values[..., values.shape[-1] - n :])
