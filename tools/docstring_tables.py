"""Tables in docstrings: from reStructuredText, which `help` shows, to Markdown, for the pages in `docs/reference/api`."""

from __future__ import annotations

import re

RULER = re.compile(r" *=+( +=+)+")


def in_markdown(text: str) -> str:
    """The docstring with tables of Markdown. A table of reStructuredText ends before an empty line."""
    lines, result = text.split("\n"), []
    while lines:
        if RULER.fullmatch(lines[0]):
            end = next((i for i, line in enumerate(lines) if not line.strip()), len(lines))
            result += table(lines[:end])
            del lines[:end]
        else:
            result.append(lines.pop(0))
    return "\n".join(result)


def table(lines: list[str]) -> list[str]:
    """Convert the lines of a simple table. The text above a second of three rulers is the header."""
    ruler = lines[0]
    starts = [match.start() for match in re.finditer("=+", ruler)]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    header, rows = [""] * len(spans), []
    for line in lines[1:-1]:
        cells = [line[start:end].strip().replace("|", r"\|") for start, end in spans]
        if line == ruler:
            (header,), rows = rows, []
        elif not cells[0] and rows:  # the row goes on
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    indent = " " * starts[0]
    return [f"{indent}| {' | '.join(cells)} |" for cells in (header, ["---"] * len(spans), *rows)]
