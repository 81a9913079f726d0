"""The suites of other libraries: which there are, how one is run in a process of its own, and what became of its tests.

The tests come with the libraries, and nothing of these is changed: a plugin next to this file adds the namespace.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from known_failures import KNOWN

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


@dataclass(frozen=True)
class Suite:
    """The tests of one library.

    Attributes
    ----------
    plugin : str
        The plugin for pytest.
    packages : tuple of str
        The packages that hold the tests.
    sample : tuple of str
        Those of the sample that is run with our own tests, and `sample_size`, how many tests it takes.
    requires : tuple of str
        The modules that have to be there.
    warnings : str
        pytest's filter for warnings. array-api-extra tests that it warns, by a configuration that makes errors of them.
    """

    plugin: str
    packages: tuple[str, ...]
    sample: tuple[str, ...]
    sample_size: int
    requires: tuple[str, ...]
    warnings: str = "ignore"


SUITES = {
    "array-api-extra": Suite(
        plugin="array_api_extra_plugin",
        packages=("array_api_extra.tests.main",),
        sample=("array_api_extra.tests.main",),
        sample_size=100,
        requires=("array_api_extra", "typing_extensions", "scipy"),
        warnings="error::DeprecationWarning",
    ),
    "scikit-learn": Suite(
        plugin="scikit_learn_plugin",
        packages=("sklearn",),
        sample=(
            "sklearn.utils.tests.test_array_api",
            "sklearn.preprocessing.tests.test_data",
            "sklearn.metrics.tests.test_pairwise",
            "sklearn.mixture.tests.test_gaussian_mixture",
        ),
        sample_size=60,
        requires=("sklearn", "array_api_strict"),
    ),
    "scipy": Suite(
        plugin="scipy_plugin",
        packages=(
            "scipy.stats",
            "scipy.signal",
            "scipy.special",
            "scipy.optimize",
            "scipy.integrate",
            "scipy.ndimage",
            "scipy.spatial",
            "scipy.interpolate",
            "scipy.linalg",
            "scipy.fft",
            "scipy.constants",
            "scipy.cluster",
            "scipy.differentiate",
            "scipy._lib",
        ),
        sample=(
            "scipy.cluster",
            "scipy.fft",
            "scipy.linalg",
            "scipy.constants",
            "scipy.interpolate.tests.test_rbfinterp",
        ),
        sample_size=80,
        requires=("scipy", "hypothesis"),
    ),
}


@dataclass
class Outcomes:
    """What became of the tests: for each its name, the outcome, and the message of a failure; and what pytest printed."""

    records: list
    output: str

    @property
    def counts(self) -> collections.Counter:
        """How many tests had each outcome."""
        return collections.Counter(record["outcome"] for record in self.records)

    def unknown(self, suite) -> list:
        """The failures without a known cause: it names tests, and what the message of their failure has to hold."""
        return [
            record
            for record in self.records
            if record["outcome"] in ("failed", "error")
            and not any(
                re.search(cause.tests, record["test"]) and re.search(cause.message, record["message"])
                for cause in KNOWN[suite]
            )
        ]


def run(suite, targets, pytest_arguments=(), at_most=0) -> Outcomes:
    """Run tests of a suite, of packages, modules or single ones, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "outcomes.jsonl")
        environment = os.environ | {
            "CONSUMER_OUTCOMES": str(file),
            "CONSUMER_AT_MOST": str(at_most),
            "JAX_ENABLE_X64": "1",
            "SCIPY_ARRAY_API": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
        command += ["-p", "common_plugin", "-p", SUITES[suite].plugin, "-W", SUITES[suite].warnings]
        command += [*pytest_arguments, "--pyargs", *targets]
        # In an empty folder, so that no configuration but the library's own is found.
        done = subprocess.run(
            command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return Outcomes([json.loads(line) for line in lines], done.stdout)
