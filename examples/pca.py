"""Principal components of a sparse matrix with *centred* columns, without a dense matrix.

Centring makes a sparse matrix dense, so libraries reject it, omit it (truncated SVD) or require a hand-written linear
operator. Here ``X - mean(X, axis=0)`` is an array like any other, the sum of a sparse matrix and a matrix of rank one.
The function below is the same as for a NumPy array.

    python examples/pca.py [--rows 100000] [--columns 3000]

N. Halko, P.-G. Martinsson and J. A. Tropp, "Finding structure with randomness", SIAM Review 53 (2011), algorithm 4.4.
"""

import argparse
import sys
import time

import jax
import numpy as np
import scipy.sparse
from checks import Checks
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import structarrays as sa

jax.config.update("jax_enable_x64", True)

TOLERANCE = 1e-8


def principal_components(X, start, iterations):
    """Return variances and directions of the principal components of the rows of `X`, for any library of the standard.

    `start` has one column for each component, and some more for accuracy.
    """
    xp = X.__array_namespace__()
    centred = X - xp.mean(X, axis=0)
    basis, _ = xp.linalg.qr(centred @ start)
    for _ in range(iterations):
        basis, _ = xp.linalg.qr(centred.mT @ basis)
        basis, _ = xp.linalg.qr(centred @ basis)
    _, singular_values, directions = xp.linalg.svd((centred.mT @ basis).mT, full_matrices=False)
    return singular_values**2 / (X.shape[0] - 1), directions


def digits(check) -> None:
    """Compare the components of scikit-learn's 1797 handwritten digits with its dense principal components."""
    data = load_digits().data
    X = sa.Sparse.from_dense(data)
    print(
        f"1. Handwritten digits: {X.shape[0]} images of {X.shape[1]} pixels, {100 * (1 - X.nnz / X.size):.0f} % of them empty"
    )
    k = 5
    start = sa.asarray(np.random.default_rng(0).normal(size=(X.shape[1], 4 * k)))
    variances, directions = principal_components(X, start, iterations=20)
    theirs = PCA(k, svd_solver="full").fit(data)
    error = np.max(np.abs(np.asarray(variances)[:k] / theirs.explained_variance_ - 1))
    angle = np.max(np.abs(1 - np.abs(np.sum(np.asarray(directions)[:k] * theirs.components_, axis=1))))
    print(f"  variances of the first {k}: {np.array2string(np.asarray(variances)[:k], precision=1)}")
    check(
        error <= TOLERANCE, f"they agree with scikit-learn's to {TOLERANCE:g} (largest relative difference {error:.0e})"
    )
    check(angle <= TOLERANCE, f"so do their directions (largest difference of a cosine from 1: {angle:.0e})")


def large(rows: int, columns: int, check) -> None:
    """Compute the components of a large random matrix with a few entries in each row."""
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, columns + 1)
    drawn = rng.choice(columns, size=(rows, 10), p=weights / weights.sum())
    entries = (rng.poisson(1.0, drawn.size) + 1.0, (np.repeat(np.arange(rows), 10), drawn.ravel()))
    X = sa.Sparse.from_scipy(scipy.sparse.coo_array(entries, shape=(rows, columns)))
    print(
        f"\n2. {rows:,} × {columns:,} with {X.nnz:,} entries: {X.nbytes / 1e6:.0f} MB, {X.size * 8 / 1e9:.1f} GB if it were dense"
    )
    start = sa.asarray(rng.normal(size=(columns, 20)))
    with sa.densify("error"), sa.record() as log:
        begin = time.perf_counter()
        variances, _ = jax.block_until_ready(principal_components(X, start, iterations=4))
        elapsed = time.perf_counter() - begin
    print(f"  X - mean(X, axis=0) is a {type(X - sa.mean(X, axis=0)).__name__} array")
    print(f"  20 components in {elapsed:.1f} s, compilation included; the first variances: "
          f"{np.array2string(np.asarray(variances)[:3], precision=3)}")  # fmt: skip
    check(not log.densifications, "no array was made dense")
    total = float(sa.sum(sa.var(X, axis=0, correction=1)))
    check(float(np.sum(np.asarray(variances))) <= total, f"the variances are part of the whole, {total:.3f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=3_000)
    arguments = parser.parse_args()
    check = Checks()

    digits(check)
    large(arguments.rows, arguments.columns, check)
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
