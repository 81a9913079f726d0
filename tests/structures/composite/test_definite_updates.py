"""Determinants of Hermitian low-rank updates of diagonal matrices, against mpmath."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from support import as_jax

import structarrays as sa

N = 40  # the dense form serves up to 32 rows


def smooth(rng):
    x = np.linspace(0, 1, N)
    return np.exp(-0.5 * ((x[:, None] - np.linspace(0, 1, 4)) / 0.8) ** 2), np.full(N, 1e-4)


def cancelling(rng):
    """C has 16 digits, and its determinant none."""
    u = np.zeros((N, 2))
    u[0], u[1] = 1e8, [1, -1]
    return u, np.ones(N)


CASES = {
    "random": lambda rng: (rng.normal(size=(N, 3)), rng.uniform(0.5, 1, N)),
    "smooth": smooth,
    "constant": lambda rng: (np.ones((N, 2)), np.full(N, 1e-3)),
    "alternating": lambda rng: ((-1.0) ** np.arange(N)[:, None] * np.ones(2), np.full(N, 1e3)),
    "unit": lambda rng: (np.eye(N, 3), np.ones(N)),
    "cancelling": cancelling,
    "graded columns": lambda rng: (rng.normal(size=(N, 3)) * [1e-80, 1.0, 1e80], np.ones(N)),
    "graded diagonal": lambda rng: (rng.normal(size=(N, 3)), 10.0 ** np.linspace(-12, 12, N)),
    "tiny": lambda rng: (1e-100 * rng.normal(size=(N, 3)), np.full(N, 1e-200)),
    "huge": lambda rng: (1e100 * rng.normal(size=(N, 3)), np.full(N, 1e200)),
    "squares out of range": lambda rng: (1e160 * rng.normal(size=(N, 3)), np.ones(N)),
    "zeros in the diagonal": lambda rng: (rng.normal(size=(N, 3)), np.where(np.arange(N) < 2, 0.0, 1.0)),
    "negative in the diagonal": lambda rng: (rng.normal(size=(N, 3)), np.where(np.arange(N) < 2, -2.0, 1.0)),
    "no update": lambda rng: (np.zeros((N, 2)), np.ones(N)),
}


def by_mpmath(u, v, d):
    """The logarithm of the determinant's magnitude, and its derivative with respect to the diagonal, in 400 digits."""
    with mpmath.workdps(400):
        matrix = mpmath.matrix(u.tolist()) * mpmath.matrix(v.T.tolist())
        for i, value in enumerate(d):
            matrix[i, i] += mpmath.mpmathify(complex(value))
        determinant = mpmath.det(matrix)
        inverse = matrix**-1
        derivative = [complex(inverse[i, i]).real for i in range(len(d))]
        return float(mpmath.log(abs(determinant))), np.array(derivative)


def matrix(u, v, d):
    return sa.LowRank(u, v) + sa.Diagonal(d)


def logdet(u, v, d):
    return as_jax(sa.linalg.slogdet(matrix(u, v, d)).logabsdet)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_hard_inputs(case, rng):
    """Values have more than half of the digits, whatever the condition number is."""
    u, d = CASES[case](rng)
    expected, derivative = by_mpmath(u, u, d)
    allowed = 1e-9 + 1e-13 * abs(expected)
    for run in (lambda f: f, jax.jit):
        found = float(run(logdet)(u, u, d))
        assert abs(found - expected) < allowed
        assert float(run(lambda u, d: logdet(u, u, d))(u, d)) == pytest.approx(found, abs=allowed)
    gradient = np.asarray(jax.jit(jax.grad(logdet, 2))(u, u, jnp.asarray(d)))
    np.testing.assert_allclose(gradient, derivative, rtol=1e-6, atol=1e-6 * np.abs(derivative).max())


@pytest.mark.slow
def test_all_derivatives(rng):
    u, d = map(jnp.asarray, CASES["random"](rng))

    def dense(u, d):
        return jnp.linalg.slogdet(u @ u.T + jnp.diag(d))[1]

    for found, expected in (
        (jax.grad(lambda u, d: logdet(u, u, d), (0, 1))(u, d), jax.grad(dense, (0, 1))(u, d)),
        (jax.jvp(lambda u, d: logdet(u, u, d), (u, d), (u, d)), jax.jvp(dense, (u, d), (u, d))),
        (jax.hessian(lambda d: logdet(u, u, d))(d), jax.hessian(dense, 1)(u, d)),
    ):
        for f, e in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(f, e, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1e8], ids=["by C", "by rows"])
def test_complex_derivatives(scale, rng):
    """A single large row, for which LAPACK's inverse has all digits."""
    u, d = rng.normal(size=(N, 3)) + 1j * rng.normal(size=(N, 3)), rng.uniform(0.5, 1, N)
    u[0] *= scale
    inverse = np.linalg.inv(u @ u.conj().T + np.diag(d))
    of_u, of_d = jax.grad(lambda u, d: logdet(u, u.conj(), d.astype(u.dtype)), (0, 1))(jnp.asarray(u), jnp.asarray(d))
    expected = 2 * (inverse @ u).conj()
    np.testing.assert_allclose(of_u, expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(of_d, np.diagonal(inverse).real, atol=1e-11)


@pytest.mark.slow
def test_stacks_of_all_cases(rng):
    """Some matrices of a stack need estimates, and change their base; one is no Hermitian update."""
    cases = [
        (u, u, d) for u, d in (CASES[name](rng) for name in ("random", "graded diagonal", "zeros in the diagonal"))
    ]
    cases.append((rng.normal(size=(N, 3)), rng.normal(size=(N, 3)), np.ones(N)))
    us, vs, ds = (np.stack(parts) for parts in zip(*cases, strict=True))
    expected, derivatives = map(np.stack, zip(*(by_mpmath(*case) for case in cases), strict=True))
    gradient = jax.jit(jax.grad(lambda d: jnp.sum(logdet(us, vs, d))))(jnp.asarray(ds))
    np.testing.assert_allclose(gradient, derivatives, atol=1e-9 * np.abs(derivatives).max())
    for run in (lambda f: f, jax.vmap, lambda f: jax.jit(jax.vmap(f))):
        np.testing.assert_allclose(run(logdet)(us, vs, ds), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_other_types(dtype, rng):
    u = rng.normal(size=(N, 3)) + 1j * rng.normal(size=(N, 3)) * (dtype[0] == "c")
    u, d = (u if dtype[0] == "c" else u.real).astype(dtype), rng.uniform(0.5, 1, N).astype(dtype)
    for v in (u.conj(), u):  # the second is not Hermitian if u is complex
        expected, _ = by_mpmath(u, v, d)
        assert float(logdet(u, v, d)) == pytest.approx(expected, rel=1e-5 if dtype[-2:] in ("32", "64") else 1e-12)
        sign = np.linalg.slogdet((u @ v.T + np.diag(d)).astype("complex128"))[0]
        np.testing.assert_allclose(complex(as_jax(sa.linalg.slogdet(matrix(u, v, d)).sign)), sign, atol=1e-5)
