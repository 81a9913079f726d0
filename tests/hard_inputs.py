"""Matrices that users have and that random tests do not meet: null spaces, smooth kernels, saddle points, graded and clustered entries.

`MATRICES` gives for each name a function of a generator of random numbers and the structure, the name of whose class is the first word.
All of them are regular in double precision, however badly conditioned. `SINGULAR` has matrices without full rank. `with_dtype` and
`twisted` make matrices of other data types of them.
"""

import functools

import jax
import numpy as np
import scipy.linalg
import scipy.sparse

import structarrays as sa

N = 48
"""The number of rows, where nothing else is said: more than those up to which sums and blocks are solved by their dense form."""

LARGE = 400
"""The number of rows of Toeplitz and block banded matrices: those of up to 256 rows are solved by their dense form."""

ONES, ALTERNATING = np.ones(N), (-1.0) ** np.arange(N)


def laplacian(weights, extra=0.0):
    """That of a path with weighted edges (Neumann's), which has a constant null vector, plus a number on the diagonal."""
    diagonal = np.full(len(weights) + 1, extra)
    diagonal[:-1] += weights
    diagonal[1:] += weights
    return sa.tridiagonal(-weights, diagonal, -weights)


def second_differences(n=N):
    """Dirichlet's."""
    return sa.tridiagonal(-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1))


def spline_penalty():
    """The squares of third differences, of which polynomials of degree two are the null space."""
    d = np.diff(np.eye(N), 3, axis=0)
    return d.T @ d


def banded(a, w):
    """The dense matrix in banded form."""
    offsets = tuple(range(-w, w + 1))
    return sa.Banded([np.diagonal(a, k) for k in offsets], offsets, a.shape)


def squared_exponential(n, length, nugget):
    lags = np.arange(n)
    return np.exp(-np.square(lags / length)) + nugget * (lags == 0)


def matern(n, length, nugget):
    lags = np.arange(n) / length
    return (1 + lags) * np.exp(-lags) + nugget * (lags == 0)


def smooth_kernel(n, nugget):
    return scipy.linalg.toeplitz(squared_exponential(n, n / 4, nugget))


def saddle_point(rng, zeros):
    diagonal = rng.exponential(size=N)
    diagonal[rng.choice(N, size=zeros, replace=False)] = 0
    constraints = sa.asarray(rng.normal(size=(N // 3, N)))
    return sa.Block([[sa.Diagonal(diagonal), constraints.mT], [constraints, None]])


def grid(n):
    """Five-point differences on a square, Dirichlet's, as a SciPy array."""
    one = scipy.sparse.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    return scipy.sparse.csr_array(
        scipy.sparse.kron(one, scipy.sparse.eye_array(n)) + scipy.sparse.kron(scipy.sparse.eye_array(n), one)
    )


def generator(rng):
    """Of a Markov chain on a path, with a row of ones in place of the last: its solution is the stationary distribution."""
    lower, upper = rng.exponential(size=(2, N - 1))
    a = np.diag(lower, -1) + np.diag(upper, 1)
    a -= np.diag(a.sum(axis=0))
    a[-1] = 1
    return scipy.sparse.csr_array(a)


def ring(below, diagonal, above):
    """A tridiagonal matrix around an edge."""
    return sa.PeriodicBanded([np.full(N, v) for v in (below, diagonal, above)], (-1, 0, 1))


def column(x):
    return np.asarray(x)[:, None]


def bordered(a):
    ones = sa.asarray(column(ONES))
    return sa.Block([[a, ones], [ones.mT, None]])


def tiny_pivots(rng):
    column, row = rng.normal(size=(2, LARGE))
    column[0] = row[0] = 1e-13
    return sa.Toeplitz(column, row)


def nearly_singular_blocks(rng):
    return sa.BlockDiagonal(np.ones((12, 4, 4)) + 10.0 ** -np.arange(12)[:, None, None] * np.eye(4))


def zeros_on_a_diagonal(rng):
    factor = rng.normal(size=(N, 5))
    return sa.Diagonal(np.r_[np.zeros(3), rng.exponential(size=N - 3)]) + sa.LowRank(factor, factor)


def kahan(n=N):
    s, c = np.sin(1.1), np.cos(1.1)
    return np.diag(s ** np.arange(n)) @ (np.eye(n) - c * np.triu(np.ones((n, n)), 1))


def wilkinson(n=N + 1):
    half = np.abs(np.arange(n) - n // 2).astype(float)
    return sa.tridiagonal(np.ones(n - 1), half, np.ones(n - 1))


MATRICES = {
    "Diagonal: graded from 1e-300 to 1e300": lambda rng: sa.Diagonal(10.0 ** np.linspace(-300, 300, N)),
    "Diagonal: alternating": lambda rng: sa.Diagonal(ALTERNATING),
    "Banded: Dirichlet": lambda rng: second_differences(),
    "Banded: Neumann + 1e-10": lambda rng: laplacian(np.ones(N - 1), 1e-10),
    "Banded: Wilkinson's": lambda rng: wilkinson(),
    "Banded: zeros on the diagonal": lambda rng: sa.tridiagonal(np.ones(N - 1), np.zeros(N), 2 * np.ones(N - 1)),
    "Banded: graded": lambda rng: sa.tridiagonal(
        *(rng.normal(size=N - abs(k)) * 10.0 ** -np.linspace(0, 9, N - abs(k)) for k in (-1, 0, 1))
    ),
    "Banded: spline penalty + 1e-9": lambda rng: banded(spline_penalty() + 1e-9 * np.eye(N), 3),
    "Banded: tiny": lambda rng: second_differences() * 1e-250,
    "Banded: huge": lambda rng: second_differences() * 1e250,
    "PeriodicBanded: second differences + 1e-8": lambda rng: ring(-1.0, 2 + 1e-8, -1.0),
    "PeriodicBanded: central differences + 0.1": lambda rng: ring(-0.5, 0.1, 0.5),
    "PeriodicBanded: spline penalty + 1e-9": lambda rng: sa.PeriodicBanded(
        [np.full(N, v) for v in (1.0, -4.0, 6 + 1e-9, -4.0, 1.0)], (-2, -1, 0, 1, 2)
    ),
    "Toeplitz: squared exponential + 1e-2": lambda rng: sa.Toeplitz(squared_exponential(LARGE, 10, 1e-2)),
    "Toeplitz: squared exponential + 1e-9": lambda rng: sa.Toeplitz(squared_exponential(LARGE, 10, 1e-9)),
    "Toeplitz: Matérn + 1e-6": lambda rng: sa.Toeplitz(matern(LARGE, 30, 1e-6)),
    "Toeplitz: constant + 1e-6": lambda rng: sa.Toeplitz(1 + 1e-6 * (np.arange(LARGE) == 0)),
    "Toeplitz: alternating + 1e-6": lambda rng: sa.Toeplitz(
        (-1.0) ** np.arange(LARGE) + 1e-6 * (np.arange(LARGE) == 0)
    ),
    "Toeplitz: geometric": lambda rng: sa.Toeplitz(2.0 ** -np.arange(LARGE), 1.05 ** np.arange(LARGE)),
    "Toeplitz: tiny pivots": tiny_pivots,
    "Hankel: squared exponential + 1e-6": lambda rng: sa.Hankel(*_hankel(squared_exponential(LARGE, 10, 1e-6))),
    "Circulant: nearly singular": lambda rng: sa.Circulant(np.fft.ifft(np.r_[1e-9, 1 + rng.uniform(size=N - 1)])),
    "Symmetric: Hilbert's": lambda rng: sa.Symmetric(scipy.linalg.hilbert(12)),
    "Symmetric: smooth kernel": lambda rng: sa.Symmetric(smooth_kernel(N, 1e-10)),
    "Hermitian: smooth kernel": lambda rng: sa.Hermitian(
        smooth_kernel(N, 1e-9) * np.exp(0.1j * np.subtract.outer(np.arange(N), np.arange(N)))
    ),
    "Triangular: Kahan's": lambda rng: sa.Triangular(kahan(), lower=False),
    "Triangular: minus ones": lambda rng: sa.Triangular(np.eye(N) - np.tril(np.ones((N, N)), -1)),
    "BlockDiagonal: nearly singular blocks": nearly_singular_blocks,
    "BlockBanded: nearly singular blocks": lambda rng: _block_banded(rng),
    "Kronecker: Hilbert's": lambda rng: sa.Kronecker(scipy.linalg.hilbert(6), scipy.linalg.hilbert(8)),
    "Kronecker: smooth kernels": lambda rng: sa.Kronecker(smooth_kernel(7, 1e-6), smooth_kernel(7, 1e-6)),
    "KroneckerSum: Dirichlet": lambda rng: sa.KroneckerSum(second_differences(7), second_differences(7)),
    "Sum: Neumann + 1/n": lambda rng: laplacian(np.ones(N - 1)) + 1 / N,
    "Sum: random weights + constants": lambda rng: (
        laplacian(rng.exponential(size=N - 1)) + sa.LowRank(column(ONES), column(ONES / N))
    ),
    "Sum: spline penalty + polynomials": lambda rng: (
        banded(spline_penalty(), 3) + sa.LowRank(*[np.vander(np.linspace(-1, 1, N), 3)] * 2)
    ),
    "Sum: zeros on a diagonal": zeros_on_a_diagonal,
    "Sum: alternating + unit": lambda rng: sa.Diagonal(ALTERNATING) + sa.LowRank(column(np.eye(N)[0]), column(ONES)),
    "Sum: smooth kernel + wide": lambda rng: (
        sa.Toeplitz(squared_exponential(LARGE, 5, 0)) + sa.LowRank(*[rng.normal(size=(LARGE, 140))] * 2)
    ),
    "Block: saddle point": lambda rng: saddle_point(rng, 0),
    "Block: saddle point with zeros": lambda rng: saddle_point(rng, 5),
    "Block: bordered kernel": lambda rng: bordered(sa.asarray(smooth_kernel(N, 1e-8))),
    "Block: bordered Laplacian": lambda rng: bordered(laplacian(np.ones(N - 1))),
    "Block: tiny pivot": lambda rng: sa.Block(
        [[sa.Diagonal(1e-14 * ONES), second_differences()], [second_differences(), sa.Diagonal(ONES)]]
    ),
    "Sparse: grid": lambda rng: sa.Sparse.from_scipy(grid(17)),
    "Sparse: stationary distribution": lambda rng: sa.Sparse.from_scipy(generator(rng)),
    "Product: smooth kernel and its inverse": lambda rng: sa.Product(
        sa.asarray(smooth_kernel(N, 1e-4)), second_differences()
    ),
    "Dense: smooth kernel": lambda rng: sa.asarray(smooth_kernel(N, 1e-10)),
    "Dense: graded rows": lambda rng: sa.asarray(rng.normal(size=(N, N)) * 10.0 ** -np.linspace(0, 14, N)[:, None]),
    "Identity: small": lambda rng: sa.eye(N) * 1e-3,
    "Permutation: random": lambda rng: sa.Permutation(rng.permutation(N)),
    "Fourier: unitary": lambda rng: sa.Fourier(N),
    "Householder: random reflectors": lambda rng: (
        sa.linalg.qr(sa.Banded([rng.normal(size=N - k) for k in (2, 1, 0)], (-2, -1, 0), (N, N))).Q
    ),
    "Inverse: Dirichlet": lambda rng: sa.Inverse(second_differences(LARGE)),
    "Banded: Dirichlet, large": lambda rng: second_differences(LARGE),
    "Banded: advection": lambda rng: sa.Banded([-np.ones(LARGE - 1), np.ones(LARGE)], (-1, 0), (LARGE, LARGE)),
    "Sum: spline penalty + constants, large": lambda rng: (
        second_differences(LARGE) + sa.LowRank(column(np.ones(LARGE)), column(np.full(LARGE, 1 / LARGE)))
    ),
    "Block: bordered Laplacian, large": lambda rng: _bordered_laplacian(LARGE),
}

SINGULAR = {
    "Fill: ones": lambda rng: sa.Fill(1.0, (N, N)),
    "Banded: Neumann": lambda rng: laplacian(np.ones(N - 1)),
    "Diagonal: graded, with zeros": lambda rng: sa.Diagonal(np.r_[np.zeros(4), 10.0 ** -np.linspace(0, 12, N - 4)]),
    "PeriodicBanded: second differences": lambda rng: ring(-1.0, 2.0, -1.0),
    "Toeplitz: squared exponential": lambda rng: sa.Toeplitz(squared_exponential(N, 10, 0)),
    "Circulant: second differences": lambda rng: sa.Circulant(np.r_[2.0, -1.0, np.zeros(N - 3), -1.0]),
    "LowRank: graded columns": lambda rng: _low_rank(rng, 0.0),
    "LowRank: nearly equal columns": lambda rng: _low_rank(rng, 1e-7),
    "Kronecker: Laplacians": lambda rng: sa.Kronecker(laplacian(np.ones(5)), laplacian(np.ones(7))),
    "Symmetric: smooth kernel without nugget": lambda rng: sa.Symmetric(smooth_kernel(N, 0.0)),
    "Sum: Neumann + a border": lambda rng: (
        (laplacian(np.ones(N - 1)) + sa.LowRank(column(np.eye(N)[0]), column(np.eye(N)[0])))
        - sa.LowRank(column(np.eye(N)[0]), column(np.eye(N)[0]))
    ),
}
"""Matrices without full rank, or without it up to rounding."""


def with_dtype(x, dtype):
    """The same matrix with real parameters in another precision; None if the precision has not the range.

    Elements below the smallest normal number become zeros where they are less than a rounding error of the largest: the tails of kernels.
    """
    narrow = np.finfo(dtype)
    kind = {"f": narrow.dtype, "c": np.result_type(dtype, np.complex64)}
    leaves, tree = jax.tree.flatten(x)
    converted = []
    for leaf in leaves:
        if leaf.dtype.kind in "fc":
            size = np.abs(np.asarray(leaf))
            largest = size.max(initial=0)
            small = (size > 0) & (size < narrow.tiny)
            if largest > narrow.max or np.any(size[small] > narrow.eps * largest):
                return None
            leaf = jax.numpy.where(small, 0, leaf).astype(kind[leaf.dtype.kind])  # noqa: PLW2901
        converted.append(leaf)
    x = jax.tree.unflatten(tree, converted)
    return x if x.dtype == kind[x.dtype.kind] else sa.astype(x, kind[x.dtype.kind])


def _phases(count, angle):
    return np.exp(1j * angle * np.arange(count))


@functools.singledispatch
def twisted(x, angle=0.3):
    """Multiply element (j, k) by ``exp(1j angle (j - k))``: a complex matrix with the same condition, Hermitian if x is symmetric."""
    if getattr(x, "background", None) is not None:
        return x * np.exp(1j * angle)
    m, n = x.shape
    return x * sa.asarray(_phases(m, angle)[:, None] * _phases(n, -angle))


@twisted.register(sa.Toeplitz)
def _(x, angle=0.3):
    return sa.Toeplitz(_phases(x.shape[0], angle) * np.asarray(x)[:, 0], _phases(x.shape[1], -angle) * np.asarray(x)[0])


@twisted.register(sa.Circulant)
def _(x, angle=0.3):
    n = x.shape[0]
    return sa.Circulant(_phases(n, 2 * np.pi / n) * np.asarray(x)[:, 0])


@twisted.register(sa.Hankel)
def _(x, angle=0.3):
    """A Hankel matrix stays one, complex and symmetric, with phases of ``j + k``."""
    (m, n), a = x.shape, np.asarray(x)
    return sa.Hankel(_phases(m, angle) * a[:, 0], np.exp(1j * angle * (m - 1)) * _phases(n, angle) * a[-1])


@twisted.register(sa.Symmetric)
def _(x, angle=0.3):
    return sa.Hermitian(twisted(sa.asarray(np.asarray(x)), angle))


@twisted.register(sa.Identity)
@twisted.register(sa.Permutation)
@twisted.register(sa.Fill)
@twisted.register(sa.Householder)
def _(x, angle=0.3):
    """A phase for all, which leaves the class."""
    return x * np.exp(1j * angle)


@twisted.register(sa.LowRank)
def _(x, angle=0.3):
    return sa.LowRank(*(np.asarray(u) * _phases(len(u), sign * angle)[:, None] for u, sign in ((x.u, 1), (x.v, -1))))


@twisted.register(sa.Inverse)
def _(x, angle=0.3):
    return sa.Inverse(twisted(x.a, angle))


@twisted.register(sa.Kronecker)
@twisted.register(sa.KroneckerSum)
@twisted.register(sa.Product)
def _(x, angle=0.3):
    return type(x)(*(twisted(part, angle) for part in x.factors))


@twisted.register(sa.Sum)
def _(x, angle=0.3):
    return functools.reduce(sa.add, (twisted(term, angle) for term in x.terms))


@twisted.register(sa.Block)
def _(x, angle=0.3):
    return sa.Block([[None if part is None else twisted(part, angle) for part in row] for row in x.blocks])


def _hankel(column):
    """A Toeplitz matrix upside down: its first column and its last row."""
    n = len(column)
    values = np.r_[column[::-1], column[1:]]
    return values[:n], values[n - 1 :]


def _block_banded(rng):
    n, m = LARGE // 4, 4
    diagonal = np.ones((n, m, m)) + 1e-7 * rng.normal(size=(n, m, m))
    beside = rng.normal(size=(2, n - 1, m, m))
    return sa.block_tridiagonal(beside[0], diagonal, beside[1])


def _low_rank(rng, distance):
    u, v = rng.normal(size=(2, N, 5)) * 10.0 ** -np.arange(5)
    if distance:
        u[:, 1] = u[:, 0] * (1 + distance * rng.normal(size=N))
    return sa.LowRank(u, v)


def _bordered_laplacian(n):
    ones = sa.asarray(np.ones((n, 1)))
    return sa.Block([[laplacian(np.ones(n - 1)), ones], [ones.mT, None]])
