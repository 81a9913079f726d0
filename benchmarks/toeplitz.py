"""Products with Toeplitz and circulant matrices, and circulant systems: ours and SciPy's, all by Fourier transforms."""

import jax
import numpy as np
from harness import OURS, Bar, Report
from peers import CPU_ONLY, on_cpu

import structarrays as sa

N = 10**6
SCIPY_TOEPLITZ = "scipy.linalg.matmul_toeplitz"
SCIPY_RFFT = "scipy.fft.irfft(rfft(c) * rfft(x))"
SCIPY_CIRCULANT = "scipy.linalg.solve_circulant"
SCIPY_SOLVE = "scipy.linalg.solve_toeplitz"
SYSTEM = 4096


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


def systems(report: Report) -> None:
    """A covariance that decays exponentially, beside noise; SciPy's recursion has no pivots either."""
    c = np.exp(-np.arange(SYSTEM) / 20.0)
    c[0] += 0.1
    right = np.random.default_rng(0).normal(size=SYSTEM)
    toeplitz, b = sa.Toeplitz(c), sa.asarray(right)
    definite = sa.assume(toeplitz, "positive_definite")
    candidates = {OURS: lambda: sa.linalg.solve(definite, b)}
    candidates[f"{OURS}, nothing assumed"] = lambda: sa.linalg.solve(toeplitz, b)
    candidates[f"{OURS}, slogdet"] = lambda: sa.linalg.slogdet(definite).logabsdet
    absent = {}
    if on_cpu():
        from scipy.linalg import solve_toeplitz

        candidates[SCIPY_SOLVE] = lambda: solve_toeplitz(c, right)
        _agree(candidates[OURS], candidates[SCIPY_SOLVE])
        _agree(candidates[f"{OURS}, nothing assumed"], candidates[SCIPY_SOLVE])
    else:
        absent[SCIPY_SOLVE] = CPU_ONLY
    report.time(f"Toeplitz solve, n = {SYSTEM:,}, assumed positive definite", candidates, [], absent, rounds=15)


def _agree(ours, theirs) -> None:
    """A fast wrong product is no product."""
    expected = np.asarray(theirs())
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(np.asarray(ours()), expected, rtol=1e-10, atol=1e-10 * scale)
