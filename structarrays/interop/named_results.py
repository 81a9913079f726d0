"""Named tuples that functions of this library return, and that files and exported programs may contain."""

from __future__ import annotations

from typing import Any

from .._functions.linalg.factorizations import CholeskyFactor, LUFactor, LUResult
from .._functions.linalg.indefinite import LDLResult
from .._functions.linalg.least_squares import LstsqResult
from .._functions.linalg.spectra import EighResult, EigResult, QRResult, SVDResult
from .._functions.linalg.systems import SlogdetResult
from .._functions.set import UniqueAllResult, UniqueCountsResult, UniqueInverseResult

RESULTS: dict[str, type[Any]] = {
    c.__name__: c
    for c in (
        *(CholeskyFactor, LUFactor, LUResult, LDLResult, LstsqResult, SlogdetResult),
        *(EigResult, EighResult, QRResult, SVDResult),
        *(UniqueAllResult, UniqueCountsResult, UniqueInverseResult),
    )
}
"""The classes, by name."""
