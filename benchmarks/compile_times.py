"""CPU time to trace and compile common operations on each structure, compared with `jax.numpy` on dense arrays.

Each time is of one run with empty caches, without a cache on disk. CPU time depends less on other jobs than elapsed time,
and includes all threads of the compiler. Nothing is executed.
"""

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from harness import Report

import structarrays as sa

N = 1024
DENSE = "jnp, dense"


def structures() -> dict[str, sa.Array]:
    """Return square matrices with N rows."""
    rng = np.random.default_rng(0)
    ones, column = np.ones(N), 0.5 ** np.arange(N)
    square = rng.normal(size=(N, N))
    near = rng.normal(size=(32, 32)) + 32 * np.eye(32)
    sparse = np.where(rng.random((N, N)) < 4 / N, square, 0) + 8 * np.eye(N)
    return {
        "Diagonal": sa.Diagonal(4 * ones),
        "tridiagonal": sa.tridiagonal(-ones[1:], 4 * ones, -ones[1:]),
        "Toeplitz": sa.Toeplitz(column),
        "Circulant": sa.Circulant(column),
        "Triangular": sa.Triangular(square),
        "Symmetric": sa.Symmetric(square),
        "Sparse": sa.Sparse.from_dense(sparse),
        "Diagonal + LowRank": sa.Diagonal(4 * ones) + sa.LowRank(square[:, :3], square[:, 3:6]),
        "Kronecker": sa.Kronecker(near, near),
        "BlockDiagonal": sa.BlockDiagonal(rng.normal(size=(N // 8, 8, 8)) + 8 * np.eye(8)),
    }


def operations() -> dict[str, tuple[Callable, Callable]]:
    """Return functions of a matrix and a vector, for structures and for `jax.numpy`."""
    both: dict[str, Callable] = {
        "2 * x": lambda np, x, v: 2 * x,
        "x + x": lambda np, x, v: x + x,
        "x * x": lambda np, x, v: x * x,
        "x * v": lambda np, x, v: x * v,
        "exp(x)": lambda np, x, v: np.exp(x),
        "where(x > 1, x, 0)": lambda np, x, v: np.where(x > 1, x, 0),
        "sum(x)": lambda np, x, v: np.sum(x),
        "mean(x, axis=0)": lambda np, x, v: np.mean(x, axis=0),
        "max(x, axis=1)": lambda np, x, v: np.max(x, axis=1),
        "x[3]": lambda np, x, v: x[3],
        "x[:500, :500]": lambda np, x, v: x[:500, :500],
        "x.mT": lambda np, x, v: x.mT,
        "diagonal(x)": lambda np, x, v: np.linalg.diagonal(x),
        "x @ v": lambda np, x, v: x @ v,
        "x @ x": lambda np, x, v: x @ x,
        "linalg.matrix_norm(x)": lambda np, x, v: np.linalg.matrix_norm(x),
        "linalg.solve(x, v)": lambda np, x, v: np.linalg.solve(x, v),
        "linalg.slogdet(x)": lambda np, x, v: np.linalg.slogdet(x),
        "linalg.inv(x)": lambda np, x, v: np.linalg.inv(x),
        "linalg.svdvals(x)": lambda np, x, v: np.linalg.svdvals(x),
    }
    return {name: tuple(lambda x, v, f=f, np=np: f(np, x, v) for np in (sa, jnp)) for name, f in both.items()}


def seconds(function: Callable, *arguments: object) -> float:
    """Return the CPU time to trace and compile."""
    jax.clear_caches()
    start = time.process_time()
    jax.jit(function).lower(*arguments).compile()
    return time.process_time() - start


def run(report: Report) -> None:
    report.section(f"CPU time to trace and compile, milliseconds, n = {N:,}")
    jax.config.update("jax_enable_compilation_cache", False)
    matrices, v = structures(), jnp.ones(N)
    dense = jnp.eye(N)
    seconds(jnp.add, v, v)  # start the compiler
    ratios = []

    def row(name: str, ours: Callable, by_jnp: Callable) -> tuple[str, ...]:
        reference = seconds(by_jnp, dense, v)
        times = [seconds(ours, x, v) for x in matrices.values()]
        ratios.extend(t / reference for t in times)
        report.note(f"compile {name}", seconds=dict(zip((DENSE, *matrices), (reference, *times), strict=True)))
        return name, *(f"{1000 * t:.0f}" for t in (reference, *times))

    try:
        report.table(("", DENSE, *matrices), (row(name, *pair) for name, pair in operations().items()))
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
    report.remark(f"Ratio to jax.numpy: median {statistics.median(ratios):.1f}, largest {max(ratios):.1f}.")
