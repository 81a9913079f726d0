"""The Python code in the README and in every page of the documentation runs, page by page, from top to bottom."""

import importlib.util
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^(?:<!-- needs (?P<package>\w+) -->\n)?```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def python_code(page: Path) -> str:
    """All blocks of a page as one program, each line at the line number it has in the page; but for those below a mark that names a
    package which is not installed.
    """
    text = page.read_text(encoding="utf-8")
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        if block["package"] and importlib.util.find_spec(block["package"]) is None:
            continue
        first = text.count("\n", 0, block.start("code"))
        code = block["code"].splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines) + "\n"


WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")  # which pages import from
    monkeypatch.setenv("SCIPY_ARRAY_API", os.environ.get("SCIPY_ARRAY_API", ""))  # a page sets it: undone afterwards
    code = compile(python_code(page), str(page), "exec")
    exec(code, {"__name__": "__main__"})


def test_there_is_code_to_run():
    names = {page.name for page in WITH_CODE}
    assert {"README.md", "index.md", "semantics.md", "extending.md"} <= names


def test_the_commands_that_ci_runs_are_in_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    marks = re.findall(r"^readme (\w+)$", ci, re.MULTILINE)
    assert marks == ["example", "tests"]
    for mark in marks:
        assert f"<!-- ci: {mark} -->\n```sh\npython3 -m venv .venv && " in text
