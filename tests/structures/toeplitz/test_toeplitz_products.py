"""Products of two Toeplitz matrices that are given by their first row and column, against the dense ones."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import as_jax

import structarrays as sa
from structarrays._numerics import toeplitz_entries as layout
from structarrays._structures.toeplitz.numerics import product


def parts(rng, m, n, which, dtype=float):
    """Which diagonals are stored, their values, and the dense matrix."""
    low, high = 1 - m, n - 1
    first, last = {"all": (low, high), "lower": (low, 0), "upper": (0, high), "inner": (low // 2, high // 2)}[which]
    values = rng.normal(size=last - first + 1).astype(dtype)
    if dtype is complex:
        values = values + 1j * rng.normal(size=values.shape)
    return first, values


def dense(first, values, shape, background=0.0):
    offsets = np.arange(shape[1]) - np.arange(shape[0])[:, None] - first
    inside = (offsets >= 0) & (offsets < values.size)
    return np.where(inside, values[np.clip(offsets, 0, values.size - 1)], background), inside


@pytest.mark.costly
@pytest.mark.parametrize(
    ("shape", "kinds", "dtype"),
    [
        ((5, 7, 4), ("all", "all"), float),
        ((5, 7, 4), ("all", "lower"), complex),
        ((4, 9, 6), ("lower", "all"), np.float32),
        ((4, 9, 6), ("inner", "lower"), float),
        ((1, 6, 3), ("all", "upper"), float),
        ((3, 1, 5), ("all", "all"), float),
        ((6, 4, 1), ("upper", "inner"), complex),
        ((1, 1, 1), ("all", "all"), float),
        ((30, 200, 25), ("all", "all"), float),
    ],
)
def test_product(shape, kinds, dtype, rng):
    m, n, p = shape
    (first_a, a), (first_b, b) = parts(rng, m, n, kinds[0], dtype), parts(rng, n, p, kinds[1], dtype)
    got = product(first_a, (m, n), first_b, (n, p), jnp.asarray(a), jnp.asarray(b))
    want = dense(first_a, a, (m, n))[0] @ dense(first_b, b, (n, p))[0]
    assert got.shape == want.shape
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(got, want, rtol=0, atol=64 * eps * np.linalg.norm(a) * np.linalg.norm(b))


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("kinds", [("all", "all"), ("lower", "inner")])
def test_nan_and_infinity_stay_where_they_belong(kinds, rng):
    """The displacements would spread them along the diagonals; structural zeros absorb them."""
    m, n, p = 9, 40, 12
    for special in (np.nan, np.inf, -np.inf, 0.0):
        (first_a, a), (first_b, b) = parts(rng, m, n, kinds[0]), parts(rng, n, p, kinds[1])
        a[7], b[[1, b.size // 2]] = special, (np.inf, 0.0)
        (A, in_a), (B, in_b) = dense(first_a, a, (m, n)), dense(first_b, b, (n, p))
        with np.errstate(all="ignore"):
            terms = np.where(in_a[:, :, None] & in_b, A[:, :, None] * B, 0.0)
            want = terms.sum(1)
        of_values = functools.partial(product, first_a, (m, n), first_b, (n, p))
        np.testing.assert_allclose(of_values(jnp.asarray(a), jnp.asarray(b)), want, rtol=1e-12, atol=1e-12)
        both = jax.vmap(of_values, (0, None))(jnp.stack([a, 2 * a]), jnp.asarray(b))
        np.testing.assert_allclose(both[0], want, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_derivatives(rng):
    """Those of the dense formula, forward and backward."""
    m, n, p = 8, 30, 10
    (first_a, a), (first_b, b) = parts(rng, m, n, "all"), parts(rng, n, p, "all")
    weights = rng.normal(size=(m, p))

    def structured(a, b):
        return jnp.sum(product(first_a, (m, n), first_b, (n, p), a, b) ** 2 * weights)

    def plain(a, b):
        A, B = layout.to_dense(a, first_a, (m, n)), layout.to_dense(b, first_b, (n, p))
        return jnp.sum((A @ B) ** 2 * weights)

    for derivative in (jax.grad, jax.jacfwd):
        got, want = (jax.jit(derivative(f, argnums=(0, 1)))(a, b) for f in (structured, plain))
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9)


@pytest.mark.costly
@pytest.mark.parametrize("batch", [(), (2,)])
def test_gram_matrix_of_a_tall_design(batch, rng):
    """What least squares and principal components ask for first."""
    c, r = rng.normal(size=(*batch, 900)), rng.normal(size=(*batch, 30))
    with sa.densify("error"):
        x = sa.Toeplitz(c, r)
        got = x.mT @ x
        outer = x @ x.mT
    for i in np.ndindex(batch):
        a = scipy.linalg.toeplitz(c[i], r[i])
        np.testing.assert_allclose(np.asarray(got)[i], a.T @ a, atol=1e-11)
        np.testing.assert_allclose(np.asarray(outer)[i], a @ a.T, atol=1e-11)


@pytest.mark.slow
def test_a_large_design_is_not_expanded(rng):
    """8 GB, if it were."""
    rows, columns = 2_000_000, 500
    x = sa.Toeplitz(rng.normal(size=rows), rng.normal(size=columns))
    compiled = jax.jit(lambda x: as_jax(x.mT @ x)).lower(x).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 1e9


def few_diagonals(rng, first, count, shape, dtype):
    """A Toeplitz array, and its dense form from SciPy."""
    values = rng.integers(-5, 5, count) if dtype is int else rng.standard_normal(count)
    if dtype is complex:
        values = values + 1j * rng.standard_normal(count)
    m, n = shape
    stored = {first + i: v for i, v in enumerate(values)}
    column, row = ([stored.get(s * k, 0) for k in range(size)] for s, size in ((-1, m), (1, n)))
    dense = scipy.linalg.toeplitz(column, row).astype(dtype)
    low, high = max(0, -first) + 1, max(0, first + count - 1) + 1
    return sa.Toeplitz(np.array(column[:low], dtype), np.array(row[:high], dtype), shape=shape), dense


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [float, complex, int])
@pytest.mark.parametrize("first", [(-15, -20), (0, -39), (-30, 0), (-39, -39), (-3, -38)])
def test_products_with_more_than_48_diagonals(first, dtype, rng):
    """A filter with 40 taps times another: rows near the ends of the product have fewer terms."""
    m, n, p = 410, 433, 421
    a, dense_a = few_diagonals(rng, first[0], 40, (m, n), dtype)
    b, dense_b = few_diagonals(rng, first[1], 40, (n, p), dtype)
    with sa.densify("error"):
        for times in (sa.matmul, jax.jit(sa.matmul)):
            product = times(a, b)
            assert type(product) is sa.Banded
            np.testing.assert_allclose(product.to_dense(), dense_a @ dense_b, rtol=1e-12, atol=1e-12)
    stacked = sa.stack([a, 2 * a]) @ b
    np.testing.assert_allclose(np.asarray(stacked)[1], 2 * dense_a @ dense_b, rtol=1e-12, atol=1e-12)


def test_deconvolution_with_a_long_filter(rng):
    """``F.T @ F + I`` of a filter with 64 taps keeps its band, and its derivatives."""
    n, taps = 600, 64
    h, b = rng.standard_normal(taps), rng.standard_normal(n)

    def energy(h):
        f = sa.Toeplitz(h, h[:1], shape=(n, n))
        return jnp.vdot(b, sa.linalg.solve(f.mT @ f + sa.eye(n), jnp.asarray(b)))

    def oracle(h):
        f = scipy.linalg.toeplitz(np.r_[h, np.zeros(n - taps)], np.r_[h[0], np.zeros(n - 1)])
        return b @ scipy.linalg.solve(f.T @ f + np.eye(n), b, assume_a="pos")

    with sa.densify("error"):
        np.testing.assert_allclose(energy(h), oracle(h), rtol=1e-10)
        direction, step = rng.standard_normal(taps), 1e-5
        slope = (oracle(h + step * direction) - oracle(h - step * direction)) / (2 * step)
        np.testing.assert_allclose(jax.jit(jax.grad(energy))(h) @ direction, slope, rtol=1e-6)


def test_infinite_entries_of_products_with_many_diagonals():
    """An infinite diagonal appears where it has a factor; structural zeros do not meet it."""
    column, row = np.ones(30), np.r_[1.0, np.full(9, 2.0)]
    column[29] = np.inf
    a, b = sa.Toeplitz(column, row, shape=(400, 400)), sa.Toeplitz(np.ones(30), np.ones(10), shape=(400, 400))
    product = np.asarray((a @ b).to_dense())
    whole = scipy.linalg.toeplitz(np.r_[column, np.zeros(370)], np.r_[row, np.zeros(390)])
    other = scipy.linalg.toeplitz(np.r_[np.ones(30), np.zeros(370)], np.r_[np.ones(10), np.zeros(390)])
    finite = np.where(np.isinf(whole), 0, whole) @ other
    np.testing.assert_array_equal(product, np.where(np.isinf(whole).astype(float) @ other > 0, np.inf, finite))
