"""SciPy's functions for Toeplitz and circulant matrices against SciPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import structarrays as sa

RNG = np.random.default_rng(0)
TOEPLITZ = {
    "column and row": ((RNG.normal(size=5), RNG.normal(size=5)), RNG.normal(size=5)),
    "Hermitian": (RNG.normal(size=6) + 1j * np.arange(6), RNG.normal(size=(6, 2))),
    "complex diagonal": (RNG.normal(size=6) + 1j, RNG.normal(size=6)),
    "batch": (RNG.normal(size=(2, 6)), RNG.normal(size=(2, 6, 3))),
    "lists of integers": ([4, 1, 2], [1, 2, 3]),
    "triangular": ((RNG.normal(size=4), np.zeros(4)), RNG.normal(size=4)),
}


@pytest.mark.parametrize("name", TOEPLITZ)
@pytest.mark.parametrize("function", ["solve_toeplitz", "matmul_toeplitz"])
def test_toeplitz(function, name):
    c_or_cr, b = TOEPLITZ[name]
    expected = getattr(scipy.linalg, function)(c_or_cr, b)
    found = getattr(sa.linalg, function)(c_or_cr, b)
    assert isinstance(found, sa.Array)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-12)
    if name != "lists of integers":
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(jax.jit(getattr(sa.linalg, function))(c_or_cr, b), expected, rtol=1e-9, atol=1e-12)


def test_products_with_a_rectangular_matrix(rng):
    c, r, x = rng.normal(size=3), rng.normal(size=5), rng.normal(size=(5, 2))
    expected = scipy.linalg.toeplitz(c, r) @ x
    np.testing.assert_allclose(np.asarray(sa.linalg.matmul_toeplitz((c, r), x)), expected, rtol=1e-12)
    integers = sa.linalg.matmul_toeplitz([1, 2, 3], [1, 0, 2])
    assert integers.dtype == np.int64 and integers.tolist() == [7, 6, 5]


@pytest.mark.slow
def test_a_large_system(rng):
    c = np.exp(-np.arange(2000) / 20.0)
    c[0] += 0.1
    b = rng.normal(size=2000)
    expected = scipy.linalg.solve_toeplitz(c, b)
    np.testing.assert_allclose(np.asarray(sa.linalg.solve_toeplitz(c, b)), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("function", ["solve_toeplitz", "matmul_toeplitz"])
@pytest.mark.parametrize("bad", ["c", "r", "b"])
def test_what_is_not_finite(function, bad):
    """NaN gives NaN; SciPy's argument that looks for it is left out."""
    arguments = {name: np.array([3.0, 1.0, np.nan if name == bad else 0.5]) for name in "crb"}
    c, r, b = arguments.values()
    call = getattr(sa.linalg, function)
    assert np.isnan(np.asarray(call((c, r), b))).any()
    assert np.isnan(jax.jit(call)((c, r), b)).any()
    with pytest.raises(TypeError, match="check_finite"):
        call((c, r), b, check_finite=False)


def test_bad_arguments_of_toeplitz():
    with pytest.raises(ValueError, match="c and r must have the same length"):
        sa.linalg.solve_toeplitz(([1.0, 2.0], [1.0]), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"tuple \(c, r\), got a tuple of 3"):
        sa.linalg.solve_toeplitz((1.0, 2.0, 3.0), [1.0])
    with pytest.raises(
        ValueError, match=r"solve_toeplitz: b must be .* with M = 2 for the matrix of shape \(2, 2\), got"
    ):
        sa.linalg.solve_toeplitz([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"matmul_toeplitz: x must be .* with N = 2, got shape \(3,\)"):
        sa.linalg.matmul_toeplitz([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve_toeplitz([1.0, 1.0], [1.0, 2.0])


CIRCULANT = {
    "matrix": (RNG.normal(size=7), RNG.normal(size=(7, 3)), {}),
    "broadcast": (RNG.normal(size=(2, 1, 5)), RNG.normal(size=(3, 5)), {"baxis": -1, "outaxis": -1}),
    "axes": (RNG.normal(size=(5, 4)), RNG.normal(size=(4, 5)), {"caxis": 0, "baxis": 1, "outaxis": 1}),
    "least squares": (np.array([1.0, 1.0, 0.0, 0.0]), np.arange(4.0), {"singular": "lstsq"}),
    "tolerance": (np.array([[1, 1, 1.001, 1], [3, 1, 0, 1]]), np.arange(4.0), {"singular": "lstsq", "tol": 0.1}),
    "complex": (RNG.normal(size=8), RNG.normal(size=8) + 1j, {}),
    "integers": (np.array([3, 1, 0, 0]), np.arange(4), {}),
    "without columns": (np.array([3.0, 1.0, 0.0]), np.zeros((3, 0)), {}),
}


@pytest.mark.parametrize("name", CIRCULANT)
def test_circulant(name):
    c, b, options = CIRCULANT[name]
    expected = scipy.linalg.solve_circulant(c, b, **options)
    found = sa.linalg.solve_circulant(c, b, **options)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-12)


def test_nearly_singular_circulant_matrices():
    """SciPy raises for them, too; and here a compiled call gives NaN, for the one of a batch."""
    c, b = np.array([[1.0, 1.0, 0.0, 0.0], [3.0, 1.0, 0.0, 0.0]]), np.arange(4.0)
    with pytest.raises(np.linalg.LinAlgError):
        scipy.linalg.solve_circulant(c, b)
    with pytest.raises(np.linalg.LinAlgError, match=r"linalg\.solve_circulant: the circulant matrix of c is singular"):
        sa.linalg.solve_circulant(c, b)
    x = np.asarray(jax.jit(sa.linalg.solve_circulant)(c, b))
    assert np.isnan(x[:, 0]).all()
    np.testing.assert_allclose(x[:, 1], scipy.linalg.solve_circulant(c[1], b), rtol=1e-12)
    single = c.astype(np.float32)[0] + np.array([1e-7, 0, 0, 0], np.float32)
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve_circulant(single, b.astype(np.float32))


def test_derivatives_of_circulant_systems():
    c, b = jnp.asarray([4.0, 1.0, 0.5, 1.0]), jnp.arange(4.0)

    def dense(c):
        i = jnp.arange(4)
        return c[(i[:, None] - i) % 4]

    gradient = jax.grad(lambda c: jnp.sum(sa.linalg.solve_circulant(c, b) ** 2))(c)
    expected = jax.grad(lambda c: jnp.sum(jnp.linalg.solve(dense(c), b) ** 2))(c)
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((np.ones(3), np.ones(4)), ValueError, "b must have 3 elements along baxis"),
        ((np.ones(3), np.ones(3), "ignore"), ValueError, "singular must be 'raise' or 'lstsq', got 'ignore'"),
        ((np.ones(3), np.ones(3), "raise", None, 2), np.exceptions.AxisError, "caxis"),
        ((np.ones((2, 3)), np.ones((3, 5))), ValueError, "cannot be broadcast"),
        ((np.ones(3, bool), np.ones(3)), TypeError, "c must have a floating-point or integer dtype"),
    ],
)
def test_bad_arguments_of_circulant(arguments, error, message):
    with pytest.raises(error, match=message):
        sa.linalg.solve_circulant(*arguments)
