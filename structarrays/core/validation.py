"""Whether the parameters of an array are such as its class makes: asked of arrays that come from outside, from a file."""

from __future__ import annotations

import math

from . import explicit
from .array import Array
from .assumptions import IMPLIED
from .registry import Registry

validated: Registry[None] = Registry("validated")
"""``validated.kernel(A)``: ``(x)``, which raises `ValueError` for parameters that `check_parameters` does not see to be wrong: for indices
out of range, say. For classes whose kernels rely on what shapes and dtypes do not say."""


def check_parameters(x: Array) -> None:
    """Raise unless shapes, dtypes and the static part of an array agree, and what its class has to say of the values.

    Raises
    ------
    ValueError
        If they do not.
    """
    name = type(x).__name__
    try:
        shape = x.shape
        well_formed = all(type(n) is int and n >= 0 for n in shape) and math.prod(shape) < 2**63
        dense = explicit.eval_shape(lambda x: x._dense(), x) if well_formed else None
    except Exception as error:  # whatever the code of a class meets in parameters that are none
        raise ValueError(f"the parameters of a {name} do not fit together: {error}") from error
    if dense is None:
        raise ValueError(f"a {name} has no shape {shape}")
    if (dense.shape, dense.dtype) != (shape, x.dtype):
        raise ValueError(f"the parameters of a {name} of shape {shape} and dtype {x.dtype} do not fit together")
    if x.stores_entries and any(p.dtype != x.dtype for p in (*x.entries, x.background) if p is not None):
        raise ValueError(f"the parameters of a {name} of dtype {x.dtype} have other dtypes")
    if not all(a in IMPLIED and IMPLIED[a] <= x.assumptions for a in x.assumptions):
        raise ValueError(f"a {name} has unknown assumptions: {sorted(map(str, x.assumptions))}")
    kernel = validated.choose((x,), {})
    if kernel is not None:
        kernel.run(x)
