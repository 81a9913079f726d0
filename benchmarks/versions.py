"""Compare the times of two environments row by row: `python benchmarks/versions.py PYTHON PYTHON [--only NAME] [--quick]`.

Each part of the benchmarks runs in both environments alternately, and each row keeps its minimum. The program prints
rows that take more than 1.3 times as long in one environment, with the same ratio of their peers. If the ratio of the
peers is large, too, the machine or the versions of the peers differ.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

from comparison import LIMIT, Minima, minima, rows, show
from run import ALONE, PARTS

HERE = Path(__file__).resolve().parent


def measure(python: str, part: str, quick: bool) -> tuple[str, Minima]:
    """Run one part with an interpreter, and return the version of JAX and the minima."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        command = [python, str(HERE / "run.py"), "--only", part, "--json", str(file), *(["--quick"] if quick else [])]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"JAX_PLATFORMS": "cpu"})
        results = json.loads(file.read_text(encoding="utf-8"))
    return f"JAX {results['environment']['jax']}", minima(results["cases"])


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
                names[i], found = measure(arguments.python[i], part, arguments.quick)
                for key, seconds in found.items():
                    best[i][key] = min(seconds, best[i].get(key, seconds))
        compared = list(rows(*best))
        print(f"\n== {part}: {len(compared)} rows, {names[1]} over {names[0]} ==", flush=True)
        for row in compared:
            _, _, a, b, _ = row
            if arguments.all or max(a / b, b / a) > LIMIT:
                show(row)


if __name__ == "__main__":
    main()
