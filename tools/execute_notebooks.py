"""Execute the notebooks of the documentation and store their outputs.

::

    python tools/execute_notebooks.py                                        # all notebooks in docs/notebooks/
    python tools/execute_notebooks.py docs/notebooks/trend_filtering.ipynb

Run it after you change a notebook: the site shows the stored outputs and executes nothing. The tool removes everything that
depends on the machine, except the times that a notebook prints. It needs the extra ``test``.
"""

import os
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "notebooks"


def execute_notebook(path: Path, folder: Path, time_limit: int = 300) -> nbformat.NotebookNode:
    """Execute a notebook in a fresh kernel, and return it with its outputs.

    Parameters
    ----------
    path : Path
        The notebook, which stays as it is.
    folder : Path
        Working directory of the kernel.
    time_limit : int, default 300
        Seconds that a cell may take.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell raises.
    nbclient.exceptions.CellTimeoutError
        If a cell takes longer than the time limit.
    """
    notebook = nbformat.read(path, as_version=4)
    # The package of this checkout, whatever else is installed.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    # Notebooks run with the defaults of JAX, and choose these settings themselves.
    for name in ("JAX_ENABLE_X64", "MPLBACKEND", "PJRT_NPROC", "SCIPY_ARRAY_API", "XLA_FLAGS"):
        environment.pop(name, None)
    if metadata.version("jaxlib").startswith("0.10."):
        # Otherwise it may hang on two cores: see "Decompositions of stacks" in docs/design/jax_bugs.md. More threads than
        # cores are several times slower on a busy machine, so newer versions run without.
        environment["PJRT_NPROC"] = "8"
    client = NotebookClient(
        notebook,
        timeout=time_limit,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute(env=environment)


def clean(notebook: nbformat.NotebookNode) -> None:
    """Remove metadata that depend on the machine."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            if "metadata" in output:
                output.metadata = {}


def main(arguments: list[str]) -> None:
    """Run the command line."""
    for path in map(Path, arguments) if arguments else sorted(FOLDER.glob("*.ipynb")):
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute_notebook(path, Path(folder))
        clean(notebook)
        nbformat.write(notebook, path)
        print(f"{path.name}: {time.perf_counter() - start:.0f} s, {path.stat().st_size / 1e3:.0f} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
