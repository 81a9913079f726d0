"""Tridiagonal systems. The oracles are NumPy on the dense matrix and LAPACK through scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import random

from structarrays._numerics import tridiagonal

solve = jax.jit(tridiagonal.solve, static_argnames="positive_definite")


def matrix(n, batch=(), dtype=np.float64, positive_definite=False, seed=0):
    lower, upper = random((*batch, n - 1), dtype, seed), random((*batch, n - 1), dtype, seed + 1)
    diag = random((*batch, n), dtype, seed + 2)
    if positive_definite:
        return lower, (np.abs(diag) + 2 * np.abs(lower).max(initial=1)).astype(dtype), lower.conj()
    return lower, diag, upper


def dense(lower, diag, upper):
    n = diag.shape[-1]
    a = np.zeros((*diag.shape, n), diag.dtype)
    i = np.arange(n)
    a[..., i, i] = diag
    a[..., i[1:], i[:-1]] = lower
    a[..., i[:-1], i[1:]] = upper
    return a


def backward_error(a, x, b):
    """Of each system, in units of the precision of its dtype."""
    size = np.abs(a).max((-2, -1)) * np.abs(x).max((-2, -1)) + np.abs(b).max((-2, -1))
    return (np.abs(a @ x - b).max((-2, -1)) / size).max() / np.finfo(x.dtype).eps


@pytest.mark.parametrize("positive_definite", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize(
    ("n", "batch", "k"), [(1, (), 1), (2, (), 3), (40, (), 1), (40, (), 11), (5, (3,), 1), (9, (2, 5), 2), (6, (7,), 9)]
)
def test_values(n, batch, k, dtype, positive_definite):
    diagonals = matrix(n, batch, dtype, positive_definite)
    b = random((*batch, n, k), dtype, 9)
    x, ok = solve(*diagonals, b, positive_definite=positive_definite)
    assert ok and x.dtype == dtype and x.shape == b.shape
    assert backward_error(dense(*diagonals), np.asarray(x), b) < 200


def test_empty():
    x, ok = solve(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((0, 3)))
    assert x.shape == (0, 3) and ok
    x, ok = solve(*matrix(4), np.zeros((2, 4, 0)))
    assert x.shape == (2, 4, 0) and ok
    assert not solve(np.zeros(3), np.zeros(4), np.zeros(3), np.zeros((4, 0)))[1]
    x, ok = solve(*matrix(4, (0,)), np.zeros((4, 2)))
    assert x.shape == (0, 4, 2) and ok


def test_batches_broadcast():
    diagonals = matrix(6, (3, 1), positive_definite=True)
    for b in (random((6, 2)), random((4, 6, 2)), random((5, 3, 4, 6, 1))):
        x, ok = solve(*diagonals, b)
        assert ok
        np.testing.assert_allclose(x, np.linalg.solve(dense(*diagonals), b), atol=1e-12)
    diagonals = matrix(6)
    b = random((2, 3, 6, 4))
    np.testing.assert_allclose(solve(*diagonals, b)[0], np.linalg.solve(dense(*diagonals), b), rtol=1e-9)


def test_upper_is_not_read_if_positive_definite():
    lower, diag, upper = matrix(8, dtype=np.complex128, positive_definite=True)
    b = random((8, 1), np.complex128)
    x, ok = solve(lower, diag, np.full_like(upper, np.nan), b, positive_definite=True)
    assert ok
    np.testing.assert_allclose(x, np.linalg.solve(dense(lower, diag, upper), b), atol=1e-13)


@pytest.mark.parametrize("batch", [(), (6,)])
def test_pivots(batch):
    """Matrices that need interchanges: zero and tiny pivots, graded entries. One bad system must not spoil the others."""
    n = 50
    lower, diag, upper = matrix(n, batch, seed=3)
    families = []
    zero_leading = diag.copy()
    zero_leading[..., 0] = 0
    families.append((lower, zero_leading, upper))
    tiny = diag.copy()
    tiny[..., ::7] = 1e-18
    families.append((lower, tiny, upper))
    families.append((lower, np.zeros_like(diag), upper))  # n is even: not singular
    scale = np.logspace(0, -8, n)
    families.append((lower * scale[1:], diag * scale, upper * scale[:-1]))
    families.append((lower * 1e3, diag, upper * 1e-3))
    b = random((*batch, n, 1), seed=4)
    for family in families:
        x, ok = solve(*family, b)
        assert ok
        assert backward_error(dense(*family), np.asarray(x), b) < 100
        lapack = np.linalg.solve(dense(*family), b)
        # no worse than LAPACK where the problem is well posed
        tolerance = np.linalg.cond(dense(*family)).max() * 1e-15
        assert np.max(np.abs(x - lapack)) <= max(tolerance, 1e-13) * np.max(np.abs(lapack))


@pytest.mark.parametrize("batch", [(), (6,)])
def test_flag(batch):
    n = 9
    lower, diag, upper = matrix(n, batch, positive_definite=True)
    b = np.ones((*batch, n, 1))
    singular = np.zeros((*batch, n))  # n is odd
    x, ok = solve(lower, singular, upper, b)
    assert not ok and np.isnan(x).all()
    indefinite = diag.copy()
    indefinite[..., 4] = -1
    x, ok = solve(lower, indefinite, upper, b, positive_definite=True)
    assert not ok and np.isnan(x).all()
    assert solve(lower, indefinite, upper, b)[1]
    semidefinite = solve(np.ones((*batch, 1)), np.ones((*batch, 2)), np.ones((*batch, 1)), b[..., :2, :], True)
    assert not semidefinite[1]
    for positive_definite in (False, True):
        for bad in (np.nan, np.inf):
            spoilt = diag.copy()
            spoilt[..., 3] = bad
            x, ok = solve(lower, spoilt, upper, b, positive_definite=positive_definite)
            assert ok, "not finite is not singular"
            if np.isnan(bad):
                assert np.isnan(x).any()
        x, ok = solve(lower, diag, upper, b * np.nan, positive_definite=positive_definite)
        assert ok and np.isnan(x).all()


def test_flag_of_some_systems():
    lower, diag, upper = matrix(9, (5,), positive_definite=True)
    diag[2] = 0
    x, ok = solve(lower, diag, upper, np.ones((5, 9, 1)))
    assert not ok
    np.testing.assert_array_equal(np.isnan(x).all((1, 2)), np.arange(5) == 2)


def derivatives(f, args, tangents, cotangent):
    """Forward, reverse and second derivatives of a function of arrays."""

    def first(*args):
        return jax.vjp(f, *args)[1](cotangent)

    return jax.jvp(f, args, tangents)[1], first(*args), jax.jvp(first, args, tangents)[1]


@pytest.mark.parametrize(
    ("batch", "positive_definite", "dtype"),
    [((), False, np.float64), ((3,), False, np.complex128), ((3,), True, np.float64), ((), True, np.complex128)],
)
def test_derivatives(batch, positive_definite, dtype):
    """Against automatic differentiation of the dense solve."""
    n = 5
    diagonals = matrix(n, batch, dtype, True, seed=5)
    args = (*diagonals, random((*batch, n, 2), dtype))
    lower, diag, upper, b = matrix(n, batch, dtype, True, seed=7) + (random((*batch, n, 2), dtype, 3),)
    i = np.arange(n)

    def reference(lower, diag, upper, b):
        a = jnp.zeros((*diag.shape, n), dtype).at[..., i, i].set(diag)
        a = a.at[..., i[1:], i[:-1]].set(lower).at[..., i[:-1], i[1:]].set(upper)
        return jnp.linalg.solve(a, b)

    def f(*args):
        return tridiagonal.solve(*args, positive_definite)[0]

    g = random(b.shape, dtype, 8)
    results, expected = (
        jax.jit(derivatives, static_argnums=0)(function, args, (lower, diag, upper, b), g)
        for function in (f, reference)
    )
    # The perturbation keeps the matrix Hermitian, so that the second derivative means the same for both.
    for x, y in zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-11)


@pytest.mark.costly
@pytest.mark.parametrize("positive_definite", [False, True])
def test_vmap(positive_definite):
    diagonals = matrix(7, (4,), positive_definite=True)
    b = random((4, 7, 1))
    expected = np.linalg.solve(dense(*diagonals), b)

    def f(*args):
        return tridiagonal.solve(*args, positive_definite)

    x, ok = jax.jit(jax.vmap(f))(*diagonals, b)
    np.testing.assert_allclose(x, expected, atol=1e-13)
    assert np.all(ok)
    one = [d[0] for d in diagonals]
    x, _ = jax.vmap(lambda b: f(*one, b))(b)
    np.testing.assert_allclose(x, np.linalg.solve(dense(*one), b), atol=1e-13)
    x, _ = jax.vmap(lambda l: f(l, *one[1:], b[0]))(diagonals[0] * 0.1 if not positive_definite else diagonals[0])
    assert x.shape == (4, 7, 1)
    gradient = jax.jit(jax.vmap(jax.grad(lambda *args: f(*args)[0].sum(), argnums=(0, 3))))(*diagonals, b)
    single = jax.grad(lambda *args: f(*args)[0].sum(), argnums=(0, 3))(*one, b[0])
    for x, y in zip(gradient, single, strict=True):
        np.testing.assert_allclose(x[0], y, atol=1e-13)


def test_a_million_rows():
    """Linear memory, native loops, LAPACK's accuracy."""
    n = 10**6
    lower, diag, upper = matrix(n, positive_definite=True)
    b = random((n, 1))
    banded = np.zeros((2, n))
    banded[0], banded[1, :-1] = diag, lower
    expected = scipy.linalg.solveh_banded(banded, b, lower=True)
    for positive_definite in (False, True):
        x, ok = solve(lower, diag, upper, b, positive_definite=positive_definite)
        assert ok
        np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-14)

        def loss(*args, positive_definite=positive_definite):
            return jnp.sum(tridiagonal.solve(*args, positive_definite)[0] ** 2)

        compiled = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3))).lower(lower, diag, upper, b).compile()
        assert compiled.memory_analysis().temp_size_in_bytes < 20 * n * 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize(
    ("batch", "positive_definite", "mapped"),
    [((), True, False), ((2,), True, False), ((3,), False, False), ((1000,), False, True)],
)
def test_loops_are_native(batch, positive_definite, mapped, columns, dtype):
    n = 1000

    def f(*args):
        return tridiagonal.solve(*args, positive_definite)

    f = jax.vmap(f) if mapped else f
    shapes = [jax.ShapeDtypeStruct((*batch, *s), dtype) for s in ((n - 1,), (n,), (n - 1,), (n, columns))]
    text = jax.jit(f).lower(*shapes).compile().as_text()
    assert text.count('xla_cpu_small_call="true"') >= 2
