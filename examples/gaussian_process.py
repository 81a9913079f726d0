"""Trend and seasons of atmospheric CO2: one Gaussian process function on three structures of one covariance.

On a regular grid, a stationary covariance is a Toeplitz matrix, whose linear systems cost n^2 instead of n^3. Its
Fourier series gives a low-rank matrix plus noise, whose linear systems cost n r^2. The function `log_likelihood` does
not depend on the structure. It works with any library of the Array API standard, and JAX differentiates it with respect
to the hyperparameters.

    python examples/gaussian_process.py [--weeks 2284] [--years 8] [--iterations 40] [--output gaussian_process.png]

The data are the weekly averages from Mauna Loa, 1958 to 2001, in statsmodels. A few missing weeks are interpolated to
get a regular grid. The last years are held back for a prediction. The mean of the process is a least-squares parabola.

C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006: 2.2, and 5.4.3 for these data.
"""

import argparse
import math
import sys
import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from checks import Checks
from scipy.optimize import minimize
from statsmodels.datasets import co2
from tqdm import tqdm

import structarrays as sa

jax.config.update("jax_enable_x64", True)
matplotlib.use("Agg")

TOLERANCE = 1e-8
APPROXIMATION = 1e-3
WEEK = 7 / 365.25  # in years
HARMONICS = np.arange(1, 4)


def log_likelihood(K, y):
    """Return the log density of `y` for a normal distribution with covariance `K`, for any library of the standard."""
    xp = K.__array_namespace__()
    _, logarithm = xp.linalg.slogdet(K)
    return -0.5 * (xp.vecdot(y, xp.linalg.solve(K, y)) + logarithm + y.shape[0] * math.log(2 * math.pi))


def predict(K, cross, prior, y):
    """Return mean and variance of variables with prior variance `prior` and covariance `cross` with `y`."""
    xp = K.__array_namespace__()
    mean = cross.mT @ xp.linalg.solve(K, y)
    return mean, prior - xp.sum(cross * xp.linalg.solve(K, cross), axis=0)


# ---- model: trend, slowly changing seasons, irregularities, noise -------------------------------------------------------


class Parameters(NamedTuple):
    """Standard deviations in ppm, lengths in years, and the decay of the harmonics of the seasons."""

    trend: float = 3.0
    trend_length: float = 20.0
    season: float = 2.0
    season_length: float = 60.0
    harmonic_ratio: float = 0.1
    irregular: float = 0.5
    irregular_length: float = 0.6
    noise: float = 0.3

    @classmethod
    def of_logarithms(cls, theta):
        return cls(*(jnp.exp(theta[i]) for i in range(len(cls._fields))))


def _bell(time, length):
    return jnp.exp(-0.5 * (time / length) ** 2)


def covariance(p: Parameters, time):
    """Return the covariance of two weeks at a distance of `time` years, without the noise."""
    waves = jnp.sum(p.harmonic_ratio ** (HARMONICS - 1) * jnp.cos(2 * np.pi * HARMONICS * time[..., None]), axis=-1)
    seasons = p.season**2 * _bell(time, p.season_length) * waves
    return p.trend**2 * _bell(time, p.trend_length) + seasons + p.irregular**2 * _bell(time, p.irregular_length)


def dense(p: Parameters, n: int):
    """Return the covariance matrix as an ordinary array."""
    weeks = jnp.arange(n)
    K = covariance(p, WEEK * (weeks[:, None] - weeks)) + p.noise**2 * jnp.eye(n)
    return sa.assume(sa.asarray(K), "positive_definite")


def toeplitz(p: Parameters, n: int):
    """Return the same matrix, given by its first column."""
    weeks = jnp.arange(n)
    column = covariance(p, WEEK * weeks) + p.noise**2 * (weeks == 0)
    return sa.assume(sa.Toeplitz(column), "positive_definite")


def low_rank(p: Parameters, n: int):
    """Return ``U U^T`` plus a multiple of the identity: the same matrix except for small terms of Fourier series.

    A bell curve of length l is a series of cosines with a long period and frequencies up to about 1 / l. By the
    addition theorem ``cos(a (s - t)) = cos(a s) cos(a t) + sin(a s) sin(a t)``, each cosine gives two columns.
    """
    start, span = Parameters(), WEEK * n
    time = WEEK * np.arange(n)[:, None]
    columns = []
    for deviation, length, near, centres in (
        (p.trend, p.trend_length, start.trend_length, [0]),
        (p.season, p.season_length, start.season_length, HARMONICS),
        (p.irregular, p.irregular_length, start.irregular_length, [0]),
    ):
        period = span + 6 * near
        frequency = np.arange(-math.ceil(period / near), math.ceil(period / near) + 1) / period
        weight = math.sqrt(2 * math.pi) * length / period * jnp.exp(-2 * (np.pi * length * frequency) ** 2)
        for i, centre in enumerate(centres):
            if centre == 0:  # positive and negative frequencies are equal
                kept, factor = frequency >= 0, np.where(frequency > 0, 2, 1)
            else:
                kept, factor = np.ones(frequency.size, bool), np.ones(frequency.size)
            angle = 2 * np.pi * (centre + frequency[kept]) * time
            scale = deviation * jnp.sqrt((weight * factor)[kept] * p.harmonic_ratio**i)
            columns += [jnp.cos(angle) * scale, jnp.sin(angle) * scale]
    U = jnp.concatenate(columns, axis=1)
    return sa.LowRank(U, U) + p.noise**2 * sa.eye(n)


# ---- data ---------------------------------------------------------------------------------------------------------------


def weekly(weeks: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return years, ppm, and the number of interpolated values, for the last weeks of the data."""
    series = co2.load_pandas().data["co2"].iloc[-weeks:]
    first = series.index[0]
    start = first.year + (first.dayofyear - 1) / 365.25
    missing = int(series.isna().sum())
    return start + WEEK * np.arange(len(series)), series.interpolate().bfill().to_numpy(), missing


# ---- parts of the program -----------------------------------------------------------------------------------------------


def compare(y, theta, check) -> None:
    """Compare log-likelihood and gradient on three structures."""
    n = y.shape[0]
    print(f"1. One log-likelihood, three structures of the covariance of {n} weeks")
    results = {}
    with tqdm(total=3, unit="structure", file=sys.stderr) as progress:
        for make in (dense, toeplitz, low_rank):
            progress.set_description(f"  {make.__name__}")

            def objective(theta, make=make):
                return log_likelihood(make(Parameters.of_logarithms(theta), n), y).to_jax()

            K = jax.jit(make, static_argnums=1)(Parameters.of_logarithms(theta), n)
            start = time.perf_counter()
            compiled = jax.jit(jax.value_and_grad(objective)).lower(theta).compile()
            compilation = time.perf_counter() - start
            elapsed = math.inf
            for _ in range(1 if make is dense else 3):
                start = time.perf_counter()
                value, gradient = jax.block_until_ready(compiled(theta))
                elapsed = min(elapsed, time.perf_counter() - start)
            results[make.__name__] = float(value), np.asarray(gradient)
            name = type(K).__name__ if make is not low_rank else f"{type(K).__name__} of rank {_rank(K)} and a diagonal"
            print(
                f"  {name}: stores {K.nbytes / 2**20:.2f} MiB; log-likelihood {float(value):.6f}; with its gradient "
                f"{1e3 * elapsed:.1f} ms (compiled in {compilation:.1f} s)"
            )
            progress.update()
    value, gradient = results["dense"]
    print("  gradient by the logarithms of the parameters:")
    for name, slope in zip(Parameters._fields, gradient, strict=True):
        print(f"    {name.replace('_', ' '):18s}{slope:+14.6f}")
    for name, what, tolerance in (
        ("toeplitz", "rounding", TOLERANCE),
        ("low_rank", "what the series leaves out", APPROXIMATION),
    ):
        error = abs(results[name][0] / value - 1)
        slope_error = np.max(np.abs(results[name][1] - gradient)) / np.max(np.abs(gradient))
        check(
            error <= tolerance and slope_error <= tolerance,
            f"{name} agrees with dense to {what}: value to {error:.0e}, gradient to {slope_error:.0e} (at most {tolerance:g})",
        )


def _rank(K) -> int:
    return next(term.u.shape[-1] for term in K.terms if type(term) is sa.LowRank)


def fit(y, theta, iterations: int, check) -> np.ndarray:
    """Return hyperparameters of (locally) maximal likelihood, by gradients on the Toeplitz matrix."""
    n = y.shape[0]
    print(f"\n2. Hyperparameters by L-BFGS, at most {iterations} iterations, with the Toeplitz matrix")

    @jax.jit
    def objective(theta):
        def loss(theta):
            return -log_likelihood(toeplitz(Parameters.of_logarithms(theta), n), y).to_jax()

        return jax.value_and_grad(loss)(theta)

    before = float(objective(theta)[0])
    calls = 0
    with tqdm(total=iterations, unit="iteration", file=sys.stderr) as progress:

        def evaluate(theta):
            nonlocal calls
            calls += 1
            value, gradient = objective(theta)
            return float(value), np.asarray(gradient)

        begin = time.perf_counter()
        # Each parameter stays within a factor of 4 of its start, so that the noise keeps the matrix positive definite.
        bounds = [(t - math.log(4), t + math.log(4)) for t in theta]
        options = {"maxiter": iterations}
        found = minimize(
            evaluate,
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options=options,
            callback=lambda _: progress.update(),
        )
        elapsed = time.perf_counter() - begin
    print(f"  log-likelihood {-before:.2f} before, {-found.fun:.2f} after {found.nit} iterations")
    print(f"  {calls} values with gradients in {elapsed:.1f} s")
    fitted = Parameters(*np.exp(found.x))
    for name, value in fitted._asdict().items():
        print(f"    {name.replace('_', ' '):18s}{value:10.4f}")
    check(found.fun < before, "the likelihood has grown")
    return found.x


def parabola(years: np.ndarray, ppm: np.ndarray) -> np.polynomial.Polynomial:
    """Return the mean of the process."""
    return np.polynomial.Polynomial.fit(years, ppm, 2)


def ahead(years, ppm, y, offset, theta, check):
    """Predict mean and standard deviation of the weeks that were held back."""
    n, m = y.shape[0], ppm.size - y.shape[0]
    print(f"\n3. The last {m} weeks, from {years[n]:.1f} on, which were held back")
    p = Parameters(*np.exp(theta))
    K = toeplitz(p, n)
    gaps = WEEK * (n - np.arange(n)[:, None] + np.arange(m))
    cross = sa.asarray(covariance(p, gaps))
    prior = float(covariance(p, jnp.zeros(()))) + p.noise**2
    mean, variance = (np.asarray(part) for part in predict(K, cross, prior, y))
    mean, deviation = mean + offset(years[n:]), np.sqrt(variance)
    missed = ppm[n:] - mean
    inside = np.mean(np.abs(missed) <= 2 * deviation)
    alone = math.sqrt(np.mean((ppm[n:] - offset(years[n:])) ** 2))
    error = math.sqrt(np.mean(missed**2))
    print(f"  root mean square error {error:.2f} ppm (of the parabola alone: {alone:.2f} ppm)")
    print(f"  within two standard deviations: {100 * inside:.0f} % of the weeks")
    check(bool(np.all(variance > 0)) and error < alone, "the prediction is better than the parabola alone")
    return mean, deviation


def picture(path: Path, years, ppm, mean, deviation) -> None:
    """Draw all years in the upper panel, and the predicted years in the lower panel."""
    n = years.size - mean.size
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 7), layout="constrained")
    figure.suptitle("Atmospheric CO2 at Mauna Loa", fontsize=15, fontweight="bold", x=0.01, ha="left")
    for axes in (above, below):
        axes.plot(years[:n], ppm[:n], color="#777777", linewidth=1, label="data")
        axes.plot(years[n:], ppm[n:], color="black", linewidth=1, label="data held back")
        axes.fill_between(
            years[n:], mean - 2 * deviation, mean + 2 * deviation, color="#c0392b", alpha=0.25, linewidth=0,
            label="two standard deviations",
        )  # fmt: skip
        axes.plot(years[n:], mean, color="#c0392b", linewidth=1.5, label="prediction")
        axes.set(ylabel="ppm")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    above.set_title("All weeks", loc="left", fontsize=11)
    above.legend(frameon=False, loc="upper left")
    below.set_title("The predicted years", loc="left", fontsize=11)
    below.set(xlabel="year", xlim=(years[n] - 2, years[-1]))
    shown = years >= years[n] - 2
    below.set_ylim(ppm[shown].min() - 2, max(ppm[shown].max(), (mean + 2 * deviation).max()) + 2)
    figure.text(
        0.995, 0.005, "Data: C. D. Keeling and T. P. Whorf, Scripps Institution of Oceanography, as bundled with statsmodels (co2)",
        ha="right", fontsize=7, color="#777777",
    )  # fmt: skip
    figure.get_layout_engine().set(rect=(0, 0.02, 1, 0.97))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weeks", type=int, default=2284, help="how many of the last weeks are used (default: all)")
    parser.add_argument("--years", type=float, default=8.0, help="how many of these are held back and predicted")
    parser.add_argument("--iterations", type=int, default=40, help="of the optimiser")
    parser.add_argument("--output", type=Path, default=Path("gaussian_process.png"), help="the picture to write")
    arguments = parser.parse_args()
    held = round(arguments.years / WEEK)
    if not (400 <= arguments.weeks <= 2284 and 1 <= held <= arguments.weeks - 300 and arguments.iterations >= 1):
        parser.error("--weeks must be 400 to 2284, --years leave 300 of them or more, and --iterations be positive")

    sys.stdout.reconfigure(line_buffering=True)  # keep the order of output and progress bar, also in a file
    check = Checks()

    years, ppm, missing = weekly(arguments.weeks)
    print(
        f"CO2 at Mauna Loa, {ppm.size} weeks up to {years[-1]:.1f}, of which {missing} are missing and interpolated\n"
    )
    n = ppm.size - held
    offset = parabola(years[:n], ppm[:n])
    y = sa.asarray(ppm[:n] - offset(years[:n]))
    theta = np.log(np.asarray(Parameters()))
    compare(y, theta, check)
    theta = fit(y, theta, arguments.iterations, check)
    mean, deviation = ahead(years, ppm, y, offset, theta, check)
    picture(arguments.output, years, ppm, mean, deviation)
    print(f"\n4. Picture of the data and the prediction: {arguments.output}")
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
