"""Direct solvers of sparse systems compared with SciPy's SuperLU, JAX's `spsolve` and the solvers of other packages, on the
five-point Laplacian.
"""

import importlib.util
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report
from jax.experimental.sparse.linalg import spsolve
from peers import CPU_ONLY, on_cpu

import structarrays as sa
from structarrays._structures.sparse import sparse_direct

SPLU, JAX, HAND = "scipy splu, solve", "jax.experimental spsolve", "by hand with scipy's factors"
FACTORS = "scipy, splu, symmetric"
SYMMETRIC = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
"""Options of SuperLU for diagonal pivots, which we use for matrices that are assumed positive definite."""

OTHERS = (
    ("cholmod", "sparsax", "solve"),
    ("klu", "sparsax", "lu_solve"),
    ("umfpack", "sparsax", "umf_solve"),
    ("klujax", "klujax", "solve"),
)
"""Solvers by name, their packages, and the functions that solve a system."""

NUMBERS = itertools.count(1)


def run(report: Report) -> None:
    report.section("Sparse systems")
    if not on_cpu():
        report.remark(CPU_ONLY)
        return
    first_system(report, 300)
    second_system(report, 300)
    determinant(report, 100)
    large_determinant(report, 300)
    for name, package, function in OTHERS:
        if importlib.util.find_spec(package) is None:
            report.remark(f"{package} is not installed.")
        elif hasattr(module := importlib.import_module(package), function):
            other_solver(report, 150, name, f"{package}.{function} alone", getattr(module, function))


def laplacian(m: int):
    """Return the five-point Laplacian of an m × m grid, for SciPy and for us."""
    from scipy import sparse

    line = sparse.diags_array([-np.ones(m - 1), np.full(m, 2.0), -np.ones(m - 1)], offsets=[-1, 0, 1])
    eye = sparse.eye_array(m)
    matrix = (sparse.kron(line, eye) + sparse.kron(eye, line)).tocsc()
    return matrix, sa.Sparse.from_scipy(matrix)


def first_system(report: Report, m: int) -> None:
    """Time a system with a new matrix."""
    from scipy.sparse.linalg import splu

    matrix, a = laplacian(m)
    definite, host_b = sa.assume(a, "positive_definite"), np.random.default_rng(0).normal(size=m * m)
    b, csr = sa.asarray(host_b), matrix.tocsr()

    def ours(a):
        sparse_direct.FACTORIZATIONS.clear()
        return sa.linalg.solve(a, b)

    arrays = jnp.asarray(csr.data), jnp.asarray(csr.indices), jnp.asarray(csr.indptr)
    compiled = jax.jit(lambda data, b: spsolve(data, *arrays[1:], b))
    candidates = {
        OURS: lambda: ours(a),
        f"{OURS}, positive definite": lambda: ours(definite),
        SPLU: lambda: splu(matrix).solve(host_b),
        f"{SPLU}, symmetric": lambda: splu(matrix, **SYMMETRIC).solve(host_b),
        JAX: lambda: compiled(arrays[0], b.to_jax()),
    }
    for name, candidate in candidates.items():
        np.testing.assert_allclose(csr @ np.asarray(candidate()), host_b, atol=1e-9, err_msg=name)
    case = f"first system, {m} × {m} grid, n = {m * m:,}, {matrix.nnz:,} entries"
    bars = [Bar(SPLU, 1.2), Bar(f"{SPLU}, symmetric", 1.3, subject=f"{OURS}, positive definite")]
    report.time(case, candidates, bars, rounds=10)


def second_system(report: Report, m: int) -> None:
    """Time a system with the previous matrix, and the derivative with respect to its entries."""
    from scipy.sparse.linalg import splu

    matrix, a = laplacian(m)
    host_b = np.random.default_rng(0).normal(size=m * m)
    b, factors = sa.asarray(host_b), splu(matrix, **SYMMETRIC)
    a = sa.assume(a, "positive_definite")
    content = [np.asarray(part) for part in (a.data, *a.coords)]
    candidates = {
        OURS: lambda: sa.linalg.solve(a, b),
        "scipy, solve": lambda: factors.solve(host_b),
        "the hash of the matrix": lambda: sparse_direct.digest("positive definite", *content),
    }
    report.time(f"second system, n = {m * m:,}", candidates, [Bar("scipy, solve", 1.2)], rounds=40)

    coords = [np.asarray(c) for c in a.coords]

    def by_hand():
        x = factors.solve(host_b)
        adjoint = factors.solve(np.ones(m * m), "T")
        return x.sum(), -adjoint[coords[0]] * x[coords[1]]

    gradient = jax.jit(jax.value_and_grad(lambda a, b: sa.sum(sa.linalg.solve(a, b)).to_jax(), allow_int=True))
    np.testing.assert_allclose(gradient(a, b)[1].data, by_hand()[1], rtol=1e-8, atol=1e-10)
    candidates = {OURS: lambda: gradient(a, b), HAND: by_hand}
    report.time(f"value and gradient by the entries, n = {m * m:,}", candidates, [Bar(HAND, 3.0)], rounds=40)


def determinant(report: Report, m: int) -> None:
    """Time the log-determinant and its derivative: by the selected inverse, and by one solution for each column."""
    matrix, a = laplacian(m)
    a = sa.assume(a, "positive_definite")
    gradient = jax.jit(jax.value_and_grad(lambda a: sa.linalg.slogdet(a).logabsdet.to_jax(), allow_int=True))
    value, (data, first, second) = gradient(a), (np.asarray(part) for part in (a.data, *a.coords))
    factorization = sparse_direct.FACTORIZATIONS.get(data, first, second, m * m, True)
    candidates = {
        OURS: lambda: gradient(a),
        "a solution for each column": lambda: factorization._inverse_by_columns(first, second),
    }
    np.testing.assert_allclose(value[1].data, candidates["a solution for each column"](), rtol=1e-9)
    bars = [Bar("a solution for each column", 0.2)]
    report.time(f"log-determinant and its gradient, n = {m * m:,}", candidates, bars, rounds=5)


def large_determinant(report: Report, m: int) -> None:
    """Time the gradient for a cached factorization, compared with a factorization: the recursion has a similar cost."""
    from scipy.sparse.linalg import splu

    matrix, a = laplacian(m)
    a = sa.assume(a, "positive_definite")
    gradient = jax.jit(jax.grad(lambda a: sa.linalg.slogdet(a).logabsdet.to_jax(), allow_int=True))
    candidates = {OURS: lambda: gradient(a), FACTORS: lambda: splu(matrix, **SYMMETRIC)}
    report.time(f"gradient of the log-determinant, n = {m * m:,}", candidates, [Bar(FACTORS, 5.0)], rounds=5)


def other_solver(report: Report, m: int, name: str, alone: str, function) -> None:
    """Time a system with new entries in each call, by another package, in a compiled function."""
    _, a = laplacian(m)
    rows, columns = (jnp.asarray(c) for c in a.coords)
    b = jnp.asarray(np.random.default_rng(0).normal(size=m * m))

    def entries():
        return (a.data * (1 + 1e-9 * next(NUMBERS))).block_until_ready()  # no solver has seen them

    @jax.jit
    def ours(data, b):
        return sa.linalg.solve(sa.assume(a.with_data(data), "positive_definite"), b)

    def chosen(solver):
        with sa.linalg.use_sparse_solver(solver):
            return ours(entries(), b)

    compiled = jax.jit(lambda data, b: function(rows, columns, data, b))
    candidates = {
        OURS: lambda: chosen(name),
        alone: lambda: compiled(entries(), b),
        f"{OURS}, SuperLU": lambda: chosen("superlu"),
    }
    results = [np.asarray(candidate()) for candidate in candidates.values()]
    np.testing.assert_allclose(results[1:], results[:1] * 2, rtol=1e-5, atol=1e-8)
    case = f"{name}, a system with new entries, n = {m * m:,}"
    report.time(case, candidates, [Bar(alone, 1.1)], rounds=10)
