"""The Python code in the README and in every page of the documentation runs, page by page, from top to bottom."""

import contextlib
import doctest
import importlib.util
import io
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^(?:<!-- needs (?P<package>\w+) -->\n)?```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"\n\n```text\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def run(page: Path, text: str) -> None:
    """Run the blocks of a page in one namespace, each with the line numbers that it has in the page; but for those below a mark that names
    a package which is not installed. Where a block of ``text`` stands right below one, it is what that one prints, in which ``...`` is
    anything.
    """
    namespace = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        if block["package"] and importlib.util.find_spec(block["package"]) is None:
            continue
        code = "\n" * text.count("\n", 0, block.start("code")) + block["code"]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), namespace)
        if shown := OUTPUT.match(text, block.end()):
            same = doctest.OutputChecker().check_output(shown["text"], printed.getvalue(), doctest.ELLIPSIS)
            assert same, f"{page}: a block prints\n{printed.getvalue()}\nand the page says\n{shown['text']}"


WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")  # which pages import from
    monkeypatch.setenv("SCIPY_ARRAY_API", os.environ.get("SCIPY_ARRAY_API", ""))  # a page sets it: undone afterwards
    run(page, page.read_text(encoding="utf-8"))


def test_shown_output_is_compared(tmp_path):
    page = "```python\nprint(1 + 1)\nprint(0.1)\n```\n\n```text\n{}\n...\n```\n"
    run(tmp_path / "page.md", page.format(2))
    with pytest.raises(AssertionError, match="a block prints"):
        run(tmp_path / "page.md", page.format(3))


def test_there_is_code_to_run():
    names = {page.name for page in WITH_CODE}
    assert {"README.md", "index.md", "semantics.md", "extending.md"} <= names
    assert {page.parent.name for page in WITH_CODE} >= {"docs", "how_to"}


def test_the_commands_that_ci_runs_are_in_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    marks = re.findall(r"^readme (\w+)$", ci, re.MULTILINE)
    assert marks == ["example", "tests"]
    for mark in marks:
        assert f"<!-- ci: {mark} -->\n```sh\npython3 -m venv .venv && " in text
