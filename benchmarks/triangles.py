"""Triangular systems, and products with triangular and symmetric matrices, compared with SciPy and JAX."""

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report
from peers import CPU_ONLY, on_cpu

import structarrays as sa

N = 2000
SCIPY_SOLVE = "scipy.linalg.solve_triangular"
SCIPY_PRODUCT = "scipy.linalg.blas.dtrmv, dtrmm"
SCIPY_SYMMETRIC = "scipy.linalg.blas.dsymv, dsymm"
JAX_SOLVE = "jax.scipy.linalg.solve_triangular, jitted"
JAX_PRODUCT = "jnp.tril(a) @ b, jitted"
JAX_SYMMETRIC = "jnp.where(lower, a, a.mT) @ b, jitted"
JAX_DENSE = "a @ b of a full matrix"


def run(report: Report) -> None:
    report.section("Triangular matrices")
    for columns, solve_factor, product_factor in ((None, 2.3, None), (64, 1.1, 1.0)):
        systems(report, columns, solve_factor)
        products(report, columns, product_factor)
    for columns in (None, 64):
        symmetric_products(report, columns)


def _operands(columns: int | None):
    rng = np.random.default_rng(0)
    a = np.tril(rng.normal(size=(N, N))) / np.sqrt(N) + 2 * np.eye(N)
    return a, rng.normal(size=N if columns is None else (N, columns))


def _case(what: str, columns: int | None) -> str:
    return f"{what}, {N} x {N}, {'a vector' if columns is None else f'{columns} columns'}"


def systems(report: Report, columns: int | None, factor: float) -> None:
    a, b = _operands(columns)
    L, sa_b, jax_a, jax_b = sa.Triangular(a), sa.asarray(b), jnp.asarray(a), jnp.asarray(b)
    solve = jax.jit(sa.linalg.solve)
    peer = jax.jit(lambda p, q: jax.scipy.linalg.solve_triangular(p, q, lower=True))
    candidates = {OURS: lambda: sa.linalg.solve(L, sa_b), f"{OURS}, jitted": lambda: solve(L, sa_b)}
    candidates[JAX_SOLVE] = lambda: peer(jax_a, jax_b)
    absent = {}
    if on_cpu():
        from scipy.linalg import solve_triangular

        candidates[SCIPY_SOLVE] = lambda: solve_triangular(a, b, lower=True)
    else:
        absent[SCIPY_SOLVE] = CPU_ONLY
    _agree(candidates, np.linalg.solve(a, b))
    report.time(_case("Triangular system", columns), candidates, [Bar(SCIPY_SOLVE, factor=factor)], absent, rounds=40)


def products(report: Report, columns: int | None, factor: float | None) -> None:
    a, b = _operands(columns)
    L, sa_b, jax_a, jax_b = sa.Triangular(a), sa.asarray(b), jnp.asarray(a), jnp.asarray(b)
    product = jax.jit(lambda p, q: p @ q)
    peer = jax.jit(lambda p, q: jnp.tril(p) @ q)
    candidates = {OURS: lambda: L @ sa_b, f"{OURS}, jitted": lambda: product(L, sa_b)}
    candidates[JAX_PRODUCT] = lambda: peer(jax_a, jax_b)
    absent, bars = {}, []
    if on_cpu():
        from scipy.linalg.blas import dtrmm, dtrmv

        in_columns = np.asfortranarray(a), np.asfortranarray(b)
        candidates[SCIPY_PRODUCT] = (
            (lambda: dtrmv(*in_columns, lower=1)) if columns is None else (lambda: dtrmm(1.0, *in_columns, lower=1))
        )
        bars = [Bar(SCIPY_PRODUCT, factor=factor)] if factor else []
    else:
        absent[SCIPY_PRODUCT] = CPU_ONLY
    _agree(candidates, a @ b)
    report.time(_case("Triangular product", columns), candidates, bars, absent, rounds=40)


def symmetric_products(report: Report, columns: int | None) -> None:
    a, b = _operands(columns)
    full = np.tril(a) + np.tril(a, -1).T
    S, sa_b, jax_a, jax_b, jax_full = sa.Symmetric(a), sa.asarray(b), jnp.asarray(a), jnp.asarray(b), jnp.asarray(full)
    product = jax.jit(lambda p, q: p @ q)
    lower = np.tri(N, dtype=bool)
    peer = jax.jit(lambda p, q: jnp.where(lower, p, p.mT) @ q)
    candidates = {OURS: lambda: S @ sa_b, f"{OURS}, jitted": lambda: product(S, sa_b)}
    candidates[JAX_SYMMETRIC] = lambda: peer(jax_a, jax_b)
    candidates[JAX_DENSE] = lambda: product(jax_full, jax_b)
    absent = {}
    if on_cpu():
        from scipy.linalg.blas import dsymm, dsymv

        in_columns = np.asfortranarray(a), np.asfortranarray(b)
        candidates[SCIPY_SYMMETRIC] = (
            (lambda: dsymv(1.0, *in_columns, lower=1))
            if columns is None
            else (lambda: dsymm(1.0, *in_columns, lower=1))
        )
    else:
        absent[SCIPY_SYMMETRIC] = CPU_ONLY
    _agree(candidates, full @ b)
    report.time(_case("Symmetric product", columns), candidates, [], absent, rounds=40)


def _agree(candidates: dict, expected: np.ndarray) -> None:
    """Check all candidates against NumPy."""
    for name, function in candidates.items():
        np.testing.assert_allclose(np.asarray(function()), expected, rtol=1e-9, atol=1e-9, err_msg=name)
