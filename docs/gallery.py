"""Make the pictures of ``gallery.md`` and ``tutorial.md`` by their code: ``python docs/gallery.py [FOLDER]``. Needs matplotlib."""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
PAGES = ("gallery", "tutorial")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def make(folder: Path) -> None:
    """Run the pages' code in a folder, so that its files are the same on each run of one version of matplotlib."""
    import jax
    import matplotlib

    jax.config.update("jax_enable_x64", True)
    matplotlib.use("Agg")
    # Text stays text, and nothing in a file depends on chance or on the day.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "structarrays", "font.size": 9})
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    codes = {page: "\n".join(BLOCK.findall((HERE / f"{page}.md").read_text(encoding="utf-8"))) for page in PAGES}
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for page, code in codes.items():
        exec(compile(code, f"{page}.md", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "pictures")
