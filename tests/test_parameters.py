"""Which part of the sets of parameters is chosen, and what runs by default."""

import itertools
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from parameters import part

ROOT = Path(__file__).resolve().parent.parent


def test_no_two_modules_share_a_name():
    # pytest imports each test and what it shares by its name alone: of two with one name, one would be found in place of the other.
    names = Counter(path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py")
    assert [name for name, times in names.items() if times > 1] == []


def product(*axes):
    return {"-".join(values): set(enumerate(values)) for values in itertools.product(*axes)}


def test_the_values_differ():
    sets = product("abcd", "uvwx", [str(i) for i in range(6)])
    chosen = part(sets)
    assert len(chosen) == 4
    assert len(set.union(*(sets[name] for name in chosen))) == 12


@pytest.mark.parametrize(("number", "expected"), [(1, 1), (2, 2), (48, 2), (49, 3), (600, 25)])
def test_one_in_24_but_at_least_two(number, expected):
    assert len(part(product([str(i) for i in range(number)]))) == expected


def test_complex_numbers_come_first():
    assert all("complex" in name for name in part(product("abcd", ("real", "complex"), "xyz"), costly=True))
    assert part({"test[1.0]": {1}, "test[2.0]": {2}, "test[1j]": {3}}, costly=True) == {"test[1j]"}


def test_of_costly_tests_one():
    assert len(part(product("abcdefghijkl", "uvwx", "yz"), costly=True)) == 1
    assert len(part(product("a"), costly=True)) == 1


def test_the_choice_does_not_depend_on_the_order():
    sets = product("abcdefgh", "uvwxyz")
    assert part(sets) == part(dict(reversed(sets.items())))


TESTS = """
import pytest

@pytest.mark.parametrize("n", range(20))
def test_part(n): pass

@pytest.mark.each_parameter
@pytest.mark.parametrize("n", range(20))
def test_each(n): pass

def test_alone(): pass

@pytest.mark.slow
def test_slow(): pass
"""


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        ((), 23),
        (("-n", "2"), 23),
        (("tests",), 42),
        (("-k", "test"), 42),
        (("--parameters", "each"), 42),
        (("tests", "--parameters", "part"), 24),
        (("-n", "2", "tests", "--parameters", "part"), 24),
        (("-m", "slow", "--parameters", "part"), 1),
    ],
    ids=["everything", "two processes", "a path", "a name", "each", "a part of a path", "by two processes", "slow"],
)
def test_what_is_named_runs_whole(arguments, passed, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "parameters", *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert f"{passed} passed" in done.stdout, done.stdout + done.stderr


def test_a_name_with_an_address_is_refused(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n@pytest.mark.parametrize('x', [object()], ids=str)\ndef test_one(x): pass\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "parameters", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "give these parameters ids: ['test_it.py::test_one[<object object at 0x" in done.stdout + done.stderr
