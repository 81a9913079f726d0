"""Band matrices on a ring against NumPy on their dense forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays._structures.periodic import numerics
from structarrays.testing import check_structure

N = 60


def dense(diagonals, offsets):
    n = np.shape(diagonals[0])[-1]
    a = np.zeros((n, n), np.result_type(*diagonals))
    for d, k in zip(diagonals, offsets, strict=True):
        for i in range(n):
            a[i, (i + k) % n] += d[i]
    return a


def constant(*values, n=N):
    return [np.full(n, v) for v in values]


def hard(name, n=N):
    """Diagonals and offsets of matrices that users have, and whether they are positive definite."""
    i = np.arange(n)
    return {
        "second differences + 1e-8": (constant(-1.0, 2 + 1e-8, -1.0, n=n), (-1, 0, 1), True),
        "central differences + 0.1": (constant(-0.5, 0.1, 0.5, n=n), (-1, 0, 1), False),
        "without a diagonal": ([1 + 0.5 * np.sin(i), 2 + np.cos(i)], (-1, 2), False),
        "a shift": (constant(1.0, n=n), (1,), False),
        "spline penalty + 1e-6": (constant(1.0, -4.0, 6 + 1e-6, -4.0, 1.0, n=n), (-2, -1, 0, 1, 2), True),
        "alternating": ([(-1.0) ** i, np.full(n, 3.0), np.ones(n)], (-3, 0, 1), False),
        "graded": ([10.0 ** -(i / 6), 10.0 ** -(i / 7), 10.0 ** -(i / 8)], (-1, 0, 1), False),
        "tiny": ([1e-250 * (1 + i % 3), np.full(n, 5e-250), 1e-250 * np.ones(n)], (-1, 0, 1), False),
        "huge": ([1e250 * (1 + i % 3), np.full(n, 5e250), 1e250 * np.ones(n)], (-1, 0, 1), False),
        "complex": ([np.exp(1j * i), np.full(n, 3.0 + 1j), np.exp(2j * i)], (-2, 0, 1), False),
    }[name]


HARD = (
    "second differences + 1e-8", "central differences + 0.1", "without a diagonal", "a shift", "spline penalty + 1e-6",
    "alternating", "graded", "tiny", "huge", "complex",
)  # fmt: skip


def backward_error(a, x, b):
    size = np.linalg.norm(a / np.abs(a).max(), np.inf) * np.abs(a).max()
    r = np.abs(b - a.astype(np.result_type(a, np.longdouble)) @ x).max(axis=0)
    return float(np.max(r / (size * np.abs(x).max(axis=0) + np.abs(b).max(axis=0))))


def right_hand_sides(a, n):
    b = np.stack([np.ones(n), (-1.0) ** np.arange(n), np.eye(n)[0], np.linspace(0, 1, n)], axis=1)
    return b.astype(a.dtype) * (np.abs(a).max() if not 1e-9 < np.abs(a).max() < 1e9 else 1.0)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 13, 30, 31])
@pytest.mark.parametrize("offsets", [(0,), (1,), (-1, 0, 1), (0, 1, 2), (-2, 0, 3), (-3, -1, 0, 1, 3)])
def test_folded_order_has_a_band(n, offsets, rng):
    """Of every size, also where offsets coincide modulo the size: rows and columns in another order, and back."""
    offsets = tuple(sorted({numerics.normalised(k, n) for k in offsets}))
    diagonals = [rng.normal(size=n) for _ in offsets]
    order = np.asarray(numerics.fold(jnp.arange(n)))
    assert sorted(order) == list(range(n))
    np.testing.assert_array_equal(numerics.unfold(numerics.fold(jnp.arange(n))), np.arange(n))
    band, there = numerics.folded([jnp.asarray(d) for d in diagonals], offsets, n)
    assert max(map(abs, there)) <= 2 * max(map(abs, offsets))
    a = dense(diagonals, offsets)[np.ix_(order, order)]
    for d, t in zip(band, there, strict=True):
        np.testing.assert_array_equal(d, np.diagonal(a, t))
    assert sum(np.count_nonzero(np.diagonal(a, t)) for t in there) == np.count_nonzero(a)
    for d, back in zip(diagonals, numerics.unfolded(band, offsets, n), strict=True):
        np.testing.assert_array_equal(back, d)


@pytest.mark.costly
@pytest.mark.parametrize("name", HARD)
def test_systems_and_determinants(name):
    """With LAPACK's accuracy, without assumptions, eagerly, compiled and mapped, and nothing becomes dense."""
    diagonals, offsets, _ = hard(name)
    a, x = dense(diagonals, offsets), sa.PeriodicBanded(diagonals, offsets)
    b = right_hand_sides(a, N)
    bar = 10 * max(backward_error(a, np.linalg.solve(a, b), b), np.finfo(float).eps)
    sign, logarithm = np.linalg.slogdet(a / np.abs(a).max())
    logarithm += N * np.log(np.abs(a).max())
    mapped = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), x)
    with sa.densify("error"):
        for run in (lambda f: f, jax.jit):
            solution = np.asarray(run(lambda x, b: sa.linalg.solve(x, b))(x, b))
            assert backward_error(a, solution, b) <= bar
            found = run(sa.linalg.slogdet)(x)
            np.testing.assert_allclose(complex(found.sign), sign, atol=1e-9)
            np.testing.assert_allclose(
                float(found.logabsdet), logarithm, rtol=1e-12, atol=1e-12 * np.linalg.cond(a / np.abs(a).max())
            )
        both = np.asarray(jax.vmap(lambda x: as_jax(sa.linalg.solve(x, b)))(mapped))
    assert backward_error(a, both[0], b) <= bar and backward_error(2 * a, both[1], b) <= bar


@pytest.mark.parametrize("name", HARD)
def test_definite_systems_and_factors(name):
    diagonals, offsets, is_definite = hard(name)
    a, x = dense(diagonals, offsets), sa.PeriodicBanded(diagonals, offsets)
    if not is_definite:
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.cholesky(x - 100.0 * np.abs(a).max() * sa.eye(N))
        return
    definite, b = sa.assume(x, "positive_definite"), right_hand_sides(a, N)
    bar = 10 * max(backward_error(a, np.linalg.solve(a, b), b), np.finfo(float).eps)
    with sa.densify("error"):
        assert backward_error(a, np.asarray(sa.linalg.solve(definite, b)), b) <= bar
        factor, upper = sa.linalg.cholesky(x), sa.linalg.cholesky(x, upper=True)
    assert type(factor) is sa.Block and factor.nbytes < a.nbytes / 2
    lower = np.asarray(factor)
    np.testing.assert_array_equal(lower, np.tril(lower))
    np.testing.assert_allclose(lower @ lower.T, a, atol=1e-13 * np.abs(a).max())
    np.testing.assert_allclose(np.asarray(upper), lower.T, atol=1e-14)
    np.testing.assert_allclose(
        np.asarray(sa.linalg.eigvalsh(x)), np.linalg.eigvalsh(a), atol=1e-13 * np.abs(a).max() * N
    )
    np.testing.assert_allclose(np.asarray(sa.linalg.svdvals(x)), np.linalg.svd(a)[1], atol=1e-12 * np.abs(a).max() * N)
    selected, inverse = sa.linalg.selected_inverse(x), np.linalg.inv(a)
    assert type(selected) is sa.PeriodicBanded
    stored = a != 0
    np.testing.assert_allclose(np.asarray(selected)[stored], inverse[stored], rtol=1e-15 * np.linalg.cond(a) + 1e-9)


def test_singular_ones_are_refused():
    x = sa.PeriodicBanded(constant(-1.0, 2.0, -1.0), (-1, 0, 1))
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(sa.PeriodicBanded(constant(0.0, 1.0), (0, 1)) * 0.0, sa.ones(N))
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(sa.PeriodicBanded([np.r_[0.0, np.ones(N - 1)]], (3,)), sa.ones(N))
    np.testing.assert_allclose(float(sa.linalg.det(x)), 0.0, atol=1e-9)
    assert int(sa.linalg.matrix_rank(x)) == N - 1


def test_grids_on_a_torus(rng):
    """Their band would be wide, and full of zeros: the sparse form costs less."""
    m = 50
    n = m * m
    x = sa.PeriodicBanded(constant(4.1, -1.0, -1.0, -1.0, -1.0, n=n), (0, 1, -1, m, -m))
    a, b = dense(list(map(np.asarray, x.diagonals)), x.offsets), rng.normal(size=n)
    assert "the sparse form: 5 diagonals up to offset 50" in str(sa.explain(sa.linalg.solve, x, b))

    def value(x):
        return as_jax(sa.sum(sa.linalg.solve(x, b)) + sa.linalg.logdet(x))

    inverse = np.linalg.inv(a)
    change = inverse.T - np.outer(inverse.T @ np.ones(n), inverse @ b)
    with sa.densify("error"):
        np.testing.assert_allclose(np.asarray(sa.linalg.solve(x, b)), inverse @ b, rtol=1e-11)
        for gradient in (jax.grad(value)(x), jax.jit(jax.grad(value))(x)):
            for k, d in zip(x.offsets, gradient.diagonals, strict=True):
                i = np.arange(n)
                np.testing.assert_allclose(d, change[i, (i + k) % n], rtol=1e-9, atol=1e-11)


REDUCED = {
    "narrow": ((-2, 0, 1), 9),
    "one diagonal": ((4,), 9),
    "all diagonals": (tuple(range(-4, 5)), 9),
}


@pytest.mark.parametrize("function", ["sum", "prod", "max", "all", "count_nonzero", "mean", "var"])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name, function, rng):
    offsets, n = REDUCED[name]
    x = sa.PeriodicBanded(list(rng.normal(size=(len(offsets), 2, n))), offsets)
    for array in (x, sa.cos(x) / 2):
        expected = np.asarray(array)
        for axis in (None, -1, -2, (1, 2), (0, -1)):
            found = getattr(sa, function)(array, axis=axis, keepdims=axis == -2)
            np.testing.assert_allclose(
                np.asarray(found),
                getattr(np, function)(expected, axis=axis, keepdims=axis == -2),
                rtol=1e-12,
                atol=1e-14,
            )


def test_reductions_of_many_diagonals(rng):
    x = sa.PeriodicBanded(list(rng.normal(size=(50, 60))), tuple(range(-25, 25)))
    expected = np.asarray(x)
    np.testing.assert_allclose(np.asarray(sa.sum(x, axis=0)), expected.sum(axis=0), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.asarray(sa.std(x, axis=1)), expected.std(axis=1), rtol=1e-12)


def test_reductions_do_not_scatter():
    x = sa.PeriodicBanded(constant(1.0, 2.0, 1.0, n=1000), (-1, 0, 1))
    for function in (sa.sum, sa.var, lambda x: sa.max(x, axis=0), lambda x: sa.std(x, axis=1)):
        assert "scatter" not in jax.jit(lambda x, f=function: as_jax(f(x))).lower(x).as_text()


def test_products_and_sums():
    (d, offsets, _), (e, others, _) = hard("alternating"), hard("without a diagonal")
    x, y = sa.PeriodicBanded(d, offsets), sa.PeriodicBanded(e, others)
    a, b = dense(d, offsets), dense(e, others)
    band = sa.tridiagonal(np.ones(N - 1), np.full(N, 2.0), np.ones(N - 1))
    data = np.linspace(0, 1, 3 * N).reshape(N, 3)
    for found, expected in {
        "sum": (x + y, a + b), "difference": (x - band, a - np.asarray(band)), "band first": (band + x, a + np.asarray(band)),
        "product": (x @ y, a @ b), "with a band": (x @ band, a @ np.asarray(band)), "a band with": (band @ x, np.asarray(band) @ a),
        "transposed": (x.mT, a.T), "scaled rows": (sa.Diagonal(np.arange(1.0, N + 1)) @ x, np.arange(1.0, N + 1)[:, None] * a),
        "multiple": (3 * x, 3 * a), "exp": (sa.exp(x), np.exp(a)), "hadamard": (x * y, a * b), "shift": (x + 1.0, a + 1.0),
    }.values():  # fmt: skip
        assert type(found) is sa.PeriodicBanded
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-12)
    for found, expected in (
        (x @ data, a @ data), (x @ data[:, 0], a @ data[:, 0]), (data.T @ x, data.T @ a), ((x + 1.0) @ data, (a + 1.0) @ data),
        (sa.sum(x, axis=0), a.sum(axis=0)), (sa.max(x, axis=1), a.max(axis=1)), (sa.var(x, axis=0), a.var(axis=0)),
        (x[3], a[3]), (x[:, -1], a[:, -1]), (x[5:9, 2:7], a[5:9, 2:7]), (sa.linalg.diagonal(x, offset=2), np.diagonal(a, 2)),
        (sa.linalg.trace(x), np.trace(a)), (x + sa.Circulant(data[:, 1]), a + np.asarray(sa.Circulant(data[:, 1]))),
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-12)


def test_a_corner_closes_a_band(rng):
    """A write into the corner of a tridiagonal matrix: the ring of a periodic boundary."""
    a = np.diag(rng.normal(size=N)) + np.diag(rng.normal(size=N - 1), 1) + np.diag(rng.normal(size=N - 1), -1)
    x = sa.tridiagonal(np.diagonal(a, -1), np.diagonal(a), np.diagonal(a, 1))
    x[0, N - 1] = a[0, N - 1] = 0.5
    x[N - 1, 0] = a[N - 1, 0] = -0.25
    assert type(x) is sa.PeriodicBanded and x.offsets == (-1, 0, 1)
    x[7, 7] = a[7, 7] = 4.0
    assert type(x) is sa.PeriodicBanded
    np.testing.assert_array_equal(np.asarray(x), a)


def test_writes_change_no_other_array():
    """The first write copies what another array shares, and those after it write in place."""
    x = sa.PeriodicBanded(constant(1.0, 2.0, 3.0), (-1, 0, 1))
    others = [sa.asarray(x, copy=True), x + 0.0, x.mT]
    kept = [np.array(y) for y in others]
    expected = np.array(x)
    for i in range(N):
        x[i, i] = expected[i, i] = float(i)
        x[i, (i + 1) % N] = expected[i, (i + 1) % N] = -1.0
    x[3, 9] = expected[3, 9] = 5.0
    assert type(x) is sa.PeriodicBanded and x.offsets == (-1, 0, 1, 6)
    np.testing.assert_array_equal(np.asarray(x), expected)
    for y, value in zip(others, kept, strict=True):
        np.testing.assert_array_equal(np.asarray(y), value)
    stack = sa.PeriodicBanded([np.ones((2, N))], (0,))
    stack[..., 0, N - 1] = np.array([3.0, 4.0])
    assert type(stack) is sa.PeriodicBanded
    np.testing.assert_array_equal(np.asarray(stack)[:, 0, N - 1], [3.0, 4.0])


@pytest.mark.costly
@pytest.mark.parametrize("function", ["solve", "slogdet", "product", "eigvalsh"])
def test_derivatives(function):
    """Forward and backward, of diagonals in the corners, too, against central differences."""
    d = jnp.stack([-jnp.ones(12), 4.0 + 0.1 * jnp.arange(12.0), -1 + 0.05 * jnp.arange(12.0)])
    b = jnp.linspace(0.0, 1.0, 12)

    def f(d):
        x = sa.PeriodicBanded(d, (-1, 0, 1))
        if function == "solve":
            return jnp.sum(sa.linalg.solve(x, b) ** 2)
        if function == "slogdet":
            return as_jax(sa.linalg.slogdet(x).logabsdet)
        if function == "product":
            return jnp.sum(as_jax(x @ x @ sa.asarray(b)) ** 2)
        return jnp.sum(jnp.sin(as_jax(sa.linalg.eigvalsh(x + x.mT))))

    direction = jnp.cos(jnp.arange(36.0)).reshape(3, 12)
    h = 1e-5
    expected = (f(d + h * direction) - f(d - h * direction)) / (2 * h)
    for run in (lambda g: g, jax.jit):
        np.testing.assert_allclose(run(lambda d: jax.jvp(f, (d,), (direction,))[1])(d), expected, rtol=1e-7)
        np.testing.assert_allclose(jnp.vdot(run(jax.grad(f))(d), direction), expected, rtol=1e-7)


def test_nothing_is_quadratic_in_the_size(tmp_path):
    n = 1_000_000
    x = sa.PeriodicBanded(constant(-1.0, 2.001, -1.0, n=n), (-1, 0, 1))
    b = np.sin(np.arange(n) * (2 * np.pi / n))
    with sa.densify("error"):
        y = sa.linalg.solve(x, b)
        # The sine is an eigenvector.
        np.testing.assert_allclose(
            np.asarray(y)[::1000], np.asarray(b)[::1000] / (2.001 - 2 * np.cos(2 * np.pi / n)), rtol=1e-6, atol=1e-6
        )
        memory = jax.jit(lambda x, b: sa.linalg.solve(x, b)).lower(x, b).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 2000 * n
    sa.save(tmp_path / "x.zip", x)
    assert type(sa.load(tmp_path / "x.zip")) is sa.PeriodicBanded


@pytest.mark.parametrize(
    ("diagonals", "offsets", "message"),
    [
        ([[1.0, 2.0]], (0, 1), "must have the same length"),
        ([], (), "must not be empty"),
        ([[1.0, 2.0], [1.0]], (0, 1), "of one length"),
        ([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], (1, -2), "must differ modulo 3"),
    ],
)
def test_bad_arguments(diagonals, offsets, message):
    with pytest.raises(ValueError, match=message):
        sa.PeriodicBanded(diagonals, offsets)


@pytest.mark.slow
def test_equivalence():
    functions = ["add", "matmul", "linalg.solve", "sum", "__getitem__", "__setitem__", "where", "concat"]
    report = check_structure(sa.PeriodicBanded, functions=functions, partners=("Dense", "Banded"))
    report.raise_if_wrong()


def test_a_subclass_is_made_by_its_constructor():
    class Ring(sa.PeriodicBanded):
        __slots__ = ()

    assert type(Ring([np.ones(5)], [0])) is Ring
