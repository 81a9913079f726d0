"""Large Toeplitz systems by conjugate gradients: against the residuals of LAPACK's and SciPy's solutions, and where the iteration fails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import as_jax

import structarrays as sa
from structarrays._structures.toeplitz import toeplitz_elimination as toeplitz_solvers
from structarrays._structures.toeplitz import toeplitz_iterations

pytestmark = pytest.mark.costly

N = 1600  # above the size from which systems are iterated
SMALL = 300  # below it
EPS = np.finfo(float).eps


def correlations(n, length=20.0, noise=0.1):
    c = np.exp(-np.arange(n) / length)
    c[0] += noise
    return c


def rational_quadratic(n, noise=0.1):
    c = 1 / (1 + np.arange(n) ** 2 / 800.0)
    c[0] += noise
    return c


def squared_exponential(n, noise):
    c = np.exp(-(np.arange(n) ** 2) / 800.0)
    c[0] += noise
    return c


def periodic(n):
    """A covariance with narrow peaks in its spectrum, which no circulant matrix meets."""
    c = np.exp(-2 * np.sin(np.pi * np.arange(n) / 365.25) ** 2)
    c[0] += 0.1
    return c


def prolate(n, w=0.25, noise=1e-6):
    k = np.arange(1, n)
    return np.concatenate([[2 * w + noise], np.sin(2 * np.pi * w * k) / (np.pi * k)])


def difference(n):
    """The second difference, whose symbol has a zero, with all its zeros stored."""
    c = np.zeros(n)
    c[:2] = 2, -1
    return c


FAMILIES = {
    "exponential": correlations,
    "rational quadratic": rational_quadratic,
    "squared exponential + 1e-2": lambda n: squared_exponential(n, 1e-2),
    "squared exponential + 1e-8": lambda n: squared_exponential(n, 1e-8),
    "slow decay + 1e-10": lambda n: correlations(n, 10000.0, 1e-10),
    "periodic": periodic,
    "prolate": prolate,
    "second difference": difference,
}


def backward_error(dense, x, b):
    """How far the matrix would have to change, relative to its norm (Higham, 7.1)."""
    size = np.linalg.norm(dense, np.inf)
    residual = np.max(np.abs(b - dense @ x), axis=0)
    return np.max(residual / (size * np.max(np.abs(x), axis=0) + np.max(np.abs(b), axis=0)))


def definite(c):
    return sa.assume(sa.Toeplitz(c), "positive_definite")


# ---- residuals --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n", [SMALL, N])
@pytest.mark.parametrize("name", FAMILIES)
def test_residuals_are_like_lapacks(name, n):
    """Of right-hand sides at random, and of those of solutions at random, which are smaller relative to the solution."""
    c = FAMILIES[name](n)
    dense = scipy.linalg.toeplitz(c)
    rng = np.random.default_rng(0)
    columns = np.stack([rng.normal(size=n), dense @ rng.normal(size=n)], axis=-1)
    # LAPACK's error may be far below one rounding error; that is luck, not a bar.
    bar = 10 * max(EPS, backward_error(dense, np.linalg.solve(dense, columns), columns))
    for T in (definite(c), sa.Toeplitz(c)):
        for b in (columns[:, 0], columns[:, 1], np.tile(columns, 2)):
            with sa.densify("error"):
                x = np.asarray(sa.linalg.solve(T, sa.asarray(b)))
            assert backward_error(dense, x, b) <= bar


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("hermitian", [True, False])
def test_indefinite_matrices(seed, hermitian):
    """With nothing assumed; the iteration of the Hermitian ones is given up."""
    rng = np.random.default_rng(seed)
    c, r = rng.normal(size=(2, N))
    c[0] = r[0] = 0.0  # the first leading minor vanishes
    r = c if hermitian else r
    dense, b = scipy.linalg.toeplitz(c, r), rng.normal(size=N)
    with sa.densify("error"):
        x = np.asarray(sa.linalg.solve(sa.Toeplitz(c, r), sa.asarray(b)))
    assert backward_error(dense, x, b) <= 10 * max(EPS, backward_error(dense, np.linalg.solve(dense, b), b))


@pytest.mark.slow
def test_a_leading_minor_that_nearly_vanishes():
    rng = np.random.default_rng(0)
    c, r = rng.normal(size=(2, SMALL))
    c[0] = r[0] = 1.0
    r[1] = (1 + 1e-13) / c[1]
    dense, b = scipy.linalg.toeplitz(c, r), rng.normal(size=SMALL)
    x = np.asarray(sa.linalg.solve(sa.Toeplitz(c, r), sa.asarray(b)))
    assert backward_error(dense, x, b) <= 10 * max(EPS, backward_error(dense, np.linalg.solve(dense, b), b))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
@pytest.mark.parametrize("columns", [1, 5])
def test_other_dtypes(dtype, columns):
    c = correlations(N).astype(dtype)
    if np.dtype(dtype).kind == "c":
        c = (c * np.exp(0.3j * np.arange(N))).astype(dtype)
    dense = scipy.linalg.toeplitz(c)
    rng = np.random.default_rng(0)
    b = rng.normal(size=(N, columns)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        b = (b + 1j * rng.normal(size=b.shape)).astype(dtype)
    for T, matrix in ((definite(c), dense), (definite(c).mT, dense.T)):
        x = np.asarray(sa.linalg.solve(T, sa.asarray(b)))
        assert x.dtype == dtype
        assert backward_error(matrix, x, b) <= 16 * np.finfo(dtype).eps


@pytest.mark.slow
@pytest.mark.parametrize("n", [10007, 120000])
@pytest.mark.parametrize("name", ["exponential", "rational quadratic", "squared exponential + 1e-8"])
def test_large_matrices(name, n):
    c = FAMILIES[name](n)
    b = np.random.default_rng(0).normal(size=n)
    with sa.densify("error"):
        x = np.asarray(sa.linalg.solve(definite(c), sa.asarray(b)))
    residual = b - scipy.linalg.matmul_toeplitz(c, x)
    size = np.abs(c).sum()  # at most the length of the longest row
    assert np.max(np.abs(residual)) <= 20 * EPS * (size * np.max(np.abs(x)) + np.max(np.abs(b)))


@pytest.mark.parametrize("scales", [(1e-200, 1.0), (1e200, 1e180), (1.0, 1e-200)])
def test_scale_does_not_matter(scales):
    of_matrix, of_b = scales
    c, b = correlations(N), np.random.default_rng(0).normal(size=N)
    x = np.asarray(sa.linalg.solve(definite(of_matrix * c), sa.asarray(of_b * b)))
    expected = scipy.linalg.solve_toeplitz(c, b)
    np.testing.assert_allclose(x * (of_matrix / of_b), expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


def test_right_hand_sides_that_are_zero():
    b = np.zeros((N, 2))
    T = definite(correlations(N))
    assert not np.any(np.asarray(sa.linalg.solve(T, sa.asarray(b))))
    b[3, 1] = 1.0
    x = np.asarray(sa.linalg.solve(T, sa.asarray(b)))
    assert not np.any(x[:, 0])
    np.testing.assert_allclose(x[:, 1], scipy.linalg.solve_toeplitz(correlations(N), b[:, 1]), rtol=0, atol=1e-11)


# ---- the iteration itself ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [97, 640, 2048, 4999])
@pytest.mark.parametrize("preconditioned_by", ["Strang", "Chan"])
def test_the_iteration(n, preconditioned_by, monkeypatch):
    """Strang's circulant matrix is not definite where a slow decay is cut off; Chan's always is."""
    monkeypatch.setattr(toeplitz_iterations, "_steps", lambda n: 200)
    c = correlations(n) if preconditioned_by == "Strang" else 1 / (1 + (np.arange(n) / (n / 4)) ** 2 / 2)
    c[0] += 0.3
    order = toeplitz_iterations._order(n)
    reach = (order - 1) // 2 + 1
    strang = np.zeros(order)
    strang[: min(n, reach)] = c[:reach]
    strang[order - np.arange(1, min(n, reach))] = c[1:reach]
    assert (np.fft.fft(strang).real.min() > 0) == (preconditioned_by == "Strang")
    b = np.random.default_rng(n).normal(size=(2, n))
    x, ok = toeplitz_iterations.solve(jnp.asarray(c), jnp.asarray(b))
    assert ok.shape == (2,) and np.all(ok)
    expected = np.linalg.solve(scipy.linalg.toeplitz(c), b.T).T
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12 * n * np.max(np.abs(expected)))


@pytest.mark.slow
def test_what_the_iteration_does_not_solve():
    n = 500
    b = jnp.ones((1, n))
    rng = np.random.default_rng(0)
    for c in (rng.normal(size=n), np.full(n, np.nan), periodic(n), np.zeros(n), -correlations(n)):
        _, ok = toeplitz_iterations.solve(jnp.asarray(c), b)
        assert not np.any(ok)
    _, ok = toeplitz_iterations.solve(jnp.asarray(correlations(n)), b.at[0, 7].set(jnp.nan))
    assert not np.any(ok)


@pytest.mark.slow
def test_a_hermitian_matrix_need_not_be_assumed_definite():
    """What comes out is what the iteration gives, and not the columns by elimination."""
    values = jnp.asarray(np.concatenate([correlations(N)[::-1], correlations(N)[1:]]))
    unit, *_ = toeplitz_solvers.first_column_and_row(values)
    iterated, ok = toeplitz_solvers.iterated(values, unit[:, None])
    assert ok
    columns = toeplitz_solvers.columns(values, False)
    np.testing.assert_array_equal(columns.x, iterated[:, 0])
    dense = scipy.linalg.toeplitz(correlations(N))
    np.testing.assert_allclose(columns.x, np.linalg.inv(dense)[:, 0], rtol=0, atol=1e-12)


# ---- batches, transformations -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("columns", [1, 4])
def test_batches(hard, columns):
    """Where one of a batch does not converge, all are solved by recursion."""
    lines = np.stack([correlations(N, 5.0), periodic(N) if hard else correlations(N, 50.0)])
    b = np.random.default_rng(0).normal(size=(2, N, columns))
    x = np.asarray(sa.linalg.solve(definite(lines), sa.asarray(b)))
    for c, right, solution in zip(lines, b, x, strict=True):
        assert backward_error(scipy.linalg.toeplitz(c), solution, right) <= 16 * EPS


def _solution(c, b):
    return sa.linalg.solve(definite(c), b[:, None])[:, 0]


@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0)])
def test_vmap(in_axes):
    lines = jnp.asarray(np.stack([correlations(N, length) for length in (5.0, 20.0)]))
    b = jnp.asarray(np.random.default_rng(0).normal(size=(2, N)))
    args = [a if axis == 0 else a[0] for a, axis in zip((lines, b), in_axes, strict=True)]
    x = jax.jit(jax.vmap(_solution, in_axes))(*args)
    for i in range(2):
        c, right = (a if axis is None else a[i] for a, axis in zip(args, in_axes, strict=True))
        expected = scipy.linalg.solve_toeplitz(c, right)
        np.testing.assert_allclose(x[i], expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("dtype", [float, complex])
def test_derivatives(dtype, columns):
    """Of a sum of squares along a line of matrices T + t D: backwards, forwards and twice, against SciPy's solutions.

    With ``T x = b`` it is ``T x' = -D x`` and ``T x'' = -2 D x'``.
    """
    rng = np.random.default_rng(0)
    phase = np.exp(0.3j * np.arange(N)) if dtype is complex else 1.0
    c, direction = correlations(N) * phase, correlations(N, 3.0, 0.0) * phase
    b, weights = rng.normal(size=(2, N, columns))

    def along(t):
        x = as_jax(sa.linalg.solve(definite(c + t * direction), sa.asarray(b)))
        return jnp.sum(jnp.abs(x * weights) ** 2)

    def derivatives(t):
        forwards, twice = jax.jvp(lambda t: jax.jvp(along, (t,), (1.0,))[1], (t,), (1.0,))
        return along(t), jax.grad(along)(t), forwards, twice, jax.jvp(jax.grad(along), (t,), (1.0,))[1]

    x, first, second = _solution_and_derivatives(c, direction, b)
    squares = weights**2
    slope = 2 * np.sum(squares * np.real(np.conj(x) * first))
    curvature = 2 * np.sum(squares * (np.abs(first) ** 2 + np.real(np.conj(x) * second)))
    expected = [np.sum(squares * np.abs(x) ** 2), slope, slope, curvature, curvature]
    np.testing.assert_allclose(jax.jit(derivatives)(0.0), expected, rtol=1e-9)


def _solution_and_derivatives(c, direction, b):
    x = scipy.linalg.solve_toeplitz(c, b)
    first = -scipy.linalg.solve_toeplitz(c, scipy.linalg.matmul_toeplitz(direction, x))
    return x, first, -2 * scipy.linalg.solve_toeplitz(c, scipy.linalg.matmul_toeplitz(direction, first))


@pytest.mark.slow
def test_derivatives_under_vmap():
    lines = jnp.asarray(np.stack([correlations(N, length) for length in (5.0, 20.0)]))
    b = jnp.asarray(np.random.default_rng(0).normal(size=N))
    direction = jnp.asarray(correlations(N, 3.0, 0.0))
    derivatives = jax.jit(jax.vmap(jax.grad(lambda c: b @ _solution(c, b))))(lines) @ direction
    for c, derivative in zip(lines, derivatives, strict=True):
        x = scipy.linalg.solve_toeplitz(c, b)
        np.testing.assert_allclose(derivative, -x @ scipy.linalg.matmul_toeplitz(direction, x), rtol=1e-10)


def test_nothing_is_as_large_as_the_matrix():
    """In the branch for what does not converge as well."""
    T, b = definite(correlations(N)), sa.asarray(np.ones(N))
    with sa.densify("error"):
        compiled = jax.jit(lambda T, b: sa.linalg.solve(T, b)).lower(T, b).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 0.1 * N * N * 8


# ---- what has no solution ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 4])
def test_a_broken_promise(columns):
    c = np.random.default_rng(0).normal(size=N)
    b = sa.asarray(np.ones((N, columns)))
    with pytest.raises(np.linalg.LinAlgError, match=r"linalg\.solve"):
        sa.linalg.solve(definite(c), b)
    assert np.isnan(np.asarray(jax.jit(sa.linalg.solve)(definite(c), b))).all()


@pytest.mark.each_parameter
@pytest.mark.parametrize("assumed", [True, False])
@pytest.mark.parametrize("name", ["ones", "zeros"])
def test_singular_matrices(name, assumed):
    """Also with a right-hand side for which there are solutions, if nothing is assumed."""
    c = {"ones": np.ones(N), "zeros": np.zeros(N)}[name]
    T = definite(c) if assumed else sa.Toeplitz(c)
    rng = np.random.default_rng(0)
    for b in (rng.normal(size=N), *(() if assumed else (scipy.linalg.matmul_toeplitz(c, rng.normal(size=N)),))):
        with sa.densify("error"), pytest.raises(np.linalg.LinAlgError, match=r"linalg\.solve"):
            sa.linalg.solve(T, sa.asarray(b))


@pytest.mark.parametrize("assumed", [True, False])
def test_a_matrix_that_is_singular_but_for_rounding(assumed):
    """Of rank two, with entries that are rounded: an error, or a solution with a small backward error."""
    c = np.cos(np.arange(N))
    T = definite(c) if assumed else sa.Toeplitz(c)
    rng = np.random.default_rng(0)
    for b in (rng.normal(size=N), scipy.linalg.matmul_toeplitz(c, rng.normal(size=N))):
        try:
            with sa.densify("error"):
                x = np.asarray(sa.linalg.solve(T, sa.asarray(b)))
        except np.linalg.LinAlgError as error:
            assert "linalg.solve" in str(error)
        else:
            residual = np.max(np.abs(b - scipy.linalg.matmul_toeplitz(c, x)))
            assert residual <= 1e-13 * (np.sum(np.abs(c)) * np.max(np.abs(x)) + np.max(np.abs(b)))


@pytest.mark.parametrize("assumed", [True, False])
def test_nan_gives_nan_and_no_error(assumed):
    c = correlations(N)
    b = np.ones(N)
    broken = b.copy()
    broken[5] = np.nan
    for line, right in ((c, broken), (np.where(np.arange(N) == 3, np.nan, c), b)):
        T = definite(line) if assumed else sa.Toeplitz(line)
        assert np.isnan(np.asarray(sa.linalg.solve(T, sa.asarray(right)))).all()
