"""Products and systems with Toeplitz and circulant matrices compared with SciPy."""

import time

import jax
import numpy as np
from harness import OURS, Bar, Report, duration
from peers import CPU_ONLY, on_cpu

import structarrays as sa

N = 10**6
SCIPY_TOEPLITZ = "scipy.linalg.matmul_toeplitz"
SCIPY_RFFT = "scipy.fft.irfft(rfft(c) * rfft(x))"
SCIPY_CIRCULANT = "scipy.linalg.solve_circulant"
SCIPY_SOLVE = "scipy.linalg.solve_toeplitz"
SYSTEM, LARGE_SYSTEM = 4096, 10**5


def run(report: Report) -> None:
    report.section("Toeplitz and circulant matrices")
    rng = np.random.default_rng(0)
    c, r, x = rng.normal(size=(3, N))
    c[0] += 2 * np.sqrt(N)
    sa_x = sa.asarray(x)
    matmul, solve = jax.jit(lambda p, q: p @ q), jax.jit(sa.linalg.solve)

    toeplitz, circulant, hankel = sa.Toeplitz(c, r), sa.Circulant(c), sa.Hankel(c, r)
    candidates = {OURS: lambda: toeplitz @ sa_x, f"{OURS}, jitted": lambda: matmul(toeplitz, sa_x)}
    candidates[f"{OURS}, Hankel"] = lambda: hankel @ sa_x
    absent = {}
    if on_cpu():
        from scipy.linalg import matmul_toeplitz

        candidates[SCIPY_TOEPLITZ] = lambda: matmul_toeplitz((c, r), x)
        _agree(candidates[OURS], candidates[SCIPY_TOEPLITZ])
    else:
        absent[SCIPY_TOEPLITZ] = CPU_ONLY
    bars = [Bar(SCIPY_TOEPLITZ, factor=0.15)]
    report.time("Toeplitz @ vector, n = 1,000,000", candidates, bars, absent, rounds=15)

    candidates = {OURS: lambda: circulant @ sa_x, f"{OURS}, jitted": lambda: matmul(circulant, sa_x)}
    absent = {}
    if on_cpu():
        from scipy import fft

        candidates[SCIPY_RFFT] = lambda: fft.irfft(fft.rfft(c) * fft.rfft(x), N)
        _agree(candidates[OURS], candidates[SCIPY_RFFT])
    else:
        absent[SCIPY_RFFT] = CPU_ONLY
    report.time("Circulant @ vector, n = 1,000,000", candidates, [Bar(SCIPY_RFFT, factor=0.7)], absent, rounds=60)

    candidates = {
        OURS: lambda: sa.linalg.solve(circulant, sa_x),
        f"{OURS}, jitted": lambda: solve(circulant, sa_x),
    }
    absent = {}
    if on_cpu():
        from scipy.linalg import solve_circulant

        candidates[SCIPY_CIRCULANT] = lambda: solve_circulant(c, x)
        _agree(candidates[OURS], candidates[SCIPY_CIRCULANT])
    else:
        absent[SCIPY_CIRCULANT] = CPU_ONLY
    report.time("Circulant solve, n = 1,000,000", candidates, [Bar(SCIPY_CIRCULANT, factor=0.7)], absent, rounds=20)
    systems(report)


def symbols(n: int) -> dict[str, np.ndarray]:
    """Return first columns of covariances plus noise, by name; the last has a condition number of about 1e10."""
    k = np.arange(n)
    noise = k == 0
    return {
        "exponential + 0.1": np.exp(-k / 20.0) + 0.1 * noise,
        "rational quadratic + 0.1": 1 / (1 + k**2 / 800.0) + 0.1 * noise,
        "squared exponential + 1e-8": np.exp(-(k**2) / 800.0) + 1e-8 * noise,
    }


def systems(report: Report) -> None:
    """Time systems against SciPy's recursion, which takes ``O(n**2)`` and does not pivot, either."""
    right = np.random.default_rng(0).normal(size=SYSTEM)
    b = sa.asarray(right)
    for name, c in symbols(SYSTEM).items():
        toeplitz = sa.Toeplitz(c)
        definite = sa.assume(toeplitz, "positive_definite")
        candidates = {OURS: lambda definite=definite: sa.linalg.solve(definite, b)}
        candidates[f"{OURS}, nothing assumed"] = lambda toeplitz=toeplitz: sa.linalg.solve(toeplitz, b)
        candidates[f"{OURS}, slogdet"] = lambda definite=definite: sa.linalg.slogdet(definite).logabsdet
        candidates[f"{OURS}, both"] = lambda definite=definite: _solution_and_determinant(definite, b)
        bars = [] if name.endswith("1e-8") else [Bar(SCIPY_SOLVE, factor=0.1)]
        _system(report, f"{name}, n = {SYSTEM:,}, assumed positive definite", candidates, bars, c, right)

    c = symbols(SYSTEM)["exponential + 0.1"]
    r = 0.5 * c
    general = sa.Toeplitz(c, r)
    candidates = {OURS: lambda: sa.linalg.solve(general, b)}
    _system(report, f"not Hermitian, n = {SYSTEM:,}", candidates, [Bar(SCIPY_SOLVE, factor=1.2)], (c, r), right)
    r = np.zeros(SYSTEM)
    triangular = sa.Toeplitz(c, r[:1], shape=(SYSTEM, SYSTEM))
    candidates = {OURS: lambda: sa.linalg.solve(triangular, b)}
    _system(report, f"triangular, n = {SYSTEM:,}", candidates, [Bar(SCIPY_SOLVE, factor=0.1)], (c, r), right)
    if not report.quick:
        large_systems(report)


_solution_and_determinant = jax.jit(lambda x, b: (sa.linalg.solve(x, b), sa.linalg.slogdet(x)))


def _system(report, case, candidates, bars, c_or_cr, right) -> None:
    absent = {}
    if on_cpu():
        from scipy.linalg import solve_toeplitz

        candidates[SCIPY_SOLVE] = lambda: solve_toeplitz(c_or_cr, right)
        for name, candidate in candidates.items():
            if not name.endswith(("slogdet", "both")):
                _solves(c_or_cr, candidate(), right)
    else:
        absent[SCIPY_SOLVE] = CPU_ONLY
    report.time(f"Toeplitz solve, {case}", candidates, bars, absent, rounds=15)


def large_systems(report: Report) -> None:
    """Time large systems; SciPy's recursion takes so long that it runs once."""
    right = np.random.default_rng(0).normal(size=LARGE_SYSTEM)
    b = sa.asarray(right)
    for name, c in symbols(LARGE_SYSTEM).items():
        definite = sa.assume(sa.Toeplitz(c), "positive_definite")
        case = f"Toeplitz solve, {name}, n = {LARGE_SYSTEM:,}, assumed positive definite"
        timings = report.time(case, {OURS: lambda definite=definite: sa.linalg.solve(definite, b)}, rounds=15)
        _solves(c, sa.linalg.solve(definite, b), right)
        if not on_cpu() or name.endswith("1e-8"):
            continue
        from scipy.linalg import solve_toeplitz

        start = time.perf_counter()
        solve_toeplitz(c, right)
        once = time.perf_counter() - start
        report.remark(f"{case}: {SCIPY_SOLVE}, once: {duration(once)}")
        report.note(case, scipy_seconds=once)
        ratio = timings[OURS].minimum / once
        report.judge(case, OURS, f"<= 0.01 x {SCIPY_SOLVE}", f"{ratio:.4f} x", ratio <= 0.01)


def _solves(c_or_cr, x, right) -> None:
    """Check that the backward error of a solution is of the size of rounding errors."""
    from scipy.linalg import matmul_toeplitz

    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, c_or_cr)
    x = np.asarray(x)
    size = np.abs(c).sum() + np.abs(r[1:]).sum()
    residual = np.abs(right - matmul_toeplitz(c_or_cr, x)).max()
    assert residual <= 100 * np.finfo(float).eps * (size * np.abs(x).max() + np.abs(right).max())


def _agree(ours, theirs) -> None:
    """Check that both products agree."""
    expected = np.asarray(theirs())
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(np.asarray(ours()), expected, rtol=1e-10, atol=1e-10 * scale)
