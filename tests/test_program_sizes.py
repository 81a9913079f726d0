"""Compiled programs stay small: they grow linearly with the blocks of a matrix, and little with its diagonals.

The time that JAX and XLA take is about proportional to the number of equations or instructions. So these are counted, and no time is measured.
XLA inlines every call, so that the equations of a program that is called twice count twice.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_programs import instructions
from support import as_jax, dense

import structarrays as sa
from structarrays._structures.composite.part_solvers import refined

N = 1000


def size(function, *arguments):
    """The number of equations of the program that XLA gets for a function, with those of the programs in it."""
    return _size(jax.make_jaxpr(function)(*arguments).jaxpr, {})


def _size(jaxpr, known):
    if id(jaxpr) not in known:
        inner = sum(_size(program, known) for equation in jaxpr.eqns for program in _programs(equation))
        known[id(jaxpr)] = len(jaxpr.eqns) + inner
    return known[id(jaxpr)]


def _programs(equation):
    """The programs in an equation, without those that XLA does not get: of a linear system JAX compiles the solver alone."""
    values = equation.params
    if equation.primitive.name == "custom_linear_solve":
        values = {"solve": values["jaxprs"].solve}
    leaves = jax.tree.leaves(values, is_leaf=lambda value: hasattr(value, "eqns") or hasattr(value, "jaxpr"))
    programs_ = (getattr(leaf, "jaxpr", leaf) for leaf in leaves)
    return [program for program in programs_ if hasattr(program, "eqns")]


def solution(a, b):
    return sa.linalg.solve(a, b)


def hierarchical(levels, rows=64):
    """A matrix of two by two blocks: low rank off the diagonal, and on it the same again, down to dense blocks."""
    if levels == 0:
        return sa.asarray(np.eye(rows))
    low_rank = sa.LowRank(np.ones((rows * 2 ** (levels - 1), 2)), np.ones((rows * 2 ** (levels - 1), 2)))
    pivot = hierarchical(levels - 1, rows)
    return sa.Block([[pivot, low_rank], [low_rank, pivot]])


def toeplitz_and_low_rank():
    return sa.Toeplitz(0.5 ** np.arange(N)) + sa.LowRank(np.ones((N, 3)), np.ones((N, 3)))


def diagonal_and_low_rank():
    return sa.Diagonal(np.ones(N)) + sa.LowRank(np.ones((N, 3)), np.ones((N, 3)))


def triangle():
    return sa.Triangular(np.eye(N))


def band(w):
    return sa.Banded([np.ones(N - abs(k)) for k in range(-w, w + 1)], range(-w, w + 1), (N, N))


@pytest.mark.costly
@pytest.mark.parametrize("compiled", [False, True])
def test_solvers_of_nested_blocks_grow_with_the_blocks(compiled):
    """Each level doubles the blocks, and each block is in the residual of every level above it: levels times blocks."""
    with sa.densify("allow" if compiled else "error"):
        sizes = [size(solution, x, jnp.ones(x.shape[-1])) for x in map(hierarchical, range(1, 5))]
    for_each_block = [count / (levels * 2**levels) for levels, count in enumerate(sizes, 1)]
    assert max(for_each_block) == for_each_block[0] <= 350, sizes
    assert sizes[-1] <= 2.6 * sizes[-2], sizes


PROGRAMS = {
    "wide band": (solution, lambda: band(100), 2000),
    "determinant of a wide band": (lambda a, b: as_jax(sa.linalg.slogdet(a).logabsdet), lambda: band(100), 500),
    "triangle times a vector": (lambda a, b: a @ b, triangle, 130),
    "triangle times a matrix": (lambda a, b: a @ (b[:, None] * jnp.ones(64)), triangle, 230),
    "triangle times a triangle": (lambda a, b: a @ a, triangle, 330),
    "Toeplitz": (solution, lambda: sa.Toeplitz(0.5 ** np.arange(N)), 700),
    "Toeplitz, several columns": (
        lambda a, b: solution(a, jnp.stack(3 * [b], -1)),
        lambda: sa.Toeplitz(0.5 ** np.arange(N)),
        950,
    ),
    "Toeplitz and low rank": (solution, toeplitz_and_low_rank, 6500),
    "diagonal and low rank": (solution, diagonal_and_low_rank, 450),
    "inverse of a diagonal and low rank": (lambda a, b: sa.linalg.inv(a), diagonal_and_low_rank, 300),
    "determinant of a diagonal and low rank": (lambda a, b: sa.linalg.slogdet(a), diagonal_and_low_rank, 700),
    "gradient of a Toeplitz and a term of low rank": (
        jax.grad(lambda a, b: jnp.sum(jnp.sin(solution(a, b)))),
        toeplitz_and_low_rank,
        12000,
    ),
    "gradient of a product of bands": (
        jax.grad(lambda a, b: sum(jnp.sum(jnp.sin(d)) for d in (a.mT @ a).diagonals)),
        lambda: band(10),
        1500,
    ),
    "gradient of the determinant of a product of bands": (
        jax.grad(lambda a, b: as_jax(sa.linalg.slogdet(a.mT @ a).logabsdet)),
        lambda: band(10),
        1500,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_small(name):
    function, make, bound = PROGRAMS[name]
    assert size(function, make(), jnp.ones(N)) <= bound


def test_refinement_contains_the_method_once():
    """Otherwise nested solvers would double at each level."""
    traced = []

    def approximate(r):
        traced.append(r)
        return r, jnp.array(True)

    a = sa.Identity(N)
    jax.make_jaxpr(lambda b: refined(a, approximate, b)[0])(jnp.ones((N, 1)))
    # JAX may trace the body of a loop once more, to unify types. It compiles one of the traces.
    assert 1 <= len(traced) <= 2


def test_compiled_derivatives_of_products_of_bands_are_linear_in_the_diagonals():
    """XLA would fuse each sum of products into every one of its readers."""

    def gradient(w):
        def loss(x):
            return sum(jnp.sum(d**2) for d in (x.mT @ x).diagonals)

        return instructions(jax.jit(jax.grad(loss)).lower(band(w)).compile().as_text()).total()

    small, large = gradient(6), gradient(9)
    assert large < 1.6 * small
    assert large < 2500


def spin_chain(spins):
    """The Heisenberg Hamiltonian: sums of Kronecker products, dense in small systems."""
    pauli = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]], complex)
    terms = []
    for i in range(spins - 1):
        for matrix in pauli:
            factors = [sa.eye(2, dtype=sa.complex128)] * spins
            factors[i] = factors[i + 1] = sa.asarray(matrix)
            terms.append(sa.Kronecker(*factors))
    return sa.Sum(*terms)


SMALL_RESULTS = {
    "real": (sa.real, lambda h: h.real),
    "product": (lambda h: h @ h, lambda h: h @ h),
    "power": (lambda h: sa.linalg.matrix_power(h, 2), lambda h: h @ h),
    "elementwise product": (lambda h: h * h, lambda h: h * h),
    "other product": (lambda h: h * (h + h.mT), lambda h: h * (h + h.T)),
    "norm": (sa.linalg.matrix_norm, np.linalg.norm),
    "deviation": (sa.std, np.std),
}


@pytest.mark.parametrize("name", SMALL_RESULTS)
def test_many_terms_are_added_before_they_are_multiplied(name):
    """If the result is dense: the products of all pairs of terms would take seconds to compile."""
    ours, numpys = SMALL_RESULTS[name]
    h = spin_chain(5)
    np.testing.assert_allclose(dense(ours(h)), numpys(dense(h)), atol=1e-12)

    def compiled_size(function):
        return instructions(jax.jit(lambda h: as_jax(function(h))).lower(h).compile().as_text()).total()

    assert compiled_size(ours) < 3 * compiled_size(lambda h: h.to_dense())
