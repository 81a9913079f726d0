"""The equivalence tests: what a function gives for structured arrays is what it gives for their dense values.

By default a part runs, for minutes. The selection of combinations lets every function meet every structure. The part is one in 25 of
them, one in 8 for the first five structures, and a derivative of each function. A run of a part of all tests checks an eighth of it.
``--law pairs`` runs the whole selection. The full product of functions, structures, batch shapes, dtypes and modes::

    python -m pytest tests/law/test_law.py --law full

is millions of checks, which take days: ``-k solve`` is a part of it, and ``--law 100`` draws a hundred of each case, others in each run.
The uses of functions are listed in `structarrays.testing`; the oracle is NumPy.
"""

import functools
import random

import jax
import pytest
from selection import BASE, DOUBLE, everything, modes_of, selection, structures_of

from structarrays.testing import (
    BATCHES,
    CASES,
    SIZES,
    STRUCTURES,
    EquivalenceError,
    applies,
    check_equivalence,
    operands,
)

SELECTION = selection()


@functools.cache
def derivatives():
    """For each function the first derivative of it that can be checked."""
    first = {}
    for number, rows in SELECTION.items():
        for c in rows:
            if c.mode == "derivative" and CASES[number].name not in first and arrays_of(number, c) is not None:
                first[CASES[number].name] = c
    return first


def combinations(number, extent, narrow=False):
    """The combinations of a case that are checked. With `narrow` a part is an eighth as large."""
    if extent == "pairs":
        return SELECTION[number]
    if extent == "part":
        rows, factor = SELECTION[number], 8 if narrow else 1
        share = [factor * (8 if set(c.structures) <= set(BASE) else 25) for c in rows]
        derivative = derivatives().get(CASES[number].name)
        part = [c for i, c in enumerate(rows) if (i + number) % share[i] == 0 or c is derivative]
        if any(arrays_of(number, c) is not None for c in part):
            return part
        # Some have no operands, and `given` holds for few: a case is not left without a check because the part has none.
        return [c for c in rows if arrays_of(number, c) is not None][: 1 if narrow else None]
    if extent == "full":
        return everything(CASES[number])
    combinations = list(everything(CASES[number]))
    return random.sample(combinations, min(int(extent), len(combinations)))


def arrays_of(number, combination):
    """The operands of a combination; None where it has none, or where its case makes no sense for them."""
    structures, batch, sizes, dtype, _ = combination
    arrays = operands(CASES[number], structures, batch=batch, sizes=SIZES[sizes], dtype=dtype)
    return arrays if arrays is not None and applies(CASES[number], arrays) else None


@pytest.mark.each_parameter
@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{i}-{c.name}" for i, c in enumerate(CASES)])
def test_law(number, request):
    case = CASES[number]
    broken, checked = [], 0
    narrow = request.config.getoption("--parameters", default="each") == "part"
    for combination in combinations(number, request.config.getoption("--law", default="part"), narrow):
        structures, batch, sizes, dtype, mode = combination
        arrays = arrays_of(number, combination)
        if arrays is None:
            continue
        checked += 1
        direction = None
        if mode == "derivative" and case.requires:
            direction = operands(case, structures, batch=batch, sizes=SIZES[sizes], dtype=dtype, seed=1)
        try:
            check_equivalence(case, arrays, jit=mode == "jit", derivative=mode == "derivative", direction=direction)
        except EquivalenceError as error:
            shapes = " and ".join(f"{s} {a.shape}" for s, a in zip(structures, arrays, strict=True))
            broken.append(f"{shapes}, {dtype}, {mode}: {error}")
        if checked % 200 == 0:
            jax.clear_caches()
    assert checked or case.given, "no operands for this case"
    if broken:
        pytest.fail(f"{case.code}: {len(broken)} of {checked} combinations\n" + "\n".join(broken), pytrace=False)


def test_the_selection_covers_pairs():
    functions = {}
    structure_batch = set()
    for number, rows in SELECTION.items():
        case = CASES[number]
        seen = functions.setdefault(case.name, {"structure": set(), "dtype": set(), "mode": set()})
        for row in rows:
            seen["structure"] |= {(i, s) for i, s in enumerate(row.structures)}
            seen["dtype"].add(row.dtype)
            seen["mode"].add(row.mode)
            structure_batch.add((row.structures[0], row.batch[0]))
    for number, case in enumerate(CASES):
        if case.raises and not SELECTION[number]:
            continue
        seen = functions[case.name]
        wanted = {(i, s) for t in structures_of(case) for i, s in enumerate(t) if s in STRUCTURES}
        assert case.raises or seen["structure"] >= wanted, case
        assert seen["dtype"] >= set(case.dtypes), case
        assert seen["mode"] >= set(modes_of(case)), case
    batches = {b[0] for b in BATCHES["broadcast"]}
    assert structure_batch >= {(s, b) for s in STRUCTURES for b in batches}


def test_the_first_five_structures_meet_in_every_function_of_two_matrices():
    met = {}
    for number, rows in SELECTION.items():
        case = CASES[number]
        if len(case.operands) == 2 and all(len(c) == 2 for c in case.cores):
            met.setdefault(case.name.removeprefix("linalg."), set()).update(r.structures for r in rows)
    functions = [name for name in met if name.replace("_", "").isalnum()]
    assert len(functions) > 30
    for name in functions:
        assert met[name] >= {(a, b) for a in BASE for b in BASE}, name


def test_derivatives_are_checked_in_double_precision():
    assert all(r.dtype in DOUBLE for rows in SELECTION.values() for r in rows if r.mode == "derivative")
