"""Pictures of arrays and logs with matplotlib (install the extra ``plot``): `spy`, `tree` and `flow`.

The first picture imports matplotlib; importing the library does not. The colours are from the palette of Okabe and Ito,
for readers with colour-blindness.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ._core.array.base import Array
from ._core.dispatch.recording import Log
from ._core.families.factored import Factored
from ._core.families.pattern import COLOURS, NAMES, grid, matrix_shape
from ._core.text import size_text
from ._functions.conversion import asarray

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from matplotlib.axes import Axes

    from ._core.array.arguments import ParameterLike
    from ._core.dispatch.recording import Event

__all__ = ["flow", "spy", "tree"]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


LOST = "#d55e00"
KEPT = "#cde4f5"
DENSE = "#e4e4e4"
LINE = "#888888"

CELLS, CELLS_OF_PART = 200, 20
"""Largest number of cells along a side: of a picture by default, and of the thumbnails in a tree."""


def _pyplot() -> ModuleType:
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError(
            "structarrays.plot needs matplotlib, which is not installed: pip install 'structarrays[plot]'"
        ) from error
    return matplotlib.pyplot


def _array(x: ParameterLike, function: str) -> Array:
    """Convert the argument to an array."""
    if isinstance(x, Array):
        return x
    try:
        return asarray(x)
    except TypeError as error:
        raise TypeError(f"{function}: x must be convertible with asarray, got {type(x).__name__}") from error


# ---- patterns --------------------------------------------------------------------------------------------------------


def spy(x: ParameterLike, ax: Axes | None = None, *, cells: int | None = None, legend: bool = True) -> Axes:
    """Draw the nonzero pattern of an array from its structure; no element is computed.

    Parameters
    ----------
    x : array_like
        Array of any structure and size. The matrices of a stack are superimposed; a vector is a row.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default in a new figure.
    cells : int, optional
        Largest number of cells along each side. A cell of a larger matrix represents a rectangle of elements, in the
        colour of its most visible content. By default all that are visible at the size of the axes, at most 200.
    legend : bool, default True
        Whether to explain the colours below the picture.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with rows and columns as coordinates, as in `matplotlib.pyplot.spy`.

    Raises
    ------
    ImportError
        If matplotlib is not installed; install the extra ``plot``.
    TypeError
        If `asarray` does not accept `x`.
    ValueError
        If `cells` is not positive.

    Notes
    -----
    The colours distinguish elements of dense blocks, stored entries, elements computed from several parameters (such as
    all elements of a `LowRank` array), and the background. If several occur in one cell, the first in this order is
    drawn. A drawn element may have the value zero. For a product or an inverse of more than 256 rows, the picture may
    show too much. Of more than a million coordinates of a `Sparse` array, an evenly spaced subset is used.

    The time and memory are ``O(cells**2)`` for each part of an array, plus the number of coordinates.

    Examples
    --------
    >>> import structarrays as sa
    >>> K = sa.KroneckerSum(sa.tridiagonal([1.0] * 999, [2.0] * 1000, [1.0] * 999), sa.Identity(1000))
    >>> ax = sa.plot.spy(K)
    >>> [float(y) for y in ax.get_ylim()]
    [999999.5, -0.5]
    """
    if cells is not None and cells < 1:
        raise ValueError(f"spy: cells must be at least 1, got {cells}")
    plt = _pyplot()
    from matplotlib.ticker import EngFormatter, MaxNLocator

    x = _array(x, "spy")
    ax = plt.subplots(layout="constrained")[1] if ax is None else ax
    if cells is None:
        points = 72 * min(ax.get_window_extent().size) / ax.figure.dpi
        cells = max(10, min(CELLS, int(points / 1.5)))
    present = _draw_pattern(ax, x, cells, (-0.5, -0.5), matrix_shape(x)[::-1])
    m, n = matrix_shape(x)
    ax.set(xlim=(-0.5, max(n, 1) - 0.5), ylim=(max(m, 1) - 0.5, -0.5))
    ax.set_aspect("equal" if max(m, n) <= 8 * min(m, n) else "auto")
    ax.xaxis.tick_top()
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10], integer=True))
        if max(m, n) >= 10**5:
            axis.set_major_formatter(EngFormatter(sep=""))  # 200k
    if legend and present:
        _legend(ax, {NAMES[kind]: COLOURS[kind] for kind in present})
    return ax


def _draw_pattern(ax: Axes, x: Array, cells: int, corner: tuple[float, float], size: tuple[float, float]) -> list[int]:
    """Draw a pattern as an image with this upper left corner, width and height; return the kinds that occur."""
    from matplotlib.colors import ListedColormap

    pattern = grid(x, cells)
    (left, top), (width, height) = corner, size
    if pattern.kinds.size:
        ax.imshow(
            pattern.kinds, cmap=ListedColormap(["white", *COLOURS[1:]]), vmin=-0.5, vmax=len(COLOURS) - 0.5, origin="upper",
            extent=(left, left + width, top + height, top), interpolation="none", aspect="auto",
        )  # fmt: skip
    return pattern.present


def _legend(ax: Axes, colours: dict[str, str], *, columns: int = 3) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=colour, edgecolor=LINE, linewidth=0.6, label=name) for name, colour in colours.items()]
    ax.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0, 0), borderaxespad=0.4, borderpad=0, ncols=columns, frameon=False,
        fontsize=8, handlelength=1, handleheight=1, columnspacing=1.2,
    )  # fmt: skip


# ---- indented rows ---------------------------------------------------------------------------------------------------

INDENT = 0.9
POINTS = 9
ROW = 0.36
NARROW = 2.8
"""Indent in rows; size of the text in points; height of a row and smallest width of a picture in inches."""


def _text_width(text: str, weight: str = "normal") -> float:
    """Return the width of a text in rows, with 10 % extra, since a browser may use another font."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    width = TextPath((0, 0), text, size=POINTS, prop=FontProperties(weight=weight)).get_extents().width
    return 1.1 * width / 72 / ROW


def _outline(ax: Axes | None, depths: Sequence[float], widths: Sequence[float]) -> tuple[Axes, float]:
    """Set up axes with indented rows of unit height, and draw lines from each row to the rows that it contains.

    Returns the axes, and the factor for the size of the text (below 1 if the axes are too small).
    """
    width = max(depth * INDENT + w for depth, w in zip(depths, widths))
    high, own = len(depths), ax is None
    if ax is None:
        width, legend, edge = max(width, NARROW / ROW), 0.5, 0.08
        size = (width * ROW + 2 * edge, high * ROW + legend + edge)
        figure = _pyplot().figure(figsize=size)
        ax = figure.add_axes((edge / size[0], legend / size[1], width * ROW / size[0], high * ROW / size[1]))
    ax.set(xlim=(0, width), ylim=(high, 0), anchor="NW")
    ax.set_aspect("equal")
    ax.axis("off")
    box = ax.get_window_extent()
    shrunk = min(box.width / (width * ROW), box.height / (high * ROW)) / ax.figure.dpi
    above: dict[float, int] = {}
    for row, depth in enumerate(depths):
        if depth:
            x = (depth - 1) * INDENT + 0.35
            ax.plot(
                [x, x, depth * INDENT], [above[depth - 1] + 0.9, row + 0.5, row + 0.5], color=LINE, lw=0.8, zorder=0
            )
        above[depth] = row
    return ax, 1.0 if own else min(1.0, shrunk)


def _said(count: int, what: str) -> str:
    return f"… {count} more {what}"


# ---- trees of arrays -------------------------------------------------------------------------------------------------


def tree(x: ParameterLike, ax: Axes | None = None, *, rows: int = 60) -> Axes:
    """Draw the tree of an array that is composed of others: each with its pattern, its shape, and its storage.

    Parameters
    ----------
    x : array_like
        Usually a factored array, such as a `Kronecker` or a `Sum`; any other array is a tree of one node.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default in a new figure of suitable size.
    rows : int, default 60
        Largest number of nodes that are drawn.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with one node a row, from top to bottom; the parts of an array follow it, indented.

    Raises
    ------
    ImportError
        If matplotlib is not installed; install the extra ``plot``.
    TypeError
        If `asarray` does not accept `x`.
    ValueError
        If `rows` is not positive.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.Sum(sa.Identity(6), sa.Kronecker(sa.ones((2, 2)), sa.Diagonal([1.0, 2.0, 3.0])))
    >>> [text.get_text().split(" ")[0] for text in sa.plot.tree(A).texts]
    ['Sum', 'Identity', 'Kronecker', 'Dense', 'Diagonal']
    """
    if rows < 1:
        raise ValueError(f"tree: rows must be at least 1, got {rows}")
    _pyplot()
    nodes = list(_nodes(_array(x, "tree"), 0))
    nodes, left = nodes[:rows], len(nodes[rows:])
    texts = [_node_text(part) for _, part in nodes]
    depths = [depth for depth, _ in nodes] + [0] * bool(left)
    texts += [_said(left, "parts")] * bool(left)
    ax, scale = _outline(ax, depths, [1.1 + _text_width(text) for text in texts])
    limits, present = (ax.get_xlim(), ax.get_ylim()), set()
    for row, (depth, part) in enumerate(nodes):
        present.update(_draw_thumbnail(ax, part, depth * INDENT, row))
    ax.set(xlim=limits[0], ylim=limits[1], aspect="equal")  # `imshow` has changed them
    for row, (depth, text) in enumerate(zip(depths, texts)):
        ax.text(depth * INDENT + 1, row + 0.5, text, va="center", fontsize=POINTS * scale)
    _legend(ax, {NAMES[kind]: COLOURS[kind] for kind in sorted(present)}, columns=2)
    return ax


def _nodes(x: Array, depth: int) -> Iterator[tuple[int, Array]]:
    yield depth, x
    if isinstance(x, Factored):
        for part in x.parts:
            yield from _nodes(part, depth + 1)


def _node_text(x: Array) -> str:
    return f"{type(x).__name__} {x.shape} · {size_text(x.nbytes)}"


def _draw_thumbnail(ax: Axes, x: Array, left: float, row: int) -> list[int]:
    """Draw the pattern of a part in the square at the beginning of its row; return the kinds that occur."""
    from matplotlib.patches import Rectangle

    m, n = matrix_shape(x)
    height, width = (0.8 * max(k / max(m, n, 1), 0.25) for k in (m, n))
    corner = (left, row + 0.5 - height / 2)
    ax.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=LINE, linewidth=0.8))
    return _draw_pattern(ax, x, CELLS_OF_PART, corner, (width, height))


# ---- flows -----------------------------------------------------------------------------------------------------------


def flow(log: Log, ax: Axes | None = None, *, depth: int | None = None, rows: int = 200) -> Axes:
    """Draw a log: each call with its result, in red if structure was lost.

    Parameters
    ----------
    log : Log
        Log returned by `record` or `explain`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default in a new figure of suitable size.
    depth : int, optional
        Number of levels of inner calls that are drawn (0: none), in addition to densifications; by default all.
    rows : int, default 200
        Largest number of calls that are drawn.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with a box for each line of the printed log, in the same order; inner calls follow their caller, indented.
        The boxes are the patches of the axes.

    Raises
    ------
    ImportError
        If matplotlib is not installed; install the extra ``plot``.
    TypeError
        If `log` is not a `Log`.
    ValueError
        If `rows` is not positive, or `depth` is negative.

    Examples
    --------
    >>> import structarrays as sa
    >>> D = sa.Diagonal([1.0, 2.0, 3.0])
    >>> with sa.record() as log:
    ...     y = sa.sort(D @ D)
    >>> [text.get_text() for text in sa.plot.flow(log).texts]
    ['matmul → Diagonal (3, 3)', 'multiply → Diagonal (3, 3)', 'sort: Diagonal (3, 3) becomes dense, 72 B']
    """
    if not isinstance(log, Log):
        raise TypeError(f"flow: log must be a log of record() or explain(), got {type(log).__name__}")
    if rows < 1:
        raise ValueError(f"flow: rows must be at least 1, got {rows}")
    if depth is not None and depth < 0:
        raise ValueError(f"flow: depth must be at least 0, got {depth}")
    _pyplot()
    from matplotlib.patches import FancyBboxPatch

    lines = [(e, count) for e, count in log.lines() if depth is None or e.depth <= depth or e.densified]
    lines, left = lines[:rows], lines[rows:]
    deepest = math.inf if depth is None else depth + 1  # of a densification inside a call that is not drawn
    boxes = [(min(e.depth, deepest), _event_text(e, count), _event_colour(e)) for e, count in lines]
    if left:
        lost = any(e.densified for e, _ in left)
        boxes.append((0, _said(len(left), "calls"), LOST if lost else DENSE))
    boxes = boxes or [(0, "nothing was recorded", DENSE)]
    widths = [0.6 + _text_width(text, "bold" if colour == LOST else "normal") for _, text, colour in boxes]
    ax, scale = _outline(ax, [level for level, _, _ in boxes], widths)
    for row, (level, text, colour) in enumerate(boxes):
        corner = (level * INDENT + 0.1, row + 0.18)
        box = FancyBboxPatch(
            corner, widths[row] - 0.3, 0.64, boxstyle="round,pad=0.06", facecolor=colour, edgecolor=LINE, linewidth=0.6
        )
        ax.add_patch(box)
        style: dict[str, Any] = {"color": "white", "fontweight": "bold"} if colour == LOST else {"color": "black"}
        ax.text(corner[0] + 0.12, row + 0.5, text, va="center", fontsize=POINTS * scale, **style)
    _legend(ax, {"structured result": KEPT, "dense result": DENSE, "structure is lost": LOST}, columns=2)
    return ax


def _event_text(event: Event, count: int) -> str:
    times = f"  × {count}" if count > 1 else ""
    if event.densified:
        operands = ", ".join(event.operands).replace(" of shape", "")
        return f"{event.function}: {operands} becomes dense, {size_text(event.bytes)}{times}"
    return f"{event.function} → {event.result or 'no array'}{times}"


def _event_colour(event: Event) -> str:
    if event.densified:
        return LOST
    structured = any(not text.startswith("Dense ") for text in event.result.split("), ") if text)
    return KEPT if structured else DENSE
