"""Products and linear systems on a GPU, compared with CuPy, cuSPARSE, PyTorch and `jax.numpy`.

This part needs a GPU, so it runs only if it is named: `python benchmarks/run.py --only gpu --docs docs`. Peers that are
not installed are left out.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from harness import OURS, Report
from peers import NOT_INSTALLED, optional

import structarrays as sa

N = 10**6
BY_HAND = "jax.numpy by hand, jitted"
DENSE = "jax.numpy, dense, jitted"
LAX = "jax.lax tridiagonal_solve (cuSPARSE gtsv2), jitted"
CUPY = "CuPy"
TORCH = "PyTorch"
JITTED = f"{OURS}, jitted"
GRADIENT = f"{OURS}, value and gradient, jitted"

Candidates = dict[str, Callable[[], object]]


def run(report: Report) -> None:
    if jax.default_backend() == "cpu":
        report.section("Arrays on a GPU")
        report.remark("JAX finds no GPU.")
        return
    rng = np.random.default_rng(0)
    report.section("Bands on a GPU")
    elementwise(report, rng)
    banded_product(report, rng)
    tridiagonal(report, rng)
    batch_of_tridiagonal(report, rng)
    report.section("Blocks and Kronecker products on a GPU")
    blocks(report, rng)
    kronecker(report, rng)
    report.section("Toeplitz and sparse matrices on a GPU")
    toeplitz(report, rng)
    sparse_product(report, rng)
    report.section("Wider bands on a GPU")
    wider_bands(report, rng)


def of_cupy(function: Callable[[], object]) -> Callable[[], object]:
    """Wait for CuPy's result."""
    device = optional("cupy").cuda.Device()

    def call() -> object:
        result = function()
        device.synchronize()
        return result

    return call


def of_torch(function: Callable[[], object]) -> Callable[[], object]:
    """Wait for PyTorch's result."""
    torch = optional("torch")

    def call() -> object:
        result = function()
        torch.cuda.synchronize()
        return result

    return call


def timed(report: Report, case: str, candidates: Candidates, tolerance: float = 1e-9) -> None:
    """Compare the results with ours and time the candidates; peers that are not installed are named."""
    absent = {}
    for name, module in ((CUPY, "cupy"), (TORCH, "torch")):
        if candidates.get(name, 0) is None:
            del candidates[name]
            absent[name] = NOT_INSTALLED if optional(module) is None else "no GPU"
    ours = host(candidates[OURS]())
    for name, function in candidates.items():
        if name != GRADIENT:
            error = np.max(np.abs(host(function()).reshape(ours.shape) - ours)) / np.max(np.abs(ours))
            if not error <= tolerance:
                raise AssertionError(f"{case}: {name} is off by {error:.1e} relative")
    report.time(case, candidates, absent=absent, rounds=20)


def host(x: object) -> np.ndarray:
    """Copy a result of any library to the host."""
    for copy in (lambda: x.get(), lambda: x.cpu().numpy(), lambda: np.asarray(x.to_jax())):
        try:
            return np.asarray(copy())
        except AttributeError:
            pass
    return np.asarray(x)


def cupy_arrays(*arrays: np.ndarray) -> list | None:
    cupy = optional("cupy")
    return None if cupy is None else [cupy.asarray(a) for a in arrays]


def torch_arrays(*arrays: np.ndarray) -> list | None:
    torch = optional("torch")
    return None if torch is None or not torch.cuda.is_available() else [torch.as_tensor(a).cuda() for a in arrays]


def ours_of_solve(a: sa.Array, b: sa.Array) -> Candidates:
    jitted = jax.jit(sa.linalg.solve)
    gradient = jax.jit(jax.value_and_grad(lambda p, q: jnp.sum(sa.linalg.solve(p, q).to_jax() ** 2), argnums=(0, 1)))
    return {
        OURS: lambda: sa.linalg.solve(a, b),
        JITTED: lambda: jitted(a, b),
        GRADIENT: lambda: gradient(a, b),
    }


def elementwise(report: Report, rng: np.random.Generator) -> None:
    d = rng.normal(size=10 * N)
    x, data = sa.Diagonal(d), jnp.asarray(d)
    compiled, by_hand = jax.jit(lambda x: (sa.sinh(x) * 2).diag), jax.jit(lambda d: jnp.sinh(d) * 2)
    candidates: Candidates = {
        OURS: lambda: compiled(x),
        BY_HAND: lambda: by_hand(data),
    }
    timed(report, "2 sinh(Diagonal), n = 10,000,000", candidates)


def banded_product(report: Report, rng: np.random.Generator) -> None:
    offsets = (-2, -1, 0, 1, 2)
    diagonals = [rng.normal(size=N - abs(k)) for k in offsets]
    v = rng.normal(size=N)
    a, b = sa.Banded(diagonals, offsets, (N, N)), sa.asarray(v)
    jitted = jax.jit(lambda a, b: a @ b)
    candidates: Candidates = {OURS: lambda: a @ b, JITTED: lambda: jitted(a, b), CUPY: None}
    if optional("cupy"):
        from cupyx.scipy.sparse import csr_matrix

        matrix = csr_matrix(scipy.sparse.diags(diagonals, offsets, format="csr"))
        (w,) = cupy_arrays(v)
        candidates[CUPY] = of_cupy(lambda: matrix @ w)
    timed(report, "pentadiagonal @ vector, n = 1,000,000", candidates)


def dominant(rng: np.random.Generator, *shape: int) -> tuple[np.ndarray, ...]:
    *batch, n = shape
    low, up = rng.normal(size=(2, *batch, n - 1))
    edge = np.zeros((*batch, 1))
    main = 1.0 + np.abs(np.concatenate([edge, low], -1)) + np.abs(np.concatenate([up, edge], -1))
    return low, main, up, rng.normal(size=(*batch, n))


def lax_solve(low: np.ndarray, main: np.ndarray, up: np.ndarray, b: np.ndarray) -> Callable[[], object]:
    @jax.jit
    def solve(low, main, up, b):
        none = [(0, 0)] * (main.ndim - 1)
        low, up = jnp.pad(low, [*none, (1, 0)]), jnp.pad(up, [*none, (0, 1)])
        return jax.lax.linalg.tridiagonal_solve(low, main, up, b[..., None])[..., 0]

    arrays = tuple(map(jnp.asarray, (low, main, up, b)))
    return lambda: solve(*arrays)


def tridiagonal(report: Report, rng: np.random.Generator) -> None:
    low, main, up, b = dominant(rng, N)
    candidates = ours_of_solve(sa.tridiagonal(low, main, up), sa.asarray(b))
    candidates[LAX] = lax_solve(low, main, up, b)
    timed(report, "tridiagonal solve, diagonally dominant, n = 1,000,000", candidates)


def batch_of_tridiagonal(report: Report, rng: np.random.Generator) -> None:
    low, main, up, b = dominant(rng, 1000, 1000)
    candidates = ours_of_solve(sa.tridiagonal(low, main, up), sa.asarray(b[..., None]))
    candidates[LAX] = lax_solve(low, main, up, b)
    timed(report, "1000 tridiagonal solves of n = 1000 in one batch", candidates)


def wider_bands(report: Report, rng: np.random.Generator) -> None:
    # XLA compiles the loops of the fallback in a time proportional to n: 20 s at n = 100,000.
    for w, n in ((2, 10**4), (8, 10**4)):
        offsets = tuple(range(-w, w + 1))
        diagonals = {k: rng.normal(size=n - k) for k in range(1, w + 1)}
        diagonals |= {-k: d for k, d in diagonals.items()} | {0: np.full(n, 8.0 * w)}
        a = sa.Banded([diagonals[k] for k in offsets], offsets, (n, n))
        b = rng.normal(size=n)
        candidates = ours_of_solve(sa.assume(a, "positive_definite"), sa.asarray(b))
        if w == 2:
            candidates[CUPY] = None
        if optional("cupy") and w == 2:
            from cupyx.scipy.sparse import csr_matrix
            from cupyx.scipy.sparse.linalg import spsolve

            matrix = csr_matrix(scipy.sparse.diags([diagonals[k] for k in offsets], offsets, format="csr"))
            (c,) = cupy_arrays(b)
            candidates[CUPY] = of_cupy(lambda matrix=matrix, c=c: spsolve(matrix, c))
        timed(report, f"positive definite solve with {w} diagonals on either side, n = {n:,}", candidates)


def blocks(report: Report, rng: np.random.Generator) -> None:
    data, b = rng.normal(size=(1000, 32, 32)) + 8 * np.eye(32), rng.normal(size=(1000, 32))
    candidates = ours_of_solve(sa.BlockDiagonal(data), sa.asarray(b.reshape(-1)))
    arrays = jnp.asarray(data), jnp.asarray(b[..., None])
    by_hand = jax.jit(jnp.linalg.solve)
    candidates[BY_HAND] = lambda: by_hand(*arrays)
    candidates[TORCH] = None
    if tensors := torch_arrays(data, b):
        torch = optional("torch")
        candidates[TORCH] = of_torch(lambda: torch.linalg.solve(*tensors))
    timed(report, "BlockDiagonal solve, 1000 blocks of 32 rows", candidates)


def kronecker(report: Report, rng: np.random.Generator) -> None:
    m = 1000
    a, b = rng.normal(size=(2, m, m)) / np.sqrt(m)
    v = rng.normal(size=m * m)
    product, vector = sa.Kronecker(a, b), sa.asarray(v)
    jitted = jax.jit(lambda k, v: k @ v)
    by_hand = jax.jit(lambda a, b, v: (a @ v.reshape(m, m) @ b.T).reshape(-1))
    arrays = tuple(map(jnp.asarray, (a, b, v)))
    candidates: Candidates = {
        OURS: lambda: product @ vector,
        JITTED: lambda: jitted(product, vector),
        BY_HAND: lambda: by_hand(*arrays),
        TORCH: None,
    }
    if tensors := torch_arrays(a, b, v):
        p, q, w = tensors
        candidates[TORCH] = of_torch(lambda: (p @ w.reshape(m, m) @ q.T).reshape(-1))
    timed(report, "Kronecker(1000 x 1000, 1000 x 1000) @ vector", candidates)


def toeplitz(report: Report, rng: np.random.Generator) -> None:
    c, r, v = rng.normal(size=(3, N))
    x, b = sa.Toeplitz(c, r), sa.asarray(v)
    jitted = jax.jit(lambda x, b: x @ b)
    candidates: Candidates = {OURS: lambda: x @ b, JITTED: lambda: jitted(x, b), CUPY: None}
    if arrays := cupy_arrays(np.concatenate([c, [0.0], r[:0:-1]]), v):
        from cupy import fft

        circle, w = arrays
        candidates[CUPY] = of_cupy(lambda: fft.irfft(fft.rfft(circle) * fft.rfft(w, 2 * N), 2 * N)[:N])
    timed(report, "Toeplitz @ vector, n = 1,000,000", candidates)

    n = 4096
    c, r, v = rng.normal(size=(3, n))
    c[0] = 2 * np.sqrt(n)
    whole = jnp.asarray(scipy.linalg.toeplitz(c, np.append(c[:1], r[1:])))
    candidates = ours_of_solve(sa.Toeplitz(c, np.append(c[:1], r[1:])), sa.asarray(v))
    dense = jax.jit(jnp.linalg.solve)
    column = jnp.asarray(v)
    candidates[DENSE] = lambda: dense(whole, column)
    timed(report, "general Toeplitz solve, n = 4096", candidates)


def sparse_product(report: Report, rng: np.random.Generator) -> None:
    m = 1000
    line = scipy.sparse.diags([-np.ones(m - 1), np.full(m, 2.0), -np.ones(m - 1)], (-1, 0, 1))
    matrix = scipy.sparse.csr_array(scipy.sparse.kronsum(line, line))
    v = rng.normal(size=m * m)
    x, b = sa.Sparse.from_scipy(matrix), sa.asarray(v)
    jitted = jax.jit(lambda x, b: x @ b)
    candidates: Candidates = {OURS: lambda: x @ b, JITTED: lambda: jitted(x, b), CUPY: None, TORCH: None}
    if optional("cupy"):
        from cupyx.scipy.sparse import csr_matrix

        theirs = csr_matrix(matrix)
        (w,) = cupy_arrays(v)
        candidates[CUPY] = of_cupy(lambda: theirs @ w)
    if tensors := torch_arrays(v):
        torch = optional("torch")
        rows = torch.sparse_csr_tensor(
            *(torch.as_tensor(part) for part in (matrix.indptr, matrix.indices, matrix.data)), size=matrix.shape
        ).cuda()
        candidates[TORCH] = of_torch(lambda: rows @ tensors[0])
    timed(report, "sparse five-point stencil @ vector, n = 1,000,000", candidates)
