"""Functions that are applied factor by factor: the dense form of a small factor does not count as densified."""

import jax
import numpy as np
import pytest
from support import as_jax

import structarrays as sa

N = 9


def toeplitz():
    return sa.Toeplitz(1 / (1 + np.arange(float(N))) ** 2)


def second_difference():
    return sa.tridiagonal(-np.ones(N - 1), 2 * np.ones(N), -np.ones(N - 1))


def sorted_values(values):
    return np.sort_complex(np.asarray(values).astype(complex)).round(9)


def exponential(a):
    """Compute the exponential of a symmetric matrix by its eigenvectors. SciPy's `expm` loses three digits for these matrices."""
    values, vectors = np.linalg.eigh(a)
    return (vectors * np.exp(values)) @ vectors.T


FUNCTIONS = {
    "eigvalsh": (sa.linalg.eigvalsh, np.linalg.eigvalsh),
    "eigvals": (lambda a: sa.linalg.eigvals(a), np.linalg.eigvals),
    "eigh": (lambda a: sa.linalg.eigh(a)[0], np.linalg.eigvalsh),
    "eig": (lambda a: sa.linalg.eig(a)[0], np.linalg.eigvals),
}
OF_PRODUCTS = {
    "svdvals": (sa.linalg.svdvals, lambda a: np.linalg.svd(a)[1]),
    "svd": (lambda a: sa.linalg.svd(a)[1], lambda a: np.linalg.svd(a)[1]),
    "pinv": (lambda a: sa.linalg.pinv(a) @ np.ones(N * N), lambda a: np.linalg.pinv(a) @ np.ones(N * N)),
    "cholesky": (lambda a: sa.linalg.cholesky(a) @ np.ones(N * N), lambda a: np.linalg.cholesky(a).sum(-1)),
    "qr": (lambda a: sa.linalg.qr(a)[0] @ (sa.linalg.qr(a)[1] @ np.ones(N * N)), lambda a: a.sum(-1)),
}


@pytest.mark.parametrize("factor", [toeplitz, second_difference])
@pytest.mark.parametrize("name", [*FUNCTIONS, *OF_PRODUCTS])
def test_products(factor, name):
    x, dense = sa.Kronecker(factor(), factor()), np.kron(*[np.asarray(factor().to_jax())] * 2)
    run, by_numpy = (FUNCTIONS | OF_PRODUCTS)[name]
    expected = sorted_values(by_numpy(dense))
    with sa.densify("error"):
        for function in (run, jax.jit(run)):
            np.testing.assert_allclose(sorted_values(as_jax(function(x))), expected, atol=1e-8)


@pytest.mark.parametrize("factor", [toeplitz, second_difference])
@pytest.mark.parametrize("name", [*FUNCTIONS, "expm"])
def test_sums(factor, name):
    a = np.asarray(factor().to_jax())
    x, dense = sa.KroneckerSum(factor(), factor()), np.kron(a, np.eye(N)) + np.kron(np.eye(N), a)
    run, by_numpy = (FUNCTIONS | {"expm": (sa.linalg.expm, exponential)})[name]
    with sa.densify("error"):
        for function in (run, jax.jit(run)):
            result = function(x)
            if name == "expm":
                assert isinstance(result, sa.Kronecker)
                np.testing.assert_allclose(
                    as_jax(result), by_numpy(dense), rtol=0, atol=1e-13 * np.abs(by_numpy(dense)).max()
                )
            else:
                np.testing.assert_allclose(sorted_values(as_jax(result)), sorted_values(by_numpy(dense)), atol=1e-8)


def test_larger_factors_ask_the_policy():
    """One large factor and a small one: the dense form of the large one is larger than a vector."""
    x = sa.Kronecker(sa.Toeplitz(1 / (1 + np.arange(400.0))), sa.eye(2))
    with sa.densify("error"), pytest.raises(sa.DensifyError, match="would expand Toeplitz of shape"):
        sa.linalg.eigvalsh(x)
    with sa.densify("error"), pytest.raises(sa.DensifyError, match="would expand Toeplitz of shape"):
        sa.linalg.svdvals(x)
