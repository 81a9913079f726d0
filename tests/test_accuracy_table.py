"""The backward errors that `docs/design/accuracy.md` lists: the page has every structure and function, and a sample is measured again."""

import re
import sys
import zlib
from pathlib import Path

import jax
import numpy as np
import pytest
from backward_errors import FACTOR, FUNCTIONS, Problem, bar, lapacks_error, our_error
from hard_inputs import MATRICES, SINGULAR, laplacian

import structarrays as sa

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def table():
    sys.path.insert(0, str(ROOT / "tools"))
    import accuracy_table

    yield accuracy_table
    sys.path.remove(str(ROOT / "tools"))
    sys.modules.pop("accuracy_table")


LEAST_SQUARES = (
    "Circulant: nearly singular",
    "Symmetric: Hilbert's",
    "BlockDiagonal: nearly singular blocks",
    "Kronecker: Hilbert's",
    "Banded: Neumann + 1e-10",
    "LowRank: nearly equal columns",
)


@pytest.mark.each_parameter
@pytest.mark.parametrize("family", LEAST_SQUARES)
def test_least_squares_are_as_accurate_as_lapacks(table, family):
    """The product of a pseudo-inverse and a right-hand side has errors of the size of the condition number."""
    results = list(table.measure([family], ["lstsq"], ["float64", "complex128"]))
    assert results
    assert not [r for r in results if isinstance(r.ratio, str) or r.is_too_large]


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("function", FUNCTIONS)
def test_sample(table, function):
    """Three matrices for each function; `tools/accuracy_table.py` measures all."""
    seed = zlib.crc32(function.encode())
    families = list(MATRICES) if FUNCTIONS[function].matrix not in ("any", "hermitian") else [*MATRICES, *SINGULAR]
    dtype, found = table.DTYPES[seed % 4], []
    for family in np.random.default_rng(seed).permutation(families):
        found += table.measure([str(family)], [function], [dtype])
        if len({r.family for r in found}) == 3:
            break
    assert found
    assert not [r for r in found if r.is_too_large]


def test_errors_are_seen(rng):
    """Of a solution with a relative error of 1e-9, and of one of the wrong sign; a refusal is a name."""
    x = laplacian(np.ones(9), 1.0)
    p = Problem(np.asarray(x), rng)
    solve = FUNCTIONS["solve"]
    assert lapacks_error(solve, p) <= FACTOR * p.eps

    def wrong(factor):
        return lambda x, data: (factor * np.linalg.solve(p.a, data.b),)

    assert our_error(solve, wrong(1 + 1e-9), x, p) > 1e-11
    assert our_error(solve, wrong(-1), x, p) > 0.1
    assert our_error(solve, wrong(np.nan), x, p) == "NaN"
    singular = sa.Diagonal(np.zeros(10))
    assert our_error(solve, solve.ours, singular, p) == "LinAlgError"
    assert our_error(solve, jax.jit(solve.ours), singular, p) == "NaN"


@pytest.mark.slow
def test_matrices_of_each_data_type(table):
    """Tails of kernels, too small for a data type, are no reason to leave a matrix out."""
    families = {d: [f for f in table.FAMILIES if table.matrix(f, d) is None] for d in table.DTYPES}
    out_of_range = ["Diagonal: graded from 1e-300 to 1e300", "Banded: tiny", "Banded: huge"]
    without_real_entries = ["Circulant: nearly singular", "Hermitian: smooth kernel", "Fourier: unitary"]
    assert families == {
        "float64": without_real_entries,
        "complex128": [],
        "complex64": out_of_range,
        "float32": out_of_range + without_real_entries,
    }


def test_every_function_of_the_namespace_is_measured_or_named(table):
    """A new function of `linalg` has to be measured, or the page has to say why it is not."""
    measured = {part.strip() for name in FUNCTIONS for part in name.split(",")}
    named = set(re.findall(r"`(\w+)`", table.INTRODUCTION))
    named |= {"register_sparse_solver", "use_sparse_solver"}  # they compute nothing
    assert set(sa.linalg.__all__) <= measured | named


def test_page_is_of_these_structures_and_functions(table):
    """Numbers are not compared with new ones, which would take an hour; none of them is above the bar."""
    page = table.PAGE.read_text(encoding="utf-8")
    assert page.startswith(table.INTRODUCTION)
    assert table.matrices() in page
    structures = list(dict.fromkeys(name.partition(":")[0] for name in MATRICES | SINGULAR))
    for bits in table.BITS:
        header, _, *rows = re.search(rf"## {bits} bits\n\nMeasured: .*\n\n((?:\|.*\n)+)", page).group(1).splitlines()
        assert [cell.strip() for cell in header.strip("|").split("|")][1:] == structures
        cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
        assert [row[0] for row in cells] == list(FUNCTIONS)
        for structure, *column in zip(structures, *(row[1:] for row in cells), strict=True):
            assert any(column), f"no number of {structure} with {bits} bits"
        for function, *row in cells:
            for structure, cell in zip(structures, row, strict=True):
                assert not cell.strip("†") or float(cell.strip("†")) <= bar(structure, function), (structure, cell)
