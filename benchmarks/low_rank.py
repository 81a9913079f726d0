"""Sums with a term of low rank: ours, and the formulas of Woodbury and of the determinant lemma written by hand in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report
from peers import CPU_ONLY, on_cpu

import structarrays as sa

NUMPY, JAX = "the formula in NumPy", "the formula in jax.numpy, jitted"


def run(report: Report) -> None:
    report.section("Diagonal + low rank")
    solve(report, "solve, n = 100,000, rank 50", 100_000, 50)
    slogdet(report, "slogdet, n = 100,000, rank 50", 100_000, 50)


def _parts(n: int, rank: int):
    rng = np.random.default_rng(n)
    diag, right = rng.uniform(1.0, 2.0, n), rng.normal(size=n)
    u, v = (rng.normal(size=(n, rank)) / np.sqrt(n) for _ in range(2))
    return diag, u, v, right


def solve(report: Report, case: str, n: int, rank: int) -> None:
    """One right-hand side. Ours looks at the residual as well."""
    diag, u, v, right = _parts(n, rank)
    a, b = sa.Diagonal(diag) + sa.LowRank(u, v), sa.asarray(right)

    def formula(xp, diag, u, v, right):
        scaled, alone = u / diag[:, None], right / diag
        return alone - scaled @ xp.linalg.solve(xp.eye(rank) + v.T @ scaled, v.T @ alone)

    compiled, operands = jax.jit(lambda *args: formula(jnp, *args)), tuple(map(jnp.asarray, (diag, u, v, right)))
    candidates = {OURS: lambda: sa.linalg.solve(a, b), JAX: lambda: compiled(*operands)}
    _report(report, case, candidates, lambda: formula(np, diag, u, v, right), formula(np, diag, u, v, right))


def slogdet(report: Report, case: str, n: int, rank: int) -> None:
    diag, u, v, _ = _parts(n, rank)
    a = sa.Diagonal(diag) + sa.LowRank(u, v)

    def formula(xp, diag, u, v):
        _, log = xp.linalg.slogdet(xp.eye(rank) + v.T @ (u / diag[:, None]))
        return log + xp.sum(xp.log(diag))

    compiled, operands = jax.jit(lambda *args: formula(jnp, *args)), tuple(map(jnp.asarray, (diag, u, v)))
    candidates = {OURS: lambda: sa.linalg.slogdet(a).logabsdet, JAX: lambda: compiled(*operands)}
    _report(report, case, candidates, lambda: formula(np, diag, u, v), formula(np, diag, u, v))


def _report(report: Report, case: str, candidates: dict, by_hand, expected) -> None:
    absent = {}
    if on_cpu():
        candidates[NUMPY] = by_hand
    else:
        absent[NUMPY] = CPU_ONLY
    for name, function in candidates.items():  # a fast wrong number is no number
        np.testing.assert_allclose(np.asarray(function()), expected, rtol=1e-8, atol=1e-8, err_msg=name)
    report.time(case, candidates, [Bar(NUMPY)], absent, rounds=60)
