"""Inverses of symmetric and Hermitian matrices are as accurate as LAPACK's, also for badly conditioned matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import as_jax

import structarrays as sa

N = 24


def symmetric(a):
    return np.tril(a) + np.tril(a, -1).T


def kernel(x, nugget):
    return np.exp(-8 * np.square(x[:, None] - x)) + nugget * np.eye(len(x))


def saddle_point(rng):
    constraints = rng.normal(size=(2, 4))
    return np.block([[np.diag([0.0, 0, 1, 1e-9]), constraints.T], [constraints, np.zeros((2, 2))]])


MATRICES = {
    "random": lambda rng: symmetric(rng.normal(size=(N, N))),
    "hilbert 8": lambda rng: scipy.linalg.hilbert(8),
    "hilbert 12": lambda rng: scipy.linalg.hilbert(12),
    "hilbert 15": lambda rng: scipy.linalg.hilbert(15),
    "smooth kernel": lambda rng: kernel(np.linspace(0, 1, N), 1e-10),
    "graded": lambda rng: symmetric(rng.normal(size=(N, N))) * np.outer(*[10.0 ** np.linspace(0, -8, N)] * 2),
    "saddle point": saddle_point,
    "tiny": lambda rng: 1e-290 * scipy.linalg.hilbert(9),
    "huge": lambda rng: 1e290 * scipy.linalg.hilbert(9),
    "complex Hermitian": lambda rng: scipy.linalg.hilbert(11) + 1j * (np.tri(11, k=-1) - np.tri(11, k=-1).T) * 1e-12,
    "complex symmetric": lambda rng: scipy.linalg.hilbert(11) + 1e-12j * symmetric(rng.normal(size=(11, 11))),
}


def structured(a):
    return (sa.Symmetric if np.array_equal(a, a.T) else sa.Hermitian)(a)


def residual(a, x):
    """The right residual, relative to the norms. The left residual is its mirror image."""
    a, x = np.asarray(a, np.result_type(a, np.float64)), np.asarray(x)
    a, largest = a / np.max(np.abs(a)), np.max(np.abs(a))
    x = x.astype(np.result_type(x, np.float64)) * largest
    return np.max(np.abs(a @ x - np.eye(len(a)))) / np.max(np.abs(x))


@pytest.mark.parametrize("name", MATRICES)
def test_residual_is_as_small_as_by_lapack(name, rng):
    a = MATRICES[name](rng)
    bound = max(10 * residual(a, np.linalg.inv(a)), 40 * np.finfo(float).eps)
    for x in (sa.linalg.inv(structured(a)), jax.jit(sa.linalg.inv)(structured(a))):
        assert type(x) in (sa.Symmetric, sa.Hermitian)
        assert residual(a, x.to_dense()) <= bound


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision(dtype, rng):
    a = scipy.linalg.hilbert(9).astype(dtype)
    x = sa.linalg.inv(structured(a))
    assert x.dtype == dtype
    assert residual(a, x.to_dense()) <= 40 * np.finfo(dtype).eps


@pytest.mark.parametrize("name", ["hilbert 8", "smooth kernel", "tiny", "huge"])
def test_positive_definite(name, rng):
    a = MATRICES[name](rng)
    x = sa.linalg.inv(sa.assume(structured(a), "positive_definite"))
    assert residual(a, x.to_dense()) <= 40 * np.finfo(float).eps


def test_batches_of_good_and_bad_matrices(rng):
    a = np.stack([np.eye(12), scipy.linalg.hilbert(12), symmetric(rng.normal(size=(12, 12)))])
    for x in (sa.linalg.inv(sa.Symmetric(a)), jax.vmap(sa.linalg.inv)(sa.Symmetric(a))):
        for each, inverse in zip(a, np.asarray(x.to_dense()), strict=True):
            assert residual(each, inverse) <= 40 * np.finfo(float).eps


def test_singular_matrices(rng):
    a = np.ones((3, 3))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        sa.linalg.inv(sa.Symmetric(a))
    assert np.all(np.isnan(np.asarray(jax.jit(sa.linalg.inv)(sa.Symmetric(a)).to_dense())))
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        sa.linalg.inv(sa.assume(sa.Symmetric(np.diag([1.0, -1.0])), "positive_definite"))
    assert np.all(np.isnan(np.asarray(sa.linalg.inv(sa.Symmetric(np.full((2, 2), np.nan))).to_dense())))


@pytest.mark.costly
@pytest.mark.parametrize("name", ["random", "hilbert 8"])
def test_derivatives(name, rng):
    """``d(A^{-1}) = -A^{-1} dA A^{-1}``, and its derivative."""
    a = MATRICES[name](rng)
    change = symmetric(rng.normal(size=a.shape)) * np.max(np.abs(a))
    x = np.linalg.inv(a)
    first = -x @ change @ x
    second = 2 * x @ change @ x @ change @ x

    def along(t):
        return as_jax(sa.linalg.inv(sa.Symmetric(jnp.asarray(a) + t * change)).to_dense())

    found = jax.jit(jax.jacfwd(along))(0.0), jax.jacrev(along)(0.0)
    for derivative in found:
        np.testing.assert_allclose(derivative, first, atol=1e-5 * np.max(np.abs(first)))
    np.testing.assert_allclose(jax.jacfwd(jax.jacrev(along))(0.0), second, atol=1e-5 * np.max(np.abs(second)))
