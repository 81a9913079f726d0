"""Results in other structures where an elementwise function or a product would have a dense result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..array.base import Array
    from ..dispatch.function import Function
    from ..typing import Shape

    Unexpanded = Callable[[Function[..., Any], Sequence[Array], Shape], Array | None]


UNEXPANDED: dict[str, Unexpanded] = {}
"""For some functions, by name: a callable that may avoid a dense result.

It maps ``(function, args, shape)`` to an array, or to None. See `unexpanded`.
"""


def unexpanded(*names: str) -> Callable[[Unexpanded], Unexpanded]:
    """Register a callable that functions of these names call before a result becomes dense.

    Raises
    ------
    ValueError
        If a callable is already registered for one of the names, since two callables would have no defined order.
    """

    def register(code: Unexpanded) -> Unexpanded:
        for name in names:
            if name in UNEXPANDED:
                raise ValueError(f"unexpanded: {name} is already registered by {UNEXPANDED[name].__module__}")
            UNEXPANDED[name] = code
        return code

    return register
