"""The projections of drawn values on the structures of this library."""

import numpy as np

from ..core.dense import Dense
from ..structures.banded import Banded, bands
from ..structures.diagonal import Diagonal, Identity
from ..structures.fill import Fill
from .projecting import outside, projection


@projection("Dense", min_ndim=0)
def _(values, admits, choose):
    return Dense(values)


@projection("Fill", min_ndim=1)
def _(values, admits, choose):
    batch = choose(max(1, values.ndim - 1))  # at least two of the dimensions are filled, where there are as many
    first = values[(..., *(0,) * (values.ndim - batch))] if values.size else np.ones(values.shape[:batch], values.dtype)
    return Fill(first, values.shape[batch:])


@projection("Identity")
def _(values, admits, choose):
    first = values[..., 0, 0] if values.size else np.ones(values.shape[:-2], values.dtype)
    return outside(Identity(values.shape[-2:], first), values, admits, choose)


@projection("Diagonal")
def _(values, admits, choose):
    diag = np.diagonal(values, axis1=-2, axis2=-1)
    return outside(Diagonal(diag, shape=values.shape[-2:]), values, admits, choose)


BANDS = ((-1, 0, 1), (0, 1), (-2, 1), (-1, 0, 2), ())


@projection("Banded")
def _(values, admits, choose):
    m, n = values.shape[-2:]
    offsets = tuple(k for k in BANDS[choose(len(BANDS))] if -m < k < n)
    if offsets:
        x = Banded([np.diagonal(values, k, -2, -1) for k in offsets], offsets, (m, n))
    else:
        x = bands([], (), (m, n), dtype=values.dtype, batch=values.shape[:-2])
    return outside(x, values, admits, choose)
