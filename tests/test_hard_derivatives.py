"""First and second derivatives of solutions and determinants of the matrices of `hard_inputs`, next to those that LAPACK's inverses give.

The oracle is the formulas for derivatives of inverses and determinants, with an inverse by elimination in extended precision
(`numpy.longdouble`), of eleven bits more than double precision.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivatives import derivatives
from hard_inputs import MATRICES
from support import as_jax

import structarrays as sa

NO_DIGITS = {
    # The derivatives by the parameters leave the range of double precision.
    "Diagonal: graded from 1e-300 to 1e300",
    "Banded: tiny",
    "Banded: huge",
    # LAPACK's inverse has no correct digits.
    "Symmetric: Hilbert's",
    "Kronecker: Hilbert's",
}
NOT_QUADRATIC = {"Householder: random reflectors", "Inverse: Dirichlet"}
"""Not quadratic functions of their parameters, as `Line.expected` requires; `derivative_cases` has such matrices."""
CONSTANT = {"Permutation: random", "Fourier: unitary"}
"""Without parameters that have derivatives."""
SLOW = {"Sum: smooth kernel + wide", "Sum: spline penalty + polynomials"}
"""Their programs take minutes to compile."""

NAMES = [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
    for name in MATRICES
    if name not in NO_DIGITS | NOT_QUADRATIC | CONSTANT
]
DEFINITE = [
    "Banded: Dirichlet",
    "Banded: Neumann + 1e-10",
    "Banded: spline penalty + 1e-9",
    "Toeplitz: squared exponential + 1e-2",
    "Toeplitz: squared exponential + 1e-9",
    "Toeplitz: Matérn + 1e-6",
    "Toeplitz: constant + 1e-6",
    "Toeplitz: alternating + 1e-6",
    "Symmetric: smooth kernel",
    "Hermitian: smooth kernel",
    "BlockDiagonal: nearly singular blocks",
    "Kronecker: smooth kernels",
    "KroneckerSum: Dirichlet",
    pytest.param("Sum: spline penalty + polynomials", marks=pytest.mark.slow),
    "Sum: zeros on a diagonal",
]
"""Those that are positive definite and remain Hermitian where equal parameters have equal derivatives."""

WAYS = {"eager": lambda f: f, "compiled": jax.jit, "mapped": lambda f: jax.jit(jax.vmap(f))}

EPS = np.finfo(float).eps
DIRECTIONS = 3
FACTOR = 100
"""How many times the error is allowed that LAPACK's inverse has, also after a rounding error in each entry, or that of a rounding error
of each term."""

LOOSE = {"Product: smooth kernel and its inverse": 10, "Sum: random weights + constants": 30}
"""Further factors. Errors of a `Product` are relative to the norms of its factors. The base of Woodbury's formula may be worse conditioned
than the matrix, which second derivatives show more than others do.
"""


def inverse(a):
    """By Gauss and Jordan's elimination with partial pivoting, in extended precision."""
    n = len(a)
    a = np.concatenate([a, np.eye(n)], axis=1).astype(np.clongdouble if np.iscomplexobj(a) else np.longdouble)
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        a[[k, p]] = a[[p, k]]
        a[k] /= a[k, k]
        factors = a[:, k].copy()
        factors[k] = 0
        a -= np.outer(factors, a[k])
    return a[:, n:]


def formulas(x, first, second, left, right):
    """Derivatives of ``sum(left * solve(A, right))`` and of ``log(abs(det(A)))``, by the inverse of A and its derivatives."""
    step = x @ first
    row, column = left.T @ x, x @ right
    change, bend = first @ column, second @ column
    solution = [-np.sum(row.T * change), np.sum(row.T * (2 * first @ (x @ change) - bend))]
    logarithm = [np.trace(step), np.sum(x * second.T) - np.sum(step * step.T)]
    return np.array([*solution, *logarithm]).real


def sizes(x, first, second, left, right):
    """The same with the magnitudes of all terms."""
    x, first, second, left, right = (np.abs(part).astype(float) for part in (x, first, second, left, right))
    step = x @ first
    row, column = left.T @ x, x @ right
    change, bend = first @ column, second @ column
    solution = [np.sum(row.T * change), np.sum(row.T * (2 * first @ (x @ change) + bend))]
    logarithm = [np.trace(step), np.sum(x * second.T) + np.sum(step * step.T)]
    return np.array([*solution, *logarithm])


class Line:
    """A matrix whose parameters move along lines, and the derivatives of functions of it.

    Parameters
    ----------
    name : str
        In `hard_inputs.MATRICES`.
    rng : numpy.random.Generator
    definite : bool
        Whether the matrix is assumed to be positive definite.
    """

    def __init__(self, name, rng, definite=False):
        self.factor = FACTOR * LOOSE.get(name, 1)
        self.rng, self.matrix = rng, MATRICES[name](rng)
        if definite:
            self.matrix = sa.assume(self.matrix, "positive_definite")
        leaves, self.tree = jax.tree.flatten(self.matrix)
        self.leaves = [np.asarray(leaf) for leaf in leaves]
        self.directions = []
        for i, leaf in enumerate(self.leaves):
            same = [j for j in range(i) if definite and np.array_equal(self.leaves[j], leaf)]
            self.directions.append(self.directions[same[0]] if same else self._directions(leaf, rng, "graded" in name))
        n = self.matrix.shape[-1]
        self.left, self.right = rng.normal(size=(2, n, 2))

    @staticmethod
    def _directions(leaf, rng, relative):
        shape = (DIRECTIONS, *leaf.shape)
        if leaf.dtype.kind not in "fc":
            return np.zeros(shape)
        e = rng.uniform(-1, 1, shape) * (np.abs(leaf) if relative else np.max(np.abs(leaf), initial=0))
        if leaf.ndim > 1 and np.array_equal(leaf, leaf.swapaxes(-1, -2)):
            e = (e + e.swapaxes(-1, -2)) / 2
        return e

    def at(self, t, directions):
        """The matrix at a place on one of the lines."""
        pairs = zip(self.leaves, directions, strict=True)
        return jax.tree.unflatten(self.tree, [leaf + t * d if leaf.dtype.kind in "fc" else leaf for leaf, d in pairs])

    def found(self, directions):
        """All derivatives by the library along one of the lines."""

        def solution(t):
            return jnp.sum(self.left * as_jax(sa.linalg.solve(self.at(t, directions), self.right))).real

        def logarithm(t):
            return as_jax(sa.linalg.slogdet(self.at(t, directions)).logabsdet)

        return [derivatives(f, 0.0, 1.0) for f in (solution, logarithm)]

    def expected(self):
        """The derivatives along all lines, (lines, 4), and how far others may be from them."""
        base = np.asarray(self.matrix)
        rounding = self.rng.uniform(-EPS, EPS, (2, *base.shape)) * [[[0]], [[1]]]
        exact, rounded = inverse(base), np.linalg.inv(base * (1 + rounding))
        results, relative, terms = [], [], []
        for i in range(DIRECTIONS):
            ahead, behind = (np.asarray(self.at(t, [d[i] for d in self.directions])) for t in (1.0, -1.0))
            # All matrices are quadratic functions of their parameters.
            arguments = (ahead - behind) / 2, ahead - 2 * base + behind, self.left, self.right
            results.append(formulas(exact, *arguments))
            terms.append(sizes(exact, *arguments))
            relative += [np.abs(formulas(x, *arguments) - results[-1]) / terms[-1] for x in rounded]
        return np.array(results), self.factor * np.maximum(np.max(relative, axis=0), EPS) * np.array(terms)


def check(line, way):
    """Compare the derivatives in all orders along one line, or along all if they are mapped."""
    expected, allowed = line.expected()
    assert np.all(np.max(allowed, axis=0) < np.max(np.abs(expected), axis=0))  # zero is no correct answer
    if way != "mapped":
        expected, allowed = expected[:1], allowed[:1]
    found = WAYS[way](line.found)([d if way == "mapped" else d[0] for d in line.directions])
    wrong = []
    for k, (function, orders) in enumerate(zip(("solution", "logarithm"), found, strict=True)):
        del orders["value"]
        for order, numbers in orders.items():
            i = 2 * k + (" over " in order)
            if not np.all(np.abs(np.asarray(numbers) - expected[:, i]) <= allowed[:, i]):  # so is NaN
                wrong.append(f"{function}, {order}: {numbers} instead of {expected[:, i]}, allowed {allowed[:, i]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.costly
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", ["compiled", "mapped"])
def test_compiled(name, way, rng):
    check(Line(name, rng), way)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("name", NAMES)
def test_eager(name, rng):
    check(Line(name, rng), "eager")


@pytest.mark.costly
@pytest.mark.parametrize("name", DEFINITE)
@pytest.mark.parametrize("way", ["compiled", "mapped"])
def test_definite(name, way, rng):
    """The matrices that are assumed to be positive definite."""
    check(Line(name, rng, definite=True), way)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("name", DEFINITE)
def test_definite_eager(name, rng):
    check(Line(name, rng, definite=True), "eager")
