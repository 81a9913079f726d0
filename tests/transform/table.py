"""Which functions of JAX keep which structures under `structured`: the table in the documentation.

PYTHONPATH=tests/transform python -m table > docs/structured_table.md
"""

import functools
import warnings

import jax
from checking import CORE, REQUIRES
from functions import FUNCTIONS, SECTIONS, function

import structarrays as sa
from structarrays._core.array.base import Array
from structarrays.testing import sample

STRUCTURES = (
    "Diagonal", "Banded", "BlockDiagonal", "Sparse", "Toeplitz", "Triangular", "Symmetric", "Permutation", "LowRank",
    "Kronecker", "Sum", "Fill",
)  # fmt: skip
TITLES = {
    "": "Of any matrix",
    "square": "Of a square matrix",
    "invertible": "Of an invertible matrix",
    "positive definite": "Of a positive definite matrix",
}
HEAD = """# What `structured` keeps

What comes out of functions and idioms of JAX under `sa.structured`, for a matrix `A` of twelve structures and a vector `x`. This page is
generated (`tests/transform/table.py`), and a test compares samples of it with what happens.

* A **name** is the structure of the result, of the first one if there are several; behind it, a plus stands for a background, the value of
  all elements that are not stored.
* `·` says that the result is a dense array and nothing was expanded for it: a vector, a number, a product with a dense factor.
* `dense` says that the matrix was expanded, under the policy of `sa.densify`.
* An empty cell says that the structure has no such matrix, or that the function does not take its shape.

The matrices have 16 rows, so a structure that stores as much as its dense form (`Triangular`), or half as much (`LowRank`, after a sum), is
given up earlier than a large one would be.
"""


@functools.cache
def operand(structure, section):
    """A matrix of the structure for a section of the functions, or None."""
    m, n = CORE[section]
    large = (4 * m, 4 * n)
    given = sample(structure, large, requires=REQUIRES[section], seed=1)
    return (
        given if given is not None or m == n else sample(structure, (4 * m, 4 * m), requires=REQUIRES[section], seed=1)
    )


def cell(expression, structure) -> str:
    """What the table says."""
    A = operand(structure, FUNCTIONS[expression])
    if A is None:
        return ""
    x = jax.ShapeDtypeStruct((A.shape[-1],), "float64")
    with sa.record() as log, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = jax.eval_shape(sa.structured(function(expression)), A, x)
        except (TypeError, ValueError):  # the expression has a shape of its own in it
            return ""
    first = next(iter(jax.tree.leaves(result, is_leaf=lambda v: isinstance(v, Array))), None)
    if isinstance(first, Array):
        name = type(first).__name__
        return name + (" +" if first.stores_entries and first.background is not None and not first.covers else "")
    return "dense" if log.densifications else "·"


def rows(section):
    """The lines of one section."""
    for expression, own in FUNCTIONS.items():
        if own == section:
            cells = [cell(expression, structure) for structure in STRUCTURES]
            if any(cells):
                yield f"| `{escaped(expression)}` | " + " | ".join(cells) + " |"


def escaped(expression: str) -> str:
    """An expression as it stands in a table."""
    return expression.replace("|", chr(92) + "|")


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    for section in SECTIONS:
        lines += [
            f"## {TITLES[section]}",
            "",
            "| | " + " | ".join(STRUCTURES) + " |",
            "|---" * (len(STRUCTURES) + 1) + "|",
        ]
        lines += [*rows(section), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page().rstrip())
