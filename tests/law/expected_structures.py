"""The structures that results must have, from `tests/data/expected_structures.md`, and those that they have."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

import structarrays as sa
from structarrays.testing import banded, compiled, sample, sampler, with_background
from structarrays.testing.cases_elementwise import BINARY, OPERATORS, UNARY

OPERAND_COLUMNS = ("condition", "first", "second")
LINK = re.compile(r"`([^`]*)`")
PAGE = Path(__file__).parents[1] / "data" / "expected_structures.md"


class Row(NamedTuple):
    """A case of a table: the function, its code, the structures that the row names, and the cell of each column."""

    function: str
    code: str
    fixed: tuple[str, ...]
    cells: dict[str, str]
    section: str


# ---- reading ---------------------------------------------------------------------------------------------------------


def parse(text: str) -> list[Row]:
    """The rows of a page, with the groups of functions written out."""
    rows, groups, header, section = [], {}, None, ""
    for line in text.splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ").partition(" ")[0]
        if not line.startswith("|"):
            header = None
            continue
        cells = (
            [c.strip() for c in line.strip("|").split(" | ")]
            if " | " in line
            else [c.strip() for c in line.split("|")[1:-1]]
        )
        if header is None:
            header = cells
        elif set(line) <= set("|- :"):
            continue
        elif header[0] == "group":
            groups[cells[0]] = LINK.findall(cells[1])
        elif header[:2] == ["function", "case"]:
            row = dict(zip(header, cells, strict=True))
            row.pop("note", None)
            function, code = row.pop("function"), row.pop("case").strip("`").replace("``", "")
            fixed = tuple(row.pop(c) for c in OPERAND_COLUMNS if c in row)
            for name in groups.get(function, [function.strip("`")]):
                rows.append(Row(name, code.replace("xp.f(", f"xp.{name}("), fixed, dict(row), section))
    return rows


# ---- running ---------------------------------------------------------------------------------------------------------


sampler("Banded of five")(banded((-2, -1, 0, 1, 2)))
sampler("Banded of five + background")(with_background("Banded of five"))


@functools.cache
def operand(structure: str, dtype: str, requires: str = "") -> sa.Array:
    """The operand that a heading of the table names."""
    batch, core = {
        "scalar": ((2, 3), (1, 1)),
        "row vector": ((), (1, 6)),
        "column vector": ((), (6, 1)),
        "vector": ((), (6,)),
        "Fill vector": ((), (6,)),
    }.get(structure, ((2, 3), (6, 6)))
    if len(core) < 2 or 1 in core:
        requires = ""
        structure = "Fill" if structure == "Fill vector" else "Dense"
    structure = structure.replace("Banded", "Banded of five")
    return sample(structure, core, batch=batch, dtype=dtype, requires=requires, domain=(0.3, 2))


def _dtype(function: str) -> str:
    name = OPERATORS.get(function, function)
    kinds = (BINARY.get(name) or UNARY.get(name) or ("floating",))[0]
    if kinds in ("bool", "complex"):
        return {"bool": "bool", "complex": "complex128"}[kinds]
    if kinds.startswith("integer"):
        return "int64"
    return "complex128" if function in ("fft.hfft", "fft.irfft", "fft.irfftn") else "float64"


DEFINITE = tuple(f"linalg.{f}" for f in ("cholesky", "eigh", "eigvalsh", "cho_factor", "cho_solve", "ldl", "sqrtm"))
INVERTIBLE = tuple(
    f"linalg.{f}"
    for f in ("solve", "inv", "matrix_power", "lu_factor", "lu_solve", "solve_triangular", "logdet", "selected_inverse")
)
"""The functions that get matrices of these kinds."""


def _requires(function: str) -> str:
    if function in DEFINITE:
        return "positive definite"
    return "invertible" if function in INVERTIBLE else ""


class Outcome(NamedTuple):
    """The outcome of a case: the classes of the arrays, and whether something was densified; or the error."""

    classes: tuple[str, ...]
    densified: bool = False
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return self.error
        classes = self.classes if len(set(self.classes)) > 1 else self.classes[:1]
        if self.densified:
            classes = [c.replace("Dense", "densifies") for c in classes]
            if "densifies" not in classes:
                return ", ".join(classes) + " (densifies)"
        return ", ".join(classes)

    def agrees(self, cell: str) -> bool:
        """Tell whether a cell of the table has this outcome."""
        if self.error or cell == "error":
            return cell == self.error
        marked = cell.endswith(" (densifies)")
        promised = [c.strip() for c in cell.removesuffix(" (densifies)").split(",")]
        if len(promised) == 1:
            promised *= len(self.classes)
        classes = tuple("Dense" if c == "densifies" else c for c in promised)
        return classes == self.classes and self.densified == (marked or "densifies" in promised)


def outcome(function, code, structures) -> Outcome:
    """The outcome of a case for these structures: headings of the table, one for each operand.

    The code is an expression or a statement of ``x``, of ``x1`` and ``x2``, of ``condition``, ``x1`` and ``x2``, or of nothing. Data type and
    requirements of the operands follow from the function.
    """
    names = ((), ("x",), ("x1", "x2"), ("condition", "x1", "x2"))[len(structures)]
    dtypes = ["bool" if name == "condition" else _dtype(function) for name in names]
    requires = [_requires(function) if i == 0 else "" for i in range(len(names))]
    operands = [operand(*arguments) for arguments in zip(structures, dtypes, requires, strict=True)]
    call = functools.partial(compiled(code, names), sa)
    try:
        if function == "__setitem__":  # what comes out may depend on the values of an index
            log, result = _run(call, operands)
        else:
            try:
                log = sa.explain(call, *operands)
                result = log.result
            except (jax.errors.JAXTypeError, IndexError):  # what depends on data cannot be traced
                log, result = _run(call, operands)
        if function in (*INVERTIBLE, *DEFINITE) and "Fill" in structures[:1]:
            call(*operands)  # an error that depends on values shows only now
    except np.linalg.LinAlgError:
        return Outcome((), error="error")
    return Outcome(tuple(_classes(result)), bool(log.densifications))


def _run(call, operands):
    with sa.record() as log:
        return log, call(*operands)


def _classes(result) -> list[str]:
    if isinstance(result, (tuple, list)):
        return [c for r in result for c in _classes(r)]
    if not isinstance(result, sa.Array):
        return ["no array"]
    background = " + background" if result.stores_entries and result.background is not None else ""
    return [type(result).__name__ + background]


def operands_of(row: Row, column: str) -> tuple[str, ...]:
    """The structures of the operands for one cell of a row."""
    if column == "result":
        return row.fixed
    return (*row.fixed, column)
