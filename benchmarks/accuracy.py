"""Backward errors of every solver on difficult families of matrices, compared with LAPACK on the dense matrix.

The backward error of x is ``norm(b - A x) / (norm(A) norm(x) + norm(b))`` in the infinity norm, with the residual in
extended precision. It is the smallest relative change of A and b for which x is exact. The error of a solver may be ten
times the larger of the error of LAPACK's `gesv` and the unit roundoff. A solver may also raise `LinAlgError`.
"""

import numpy as np
from harness import Report

import structarrays as sa

FACTOR = 10.0
PRECISION = 2.0**-53
REFUSED = "refused"


def run(report: Report) -> None:
    report.section("Backward errors on hard families")
    worst: dict[str, list[float]] = {}
    report.table(("structure: family", "condition", "ours", "LAPACK"), _rows(report, worst))
    for structure, ratios in worst.items():
        ratio = max(ratios)
        report.judge("backward errors", structure, f"<= {FACTOR:g} x LAPACK", f"{ratio:.2f} x", bool(ratio <= FACTOR))


def _rows(report: Report, worst: dict[str, list[float]]):
    """Iterate over one row for each family; append the ratios of errors to their limits to `worst`, by structure."""
    rng = np.random.default_rng(0)
    for structure, family, x in families(rng):
        a = np.asarray(x.to_jax())
        b = rng.normal(size=a.shape[-1])
        if np.iscomplexobj(a):
            b = b + 1j * rng.normal(size=b.shape)
        ours, lapack = error_of(_ours, x, a, b), error_of(_lapack, a, a, b)
        condition = np.linalg.cond(a)
        report.note(f"{structure}: {family}", condition=condition, ours=ours, lapack=lapack)
        # If LAPACK raises for a singular matrix, the limit is the precision.
        limit = max(PRECISION if lapack == REFUSED else lapack, PRECISION)
        worst.setdefault(structure, []).append(0.0 if ours == REFUSED else ours / limit)
        yield (
            f"{structure}: {family}",
            f"{condition:.0e}",
            *(e if isinstance(e, str) else f"{e:.1e}" for e in (ours, lapack)),
        )


def _ours(x, b):
    return np.asarray(sa.linalg.solve(x, sa.asarray(b)))


def _lapack(a, b):
    return np.linalg.solve(a, b)


def error_of(solve, matrix, a, b):
    """Return the backward error of `solve` for a matrix with the dense form `a`, or that `solve` raised."""
    try:
        x = solve(matrix, b)
    except np.linalg.LinAlgError:
        return REFUSED
    wide = np.clongdouble if np.iscomplexobj(a) else np.longdouble
    residual = b.astype(wide) - a.astype(wide) @ x.astype(wide)
    largest = np.max(np.sum(np.abs(a), axis=1)) * np.max(np.abs(x)) + np.max(np.abs(b))
    return float(np.max(np.abs(residual)) / largest)


def families(rng):
    """Iterate over triples of structure, family and array."""
    yield from _banded(rng)
    yield from _dense(rng)
    yield from _triangles_and_blocks(rng)
    yield from _toeplitz(rng)
    yield from _factored(rng)
    yield from _sparse(rng)


def _graded(n, decades=14.0):
    return 10.0 ** (-decades * np.arange(n) / (n - 1))


def _orthogonal(rng, n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def _with_spectrum(rng, values):
    """Return a symmetric matrix with these eigenvalues and random eigenvectors."""
    q = _orthogonal(rng, len(values))
    a = (q * values) @ q.T
    return (a + a.T) / 2


def _definite(x):
    return sa.assume(x, "positive_definite")


def _bands(a, kl, ku):
    """Return the diagonals of a dense matrix as a `Banded` array."""
    offsets = tuple(range(-kl, ku + 1))
    return sa.Banded([np.diagonal(a, k).copy() for k in offsets], offsets, a.shape)


def _banded(rng, n=200):
    wilkinson = np.abs(np.arange(n) - n // 2).astype(float)
    one = np.ones(n - 1)
    second = np.diag(np.full(n, 2.0)) - np.diag(one, 1) - np.diag(one, -1)
    random = rng.normal(size=(n, n))
    scale = _graded(n)
    for kl, ku, name in ((1, 1, "tridiagonal"), (2, 3, "five and more bands")):
        yield name, "random, needs pivoting", _bands(random, kl, ku)
        yield name, "rows graded over 14 decades", _bands(scale[:, None] * random, kl, ku)
        yield name, "columns graded over 14 decades", _bands(random * scale, kl, ku)
        yield name, "graded both ways", _bands(np.sqrt(scale)[:, None] * random * np.sqrt(scale), kl, ku)
        yield name, "tiny diagonal", _bands(random - np.diag(np.diag(random)) + 1e-14 * np.eye(n), kl, ku)
    yield "tridiagonal", "Wilkinson's W+", sa.tridiagonal(one, wilkinson, one)
    shifted = second - np.linalg.eigvalsh(second)[n // 3] * np.eye(n)
    yield "tridiagonal", "second differences less an eigenvalue", _bands(shifted, 1, 1)
    fourth = second @ second
    yield "five and more bands", "fourth differences", _bands(fourth, 2, 2)
    yield "banded, definite", "second differences", _definite(_bands(second, 1, 1))
    yield "banded, definite", "fourth differences", _definite(_bands(fourth, 2, 2))
    graded = np.sqrt(scale)[:, None] * (second + np.eye(n)) * np.sqrt(scale)
    yield "banded, definite", "graded", _definite(_bands(graded, 1, 1))
    yield "banded, definite", "eighth differences, wide", _definite(_bands(fourth @ fourth + 1e-10 * np.eye(n), 4, 4))


def _dense(rng, n=120):
    for cond in (1e6, 1e14):
        values = np.logspace(0, -np.log10(cond), n)
        yield (
            "dense",
            f"orthogonal spectra, cond {cond:.0e}",
            sa.asarray(_orthogonal(rng, n) * values @ _orthogonal(rng, n)),
        )
        yield (
            "dense, definite",
            f"random directions, cond {cond:.0e}",
            _definite(sa.asarray(_with_spectrum(rng, values))),
        )
        signs = np.where(np.arange(n) % 2, 1, -1)
        symmetric = _with_spectrum(rng, values * signs)
        yield "symmetric", f"indefinite, cond {cond:.0e}", sa.Symmetric(symmetric)
    growing = np.tril(-np.ones((40, 40)), -1) + np.eye(40)
    growing[:, -1] = 1
    yield "dense", "Wilkinson's growing pivots", sa.asarray(growing)


def _triangles_and_blocks(rng, n=120):
    yield "triangular", "random", sa.Triangular(np.tril(rng.normal(size=(n, n))))
    c = 0.3
    s = np.sqrt(1 - c * c)
    kahan = np.diag(s ** np.arange(n)) @ (np.eye(n) - c * np.triu(np.ones((n, n)), 1))
    yield "triangular", "Kahan's", sa.Triangular(kahan, lower=False)
    blocks = [np.linalg.qr(rng.normal(size=(8, 8)))[0] * np.logspace(0, -14, 8) for _ in range(10)]
    yield "block-diagonal", "blocks of cond 1e14", sa.BlockDiagonal(np.stack(blocks))
    for count, m in ((60, 6), (12, 30)):  # in a window of the rows, and by blocks
        of = f", blocks of {m}"
        main, (below, above) = rng.normal(size=(count, m, m)), rng.normal(size=(2, count - 1, m, m))
        yield "block-banded", f"random, needs pivoting{of}", sa.block_tridiagonal(below, main, above)
        scale = _graded(count * m).reshape(count, m, 1)
        yield "block-banded", f"graded{of}", sa.block_tridiagonal(below * scale[1:], main * scale, above * scale[:-1])
        tiny = 1e-10 * np.broadcast_to(np.eye(m), (count, m, m))
        yield "block-banded", f"tiny diagonal{of}", sa.block_tridiagonal(below, tiny, above)
        main = main @ main.mT + 1e-8 * np.eye(m)
        main[1:] += below @ below.mT
        definite = sa.block_tridiagonal(below, main, below.mT)
        shifted = definite + (1e-6 - np.linalg.eigvalsh(definite.to_jax())[0]) * sa.Identity(count * m)
        yield "block-banded, definite", f"nearly singular{of}", sa.assume(shifted, "positive_definite")


def _toeplitz(rng, n=300):
    t = np.arange(n)
    yield "Toeplitz", "random, indefinite", sa.Toeplitz(rng.normal(size=n), rng.normal(size=n))
    singular_minors = np.r_[0.0, 1.0, rng.normal(size=n - 2)]
    yield "Toeplitz", "leading minors that vanish", sa.Toeplitz(singular_minors)
    yield "Toeplitz", "leading minors near zero", sa.Toeplitz(np.r_[1e-13, 1.0, rng.normal(size=n - 2)])
    yield "Toeplitz", "columns that decay over 14 decades", sa.Toeplitz(10.0 ** (-14 * t / n), rng.normal(size=n))
    noise = np.where(t == 0, 1e-10, 0.0)
    for name, column in (
        ("exponential", np.exp(-t / 200) + noise),
        ("squared exponential, noise 1e-10", np.exp(-((t / 30) ** 2)) + noise),
        ("prolate", np.r_[0.4, np.sin(2 * np.pi * 0.2 * t[1:]) / (np.pi * t[1:])] + 100 * noise),
    ):
        yield "Toeplitz", name, sa.Toeplitz(column)
        yield "Toeplitz, definite", name, _definite(sa.Toeplitz(column))
    lower = np.r_[1.0, -1.9, 0.9, np.zeros(n - 3)]
    lower[3:] = 1e-3 * rng.normal(size=n - 3)
    yield "Toeplitz", "triangular", sa.Toeplitz(lower, np.r_[1.0, np.zeros(n - 1)])
    spectrum = np.logspace(0, -14, n // 2 + 1)
    yield "circulant", "spectrum over 14 decades", sa.Circulant(np.fft.irfft(spectrum, n))
    yield "Hankel", "random", sa.Hankel(rng.normal(size=n), rng.normal(size=n))
    yield "Hankel", "Hilbert's, 12 rows", sa.Hankel(1 / (1.0 + np.arange(12)), 1 / (12.0 + np.arange(12)))


def _factored(rng, m=12, n=15):
    def pair(decades):
        return [_orthogonal(rng, k) * np.logspace(0, -decades, k) @ _orthogonal(rng, k) for k in (m, n)]

    def symmetric(decades):
        return [sa.Symmetric(_with_spectrum(rng, np.logspace(0, -decades, k) * (-1.0) ** np.arange(k))) for k in (m, n)]

    size = m * n
    yield "Kronecker", "factors of cond 1e3", sa.Kronecker(*pair(3))
    yield "Kronecker", "factors of cond 1e7", sa.Kronecker(*pair(7))
    factors = symmetric(5)
    values = np.linalg.eigvalsh(np.asarray(sa.Kronecker(*factors).to_jax()))
    yield "Kronecker + number", "symmetric", sa.Kronecker(*factors) + 1e-3 * sa.Identity(size)
    near = sa.Kronecker(*factors) - values[0] * (1 - 1e-13) * sa.Identity(size)
    yield "Kronecker + number", "symmetric, near an eigenvalue", near
    # One factor is so large that the solver uses its tridiagonal form instead of its eigenvectors.
    large = [_with_spectrum(np.random.default_rng(k), np.logspace(0, -5, k) * (-1.0) ** np.arange(k)) for k in (4, 140)]
    values = np.linalg.eigvalsh(np.kron(*large))
    wide, identity = sa.Kronecker(*map(sa.Symmetric, large)), sa.Identity(560)
    yield "Kronecker + number", "symmetric, a large factor", wide + 1e-3 * identity
    yield "Kronecker + number", "the same, near an eigenvalue", wide - values[0] * (1 - 1e-13) * identity
    yield "Kronecker + number", "the same, definite", _definite(wide - 1.001 * values[0] * identity)
    yield "Kronecker + number", "not symmetric", sa.Kronecker(*pair(6)) + 1e-6 * sa.Identity(size)
    convection = [
        np.diag(np.full(k, 2.0)) + np.diag(np.full(k - 1, -1.99), -1) + np.diag(np.full(k - 1, -0.01), 1)
        for k in (m, n)
    ]
    yield "Kronecker sum", "convection", sa.KroneckerSum(*convection)
    yield "Kronecker sum", "symmetric, indefinite", sa.KroneckerSum(*symmetric(8))
    k, r = 150, 5
    u, v = rng.normal(size=(2, k, r))
    yield "diagonal + low rank", "diagonal over 14 decades", sa.Diagonal(_graded(k)) + sa.LowRank(u, v)
    yield "diagonal + low rank", "large rank and a tiny diagonal", sa.Diagonal(np.full(k, 1e-10)) + sa.LowRank(u, u)
    nearly = np.eye(k)[:, :1]
    yield "diagonal + low rank", "cancels an entry", sa.Diagonal(np.ones(k)) + sa.LowRank((1e-13 - 1) * nearly, nearly)
    yield (
        "block",
        "saddle point",
        sa.Block([[sa.Diagonal(_graded(40, 6.0)), rng.normal(size=(40, 8))], [rng.normal(size=(8, 40)), None]]),
    )
    hidden = sa.Block([[sa.Diagonal(np.full(20, 1e-14)), sa.Identity(20)], [sa.Identity(20), sa.Diagonal(np.ones(20))]])
    yield "block", "tiny corner", hidden
    d = sa.Diagonal(_graded(k, 7.0))
    yield "product", "graded factors", sa.Product(d, _bands(rng.normal(size=(k, k)) + 4 * np.eye(k), 1, 1), d)
    yield "inverse", "of a random band", sa.Inverse(_bands(rng.normal(size=(k, k)), 1, 2))


def _sparse(rng, m=15):
    one = np.ones(m - 1)
    second = np.diag(np.full(m, 2.0)) - np.diag(one, 1) - np.diag(one, -1)
    upwind = np.eye(m) - np.diag(one, -1)
    grid = np.kron(second, np.eye(m)) + np.kron(np.eye(m), second) + 30 * np.kron(upwind, np.eye(m))
    yield "sparse", "convection on a grid", sa.Sparse.from_dense(grid)
    yield "sparse", "rows graded over 14 decades", sa.Sparse.from_dense(_graded(m * m)[:, None] * grid)
    random = np.where(rng.random((200, 200)) < 0.03, rng.normal(size=(200, 200)), 0) + np.diag(1e-12 * np.ones(200))
    yield "sparse", "random, tiny diagonal", sa.Sparse.from_dense(random)
    values = np.linalg.eigvalsh(grid + grid.T)
    yield "sparse", "near an eigenvalue", sa.Sparse.from_dense(grid + grid.T - values[3] * np.eye(m * m))
