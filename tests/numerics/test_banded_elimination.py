"""Solvers, determinants and Cholesky factors of banded matrices. The oracles are NumPy on the dense matrix and scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from support import random

from structarrays._numerics import banded_cholesky, banded_determinants, banded_lu, banded_rows, bands
from structarrays._numerics import banded_elimination as banded

solve = jax.jit(banded.solve, static_argnums=(1, 2), static_argnames="positive_definite")
slogdet = jax.jit(banded_determinants.slogdet, static_argnums=(1, 2))


def cholesky(diagonals, offsets, n, upper=False):
    """The compiled factorisation; the offsets of the result are static and stay outside."""
    out = []

    def factor(diagonals):
        factors, offsets_, ok = banded.cholesky(diagonals, offsets, n, upper)
        out.append(offsets_)
        return factors, ok

    factors, ok = jax.jit(factor)(diagonals)
    return factors, out[0], ok


# Diagonal, triangular (also scattered), lopsided, scattered, wide beyond the native loops, full.
PATTERNS = [
    (12, (0,)),
    (12, (-2, 0)),
    (12, (0, 1, 5)),
    (12, (-1, 0, 1)),
    (12, (-2, -1, 0, 1, 2)),
    (12, (-3, 0, 1)),
    (12, (-1, 0, 2, 4)),
    (40, (-18, 0, 1, 17)),
    (3, (-2, -1, 0, 1, 2)),
    (2, (-1, 0, 1)),
    (1, (0,)),
]


def matrix(n, offsets, batch=(), dtype=np.float64, seed=0):
    return tuple(random((*batch, n - abs(k)), dtype, seed + i) for i, k in enumerate(offsets))


def positive(n, offsets, batch=(), dtype=np.float64, seed=0):
    """A diagonally dominant Hermitian matrix with offsets of both signs; offsets and diagonals."""
    both = tuple(sorted({abs(k) for k in offsets} | {-abs(k) for k in offsets} | {0}))
    stored = {-k: random((*batch, n - k), dtype, seed + k) for k in both if k > 0}
    stored |= {-k: d.conj() for k, d in stored.items()}
    stored[0] = (1 + 4 * len(both) + random((*batch, n)) ** 2).astype(dtype)
    return tuple(stored[k] for k in both), both


def dense(diagonals, offsets, n, batch=(), dtype=np.float64):
    a = np.zeros((*batch, n, n), dtype)
    for d, k in zip(diagonals, offsets, strict=True):
        i = np.arange(n - abs(k)) + max(0, -k)
        a[..., i, i + k] = d
    return a


def backward_error(a, x, b):
    """Of each system, in units of the precision of its dtype."""
    size = np.abs(a).max((-2, -1)) * np.abs(x).max((-2, -1)) + np.abs(b).max((-2, -1))
    return (np.abs(a @ x - b).max((-2, -1)) / size).max() / np.finfo(x.dtype).eps


@pytest.mark.parametrize(
    ("batch", "k", "dtype"), [((), 1, np.float64), ((2, 1), 3, np.complex128), ((), 70, np.float32)]
)
@pytest.mark.parametrize(("n", "offsets"), PATTERNS)
def test_solve(n, offsets, batch, k, dtype):
    b = random((*batch, n, k), dtype, 9)
    diagonals = matrix(n, offsets, batch, dtype)
    x, ok = solve(diagonals, offsets, n, b)
    assert ok and x.shape == b.shape and x.dtype == dtype
    assert backward_error(dense(diagonals, offsets, n, batch, dtype), np.asarray(x), b) < 500
    diagonals, both = positive(n, offsets, batch, dtype)
    x, ok = solve(diagonals, both, n, b, positive_definite=True)
    a = dense(diagonals, both, n, batch, dtype)
    assert ok
    assert backward_error(a, np.asarray(x), b) < 500
    # without the promise: elimination without pivoting is stable and used
    x, ok = solve(diagonals, both, n, b)
    assert ok and backward_error(a, np.asarray(x), b) < 500


@pytest.mark.parametrize("batch", [(), (3,)])
def test_interchanges(batch):
    """Zero and tiny pivots, graded rows: as accurate as LAPACK."""
    n, offsets = 30, (-2, -1, 0, 1, 2)
    base = matrix(n, offsets, batch, seed=2)
    b = random((*batch, n, 2))
    for change in (0.0, 1e-20, 1.0):
        diagonals = [d.copy() for d in base]
        diagonals[2][..., ::3] *= change
        if change == 1.0:
            diagonals = [d * np.logspace(0, -9, n)[max(0, -k) : n - max(0, k)] for d, k in zip(diagonals, offsets)]
        x, ok = solve(tuple(diagonals), offsets, n, b)
        a = dense(diagonals, offsets, n, batch)
        assert ok and backward_error(a, np.asarray(x), b) < 100
        expected = np.linalg.solve(a, b)
        assert np.abs(x - expected).max() <= 1e-15 * np.linalg.cond(a).max() * np.abs(expected).max()
        for value, reference in zip(slogdet(tuple(diagonals), offsets, n), np.linalg.slogdet(a), strict=True):
            np.testing.assert_allclose(value, reference, rtol=1e-10)
    exchange = (np.ones(1), np.zeros(2), np.ones(1))
    np.testing.assert_array_equal(solve(exchange, (-1, 0, 1), 2, np.array([[1.0], [2.0]]))[0], [[2.0], [1.0]])


@pytest.mark.parametrize("offsets", [(0,), (-2, 0), (0, 3), (-1, 0, 1), (-2, -1, 0, 1, 2), (-16, 0, 1, 16)])
def test_flags(offsets):
    n = 20
    diagonals, both = positive(n, offsets)
    b = np.ones((n, 1))
    main = both.index(0)
    promises = [(diagonals, both, True), (diagonals, both, False)]
    if not set(both) == set(offsets):
        promises.append((tuple(diagonals[both.index(k)] for k in offsets), offsets, False))
    for stored, stored_offsets, promise in promises:
        main = stored_offsets.index(0)
        assert solve(stored, stored_offsets, n, b, positive_definite=promise)[1]
        # NaN is not singular
        for position in (0, n // 2):
            spoilt = [d.copy() for d in stored]
            spoilt[main][position] = np.nan
            x, ok = solve(tuple(spoilt), stored_offsets, n, b, positive_definite=promise)
            assert ok and np.isnan(x).any()
        x, ok = solve(stored, stored_offsets, n, b * np.nan, positive_definite=promise)
        assert ok and np.isnan(x).all()
        # a row of zeros (with its column, to stay Hermitian) is
        singular = [d.copy() for d in stored]
        for d, k in zip(singular, stored_offsets, strict=True):
            row, column = 7 - max(0, -k), 7 - max(0, k)  # positions on the diagonal of row and column 7
            if 0 <= row < d.size:
                d[row] = 0
            if promise and 0 <= column < d.size:
                d[column] = 0
        x, ok = solve(tuple(singular), stored_offsets, n, b, positive_definite=promise)
        assert not ok and np.isnan(x).all()
        sign, logabsdet = slogdet(tuple(singular), stored_offsets, n)
        assert sign == 0 and logabsdet == -np.inf
    indefinite = [d.copy() for d in diagonals]
    indefinite[both.index(0)][5] = -1.0
    x, ok = solve(tuple(indefinite), both, n, b, positive_definite=True)
    assert not ok and np.isnan(x).all()
    factor, _, ok = cholesky(tuple(indefinite), both, n)
    assert not ok and all(np.isnan(d).all() for d in factor)
    indefinite[both.index(0)][5] = np.nan
    assert cholesky(tuple(indefinite), both, n)[2]


def test_nothing_stored():
    b = np.ones((3, 4, 2))
    x, ok = banded.solve((), (), 4, b)
    assert not ok and np.isnan(x).all() and x.shape == b.shape
    sign, logabsdet = banded_determinants.slogdet((), (), 4)
    assert sign == 0 and logabsdet == -np.inf
    assert banded_determinants.slogdet((np.zeros((2, 0)),), (0,), 0)[0].shape == (2,)
    x, ok = banded.solve((np.zeros(0),), (0,), 0, np.zeros((0, 2)))
    assert ok and x.shape == (0, 2)
    x, ok = solve(matrix(5, (-2, 0, 2)), (-2, 0, 2), 5, np.zeros((5, 0)))
    assert ok and x.shape == (5, 0)
    assert not banded.cholesky((), (), 3)[2]


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize(("n", "offsets"), PATTERNS)
def test_slogdet_and_cholesky(n, offsets, dtype):
    batch = (2,)
    diagonals = matrix(n, offsets, batch, dtype)
    a = dense(diagonals, offsets, n, batch, dtype)
    tolerance = 1e-3 if dtype == np.float32 else 1e-10
    for value, reference in zip(slogdet(diagonals, offsets, n), np.linalg.slogdet(a), strict=True):
        assert value.dtype == reference.dtype
        np.testing.assert_allclose(value, reference, rtol=tolerance, atol=tolerance)
    diagonals, both = positive(n, offsets, batch, dtype)
    a = dense(diagonals, both, n, batch, dtype)
    expected = np.linalg.cholesky(a)
    for upper in (False, True):
        factor, factor_offsets, ok = cholesky(diagonals, both, n, upper)
        assert ok
        value = dense(factor, factor_offsets, n, batch, dtype)
        reference = np.swapaxes(expected, -1, -2).conj() if upper else expected
        np.testing.assert_allclose(value, reference, atol=tolerance)


def derivatives(f, diagonals, tangents):
    """Value, forward, reverse and second derivatives of a real function of diagonals."""
    gradient = jax.grad(f)
    forward = jax.jvp(f, (diagonals,), (tangents,))
    return forward, gradient(diagonals), jax.jvp(gradient, (diagonals,), (tangents,))[1]


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize(
    ("offsets", "dtype"),
    [((0,), np.float64), ((-2, 0), np.float64), ((-2, -1, 0, 2), np.float64), ((-1, 0, 2), np.complex128)],
)
def test_derivatives(offsets, dtype):
    """Against automatic differentiation of the dense functions."""
    n = 6
    b = random((n, 2), dtype, 20)
    weights = random((n, n), dtype, 21)

    def as_dense(diagonals, offsets):
        return bands.to_dense(diagonals, offsets, (n, n))

    def functions(offsets, is_positive):
        def slogdet(sign, logabsdet):
            return logabsdet + (sign * weights[0, 0]).real

        def norm(x):
            return jnp.sum((x * weights[:, : x.shape[1]]).real ** 2)

        def factor(diagonals, upper):
            factors, factor_offsets, _ = banded.cholesky(diagonals, offsets, n, upper)
            return norm(as_dense(factors, factor_offsets))

        yield (
            lambda d: norm(banded.solve(d, offsets, n, b)[0]),
            lambda d: norm(jnp.linalg.solve(as_dense(d, offsets), b)),
        )
        yield (
            lambda d: slogdet(*banded_determinants.slogdet(d, offsets, n)),
            lambda d: slogdet(*jnp.linalg.slogdet(as_dense(d, offsets))),
        )
        if is_positive:
            yield (
                lambda d: norm(banded.solve(d, offsets, n, b, positive_definite=True)[0]),
                lambda d: norm(jnp.linalg.solve(as_dense(d, offsets), b)),
            )
            for upper in (False, True):
                yield (
                    lambda d, upper=upper: factor(d, upper),
                    lambda d, upper=upper: norm(jnp.linalg.cholesky(as_dense(d, offsets), upper=upper)),
                )

    definite, both = positive(n, offsets, (), dtype)
    # The changes are Hermitian too: then what reads one triangle has the same second derivative as what reads both.
    cases = (
        (matrix(n, offsets, (), dtype, 4), matrix(n, offsets, (), dtype, 6), offsets, False),
        (definite, positive(n, offsets, (), dtype, 7)[0], both, True),
    )
    for diagonals, tangents, stored, is_positive in cases:
        for f, reference in functions(stored, is_positive):
            result, expected = (
                jax.jit(derivatives, static_argnums=0)(function, diagonals, tangents) for function in (f, reference)
            )
            for x, y in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9 * max(1, np.abs(y).max()))


@pytest.mark.slow
def test_vmap():
    n, offsets = 9, (-2, -1, 0, 1, 2)
    diagonals, _ = positive(n, offsets, (4,))
    a = dense(diagonals, offsets, n, (4,))
    b = random((4, n, 2))
    for promise in (False, True):
        x, ok = jax.jit(jax.vmap(lambda d, b, promise=promise: banded.solve(d, offsets, n, b, promise)))(diagonals, b)
        np.testing.assert_allclose(x, np.linalg.solve(a, b), atol=1e-13)
        assert np.all(ok)
    one = tuple(d[1] for d in diagonals)
    x, _ = jax.jit(jax.vmap(lambda b: banded.solve(one, offsets, n, b)))(b)
    np.testing.assert_allclose(x, np.linalg.solve(a[1], b), atol=1e-13)
    _, logabsdet = jax.jit(jax.vmap(lambda d: banded_determinants.slogdet(d, offsets, n)))(diagonals)
    np.testing.assert_allclose(logabsdet, np.linalg.slogdet(a)[1])
    factor = jax.jit(jax.vmap(lambda d: banded.cholesky(d, offsets, n)[0]))(diagonals)
    np.testing.assert_allclose(dense(factor, (-2, -1, 0), n, (4,)), np.linalg.cholesky(a), atol=1e-13)
    for f in (
        lambda d: banded_determinants.slogdet(d, offsets, n)[1],
        lambda d: sum(jnp.sum(v**2) for v in banded.cholesky(d, offsets, n)[0]),
        lambda d: jnp.sum(banded.solve(d, offsets, n, b[0])[0]),
    ):
        mapped = jax.jit(jax.vmap(jax.grad(f)))(diagonals)
        for x, y in zip(mapped, jax.jit(jax.grad(f))(one), strict=True):
            np.testing.assert_allclose(x[1], y, atol=1e-12)


def test_a_hundred_thousand_rows():
    n, offsets = 10**5, (-2, -1, 0, 1, 2)
    diagonals, _ = positive(n, offsets)
    b = random((n, 1))
    band = np.zeros((5, n))
    for d, k in zip(diagonals, offsets, strict=True):
        band[2 - k, max(0, k) : n + min(0, k)] = d
    expected = scipy.linalg.solve_banded((2, 2), band, b)
    for promise in (False, True):
        np.testing.assert_allclose(
            solve(diagonals, offsets, n, b, positive_definite=promise)[0], expected, rtol=1e-12, atol=1e-15
        )
    factor = scipy.linalg.cholesky_banded(band[2:], lower=True)
    np.testing.assert_allclose(slogdet(diagonals, offsets, n)[1], 2 * np.log(factor[0]).sum(), rtol=1e-13)


FUNCTIONS = {
    "solve": lambda d, b: jnp.sum(banded.solve(d, (-2, -1, 0, 1, 2), b.shape[0], b)[0] ** 2),
    "positive definite": lambda d, b: jnp.sum(banded.solve(d, (-2, -1, 0, 1, 2), b.shape[0], b, True)[0] ** 2),
    "slogdet": lambda d, b: banded_determinants.slogdet(d, (-2, -1, 0, 1, 2), b.shape[0])[1],
    "cholesky": lambda d, b: sum(jnp.sum(v) for v in banded.cholesky(d, (-2, -1, 0, 1, 2), b.shape[0])[0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_million_rows_in_linear_memory_and_native_loops(name):
    n = 10**6
    diagonals = tuple(jax.ShapeDtypeStruct((n - abs(k),), np.float64) for k in (-2, -1, 0, 1, 2))
    b = jax.ShapeDtypeStruct((n, 1), np.float64)
    stored = 5 * n * 8
    forward = jax.jit(FUNCTIONS[name]).lower(diagonals, b).compile()
    assert forward.memory_analysis().temp_size_in_bytes < 8 * stored
    assert 'xla_cpu_small_call="true"' in forward.as_text()
    gradient = jax.jit(jax.grad(FUNCTIONS[name])).lower(diagonals, b).compile()
    assert gradient.memory_analysis().temp_size_in_bytes < 16 * stored


def loops(compiled):
    """How many loops of a compiled function are native, and how many are not, without those within others."""
    entry = compiled.as_text().split("ENTRY")[1]
    return entry.count('xla_cpu_small_call="true"'), entry.count(" while(")


def test_the_derivative_of_a_solution_factors_once():
    """Eliminate and substitute down and up: a solution has three loops, its derivative two more."""
    n, offsets = 1000, (-2, -1, 0, 1, 2)
    diagonals = tuple(jax.ShapeDtypeStruct((n - abs(k),), np.float64) for k in offsets)
    b = jax.ShapeDtypeStruct((n, 1), np.float64)
    f = FUNCTIONS["positive definite"]
    assert loops(jax.jit(f).lower(diagonals, b).compile()) == (3, 0)
    assert loops(jax.jit(jax.value_and_grad(f)).lower(diagonals, b).compile()) == (5, 0)


@pytest.mark.parametrize("offsets", [tuple(range(-32, 1)), tuple(range(33)), (-300, -2, 0)])
def test_substitution_is_one_native_loop(offsets):
    n = 1000
    diagonals = tuple(jax.ShapeDtypeStruct((n - abs(k),), np.float64) for k in offsets)
    b = jax.ShapeDtypeStruct((n, 1), np.float64)
    assert loops(jax.jit(lambda d, b: banded.solve(d, offsets, n, b)).lower(diagonals, b).compile()) == (1, 0)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("count", [0, 1, 7, 30])
def test_substitution_of_some_rows(lower, count):
    """An elimination that is not stable takes no steps of its substitution."""
    n, offsets = 30, (-3, -2, -1) if lower else (1, 2, 3)
    coefficients, diagonal, b = random((n, 3), float, 1), 4 + random((n,), float, 2), random((n, 2), float, 3)
    a = np.diag(diagonal)
    for m, k in enumerate(offsets):
        rows = np.arange(max(0, -k), n - max(0, k))
        a[rows, rows + k] = coefficients[rows, m]
    x = np.linalg.solve(a, b)
    wanted = np.zeros_like(x)
    part = slice(count) if lower else slice(n - count, n)
    wanted[part] = x[part]
    substitute = jax.jit(lambda count: banded_rows.substitute(coefficients, offsets, b, diagonal, count=count))
    np.testing.assert_allclose(substitute(count), wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.costly
@pytest.mark.parametrize("dominant", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_wide_bands_and_their_derivatives(dominant, dtype):
    """Too wide for the flat loop of the elimination: with and without exchanges of rows, and transposed."""
    n, offsets = 24, tuple(range(-9, 16))
    diagonals = list(matrix(n, offsets, dtype=dtype))
    if dominant:
        diagonals[9] = diagonals[9] + 40
    b = random((n, 2), dtype, 5)
    a = dense(diagonals, offsets, n, dtype=dtype)
    x, ok = solve(tuple(diagonals), offsets, n, b)
    assert ok and backward_error(a, np.asarray(x), b) < 100
    np.testing.assert_allclose(slogdet(tuple(diagonals), offsets, n)[1], np.linalg.slogdet(a)[1], rtol=1e-12)

    def f(diagonals, b):
        return jnp.sum(jnp.abs(banded.solve(diagonals, offsets, n, b)[0]) ** 2)

    def g(diagonals, b):
        return jnp.sum(jnp.abs(jnp.linalg.solve(bands.to_dense(diagonals, offsets, (n, n)), b)) ** 2)

    ours, theirs = (jax.jit(jax.grad(h, (0, 1)))(tuple(diagonals), b) for h in (f, g))
    for u, v in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(u, v, rtol=1e-8, atol=1e-8 * np.max(np.abs(v)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_eliminations_are_native_up_to_their_limit(dtype):
    n, size = 200, np.dtype(dtype).itemsize
    w = banded_rows.NATIVE_BYTES // size - 1
    rows = jax.ShapeDtypeStruct((n + w, 2 * w + 1), dtype)
    assert loops(jax.jit(lambda rows: banded_lu._eliminate_by_pairs(rows, w, w)).lower(rows).compile()) == (1, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("bandwidth", [3, "narrow", "whole", "pieces", 100])
def test_definite_eliminations_are_native_for_all_bandwidths(bandwidth, dtype):
    """On either side of the bandwidths where rows are cut, whose copies or which themselves are."""
    whole = banded_rows.WHOLE_BYTES // np.dtype(dtype).itemsize - 2
    narrow = banded_rows.NATIVE_BYTES // np.dtype(dtype).itemsize - 1
    w = {"narrow": narrow, "whole": whole, "pieces": whole + 1}.get(bandwidth, bandwidth)
    assert (banded_rows.pieces(w, dtype)[0] == 1) == (bandwidth not in ("pieces", 100))
    diagonals = tuple(jax.ShapeDtypeStruct((200 - k,), dtype) for k in range(w + 1))
    columns = jax.eval_shape(
        lambda d: banded_cholesky.from_diagonals(d, tuple(range(0, -w - 1, -1)), 200, dtype), diagonals
    )
    assert loops(jax.jit(lambda columns: banded_cholesky.ldl(columns, w)).lower(columns).compile()) == (1, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 30, 31])
def test_cholesky_of_two_columns_at_a_time(n, dtype):
    """Of an odd and an even number of columns, and bands as wide as the matrix."""
    for w in range(
        3, banded_cholesky._TWO_COLUMNS_BYTES // np.dtype(dtype).itemsize + 1
    ):  # and one more, where it is one at a time
        diagonals, offsets = positive(n, tuple(range(min(w, n - 1) + 1)), dtype=dtype)
        factors, found, ok = cholesky(diagonals, offsets, n)
        expected = np.linalg.cholesky(dense(diagonals, offsets, n, dtype=dtype))
        got = dense(factors, found, n, dtype=dtype)
        assert ok
        np.testing.assert_allclose(got, expected, rtol=0, atol=20 * np.finfo(dtype).eps * np.abs(expected).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_cholesky_of_the_largest_numbers(dtype):
    """Their reciprocals are subnormal, which XLA takes for zero."""
    n, largest = 20, np.finfo(dtype).max
    for w in (1, 2, 3, 4, 6, 8, 14):
        band = [0.4, *(0.02 / k for k in range(1, w + 1))]
        diagonals = [np.full(n - k, band[k] * largest).astype(dtype) for k in range(w + 1)]
        factors, found, ok = cholesky([*diagonals[:0:-1], *diagonals], tuple(range(-w, w + 1)), n)
        expected = np.linalg.cholesky(sum(band[abs(k)] * np.eye(n, k=k) for k in range(-w, w + 1)))
        got = dense(factors, found, n, dtype=dtype) / np.sqrt(largest)
        assert ok
        np.testing.assert_allclose(got, expected, rtol=0, atol=20 * np.finfo(dtype).eps)


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("w", [9, 10, 13, 29, 41, 60])
def test_cholesky_of_wide_bands(w, dtype):
    """Also where a row is cut to pieces, the last of which goes beyond it, and a band as wide as the matrix."""
    for n in (61, 90):
        diagonals, offsets = positive(n, tuple(range(w + 1)), dtype=dtype)
        factors, found, ok = cholesky(diagonals, offsets, n)
        expected = np.linalg.cholesky(dense(diagonals, offsets, n, dtype=dtype))
        tolerance = 20 * np.finfo(dtype).eps * np.abs(expected).max()
        assert ok and found == tuple(range(-w, 1))
        np.testing.assert_allclose(dense(factors, found, n, dtype=dtype), expected, rtol=0, atol=tolerance)
        b = random((n, 2), dtype)
        x, ok = solve(diagonals, offsets, n, b, positive_definite=True)
        assert ok and backward_error(dense(diagonals, offsets, n, dtype=dtype), np.asarray(x), b) < 100


# ---- derivatives of determinants -------------------------------------------------------------------------------------


def _random(n, kl, ku, dominant, dtype, seed=0):
    rng = np.random.default_rng(seed)
    offsets = tuple(k for k in range(-kl, ku + 1) if -n < k < n)
    diagonals = [rng.normal(size=n - abs(k)).astype(dtype) for k in offsets]
    if np.dtype(dtype).kind == "c":
        diagonals = [d + 1j * rng.normal(size=d.shape) for d in diagonals]
    diagonals[offsets.index(0)] += dominant
    return diagonals, offsets, sum(np.diag(d, k) for d, k in zip(diagonals, offsets, strict=True))


@pytest.mark.costly
@pytest.mark.parametrize(
    ("n", "kl", "ku", "dominant", "dtype"),
    [
        (1, 1, 1, 0, "float64"),
        (2, 3, 1, 30, "float64"),
        (9, 1, 1, 0, "float64"),
        (9, 1, 3, 30, "complex128"),
        (9, 4, 2, 0, "complex128"),
        (12, 2, 2, 30, "float64"),
        (7, 6, 6, 30, "float64"),
        (9, 0, 2, 0, "float64"),
    ],
)
def test_the_derivative_of_slogdet_is_the_inverse(n, kl, ku, dominant, dtype):
    """With exchanges of rows (not dominant) and without."""
    diagonals, offsets, dense = _random(n, kl, ku, dominant, dtype)
    inverse = np.linalg.inv(dense)

    def logdet(diagonals):
        return banded_determinants.slogdet(diagonals, offsets, n)[1]

    for gradient in (jax.grad(logdet)(diagonals), jax.jit(jax.grad(logdet))(diagonals)):
        for k, g in zip(offsets, gradient, strict=True):
            np.testing.assert_allclose(g, np.diagonal(inverse.T, k), rtol=1e-9, atol=1e-11 * np.abs(inverse).max())


@pytest.mark.slow
def test_second_derivatives_and_maps_of_slogdet():
    diagonals, offsets, dense = _random(6, 2, 1, 12, "float64")
    tangent, *_ = _random(6, 2, 1, 0, "float64", seed=1)

    def logdet(diagonals):
        return banded_determinants.slogdet(diagonals, offsets, 6)[1]

    change = sum(np.diag(d, k) for d, k in zip(tangent, offsets, strict=True))
    inverse = np.linalg.inv(dense)
    _, second = jax.jvp(jax.grad(logdet), (diagonals,), (tangent,))
    for k, s in zip(offsets, second, strict=True):
        np.testing.assert_allclose(s, np.diagonal(-(inverse @ change @ inverse).T, k), rtol=1e-9, atol=1e-12)
    stacked = [np.stack([d, 2 * d]) for d in diagonals]
    mapped = jax.vmap(jax.grad(logdet))(stacked)
    for k, g in zip(offsets, mapped, strict=True):
        wanted = np.stack([np.diagonal(inverse.T, k), np.diagonal(inverse.T, k) / 2])
        np.testing.assert_allclose(g, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("w", [1, 2, 3, 4, 5])
def test_the_derivative_of_slogdet_is_a_native_loop(w):
    diagonals, offsets, _ = _random(50, w, w, 20, "float64")
    gradient = jax.jit(jax.grad(lambda d: banded_determinants.slogdet(d, offsets, 50)[1]))
    # Two of the elimination, three of the derivative.
    assert gradient.lower(diagonals).compile().as_text().count('xla_cpu_small_call="true"') >= 5


@pytest.mark.parametrize("offsets", [tuple(range(-w, w + 1)) for w in (2, 3, 4, 6, 8, 10)] + [tuple(range(8))], ids=str)
def test_diagonals_are_stored_by_rows_without_another_copy(offsets):
    """XLA of JAX 0.12 held each diagonal twice, from eight of them on."""
    n = 3000
    diagonals = tuple(jax.ShapeDtypeStruct((n - abs(k),), jnp.float64) for k in offsets)
    compiled = jax.jit(lambda diagonals: banded_rows.from_diagonals(diagonals, offsets, n, jnp.float64)).lower(
        diagonals
    )
    assert compiled.compile().memory_analysis().temp_size_in_bytes < 8 * n


@pytest.mark.parametrize(("first", "count"), [(0, None), (0, 12), (3, None), (0, 3)])
@pytest.mark.parametrize("offsets", [(-2, -1, 0, 1), (-3, 1), (0,), (2, 0)])
def test_derivatives_of_the_storage_by_rows_neither_copy_nor_update_it(offsets, first, count):
    """Linear: the derivative stores the tangents, and its transpose takes them out again, every element once."""
    n, batch = 9, (2,)
    rng = np.random.default_rng(0)
    diagonals, tangents = (tuple(rng.normal(size=(*batch, n - abs(k))) for k in offsets) for _ in range(2))

    def stored(diagonals):
        return banded_rows.from_diagonals(diagonals, offsets, n, np.dtype("float64"), first, count, extra_columns=1)

    kl, rows = max(0, -min(offsets)), n if count is None else count
    expected = np.zeros((*batch, rows, kl + max(0, *offsets) + 2))
    for d, k in zip(tangents, offsets, strict=True):
        for i in range(first, min(n, first + rows)):
            if 0 <= i + k < n:
                expected[:, i - first, kl + k] = d[:, min(i, i + k)]
    found = jax.jvp(stored, (diagonals,), (tangents,))[1]
    np.testing.assert_array_equal(found, expected)
    weights = rng.normal(size=expected.shape)
    transposed = jax.jit(lambda d, w: jax.vjp(stored, d)[1](w)[0])
    product = sum(np.vdot(t, c) for t, c in zip(tangents, transposed(diagonals, weights), strict=True))
    np.testing.assert_allclose(product, np.vdot(expected, weights), rtol=1e-13)
    text = transposed.lower(diagonals, weights).compile().as_text()
    assert "dynamic-update-slice" not in text and " copy(" not in text


@pytest.mark.parametrize(("first", "count"), [(0, None), (0, 60), (3, None), (0, 3)])
def test_the_storage_of_many_diagonals(first, count, rng):
    """More than are written out one by one: SciPy gives the matrix. The derivative is the same function, as it is linear."""
    n, offsets = 50, tuple(k for k in range(-20, 22) if k % 7)
    diagonals = tuple(rng.normal(size=n - abs(k)) for k in offsets)
    dense = scipy.sparse.diags_array(diagonals, offsets=offsets).toarray()
    rows, width = n if count is None else count, 20 + 20 + 1 + 2
    assert len(offsets) > banded_rows.FEW
    expected = np.zeros((rows, width))
    for i in range(first, min(n, first + rows)):
        for j in range(max(0, i - 20), min(n, i + 21)):
            expected[i - first, j - i + 20] = dense[i, j]

    @jax.jit
    def stored(diagonals):
        return banded_rows.from_diagonals(diagonals, offsets, n, np.dtype("float64"), first, count, extra_columns=2)

    np.testing.assert_array_equal(stored(diagonals), expected)
    np.testing.assert_array_equal(jax.jvp(stored, (diagonals,), (diagonals,))[1], expected)
    weights = rng.normal(size=expected.shape)
    (back,) = jax.vjp(stored, diagonals)[1](weights)
    product = sum(np.vdot(d, b) for d, b in zip(diagonals, back, strict=True))
    np.testing.assert_allclose(product, np.vdot(expected, weights), rtol=1e-13)


FIRST = ["dominant", "second differences", "pivots", "alternating", "tiny", "tiny pivots", "zero pivots"]


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("rest", ["dominant", "pivots", "huge", "alternating", "tiny pivots"])
@pytest.mark.parametrize("w", [2, 5])
def test_the_first_rows_of_a_long_matrix_select_the_method(rng, first, rest, w):
    """Whatever they suggest, solutions are accurate: the whole elimination is tested, too, and the other method pivots."""
    n, few, offsets = 2100, banded_lu._FIRST_ROWS + 10, tuple(range(-w, w + 1))
    a = np.zeros((n, 2 * w + 1))  # by rows
    for kind, rows in ((first, slice(0, few)), (rest, slice(few, n))):
        part = rng.normal(size=a[rows].shape)
        if kind == "dominant":
            part[:, w] += 5 * w
        elif kind == "second differences":
            part[:] = -1
            part[:, w] = 2 * w + 1e-3
        elif kind == "alternating":
            part[:] = np.where(np.arange(part.shape[0])[:, None] % 2, 1.0, -1.0) * np.arange(1, 2 * w + 2) % 3
        elif kind == "tiny pivots":
            part[:, w] *= 1e-14
        elif kind == "zero pivots":
            part[:, w] = 0
        a[rows] = part * {"tiny": 1e-9, "huge": 1e9}.get(kind, 1)
    diagonals = tuple(a[max(0, -k) : n - max(0, k), w + k] for k in offsets)
    A = scipy.sparse.diags_array(diagonals, offsets=offsets, shape=(n, n)).tocsr()
    b = rng.normal(size=(n, 1))
    x, ok = solve(diagonals, offsets, n, b)
    assert ok
    norm = abs(A).sum(1).max()
    assert np.abs(b - A @ x).max() <= 1e-13 * norm * np.abs(x).max()

    def loss(diagonals, b):
        return jnp.sum(banded.solve(diagonals, offsets, n, b)[0] * b)

    by_entries, gradient = jax.jit(jax.grad(loss, argnums=(0, 1)))(diagonals, b)
    y = gradient - x  # the solution of A^T y = b
    scale = np.abs(x).max() + np.abs(y).max()
    assert np.abs(b - A.T @ y).max() <= 1e-13 * abs(A).sum(0).max() * scale
    largest = np.abs(y).max() * np.abs(x).max()
    for k, found in zip(offsets, by_entries, strict=True):
        expected = -(y[max(0, -k) : n - max(0, k), 0] * x[max(0, k) : n - max(0, -k), 0])
        np.testing.assert_allclose(found / largest, expected / largest, atol=1e-6)
