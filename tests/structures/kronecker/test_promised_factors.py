"""Kronecker products that are promised to be Hermitian as a whole: their factors are, up to numbers of magnitude 1."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
from support import as_jax

import structarrays as sa

CASES = {
    "symmetric": ("float64", (1, 1), 0.3),
    "symmetric and definite": ("float64", (1, 1), 300.0),
    "antisymmetric": ("float64", (1j, 1j), 0.3),
    "antisymmetric and definite": ("float64", (1j, 1j), 300.0),
    "three factors, two of them antisymmetric": ("float64", (1j, 1, -1j), 3.0),
    "numbers i and i": ("complex128", (1j, 1j), 0.7),
    "other numbers": ("complex128", (np.exp(0.3j), np.exp(-0.3j)), 0.7),
    "numbers of product -1, definite": ("complex128", (np.exp(0.3j), -np.exp(-0.3j)), 500.0),
}


def hermitian_times(number, n, dtype, rng):
    """A Hermitian matrix times a number of magnitude 1; the number i times an imaginary antisymmetric matrix is real."""
    x = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if dtype == "complex128" else 0)
    if dtype == "float64":
        return x + x.T if number == 1 else x - x.T
    return number * (x + x.conj().T)


def kron(factors):
    whole = factors[0]
    for f in factors[1:]:
        whole = np.kron(whole, f)
    return whole


@pytest.fixture(params=CASES)
def case(request, rng):
    dtype, numbers, shift = CASES[request.param]
    factors = [hermitian_times(p, n, dtype, rng) for p, n in zip(numbers, (3, 4, 2), strict=False)]
    what = "positive_definite" if "definite" in request.param else "hermitian"
    dense = kron(factors)
    dense = dense + shift * np.eye(len(dense))
    return factors, shift, what, dense


def whole(factors, shift, what):
    product = sa.Kronecker(*factors)
    return sa.assume(product + shift * sa.eye(product.shape[-1], dtype=product.dtype), what)


@pytest.mark.parametrize("compiled", [False, True])
def test_systems_determinants_and_eigenvalues(case, compiled, rng):
    factors, shift, what, dense = case
    run = jax.jit if compiled else lambda f: f
    x, b = whole(factors, shift, what), (rng.normal(size=(len(dense), 2)) + 0 * dense[:1, :1])
    with sa.densify("error"):
        np.testing.assert_allclose(as_jax(run(sa.linalg.solve)(x, b)), np.linalg.solve(dense, b), rtol=1e-9, atol=1e-11)
        for mine, numpys in zip(run(sa.linalg.slogdet)(x), np.linalg.slogdet(dense), strict=True):
            np.testing.assert_allclose(as_jax(mine), numpys, rtol=1e-11)
        expected = np.linalg.eigvalsh(dense)
        np.testing.assert_allclose(as_jax(run(sa.linalg.eigvalsh)(x)), expected, atol=1e-11)
        product = as_jax(run(sa.linalg.eigvalsh)(sa.Kronecker(*factors)))  # without a promise
        np.testing.assert_allclose(product, expected - shift, atol=1e-11)


def test_gradients(case, rng):
    factors, shift, what, dense = case
    b = jnp.asarray(rng.normal(size=len(dense)) + 0 * dense[0, 0])

    def value(solve, slogdet, matrix):
        return lambda factors, shift: (
            slogdet(matrix(factors, shift))[1] + jnp.vdot(b, solve(matrix(factors, shift), b)).real
        )

    def dense_of(factors, shift):
        product = factors[0]
        for f in factors[1:]:
            product = jnp.kron(product, f)
        return product + shift * jnp.eye(len(product))

    mine = value(sa.linalg.solve, lambda x: [as_jax(v) for v in sa.linalg.slogdet(x)], lambda *args: whole(*args, what))
    arguments = tuple(map(jnp.asarray, factors)), shift
    found = jax.grad(mine, (0, 1))(*arguments)
    expected = jax.grad(value(jnp.linalg.solve, jnp.linalg.slogdet, dense_of), (0, 1))(*arguments)
    for f, e in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(f, e, atol=1e-8 * np.abs(e).max())


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_scaled_factors(scale, rng):
    """The squares of elements neither overflow nor underflow."""
    factors = [hermitian_times(1j, 3, "float64", rng) * scale, hermitian_times(1j, 4, "float64", rng) / scale]
    dense = kron(factors) + 0.3 * np.eye(12)
    x = whole(factors, 0.3, "symmetric")
    np.testing.assert_allclose(as_jax(sa.linalg.solve(x, np.ones(12))), np.linalg.solve(dense, np.ones(12)), rtol=1e-9)


def smooth(n):
    return np.exp(-0.5 * (0.1 * np.subtract.outer(np.arange(n), np.arange(n))) ** 2)


def graded(n):
    scales = 10.0 ** -np.arange(n)
    return scales[:, None] * (smooth(n) + np.eye(n)) * scales


HARD = {
    "smooth": smooth,
    "Hilbert": scipy.linalg.hilbert,
    "constant": lambda n: np.ones((n, n)),
    "alternating": lambda n: np.outer((-1.0) ** np.arange(n), (-1.0) ** np.arange(n)),
    "unit": np.eye,
    "graded": graded,
}


def by_mpmath(factors, shift):
    """The log-determinant of ``kron(factors) + shift I``, and its derivative with respect to the shift, in 60 digits."""
    with mpmath.workdps(60):
        a, b = (mpmath.matrix(f.tolist()) for f in factors)
        m, n = a.rows, b.rows
        matrix = mpmath.matrix(m * n, m * n)
        for i in range(m * n):
            for j in range(m * n):
                matrix[i, j] = a[i // n, j // n] * b[i % n, j % n] + (shift if i == j else 0)
        inverse = matrix**-1
        return float(mpmath.log(mpmath.det(matrix))), float(sum(inverse[i, i] for i in range(m * n)))


@pytest.mark.parametrize("what", ["symmetric", "positive_definite"])
@pytest.mark.parametrize("kinds", [("smooth", "Hilbert"), ("constant", "graded"), ("alternating", "unit")], ids=str)
@pytest.mark.parametrize("shift", [1e-2, 1e-8])
def test_nearly_singular_factors(kinds, shift, what):
    """Kernels of Gaussian processes, and the like: the shift alone makes the sum regular."""
    factors = [HARD[kind](n) for kind, n in zip(kinds, (4, 5), strict=True)]
    dense = kron(factors) + shift * np.eye(20)
    logdet, derivative = by_mpmath(factors, shift)

    def value(shift):
        return as_jax(sa.linalg.slogdet(whole(factors, shift, what)).logabsdet)

    condition = np.linalg.cond(dense)
    for run in (lambda f: f, jax.jit):
        assert abs(float(run(value)(shift)) - logdet) < 1e-14 * condition + 1e-13 * abs(logdet)
        assert float(run(jax.grad(value))(shift)) == pytest.approx(derivative, rel=1e-14 * condition + 1e-12)
        for b in (np.ones(20), (-1.0) ** np.arange(20), np.linspace(0, 1, 20), np.eye(20)[7]):
            x = np.asarray(as_jax(run(sa.linalg.solve)(whole(factors, shift, what), b)))
            scale = np.abs(dense).sum(axis=1).max() * np.abs(x).max() + 1
            assert np.abs(dense @ x - b).max() < 1e-14 * scale


def test_a_zero_factor(rng):
    """The other factor may be any matrix, and the derivatives depend on it."""
    zero, other = jnp.zeros((3, 3)), rng.normal(size=(4, 4))

    def value(a):
        return as_jax(sa.linalg.slogdet(whole([a, other], 0.3, "symmetric")).logabsdet)

    assert float(value(zero)) == pytest.approx(12 * np.log(0.3))
    np.testing.assert_allclose(jax.grad(value)(zero), np.eye(3) * np.trace(other) / 0.3, atol=1e-12)


def test_general_factors_have_no_such_eigenvalues(rng):
    """The Hermitian part of a product of general matrices is no product."""
    x = sa.Kronecker(rng.normal(size=(3, 3)), rng.normal(size=(4, 4)))
    assert np.isnan(as_jax(sa.linalg.eigvalsh(x))).all()


# ---- two products ------------------------------------------------------------------------------------------------------

PAIRS = {
    "symmetric": ("float64", (1, 1), 1.0),
    "symmetric and definite": ("float64", (1, 1), 100.0),
    "antisymmetric": ("float64", (1j, 1j), 1.0),
    "antisymmetric and definite": ("float64", (1j, 1j), 100.0),
    "other numbers": ("complex128", (np.exp(0.3j), np.exp(-0.3j)), 1.0),
}


@pytest.mark.parametrize("across", [False, True], ids=["one definite product", "a definite factor of each product"])
@pytest.mark.parametrize("kind", PAIRS)
def test_pairs_of_products(kind, across, rng):
    """A sum of two products, with a definite factor on each axis, that is promised to be Hermitian as a whole."""
    dtype, numbers, size = PAIRS[kind]
    if across:  # then each factor is Hermitian
        numbers = (1, 1)
    first = [hermitian_times(p, n, dtype, rng) for p, n in zip(numbers, (3, 4), strict=True)]
    second = [x @ x.conj().T + size * np.eye(len(x)) for x in map(np.copy, first)]
    if across:
        first[1], second[1] = second[1], first[1]
        first[0] = first[0] + 100 * np.eye(3) * ("definite" in kind)
        second[1] = second[1] + 100 * np.eye(4) * ("definite" in kind)
    dense = np.kron(*first) + np.kron(*second)
    b = rng.normal(size=12) + 0 * dense[0]

    def matrix(first, second):
        definite = [second[0], first[1] if across else second[1]]
        definite = [sa.assume(sa.asarray(x), "positive_definite") for x in definite]
        terms = ([first[0], definite[1]], [definite[0], second[1]]) if across else (first, definite)
        total = sa.Kronecker(*terms[0]) + sa.Kronecker(*terms[1])
        return sa.assume(total, "positive_definite" if "definite" in kind else "hermitian")

    x = matrix(first, second)
    with sa.densify("error"):
        for run in (lambda f: f, jax.jit):
            np.testing.assert_allclose(as_jax(run(sa.linalg.solve)(x, b)), np.linalg.solve(dense, b), rtol=1e-9)
            for mine, numpys in zip(run(sa.linalg.slogdet)(x), np.linalg.slogdet(dense), strict=True):
                np.testing.assert_allclose(as_jax(mine), numpys, rtol=1e-10)
    mine = jax.grad(lambda a: as_jax(sa.linalg.slogdet(matrix([a, first[1]], second)).logabsdet))(jnp.asarray(first[0]))
    expected = jax.grad(
        lambda a: jnp.linalg.slogdet(jnp.kron(a, first[1]) + jnp.kron(second[0], jnp.asarray(second[1])))[1]
    )(jnp.asarray(first[0]))
    np.testing.assert_allclose(mine, expected, atol=1e-9 * np.abs(expected).max())
