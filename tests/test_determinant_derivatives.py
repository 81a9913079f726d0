"""Derivatives of determinants of singular and nearly singular matrices, with exact polynomials as the oracle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_determinants import derivatives
from support import as_jax

import structarrays as sa

N = 6


def second_differences(n):
    return 2 * np.eye(n) - np.roll(np.eye(n), 1, 0) - np.roll(np.eye(n), -1, 0)


MATRICES = {
    "regular": second_differences(N) + np.eye(N),
    "nearly singular": second_differences(N) + 1e-9 * np.eye(N),
    "graph of a cycle": second_differences(N),
    "graph of a path": np.diag([1.0] + [2] * (N - 2) + [1]) - np.eye(N, k=1) - np.eye(N, k=-1),
    "graph of two cycles": np.kron(np.eye(2), second_differences(3)),
    "projection": np.eye(N) - 1 / N,
    "zero on the diagonal": np.diag([1.0, 2, 3, 4, 5, 0]),
    "shift by 1": np.eye(N, k=1),
    "shift by 2": np.eye(N, k=2),
    "shift by 3": np.eye(N, k=3),
    "shift by 4": np.eye(N, k=4),
    "ones": np.ones((N, N)),
    "zeros": np.zeros((N, N)),
    "Hilbert's": 1 / (1 + np.arange(N)[:, None] + np.arange(N)),
    "tiny": 1e-25 * second_differences(N),
    "huge": 1e25 * second_differences(N),
    "two rows": np.ones((2, 2)),
    "three rows": np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]]),
}


def determinant(s, c, f):
    return as_jax(sa.linalg.det(sa.asarray(c + s * f)))


FIRST = jax.grad(determinant)
SECOND = jax.grad(FIRST)
COMPILED = {1: jax.jit(FIRST), 2: jax.jit(SECOND), 3: jax.jit(jax.grad(SECOND))}
FORWARD = jax.jit(jax.jacfwd(FIRST))


@pytest.mark.slow
@pytest.mark.each_parameter
@pytest.mark.parametrize("name", MATRICES)
def test_three_derivatives(name, rng):
    """JAX's derivative of a shifted identity is zero, and its second derivatives of singular matrices are NaN."""
    c = MATRICES[name]
    f = (np.max(np.abs(c)) or 1.0) * rng.normal(size=c.shape)
    expected = derivatives(c, f)
    bound = 1e-13 * np.prod(np.linalg.norm(f, axis=0))
    found = [(order, COMPILED[order](0.0, c, f)) for order in (1, 2, 3)[: len(c)]]
    for order, value in (*found, (1, FIRST(0.0, c, f)), (2, FORWARD(0.0, c, f))):
        np.testing.assert_allclose(value, expected[order], rtol=1e-11, atol=bound)


@pytest.mark.slow
@pytest.mark.parametrize("phase", [1, np.exp(1j)], ids=["real", "complex"])
def test_stacks(phase, rng):
    """Singular and regular matrices of one stack have derivatives of their own."""
    c = np.stack([c for name, c in MATRICES.items() if c.shape == (N, N) and name not in ("tiny", "huge")])
    f = rng.normal(size=(N, N))
    expected = np.array([derivatives(each, f)[:3] for each in c])

    def value(c, s):
        return (determinant(s, phase * c, phase * f) / phase**N).real

    def stack(s):
        return value(c, s)

    def mapped(s):
        return jax.vmap(value, (0, None))(jnp.asarray(c), s)

    for first in (jax.jacfwd(stack), jax.jacrev(stack), jax.jacfwd(mapped), jax.jacrev(mapped)):
        np.testing.assert_allclose(first(0.0), expected[:, 1], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(jax.jacfwd(jax.jacrev(stack))(0.0), expected[:, 2], rtol=1e-11, atol=1e-10)
