"""The structure of every result: the table written by hand (docs/design/semantics.md, Julia's rules) against what the registry gives."""

import zlib
from pathlib import Path

import pytest

from structarrays.testing import CASES
from structarrays.testing.table import generate, operands_of, outcome, page, parse

DOCS = Path(__file__).parents[2] / "docs"
BY_HAND = parse((DOCS / "structure_table.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def generated():
    """The cells of the generated page, by function, code and structures."""
    rows = parse((DOCS / "generated_table.md").read_text(encoding="utf-8"))
    return {(r.function, r.code, (*r.fixed, c)): cell for r in rows for c, cell in r.cells.items()}


@pytest.mark.slow
def test_the_registry_gives_both_tables(request, generated):
    """What was written by hand, and what is in the generated page: of every tenth cell, since all take minutes to trace; of all cells with
    ``--parameters each``. The other cells are taken from the page.
    """
    every = 1 if request.config.getoption("--parameters") == "each" else 10

    def some(function, code, structures, case=None):
        key = (function, code, structures)
        left_out = zlib.crc32(repr(key).encode()) % every and key in generated
        return generated[key] if left_out else outcome(function, code, structures, case)

    outcomes = generate(BY_HAND, some)
    wrong, compared = [], 0
    for row in BY_HAND:
        for column, cell in row.cells.items():
            structures = operands_of(row, column)
            got = outcomes[row.function, row.code, structures]
            compared += not isinstance(got, str)
            if not isinstance(got, str) and not got.agrees(cell):
                wrong.append(
                    f"{row.section}: {row.code} for {', '.join(structures) or 'nothing'}: {cell} expected, got {got}"
                )
    if wrong:
        pytest.fail(f"{len(wrong)} cells of docs/structure_table.md differ\n" + "\n".join(wrong), pytrace=False)
    assert compared >= sum(len(row.cells) for row in BY_HAND) / (2 * every)
    there = (DOCS / "generated_table.md").read_text(encoding="utf-8").splitlines()
    now = page(outcomes).splitlines()
    changed = sorted(set(now) ^ set(there))
    message = "docs/generated_table.md is old: python -m structarrays.testing.table\n" + "\n".join(changed[:20])
    assert not changed and now == there, message


def test_the_generated_table_contains_the_one_written_by_hand(generated):
    """Both are pages: whoever reads the one finds every cell of the other."""
    missing = []
    for row in BY_HAND:
        for column, cell in row.cells.items():
            if column == "result":
                continue
            key = (row.function, row.code, (*row.fixed, column))
            promised = sorted(set(map(str.strip, cell.split(","))) - {"Dense"})
            there = generated.get(key)
            if there is None or not all(p in there for p in promised):
                missing.append(f"{key}: {cell} by hand, {there} generated")
    assert not missing, "\n".join(missing)


def test_the_table_knows_every_function():
    """Every function of the law has a row, but for operators, which are functions of the same meaning."""
    functions = {row.function for row in BY_HAND}
    operators = {"T", "mT", "__abs__", "__neg__", "__pos__", "__invert__"}
    missing = {c.name for c in CASES if c.name.replace("_", "").replace(".", "").isalnum()} - functions - operators
    assert not missing
