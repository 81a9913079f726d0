"""Make the pictures of ``gallery.md`` and ``tutorial.md`` by their code: ``python docs/gallery.py [FOLDER]``. Needs matplotlib.

A picture or a table below a block of code is the figure that the block draws, or the last expression of the block as HTML.
"""

import ast
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
PAGES = ("gallery", "tutorial")
BLOCK = re.compile(
    r'^```python\n(?P<code>.*?)^```$(?:\n+(?:!\[[^]]*\]\(pictures/(?P<figure>[^)]*)\)|--8<-- "(?P<html>[^"]*)")$)?',
    re.MULTILINE | re.DOTALL,
)


def evaluate(code: str, page: str, namespace: dict):
    """Run a block of code; return the value of its last expression, as a notebook does."""
    *statements, last = ast.parse(code).body
    exec(compile(ast.Module(statements, []), page, "exec"), namespace)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), page, "eval"), namespace)
    exec(compile(ast.Module([last], []), page, "exec"), namespace)
    return None


def make(folder: Path) -> None:
    """Run the pages and save their pictures. The files are the same on each run with one version of matplotlib."""
    import jax
    import matplotlib

    jax.config.update("jax_enable_x64", False)  # JAX's default, also below the tests, which change it
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    # Text stays text, and no file depends on chance or on the date.
    plt.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "structarrays", "font.size": 9, "figure.figsize": (4.2, 4.2)}
    )
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        namespace = {"__name__": "__main__"}
        for block in BLOCK.finditer((HERE / f"{page}.md").read_text(encoding="utf-8")):
            value = evaluate(block["code"], f"{page}.md", namespace)
            if block["figure"]:
                plt.savefig(folder / block["figure"], metadata={"Date": None})
                plt.close("all")
            elif block["html"]:
                (folder / block["html"]).write_text(value._repr_html_(), encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "pictures")
