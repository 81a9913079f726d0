"""Linear algebra of constants: arrays that a compiled function does not take as arguments. The oracle is NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from sparse_matrices import random_matrix
from support import as_jax

import structarrays as sa

N = 300


def neumann(n=N):
    """The singular second difference with Neumann conditions."""
    off = -np.ones(n - 1)
    return sa.tridiagonal(off, np.r_[1.0, np.full(n - 2, 2.0), 1.0], off)


def bordered(base):
    """Regular, although the first block is singular: the solution has the mean zero."""
    n = base.shape[0]
    return sa.Block([[base, np.ones((n, 1))], [np.ones((1, n)), None]])


def update(n=N):
    rng = np.random.default_rng(0)
    return sa.LowRank(rng.normal(size=(n, 2)), rng.normal(size=(n, 2)))


MATRICES = {
    "Toeplitz": lambda: sa.Toeplitz(0.9 ** np.arange(N)),
    "Diagonal + LowRank": lambda: sa.Diagonal(np.linspace(1, 2, N)) + update(),
    "singular Diagonal + LowRank": lambda: sa.Diagonal(np.r_[0.0, np.linspace(1, 2, N - 1)]) + update(),
    "tridiagonal + LowRank": lambda: neumann() + sa.eye(N) + update(),
    "Toeplitz + LowRank": lambda: sa.Toeplitz(0.9 ** np.arange(N)) + update(),
    "Sparse + LowRank": lambda: sa.Sparse.from_scipy(scipy.sparse.coo_array(random_matrix(N))) + update(),
    "PeriodicBanded + Fill": lambda: sa.PeriodicBanded([-np.ones(N), np.full(N, 3.0), -np.ones(N)], (-1, 0, 1)) + 0.5,
    "Block": lambda: bordered(neumann(N - 1) + sa.eye(N - 1)),
    "Block with a singular block": lambda: bordered(neumann(N - 1)),
    "Block with a singular circulant": lambda: bordered(sa.Circulant(np.r_[2.0, -1.0, np.zeros(N - 4), -1.0])),
    "tridiagonal": lambda: neumann() + sa.eye(N),
    "Kronecker": lambda: sa.Kronecker(neumann(15) + sa.eye(15), neumann(20) + sa.eye(20)),
    "KroneckerSum": lambda: sa.KroneckerSum(neumann(15), neumann(20) + sa.eye(20)),
}

CONTEXTS = {
    "jit": lambda f: jax.jit(lambda x: f(x))(1.0),
    "derivative": lambda f: jax.jit(jax.value_and_grad(lambda x: jnp.sum(f(x))))(1.0)[0],
    "scan": lambda f: jax.lax.scan(lambda c, x: (c, f(x)), 0.0, jnp.ones(2))[1][1],
    "vmap": lambda f: jax.jit(jax.vmap(f))(jnp.ones(2))[1],
}

FUNCTIONS = {
    "det": (sa.linalg.det, np.linalg.det),
    "slogdet": (lambda a: sa.linalg.slogdet(a).logabsdet, lambda a: np.linalg.slogdet(a)[1]),
    "logdet": (sa.linalg.logdet, lambda a: np.log(np.linalg.det(a))),
    "solve": (lambda a: sa.linalg.solve(a, np.ones(N)), lambda a: np.linalg.solve(a, np.ones(N))),
    "inv": (lambda a: sa.linalg.inv(a) @ np.ones(N), lambda a: np.linalg.solve(a, np.ones(N))),
    "lstsq": (lambda a: sa.linalg.lstsq(a, np.ones(N))[0], lambda a: np.linalg.lstsq(a, np.ones(N))[0]),
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", MATRICES)
def test_constants(name, context):
    """A compiled function gives the eager result, although its matrix is no argument."""
    matrix = MATRICES[name]()
    dense = np.asarray(matrix.to_jax())
    names = FUNCTIONS if context == "jit" else ("slogdet", "solve")
    if "singular" in name and context == "jit":
        names = ("slogdet", "solve", "det", "lstsq")
    for function in names:
        ours, oracle = FUNCTIONS[function]
        expected = oracle(dense)
        if function == "logdet" and np.linalg.slogdet(dense)[0] < 0:
            expected = np.nan
        found = CONTEXTS[context](lambda x, ours=ours: as_jax(ours(matrix)) * x)
        expected = np.sum(expected) if context == "derivative" else expected
        tolerance = {"rtol": 1e-7, "atol": 1e-9 * np.abs(expected).max()}
        np.testing.assert_allclose(np.asarray(found), expected, **tolerance, err_msg=function)


def test_assumptions_within_the_function():
    """A likelihood whose covariance is a constant."""
    covariance, y = sa.Toeplitz(0.9 ** np.arange(N)), np.sin(np.arange(N))
    dense = np.asarray(covariance.to_jax())

    @jax.jit
    @jax.value_and_grad
    def likelihood(scale):
        K = sa.assume(covariance, "positive_definite")
        return as_jax(sa.linalg.logdet(K)) * scale + as_jax(sa.vecdot(y, sa.linalg.solve(K, y))) * scale**2

    logdet, square = np.linalg.slogdet(dense)[1], y @ np.linalg.solve(dense, y)
    np.testing.assert_allclose(likelihood(2.0), (2 * logdet + 4 * square, logdet + 4 * square), rtol=1e-9)


@pytest.mark.parametrize(
    "matrix", [neumann(), sa.KroneckerSum(neumann(15), neumann(20))], ids=["Banded", "KroneckerSum"]
)
def test_least_squares_of_singular_constants(matrix):
    b = np.cos(np.pi * (np.arange(N) + 0.5) / N)
    expected = np.linalg.lstsq(np.asarray(matrix.to_jax()), b)[0]
    found = jax.jit(lambda x: x * as_jax(sa.linalg.lstsq(matrix, b)[0]))(1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


def test_singular_constants_are_nan():
    """As in every compiled call: nothing can be raised."""
    singular = sa.Diagonal(np.r_[0.0, np.ones(N - 1)]) + sa.LowRank(np.zeros((N, 1)), np.zeros((N, 1)))
    found = jax.jit(lambda x: x * as_jax(sa.linalg.solve(singular, np.ones(N))))(1.0)
    assert np.isnan(found).all()
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(singular, np.ones(N))
