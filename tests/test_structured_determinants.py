"""Derivatives of determinants of singular matrices with a structure, with exact polynomials as the oracle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_determinants import derivatives
from support import as_jax

import structarrays as sa

N = 6
ONES = np.ones(N)
CYCLE = 2 * np.eye(4) - np.roll(np.eye(4), 1, 0) - np.roll(np.eye(4), -1, 0)
PATH = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
EDGE = np.array([[1.0, -1], [-1, 1]])
PLACES = np.nonzero(CYCLE)

# Parameters of a singular matrix, and a function that is linear in them.
MATRICES = {
    "path": ((-ONES[1:], np.array([1.0, 2, 2, 2, 2, 1]), -ONES[1:]), sa.tridiagonal),
    "shift": ((ONES[1:], 0 * ONES, 0 * ONES[1:]), sa.tridiagonal),
    "triangle": ((ONES[1:], np.array([0.0, 0, 1, 2, 3, 4])), lambda a, b: sa.Banded([a, b], (-1, 0), shape=(N, N))),
    "zeros": ((0 * ONES[1:], 0 * ONES, 0 * ONES[1:]), sa.tridiagonal),
    "cycle": ((-ONES[:4], 2 * ONES[:4], -ONES[:4]), lambda a, b, c: sa.PeriodicBanded([a, b, c], (-1, 0, 1))),
    "grid": ((EDGE, PATH), sa.KroneckerSum),
    "grid of paths and cycles": ((PATH[:2, :2] - np.diag([0.0, 1]), EDGE), sa.KroneckerSum),
    "shifted product": ((np.array(-2.0),), lambda c: sa.Kronecker(EDGE, PATH) + c * sa.Identity(N)),
    "Toeplitz": ((np.array([2.0, -1, 0, 0, 0, -1]),), sa.Toeplitz),
    "constant": ((ONES, ONES), sa.Toeplitz),
    "Hankel": ((ONES, ONES), sa.Hankel),
    "sparse": ((CYCLE[PLACES],), lambda v: sa.Sparse(v, PLACES, shape=(4, 4))),
    "blocks": ((np.stack([EDGE] * 3), -EDGE[None] * [[[1.0]], [[0]]]), lambda a, b: sa.block_tridiagonal(0 * b, a, b)),
    "block diagonal": ((EDGE, PATH), lambda a, b: sa.BlockDiagonal([a, b])),
    "update": ((np.array([0.0, 0, 1, 2, 3, 4]),), lambda d: sa.Diagonal(d) + sa.LowRank(ONES[:, None], ONES[:, None])),
    "graph with a border": ((-ONES[1:], np.array([1.0, 2, 2, 2, 2, 1]), -ONES[1:]), lambda *a: sa.tridiagonal(*a) + sa.LowRank(
        0 * ONES[:, None], ONES[:, None])),
}  # fmt: skip


def determinant(s, make, base, direction):
    return as_jax(sa.linalg.det(make(*(b + s * f for b, f in zip(base, direction, strict=True)))))


def example(name, nearly, rng):
    """Return the parameters of the matrix and of a direction, the function that makes a matrix, the exact derivatives, and a size that
    rounding errors are relative to.
    """
    base, make = MATRICES[name]
    base = tuple(np.asarray(b, float) for b in base)
    direction = tuple(rng.normal(size=b.shape) for b in base)
    if nearly:
        base = tuple(b + 2.0**-28 * rng.integers(-4, 5, b.shape) for b in base)
    matrices = (
        np.asarray(as_jax(sa.to_dense(make(*map(jnp.asarray, p))))) for p in (base, direction, [0 * b for b in base])
    )
    c, f, constant = matrices
    f = f - constant
    return base, direction, make, derivatives(c, f), np.prod(np.linalg.norm(c, axis=0) + np.linalg.norm(f, axis=0))


@pytest.mark.slow
@pytest.mark.each_parameter
@pytest.mark.parametrize("nearly", [False, True], ids=["singular", "nearly singular"])
@pytest.mark.parametrize("name", MATRICES)
def test_two_derivatives(name, nearly, rng):
    """The logarithm of the determinant, which most structures compute, has no derivative at a singular matrix."""
    base, direction, make, expected, size = example(name, nearly, rng)

    @jax.jit
    def first_and_second(s):
        first = jax.grad(determinant)
        return first(s, make, base, direction), jax.jacfwd(first)(s, make, base, direction)

    np.testing.assert_allclose(first_and_second(0.0), expected[1:3], rtol=1e-9, atol=1e-14 * size)


@pytest.mark.costly
@pytest.mark.parametrize("phase", [1, np.exp(1j)], ids=["real", "complex"])
def test_stacks(phase, rng):
    """Regular and singular matrices of one stack, also one that `vmap` makes."""
    shift = np.array([1.0, 0.0, 2.0**-30])
    below, main = rng.normal(size=N - 1), rng.normal(size=N)
    expected = []
    for each in shift:
        c = (
            2 * np.eye(N)
            - np.diag(ONES[1:], 1)
            - np.diag(ONES[1:], -1)
            + np.diag([each - 1, *[each] * (N - 2), each - 1])
        )
        expected.append(derivatives(c, np.diag(below, -1) + np.diag(main))[1:3])

    def value(s, shift):
        parts = (-ONES[1:] + s * below, jnp.array([1.0, 2, 2, 2, 2, 1]) + shift[..., None] + s * main, -ONES[1:])
        return as_jax(sa.linalg.det(sa.tridiagonal(*(phase * p for p in parts))) / phase**N).real

    def stack(s):
        return value(s, shift)

    def mapped(s):
        return jax.vmap(value, (None, 0))(s, jnp.asarray(shift))

    for function in (stack, mapped):
        for first in (jax.jacfwd(function), jax.jacrev(function)):
            np.testing.assert_allclose(jax.jit(first)(0.0), [d[0] for d in expected], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(
            jax.jit(jax.jacfwd(jax.jacrev(function)))(0.0), [d[1] for d in expected], rtol=1e-10, atol=1e-10
        )


@pytest.mark.parametrize(("shift", "known"), [(0.0, 0), (2.0**-28, 2), (2.0**-44, 1)])
def test_without_the_dense_form(shift, known, rng):
    """Derivatives that would have no correct digit are NaN; the others are right."""
    base, make = MATRICES["path"]
    base = (base[0], base[1] + shift, base[2])
    direction = tuple(rng.normal(size=b.shape) for b in base)
    c, f = (np.diag(a, -1) + np.diag(b) + np.diag(c, 1) for a, b, c in (base, direction))
    first = jax.grad(determinant)
    with sa.densify("error"):
        found = [function(0.0, make, base, direction) for function in (first, jax.jacfwd(first))]
    np.testing.assert_allclose(found[:known], derivatives(c, f)[1 : 1 + known], rtol=1e-3)
    assert np.all(np.isnan(found[known:]))


def test_a_singular_matrix_of_a_stack_leaves_the_others_alone():
    """Without the dense form, the first derivative of a singular matrix alone is NaN."""
    shift = np.array([0.0, 1.0])

    def determinants(s):
        return as_jax(
            sa.linalg.det(sa.tridiagonal(-ONES[1:], np.array([1.0, 2, 2, 2, 2, 1]) + shift[:, None] + s, -ONES[1:]))
        )

    regular = 2 * np.eye(N) - np.diag(ONES[1:], 1) - np.diag(ONES[1:], -1) + np.diag([0.0, 1, 1, 1, 1, 0])
    with sa.densify("error"):
        found = jax.jacfwd(determinants)(0.0)
    np.testing.assert_allclose(found, [np.nan, derivatives(regular, np.eye(N))[1]], rtol=1e-12)
