"""The projections of drawn values on the structures that hold other arrays.

Their elements are made of products and sums, so that one factor is ones, or one term has zeros where the other has none: then all
elements are exactly drawn ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from structarrays._structures.banded.diagonal import Diagonal
from structarrays._structures.composite.block import Block
from structarrays._structures.composite.inverse import Inverse
from structarrays._structures.composite.product import Product
from structarrays._structures.composite.sum import Sum
from structarrays._structures.kronecker.array import Kronecker
from structarrays._structures.kronecker.kronecker_sum import KroneckerSum
from structarrays._structures.low_rank.array import LowRank
from structarrays._structures.orthonormal.fourier import Fourier
from structarrays._structures.orthonormal.householder import Householder
from structarrays._structures.permutation.array import Permutation
from structarrays._structures.toeplitz.array import Toeplitz

from .registry import projection

if TYPE_CHECKING:
    from structarrays._core.array.base import Array

    from .registry import Admits, Choose


def _is_numeric(values: np.ndarray) -> bool:
    return values.dtype.kind != "b"


def _ones(values: np.ndarray, m: int, n: int) -> np.ndarray:
    return np.ones((*values.shape[:-2], m, n), values.dtype)


@projection("LowRank")
def _project_low_rank(values: np.ndarray, admits: Admits, choose: Choose) -> LowRank | None:
    m, n = values.shape[-2:]
    if not _is_numeric(values) or not values.size:
        return None
    if choose(2):
        return LowRank(_ones(values, m, 1), np.swapaxes(values[..., :1, :], -1, -2))
    return LowRank(values[..., :, :1], _ones(values, n, 1))


@projection("Sum")
def _project_sum(values: np.ndarray, admits: Admits, choose: Choose) -> Sum | None:
    """The upper rows are of rank one, below there is a diagonal."""
    m, n = values.shape[-2:]
    if not _is_numeric(values) or not values.size or not admits(0):
        return None
    half = 1 + choose(m)
    column, diagonal = values[..., :, :1].copy(), np.diagonal(values, axis1=-2, axis2=-1).copy()
    column[..., half:, :], diagonal[..., :half] = 0, 0
    return Sum(Diagonal(diagonal, shape=(m, n)), LowRank(column, _ones(values, n, 1)))


@projection("Product")
def _project_product(values: np.ndarray, admits: Admits, choose: Choose) -> Product | None:
    m = values.shape[-2]
    if not _is_numeric(values) or not values.size:
        return None
    p = np.broadcast_to((np.arange(m) + choose(m)) % m, (*values.shape[:-2], m))
    return Product(Permutation(p, dtype=values.dtype), Toeplitz(values[..., :, 0], values[..., 0, :]))


@projection("Kronecker")
def _project_kronecker(values: np.ndarray, admits: Admits, choose: Choose) -> Kronecker | None:
    m, n = values.shape[-2:]
    if not _is_numeric(values) or not values.size:
        return None
    p, q = (choose_divisor(k, choose) for k in (m, n))
    if (p, q) == (1, 1):
        return None if (m, n) == (1, 1) else Kronecker(_ones(values, m, 1), values[..., :1, :])
    return Kronecker(_ones(values, p, q), values[..., : m // p, : n // q])


def choose_divisor(n: int, choose: Choose) -> int:
    """A divisor of a number: 1, or its smallest prime.

    Examples
    --------
    >>> from array_api_tests_config.projections.factored import choose_divisor
    >>> choose_divisor(15, lambda n: 1)
    3
    """
    smallest = next((k for k in range(2, math.isqrt(n) + 1) if n % k == 0), n)
    return smallest if choose(2) else 1


@projection("KroneckerSum")
def _project_kronecker_sum(values: np.ndarray, admits: Admits, choose: Choose) -> KroneckerSum | None:
    m, n = values.shape[-2:]
    if not _is_numeric(values) or not values.size or m != n or not admits(0):
        return None
    p = choose_divisor(n, choose)
    return KroneckerSum(np.zeros_like(_ones(values, p, p)), values[..., : n // p, : n // p])


@projection("Block")
def _project_block(values: np.ndarray, admits: Admits, choose: Choose) -> Block | None:
    m, n = values.shape[-2:]
    if not _is_numeric(values) or not values.size or m == n == 1:
        return None
    i, j = (1 + choose(k - 1) if k > 1 else 0 for k in (m, n))
    rows = [values[..., a, :] for a in (slice(0, i), slice(i, m)) if a.start < a.stop]
    return Block([[r[..., b] for b in (slice(0, j), slice(j, n)) if b.start < b.stop] for r in rows])


@projection("Inverse")
def _project_inverse(values: np.ndarray, admits: Admits, choose: Choose) -> Inverse | None:
    """The inverse of a matrix that moves rows, which is exact."""
    n = values.shape[-1]
    if values.dtype.kind not in "fc" or not values.size or values.shape[-2] != n or not (admits(0) and admits(1)):
        return None
    return Inverse(np.broadcast_to(np.roll(np.eye(n, dtype=values.dtype), choose(n), axis=0), values.shape))


@projection("Fourier")
def _project_fourier(values: np.ndarray, admits: Admits, choose: Choose) -> Fourier | None:
    n = values.shape[-1]
    if values.dtype.kind != "c" or values.shape[-2] != n or values.ndim > 2:
        return None
    x = Fourier(n, dtype=values.dtype)
    return x if all(admits(v) for v in np.asarray(x).ravel().tolist()) else None


@projection("Householder")
def _project_householder(values: np.ndarray, admits: Admits, choose: Choose) -> Array | None:
    """Reflectors of single rows, which are the identity or change the sign, so that all elements are exact."""
    m, n = values.shape[-2:]
    if values.dtype.kind not in "fc" or not values.size or not (admits(0) and admits(1)):
        return None
    tau = np.zeros((*values.shape[:-2], min(m, n)), values.dtype)
    if admits(-1):
        tau[..., : choose(min(m, n))] = 2
    x = Householder(np.ones((*tau.shape, 1), values.dtype), tau, (max(m, n), min(m, n)))
    return x if m >= n else x.mT
