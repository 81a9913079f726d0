"""The generated table of what `structured` keeps says what happens."""

import random
from pathlib import Path

import pytest
import table
from functions import FUNCTIONS

PAGE = Path(__file__).parents[2] / "docs" / "structured_table.md"


def lines():
    """The cells of the page by expression."""
    rows = (line for line in PAGE.read_text().splitlines() if line.startswith("| `"))
    return {row.split("` | ")[0][3:]: row.split("` | ")[1].removesuffix(" |").split(" | ") for row in rows}


@pytest.mark.parametrize("expression", random.Random(0).sample(sorted(FUNCTIONS), 24))
def test_cells_are_true(expression):
    written = lines().get(table.escaped(expression), [""] * len(table.STRUCTURES))
    for structure in random.Random(expression).sample(table.STRUCTURES, 3):
        assert written[table.STRUCTURES.index(structure)].strip() == table.cell(expression, structure), structure
