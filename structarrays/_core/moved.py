"""New names of modules of the first edition, which pickles of that edition contain.

Files of `sa.save` contain only the names of classes, but a pickle also contains the module of a class. The old modules
can be imported, with a warning, and have the contents of the new ones.
"""

import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

MOVED = {
    "core.array": "_core.array.base",
    "core.dense": "_core.array.dense",
    "core.dispatch": "_core.dispatch.function",
    "functions.linalg_factorizations": "_functions.linalg.factorizations",
    "functions.linalg_indefinite": "_functions.linalg.indefinite",
    "functions.linalg_least_squares": "_functions.linalg.least_squares",
    "functions.linalg_solvers": "_functions.linalg.systems",
    "functions.linalg_spectra": "_functions.linalg.spectra",
    "functions.set": "_functions.set",
    "structures.banded": "_structures.banded.array",
    "structures.block": "_structures.composite.block",
    "structures.block_banded": "_structures.blocks.block_banded",
    "structures.block_diagonal": "_structures.blocks.block_diagonal",
    "structures.circulant": "_structures.toeplitz.circulant",
    "structures.diagonal": "_structures.banded.diagonal",
    "structures.fill": "_structures.fill.array",
    "structures.fourier": "_structures.orthonormal.fourier",
    "structures.hankel": "_structures.toeplitz.hankel",
    "structures.householder": "_structures.orthonormal.householder",
    "structures.inverse": "_structures.composite.inverse",
    "structures.khatri_rao": "_structures.low_rank.khatri_rao",
    "structures.kronecker": "_structures.kronecker.array",
    "structures.kronecker_sum": "_structures.kronecker.kronecker_sum",
    "structures.low_rank": "_structures.low_rank.array",
    "structures.permutation": "_structures.permutation.array",
    "structures.product": "_structures.composite.product",
    "structures.sparse": "_structures.sparse.array",
    "structures.sum": "_structures.composite.sum",
    "structures.symmetric": "_structures.symmetric.array",
    "structures.toeplitz": "_structures.toeplitz.array",
    "structures.triangular": "_structures.triangular.array",
}
"""The new name of each module that defined a class or a function that pickles contain."""

_PACKAGE = __name__.partition(".")[0]
_PARENTS = {name.partition(".")[0] for name in MOVED}


class _Finder(MetaPathFinder, Loader):
    """Finder of the moved modules and their packages."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != _PACKAGE or not (name in MOVED or name in _PARENTS):
            return None
        return ModuleSpec(fullname, self, is_package=name in _PARENTS)

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create the module."""

    def exec_module(self, module: Any) -> None:
        """Delegate attributes of the module to the new module."""
        name = module.__name__.partition(".")[2]
        if name in _PARENTS:
            return
        warnings.warn(
            f"{module.__name__} has moved, and a pickle of structarrays 0.1 refers to it; pickle the array again",
            DeprecationWarning,
            stacklevel=2,
        )
        new = importlib.import_module(f"{_PACKAGE}.{MOVED[name]}")
        module.__getattr__ = lambda attribute: getattr(new, attribute)


def find_moved_modules() -> None:
    """Make the modules of the first edition importable."""
    sys.meta_path.append(_Finder())
