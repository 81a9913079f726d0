"""The notebooks of the documentation run, and the site can show their stored outputs."""

import base64
import importlib.util
import json
import re
import time
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_LIMIT = 60_000  # bytes
TIME_LIMIT = 300  # seconds
MAGIC = re.compile(r"^(\s*)%(.*)$", re.MULTILINE)
MACHINE = re.compile(
    r"(?<![\w.])/(?:home|mnt|opt|private|root|tmp|usr|Users|var|work)/|\b[A-Z]:\\|site-packages|file://"
)
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read_cells(path: Path, kind: str | None = None) -> list[dict]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if kind in (None, cell["cell_type"])]


def source_of(cell: dict) -> str:
    return "".join(cell["source"])


def pictures_of(cells: list[dict]) -> list[bytes]:
    """The PNG files in the outputs of cells."""
    data = (output.get("data", {}) for cell in cells for output in cell.get("outputs", ()))
    return [base64.b64decode("".join(part["image/png"])) for part in data if "image/png" in part]


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 5


@pytest.mark.each_parameter
@each_notebook
def test_code_compiles_and_checks_its_results(path):
    code = [MAGIC.sub(r"\1pass", source_of(cell)) for cell in read_cells(path, "code")]
    for number, source in enumerate(code):
        compile(source, f"{path.name}, code cell {number}", "exec")
    assert any(re.search(r"^ *assert ", source, re.MULTILINE) for source in code)


@pytest.mark.each_parameter
@each_notebook
def test_it_starts_with_a_sentence_and_an_install_cell(path):
    cells = [cell for cell in read_cells(path) if cell["id"] != "open-in-colab"]
    title, sentence = source_of(cells[0]).split("\n\n")
    assert title.startswith("# ") and sentence.endswith(".") and ". " not in sentence
    magics = {cell["id"]: MAGIC.findall(source_of(cell)) for cell in read_cells(path, "code")}
    ((indent, command),) = magics.pop(cells[1]["id"])
    # Indented: below the check whether the package is importable.
    assert indent and re.match(r"pip install --quiet structarrays\b", command)
    assert 'if importlib.util.find_spec("structarrays") is None:' in source_of(cells[1])
    assert not any(magics.values())


@pytest.mark.each_parameter
@each_notebook
def test_stored_outputs_are_those_of_one_run(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells, code = read_cells(path), read_cells(path, "code")
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert all(source_of(cell).strip() for cell in cells)
    assert not any(cell["metadata"] for cell in cells)  # no times of execution
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        for output in cell["outputs"]:
            assert output["output_type"] in ("display_data", "execute_result", "stream"), output
            assert output.get("name") != "stderr", output
            text = {key: value for key, value in output.get("data", {}).items() if key != "image/png"}
            assert not MACHINE.search(json.dumps([text, output.get("text", "")])), output
    assert not any(MACHINE.search(source_of(cell)) for cell in cells)


@pytest.mark.each_parameter
@each_notebook
def test_it_has_small_pictures(path):
    pictures = pictures_of(read_cells(path))
    assert pictures
    for picture in pictures:
        assert picture.startswith(PNG_SIGNATURE) and len(picture) <= PNG_LIMIT


def test_each_notebook_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    navigation = json.dumps(yaml.safe_load(text)["nav"])
    for path in NOTEBOOKS:
        assert f'"notebooks/{path.name}"' in navigation


@pytest.mark.slow
@pytest.mark.each_parameter
@each_notebook
def test_it_runs_in_a_fresh_kernel(path, tmp_path):
    for library in ("ipykernel", "matplotlib", "nbclient", "optax", "sklearn"):
        pytest.importorskip(library)
    spec = importlib.util.spec_from_file_location("execute_notebooks", ROOT / "tools" / "execute_notebooks.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    start = time.perf_counter()
    executed = tool.execute_notebook(path, tmp_path, TIME_LIMIT)
    assert time.perf_counter() - start < TIME_LIMIT
    assert len(pictures_of(executed.cells)) == len(pictures_of(read_cells(path)))
