"""Comparison of the times of two runs of the benchmarks, row by row."""

import statistics
from collections.abc import Iterable, Iterator

from harness import OURS, duration

LIMIT = 1.3
"""Rows that take more than this many times as long in one of the runs are printed."""

Minima = dict[tuple[str, str], float]
"""Seconds by case and candidate."""

Row = tuple[str, str, float, float, float | None]
"""Case, candidate, both times and, for our candidates, the ratio of the peers (second over first)."""


def minima(cases: Iterable[dict]) -> Minima:
    """Return the minima of the cases of a JSON file of the benchmarks."""
    best: Minima = {}
    for case in cases:
        found = case.get("seconds", {})
        if isinstance(found, list):  # growth with the size
            found = {f"{OURS}, n = {n}": {"minimum": t} for n, t in zip(case["sizes"], found, strict=True)}
        for candidate, timing in found.items():
            key = case["case"], candidate
            best[key] = min(timing["minimum"], best.get(key, float("inf")))
    return best


def rows(first: Minima, second: Minima) -> Iterator[Row]:
    """Iterate over the rows of our candidates in both runs."""
    for case, candidate in sorted(first.keys() & second.keys()):
        if OURS not in candidate:
            continue
        peers = [
            second[key] / first[key] for key in first.keys() & second.keys() if key[0] == case and OURS not in key[1]
        ]
        times = first[case, candidate], second[case, candidate]
        yield case, candidate, *times, statistics.median(peers) if peers else None


def show(row: Row) -> None:
    """Print a row: the ratio, both times and what they belong to."""
    case, candidate, first, second, peers = row
    note = f"peers {peers:.2f}" if peers else "no peers"
    print(
        f"  {second / first:6.2f}  {duration(first):>9} {duration(second):>9}  {case}: {candidate} ({note})", flush=True
    )
