"""Second derivatives of functions of eigenvalues and singular values: right, or where values are repeated not to be mistaken for right ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_repeated_values import (
    REPEATED,
    STRUCTURES,
    by_differences,
    orthogonal,
    rotated,
    second_derivatives,
    symmetric,
)

import structarrays as sa

UNKNOWN = {
    "squares around one": lambda v: jnp.sum((v - 1) ** 2),
    "variance": lambda v: jnp.mean((v - jnp.mean(v)) ** 2),
    "difference": lambda v: v[1] - v[0],
    "cubes": lambda v: jnp.sum(v**3),
    "squares": lambda v: jnp.sum(v * v),
}
"""Functions of the first values, which are repeated. Their first derivatives by these may be zero, or cancel."""

BASES = {
    "identity": lambda rng: np.eye(3),
    "diagonal": lambda rng: np.diag([1.0, 1.0, 3.0]),
    "full": lambda rng: (q := orthogonal(rng, 3)) @ np.diag([1.0, 1.0, 3.0]) @ q.T,
}


def change(rng, kind):
    """A direction: any one, or one that turns repeated values in opposite ways, so that no value changes in the standard basis."""
    if kind == "opposite":
        return np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    b = rng.normal(size=(3, 3))
    return b + b.T


@pytest.mark.costly
@pytest.mark.parametrize("function", ["eigvalsh", "svdvals", "eigvals"])
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("kind", ["any", "opposite"])
def test_functions_of_repeated_values(function, base, kind, rng):
    """No rule for the values can tell the second derivative, not even where the first one by each value is zero."""
    a, b = BASES[base](rng), change(rng, kind)

    repeated = slice(0, 3) if base == "identity" else slice(1, 3) if function == "svdvals" else slice(0, 2)

    def values(s):
        found = getattr(sa.linalg, function)(sa.asarray(a + s * b)).data.real
        return jnp.sort(found, descending=function == "svdvals")[repeated]

    found = compiled(*(lambda s, f=f: f(values(s)) for f in UNKNOWN.values()))
    assert not np.any(np.abs(found) < 1e150), found  # so is NaN


def compiled(*functions):
    """Second derivatives of functions at zero, by all orders of forward and reverse mode."""

    def forward(g):
        return lambda s: jax.jvp(g, (s,), (1.0,))[1]

    reverse = jax.grad
    orders = [d(e(f)) for f in functions for d in (forward, reverse) for e in (forward, reverse)]
    return np.array(jax.jit(lambda s: [order(s) for order in orders])(0.0))


@pytest.mark.costly
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_functions_of_simple_values(dtype, rng):
    """Right where other values are repeated: linear functions in all orders, others in forward over reverse mode."""
    q = orthogonal(rng, 4, complex if dtype == "complex128" else float)
    a, b = q @ np.diag([1.0, 1.0, 1.0, 3.0]) @ q.conj().T, orthogonal(rng, 4)
    b = b + b.T
    tolerance = 1e-3 if dtype == "float32" else 1e-6

    def matrix(s):
        return sa.asarray((a + s * b).astype(dtype))

    def largest(s):
        return sa.linalg.eigvalsh(matrix(s)).data[-1]

    def first(s):
        return sa.linalg.svdvals(matrix(s)).data[0]

    def logarithm(s):
        return jnp.log(sa.linalg.matrix_norm(matrix(s), ord=2).data)

    expected = by_differences(lambda s: np.linalg.eigvalsh(a + s * b)[-1])
    np.testing.assert_allclose(compiled(largest, first), expected, rtol=tolerance)
    expected = by_differences(lambda s: np.log(np.linalg.eigvalsh(a + s * b)[-1]))
    np.testing.assert_allclose(compiled(logarithm), expected, rtol=tolerance)
    np.testing.assert_allclose(jax.jit(jax.hessian(lambda s: jnp.log(largest(s))))(0.0), expected, rtol=tolerance)


@pytest.mark.costly
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("order", [2, -2])
def test_norms_of_the_largest_and_the_smallest_value(order, shape, rng):
    """Of a matrix whose other singular values are equal, in all orders, eager, compiled and mapped."""
    m, n = shape
    k = min(shape)
    values = np.full(k, 2.0)
    values[0 if order == 2 else -1] = 5.0 if order == 2 else 0.5
    a, b = orthogonal(rng, m)[:, :k] * values @ orthogonal(rng, n)[:k], rng.normal(size=shape)
    found = second_derivatives(lambda s: jnp.exp(sa.linalg.matrix_norm(sa.asarray(a + s * b), ord=order).data))
    expected = by_differences(lambda s: np.exp(np.linalg.norm(a + s * b, order)), 5e-4)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
def test_eigenvalues_of_general_matrices(rng):
    """Second derivatives of all orders, eager, compiled and mapped, of real matrices with complex eigenvalues."""
    a, b = rng.normal(size=(2, 4, 4))

    def value(s):
        return jnp.sum(jnp.sin(sa.linalg.eigvals(sa.asarray(a + s * b)).data)).real

    expected = by_differences(lambda s: np.sum(np.sin(np.linalg.eigvals(a + s * b))).real)
    np.testing.assert_allclose(second_derivatives(value), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "function"),
    [(name, "svdvals") for name in REPEATED]
    + [(name, "eigvalsh") for name in REPEATED if name not in ("Kronecker", "LowRank")],
)
def test_structures(name, function, rng):
    """A function of all values whose first derivatives by them are zero."""
    a = symmetric(rng) if function == "eigvalsh" or name == "Symmetric" else rotated(rng)
    b = rng.normal(size=(4, 4))

    def value(s):
        values = getattr(sa.linalg, function)(STRUCTURES[name](a, b + b.T, s)).data
        return jnp.sum((values - jax.lax.stop_gradient(values)) ** 2)

    found = compiled(value)
    assert not np.any(np.abs(found) < 1e150), found  # so is NaN


LARGEST = {
    "BlockDiagonal": lambda a, b, s: sa.BlockDiagonal(jnp.stack([a + s * b, a / 2])),
    "BlockBanded": lambda a, b, s: sa.block_tridiagonal(
        jnp.zeros((1, 4, 4)), jnp.stack([a + s * b, a / 2]), jnp.zeros((1, 4, 4))
    ),
    "KroneckerSum": lambda a, b, s: sa.KroneckerSum(a + s * b, np.diag([1.0, 3.0])),
}
"""Those of `STRUCTURES` whose largest value is repeated, with a simple one."""


@pytest.mark.parametrize("name", [*LARGEST, "Dense", "Symmetric", "Kronecker", "Sum", "LowRank"])
def test_largest_value_of_structures(name, rng):
    """The logarithm of the spectral norm, in all orders."""
    a = orthogonal(rng, 4) * [1, 1, 2, 7] @ orthogonal(rng, 4)
    b = rng.normal(size=(4, 4))
    if name == "Symmetric":
        a, b = (q := orthogonal(rng, 4)) * [1, 1, 2, 7] @ q.T, b + b.T

    def make(s):
        return LARGEST.get(name, STRUCTURES.get(name))(a, b, s)

    found = compiled(lambda s: jnp.log(sa.linalg.matrix_norm(make(s), ord=2).data))
    expected = by_differences(lambda s: np.log(np.linalg.norm(np.asarray(make(s)), 2)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
