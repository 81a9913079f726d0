"""`jacobian`, `hessian` and `linearize`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jacobian_programs import PROGRAMS

import structarrays as sa


def point(shape, dtype=float):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), dtype)


def flat(full, m, n):
    return np.asarray(full).reshape(m, n)


def assert_equals(found, expected, dtype=float):
    tolerance = 1e-12 if np.finfo(dtype).bits == 64 else 2e-5
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(np.asarray(found.to_dense()), expected, rtol=tolerance, atol=tolerance * scale)


def assert_structure(found, name):
    assert type(found).__name__ == ("Dense" if name == "dense" else name)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_jacobians_of_programs(name, mode):
    function, shape, structure, _ = PROGRAMS[name]
    x = point(shape)
    expected = jax.jacfwd(function)(x)
    found = sa.jacobian(function, mode=mode)(x)
    assert_equals(found, expected.reshape(-1, x.size))
    assert_structure(found, structure)


@pytest.mark.parametrize("name", PROGRAMS)
def test_hessians_of_programs(name):
    function, shape, _, structure = PROGRAMS[name]
    x = point(shape)

    def scalar(x):
        return jnp.sum(function(x) ** 2)

    if name == "while_loop_of_equations":
        pass
    expected = jax.hessian(scalar)(x)
    found = sa.hessian(scalar)(x)
    assert_equals(found, expected.reshape(x.size, x.size))
    assert_structure(found, structure)
