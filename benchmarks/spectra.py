"""Spectra of banded matrices, and factors and functions of dense matrices, compared with SciPy."""

import jax
import numpy as np
from harness import OURS, Bar, Report
from peers import CPU_ONLY, on_cpu

import structarrays as sa

N = 300
DTYPES = ("float64", "complex128")
FACTOR = 1.2
FUNCTIONS = {
    "ldl": lambda x: sa.linalg.ldl(x)[:2],
    "sqrtm": sa.linalg.sqrtm,
    "expm": sa.linalg.expm,
}


def run(report: Report) -> None:
    report.section("Spectra of bands, factors and functions of dense matrices")
    for dtype in DTYPES:
        for w in (1, 5):
            spectra(report, w, dtype)
    for dtype in DTYPES:
        for name in FUNCTIONS:
            functions(report, name, dtype)
        sylvester(report, dtype)


def _normal(rng, shape, dtype):
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape) if "complex" in dtype else values).astype(dtype)


def spectra(report: Report, w: int, dtype: str) -> None:
    """Time the eigenvalues of a Hermitian band alone, and with the eigenvectors."""
    rng = np.random.default_rng(0)
    above = [_normal(rng, N - k, dtype) for k in range(w + 1)]
    above[0] = above[0].real.astype(dtype)
    offsets = tuple(range(-w, w + 1))
    x = sa.Banded([d.conj() for d in above[:0:-1]] + above, offsets, (N, N))
    storage = np.zeros((w + 1, N), dtype)
    for k, d in enumerate(above):
        storage[k, : N - k] = d.conj()
    values, vectors = jax.jit(sa.linalg.eigvalsh), jax.jit(sa.linalg.eigh)
    case = f"n = {N}, w = {w}, {dtype}"
    one, both = {OURS: lambda: values(x)}, {OURS: lambda: vectors(x)}
    if not on_cpu():
        absent = {"SciPy": CPU_ONLY}
        report.time(f"eigenvalues of a band, {case}", one, [], absent, rounds=20)
        report.time(f"eigenvectors of a band, {case}", both, [], absent, rounds=20)
        return
    from scipy.linalg import eig_banded, eigh_tridiagonal, eigvals_banded

    one["scipy.linalg.eigvals_banded"] = lambda: eigvals_banded(storage, lower=True)
    both["scipy.linalg.eig_banded"] = lambda: eig_banded(storage, lower=True)
    peer = "scipy.linalg.eig_banded"
    if w == 1 and dtype == "float64":
        peer = "scipy.linalg.eigh_tridiagonal"
        both[peer] = lambda: eigh_tridiagonal(above[0], above[1])
    expected = eigvals_banded(storage, lower=True)
    for found in (values(x), vectors(x).eigenvalues):
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-11)
    report.time(f"eigenvalues of a band, {case}", one, [Bar("scipy.linalg.eigvals_banded", FACTOR)], {}, rounds=20)
    report.time(f"eigenvectors of a band, {case}", both, [Bar(peer, FACTOR)], {}, rounds=20)


def functions(report: Report, name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a = _normal(rng, (N, N), dtype) / np.sqrt(N)
    if name == "ldl":
        a = a + a.conj().T
    if name == "sqrtm":
        a = a + 2 * np.eye(N)
    x, compiled, peer = sa.asarray(a), jax.jit(FUNCTIONS[name]), f"scipy.linalg.{name}"
    candidates, bars, absent = {OURS: lambda: compiled(x)}, [], {peer: CPU_ONLY}
    if on_cpu():
        import scipy.linalg

        function = getattr(scipy.linalg, name)
        candidates[peer], bars, absent = lambda: function(a), [Bar(peer, FACTOR)], {}
        if name != "ldl":
            np.testing.assert_allclose(np.asarray(compiled(x)), function(a), atol=1e-10)
    report.time(f"{name}, {N} x {N}, {dtype}", candidates, bars, absent, rounds=10)


def sylvester(report: Report, dtype: str) -> None:
    """Time a linear system with the Kronecker sum of two matrices, which is a Sylvester equation."""
    rng, n = np.random.default_rng(0), N // 2
    a, b = (_normal(rng, (n, n), dtype) / np.sqrt(n) + 2 * np.eye(n) for _ in range(2))
    c = _normal(rng, n * n, dtype)
    x, right, compiled = sa.KroneckerSum(a, b), sa.asarray(c), jax.jit(sa.linalg.solve)
    candidates, bars, absent, peer = {OURS: lambda: compiled(x, right)}, [], {}, "scipy.linalg.solve_sylvester"
    if on_cpu():
        import scipy.linalg

        candidates[peer] = lambda: scipy.linalg.solve_sylvester(a, b.T, c.reshape(n, n))
        np.testing.assert_allclose(np.asarray(compiled(x, right)), candidates[peer]().ravel(), atol=1e-11)
        bars.append(Bar(peer, FACTOR))
    else:
        absent[peer] = CPU_ONLY
    report.time(f"Sylvester equation, n = {n}, {dtype}", candidates, bars, absent, rounds=20)
