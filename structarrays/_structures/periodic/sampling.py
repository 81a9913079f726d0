"""Random `PeriodicBanded` matrices for `structarrays.testing`, which imports this file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...testing.arrays import sampler
from .array import PeriodicBanded
from .numerics import normalised

if TYPE_CHECKING:
    from ..._core.typing import Shape
    from ...testing.arrays import Numbers


@sampler("PeriodicBanded")
def _draw_periodic_banded(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> PeriodicBanded | None:
    m, n = core
    if m != n or n == 0:
        return None
    symmetric = requires not in ("", "invertible")
    offsets = sorted({normalised(k, n) for k in ((-1, 0, 1) if symmetric else (-2, 0, 1))})
    diagonals = {k: numbers((*batch, n)) for k in offsets}
    if requires:
        diagonals = {k: d / (2 * len(offsets)) for k, d in diagonals.items()}
    if symmetric:
        adjoint = {normalised(-k, n): np.roll(d.conj(), k, axis=-1) for k, d in diagonals.items()}
        diagonals = {k: (diagonals[k] + adjoint[k]) / 2 for k in offsets}
    if requires not in ("", "hermitian"):
        diagonals[0] = diagonals[0] + numbers.high + 1
    return PeriodicBanded([np.asarray(d, numbers.dtype) for d in diagonals.values()], list(diagonals))
