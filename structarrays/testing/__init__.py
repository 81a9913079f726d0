"""Tools for checking a structure of your own: random arrays, uses of every function, and the equivalence tests.

Register a sampler of random arrays of the structure, and check the functions that have kernels::

    from structarrays.testing import BATCHES, CASES, SIZES, check_equivalence, operands, sampler

    @sampler("Antidiagonal")
    def draw_antidiagonal(numbers, batch, core, requires):
        return Antidiagonal(numbers((*batch, core[0]))) if core[0] == core[1] and not requires else None

    for case in CASES:
        if case.name == "linalg.matrix_transpose":
            check_equivalence(case, operands(case, ["Antidiagonal"], batch=[(2,)], sizes=SIZES[0], dtype="float64"))
"""

from .._structures import load_samplers as _load_samplers
from . import arrays_blocks as _arrays_blocks
from . import arrays_factored as _arrays_factored
from . import arrays_kronecker as _arrays_kronecker
from . import arrays_parts as _arrays_parts
from . import arrays_sparse as _arrays_sparse
from . import arrays_toeplitz as _arrays_toeplitz
from . import arrays_triangles as _arrays_triangles
from .arrays import REQUIREMENTS, SAMPLERS, Numbers, banded, sample, sampler, with_background
from .case import DTYPES, Case, compiled
from .cases import BATCHES, CASES, SIZES, VECTORS, WITHOUT_ARRAYS, operands
from .checking import Findings, Report, check_structure
from .equivalence import EquivalenceError, applies, check_equivalence, dense_value

_load_samplers()

STRUCTURES = tuple(SAMPLERS)
"""The structures of this library, by the names that `sample` accepts."""

__all__ = [
    "BATCHES",
    "CASES",
    "DTYPES",
    "REQUIREMENTS",
    "SAMPLERS",
    "SIZES",
    "STRUCTURES",
    "VECTORS",
    "WITHOUT_ARRAYS",
    "Case",
    "EquivalenceError",
    "Findings",
    "Numbers",
    "Report",
    "applies",
    "banded",
    "check_equivalence",
    "check_structure",
    "compiled",
    "dense_value",
    "operands",
    "sample",
    "sampler",
    "with_background",
]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
