"""QR factors of banded matrices, products with the unitary one, and the rank of R: against NumPy and SciPy's LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import adjoint, normal

from structarrays._numerics import banded_qr

DTYPES = (float, complex)

# Compiled as they are in use, and not operation by operation.
factor = jax.jit(banded_qr.factor, static_argnames=("offsets", "shape"))
multiply = jax.jit(banded_qr.multiply, static_argnames=("m", "adjoint"))
has_full_rank = jax.jit(banded_qr.has_full_rank, static_argnames=("offsets", "n"))


def dense(diagonals, offsets, shape):
    a = np.zeros((*diagonals[0].shape[:-1], *shape), np.result_type(*diagonals))
    for k, d in zip(offsets, diagonals, strict=True):
        i = np.arange(d.shape[-1])
        a[..., i + max(0, -k), i + max(0, k)] = d
    return a


def random(shape, kl, ku, dtype=float, batch=(), seed=0):
    m, n = shape
    offsets = tuple(k for k in range(-kl, ku + 1) if -m < k < n)
    lengths = [min(m, n - k) if k >= 0 else min(m + k, n) for k in offsets]
    return [normal(*batch, size, seed=seed + i, dtype=dtype) for i, size in enumerate(lengths)], offsets


def triangle(upper, shape):
    r = np.zeros((*upper.shape[:-2], *shape), upper.dtype)
    for j in range(upper.shape[-2]):
        for d in range(min(upper.shape[-1], shape[1] - j)):
            r[..., j, j + d] = upper[..., j, d]
    return r


def factors_of_column(x):
    """Of a matrix of one column."""
    diagonals = [x[i : i + 1] for i in range(len(x))]
    v, tau, upper = factor(diagonals[::-1], tuple(range(1 - len(x), 1)), (len(x), 1))
    return v[0], tau[0], upper[0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_a_reflector_clears_a_column(size, dtype):
    for seed in range(3):
        x = normal(size, seed=seed, dtype=dtype)
        v, tau, beta = map(np.asarray, factors_of_column(x))
        h = np.eye(size) - tau * np.outer(v, v.conj())
        np.testing.assert_allclose(h.conj().T @ h, np.eye(size), atol=1e-15)
        np.testing.assert_allclose(h.conj().T @ x, np.r_[beta, np.zeros(size - 1)], atol=2e-15)
        np.testing.assert_allclose(abs(beta), np.linalg.norm(x), rtol=1e-15)
        assert v[0] == 1 and beta.imag == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [2, 3, 6])
def test_a_reflector_is_that_of_lapack(size, dtype):
    larfg = scipy.linalg.get_lapack_funcs("larfg", dtype=dtype)
    x = normal(size, seed=5, dtype=dtype)
    beta, v, tau = larfg(size, x[0], x[1:].copy())
    ours = factors_of_column(x)
    np.testing.assert_allclose(ours[0][1:], v, rtol=1e-14)
    np.testing.assert_allclose([ours[1], ours[2]], [tau, beta], rtol=1e-14)


def test_reflectors_of_numbers_whose_squares_are_none():
    for scale in (1e-300, 1e300):
        _, tau, beta = factors_of_column(np.array([3 * scale, 4 * scale]))
        np.testing.assert_allclose([tau, beta], [1.6, -5 * scale], rtol=1e-15)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_zero_columns_have_no_reflector_and_no_nan(size):
    x = jnp.zeros(size)
    v, tau, beta = factors_of_column(x)
    assert tau == beta == 0 and np.array_equal(v, np.arange(size) == 0)
    for jacobian in (jax.jacfwd, jax.jacrev):
        assert all(np.all(d == 0) for d in jax.jit(jacobian(factors_of_column))(x))


@pytest.mark.costly
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kl, ku", [(1, 1), (2, 0), (3, 2), (0, 1)])
def test_factors_and_products(kl, ku, dtype):
    for shape, batch in (((7, 7), (3,)), ((11, 5), ()), ((4, 9), ()), ((0, 3), ()), ((3, 3), (0,))):
        m, k = shape[0], min(shape)
        diagonals, offsets = random(shape, kl, ku, dtype, batch)
        if not offsets:
            continue
        v, tau, upper = factor(diagonals, offsets, shape)
        assert v.shape[-2] == tau.shape[-1] == upper.shape[-2] == k and v.shape[-1] <= kl + 1
        a, r = dense(diagonals, offsets, shape), triangle(np.asarray(upper), shape)
        product = multiply(v, tau, jnp.asarray(r[..., :k, :]), m, False)
        np.testing.assert_allclose(product, a, atol=1e-14)
        q = np.asarray(multiply(v, tau, jnp.eye(m, dtype=a.dtype), m, False))
        np.testing.assert_allclose(adjoint(q) @ q, np.broadcast_to(np.eye(m), q.shape), atol=3e-15)
        np.testing.assert_allclose(np.abs(r[..., :k, :]), np.abs(np.linalg.qr(a).R), atol=1e-12)
        b = normal(m, 2, dtype=dtype)
        np.testing.assert_allclose(multiply(v, tau, b, m, False), q @ b, atol=1e-14)
        np.testing.assert_allclose(multiply(v, tau, b, m, True), adjoint(q) @ b, atol=1e-14)
        b = normal(2, *[1] * len(batch), m, 1, dtype=dtype)  # more matrices than those of the reflectors
        np.testing.assert_allclose(multiply(v, tau, b, m, True), adjoint(q) @ b, atol=1e-14)


def test_mapped_and_one_by_one_are_the_same():
    shape = (9, 6)
    diagonals, offsets = random(shape, 2, 1, batch=(4,))
    b = normal(4, 9, 2)

    def product(diagonals, b):
        v, tau, _ = factor(diagonals, offsets, shape)
        return multiply(v, tau, b, 9, True)

    def weighted(diagonals, b):
        return jnp.sum(product(diagonals, b) * jnp.arange(18.0).reshape(9, 2))

    expected = np.stack([product([d[i] for d in diagonals], b[i]) for i in range(4)])
    np.testing.assert_allclose(product(diagonals, b), expected, atol=1e-15)
    np.testing.assert_allclose(jax.jit(jax.vmap(product))(diagonals, b), expected, atol=1e-15)
    gradient = jax.jit(jax.grad(weighted, argnums=(0, 1)))
    gradients = jax.vmap(gradient)(diagonals, b)
    for i in range(4):
        one = gradient([d[i] for d in diagonals], b[i])
        for g, h in zip(jax.tree.leaves(gradients), jax.tree.leaves(one), strict=True):
            np.testing.assert_allclose(g[i], h, atol=1e-13)


def test_second_derivatives():
    """Of a sum of squares that is known: ``|Q^H b|^2`` of all columns less the last is ``b^T b`` less one square."""
    diagonals, offsets = random((5, 5), 1, 1)
    b = jnp.asarray(normal(5, 1, seed=9))

    def value(t):
        v, tau, _ = factor([d * (1 + t * i) for i, d in enumerate(diagonals)], offsets, (5, 5))
        return jnp.sum(multiply(v, tau, b, 5, True)[:-1] ** 2)

    h = 1e-4
    gradient = jax.jit(jax.grad(value))
    difference = (gradient(h) - gradient(-h)) / (2 * h)
    np.testing.assert_allclose(jax.jit(jax.grad(gradient))(0.0), difference, rtol=1e-6)


def test_memory_is_linear_in_the_rows():
    n = 100_000
    diagonals, offsets = random((n, n), 2, 1)
    b = jnp.zeros((n, 1))

    def product(diagonals, b):
        v, tau, upper = factor(diagonals, offsets, (n, n))
        return jnp.sum(multiply(v, tau, b, n, True) * upper[:, :1])

    stored = sum(d.nbytes for d in diagonals)
    compiled = jax.jit(product).lower(diagonals, b).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 8 * stored
    compiled = jax.jit(jax.grad(product, argnums=(0, 1))).lower(diagonals, b).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 40 * stored


@pytest.mark.costly
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_rank_of_r(dtype):
    """Regular and singular triangular matrices; those without a small pivot too, whose smallest singular value is 2**-79."""
    eps = np.finfo(float).eps
    diagonals, offsets = random((40, 40), 0, 2, dtype)
    diagonals[0] = diagonals[0] + 4 * np.sign(diagonals[0].real)
    assert has_full_rank(diagonals, offsets, 40, eps)
    values = np.linalg.svd(dense(diagonals, offsets, (40, 40)), compute_uv=False)
    largest = max(np.max(np.abs(d)) for d in diagonals)
    bound = 4 * len(offsets) * largest
    assert has_full_rank(diagonals, offsets, 40, 0.1 * values[-1] / bound)
    assert not has_full_rank(diagonals, offsets, 40, 10 * values[-1] / bound)
    zero = [diagonals[0].copy(), *diagonals[1:]]
    zero[0][17] = 0
    assert not has_full_rank(zero, offsets, 40, eps)
    assert not has_full_rank([np.ones(80, dtype), np.full(79, 2, dtype)], (0, 1), 80, eps)
    assert not has_full_rank([np.ones(3000, dtype), np.full(2999, 2, dtype)], (0, 1), 3000, eps)
    assert not has_full_rank([np.zeros(3, dtype)], (0,), 3, eps)
    assert has_full_rank([np.full(3, np.nan, dtype)], (0,), 3, eps)
    both = [np.stack([a, b]) for a, b in zip(diagonals, zero, strict=True)]
    assert np.array_equal(has_full_rank(both, offsets, 40, jnp.full(2, eps)), [True, False])
