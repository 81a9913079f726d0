"""Kronecker products of two matrices compared with linear_operator, and with hand-written formulas in NumPy and JAX."""

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report
from peers import CPU_ONLY, NOT_INSTALLED, linear_operators, on_cpu

import structarrays as sa

NUMPY, JAX = "numpy by hand", "jax.numpy by hand, jitted"
LINEAR_OPERATOR = "linear_operator"


def run(report: Report) -> None:
    report.section("Kronecker products, 200 x 200 ⊗ 300 x 300")
    rng = np.random.default_rng(0)
    a, b = (definite(rng, n) for n in (200, 300))
    general = [rng.normal(size=(n, n)) / np.sqrt(n) + 2 * np.eye(n) for n in (200, 300)]
    v = rng.normal(size=200 * 300)
    bars = [Bar(NUMPY, factor=1.1)]
    x, (c, d) = sa.Kronecker(*general), general
    y = sa.asarray(v)
    compare(report, "times a vector", lambda: x @ y, product, (c, d, v), bars)
    compare(report, "solve", lambda: sa.linalg.solve(x, y), solve, (c, d, v), bars)
    compare(report, "slogdet", lambda: sa.linalg.slogdet(x), slogdet, (c, d), bars)
    symmetric = sa.Kronecker(*(sa.assume(sa.asarray(m), "symmetric") for m in (a, b)))
    compare(report, "eigh", lambda: sa.linalg.eigh(symmetric), eigh, (a, b), bars, same=lambda r: r[0])
    noise = symmetric + 0.1 * sa.eye(200 * 300)
    compare(report, "+ 0.1 I: solve", lambda: sa.linalg.solve(noise, y), shifted_solve, (a, b, v), [])
    compare(report, "+ 0.1 I: slogdet", lambda: sa.linalg.slogdet(noise), shifted_slogdet, (a, b), [])
    both = jax.jit(lambda x, y: (sa.linalg.solve(x, y), sa.linalg.slogdet(x)))
    bars = [Bar(NUMPY, factor=0.8), Bar(LINEAR_OPERATOR, factor=0.25)]
    case, arguments = "+ 0.1 I: solve and slogdet, compiled", (a, b, v)
    compare(report, case, lambda: both(noise, y), shifted, arguments, bars, theirs=_by_linear_operator)


def definite(rng, n):
    a = rng.normal(size=(n, n))
    return a @ a.T / n + np.eye(n)


# ---- by hand: each with NumPy or jax.numpy as its first argument ---------------------------------------------------------


def product(xp, a, b, v):
    return (a @ v.reshape(a.shape[0], b.shape[0]) @ b.T).reshape(-1)


def solve(xp, a, b, v):
    half = xp.linalg.solve(a, v.reshape(a.shape[0], b.shape[0]))
    return xp.linalg.solve(b, half.T).T.reshape(-1)


def slogdet(xp, a, b):
    (s, p), (t, q) = xp.linalg.slogdet(a), xp.linalg.slogdet(b)
    m, n = a.shape[0], b.shape[0]
    return s**n * t**m, n * p + m * q


def eigh(xp, a, b):
    """Return the eigenvectors of the factors, and the order of their products for sorted eigenvalues."""
    (p, u), (q, v) = xp.linalg.eigh(a), xp.linalg.eigh(b)
    values = (p[:, None] * q).reshape(-1)
    order = xp.argsort(values)
    return values[order], order, u, v


def shifted_solve(xp, a, b, v):
    (p, u), (q, w) = xp.linalg.eigh(a), xp.linalg.eigh(b)
    turned = u.T @ v.reshape(a.shape[0], b.shape[0]) @ w
    return (u @ (turned / (p[:, None] * q + 0.1)) @ w.T).reshape(-1)


def shifted_slogdet(xp, a, b):
    p, q = xp.linalg.eigvalsh(a), xp.linalg.eigvalsh(b)
    values = p[:, None] * q + 0.1
    return xp.prod(xp.sign(values)), xp.sum(xp.log(xp.abs(values)))


def shifted(xp, a, b, v):
    return shifted_solve(xp, a, b, v), shifted_slogdet(xp, a, b)


def _by_linear_operator(a, b, v):
    """Compute both by linear_operator, on a new operator each time, because operators cache their results."""
    torch, operators = linear_operators()
    a, b, v = map(torch.as_tensor, (a, b, v))
    noise = torch.as_tensor([0.1], dtype=v.dtype)

    def run():
        product = operators.KroneckerProductLinearOperator(*map(operators.DenseLinearOperator, (a, b)))
        x = product + operators.ConstantDiagLinearOperator(noise, diag_shape=len(v))
        return x.solve(v[:, None])[:, 0], (torch.ones(()), x.logdet())

    return run


def compare(report: Report, case: str, ours, by_hand, arguments, bars, same=lambda result: result, theirs=None) -> None:
    """Check that ours and the formula agree, and time both."""
    jitted = jax.jit(lambda *args: by_hand(jnp, *args))
    on_device = [jnp.asarray(a) for a in arguments]
    candidates = {OURS: ours, JAX: lambda: jitted(*on_device)}
    absent = {}
    if on_cpu():
        candidates[NUMPY] = lambda: by_hand(np, *arguments)
    else:
        absent[NUMPY] = CPU_ONLY
    if theirs and on_cpu() and linear_operators():
        candidates[LINEAR_OPERATOR] = theirs(*arguments)
    elif theirs:
        absent[LINEAR_OPERATOR] = NOT_INSTALLED if on_cpu() else CPU_ONLY
    expected = _leaves(same(by_hand(np, *arguments)))
    for name, function in candidates.items():
        for one, other in zip(_leaves(same(function())), expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-9, atol=1e-9, err_msg=f"{case}: {name}")
    report.time(case, candidates, bars, absent, rounds=40)


def _leaves(result):
    return jax.tree.leaves(result, is_leaf=lambda x: isinstance(x, sa.Array))
