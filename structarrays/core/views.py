"""Functions whose results are views, as in NumPy: a write through either array is seen by both (DESIGN 4.5).

Such a function moves elements and computes nothing, so it has an inverse. The two together are the lens between a base
and its view, see `writes`: a write to the base is pushed through the function, a write to the view put back by the inverse.
"""

import functools

import jax

from .dense import Dense
from .dispatch import ArrayFunction, Function, _static
from .writes import LOCK, check_escape, make_view, store


class _View:
    """What `ViewFunction` and its fast sibling have in common."""

    def _declare(self, inverse):
        self._inverse = jax.jit(
            lambda data, shape, static: inverse(data, shape, **dict(static)), static_argnums=(1, 2), inline=True
        )

    def __call__(self, *args, **kwargs):
        """The function of one array; the result is a view where the array is a `Dense` handle, unless ``copy=True``."""
        base = args[0] if args else None
        if type(base) is not Dense or (kwargs and kwargs.get("copy")):
            return super().__call__(*args, **kwargs)
        value, rest = base._value, args[1:]
        result = super().__call__(*args, **kwargs)
        make_view(result, base, functools.partial(self._get, rest, kwargs), functools.partial(self._put, rest, kwargs))
        if base._value is not value:  # another thread has written between the computation and the link
            with LOCK:
                store(result, ((result._link.get(base._value[0][0]),), result._value[1]))
        return result

    def _get(self, rest, kwargs, data):
        return super().__call__(data, *rest, **kwargs)._value[0][0]

    def _put(self, rest, kwargs, base, data):
        check_escape((base,), (data,), f"a write through a view made by {self.name}")
        bound = self.__signature__.bind(base, *rest, **kwargs)
        bound.apply_defaults()
        static = tuple((name, _static(value)) for name, value in list(bound.arguments.items())[1:])
        return self._inverse(data, base.shape, static)


class ViewFunction(_View, Function):
    """A function of one array and static arguments whose result is a view."""


class ViewArrayFunction(_View, ArrayFunction):
    """A function of one array and nothing else whose result is a view."""


def view_function(array: str, *, inverse, prefix: str = "", rule=None):
    """Make the decorated code a function whose result is a view of its argument.

    Parameters
    ----------
    array : str
        The name of the one array parameter, which comes first; the others are static.
    inverse : callable
        ``inverse(data, shape, **static)``: the data of the base from that of the view, both `jax.Array`; `shape` is
        the base's, `static` are all other arguments of the call.
    prefix, rule
        As for `function`.

    Returns
    -------
    callable
        The decorator.

    Notes
    -----
    A handle of ours becomes a base; for a `jax.Array` or a NumPy array the result is an array of its own. With
    ``copy=True`` it always is.
    """

    def decorate(define):
        plain = define.__code__.co_argcount == 1 and not define.__code__.co_kwonlyargcount
        made = (ViewArrayFunction if plain else ViewFunction)(define, (array,), prefix=prefix, rule=rule)
        made._declare(inverse)
        return made

    return decorate
