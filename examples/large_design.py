"""Unchanged estimators of scikit-learn on a design of a million rows and 2000 columns, which would take 16 GB.

The rows are the pixels of a photograph in scikit-learn, enlarged to 1000 x 1000. The columns are products of 40
vertical and 50 horizontal cosines. So the design is a `Kronecker` product of two small matrices, 0.7 MB. The estimators
multiply by it without knowing the structure. With `sa.densify("error")`, any densification raises.

    python examples/large_design.py [--side 1000] [--rounds 10] [--output large_design.png]

1. Logistic regression of the pixels that are brighter than most, from the 2000 columns, in rounds that show the
   progress.
2. Ridge regression of the brightness, compared with the formula for two factors.
3. Principal components, compared with the eigenvalues of the covariance, which NumPy computes from the two factors.
4. A picture of the photograph and of the first two results, and the peak memory.
"""

import argparse
import os
import resource
import sys
import time
import warnings
from pathlib import Path

os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is imported; scikit-learn requires it

import jax
import matplotlib.pyplot as plt
import numpy as np
import sklearn
from checks import Checks
from scipy.ndimage import zoom
from sklearn.datasets import load_sample_image
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from tqdm import tqdm

import structarrays as sa

jax.config.update("jax_enable_x64", True)

DOWN, ACROSS = 40, 50  # numbers of cosines
ALPHA = 1.0


def cosines(n: int, count: int) -> np.ndarray:
    """Return the first `count` vectors of the discrete cosine transform, including the constant, as columns (n, count)."""
    return np.cos(np.pi * np.arange(count) * (np.arange(n)[:, None] + 0.5) / n)


def photograph(side: int) -> np.ndarray:
    """Return the brightness of the pixels, from 0 to 1."""
    image = load_sample_image("china.jpg").mean(axis=-1) / 255
    return np.clip(zoom(image, (side / image.shape[0], side / image.shape[1]), order=1), 0, 1)


def peak() -> float:
    """Return the peak memory of this process in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9


def classify(X, a, b, image, rounds: int, check: Checks) -> np.ndarray:
    bright = image > np.median(image)
    y = sa.asarray(bright.reshape(-1).astype(np.int64))
    model = LogisticRegression(warm_start=True, max_iter=5)
    start = time.perf_counter()
    with warnings.catch_warnings(), tqdm(range(rounds), unit="round") as progress:
        warnings.simplefilter("ignore", ConvergenceWarning)  # a round does not converge; the next one continues
        for _ in progress:
            model.fit(X, y)
            progress.set_postfix(right=f"{model.score(X, y):.1%}", memory=f"{peak():.2f} GB")
    print(f"  {rounds} rounds of 5 steps: {time.perf_counter() - start:.1f} s")
    found = np.asarray(model.decision_function(X)).reshape(image.shape)
    expected = a @ np.asarray(model.coef_).reshape(DOWN, ACROSS) @ b.T + float(model.intercept_[0])
    check(np.allclose(found, expected, rtol=1e-9, atol=1e-9), "its values are those of the formula for two factors")
    right = np.mean((found > 0) == bright)
    check(right > 0.8, f"{right:.1%} of the pixels are classified rightly")
    return 1 / (1 + np.exp(-found))


def smooth(X, a, b, image, check: Checks) -> np.ndarray:
    start = time.perf_counter()
    model = Ridge(alpha=ALPHA, solver="svd", fit_intercept=False).fit(X, sa.asarray(image.reshape(-1)))
    print(f"  Ridge: {time.perf_counter() - start:.1f} s, compilation included")
    (p, u), (q, v) = np.linalg.eigh(a.T @ a), np.linalg.eigh(b.T @ b)
    expected = u @ ((u.T @ (a.T @ image @ b) @ v) / (p[:, None] * q + ALPHA)) @ v.T
    error = np.max(np.abs(np.asarray(model.coef_).reshape(DOWN, ACROSS) - expected)) / np.max(np.abs(expected))
    check(error <= 1e-8, f"its coefficients are those of the formula for two factors ({error:.0e})")
    return a @ expected @ b.T


def components(X, a, b, check: Checks) -> None:
    start = time.perf_counter()
    model = PCA(n_components=5, svd_solver="covariance_eigh").fit(X)
    print(f"  five principal components: {time.perf_counter() - start:.1f} s, compilation included")
    n, mean = X.shape[0], np.kron(a.mean(axis=0), b.mean(axis=0))
    covariance = (np.kron(a.T @ a, b.T @ b) - n * np.outer(mean, mean)) / (n - 1)
    expected = np.linalg.eigvalsh(covariance)[-5:][::-1]
    error = np.max(np.abs(np.asarray(model.explained_variance_) - expected)) / expected[0]
    check(error <= 1e-8, f"their variances are the eigenvalues of the covariance ({error:.0e})")


def picture(path: Path, image, probability, smoothed) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
    titles = ("brightness", "probability of being bright\n(LogisticRegression)", "from 2000 columns (Ridge)")
    for ax, data, title in zip(axes, (image, probability, smoothed), titles, strict=True):
        ax.imshow(data, cmap="gray", vmin=0, vmax=1)
        ax.set(title=title, xticks=[], yticks=[])
    figure.suptitle(f"{image.size:,} pixels and 2000 columns, {peak():.1f} GB at most")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=1000, help="pixels along a side of the photograph")
    parser.add_argument("--rounds", type=int, default=10, help="of logistic regression")
    parser.add_argument("--output", type=Path, default=Path("large_design.png"), help="the picture to write")
    arguments = parser.parse_args()
    if arguments.side < 2 * ACROSS or arguments.rounds < 1:
        parser.error(f"--side must be {2 * ACROSS} or more, and --rounds positive")
    sys.stdout.reconfigure(line_buffering=True)  # keep the order of output and progress bar, also in a file
    check = Checks()

    image = photograph(arguments.side)
    a, b = cosines(arguments.side, DOWN), cosines(arguments.side, ACROSS)
    X = sa.Kronecker(a, b)
    print(
        f"The design: {type(X).__name__}, {X.shape[0]:,} x {X.shape[1]:,}, {X.nbytes / 1e6:.1f} MB of {X.size * 8 / 1e9:.1f} GB"
    )
    before = peak()
    with sa.densify("error"), sklearn.config_context(array_api_dispatch=True):
        print("\n1. Logistic regression")
        probability = classify(X, a, b, image, arguments.rounds, check)
        print("\n2. Ridge regression")
        smoothed = smooth(X, a, b, image - image.mean(), check) + image.mean()
        print("\n3. Principal components")
        components(X, a, b, check)
    check(peak() - before < 2.0, f"the process had {before:.2f} GB before, and at most {peak():.2f} GB")
    picture(arguments.output, image, probability, smoothed)
    print(f"\n4. Picture: {arguments.output}")
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
