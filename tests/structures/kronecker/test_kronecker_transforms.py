"""Systems and determinants of Kronecker sums, and sums of Kronecker products, with circulant factors: by Fourier transforms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import as_jax

import structarrays as sa


def _columns(dtype, *sizes):
    rng = np.random.default_rng(sum(sizes))
    for n in sizes:
        c = rng.normal(size=n) + (1j * rng.normal(size=n) if np.dtype(dtype).kind == "c" else 0)
        yield (c / 4).astype(dtype)


def _kronecker_sum(*factors):
    n = [f.shape[-1] for f in factors]
    return sum(
        np.kron(np.kron(np.eye(int(np.prod(n[:i]))), f), np.eye(int(np.prod(n[i + 1 :]))))
        for i, f in enumerate(factors)
    )


def _cases(dtype="float64"):
    """Pairs of an array and its dense form, all of them with eigenvalues away from zero."""
    a, b, d, e = _columns(dtype, 6, 7, 6, 7)
    A, B, D = (sa.Circulant(c) for c in (a, b, d))
    A_, B_, D_ = (scipy.linalg.circulant(c) for c in (a, b, d))
    E, E_ = sa.Diagonal(e), np.diag(e)
    eye = sa.eye(42, dtype=A.dtype)
    yield "product and number", sa.Kronecker(A, B) + 4.0 * eye, np.kron(A_, B_) + 4 * np.eye(42)
    yield "sum and number", sa.KroneckerSum(A, B) + 5.0 * eye, _kronecker_sum(A_, B_) + 5 * np.eye(42)
    yield "diagonal factor", sa.Kronecker(A, E) + 4.0 * eye, np.kron(A_, E_) + 4 * np.eye(42)
    yield "diagonal factor first", sa.KroneckerSum(E, A) + 5.0 * eye, _kronecker_sum(E_, A_) + 5 * np.eye(42)
    yield (
        "product and sum",
        sa.Kronecker(A, B) + sa.KroneckerSum(D, B) + 6.0 * eye,
        np.kron(A_, B_) + _kronecker_sum(D_, B_) + 6 * np.eye(42),
    )
    yield (
        "identity as a factor",
        sa.Sum(sa.Kronecker(sa.eye(6, dtype=A.dtype), B), sa.Kronecker(A, B), 4.0 * eye),
        np.kron(np.eye(6), B_) + np.kron(A_, B_) + 4 * np.eye(42),
    )
    yield (
        "three factors, one a sum",
        sa.Kronecker(sa.KroneckerSum(A, B), D) + 4.0 * sa.eye(252, dtype=A.dtype),
        np.kron(_kronecker_sum(A_, B_), D_) + 4 * np.eye(252),
    )


NAMES = [name for name, *_ in _cases()]


def _case(name, dtype="float64"):
    return next((x, dense) for own, x, dense in _cases(dtype) if own == name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_systems_and_determinants(name, dtype):
    x, dense = _case(name, dtype)
    assert x.dtype == np.dtype(dtype)
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    rng = np.random.default_rng(1)
    n = dense.shape[-1]
    for shape in ((n,), (n, 3), (2, n, 2)):
        b = rng.normal(size=shape).astype(dtype)
        with sa.densify("error"):
            solution = jax.jit(sa.linalg.solve)(x, sa.asarray(b))
        assert solution.dtype == x.dtype
        np.testing.assert_allclose(as_jax(solution), np.linalg.solve(dense, b), rtol=tolerance, atol=tolerance)
    with sa.densify("error"):
        sign, logabsdet = jax.jit(sa.linalg.slogdet)(x)
    expected_sign, expected_logabsdet = np.linalg.slogdet(dense)
    assert sign.dtype == x.dtype
    np.testing.assert_allclose(as_jax(sign), expected_sign, rtol=tolerance)
    np.testing.assert_allclose(as_jax(logabsdet), expected_logabsdet, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["product and number", "diagonal factor", "product and sum"])
def test_derivatives(name):
    x, dense = _case(name)
    b = np.random.default_rng(2).normal(size=42)

    def energy(t, x, solve, slogdet):
        return (b * solve(t * x, b)).sum() + slogdet(t * x)[1]

    def ours(t):
        with sa.densify("error"):
            return as_jax(energy(t, x, sa.linalg.solve, sa.linalg.slogdet))

    expected = jax.grad(lambda t: energy(t, jnp.asarray(dense), jnp.linalg.solve, jnp.linalg.slogdet))(1.3)
    np.testing.assert_allclose(jax.jit(jax.grad(ours))(1.3), expected, rtol=1e-9)


def test_a_real_matrix_and_a_complex_right_hand_side():
    x, dense = _case("product and number")
    b = np.arange(42.0) + 1j
    solution = sa.linalg.solve(x, sa.asarray(b))
    assert solution.dtype == sa.complex128
    np.testing.assert_allclose(as_jax(solution), np.linalg.solve(dense, b), rtol=1e-10, atol=1e-10)


def test_batches_broadcast():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(3, 6)) / 4, rng.normal(size=(7,)) / 4
    x = sa.Kronecker(sa.Circulant(a), sa.Circulant(b)) + 4.0 * sa.eye(42)
    dense = np.stack([np.kron(scipy.linalg.circulant(r), scipy.linalg.circulant(b)) + 4 * np.eye(42) for r in a])
    right = rng.normal(size=(2, 1, 42, 2))
    with sa.densify("error"):
        solution = sa.linalg.solve(x, sa.asarray(right))
        by_vmap = jax.vmap(sa.linalg.solve, in_axes=(0, None))(x, sa.asarray(right[0, 0]))
        logabsdet = sa.linalg.slogdet(x).logabsdet
    np.testing.assert_allclose(as_jax(solution), np.linalg.solve(dense, right), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(by_vmap.to_jax(), np.linalg.solve(dense, right[0]), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(as_jax(logabsdet), np.linalg.slogdet(dense)[1], rtol=1e-10)


def test_a_blurred_image_is_sharpened_without_matrices():
    """A picture of a million points: even one factor in dense form would be as large as it."""
    n = 1024
    near = np.zeros(n)
    near[[0, 1, -1]] = 0.6, 0.2, 0.2
    differences = np.zeros(n)
    differences[[0, 1]] = 1.0, -1.0
    C, D = sa.Circulant(near), sa.Circulant(differences)
    blur, gradient = sa.Kronecker(C, C), sa.KroneckerSum(D.mT @ D, D.mT @ D)
    b = np.random.default_rng(5).normal(size=n * n)
    with sa.densify("error"):
        x = sa.linalg.solve(blur.mT @ blur + 0.1 * gradient, blur.mT @ b)
    c, d = np.fft.fft(near), np.fft.fft(differences)
    spectrum = np.abs(np.outer(c, c)) ** 2 + 0.1 * (np.abs(d[:, None]) ** 2 + np.abs(d) ** 2)
    expected = np.fft.ifft2(np.conj(np.outer(c, c)) * np.fft.fft2(b.reshape(n, n)) / spectrum).real
    np.testing.assert_allclose(np.asarray(x).reshape(n, n), expected, atol=1e-10)


def test_singular_and_indefinite_matrices():
    laplacian = sa.Circulant(np.array([2.0, -1, 0, 0, 0, 0, 0, -1]))
    x = sa.KroneckerSum(laplacian, laplacian)  # constants are in its kernel
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(x, sa.ones(64))
    assert np.isnan(as_jax(jax.jit(sa.linalg.solve)(x, sa.ones(64)))).all()
    shifted = sa.assume(x - 1.0 * sa.eye(64), "positive_definite")
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(shifted, sa.ones(64))


def test_what_has_no_common_eigenvectors_goes_elsewhere():
    C, D = sa.Circulant(np.array([3.0, 1, 0, 0, 0, 0, 0, 1])), sa.Diagonal(np.arange(1.0, 9.0))
    for x in (sa.Sum(sa.Kronecker(C, C), sa.Kronecker(D, C)), sa.Sum(sa.Kronecker(C, C), sa.Diagonal(np.arange(64.0)))):
        dense = np.asarray(x)
        np.testing.assert_allclose(
            as_jax(sa.linalg.solve(x, sa.ones(64))), np.linalg.solve(dense, np.ones(64)), rtol=1e-9
        )
