"""Compare the times of two environments row by row: `python benchmarks/versions.py PYTHON PYTHON [--only NAME] [--quick]`.

Each part of the benchmarks runs in both environments alternately, and each row keeps its minimum. The program prints
rows that take more than 1.3 times as long in one environment, with the same ratio of their peers. If the ratio of the
peers is large, too, the machine or the versions of the peers differ.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness import OURS, duration
from run import ALONE, PARTS

HERE = Path(__file__).resolve().parent
LIMIT = 1.3

Minima = dict[tuple[str, str], float]
"""Seconds by case and candidate."""


def measure(python: str, part: str, quick: bool) -> tuple[str, Minima]:
    """Run one part with an interpreter, and return the version of JAX and the minima."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        command = [python, str(HERE / "run.py"), "--only", part, "--json", str(file), *(["--quick"] if quick else [])]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"JAX_PLATFORMS": "cpu"})
        results = json.loads(file.read_text(encoding="utf-8"))
    minima: Minima = {}
    for case in results["cases"]:
        found = case.get("seconds", {})
        if isinstance(found, list):  # growth with the size
            found = {f"{OURS}, n = {n}": {"minimum": t} for n, t in zip(case["sizes"], found, strict=True)}
        for candidate, timing in found.items():
            key = case["case"], candidate
            minima[key] = min(timing["minimum"], minima.get(key, float("inf")))
    return f"JAX {results['environment']['jax']}", minima


def rows(first: Minima, second: Minima) -> Iterator[tuple[str, str, float, float, float | None]]:
    """Iterate over case, candidate, both times and, for our candidates, the ratio of the peers (second over first)."""
    for case, candidate in sorted(first.keys() & second.keys()):
        if OURS not in candidate:
            continue
        peers = [
            second[key] / first[key] for key in first.keys() & second.keys() if key[0] == case and OURS not in key[1]
        ]
        times = first[case, candidate], second[case, candidate]
        yield case, candidate, *times, statistics.median(peers) if peers else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", nargs=2, help="the two interpreters")
    parser.add_argument("--only", choices=PARTS, action="append", help="run this part (may be repeated)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    parser.add_argument("--repeat", type=int, default=2, help="number of runs of each part in each environment")
    parser.add_argument("--all", action="store_true", help="print every row")
    arguments = parser.parse_args()

    for part in arguments.only or [part for part in PARTS if part not in ALONE]:
        best: list[Minima] = [{}, {}]
        names = ["", ""]
        for turn in range(arguments.repeat):
            for i in (0, 1) if turn % 2 == 0 else (1, 0):
                names[i], minima = measure(arguments.python[i], part, arguments.quick)
                for key, seconds in minima.items():
                    best[i][key] = min(seconds, best[i].get(key, seconds))
        compared = list(rows(*best))
        print(f"\n== {part}: {len(compared)} rows, {names[1]} over {names[0]} ==", flush=True)
        for case, candidate, a, b, peers in compared:
            if arguments.all or max(a / b, b / a) > LIMIT:
                note = f"peers {peers:.2f}" if peers else "no peers"
                print(f"  {b / a:6.2f}  {duration(a):>9} {duration(b):>9}  {case}: {candidate} ({note})", flush=True)


if __name__ == "__main__":
    main()
