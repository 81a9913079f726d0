"""Sylvester equations by LAPACK, as systems with Kronecker sums of two matrices, and in derivatives of square roots."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax import export
from support import as_jax

import structarrays as sa
from structarrays._numerics import sylvester

DTYPES = ["float64", "float32", "complex128", "complex64"]


def numbers(rng, *shape, dtype="float64"):
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape) if "complex" in dtype else values).astype(dtype)


def dense_sum(a, b):
    return np.kron(a, np.eye(len(b))) + np.kron(np.eye(len(a)), b)


def solve(a, b, c):
    return as_jax(sa.linalg.solve(sa.KroneckerSum(a, b), sa.asarray(c)))


def calls_host(function, *arguments):
    return jax.jit(function).lower(*arguments).as_text().count("xla_buffer_python_cpu_callback")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 1), (1, 6, 2), (5, 1, 1), (6, 5, 3), (12, 9, 1)])
def test_solutions(rng, n, m, k, dtype):
    a, b, c = (numbers(rng, *s, dtype=dtype) for s in ((n, n), (m, m), (n * m, k)))
    dense = dense_sum(a, b)
    for function in (solve, jax.jit(solve)):
        x = np.asarray(function(a, b, c))
        assert x.dtype == dtype
        size = np.linalg.norm(dense, 2) * np.linalg.norm(x) + np.linalg.norm(c)
        assert np.linalg.norm(dense @ x - c) < 30 * np.finfo(dtype).eps * size
    assert calls_host(solve, a, b, c) == 1


def test_against_scipy(rng):
    a, b, c = (numbers(rng, *s) for s in ((40, 40), (30, 30), (40, 30)))
    expected = scipy.linalg.solve_sylvester(a, b.T, c)
    np.testing.assert_allclose(solve(a, b, c.ravel()).reshape(40, 30), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_eigenvalues(rng, dtype):
    for a in (numbers(rng, 9, 9, dtype=dtype), numbers(rng, 1, 1, dtype=dtype), 1e200 * numbers(rng, 8, 8)):
        t = np.asarray(sylvester.form(jnp.asarray(a))[0])
        found = np.asarray(sylvester.eigenvalues(jnp.asarray(t)))
        scale = np.abs(found).max()
        expected = np.sort_complex(np.linalg.eigvals(a) / scale)
        np.testing.assert_allclose(np.sort_complex(found / scale), expected, atol=1e-12)


def test_batches(rng):
    a, b, c = (numbers(rng, *s) for s in ((3, 6, 6), (3, 5, 5), (3, 30)))
    expected = [solve(*system) for system in zip(a, b, c, strict=True)]
    np.testing.assert_allclose(jax.jit(jax.vmap(solve))(a, b, c), expected, rtol=1e-10, atol=1e-12)
    assert calls_host(jax.vmap(solve), a, b, c) == 1
    many = jax.vmap(solve, in_axes=(None, None, 0))(a[0], b[0], c)
    np.testing.assert_allclose(many, [solve(a[0], b[0], x) for x in c], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives(rng, dtype):
    """Forward, reverse and second, against the complex Schur forms of XLA."""
    a, b = (numbers(rng, n, n, dtype=dtype) + 3 * np.eye(n) for n in (6, 5))
    c, change = numbers(rng, 2, 30, dtype=dtype)

    def value(a, b, c):
        return jnp.sum(jnp.abs(jnp.sin(solve(a, b, c))) ** 2)

    def derivatives(a, b, c):
        gradient = jax.grad(value, argnums=(0, 1, 2))(a, b, c)
        forward = jax.jvp(value, (a, b, c), (b[:1, :1] * a, a[:1, :1] * b, change))[1]
        second = jax.jvp(lambda a: jax.grad(value)(a, b, c), (a,), (a,))[1]
        return jax.tree.leaves((gradient, forward, second))

    found = jax.jit(derivatives)(a, b, c)
    with sa.host_calls(False):
        expected = jax.jit(derivatives)(a, b, c)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9)


def test_other_programs(rng):
    a, b, c = (numbers(rng, *s) for s in ((6, 6), (5, 5), (30,)))
    expected = solve(a, b, c)
    program = export.deserialize(export.export(jax.jit(solve))(a, b, c).serialize())
    np.testing.assert_allclose(program.call(a, b, c), expected, rtol=1e-10, atol=1e-12)
    with sa.host_calls(False):
        assert calls_host(solve, a, b, c) == 0
        np.testing.assert_allclose(jax.jit(solve)(a, b, c), expected, rtol=1e-10, atol=1e-12)


class TestHardEquations:
    def test_singular(self, rng):
        """A zero sum of eigenvalues, real and complex."""
        turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
        for a, b in ((np.diag([1.0, 2.0]), np.diag([-1.0, 5.0])), (turn, turn), (np.zeros((3, 3)), np.zeros((2, 2)))):
            c = rng.normal(size=len(a) * len(b))
            assert np.isnan(jax.jit(solve)(a, b, c)).all()
            with pytest.raises(np.linalg.LinAlgError):
                solve(a, b, c)

    def test_close_eigenvalues(self, rng):
        """LAPACK changes an equation whose eigenvalues nearly cancel, and says so."""
        a, b = np.triu(rng.normal(size=(4, 4))), np.triu(rng.normal(size=(4, 4)))
        b[2, 2] = -a[1, 1] * (1 + 1e-15)
        c = rng.normal(size=16)
        x = np.asarray(jax.jit(solve)(a, b, c))
        dense = dense_sum(a, b)
        size = np.linalg.norm(dense, 2) * np.linalg.norm(x) + np.linalg.norm(c)
        assert np.linalg.norm(dense @ x - c) < 1e-14 * size

    @pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
    def test_scales(self, rng, scale):
        a, b = (rng.normal(size=(n, n)) + 4 * np.eye(n) for n in (6, 5))
        c = rng.normal(size=30)
        x = np.asarray(jax.jit(solve)(scale * a, scale * b, scale * c))
        np.testing.assert_allclose(x, np.linalg.solve(dense_sum(a, b), c), rtol=1e-10, atol=1e-12)

    def test_values_that_are_not_finite(self, rng):
        for bad in (np.nan, np.inf):
            for place in range(3):
                arrays = [rng.normal(size=s) for s in ((6, 6), (5, 5), (30, 2))]
                arrays[place][2, 1] = bad
                x = np.asarray(solve(*arrays))  # raises nothing
                assert np.isnan(x[:, 1]).any()
                if place == 2:
                    np.testing.assert_allclose(x[:, 0], solve(arrays[0], arrays[1], arrays[2][:, 0]), rtol=1e-10)


class TestSquareRoots:
    @pytest.mark.parametrize("dtype", ["float64", "complex128"])
    def test_derivatives(self, rng, dtype):
        """Forward, reverse and second, of real and complex matrices, in a batch and under vmap."""
        a, change = (numbers(rng, 2, 8, 8, dtype=dtype) for _ in range(2))
        a += 6 * np.eye(8)

        def root(a):
            return as_jax(sa.linalg.sqrtm(sa.asarray(a)))

        def value(a):
            return jnp.sum(jnp.abs(root(a) - 1) ** 2)

        def derivatives(a):
            forward, gradient = jax.jvp(root, (a,), (change,))[1], jax.grad(value)(a)
            second = jax.jvp(jax.grad(value), (a,), (change,))[1]
            return forward, gradient, second, jax.vmap(jax.grad(value))(a)

        found = jax.jit(derivatives)(a)
        with sa.host_calls(False):
            expected = jax.jit(derivatives)(a)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-10)
        x = np.asarray(root(a))
        np.testing.assert_allclose(x @ np.asarray(found[0]) + np.asarray(found[0]) @ x, change, atol=1e-10)
