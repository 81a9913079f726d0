"""What has to stand before JAX is imported, for the tests, the doctests and the code in the documentation."""

import gc
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "structarrays" / "jax"

os.environ.setdefault("JAX_ENABLE_X64", "1")
# Most of the time of these tests is compilation: keep what was compiled, however small and quick.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads and XLA's get into each other's way
os.environ.setdefault("MPLBACKEND", "agg")
# On two cores XLA has two threads, and jaxlib 0.10 may wait for ever if both decompose stacks of matrices: see docs/design/jax_bugs.md.
os.environ.setdefault("PJRT_NPROC", "8")

# More than half of the time of these tests is compilation, of programs that run once, on small arrays. XLA's older code generator and LLVM
# without optimisations take less: half of it, in a sample. Other processes, too, take these flags from the tests; the official suite, the
# documentation's build and the README's example run on XLA's defaults.
QUICK = (
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
)


def _compile_quickly():
    """Have XLA compile quickly, unless the environment has flags for it, maybe none, or the installed XLA does not know these: it
    would end the process.
    """
    if "XLA_FLAGS" not in os.environ:
        environment = os.environ | {"XLA_FLAGS": QUICK, "JAX_PLATFORMS": "cpu"}
        tried = subprocess.run(
            [sys.executable, "-c", "import jax; jax.devices()"], env=environment, capture_output=True
        )
        os.environ["XLA_FLAGS"] = QUICK if tried.returncode == 0 else ""


_compile_quickly()

# JAX makes millions of long-lived objects. By default, Python's garbage collector visits all of them again and again.
gc.set_threshold(50_000, 20, 100)

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Where an optional requirement is missing, the doctests of what needs it are left out.
collect_ignore_glob = [
    f"structarrays/interop/{pattern}"
    for package, pattern in (("pytensor", "pytensor*.py"), ("lineax", "lineax*.py"), ("sparse", "pydata_sparse.py"))
    if importlib.util.find_spec(package) is None
]

_finished = 0


def pytest_addoption(parser):
    """How many functions of JAX are tried on how many structures, in `tests/transform`."""
    parser.addoption(
        "--functions",
        default="part",
        metavar="part|each|full",
        help="run a third of the functions of JAX on one structure, in one way, each (the default), all of them so, or every "
        "function on every structure in every way",
    )


@pytest.fixture(autouse=True)
def bounded_memory():
    """Clear JAX's caches after every ten tests.

    JAX keeps the program of each compiled function. Thousands of programs take gigabytes and make each further lowering three times slower.
    Each compiled function also occupies a few memory mappings. Linux allows a process 65,530 mappings.
    """
    global _finished
    yield
    _finished += 1
    if _finished % 10 == 0 and "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
