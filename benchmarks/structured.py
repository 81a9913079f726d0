"""Overhead of `structured`: eager calls, and tracing of a long program, compared with `jax.jit` and quax."""

import jax
import jax.numpy as jnp
from harness import OURS, Bar, Report
from peers import NOT_INSTALLED, optional

import structarrays as sa

N = 311
JITTED = "jax.jit(structured(f))"
QUAX = "quax, eager"
DENSE = "jax.jit(f), dense"
DIAGONAL, BANDED = "structured, Diagonal", "structured, tridiagonal"


def run(report: Report) -> None:
    eager(report)
    tracing(report)


def short(A, x):
    return A @ (A @ x) - x


def eager(report: Report) -> None:
    report.section("structured(f): eager calls")
    x = jnp.linspace(1.0, 2.0, N)
    bands = (x[1:], 4 * x, -x[1:])
    A, D = sa.tridiagonal(*bands), sa.Diagonal(x)
    run, jitted = sa.structured(short), jax.jit(sa.structured(short))
    candidates = {OURS: lambda: run(A, x), JITTED: lambda: jitted(A, x)}
    quax, structured = optional("quax"), optional("quax.examples.structured_matrices")
    if quax is not None and structured is not None:
        peer, quaxified = structured.TridiagonalMatrix(*bands), quax.quaxify(short)
        candidates[QUAX] = lambda: quaxified(peer, x)
        assert jnp.allclose(quaxified(peer, x), run(A, x))
    bars = [Bar(JITTED, 3.0), Bar(QUAX, 0.1)]
    absent = {} if QUAX in candidates else {QUAX: NOT_INSTALLED}
    report.time(f"f(A, x) = A @ (A @ x) - x, tridiagonal, n = {N}", candidates, bars, absent, rounds=40, inner=20)

    def elementwise(A, x):
        return jnp.tanh(A) @ x - x

    run_d, jitted_d = sa.structured(elementwise), jax.jit(sa.structured(elementwise))
    candidates = {OURS: lambda: run_d(D, x), JITTED: lambda: jitted_d(D, x)}
    report.time(f"f(A, x) = tanh(A) @ x - x, diagonal, n = {N}", candidates, [Bar(JITTED, 3.0)], rounds=40, inner=100)


def long_program(A, x):
    for _ in range(42):
        A = jnp.sin(A) * 0.5 + A.T * 0.25 - A * A * 0.1
        x = A @ x / (1 + jnp.abs(x).max())
    return x


def tracing(report: Report) -> None:
    x = jnp.ones(N)
    arrays = {DIAGONAL: sa.Diagonal(x), BANDED: sa.tridiagonal(x[1:], x, x[1:]), DENSE: jnp.ones((N, N))}
    equations = len(jax.make_jaxpr(long_program)(arrays[DENSE], x).jaxpr.eqns)
    report.section(f"structured(f): tracing of a program of {equations} equations")

    def traced(transform, A):
        # A new function each time, because JAX caches traces.
        return lambda: jax.jit(transform(lambda A, x: long_program(A, x))).trace(A, x)

    candidates = {name: traced(sa.structured, A) for name, A in arrays.items() if name != DENSE}
    candidates[DENSE] = traced(lambda f: f, arrays[DENSE])
    bars = [Bar(DENSE, 2.0, subject=DIAGONAL), Bar(DENSE, 3.0, subject=BANDED)]
    report.time("jax.jit(…).trace", candidates, bars, rounds=25)
