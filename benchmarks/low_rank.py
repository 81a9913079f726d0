"""Sums with a low-rank term compared with linear_operator, and with hand-written Woodbury and determinant formulas."""

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report
from peers import CPU_ONLY, NOT_INSTALLED, linear_operators, on_cpu

import structarrays as sa

NUMPY, JAX = "the formula in NumPy", "the formula in jax.numpy, jitted"
LINEAR_OPERATOR = "linear_operator"


def run(report: Report) -> None:
    report.section("Diagonal + low rank")
    solve(report, "solve, n = 100,000, rank 50", 100_000, 50)
    slogdet(report, "slogdet, n = 100,000, rank 50", 100_000, 50)


def _parts(n: int, rank: int):
    """Return the parameters of a positive definite matrix ``diag + u @ u.T``, the only form in linear_operator."""
    rng = np.random.default_rng(n)
    return rng.uniform(1.0, 2.0, n), rng.normal(size=(n, rank)) / np.sqrt(n), rng.normal(size=n)


def solve(report: Report, case: str, n: int, rank: int) -> None:
    """Time a system with one right-hand side. Ours checks the residual in addition."""
    diag, u, right = _parts(n, rank)
    a, b = sa.Diagonal(diag) + sa.LowRank(u, u), sa.asarray(right)

    _report(
        report, case, lambda: sa.linalg.solve(a, b), woodbury, (diag, u, right), lambda x, b: x.solve(b[:, None])[:, 0]
    )


def woodbury(xp, diag, u, right):
    """Compute the solution by the Woodbury formula in NumPy or jax.numpy."""
    scaled, alone = u / diag[:, None], right / diag
    return alone - scaled @ xp.linalg.solve(xp.eye(u.shape[1]) + u.T @ scaled, u.T @ alone)


def slogdet(report: Report, case: str, n: int, rank: int) -> None:
    diag, u, _ = _parts(n, rank)
    a = sa.Diagonal(diag) + sa.LowRank(u, u)

    def formula(xp, diag, u):
        _, log = xp.linalg.slogdet(xp.eye(rank) + u.T @ (u / diag[:, None]))
        return log + xp.sum(xp.log(diag))

    _report(report, case, lambda: sa.linalg.slogdet(a).logabsdet, formula, (diag, u), lambda x: x.logdet())


def _report(report: Report, case: str, ours, formula, arguments, theirs) -> None:
    compiled, on_device = jax.jit(lambda *args: formula(jnp, *args)), tuple(map(jnp.asarray, arguments))
    candidates, absent = {OURS: ours, JAX: lambda: compiled(*on_device)}, {}
    peers = linear_operators()
    if on_cpu():
        candidates[NUMPY] = lambda: formula(np, *arguments)
        if peers:
            candidates[LINEAR_OPERATOR] = _by_linear_operator(peers, arguments, theirs)
        else:
            absent[LINEAR_OPERATOR] = NOT_INSTALLED
    else:
        absent |= {NUMPY: CPU_ONLY, LINEAR_OPERATOR: CPU_ONLY}
    expected = formula(np, *arguments)
    for name, function in candidates.items():  # check the results first
        np.testing.assert_allclose(np.asarray(function()), expected, rtol=1e-6, atol=1e-9, err_msg=name)
    report.time(case, candidates, [Bar(NUMPY), Bar(LINEAR_OPERATOR, 0.3)], absent, rounds=30)


def _by_linear_operator(peers, arguments, method):
    """Return their call, on a new operator each time, because operators cache their results."""
    torch, operators = peers
    diag, u, *right = map(torch.as_tensor, arguments)
    return lambda: method(operators.LowRankRootLinearOperator(u) + operators.DiagLinearOperator(diag), *right)
