"""Unchanged estimators of scikit-learn on a Kronecker design of 100,000 × 600, compared with a dense NumPy array.

Each call is a whole `fit`, after a first one. The results are compared before anything is timed. The memory is measured
in a separate process, which constructs a design and fits one estimator. It includes the interpreter, the libraries and,
for ours, the compiler.
"""

import multiprocessing
import re
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from harness import OURS, Bar, Report
from peers import CPU_ONLY, NOT_INSTALLED, on_cpu, optional

import structarrays as sa

NUMPY = "NumPy's dense array"
FACTORS = ((400, 24), (250, 25))


def run(report: Report) -> None:
    shape = "100,000 × 600"
    report.section(f"scikit-learn's estimators, a Kronecker design of {shape}")
    if optional("sklearn") is None:
        report.remark(f"scikit-learn: {NOT_INSTALLED}")
        return
    design, targets = data()
    dense = np.asarray(design)
    for name, (_, _, attribute, factor, rounds) in estimators().items():
        structured = fit(name, design, targets)
        candidates, absent = {OURS: structured}, {NUMPY: CPU_ONLY}
        if on_cpu():
            candidates[NUMPY], absent = fit(name, dense, targets), {}
        found = [np.asarray(function()[attribute]) for function in candidates.values()]
        for values in found:
            np.testing.assert_allclose(values, found[-1], atol=1e-8 * np.max(np.abs(found[-1])), err_msg=name)
        bars = [] if factor is None else [Bar(NUMPY, factor)]
        report.time(f"{name}, {shape}", candidates, bars, absent, rounds=rounds, warm_up=1)
        memory = {kind: peak_memory(name, kind) for kind in candidates}
        peaks = ", ".join(f"{kind} {peak / 1e9:.2f} GB" for kind, peak in memory.items())
        report.remark(f"{name}, peak memory: {peaks}")
        report.note(f"{name}: peak memory", bytes=memory)


def estimators() -> dict:
    """Return by name: constructor, target, compared attributes, bar, and number of rounds."""
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

    exact, randomized = {"svd_solver": "covariance_eigh"}, {"svd_solver": "randomized", "random_state": 0}
    return {
        "LogisticRegression": (LogisticRegression, "classes", "coef_", 0.25, 15),
        "PCA(10, svd_solver='covariance_eigh')": (lambda: PCA(10, **exact), None, "explained_variance_", 0.15, 10),
        "Ridge(solver='svd', fit_intercept=False)": (
            lambda: Ridge(solver="svd", fit_intercept=False),
            "numbers",
            "coef_",
            0.01,
            3,
        ),
        "Ridge(solver='svd')": (lambda: Ridge(solver="svd"), "numbers", "coef_", None, 3),
        "PoissonRegressor": (PoissonRegressor, "counts", "coef_", None, 10),
        "PCA(10, svd_solver='randomized')": (
            lambda: PCA(10, power_iteration_normalizer="QR", **randomized),
            None,
            "explained_variance_",
            None,
            5,
        ),
    }


def data() -> tuple[sa.Kronecker, dict]:
    """Return the design and the targets: a linear function of the design plus noise."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=shape) for shape in FACTORS)
    weights = rng.normal(size=(a.shape[1], b.shape[1])) / np.sqrt(a.shape[1] * b.shape[1])
    values = (a @ weights @ b.T).reshape(-1)
    targets = {
        "classes": (2 * values + rng.logistic(size=values.size) > 0).astype(np.int64),
        "numbers": values + rng.normal(size=values.size),
        "counts": rng.poisson(np.exp(values / 2)).astype(np.float64),
        None: None,
    }
    return sa.Kronecker(a, b), targets


def fit(name, design, targets):
    """Return a function without arguments that fits the estimator to a design, and returns its results."""
    import sklearn

    make, target, *_ = estimators()[name]
    y, structured = targets[target], not isinstance(design, np.ndarray)
    if structured and y is not None:
        y = sa.asarray(y)

    def function():
        with sklearn.config_context(array_api_dispatch=structured):
            return vars(make().fit(design, y))

    return function


# ---- memory ------------------------------------------------------------------------------------------------------------


def peak_memory(name, kind) -> int:
    """Return the peak memory in bytes of a process that fits one estimator once."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_peak, name, kind).result()


def _peak(name, kind) -> int:
    design, targets = data()
    fit(name, design if kind == OURS else np.asarray(design), targets)()
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, getrusage also includes the peak of the parent process
        return 1024 * int(re.search(r"^VmHWM:\s*(\d+) kB", status.read_text(), re.MULTILINE)[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
