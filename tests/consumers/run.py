"""Run the Array API tests of another library on this namespace, and compare the failures with the known failures.

    python tests/consumers/run.py array-api-extra
    python tests/consumers/run.py scikit-learn [pytest arguments]
    python tests/consumers/run.py scipy --at-most 220                  # up to 220 tests of each package
    python tests/consumers/run.py scipy --package scipy.signal
    python tests/consumers/run.py scikit-learn --sample                # the sample that the tests of this project run

The exit status is 0 if tests ran and all failures are known, otherwise 1. `known_failures.py` has the cause of each known failure.
"""

import argparse
import json
import sys
from pathlib import Path

from suites import SUITES, run


def main(arguments=None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument(
        "--sample", action="store_true", help="only the sample that is run with the project's own tests"
    )
    parser.add_argument("--at-most", type=int, default=0, metavar="N", help="a fixed part of each package, of N tests")
    parser.add_argument("--package", action="append", metavar="NAME", help="a package or module; may be repeated (all)")
    parser.add_argument(
        "--details", type=Path, metavar="FILE", help="append the outcome of each test, as lines of JSON"
    )
    options, pytest_arguments = parser.parse_known_args(arguments)

    suite = SUITES[options.suite]
    runs, at_most = [[package] for package in options.package or suite.packages], options.at_most
    if options.sample:
        runs, at_most = [suite.sample], suite.sample_size
    status = 0
    for targets in runs:
        outcomes = run(options.suite, targets, pytest_arguments, at_most)
        print(f"{' '.join(targets)}: " + ", ".join(f"{n} {what}" for what, n in outcomes.counts.items()), flush=True)
        unknown = outcomes.unknown(options.suite)
        for record in unknown:
            print(f"  {record['test']}\n    {record['message'].partition(chr(10))[0]}", flush=True)
        if not outcomes.records:
            print(outcomes.output)
        if unknown or not outcomes.records:
            status = 1
        if options.details:
            with options.details.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(record) + "\n" for record in outcomes.records)
    return status


if __name__ == "__main__":
    sys.exit(main())
