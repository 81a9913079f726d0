"""Derivatives of determinants of Kronecker sums, and of Kronecker products next to a multiple of the identity, of all factors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import structarrays as sa
from structarrays._structures.kronecker import kronecker_determinants

M, N = 3, 4
FIRST, SECOND = np.array([2.0, 0.3, 0.1]), np.array([3.0, 0.5, 0.2, 0.1])


def general(rng, n):
    return rng.normal(size=(n, n)) + 4 * np.eye(n)


def definite(rng, n):
    a = rng.normal(size=(n, n))
    return a @ a.T + np.eye(n)


def structured(kind, a, b, s):
    """The structured matrix."""
    scaled = {
        "Toeplitz": lambda: (sa.Toeplitz(FIRST * s), sa.Toeplitz(SECOND)),
        "triangular": lambda: (sa.Triangular(a * s), sa.asarray(b)),
        "diagonal": lambda: (sa.asarray(a * s), sa.Diagonal(SECOND)),
    }.get(kind.partition(", ")[0], lambda: (sa.asarray(a * s), sa.asarray(b)))()
    if kind.endswith("sum"):
        return sa.KroneckerSum(*scaled)
    return sa.Kronecker(*scaled) + s * sa.eye(M * N)


def dense(kind, a, b, s):
    """The same without structure."""
    a, b = {
        "Toeplitz": lambda: (scipy.linalg.toeplitz(FIRST), scipy.linalg.toeplitz(SECOND)),
        "triangular": lambda: (np.tril(a), b),
        "diagonal": lambda: (a, np.diag(SECOND)),
    }.get(kind.partition(", ")[0], lambda: (a, b))()
    if kind.endswith("sum"):
        return jnp.kron(a * s, jnp.eye(N)) + jnp.kron(jnp.eye(M), b)
    return jnp.kron(a * s, b) + s * jnp.eye(M * N)


def orders(f):
    """First and second derivatives at 0.3, by all orders of forward and reverse mode."""

    def forward(g):
        return lambda s: jax.jvp(g, (s,), (1.0,))[1]

    found = [forward(f), jax.grad(f)]
    found += [d(g) for d in (forward, jax.grad) for g in found]
    return jnp.stack([g(0.3) for g in found])


KINDS = [
    f"{factors}, {whole}"
    for factors in (
        "general",
        "complex",
        "Toeplitz",
        "triangular",
        "diagonal",
        "promised symmetric",
        "promised definite",
    )
    for whole in ("sum", "product")
]


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_of_all_orders(kind, rng):
    """Eager and compiled, against those of the dense matrix."""
    make = definite if kind.startswith("promised") else general
    a, b = make(rng, M), make(rng, N)
    if kind.startswith("complex"):
        a = a + 1j * rng.normal(size=(M, M))

    def value(s):
        x = structured(kind, a, b, s)
        if kind.startswith("promised"):
            x = sa.assume(x, "symmetric" if "symmetric" in kind else "positive_definite")
        return sa.linalg.slogdet(x).logabsdet.data

    expected = orders(lambda s: jnp.linalg.slogdet(dense(kind, a, b, s))[1])
    np.testing.assert_allclose(orders(value), expected, rtol=1e-9)
    np.testing.assert_allclose(jax.jit(lambda: orders(value))(), expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("whole", ["sum", "product"])
@pytest.mark.parametrize("distance", [0.0, 1e-12, 1e-5, 1e-3, 1e-2])
def test_a_defective_factor(distance, whole, rng):
    """Its eigenvectors are dependent or nearly so: first derivatives by the Schur form are right, second ones NaN or right."""
    a = 2 * np.eye(M) + np.diag(np.ones(M - 1), 1) + distance * np.diag(np.arange(M))
    b, change = general(rng, N), rng.normal(size=(M, M))

    def value(s):
        return sa.linalg.slogdet(structured(f"general, {whole}", a + (s - 0.3) * change, b, 1.0)).logabsdet.data

    expected = orders(lambda s: jnp.linalg.slogdet(dense(f"general, {whole}", a + (s - 0.3) * change, b, 1.0))[1])
    for found in (orders(value), jax.jit(lambda: orders(value))()):
        np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-9)
        if distance < 1e-2:
            assert np.isnan(found[2:]).all()
        else:
            np.testing.assert_allclose(found[2:], expected[2:], rtol=1e-5)
    mapped = jax.vmap(jax.grad(value))(jnp.full(2, 0.3))
    np.testing.assert_allclose(mapped, expected[1], rtol=1e-9)


@pytest.mark.slow
def test_mixed_second_derivatives(rng):
    """By each factor and by the multiple of the identity."""
    arguments = general(rng, M), general(rng, N), np.array(0.7)

    def value(a, b, c):
        return sa.linalg.slogdet(sa.Kronecker(a, b) + c * sa.eye(M * N)).logabsdet.data

    def expected(a, b, c):
        return jnp.linalg.slogdet(jnp.kron(a, b) + c * jnp.eye(M * N))[1]

    found = jax.jit(jax.hessian(value, (0, 1, 2)))(*arguments)
    for mine, other in zip(
        jax.tree.leaves(found), jax.tree.leaves(jax.hessian(expected, (0, 1, 2))(*arguments)), strict=True
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-10)


def test_eigenvalues_of_a_defective_matrix_have_no_derivatives(rng):
    jordan = 2 * np.eye(M) + np.diag(np.ones(M - 1), 1)
    change = rng.normal(size=(M, M))
    moved = jax.jvp(lambda s: sa.linalg.eigvals(sa.asarray(jordan + s * change)).data, (0.0,), (1.0,))[1]
    assert np.isnan(moved).all()


def test_memory_of_the_sum_of_resolvents():
    """Matrices of the size of the factor alone, however many eigenvalues the other factors have."""
    n, k = 50, 2000
    compiled = jax.jit(kronecker_determinants._sum_of_resolvents).lower(
        jnp.zeros((n, n), complex), jnp.zeros(k, complex), jnp.zeros(k, complex)
    )
    assert compiled.compile().memory_analysis().temp_size_in_bytes < 20 * n * n * 16 + 4 * k * 16
