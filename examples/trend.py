"""Trend and cycle of US real GDP, and of a million quarters, by one function that does not depend on structure.

The Hodrick-Prescott trend of a series ``y`` is the smooth series ``t`` that minimizes

    sum (y - t)^2 + lam * sum (second differences of t)^2,      that is,      (I + lam D'D) t = y,

where ``D`` takes second differences. The function `trend` implements this formula with functions of the Array API
standard. With an ordinary array ``D`` it costs n^3; with a banded array it costs n, without changes to the function.

    python examples/trend.py [--n 1000000] [--lam 1600] [--output trend.png]

R. J. Hodrick and E. C. Prescott, "Postwar U.S. Business Cycles: An Empirical Investigation", 1980 (Journal of Money,
Credit and Banking 29, 1997).
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from checks import Checks
from scipy.linalg import solveh_banded
from statsmodels.datasets import macrodata
from statsmodels.tsa.filters.hp_filter import hpfilter
from tqdm import tqdm

import structarrays as sa

jax.config.update("jax_enable_x64", True)
matplotlib.use("Agg")

TOLERANCE = 1e-8
MEMORY_FACTOR = 4.0


def trend(y, D, lam):
    """Return the Hodrick-Prescott trend of `y` for the second difference `D`, with any library of the standard."""
    xp = y.__array_namespace__()
    return xp.linalg.solve(xp.eye(y.shape[0]) + lam * (D.mT @ D), y)


def second_difference(n: int) -> sa.Banded:
    """Return the (n - 2) x n matrix of second differences: 1, -2, 1 on its three diagonals."""
    ones = np.ones(n - 2)
    return sa.Banded((ones, -2.0 * ones, ones), (0, 1, 2), (n - 2, n))


def real_data(lam: float, check: Checks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return quarters, log GDP and its trend, and compare the trend with statsmodels."""
    data = macrodata.load_pandas().data
    names = [f"{year:.0f} Q{quarter:.0f}" for year, quarter in zip(data["year"], data["quarter"], strict=True)]
    quarters = data["year"].to_numpy() + (data["quarter"].to_numpy() - 1) / 4
    log_gdp = np.log(data["realgdp"].to_numpy())
    n = log_gdp.size
    print(f"1. The logarithm of US real GDP, {n} quarters from {names[0]} to {names[-1]}, lambda = {lam:g}")

    y, D = sa.asarray(log_gdp), second_difference(n)
    print(f"  D is a {type(D).__name__} array of shape {D.shape}, and D.mT @ D is {type(D.mT @ D).__name__} too")
    smooth = np.asarray(trend(y, D, lam))
    difference = np.max(np.abs(smooth - np.asarray(hpfilter(log_gdp, lam)[1])))
    print(f"  largest difference from statsmodels' hpfilter: {difference:.1e} of a logarithm, so relative to GDP")
    check(bool(difference <= TOLERANCE), f"agrees with statsmodels to {TOLERANCE:g}")
    cycle = 100 * (log_gdp - smooth)
    deepest = np.argmin(cycle)
    print(f"  farthest below its trend in {names[deepest]}: {cycle[deepest]:.1f} %")
    return quarters, log_gdp, smooth


def long_series(log_gdp: np.ndarray, n: int) -> np.ndarray:
    """Return a log GDP of `n` quarters, whose growth is drawn from the real growth minus its mean."""
    growth = np.diff(log_gdp)
    drawn = np.random.default_rng(0).choice(growth - growth.mean(), size=n - 1)
    return log_gdp[0] + np.concatenate([[0.0], np.cumsum(drawn)])


def banded_trend(y: np.ndarray, lam: float) -> np.ndarray:
    """Compute the reference: the same trend by LAPACK's function for symmetric bands."""
    n = y.size
    ones = np.ones(n - 2)
    bands = np.zeros((3, n))
    bands[0, 2:] = lam
    bands[1, 1:-1] -= 2.0 * lam * ones
    bands[1, 2:] -= 2.0 * lam * ones
    bands[2] += 1.0
    for start, weight in enumerate((1.0, 4.0, 1.0)):
        bands[2, start : start + n - 2] += lam * weight
    return solveh_banded(bands, y)


def peak_resident_bytes(function: Callable[[], object]) -> int | None:
    """Return the increase of the resident memory of this process while `function` runs, or None if not on Linux."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not reset.exists():
        return None

    def kibibytes(key: str) -> int:
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(key))

    reset.write_text("5")  # reset the peak to the current resident memory
    before = kibibytes("VmRSS")
    jax.block_until_ready(function())
    return 1024 * max(0, kibibytes("VmHWM") - before)


def million(log_gdp: np.ndarray, n: int, lam: float, check: Checks) -> None:
    """Run the same function on `n` quarters: time, memory, log, and derivative by lambda."""
    print(f"\n2. The same function on {n:,} quarters, drawn from the growth of the real ones")
    data = long_series(log_gdp, n)
    y, D = sa.asarray(data), second_difference(n)
    with tqdm(total=9, unit="step", file=sys.stderr) as progress:

        def timed(what: str, function: Callable[[], object]) -> tuple[object, float]:
            progress.set_description(f"  {what}")
            start = time.perf_counter()
            result = jax.block_until_ready(function())
            elapsed = time.perf_counter() - start
            progress.update()
            return result, elapsed

        compiled, compilation = timed("compiling", lambda: jax.jit(trend).lower(y, D, lam).compile())
        smooth, first = timed("solving", lambda: compiled(y, D, lam))
        warm = min(timed("solving", lambda: compiled(y, D, lam))[1] for _ in range(2))
        timed("solving without jit", lambda: trend(y, D, lam))
        _, eager = timed("solving without jit", lambda: trend(y, D, lam))
        with sa.record() as record:
            timed("recording what runs", lambda: trend(y, D, lam))
        resident, _ = timed("watching memory", lambda: peak_resident_bytes(lambda: compiled(y, D, lam)))
        expected, by_hand = timed("checking", lambda: banded_trend(data, lam))

    print(f"  first call: {first + compilation:.2f} s, of which compilation {compilation:.2f} s")
    print(f"  later calls: {1e3 * warm:.1f} ms, {1e9 * warm / n:.0f} ns a quarter; without jit {1e3 * eager:.1f} ms")
    print(f"  LAPACK, the code written by hand for this one positive definite matrix: {1e3 * by_hand:.1f} ms")
    relative = np.max(np.abs(np.asarray(smooth) - expected)) / np.max(np.abs(expected))
    check(bool(relative <= TOLERANCE), f"agrees with LAPACK to {TOLERANCE:g} of the largest value ({relative:.1e})")
    memory(y, D, lam, compiled.memory_analysis(), resident, check)
    print("\n  What ran in one call without jit, by sa.record():\n")
    print("\n".join(f"    {line}" for line in str(record).splitlines()))
    count = len(record.densifications)
    check(count == 0, f"no array was made dense ({count} densifications)")
    derivative(y, D, lam, check)


def memory(y, D, lam: float, plan, resident: int | None, check: Checks) -> None:
    """Compare peak memory with the storage of the arrays of the problem; `plan` is XLA's plan of the compiled function."""
    n = y.shape[0]
    A = sa.eye(n) + lam * (D.mT @ D)
    stored = y.nbytes + D.nbytes + A.nbytes
    arguments, result, temporary = plan.argument_size_in_bytes, plan.output_size_in_bytes, plan.temp_size_in_bytes
    needed = arguments + result + temporary
    print("\n  Memory")
    print(f"  stored: y {_mib(y.nbytes)}, D {_mib(D.nbytes)}, I + lambda D'D {_mib(A.nbytes)}; together {_mib(stored)}")
    print(f"  (a dense I + lambda D'D would be {8 * n * n / 2**30:,.1f} GiB)")
    print(f"  needed, by XLA's plan of the compiled call: arguments {_mib(arguments)}, result {_mib(result)},")
    print(f"  temporary {_mib(temporary)}; together {_mib(needed)}")
    if resident is not None:
        print(f"  rise of this process's resident memory during the call, by Linux: {_mib(resident)}")
    check(
        needed <= MEMORY_FACTOR * stored,
        f"peak memory is at most {MEMORY_FACTOR:g} times what is stored ({needed / stored:.2f} times)",
    )


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


def derivative(y, D, lam: float, check: Checks) -> None:
    """Compute derivatives by lambda: of the whole trend in forward mode, of its last value in reverse mode."""
    print("\n  Derivative of the trend by lambda")
    step = 1e-3 * lam

    @jax.jit
    def forward(lam):
        return jax.jvp(lambda value: trend(y, D, value).to_jax(), (lam,), (1.0,))[1]

    @jax.jit
    def backward(lam):
        return jax.grad(lambda value: trend(y, D, value)[-1].to_jax())(lam)

    @jax.jit
    def difference(lam):
        return (trend(y, D, lam + step).to_jax() - trend(y, D, lam - step).to_jax()) / (2 * step)

    results = []
    functions = {"forwards": forward, "backwards": backward, "finite difference": difference}
    with tqdm(functions.items(), unit="step", file=sys.stderr) as progress:
        for what, function in progress:
            progress.set_description(f"  {what}")
            results.append(np.asarray(function(lam)))
    tangent, gradient, finite = results
    start = time.perf_counter()
    jax.block_until_ready(backward(lam))
    seconds = time.perf_counter() - start
    scale = np.max(np.abs(tangent))
    print(f"  of the last quarter's trend, by jax.grad: {float(gradient):+.6e}, in {1e3 * seconds:.1f} ms")
    print(f"  of every quarter's trend, by jax.jvp: at most {scale:.6e}")
    error = np.max(np.abs(tangent - finite)) / scale
    check(bool(error <= 1e-5), f"jvp agrees with a central difference of step {step:g} to 1e-5 ({error:.1e})")
    error = abs(float(gradient) - tangent[-1]) / scale
    check(bool(error <= TOLERANCE), f"grad agrees with jvp to {TOLERANCE:g} ({error:.1e})")


def picture(path: Path, quarters: np.ndarray, log_gdp: np.ndarray, smooth: np.ndarray, lam: float) -> None:
    """Draw GDP and its trend in the upper panel, and the cycle in the lower panel."""
    cycle = 100 * (log_gdp - smooth)
    figure, (above, below) = plt.subplots(
        2, 1, sharex=True, figsize=(9, 6.5), height_ratios=(3, 2), layout="constrained"
    )
    figure.suptitle("US real GDP: trend and cycle", fontsize=15, fontweight="bold", x=0.01, ha="left")
    above.plot(quarters, np.exp(log_gdp) / 1000, color="#777777", linewidth=1.2, label="real GDP")
    above.plot(quarters, np.exp(smooth) / 1000, color="#c0392b", linewidth=2, label=f"trend, $\\lambda$ = {lam:g}")
    above.set(yscale="log", ylabel="trillion 2005 dollars a year\n(log scale)")
    ticks = [3, 4, 6, 8, 10, 12]
    above.set_yticks(ticks, labels=[str(tick) for tick in ticks])
    above.set_yticks([], minor=True)
    above.set_title("Hodrick-Prescott trend", loc="left", fontsize=11)
    above.legend(frameon=False, loc="upper left")
    below.fill_between(quarters, cycle, where=cycle >= 0, interpolate=True, color="#2e86ab", alpha=0.75, linewidth=0)
    below.fill_between(quarters, cycle, where=cycle < 0, interpolate=True, color="#c0392b", alpha=0.75, linewidth=0)
    below.axhline(0, color="black", linewidth=0.8)
    below.set(xlabel="year", ylabel="deviation from trend (%)", xlim=(quarters[0], quarters[-1]))
    below.set_title("Cycle: above trend in blue, below it in red", loc="left", fontsize=11)
    for axes in (above, below):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.text(
        0.995,
        0.005,
        "Data: US Bureau of Economic Analysis, as bundled with statsmodels (macrodata)",
        ha="right",
        fontsize=7,
        color="#777777",
    )
    figure.get_layout_engine().set(rect=(0, 0.02, 1, 0.97))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000_000, help="quarters of the long series (default: a million)")
    parser.add_argument("--lam", type=float, default=1600.0, help="smoothness (1600 is usual for quarters)")
    parser.add_argument("--output", type=Path, default=Path("trend.png"), help="the picture to write")
    arguments = parser.parse_args()
    if arguments.n < 5 or arguments.lam <= 0:
        parser.error("--n must be at least 5 and --lam positive")

    sys.stdout.reconfigure(line_buffering=True)  # keep the order of output and progress bar, also in a file
    check = Checks()
    quarters, log_gdp, smooth = real_data(arguments.lam, check)
    million(log_gdp, arguments.n, arguments.lam, check)
    picture(arguments.output, quarters, log_gdp, smooth, arguments.lam)
    print(f"\n3. Picture of GDP, its trend and its cycle: {arguments.output}")
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
