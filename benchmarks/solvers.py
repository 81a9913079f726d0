"""Banded solves compared with LAPACK, `jax.lax` and lineax, and the cost of their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report
from peers import CPU_ONLY, NOT_INSTALLED, on_cpu, optional

import structarrays as sa

N = 10**6
JITTED = f"{OURS}, jitted"
GRADIENT = f"{OURS}, value and gradient, jitted"
LAX = "jax.lax tridiagonal_solve, jitted"
LINEAX = "lineax Tridiagonal, jitted"
GTSV = "LAPACK dgtsv"
PTSV = "LAPACK dptsv"
SOLVE_BANDED = "scipy solve_banded"
SOLVEH_BANDED = "scipy solveh_banded"


def run(report: Report) -> None:
    report.section("Banded solves")
    rng = np.random.default_rng(0)
    dominant, pivoted = _tridiagonal(rng, N, dominant=True), _tridiagonal(rng, N, dominant=False)
    general(report, "general tridiagonal solve, diagonally dominant, n = 1,000,000", *dominant)
    general(report, "general tridiagonal solve that needs pivoting, n = 1,000,000", *pivoted)
    positive_definite(report, rng)
    batched(report, rng)
    pentadiagonal(report, rng)


def _tridiagonal(rng: np.random.Generator, *shape: int, dominant: bool) -> tuple[np.ndarray, ...]:
    """Return random lower, main and upper diagonals and a random right-hand side."""
    *batch, n = shape
    low, up = rng.normal(size=(2, *batch, n - 1))
    main, b = rng.normal(size=(2, *batch, n))
    if dominant:
        edge = np.zeros((*batch, 1))
        main = 1.0 + np.abs(np.concatenate([edge, low], -1)) + np.abs(np.concatenate([up, edge], -1))
    return low, main, up, b


def _ours(a: sa.Array, b: sa.Array) -> dict:
    """Return our candidates: eager (with the singularity check), jitted, and with derivatives by all parameters."""
    jitted = jax.jit(lambda p, q: sa.linalg.solve(p, q))
    gradient = jax.jit(jax.value_and_grad(lambda p, q: jnp.sum(sa.linalg.solve(p, q).to_jax() ** 2), argnums=(0, 1)))
    return {
        OURS: lambda: sa.linalg.solve(a, b),
        JITTED: lambda: jitted(a, b),
        GRADIENT: lambda: gradient(a, b),
    }


def _cost_of_gradient(report: Report, case: str, timings: dict) -> None:
    ratio = timings[GRADIENT].minimum / timings[JITTED].minimum
    report.remark(f"{case}: value and gradient take {ratio:.2f} x the time of the solve (no bar)")
    report.note(f"{case}: value and gradient over solve", ratio=ratio)


def _agree(candidates: dict, expected: np.ndarray, tolerance: float) -> None:
    """Check every candidate except the gradient against the reference, relative to the largest entry."""
    scale = np.max(np.abs(expected))
    for name, function in candidates.items():
        if name != GRADIENT:
            error = np.max(np.abs(np.asarray(function()).reshape(expected.shape) - expected)) / scale
            if not error <= tolerance:
                raise AssertionError(f"{name} is off by {error:.1e} relative")


def general(report: Report, case: str, low: np.ndarray, main: np.ndarray, up: np.ndarray, b: np.ndarray) -> None:
    candidates = _ours(sa.tridiagonal(low, main, up), sa.asarray(b))
    absent = {}
    bands = tuple(map(jnp.asarray, (low, main, up, b)))
    candidates[LAX] = _lax(*bands)
    lineax = optional("lineax")
    if lineax is None:
        absent[LINEAX] = NOT_INSTALLED
    else:
        solver = lineax.Tridiagonal()

        @jax.jit
        def solve(low, main, up, b):
            operator = lineax.TridiagonalLinearOperator(main, low, up)
            return lineax.linear_solve(operator, b, solver, throw=False).value

        candidates[LINEAX] = lambda: solve(*bands)
    if on_cpu():
        from scipy.linalg import lapack, solve_banded

        padded = np.stack([np.append(0.0, up), main, np.append(low, 0.0)])
        candidates[GTSV] = lambda: lapack.dgtsv(low, main, up, b)[3]
        candidates[SOLVE_BANDED] = lambda: solve_banded((1, 1), padded, b)
    else:
        absent |= {GTSV: CPU_ONLY, SOLVE_BANDED: CPU_ONLY}
    # A random tridiagonal matrix is ill-conditioned: two stable solvers agree only to its condition number.
    _agree(candidates, np.asarray(candidates.get(GTSV, candidates[LAX])()), 1e-4)
    timings = report.time(case, candidates, [Bar(GTSV, factor=1.1)], absent, rounds=40)
    _cost_of_gradient(report, case, timings)


def _lax(low: jax.Array, main: jax.Array, up: jax.Array, b: jax.Array):
    """Return the solver of `jax.lax` for diagonals of shape (..., n - 1) and (..., n)."""

    @jax.jit
    def solve(low, main, up, b):
        before = [(0, 0)] * (main.ndim - 1) + [(1, 0)]
        after = [(0, 0)] * (main.ndim - 1) + [(0, 1)]
        return jax.lax.linalg.tridiagonal_solve(jnp.pad(low, before), main, jnp.pad(up, after), b[..., None])[..., 0]

    return lambda: solve(low, main, up, b)


def positive_definite(report: Report, rng: np.random.Generator) -> None:
    case = "tridiagonal solve, assumed positive definite, n = 1,000,000"
    off, b = rng.normal(size=N - 1), rng.normal(size=N)
    main = 1.0 + np.append(np.abs(off), 0.0) + np.append(0.0, np.abs(off))
    a = sa.assume(sa.tridiagonal(off, main, off), "positive_definite")
    candidates = _ours(a, sa.asarray(b))
    absent = {}
    if on_cpu():
        from scipy.linalg import lapack, solveh_banded

        upper = np.stack([np.append(0.0, off), main])
        candidates[PTSV] = lambda: lapack.dptsv(main, off, b)[2]
        candidates[SOLVEH_BANDED] = lambda: solveh_banded(upper, b)
        _agree(candidates, candidates[PTSV](), 1e-10)
    else:
        absent |= {PTSV: CPU_ONLY, SOLVEH_BANDED: CPU_ONLY}
    timings = report.time(case, candidates, [Bar(PTSV, factor=0.8)], absent, rounds=40)
    _cost_of_gradient(report, case, timings)


def batched(report: Report, rng: np.random.Generator) -> None:
    case = "1000 tridiagonal solves of n = 1000 in one batch"
    low, main, up, b = _tridiagonal(rng, 1000, 1000, dominant=True)
    # The standard requires a batch of vectors to be a batch of matrices with one column.
    candidates = _ours(sa.tridiagonal(low, main, up), sa.asarray(b[..., None]))
    candidates[LAX] = _lax(*map(jnp.asarray, (low, main, up, b)))
    _agree(candidates, np.asarray(candidates[LAX]()), 1e-10)
    timings = report.time(case, candidates, [Bar(LAX, factor=0.5)], rounds=40)
    _cost_of_gradient(report, case, timings)


def pentadiagonal(report: Report, rng: np.random.Generator) -> None:
    """Time the system of `examples/trend.py`, whose matrix has no assumption, and with an assumption for comparison."""
    case = "the example's solve: pentadiagonal, n = 1,000,000"
    lam = 1600.0
    ones = np.ones(N - 2)
    d = sa.Banded((ones, -2 * ones, ones), (0, 1, 2), (N - 2, N))
    a = sa.eye(N) + lam * (d.mT @ d)
    host_b = np.cumsum(rng.normal(size=N))
    b = sa.asarray(host_b)
    candidates = _ours(a, b)
    assumed = sa.assume(a, "positive_definite")
    candidates[f"{OURS}, assumed positive definite"] = lambda: sa.linalg.solve(assumed, b)
    absent = {}
    if on_cpu():
        from scipy.linalg import solve_banded, solveh_banded

        bands = _hodrick_prescott(N, lam)
        candidates[SOLVE_BANDED] = lambda: solve_banded((2, 2), bands, host_b)
        candidates[SOLVEH_BANDED] = lambda: solveh_banded(bands[:3], host_b)
        _agree(candidates, candidates[SOLVE_BANDED](), 1e-9)
    else:
        absent |= {SOLVE_BANDED: CPU_ONLY, SOLVEH_BANDED: CPU_ONLY}
    timings = report.time(case, candidates, [Bar(SOLVE_BANDED, factor=2.0)], absent, rounds=30)
    _cost_of_gradient(report, case, timings)


def _hodrick_prescott(n: int, lam: float) -> np.ndarray:
    """Return I + lam D'D for the second difference D, in the layout of `scipy.linalg.solve_banded`."""
    main, first, second = np.full(n, 6.0), np.full(n - 1, -4.0), np.full(n - 2, 1.0)
    main[[0, 1, -2, -1]] = 1.0, 5.0, 5.0, 1.0
    first[[0, -1]] = -2.0
    bands = np.zeros((5, n))
    bands[0, 2:], bands[1, 1:], bands[2] = second, first, main
    bands[3, :-1], bands[4, :-2] = first, second
    bands *= lam
    bands[2] += 1.0
    return bands
