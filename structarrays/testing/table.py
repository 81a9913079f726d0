"""The table of what every function gives for every structure: read from the hand-written page, and made from the registry.

``python -m structarrays.testing.table`` writes ``docs/generated_table.md``.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import numpy as np

from .._core.array.base import Array
from .._core.dispatch.recording import explain, record
from .arrays import banded, sample, sampler, with_background
from .case import compiled
from .cases import CASES
from .cases_elementwise import BINARY, OPERATORS, UNARY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .._core.dispatch.recording import Log
    from .case import Case

STRUCTURES = (
    "Fill",
    "Identity",
    "Diagonal",
    "Banded",
    "Identity + background",
    "Diagonal + background",
    "Banded + background",
    "Dense",
)
"""The columns of the generated table."""

_OPERAND_COLUMNS = ("condition", "first", "second")
_LINK = re.compile(r"`([^`]*)`")

sampler("Banded of five")(banded((-2, -1, 0, 1, 2)))
sampler("Banded of five + background")(with_background("Banded of five"))


class Row(NamedTuple):
    """A case of a table: the function, its code, the structures that the row names, and the cell of each column."""

    function: str
    code: str
    fixed: tuple[str, ...]
    cells: dict[str, str]
    section: str


# ---- reading ---------------------------------------------------------------------------------------------------------


def parse(text: str) -> list[Row]:
    r"""The rows of a page like the hand-written one, with the groups of functions written out.

    Examples
    --------
    >>> from structarrays.testing.table import parse
    >>> parse("| function | case | Fill |\n|---|---|---|\n| `exp` | `xp.exp(x)` | Fill |")[0].cells
    {'Fill': 'Fill'}
    """
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
            groups[cells[0]] = _LINK.findall(cells[1])
        elif header[:2] == ["function", "case"]:
            row = dict(zip(header, cells, strict=True))
            row.pop("note", None)
            function, code = row.pop("function"), row.pop("case").strip("`").replace("``", "")
            fixed = tuple(row.pop(c) for c in _OPERAND_COLUMNS if c in row)
            for name in groups.get(function, [function.strip("`")]):
                rows.append(Row(name, code.replace("xp.f(", f"xp.{name}("), fixed, dict(row), section))
    return rows


# ---- running ---------------------------------------------------------------------------------------------------------


@functools.cache
def operand(structure: str, dtype: str, requires: str = "") -> Array:
    """The operand that a heading of the table names.

    Examples
    --------
    >>> from structarrays.testing.table import operand
    >>> operand("Banded", "float64").offsets
    (-2, -1, 0, 1, 2)
    """
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
    return cast("Array", sample(structure, core, batch=batch, dtype=dtype, requires=requires, domain=(0.3, 2)))


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
    """What came out of a case: the classes of the arrays, and whether something was densified; or the error."""

    classes: tuple[str, ...]
    densified: bool = False
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return self.error
        classes: Sequence[str] = self.classes if len(set(self.classes)) > 1 else self.classes[:1]
        if self.densified:
            classes = [c.replace("Dense", "densifies") for c in classes]
            if "densifies" not in classes:
                return ", ".join(classes) + " (densifies)"
        return ", ".join(classes)

    def agrees(self, cell: str) -> bool:
        """Whether it is what a cell of the table says."""
        if self.error or cell == "error":
            return cell == self.error
        marked = cell.endswith(" (densifies)")
        promised = [c.strip() for c in cell.removesuffix(" (densifies)").split(",")]
        if len(promised) == 1:
            promised *= len(self.classes)
        classes = tuple("Dense" if c == "densifies" else c for c in promised)
        return classes == self.classes and self.densified == (marked or "densifies" in promised)


def outcome(function: str, code: str, structures: Sequence[str], case: Case | None = None) -> Outcome:
    """What comes out of a case for these structures.

    Parameters
    ----------
    function : str
        Its name, from which dtype and requirements of the operands follow.
    code : str
        An expression or a statement of ``x``, of ``x1`` and ``x2``, of ``condition``, ``x1`` and ``x2``, or of nothing.
    structures : sequence of str
        Headings of the table, one for each operand.
    case : Case, optional
        Of the law, which says what the operands are.

    Examples
    --------
    >>> from structarrays.testing.table import outcome
    >>> print(outcome("add", "xp.add(x1, x2)", ["Diagonal", "scalar"]))
    Diagonal + background
    """
    namespace = sys.modules[Array.__module__.partition(".")[0]]
    names: tuple[str, ...]
    requires: Sequence[str]
    if case is None:
        names = ((), ("x",), ("x1", "x2"), ("condition", "x1", "x2"))[len(structures)]
        dtypes = ["bool" if name == "condition" else _dtype(function) for name in names]
        requires = [_requires(function) if i == 0 else "" for i in range(len(names))]
    else:
        names = case.operands
        dtype = next(d for d in ("float64", "complex128", "int64", "bool") if d in case.dtypes)
        dtypes = ["bool" if name == "c" else dtype for name in names]
        requires = case.requires or ("",) * len(names)
    operands = [operand(*arguments) for arguments in zip(structures, dtypes, requires, strict=True)]
    call = functools.partial(compiled(code, names), namespace)
    try:
        if function == "__setitem__":  # what comes out may depend on the values of an index
            log, result = _run(call, operands)
        else:
            try:
                log = explain(call, *operands)
                result = log.result
            except (jax.errors.JAXTypeError, IndexError):  # what depends on data cannot be traced
                log, result = _run(call, operands)
        if function in (*INVERTIBLE, *DEFINITE) and "Fill" in structures[:1]:
            call(*operands)  # an error that depends on values shows only now
    except np.linalg.LinAlgError:
        return Outcome((), error="error")
    return Outcome(tuple(_classes(result)), bool(log.densifications))


def _run(call: Callable[..., Any], operands: Sequence[Array]) -> tuple[Log, Any]:
    with record() as log:
        return log, call(*operands)


def _classes(result: Any) -> list[str]:
    if isinstance(result, (tuple, list)):
        return [c for r in result for c in _classes(r)]
    if not isinstance(result, Array):
        return ["no array"]
    background = " + background" if result.stores_entries and result.background is not None else ""
    return [type(result).__name__ + background]


def operands_of(row: Row, column: str) -> tuple[str, ...]:
    """The structures of the operands for one cell of a row."""
    if column == "result":
        return row.fixed
    return (*row.fixed, column)


# ---- writing ---------------------------------------------------------------------------------------------------------


def generate(
    by_hand: list[Row], outcome: Callable[..., Outcome] = outcome
) -> dict[tuple[str, str, tuple[str, ...]], Outcome]:
    """What comes out of every case, by function, code and structures: of those of the hand-written table, and of the law's.

    `outcome` is the function that says what comes out of one.
    """
    outcomes = {}
    for row in by_hand:
        for column in row.cells:
            key = (row.function, row.code, operands_of(row, column))
            if key not in outcomes:
                outcomes[key] = outcome(*key)
    for case in law_cases():
        for structures in _combinations(case):
            key = (case.name, case.code, structures)
            if key not in outcomes:
                outcomes[key] = outcome(*key, case)
    return outcomes


def law_cases() -> list[Case]:
    """The cases of the law that are no errors, of matrices: all of one operand, one for each function of two."""
    chosen, seen = [], set()
    for case in CASES:
        if (
            case.raises
            or not case.batches
            or set(map(len, case.cores)) != {2}
            or set("".join(case.cores)) & set("123456789")
        ):
            continue
        if len(case.operands) == 1 and case.batches != "none":
            chosen.append(case)
        elif (
            len(case.operands) == 2
            and case.batches == "broadcast"
            and case.operands == ("x1", "x2")
            and case.name not in seen
        ):
            seen.add(case.name)
            chosen.append(case)
    return chosen


TABLED = tuple(s for s in STRUCTURES if s.split()[0] in ("Dense", "Fill", "Identity", "Diagonal", "Banded"))
"""The structures of which the page shows all pairs; those of all are on a page of their own (see `pairs`)."""


def _combinations(case: Case) -> Sequence[tuple[str, ...]]:
    if len(case.operands) == 1:
        return [(s,) for s in STRUCTURES]
    return [(a, b) for a in TABLED for b in TABLED]


def page(outcomes: Mapping[tuple[str, str, tuple[str, ...]], Outcome]) -> str:
    """The generated page."""
    lines = [
        "# The table generated from the registry",
        "",
        "What `sa.explain` says of every function and every structure: made by `python -m structarrays.testing.table`, compared with",
        "[the table written by hand](structure_table.md) by a test, and explained there. Cases in which a dense result is not required are",
        "marked as densifying even where another structure comes out.",
        "",
    ]
    for count, title in enumerate(("No array", "One array", "Two arrays", "Three arrays")):
        table: dict[tuple[str, str, tuple[str, ...]], dict[str, str]] = {}
        for (function, code, structures), result in outcomes.items():
            if len(structures) == count:
                table.setdefault((function, code, structures[:-1]), {})[structures[-1] if structures else "result"] = (
                    str(result)
                )
        if not table:
            continue
        columns = list(dict.fromkeys([*(s for s in STRUCTURES if count), *(c for row in table.values() for c in row)]))
        first = ["function", "case", *_OPERAND_COLUMNS[3 - count if count == 3 else 1 :][: max(0, count - 1)]]
        lines += [f"## {title}", "", _line([*first, *columns]), "|" + "---|" * (len(first) + len(columns))]
        for (function, code, fixed), row in sorted(table.items()):
            cells = [row.get(c, "") for c in columns]
            lines.append(_line([f"`{function}`", f"`{code}`", *fixed, *cells]))
        lines.append("")
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def main() -> None:
    """Write the generated page beside the hand-written one."""
    docs = Path("docs")
    by_hand = parse((docs / "structure_table.md").read_text(encoding="utf-8"))
    (docs / "generated_table.md").write_text(page(generate(by_hand)), encoding="utf-8")


if __name__ == "__main__":
    main()
