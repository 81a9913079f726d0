"""Matrices for which solvers by parts fail: compiled code falls back to the dense form, as eager calls do. NumPy gives the expected values."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import as_jax

import structarrays as sa
from structarrays._structures.toeplitz import solvers as toeplitz_solvers

N, M, COUNT = 40, 12, 4


def saddle_points(rng):
    """Matrices ``[[D, C.T], [C, 0]]`` with zeros on the diagonal of D, and one without."""
    diagonal = rng.normal(size=(COUNT, N))
    for row in diagonal[:-1]:
        row[rng.choice(N, size=5, replace=False)] = 0
    constraints = sa.asarray(rng.normal(size=(COUNT, M, N)))
    return sa.Block([[sa.Diagonal(diagonal), constraints.mT], [constraints, None]])


def nearly_singular_pivots(rng):
    """A constant vector is nearly in the null space of the first block; a border makes the matrix regular."""
    weights = rng.exponential(size=(COUNT, N - 1))
    diagonal = np.zeros((COUNT, N))
    diagonal[:, :-1] += weights
    diagonal[:, 1:] += weights
    laplacian = sa.tridiagonal(-weights, diagonal + 1e-13, -weights)
    border = sa.asarray(np.ones((COUNT, N, 1)))
    return sa.Block([[laplacian, border], [border.mT, None]])


def toeplitz_bases(rng):
    """Badly conditioned sums of a smooth kernel, singular up to rounding, and a term of low rank; and well-conditioned sums."""
    lags = np.arange(2 * N)
    columns = np.stack([np.exp(-np.square(lags / length)) for length in (1, 2, 3, 5)])
    wide = rng.normal(size=(COUNT, 2 * N, N - 1))
    return sa.Toeplitz(columns) + sa.LowRank(wide, wide)


MATRICES = {f.__name__: f for f in (saddle_points, nearly_singular_pivots, toeplitz_bases)}


def log_determinant(x):
    return jnp.stack([as_jax(part) for part in sa.linalg.slogdet(x)])


def solution(x):
    return sa.linalg.solve(x, jnp.ones(x.shape[-1]))


def determinant(x):
    return as_jax(sa.linalg.det(x))


ORACLES = {
    log_determinant: lambda a: np.stack(np.linalg.slogdet(a)),
    determinant: np.linalg.det,
    solution: lambda a: np.linalg.solve(a, np.ones(len(a))),
}


@pytest.mark.costly
@pytest.mark.parametrize("function", ORACLES)
@pytest.mark.parametrize("name", MATRICES)
def test_eager_and_compiled_results_agree_with_numpy(name, function, rng):
    x = MATRICES[name](rng)
    matrices = [x[i] for i in range(COUNT)]
    mapped = jax.jit(jax.vmap(function))(x)
    compiled = jax.jit(function)
    for matrix, of_batch in zip(matrices, mapped, strict=True):
        dense = np.asarray(matrix.to_dense())
        wanted = ORACLES[function](dense)
        assert np.linalg.cond(dense) < 1e11
        bound = 1e-14 * np.linalg.cond(dense) * max(1, np.max(np.abs(wanted)))
        for found in (function(matrix), compiled(matrix), of_batch):
            np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("function", [solution, log_determinant])
def test_derivatives(function, rng):
    """Derivatives forward and in reverse, compiled, with and without ``vmap``, equal JAX's derivatives of the dense form."""
    x = saddle_points(rng)
    direction = jnp.asarray(rng.normal(size=(COUNT, N)))

    def along(t, matrix, change):
        return function(matrix + sa.Block([[sa.Diagonal(t * change), None], [None, sa.zeros((M, M))]]))

    dense = {
        solution: lambda a: jnp.linalg.solve(a, jnp.ones(N + M)),
        log_determinant: lambda a: jnp.linalg.slogdet(a)[1],
    }

    def densely(t, matrix, change):
        return dense[function](matrix + t * jnp.diag(jnp.pad(change, (0, M))))

    matrices = jnp.asarray(x.to_dense())
    wanted = jax.vmap(jax.jacfwd(densely), in_axes=(None, 0, 0))(0.0, matrices, direction)
    for derivative in (jax.jacfwd, jax.jacrev):
        mapped = jax.jit(jax.vmap(derivative(along), in_axes=(None, 0, 0)))(0.0, x, direction)
        one = jax.jit(derivative(along))(0.0, x[0], direction[0])
        for found, expected in ((mapped, wanted), (one, wanted[0])):
            found = found[..., 1] if function is log_determinant else found
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.costly
@pytest.mark.parametrize("compiled", [False, True])
def test_scales_of_rows_and_columns_change_no_digit(compiled, rng):
    """A pivot is nearly singular. One huge entry in another block, or blocks of other sizes, do not hide that."""
    n = 20
    pivot = np.diag([1.0, *[2.0] * (n - 2), 1.0]) - np.eye(n, k=1) - np.eye(n, k=-1) + 1e-9 * np.eye(n)
    right, left, corner = rng.normal(size=(3, 3, n, n))
    corner *= np.eye(n)
    corner[0, -1, -1] = 1e14
    right[1] *= 1e-8
    left[1] *= 1e8
    right[2] *= 1e-8
    corner[2] *= 1e-8
    pivots = sa.tridiagonal(*(np.broadcast_to(np.diagonal(pivot, k), (3, n - abs(k))) for k in (-1, 0, 1)))
    x = sa.Block([[pivots, sa.asarray(right)], [sa.asarray(left), sa.Diagonal(np.diagonal(corner, axis1=1, axis2=2))]])
    function = jax.jit(log_determinant) if compiled else log_determinant
    expected = np.linalg.slogdet(np.asarray(x.to_dense()))
    np.testing.assert_allclose(function(x), np.stack(expected), rtol=1e-12)


def test_policy_forbids_the_dense_form(rng):
    """Without a dense form, compiled code returns NaN, and an eager call raises."""
    x = saddle_points(rng)[0]
    with sa.densify("error"):
        assert np.all(np.isnan(jax.jit(solution)(x)))
        assert np.isnan(jax.jit(determinant)(x))
        with pytest.raises(np.linalg.LinAlgError, match="dense form was not tried"):
            solution(x)
    with sa.densify(limit=8 * (N + M) ** 2 - 1):
        assert np.all(np.isnan(jax.jit(solution)(x)))
    with sa.densify(limit=8 * (N + M) ** 2):
        assert np.all(np.isfinite(jax.jit(solution)(x)))


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("compiled", [False, True])
def test_solutions_that_lose_digits_are_replaced_by_solutions_of_the_dense_form(compiled, rng):
    """Refinement leaves up to 70 rounding errors for these matrices. They are accepted only where the dense form is forbidden."""
    n, count = 40, 30
    differences = np.diff(np.eye(n), 3, axis=0)
    penalty = (differences.T @ differences).astype(np.float32)
    band = sa.Banded([np.diagonal(penalty, k) for k in range(-3, 4)], range(-3, 4), (n, n))
    polynomials = np.vander(np.linspace(-1, 1, n), 3)
    solve = jax.jit(sa.linalg.solve) if compiled else sa.linalg.solve

    def errors():
        for x, a, b in zip(matrices, dense, sides, strict=True):
            found = np.asarray(solve(x, b), float)
            size = np.max(np.sum(np.abs(a), axis=1)) * np.max(np.abs(found)) + np.max(np.abs(b))
            yield np.max(np.abs(a @ found - b)) / size / np.finfo(np.float32).eps

    terms = [(polynomials + 0.1 * rng.random() * rng.normal(size=(n, 3))).astype(np.float32) for _ in range(count)]
    matrices = [band + sa.LowRank(term, term) for term in terms]
    dense = [np.asarray(x, float) for x in matrices]
    sides = rng.normal(size=(count, n)).astype(np.float32)
    assert max(errors()) < 10
    with sa.densify("error"):
        assert 10 < max(errors()) < 100


@pytest.mark.slow
def test_large_matrices_reserve_no_memory_for_the_dense_form():
    n = 4000
    x = jax.eval_shape(lambda d: sa.Block([[sa.Diagonal(d), None], [None, sa.Diagonal(d)]]) + 1.0, jnp.ones(n))
    for function in (solution, log_determinant):
        memory = jax.jit(function).lower(x).compile().memory_analysis().temp_size_in_bytes
        assert memory < 100 * 8 * n


@pytest.mark.slow
def test_large_stacks_reserve_no_memory_for_the_dense_forms():
    count, n = 20, 1000  # each dense form alone would be small enough
    x = jax.eval_shape(lambda d: sa.Block([[sa.Diagonal(d), None], [None, sa.Diagonal(d)]]) + 1.0, jnp.ones((count, n)))
    for function in (solution, log_determinant):
        memory = jax.jit(function).lower(x).compile().memory_analysis().temp_size_in_bytes
        assert memory < 100 * 8 * n * count


def branch_sizes(jaxpr):
    """Numbers of elements of what the branches of a program return, without branches within branches."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "cond":
            yield from (math.prod(variable.aval.shape) for variable in equation.outvars)
            continue
        for parameter in equation.params.values():
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                yield from branch_sizes(inner)


CONSTANT = np.ones((300, 1))
TRIDIAGONAL = sa.tridiagonal(-0.1 * np.ones(299), np.ones(300), -0.1 * np.ones(299))
DECAY = 0.5 ** np.arange(300)
PROGRAMS = {
    "determinant": (determinant, TRIDIAGONAL),
    "determinant of Toeplitz": (determinant, sa.Toeplitz(0.5 ** np.arange(600))),
    "determinant of a border": (determinant, sa.Block([[TRIDIAGONAL, CONSTANT], [CONSTANT.T, np.zeros((1, 1))]])),
    "logarithm of a border": (
        lambda x: log_determinant(x)[1],
        sa.Block([[TRIDIAGONAL, CONSTANT], [CONSTANT.T, np.zeros((1, 1))]]),
    ),
    "logarithm of an update": (lambda x: log_determinant(x)[1], TRIDIAGONAL + sa.LowRank(CONSTANT / 300, CONSTANT)),
    "least squares": (
        lambda x: jnp.sum(as_jax(sa.linalg.lstsq(x, np.ones(301))[0])),
        sa.Banded([np.ones(300), np.ones(300)], (0, -1), shape=(301, 300)),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_keep_nothing_of_a_dense_form_that_is_not_needed(name):
    """Reverse mode allocates what a branch keeps for it, and fills it with zeros if another branch runs."""
    function, x = PROGRAMS[name]
    sizes = list(branch_sizes(jax.make_jaxpr(sa.grad(function))(x).jaxpr))
    assert 0 < max(sizes) < 20 * x.shape[-1]


def test_limit_counts_all_matrices_of_a_stack(rng):
    x = saddle_points(rng)
    size = 8 * COUNT * (N + M) ** 2
    for limit, fits in ((size - 1, False), (size, True)):
        with sa.densify(limit=limit):
            assert np.isfinite(jax.jit(log_determinant)(x)[1]).all() == fits


@pytest.fixture
def _by_elimination(monkeypatch):
    """Compute determinants of Toeplitz matrices by elimination, at any size above 256."""
    monkeypatch.setattr(toeplitz_solvers, "_DETERMINED_AS_DENSE", 0)


def geometric(rng):
    """Columns and rows that decay and grow: the elimination with displacement structure loses digits."""
    k = np.arange(270)
    return 2.0**-k, 1.05**k


def random_geometric(rng):
    k = np.arange(270)
    column, row = 0.9**k * rng.normal(size=270), 1.05**k * rng.normal(size=270)
    row[0] = column[0]
    return column, row


def smooth(rng):
    column = np.exp(-np.square(np.arange(270) / 10)) + 1e-10 * (np.arange(270) == 0)
    return column, column


@pytest.mark.costly
@pytest.mark.parametrize("make", [geometric, random_geometric, smooth])
@pytest.mark.usefixtures("_by_elimination")
def test_determinants_of_toeplitz_matrices(make, rng):
    column, row = make(rng)
    a = scipy.linalg.toeplitz(column, row)
    x = sa.Toeplitz(column, row)
    sign, logarithm = np.linalg.slogdet(a)
    tolerance = 1e-3 if make is smooth else 1e-10
    stack = sa.Toeplitz(np.stack([column] * 2), np.stack([row] * 2))
    for found in (log_determinant(x), jax.jit(log_determinant)(x), jax.jit(jax.vmap(log_determinant))(stack)[1]):
        assert found[0] == sign
        np.testing.assert_allclose(found[1], logarithm, rtol=0, atol=tolerance)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("make", [geometric, random_geometric])
@pytest.mark.usefixtures("_by_elimination")
def test_derivatives_of_determinants_of_toeplitz_matrices(make, rng):
    """Of the logarithm, where the dense form gives it: ``tr(A^-1 dA)``, forwards, in reverse, mapped."""
    column, row = make(rng)
    change = np.exp(-np.arange(270) / 9)
    wanted = np.trace(
        np.linalg.solve(
            scipy.linalg.toeplitz(column, row), scipy.linalg.toeplitz(change, np.r_[change[0], row[1:] * 0])
        )
    )

    def along(t):
        return as_jax(
            sa.linalg.slogdet(sa.Toeplitz(column + t * change, jnp.r_[column[0] + t * change[0], row[1:]])).logabsdet
        )

    mapped = jax.jit(jax.vmap(jax.grad(along)))(jnp.zeros(2))[1]
    for found in (jax.jit(jax.jacfwd(along))(0.0), jax.jit(jax.grad(along))(0.0), mapped):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.usefixtures("_by_elimination")
def test_determinants_of_toeplitz_matrices_beyond_the_limit_are_nan(rng):
    x = sa.Toeplitz(*geometric(rng))
    with sa.densify("error"):
        assert np.isnan(jax.jit(determinant)(x))
        assert np.isnan(determinant(x))


def test_determinant_of_a_singular_toeplitz_matrix_is_zero():
    x = sa.Toeplitz(np.ones(300))
    assert determinant(x) == 0
    assert functools.partial(jax.jit(log_determinant), x)()[1] == -np.inf


def test_the_reverse_mode_needs_no_other_way(rng):
    """The transposed system is solved at the first attempt: where nothing else may be tried, the gradient is right, too."""
    n = 64
    column = 0.5 ** np.arange(n) + 4.0 * (np.arange(n) == 0)
    row = 0.3 ** np.arange(n)
    u, v, weights, b = rng.normal(size=(4, n, 2))
    row[0] = column[0]

    def value(u, solve, base):
        return jnp.sum(weights * solve(base, u))

    def by_parts(base, u):
        return as_jax(sa.linalg.solve(base + sa.LowRank(u, v), sa.asarray(b)))

    def densely(base, u):
        return jnp.linalg.solve(base + u @ v.T, b)

    wanted = jax.grad(value)(jnp.asarray(u), densely, jnp.asarray(scipy.linalg.toeplitz(column, row)))
    with sa.densify("error"):
        found = jax.jit(jax.grad(lambda u: value(u, by_parts, sa.Toeplitz(column, row))))(jnp.asarray(u))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.max(np.abs(wanted)))
