"""The Python code of the README and of each page runs from top to bottom."""

import ast
import contextlib
import doctest
import importlib.util
import inspect
import io
import os
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import structarrays as sa
from structarrays._core.families import elementwise_docstrings, elementwise_rule

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^(?:<!-- needs (?P<package>\w+) -->\n)?```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(
    r"^<!-- the (?P<what>same|second runs)(?:, needs (?P<package>\w+))? -->\n\n(?P<table>(?:^\|.*\n)+)", re.MULTILINE
)
OUTPUT = re.compile(r"\n\n```text\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def is_installed(package: str | None) -> bool:
    return package is None or importlib.util.find_spec(package) is not None


def run(page: Path, text: str) -> None:
    """Run the blocks of a page in one namespace, with their line numbers in the page.

    - A mark above a block can name a package. If the package is not installed, the block does not run.
    - A block of ``text`` right below a block that prints is the expected output; ``...`` matches anything.
    - A mark above a table says that both columns are code with equal results, or that the second column is code.
    """
    namespace = {"__name__": "__main__"}
    for part in sorted([*BLOCK.finditer(text), *TABLE.finditer(text)], key=lambda part: part.start()):
        if part.re is TABLE:
            compare(part["table"], namespace, part["what"] == "same" and is_installed(part["package"]))
            continue
        if not is_installed(part["package"]):
            continue
        code = "\n" * text.count("\n", 0, part.start("code")) + part["code"]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), namespace)
        shown = OUTPUT.match(text, part.end())
        if shown and printed.getvalue():
            expected, found = map(without_lines_of_code, (shown["text"], printed.getvalue()))
            same = doctest.OutputChecker().check_output(expected, found, doctest.ELLIPSIS)
            assert same, f"{page}: a block prints\n{printed.getvalue()}\nand the page says\n{shown['text']}"


def without_lines_of_code(text: str) -> str:
    """A text without the line numbers of kernels, and without the widths of columns, which depend on the numbers."""
    text = re.sub(r"(\([\w/]+\.py):\d+\)", r"\1)", text)
    return re.sub(r"--+", "--", re.sub(r"  +", "  ", text))


def compare(table: str, namespace: dict, both: bool) -> None:
    """Evaluate the code in the second cell of each row. If `both` is true, compare it with the first cell."""
    for row in table.splitlines()[2:]:
        theirs, ours = (re.findall(r"`([^`]+)`", cell) for cell in row.strip("|").split("|")[:2])
        values = [eval(code, namespace) for code in ours]
        if theirs and both:
            for code, value in zip(theirs, values, strict=True):
                expected = dense(eval(code, namespace))
                np.testing.assert_allclose(dense(value), expected, rtol=1e-9, atol=1e-9, err_msg=row)


def dense(x) -> np.ndarray:
    """The elements of an array of any library."""
    for name in () if isinstance(x, sa.Array) else ("toarray", "to_dense", "as_matrix", "materialise", "to_jax"):
        if hasattr(x, name):
            return np.asarray(getattr(x, name)())
    return np.asarray(x)


WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.slow
@pytest.mark.each_parameter
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")  # which pages import from
    monkeypatch.setenv("SCIPY_ARRAY_API", os.environ.get("SCIPY_ARRAY_API", ""))  # a page sets it: undone afterwards
    enabled = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)  # JAX's default, as in a fresh interpreter
    try:
        run(page, page.read_text(encoding="utf-8"))
    finally:
        jax.config.update("jax_enable_x64", enabled)


def test_shown_output_is_compared(tmp_path):
    page = "```python\nprint(1 + 1)\nprint(0.1)\n```\n\n```text\n{}\n...\n```\n"
    run(tmp_path / "page.md", page.format(2))
    with pytest.raises(AssertionError, match="a block prints"):
        run(tmp_path / "page.md", page.format(3))


def test_rows_of_tables_are_compared(tmp_path):
    page = (
        "<!-- the same -->\n\n| theirs | ours | |\n|---|---|---|\n| `1 + 1`, `3` | `2`, `{}` | of `x` |\n| – | `4` |\n"
    )
    run(tmp_path / "page.md", page.format(3))
    with pytest.raises(AssertionError, match="Not equal"):
        run(tmp_path / "page.md", page.format(5))
    with pytest.raises(NameError):
        run(tmp_path / "page.md", page.format("unknown"))
    for mark in "the same, needs no_such_package", "the second runs":  # ours alone is run
        other = page.replace("the same", mark)
        run(tmp_path / "page.md", other.format(5))
        with pytest.raises(NameError):
            run(tmp_path / "page.md", other.format("unknown"))


def test_there_is_code_to_run():
    names = {page.name for page in WITH_CODE}
    assert {"README.md", "index.md", "semantics.md", "write_a_structure.md"} <= names
    assert {page.parent.name for page in WITH_CODE} >= {"docs", "how_to", "coming_from", "structures"}


def test_the_list_of_tasks_has_every_how_to_page():
    folder = ROOT / "docs" / "how_to"
    rows = re.findall(r"^\| (.*) \| (\[.*) \|$", (folder / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    pages = [[(folder / link).resolve() for link in re.findall(r"\]\(([^)#]+)", cell)] for _, cell in rows]
    linked = {page for row in pages for page in row}
    assert len(rows) >= 20
    assert linked >= {page for page in folder.glob("*.md") if page.name != "index.md"}
    for row in pages:
        assert row[0] in WITH_CODE or row[0].suffix == ".ipynb"


def test_the_search_ranks_every_page():
    spec = importlib.util.spec_from_file_location("search_ranking", ROOT / "tools" / "search_ranking.py")
    ranking = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ranking)
    assert all((ROOT / "docs" / path).exists() for path in ranking.BOOSTS)
    assert (
        ranking.boost("how_to/batch.md") > ranking.boost("reference/errors.md") > ranking.boost("design/benchmarks.md")
    )


def test_the_commands_that_ci_runs_are_in_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    marks = re.findall(r"^readme (\w+)$", ci, re.MULTILINE)
    assert marks == ["example", "tests"]
    for mark in marks:
        assert f"<!-- ci: {mark} -->\n```sh\npython3 -m venv .venv && " in text


def test_no_docstring_has_a_section_twice():
    twice = []
    for path in sorted((ROOT / "structarrays").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                sections = re.findall(r"^(\w[\w ]*)\n-{3,}$", ast.get_docstring(node) or "", re.MULTILINE)
                twice += [(path.name, getattr(node, "name", ""), s) for s in set(sections) if sections.count(s) > 1]
    assert twice == []


@pytest.mark.parametrize("module", ["", "linalg", "fft", "extend", "plot"])
def test_every_public_name_is_in_the_api_reference(module):
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference" / "api").glob("*.md"))
    entries = set(re.findall(r"^::: structarrays\.(\S+)$|\{#structarrays\.(\S+)\}|`(\w+)`", pages, re.MULTILINE))
    described = {name for found in entries for name in found}
    owner = getattr(sa, module) if module else sa
    public = [n for n in getattr(owner, "__all__", dir(owner)) if not n.startswith("_")]
    names = [n for n in public if not inspect.ismodule(getattr(owner, n))]
    assert names
    # The namespace and `extend` share some names, each with one description.
    places = {"": ("", "extend."), "extend": ("extend.", "")}.get(module, (f"{module}.",))
    missing = [n for n in names if not any(place + n in described for place in places)]
    assert missing == []


DOCSTRINGS = {
    "tables": (
        "Notes:\n\n    ====  =========\n    name  cost\n    ====  =========\n    `a`   ``O(n)``,\n"
        "          |x|\n    b     1\n    ====  =========\n\nThen:\n\n====  ==\na     1\nb     2\n====  ==",
        "Notes:\n\n    | name | cost |\n    | --- | --- |\n    | `a` | ``O(n)``, \\|x\\| |\n    | b | 1 |\n"
        "\nThen:\n\n|  |  |\n| --- | --- |\n| a | 1 |\n| b | 2 |",
    ),
    "formulas": ("The value is :math:`A_1 \\otimes A_2`.", "The value is \\(A_1 \\otimes A_2\\)."),
    "entries": (
        "See Also\n--------\nlinalg.solve, solve : Solve a\n    system.\nload\n\nNotes\n-----\na : b",
        "See Also\n--------\n- `linalg.solve`, `solve`: Solve a system.\n- `load`\n\nNotes\n-----\na : b",
    ),
}


@pytest.mark.each_parameter
@pytest.mark.parametrize("name", DOCSTRINGS)
def test_docstrings_become_markdown(monkeypatch, name):
    """Tables with and without a header, with rows of two lines and bars, at the end of a text and within it."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from docstring_markdown import in_markdown

    text, expected = DOCSTRINGS[name]
    assert in_markdown(text) == expected


def test_each_table_of_a_docstring_is_converted(monkeypatch):
    """Each has cells in all columns of its first row, and no ruler is left."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from docstring_markdown import in_markdown

    found = 0
    for path in sorted((ROOT / "structarrays").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                text = in_markdown(ast.get_docstring(node) or "")
                assert "====" not in text, (path.name, node.name)
                for first in re.findall(r"^ *\|(?: --- \|)+\n(.*)", text, re.MULTILINE):
                    assert re.fullmatch(r" *\| \S.*\|", first), (path.name, node.name, first)
                    assert "|  |" not in first, (path.name, node.name, first)
                    found += 1
    assert found > 20


SECTIONS = ["Parameters", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "References", "Examples"]
MODULES = {"": sa, "linalg.": sa.linalg, "fft.": sa.fft}
FUNCTIONS = {
    f"{prefix}{name}": getattr(module, name)
    for prefix, module in MODULES.items()
    for name in module.__all__
    if callable(getattr(module, name)) and not isinstance(getattr(module, name), type)
}


def parts_of(docstring: str) -> list[tuple[str, str]]:
    """The sections of a docstring, in their order, with their titles."""
    titles = [*re.finditer(r"^(\w[\w ]*)\n(-{3,})$", docstring, re.MULTILINE)]
    assert all(len(t[1]) == len(t[2]) for t in titles)
    ends = [*(t.start() for t in titles[1:]), len(docstring)]
    return [(t[1], docstring[t.end() : end]) for t, end in zip(titles, ends, strict=True)]


def test_docstrings_of_functions_are_complete():
    """The docstrings that `help` shows, with their generated sections."""
    for name, function in FUNCTIONS.items():
        docstring = inspect.getdoc(function)
        parts = parts_of(docstring)
        titles = [title for title, _ in parts]
        assert titles == [s for s in SECTIONS if s in titles], f"{name}: {titles}"
        assert re.match(r"[^\n]+\.\n\n", docstring), name
        arguments = inspect.signature(function).parameters
        described = re.findall(r"^([*\w]+(?:, [*\w]+)*)(?: : .*)?$", dict(parts).get("Parameters", ""), re.MULTILINE)
        assert [n.lstrip("*") for names in described for n in names.split(", ")] == list(arguments), name
        assert "Examples" in titles, name
        nothing = inspect.signature(function).return_annotation in (None, "None", "Iterator[None]")
        assert nothing or {"Returns", "Yields"} & {*titles}, name


def test_generated_sections_speak_of_every_kind_of_dtype():
    assert elementwise_docstrings.DATA_TYPES.keys() == elementwise_rule.KINDS.keys()


def test_generated_sections_speak_of_the_dtype_of_the_result():
    dtypes = {"c": "complex64", "f": "float32", "u": "uint8", "b": "bool"}
    for name, function in FUNCTIONS.items():
        if isinstance(function, elementwise_rule.ElementwiseArrayFunction) and name not in ("where", "clip"):
            dtype = dtypes[elementwise_rule.KINDS[function.kinds][-1]]
            result = function(*[sa.ones(2, dtype=dtype)] * len(function.arrays)).dtype
            said = dict(parts_of(inspect.getdoc(function)))["Returns"]
            assert ("boolean dtype" in said) == (result.kind == "b"), name
            assert ("real dtype of its parts" in said) == (dtype == "complex64" and result == "float32"), name
