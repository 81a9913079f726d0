"""Code for GPUs, run on a CPU: NaN in factorizations, tridiagonal systems in batches, Schur forms, definite blocks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax import lax
from support import as_jax

import structarrays as sa
from structarrays._numerics import dense_determinants, dense_factors, dense_linalg, tridiagonal
from structarrays._structures.blocks import block_determinants


@pytest.fixture
def accelerator(monkeypatch):
    """Take the ways of accelerators."""
    jax.clear_caches()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(lax, "platform_dependent", lambda *args, default, **others: default(*args))
    yield monkeypatch
    monkeypatch.undo()
    jax.clear_caches()


def without_nan(function):
    """A factorization that loses NaN, as cuSOLVER's do."""

    def factors(x, *args, **static):
        return function(jnp.where(jnp.isnan(x), 1, x), *args, **static)

    return factors


@pytest.fixture
def losing_nan(accelerator):
    for name in ("lu", "cholesky"):
        accelerator.setattr(lax.linalg, name, without_nan(getattr(lax.linalg, name)))
    for name in ("cholesky", "slogdet", "det"):
        accelerator.setattr(jnp.linalg, name, without_nan(getattr(jnp.linalg, name)))


def test_nan_gives_nan(losing_nan, rng):
    a = rng.normal(size=(3, 5, 5)) + 8 * np.eye(5)
    a = a + a.mT
    a[1, 0, 4] = a[1, 4, 0] = np.nan
    b = rng.normal(size=(3, 5, 2))
    fine = np.array([True, False, True])
    results = [
        dense_linalg.solve(jnp.asarray(a), jnp.asarray(b))[0],
        dense_linalg.inv(jnp.asarray(a))[0],
        dense_linalg.cholesky(jnp.asarray(a))[0],
        dense_factors.lu(jnp.asarray(a))[0],
        dense_factors.cholesky(jnp.asarray(a)),
        dense_determinants.det(jnp.asarray(a)),
        dense_determinants.slogdet(jnp.asarray(a))[1],
    ]
    for result in results:
        flat = np.isnan(np.asarray(result).reshape(3, -1))
        np.testing.assert_array_equal(flat.all(-1), ~fine)
        np.testing.assert_array_equal(flat.any(-1), ~fine)
    assert dense_linalg.solve(jnp.asarray(a), jnp.asarray(b))[1]  # NaN is not a singular matrix


def test_nan_above_the_diagonal_is_not_read(losing_nan):
    factor = dense_factors.cholesky(jnp.asarray([[4.0, np.nan], [2.0, 5.0]]))
    np.testing.assert_allclose(factor, [[2, 0], [1, 2]])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_schur_forms_of_the_host(accelerator, dtype, rng):
    a = rng.normal(size=(2, 6, 6)).astype(dtype)
    if a.dtype.kind == "c":
        a = a + 1j * rng.normal(size=a.shape).astype(a.real.dtype)
    a[1] = np.nan
    t, z = jax.jit(dense_factors.schur)(a)
    np.testing.assert_allclose(z[0] @ t[0] @ z[0].conj().T, a[0], atol=1e-5 if t.real.dtype == "float32" else 1e-13)
    assert np.isnan(t[1]).all() and t.dtype == dtype


def test_square_roots(accelerator, rng):
    a = rng.normal(size=(6, 6)) + 8 * np.eye(6)
    np.testing.assert_allclose(as_jax(sa.linalg.sqrtm(sa.asarray(a))), scipy.linalg.sqrtm(a), atol=1e-12)
    derivative = jax.jvp(lambda a: as_jax(sa.linalg.sqrtm(sa.asarray(a))), (jnp.asarray(a),), (jnp.eye(6),))[1]
    np.testing.assert_allclose(derivative, np.linalg.inv(scipy.linalg.sqrtm(a)) / 2, atol=1e-12)


def unpivoted(below, diag, above, b):
    """Thomas' algorithm, as cuSPARSE applies it to a batch; for one matrix, LAPACK's."""
    if diag.ndim == 1:
        return PIVOTED(below, diag, above, b)
    x, pivots = [], [diag[..., 0]]
    y = [b[..., 0, :]]
    for i in range(1, diag.shape[-1]):
        factor = below[..., i] / pivots[-1]
        pivots.append(diag[..., i] - factor * above[..., i - 1])
        y.append(b[..., i, :] - factor[..., None] * y[-1])
    for i in reversed(range(diag.shape[-1])):
        rest = above[..., i, None] * x[-1] if x else 0
        x.append((y[i] - rest) / pivots[i][..., None])
    return jnp.stack(x[::-1], -2)


PIVOTED = lax.linalg.tridiagonal_solve


@pytest.mark.parametrize("n", [2, 3, 4, 5, 20])
@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("pivots", ["large", "tiny", "zero"])
def test_batches_of_tridiagonal_matrices(accelerator, n, mapped, pivots, rng):
    """Without exchanges of rows, tiny pivots give wrong solutions, and zeros give NaN."""
    accelerator.setattr(lax.linalg, "tridiagonal_solve", unpivoted)
    n += n % 2 if pivots == "zero" else 0  # the matrix is regular
    lower, upper, diag, b = (rng.normal(size=(6, m)) for m in (n - 1, n - 1, n, n))
    diag[2] = {"large": 8.0, "tiny": 1e-18, "zero": 0.0}[pivots]
    if pivots == "tiny" and n % 2:
        diag[2, ::2] = 1e-9
        diag[2, -1] = 1.0
    dense = [np.diag(d) + np.diag(low, -1) + np.diag(up, 1) for d, low, up in zip(diag, lower, upper, strict=True)]
    solve = jax.vmap(tridiagonal.solve) if mapped else tridiagonal.solve
    x, ok = jax.jit(solve)(lower, diag, upper, b[..., None])
    assert np.all(ok)
    for a, solution, right in zip(dense, x, b, strict=True):
        error = np.abs(a @ solution[:, 0] - right) / (np.abs(a) @ np.abs(solution[:, 0]) + np.abs(right))
        assert error.max() < 1e-13


def test_a_singular_tridiagonal_matrix_of_a_batch(accelerator, rng):
    accelerator.setattr(lax.linalg, "tridiagonal_solve", unpivoted)
    for n in (3, 9):
        lower, upper, b = (rng.normal(size=(2, m)) for m in (n - 1, n - 1, n))
        diag = np.stack([np.full(n, 8.0), np.zeros(n)])
        x, ok = tridiagonal.solve(lower, diag, upper, b[..., None])
        assert not ok and np.isfinite(x[0]).all() and not np.isfinite(x[1]).all()


def test_infinity_in_few_rows(accelerator):
    x, ok = tridiagonal.solve(jnp.ones(2), jnp.array([jnp.inf, 1, 1.5]), jnp.ones(2), jnp.ones((3, 1)))
    assert ok
    np.testing.assert_allclose(x[:, 0], [0, 1, 0], atol=1e-15)


def test_a_system_that_is_not_finite_leaves_the_batch_together(accelerator, rng):
    """Its solution is NaN anyway."""
    accelerator.setattr(lax.linalg, "tridiagonal_solve", unpivoted)
    accelerator.setattr(tridiagonal.banded_systems, "one_by_one", lambda *args: pytest.fail("one by one"))
    accelerator.setattr(lax, "cond", lambda condition, first, other, *args: first(*args) if condition else other(*args))
    lower, upper, b = (rng.normal(size=(3, m)) for m in (8, 8, 9))
    diag = np.full((3, 9), 8.0)
    diag[1, 4] = np.nan
    x, ok = tridiagonal._anywhere(*map(jnp.asarray, (lower, diag, upper, b[..., None])))
    assert ok and np.isnan(x[1]).any() and np.isfinite(x[0]).all() and np.isfinite(x[2]).all()


@pytest.mark.costly
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("dtype", [float, complex])
def test_determinants_of_definite_blocks_use_both_triangles(accelerator, count, dtype, rng):
    """As on a CPU, they belong to the Hermitian part, and so do their derivatives."""
    m = 2
    lower, diagonal, upper = (rng.normal(size=(count, m, m)).astype(dtype) for _ in range(3))
    if dtype is complex:
        lower, diagonal, upper = (b + 1j * rng.normal(size=b.shape) for b in (lower, diagonal, upper))
    lower[0], upper[-1] = 0, 0
    diagonal = diagonal + 12 * np.eye(m)
    a = np.zeros((count * m, count * m), dtype)
    for i in range(count):
        rows = slice(i * m, i * m + m)
        a[rows, rows] = diagonal[i]
        if i:
            a[rows, i * m - m : i * m] = lower[i]
            a[i * m - m : i * m, rows] = upper[i - 1]
    part = (a + a.conj().T) / 2

    def logarithm(diagonal):
        return block_determinants.slogdet(jnp.asarray(lower), diagonal, jnp.asarray(upper), True)[1]

    value, gradient = jax.value_and_grad(logarithm)(jnp.asarray(diagonal))
    np.testing.assert_allclose(value, np.linalg.slogdet(part)[1], rtol=1e-13)
    inverse = np.linalg.inv(part)
    for i in range(count):
        expected = inverse[i * m : i * m + m, i * m : i * m + m].T
        np.testing.assert_allclose(gradient[i], expected, rtol=1e-11, atol=1e-14)
