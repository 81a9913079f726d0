"""Draw the picture of each structure page: ``python docs/structures/pictures.py [FOLDER]``. Needs matplotlib.

The first block of code of a page constructs an array ``A``. The picture shows the pattern of ``A`` without text, so that it reads on
light and dark pages and in the table of the index. The page explains the colours below the picture.
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(page for page in HERE.glob("*.md") if page.name not in ("index.md", "results.md"))


def example(page: Path):
    """The array of the page's first block."""
    names = {"__name__": "__main__"}
    exec(compile(BLOCK.search(page.read_text(encoding="utf-8"))[1], str(page), "exec"), names)
    return names["A"]


def make(folder: Path) -> None:
    """Draw all, into files that are the same on each run of one version of matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "structarrays"
    import matplotlib.pyplot as plt

    import structarrays as sa

    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        figure = plt.figure(figsize=(2, 2))
        ax = figure.add_axes((0.02, 0.02, 0.96, 0.96))
        sa.plot.spy(example(page), ax, legend=False)
        ax.set(xticks=[], yticks=[])
        for edge in ax.spines.values():
            edge.set_color("#888888")
        figure.savefig(folder / f"{page.stem}.svg", transparent=True, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "pictures")
