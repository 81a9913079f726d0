"""Dense linear algebra: values, the flag, NaN, derivatives. The oracle is NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from support import random

from structarrays._numerics import dense_determinants
from structarrays._numerics import dense_linalg as linalg_dense
from structarrays._numerics import dense_spectra as spectra

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def tolerance(dtype):
    return 2000 * np.finfo(dtype).eps


SHAPES = [
    ((3, 3), (3,)),
    ((4, 3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((3, 3), (4, 3, 2)),
    ((2, 1, 3, 3), (5, 3, 2)),
    ((4, 3, 3), (3, 2)),
    ((0, 0), (0,)),
    ((2, 0, 0), (0, 2)),
    ((0, 3, 3), (3, 2)),
    ((3, 3), (0, 3, 2)),
    ((3, 3), (3, 0)),
    ((0, 0), (4, 0, 2)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "right"), SHAPES)
def test_solve(shape, right, dtype):
    a, b = random(shape, dtype), random(right, dtype, 1)
    x, ok = jax.jit(linalg_dense.solve)(a, b)
    columns = b[:, None] if b.ndim == 1 else b
    expected = np.linalg.solve(
        a, np.broadcast_to(columns, np.broadcast_shapes(a.shape[:-2], columns.shape[:-2]) + columns.shape[-2:])
    )
    expected = expected[..., 0] if b.ndim == 1 else expected
    assert ok.shape == () and bool(ok)
    assert x.shape == expected.shape and x.dtype == dtype
    np.testing.assert_allclose(x, expected, rtol=tolerance(dtype), atol=tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_inv_and_its_flag(dtype):
    a = random((4, 3, 3), dtype)
    x, ok = jax.jit(linalg_dense.inv)(a)
    assert bool(ok)
    np.testing.assert_allclose(x, np.linalg.inv(a), rtol=tolerance(dtype), atol=tolerance(dtype))
    a[1] = np.ones((3, 3))
    x, ok = jax.jit(linalg_dense.inv)(a)
    assert not bool(ok)  # one flag for the batch
    assert np.isnan(x[1]).all() and np.isfinite(np.asarray(x)[[0, 2, 3]]).all()


def test_the_flag_is_about_pivots_and_not_about_values():
    nan = [[np.nan, 2.0], [2.0, 4.0]]
    for function in (linalg_dense.inv, linalg_dense.cholesky):
        result, ok = function(jnp.asarray(nan))
        assert bool(ok) and np.isnan(np.tril(result)[1]).all()
    result, ok = linalg_dense.solve(jnp.asarray([[1e-300, 0.0], [0.0, 1.0]]), jnp.full(2, 1e300))  # overflows
    assert bool(ok) and np.isinf(result[0])
    x, ok = linalg_dense.solve(jnp.eye(2), jnp.asarray([np.nan, 1.0]))
    assert bool(ok) and np.isnan(x[0])
    assert not bool(linalg_dense.solve(jnp.asarray([[1.0, 2.0], [2.0, 4.0]]), jnp.ones(2))[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 0), (0, 3, 3)])
def test_cholesky(shape, upper, dtype):
    a = random(shape, dtype)
    a = a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(shape[-1], dtype=dtype)
    factor, ok = linalg_dense.cholesky(jnp.asarray(a), upper=upper)
    assert bool(ok) and factor.dtype == dtype
    np.testing.assert_allclose(factor, np.linalg.cholesky(a, upper=upper), rtol=tolerance(dtype), atol=tolerance(dtype))


def test_cholesky_of_an_indefinite_or_semidefinite_matrix():
    for a in ([[1.0, 2.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 1.0]], [[-1.0]]):
        factor, ok = linalg_dense.cholesky(jnp.asarray(a))
        assert not bool(ok) and np.isnan(np.asarray(factor)[np.tril_indices(len(a))]).all()


@pytest.mark.costly
@pytest.mark.parametrize("shapes", [((3, 3), (3,)), ((2, 3, 3), (2, 3, 2)), ((3, 3), (2, 3, 2)), ((2, 3, 3), (3, 1))])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_derivatives_of_solve(shapes, dtype):
    a, b = random(shapes[0], dtype) + 3 * np.eye(3), random(shapes[1], dtype, 1)
    check_grads(jax.jit(lambda a, b: linalg_dense.solve(a, b)[0]), (a, b), order=2, rtol=1e-4, atol=1e-4)
    # In closed form: db of sum(g * x) is inv(A).T g.
    if a.ndim == 2 and b.ndim == 1:
        g = random((3,), dtype, 5)
        cotangent = jax.vjp(lambda b: linalg_dense.solve(jnp.asarray(a), b)[0], jnp.asarray(b))[1](jnp.asarray(g))[0]
        np.testing.assert_allclose(cotangent, np.linalg.inv(a).T @ g, rtol=1e-12)


@pytest.mark.slow
def test_derivatives_of_inv_cholesky_and_determinants():
    a = random((2, 3, 3)) + 3 * np.eye(3)
    check_grads(jax.jit(lambda a: linalg_dense.inv(a)[0]), (a,), order=2, rtol=1e-4, atol=1e-4)
    check_grads(jax.jit(lambda a: dense_determinants.slogdet(a)[1]), (a,), order=2, rtol=1e-4, atol=1e-4)
    check_grads(jax.jit(dense_determinants.det), (a,), order=1, rtol=1e-4, atol=1e-4)
    check_grads(jax.jit(lambda a: linalg_dense.cholesky(a @ a.mT)[0]), (a,), order=1, rtol=1e-4, atol=1e-4)
    check_grads(jax.jit(lambda a: linalg_dense.pinv(a[0, :, :2])), (a,), order=1, rtol=1e-4, atol=1e-4)


def test_derivative_of_a_singular_system_is_nan_and_not_zero():
    gradient = jax.grad(lambda b: jnp.sum(linalg_dense.solve(jnp.ones((2, 2)), b)[0]))(jnp.ones(2))
    assert np.isnan(gradient).all()


def test_solve_under_vmap():
    a, b = random((5, 3, 3)), random((5, 3), seed=1)
    x, ok = jax.vmap(linalg_dense.solve)(jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_allclose(x, np.linalg.solve(a, b[..., None])[..., 0], rtol=1e-10)
    assert ok.shape == (5,)


@pytest.mark.parametrize("dtype", DTYPES)
def test_factorisations_reconstruct(dtype):
    a, square = random((2, 5, 3), dtype), random((2, 4, 4), dtype)
    hermitian = square + np.conj(np.swapaxes(square, -1, -2))
    for mode in ("reduced", "complete"):
        q, r = linalg_dense.qr(jnp.asarray(a), mode=mode)
        np.testing.assert_allclose(q @ r, a, atol=tolerance(dtype))
        np.testing.assert_allclose(r, jnp.triu(r))
    for full in (False, True):
        u, s, vh = spectra.svd(jnp.asarray(a), full_matrices=full)
        assert u.shape == (2, 5, 5 if full else 3) and s.dtype == np.finfo(dtype).dtype
        np.testing.assert_allclose((u[..., :3] * s[..., None, :]) @ vh, a, atol=tolerance(dtype))
    np.testing.assert_allclose(spectra.svdvals(jnp.asarray(a)), np.linalg.svdvals(a), rtol=tolerance(dtype))
    w, v = spectra.eigh(jnp.asarray(hermitian))
    assert w.dtype == np.finfo(dtype).dtype and v.dtype == dtype
    np.testing.assert_allclose(hermitian @ v, v * w[..., None, :], atol=tolerance(dtype))
    np.testing.assert_allclose(spectra.eigvalsh(jnp.asarray(hermitian)), w, atol=tolerance(dtype))
    w, v = spectra.eig(jnp.asarray(square))
    assert jnp.iscomplexobj(w) and w.dtype == v.dtype and w.dtype.itemsize == 2 * np.finfo(dtype).dtype.itemsize
    np.testing.assert_allclose(square @ v, v * w[..., None, :], atol=tolerance(dtype))
    np.testing.assert_allclose(
        dense_determinants.det(jnp.asarray(square)), np.linalg.det(square), rtol=tolerance(dtype)
    )
    sign, logabsdet = dense_determinants.slogdet(jnp.asarray(square))
    np.testing.assert_allclose(sign * np.exp(logabsdet), np.linalg.det(square), rtol=tolerance(dtype))


def test_slogdet_of_a_singular_matrix():
    sign, logabsdet = dense_determinants.slogdet(jnp.zeros((2, 2)))
    assert sign == 0 and logabsdet == -np.inf


def test_rank_and_pseudoinverse_use_the_tolerance_of_the_standard():
    eps = np.finfo(np.float64).eps
    # One singular value between max(m, n) * eps = 4 eps, the standard's bound, and jnp's 40 eps.
    x = np.diag([1.0, 0.5, 16 * eps, eps])
    assert linalg_dense.matrix_rank(jnp.asarray(x)) == 3
    np.testing.assert_allclose(np.diag(linalg_dense.pinv(jnp.asarray(x))), [1, 2, 1 / (16 * eps), 0], rtol=1e-12)
    stack = jnp.asarray(np.stack([x, x]))
    ranks = linalg_dense.matrix_rank(stack, rtol=jnp.asarray([0.6, 1e-3]))
    assert ranks.dtype == np.int64
    np.testing.assert_array_equal(ranks, [1, 2])
    np.testing.assert_allclose(linalg_dense.pinv(stack, rtol=jnp.asarray([0.6, 1e-3]))[0], np.diag([1.0, 0, 0, 0]))
    assert linalg_dense.matrix_rank(jnp.zeros((2, 0, 3))).tolist() == [0, 0]


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_norms(dtype):
    x = random((2, 4, 3), dtype)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        for keepdims in (False, True):
            result = linalg_dense.matrix_norm(jnp.asarray(x), ord=order, keepdims=keepdims)
            expected = np.linalg.matrix_norm(x, ord=order, keepdims=keepdims)
            assert result.dtype == np.float64
            np.testing.assert_allclose(result, expected, rtol=1e-12)
    for order in (0, 1, 2, 3, 0.5, -1, -2, -3.5, np.inf, -np.inf):
        for axis in (None, 1, (0, 2)):
            result = linalg_dense.vector_norm(jnp.asarray(x), ord=order, axis=axis, keepdims=True)
            expected = np.linalg.vector_norm(x, ord=order, axis=axis, keepdims=True)
            assert result.dtype == np.float64
            np.testing.assert_allclose(result, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="ord"):
        linalg_dense.matrix_norm(jnp.asarray(x), ord=3)


def test_norms_keep_nan_of_large_arrays():
    x = np.ones(200_000)
    x[100] = np.nan
    assert np.isnan(linalg_dense.vector_norm(jnp.asarray(x), ord=np.inf))
    assert np.isnan(linalg_dense.vector_norm(jnp.asarray(x), ord=-np.inf))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.int32])
def test_products_and_parts(dtype):
    x, y = (10 * random((2, 3, 4), dtype)).astype(dtype), (10 * random((2, 3, 4), dtype, 1)).astype(dtype)
    jx, jy = jnp.asarray(x), jnp.asarray(y)
    np.testing.assert_allclose(linalg_dense.matrix_transpose(jx), np.swapaxes(x, -1, -2))
    np.testing.assert_allclose(linalg_dense.outer(jx[0, 0], jy[0, 1]), np.outer(x[0, 0], y[0, 1]), rtol=1e-12)
