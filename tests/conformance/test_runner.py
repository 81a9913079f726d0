"""How the official suite is run with structured arrays: what may be drawn, what is counted, what is written."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from special_cases import AT_HAND, SUITE

import structarrays as sa
from array_api_tests_config import counting, drawing, plugin, report
from structarrays._core.array.shared_indices import opened_operands

ROOT = Path(__file__).resolve().parents[2]
inner = st.floats(1, 3)


@pytest.mark.parametrize(
    ("strategy", "yes", "no"),
    [
        (st.integers(), [0, -5, 10**30], [0.5]),
        (st.integers(1, 3), [1, 3], [0, 4]),
        (st.floats(), [0.0, -1e300], []),
        (inner, [1.0, 3.0], [0.0, 3.5, 2 + 1j]),
        (st.floats(min_value=0, exclude_min=True), [1.0], [0.0]),
        (st.booleans(), [0, 1], []),
        (st.just(2), [2], [0]),
        (st.sampled_from([0, 5]), [0, 5], [1]),
        (inner | st.just(0.0), [0.0, 2.0], [4.0]),
        (inner.filter(lambda v: v > 2), [2.5], [1.5, 0.0]),
        (st.builds(complex, inner, st.floats(0, 1)), [1 + 1j, 2.0], [0, 1 - 1j]),
        (inner.map(abs), [], [0.0, 1.0]),  # unknown
    ],
)
def test_what_a_strategy_may_draw(strategy, yes, no):
    assert all(drawing.admits(strategy, v) for v in yes)
    assert not any(drawing.admits(strategy, v) for v in no)


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("test_constants.py::test_irrational_numbers[pi]", False),
        ("test_creation_functions.py::test_full", False),
        ("test_creation_functions.py::test_full_like", True),
        ("test_data_type_functions.py::TestBroadcastShapes::test_error", False),
        ("test_data_type_functions.py::TestResultType::test_arrays_and_dtypes", True),
        ("test_data_type_functions.py::test_finfo[float32]", False),
        ("test_special_cases.py::test_unary[atan2(x is +\u03c0/2)]", False),
        ("test_special_cases.py::test_nan_propagation[max]", True),
    ],
)
def test_which_tests_draw_arrays(test, expected):
    assert bool(plugin.WITHOUT_DRAWS.search(f"array_api_tests/{test}")) != expected


def test_square_shapes_that_broadcast():
    class Shapes(tuple):
        input_shapes = property(lambda self: self[0])
        result_shape = property(lambda self: self[1])

        def __new__(cls, *parts):
            return super().__new__(cls, parts)

    for inputs in [((2, 3), (1, 3)), ((4, 2, 1), (1, 5)), ((1, 1), (1, 4)), ((0, 3), (1, 3))]:
        got = drawing._all_square(Shapes(inputs, np.broadcast_shapes(*inputs)))
        assert np.broadcast_shapes(*got.input_shapes) == got.result_shape
        assert got.result_shape[-1] == got.result_shape[-2]


@pytest.mark.parametrize(
    ("call", "structured"),
    [
        (lambda D, x: sa.exp(D), True),
        (lambda D, x: D @ x, True),
        (lambda D, x: D * x, True),
        (lambda D, x: D + D, True),
        (lambda D, x: sa.sum(D), True),
        (lambda D, x: sa.linalg.solve(D, x), True),
        (lambda D, x: sa.sort(D), False),
        (lambda D, x: sa.sum(sa.sort(D)), False),
        (lambda D, x: D + x, False),
        (lambda D, x: D[0, 1], False),
        (lambda D, x: x @ x, False),
    ],
)
def test_what_counts_as_structured(call, structured):
    log = sa.explain(call, sa.Diagonal([1.0, 2.0]), sa.ones((2, 2)))
    assert counting.Counter(sa.Diagonal).structured(log) == structured


@pytest.mark.parametrize(
    "operands",
    [
        lambda x: (x, x > 0),
        lambda x: (x > 0, x),
        lambda x: (x, x),
        lambda x: (2, x),
        lambda x: (x, sa.Diagonal([1.0, 2.0])),
    ],
)
def test_calls_are_counted_in_each_form_of_their_arguments(operands):
    # Arrays with indices arrive with them as arguments, or without them if an earlier argument has the same.
    x = sa.Sparse([1.0, -2.0], ([0, 1], [1, 0]), shape=(2, 2))
    counter = counting.Counter(sa.Sparse)
    counter.test = "a test"
    counted = counting.Counted(counter, sa.multiply, sa.multiply._fast, fast=True)
    counted(*opened_operands(operands(x)))
    assert counter.served == {"a test": {"multiply"}}


def counts(**changed):
    zeros = dict.fromkeys(["left to the plain run", "left out of the quarter", *report.OUTCOMES], 0)
    tests = {"drawn": {"a": 3, "b": 1}, "served": {"a": ["exp"], "c": ["sum"]}}
    return {**zeros, **tests, "square": False, "stores_entries": True, "narrowed_by": [], "failures": [], **changed}


def test_the_table_is_written_between_its_markers(tmp_path):
    (tmp_path / "docs" / "design").mkdir(parents=True)
    page = tmp_path / report.PAGE
    old = "| `Diagonal` | old |\n| `Banded` | stays |\n"
    page.write_text(f"before\n{report.BEGIN}\n{old}{report.END}\nafter\n", encoding="utf-8")
    outcomes = [report.Outcome("Diagonal", seed, 30, counts(passed=5 + seed), 0) for seed in (0, 7)]
    report.write(tmp_path, outcomes)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "| `Banded` | stays |" in text
    assert "| `Diagonal` | m × n | 30 | 0, 7 | 5 | 0 | 0 | 2 | 1 |" in text
    page.write_text("nothing", encoding="utf-8")
    with pytest.raises(ValueError, match="must have the lines"):
        report.write(tmp_path, outcomes)


@pytest.mark.parametrize(
    ("changed", "selected", "quarter", "problem"),
    [
        ({"failed": 1}, True, True, "1 failed"),
        ({"xfailed": 2}, True, True, "2 xfailed"),
        ({"deselected": 4}, False, False, "4 deselected"),
        ({}, False, False, "1 tests ran a structured kernel, 100 are needed"),
        ({"square": True}, False, False, "1 tests ran a structured kernel, 60 are needed"),
        ({"stores_entries": False}, False, False, None),
        ({"stores_entries": False, "served": {}}, False, False, "0 tests ran a structured kernel, 1 are needed"),
        ({"deselected": 4}, True, False, None),
        ({}, False, True, None),
        ({"narrowed_by": ["fft not found"]}, False, True, "skip tests"),
        ({"passed": 2}, False, True, "1 of 2 tests ran a structured kernel, 55% are needed"),
        ({"passed": 3}, False, True, "2 of 3 tests received a structured array, 70% are needed"),
        ({"passed": 2, "served": {"a": ["exp"], "b": ["sum"]}}, False, True, None),
        ({"passed": 3}, True, True, None),
        ({"passed": 3, "stores_entries": False}, False, True, "1 of 3 tests ran a structured kernel, 40% are needed"),
    ],
)
def test_what_is_a_problem(changed, selected, quarter, problem, tmp_path, monkeypatch):
    (tmp_path / "docs" / "design").mkdir(parents=True)
    row = "| `Diagonal` | m × n | 30 | 0 | 20 | 0 | 5 | 14 | 10 |"
    (tmp_path / report.PAGE).write_text(f"{report.BEGIN}\n{row}\n{report.END}\n", encoding="utf-8")
    monkeypatch.setattr(report, "ROOT", tmp_path)
    found = report.Outcome("Diagonal", 0, 30, counts(**changed), 0).problems(selected=selected, quarter=quarter)
    assert (not found) if problem is None else any(problem in text for text in found)


@pytest.mark.costly
@pytest.mark.slow
@pytest.mark.skipif(not AT_HAND, reason=f"NOT CHECKED: the official suite is not at {SUITE}")
@pytest.mark.parametrize(
    ("structure", "test"),
    [("Diagonal", "test_trace"), ("examples.arrowhead:Arrowhead", "test_linalg_matrix_transpose")],
)
def test_a_run(structure, test):
    command = [sys.executable, str(ROOT / "array_api_tests_config" / "run.py"), "--structure", structure, "-k", test]
    done = subprocess.run([*command, "--max-examples", "30"], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith(structure))
    assert re.search(r": 1 passed, 0 failed, .*, 1 received a structured array, 1 ran a structured kernel", line), line
