"""The structures: one package for each family, with its classes, its kernels and its own numerical routines.

A package says in ``FILES`` which of its files register kernels, and in ``PUBLIC`` which names the namespace has of it. The files are
imported once all functions of the namespace are: one of a family may need another family, and the other way round, so that the packages
themselves import nothing. The order of files does not matter, since kernels declare theirs.
"""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

FAMILIES = tuple(module.name for module in iter_modules(__path__) if module.ispkg)
"""The packages of this folder. Rules for two families stand in either, rules that belong to no family in `fallback`."""


def load() -> None:
    """Import what registers kernels."""
    for family in FAMILIES:
        package = import_module(f"{__name__}.{family}")
        for file in package.FILES:
            import_module(f"{package.__name__}.{file}")


def load_samplers() -> None:
    """Import what draws random arrays, for `structarrays.testing`: the files called ``sampling``."""
    for family in FAMILIES:
        name = f"{__name__}.{family}.sampling"
        if find_spec(name):
            import_module(name)
