"""Products, transposes and reductions of `PeriodicBanded` matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.families.conditions import has_structural_zeros
from ..._functions.linalg import diagonal, matmul, matrix_transpose
from ..._numerics.vectors import by_columns
from ..banded.array import Banded
from ..sparse.sparse_joins import to_sparse
from . import numerics
from .array import PeriodicBanded, is_ring, on_ring, periodic

if TYPE_CHECKING:
    import jax

    from ..._core.typing import Result


@matrix_transpose.kernel(PeriodicBanded)
def _matrix_transpose_periodic_banded(x: PeriodicBanded) -> PeriodicBanded:
    moved = {
        numerics.normalised(-k, x.meta[1]): jnp.roll(d, k, axis=-1) for k, d in zip(x.offsets, x.diagonals, strict=True)
    }
    return periodic(moved, x.background)


@diagonal.kernel(PeriodicBanded)
def _diagonal_periodic_banded(x: PeriodicBanded, *, offset: int) -> Dense:
    start = max(0, -offset)
    return Dense.make((x.diagonal(offset)[..., start : start + max(0, x.meta[1] - abs(offset))],))


@matmul.kernel(PeriodicBanded, Dense)
def _matmul_periodic_banded_dense(x1: PeriodicBanded, x2: Dense) -> Result:
    if x1.background is not None:
        return matmul.dispatch(to_sparse(x1), x2)
    return Dense.make((by_columns(lambda data: _product(x1, data), x2.data),))


def _product(x: PeriodicBanded, data: jax.Array) -> jax.Array:
    terms = [d[..., None] * jnp.roll(data, -k, axis=-2) for d, k in zip(x.diagonals, x.offsets, strict=True)]
    return sum(terms[1:], terms[0])


def _stays_narrow(x1: PeriodicBanded | Banded, x2: PeriodicBanded | Banded) -> bool:
    """Return whether the product has at most half of the diagonals, and neither factor has a background."""
    if not all(has_structural_zeros(x) and (isinstance(x, PeriodicBanded) or is_ring(x)) for x in (x1, x2)):
        return False
    n = x1.core_shape[1]
    return 2 * len({(a + b) % n for a in x1.offsets for b in x2.offsets}) <= max(n, 2)


@matmul.kernel(PeriodicBanded, PeriodicBanded, when=_stays_narrow)
@matmul.kernel(PeriodicBanded, Banded, when=_stays_narrow)
@matmul.kernel(Banded, PeriodicBanded, when=_stays_narrow)
def _matmul_periodic_banded(x1: PeriodicBanded | Banded, x2: PeriodicBanded | Banded) -> PeriodicBanded:
    x1, x2 = (on_ring(x) if isinstance(x, Banded) else x for x in (x1, x2))
    found: dict[int, jax.Array] = {}
    for k1, d1 in zip(x1.offsets, x1.diagonals, strict=True):
        for k2, d2 in zip(x2.offsets, x2.diagonals, strict=True):
            k, term = numerics.normalised(k1 + k2, x1.meta[1]), d1 * jnp.roll(d2, -k1, axis=-1)
            found[k] = found[k] + term if k in found else term
    return periodic(found, None)
