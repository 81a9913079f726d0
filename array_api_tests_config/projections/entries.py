"""The projections of drawn values on the structures of this library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structarrays._core.array.dense import Dense
from structarrays._structures.banded.array import Banded, bands
from structarrays._structures.banded.diagonal import Diagonal, Identity
from structarrays._structures.blocks.block_banded import BlockBanded
from structarrays._structures.blocks.block_diagonal import BlockDiagonal
from structarrays._structures.fill.array import Fill
from structarrays._structures.periodic.array import PeriodicBanded
from structarrays._structures.periodic.numerics import normalised
from structarrays._structures.permutation.array import Permutation
from structarrays._structures.sparse.array import Sparse
from structarrays._structures.symmetric.array import Hermitian, Symmetric
from structarrays._structures.toeplitz.array import Toeplitz
from structarrays._structures.toeplitz.circulant import Circulant
from structarrays._structures.toeplitz.hankel import Hankel
from structarrays._structures.triangular.array import Triangular

from .registry import outside, projection

if TYPE_CHECKING:
    from structarrays._core.array.base import Array

    from .registry import Admits, Choose


@projection("Dense", min_ndim=0)
def _project_dense(values: np.ndarray, admits: Admits, choose: Choose) -> Dense:
    return Dense(values)


@projection("Fill", min_ndim=1)
def _project_fill(values: np.ndarray, admits: Admits, choose: Choose) -> Fill:
    batch = choose(max(1, values.ndim - 1))  # at least two of the dimensions are filled, where there are as many
    key: tuple[Any, ...] = (..., *(0,) * (values.ndim - batch))
    first = values[key] if values.size else np.ones(values.shape[:batch], values.dtype)
    return Fill(first, values.shape[batch:])


@projection("Identity")
def _project_identity(values: np.ndarray, admits: Admits, choose: Choose) -> Array:
    first = values[..., 0, 0] if values.size else np.ones(values.shape[:-2], values.dtype)
    return outside(Identity(values.shape[-2:], first), values, admits, choose)


@projection("Diagonal")
def _project_diagonal(values: np.ndarray, admits: Admits, choose: Choose) -> Array:
    diag = np.diagonal(values, axis1=-2, axis2=-1)
    return outside(Diagonal(diag, shape=values.shape[-2:]), values, admits, choose)


BANDS = ((-1, 0, 1), (0, 1), (-2, 1), (-1, 0, 2), ())


@projection("Banded")
def _project_banded(values: np.ndarray, admits: Admits, choose: Choose) -> Array:
    m, n = values.shape[-2:]
    offsets = tuple(k for k in BANDS[choose(len(BANDS))] if -m < k < n)
    if offsets:
        x = Banded([np.diagonal(values, k, -2, -1) for k in offsets], offsets, (m, n))
    else:
        x = bands([], (), (m, n), dtype=values.dtype, batch=values.shape[:-2])
    return outside(x, values, admits, choose)


PERIODIC_BANDS = ((-1, 0, 1), (0, 1), (-2, 0, 1), (0,))


@projection("PeriodicBanded")
def _project_periodic_banded(values: np.ndarray, admits: Admits, choose: Choose) -> Array | None:
    n = values.shape[-1]
    if values.shape[-2] != n or n == 0:
        return None
    offsets = sorted({normalised(k, n) for k in PERIODIC_BANDS[choose(len(PERIODIC_BANDS))]})
    i = np.arange(n)
    return outside(PeriodicBanded([values[..., i, (i + k) % n] for k in offsets], offsets), values, admits, choose)


# ---- triangles -------------------------------------------------------------------------------------------------------


@projection("Triangular")
def _project_triangular(values: np.ndarray, admits: Admits, choose: Choose) -> Array:
    variant = choose(4)
    unit = variant == 3 and admits(1)
    return outside(Triangular(values, lower=variant % 2 == 0, unit_diagonal=unit), values, admits, choose)


@projection("Symmetric")
def _project_symmetric(values: np.ndarray, admits: Admits, choose: Choose) -> Symmetric | None:
    return Symmetric(values, lower=choose(2) == 0) if _is_square(values) else None


@projection("Hermitian")
def _project_hermitian(values: np.ndarray, admits: Admits, choose: Choose) -> Hermitian | None:
    if not _is_square(values):
        return None
    x = Hermitian(values, lower=choose(2) == 0)
    implied = np.asarray(x).ravel().tolist() if values.dtype.kind == "c" else ()  # conjugates, and real numbers
    return x if all(v != v or admits(v) for v in implied) else None


def _is_square(values: np.ndarray) -> bool:
    square: bool = values.shape[-1] == values.shape[-2]
    return square


# ---- constant diagonals ------------------------------------------------------------------------------------------------


@projection("Toeplitz")
def _project_toeplitz(values: np.ndarray, admits: Admits, choose: Choose) -> Toeplitz:
    width = choose(3)  # 0 is a full one
    if not width or not values.size or not admits(0):
        return (
            Toeplitz(values[..., :, 0], values[..., 0, :])
            if values.size
            else Toeplitz(*_edges(values), shape=values.shape[-2:])
        )
    return Toeplitz(values[..., :width, 0], values[..., 0, :2], shape=values.shape[-2:])


def _edges(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first column and the last row of an array without elements."""
    m, n = values.shape[-2:]
    return np.zeros((*values.shape[:-2], m), values.dtype), np.zeros((*values.shape[:-2], n), values.dtype)


@projection("Circulant")
def _project_circulant(values: np.ndarray, admits: Admits, choose: Choose) -> Circulant | None:
    if not _is_square(values):
        return None
    return Circulant(values[..., :, 0] if values.size else _edges(values)[0])


@projection("Hankel")
def _project_hankel(values: np.ndarray, admits: Admits, choose: Choose) -> Hankel:
    return Hankel(values[..., :, 0], values[..., -1, :]) if values.size else Hankel(*_edges(values))


# ---- permutations, blocks, coordinates -----------------------------------------------------------------------------------


@projection("Permutation")
def _project_permutation(values: np.ndarray, admits: Admits, choose: Choose) -> Permutation | None:
    if not _is_square(values) or not (admits(1) and admits(0)):
        return None
    p = np.argsort(values[..., 0, :].real, axis=-1) if values.size else np.zeros(values.shape[:-1], int)
    return Permutation(p, dtype=values.dtype)


@projection("BlockDiagonal")
def _project_block_diagonal(values: np.ndarray, admits: Admits, choose: Choose) -> Array:
    m, n = values.shape[-2:]
    i, j = (m // 2, n // 2) if choose(2) == 0 else (min(1, m), min(2, n))
    return outside(BlockDiagonal([values[..., :i, :j], values[..., i:, j:]]), values, admits, choose)


@projection("BlockBanded")
def _project_block_banded(values: np.ndarray, admits: Admits, choose: Choose) -> Array | None:
    m, n = values.shape[-2:]
    if 0 in (m, n):
        return None
    size = 2 - choose(2)
    grid = tuple(k // size if k % size == 0 else 1 for k in (m, n))
    blocks = values.reshape(*values.shape[:-2], grid[0], m // grid[0], grid[1], n // grid[1])
    offsets = [k for k in (-1, 0, 1) if -grid[0] < k < grid[1]]
    stored = [np.moveaxis(np.diagonal(blocks, k, -4, -2), -1, -3) for k in offsets]
    return outside(BlockBanded(stored, offsets, (m, n)), values, admits, choose)


@projection("Sparse", min_ndim=1)
def _project_sparse(values: np.ndarray, admits: Admits, choose: Choose) -> Array:
    batch, step = choose(max(1, values.ndim - 1)), 2 + choose(3)
    shape = values.shape[batch:]
    coordinates = [c.ravel()[::step] for c in np.indices(shape)]
    key: tuple[Any, ...] = (..., *coordinates)
    return outside(Sparse(values[key], tuple(coordinates), shape), values, admits, choose)
