"""The decorator that turns a definition into a `Function`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .array_function import ArrayFunction, CheckedArrayFunction
from .function import Function, P, R

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..typing import Rule


def function(
    *arrays: str,
    checked: str | None = None,
    prefix: str = "",
    rule: Rule | None = None,
    dense: Callable[..., Any] | None = None,
    compares: int = 0,
) -> Callable[[Callable[P, R]], Function[P, R]]:
    """Turn the decorated code into a `Function`. The arguments are the same as for `Function`.

    The function compares elements of its first `compares` arguments, so that Python integers among them may have any size.
    """

    def decorate(define: Callable[P, R]) -> Function[P, R]:
        code = define.__code__
        names = code.co_varnames[: code.co_argcount]
        plain = code.co_posonlyargcount == code.co_argcount and not code.co_kwonlyargcount and set(names) <= set(arrays)
        kind = (CheckedArrayFunction if checked else ArrayFunction) if plain else Function
        made = kind(define, arrays, checked=checked, prefix=prefix, rule=rule, dense=dense)
        made.compared = compares
        return made

    return decorate
