"""`jacobian` and `hessian` of functions whose Jacobian consists of square blocks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import structarrays as sa


def point(shape, dtype=float):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), dtype)


def weights(*shape):
    return np.random.default_rng(1).normal(size=shape) / shape[-1]


def coupled_cells(u):
    """All variables of a cell and its two neighbours are coupled: block tridiagonal."""
    left, own, right = weights(3, u.shape[1], u.shape[1]).astype(u.dtype)
    wide = jnp.pad(u, ((1, 1), (0, 0)))
    return u - jnp.tanh(wide[:-2] @ left + u @ own + wide[2:] @ right)


def coupled_cells_of_vector(u):
    return coupled_cells(u.reshape(-1, 32)).ravel()


def coupled_cells_on_a_circle(u):
    left, own = weights(2, u.shape[1], u.shape[1]).astype(u.dtype)
    return u**2 @ own - jnp.sin(jnp.roll(u, 1, 0) @ left + jnp.roll(u, -1, 0) @ own)


def implicit_steps(u):
    """The residual of implicit steps for the states of all times: block bidiagonal."""
    W = weights(u.shape[1], u.shape[1]).astype(u.dtype)
    before = jnp.concatenate([jnp.zeros((1, u.shape[1]), u.dtype), u[:-1]])
    return u - before - jnp.tanh(u @ W) - jnp.sin(before @ W)


def coupled_grid(u):
    """Three variables at each point of a grid, coupled with the variables of four neighbours."""
    matrices = weights(5, u.shape[2], u.shape[2]).astype(u.dtype)
    p = jnp.pad(u, ((1, 1), (1, 1), (0, 0)))
    neighbours = (p[2:, 1:-1], p[:-2, 1:-1], p[1:-1, 2:], p[1:-1, :-2])
    return 4 * u + u @ matrices[4] + sum(jnp.tanh(v @ W) for v, W in zip(neighbours, matrices, strict=False))


def cells(u):
    """Each cell for itself: block diagonal."""
    W = weights(*u.shape, u.shape[1]).astype(u.dtype)
    return jnp.tanh(jnp.einsum("bij,bj->bi", W, u)) * jnp.sum(u, 1, keepdims=True)


PROGRAMS = {
    "coupled cells": (coupled_cells, (9, 32), sa.BlockBanded, (-1, 0, 1)),
    "coupled cells of a vector": (coupled_cells_of_vector, (288,), sa.BlockBanded, (-1, 0, 1)),
    "coupled cells on a circle": (coupled_cells_on_a_circle, (2600, 2), sa.BlockBanded, (-2599, -1, 0, 1, 2599)),
    "implicit steps": (implicit_steps, (6, 48), sa.BlockBanded, (-1, 0)),
    "coupled grid": (coupled_grid, (10, 30, 3), sa.BlockBanded, (-30, -1, 0, 1, 30)),
    "cells": (cells, (8, 8), sa.BlockDiagonal, None),
}
SMALL = [name for name in PROGRAMS if name != "coupled cells on a circle"]


def sum_of_squares(function):
    return lambda x: jnp.sum(function(x) ** 2)


def assert_equals(found, expected):
    tolerance = 1e-12 if found.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(np.asarray(found.to_dense()), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", SMALL)
def test_jacobians(name, mode):
    function, shape, kind, offsets = PROGRAMS[name]
    u = point(shape)
    expected = jax.jit(jax.jacfwd(function))(u).reshape(u.size, u.size)
    for jacobian in (sa.jacobian(function, mode=mode), jax.jit(sa.jacobian(function, mode=mode))):
        found = jacobian(u)
        assert type(found) is kind and (offsets is None or found.offsets == offsets)
        assert_equals(found, expected)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_large_system_on_a_circle(mode):
    function, shape, kind, offsets = PROGRAMS["coupled cells on a circle"]
    u, v = point(shape), jnp.cos(jnp.arange(5200.0)).reshape(shape)
    found = jax.jit(sa.jacobian(function, mode=mode))(u)
    assert type(found) is kind and found.offsets == offsets
    expected = jax.jvp(function, (u,), (v,))[1].ravel()
    np.testing.assert_allclose(np.asarray(found @ v.ravel()), expected, atol=1e-12)


def energy_of_pairs(u):
    """A function of the sums of all variables of two adjacent cells."""
    sums = jnp.sum(u[1:], 1) + jnp.sum(u[:-1], 1)
    return jnp.sum(jnp.log1p(sums**2)) + jnp.sum(u**4)


def energy_on_a_grid(u):
    sums = jnp.sum(u, 2)
    return jnp.sum(jnp.sin(sums[1:] + sums[:-1])) + jnp.sum(jnp.cos(sums[:, 1:] * sums[:, :-1])) + jnp.sum(u**4)


HESSIANS = {
    "pairs": (energy_of_pairs, (9, 32), sa.BlockBanded),
    "grid": (energy_on_a_grid, (10, 30, 3), sa.BlockBanded),
    "cells": (sum_of_squares(cells), (8, 8), sa.BlockDiagonal),
    # The squares couple neighbours of neighbours: a block-pentadiagonal matrix is solved faster as a band.
    "coupled cells": (sum_of_squares(coupled_cells), (9, 32), sa.Banded),
}


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians(name):
    function, shape, kind = HESSIANS[name]
    u = point(shape)
    found = jax.jit(sa.hessian(function))(u)
    assert type(found) is kind
    assert_equals(found, jax.jit(jax.hessian(function))(u).reshape(u.size, u.size))


@pytest.mark.parametrize("name", SMALL)
def test_single_precision(name):
    function, shape, kind, _ = PROGRAMS[name]
    u = point(shape, "float32")
    found = jax.jit(sa.jacobian(function))(u)
    assert type(found) is kind and found.dtype == np.float32
    assert_equals(found, jax.jacfwd(function)(u).reshape(u.size, u.size))


@pytest.mark.parametrize("name", ["coupled cells", "implicit steps", "cells"])
def test_vmap(name):
    function, shape, kind, _ = PROGRAMS[name]
    u = point((3, *shape))
    found = jax.jit(jax.vmap(sa.jacobian(function)))(u)
    assert type(found) is kind and found.shape[0] == 3
    for matrix, one in zip(np.asarray(found.to_dense()), u, strict=True):
        np.testing.assert_allclose(matrix, jax.jacfwd(function)(one).reshape(one.size, one.size), atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_newton_steps_and_their_derivatives(name):
    function, shape, _, _ = PROGRAMS[name]
    u = point(shape) + 3.0

    def step(u):
        return u - jnp.asarray(sa.linalg.solve(sa.jacobian(function)(u), function(u).ravel())).reshape(shape)

    def dense_step(u):
        J = jax.jacfwd(function)(u).reshape(u.size, u.size)
        return u - jnp.linalg.solve(J, function(u).ravel()).reshape(shape)

    with sa.densify("error"):
        found = jax.jit(step)(u)
    expected = dense_step(u)
    scale = float(jnp.max(jnp.abs(expected)))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * scale)
    if name not in ("coupled cells", "cells"):
        return
    gradient = jax.jit(jax.grad(lambda u: jnp.sum(jnp.sin(step(u)))))(u)
    dense = jax.grad(lambda u: jnp.sum(jnp.sin(dense_step(u))))(u)
    np.testing.assert_allclose(gradient, dense, rtol=1e-6, atol=1e-7 * float(jnp.max(jnp.abs(dense))))


def small_blocks(u):
    return coupled_cells(u)


def diffusion_of_species(u):
    """The species of a point react, and each diffuses for itself: the blocks next to the diagonal are diagonal."""
    wide = jnp.pad(u, ((1, 1), (0, 0)))
    return wide[2:] + wide[:-2] - 2 * u + jnp.tanh(u @ weights(u.shape[1], u.shape[1]))


def explicit_steps(u):
    """The derivative by the new state is one: a triangular band is solved by substitution."""
    before = jnp.concatenate([jnp.zeros((1, u.shape[1]), u.dtype), u[:-1]])
    return u - jnp.tanh(before @ weights(u.shape[1], u.shape[1]))


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (small_blocks, (40, 8)),
        (small_blocks, (4, 32)),
        (diffusion_of_species, (9, 32)),
        (explicit_steps, (6, 48)),
        (implicit_steps, (9, 32)),
        (cells, (8, 7)),
    ],
)
def test_bands_that_are_solved_faster(function, shape):
    u = point(shape)
    found = sa.jacobian(function)(u)
    assert type(found) is sa.Banded
    assert_equals(found, jax.jacfwd(function)(u).reshape(u.size, u.size))


def test_sums_keep_the_blocks():
    J = sa.jacobian(coupled_cells)(point((9, 32)))
    assert type(J + 0.1 * sa.eye(288)) is sa.BlockBanded and type(0.5 * J.mT) is sa.BlockBanded
