"""Matrices of every structure and functions of them, each made and computed by the library and by NumPy and SciPy."""

import numpy as np
import scipy.linalg
from derivatives import Case
from support import as_jax

import structarrays as sa

N = 6


class Structured:
    """Arrays of the library."""

    dense = staticmethod(sa.asarray)
    diagonal = staticmethod(sa.Diagonal)
    toeplitz = staticmethod(sa.Toeplitz)
    circulant = staticmethod(sa.Circulant)
    hankel = staticmethod(sa.Hankel)
    fourier = staticmethod(sa.Fourier)
    permutation = staticmethod(sa.Permutation)
    householder = staticmethod(sa.Householder)
    kronecker = staticmethod(sa.Kronecker)
    kronecker_sum = staticmethod(sa.KroneckerSum)
    total = staticmethod(sa.Sum)
    product = staticmethod(sa.Product)
    inverse = staticmethod(sa.Inverse)
    low_rank = staticmethod(sa.LowRank)
    block = staticmethod(sa.Block)
    block_diagonal = staticmethod(sa.BlockDiagonal)
    symmetric = staticmethod(sa.Symmetric)
    hermitian = staticmethod(sa.Hermitian)
    triangular = staticmethod(sa.Triangular)
    assume = staticmethod(sa.assume)

    @staticmethod
    def banded(diagonals, offsets, n):
        return sa.Banded(diagonals, offsets, (n, n))

    @staticmethod
    def tall_banded(diagonals, offsets, shape):
        return sa.Banded(diagonals, offsets, shape)

    @staticmethod
    def block_banded(blocks, offsets):
        return sa.BlockBanded(blocks, offsets)

    @staticmethod
    def sparse(data, where, n):
        return sa.Sparse(data, where, (n, n))

    @staticmethod
    def identity(n, scale):
        return sa.Identity(n, scale)

    @staticmethod
    def background(matrix, value):
        return matrix + value


class Plain:
    """Dense arrays of NumPy."""

    dense = staticmethod(np.asarray)
    diagonal = staticmethod(np.diag)
    circulant = staticmethod(scipy.linalg.circulant)
    fourier = staticmethod(lambda n: scipy.linalg.dft(n, scale="sqrtn"))
    permutation = staticmethod(lambda p: np.eye(len(p))[p])
    inverse = staticmethod(np.linalg.inv)
    block_diagonal = staticmethod(lambda blocks: scipy.linalg.block_diag(*blocks))
    assume = staticmethod(lambda x, *assumptions: x)

    @staticmethod
    def toeplitz(c, r=None):
        return scipy.linalg.toeplitz(c, c if r is None else r)

    @staticmethod
    def hankel(c, r):
        return scipy.linalg.hankel(c, r)

    @staticmethod
    def householder(v, tau, shape):
        """Each reflector with the phase of ``1 - tau |v|^2``, as the class says."""
        q = np.eye(shape[0], dtype=np.result_type(v, tau))
        for j, (w, t) in enumerate(zip(v, tau, strict=True)):
            full = np.zeros(shape[0], q.dtype)
            full[j : j + len(w)] = w[: shape[0] - j]
            norm = np.vdot(full, full).real
            eigenvalue = 1 - t * norm
            q = q @ (np.eye(shape[0]) - (1 - eigenvalue / np.abs(eigenvalue)) / norm * np.outer(full, full.conj()))
        return q[:, : shape[1]]

    @staticmethod
    def kronecker(*factors):
        result = np.eye(1)
        for f in factors:
            result = np.kron(result, f)
        return result

    @staticmethod
    def kronecker_sum(*factors):
        sizes = [len(f) for f in factors]
        eyes = [[f if i == j else np.eye(sizes[j]) for j in range(len(sizes))] for i, f in enumerate(factors)]
        return sum(Plain.kronecker(*each) for each in eyes)

    @staticmethod
    def total(*terms):
        return sum(terms)

    @staticmethod
    def product(*factors):
        return np.linalg.multi_dot(factors)

    @staticmethod
    def low_rank(u, v):
        return u @ v.T

    @staticmethod
    def block(blocks):
        return np.block(blocks)

    @staticmethod
    def symmetric(a):
        return np.tril(a) + np.tril(a, -1).T

    @staticmethod
    def hermitian(a):
        return np.tril(a, -1) + np.tril(a, -1).conj().T + np.diag(np.diag(a).real)

    @staticmethod
    def triangular(a, lower=True, unit_diagonal=False):
        a = np.tril(a) if lower else np.triu(a)
        return a - np.diag(np.diag(a)) + np.eye(len(a)) if unit_diagonal else a

    @staticmethod
    def banded(diagonals, offsets, n):
        return sum(np.diag(d, k) for d, k in zip(diagonals, offsets, strict=True))

    @staticmethod
    def tall_banded(diagonals, offsets, shape):
        a = np.zeros(shape)
        for d, k in zip(diagonals, offsets, strict=True):
            i = np.arange(len(d)) + max(0, -k)
            a[i, i + k] = d
        return a

    @staticmethod
    def block_banded(blocks, offsets):
        m = blocks[0].shape[-1]
        count = len(blocks[offsets.index(0)])
        a = np.zeros((count * m,) * 2, blocks[0].dtype)
        for stack, k in zip(blocks, offsets, strict=True):
            for t, b in enumerate(stack):
                i, j = t + max(0, -k), t + max(0, k)
                a[i * m : (i + 1) * m, j * m : (j + 1) * m] = b
        return a

    @staticmethod
    def sparse(data, where, n):
        a = np.zeros((n, n), data.dtype)
        np.add.at(a, where, data)
        return a

    @staticmethod
    def identity(n, scale):
        return scale * np.eye(n)

    @staticmethod
    def background(matrix, value):
        return matrix + value


MAKERS = (Structured, Plain)

# ---- functions -------------------------------------------------------------------------------------------------------


def _selected(a, b):
    return np.where(a != 0, np.linalg.inv(a), 0)


def _phases(r):
    d = r.diagonal()
    return d / abs(d)


def _qr(linalg, a):
    """With a positive diagonal of R: those factors are unique."""
    q, r = linalg.qr(a)
    if linalg is sa.linalg:
        q, r = as_jax(q), as_jax(r)
    p = _phases(r)
    return q * p, p.conj()[:, None] * r


def _eigh(linalg, xp, a):
    """The eigenvalues, and what does not depend on the phases of the vectors."""
    w, v = linalg.eigh(a)
    return w, (v * xp.sin(w)) @ xp.conj(xp.matrix_transpose(v))


def _svd(linalg, xp, a):
    u, s, v = linalg.svd(a, full_matrices=False)
    return s, (u * (s / (1 + s))) @ v


def _ldl(a, b):
    lu, d, _ = scipy.linalg.ldl(a, hermitian=True)
    return lu, d


def _eigvals(xp, values):
    """Functions of the eigenvalues that do not depend on their order."""
    return xp.sum(xp.exp(values)), xp.sum(xp.sin(values))


FUNCTIONS = {
    "solve": (lambda a, b: sa.linalg.solve(a, b), np.linalg.solve),
    "solve a vector": (lambda a, b: sa.linalg.solve(a, b[:, 0]), lambda a, b: np.linalg.solve(a, b[:, 0])),
    "slogdet": (lambda a, b: sa.linalg.slogdet(a), lambda a, b: np.linalg.slogdet(a)),
    "logdet": (lambda a, b: sa.linalg.logdet(a), lambda a, b: np.linalg.slogdet(a)[1]),
    "det": (lambda a, b: sa.linalg.det(a), lambda a, b: np.linalg.det(a)),
    "inv": (lambda a, b: sa.linalg.inv(a), lambda a, b: np.linalg.inv(a)),
    "selected_inverse": (lambda a, b: sa.linalg.selected_inverse(a), _selected),
    "cholesky": (lambda a, b: sa.linalg.cholesky(a), lambda a, b: np.linalg.cholesky(a)),
    "cholesky upper": (lambda a, b: sa.linalg.cholesky(a, upper=True), lambda a, b: np.linalg.cholesky(a).conj().T),
    "cho_solve": (lambda a, b: sa.linalg.cho_solve(sa.linalg.cho_factor(a), b), np.linalg.solve),
    "lu": (lambda a, b: sa.linalg.lu(a), lambda a, b: scipy.linalg.lu(a)),
    "lu_solve": (lambda a, b: sa.linalg.lu_solve(sa.linalg.lu_factor(a), b), np.linalg.solve),
    "lu_solve transposed": (
        lambda a, b: sa.linalg.lu_solve(sa.linalg.lu_factor(a), b, 1),
        lambda a, b: np.linalg.solve(a.T, b),
    ),
    "ldl": (lambda a, b: sa.linalg.ldl(a)[:2], _ldl),
    "qr": (lambda a, b: _qr(sa.linalg, a), lambda a, b: _qr(np.linalg, a)),
    "eigh": (lambda a, b: _eigh(sa.linalg, sa, a), lambda a, b: _eigh(np.linalg, np, a)),
    "eigvalsh": (lambda a, b: sa.linalg.eigvalsh(a), lambda a, b: np.linalg.eigvalsh(a)),
    "eigvals": (
        lambda a, b: _eigvals(sa, sa.linalg.eigvals(a)),
        lambda a, b: _eigvals(np, np.linalg.eigvals(a)),
    ),
    "svd": (lambda a, b: _svd(sa.linalg, sa, a), lambda a, b: _svd(np.linalg, np, a)),
    "svdvals": (lambda a, b: sa.linalg.svdvals(a), lambda a, b: np.linalg.svdvals(a)),
    "pinv": (lambda a, b: sa.linalg.pinv(a), lambda a, b: np.linalg.pinv(a)),
    "lstsq": (
        lambda a, b: sa.linalg.lstsq(a, b).x,
        lambda a, b: np.linalg.lstsq(a, b)[0],
    ),
    "residues": (
        lambda a, b: sa.linalg.lstsq(a, b).residues,
        lambda a, b: np.sum(np.abs(b - a @ np.linalg.lstsq(a, b)[0]) ** 2, 0),
    ),
    "expm": (lambda a, b: sa.linalg.expm(a), lambda a, b: scipy.linalg.expm(a)),
    "expm_multiply": (lambda a, b: sa.linalg.expm_multiply(a, b), lambda a, b: scipy.linalg.expm(a) @ b),
    "sqrtm": (lambda a, b: sa.linalg.sqrtm(a), lambda a, b: scipy.linalg.sqrtm(a)),
    "cube": (lambda a, b: sa.linalg.matrix_power(a, 3), lambda a, b: np.linalg.matrix_power(a, 3)),
    "inverse squared": (lambda a, b: sa.linalg.matrix_power(a, -2), lambda a, b: np.linalg.matrix_power(a, -2)),
    "nuclear norm": (
        lambda a, b: sa.linalg.matrix_norm(a, ord="nuc"),
        lambda a, b: np.linalg.norm(a, "nuc"),
    ),
    "spectral norm": (lambda a, b: sa.linalg.matrix_norm(a, ord=2), lambda a, b: np.linalg.norm(a, 2)),
    "smallest singular value": (lambda a, b: sa.linalg.matrix_norm(a, ord=-2), lambda a, b: np.linalg.norm(a, -2)),
    "compress": (lambda a, b: sa.linalg.compress(a, rank=2), lambda a, b: a),
    "norm": (lambda a, b: sa.linalg.matrix_norm(a), lambda a, b: np.linalg.norm(a)),
    "matmul": (lambda a, b: sa.linalg.matmul(a, b), lambda a, b: a @ b),
    "solve_triangular": (
        lambda a, b: sa.linalg.solve_triangular(a, b, lower=True),
        lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True),
    ),
    "solve_triangular transposed": (
        lambda a, b: sa.linalg.solve_triangular(a, b, trans=1, unit_diagonal=True),
        lambda a, b: scipy.linalg.solve_triangular(a, b, trans=1, unit_diagonal=True),
    ),
}
SYSTEM = ("solve", "slogdet", "inv", "matmul")
DEFINITE = ("solve", "logdet", "inv", "cholesky", "cho_solve")
SINGULAR_VALUES = ("svdvals", "nuclear norm", "spectral norm", "smallest singular value", "norm")
LARGE = ("solve", "slogdet")

# ---- matrices --------------------------------------------------------------------------------------------------------


def eye(n, first=4.0):
    """A diagonal that outweighs the rest, of different elements: so far apart that differences of eigenvalues are exact."""
    return first + np.arange(n) % 8 / 2


def dominant(take, n, first=4.0):
    return 0.5 * take(n, n) + np.diag(eye(n, first))


def definite(take, n, first=4.0):
    a = 0.5 * take(n, n)
    return (a + a.T) / 2 + np.diag(eye(n, first))


def hermitian(take, n):
    a = 0.5 * take.complex(n, n)
    return (a + a.conj().T) / 2 + np.diag(eye(n))


def bands(take, offsets, n, first=4.0, kind=None):
    """Diagonals, of which that at offset 0 outweighs the others."""
    take = take if kind is None else getattr(take, kind)
    return [take(n - abs(k)) + (eye(n, first) if k == 0 else 0) for k in offsets]


def mirrored(take, w, n, kind=None):
    """Diagonals of a definite banded matrix and their offsets."""
    take_ = take if kind is None else getattr(take, kind)
    above = [take_(n - k) for k in range(1, w + 1)]
    return [*(d.conj() for d in above[::-1]), take(n) + eye(n, 6.0), *above], tuple(range(-w, w + 1))


def banded(offsets, n=N, **options):
    return lambda take, make: make.banded(bands(take, offsets, n, **options), offsets, n)


def definite_banded(w, n=N, kind=None):
    return lambda take, make: make.assume(make.banded(*mirrored(take, w, n, kind), n), "positive_definite")


def _with_exchanges(take, make):
    """Zeros, or nearly, on most of the diagonal, but regular."""
    far, main = 4.0 * (np.arange(N - 2) < 2), 4.0 * (np.arange(N) >= 4)
    diagonals = [take(N - 2) / 2 + far, take(N - 1) / 2, take(N) / 2 + main, take(N - 2) / 2 + 0.75 * far]
    return make.banded(diagonals, (-2, -1, 0, 2), N)


SCATTERED = tuple(np.array([(0, 0), (0, 3), (1, 1), (2, 0), (2, 2), (3, 3), (4, 4), (4, 1), (5, 5), (3, 5)]).T)


def _sparse(n, symmetric):
    """A large matrix of its diagonal, ones next to it and some elements far from it, of two parameters."""
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, n, (2, 2 * n))
    i = np.arange(n)

    def build(take, make):
        data = take.few(2 * n) / 4
        if symmetric:
            where = (np.concatenate([i, rows, columns]), np.concatenate([i, columns, rows]))
            values = [take.few(n) + 8.0, data, data]
        else:
            where, values = (np.concatenate([i, rows]), np.concatenate([i, columns])), [take.few(n) + 8.0, data]
        values = np.concatenate(values) if make is Plain else as_jax(sa.concat([sa.asarray(v) for v in values]))
        matrix = make.sparse(values, where, n)
        return make.assume(matrix, "positive_definite") if symmetric else matrix

    return build


MATRICES = {
    # ---- dense, triangular, mirrored
    "Dense": (
        lambda t, m: m.dense(dominant(t, N)),
        (
            *SYSTEM,
            "lu",
            "lu_solve",
            "lu_solve transposed",
            "qr",
            "svd",
            "pinv",
            "expm",
            "sqrtm",
            "expm_multiply",
            "cube",
            "inverse squared",
            "solve_triangular",
            "solve_triangular transposed",
            *SINGULAR_VALUES,
        ),
    ),
    "eigenvalues": (lambda t, m: m.dense(dominant(t, N)), ("eigvals",)),
    "Dense of two rows": (lambda t, m: m.dense(dominant(t, 2)), (*SYSTEM, "det")),
    "Dense of three rows": (lambda t, m: m.dense(dominant(t, 3)), (*SYSTEM, "det")),
    "Dense of zero diagonal": (lambda t, m: m.dense(dominant(t, N)[::-1]), (*SYSTEM, "lu", "lu_solve")),
    "Dense complex": (
        lambda t, m: m.dense(0.5 * t.complex(4, 4) + np.diag(eye(4))),
        (*SYSTEM, "lu_solve", "qr", "svd", "expm", "sqrtm", "nuclear norm"),
    ),
    "Dense definite": (
        lambda t, m: m.assume(m.dense(definite(t, N)), "positive_definite"),
        (*DEFINITE, "cholesky upper", "ldl", "eigh", "eigvalsh", "sqrtm"),
    ),
    "Dense Hermitian": (lambda t, m: m.dense(hermitian(t, 4)), ("cholesky", "cho_solve", "ldl", "eigh", "eigvalsh")),
    "Triangular": (lambda t, m: m.triangular(dominant(t, N)), SYSTEM),
    "Triangular upper, unit diagonal": (lambda t, m: m.triangular(0.5 * t(N, N), False, True), SYSTEM),
    "Symmetric": (
        lambda t, m: m.symmetric(0.5 * t(N, N) + np.diag(eye(N) * (-1.0) ** np.arange(N))),
        (*SYSTEM, "eigh", "eigvalsh"),
    ),
    "Symmetric definite": (lambda t, m: m.assume(m.symmetric(dominant(t, N)), "positive_definite"), DEFINITE),
    "Hermitian definite": (lambda t, m: m.assume(m.hermitian(hermitian(t, 4)), "positive_definite"), DEFINITE),
    # ---- banded
    "Diagonal": (
        lambda t, m: m.diagonal(t(N) + eye(N)),
        (*DEFINITE, "eigvalsh", "expm", "sqrtm", "qr", "svd", *SINGULAR_VALUES, "selected_inverse", "ldl", "lu"),
    ),
    "Diagonal complex": (lambda t, m: m.diagonal(t.complex(N) + eye(N)), (*SYSTEM, "svdvals", "sqrtm")),
    "Identity": (lambda t, m: m.identity(N, t(1)[0] + 2.0), (*DEFINITE, "expm", "cube")),
    "tridiagonal": (
        banded((-1, 0, 1)),
        (*SYSTEM, "lu_solve", "lu", "qr", "selected_inverse", "expm_multiply", *SINGULAR_VALUES),
    ),
    "tridiagonal with exchanges": (
        lambda t, m: m.banded([t(5) / 2 + eye(5, 3.0), t(N) / 2, t(5) / 2 + eye(5, 2.0)], (-1, 0, 1), N),
        SYSTEM,
    ),
    "tridiagonal without a diagonal": (
        lambda t, m: m.banded([t(5) / 2 + eye(5, 3.0), t(5) / 2 + eye(5, 2.0)], (-1, 1), N),
        SYSTEM,
    ),
    "tridiagonal complex": (banded((-1, 0, 1), kind="complex"), SYSTEM),
    "tridiagonal definite": (definite_banded(1), (*DEFINITE, "ldl", "eigvalsh", "selected_inverse")),
    "tridiagonal definite, complex": (definite_banded(1, kind="complex"), DEFINITE),
    "Banded": (banded((-2, -1, 0, 2)), (*SYSTEM, "lu_solve", "lu_solve transposed", "lu", "qr", "selected_inverse")),
    "Banded with exchanges": (_with_exchanges, (*SYSTEM, "lu_solve", "selected_inverse")),
    "Banded complex": (banded((-1, 0, 2), kind="complex"), SYSTEM),
    "Banded definite": (definite_banded(2), (*DEFINITE, "cholesky upper", "ldl", "eigvalsh", "selected_inverse")),
    "Banded definite of three diagonals a side": (
        definite_banded(3),
        ("solve", "logdet", "cholesky", "selected_inverse"),
    ),
    "Banded definite of nine diagonals a side": (definite_banded(9, 11), ("solve", "logdet", "cholesky")),
    "Banded definite, complex": (definite_banded(2, kind="complex"), DEFINITE),
    "bidiagonal": (banded((-1, 0)), (*SYSTEM, "selected_inverse")),
    "Banded upper triangular": (banded((0, 1, 3)), SYSTEM),
    "Banded lower triangular, scattered": (banded((-4, -2, 0)), SYSTEM),
    "Banded wide": (banded((-1, 0, 14), 16), ("solve", "slogdet", "matmul")),
    "Banded of many diagonals": (
        lambda t, m: m.banded(
            [t.few(26 - abs(k)) / 5 + (6 if k == 0 else 0) for k in range(-25, 26)], tuple(range(-25, 26)), 26
        ),
        ("solve", "slogdet", "matmul"),
    ),
    # ---- blocks
    "BlockDiagonal": (
        lambda t, m: m.block_diagonal([dominant(t, 2, k) for k in (3.0, 4.2, 5.4)]),
        (*SYSTEM, "expm", "svdvals", "qr"),
    ),
    "BlockDiagonal ragged": (lambda t, m: m.block_diagonal([dominant(t, k) for k in (1, 2, 3)]), SYSTEM),
    "BlockDiagonal definite": (
        lambda t, m: m.assume(m.block_diagonal([definite(t, 2, k) for k in (3.0, 4.2, 5.4)]), "positive_definite"),
        (*DEFINITE, "eigvalsh"),
    ),
    "BlockBanded": (
        lambda t, m: m.block_banded([t(2, 2, 2) / 2, 0.5 * t(3, 2, 2) + np.diag(eye(2)), t(2, 2, 2) / 2], (-1, 0, 1)),
        (*SYSTEM, "selected_inverse"),
    ),
    "BlockBanded, large": (
        lambda t, m: m.block_banded(
            [t.few(29, 9, 9) / 9, t.few(30, 9, 9) / 9 + np.diag(eye(9)), t.few(29, 9, 9) / 9], (-1, 0, 1)
        ),
        LARGE,
    ),
    "BlockBanded definite, large": (
        lambda t, m: m.assume(_block_tridiagonal(t, m, 30, 9), "positive_definite"),
        (*LARGE, "logdet"),
    ),
    "Block": (
        lambda t, m: m.block(
            [
                [m.diagonal(t(20) + eye(20)), m.low_rank(t.few(20, 1), t.few(20, 1) / 20)],
                [m.low_rank(t.few(20, 1), t.few(20, 1) / 20), m.banded(bands(t.few, (-1, 0, 1), 20), (-1, 0, 1), 20)],
            ]
        ),
        ("solve", "slogdet", "det", "matmul"),
    ),
    # ---- Toeplitz
    "Toeplitz": (lambda t, m: m.toeplitz(_first(t, N), _first(t, N)), SYSTEM),
    "Toeplitz definite": (lambda t, m: m.assume(m.toeplitz(_first(t, N)), "positive_definite"), DEFINITE),
    "Toeplitz, large": (lambda t, m: m.toeplitz(*_columns(t, 260)), LARGE),
    "Toeplitz definite, large": (lambda t, m: m.assume(m.toeplitz(_columns(t, 260)[0]), "positive_definite"), LARGE),
    "Circulant": (lambda t, m: m.circulant(_first(t, N)), (*SYSTEM, "expm", "svdvals")),
    "Circulant complex": (lambda t, m: m.circulant(t.complex(N) + 4.0 * (np.arange(N) == 0)), SYSTEM),
    "Hankel": (lambda t, m: m.hankel(*_antidiagonals(t, N)), SYSTEM),
    # ---- unitary
    "Fourier": (lambda t, m: m.fourier(N), ("solve", "solve a vector", "matmul")),
    "Permutation": (lambda t, m: m.permutation(np.array([2, 0, 5, 1, 3, 4])), ("solve", "solve a vector", "matmul")),
    "Householder": (lambda t, m: m.householder(*_reflectors(t, m, 4, 3), (N, N)), ("solve", "inv", "matmul")),
    # ---- factors and sums
    "Kronecker": (
        lambda t, m: m.kronecker(m.dense(dominant(t, 2, 2.7)), m.dense(dominant(t, 3))),
        (*SYSTEM, "svdvals"),
    ),
    "Kronecker definite": (
        lambda t, m: m.assume(m.kronecker(m.dense(definite(t, 2, 2.7)), m.dense(definite(t, 3))), "positive_definite"),
        DEFINITE,
    ),
    "Kronecker of three": (
        lambda t, m: m.kronecker(
            m.diagonal(t(2) + 2), m.dense(dominant(t, 2)), m.banded(bands(t, (-1, 0), 2), (-1, 0), 2)
        ),
        SYSTEM,
    ),
    "KroneckerSum": (
        lambda t, m: m.kronecker_sum(m.dense(dominant(t, 2)), m.dense(dominant(t, 3))),
        ("solve", "slogdet", "inv", "matmul", "expm", "expm_multiply"),
    ),
    "KroneckerSum, large": (
        lambda t, m: m.kronecker_sum(
            m.dense(t.few(6, 6) / 6 + np.diag(eye(6))), m.dense(t.few(7, 7) / 7 + np.diag(eye(7)))
        ),
        ("solve", "matmul"),
    ),
    "KroneckerSum definite": (
        lambda t, m: m.kronecker_sum(
            m.assume(m.dense(_few_definite(t, 6)), "positive_definite"),
            m.assume(m.dense(_few_definite(t, 7)), "positive_definite"),
        ),
        ("solve", "slogdet", "logdet", "matmul", "expm_multiply"),
    ),
    "KroneckerSum of equal factors": (lambda t, m: _equal_kronecker_sum(t, m), ("solve", "slogdet", "logdet")),
    "Kronecker + identity": (
        lambda t, m: m.total(
            m.kronecker(m.dense(t.few(6, 6) / 6 + np.diag(eye(6))), m.dense(t.few(7, 7) / 7 + np.diag(eye(7)))),
            m.identity(42, t(1)[0] + 2),
        ),
        ("solve", "slogdet", "matmul"),
    ),
    "Kronecker definite + identity": (
        lambda t, m: m.total(
            m.kronecker(
                m.assume(m.dense(_few_definite(t, 6)), "positive_definite"),
                m.assume(m.dense(_few_definite(t, 7)), "positive_definite"),
            ),
            m.identity(42, t(1)[0] + 2),
        ),
        ("solve", "slogdet", "matmul"),
    ),
    "Diagonal + LowRank": (
        lambda t, m: m.total(m.diagonal(t(40) + eye(40)), m.low_rank(t.few(40, 2) / 6, t.few(40, 2) / 6)),
        ("solve", "solve a vector", "slogdet", "det", "matmul"),
    ),
    "Diagonal + LowRank definite": (
        lambda t, m: m.assume(_covariance(t, m), "positive_definite"),
        ("solve", "slogdet", "logdet", "matmul"),
    ),
    "Banded + LowRank": (
        lambda t, m: m.total(
            m.banded(bands(t.few, (-1, 0, 1), 40), (-1, 0, 1), 40), m.low_rank(t(40, 1) / 6, t.few(40, 1) / 6)
        ),
        ("solve", "slogdet", "det"),
    ),
    "Banded + background": (
        lambda t, m: m.background(m.banded(bands(t, (-1, 0, 1), 40, 6.0), (-1, 0, 1), 40), t(1)[0] / 9),
        ("solve", "slogdet", "matmul"),
    ),
    "Sum of few rows": (
        # The singular values are far apart, for differences of second order.
        lambda t, m: m.total(m.diagonal(t(N) / 8 + eye(N)), m.low_rank(t(N, 1) / 3, t(N, 1) / 3)),
        (*SYSTEM, "svdvals"),
    ),
    "Product": (lambda t, m: m.product(m.triangular(dominant(t, N)), m.triangular(dominant(t, N), False)), SYSTEM),
    "Product of Banded and Diagonal": (
        lambda t, m: m.product(
            m.banded(bands(t, (-1, 0), 40), (-1, 0), 40),
            m.diagonal(t.few(40) + 2.5),
            m.banded(bands(t.few, (0, 1), 40), (0, 1), 40),
        ),
        ("solve", "slogdet", "matmul"),
    ),
    "Inverse": (lambda t, m: m.inverse(m.banded(bands(t, (-1, 0, 1), N), (-1, 0, 1), N)), SYSTEM),
    "Inverse of definite": (lambda t, m: m.inverse(definite_banded(1)(t, m)), (*SYSTEM, "logdet")),
    # ---- sparse
    "Sparse": (lambda t, m: m.sparse(t(10) + 4.0 * (SCATTERED[0] == SCATTERED[1]), SCATTERED, N), SYSTEM),
    "Sparse, large": (_sparse(260, False), ("solve", "solve a vector", "slogdet", "matmul")),
    "Sparse definite, large": (_sparse(260, True), ("solve", "slogdet", "logdet", "matmul")),
    # ---- rectangular
    "tall Dense": (
        lambda t, m: m.dense(_tall(t, 8, 5)),
        ("lstsq", "residues", "qr", "svd", "pinv", "svdvals", "nuclear norm"),
    ),
    "tall Dense complex": (
        lambda t, m: m.dense(t.complex(6, 3) / 2 + np.eye(6, 3) * eye(3, 2.0)),
        ("lstsq", "residues", "qr", "svd", "pinv"),
    ),
    "wide Dense": (lambda t, m: m.dense(_tall(t, 8, 5).T), ("lstsq", "svd", "pinv", "svdvals")),
    "tall Banded": (
        lambda t, m: m.tall_banded([t(5) / 2, t(5) + eye(5), t(4) / 2], (-1, 0, 1), (8, 5)),
        ("lstsq", "residues", "qr", "svdvals", "pinv"),
    ),
    "LowRank": (
        lambda t, m: m.low_rank(t(8, 2), t(7, 2)),
        ("pinv", "lstsq", "norm", "spectral norm", "nuclear norm", "compress"),
    ),
    "square LowRank": (lambda t, m: m.low_rank(t(8, 2), t(8, 2)), ("matmul",)),
    "tall Kronecker": (
        lambda t, m: m.kronecker(m.dense(_tall(t, 3, 2)), m.dense(_tall(t, 2, 2, 3.1))),
        ("lstsq", "pinv", "svdvals"),
    ),
    "tall BlockDiagonal": (
        lambda t, m: m.block_diagonal([_tall(t, 3, 2), _tall(t, 2, 2, 3.1)]),
        ("lstsq", "pinv", "svdvals"),
    ),
}


def _first(take, n):
    """A first column (row) of a matrix whose diagonal outweighs the rest."""
    return take(n) / 2 + 4.0 * (np.arange(n) == 0)


def _columns(take, n):
    """The first column and row of a large Toeplitz matrix that decays from its diagonal."""
    decay = 0.7 ** np.arange(n)
    column, row = take.few(n) * decay, take.few(n) * decay
    start = 4.0 * (np.arange(n) == 0)
    return column + start, row + start


def _antidiagonals(take, n):
    column, row = take(n) / 2, take(n) / 2
    last = 4.0 * (np.arange(n) == n - 1)
    if isinstance(column, np.ndarray):
        row = np.concatenate([(column + last)[-1:], row[1:]])
    else:
        row = (row * (np.arange(n) > 0)) + (column + last)[-1] * (np.arange(n) == 0)
    return column + last, row


def _reflectors(take, make, k, w):
    v = take(k, w) + np.eye(1, w) * 2
    return v, 2 / (v**2).sum(-1)


def _block_tridiagonal(take, make, count, m):
    below, middle = take.few(count - 1, m, m) / m, take.few(count, m, m) / m
    return make.block_banded(
        [below, middle + middle.swapaxes(-1, -2) + np.diag(eye(m)), below.swapaxes(-1, -2)], (-1, 0, 1)
    )


def _few_definite(take, n):
    a = take.few(n, n) / n
    return a + a.T + np.diag(eye(n))


def _equal_kronecker_sum(take, make):
    """Its eigenvalues are equal in pairs."""
    a = make.assume(make.dense(_few_definite(take, 6)), "positive_definite")
    return make.kronecker_sum(a, a)


def _covariance(take, make):
    u = take.few(40, 2) / 6
    return make.total(make.diagonal(take(40) + eye(40)), make.low_rank(u, u))


def _tall(take, m, n, first=2.0):
    return take(m, n) / 2 + np.eye(m, n) * eye(n, first)


def _forms(take, make):
    """Diagonals in the ordered form, the upper ones of a definite matrix, and right-hand sides."""
    main = np.arange(3)[:, None] == 1
    half = np.arange(2)[:, None] == 1
    return take(3, N) + 4.0 * main, take(2, N) + 4.0 * half, take(N, 2)


def _factor_of(half):
    return scipy.linalg.cholesky_banded(half) * (np.arange(N) >= np.arange(1, -1, -1)[:, None])


# Functions of other arguments than a matrix and right-hand sides: what makes these, and pairs of functions of them.
FORMS = {
    "diagonal ordered form": (
        _forms,
        {
            "solve_banded": (
                lambda ab, half, b: sa.linalg.solve_banded((1, 1), ab, b),
                lambda ab, half, b: scipy.linalg.solve_banded((1, 1), ab, b),
            ),
            "solveh_banded": (
                lambda ab, half, b: sa.linalg.solveh_banded(half, b),
                lambda ab, half, b: scipy.linalg.solveh_banded(half, b),
            ),
            "cholesky_banded": (
                lambda ab, half, b: sa.linalg.cholesky_banded(half),
                lambda ab, half, b: _factor_of(half),
            ),
            "cho_solve_banded": (
                lambda ab, half, b: sa.linalg.cho_solve_banded((sa.linalg.cholesky_banded(half), False), b),
                lambda ab, half, b: scipy.linalg.solveh_banded(half, b),
            ),
        },
    ),
    "first column and row": (
        lambda take, make: (_first(take, N), take(N) / 2, take(N, 2)),
        {
            "solve_toeplitz": (
                lambda c, r, b: sa.linalg.solve_toeplitz((c, r), b),
                lambda c, r, b: scipy.linalg.solve_toeplitz((c, r), b),
            ),
            "matmul_toeplitz": (
                lambda c, r, b: sa.linalg.matmul_toeplitz((c, r), b),
                lambda c, r, b: scipy.linalg.matmul_toeplitz((c, r), b),
            ),
            "solve_circulant": (
                lambda c, r, b: sa.linalg.solve_circulant(c, b),
                lambda c, r, b: scipy.linalg.solve_circulant(c, b),
            ),
        },
    ),
}


# What has no derivative, or is no matrix to solve systems with, where all parameters are zero, or all are equal.
RANDOM_ONLY = {"LowRank", "Circulant", "eigenvalues"}


def case(name):
    """The case of a matrix, with two right-hand sides, or of what stands in `FORMS`."""
    if name in FORMS:
        return Case(name, *FORMS[name], MAKERS, {"constant": 0.25})
    build, keys = MATRICES[name]

    def operands(take, make):
        matrix = build(take, make)
        return matrix, take.few(matrix.shape[0], 2)

    points = {} if name in RANDOM_ONLY else {"zero": 0.0, "constant": 0.25}
    return Case(name, operands, {key: FUNCTIONS[key] for key in keys}, MAKERS, points)
