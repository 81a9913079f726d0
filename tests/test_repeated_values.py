"""Second derivatives of eigenvalues and singular values where some are repeated: right, or not to be mistaken for right ones."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import structarrays as sa
from structarrays._structures.banded import band_spectra as banded_spectra


def orthogonal(rng, n, dtype=float):
    data = rng.normal(size=(n, n))
    return np.linalg.qr(data + 1j * rng.normal(size=(n, n)) if dtype is complex else data)[0]


def second_derivatives(f):
    """At zero, by all orders of forward and reverse mode, compiled, and mapped."""

    def forward(g):
        return lambda s: jax.jvp(g, (s,), (1.0,))[1]

    reverse = jax.grad
    orders = [forward(forward(f)), forward(reverse(f)), reverse(forward(f)), reverse(reverse(f))]
    found = [order(0.0) for order in orders]
    found += jax.jit(lambda s: [order(s) for order in orders])(0.0)
    found += list(jax.vmap(orders[1])(jnp.zeros(2)))
    return np.array(found)


def by_differences(f, step=2e-3):
    """Of a function that NumPy evaluates, with an error of the order of the fourth power of the step."""
    weights = {-2: -1, -1: 16, 0: -30, 1: 16, 2: -1}
    return sum(w * f(k * step) for k, w in weights.items()) / (12 * step**2)


VALUES = np.array([1.0, 1.0, 2.0, 3.0])


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("columns", [4, 3])
@pytest.mark.parametrize("norm", [2, "nuc"])
def test_norms(norm, columns, dtype, rng):
    """The largest singular value is simple, and the sum of all is smooth."""
    base = orthogonal(rng, 4, dtype)[:, :columns] * VALUES[:columns] @ orthogonal(rng, columns, dtype)
    change = orthogonal(rng, 4, dtype)[:, :columns]
    expected = by_differences(lambda s: np.linalg.norm(base + s * change, ord=norm))
    found = second_derivatives(lambda s: sa.linalg.matrix_norm(sa.asarray(base + s * change), ord=norm).data)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    found = second_derivatives(lambda s: sa.linalg.matrix_norm(sa.asarray(base.T + s * change.T), ord=norm).data)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("structure", [sa.asarray, sa.Symmetric])
def test_values_beside_repeated_ones(structure, rng):
    """A matrix of rank one has many singular values zero; a projection has many eigenvalues one."""
    n = 6
    u = rng.normal(size=n)
    change = rng.normal(size=(n, n))
    change += change.T
    found = second_derivatives(lambda s: sa.linalg.svdvals(structure(np.outer(u, u) + s * change)).data[0])
    expected = by_differences(lambda s: np.linalg.svdvals(np.outer(u, u) + s * change)[0])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    projection = np.eye(n) - np.outer(u, u) / (u @ u)
    found = second_derivatives(lambda s: sa.linalg.eigvalsh(structure(projection + s * change)).data[0])
    expected = by_differences(lambda s: np.linalg.eigvalsh(projection + s * change)[0])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_simple_values(rng):
    """As those of all functions of matrices without repeated values."""
    a, b = rng.normal(size=(2, 5, 5)) + 1j * rng.normal(size=(2, 5, 5))
    a, b = a + a.conj().T, b + b.conj().T

    def of_numpy(values):
        return np.sum(np.sin(values))

    found = second_derivatives(lambda s: jnp.sum(jnp.sin(sa.linalg.eigvalsh(sa.asarray(a + s * b)).data)))
    np.testing.assert_allclose(found, by_differences(lambda s: of_numpy(np.linalg.eigvalsh(a + s * b))), rtol=1e-5)
    found = second_derivatives(lambda s: jnp.sum(jnp.sin(sa.linalg.svdvals(sa.asarray(a + s * b)).data)))
    np.testing.assert_allclose(found, by_differences(lambda s: of_numpy(np.linalg.svdvals(a + s * b))), rtol=1e-5)


def rotated(rng):
    return orthogonal(rng, 4) * VALUES @ orthogonal(rng, 4)


def symmetric(rng):
    vectors = orthogonal(rng, 4)
    return vectors * VALUES @ vectors.T


def two_chains(s, n=40):
    """Two chains of masses without a connection between them, except for `s`."""
    beside = jnp.where(jnp.arange(n - 1) == n // 2 - 1, s, -1.0)
    return sa.tridiagonal(beside, jnp.full(n, 3.0), beside)


STRUCTURES = {
    "Dense": lambda a, b, s: sa.asarray(a + s * b),
    "Symmetric": lambda a, b, s: sa.Symmetric(a + s * b),
    "BlockDiagonal": lambda a, b, s: sa.BlockDiagonal(jnp.stack([a + s * b, 2 * a])),
    "Kronecker": lambda a, b, s: sa.Kronecker(a + s * b, np.array([[2.0, 1.0], [0.0, 1.0]])),
    "Banded": lambda a, b, s: two_chains(s),
    "BlockBanded": lambda a, b, s: sa.block_tridiagonal((s * b)[None], jnp.stack([a, a]), (s * b.T)[None]),
    "KroneckerSum": lambda a, b, s: sa.KroneckerSum(a + s * b, np.eye(2)),
    "Toeplitz": lambda a, b, s: sa.Toeplitz(jnp.array([2.0, 0.3 * s, -s, 1.0])),
    "Circulant": lambda a, b, s: sa.Circulant(jnp.array([4.0, 1 + s, 0.5 - 2 * s, 0.25, 0.5 - 2 * s, 1 + s])),
    "Sum": lambda a, b, s: sa.Sum(sa.asarray(a), sa.LowRank((s * b)[:, :1], b[:, 1:2])),
    "LowRank": lambda a, b, s: sa.LowRank(jnp.concatenate([a + s * b, jnp.zeros((8, 4))]), np.eye(12)[:, 3:7]),
}


REPEATED = [name for name in STRUCTURES if name != "Circulant"]


@pytest.mark.parametrize("name", STRUCTURES)
def test_nuclear_norm(name, rng):
    """The sum of the singular values of each structure, some of them repeated, has second derivatives."""
    a, b = rotated(rng), rng.normal(size=(4, 4))
    make = functools.partial(STRUCTURES[name], a, b + b.T if name == "Symmetric" else b)
    found = second_derivatives(lambda s: sa.linalg.matrix_norm(make(s), ord="nuc").data)
    expected = by_differences(lambda s: np.linalg.norm(np.asarray(make(s)), "nuc"))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)  # differences of sums near 100


@pytest.mark.costly
@pytest.mark.parametrize("shape", [(9, 9), (9, 12), (12, 9)])
def test_nuclear_norm_of_large_banded_matrices(shape, rng, monkeypatch):
    """By LAPACK's routine for banded matrices, here for small ones, of two equal blocks."""
    monkeypatch.setattr(banded_spectra, "_DENSE_SINGULAR", 0)
    monkeypatch.setattr(banded_spectra, "_DENSE_SINGULAR_PER_DIAGONAL", 0)
    offsets, base, change = (-1, 0, 1), np.zeros(shape), rng.normal(size=shape)
    base[:4, :4] = base[4:8, 4:8] = np.triu(np.tril(rng.normal(size=(4, 4)), 1), -1)
    base[8, 8] = 3

    def banded(s):
        return sa.Banded([jnp.diagonal(base + s * change, k) for k in offsets], offsets, shape)

    found = second_derivatives(lambda s: sa.linalg.matrix_norm(banded(s), ord="nuc").data)
    expected = by_differences(lambda s: np.linalg.norm(np.asarray(banded(s)), "nuc"))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_circulant_matrices(rng):
    """Their eigenvalues are smooth functions of the parameters, though real ones have pairs of equal ones."""
    first, change = rng.normal(size=(2, 6))
    first, change = first + np.roll(first[::-1], 1), change + np.roll(change[::-1], 1)
    for function in ("eigvalsh", "svdvals"):
        found = second_derivatives(
            lambda s, f=function: jnp.sum(getattr(sa.linalg, f)(sa.Circulant(first + s * change)).data ** 3)
        )
        of_numpy = getattr(np.linalg, function)
        expected = by_differences(lambda s, f=of_numpy: np.sum(f(scipy.linalg.circulant(first + s * change)) ** 3))
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("distance", [1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15])
def test_nearly_repeated_values(distance, rng):
    """The second derivative of the sum of the cubes is right to four digits, or not to be mistaken for a right one."""
    vectors, change = orthogonal(rng, 6), rng.normal(size=(6, 6))
    base, change = vectors * [1, 1 + distance, 1 + 3 * distance, 2, 3, 1.5] @ vectors.T, change + change.T
    expected = 6 * np.trace(base @ change @ change)  # of the trace of the cube of a Hermitian matrix
    for structure, function in ((sa.asarray, "eigvalsh"), (sa.asarray, "svdvals"), (sa.Symmetric, "svdvals")):
        found = second_derivatives(
            lambda s, c=structure, f=function: jnp.sum(getattr(sa.linalg, f)(c(base + s * change)).data ** 3)
        )
        right, no_number = np.abs(found / expected - 1) < 1e-4, np.isnan(found) | (np.abs(found) > 1e150)
        assert np.all(right | no_number), found
        assert np.all(right) or distance < 1e-11


@pytest.mark.parametrize(
    ("name", "function"),
    [(name, "svdvals") for name in REPEATED]
    + [(name, "eigvalsh") for name in REPEATED if name not in ("Kronecker", "LowRank")],
)
def test_what_depends_on_repeated_values(name, function, rng):
    """The sum of the cubes: no rule for the values alone can tell its second derivative."""
    make = STRUCTURES[name]
    a = symmetric(rng) if function == "eigvalsh" or name == "Symmetric" else rotated(rng)
    b = rng.normal(size=(4, 4))
    b += b.T

    def cubes(s):
        return jnp.sum(getattr(sa.linalg, function)(make(a, b, s)).data ** 3)

    first = jax.grad(cubes)(0.0)
    dense = np.asarray(make(a, b, 1.0)) - np.asarray(make(a, b, 0.0))
    base = np.asarray(make(a, b, 0.0))
    if function == "eigvalsh":
        expected = 3 * np.trace(base @ base @ dense)
    else:
        u, s, vh = np.linalg.svd(base, full_matrices=False)
        expected = 3 * np.sum((u * s**2 @ vh) * dense)
    np.testing.assert_allclose(first, expected, rtol=1e-10, atol=1e-10 * np.linalg.norm(base) ** 3)
    found = np.abs(second_derivatives(cubes))
    assert np.all(np.isnan(found) | (found > 1e150)), found


SCALES = [
    ("float64", 1e-90, 1e150),
    ("float64", 1e90, 1e150),
    ("float32", 1.0, 1e15),
    ("float32", 1e-9, 1e15),
    ("float32", 1e9, 1e15),
]


@pytest.mark.parametrize(("dtype", "scale", "bound"), SCALES)
@pytest.mark.parametrize("function", ["svdvals", "eigvalsh"])
def test_tiny_and_huge_matrices(function, dtype, scale, bound, rng):
    """In units of the matrix: the largest value is right, and the sum of cubes is not to be mistaken for it."""
    a = symmetric(rng) if function == "eigvalsh" else rotated(rng)
    b = rng.normal(size=(4, 4))
    b += b.T
    large, small = (sa.asarray(np.asarray(scale * m, dtype)) for m in (a, b))

    def values(s):
        return getattr(sa.linalg, function)(large + sa.astype(sa.asarray(s), small.dtype) * small).data / scale

    found = second_derivatives(lambda s: jnp.max(values(s)))
    expected = by_differences(lambda s: np.max(getattr(np.linalg, function)(a + s * b)))
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float64" else 1e-3)
    found = np.abs(second_derivatives(lambda s: jnp.sum(values(s) ** 3)))
    assert np.all(np.isnan(found) | (found > bound)), found
