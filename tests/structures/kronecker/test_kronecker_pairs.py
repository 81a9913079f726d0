"""Sums of two Kronecker products with a definite factor on each axis, compared with NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa


def definite(rng, n, dtype=float):
    x = rng.standard_normal((n, n)).astype(dtype)
    if dtype is complex:
        x += 1j * rng.standard_normal((n, n))
    return x @ x.conj().T + 0.1 * np.eye(n)


def smooth(n):
    """A squared-exponential kernel, singular in floating-point numbers."""
    x = np.linspace(0, 1, n)
    return np.exp(-20 * (x[:, None] - x) ** 2)


def pairs(rng, t=6, m=9):
    """For each name the sum, and the two factors of both terms as NumPy arrays."""
    a, b, kernel = definite(rng, t), definite(rng, m), smooth(m)
    general = rng.standard_normal((t, t))
    noise, weights = rng.uniform(0.1, 1, t), rng.uniform(0.5, 2, m)
    h, g = definite(rng, t, complex), definite(rng, m, complex)
    mass = 4 * np.eye(m) + np.eye(m, k=1) + np.eye(m, k=-1)
    stiffness = 2 * np.eye(m) - np.eye(m, k=1) - np.eye(m, k=-1)
    ones, twos = np.ones(m - 1), 2 * np.ones(m)
    symmetric, positive = (lambda x, kind=kind: sa.assume(x, kind) for kind in ("symmetric", "positive_definite"))
    stiff, heavy = sa.tridiagonal(-ones, twos, -ones), sa.tridiagonal(ones, 2 * twos, ones)
    of_noise, eye = sa.Diagonal(noise), sa.eye(m)
    return {
        "noise of each task": (
            sa.Kronecker(symmetric(a), sa.Symmetric(kernel)) + sa.Kronecker(of_noise, eye),
            [(a, kernel), (np.diag(noise), np.eye(m))],
        ),
        "noise first": (
            sa.Kronecker(of_noise, sa.Diagonal(weights)) + sa.Kronecker(sa.Symmetric(a), symmetric(b)),
            [(np.diag(noise), np.diag(weights)), (a, b)],
        ),
        "dense noise": (
            sa.Kronecker(symmetric(a), symmetric(kernel)) + sa.Kronecker(positive(definite(rng, t) + a), positive(b)),
            None,
        ),
        "mass matrices": (
            sa.Kronecker(symmetric(stiff), positive(heavy)) + sa.Kronecker(positive(heavy), symmetric(stiff)),
            [(stiffness, mass), (mass, stiffness)],
        ),
        "one diagonal in each term": (
            sa.Kronecker(symmetric(a), sa.Diagonal(weights)) + sa.Kronecker(of_noise, symmetric(b)),
            [(a, np.diag(weights)), (np.diag(noise), b)],
        ),
        "difference": (
            sa.Kronecker(symmetric(a), sa.Symmetric(kernel)) - sa.Kronecker(of_noise, eye),
            [(a, kernel), (-np.diag(noise), np.eye(m))],
        ),
        "difference, one diagonal in each term": (
            sa.Kronecker(symmetric(a), sa.Diagonal(-weights)) + sa.Kronecker(of_noise, symmetric(b)),
            [(a, np.diag(-weights)), (np.diag(noise), b)],
        ),
        "negative factors": (
            sa.Kronecker(sa.Hermitian(h), sa.assume(g, "hermitian")) + sa.Kronecker(-of_noise, -3 * eye),
            [(h, g), (np.diag(noise), 3 * np.eye(m))],
        ),
        "three factors": (
            sa.Kronecker(symmetric(a), sa.Symmetric(b), sa.Diagonal([1.0, 3.0]))
            + sa.Kronecker(of_noise, 2 * eye, sa.Diagonal([2.0, 0.5])),
            [(a, b, np.diag([1.0, 3.0])), (np.diag(noise), 2 * np.eye(m), np.diag([2.0, 0.5]))],
        ),
        "complex": (
            sa.Kronecker(sa.Hermitian(h), sa.assume(g, "hermitian")) + sa.Kronecker(of_noise, positive(g)),
            [(h, g), (np.diag(noise), g)],
        ),
        "general": (
            sa.Kronecker(general, kernel) + sa.Kronecker(of_noise, eye),
            [(general, kernel), (np.diag(noise), np.eye(m))],
        ),
        "general, one in each term": (
            sa.Kronecker(general, sa.Diagonal(weights)) + sa.Kronecker(of_noise, b),
            [(general, np.diag(weights)), (np.diag(noise), b)],
        ),
    }


def whole(factors):
    def kron(parts):
        first, *others = parts
        return np.kron(first, kron(others)) if others else first

    return sum(kron(parts) for parts in factors)


NAMES = list(pairs(np.random.default_rng(0)))


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("name", NAMES)
def test_systems_and_determinants(name, rng):
    x, factors = pairs(rng)[name]
    dense = np.asarray(x.to_dense())
    if factors is not None:
        np.testing.assert_allclose(dense, whole(factors), rtol=1e-14)
    b = rng.standard_normal((len(dense), 3))
    size = np.abs(dense).sum(axis=1).max()
    want = np.linalg.slogdet(dense)
    with sa.densify("error"):
        for solve, slogdet in (
            (sa.linalg.solve, sa.linalg.slogdet),
            map(jax.jit, (sa.linalg.solve, sa.linalg.slogdet)),
        ):
            for matrix, known in ((x, dense), (x.mT, dense.T)):
                solution = np.asarray(solve(matrix, b))
                error = np.abs(known @ solution - b).max() / (size * np.abs(solution).max())
                assert error < 8 * np.finfo(float).eps
            np.testing.assert_allclose(np.asarray(solve(x, b[:, 0])), solve(x, b)[:, 0], rtol=1e-9, atol=1e-11)
            sign, logabsdet = slogdet(x)
            np.testing.assert_allclose(sign, want.sign, rtol=1e-12)
            np.testing.assert_allclose(logabsdet, want.logabsdet, rtol=1e-11)
    np.testing.assert_allclose(sa.linalg.det(x), np.linalg.det(dense), rtol=1e-9)
    np.testing.assert_allclose(sa.linalg.inv(x) @ b, np.linalg.solve(dense, b), rtol=1e-8, atol=1e-10)


@pytest.mark.costly
@pytest.mark.parametrize("noise", [(1, 1, -1, 1), (1, -1, -1, 1), (1, 0, 1, 1)])
@pytest.mark.parametrize("dtype", [float, complex])
def test_indefinite_noise(noise, dtype, rng):
    """Two negative values leave a positive determinant; the dense form decides, or the result is NaN."""
    a, b = definite(rng, 4, dtype), definite(rng, 7, dtype)
    x = sa.Kronecker(sa.assume(a, "hermitian"), sa.assume(b, "hermitian")) + sa.Kronecker(
        sa.Diagonal(np.array(noise, float)), sa.eye(7)
    )
    dense = np.kron(a, b) + np.kron(np.diag(noise), np.eye(7))
    right = rng.standard_normal(28)
    for solve, slogdet in ((sa.linalg.solve, sa.linalg.slogdet), map(jax.jit, (sa.linalg.solve, sa.linalg.slogdet))):
        np.testing.assert_allclose(solve(x, right), np.linalg.solve(dense, right), rtol=1e-9)
        np.testing.assert_allclose(slogdet(x)[1], np.linalg.slogdet(dense)[1], rtol=1e-11)
    with sa.densify("error"):
        assert np.all(np.isnan(jax.jit(sa.linalg.solve)(x, right)))
        assert np.isnan(jax.jit(sa.linalg.slogdet)(x)[1])
        with pytest.raises(np.linalg.LinAlgError, match="dense form was not tried"):
            sa.linalg.solve(x, right)


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e9, 1e200])
def test_scales_of_the_noise(scale, rng):
    a, b = definite(rng, 5), definite(rng, 8)
    noise = scale * np.linspace(1, 2, 5)
    x = sa.Kronecker(sa.Symmetric(a), sa.Symmetric(b)) + sa.Kronecker(sa.Diagonal(noise), sa.eye(8))
    dense = np.kron(a, b) + np.kron(np.diag(noise), np.eye(8))
    right = rng.standard_normal(40)
    np.testing.assert_allclose(sa.linalg.solve(x, right), np.linalg.solve(dense, right), rtol=1e-9)
    np.testing.assert_allclose(sa.linalg.slogdet(x)[1], np.linalg.slogdet(dense)[1], rtol=1e-11)


@pytest.mark.slow
def test_derivatives(rng):
    """The log-likelihood of a Gaussian process with several tasks, against JAX on dense arrays."""
    kt, kx, noise, weights = definite(rng, 4), definite(rng, 6), rng.uniform(0.5, 1, 4), rng.uniform(0.5, 1, 6)
    b = rng.standard_normal(24)

    def structured(kt, kx, noise, weights):
        first = sa.Kronecker(*(sa.assume((k + k.T) / 2, "symmetric") for k in (kt, kx)))
        x = first + sa.Kronecker(sa.Diagonal(noise), sa.Diagonal(weights))
        return b @ sa.linalg.solve(x, jnp.asarray(b)) + as_jax(sa.linalg.slogdet(x).logabsdet)

    def dense(kt, kx, noise, weights):
        x = jnp.kron((kt + kt.T) / 2, (kx + kx.T) / 2) + jnp.diag(jnp.kron(noise, weights))
        return b @ jnp.linalg.solve(x, b) + jnp.linalg.slogdet(x)[1]

    arguments = (kt, kx, noise, weights)
    numbers = range(4)
    for transform in (jax.grad, jax.jacfwd, lambda f, i: jax.jit(jax.grad(f, i))):
        for got, want in zip(
            transform(structured, numbers)(*arguments), jax.grad(dense, numbers)(*arguments), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)
    got, want = (jax.jit(jax.jacfwd(jax.grad(f, (1, 2)), 2))(*arguments) for f in (structured, dense))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_batches(rng):
    a, b, noise = np.stack([definite(rng, 4) for _ in range(3)]), definite(rng, 7), rng.uniform(0.5, 1, (3, 4))

    def solved(a, noise, right):
        x = sa.Kronecker(sa.Symmetric(a), sa.Symmetric(b)) + sa.Kronecker(sa.Diagonal(noise), sa.eye(7))
        return sa.linalg.solve(x, right)

    dense = np.stack([np.kron(k, b) + np.kron(np.diag(d), np.eye(7)) for k, d in zip(a, noise, strict=True)])
    right = rng.standard_normal((3, 28, 2))
    with sa.densify("error"):
        for function in (solved, jax.jit(solved), jax.vmap(solved)):
            np.testing.assert_allclose(
                np.asarray(function(*map(jnp.asarray, (a, noise, right)))),
                np.linalg.solve(dense, right),
                rtol=1e-9,
                atol=1e-11,
            )


def test_large_pairs(rng):
    """The largest factor has more than 128 rows, so that its tridiagonal form is used."""
    t, m = 20, 400
    a, kernel, noise = definite(rng, t), smooth(m), rng.uniform(0.1, 1, t)
    x = sa.Kronecker(sa.Symmetric(a), sa.Symmetric(kernel)) + sa.Kronecker(sa.Diagonal(noise), sa.eye(m))
    b = rng.standard_normal(t * m)
    with sa.densify("error"):
        for solve in (sa.linalg.solve, jax.jit(sa.linalg.solve)):
            solution = np.asarray(solve(x, b)).reshape(t, m)
            rest = b.reshape(t, m) - a @ solution @ kernel - noise[:, None] * solution
            size = np.abs(a).sum(axis=1).max() * np.abs(kernel).sum(axis=1).max()
            assert np.abs(rest).max() < 8 * np.finfo(float).eps * size * np.abs(solution).max()
        wanted = np.sum(
            np.log(np.linalg.eigvalsh(kernel) * np.linalg.eigvalsh(a / np.sqrt(np.outer(noise, noise)))[:, None] + 1)
        )
        wanted += m * np.sum(np.log(noise))
        np.testing.assert_allclose(sa.linalg.slogdet(x)[1], wanted, rtol=1e-9)
