"""scikit-learn's estimators, as they are, on structured designs: what they compute, and how often they make a design dense.

SCIPY_ARRAY_API=1 python tests/consumers/estimators.py        # writes the table of docs/interoperability/consumers.md
"""

import os
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sklearn
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, RidgeCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer, MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

import structarrays as sa

PAGE = Path(__file__).resolve().parents[2] / "docs" / "interoperability" / "consumers.md"
ROWS, COLUMNS = 600, 40
STEEP = {"tol": 1e-12, "max_iter": 1000}  # an optimiser that stops early stops elsewhere after other rounding

rng = np.random.default_rng(0)


# ---- the designs, each 600 × 40 -----------------------------------------------------------------------------------------


def _sparse():
    dense = np.where(rng.random((ROWS, COLUMNS)) < 0.05, rng.normal(size=(ROWS, COLUMNS)), 0.0)
    dense[np.arange(COLUMNS), np.arange(COLUMNS)] = 2.0
    i, j = np.nonzero(dense)
    return sa.Sparse(dense[i, j], (i, j), dense.shape)


def _banded():
    offsets = (0, -9, -50, -200, -560)
    return sa.Banded([rng.normal(size=min(COLUMNS, ROWS + k)) for k in offsets], offsets, (ROWS, COLUMNS))


DESIGNS = {
    "Sparse": _sparse(),
    "LowRank": sa.LowRank(rng.normal(size=(ROWS, 3)), rng.normal(size=(COLUMNS, 3))),
    "Kronecker": sa.Kronecker(rng.normal(size=(30, 8)), rng.normal(size=(20, 5))),
    "Banded": _banded(),
    "Toeplitz": sa.Toeplitz(rng.normal(size=ROWS), rng.normal(size=COLUMNS)),
}
"""What the estimators are given."""

REAL = rng.normal(size=ROWS)
CLASSES = (rng.random(ROWS) < 0.5).astype(np.int64)
COUNTS = rng.poisson(2.0, size=ROWS).astype(np.float64)


# ---- the estimators -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """An estimator, what it is fitted to next to the design, and what is compared."""

    make: Callable
    target: np.ndarray | None = None
    attributes: tuple[str, ...] = ()
    method: str = "transform"
    of_kernel: bool = False


LINEAR = {"attributes": ("coef_", "intercept_"), "method": "predict"}
COMPONENTS = {"attributes": ("mean_", "components_", "explained_variance_", "noise_variance_")}


def _pca(solver):
    # The default normalises by LU with NumPy's arrays and by QR with others.
    return PCA(2, svd_solver=solver, random_state=0, power_iteration_normalizer="QR")


CASES = {
    "LogisticRegression": Case(
        lambda: LogisticRegression(**STEEP), CLASSES, ("coef_", "intercept_"), method="predict_proba"
    ),
    "PoissonRegressor": Case(lambda: PoissonRegressor(**STEEP), COUNTS, **LINEAR),
    "Ridge(solver='svd')": Case(lambda: Ridge(solver="svd"), REAL, **LINEAR),
    "Ridge(solver='svd', fit_intercept=False)": Case(lambda: Ridge(solver="svd", fit_intercept=False), REAL, **LINEAR),
    "RidgeCV(gcv_mode='eigen')": Case(lambda: RidgeCV(gcv_mode="eigen"), REAL, ("alpha_", "coef_"), "predict"),
    "RidgeCV(gcv_mode='svd')": Case(lambda: RidgeCV(gcv_mode="svd"), REAL, ("alpha_", "coef_"), "predict"),
    "PCA(svd_solver='full')": Case(lambda: _pca("full"), **COMPONENTS),
    "PCA(svd_solver='covariance_eigh')": Case(lambda: _pca("covariance_eigh"), **COMPONENTS),
    "PCA(svd_solver='randomized')": Case(lambda: _pca("randomized"), **COMPONENTS),
    "StandardScaler": Case(StandardScaler, attributes=("mean_", "scale_")),
    "StandardScaler(with_mean=False)": Case(lambda: StandardScaler(with_mean=False), attributes=("scale_",)),
    "MinMaxScaler": Case(MinMaxScaler, attributes=("data_min_", "data_max_")),
    "MaxAbsScaler": Case(MaxAbsScaler, attributes=("max_abs_",)),
    "Normalizer": Case(Normalizer),
    "KernelCenterer, of X @ X.T": Case(KernelCenterer, attributes=("K_fit_rows_",), of_kernel=True),
    "LinearDiscriminantAnalysis": Case(
        LinearDiscriminantAnalysis, CLASSES, ("coef_", "intercept_"), method="predict_proba"
    ),
    "GaussianNB": Case(GaussianNB, CLASSES, ("theta_", "var_"), method="predict_proba"),
    # Not more components than a design has ranks: the inverse root of their kernel would have no digits.
    "Nystroem(kernel='linear')": Case(lambda: Nystroem(kernel="linear", n_components=3, random_state=0)),
    "Nystroem(kernel='rbf')": Case(lambda: Nystroem(n_components=3, random_state=0)),
    "StandardScaler, PCA": Case(lambda: make_pipeline(StandardScaler(), _pca("covariance_eigh"))),
    "StandardScaler, LogisticRegression": Case(
        lambda: make_pipeline(StandardScaler(), LogisticRegression(**STEEP)), CLASSES, method="predict_proba"
    ),
    "Normalizer, MaxAbsScaler, Ridge": Case(
        lambda: make_pipeline(Normalizer(), MaxAbsScaler(), Ridge(solver="svd")), REAL, method="predict"
    ),
}
"""What is tried, by the names of the table's rows."""


def fitted(case, X):
    """The estimator after `fit`, and what its method makes of the design; in the kind of arrays that X is."""
    target = case.target if case.target is None or isinstance(X, np.ndarray) else sa.asarray(case.target)
    if case.of_kernel:
        X = X @ X.T
    with sklearn.config_context(array_api_dispatch=not isinstance(X, np.ndarray)):
        estimator = case.make().fit(X, target)
        return estimator, getattr(estimator, case.method)(X)


def densifications(log, case) -> int:
    """How many matrices as large as the design were made dense."""
    shape = (ROWS, ROWS) if case.of_kernel else (ROWS, COLUMNS)
    sizes = {f"of shape {s}" for s in (shape, shape[::-1])}
    return sum(any(size in operand for operand in event.operands for size in sizes) for event in log.densifications)


def compared(name, design) -> tuple[dict, str]:
    """What an estimator computes of a design and of its dense form, and what it densifies on the way, as the table has it.

    The process has to have ``SCIPY_ARRAY_API=1`` in its environment before SciPy is imported: scikit-learn insists.
    """
    case, X = CASES[name], DESIGNS[design]
    with warnings.catch_warnings():
        # Closer than rounding lets them come: line searches fail there, with NumPy's arrays, too.
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected, expected_result = fitted(case, np.asarray(X))
        with sa.record() as log:
            estimator, result = fitted(case, X)
    if not isinstance(result, sa.Array):
        raise TypeError(f"{name} of {design}: the result is no array of this namespace, but {type(result).__name__}")
    values = {a: (np.asarray(getattr(estimator, a)), getattr(expected, a)) for a in case.attributes}
    text = f"{densifications(log, case)}"
    if type(result) is not sa.Dense:
        text += f", {type(result).__name__}"
    return values | {case.method: (np.asarray(result), expected_result)}, text


# ---- the table ----------------------------------------------------------------------------------------------------------

MARK = re.compile(r"(?<=<!-- densifications: begin -->\n\n).*?(?=\n\n<!-- densifications: end -->)", re.DOTALL)


def densified_in_the_page() -> dict:
    """The cells of the table in the documentation, by estimator and design."""
    rows = [
        [c.strip().strip("`") for c in line.strip("|").split("|")]
        for line in MARK.search(PAGE.read_text(encoding="utf-8"))[0].splitlines()
    ]
    return {(row[0], design): text for row in rows[2:] for design, text in zip(rows[0][1:], row[1:], strict=True)}


def table() -> str:
    """The table, measured."""
    lines = ["| | " + " | ".join(f"`{d}`" for d in DESIGNS) + " |", "|---" * (len(DESIGNS) + 1) + "|"]
    for name in CASES:
        print(name, file=sys.stderr)
        lines.append(f"| `{name}` | " + " | ".join(compared(name, d)[1] for d in DESIGNS) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    if os.environ.get("SCIPY_ARRAY_API") != "1":
        sys.exit("SCIPY_ARRAY_API=1 has to be set")
    new = table()
    PAGE.write_text(MARK.sub(lambda _: new, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
