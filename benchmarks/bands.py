"""Banded products compared with sparse libraries, and with the memory-bound limit of the machine."""

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report
from jax.experimental import sparse
from peers import CPU_ONLY, NOT_INSTALLED, on_cpu, optional

import structarrays as sa

SCIPY = ("scipy.sparse dia", "scipy.sparse csr")
LIMIT = "limit: jitted multiply-add"
LINEAX = "lineax tridiagonal, jitted"
QUAX = "quax tridiagonal, jitted"


def run(report: Report) -> None:
    report.section("Banded products")
    product(report, "tridiagonal @ vector, n = 1,000,000", 10**6, 1, None, 0.6)
    product(report, "11 bands @ vector, n = 100,000", 10**5, 5, None, 0.5)
    product(report, "5 bands, 4096 x 4096, @ matrix, 4096 x 256", 4096, 2, 256, 0.4)


def product(report: Report, case: str, n: int, width: int, columns: int | None, factor: float) -> None:
    """Time a matrix with `width` bands on each side times a vector or `columns` vectors; `factor` is the bar for SciPy."""
    rng = np.random.default_rng(n)
    offsets = tuple(range(-width, width + 1))
    host_bands = [rng.normal(size=n - abs(k)) for k in offsets]
    host_x = rng.normal(size=n if columns is None else (n, columns))
    bands, x = tuple(map(jnp.asarray, host_bands)), jnp.asarray(host_x)
    a, sa_x = sa.Banded(bands, offsets, (n, n)), sa.asarray(x)
    matmul = jax.jit(lambda p, q: p @ q)
    candidates = {OURS: lambda: a @ sa_x, f"{OURS}, jitted": lambda: matmul(a, sa_x)}
    absent = {}

    if on_cpu():
        from scipy import sparse as scipy_sparse

        dia = scipy_sparse.diags_array(host_bands, offsets=offsets, shape=(n, n), format="dia")
        csr = dia.tocsr()
        candidates |= {SCIPY[0]: lambda: dia @ host_x, SCIPY[1]: lambda: csr @ host_x}
    else:
        absent |= dict.fromkeys(SCIPY, CPU_ONLY)

    indices, entries = _coordinates(host_bands, offsets)
    entries, indices = jnp.asarray(entries), jnp.asarray(indices)
    bcoo = sparse.BCOO((entries, indices), shape=(n, n), indices_sorted=True, unique_indices=True)
    bcsr = sparse.BCSR.from_bcoo(bcoo)
    candidates |= {"jax.experimental BCOO, jitted": lambda: matmul(bcoo, x)}
    candidates |= {"jax.experimental BCSR, jitted": lambda: matmul(bcsr, x)}

    for name, peer in ((LINEAX, _lineax), (QUAX, _quax)):
        function = peer(bands, x) if width == 1 and columns is None else "has no such structure"
        if isinstance(function, str):
            absent[name] = function
        else:
            candidates[name] = function

    # The lower bound for a matrix stored by diagonals: it reads every entry once, without shifts.
    full = tuple(jnp.asarray(rng.normal(size=n)) for _ in offsets)

    @jax.jit
    def multiply_add(diagonals, v):
        return sum(d * v if v.ndim == 1 else d[:, None] * v for d in diagonals)

    candidates[LIMIT] = lambda: multiply_add(full, x)
    _agree({name: candidates[name] for name in candidates if name != LIMIT}, host_bands, offsets, host_x)
    report.time(
        case, candidates, [*(Bar(name, factor=factor) for name in SCIPY), Bar(LIMIT, factor=1.6)], absent, rounds=100
    )


def _coordinates(bands: list[np.ndarray], offsets: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, columns and values of all entries, sorted by rows."""
    rows = np.concatenate([np.arange(len(d)) + max(0, -k) for d, k in zip(bands, offsets, strict=True)])
    columns = np.concatenate([np.arange(len(d)) + max(0, k) for d, k in zip(bands, offsets, strict=True)])
    order = np.lexsort((columns, rows))
    return np.stack([rows, columns], axis=1).astype(np.int32)[order], np.concatenate(bands)[order]


def _lineax(bands: tuple[jax.Array, ...], x: jax.Array):
    lineax = optional("lineax")
    if lineax is None:
        return NOT_INSTALLED
    matvec = jax.jit(lambda low, main, up, v: lineax.TridiagonalLinearOperator(main, low, up).mv(v))
    return lambda: matvec(*bands, x)


def _quax(bands: tuple[jax.Array, ...], x: jax.Array):
    quax, structured = optional("quax"), optional("quax.examples.structured_matrices")
    if quax is None or structured is None:
        return NOT_INSTALLED
    low, main, up = bands
    matrix = structured.TridiagonalMatrix(low, main, up)
    matmul = jax.jit(quax.quaxify(jnp.matmul))
    return lambda: matmul(matrix, x)


def _agree(candidates: dict, bands: list[np.ndarray], offsets: tuple[int, ...], x: np.ndarray) -> None:
    """Check all candidates against NumPy."""
    expected = np.zeros_like(x)
    for d, k in zip(bands, offsets, strict=True):
        rows, columns = max(0, -k), max(0, k)
        expected[rows : rows + len(d)] += (d if x.ndim == 1 else d[:, None]) * x[columns : columns + len(d)]
    for name, function in candidates.items():
        np.testing.assert_allclose(np.asarray(function()), expected, rtol=1e-10, atol=1e-10, err_msg=name)
