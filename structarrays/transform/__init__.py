"""Programs of JAX on structured arrays, and transformations of functions of them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .interpreter import Interpreter as Interpreter

__all__ = ["Interpreter"]


def __getattr__(name):
    # Imported where it is asked for: `jax.extend`, which it needs, takes as long to import as all of this package.
    if name == "Interpreter":
        from .interpreter import Interpreter

        return Interpreter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*globals(), *__all__]
