"""Sums and differences of an array and the number zero, which keep the structure.

The number is a Python number, and therefore static: so Python's ``sum`` of arrays, which starts with ``0 + x``, keeps structural zeros. An
array that holds a zero is not static; it becomes the background.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec

from ..array.base import Array
from ..array.dense import Dense
from ..dispatch import late
from .elementwise_rule import ElementwiseArrayFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

P = ParamSpec("P")

_KEPT = {int: "iufc", float: "fc"}
"""For each type of a number, the kinds of dtypes that it does not change."""


class Additive(ElementwiseArrayFunction[P]):
    """`add` or `subtract`."""

    def _looked_at(self, arrays: Sequence[Any], unknown: dict[str, Any]) -> Array:
        if not unknown and len(arrays) == 2:
            first, second = arrays
            if is_neutral_zero(second, first):
                return self._with_zero(first, arrays)
            if is_neutral_zero(first, second):
                return self._with_zero(second, arrays)
        return super()._looked_at(arrays, unknown)

    def _with_zero(self, x: Array, arrays: Sequence[Any]) -> Array:
        is_negated = self.name == "subtract" and arrays[1] is x
        result = super()._looked_at(arrays, {}) if x.stores_entries else None
        if type(result) is not type(x):
            return late.negative(x) if is_negated else late.positive(x)
        if x.background is not None:
            return result
        result = result.rebuild(result.entries, None)  # the entries are sums: -0.0 + 0.0 is 0.0
        return result if is_negated else result.assuming(x.assumptions)


def is_neutral_zero(number: Any, x: Any) -> bool:
    """Return whether a Python number is zero, and next to a structured array whose dtype it does not change."""
    kinds = _KEPT.get(type(number))
    return kinds is not None and number == 0 and isinstance(x, Array) and type(x) is not Dense and x.dtype.kind in kinds
