"""The outputs, tables and pictures in `docs/structures` agree with the library."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jax
import numpy as np
import pytest

import structarrays as sa
from structarrays._core.dispatch.recording import describe
from structarrays._core.families.pattern import NAMES, ZERO, grid

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "structures"
INDEX = FOLDER / "index.md"
RESULTS = FOLDER / "results.md"  # tested for all structures by tests/law/test_structure_tables.py
PAGES = sorted(page for page in FOLDER.glob("*.md") if page not in (INDEX, RESULTS))
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIRST = re.compile(r"^```python\n.*?^```\n+```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"^\| operation \| result \| (?:cost|note) \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
ROW = re.compile(r"\| `(.*)` \| ([^|]*) \|([^|]*)\|")
COLOURS = dict(zip(NAMES[2:], ("grey", "green", "blue", "orange")))
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def text(page):
    return page.read_text(encoding="utf-8")


def names_after(blocks, page):
    """The names that the blocks of code define."""
    names = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    return names


def outcome(code, names):
    """The expected text of a cell, and the log of the call.

    The text has the classes of the result (for a write: of the array afterwards) without shapes, and says whether an array was densified.
    """
    with sa.record() as log:
        try:
            expression = compile(code, code, "eval")
        except SyntaxError:
            written = re.match(r"\w+", code)[0]
            names = {**names, written: sa.asarray(names[written], copy=True)}
            exec(code, names)
            result = names[written]
        else:
            try:
                result = eval(expression, names)
            except np.linalg.LinAlgError:
                return "error", log
    classes = re.sub(r" \([^()]*\)", "", describe(result))
    if not log.densifications:
        return classes, log
    return ("densifies" if set(classes.split(", ")) == {"Dense"} else f"{classes} (densifies)"), log


@pytest.mark.each_parameter
@every_page
def test_the_tables_say_what_happens(page):
    names = names_after(CODE.findall(text(page)), page)
    tables = TABLE.findall(text(page))
    assert len(tables) >= 2  # the costs, and the operations that keep the structure
    wrong = []
    for line in "".join(tables).splitlines():
        row = ROW.fullmatch(line)
        assert row, f"{page}: {line}"
        code, said, cost = row.groups()
        found, log = outcome(code, names)
        if found != said:
            wrong.append(f"{code}: {said}, but it is {found}")
        elif not re.search("densifies|error", said) and not re.search("[nmN]²|[nmN]³", cost):
            if log.peak_bytes > 0.6 * dense_bytes(names["A"]):
                wrong.append(f"{code}: {cost}, but one call takes {log.peak_bytes} bytes")
    assert not wrong, "\n".join([str(page), *wrong])


def dense_bytes(x):
    return x.size * x.itemsize


@pytest.mark.each_parameter
@every_page
def test_the_first_block_makes_the_array_that_is_printed_and_drawn(page):
    with jax.enable_x64(False):  # JAX's default, as in a fresh interpreter
        A = names_after(CODE.findall(text(page))[:1], page)["A"]
    assert FIRST.search(text(page))[1].rstrip() == repr(A)
    present = [NAMES[kind] for kind in grid(A, 200).present if kind != ZERO]
    caption = re.search(r"^\*(?:Blue|Orange|Green|Grey|White): .*$", text(page), re.MULTILINE)[0].lower()
    assert present and set(re.findall(r"(blue|orange|green|grey):", caption)) == {COLOURS[name] for name in present}


def test_every_structure_has_a_page_in_the_index_and_in_the_site():
    titles = "\n".join(text(page).partition("\n")[0] for page in PAGES)
    public = {name for name, c in vars(sa).items() if isinstance(c, type) and issubclass(c, sa.Array)} - {"Array"}
    assert set(re.findall(r"[A-Z]\w+", titles)) == public
    rows = re.findall(r"^\| !\[.*?\]\(pictures/(\w+)\.svg\)\S* \| .*?\((\w+)\.md\)", text(INDEX), re.MULTILINE)
    assert sorted(rows) == [(page.stem, page.stem) for page in PAGES]
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert sorted(re.findall(r"structures/(\w+)\.md", site)) == sorted(page.stem for page in [*PAGES, INDEX, RESULTS])


@pytest.mark.slow
def test_the_pictures_are_those_that_the_code_draws(tmp_path):
    pytest.importorskip("matplotlib")
    script = FOLDER / "pictures.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    made, kept = ({path.name for path in folder.iterdir()} for folder in (tmp_path, FOLDER / "pictures"))
    assert made == kept == {f"{page.stem}.svg" for page in PAGES}
    for name in kept:
        content = (FOLDER / "pictures" / name).read_bytes()
        ElementTree.fromstring(content)
        assert len(content) < 30_000
