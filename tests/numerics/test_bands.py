"""Products of banded matrices. The oracle is NumPy on the dense matrix."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structarrays._numerics import bands

# (shape, offsets): tall, wide, square; scattered, one-sided and full bands; nothing at all.
MATRICES = [
    ((6, 6), (-1, 0, 1)),
    ((7, 4), (-5, -2, 0, 3)),
    ((4, 7), (-3, 1, 2, 6)),
    ((5, 5), (2, 3)),
    ((5, 5), (-4, -3)),
    ((3, 3), (-2, -1, 0, 1, 2)),
    ((4, 6), ()),
    ((1, 5), (0, 3)),
    ((5, 1), (-2, 0)),
    ((1, 1), (0,)),
    ((2, 9), (-1, 7)),
    ((0, 3), ()),
    ((3, 0), ()),
    ((55, 55), tuple(range(-25, 26))),
]


def random(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng([seed, *shape])
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-5, 6, shape).astype(dtype)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.issubdtype(dtype, np.complexfloating) else x).astype(dtype)


def random_band(shape, offsets, batch=(), dtype=np.float64, seed=0):
    return tuple(random((*batch, bands.diagonal_length(shape, k)), dtype, seed + i) for i, k in enumerate(offsets))


def dense(diagonals, offsets, shape, batch=(), dtype=np.float64):
    """Entry by entry, from the definition."""
    a = np.zeros((*batch, *shape), dtype)
    for d, k in zip(diagonals, offsets, strict=True):
        for t in range(bands.diagonal_length(shape, k)):
            i = t + max(0, -k)
            a[..., i, i + k] = d[..., t]
    return a


def test_diagonal_length():
    for m in range(4):
        for n in range(4):
            for k in range(-5, 6):
                assert bands.diagonal_length((m, n), k) == np.diagonal(np.zeros((max(m, 1), max(n, 1)))[:m, :n], k).size


@pytest.mark.parametrize(("shape", "offsets"), MATRICES)
def test_to_dense(shape, offsets):
    batch = (2,)
    diagonals = random_band(shape, offsets, batch)
    expected = dense(diagonals, offsets, shape, batch)
    result = jax.jit(lambda d: bands.to_dense(d, offsets, shape, dtype=np.float64, batch=batch))(diagonals)
    np.testing.assert_array_equal(result, expected)
    background = np.array([3.0, -1.0])
    stored = dense([np.ones_like(d) for d in diagonals], offsets, shape, batch) != 0
    result = jax.jit(lambda d, b: bands.to_dense(d, offsets, shape, b))(diagonals, background)
    np.testing.assert_array_equal(result, np.where(stored, expected, background[:, None, None]))


def test_to_dense_fuses_into_its_consumer():
    n = 300
    diagonals = random_band((n, n), (-1, 0, 1))
    y = random((n, n))
    compiled = jax.jit(lambda d, y: y * jnp.exp(bands.to_dense(d, (-1, 0, 1), (n, n)))).lower(diagonals, y).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < n * n * 8 / 4


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.complex128])
@pytest.mark.parametrize(("shape", "offsets"), MATRICES)
def test_products(shape, offsets, dtype):
    m, n = shape
    diagonals = random_band(shape, offsets, (2, 1), dtype)
    a = dense(diagonals, offsets, shape, (2, 1), dtype)
    right, left, v, w = (random(s, dtype, 9) for s in ((3, n, 4), (3, 4, m), (3, n), (m,)))

    @jax.jit
    def products(diagonals, right, left, v, w):
        return (
            bands.matmul_dense(diagonals, offsets, shape, right),
            bands.dense_matmul(left, diagonals, offsets, shape),
            bands.matvec(diagonals, offsets, shape, v),
            bands.vecmat(w, diagonals, offsets, shape),
        )

    results = products(diagonals, right, left, v, w)
    if offsets:
        expected = a @ right, left @ a, (a @ v[..., None])[..., 0], (w[None] @ a)[..., 0, :]
    else:  # nothing to take the batch of the matrix from
        z = np.zeros(shape, dtype)
        expected = z @ right, left @ z, v @ z.T, w @ z
    for result, value in zip(results, expected, strict=True):
        assert result.shape == value.shape and result.dtype == value.dtype
        np.testing.assert_allclose(result, value, rtol=1e-4, atol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.costly
@pytest.mark.parametrize("offsets", [(-1, 0, 1), (-2, 3), tuple(range(-29, 30))])
def test_absent_entries_absorb_nan_and_infinity(offsets):
    n = 60
    shape = (n, n)
    diagonals = random_band(shape, offsets)
    stored = dense([np.ones_like(d) for d in diagonals], offsets, shape) != 0
    for bad in (np.nan, np.inf):
        for position in (0, n // 2, n - 1):
            x = np.ones(n)
            x[position] = bad
            y = np.asarray(bands.matvec(diagonals, offsets, shape, x))
            np.testing.assert_array_equal(~np.isfinite(y), stored[:, position])
            y = np.asarray(bands.vecmat(x, diagonals, offsets, shape))
            np.testing.assert_array_equal(~np.isfinite(y), stored[position])


@pytest.mark.parametrize(("shape", "offsets"), MATRICES)
def test_transpose(shape, offsets):
    diagonals = random_band(shape, offsets)
    transposed, negated = bands.transpose(diagonals, offsets)
    np.testing.assert_array_equal(dense(transposed, negated, shape[::-1]), dense(diagonals, offsets, shape).T)


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (1, 5), (5, 1), (3, 3), (1, 1)])
def test_at_diagonal(shape):
    m, n = shape
    for rows in {1, m}:
        for columns in {1, n}:
            y = random((2, rows, columns))
            for k in range(-m, n + 1):
                expected = np.diagonal(np.broadcast_to(y, (2, m, n)), k, -2, -1)
                np.testing.assert_array_equal(bands.at_diagonal(jnp.asarray(y), k, shape), expected)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("offsets", [(-1, 0, 2), tuple(range(-25, 25))])
def test_derivatives_and_vmap(offsets):
    """Of the product with a vector and of one with the result of that; against the dense products."""
    n = 26
    diagonals, tangents = random_band((n, n), offsets), random_band((n, n), offsets, seed=90)
    x, v = random((n,)), random((n,), seed=5)

    def product(diagonals, x):
        y = bands.matvec(diagonals, offsets, (n, n), x)
        return jnp.sum(bands.vecmat(y, diagonals, offsets, (n, n)) ** 2)

    def reference(diagonals, x):
        a = sum(jnp.diag(d, k) for d, k in zip(diagonals, offsets, strict=True))
        return jnp.sum((a.T @ (a @ x)) ** 2)

    @functools.partial(jax.jit, static_argnums=0)
    def derivatives(f, diagonals, x):
        gradient = jax.grad(f, argnums=(0, 1))
        return gradient(diagonals, x), jax.jvp(gradient, (diagonals, x), (tangents, v))

    result, expected = derivatives(product, diagonals, x), derivatives(reference, diagonals, x)
    for value, reference_value in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(value, reference_value, rtol=1e-9, atol=1e-9 * np.abs(reference_value).max())
    xs = random((3, n, 2))
    mapped = jax.jit(jax.vmap(lambda x: bands.matmul_dense(diagonals, offsets, (n, n), x)))(xs)
    np.testing.assert_allclose(mapped, dense(diagonals, offsets, (n, n)) @ xs, atol=1e-12)


def test_memory_and_no_gather():
    n, offsets = 10**6, (-1, 0, 1)
    diagonals = [jax.ShapeDtypeStruct((n - abs(k),), np.float64) for k in offsets]
    x = jax.ShapeDtypeStruct((n,), np.float64)

    def gradient(diagonals, x):
        return jax.grad(lambda d, x: jnp.sum(bands.matvec(d, offsets, (n, n), x) ** 2), argnums=(0, 1))(diagonals, x)

    for f in (lambda d, x: bands.matvec(d, offsets, (n, n), x), gradient):
        compiled = jax.jit(f).lower(diagonals, x).compile()
        assert compiled.memory_analysis().temp_size_in_bytes <= 3 * n * 8
        text = compiled.as_text()
        assert " gather(" not in text and " scatter(" not in text
