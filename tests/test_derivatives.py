"""First and second derivatives of all solvers, factorisations and determinants, in every order, compiled and not."""

import inspect
import re

import derivative_cases
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
from derivative_cases import FORMS, MATRICES, case
from derivatives import derivatives, faults, generator
from support import as_jax

import structarrays as sa


@pytest.mark.slow
@pytest.mark.parametrize("matrix", [*MATRICES, *FORMS])
def test_compiled(matrix):
    """All functions of a matrix in one program, against differences of NumPy's and SciPy's values."""
    tested = case(matrix)
    everything = jax.jit(of_all(tested, derivatives))
    wrong = []
    for name, point in tested.points.items():
        wrong += faults(tested, name, everything(point, tested.directions[0]))
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("matrix", [*MATRICES, *FORMS])
def test_eager(matrix):
    """The same without a program around it, so that each call of a function is one of its own."""
    tested = case(matrix)
    wrong = faults(tested, "random", of_all(tested, derivatives)(tested.points["random"], tested.directions[0]))
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("matrix", [*MATRICES, *FORMS])
def test_mapped(matrix):
    """A stack of matrices, one for each point: `vmap` of all derivatives."""
    tested = case(matrix)
    points = np.stack(list(tested.points.values()))
    found = jax.jit(jax.vmap(of_all(tested, derivatives), (0, None)))(points, tested.directions[0])
    wrong = []
    for i, name in enumerate(tested.points):
        wrong += faults(tested, name, jax.tree.map(lambda x, i=i: x[i], found))
    assert not wrong, "\n".join(wrong)


def test_eigenvectors_of_general_matrices_have_no_derivative():
    with pytest.raises(NotImplementedError, match="eigenvectors"):
        jax.grad(lambda a: jnp.abs(as_jax(sa.linalg.eig(sa.asarray(a)).eigenvectors)).sum())(np.diag([1.0, 2.0]))


def of_all(tested, orders):
    """The derivatives of every function of a case, as a function of the point and a direction."""

    def everything(point, direction):
        return {key: orders(lambda p, key=key: tested.tested(key, p), point, direction) for key in tested.functions}

    return everything


# ---- nearly singular matrices ----------------------------------------------------------------------------------------


NEARLY_SINGULAR = {
    "Dense": (lambda a: sa.asarray(a), lambda e: e),
    "Dense definite": (lambda a: sa.assume(sa.asarray(a), "positive_definite"), lambda e: e + e.T),
    "Symmetric": (sa.Symmetric, lambda e: e + e.T),
    "tridiagonal": (lambda a: _bands(a, (-1, 0, 1)), lambda e: np.triu(np.tril(e, 1), -1)),
    "tridiagonal definite": (
        lambda a: sa.assume(_bands(a, (-1, 0, 1)), "positive_definite"),
        lambda e: np.triu(np.tril(e + e.T, 1), -1),
    ),
    "Banded": (lambda a: _bands(a, (-2, -1, 0, 2)), lambda e: np.triu(np.tril(e, 2), -2) - np.diag(np.diag(e, 1), 1)),
    "Banded definite": (
        lambda a: sa.assume(_bands(a, (-2, -1, 0, 1, 2)), "positive_definite"),
        lambda e: np.triu(np.tril(e + e.T, 2), -2),
    ),
    "Toeplitz": (lambda a: sa.Toeplitz(a[:, 0], a[0]), lambda e: scipy.linalg.toeplitz(e[:, 0], e[0])),
    "Circulant": (lambda a: sa.Circulant(a[:, 0]), lambda e: scipy.linalg.circulant(e[:, 0])),
}


def _bands(a, offsets):
    return sa.Banded([jnp.diagonal(a, k) for k in offsets], offsets)


@pytest.mark.costly
@pytest.mark.parametrize("structure", NEARLY_SINGULAR)
def test_of_nearly_singular_matrices(structure):
    """With one eigenvalue of 1e-6: as exact as the condition allows, against mpmath."""
    make, project = NEARLY_SINGULAR[structure]
    rng = generator(structure)
    n, small = 7, 1e-6  # of an odd number of eigenvalues one is real
    # A shift of the diagonal keeps all structures.
    a, e = project(rng.normal(size=(n, n))), project(rng.normal(size=(n, n)))
    eigenvalues = np.linalg.eigvals(a)
    if "definite" in structure:
        a = a + (small - eigenvalues.real.min()) * np.eye(n)
    else:
        real = eigenvalues[np.abs(eigenvalues.imag) < 1e-9].real
        a = a + (small - real[0]) * np.eye(n)
    b, w = rng.normal(size=(2, n))

    def solution(t):
        return jnp.vdot(w, as_jax(sa.linalg.solve(make(a + t * e), b)))

    def logarithm(t):
        return as_jax(sa.linalg.slogdet(make(a + t * e)).logabsdet)

    @jax.jit
    def everything(t):
        return [derivatives(f, t, 1.0) for f in (solution, logarithm)]

    with mpmath.workdps(50):
        exact, change = mpmath.matrix(a.tolist()), mpmath.matrix(e.tolist())
        inverse = exact**-1
        step = inverse * change
        x = inverse * mpmath.matrix(b.tolist())
        row = mpmath.matrix(w.tolist()).T
        wanted = [
            ((row * x)[0], -(row * step * x)[0], 2 * (row * step * step * x)[0]),
            (
                mpmath.log(abs(mpmath.det(exact))),
                sum(step[i, i] for i in range(n)),
                -sum((step * step)[i, i] for i in range(n)),
            ),
        ]
    tolerance = 200 * np.finfo(float).eps * np.linalg.cond(a)
    for found, (value, first, second) in zip(everything(0.0), wanted, strict=True):
        for order, number in found.items():
            expected = float(value if order == "value" else second if " over " in order else first)
            assert abs(number - expected) <= tolerance * abs(expected), (order, number, expected)


# ---- JAX's functions of all tangents at once ---------------------------------------------------------------------------

SIDE = 36  # more than the rows up to which sums are solved by their dense form
LOW = sa.LowRank(np.ones((SIDE, 1)), np.linspace(0.5, 1, SIDE)[:, None])
BASES = {
    "Diagonal": lambda: sa.Diagonal(np.linspace(2, 3, SIDE)),
    "Tridiagonal": lambda: sa.tridiagonal(np.ones(SIDE - 1), np.full(SIDE, 4.0), np.ones(SIDE - 1)),
    "Banded": lambda: sa.Banded([np.ones(SIDE - 2), np.full(SIDE, 4.0), np.ones(SIDE - 2)], (-2, 0, 2)),
    "PeriodicBanded": lambda: sa.PeriodicBanded([np.full(SIDE, 4.0), np.ones(SIDE)], (0, 1)),
    "Sparse": lambda: sa.Sparse.from_dense(np.eye(SIDE) * 3 + np.eye(SIDE, k=5)),
    "Kronecker": lambda: sa.Kronecker(np.eye(6) * 3 + 1, np.eye(6) * 2 + 0.5),
    "BlockDiagonal": lambda: sa.BlockDiagonal([np.eye(6) * 3 + 0.5] * 6),
    "BlockBanded": lambda: sa.block_tridiagonal([np.full((6, 6), 0.1)] * 5, [np.eye(6) * 4] * 6, [np.eye(6)] * 5),
    "Triangular": lambda: sa.Triangular(np.tril(np.full((SIDE, SIDE), 0.1)) + 2 * np.eye(SIDE)),
    "Circulant": lambda: sa.Circulant(np.r_[4.0, 1.0, np.zeros(SIDE - 2)]),
    "Toeplitz": lambda: sa.Toeplitz(np.r_[4.0, 1.0, np.zeros(SIDE - 2)]),
    "Symmetric": lambda: sa.Symmetric(4 * np.eye(SIDE) + 0.01),
}


@pytest.mark.costly
@pytest.mark.parametrize("name", BASES)
def test_jacfwd_and_hessian_of_sums(name):
    """`jax.vmap` maps the flags of `jax.lax.custom_linear_solve`. `jax.jacfwd` refuses values that depend on mapped ones."""
    t, ones = 2.0, np.ones(SIDE)
    for x in (BASES[name](), BASES[name]() + LOW):
        dense = np.asarray(x.to_dense())
        slope, curvature = -SIDE / t**2, 2 * np.linalg.solve(dense, ones).sum() / t**3

        def logarithm(t, x=x):
            return sa.linalg.slogdet(x * t).logabsdet.to_jax()

        def solution(t, x=x):
            return jnp.sum(as_jax(sa.linalg.solve(x * t, ones)))

        np.testing.assert_allclose(jax.jacfwd(logarithm)(t), SIDE / t, rtol=1e-9)
        np.testing.assert_allclose(jax.jacfwd(solution)(t), -curvature * t / 2, rtol=1e-9)
        np.testing.assert_allclose(jax.jit(jax.hessian(logarithm))(t), slope, rtol=1e-9)
        np.testing.assert_allclose(jax.jit(jax.hessian(solution))(t), curvature, rtol=1e-9)


# ---- completeness ----------------------------------------------------------------------------------------------------

# No solvers or factorisations: the equivalence tests have their first derivatives. `matrix_rank` is an integer.
OTHERS = {
    "cross",
    "register_sparse_solver",
    "use_sparse_solver",
    "diagonal",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
}


def test_every_solver_and_factorisation_is_here():
    text = inspect.getsource(derivative_cases) + inspect.getsource(
        test_eigenvectors_of_general_matrices_have_no_derivative
    )
    named = {name for name in sa.linalg.__all__ if re.search(rf"\blinalg\.{name}\(", text)}
    assert set(sa.linalg.__all__) - named == OTHERS
    used = {key for _, keys in MATRICES.values() for key in keys}
    assert used == set(derivative_cases.FUNCTIONS)
