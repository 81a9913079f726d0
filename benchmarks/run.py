"""Run the benchmarks: `python benchmarks/run.py [--quick] [--only NAME] [--json FILE] [--docs FOLDER] [--against FILE]`."""

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import sys
from pathlib import Path

# Set before numpy and jax are imported. jaxlib calls SciPy's OpenBLAS. On few cores, its threads compete with XLA's
# threads and slow down every LAPACK call, up to ten times, so all peers use one thread.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["JAX_ENABLE_X64"] = "1"
# Set before scipy is imported: scikit-learn requires it for arrays of other libraries than NumPy.
os.environ["SCIPY_ARRAY_API"] = "1"

PARTS = (
    "eager",
    "structured",
    "bands",
    "blocks",
    "kronecker",
    "toeplitz",
    "sparse_matrices",
    "sparse_systems",
    "jacobians",
    "triangles",
    "spectra",
    "solvers",
    "banded",
    "low_rank",
    "standardise",
    "estimators",
    "libraries",
    "gpu",
    "native",
    "accuracy",
    "compiled",
    "compilation",
    "compile_times",
    "import_time",
)
ALONE = ("libraries", "gpu", "native")
"""Parts that need a separate environment, a GPU or JAX 0.12: they run only if they are named."""
PACKAGES = (
    "structarrays",
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "scikit-learn",
    "lineax",
    "quax",
    "linear_operator",
    "torch",
    "dynamiqs",
    "sparse",
    "asdex",
    "cola-ml",
    "sparsax",
    "klujax",
)


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def processor() -> str:
    """Return the name of the CPU, if the system provides it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def environment() -> dict[str, object]:
    import jax

    return {
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
        "device": str(jax.devices()[0]),
        "device kind": jax.devices()[0].device_kind,
        "cpu": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "OPENBLAS_NUM_THREADS": os.environ["OPENBLAS_NUM_THREADS"],
        "GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", ""),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run a tenth of the rounds, for a rough estimate")
    parser.add_argument("--only", choices=PARTS, action="append", help="run this part (may be repeated)")
    parser.add_argument("--json", metavar="FILE", help="write all measurements to FILE")
    parser.add_argument(
        "--docs",
        metavar="FOLDER",
        help="write the parts to FOLDER/design/benchmarks.md, and draw pictures (requires matplotlib)",
    )
    parser.add_argument(
        "--against",
        metavar="FILE",
        help="print what takes 1.3 times as long as in FILE, which --json wrote on this machine; exit with 1 if anything does",
    )
    arguments = parser.parse_args()
    former = json.loads(Path(arguments.against).read_text(encoding="utf-8")) if arguments.against else None

    if version("structarrays") == "not installed":  # run from a checkout
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

    import page
    from harness import Report

    parts = arguments.only or [part for part in PARTS if part not in ALONE]
    if arguments.docs:
        page.check(parts, arguments.docs)
    report = Report(quick=arguments.quick, environment=environment())
    for key, value in report.environment.items():
        print(f"{key:22}{value}")
    for part in parts:
        report.part = part
        importlib.import_module(part).run(report)
        if arguments.docs:
            page.write(report, part, arguments.docs)
    report.summary()
    if arguments.json:
        report.write(arguments.json)
    if former is not None and print_slower(former, report.cases):
        raise SystemExit(1)


def print_slower(former: dict, cases: list[dict]) -> bool:
    """Print the rows that became slower than in a former run, and return whether there are any.

    If the peers became slower by the same ratio, the machine is busier.
    """
    from comparison import LIMIT, minima, rows, show

    compared = list(rows(minima(former["cases"]), minima(cases)))
    slower = [row for row in compared if row[3] > LIMIT * row[2]]
    print(f"\n{len(slower)} of {len(compared)} rows take more than {LIMIT} times as long as before.")
    for row in slower:
        show(row)
    return bool(slower)


if __name__ == "__main__":
    main()
