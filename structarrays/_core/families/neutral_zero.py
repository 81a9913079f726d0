"""Sums, differences and choices of an array and the number zero, which keep the structure.

The number is a Python number, and therefore static: so Python's ``sum`` of arrays, which starts with ``0 + x``, and ``where(x > 1, x, 0)`` keep
structural zeros. An array that holds a zero is not static; it becomes the background.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec

import jax.numpy as jnp
import numpy as np

from ..array.base import Array
from ..array.dense import Dense
from ..array.operands import lift, without_weak_types
from ..dispatch import late
from .elementwise_rule import ElementwiseArrayFunction, elementwise
from .formula import Formula

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax

P = ParamSpec("P")

KEPT = {int: "iufc", float: "fc"}
"""For each type of a number, the kinds of dtypes that it does not change."""


class Additive(ElementwiseArrayFunction[P]):
    """`add` or `subtract`.

    If one operand is the number zero, the static part of a call tells whether the other one is negated. Otherwise the
    static part is empty.
    """

    def _looked_at(self, arrays: Sequence[Any], unknown: dict[str, Any]) -> Array:
        if not unknown and len(arrays) == 2:
            first, second = arrays
            if type(second) in KEPT and is_neutral_zero(second, first):
                return self._run((False,), (first, second))
            if type(first) in KEPT and is_neutral_zero(first, second):
                return self._run((self.name == "subtract",), (second, first))
        return super()._looked_at(arrays, unknown)

    def _trace(self, static: tuple[Any, ...], *arrays: Any) -> Any:
        if not static:
            return super()._trace(static, *arrays)
        (is_negated,), (x, zero) = static, map(lift, arrays)
        return without_weak_types(_with_zero(self.name, x, zero.cast(x.dtype), is_negated))


def _with_zero(name: str, x: Array, zero: Array, is_negated: bool) -> Array:
    """Return ``x + 0`` or ``0 - x``. Each entry is a sum, since -0.0 + 0.0 is 0.0."""
    number = zero.dense_data()  # a constant would let XLA leave out the sum

    def formula(entries: jax.Array) -> jax.Array:
        return number - entries if is_negated else entries + number

    made: Any = Formula(name, formula, zero=True)  # with the attributes that `elementwise` reads
    if x.stores_entries and x.closed_under(made, [x]):
        result: Array = elementwise(made, (x,), {})
        if type(result) is type(x):
            return result if is_negated else result.assuming(x.assumptions)
    return late.negative(x) if is_negated else late.positive(x)


def zero_like(x: Array) -> Array | np.ndarray:
    """Return zeros that keep the structure of `x` in `where`: an array of the same pattern, or a scalar."""
    if not (x.stores_entries and x.linear):
        return np.zeros((), x.dtype)
    background = None if x.background is None else jnp.zeros_like(x.background)
    return x.rebuild(tuple(map(jnp.zeros_like, x.entries)), background)


def is_neutral_zero(number: Any, x: Any) -> bool:
    """Return whether a Python number is zero, and next to a structured array whose dtype it does not change."""
    return number == 0 and isinstance(x, Array) and type(x) is not Dense and x.dtype.kind in KEPT[type(number)]
