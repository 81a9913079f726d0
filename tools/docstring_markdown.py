"""Docstrings in Markdown, for the pages in `docs/reference/api`: tables, formulas and the lists below "See Also"."""

from __future__ import annotations

import re

RULER = re.compile(r" *=+( +=+)+")
MATH = re.compile(r":math:`([^`]*)`")
SEE_ALSO = re.compile(r"(?<=^See Also\n--------\n).*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def in_markdown(text: str) -> str:
    """Convert a docstring without indentation. MathJax renders the formulas."""
    return MATH.sub(r"\\(\1\\)", with_tables(SEE_ALSO.sub(lambda found: entries(found[0]), text)))


def entries(text: str) -> str:
    """A list of the entries ``name, other : description``, each on one line, or with more that are indented."""
    items = []
    for line in re.sub(r"\n +", " ", text).split("\n"):
        names, colon, description = line.partition(" : ")
        items.append("- " + ", ".join(f"`{name}`" for name in names.split(", ")) + colon.strip() + f" {description}")
    return "\n".join(item.rstrip() for item in items)


def with_tables(text: str) -> str:
    """Convert tables of reStructuredText, which end before an empty line."""
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
