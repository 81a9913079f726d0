"""Run the official, unmodified Array API test suite (https://github.com/data-apis/array-api-tests).

    python array_api_tests_config/run.py [--max-examples N] [--seed S]... [--structure NAME]... [-k EXPR] [-n WORKERS]
                                         [pytest arguments]

With ``--structure`` the suite draws arrays of that structure: a name of the namespace, ``module:Class``, or ``all``.

The suite is not part of this repository. The program searches for it at ``ARRAY_API_TESTS_DIR``, then at
``~/.cache/structarrays/array-api-tests``. The exit status is 0 if, with every seed, every test passed or was skipped by
the suite itself; 1 if not; 2 if the suite is missing. See the README in this directory.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parent.parent
SUITE_COMMIT = "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
"""Commit of the suite for the results in the documentation."""
API_VERSION = "2025.12"


def suite_directory():
    """Return the directory of the suite."""
    return Path(os.environ.get("ARRAY_API_TESTS_DIR") or "~/.cache/structarrays/array-api-tests").expanduser()


def how_to_get(suite):
    """Return the commands that fetch the suite and the specification (its submodule, at the pinned commit)."""
    return f"""\
    git clone https://github.com/data-apis/array-api-tests {suite}
    git clone https://github.com/data-apis/array-api {suite}/array-api
    git -C {suite} checkout {SUITE_COMMIT}
    git -C {suite}/array-api checkout "$(git -C {suite} rev-parse HEAD:array-api)"
"""


def why_absent(suite):
    """Return an error message if the suite or its specification is missing, otherwise None."""
    if not (suite / "array_api_tests").is_dir():
        return f"The official suite is not at {suite}."
    if not (suite / "array-api" / "spec").is_dir():
        return f"The suite at {suite} lacks its submodule, the specification (the folder array-api)."
    return None


def why_altered(suite):
    """Return an error message if the suite is modified, otherwise None."""
    for name in ("skips.txt", "xfails.txt"):  # the suite applies these files if they exist
        if (suite / name).exists():
            return f"{suite / name} would make the suite skip tests."
    status = git(suite, "status", "--porcelain")
    if status:
        return f"The suite at {suite} has changes, or its array-api is not at the commit that it pins:\n{status}"
    return None


def git(suite, *command):
    """Return the output of a git command; empty if the suite is not a checkout (an unpacked archive, say)."""
    if not (suite / ".git").exists():
        return ""
    return subprocess.run(["git", "-C", suite, *command], check=True, capture_output=True, text=True).stdout.rstrip()


def parse(arguments):
    """Return the options of this program, and the arguments for pytest."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--max-examples", type=int, default=20, metavar="N", help="hypothesis examples for each test (20)"
    )
    parser.add_argument(
        "--seed", action="append", dest="seeds", metavar="S", help="a number, or 'random'; may be repeated (0)"
    )
    parser.add_argument(
        "--structure",
        action="append",
        dest="structures",
        metavar="NAME",
        help="draw arrays of this structure: a class of the namespace, module:Class, or 'all'; may be repeated",
    )
    parser.add_argument(
        "--quarter", action="store_true", help="run a fixed quarter of the tests, which differs between structures"
    )
    parser.add_argument("--write", action="store_true", help=f"update the rows of the table in {report.PAGE}")
    parser.add_argument(
        "--details", metavar="FILE", help="write the structured arrays and kernels of each test to FILE"
    )
    parser.add_argument("-k", dest="expression", metavar="EXPR", help="run the tests that match, as in pytest")
    parser.add_argument("-n", dest="workers", default="0", metavar="WORKERS", help="processes, with pytest-xdist (0)")
    parser.add_argument("--module", default="structarrays", help="namespace under test (structarrays)")
    parser.add_argument(
        "--deadline",
        action="store_true",
        help="keep the suite's time limit of 800 ms for each example (see the README)",
    )
    options, pytest_arguments = parser.parse_known_args(arguments)
    options.seeds = [random.SystemRandom().randrange(2**32) if s == "random" else int(s) for s in options.seeds or "0"]
    options.structures = [name for s in options.structures or [None] for name in (structures() if s == "all" else [s])]
    return options, pytest_arguments


def structures():
    """Return the structures of the namespace that values can be projected on, except `Dense`."""
    sys.path.insert(0, str(ROOT))
    from array_api_tests_config.projections import PROJECTIONS

    return [name for name in PROJECTIONS if name != "Dense"]


def environment(options, structure, temporary):
    """Return the environment of the test process; it keeps the caller's platform and compilation cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "structarrays" / "jax"
    defaults = {
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    fixed = {
        "ARRAY_API_TESTS_MODULE": options.module,
        "ARRAY_API_TESTS_VERSION": API_VERSION,
        "JAX_ENABLE_X64": "1",
        # Test this checkout, not an installed copy of the package.
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        # Write nothing into the suite, and let no example of an earlier run change the draws of a seed.
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(temporary / "hypothesis"),
        "SUITE_COUNTS": str(temporary / "counts.json"),
        "SUITE_STRUCTURE": structure or "",
        "SUITE_QUARTER": "1" if options.quarter else "",
    }
    return defaults | dict(os.environ) | fixed


def run(suite, structure, seed, options, pytest_arguments):
    """Run the suite once, print its summary and return its outcome, or None if it did not run."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "array_api_tests_config.plugin", "-rs"]
    command += [f"--hypothesis-seed={seed}", f"--max-examples={options.max_examples}", "--quiet"]
    command += ["-o", "testpaths=array_api_tests"]  # used unless the caller names files or tests
    # The suite warns about each sentence of the specification that it cannot parse.
    command += ["-W", "ignore:case for:UserWarning", "-W", "ignore:Special cases found:UserWarning"]
    if not options.deadline:
        command += ["--disable-deadline"]
    if options.expression is not None:
        command += ["-k", options.expression]
    if options.workers != "0":
        command += ["-n", options.workers]
    start, cpu = time.monotonic(), cpu_seconds()
    with tempfile.TemporaryDirectory() as temporary:
        env = environment(options, structure, Path(temporary))
        status = subprocess.run(command + pytest_arguments, cwd=suite, env=env).returncode
        counts = Path(env["SUITE_COUNTS"])
        if not counts.exists():
            print(f"seed {seed}: the suite did not run (pytest's exit status {status})", flush=True)
            return None
        outcome = report.Outcome(structure, seed, options.max_examples, json.loads(counts.read_text()), status)
    outcome.seconds, outcome.cpu_seconds = round(time.monotonic() - start), round(cpu_seconds() - cpu)
    print(outcome, flush=True)
    for problem in outcome.problems(selected=options.expression is not None, quarter=options.quarter):
        print(f"NOT GOOD: {problem}", flush=True)
    return outcome


def cpu_seconds():
    """Return the processor time of all child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def main(arguments=None):
    """Run the suite once for every structure and seed, and return the exit status."""
    options, pytest_arguments = parse(arguments)
    suite = suite_directory()
    absent = why_absent(suite)
    if absent:
        print(f"{absent}\nSet ARRAY_API_TESTS_DIR, or fetch it with\n\n{how_to_get(suite)}", file=sys.stderr)
        return 2
    altered = why_altered(suite)
    if altered:
        print(altered, file=sys.stderr)
        return 1
    commit = git(suite, "rev-parse", "HEAD") or "of unknown version"
    print(f"array-api-tests {commit}{'' if commit == SUITE_COMMIT else f' (documented: {SUITE_COMMIT})'}")
    print(f"{options.module}, standard {API_VERSION}, seeds {', '.join(map(str, options.seeds))}", flush=True)
    outcomes = []
    for structure in options.structures:
        outcomes += [run(suite, structure, seed, options, pytest_arguments) for seed in options.seeds]
        ran = [outcome for outcome in outcomes if outcome is not None]
        if structure and ran and options.write:  # write now, so that no result is lost if a later run stops
            report.write(ROOT, ran)
    if options.structures != [None] and ran:
        print(report.table(report.rows(ran)))
    if options.details:
        Path(options.details).write_text(json.dumps([outcome.details() for outcome in ran], indent=1), encoding="utf-8")
    good = [not o.problems(selected=options.expression is not None, quarter=options.quarter) for o in ran]
    return 0 if all(good) and len(ran) == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
