"""The file of all results, `docs/structures/results.json`: written, read and compared."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .matrices import SIZE, STRUCTURES
from .outcomes import Outcome, outcome
from .programs import PROGRAMS, outcome_of_program
from .uses import SAME, Use, uses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

FILE = Path(__file__).parents[2] / "docs" / "structures" / "results.json"


class Cell(NamedTuple):
    """A use with its operands. `structured` says whether it is code of JAX that `sa.structured` runs."""

    use: Use
    first: str
    second: str | None = None
    structured: bool = False

    def __str__(self) -> str:
        operands = self.first if self.second is None else f"{self.first}, {self.second}"
        return f"{self.use.code} for {operands}" + (" through structured" if self.structured else "")

    def measure(self) -> Outcome | None:
        """The outcome with the library as it is."""
        if self.structured:
            return outcome_of_program(self.use.code, self.first)
        return outcome(self.use, self.first, self.second)

    def is_in_part(self, every: int) -> bool:
        """Whether the cell belongs to the fixed part of one in `every` cells."""
        return zlib.crc32(str(self).encode()) % every == 0


def rows() -> Iterator[tuple[Use, bool, list[Cell]]]:
    """The uses of the table, each with whether it runs through `sa.structured`, and its cells."""
    for use in uses():
        seconds: tuple[str | None, ...] = use.second or (None,)
        yield use, False, [Cell(use, a, b) for a in STRUCTURES for b in seconds]
    for code in PROGRAMS:
        use = Use("", code)
        yield use, True, [Cell(use, a, structured=True) for a in STRUCTURES]


def cells() -> list[Cell]:
    """All cells of the table."""
    return [cell for _, _, own in rows() for cell in own]


def write(measured: Mapping[Cell, Outcome | None]) -> str:
    """The text of the file: one line for each use; -1 stands for a cell without a result."""
    numbers: dict[Outcome | None, int] = {None: -1}
    lines = []
    for use, structured, own in rows():
        found = [numbers.setdefault(measured[cell], len(numbers) - 1) for cell in own]
        entry: dict[str, object] = {"function": use.function, "code": use.code}
        if use.second:
            entry["second"] = use.second
        if structured:
            entry["structured"] = True
        lines.append(json.dumps({**entry, "results": found}, separators=(",", ":")))
    pairs = [json.dumps(pair, separators=(",", ":")) for pair in numbers if pair is not None]
    head = json.dumps({"size": SIZE, "same": SAME, "structures": list(STRUCTURES)})
    return f'{head[:-1]},\n"outcomes": [\n{_lines(pairs)}\n],\n"uses": [\n{_lines(lines)}\n]}}\n'


def _lines(entries: list[str]) -> str:
    return ",\n".join(entries)


def read(text: str) -> dict[Cell, Outcome | None]:
    """The results in a file, by cell; cells that no longer exist are left out."""
    page = json.loads(text)
    outcomes = [Outcome(*pair) for pair in page["outcomes"]]
    found = {}
    written = {
        (entry["code"], entry.get("structured", False), *entry.get("second", ())): entry for entry in page["uses"]
    }
    for use, structured, own in rows():
        entry = written.get((use.code, structured, *use.second))
        if entry is not None and page["structures"] == list(STRUCTURES):
            for cell, number in zip(own, entry["results"], strict=True):
                found[cell] = outcomes[number] if number >= 0 else None
    return found


def differences(written: Mapping[Cell, Outcome | None], chosen: Callable[[Cell], bool]) -> list[str]:
    """List the chosen cells of a file that differ from the library."""
    wrong = []
    for cell in filter(chosen, cells()):
        now = cell.measure()
        if cell not in written:
            wrong.append(f"{cell}: is missing")
        elif written[cell] != now:
            wrong.append(f"{cell}: {written[cell]} is written, the result is {now}")
    return wrong
