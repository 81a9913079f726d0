"""Conjugate gradients and GMRES of JAX on matrices that are never formed.

`jax.scipy.sparse.linalg.cg`, `gmres` and `bicgstab` take a matrix, or a function that multiplies by a matrix. Through
`sa.structured` they also take structured arrays for the matrix and the preconditioner. You need not write the product,
or its transpose for the gradient.

    python examples/krylov.py [--series 20000] [--places 100000] [--pages 100000]

1. `cg` on the covariance of a series, a Toeplitz matrix, whose products are Fourier transforms; the preconditioner is
   circulant.
2. `gmres` on heat with convection, a nonsymmetric banded matrix; the preconditioner is its symmetric part. The gradient
   by the matrix is banded, too.
3. `bicgstab` on the links of pages (PageRank), the sum of a sparse matrix and a matrix of rank one.

T. F. Chan, "An optimal circulant preconditioner for Toeplitz systems", 1988. P. Concus and G. H. Golub, "A generalized
conjugate gradient method for nonsymmetric systems of linear equations", 1976. S. Brin and L. Page, "The anatomy of a
large-scale hypertextual Web search engine", 1998.
"""

import argparse
import sys
import time

import jax
import jax.numpy as jnp
import jax.scipy.sparse.linalg as krylov
import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from checks import Checks

import structarrays as sa

jax.config.update("jax_enable_x64", True)

TOLERANCE = 1e-8


# ---- code that does not depend on structure -----------------------------------------------------------------------------


def by_cg(A, b, C):
    """Solve ``A x = b`` with the preconditioner C, an approximation of A whose linear systems are cheap."""
    return krylov.cg(A, b, M=lambda r: jnp.linalg.solve(C, r), tol=1e-12)[0]


def by_gmres(A, b, C):
    return krylov.gmres(A, b, M=lambda r: jnp.linalg.solve(C, r), tol=1e-9, restart=30)[0]


def by_bicgstab(A, b):
    return krylov.bicgstab(A, b, tol=1e-12)[0]


# ---- parts of the program -----------------------------------------------------------------------------------------------


def solved(function, *args):
    """Return the result of a function of structured arrays, check densifications, and print the time of a second call."""
    run = jax.jit(sa.structured(function))
    with sa.densify("error"), sa.record() as log:
        jax.block_until_ready(run(*args))
        start = time.perf_counter()
        result = jax.block_until_ready(run(*args))
    elapsed, n = time.perf_counter() - start, args[0].shape[0]
    size = 8 * n * n / 1e9
    print(
        f"  {function.__name__}: {1e3 * elapsed:.0f} ms, {len(log.densifications)} arrays made dense (it would take {size:.1f} GB)"
    )
    return np.asarray(result)


def agrees(found, expected, what, check) -> None:
    error = np.max(np.abs(found - expected)) / np.max(np.abs(expected))
    check(error <= TOLERANCE, f"it agrees with {what} ({error:.0e})")


def series(n: int, check) -> None:
    lags = np.arange(n)
    column = np.exp(-lags / 20) * np.cos(lags / 7) + 0.1 * (lags == 0)
    nearest = (column * (n - lags) + np.roll(column[::-1], 1) * lags) / n  # the first column of a circulant matrix
    A, C, b = sa.Toeplitz(column), sa.Circulant(nearest), np.random.default_rng(0).normal(size=n)
    print(
        f"1. The covariance of a series of {n:,} values: a {type(A).__name__} array, and a {type(C).__name__} one near it"
    )
    agrees(
        solved(by_cg, A, b, C), scipy.linalg.solve_toeplitz(column, b), "SciPy's recursion for Toeplitz matrices", check
    )


def carried(n: int, check) -> None:
    h, speed = 1 / (n + 1), 10.0
    ones = np.ones(n)
    diffusion = sa.tridiagonal(-ones[1:] / h**2, 2 * ones / h**2, -ones[1:] / h**2)
    A = diffusion + speed * sa.tridiagonal(-ones[1:] / (2 * h), 0 * ones, ones[1:] / (2 * h))
    b = np.sin(np.arange(1, n + 1) * h * 5)
    print(
        f"\n2. Heat carried along a rod of {n:,} places: a {type(A).__name__} array, preconditioned by its symmetric part"
    )
    bands = np.zeros((3, n))
    bands[0, 1:], bands[1], bands[2, :-1] = A.diagonal(1), A.diagonal(0), A.diagonal(-1)
    expected = scipy.linalg.solve_banded((1, 1), bands, b)
    agrees(solved(by_gmres, A, b, diffusion), expected, "LAPACK's elimination", check)

    start = time.perf_counter()
    with sa.densify("error"):
        gradient = jax.grad(lambda A: jnp.mean(sa.structured(by_gmres)(A, b, diffusion)))(A)
    print(
        f"  The gradient of its mean by the matrix is a {type(gradient).__name__} array ({time.perf_counter() - start:.1f} s)"
    )
    bands[0, 1:], bands[2, :-1] = A.diagonal(-1), A.diagonal(1)
    adjoint = scipy.linalg.solve_banded((1, 1), bands, ones / n)
    slopes = [-adjoint[1:] * expected[:-1], -adjoint * expected, -adjoint[:-1] * expected[1:]]
    agrees(np.concatenate(gradient.diagonals), np.concatenate(slopes), "the formula for it", check)


def pages(n: int, check) -> None:
    rng, damping = np.random.default_rng(0), 0.85
    links = scipy.sparse.coo_array(
        (np.ones(8 * n), ((n * rng.random(8 * n) ** 2).astype(int), rng.integers(n, size=8 * n))), shape=(n, n)
    ).tocsc()
    links.data[:] = 1.0
    links = links @ scipy.sparse.diags_array((rng.random(n) > 0.1).astype(float))  # some have no links at all
    count = links.sum(axis=0)
    links = (links @ scipy.sparse.diags_array(1 / np.maximum(count, 1))).tocoo()
    links.eliminate_zeros()
    nowhere = (count == 0).astype(float)[:, None]
    anywhere = sa.LowRank(np.full((n, 1), 1 / n), nowhere)
    A = sa.eye(n) - damping * (sa.Sparse.from_scipy(links) + anywhere)
    # Restart probabilities of the surfer. (Equal probabilities would be a left eigenvector of A, for which bi-conjugate
    # gradients break down.)
    begins = rng.random(n)
    b = (1 - damping) * begins / begins.sum()
    print(f"\n3. {n:,} pages with {links.nnz:,} links: one minus a random surfer is a {type(A).__name__} array")
    found = solved(by_bicgstab, A, b)
    expected, P = np.full(n, 1 / n), links.tocsr()
    for _ in range(200):  # steps of the surfer
        expected = damping * (P @ expected + nowhere[:, 0] @ expected / n) + b
    agrees(found, expected, "200 steps of the surfer", check)
    check(abs(found.sum() - 1) <= TOLERANCE, "the ranks add up to one")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=20_000, help="values of the series")
    parser.add_argument("--places", type=int, default=100_000, help="places of the rod")
    parser.add_argument("--pages", type=int, default=100_000, help="pages with links")
    arguments = parser.parse_args()
    if min(arguments.series, arguments.places, arguments.pages) < 500:
        parser.error("all sizes must be 500 or more")
    sys.stdout.reconfigure(line_buffering=True)
    check = Checks()

    series(arguments.series, check)
    carried(arguments.places, check)
    pages(arguments.pages, check)
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
