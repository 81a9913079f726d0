"""Banded factorizations and systems compared with LAPACK, the cost of their derivatives, and the growth of time with n."""

import time

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report, duration
from peers import CPU_ONLY, on_cpu

import structarrays as sa

N = 100_000
SLOPE = 1.1
BY_HAND = "blocked LU by hand, SciPy"


def run(report: Report) -> None:
    report.section("Banded factorisations and systems")
    rng = np.random.default_rng(0)
    for w in (1, 2, 5, 8, 20, 50):
        cholesky(report, *_definite(rng, w), w, 0.6 if w <= 2 else 1.1)
    for w in (1, 2, 5, 8, 20, 50):
        definite_system(report, rng, *_definite(rng, w), w, 0.6 if w <= 2 else 1.1)
    for w in (2, 5, 8, 20, 50):
        general_system(report, rng, w, 1.1, dominant=True)
    for w in (2, 5, 8, 20, 50):
        general_system(report, rng, w, 1.2, dominant=False)
    for w in (1, 2, 5, 8, 20):
        derivatives(report, rng, w)
    for count, m in ((10_000, 8), (1_000, 32)):
        block_tridiagonal(report, rng, count, m)
    report.section("Growth with n, 10^3 to 10^7")
    header = ("kernel", *(f"n = 10^{k}" for k in range(3, 8)), "exponent")
    report.table(header, (growth(report, rng, name, make) for name, make in GROWTH.items()))


def _definite(rng, w):
    """Return a diagonally dominant symmetric band: ours, assumed positive definite, and in LAPACK's lower storage."""
    below = [rng.normal(size=N - k) for k in range(1, w + 1)]
    main = np.ones(N)
    for k, d in enumerate(below, 1):
        main[k:] += np.abs(d)
        main[:-k] += np.abs(d)
    offsets = tuple(range(-w, w + 1))
    x = sa.Banded([*below[::-1], main, *below], offsets, (N, N))
    ab = np.zeros((w + 1, N))
    ab[0] = main
    for k, d in enumerate(below, 1):
        ab[k, : N - k] = d
    return sa.assume(x, "positive_definite"), ab


def cholesky(report, x, ab, w, factor):
    compiled = jax.jit(sa.linalg.cholesky)
    candidates, absent = {OURS: lambda: compiled(x)}, {}
    if on_cpu():
        from scipy.linalg import lapack

        candidates["LAPACK dpbtrf"] = lambda: lapack.dpbtrf(ab, lower=1)
        expected = lapack.dpbtrf(ab, lower=1)[0][0]
        np.testing.assert_allclose(np.asarray(compiled(x).diagonals[-1]), expected, rtol=1e-10)
    else:
        absent["LAPACK dpbtrf"] = CPU_ONLY
    report.time(f"banded Cholesky, n = {N:,}, w = {w}", candidates, [Bar("LAPACK dpbtrf", factor)], absent, rounds=30)


def definite_system(report, rng, x, ab, w, factor):
    b = rng.normal(size=N)
    ours, compiled = sa.asarray(b), jax.jit(sa.linalg.solve)
    candidates, absent = {OURS: lambda: compiled(x, ours)}, {}
    if on_cpu():
        from scipy.linalg import lapack

        candidates["LAPACK dpbsv"] = lambda: lapack.dpbsv(ab, b, lower=1)
        np.testing.assert_allclose(
            np.asarray(compiled(x, ours)), lapack.dpbsv(ab, b, lower=1)[1], rtol=1e-9, atol=1e-12
        )
    else:
        absent["LAPACK dpbsv"] = CPU_ONLY
    case = f"banded system, assumed positive definite, n = {N:,}, w = {w}"
    report.time(case, candidates, [Bar("LAPACK dpbsv", factor)], absent, rounds=30)


def _general(rng, w, dominant, n=N):
    offsets = tuple(range(-w, w + 1))
    diagonals = [rng.normal(size=n - abs(k)) for k in offsets]
    if dominant:
        diagonals[w] = diagonals[w] + 4.0 * w
    return sa.Banded(diagonals, offsets, (n, n)), diagonals


def general_system(report, rng, w, factor, dominant):
    x, diagonals = _general(rng, w, dominant)
    b = rng.normal(size=N)
    ours, compiled = sa.asarray(b), jax.jit(sa.linalg.solve)
    candidates, absent = {OURS: lambda: compiled(x, ours)}, {}
    if on_cpu():
        from scipy.linalg import lapack

        ab = np.zeros((3 * w + 1, N))
        for k, d in zip(range(-w, w + 1), diagonals, strict=True):
            ab[2 * w - k, max(0, k) : N + min(0, k)] = d
        candidates["LAPACK dgbsv"] = lambda: lapack.dgbsv(w, w, ab, b)
        expected = lapack.dgbsv(w, w, ab, b)[2]
        assert np.max(np.abs(np.asarray(compiled(x, ours)) - expected)) < 1e-4 * np.max(np.abs(expected))
    else:
        absent["LAPACK dgbsv"] = CPU_ONLY
    kind = "diagonally dominant" if dominant else "that needs pivots"
    report.time(
        f"banded system {kind}, n = {N:,}, w = {w}", candidates, [Bar("LAPACK dgbsv", factor)], absent, rounds=20
    )


def derivatives(report, rng, w):
    x, _ = _general(rng, w, True)
    b = sa.asarray(rng.normal(size=N))

    def solution(x, b):
        return jnp.sum(sa.linalg.solve(x, b).to_jax() ** 2)

    def logarithm(x, b):
        return sa.linalg.slogdet(x).logabsdet.to_jax()

    for name, function, factor, numbers in (("solve", solution, 2.2, (0, 1)), ("slogdet", logarithm, 2.5, 0)):
        forward, gradient = jax.jit(function), jax.jit(jax.value_and_grad(function, argnums=numbers))
        candidates = {
            f"{name} alone": lambda forward=forward: forward(x, b),
            OURS: lambda gradient=gradient: gradient(x, b),
        }
        report.time(
            f"value and gradient of {name}, banded, w = {w}", candidates, [Bar(f"{name} alone", factor)], rounds=20
        )


def block_tridiagonal(report, rng, count, m):
    below, main, above = _blocks(rng, count, m)
    n, w = count * m, 2 * m - 1
    b = rng.normal(size=n)
    x, ours = sa.block_tridiagonal(below, main, above), sa.asarray(b)
    compiled = jax.jit(sa.linalg.solve)
    candidates, absent = {OURS: lambda: compiled(x, ours)}, {}
    if on_cpu():
        from scipy.linalg import lapack

        ab = np.zeros((3 * w + 1, n))
        for blocks, shift in ((below, -1), (main, 0), (above, 1)):
            first = max(0, -shift)
            rows = (first + np.arange(len(blocks)))[:, None, None] * m + np.arange(m)[:, None]
            columns = (first + shift + np.arange(len(blocks)))[:, None, None] * m + np.arange(m)
            rows, columns = np.broadcast_arrays(rows, columns)
            ab[2 * w + rows - columns, columns] = blocks
        candidates["LAPACK dgbsv"] = lambda: lapack.dgbsv(w, w, ab, b)
        candidates[BY_HAND] = lambda: _by_hand(below, main, above, b)
        expected = lapack.dgbsv(w, w, ab, b)[2]
        for found in (compiled(x, ours), candidates[BY_HAND]()):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-8, atol=1e-11)
    else:
        absent = dict.fromkeys(("LAPACK dgbsv", BY_HAND), CPU_ONLY)
    case = f"block-tridiagonal system, {count:,} blocks of {m}"
    report.time(case, candidates, [Bar("LAPACK dgbsv", 1.1), Bar(BY_HAND, 1.1)], absent, rounds=10)
    both = jax.jit(jax.value_and_grad(lambda x, b: jax.numpy.sum(sa.linalg.solve(x, b).to_jax() ** 2), argnums=(0, 1)))
    candidates = {OURS: lambda: both(x, ours), "solve alone": lambda: compiled(x, ours)}
    report.time(f"value and gradient of the {case}", candidates, [Bar("solve alone", 2.2)], rounds=10)
    logarithm = jax.jit(lambda x: sa.linalg.slogdet(x).logabsdet.to_jax())
    both_logarithm = jax.jit(jax.value_and_grad(logarithm))
    candidates = {OURS: lambda: both_logarithm(x), "slogdet alone": lambda: logarithm(x)}
    case = f"value and gradient of slogdet, block-tridiagonal, {count:,} blocks of {m}"
    report.time(case, candidates, [Bar("slogdet alone", 2.5)], rounds=10)


def _by_hand(below, main, above, b):
    """Block elimination with pivots from the diagonal blocks, as one writes it with SciPy."""
    from scipy.linalg.lapack import dgetrf, dgetrs

    count, m, _ = main.shape
    rows, block, row, solved = b.reshape(count, m), main[0], b[:m], []
    for i in range(count):
        factors, pivots, _ = dgetrf(block.T)
        columns = np.column_stack([above[i], row]) if i + 1 < count else row[:, None]
        solved.append(dgetrs(factors, pivots, columns, trans=1)[0])
        if i + 1 < count:
            change = below[i] @ solved[-1]
            block, row = main[i + 1] - change[:, :m], rows[i + 1] - change[:, m]
    x = np.empty_like(rows)
    x[-1] = solved[-1][:, 0]
    for i in range(count - 2, -1, -1):
        x[i] = solved[i][:, m] - solved[i][:, :m] @ x[i + 1]
    return x.reshape(-1)


def _tridiagonal(rng, n):
    one = np.ones(n - 1)
    return sa.tridiagonal(-one, np.full(n, 3.0), -one)


def _blocks(rng, count, m):
    below, above = rng.normal(size=(2, count - 1, m, m))
    return below, rng.normal(size=(count, m, m)) + 4 * m * np.eye(m), above


GROWTH = {
    "tridiagonal product": lambda rng, n: (lambda x, b: x @ b, _tridiagonal(rng, n)),
    "tridiagonal system": lambda rng, n: (sa.linalg.solve, _tridiagonal(rng, n)),
    "tridiagonal system, definite": lambda rng, n: (
        sa.linalg.solve,
        sa.assume(_tridiagonal(rng, n), "positive_definite"),
    ),
    "five bands, product": lambda rng, n: (lambda x, b: x @ b, _general(rng, 2, True, n)[0]),
    "five bands, system": lambda rng, n: (sa.linalg.solve, _general(rng, 2, True, n)[0]),
    "five bands, system that needs pivots": lambda rng, n: (sa.linalg.solve, _general(rng, 2, False, n)[0]),
    "five bands, system, definite": lambda rng, n: (
        sa.linalg.solve,
        sa.assume(_symmetric(rng, n), "positive_definite"),
    ),
    "five bands, QR": lambda rng, n: (lambda x, b: sa.linalg.qr(x).R, _general(rng, 2, True, n)[0]),
    "blocks of 5 on the diagonal, system": lambda rng, n: (
        sa.linalg.solve,
        sa.BlockDiagonal(rng.normal(size=(n // 5, 5, 5)) + 5 * np.eye(5)),
    ),
    "block-tridiagonal system, blocks of 5": lambda rng, n: (
        sa.linalg.solve,
        sa.block_tridiagonal(*_blocks(rng, n // 5, 5)),
    ),
    "five bands, Cholesky": lambda rng, n: (
        lambda x, b: sa.linalg.cholesky(x),
        sa.assume(_symmetric(rng, n), "positive_definite"),
    ),
    "five bands, slogdet and its gradient": lambda rng, n: (
        lambda x, b: jax.value_and_grad(lambda x: sa.linalg.slogdet(x).logabsdet.to_jax())(x),
        _general(rng, 2, True, n)[0],
    ),
    "five bands, LDL, definite": lambda rng, n: (
        lambda x, b: sa.linalg.ldl(x)[:2],
        sa.assume(_symmetric(rng, n), "positive_definite"),
    ),
    "diagonal + rank 2, system": lambda rng, n: (
        sa.linalg.solve,
        sa.Diagonal(rng.uniform(1.0, 2.0, n)) + sa.LowRank(*(rng.normal(size=(n, 2)) / np.sqrt(n) for _ in range(2))),
    ),
    "five bands, selected inverse": lambda rng, n: (
        lambda x, b: sa.linalg.selected_inverse(x),
        _general(rng, 2, True, n)[0],
    ),
}


def _symmetric(rng, n):
    one, two = rng.normal(size=n - 1), rng.normal(size=n - 2)
    return sa.Banded([two, one, np.full(n, 8.0), one, two], (-2, -1, 0, 1, 2), (n, n))


def growth(report, rng, name, make):
    """Report times, and the exponent p of ``time ~ n**p`` by least squares on the logarithms."""
    sizes, seconds = [10**3, 10**4, 10**5, 10**6, 10**7], []
    for n in sizes:
        function, x = make(rng, n)
        b, compiled = sa.asarray(rng.normal(size=n)), jax.jit(function)
        jax.block_until_ready(compiled(x, b))
        best = np.inf
        for _ in range(report.rounds(100 if n < 10**6 else 8)):
            start = time.perf_counter()
            jax.block_until_ready(compiled(x, b))
            best = min(best, time.perf_counter() - start)
        seconds.append(best)
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    report.note(f"growth: {name}", sizes=sizes, seconds=seconds)
    report.judge(name, "exponent", f"<= {SLOPE}", f"{slope:.2f}", slope <= SLOPE)
    return name, *map(duration, seconds), f"{slope:.2f}"
