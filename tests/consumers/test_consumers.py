"""A fixed sample of the tests of array-api-extra, scikit-learn and scipy, on this namespace."""

import importlib.util
import re
from pathlib import Path

import pytest
from known_failures import KNOWN
from suites import SUITES, Outcomes, run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "interoperability" / "consumers.md"


@pytest.mark.slow
@pytest.mark.each_parameter
@pytest.mark.parametrize("name", SUITES)
def test_sample(name):
    suite = SUITES[name]
    missing = [module for module in suite.requires if importlib.util.find_spec(module) is None]
    if missing:
        pytest.skip(f"NOT CHECKED: the tests of {name}, which need {', '.join(missing)} (pip install -e '.[test]')")
    outcomes = run(name, suite.sample, at_most=suite.sample_size)
    assert len(outcomes.records) == suite.sample_size, outcomes.output
    assert not outcomes.unknown(name), outcomes.output
    assert outcomes.counts["passed"] >= suite.sample_size / 3, outcomes.output  # SciPy skips what is for NumPy alone


@pytest.mark.parametrize(("name", "cause"), [(name, cause) for name in KNOWN for cause in KNOWN[name]])
def test_cause_is_documented(name, cause):
    """Each has a row in the table of its library, which gives the line."""
    section = re.search(rf"^### {name}\b.*?(?=^##|\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert f"| `{cause.line}` |" in section[0]


def test_unknown_failures_are_seen():
    """A failure of a test that is not in the list, or with another message, counts."""
    message = "AssertionError: array-agnostic fallback should not be used"
    known = {"test": "TestNUnique::test_delegates[structarrays]", "outcome": "failed", "message": message}
    others = [
        {"test": "test_other", "outcome": "failed", "message": message},
        {"test": "TestNUnique::test_delegates[structarrays]", "outcome": "error", "message": "another"},
    ]
    passed = {"test": "test_passed", "outcome": "passed", "message": ""}
    outcomes = Outcomes([known, *others, passed], "")
    assert outcomes.unknown("array-api-extra") == others
    assert outcomes.counts == {"failed": 2, "error": 1, "passed": 1}
