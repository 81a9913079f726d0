"""Compiled derivatives of systems that have no solution: they are no numbers, since zeros would be wrong ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import structarrays as sa

N = 6
Z = np.array([1.0, 2.0, 0.0, 3.0, 4.0, 5.0])
BLOCKS = np.stack([np.eye(2), np.zeros((2, 2)), np.eye(2)])

SINGULAR = {
    "Dense": lambda s: sa.asarray(jnp.diag(Z) * s),
    "Diagonal": lambda s: sa.Diagonal(Z * s),
    "Triangular": lambda s: sa.Triangular(jnp.ones((N, N)) * s * Z),
    "Triangular, upper": lambda s: sa.Triangular(jnp.ones((N, N)) * s * Z, lower=False),
    "Symmetric": lambda s: sa.Symmetric(jnp.diag(Z) * s),
    "tridiagonal": lambda s: sa.tridiagonal(np.zeros(N - 1), s * Z, s * np.ones(N - 1)),
    "Toeplitz": lambda s: sa.Toeplitz(s * np.ones(N)),
    "Toeplitz, triangular": lambda s: sa.Toeplitz(s * np.r_[0.0, np.ones(N - 1)], np.zeros(N)),
    "Circulant": lambda s: sa.Circulant(s * np.ones(N)),
    "BlockDiagonal": lambda s: sa.BlockDiagonal(s * BLOCKS),
    "BlockBanded": lambda s: sa.block_tridiagonal(np.zeros((2, 2, 2)), s * BLOCKS, np.zeros((2, 2, 2))),
    "Kronecker": lambda s: sa.Kronecker(s * np.eye(2), np.diag([1.0, 0.0, 2.0])),
    "KroneckerSum": lambda s: sa.KroneckerSum(s * np.diag([1.0, 2.0]), -s * np.diag([1.0, 3.0, 4.0])),
    "Kronecker product and identity": lambda s: (
        sa.Kronecker(s * np.diag([1.0, 2.0]), np.diag([1.0, 3.0, 4.0])) - s * sa.eye(N)
    ),
    "circulant factors": lambda s: sa.KroneckerSum(sa.Circulant(s * np.ones(2)), sa.Circulant(s * np.ones(3))),
    "Sparse": lambda s: sa.Sparse(s * Z, (np.arange(N), np.arange(N)), (N, N)),
    "Product": lambda s: sa.Product(sa.Diagonal(Z * s), sa.tridiagonal(np.ones(N - 1), 4 * np.ones(N), np.ones(N - 1))),
    "Block": lambda s: sa.Block([[sa.Diagonal(s * Z[:3]), None], [None, sa.Diagonal(s * Z[3:])]]),
    "LowRank": lambda s: sa.LowRank(s * np.ones((N, 2)), np.eye(N)[:, :2]),
    "Fill": lambda s: sa.Fill(s * 2.0, (N, N)),
}

RIGHT = sa.asarray(np.arange(1.0, N + 1))

FUNCTIONS = {
    "solve": lambda A: sa.linalg.solve(A, RIGHT),
    "solve, positive definite": lambda A: sa.linalg.solve(sa.assume(A, "positive_definite"), RIGHT),
    "inv": lambda A: sa.linalg.inv(A) @ RIGHT,
    "cholesky": lambda A: sa.linalg.cholesky(A) @ RIGHT,
    "lu_solve": lambda A: sa.linalg.lu_solve(sa.linalg.lu_factor(A), RIGHT),
    "cho_solve": lambda A: sa.linalg.cho_solve(sa.linalg.cho_factor(A), RIGHT),
    "solve_triangular": lambda A: sa.linalg.solve_triangular(sa.tril(A), RIGHT, lower=True),
    "selected_inverse": sa.linalg.selected_inverse,
    "logdet": sa.linalg.logdet,
    "slogdet": lambda A: sa.linalg.slogdet(A).logabsdet,
}

# Their lower triangles are regular.
REGULAR_TRIANGLES = {"Toeplitz", "Circulant", "circulant factors", "Fill"}
CASES = [
    (name, function)
    for name in SINGULAR
    for function in FUNCTIONS
    if not (function == "solve_triangular" and name in REGULAR_TRIANGLES)
]


def all_derivatives(value):
    """The value at one, its derivatives in forward and reverse mode, and the second derivative, compiled."""

    def forward(f):
        return lambda s: jax.jvp(f, (s,), (1.0,))[1]

    return jax.jit(lambda s: [f(s) for f in (value, forward(value), jax.grad(value), forward(jax.grad(value)))])(1.0)


@pytest.mark.parametrize(("name", "function"), CASES)
def test_derivatives_of_what_does_not_exist(name, function):
    found = np.array(all_derivatives(lambda s: sa.sum(FUNCTIONS[function](SINGULAR[name](s))).data))
    assert not np.isfinite(found).any(), found


@pytest.mark.parametrize("columns", [(), (2,)])
@pytest.mark.parametrize("name", SINGULAR)
def test_derivatives_by_the_right_side_of_what_does_not_exist(name, columns):
    right = np.ones((N, *columns))

    def value(s):
        return sa.sum(sa.linalg.solve(SINGULAR[name](1.0), sa.asarray(s * right))).data

    found = jax.jit(lambda s: [value(s), jax.jvp(value, (s,), (1.0,))[1], jax.grad(value)(s)])(1.0)
    assert not np.isfinite(np.array(found)).any(), found


OTHERS = {
    "logarithm of a negative determinant": lambda s: sa.linalg.logdet(sa.Diagonal(s * np.array([1.0, -2.0, 3.0]))),
    "singular circulant": lambda s: sa.linalg.solve_circulant(s * np.ones(N), RIGHT),
    "singular Toeplitz": lambda s: sa.linalg.solve_toeplitz(s * np.ones(N), RIGHT),
    "a changing factor of a singular product": lambda s: sa.linalg.logdet(
        sa.Kronecker(s * np.eye(2), np.diag([1.0, 0.0]))
    ),
    "a changing number of a singular diagonal": lambda s: sa.linalg.logdet(
        sa.Diagonal(jnp.array([1.0, 0.0]).at[0].set(s))
    ),
    "square root of an indefinite matrix": lambda s: sa.real(
        sa.linalg.sqrtm(sa.assume(sa.Symmetric(s * np.array([[1.0, 2.0], [2.0, 1.0]])), "positive_definite"))
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_derivatives_of_what_does_not_exist(name):
    found = np.array(all_derivatives(lambda s: sa.sum(OTHERS[name](s)).data))
    assert not np.isfinite(found).any(), found


def test_derivatives_of_the_other_matrices_of_a_stack(rng):
    """Only those of the singular matrix do not exist."""
    diagonals = rng.normal(size=(3, N)) + 4
    diagonals[1, 2] = 0
    right = rng.normal(size=(3, N, 1))

    def value(d):
        return sa.sum(sa.linalg.solve(sa.Diagonal(d), sa.asarray(right)), axis=(-2, -1)).data

    found = jax.jit(jax.jacrev(value))(diagonals)
    expected = -right[..., 0] / np.where(diagonals == 0, 1, diagonals) ** 2
    for i in (0, 2):
        np.testing.assert_allclose(found[i, i], expected[i], rtol=1e-12)
    assert np.isnan(found[1, 1]).all()
