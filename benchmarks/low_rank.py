"""Sums with a term of low rank: ours, linear_operator, and the formulas of Woodbury and of the determinant lemma written by hand."""

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
    """A positive definite matrix, ``diag + u @ u.T``: linear_operator has no others."""
    rng = np.random.default_rng(n)
    return rng.uniform(1.0, 2.0, n), rng.normal(size=(n, rank)) / np.sqrt(n), rng.normal(size=n)


def solve(report: Report, case: str, n: int, rank: int) -> None:
    """One right-hand side. Ours looks at the residual as well."""
    diag, u, right = _parts(n, rank)
    a, b = sa.Diagonal(diag) + sa.LowRank(u, u), sa.asarray(right)

    _report(
        report, case, lambda: sa.linalg.solve(a, b), woodbury, (diag, u, right), lambda x, b: x.solve(b[:, None])[:, 0]
    )


def woodbury(xp, diag, u, right):
    """The solution by hand, with NumPy or jax.numpy."""
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
    for name, function in candidates.items():  # a fast wrong number is no number
        np.testing.assert_allclose(np.asarray(function()), expected, rtol=1e-6, atol=1e-9, err_msg=name)
    report.time(case, candidates, [Bar(NUMPY), Bar(LINEAR_OPERATOR, 0.3)], absent, rounds=30)


def _by_linear_operator(peers, arguments, method):
    """Their call, on an operator made anew each time, since an operator keeps what it has computed."""
    torch, operators = peers
    diag, u, *right = map(torch.as_tensor, arguments)
    return lambda: method(operators.LowRankRootLinearOperator(u) + operators.DiagLinearOperator(diag), *right)
