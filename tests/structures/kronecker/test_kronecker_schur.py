"""Systems and determinants of Kronecker sums, and products next to a number, whose factors are not Hermitian."""

import functools

import jax
import numpy as np
import pytest
import scipy.linalg
from support import as_jax

import structarrays as sa


def _dense_sum(factors):
    return functools.reduce(
        lambda a, b: np.kron(a, np.eye(b.shape[-1])) + np.kron(np.eye(a.shape[-1]), b), map(np.asarray, factors)
    )


def _dense_product(factors):
    return functools.reduce(np.kron, map(np.asarray, factors))


def _numbers(rng, shape, dtype):
    data = rng.normal(size=shape)
    return (data + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else data).astype(dtype)


def _cases(rng, sizes, dtype):
    factors = [_numbers(rng, (n, n), dtype) for n in sizes]
    yield sa.KroneckerSum(*factors), _dense_sum(factors)
    shift = 0.7
    yield (
        sa.Kronecker(*factors) + shift * sa.eye(int(np.prod(sizes)), dtype=getattr(sa, dtype)),
        _dense_product(factors) + shift * np.eye(int(np.prod(sizes))),
    )


@pytest.mark.costly
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("sizes", [(5, 7), (7, 1), (3, 4, 5), (2, 3, 2, 3)])
def test_systems_and_determinants(sizes, dtype):
    rng = np.random.default_rng(0)
    tolerance = 2e-3 if dtype == "float32" else 1e-9
    for x, dense in _cases(rng, sizes, dtype):
        n = dense.shape[-1]
        for right in (_numbers(rng, (n,), dtype), _numbers(rng, (n, 3), dtype), _numbers(rng, (2, n, 2), dtype)):
            with sa.densify("error", limit=0):
                solution = sa.linalg.solve(x, sa.asarray(right))
            assert solution.dtype == dense.astype(dtype).dtype
            expected = np.linalg.solve(dense, right if right.ndim < 3 else right)
            np.testing.assert_allclose(
                as_jax(solution), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()
            )
        with sa.densify("error", limit=0):
            sign, logabsdet = sa.linalg.slogdet(x)
        expected_sign, expected_log = np.linalg.slogdet(dense)
        np.testing.assert_allclose(as_jax(sign), expected_sign, atol=tolerance)
        np.testing.assert_allclose(as_jax(logabsdet), expected_log, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
def test_a_diagonal_factor_on_either_side():
    rng = np.random.default_rng(1)
    a, d = rng.normal(size=(4, 4)), rng.normal(size=5) + 4
    for factors in (
        (a, sa.Diagonal(d)),
        (sa.Diagonal(d), a),
        (a, sa.Diagonal(d), a),
        (sa.Diagonal(d), a, sa.Diagonal(d)),
    ):
        dense = [f if isinstance(f, np.ndarray) else np.diag(d) for f in factors]
        for x, matrix in (
            (sa.KroneckerSum(*factors), _dense_sum(dense)),
            (sa.Kronecker(*factors) - 2.5 * sa.Identity(_dense_sum(dense).shape[0]), None),
        ):
            matrix = _dense_product(dense) - 2.5 * np.eye(_dense_sum(dense).shape[0]) if matrix is None else matrix
            right = rng.normal(size=(matrix.shape[0], 2))
            expected = np.linalg.solve(matrix, right)
            np.testing.assert_allclose(as_jax(sa.linalg.solve(x, right)), expected, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(
                as_jax(sa.linalg.slogdet(x).logabsdet), np.linalg.slogdet(matrix).logabsdet, rtol=1e-10
            )


def test_batches_and_maps():
    rng = np.random.default_rng(2)
    a, b, right = rng.normal(size=(3, 4, 4)), rng.normal(size=(3, 5, 5)), rng.normal(size=(3, 20, 2))
    dense = np.stack([_dense_sum(pair) for pair in zip(a, b, strict=True)])
    expected = np.linalg.solve(dense, right)
    np.testing.assert_allclose(as_jax(sa.linalg.solve(sa.KroneckerSum(a, b), right)), expected, rtol=1e-8, atol=1e-10)
    mapped = jax.vmap(lambda x, r: sa.linalg.solve(x, r))(sa.KroneckerSum(a, b), sa.asarray(right))
    np.testing.assert_allclose(mapped.to_jax(), expected, rtol=1e-8, atol=1e-10)


def test_a_sylvester_equation_whose_factors_have_no_eigenvectors():
    """Convection and diffusion: the eigenvectors of the factors have a condition number beyond 1e12."""
    n = 30
    a = np.diag(np.full(n, 2.0)) + np.diag(np.full(n - 1, -1.95), -1) + np.diag(np.full(n - 1, -0.05), 1)
    b = np.eye(n) + np.diag(np.ones(n - 1), 1)  # a Jordan block
    c = np.random.default_rng(3).normal(size=(n, n))
    solution = np.array(as_jax(sa.linalg.solve(sa.KroneckerSum(a, b), sa.asarray(c.ravel())))).reshape(n, n)
    ours = np.abs(a @ solution + solution @ b.T - c).max()
    theirs = scipy.linalg.solve_sylvester(a, b.T, c)
    assert ours <= 10 * np.abs(a @ theirs + theirs @ b.T - c).max() + 1e-15 * np.abs(solution).max()


@pytest.mark.slow
def test_derivatives():
    rng = np.random.default_rng(4)
    a, b, right = rng.normal(size=(3, 3)), rng.normal(size=(4, 4)), rng.normal(size=12)

    def ours(a, b):
        x = sa.KroneckerSum(a, b)
        y = sa.Kronecker(a, b) + 0.3 * sa.Identity(12)
        total = sum(sa.sum(sa.linalg.solve(z, right) ** 2) + sa.linalg.slogdet(z).logabsdet for z in (x, y))
        return as_jax(total)

    def written_out(a, b):
        jnp = jax.numpy
        x = jnp.kron(a, jnp.eye(4)) + jnp.kron(jnp.eye(3), b)
        y = jnp.kron(a, b) + 0.3 * jnp.eye(12)
        return sum(jnp.sum(jnp.linalg.solve(z, right) ** 2) + jnp.linalg.slogdet(z)[1] for z in (x, y))

    for found, wanted in zip(jax.grad(ours, (0, 1))(a, b), jax.grad(written_out, (0, 1))(a, b), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
    forward = jax.jvp(ours, (a, b), (b[:3, :3], a.mean() * b))[1]
    np.testing.assert_allclose(forward, jax.jvp(written_out, (a, b), (b[:3, :3], a.mean() * b))[1], rtol=1e-8)


def test_singular_systems_raise():
    x = sa.KroneckerSum(np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([[-1.0, 1.0], [0.0, 5.0]]))  # 1 - 1 = 0
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        sa.linalg.solve(x, np.ones(4))
    assert np.all(np.isnan(np.array(as_jax(jax.jit(sa.linalg.solve)(x, sa.ones(4))))))
    assert sa.linalg.slogdet(x).sign == 0


def test_large_inverses_stay_inverses_and_nothing_is_expanded():
    rng = np.random.default_rng(5)
    x = sa.KroneckerSum(np.eye(60) * 9 + rng.normal(size=(60, 60)), rng.normal(size=(80, 80)))
    with sa.densify("error", limit=0):
        inverse = sa.linalg.inv(x)
        product = inverse @ (x @ sa.ones(4800))
    assert type(inverse) is sa.Inverse
    np.testing.assert_allclose(as_jax(product), 1, rtol=1e-8)
    compiled = jax.jit(sa.linalg.solve).lower(x, sa.ones(4800)).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 4800 * 4800


@pytest.mark.slow
def test_factors_whose_products_look_at_their_operand():
    """A product with a large Toeplitz factor, or next to a background, looks whether its operand is finite; JAX transposes it all the same."""
    rng = np.random.default_rng(7)
    toeplitz = sa.Toeplitz(np.r_[4.0, rng.normal(size=139) / 20], np.r_[4.0, rng.normal(size=139) / 20])
    background = sa.exp(sa.Diagonal(rng.normal(size=3) + 2))
    for hermitian in (False, True):
        if hermitian:
            toeplitz = sa.assume(toeplitz + toeplitz.mT, "positive_definite")
            background = sa.assume(background, "positive_definite")
        factors = background, toeplitz
        dense = [as_jax(f) for f in factors]
        for x, matrix in (
            (sa.KroneckerSum(*factors), _dense_sum(dense)),
            (sa.Kronecker(*factors) + 9 * sa.Identity(420), _dense_product(dense) + 9 * np.eye(420)),
        ):
            right = rng.normal(size=420)
            expected = np.linalg.solve(matrix, right)
            np.testing.assert_allclose(as_jax(sa.linalg.solve(x, right)), expected, rtol=1e-9, atol=1e-12)
            gradient = jax.grad(lambda b, x=x: as_jax(sa.sum(sa.linalg.solve(x, b))))(sa.asarray(right))
            np.testing.assert_allclose(
                gradient.to_jax(), np.linalg.solve(matrix.T, np.ones(420)), rtol=1e-9, atol=1e-12
            )


def test_the_error_names_the_function_that_expands_a_factor():
    second = sa.tridiagonal(-np.ones(4), 2 * np.ones(5), -np.ones(4))
    for function in (sa.linalg.slogdet, lambda x: sa.linalg.solve(x, sa.ones(10))):
        name = "linalg.slogdet" if function is sa.linalg.slogdet else "linalg.solve"
        with sa.densify("error"), pytest.raises(sa.DensifyError, match=f"^{name} would expand Banded of shape"):
            function(sa.KroneckerSum(second, sa.asarray([[1.0, 2.0], [0.0, 1.0]])))


@pytest.mark.parametrize("hermitian", [True, False])
def test_factors_no_larger_than_a_right_hand_side_are_not_lost_structure(hermitian):
    """The Laplacian of a square: the eigenvectors of its factors are of this size in any case."""
    second = sa.tridiagonal(-np.ones(9), 2 * np.ones(10), -np.ones(9) if hermitian else np.linspace(-1, 0, 9))
    x, right = sa.KroneckerSum(second, second), np.random.default_rng(0).normal(size=100)
    dense = np.asarray(x)
    x = sa.assume(x, "hermitian") if hermitian else x
    with sa.densify("error"):
        solution, (_, logabsdet) = sa.linalg.solve(x, right), sa.linalg.slogdet(x)
    np.testing.assert_allclose(solution, np.linalg.solve(dense, right), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(logabsdet, np.linalg.slogdet(dense)[1], rtol=1e-12)
