"""Solutions, inverses and determinants of the matrices of `hard_inputs`: backward errors next to LAPACK's, eager, compiled and mapped.

The oracle is elimination with partial pivoting in extended precision (`numpy.longdouble`), of eleven bits more than double precision.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from backward_errors import FACTOR, log_determinant
from hard_inputs import MATRICES, N, smooth_kernel
from support import as_jax

import structarrays as sa

EPS = np.finfo(float).eps
LOOSE = {"Product: smooth kernel and its inverse": 10}
"""Further factors. A `Product` is solved factor by factor, so that errors are relative to the norms of the factors."""


def error_of_solution(a, x, b):
    """How large a change of the matrix, relative to its norm, makes x the solution."""
    a, x, b = (np.asarray(v, np.clongdouble) for v in (a, x, b))
    size = np.max(np.sum(np.abs(a), axis=1))
    residual = np.max(np.abs(b - a @ x), axis=0)
    return float(np.max(residual / (size * np.max(np.abs(x), axis=0) + np.max(np.abs(b), axis=0))))


def error_of_inverse(a, x):
    a, x = (np.asarray(v, np.clongdouble) for v in (a, x))
    return float(np.max(np.abs(a @ x - np.eye(len(a)))) / (np.max(np.sum(np.abs(a), axis=1)) * np.max(np.abs(x))))


def right_hand_sides(a, rng):
    n = len(a)
    smooth = np.stack([np.ones(n), (-1.0) ** np.arange(n), np.eye(n)[0], np.linspace(0, 1, n)], axis=-1)
    return np.concatenate([smooth, rng.normal(size=(n, 2)), a.real @ rng.normal(size=(n, 1))], axis=-1)


@pytest.fixture
def matrix(name, rng):
    return MATRICES[name](rng)


def calls(function, x, *arguments):
    """The results of an eager call, a compiled one, and one of a stack."""
    yield function(x, *arguments)
    yield jax.jit(function)(x, *arguments)
    stack = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), x)
    yield jax.jit(jax.vmap(lambda x: function(x, *arguments)))(stack)[1]


@pytest.mark.costly
@pytest.mark.parametrize("name", MATRICES)
def test_solutions(name, matrix, rng):
    a = np.asarray(matrix)
    b = right_hand_sides(a, rng)
    bound = FACTOR * LOOSE.get(name, 1) * max(error_of_solution(a, np.linalg.solve(a, b), b), EPS)
    for found in calls(lambda x: as_jax(sa.linalg.solve(x, sa.asarray(b))), matrix):
        assert error_of_solution(a, found, b) <= bound


@pytest.mark.costly
@pytest.mark.parametrize("name", MATRICES)
def test_inverses(name, matrix):
    a = np.asarray(matrix)
    bound = FACTOR * max(error_of_inverse(a, np.linalg.inv(a)), EPS)
    found = sa.linalg.inv(matrix)
    assert error_of_inverse(a, np.asarray(found.to_dense())) <= bound


@pytest.mark.costly
@pytest.mark.parametrize("name", MATRICES)
def test_determinants(name, matrix):
    """The backward error: how large a change of the matrix, relative to its norm, changes the logarithm as much."""
    a = np.asarray(matrix)
    sign, logarithm = log_determinant(a)
    values = np.linalg.svd(a / np.max(np.abs(a)), compute_uv=False)
    sensitivity = max(float(values[0] * np.sum(1 / values)), len(a))

    def error(result):
        return float(abs(result[0] - sign) + abs(np.real(result[1]) - logarithm)) / sensitivity

    bound = FACTOR * max(error(np.linalg.slogdet(a)), EPS)
    for found in calls(lambda x: jnp.stack([as_jax(part) for part in sa.linalg.slogdet(x)]), matrix):
        assert error(np.asarray(found)) <= bound


def test_an_inverse_is_solved_by_a_product(rng):
    """Its dense form has rounding errors, so the oracle is the matrix that it holds."""
    a = smooth_kernel(N, 1e-6)
    x, b = sa.Inverse(sa.Symmetric(a)), rng.normal(size=N)
    np.testing.assert_allclose(np.asarray(sa.linalg.solve(x, b)), a @ b, rtol=0, atol=100 * EPS)
    sign, logarithm = log_determinant(a)
    found = sa.linalg.slogdet(x)
    assert float(found.sign) == sign
    assert abs(float(found.logabsdet) + float(logarithm)) <= 100 * EPS * np.linalg.cond(a)
