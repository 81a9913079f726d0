"""Time that an import adds to `import jax.numpy`, each in a new interpreter."""

import os
import statistics
import subprocess
import sys

from harness import OURS, Report, Timing, duration
from peers import NOT_INSTALLED

BAR = 0.10
PACKAGES = (OURS, "lineax", "quax")
CODE = """
import sys, time
import jax.numpy
sys.path[:] = {path!r}
start = time.perf_counter()
import {package}
print(time.perf_counter() - start)
"""


def run(report: Report) -> None:
    report.section("Import time on top of jax.numpy")
    seconds: dict[str, list[float]] = {package: [] for package in PACKAGES}
    for repeat in range(-1, 5 if report.quick else 15):  # the first run fills the file cache
        for package in PACKAGES:
            elapsed = import_seconds(package)
            if repeat >= 0 and elapsed is not None:
                seconds[package].append(elapsed)
    timings = {package: Timing(min(t), statistics.median(t)) for package, t in seconds.items() if t}
    rows = ((p, *map(duration, vars(t).values())) for p, t in timings.items())
    report.table(("import", "minimum", "median"), rows)
    for package in PACKAGES:
        if package not in timings:
            report.remark(f"{package}: {NOT_INSTALLED}")
    report.note("import", seconds={package: vars(timing) for package, timing in timings.items()})
    ours = timings[OURS].median
    report.judge("import", OURS, f"<= {BAR} s (median)", duration(ours), ours <= BAR)


def import_seconds(package: str) -> float | None:
    """Return the seconds of an import, or None if the package is not installed."""
    code = CODE.format(path=sys.path, package=package)
    # Allow bytecode files, as for installed packages, so that the time does not include their compilation.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    if process.returncode != 0:
        if f"No module named '{package}'" in process.stderr and package != OURS:
            return None
        raise RuntimeError(process.stderr)
    return float(process.stdout)
