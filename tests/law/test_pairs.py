"""The generated page on two structures is what the registry gives, and says what was promised of joins."""

import itertools
from pathlib import Path

import pytest

import structarrays as sa
from structarrays.testing.pairs import cell, page

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_the_page_is_current(request):
    """Every seventh of its cells; all of them, which takes minutes, with ``--law pairs``."""
    there = (DOCS / "pairs.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in there.splitlines() if line.startswith("| **")]
    found = iter([text.removesuffix(" |") for row in rows for text in row[1:]])
    number = itertools.count()
    every = 1 if request.config.getoption("--law", default="part") in ("pairs", "full") else 7

    def some(function, first, second):
        text = next(found, None)
        return cell(function, first, second) if text is None or next(number) % every == 0 else text

    assert page(some) == there, "docs/pairs.md is old: python -m structarrays.testing.pairs"


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
def test_joins(first, second, joined):
    for a, b in ((first, second), (second, first)):
        assert cell(sa.add, a, b).replace("densifies", "Dense") == joined
