"""The page "What structure does a result have?" shows what comes out."""

import sys
from pathlib import Path

import pytest

from structarrays.testing import CASES

TOOLS = str(Path(__file__).parents[2] / "tools")
sys.path.insert(0, TOOLS)
from structure_tables import page, table, uses  # noqa: E402

sys.path.remove(TOOLS)
PARTS = {"few": 400, "some": 25}
"""One cell in this number is measured, of 28,000 cells."""


@pytest.fixture(scope="module")
def written():
    return table.read(table.FILE.read_text(encoding="utf-8"))


def difference(written, every):
    return table.differences(written, lambda cell: cell.is_in_part(every))


def test_the_file_has_every_cell(written):
    assert written.keys() == set(table.cells())
    assert table.write(written) == table.FILE.read_text(encoding="utf-8")
    assert page.FILE.read_text(encoding="utf-8") == page.text(), (
        "PYTHONPATH=tools python -m structure_tables --only NOTHING"
    )


def test_every_function_is_shown():
    """Except operators, which are functions of the same meaning."""
    names = {case.name for case in CASES if case.name.replace("_", "").replace(".", "").isalnum()}
    assert names - uses.covered() == {"__abs__", "__neg__", "__pos__", "__invert__"}


def test_a_few_cells_are_current(written):
    assert not difference(written, PARTS["few"])


@pytest.mark.slow
def test_cells_are_current(request, written):
    """One cell in 25; all of them, which takes most of an hour, with ``--parameters each``."""
    assert not difference(written, 1 if request.config.getoption("--parameters") == "each" else PARTS["some"])
