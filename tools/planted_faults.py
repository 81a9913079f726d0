"""Measure which faults the tests detect: plant the faults of `faults.py` one at a time, and run the tests until one fails.

::

    python tools/planted_faults.py                        # the README's test command
    python tools/planted_faults.py --parameters each      # all parameters
    python tools/planted_faults.py --only transpose       # the faults whose names contain this word
    python tools/planted_faults.py --tree ../old          # the tests and the library of another checkout

The faults are planted in a copy of the tree. Tests of the faulty part run first; if they pass, all tests follow.
A test that also fails without the fault detects nothing: the tool excludes the test and continues.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from faults import FAULTS

ROOT = Path(__file__).resolve().parent.parent
FAILED = "PLANTED_FAULTS_FAILED"


def apply(fault, package):
    """Plant a fault in the package at a path.

    Raises
    ------
    ValueError
        If its text does not occur exactly once.
    """
    path = package / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.old) != 1 or fault.new == fault.old:
        raise ValueError(f"{fault.name}: the text occurs {text.count(fault.old)} times in {fault.file}, not once")
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")


def arguments(first):
    """The arguments of pytest for the tests that run first, relative to the root of the tree."""
    return [f"tests/{word}" if ".py" in word else word for word in shlex.split(first)]


# ---- as a plugin of pytest: which tests fail ---------------------------------------------------------------------------


def pytest_runtest_logreport(report):
    """Write the name of a failed test to the file that the environment names."""
    if report.failed:
        _note(report.nodeid)


def pytest_collectreport(report):
    """Write the name of a test file that cannot be imported."""
    if report.failed:
        _note(report.nodeid)


def _note(name):
    with open(os.environ[FAILED], "a", encoding="utf-8") as file:
        file.write(name + "\n")


# ---- the runs ----------------------------------------------------------------------------------------------------------


class Trees:
    """Two copies of a tree: one without a fault, and one in which faults are planted.

    Parameters
    ----------
    tree : Path
        The tree to copy: the files that git tracks, and new files that git does not ignore.
    options
        The options of the command line.
    """

    def __init__(self, tree, folder, options):
        self.options, self.left_out = options, set()
        self.clean, self.faulty = Path(folder) / "clean", Path(folder) / "faulty"
        self.failed = Path(folder) / "failed"
        listed = ["git", "-C", str(tree), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0"):
            if name and (tree / name).is_file():
                for copy in (self.clean, self.faulty):
                    (copy / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(tree / name, copy / name)
        # The tests ask whether XLA knows some flags. Ask once, not in each run.
        asked = [sys.executable, "-c", "import conftest, os; print(os.environ['XLA_FLAGS'])"]
        self.flags = subprocess.run(asked, check=True, cwd=self.clean, capture_output=True, text=True).stdout.strip()

    def pytest(self, tree, arguments) -> list[str]:
        """Run tests in one of the trees until one fails. Return the names of the failed tests."""
        self.failed.write_text("")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "planted_faults"]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join((str(tree), str(Path(__file__).parent))),
            "XLA_FLAGS": self.flags,
            FAILED: str(self.failed),
        }
        done = subprocess.run([*command, *arguments], cwd=tree, env=environment, capture_output=True, text=True)
        failed = list(dict.fromkeys(self.failed.read_text().splitlines()))
        # 0: all passed; 1: a test failed; 2: a test file cannot be imported; 5: no tests.
        if done.returncode not in (0, 1, 2, 5) or (done.returncode in (1, 2)) != bool(failed):
            raise RuntimeError(f"pytest returned {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return failed

    def selection(self) -> list[str]:
        """The options of pytest that select the tests of a default run among the named tests."""
        slow = "leave" if self.options.parameters == "part" else "run"
        # Other trees may have no mark for slow tests.
        known = "--slow" in (self.clean / "tests" / "parameters.py").read_text(encoding="utf-8")
        return ["--parameters", self.options.parameters, *(["--slow", slow] if known else [])]

    def detect(self, *arguments) -> str | None:
        """The first test that fails with the fault and not without it."""
        while True:
            without = [f"--deselect={name}" for name in sorted(self.left_out)]
            failed = self.pytest(self.faulty, [*arguments, *without, "-x", *self.selection()])
            also = self.pytest(self.clean, [*failed, "--parameters", "each"]) if failed else []
            detecting = [name for name in failed if name not in also]
            if detecting or not failed:
                return detecting[0] if detecting else None
            self.left_out.update(failed)

    def measure(self, fault) -> tuple[str | None, float]:
        """The test that detects a fault (or None), and the time of the search."""
        start, path = time.perf_counter(), self.faulty / "structarrays" / fault.file
        apply(fault, self.faulty / "structarrays")
        try:
            module = ".".join(("structarrays", *Path(fault.file).with_suffix("").parts))
            imported = [sys.executable, "-c", f"import structarrays, {module}"]
            environment = os.environ | {"PYTHONPATH": str(self.faulty)}
            subprocess.run(imported, check=True, cwd=self.faulty, env=environment, capture_output=True)
            found = self.detect(*arguments(self.options.tests or fault.first))
            if found is None and not self.options.first:
                found = self.detect("-n", str(self.options.workers))
        finally:
            shutil.copy2(self.clean / "structarrays" / fault.file, path)
        return found, time.perf_counter() - start


def main():
    """Print for each fault the test that detects it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout to test (default: this one)")
    parser.add_argument("--only", default="", help="plant the faults whose names contain this text")
    parser.add_argument(
        "--share", default="1/1", metavar="I/N", help="of these the I-th of N shares, for several machines"
    )
    parser.add_argument("--parameters", choices=("part", "each"), default="part", help="as of pytest here")
    parser.add_argument("--first", action="store_true", help="run no other tests than those of the faulty part")
    parser.add_argument(
        "--tests", metavar="ARGUMENTS", help="tests that run first, in place of those of the faulty part"
    )
    parser.add_argument("--workers", type=int, default=2, help="the number of processes of pytest-xdist")
    options = parser.parse_args()
    start, step = map(int, options.share.split("/"))
    faults = [fault for fault in FAULTS if options.only in fault.name][start - 1 :: step]
    detected = 0
    print("| fault | file | detected by | seconds |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        trees = Trees(options.tree.resolve(), folder, options)
        for fault in faults:
            found, seconds = trees.measure(fault)
            detected += found is not None
            by = f"`{found}`" if found else "**nothing**"
            print(f"| {fault.name} | `{fault.file}` | {by} | {seconds:.0f} |", flush=True)
    print(f"\n{detected} of {len(faults)} faults are detected.")
    for name in sorted(trees.left_out):
        print(f"{name} fails without a fault, and was left out.")


if __name__ == "__main__":
    main()
