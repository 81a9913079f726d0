"""`structured` on ordinary JAX programs: right values and gradients, and no n x n array in what is compiled."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import FORWARD_ONLY, PROGRAMS

import structarrays as sa

N = 311
CASES = [(name, kind) for name, (_, kinds) in {**PROGRAMS, **FORWARD_ONLY}.items() for kind in kinds]


def matrix(kind):
    numbers = np.random.default_rng(0).uniform(-1, 1, (4, N))
    if kind == "Diagonal":
        return sa.Diagonal(numbers[0])
    if kind == "Banded":
        return sa.tridiagonal(numbers[0, 1:], numbers[1], numbers[2, 1:])
    return sa.LowRank(numbers[:2].T, numbers[2:].T / N)


def vector():
    return jnp.asarray(np.random.default_rng(1).uniform(-1, 1, N))


def has_square(text):
    return re.search(rf"(?<!\d){N}[,x]{N}(?!\d)", text) is not None


def compiled_without_squares(function, *args):
    lowered = jax.jit(function).lower(*args)
    assert not has_square(lowered.as_text())
    compiled = lowered.compile()
    assert not has_square(compiled.as_text())
    return compiled(*args)


def test_there_are_fifty_programs():
    assert len(PROGRAMS) >= 50


@pytest.mark.parametrize(("name", "kind"), CASES, ids=[f"{name}-{kind}" for name, kind in CASES])
def test_a_program_makes_no_square_array(name, kind):
    program, _ = {**PROGRAMS, **FORWARD_ONLY}[name]
    A, x = matrix(kind), vector()

    def loss(A, x):
        return jnp.sum(sa.structured(program)(A, x) ** 2)

    def dense_loss(A, x):
        return jnp.sum(program(A.to_jax(), x) ** 2)

    found, expected = compiled_without_squares(sa.structured(program), A, x), program(A.to_jax(), x)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    if name in FORWARD_ONLY:
        return
    found = compiled_without_squares(jax.grad(loss, argnums=(0, 1)), A, x)
    expected = jax.grad(dense_loss, argnums=(0, 1))(A, x)
    for own, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-8, atol=1e-10)


def test_the_check_notices_a_square_array():
    lowered = jax.jit(lambda A, x: jnp.sin(A.to_jax()) @ x).lower(matrix("Diagonal"), vector())
    assert has_square(lowered.as_text())
