"""Tridiagonal forms and determinants by pivots. The oracle is NumPy on the dense matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structarrays._numerics.tridiagonal_form import pivots, tridiagonal_form


def hermitian(n, dtype, batch=()):
    rng = np.random.default_rng([n, *batch])
    a = rng.normal(size=(*batch, n, n))
    a = a + 1j * rng.normal(size=a.shape) if np.dtype(dtype).kind == "c" else a
    return (a + a.swapaxes(-1, -2).conj()).astype(dtype)


def dense(diag, off_diagonal):
    n = diag.shape[-1]
    a = np.zeros((*diag.shape, n), np.result_type(diag, off_diagonal))
    i = np.arange(n)
    a[..., i, i] = diag
    a[..., i[1:], i[:-1]] = a[..., i[:-1], i[1:]] = off_diagonal
    return a


@pytest.mark.parametrize("n", [1, 2, 3, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("batch", [(), (2, 3)], ids=str)
def test_the_form(n, dtype, batch):
    a = hermitian(n, dtype, batch)
    q, diag, off_diagonal = (np.asarray(part) for part in jax.jit(tridiagonal_form)(jnp.asarray(a)))
    assert q.dtype == a.dtype and diag.dtype == off_diagonal.dtype == a.real.dtype
    precision = 20 * n * np.finfo(dtype).eps
    adjoint = q.swapaxes(-1, -2).conj()
    np.testing.assert_allclose(adjoint @ q, np.broadcast_to(np.eye(n), a.shape), atol=precision)
    np.testing.assert_allclose(q @ dense(diag, off_diagonal) @ adjoint, a, atol=precision * np.abs(a).max())


def test_the_form_of_the_hermitian_part():
    a = np.triu(hermitian(5, "complex128"))
    q, diag, off_diagonal = (np.asarray(part) for part in tridiagonal_form(jnp.asarray(a)))
    np.testing.assert_allclose(q @ dense(diag, off_diagonal) @ q.conj().T, (a + a.conj().T) / 2, atol=1e-13)


def check_determinant(diag, off_diagonal, tolerance=1e-11):
    numbers = np.asarray(jax.jit(pivots)(jnp.asarray(diag), jnp.asarray(off_diagonal)))
    sign, logabsdet = np.linalg.slogdet(dense(diag, off_diagonal))
    np.testing.assert_allclose(np.prod(numbers / np.abs(numbers), axis=-1), sign, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(np.sum(np.log(np.abs(numbers)), axis=-1), logabsdet, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", [1, 2, 3, 60])
@pytest.mark.parametrize("batch", [(), (4,), (2, 3)], ids=str)
@pytest.mark.parametrize("shift", [0, 5, 0.5 + 2j])
def test_determinants(n, batch, shift):
    rng = np.random.default_rng([n, *batch])
    diag, off_diagonal = (
        rng.normal(size=(*batch, n)) + shift,
        rng.normal(size=(*batch, n - 1)).astype(np.result_type(shift, 1.0)),
    )
    check_determinant(diag, off_diagonal)


HARD = {
    "a zero in front": ([0, 0, 1], [1, 2]),
    "zeros all along": ([0] * 6, [1, 2, 3, 4, 5]),
    "a tiny pivot": ([1e-300, 2, 1], [1, 2]),
    "a subnormal pivot": ([5e-324, 2, 1], [1, 2]),
    "a negative tiny pivot": ([-1e-40, 2, 1], [1, 2]),
    "pivots that cancel": ([1, 1, 3], [1, 2]),
    "falls apart": ([2, 0, 3, 1], [0, 2, 0]),
    "graded": (10.0 ** -np.arange(0, 16, 2), 3 * 10.0 ** -np.arange(1, 15, 2)),
    "graded the other way": (10.0 ** np.arange(-14, 2, 2), 3 * 10.0 ** np.arange(-13, 1, 2)),
    "small off_diagonal zeros": ([0, 0, 1], [1e-100, 1]),
}


@pytest.mark.parametrize("case", HARD)
def test_hard_determinants(case):
    diag, off_diagonal = (np.asarray(part, float) for part in HARD[case])
    check_determinant(diag, off_diagonal)


def test_a_zero_row_makes_the_determinant_zero():
    for diag, off_diagonal in (([0.0, 1.0, 2.0], [0.0, 1.0]), ([1.0, 2.0, 0.0], [1.0, 0.0]), ([0.0], [])):
        numbers = np.asarray(pivots(jnp.asarray(diag), jnp.asarray(off_diagonal)))
        assert np.isfinite(numbers).all() and np.prod(numbers) == 0


def test_wilkinsons_matrix_beside_its_eigenvalues():
    """The determinant near an eigenvalue has the accuracy that a perturbation by rounding leaves it."""
    n = 21
    diag, off_diagonal = np.abs(np.arange(n) - 10.0), np.ones(n - 1)
    values = np.linalg.eigvalsh(dense(diag, off_diagonal))
    for shift in (values[-1] + 1e-6, values[0] - 1e-6, values[7] + 1e-6):
        check_determinant(diag - shift, off_diagonal, 1e-8)
