"""The structure of every result that `tests/data/expected_structures.md` promises."""

import zlib

import pytest
from expected_structures import PAGE, operands_of, outcome, parse

from structarrays.testing import CASES, sample

ROWS = parse(PAGE.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_results_have_the_expected_structure(request):
    """Every tenth cell, since all take minutes to trace; all cells with ``--parameters each``."""
    every = 1 if request.config.getoption("--parameters") == "each" else 10
    wrong, compared = [], 0
    for row in ROWS:
        for column, cell in row.cells.items():
            structures = operands_of(row, column)
            if zlib.crc32(repr((row.function, row.code, structures)).encode()) % every == 0:
                compared += 1
                found = outcome(row.function, row.code, structures)
                if not found.agrees(cell):
                    operands = ", ".join(structures) or "nothing"
                    wrong.append(f"{row.section}: {row.code} for {operands}: {cell} expected, got {found}")
    if wrong:
        pytest.fail(f"{len(wrong)} cells of {PAGE.name} differ\n" + "\n".join(wrong), pytrace=False)
    assert compared >= sum(len(row.cells) for row in ROWS) / (2 * every)


def test_every_function_has_an_expected_structure():
    """Except operators, which are functions of the same meaning."""
    functions = {row.function for row in ROWS}
    operators = {"T", "mT", "__abs__", "__neg__", "__pos__", "__invert__"}
    missing = {c.name for c in CASES if c.name.replace("_", "").replace(".", "").isalnum()} - functions - operators
    assert not missing


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("Circulant", "Identity", "Circulant"),
        ("Circulant", "Circulant", "Circulant"),
        ("Toeplitz", "Toeplitz, tridiagonal", "Toeplitz"),
        ("Triangular", "Triangular, upper", "Dense"),
        ("Triangular", "Diagonal", "Triangular"),
        ("Symmetric", "Diagonal", "Symmetric"),
        ("Banded", "Sparse", "Sparse"),
        ("Permutation", "Permutation", "Sparse"),
        ("Permutation", "Diagonal", "Sparse"),
        ("Permutation", "Banded", "Sparse"),
        ("BlockDiagonal", "BlockDiagonal", "BlockDiagonal"),
        ("BlockDiagonal", "Diagonal", "BlockDiagonal"),
        ("BlockDiagonal", "BlockBanded", "BlockBanded"),
    ],
)
def test_a_sum_has_the_narrowest_structure_of_both(first, second, joined):
    x, y = sample(first, (12, 12)), sample(second, (12, 12), seed=1)
    for result in (x + y, y + x):
        assert type(result).__name__ == joined and (not result.stores_entries or result.background is None)
