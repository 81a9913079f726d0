"""`by_form`: kernels that call their function with another form of a matrix."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..array.base import Array
from ..dispatch.function import Function

if TYPE_CHECKING:
    from ..dispatch.registry import Registry
    from ..typing import Result

    Form = TypeVar("Form", bound=Callable[[Any], Array])


def by_form(
    *functions: Registry[Any],
    of: type[Array],
    when: Callable[..., bool] | None = None,
    before: str | Sequence[str] = (),
) -> Callable[[Form], Form]:
    """Register for each function a kernel that converts the first argument and calls the function again.

    Further array arguments may be of any class. The kernels have the name and location of the decorated function.

    Parameters
    ----------
    *functions : Registry
        The functions of the namespace, or other registries.
    of : type
        The class of the first array argument.
    when : callable, optional
        A static predicate on the arguments of the function, see `Registry.kernel`.
    before : str or sequence of str, optional
        See `Registry.kernel`.

    Returns
    -------
    callable
        The decorator. The decorated function maps the first array argument to its form, and is returned unchanged.
    """
    file = sys._getframe(1).f_code.co_filename

    def register(form: Form) -> Form:
        for function in functions:
            count = len(function.kernels[0].classes)  # of the kernel for dense arrays
            classes = (of, *[Array] * (count - 1))
            function._registering(classes, when, before, file)(_call_with(function, form))
        return form

    return register


def _call_with(function: Registry[Any], form: Callable[[Any], Array]) -> Callable[..., Result]:
    @functools.wraps(form)
    def run(x: Array, *others: Array, **static: Any) -> Result:
        arrays = (form(x), *others)
        if isinstance(function, Function):
            return function.dispatch(*arrays, **static)
        return function.required(arrays, static).run(*arrays, **static)

    return run
