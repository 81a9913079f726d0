"""Block-diagonal products and systems compared with batched functions of NumPy and JAX, and with block sparse formats."""

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report
from peers import CPU_ONLY, on_cpu

import structarrays as sa

NUMPY, BSR, BATCHED = "numpy.matmul of the blocks", "scipy.sparse bsr", "jax.numpy.matmul of the blocks, jitted"
NUMPY_SOLVE, BATCHED_SOLVE = "numpy.linalg.solve of the blocks", "jax.numpy.linalg.solve of the blocks, jitted"


def run(report: Report) -> None:
    report.section("Block-diagonal and block-tridiagonal matrices")
    product(report, "1000 blocks of 32 x 32 @ matrix, 32,000 x 64", 1000, 32, 64, [Bar(NUMPY, factor=0.6)])
    product(report, "1000 blocks of 32 x 32 @ vector", 1000, 32, 1, [])
    system(report, "system of 1000 blocks of 32 x 32, a vector", 1000, 32, 1)
    system(report, "system of 1000 blocks of 32 x 32, 16 columns", 1000, 32, 16)
    block_tridiagonal(report, "block tridiagonal, 1000 x 1000 blocks of 32 x 32, @ matrix, 32,000 x 64", 1000, 32, 64)


def product(report: Report, case: str, count: int, size: int, columns: int, bars: list[Bar]) -> None:
    """Time `count` blocks of size × size times a matrix with `columns` columns."""
    rng = np.random.default_rng(count)
    blocks, right = rng.normal(size=(count, size, size)), rng.normal(size=(count, size, columns))
    flat = right.reshape(count * size, columns)
    a, b = sa.BlockDiagonal(jnp.asarray(blocks)), sa.asarray(flat)
    batched, stacked, right_stack = jax.jit(jnp.matmul), jnp.asarray(blocks), jnp.asarray(right)
    candidates = {OURS: lambda: a @ b, BATCHED: lambda: batched(stacked, right_stack)}
    absent = {}
    if on_cpu():
        from scipy import sparse

        places = np.arange(count), np.arange(count + 1)
        bsr = sparse.bsr_array((blocks, *places), shape=(count * size, count * size))
        candidates |= {NUMPY: lambda: np.matmul(blocks, right), BSR: lambda: bsr @ flat}
    else:
        absent |= dict.fromkeys((NUMPY, BSR), CPU_ONLY)
    _agree(candidates, np.matmul(blocks, right).reshape(flat.shape))
    report.time(case, candidates, bars, absent, rounds=100)


def system(report: Report, case: str, count: int, size: int, columns: int) -> None:
    """Time a general block-diagonal system in an eager call, which checks for singular blocks."""
    rng = np.random.default_rng(count)
    blocks = rng.normal(size=(count, size, size)) + size * np.eye(size)
    right = rng.normal(size=(count, size, columns))
    flat = right.reshape(count * size, columns)
    a, b = sa.BlockDiagonal(jnp.asarray(blocks)), sa.asarray(flat)
    batched, stacked, right_stack = jax.jit(jnp.linalg.solve), jnp.asarray(blocks), jnp.asarray(right)
    candidates = {OURS: lambda: sa.linalg.solve(a, b), BATCHED_SOLVE: lambda: batched(stacked, right_stack)}
    absent = {}
    if on_cpu():
        candidates[NUMPY_SOLVE] = lambda: np.linalg.solve(blocks, right)
    else:
        absent[NUMPY_SOLVE] = CPU_ONLY
    _agree(candidates, np.linalg.solve(blocks, right).reshape(flat.shape))
    report.time(case, candidates, [Bar(NUMPY_SOLVE, factor=1.35)], absent, rounds=60)


def block_tridiagonal(report: Report, case: str, count: int, size: int, columns: int) -> None:
    """Time a block-tridiagonal matrix of count × count blocks times a matrix."""
    rng = np.random.default_rng(count)
    lower, diag, upper = (rng.normal(size=(n, size, size)) for n in (count - 1, count, count - 1))
    right = rng.normal(size=(count * size, columns))
    a, b = sa.block_tridiagonal(lower, diag, upper), sa.asarray(right)
    candidates, absent = {OURS: lambda: a @ b}, {}
    expected = np.matmul(diag, right.reshape(count, size, columns))
    expected[1:] += np.matmul(lower, right.reshape(count, size, columns)[:-1])
    expected[:-1] += np.matmul(upper, right.reshape(count, size, columns)[1:])
    if on_cpu():
        from scipy import sparse

        rows = np.concatenate([np.arange(1, count), np.arange(count), np.arange(count - 1)])
        columns_of = np.concatenate([np.arange(count - 1), np.arange(count), np.arange(1, count)])
        order = np.lexsort((columns_of, rows))
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows))])
        blocks = np.concatenate([lower, diag, upper])[order]
        bsr = sparse.bsr_array((blocks, columns_of[order], starts), shape=(count * size, count * size))
        candidates[BSR] = lambda: bsr @ right
    else:
        absent[BSR] = CPU_ONLY
    _agree(candidates, expected.reshape(right.shape))
    report.time(case, candidates, [Bar(BSR)], absent, rounds=60)


def _agree(candidates: dict, expected: np.ndarray) -> None:
    """Check all candidates against NumPy."""
    for name, function in candidates.items():
        result = np.asarray(function()).reshape(expected.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-10, err_msg=name)
