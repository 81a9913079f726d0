"""Which versions were tested, and what came of it: rows of the table in docs/design/versions.md.

    python .ci/versions.py row LEG FOLDER     write FOLDER/LEG.row, from FOLDER/LEG.xml (pytest's) and FOLDER/LEG.suite (the official suite's)
    python .ci/versions.py table FOLDER       write the rows of FOLDER into docs/design/versions.md, and print them

The first is run by the Python of a leg of `.ci/run`, and reads the versions that are installed there.
"""

import platform
import re
import sys
import xml.etree.ElementTree as ET
from importlib import metadata
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "design" / "versions.md"
BEGIN, END = "<!-- tested versions: begin -->", "<!-- tested versions: end -->"
LEGS = ("python3", "newest", "oldest")
PACKAGES = ("jax", "numpy", "scipy", "scikit-learn", "array-api-compat")
HEADER = f"| Python | {' | '.join(PACKAGES)} | tests passed | failed | official suite |\n|---|{'---|' * len(PACKAGES)}---|---|---|"


def version(package: str) -> str:
    """The version of a package that is installed here; a dash where it is not."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "–"


def row(leg: str, folder: Path) -> str:
    """The row of a leg."""
    suites = ET.parse(folder / f"{leg}.xml").getroot().iter("testsuite")
    counts = [{name: int(s.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")} for s in suites]
    failed = sum(c["failures"] + c["errors"] for c in counts)
    passed = sum(c["tests"] - c["skipped"] for c in counts) - failed
    log = folder / f"{leg}.suite"
    found = re.search(r"(\d+) passed, (\d+) failed", log.read_text(encoding="utf-8")) if log.exists() else None
    official = f"{found[1]} passed, {found[2]} failed" if found else "–"
    return f"| {' | '.join([platform.python_version(), *map(version, PACKAGES), str(passed), str(failed), official])} |"


def table(folder: Path) -> str:
    """The table of the legs that have a row."""
    rows = [folder / f"{leg}.row" for leg in LEGS]
    return "\n".join([HEADER, *(r.read_text(encoding="utf-8").strip() for r in rows if r.exists())])


def main(command: str, *arguments: str) -> int:
    """Run a command; the exit status."""
    if command == "row":
        leg, folder = arguments[0], Path(arguments[1])
        (folder / f"{leg}.row").write_text(row(leg, folder) + "\n", encoding="utf-8")
        return 0
    found = table(Path(arguments[0]))
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    if not rest or END not in rest:
        raise ValueError(f"{PAGE} must have the lines {BEGIN} and {END}")
    PAGE.write_text(f"{before}{BEGIN}\n\n{found}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
