"""Singular vectors of what is of low rank, and of what has something of low rank next to it, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax, dense

import structarrays as sa
from structarrays._numerics import low_rank_factors

M, N = 120, 20


def normal(*shape, dtype=float, seed=0):
    rng = np.random.default_rng([seed, *shape])
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def check(x, classes, **options):
    """The factors are orthonormal, of these classes, and give the values and the whole; nothing is expanded for them."""
    a = dense(x)
    with sa.densify("error"):
        factors = sa.linalg.svd(x, **options)
    assert tuple(type(f) for f in factors) == classes
    u, s, vh = map(dense, factors)
    expected = np.linalg.svd(a, **options)
    k, eps = s.shape[-1], np.finfo(a.dtype).eps
    assert (u.shape, s.shape, vh.shape) == tuple(f.shape for f in expected)
    assert (u.dtype, s.dtype, vh.dtype) == tuple(f.dtype for f in expected)
    np.testing.assert_allclose(s, expected[1], atol=200 * eps * s.max())
    np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, atol=200 * eps * s.max())
    for columns in (u, vh.swapaxes(-1, -2)):
        gram = columns.conj().swapaxes(-1, -2) @ columns
        np.testing.assert_allclose(gram, np.broadcast_to(np.eye(gram.shape[-1]), gram.shape), atol=500 * eps)
    return factors


# ---- of low rank -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(("m", "n", "batch"), [(M, N, ()), (N, M, ()), (40, 40, ()), (M, N, (2,))])
def test_of_low_rank(m, n, batch, dtype, full_matrices):
    x = sa.LowRank(normal(*batch, m, 3, dtype=dtype), normal(*batch, n, 3, dtype=dtype, seed=1))
    check(x, (sa.Product, sa.Dense, sa.Product), full_matrices=full_matrices)


def test_of_dependent_columns():
    u = np.ones((M, 3))
    check(sa.LowRank(u, normal(N, 3)), (sa.Product, sa.Dense, sa.Product), full_matrices=False)
    x = sa.LowRank(normal(M, 3), normal(N, 3))
    centred = check(x - sa.mean(x, axis=0), (sa.Product, sa.Dense, sa.Product), full_matrices=False)
    assert centred.U.factors[0].v.shape == (4, M)


def test_of_low_rank_nothing_is_as_large_as_the_whole():
    m, n = 100_000, 2000
    x = sa.LowRank(normal(m, 3), normal(n, 3))
    with sa.densify("error"):
        u, s, vh = sa.linalg.svd(x, full_matrices=False)
        y = normal(n, 2)
        got = dense(u @ (s[:, None] * (vh @ y)))
    np.testing.assert_allclose(got, dense(x @ y), atol=1e-10 * np.max(np.abs(got)))
    assert u.nbytes < 10 * x.nbytes


# ---- next to low rank -------------------------------------------------------------------------------------------------------


def factor(m, n, dtype=float, seed=0, batch=()):
    return normal(*batch, m, n, dtype=dtype, seed=seed)


def with_ones(a):
    a[..., 0] = 1
    return a


def kronecker(dtype=float, batch=()):
    return sa.Kronecker(factor(30, 4, dtype, 0, batch), factor(8, 5, dtype, 1, batch))


def banded(offsets):
    return sa.Banded([normal(min(N, 240 + k, N - k), seed=k % 7) for k in offsets], offsets, (240, N))


BESIDE = {
    "Kronecker": kronecker(),
    "complex": kronecker(complex),
    "float32": kronecker("float32"),
    "batch": kronecker(batch=(2,)),
    "with the constant among its columns": sa.Kronecker(with_ones(factor(30, 4)), with_ones(factor(8, 5))),
    "of dependent columns": sa.Kronecker(np.ones((30, 4)), factor(8, 5)),
    "scaled": kronecker() * normal(N),
    "Banded": banded((-3, -1, 0)),
    "upper": banded((0, 1)),
}


@pytest.mark.parametrize("name", BESIDE)
def test_centred(name):
    x = BESIDE[name]
    centred = x - sa.mean(x, axis=-2, keepdims=True)
    assert type(centred) is sa.Sum
    check(centred, (sa.Sum, sa.Dense, sa.Dense), full_matrices=False)
    check(sa.matrix_transpose(centred), (sa.Dense, sa.Dense, sa.Sum), full_matrices=False)


def test_beside_more_than_one_column():
    x = kronecker() + sa.LowRank(normal(240, 4), normal(N, 4))
    check(x, (sa.Sum, sa.Dense, sa.Dense), full_matrices=False)


def test_beside_columns_that_are_there():
    """The column next to the others is exactly one of them, and no rounding shows another direction."""
    x = sa.Banded([np.ones(N)], (0,), (240, N)) + sa.LowRank(np.eye(240)[:, :1], normal(N, 1))
    assert type(x) is sa.Sum
    check(x, (sa.Sum, sa.Dense, sa.Dense), full_matrices=False)


@pytest.mark.slow
def test_others_are_those_of_the_dense_form():
    """All left singular vectors, and those under a trace, where they have derivatives."""
    x = kronecker()
    x = x - sa.mean(x, axis=0)
    for use in (
        lambda x: sa.linalg.svd(x).S,
        jax.jit(lambda x: sa.linalg.svd(x, full_matrices=False).S),
    ):
        np.testing.assert_allclose(dense(use(x)), np.linalg.svd(dense(x), compute_uv=False), rtol=1e-10)
    a, b = (jnp.asarray(f.dense_data()) for f in kronecker().factors)

    def loss(a, b, of):
        u, s, _ = of(a, b)
        return jnp.sum(s) + jnp.sum(jnp.abs(u) ** 3)

    def ours(a, b):
        x = sa.Kronecker(a, b)
        return tuple(as_jax(f) for f in sa.linalg.svd(x - sa.mean(x, axis=0), full_matrices=False))

    def theirs(a, b):
        x = jnp.kron(a, b)
        return jnp.linalg.svd(x - jnp.mean(x, axis=0), full_matrices=False)

    for got, want in zip(*(jax.grad(loss, (0, 1))(a, b, of) for of in (ours, theirs)), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-8 * np.max(np.abs(want)))


# ---- the kernels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("shape", [(9, 3), (4, 4), (2, 7, 2), (5, 1)])
def test_reflectors(shape, dtype):
    q, _ = np.linalg.qr(normal(*shape, dtype=dtype))
    v, tau, signs = map(np.asarray, low_rank_factors.reflectors(jnp.asarray(q)))
    *batch, m, r = shape
    whole = np.broadcast_to(np.eye(m, dtype=q.dtype), (*batch, m, m))
    for j in range(r):
        column = np.concatenate([np.zeros((*batch, j)), v[..., j, : m - j]], axis=-1)
        assert not np.any(v[..., j, m - j :])
        step = np.eye(m) - tau[..., j, None, None] * column[..., :, None] * column[..., None, :].conj()
        whole = whole @ step
    np.testing.assert_allclose(whole[..., :r] * signs[..., None, :], q, atol=1e-14)


def test_orthonormal_columns_beside_others():
    q, _ = np.linalg.qr(normal(50, 6))
    for u in (normal(50, 2), q[:, :2].copy(), 1e-300 * q[:, :2], np.zeros((50, 2)), q[:, :2] + 1e-13 * normal(50, 2)):
        new = np.asarray(low_rank_factors.orthonormal_extension(lambda data: q @ (q.T @ data), jnp.asarray(u)))
        both = np.concatenate([q, new], axis=1)
        np.testing.assert_allclose(both.T @ both, np.eye(8), atol=1e-14)
        np.testing.assert_allclose(both @ (both.T @ u), u, atol=1e-14 * max(1, np.max(np.abs(u))))
