"""All uses of all functions, and their operands, for the equivalence tests."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from . import cases_arrays, cases_elementwise, cases_factorizations, cases_indexing, cases_linalg
from .arrays import sample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .._core.array.base import Array
    from .._core.typing import DTypeLike, Shape
    from .case import Case

CASES: tuple[Case, ...] = (
    *cases_elementwise.CASES,
    *cases_arrays.CASES,
    *cases_linalg.CASES,
    *cases_factorizations.CASES,
    *cases_indexing.CASES,
)
"""The uses of every function that takes arrays, in the standard and in further linear algebra."""

WITHOUT_ARRAYS = (
    "__array_namespace_info__",
    "arange",
    "broadcast_shapes",
    "can_cast",
    "empty",
    "eye",
    "fft.fftfreq",
    "fft.rfftfreq",
    "finfo",
    "full",
    "iinfo",
    "isdtype",
    "linspace",
    "ones",
    "result_type",
    "zeros",
)
"""The functions without array arguments or array results, to which the equivalence tests do not apply."""

SIZES = (
    {"m": 4, "n": 4, "p": 4, "k": 2},
    {"m": 3, "n": 5, "p": 4, "k": 1},
    {"m": 5, "n": 3, "p": 4, "k": 2},
    {"m": 1, "n": 1, "p": 1, "k": 1},
    {"m": 6, "n": 6, "p": 2, "k": 3},
)
"""The sizes that the letters of core shapes stand for."""

_EQUAL = ((), (2,), (2, 3), (1,), (0,))
BATCHES = {
    "equal": tuple((b, b, b) for b in _EQUAL),
    "positive": tuple((b, b, b) for b in _EQUAL if 0 not in b),
    "broadcast": (
        *((b, b, b) for b in _EQUAL),
        ((2, 3), (3,), (2, 1)),
        ((), (2,), ()),
        ((3,), (), (2, 3)),
        ((2, 1), (3,), (1, 3)),
    ),
    "first": tuple((b, (), ()) for b in _EQUAL),
    "second": tuple(((), b, ()) for b in _EQUAL),
    "some": tuple((b, b, b) for b in _EQUAL[1:]),
    "none": (((), (), ()),),
}
"""The batch shapes of the operands, by the values of `Case.batches`."""

SCALAR, ROW, COLUMN = "scalar", "row vector", "column vector"
VECTORS = {SCALAR: (1, 1), ROW: (1, -1), COLUMN: (-1, 1)}
"""Dense operands of elementwise functions that are constant along a core axis, with their core shapes."""


def operands(
    case: Case,
    structures: Sequence[str],
    *,
    batch: Sequence[Shape],
    sizes: Mapping[str, int],
    dtype: DTypeLike,
    seed: int = 0,
    special: bool = False,
) -> list[Array] | None:
    """Return random operands for a case.

    Parameters
    ----------
    case : Case
        The use of a function.
    structures : sequence of str
        The structure of each operand, a name that `sample` accepts or a key of `VECTORS`.
    batch : sequence of tuple
        The batch shape of each operand.
    sizes : dict
        The sizes that the letters of the core shapes stand for.
    dtype : dtype
        The dtype of all operands except a condition ``c``, which is boolean.
    seed : int
        The seed of the random numbers.
    special : bool
        Whether the random numbers include NaN and infinities.

    Returns
    -------
    list of Array or None
        The operands, or None if a structure has no such array.

    Examples
    --------
    >>> from structarrays.testing import CASES, SIZES, operands
    >>> x, y = operands(CASES[50], ["Diagonal", "Dense"], batch=[(), ()], sizes=SIZES[0], dtype="float64")
    >>> x.shape, y.shape
    ((4, 4), (4, 4))
    """
    arrays = []
    for i, (name, core, structure) in enumerate(zip(case.operands, case.cores, structures, strict=True)):
        shape = tuple(int(c) if c.isdigit() else sizes[c] for c in core)
        if structure in VECTORS:
            shape = tuple(n if v < 0 else v for n, v in zip(shape, VECTORS[structure], strict=True))
            structure = "Dense"
        x = sample(
            structure,
            shape,
            batch=batch[i],
            dtype="bool" if name == "c" else dtype,
            requires=case.requires[i] if case.requires else "",
            seed=zlib.crc32(f"{seed} {i} {structure} {shape} {batch[i]} {np.dtype(dtype)}".encode()),
            domain=case.domains[i] if case.domains else case.domain,
            special=special and name != "c",
        )
        if x is None:
            return None
        arrays.append(x)
    return arrays
