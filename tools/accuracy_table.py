"""Measure backward errors of every structure and function of `linalg` on hard matrices, relative to LAPACK's: writes docs/design/accuracy.md.

::

    python tools/accuracy_table.py                                      # measure all and write the page: almost an hour on one core
    python tools/accuracy_table.py --structures Sum Block               # measure these and print the cells above the bar
    python tools/accuracy_table.py --functions solve --dtypes float32

The matrices come from `tests/hard_inputs.py`, and the errors from `tests/backward_errors.py`.
"""

import argparse
import itertools
import json
import sys
import zlib
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "design" / "accuracy.md"
sys.path.insert(0, str(ROOT / "tests"))

from backward_errors import (  # noqa: E402
    BY_PARTS,
    FACTOR,
    FUNCTIONS,
    Problem,
    applies,
    bar,
    lapacks_error,
    lapacks_inverse,
    our_error,
)
from hard_inputs import MATRICES, SINGULAR, twisted, with_dtype  # noqa: E402

import structarrays as sa  # noqa: E402

BITS = {"64": ("float64", "complex128"), "32": ("complex64", "float32")}
DTYPES = BITS["64"][:1] + BITS["32"] + BITS["64"][1:]
FAMILIES = MATRICES | SINGULAR


class Result(NamedTuple):
    """One call: the ratio of its error to LAPACK's, or why it has none."""

    family: str
    dtype: str
    function: str
    mode: str
    ratio: float | str

    @property
    def structure(self) -> str:
        return self.family.partition(":")[0]

    @property
    def is_too_large(self) -> bool:
        return not isinstance(self.ratio, str) and self.ratio > bar(self.structure, self.function)


def matrix(family, dtype):
    """The matrix of a family with a data type; None if there is none."""
    rng = np.random.default_rng(zlib.crc32(family.encode()))
    x = FAMILIES[family](rng)
    if np.dtype(dtype).kind == "c":
        x = twisted(x) if x.dtype.kind == "f" else x
    elif x.dtype.kind == "c":
        return None
    return with_dtype(x, np.empty(0, dtype).real.dtype)


def dense(x):
    """The dense form, with one rounding error in each element. The elements of an `Inverse` use double precision if possible."""
    return np.asarray(with_dtype(x, np.float64)).astype(x.dtype)


def computed(x):
    """The matrix that LAPACK computes from the parameters of an `Inverse`: the inverse of the inner matrix. Otherwise None."""
    return lapacks_inverse(np.asarray(x.a)) if isinstance(x, sa.Inverse) else None


def measure(families=tuple(FAMILIES), functions=tuple(FUNCTIONS), dtypes=DTYPES, modes=("eager", "jit")):
    """Yield a result for each matrix, function and mode for which LAPACK has a finite result."""
    compiled = {name: jax.jit(FUNCTIONS[name].ours) for name in functions}
    for family in families:
        for dtype in dtypes:
            x = matrix(family, dtype)
            if x is None:
                continue
            p = Problem(dense(x), np.random.default_rng(zlib.crc32(family.encode()) + 1))
            for name in functions:
                function = FUNCTIONS[name]
                if (family in SINGULAR and function.matrix in ("regular", "definite", "lower")) or not applies(
                    function, p
                ):
                    continue
                yardstick = lapacks_error(function, p, computed(x))
                if yardstick is None:
                    continue
                for mode in modes:
                    error = our_error(function, function.ours if mode == "eager" else compiled[name], x, p)
                    yield Result(family, dtype, name, mode, error if isinstance(error, str) else error / yardstick)
        jax.clear_caches()


# ---- the page ----------------------------------------------------------------------------------------------------------

INTRODUCTION = f"""\
# How accurate each function is

The tables have the largest backward error of each structure and function on [hard matrices](#the-matrices), relative to LAPACK's error on
the dense form. The bar is {FACTOR}. This command measures them and writes this page:

```sh
python tools/accuracy_table.py
```

The **backward error** says how large a change of the matrix, relative to its norm, makes the returned result exact. It does not depend on
the condition number. Residuals are computed in extended precision. An error of LAPACK below one rounding error counts as one. A number is the
largest one of all matrices of that structure, of eager calls and of calls under `jit`. An empty cell means that the structure has no
matrix that the function takes (`cholesky` of an indefinite matrix), or that LAPACK has no finite result for it. A † marks a cell with a call
that [refused](#what-is-refused) a matrix that LAPACK accepts.

- **Assumptions**: `solve, definite` and the like are calls with `sa.assume(x, "positive_definite")`.
- **Pairs**: `lu_factor, lu_solve` are two calls in turn, and so are `cho_factor, cho_solve`.
- **Determinants**: the change of the logarithm, relative to the sum of the reciprocal singular values times the largest singular value.
  A determinant that is less than the smallest normal number may be zero.
- **Singular values and eigenvalues alone**: the difference from LAPACK's values in double precision, relative to the largest value.
  LAPACK's error is the error of its whole decomposition.
- **`selected_inverse`**: the error in the elements, relative to the condition number and to the largest element, exact or computed.
- **Results of parts**: a `Product` is solved factor by factor, and its determinant is the product of determinants. A product with an
  `Inverse` is a linear system. The inverse of a `Sum` is the inverse of its base plus a matrix of low rank. Errors are relative to the norms
  of the parts, so the bar of these cells is {FACTOR * BY_PARTS}.
- **Not in the tables**: functions of parameters (`solve_banded`, `solveh_banded`, `cholesky_banded`, `cho_solve_banded`,
  `solve_toeplitz`, `solve_circulant`, `matmul_toeplitz`) run the kernels of `solve`, `cholesky` and `matmul`. `compress` has a tolerance as
  an argument. `outer`, `cross` and `vector_norm` take vectors. `matrix_transpose` computes nothing.
"""


def number(ratio: float) -> str:
    """The text of a ratio in the tables."""
    return f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:.0e}"


def tables(results: list[Result]) -> str:
    """The largest ratios of each function and structure, with 64 and with 32 bits."""
    structures = list(dict.fromkeys(name.partition(":")[0] for name in FAMILIES))
    lines = []
    for bits, dtypes in BITS.items():
        worst, refused = defaultdict(float), set()
        for r in results:
            if r.dtype in dtypes:
                if isinstance(r.ratio, str):
                    refused.add((r.function, r.structure))
                else:
                    worst[r.function, r.structure] = max(worst[r.function, r.structure], r.ratio)
        counts = Counter(r.dtype for r in results if r.dtype in dtypes)
        measured = ", ".join(f"{counts[d]:,} calls in `{d}`" for d in dtypes if counts[d])
        lines += [
            f"## {bits} bits",
            "",
            f"Measured: {measured or 'nothing'}.",
            "",
            "| | " + " | ".join(structures) + " |",
            "|---" * (len(structures) + 1) + "|",
        ]
        for function in FUNCTIONS:
            cells = []
            for s in structures:
                key = (function, s)
                cells.append((number(worst[key]) if key in worst else "") + ("†" if key in refused else ""))
            lines.append(f"| {function} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def kinds(results: list[Result]) -> dict[tuple[str, str, str], list[Result]]:
    """The calls without a result, by structure and by the outcomes of the eager and the compiled call."""
    outcomes = defaultdict(dict)
    for r in results:
        outcomes[r.family, r.dtype, r.function][r.mode] = r.ratio if isinstance(r.ratio, str) else "a result"
    found = defaultdict(list)
    for r in results:
        if isinstance(r.ratio, str):
            of = outcomes[r.family, r.dtype, r.function]
            found[r.structure, of.get("eager", ""), of.get("jit", "")].append(r)
    return found


def refusals(results: list[Result]) -> str:
    """A row for each kind of call that has no result although LAPACK has one."""
    found = kinds(results)
    count = sum(map(len, found.values()))
    lines = [
        "## What is refused",
        "",
        f"{count:,} of {len(results):,} calls raise, or give NaN under `jit`, where LAPACK has a result.",
        "",
        "| structure | eager | under `jit` | functions | matrices | data types |",
        "|---|---|---|---|---|---|",
    ]
    for (structure, eager, jit), calls in found.items():
        functions = ", ".join(f"`{f}`" for f in dict.fromkeys(r.function for r in calls))
        names = "; ".join(dict.fromkeys(r.family.partition(": ")[2] for r in calls))
        dtypes = ", ".join(d for d in DTYPES if d in {r.dtype for r in calls})
        lines.append(f"| {structure} | {eager} | {jit} | {functions} | {names} | {dtypes} |")
    return "\n".join(lines) + "\n"


def matrices() -> str:
    """The matrices of `tests/hard_inputs.py` by structure."""
    lines = ["## The matrices", "", "| structure | matrices | rows |", "|---|---|---|"]
    grouped, rows = defaultdict(list), defaultdict(set)
    for name, make in FAMILIES.items():
        structure, _, what = name.partition(": ")
        grouped[structure].append(what + (" (singular)" if name in SINGULAR else ""))
        rows[structure].add(make(np.random.default_rng(0)).shape[0])
    lines += [f"| {s} | {'; '.join(grouped[s])} | {', '.join(map(str, sorted(rows[s])))} |" for s in grouped]
    return "\n".join(lines) + "\n"


def page(results: list[Result]) -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, tables(results), refusals(results), matrices()])


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--structures", nargs="+", help="measure only these, and write no page")
    parser.add_argument(
        "--functions", nargs="+", default=tuple(FUNCTIONS), help="measure only these, and write no page"
    )
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument(
        "--results", type=Path, help="a file that results are appended to: a run goes on where another ended"
    )
    parser.add_argument(
        "--page", action="store_true", help="measure nothing, and write the page of the results in the file"
    )
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    families = [n for n in FAMILIES if not arguments.structures or n.partition(":")[0] in arguments.structures]
    file = arguments.results
    known = [Result(*json.loads(line)) for line in file.open()] if file and file.exists() else []
    some = arguments.structures or set(arguments.functions) != set(FUNCTIONS)
    done = set() if some else {(r.family, r.dtype) for r in known}
    for dtype, family in itertools.product(arguments.dtypes, families):
        if arguments.page or (family, dtype) in done:
            continue
        found = list(measure([family], arguments.functions, [dtype]))
        for r in found:
            if r.is_too_large:
                print(*r, flush=True)
        known += found
        if file:
            with file.open("a") as lines:
                lines.writelines(json.dumps(r) + "\n" for r in found)
    results = list({r[:-1]: r for r in known}.values())
    for what, calls in kinds(results).items():
        print(f"refused {len(calls)} times: {', '.join(what)}")
    print(f"{len(results)} results, {sum(r.is_too_large for r in results)} above the bar")
    if arguments.page or (not some and set(arguments.dtypes) == set(DTYPES)):
        PAGE.write_text(page(results), encoding="utf-8")
    return any(r.is_too_large for r in results)


if __name__ == "__main__":
    sys.exit(main())
