"""Sparse products, sums, selections and permutations compared with SciPy and JAX."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report
from jax.experimental import sparse
from peers import CPU_ONLY, on_cpu

import structarrays as sa

CSR, TAKE, BCOO = "scipy.sparse csr", "numpy.take", "jax.experimental BCOO, jitted"


def run(report: Report) -> None:
    report.section("Sparse matrices and permutations")
    product(report, "sparse @ vector, n = 1,000,000, 5,000,000 entries", 10**6, 5, None)
    product(report, "sparse @ matrix, n = 100,000, 500,000 entries, 16 columns", 10**5, 5, 16)
    two_matrices(report, 10**5, 5)
    permutation(report, 10**6)


def matrix(n: int, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return data, rows and columns of a matrix with `row` distinct entries in each row."""
    rng = np.random.default_rng(n)
    columns = np.sort((rng.integers(0, n, (n, 1)) + np.arange(row) * (n // row)) % n, axis=1).ravel()
    return rng.normal(size=n * row), np.repeat(np.arange(n), row), columns


def product(report: Report, case: str, n: int, row: int, columns: int | None) -> None:
    data, rows, cols = matrix(n, row)
    host_x = np.random.default_rng(1).normal(size=n if columns is None else (n, columns))
    a, x = sa.Sparse(data, (rows, cols), (n, n)), jnp.asarray(host_x)
    sa_x, absent = sa.asarray(x), {}
    matmul = jax.jit(lambda p, q: p @ q)
    candidates = {OURS: lambda: a @ sa_x, f"{OURS}, jitted": lambda: matmul(a, sa_x)}
    candidates[f"{OURS}, transposed and jitted"] = lambda: transposed(a, sa_x)
    transposed = jax.jit(lambda p, q: p.mT @ q)
    bars = []
    if on_cpu():
        from scipy import sparse as scipy_sparse

        csr = scipy_sparse.csr_array((data, (rows, cols)), shape=(n, n))
        candidates[CSR] = lambda: csr @ host_x
        np.testing.assert_allclose(np.asarray(a @ sa_x), csr @ host_x, atol=1e-12)
        np.testing.assert_allclose(np.asarray(transposed(a, sa_x)), csr.T @ host_x, atol=1e-12)
        bars.append(Bar(CSR))
    else:
        absent[CSR] = CPU_ONLY
    indices = jnp.asarray(np.stack([rows, cols], axis=1), jnp.int32)
    bcoo = sparse.BCOO((jnp.asarray(data), indices), shape=(n, n), indices_sorted=True, unique_indices=True)
    candidates[BCOO] = lambda: matmul(bcoo, x)
    report.time(case, candidates, [*bars, Bar(BCOO, factor=0.6)] if columns is None else [], absent, rounds=40)


def two_matrices(report: Report, n: int, row: int) -> None:
    """Time results with a data-dependent number of entries: the host computes the pattern."""
    if not on_cpu():
        report.remark(CPU_ONLY)
        return
    from scipy import sparse as scipy_sparse

    data, rows, cols = matrix(n, row)
    random = scipy_sparse.coo_array((data, (rows.astype(np.int32), cols.astype(np.int32))), shape=(n, n)).tocsr()
    pairs = {f"random, n = {n:,}, {n * row:,} entries": (random, random.T.tocsr())}
    m = math.isqrt(n)
    line = scipy_sparse.diags_array([-np.ones(m - 1), np.full(m, 2.0), -np.ones(m - 1)], offsets=[-1, 0, 1])
    grid = scipy_sparse.kronsum(line, line, format="csr")
    other = scipy_sparse.diags_array([np.ones(m * m - k) for k in (0, 2, 400)], offsets=[0, 2, 400]).tocsr()
    pairs[f"grid, n = {m * m:,}, {grid.nnz:,} entries"] = grid, other
    for name, (first, second) in pairs.items():
        eager(report, name, first, second)


def eager(report: Report, name: str, first, second) -> None:
    """Time eager operations of two matrices compared with SciPy, whose products have unsorted rows."""
    for one in (first, second):
        one.sort_indices()
    a, b = (sa.Sparse.from_scipy(one) for one in (first, second))
    n = first.shape[0]
    p = np.random.default_rng(0).permutation(n)
    permuted = sa.Permutation(p)
    part = slice(100, n // 2)
    # More matrices than the library remembers, so that each meets `b` for the first time.
    copies = itertools.cycle([sa.Sparse.from_scipy(first) for _ in range(80)])
    cases = {
        "A + B": (lambda: a + b, lambda: first + second),
        "first A + B": (lambda: next(copies) + b, lambda: first + second),
        "A - B": (lambda: a - b, lambda: first - second),
        "A * B": (lambda: a * b, lambda: first * second),
        "where(A > 0, A, 0)": (lambda: sa.where(a > 0, a, 0), lambda: first.multiply(first > 0)),
        "A + A.T": (lambda: a + a.mT, lambda: first + first.T.tocsr()),
        "A @ B": (lambda: a @ b, lambda: first @ second),
        "A.T": (lambda: a.mT, lambda: first.T.tocsr()),
        "A[i:j]": (lambda: a[part], lambda: first[part]),
        "A[:, i:j]": (lambda: a[:, part], lambda: first[:, part]),
        "A[i:j, i:j]": (lambda: a[part, part], lambda: first[part, part]),
        "A[::2]": (lambda: a[::2], lambda: first[::2]),
        "A[p]": (lambda: a[p], lambda: first[p]),
        "A[:, p]": (lambda: a[:, p], lambda: first[:, p]),
        "permutation @ A": (lambda: permuted @ a, lambda: first[p]),
        "from SciPy": (lambda: sa.Sparse.from_scipy(first), lambda: first.tocoo(copy=True)),
        "to SciPy": (lambda: a.to_scipy(), lambda: first.tocoo(copy=True)),
    }
    for operation, (ours, theirs) in cases.items():
        bars = [] if operation.startswith("first") else [Bar(CSR, factor=1.3)]
        report.time(f"{operation}, {name}", {OURS: ours, CSR: theirs}, bars, rounds=20)
        if operation == "A @ B":
            sort = {OURS: ours, f"{CSR}, sorted": lambda: (first @ second).sort_indices()}
            report.time(f"{operation} with sorted rows, {name}", sort, [], rounds=20)


def permutation(report: Report, n: int) -> None:
    rng = np.random.default_rng(n)
    p, host_x = rng.permutation(n), rng.normal(size=n)
    a, x = sa.Permutation(p), sa.asarray(host_x)
    np.testing.assert_array_equal(np.asarray(a @ x), host_x[p])
    candidates = {OURS: lambda: a @ x, TAKE: lambda: np.take(host_x, p), f"{OURS}, transposed": lambda: a.mT @ x}
    report.time(f"permutation @ vector, n = {n:,}", candidates, [Bar(TAKE, factor=0.9)], rounds=100)
