"""The page on two structures at once: sums, elementwise products and matrix products, generated from the registry.

python -m structarrays.testing.pairs        # writes docs/pairs.md
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import jax

from .._core.array.flattening import dynamic_classes
from .._core.dispatch.recording import explain, record
from .._functions.elementwise import add, multiply
from .._functions.linear_algebra import matmul
from . import STRUCTURES
from .arrays import sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.array.base import Array

SIZE = 12
"""The matrices are of this size: large enough that a sum of few blocks or entries is not dense yet."""

INTRODUCTION = """\
# Two structures at once

Made by `python -m structarrays.testing.pairs` from what `sa.explain` says of 12 × 12 matrices, and compared with the
code by a test. Rows are the first operand, columns the second. *densifies* means that the result is `Dense`, or a dense
copy is made on the way, although neither operand is; it counts under the
[policy](semantics.md#structure-is-never-lost-in-silence). What `Sparse` and `Permutation` give is
that of eager calls; under `jit`, where the number of entries must be known, a product of two sparse matrices can be dense.
"""

SECTIONS = (
    (
        add,
        "The join: `x1 + x2`",
        "The narrowest structure that holds both: of every elementwise function in which no structural zero absorbs.",
    ),
    (
        multiply,
        "The narrower structure: `x1 * x2`",
        "A structural zero absorbs, so the product stores what both store.",
    ),
    (matmul, "Matrix products: `x1 @ x2`", ""),
)


def names() -> list[str]:
    """The structures of the table: all variants that the tests of the law know, without stored backgrounds."""
    return [s for s in STRUCTURES if not s.endswith("background")]


def _drawn(structure: str, seed: int) -> Array:
    """A real array, or a complex one where there is no other."""
    x = sample(structure, (SIZE, SIZE), seed=seed)
    return cast("Array", sample(structure, (SIZE, SIZE), seed=seed, dtype="complex128")) if x is None else x


def cell(function: Callable[..., Any], first: str, second: str) -> str:
    """What comes out for two structures.

    Examples
    --------
    >>> import structarrays as sa
    >>> from structarrays.testing.pairs import cell
    >>> cell(sa.add, "Diagonal", "Banded")
    'Banded'
    """
    x1, x2 = _drawn(first, 0), _drawn(second, 1)
    if {type(x1), type(x2)} & dynamic_classes:
        with record() as log:
            log.result = function(x1, x2)
    else:
        log = explain(function, x1, x2)
    if log.densifications and "Dense" not in (first, second):
        return "densifies"
    background = " + background" if log.result.stores_entries and log.result.background is not None else ""
    return type(log.result).__name__ + background


def page(cell: Callable[[Callable[..., Any], str, str], str] = cell) -> str:
    """The generated page, with the outcomes that `cell` gives for a function and two structures."""
    lines = [INTRODUCTION]
    for function, title, text in SECTIONS:
        lines += [f"## {title}", "", *([text, ""] if text else [])]
        lines += ["| | " + " | ".join(names()) + " |", "|---" * (len(names()) + 1) + "|"]
        for first in names():
            lines.append(f"| **{first}** | " + " | ".join(cell(function, first, second) for second in names()) + " |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Write the page."""
    jax.config.update("jax_enable_x64", True)
    Path("docs/pairs.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
