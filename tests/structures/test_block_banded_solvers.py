"""Systems with block-banded matrices, solved in their blocks: against NumPy's dense solver."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import structarrays as sa
from structarrays.structures import block_banded_solvers


@pytest.fixture(autouse=True)
def small_matrices_too(monkeypatch):
    monkeypatch.setattr(block_banded_solvers, "SOLVED_AS_DENSE", 0)
    monkeypatch.setattr(block_banded_solvers, "SMALLEST", 1)


def normal(*shape, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype is complex else 0)


def block_banded(count, size, offsets, dtype=float, batch=(), seed=0):
    blocks = [normal(*batch, count - abs(k), size, size, seed=seed + i, dtype=dtype) for i, k in enumerate(offsets)]
    blocks = [b + 4 * size * np.eye(size) if k == 0 else b for k, b in zip(offsets, blocks, strict=True)]
    return sa.BlockBanded(blocks, offsets)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(
    "count, size, offsets",
    [
        (5, 3, (-1, 0, 1)),
        (4, 2, (0, 1)),
        (6, 2, (-1, 1)),
        (7, 2, (-2, 0, 1)),
        (6, 3, (-2, -1, 0, 1, 2)),
        (5, 2, (0, 3)),
        (2, 3, (0,)),
    ],
)
def test_solve(count, size, offsets, dtype):
    for batch in ((), (2,)):
        x = block_banded(count, size, offsets, dtype, batch)
        for b in (normal(*batch, count * size, 2, dtype=dtype), normal(count * size, dtype=dtype)):
            if b.ndim == 1 and batch:
                continue
            with sa.densify("error"):
                solution = sa.linalg.solve(x, b)
            expected = np.linalg.solve(np.asarray(x.to_dense()), b)
            np.testing.assert_allclose(np.asarray(solution), expected, rtol=1e-11, atol=1e-13)


def test_the_inverse_is_not_formed():
    x, b = block_banded(40, 8, (-1, 0, 1)), normal(320, 2)
    inverse = sa.linalg.inv(x)
    assert isinstance(inverse, sa.Inverse)
    np.testing.assert_allclose(inverse @ b, np.linalg.solve(np.asarray(x.to_dense()), b), rtol=1e-11)


@pytest.mark.parametrize("offsets", [(-1, 0, 1), (-2, 0, 2)])
def test_positive_definite(offsets):
    x = block_banded(6, 2, offsets)
    x = sa.assume(x + x.mT, "positive_definite")
    b = normal(12)
    np.testing.assert_allclose(sa.linalg.solve(x, b), np.linalg.solve(np.asarray(x.to_dense()), b), rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(sa.assume(x - 100 * sa.eye(12), "positive_definite"), b)


def test_singular():
    x = block_banded(6, 2, (-1, 0, 1)) * 0
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(x, np.ones(12))
    assert np.all(np.isnan(jax.jit(lambda x: sa.linalg.solve(x, np.ones(12)).to_jax())(x)))


@pytest.mark.parametrize("offsets", [(-1, 0, 1), (-2, 0, 1)])
def test_derivatives(offsets):
    """With respect to the blocks, in their structure."""
    x, b = block_banded(5, 2, offsets), normal(10)

    def value(solve, x):
        return jnp.sum(solve(x) ** 2)

    ours = jax.grad(lambda x: value(lambda x: sa.linalg.solve(x, b).to_jax(), x))(x)
    theirs = jax.grad(lambda x: value(lambda x: jnp.linalg.solve(x.to_jax(), b), x))(x)
    assert isinstance(ours, sa.BlockBanded) and ours.offsets == x.offsets
    for g, h in zip(ours.blocks, theirs.blocks, strict=True):
        np.testing.assert_allclose(g, h, rtol=1e-10, atol=1e-13)
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), x, block_banded(5, 2, offsets, seed=9))
    mapped = jax.vmap(lambda x: sa.linalg.solve(x, b).to_jax())(stack)
    np.testing.assert_allclose(mapped[0], sa.linalg.solve(x, b), rtol=1e-12)


def test_nothing_is_as_large_as_the_matrix():
    blocks = [jax.ShapeDtypeStruct((k, 8, 8), float) for k in (124_999, 125_000, 124_999)]

    def solution(lower, diagonal, upper, b):
        return sa.linalg.solve(sa.block_tridiagonal(lower, diagonal, upper), b).to_jax()

    memory = jax.jit(solution).lower(*blocks, jax.ShapeDtypeStruct((1_000_000,), float)).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 10 * 3 * 125_000 * 64 * 8
