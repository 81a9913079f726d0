"""The structure of every result: the table written by hand (DESIGN 4.4, Julia's rules) against what the registry gives."""

from pathlib import Path

import pytest

from structarrays.testing import CASES
from structarrays.testing.table import generate, operands_of, page, parse

DOCS = Path(__file__).parents[2] / "docs"
BY_HAND = parse((DOCS / "structure_table.md").read_text(encoding="utf-8"))


def test_the_registry_gives_both_tables():
    """What was written by hand, and what is in the generated page; computed once, since it takes a minute."""
    outcomes = generate(BY_HAND)
    wrong = []
    for row in BY_HAND:
        for column, cell in row.cells.items():
            structures = operands_of(row, column)
            got = outcomes[row.function, row.code, structures]
            if not got.agrees(cell):
                wrong.append(
                    f"{row.section}: {row.code} for {', '.join(structures) or 'nothing'}: {cell} expected, got {got}"
                )
    if wrong:
        pytest.fail(f"{len(wrong)} cells of docs/structure_table.md differ\n" + "\n".join(wrong), pytrace=False)
    there = (DOCS / "generated_table.md").read_text(encoding="utf-8").splitlines()
    now = page(outcomes).splitlines()
    changed = sorted(set(now) ^ set(there))
    message = "docs/generated_table.md is old: python -m structarrays.testing.table\n" + "\n".join(changed[:20])
    assert not changed and now == there, message


def test_the_generated_table_contains_the_one_written_by_hand():
    """Both are pages: whoever reads the one finds every cell of the other."""
    generated = parse((DOCS / "generated_table.md").read_text(encoding="utf-8"))
    cells = {(r.function, r.code, (*r.fixed, c)): cell for r in generated for c, cell in r.cells.items()}
    missing = []
    for row in BY_HAND:
        for column, cell in row.cells.items():
            if column == "result":
                continue
            key = (row.function, row.code, (*row.fixed, column))
            promised = sorted(set(map(str.strip, cell.split(","))) - {"Dense"})
            there = cells.get(key)
            if there is None or not all(p in there for p in promised):
                missing.append(f"{key}: {cell} by hand, {there} generated")
    assert not missing, "\n".join(missing)


def test_the_table_knows_every_function():
    """Every function of the law has a row, but for operators, which are functions of the same meaning."""
    functions = {row.function for row in BY_HAND}
    operators = {"T", "mT", "__abs__", "__neg__", "__pos__", "__invert__"}
    missing = {c.name for c in CASES if c.name.replace("_", "").replace(".", "").isalnum()} - functions - operators
    assert not missing
