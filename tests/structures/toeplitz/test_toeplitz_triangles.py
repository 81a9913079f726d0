"""Triangular Toeplitz and Hankel systems, inverses and determinants against LAPACK's of the dense matrices."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.signal
from support import as_jax

import structarrays as sa
from structarrays._structures.toeplitz import toeplitz_substitution

pytestmark = pytest.mark.costly

EPS = np.finfo(float).eps


def backward_error(dense, x, b):
    """How far the matrix would have to change, relative to its norm (Higham, 7.1)."""
    size = np.linalg.norm(dense, np.inf)
    residual = np.max(np.abs(b - dense @ x), axis=0)
    return np.max(residual / (size * np.max(np.abs(x), axis=0) + np.max(np.abs(b), axis=0)))


def first_column(n, dtype=float, seed=0):
    rng = np.random.default_rng(seed)
    c = 0.3 * rng.normal(size=n) * 0.8 ** np.arange(n)
    c = c * np.exp(1j * np.arange(n)) if np.dtype(dtype).kind == "c" else c
    c[0] = 2.0
    return c.astype(dtype)


def triangular(c, upper=False):
    n = c.shape[-1]
    return sa.Toeplitz(*((c[..., :1], c) if upper else (c, c[..., :1])), shape=(n, n))


# ---- the substitution -------------------------------------------------------------------------------------------------

FAMILIES = {
    "decay": lambda n: 0.9 ** np.arange(n),
    "no decay": lambda n: np.cos(np.arange(n)),
    "nearly singular": lambda n: np.concatenate([[1e-3], np.random.default_rng(0).normal(size=n - 1) / n**2]),
    "solutions that grow": lambda n: np.concatenate([[1.0, -1.2, 0.3], np.zeros(max(0, n - 3))])[:n],
}


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 1024, 1025, 1300])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_substitution_is_as_stable_as_lapacks(name, n):
    """Around the sizes of a leaf and of a full level."""
    c = FAMILIES[name](n)
    dense = np.tril(scipy.linalg.toeplitz(c))
    b = np.random.default_rng(1).normal(size=(n, 2))
    x, ok = toeplitz_substitution.solve(jnp.asarray(c), jnp.asarray(b))
    assert ok
    lapack = scipy.linalg.solve_triangular(dense, b, lower=True)
    assert backward_error(dense, np.asarray(x), b) <= 4 * max(EPS, backward_error(dense, lapack, b))


def test_a_power_series():
    """1 / (1 - z - z**2) has the numbers of Fibonacci, which are exact up to 2**53."""
    c = np.zeros(300)
    c[:3] = 1, -1, -1
    x = np.asarray(toeplitz_substitution.solve(jnp.asarray(c), jnp.eye(300)[:, :1])[0])[:, 0]
    exact = np.array([float(mpmath.fib(k + 1)) for k in range(300)])
    np.testing.assert_allclose(x, exact, rtol=1e-13)


@pytest.mark.slow
def test_a_long_recursion():
    """A filter of infinite response is the inverse of a triangular Toeplitz matrix, here with three diagonals out of many."""
    n = 120_000
    c = np.zeros(n)
    c[[0, 1, 70]] = 1, -0.5, 0.2
    b = np.random.default_rng(0).normal(size=n)
    expected = scipy.signal.lfilter([1.0], c[:71], b)
    with sa.densify("error"):
        x = np.asarray(sa.linalg.solve(triangular(c), sa.asarray(b)))
        y = np.asarray(sa.linalg.solve(triangular(c, upper=True), sa.asarray(b[::-1].copy())))
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))
    np.testing.assert_allclose(y[::-1], expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))


# ---- arrays -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 700])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_systems_inverses_and_determinants(n, dtype, upper, batch):
    c = np.stack([first_column(n, dtype, seed) for seed in range(2)])[: 2 if batch else 1].reshape(*batch, n)
    T = triangular(c, upper)
    dense = np.asarray(T.to_dense())
    b = np.random.default_rng(3).normal(size=(*batch, n, 3)).astype(dtype)
    eps = np.finfo(dtype).eps
    with sa.densify("error"):
        x = np.asarray(sa.linalg.solve(T, sa.asarray(b)))
        single = np.asarray(sa.linalg.solve(T, sa.asarray(b.reshape(-1, n, 3)[0, :, 0])))
        X, determinant = sa.linalg.inv(T), np.asarray(sa.linalg.det(T))
        sign, logabsdet = (np.asarray(part) for part in sa.linalg.slogdet(T))
    assert x.dtype == X.dtype == dtype and type(X) is sa.Toeplitz
    assert X.offsets == (tuple(range(n)) if upper else tuple(range(1 - n, 1)))
    for i in np.ndindex(batch):
        assert backward_error(dense[i], x[i], b[i]) <= 8 * eps
        inverse = np.linalg.inv(dense[i].astype(np.result_type(dtype, np.float64)))
        np.testing.assert_allclose(np.asarray(X)[i], inverse, rtol=0, atol=100 * eps)
        their_sign, theirs = np.linalg.slogdet(dense[i])
        np.testing.assert_allclose(sign[i], their_sign, atol=n * eps)
        np.testing.assert_allclose(logabsdet[i], theirs, rtol=n * eps)
        if 2.0**n < np.finfo(dtype).max:
            np.testing.assert_allclose(determinant[i], 2.0**n, rtol=n * eps)
    np.testing.assert_allclose(single[(0,) * len(batch)], x.reshape(-1, n, 3)[0, :, 0], rtol=0, atol=100 * eps)


def test_few_diagonals_have_a_full_inverse():
    X = sa.linalg.inv(sa.Toeplitz([1.0, 0.5], [1.0], shape=(1000, 1000)))
    assert type(X) is sa.Toeplitz
    np.testing.assert_allclose(X.values[::-1], (-0.5) ** np.arange(1000), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(
        np.asarray(X @ sa.Toeplitz([1.0, 0.5], [1.0], shape=(1000, 1000))), np.eye(1000), atol=1e-15
    )


@pytest.mark.parametrize("n", [5, 300])
@pytest.mark.parametrize("upper", [False, True])
def test_zeros_on_the_diagonal(n, upper):
    c = first_column(n)
    c[0] = 0.0
    T = triangular(c, upper)
    for call in (lambda: sa.linalg.solve(T, sa.ones(n)), lambda: sa.linalg.inv(T)):
        with pytest.raises(np.linalg.LinAlgError):
            call()
    assert np.isnan(np.asarray(jax.jit(sa.linalg.solve)(T, sa.ones(n)))).all()
    sign, logabsdet = sa.linalg.slogdet(T)
    assert float(sa.linalg.det(T)) == float(sign) == 0 and float(logabsdet) == -np.inf
    strictly = sa.Toeplitz([0.0, 1.0, 2.0], [0.0], shape=(n, n)) - sa.Toeplitz([0.0], shape=(n, n))
    assert float(sa.linalg.det(strictly)) == 0


@pytest.mark.parametrize("upper", [False, True])
def test_derivatives(upper):
    """Of a solution, an inverse and a determinant, backwards and twice, against those of the dense matrix."""
    n = 300
    c, direction = (jnp.asarray(first_column(n, seed=seed)) for seed in (0, 1))
    b = jnp.asarray(np.random.default_rng(0).normal(size=(n, 2)))
    lags = jnp.arange(n)[:, None] - jnp.arange(n)

    def ours(c, b):
        T = triangular(c, upper)
        x = as_jax(sa.linalg.solve(T, sa.asarray(b)))
        return jnp.sum(x**2) + jnp.sum(sa.linalg.inv(T).values ** 2) + as_jax(sa.linalg.slogdet(T).logabsdet)

    def theirs(c, b):
        dense = jnp.where(lags >= 0, c[jnp.abs(lags)], 0)
        dense = dense.T if upper else dense
        line = jnp.linalg.inv(dense)[(0, slice(None)) if upper else (slice(None), 0)]
        return jnp.sum(jnp.linalg.solve(dense, b) ** 2) + jnp.sum(line**2) + jnp.linalg.slogdet(dense)[1]

    def derivatives(f):
        gradient = jax.grad(f, (0, 1))
        return jax.jit(lambda c, b: jax.jvp(lambda c: gradient(c, b), (c,), (direction,)))(c, b)

    for one, other in zip(*(jax.tree.leaves(derivatives(f)) for f in (ours, theirs)), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.max(np.abs(other)))


@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0)])
def test_vmap(in_axes):
    n = 300
    c = np.stack([first_column(n, seed=seed) for seed in range(2)])
    b = np.random.default_rng(0).normal(size=(2, n))
    args = [jnp.asarray(a if axis == 0 else a[0]) for a, axis in zip((c, b), in_axes, strict=True)]
    x = jax.jit(jax.vmap(lambda c, b: as_jax(sa.linalg.solve(triangular(c), sa.asarray(b))), in_axes))(*args)
    for i in range(2):
        line, right = (a if axis is None else a[i] for a, axis in zip(args, in_axes, strict=True))
        expected = scipy.linalg.solve_triangular(np.tril(scipy.linalg.toeplitz(line)), right, lower=True)
        np.testing.assert_allclose(x[i], expected, rtol=0, atol=1e-13)


def test_nothing_is_as_large_as_the_matrix():
    n = 2000
    T, b = triangular(first_column(n)), sa.asarray(np.ones(n))
    compiled = jax.jit(lambda T, b: sa.linalg.solve(T, b)).lower(T, b).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 0.1 * n * n * 8


# ---- Hankel matrices --------------------------------------------------------------------------------------------------


def hankel(n, dtype=float):
    rng = np.random.default_rng(n)
    values = rng.normal(size=2 * n - 1).astype(dtype)
    if dtype is complex:
        values = values + 1j * rng.normal(size=2 * n - 1)
    return sa.Hankel(values[:n], values[n - 1 :]), scipy.linalg.hankel(values[:n], values[n - 1 :])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 257, 258, 259, 260])
@pytest.mark.parametrize("dtype", [float, complex])
def test_hankel_systems(n, dtype):
    """For every remainder of the size by four: it decides about the sign of the determinant."""
    H, dense = hankel(n, dtype)
    b = np.random.default_rng(0).normal(size=(n, 2)).astype(dtype)
    with sa.densify("error"):
        x = np.asarray(sa.linalg.solve(H, sa.asarray(b)))
        single = np.asarray(sa.linalg.solve(H, sa.asarray(b[:, 0])))
        X, determinant = sa.linalg.inv(H), complex(sa.linalg.det(H))
        sign, logabsdet = sa.linalg.slogdet(H)
    assert type(X) is (sa.Dense if n < 257 else sa.Inverse)
    assert backward_error(dense, x, b) <= 16 * EPS and x.dtype == dense.dtype
    tolerance = 100 * n * EPS * np.linalg.cond(dense)
    np.testing.assert_allclose(single, x[:, 0], rtol=0, atol=tolerance * np.max(np.abs(x)))
    np.testing.assert_allclose(np.asarray(X @ sa.asarray(b)), x, rtol=0, atol=tolerance * np.max(np.abs(x)))
    their_sign, theirs = np.linalg.slogdet(dense)
    np.testing.assert_allclose(complex(sign), their_sign, rtol=0, atol=tolerance)
    np.testing.assert_allclose(float(logabsdet), theirs, rtol=0, atol=tolerance)
    if theirs < 600:
        np.testing.assert_allclose(determinant, their_sign * np.exp(theirs), rtol=tolerance)


@pytest.mark.slow
def test_derivatives_of_hankel_systems():
    n = 260
    values = jnp.asarray(np.random.default_rng(0).normal(size=2 * n - 1))
    b = jnp.asarray(np.random.default_rng(1).normal(size=n))
    places = jnp.arange(n)[:, None] + jnp.arange(n)

    def ours(values):
        H = sa.Hankel(values[:n], values[n - 1 :])
        return jnp.sum(as_jax(sa.linalg.solve(H, sa.asarray(b))) ** 2) + as_jax(sa.linalg.slogdet(H).logabsdet)

    def theirs(values):
        dense = values[places]
        return jnp.sum(jnp.linalg.solve(dense, b) ** 2) + jnp.linalg.slogdet(dense)[1]

    one, other = (jax.jit(jax.grad(f))(values) for f in (ours, theirs))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * np.max(np.abs(other)))
    one, other = (jax.jit(jax.vmap(f))(jnp.stack([values, 2 * values])) for f in (ours, theirs))
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.slow
def test_hankel_matrices_without_a_solution():
    n = 300
    ones = sa.Hankel(np.ones(n), np.ones(n))
    b = sa.asarray(np.random.default_rng(0).normal(size=n))
    assert np.isnan(np.asarray(jax.jit(sa.linalg.solve)(ones, b))).all()
    with pytest.raises(np.linalg.LinAlgError, match=r"linalg\.solve"):
        sa.linalg.solve(ones, b)


def test_a_hilbert_matrix_is_solved_like_its_dense_form_or_refused():
    n = 300
    H = sa.Hankel(1 / (1.0 + np.arange(n)), 1 / (n + np.arange(n)))
    b = np.ones(n)
    dense = scipy.linalg.hilbert(n)
    try:
        x = np.asarray(sa.linalg.solve(H, sa.asarray(b)))
    except np.linalg.LinAlgError:
        return
    assert backward_error(dense, x, b) <= 64 * EPS
