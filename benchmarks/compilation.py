"""Time to trace and compile functions of structured arrays, and their memory, compared with hand-written functions.

Each time is the minimum of three runs with empty caches, without a cache on disk. The memory is XLA's plan of temporary
memory, in addition to parameters and result. The times hardly depend on the size, because arrays are not unrolled.
"""

import time
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import kronecker
import low_rank
import numpy as np
from harness import OURS, Report, duration
from peers import optional

import structarrays as sa

N = 100_000
REPEATS = 3
JAX = "jax by hand"


def run(report: Report) -> None:
    report.section(f"Compilation, n = {N:,}")
    jax.config.update("jax_enable_compilation_cache", False)
    header = ("case: whose", "trace", "compile", "temporary memory", "of parameters")
    try:
        report.table(header, (measure(report, *case) for case in cases()))
    finally:
        jax.config.update("jax_enable_compilation_cache", True)


def measure(report: Report, case: str, function: Callable, *arguments: object) -> tuple[str, ...]:
    """Return the seconds to trace and to compile, and the bytes of temporary memory."""
    tracing, compiling = [], []
    for _ in range(1 if report.quick else REPEATS):
        jax.clear_caches()
        start = time.perf_counter()
        lowered = jax.jit(function).lower(*arguments)
        traced = time.perf_counter()
        compiled = lowered.compile()
        tracing.append(traced - start)
        compiling.append(time.perf_counter() - traced)
    memory = compiled.memory_analysis()
    temporary, parameters = memory.temp_size_in_bytes, memory.argument_size_in_bytes
    report.note(
        case, tracing=min(tracing), compiling=min(compiling), temporary_bytes=temporary, parameter_bytes=parameters
    )
    ratio = f"{temporary / parameters:.2f}"
    return case, duration(min(tracing)), duration(min(compiling)), f"{temporary / 1e6:.2f} MB", ratio


def cases() -> Iterator[tuple]:
    """Iterate over name, function and arguments."""
    rng = np.random.default_rng(0)
    v = jnp.asarray(rng.normal(size=N))
    b = sa.asarray(v)
    yield from tridiagonal(v, b)
    yield from banded(rng, b)
    blocks = rng.normal(size=(N // 8, 8, 8)) + 32 * np.eye(8)
    off = rng.normal(size=(2, N // 8 - 1, 8, 8))
    yield f"block-diagonal system, blocks of 8: {OURS}", sa.linalg.solve, sa.BlockDiagonal(blocks), b
    batched = jnp.asarray(blocks), v.reshape(-1, 8, 1)
    yield f"block-diagonal system, blocks of 8: {JAX}", jnp.linalg.solve, *batched
    yield (
        f"block-tridiagonal system, blocks of 8: {OURS}",
        sa.linalg.solve,
        sa.block_tridiagonal(off[0], blocks, off[1]),
        b,
    )
    column = 0.9 ** np.arange(N) + 0.1 * (np.arange(N) == 0)
    definite = sa.assume(sa.Toeplitz(column), "positive_definite")
    yield f"Toeplitz system, definite: {OURS}", sa.linalg.solve, definite, b
    yield f"circulant system: {OURS}", sa.linalg.solve, sa.Circulant(column), b
    yield from factored(rng, v, b)
    square = jnp.asarray(rng.normal(size=(1000, 1000)))
    yield f"triangular system, 1000 rows: {OURS}", sa.linalg.solve, sa.Triangular(square), b[:1000]
    triangle = lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True)  # noqa: E731
    yield f"triangular system, 1000 rows: {JAX}", triangle, square, v[:1000]
    yield f"dense system, 1000 rows: {OURS}", sa.linalg.solve, sa.asarray(square), b[:1000]
    yield f"dense system, 1000 rows: {JAX}", jnp.linalg.solve, square, v[:1000]


def tridiagonal(v, b) -> Iterator[tuple]:
    ones = jnp.ones(N)
    low, main, up = -ones[1:], 3 * ones, -ones[1:]
    x = sa.tridiagonal(low, main, up)
    yield f"tridiagonal product: {OURS}", lambda x, b: x @ b, x, b
    yield f"tridiagonal system: {OURS}", sa.linalg.solve, x, b
    lax = jax.lax.linalg.tridiagonal_solve
    yield f"tridiagonal system: {JAX}", lax, jnp.append(0.0, low), main, jnp.append(up, 0.0), v[:, None]
    lineax = optional("lineax")
    if lineax is not None:

        def solve(low, main, up, v):
            operator = lineax.TridiagonalLinearOperator(main, low, up)
            return lineax.linear_solve(operator, v, lineax.Tridiagonal(), throw=False).value

        yield "tridiagonal system: lineax", solve, low, main, up, v


def banded(rng, b) -> Iterator[tuple]:
    for w in (2, 8):
        offsets = tuple(range(-w, w + 1))
        below = [rng.normal(size=N - k) for k in range(w, 0, -1)]
        x = sa.Banded([*below, np.full(N, 4.0 * w), *below[::-1]], offsets, (N, N))
        definite = sa.assume(x, "positive_definite")
        logarithm = lambda x: sa.linalg.slogdet(x).logabsdet.to_jax()  # noqa: E731
        for name, function, *arguments in (
            ("Cholesky", sa.linalg.cholesky, definite),
            ("system, definite", sa.linalg.solve, definite, b),
            ("system", sa.linalg.solve, x, b),
            ("slogdet and its gradient", jax.value_and_grad(logarithm), x),
        ):
            yield f"{2 * w + 1} bands, {name}: {OURS}", function, *arguments


def factored(rng, v, b) -> Iterator[tuple]:
    factors = [kronecker.definite(rng, n) for n in (200, 300)]
    x = sa.Kronecker(*(sa.assume(sa.asarray(m), "symmetric") for m in factors))
    shifted, m = x + 0.1 * sa.eye(60_000), 60_000
    by_hand = [jnp.asarray(factor) for factor in factors]
    yield f"Kronecker system: {OURS}", sa.linalg.solve, x, b[:m]
    yield f"Kronecker system: {JAX}", lambda *a: kronecker.solve(jnp, *a), *by_hand, v[:m]
    yield f"Kronecker + c I, system: {OURS}", sa.linalg.solve, shifted, b[:m]
    yield f"Kronecker + c I, system: {JAX}", lambda *a: kronecker.shifted_solve(jnp, *a), *by_hand, v[:m]
    d, u = rng.uniform(1.0, 2.0, N), rng.normal(size=(N, 50)) / np.sqrt(N)
    yield f"diagonal + rank 50, system: {OURS}", sa.linalg.solve, sa.Diagonal(d) + sa.LowRank(u, u), b
    yield f"diagonal + rank 50, system: {JAX}", lambda *a: low_rank.woodbury(jnp, *a), jnp.asarray(d), jnp.asarray(u), v
