"""HTML of arrays and logs for notebooks: self-contained, for light and dark pages."""

from __future__ import annotations

import html

import numpy as np

from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.dispatch.recording import Log
from .._core.families.factored import Factored
from .._core.families.pattern import BACKGROUND, COLOURS, NAMES, grid, matrix_shape
from .._core.text import inline, readable, size_text
from .printing import is_readable

CELLS, CELLS_OF_PART = 40, 20
"""Largest number of cells along a side in the pattern of an array, and in the pattern of a part."""

PARTS = 60
"""Largest number of parts of a factored array that are shown, including the parts of parts."""

LOST = "#d55e00"
"""Colour of densified results: safe for colour-blind readers, legible on white and on black."""

_GRID = "display:grid;grid-template-columns:max-content auto;column-gap:1em;align-content:start"


def to_html(x: Array) -> str:
    """Return the HTML of an array. The function never raises, computes nothing, and reads the same values as `repr`."""
    try:
        return _card(x)
    except Exception:  # leaves that are not arrays, or have too few dimensions
        return f"<div><pre>{html.escape(repr(x))}</pre></div>"


def _card(x: Array) -> str:
    """Return the description of an array: pattern, facts, and elements or parts."""
    drawn, legend = _picture(x, CELLS, 120)
    texts = [
        f"<div>{_bold(type(x).__name__)}{html.escape(_remarks(x))}</div>",
        f'<div style="display:flex;flex-wrap:wrap;gap:.4em 1.2em;margin:.4em 0">{drawn}{_facts(x)}</div>',
        legend,
    ]
    if type(x) is Dense or not is_readable(x):
        texts.append(f'<pre style="margin:.4em 0 0;overflow-x:auto;max-width:100%">{html.escape(repr(x))}</pre>')
    elif isinstance(x, Factored) and x.parts:
        texts.append(_branches(x, [PARTS]))
    style = "border:1px solid rgba(128,128,128,.4);border-radius:4px;padding:.5em .8em"
    return f'<div class="structarrays" style="{style};display:inline-block;box-sizing:border-box;max-width:100%">{"".join(texts)}</div>'


def _bold(text: str) -> str:
    return f"<strong>{html.escape(text)}</strong>"


def _remarks(x: Array) -> str:
    """Return the description of the structure, without the shape."""
    if type(x) is Dense or not is_readable(x):
        return ""
    texts = [t for t in x.description()[0] if t not in (f"shape={x.shape}", str(x.shape))]
    return f" {', '.join(texts)}" if texts else ""


def _facts(x: Array) -> str:
    facts = {"shape": str(x.shape), "dtype": str(x.dtype), "stored": _stored(x)}
    if getattr(x, "stores_entries", False) and x.background is not None:
        facts["background"] = inline(x.background)[0] if readable(x.background) else "traced"
    if x.assumptions:
        facts["assumed"] = ", ".join(sorted(map(str, x.assumptions)))
    cells = "".join(
        f'<div style="opacity:.65">{name}</div><div>{html.escape(text)}</div>' for name, text in facts.items()
    )
    return f'<div style="{_GRID}">{cells}</div>'


def _stored(x: Array) -> str:
    """Return the size of the storage and of the dense form."""
    dense = x.size * x.itemsize
    share = f" ({100 * x.nbytes / dense:.3g} %)" if dense else ""
    return f"{size_text(x.nbytes)} of {size_text(dense)} dense{share}"


# ---- parts -----------------------------------------------------------------------------------------------------------


def _branches(x: Factored, left: list[int]) -> str:
    """Return the parts of an array as collapsible entries; `left` counts down the parts that may still be shown."""
    shown = []
    for k, part in enumerate(x.parts):
        if not left[0]:
            shown.append(f"<div>… {len(x.parts) - k} more</div>")
            break
        left[0] -= 1
        shown.append(_branch(part, left))
    style = "margin:.2em 0 .2em .4em;padding-left:.7em;border-left:1px solid rgba(128,128,128,.4)"
    return f'<div style="{style}">{"".join(shown)}</div>'


def _branch(x: Array, left: list[int]) -> str:
    """Return a part of an array: one line, collapsible if it has parts itself."""
    drawn, _ = _picture(x, CELLS_OF_PART, 30)
    facts = [str(x.shape), str(x.dtype), f"{size_text(x.nbytes)} of {size_text(x.size * x.itemsize)}"]
    if x.assumptions:
        facts.append("assumed " + " and ".join(sorted(map(str, x.assumptions))))
    box = "display:inline-block;width:32px;margin:1px .3em 1px 0;text-align:center;vertical-align:middle"
    drawn = f'<span style="{box}">{drawn}</span>'
    line = f"{drawn}{_bold(type(x).__name__)}{html.escape(_remarks(x))} <span>{html.escape(' · '.join(facts))}</span>"
    if isinstance(x, Factored) and x.parts:
        return f'<details open="open"><summary>{line}</summary>{_branches(x, left)}</details>'
    return f"<div>{line}</div>"


# ---- the pattern -----------------------------------------------------------------------------------------------------


def _picture(x: Array, cells: int, side: int) -> tuple[str, str]:
    """Return the pattern of an array as SVG, and its legend; empty strings for an array without elements."""
    if 0 in matrix_shape(x):
        return "", ""
    pattern = grid(x, cells)
    (rows, columns), (m, n) = pattern.kinds.shape, matrix_shape(x)
    side = min(side, 14 * max(rows, columns))
    width, height = (max(side * k // max(m, n), side // 4) for k in (n, m))  # limit the aspect ratio
    shapes = [_shape(pattern.kinds == kind, kind) for kind in pattern.present]
    if max(rows, columns) <= 16 and side > 30:
        lines = [f"M0 {i}h{columns}" for i in range(1, rows)] + [f"M{j} 0v{rows}" for j in range(1, columns)]
        style = 'stroke="#808080" stroke-width=".04" stroke-opacity=".6"'
        shapes.append(f'<path d="{"".join(lines)}" {style} />' if lines else "")
    title = f"pattern of {type(x).__name__} {x.shape}: {', '.join(NAMES[k] for k in pattern.present) or NAMES[0]}"
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {columns} {rows}" preserveAspectRatio="none" shape-rendering="crispEdges" '
        f'style="outline:1px solid rgba(128,128,128,.6);vertical-align:middle;flex:none">'
        f"<title>{html.escape(title)}</title>{''.join(shapes)}</svg>"
    )
    swatches = [
        f'<span style="white-space:nowrap"><span style="display:inline-block;width:.8em;height:.8em;'
        f'background:{COLOURS[kind]};opacity:{_opacity(kind)}"></span> {html.escape(NAMES[kind])}</span>'
        for kind in pattern.present
    ]
    style = "display:flex;flex-wrap:wrap;gap:0 1em;font-size:.85em;opacity:.85"
    return picture, f'<div style="{style}">{"".join(swatches)}</div>'


def _opacity(kind: int) -> float:
    return 0.45 if kind == BACKGROUND else 1.0


def _shape(mask: np.ndarray, kind: int) -> str:
    """Return the marked cells as one SVG path: equal runs in consecutive rows form one rectangle."""
    moves: list[str]
    running: dict[tuple[int, int], int]
    moves, running = [], {}
    for r, row in enumerate([*mask.tolist(), []]):
        edges = np.flatnonzero(np.diff([0, *row, 0])).tolist()
        runs = set(zip(edges[::2], edges[1::2]))
        for start, stop in sorted(running.keys() - runs):
            top = running.pop((start, stop))
            moves.append(f"M{start} {top}h{stop - start}v{r - top}h{start - stop}z")
        for run in runs:
            running.setdefault(run, r)
    return f'<path d="{"".join(moves)}" fill="{COLOURS[kind]}" fill-opacity="{_opacity(kind)}" />'


# ---- logs ------------------------------------------------------------------------------------------------------------


def log_to_html(log: Log) -> str:
    """Return a log as a table: nested calls are indented, densifications are red."""
    header, rows = log.table()
    cell = "text-align:left;white-space:nowrap;padding:.1em .8em .1em 0"
    lines = ["".join(f'<th style="{cell}">{html.escape(text)}</th>' for text in header)]
    lines = [f"<tr>{lines[0]}</tr>"]
    for event, texts in rows:
        first = f'<td style="{cell};padding-left:{1.2 * event.depth:.1f}em">{html.escape(texts[0].strip())}</td>'
        rest = "".join(f'<td style="{cell}">{html.escape(text)}</td>' for text in texts[1:])
        lost = f' class="densified" style="color:{LOST};font-weight:bold"' if event.densified else ""
        lines.append(f"<tr{lost}>{first}{rest}</tr>")
    notes = "".join(f"<div>{html.escape(text)}</div>" for text in (*log.remarks(), log.summary()))
    table = f'<table style="border-collapse:collapse">{"".join(lines)}</table>'
    return f'<div style="overflow-x:auto;max-width:100%">{table}<div style="margin-top:.4em">{notes}</div></div>'
