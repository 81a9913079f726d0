"""Functions whose results are views, as in NumPy: a write to one array changes the other (docs/design/semantics.md).

Such a function moves elements and computes nothing, so it has an inverse. The pair is the lens between a base and its
view, see `writes`: the function carries a write from the base to the view, and the inverse carries it back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax

from ..dispatch import explicit
from ..dispatch.array_function import ArrayFunction
from ..dispatch.call_arguments import hashable_form
from ..dispatch.function import Function
from .base import Array
from .dense import Dense
from .writes import LOCK, make_view, store

if TYPE_CHECKING:
    from ..typing import Rule


class _View(Function[..., Array]):
    """Common base of `ViewFunction` and its fast variant `ViewArrayFunction`."""

    inverse: Callable[..., Any]

    @functools.cached_property
    def _compiled_inverse(self) -> Any:
        """The compiled `inverse`, created on first use, as `Function._jit`."""
        return explicit.jit(
            lambda data, shape, static: self.inverse(data, shape, **dict(static)), static_argnums=(1, 2), inline=True
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Array:
        """Call the function; the result is a view if the array is a `Dense` handle, unless ``copy=True``."""
        base = args[0] if args else None
        if type(base) is not Dense or (kwargs and kwargs.get("copy")):
            return super().__call__(*args, **kwargs)
        value, rest = base._value, args[1:]
        result = super().__call__(*args, **kwargs)
        make_view(result, base, functools.partial(self._get, rest, kwargs), functools.partial(self._put, rest, kwargs))
        if base._value is not value:  # another thread wrote between the computation and the link
            with LOCK:
                store(result, ((result._link.get(base._value[0][0]),), (*result._value[1][:2], frozenset())))
        return result

    def _get(self, rest: tuple[Any, ...], kwargs: dict[str, Any], data: jax.Array) -> jax.Array:
        result: jax.Array = super().__call__(Dense.make((data,)), *rest, **kwargs)._value[0][0]
        return result

    def _put(self, rest: tuple[Any, ...], kwargs: dict[str, Any], base: Dense, data: jax.Array) -> jax.Array:
        bound = self.__signature__.bind(base, *rest, **kwargs)
        bound.apply_defaults()
        static = tuple((name, hashable_form(value)) for name, value in list(bound.arguments.items())[1:])
        result: jax.Array = self._compiled_inverse(data, base.shape, static)
        return result


class ViewFunction(_View):
    """A function of one array and static arguments whose result is a view."""


class ViewArrayFunction(_View, ArrayFunction[..., Array]):
    """A function of one array without other arguments whose result is a view."""


def view_function(
    array: str,
    *,
    inverse: Callable[..., Any],
    prefix: str = "",
    rule: Rule | None = None,
    dense: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Array]], _View]:
    """Define a function whose result is a view of its argument; a decorator.

    Parameters
    ----------
    array : str
        Name of the only array parameter, which comes first; the others are static.
    inverse : callable
        ``inverse(data, shape, **static)`` returns the data of the base from the data of the view, both `jax.Array`.
        `shape` is the shape of the base, and `static` contains all other arguments of the call.
    prefix, rule, dense
        The same as for `function`.

    Returns
    -------
    callable
        The decorator.

    Notes
    -----
    A handle of this library becomes a base. For a `jax.Array` or a NumPy array, or with ``copy=True``, the result is an
    independent array.
    """

    def decorate(define: Callable[..., Array]) -> _View:
        plain = define.__code__.co_argcount == 1 and not define.__code__.co_kwonlyargcount
        made = (ViewArrayFunction if plain else ViewFunction)(define, (array,), prefix=prefix, rule=rule, dense=dense)
        made.inverse = inverse
        return made

    return decorate
