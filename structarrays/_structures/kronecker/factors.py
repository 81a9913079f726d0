"""Functions of the factors of Kronecker products and sums.

The dense form of a factor that is no larger than a vector of the whole array does not count as densified.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from ..._core.array.operands import densify, to_dense
from ..._core.dispatch.contexts import DensifyPolicy, densify_policy

if TYPE_CHECKING:
    from ..._core.array.base import Array
    from ..._core.array.dense import Dense
    from ..._core.dispatch.function import Function
    from .array import Kronecker
    from .kronecker_sum import KroneckerSum


def _is_small(factor: Array, rows: int) -> bool:
    return factor.shape[-2] * factor.shape[-1] <= rows


def dense_factor(factor: Array, rows: int, name: str) -> Dense:
    """The dense form of a factor of a matrix with this number of rows, for the function of this name."""
    return to_dense(factor) if _is_small(factor, rows) else densify(factor, name)


def of_factor(function: Function[..., Any], factor: Array, rows: int, **static: Any) -> Any:
    """Apply a function to a factor of a matrix with this number of rows."""
    relaxed = densify_policy.value.mode == "error" and _is_small(factor, rows)
    with densify_policy(DensifyPolicy()) if relaxed else contextlib.nullcontext():
        return function.dispatch(factor, **static)


def of_each_factor(function: Function[..., Any], x: Kronecker | KroneckerSum, **static: Any) -> list[Any]:
    """Apply a function to each factor."""
    return [of_factor(function, factor, max(x.shape[-2:]), **static) for factor in x.factors]
