"""Reductions of factored arrays over batch axes, and products of constant matrices with rows: without a stack of dense forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays.testing import sample

CLASSES = (sa.LowRank, sa.Kronecker, sa.KroneckerSum, sa.Sum, sa.Product, sa.Inverse, sa.Block)
FUNCTIONS = ("sum", "mean", "var", "std", "prod", "max", "min")


@pytest.mark.costly
@pytest.mark.parametrize("structure", CLASSES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_over_batch_axes(structure, name):
    x = sample(structure.__name__, (6, 6), batch=(3, 2), dtype="float64", seed=3)
    dense = np.array(x.to_jax())
    for axis in (0, 1, (0, 1), -3):
        for keepdims in (False, True):
            result = getattr(sa, name)(x, axis=axis, keepdims=keepdims)
            expected = getattr(np, name)(dense, axis=axis, keepdims=keepdims)
            assert result.shape == expected.shape
            np.testing.assert_allclose(
                np.array(as_jax(result)), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()
            )


def _low_rank(batch, m, n, rank=1, seed=0):
    rng = np.random.default_rng(seed)
    return sa.LowRank(rng.normal(size=(*batch, m, rank)), rng.normal(size=(*batch, n, rank)))


def test_a_sum_of_few_ranks_is_of_low_rank():
    x = _low_rank((3, 2), 40, 50)
    total = sa.sum(x, axis=0)
    assert type(total) is sa.LowRank and total.rank == 3 and total.shape == (2, 40, 50)
    np.testing.assert_allclose(as_jax(total), x.to_jax().sum(axis=0), atol=1e-12)
    assert type(sa.mean(x, axis=(0, 1))) is sa.LowRank
    assert type(sa.sum(_low_rank((90,), 40, 50), axis=0)) is sa.Dense  # ninety ranks are more than the matrix has


def test_a_sum_of_kronecker_sums_is_one():
    rng = np.random.default_rng(1)
    x = sa.KroneckerSum(rng.normal(size=(5, 7, 7)), sa.Diagonal(rng.normal(size=(5, 9))))
    total = sa.mean(x, axis=0)
    assert type(total) is sa.KroneckerSum and type(total.factors[1]) is sa.Diagonal
    np.testing.assert_allclose(as_jax(total), x.to_jax().mean(axis=0), atol=1e-13)


def test_no_stack_of_dense_matrices_is_made():
    rng = np.random.default_rng(2)
    x = sa.Kronecker(rng.normal(size=(64, 20, 10)), rng.normal(size=(64, 30, 40)))
    for function in (sa.sum, sa.mean, sa.var, sa.std, sa.max):
        with sa.densify("error"):
            compiled = jax.jit(lambda x, function=function: function(x, axis=0)).lower(x).compile()
        assert compiled.memory_analysis().temp_size_in_bytes < 8 * 600 * 400 * 8


def test_derivatives_of_batch_reductions():
    x = _low_rank((4,), 5, 6, rank=2)
    for function in (sa.sum, sa.var):
        ours = sa.grad(lambda x, function=function: sa.sum(function(x, axis=0) ** 2))(x)
        wanted = jax.grad(
            lambda u, v, function=function: jnp.sum(
                getattr(jnp, function.name)(u @ v.mT, axis=0) ** 2  # of the written-out product
            ),
            argnums=(0, 1),
        )(x.u.to_jax(), x.v.to_jax())
        np.testing.assert_allclose(ours.u.to_jax(), wanted[0], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(ours.v.to_jax(), wanted[1], rtol=1e-10, atol=1e-12)


def test_no_matrices_at_all():
    x = _low_rank((0,), 5, 6)
    assert np.all(np.array(as_jax(sa.sum(x, axis=0))) == 0)
    with np.errstate(all="ignore"):
        assert np.all(np.isnan(np.array(as_jax(sa.mean(x, axis=0)))))
        assert np.all(np.isnan(np.array(as_jax(sa.var(x, axis=0)))))
    assert np.all(np.isnan(np.array(as_jax(sa.var(_low_rank((2,), 5, 6), axis=0, correction=2)))))


@pytest.mark.parametrize("shape", [(50,), (1, 50), (40, 1), (3, 1, 50)])
def test_a_constant_matrix_times_a_row_is_of_rank_one(shape):
    fill, line = sa.Fill(2.5, (40, 50)), np.random.default_rng(3).normal(size=shape)
    for function in (np.multiply, np.divide):
        for args in ((fill, sa.asarray(line)), (sa.asarray(line), fill)):
            result = getattr(sa, function.__name__)(*args)
            assert type(result) in (sa.LowRank, sa.Fill)  # each row of the product with a column is constant
            expected = function(*(np.full((40, 50), 2.5) if a is fill else line for a in args))
            np.testing.assert_allclose(np.array(as_jax(result)), expected, rtol=1e-15)
