"""Random block arrays, inverses, Fourier matrices and reflectors, for the equivalence tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._structures.banded.array import Banded
from .._structures.banded.diagonal import Diagonal
from .._structures.banded.from_diagonals import tridiagonal
from .._structures.composite.block import Block
from .._structures.composite.inverse import Inverse
from .._structures.low_rank.array import LowRank
from .._structures.orthonormal.fourier import Fourier
from .._structures.orthonormal.householder import Householder
from .arrays import dominant, sampler

if TYPE_CHECKING:
    from .._core.array.base import Array
    from .._core.typing import Shape
    from .arrays import Numbers


def _tridiagonal(numbers: Numbers, batch: Shape, n: int, requires: str) -> Banded:
    """Return a tridiagonal matrix with a dominant diagonal."""
    lower, upper = (numbers((*batch, max(0, n - 1))) / 4 for _ in range(2))
    diag = numbers((*batch, n)) / 4
    if requires != "hermitian":
        diag = diag + (numbers.high + 1)
    if requires not in ("", "invertible"):
        lower, diag = upper.conj(), diag.real
    parts = (np.asarray(p, numbers.dtype) for p in (lower, diag, upper))
    return tridiagonal(*parts) if n else Banded((), (), (0, 0))


def _inexact(numbers: Numbers) -> bool:
    return numbers.dtype.kind in "fc"


@sampler("Inverse")
def _draw_inverse(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Inverse | None:
    """Draw the inverse of a tridiagonal matrix, which is always invertible."""
    n = core[0]
    if core[0] != core[1] or n == 0 or not _inexact(numbers) or requires == "hermitian":
        return None
    return Inverse(_tridiagonal(numbers, batch, n, requires or "invertible"))


@sampler("Fourier")
def _draw_fourier(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Array | None:
    if core[0] != core[1] or numbers.dtype.kind != "c" or requires not in ("", "invertible"):
        return None
    x = Fourier(core[0], dtype=numbers.dtype)
    return x.map_parameters(lambda leaf: leaf + np.zeros(batch, numbers.dtype))


@sampler("Householder")
def _draw_householder(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Array | None:
    """Draw reflectors with two rows each, or the transpose if there are more columns than rows.

    A single element is excluded: it has modulus 1, so that its derivatives are mostly rounding errors.
    """
    if not _inexact(numbers) or requires not in ("", "invertible") or core == (1, 1):
        return None
    m, k = max(core), min(core)
    v, z = numbers((*batch, k, 2)), numbers((*batch, k))
    v[..., 0] = 1
    v[~np.isfinite(v)] = 1
    phases = -np.ones(z.shape) if numbers.dtype.kind == "f" else np.exp(1j * np.nan_to_num(z.real, posinf=1, neginf=1))
    v[..., m - 1 :, 1] = 0  # there is no row below the last
    tau = np.asarray((1 - phases) / np.sum(np.abs(v) ** 2, axis=-1), numbers.dtype)
    x = Householder(v, tau, (m, k))
    return x if core[0] >= core[1] else x.mT


@sampler("Block")
def _draw_block(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Block | None:
    """Draw dense, diagonal and low-rank blocks, and a block of zeros."""
    m, n = core
    if m < 2 or n < 2 or numbers.dtype.kind == "b":
        return None
    if requires:
        k = n // 2
        a = dominant(numbers, batch, n, requires)
        lower = a[..., k:, :k] if requires == "invertible" else np.swapaxes(a[..., :k, k:], -1, -2).conj()
        return Block([[a[..., :k, :k], a[..., :k, k:]], [lower, a[..., k:, k:]]])
    top, left = m // 2, (n + 1) // 2
    u, v = numbers((*batch, m - top, 1)), numbers((*batch, n - left, 1))
    diagonal = Diagonal(numbers((*batch, min(top, n - left))), shape=(top, n - left))
    return Block([[None, diagonal], [numbers((*batch, m - top, left)), LowRank(u, v)]])
