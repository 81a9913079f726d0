"""`vmap_axes`, and structured arrays as arguments of `jit` whose structure is static."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import structarrays as sa
from structarrays.testing import STRUCTURES, sample


class Problem(NamedTuple):
    matrix: sa.Array
    sides: tuple
    options: dict


def solutions(problem):
    x = sa.linalg.solve(problem.matrix, problem.sides[0])
    return problem.options["scale"] * x + problem.sides[1]


@pytest.mark.parametrize("vmap", [jax.vmap, sa.vmap])
def test_a_nested_problem(vmap):
    diagonals = 1.0 + np.arange(6.0).reshape(3, 2)
    problem = Problem(sa.Diagonal(diagonals), (jnp.ones((3, 2)), np.arange(2.0)), {"scale": 2.0, "nothing": None})
    axes = sa.vmap_axes(problem, 3)
    assert axes == Problem(0, (0, None), {"scale": None, "nothing": None})
    for call in (vmap(solutions, in_axes=(axes,)), jax.jit(vmap(solutions, in_axes=(axes,)))):
        np.testing.assert_allclose(np.asarray(call(problem)), 2 / diagonals + np.arange(2.0))


def test_several_arguments():
    args = (sa.tridiagonal([1.0], [4.0, 5.0], [1.0]), sa.ones((4, 2)))
    assert sa.vmap_axes(args, 4) == (None, 0)
    result = sa.vmap(sa.linalg.solve, in_axes=sa.vmap_axes(args, 4))(*args)
    np.testing.assert_allclose(np.asarray(result), np.linalg.solve(np.asarray(args[0]), np.ones((4, 2, 1)))[..., 0])


@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_structure_by_its_batch_shape(structure):
    """Parameters as long as the batch do not count, and the answer is one that JAX can map by."""
    shared = sample(structure, (3, 3))
    batch = sample(structure, (3, 3), batch=(3,))
    if shared is None or batch is None:
        pytest.skip("no such array")
    expected = 0 if shared.core_ndim == 0 else None  # the first dimension of a dense one might be the batch
    assert sa.vmap_axes((shared, batch), 3) == (expected, 0)
    assert sa.vmap_axes((sample(structure, (3, 3), batch=(2, 3)), batch), 3) == (None, 0)
    axes = sa.vmap_axes((shared, batch), 3)
    if axes[0] is None:
        result = jax.vmap(lambda x, y: sa.matrix_transpose(y).shape + x.shape + (jnp.zeros(2),), in_axes=axes)
        assert jax.eval_shape(lambda x, y: result(x, y)[-1], shared, batch).shape == (3, 2)


def test_other_arrays():
    fill = sa.Fill(1.0, (5,))
    leaves = [
        np.ones(5),
        jnp.ones((5, 2)),
        sa.ones((5, 5)),
        3.0,
        np.float32(1),
        fill,
        jnp.ones((2, 5)),
        jax.random.key(0),
    ]
    assert sa.vmap_axes(leaves, 5) == [0, 0, 0, None, None, None, None, None]
    assert sa.vmap_axes(jax.random.split(jax.random.key(0), 5), 5) == 0
    shapes = jax.eval_shape(lambda: (sa.Diagonal(jnp.ones((5, 2))), sa.Diagonal(jnp.ones(5)), jnp.ones(5)))
    assert sa.vmap_axes(shapes, 5) == (0, None, 0)
    assert sa.vmap_axes(sa.ones((0, 2)), 0) == 0
    doubled = jax.jit(lambda x: sa.vmap(lambda y: y * 2.0, in_axes=(sa.vmap_axes(x, 5),))(x))
    assert doubled(sa.ones((5, 2))).shape == (5, 2)


@pytest.mark.parametrize(
    ("tree", "size", "error", "message"),
    [
        (
            sa.eye(4),
            4,
            ValueError,
            r"batch of 4 in front; the arrays are Identity of shape \(4, 4\) with batch shape \(\)",
        ),
        ((jnp.ones(3), 2.0), 4, ValueError, r"of shape \(3,\), float of shape \(\)"),
        ([1.0] * 9, 4, ValueError, "…"),
        ({}, 4, ValueError, "no arrays"),
        (np.ones(3), -1, ValueError, "at least 0"),
        (np.ones(3), 3.0, TypeError, "batch_size must be an integer, got 3.0"),
        (np.ones(3), None, TypeError, "integer"),
    ],
)
def test_errors(tree, size, error, message):
    with pytest.raises(error, match=message):
        sa.vmap_axes(tree, size)


# ---- structure as a static argument -------------------------------------------------------------------------------------


def test_structure_is_static_and_values_are_not():
    traces = []

    @jax.jit
    def f(A):
        traces.append(type(A))
        return sa.sum(A)

    T = sa.tridiagonal(np.ones(3), np.ones(4), np.ones(3))
    for A in (T, 2.0 * T, sa.tridiagonal(np.zeros(3), np.zeros(4), np.zeros(3))):
        f(A)
    assert traces == [sa.Banded]
    for A in (
        sa.Diagonal(np.ones(4)),  # the class
        sa.Banded((np.ones(4), np.ones(3)), (0, 1), (4, 4)),  # the offsets
        sa.tridiagonal(np.ones(4), np.ones(5), np.ones(4)),  # the shape
        sa.astype(T, sa.float32),  # the dtype
        sa.assume(T, "symmetric"),  # what is assumed
        T + 1.0,  # a background
    ):
        before = len(traces)
        f(A)
        f(A)
        assert len(traces) == before + 1
