"""The versions that the library says it runs on are those that are tested."""

import importlib.util
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def versions():
    spec = importlib.util.spec_from_file_location("versions", ROOT / ".ci" / "versions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows_of_tests(versions) -> list[dict]:
    """The rows of the table in the documentation."""
    page = versions.PAGE.read_text(encoding="utf-8")
    lines = page.partition(versions.BEGIN)[2].partition(versions.END)[0].strip().splitlines()
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(header, row, strict=True)) for row in rows]


def minor(version: str) -> tuple[int, int]:
    return tuple(map(int, version.split(".")[:2]))


def test_jax_is_bounded_by_the_newest_version_that_was_tested(versions):
    (requirement,) = (r for r in PROJECT["dependencies"] if r.startswith("jax>="))
    low, high = map(minor, re.fullmatch(r"jax>=(\d+\.\d+),<(\d+\.\d+)", requirement).groups())
    found = [minor(row["jax"]) for row in rows_of_tests(versions)] + [minor(metadata.version("jax"))]
    assert all(low <= version < high for version in found), found
    assert f"JAX {low[0]}.{low[1]} to {high[0]}.{high[1] - 1}" in versions.PAGE.read_text(encoding="utf-8")


def test_the_oldest_versions_that_are_tested_are_those_that_are_allowed():
    oldest = dict(
        re.findall(r"^([\w-]+)==(\d+\.\d+)", (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8"), flags=re.M)
    )
    for requirement in PROJECT["dependencies"]:
        name, low = re.match(r"([\w-]+)>=(\d+(?:\.\d+)?)", requirement).groups()
        assert oldest[name] == (low if "." in low else f"{low}.0"), requirement


def test_nothing_that_was_tested_failed(versions):
    rows = rows_of_tests(versions)
    assert rows
    assert [row["failed"] for row in rows] == ["0"] * len(rows)
    assert all(int(row["tests passed"]) > 100 for row in rows)


def test_a_row_counts_tests_and_reads_the_official_suite(versions, tmp_path):
    (tmp_path / "newest.xml").write_text(
        '<testsuites><testsuite tests="12" failures="1" errors="2" skipped="3"/></testsuites>', encoding="utf-8"
    )
    assert versions.row("newest", tmp_path).endswith("| 6 | 3 | – |")
    (tmp_path / "newest.suite").write_text("seed 0, 20 examples: 1379 passed, 0 failed, 0 error", encoding="utf-8")
    assert versions.row("newest", tmp_path).endswith("| 6 | 3 | 1379 passed, 0 failed |")


def test_the_table_is_written_between_its_markers(versions, tmp_path, monkeypatch):
    page = tmp_path / "versions.md"
    page.write_text(f"before\n{versions.BEGIN}\nold\n{versions.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(versions, "PAGE", page)
    (tmp_path / "oldest.row").write_text("| oldest |\n", encoding="utf-8")
    (tmp_path / "python3.row").write_text("| python3 |\n", encoding="utf-8")
    assert versions.main("table", str(tmp_path)) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("after\n") and "old\n" not in text
    assert text.index("| python3 |") < text.index("| oldest |")
    page.write_text("nothing", encoding="utf-8")
    with pytest.raises(ValueError, match="must have the lines"):
        versions.main("table", str(tmp_path))
