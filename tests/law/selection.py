"""Which combinations of function, structures, batch, dtype and mode are tested."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from structarrays.testing import BATCHES, CASES, SIZES, STRUCTURES, VECTORS, Case

MODES = ("eager", "jit", "derivative")
BASE = ("Dense", "Fill", "Identity", "Diagonal", "Banded")
DOUBLE = ("float64", "complex128")


class Combination(NamedTuple):
    """One check of the equivalence tests."""

    structures: tuple[str, ...]
    batch: tuple[tuple[int, ...], ...]
    sizes: int
    dtype: str
    mode: str


def structures_of(case: Case) -> list[tuple[str, ...]]:
    """The structures of the operands of a case, all combinations."""
    choices = []
    for core in case.cores:
        names = STRUCTURES if len(core) == 2 else ("Dense", "Fill")
        if case.elementwise and len(case.operands) > 1 and case.batches == "broadcast":
            names = (*names, *VECTORS)
        choices.append(names)
    # Three conditions or bounds of eleven structures each are too many: the third is of one of the first five.
    choices[2:] = [BASE] * len(choices[2:])
    return list(itertools.product(*choices))


def modes_of(case: Case) -> tuple[str, ...]:
    """How it can be called."""
    if case.eager:
        return ("eager",)
    return MODES if case.smooth and not case.raises and set(case.dtypes) & set(DOUBLE) else MODES[:2]


def smooth(case: Case, structures) -> bool:
    """Whether a case is differentiable for these structures."""
    return not set(structures) & set(case.degenerate)


def everything(case: Case) -> Iterator[Combination]:
    """The full product of structures, batch shapes, dtypes and modes; the sizes take turns."""
    sizes = itertools.cycle(range(len(SIZES)))
    batches = dict.fromkeys(b[: len(case.operands)] for b in BATCHES[case.batches])
    for structures, batch, mode in itertools.product(structures_of(case), batches, modes_of(case)):
        if mode == "derivative" and not smooth(case, structures):
            continue
        dtypes = [d for d in case.dtypes if d in DOUBLE] if mode == "derivative" else case.dtypes
        for dtype in dtypes:
            yield Combination(structures, batch, next(sizes), dtype, mode)


def selection() -> dict[int, list[Combination]]:
    """For each case, by its number, a few combinations.

    Over all cases every pair of function and structure (in each place), function and dtype, function and mode, structure and
    batch occurs. What was used least comes next, so the selection is always the same.
    """
    used: Counter = Counter()

    def least(keys):
        """The key used least so far, the first of them."""
        key = min(keys, key=used.__getitem__)
        used[key] += 1
        return key

    chosen: dict[int, list[Combination]] = {}
    for number, case in enumerate(CASES):
        rows = chosen[number] = []
        tuples = _few(case, used)
        modes = [m for m in modes_of(case) if m != "derivative"]

        def add(structures, mode, dtypes, case=case, rows=rows):
            first = structures[0]
            batch = least([("batch", case.batches, first, b) for b in BATCHES[case.batches]])[-1]
            sizes = least([("sizes", case.name, first, s) for s in range(len(SIZES))])[-1]
            dtype = least([("dtype", case.name, mode == "derivative", d) for d in dtypes])[-1]
            rows.append(Combination(structures, batch[: len(structures)], sizes, dtype, mode))

        for structures in tuples:
            add(structures, least([("mode", case.name, m) for m in modes])[-1], case.dtypes)
        missing = sum(used["dtype", case.name, False, d] == 0 for d in case.dtypes)
        for structures in itertools.islice(itertools.cycle(tuples), missing):
            add(structures, least([("mode", case.name, m) for m in modes])[-1], case.dtypes)
        if "derivative" in modes_of(case):
            candidates = [t for t in tuples if smooth(case, t)]
            for _ in range(2):
                structures = least([("derivative", case.name, t) for t in candidates])[-1]
                add(structures, "derivative", [d for d in case.dtypes if d in DOUBLE])
    return chosen


def _few(case: Case, used: Counter) -> list[tuple[str, ...]]:
    """Structures for a case. All of one operand; of several, those not seen yet with this function and arity, in which each of the
    first five meets each, and every other one some."""
    tuples = structures_of(case)
    if len(case.operands) == 1:
        wanted = tuples if case.name.startswith("linalg.") or used["few", case.name] < 3 else tuples[:5]
        used["few", case.name] += 1
        if case.raises:
            wanted = wanted[:: max(1, len(wanted) // 3)]
        return wanted
    kind = ("few", case.name.removeprefix("linalg."), len(case.operands), case.cores)
    used[kind] += 1
    if used[kind] == 1 and not (set(case.name) & set("+-*/%&|^<>=")):
        result = [t for t in tuples if set(t) <= set(BASE)] if len(case.operands) == 2 else []
    else:
        result = []
    places: Counter = Counter((i, s) for t in result for i, s in enumerate(t))
    for t in tuples[(used[kind] * 7) % 11 :: 7] + tuples:
        if any(places[i, s] == 0 for i, s in enumerate(t)):
            result.append(t)
            places.update(enumerate(t))
    return result if not case.raises else result[:3]
