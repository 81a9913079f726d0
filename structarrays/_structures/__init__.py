"""The structures: one package for each family, with its classes, its kernels and its own numerical routines.

A package's ``FILES`` are the files that register kernels. They are imported once all functions of the namespace are: a file of one family may
need another family, and the other way round, so that the packages themselves import nothing.
"""

from importlib import import_module

FAMILIES = (
    "fill",
    "banded",
    "triangular",
    "symmetric",
    "toeplitz",
    "permutation",
    "blocks",
    "sparse",
    "low_rank",
    "kronecker",
    "orthonormal",
    "composite",
    "fallback",
)
"""The families in their order. Rules for two families stand in the one that comes later, rules that belong to no family in `fallback`."""


def load() -> None:
    """Import what registers kernels."""
    for family in FAMILIES:
        package = import_module(f"{__name__}.{family}")
        for file in package.FILES:
            import_module(f"{package.__name__}.{file}")
