"""Structure that `structured` keeps where constants of the program, conditions and running sums meet structured arrays."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import structarrays as sa

rng = np.random.default_rng(3)
D = sa.Diagonal(rng.normal(size=9))


def same(got, expected, structure):
    assert type(got).__name__ == structure
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("shape", [(), (1, 1)])
def test_multiples_of_constants(shape):
    f = sa.structured(lambda A, c: A + jnp.reshape(c, shape) * jnp.eye(9, k=1))
    same(f(D, jnp.asarray(2.0)), np.asarray(D) + 2 * np.eye(9, k=1), "Banded")


@pytest.mark.parametrize("first", [True, False])
def test_a_constant_as_a_branch(first):
    def one(which, A):
        eye = jnp.eye(9)
        return lax.cond(which, lambda: A, lambda: eye)

    same(sa.structured(one)(jnp.asarray(first), D), np.asarray(D) if first else np.eye(9), "Diagonal")


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_products(axis, reverse, rng):
    A = sa.LowRank(rng.normal(size=(3, 9, 2)), rng.normal(size=(3, 8, 2)))
    got = sa.structured(lambda A: lax.cumsum(A, axis, reverse))(A)
    dense = np.asarray(A)
    expected = np.flip(np.cumsum(np.flip(dense, axis), axis), axis) if reverse else np.cumsum(dense, axis)
    assert isinstance(got, sa.LowRank) == (axis > 0)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12, atol=1e-12)


def test_running_sums_of_integers():
    A = sa.LowRank(np.arange(12).reshape(6, 2), np.arange(8).reshape(4, 2))
    got = sa.structured(lambda A: jnp.cumsum(A, axis=1))(A)
    assert isinstance(got, sa.LowRank) and got.dtype == np.int64
    np.testing.assert_array_equal(np.asarray(got), np.cumsum(np.asarray(A), axis=1))
