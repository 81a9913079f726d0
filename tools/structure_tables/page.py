"""The page of `docs/structures/results.md`, which shows the file of results."""

from __future__ import annotations

from pathlib import Path

from .matrices import OTHERS, SIZE, STRUCTURES

FILE = Path(__file__).parents[2] / "docs" / "structures" / "results.md"

TEXT = """\
# What structure does a result have?

Choose a function and its operands. The table shows the structure of the result, and whether an operand becomes dense.
A sum has the narrowest structure that holds both operands. An elementwise product has the structure that both have in common.
A function without a rule uses the dense form, under the [policy](../design/semantics.md#structure-is-never-lost-in-silence).

<!-- form: begin -->

<form id="structure-results" data-file="../results.json">
<div class="filters">
<label>Function or code <input type="search" name="function" placeholder="solve, A @ B, …"></label>
<label>First structure (A) <select name="first">
<option value="">any</option>
{first}
</select></label>
<label>Second structure (B) <select name="second">
<option value="">any</option>
<option value="none">no second operand</option>
{second}
</select></label>
<label><input type="checkbox" name="structured" id="structured=1"> code of JAX through structured()</label>
</div>
<output aria-live="polite">Loading the results …</output>
<table>
<thead><tr><th>Function</th><th>Operands</th><th>Result</th><th>How</th></tr></thead>
<tbody></tbody>
</table>
<noscript>This table needs JavaScript. <a href="../results.json">The JSON file</a> has all results.</noscript>
</form>

<!-- form: end -->

`sa.explain(f, *args)` answers the same question for your own arrays:

```python
import structarrays as sa

T = sa.tridiagonal([1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0])
D = sa.Diagonal([1.0, 2.0, 3.0])
calls = [(sa.add, (T, D)), (sa.multiply, (T, D)), (sa.exp, (D,)), (sa.sum, (T,)), (sa.sort, (T,))]
for function, args in calls:
    log = sa.explain(function, *args)
    print(function.__name__, log.events[0].result, len(log.densifications))
```

```text
add Banded (3, 3) 0
multiply Diagonal (3, 3) 0
exp Diagonal + background (3, 3) 0
sum Dense () 0
sort Dense of shape (3, 3) 1
```

## How to read the table

| cell | meaning |
|---|---|
| a class | the class of the result; commas separate the arrays of a tuple |
| `… + background` | the elements that are not stored share one value: `exp` of a diagonal matrix is 1 off the diagonal |
| `Dense` | a dense array: a vector, a number, or a matrix that has no structure |
| `jax.Array` | the dense result of code that runs through [`structured`](../how_to/run_jax_code.md) |
| `raises …` | the function does not accept these operands |
| how: dense form | a structured operand is made dense on the way; the policy of `sa.densify` allows, reports or forbids that |
| how: – | no operand becomes dense; `sa.explain` names the kernels |

The table shows matrices of {size:,} rows without batch dimensions, after `import structarrays as sa`. The elements are real where
the function accepts real numbers. `vector` has {size:,} elements, `three columns` is a dense matrix, `number` is a 0-d array.
`Banded` is tridiagonal. All pairs of structures are shown for `+`, `*` and `@`.
Code of JAX is left out if its result depends on the version of JAX. All results are in [one JSON file](results.json).

## The rules behind it

- **Structure is static.** It follows from classes, shapes and static arguments, never from values.
  The sum of a diagonal matrix and a dense matrix of zeros is dense.
- **Sparse and Permutation** are shown with the results of eager calls. Under `jit`, the number of stored entries must be known,
  and some of these results are dense.
- **Batch dimensions** do not change a structure. A reduction over batch axes, such as `sum(x, axis=0)` of a batch, keeps every structure.
- **Small matrices** may have a dense result where a large one has structure.
  The inverse of a banded matrix is dense below 256 rows, and an [`Inverse`](inverse.md) from 256 rows on.
  A `Sparse` result that would store more than half of the elements is dense.
- **Functions of one array** apply to the stored elements. If f(0) ≠ 0, the other elements become a background.
- **Functions of two arrays** join both structures, as `+` does: `maximum`, `less`, `hypot`. Where a structural zero decides the result,
  the function keeps the narrower structure, as `*` does: `logical_and`, `bitwise_and`. A quotient has the structure of its numerator.
  See [strong zeros](../design/semantics.md#strong-zeros).
- **Writing** changes the class of the array to the narrowest structure that holds old and new elements.
- **Data-dependent errors**, such as `LinAlgError` for a singular matrix, are not shown, except for `Sparse` and `Permutation`.

[Which solver runs](../reference/solvers.md) has the algorithms and their costs;
the [page of each structure](index.md) has the costs of its operations.
"""


def _option(prefix: str, name: str) -> str:
    """An option, with an anchor for links to the page if its name is one word."""
    anchor = f' id="{prefix}={name}"' if name.isalpha() else ""
    return f'<option value="{name}"{anchor}>{name}</option>'


def text() -> str:
    """The whole page."""
    return TEXT.format(
        size=SIZE,
        first="\n".join(_option("first", name) for name in STRUCTURES),
        second="\n".join(_option("second", name) for name in (*OTHERS, *STRUCTURES)),
    )
